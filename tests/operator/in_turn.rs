//! Requests that come behind each other on one connection of the operator's, without waiting for answers.

use crate::common::exchange::Plan;
use crate::common::folder;
use crate::common::wire::request;

#[test]
fn each_is_judged_by_what_those_before_it_left() {
    let folder = folder();
    let exchange = Plan::dev(folder.path()).set("cpu.shards=2").start();
    let mut connection = exchange.operators();
    for number in 0..20 {
        let made = exchange.market(&format!("Does it rain on day {number}?"));
        let (wallet, market) = (format!("0x{:040x}", 1_000 + number), made.condition);
        let acts = [
            ("POST", format!("/accounts/{wallet}/credit"), r#"{"amount":"7"}"#, "\"amount\":\"7\""),
            ("GET", format!("/accounts/{wallet}"), "", "\"balance\":\"7\""),
            ("POST", format!("/markets/{market}/mode"), r#"{"mode":"cancel-only"}"#, "\"cancel-only\""),
            ("GET", format!("/markets/{market}"), "", "\"cancel-only\""),
            ("POST", format!("/markets/{market}/mode"), r#"{"mode":"open"}"#, "\"open\""),
            ("GET", format!("/books/{market}"), "", "\"open\""),
            ("POST", "/mode".to_owned(), r#"{"mode":"post-only"}"#, "\"post-only\""),
            ("GET", "/ready".to_owned(), "", "\"post-only\""),
            ("POST", "/mode".to_owned(), r#"{"mode":"open"}"#, "\"open\""),
        ];
        let bytes: Vec<u8> = acts
            .iter()
            .flat_map(|(method, path, body, _)| request(method, path, "", body.as_bytes()))
            .collect();
        connection.send(&bytes).unwrap();
        for (method, path, _, said) in &acts {
            let answer = connection.answer().unwrap();
            assert!(answer.status == 200 && answer.text().contains(said), "{method} {path}: {answer:?}");
        }
    }
}
