//! What the operator is told of more markets than one answer has.

use crate::common::exchange::Plan;
use crate::common::folder;
use serde_json::{Value, json};

#[test]
fn a_list_of_markets_comes_in_pages_and_has_each_of_them_once() {
    const MARKETS: u64 = 2_001;
    let folder = folder();
    let exchange = Plan::dev(folder.path()).start();
    let mut admin = exchange.operators();
    let mut ask = |path: &str| admin.request("GET", path, "", b"").unwrap();
    let own = ask("/markets").json().as_array().unwrap().len();
    let row = |number: u64| {
        json!({
            "id": (10_000 - number).to_string(), "question": format!("Is it {number}?"), "outcomes": ["Yes", "No"],
            "conditionId": format!("0x{number:064x}"),
            "clobTokenIds": [(number * 2).to_string(), (number * 2 + 1).to_string()],
        })
    };
    let rows: Vec<Value> = (1..=MARKETS).map(row).collect();
    let file = folder.path().join("many.json");
    std::fs::write(&file, json!(rows).to_string()).unwrap();
    let imported = exchange.operator_output(&["import", "gamma", file.to_str().unwrap()]);
    assert!(imported.status.success(), "{imported:?}");

    let (mut ids, mut sizes, mut path) = (Vec::new(), Vec::new(), "/markets".to_owned());
    while sizes.last() != Some(&0) {
        let page = ask(&path).json();
        let page = page.as_array().unwrap();
        sizes.push(page.len());
        ids.extend(page.iter().map(|row| row["marketId"].as_u64().unwrap()));
        path = format!("/markets?after={}", ids.last().unwrap());
    }
    assert_eq!(sizes, [1_000, 1_000, own + 1, 0]);
    let made = (1..=MARKETS).map(|number| 10_000 - number);
    assert!(ids[own..].iter().copied().eq(made.clone()), "as they were made: {ids:?}");
    assert_eq!(
        ask(&format!("/markets?after=0x{:064x}", MARKETS - 1)).json()[0]["marketId"],
        10_000 - MARKETS
    );

    let list = exchange.operator_output(&["market", "list"]);
    let list = String::from_utf8(list.stdout).unwrap();
    assert_eq!(list.lines().count(), ids.len() + 2);
    assert_eq!(list.lines().last(), Some(&*format!("{} markets", ids.len())));

    // Of the exchange's own markets some have orders; they were made before the others.
    let books = ask("/books").json();
    let told = books["markets"].as_array().unwrap().iter().map(|row| row["marketId"].as_u64().unwrap());
    assert!(told.skip(own).eq(made.take(100 - own)), "{books}");
    assert_eq!(books["count"], ids.len());

    for (path, status, words) in [
        ("/markets?after=7", 404, "market: 7 is not known here"),
        ("/markets?after=", 400, "market: got nothing; allowed: a market's id"),
        ("/markets?limit=5", 400, "query: got limit; allowed: only the parameters"),
        ("/books?after=9999", 400, "query: got after; allowed: only the parameters"),
    ] {
        let answer = ask(path);
        let said = answer.json();
        assert_eq!(answer.status, status, "{path}: {said}");
        assert!(said["error"].as_str().unwrap().starts_with(words), "{path}: {said}");
    }
}
