//! Real markets: what was imported is listed in forms that the strict clients take.

use super::*;
use crate::catalog::shared::shared;
use crate::catalog::{Import, MarketDefaults, Rows};

/// `null`, or `2025-12-31T12:00:00.000Z`.
fn is_instant_or_null(value: &Value) -> bool {
    let shape = |text: &str| {
        let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        shape == "0000-00-00T00:00:00.000Z"
    };
    value.is_null() || value.as_str().is_some_and(shape)
}

/// Empty, or `bytes` bytes in hex.
fn is_hex_or_empty(value: &Value, bytes: usize) -> bool {
    let hex = |text: &str| {
        let digits = text.strip_prefix("0x");
        digits.is_some_and(|digits| {
            digits.len() == 2 * bytes && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    };
    value.as_str().is_some_and(|text| text.is_empty() || hex(text))
}

#[test]
fn every_real_market_is_listed_in_a_form_that_strict_clients_take() {
    let files = ["gamma-markets-500/polymarket_markets.json.gz", "gamma-events-100/events.json.gz"];
    let [Some(markets), Some(events)] = files.map(|file| shared(&format!("data/{file}"))) else {
        return;
    };
    let defaults = MarketDefaults {
        tick: Tick::new(100).expect("a tick"),
        min_size: Shares(5 * SHARE),
        fee: FeeSchedule::FREE,
    };
    let mut import = Import::default();
    for file in [markets, events] {
        let bytes = std::fs::read(file).expect("the file");
        let mut rows = Rows::new(&bytes[..]).expect("a file");
        import.add_rows(0, &mut rows, &defaults, |_| ()).expect("a file");
    }

    let mut exchange = Exchange::opened();
    let mut events = vec!["77".to_owned()];
    for (event, number) in import.events().iter().zip(1..) {
        events.push(event.key.clone());
        exchange.says(EventText { time: TimeMs(1), event: number, text: event.text.clone() });
    }
    for (market, number) in import.markets().iter().zip(2..) {
        let place = market.event.as_ref().and_then(|key| events.iter().position(|event| event == key));
        exchange.says(MarketAdded {
            time: TimeMs(1),
            market: MarketNo(number),
            event: place.map(|place| u32::try_from(place).expect("few events")),
            shard_key: number,
            market_id: market.market_id.unwrap_or(u64::from(number)),
            condition: market.condition,
            question: market.question,
            tokens: market.tokens.unwrap_or([TokenId(market.condition.0), TokenId([0; 32])]),
            labels: market.labels.to_vec(),
            neg_risk: market.neg_risk,
            tick: market.tick,
            min_size: market.min_size,
            fee: market.fee,
            mode: market.mode,
            payout: market.payout,
            text: market.text.clone(),
        });
    }
    let (rows, _) = exchange.lists(None, "/markets", |_| {});
    assert_eq!(rows.len(), 2 + 782);
    for row in &rows[2..] {
        let slug = row["slug"].as_str().expect("a slug");
        for name in ["accepting_order_timestamp", "end_date_iso", "game_start_time"] {
            assert!(is_instant_or_null(&row[name]), "{slug}: {name} {}", row[name]);
        }
        for (name, bytes) in
            [("question_id", 32), ("neg_risk_market_id", 32), ("neg_risk_request_id", 32), ("fpmm", 20)]
        {
            assert!(is_hex_or_empty(&row[name], bytes), "{slug}: {name} {}", row[name]);
        }
        assert!(!row["question"].as_str().expect("a question").is_empty(), "{slug}");
        assert!(!row["event"]["title"].as_str().expect("a title").is_empty(), "{slug}");
        assert_eq!(row["raw_metadata"]["slug"], slug);
        let prices = row["tokens"].as_array().expect("tokens").iter();
        let sum: f64 = prices.map(|token| token["price"].as_f64().expect("a price")).sum();
        assert!((0.98..1.02).contains(&sum), "{slug}: {sum}");
    }
    let ends = rows.iter().filter(|row| row["end_date_iso"].is_string()).count();
    assert!(ends > 770, "nearly every market says when it ends: {ends}");
}
