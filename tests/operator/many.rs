//! What the operator is told of more markets than one answer has.

use super::import;
use crate::common::exchange::{Exchange, Plan};
use crate::common::folder;
use serde_json::{Value, json};
use std::path::Path;

/// Imports a market for each question; their ids fall as they are made.
fn import_all(exchange: &Exchange, folder: &Path, questions: &[String]) {
    let row = |(number, question): (u64, &String)| {
        json!({
            "id": (10_000 - number).to_string(), "question": question, "outcomes": ["Yes", "No"],
            "conditionId": format!("0x{number:064x}"),
            "clobTokenIds": [(number * 2).to_string(), (number * 2 + 1).to_string()],
        })
    };
    let rows: Vec<Value> = (1..).zip(questions).map(row).collect();
    let file = folder.join("many.json");
    std::fs::write(&file, json!(rows).to_string()).unwrap();
    let (done, said) = import(exchange, &[&file]);
    assert!(done, "{said}");
}

#[test]
fn a_list_of_markets_comes_in_pages_and_has_each_of_them_once() {
    // A page ends at 1,000 markets, or where its questions are long.
    let questions: Vec<String> = [vec!["Q".repeat(100_000); 12], vec!["Q".to_owned(); 1_989]].concat();
    let folder = folder();
    let exchange = Plan::dev(folder.path()).start();
    let mut admin = exchange.operators();
    let mut ask = |path: &str| admin.request("GET", path, "", b"").unwrap().json();
    let own = ask("/markets").as_array().unwrap().len();
    import_all(&exchange, folder.path(), &questions);

    let (mut ids, mut sizes, mut path) = (Vec::new(), Vec::new(), "/markets".to_owned());
    while sizes.last() != Some(&0) {
        let page = ask(&path);
        let page = page.as_array().unwrap();
        sizes.push(page.len());
        ids.extend(page.iter().map(|row| row["marketId"].as_u64().unwrap()));
        path = format!("/markets?after={}", ids.last().unwrap());
    }
    assert_eq!(sizes, [own + 11, 1_000, 990, 0]);
    let made = (1..=questions.len() as u64).map(|number| 10_000 - number);
    assert!(ids[own..].iter().copied().eq(made), "as they were made: {ids:?}");
    assert_eq!(ask(&format!("/markets?after=0x{:064x}", 2_000))[0]["marketId"], 10_000 - 2_001);

    let list = exchange.operator_output(&["market", "list"]);
    let list = String::from_utf8(list.stdout).unwrap();
    assert_eq!(list.lines().count(), ids.len() + 2);
    assert_eq!(list.lines().last(), Some(&*format!("{} markets", ids.len())));
}

#[test]
fn books_to_look_at_are_the_hundred_with_most_orders_then_as_they_were_made() {
    let folder = folder();
    let exchange = Plan::dev(folder.path()).start();
    import_all(&exchange, folder.path(), &vec!["Q".to_owned(); 150]);
    let mut admin = exchange.operators();
    let books = admin.request("GET", "/books", "", b"").unwrap().json();
    let told = books["markets"].as_array().unwrap();
    let keys = told.iter().map(|row| row["liveOrders"].as_u64().unwrap());
    assert!(keys.is_sorted_by(|one, other| one >= other), "{books}");
    // Those of `dev` itself were made before.
    let own = usize::try_from(books["count"].as_u64().unwrap()).unwrap() - 150;
    let ids = told[own..].iter().map(|row| row["marketId"].as_u64().unwrap());
    assert!(ids.eq((1..=100 - own as u64).map(|number| 10_000 - number)), "{books}");
}

#[test]
fn a_parameter_that_a_route_does_not_know_is_refused() {
    let folder = folder();
    let exchange = Plan::dev(folder.path()).start();
    let mut admin = exchange.operators();
    for (line, status, words) in [
        ("GET /markets?after=7", 404, "after: got 7; allowed: a market that is here"),
        ("GET /markets?after=", 400, "after: got nothing; allowed: a market's id"),
        ("GET /markets?after=1&after=2", 400, "query: got after, after; allowed: only the parameters"),
        ("GET /markets?limit=5", 400, "query: got limit; allowed: only the parameters"),
        ("GET /books?after=9999", 400, "query: got after; allowed: only the parameters"),
        ("POST /mode?mode=closed", 400, "query: got mode; allowed: only the parameters"),
        ("GET /nowhere?x=1", 404, "path: got /nowhere; allowed: a route"),
    ] {
        let (method, path) = line.split_once(' ').unwrap();
        let body: &[u8] = if method == "POST" { br#"{"mode":"open"}"# } else { b"" };
        let answer = admin.request(method, path, "", body).unwrap();
        let said = answer.json();
        assert_eq!(answer.status, status, "{line}: {said}");
        assert!(said["error"].as_str().unwrap().starts_with(words), "{line}: {said}");
    }
    assert_eq!(exchange.read("/ok"), "OK");
}
