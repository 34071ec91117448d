//! Rows of the archive that are damaged on the disk: only a request that needs one of them is
//! refused.

use super::*;

/// Requests, each with whether its answer needs the damaged order.
fn questions(id: &OrderId, other: &OrderId) -> Vec<(String, String, bool)> {
    let [id, other] = [id, other].map(|id| hex_text(id.as_bytes()));
    let get = |target: String, needs| (format!("GET {target}"), String::new(), needs);
    vec![
        get(format!("/data/order/{id}"), true),
        ("POST /data/orders".into(), format!("[{{\"orderId\":\"{other}\"}},{{\"orderId\":\"{id}\"}}]"), true),
        get("/data/trades".into(), true),
        get(format!("/data/trades?maker={}", address_text(CAROL)), true),
        get(format!("/data/order/{other}"), false),
        ("POST /data/orders".into(), format!("[{{\"orderId\":\"{other}\"}}]"), false),
        get("/data/trades?after=9999999999".into(), false),
        get("/data/orders".into(), false),
        get(format!("/positions?user={}", address_text(BOB)), false),
        get(format!("/activity?user={}", address_text(BOB)), false),
        get("/trades".into(), false),
        get(format!("/book?token_id={RAIN_YES}"), false),
    ]
}

fn ask(reader: &mut Reader, line: &str, body: &str, now: u64) -> (u16, String) {
    let (method, target) = line.split_once(' ').expect("METHOD target");
    let method = if method == "GET" { Method::Get } else { Method::Post };
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let query = Query::new(query);
    let found = route::route(method, None, path, query, HostPrefixes::Off).expect("a route");
    let request = ReadRequest {
        endpoint: found.endpoint,
        capture: found.capture,
        query,
        body: body.as_bytes(),
        caller: Some(caller(BOB, Dialect::Poly)),
        now: TimeMs(now),
    };
    let mut out = Vec::new();
    let status = reader.answer(&request, &mut out);
    (status, String::from_utf8(out).expect("UTF-8"))
}

#[test]
fn a_damaged_row_refuses_the_requests_that_need_it_and_no_other() {
    let mut exchange = Exchange::opened();
    exchange.splits(ALICE, 50);
    let ask_order = exchange.order(ALICE, Side::Sell, Outcome::Zero, 40, 10);
    let (maker_id, maker) = (ask_order.id, exchange.says(ask_order));
    let bid = exchange.order(BOB, Side::Buy, Outcome::Zero, 40, 10);
    let taker_id = bid.id;
    exchange.fills(bid, &[(maker, 10)]);
    let lone = exchange.order(BOB, Side::Buy, Outcome::Zero, 10, 10);
    let (lone_id, lone) = (lone.id, exchange.says(lone));
    exchange.cancels(&[lone]);
    exchange.keep();
    let Exchange { mut reader, mut kept, mut shedding, directory, now, .. } = exchange;
    while shedding.can_shed() {
        shedding.shed(1);
    }
    for ledger in [&kept.ledger, &shedding.ledger] {
        assert_eq!((ledger.orders_in_memory(), ledger.acts_in_memory()), (0, 0));
    }

    let runs = std::fs::read_dir(directory.path().join("snapshots")).expect("a directory");
    let runs = runs.map(|entry| entry.expect("an entry").path());
    let file = runs.max().expect("the newest run is the last by name");
    let mut bytes = std::fs::read(&file).expect("a run");
    let found = |id: &OrderId| bytes.windows(32).rposition(|bytes| bytes == id.as_bytes()).expect("its row");
    // The rows come last in the file, so the last occurrence of an id is in its row.
    assert!(found(&maker_id) < found(&taker_id) && found(&taker_id) < found(&lone_id));
    let at = found(&taker_id);
    bytes[at] ^= 1;
    std::fs::write(&file, bytes).expect("written");

    for (line, body, needs_it) in questions(&taker_id, &lone_id) {
        let whole = ask(&mut reader, &line, &body, now);
        assert_eq!((whole.0, reader.take_unreadable()), (200, None), "{line}: {}", whole.1);
        for other in [&mut kept, &mut shedding] {
            let answer = ask(other, &line, &body, now);
            let why = other.take_unreadable();
            if needs_it {
                let words = r#"{"error":"part of the history cannot be read","code":"history_unreadable"}"#;
                assert_eq!(answer, (500, words.to_owned()), "{line}");
                let why = why.expect("a reason");
                assert!(
                    why.contains(&file.display().to_string()) && why.contains("checksum of the row"),
                    "{why}"
                );
            } else {
                assert_eq!((answer, why), (whole.clone(), None), "{line}");
            }
        }
    }
}
