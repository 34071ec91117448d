//! Two files that are not Gamma files, converted to Gamma's form and imported as closed markets: a page walk
//! finds every condition exactly once.
//!
//! | field | CLOB rows | rows of titles |
//! |---|---|---|
//! | `conditionId`, `question`, `endDate` | the row's | the row's |
//! | `slug`, `description`, `image`, `icon`, `questionID`, tick, size | the row's | made by the exchange |
//! | `outcomes` | the labels of the tokens, where there are two | the row's |
//! | `clobTokenIds` | the tokens' ids, where there are two | made by the exchange |
//! | `outcomePrices` | from `winner` | the row's |
//! | `tags` | the row's, as plain names | the row's, as plain names |
//! | `closed` | true for all | true for all |
//! | `id`, `createdAt`, `updatedAt`, `startDate` where absent | made by the exchange | made by the exchange |

use crate::common::shared::shared;
use crate::common::{column, unpacked};
use crate::site::Site;
use crate::source::text;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

const CLOB: &str = "data/clob-markets-1000/test_task1_raw_markets.json.gz";
const TITLES: &str = "data/search-titles/markets.json.gz";

/// A CLOB market in Gamma's form.
fn of_clob(row: &Value) -> Value {
    let mut market = Map::new();
    for (name, from) in [
        ("conditionId", "condition_id"),
        ("question", "question"),
        ("slug", "market_slug"),
        ("description", "description"),
        ("image", "image"),
        ("icon", "icon"),
        ("questionID", "question_id"),
        ("endDate", "end_date_iso"),
        ("gameStartTime", "game_start_time"),
        ("orderPriceMinTickSize", "minimum_tick_size"),
        ("orderMinSize", "minimum_order_size"),
        ("negRisk", "neg_risk"),
        ("active", "active"),
        ("archived", "archived"),
        ("tags", "tags"),
    ] {
        if !row[from].is_null() {
            market.insert(name.to_owned(), row[from].clone());
        }
    }
    let tokens = row["tokens"].as_array().unwrap();
    let each = |name: &str| tokens.iter().map(|token| text(token, name)).collect::<Vec<_>>();
    if each("outcome").iter().all(|label| !label.is_empty()) {
        market.insert("outcomes".to_owned(), json!(json!(each("outcome")).to_string()));
    }
    if each("token_id").iter().all(|id| !id.is_empty()) {
        market.insert("clobTokenIds".to_owned(), json!(json!(each("token_id")).to_string()));
    }
    if tokens.iter().any(|token| token["winner"] == true) {
        let prices = tokens.iter().map(|token| if token["winner"] == true { "1" } else { "0" });
        market.insert("outcomePrices".to_owned(), json!(json!(prices.collect::<Vec<_>>()).to_string()));
    }
    market.insert("closed".to_owned(), json!(true));
    Value::Object(market)
}

/// Imports rows; returns every market that resulted, by condition, as the page walk shows them.
fn loaded(site: &mut Site, rows: &[Value]) -> (BTreeMap<String, Value>, String) {
    let own: BTreeSet<String> =
        column(&site.walk("/markets?", 100), "id").into_iter().map(str::to_owned).collect();
    let (_, said) = site.import(&json!(rows));
    let mut found = BTreeMap::new();
    for market in site.walk("/markets?closed=true&ascending=true&", 100) {
        if !own.contains(text(&market, "id")) {
            let condition = text(&market, "conditionId").to_owned();
            assert!(found.insert(condition, market).is_none(), "a market came twice");
        }
    }
    (found, said)
}

fn assert_loaded(found: &BTreeMap<String, Value>, rows: &[Value]) {
    let wanted: BTreeMap<String, &Value> = rows
        .iter()
        .map(|row| (text(row, "conditionId").to_lowercase(), row))
        .filter(|(condition, _)| !condition.is_empty())
        .collect();
    assert!(found.keys().eq(wanted.keys()), "{} found, {} wanted", found.len(), wanted.len());
    for (condition, market) in found {
        let same = rows.iter().filter(|row| text(row, "conditionId").eq_ignore_ascii_case(condition));
        assert!(same.clone().any(|row| row["question"] == market["question"]), "{condition}");
        crate::assert_whole(market, crate::TEXTS_OF_MARKET, crate::DATES, crate::FLAGS);
        assert_eq!(market["closed"], true);
        assert_eq!(market["acceptingOrders"], false);
    }
}

#[test]
fn the_clob_rows_are_found_again_and_those_without_a_condition_are_named() {
    let Some(file) = shared(CLOB) else { return };
    let rows: Vec<Value> = unpacked(&file).as_array().unwrap().iter().map(of_clob).collect();
    let mut site = Site::dev();
    let (found, said) = loaded(&mut site, &rows);
    let without = rows.iter().filter(|row| text(row, "conditionId").is_empty()).count();
    assert_eq!((found.len(), without), (946, 54), "{said}");
    assert_eq!(
        said.matches("conditionId: got \"\"; allowed: 0x and 64 hex digits").count(),
        without,
        "{said}"
    );
    assert_loaded(&found, &rows);
    for market in found.values() {
        let slug = text(market, "slug");
        let shown = site.read(&format!("/markets?slug={slug}"));
        let ids = column(shown.as_array().unwrap(), "id");
        assert!(ids.contains(&text(market, "id")), "{slug}");
    }
    site.exchange.stop();
}

#[test]
fn the_rows_of_titles_are_found_again() {
    let Some(file) = shared(TITLES) else { return };
    let rows: Vec<Value> = unpacked(&file)
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let mut market = row.clone();
            market["closed"] = json!(true);
            market
        })
        .collect();
    let mut site = Site::dev();
    let (found, said) = loaded(&mut site, &rows);
    let without = rows.iter().filter(|row| text(row, "conditionId").is_empty()).count();
    assert_eq!((found.len(), without), (5_689, 22), "{said}");
    assert_eq!(
        said.matches("conditionId: got \"\"; allowed: 0x and 64 hex digits").count(),
        without,
        "{said}"
    );
    assert_loaded(&found, &rows);
    let tags: BTreeSet<&str> = rows
        .iter()
        .flat_map(|row| row["tags"].as_array().unwrap())
        .map(|tag| tag.as_str().unwrap())
        .collect();
    let listed = site.walk("/tags?", 100);
    let labels: BTreeSet<&str> = column(&listed, "label").into_iter().collect();
    assert!(tags.iter().all(|tag| labels.contains(tag)), "every tag is listed");
    site.exchange.stop();
}
