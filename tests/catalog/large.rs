//! Files of many batches: all rows arrive, in order, once; and what a broken import reports.

use crate::common::exchange::{Plan, outcry, said};
use crate::common::wire::Connection;
use crate::common::{column, folder};
use crate::site::Site;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;

/// Events, and markets in each.
const EVENTS: usize = 30;
const MARKETS_EACH: usize = 40;
const FIRST_ID: usize = 5_000;

/// Markets with their events inside, those of one event far apart; about 2 MiB, which is more
/// batches than may be in flight at once. Row 100 has a tick that does not exist.
fn rows() -> Vec<Value> {
    let market = |at: usize| {
        let event = at % EVENTS;
        let mut row = json!({
            "id": (FIRST_ID + at).to_string(), "question": format!("Number {at}?"), "slug": format!("m{at}"),
            "conditionId": format!("0x{:064x}", FIRST_ID + at), "description": "x".repeat(1_000),
            "clobTokenIds": format!("[\"{at}001\", \"{at}002\"]"), "updatedAt": "2026-01-01T00:00:00Z",
            "events": [{"id": (900 + event).to_string(), "slug": format!("e{event}"), "title": format!("E{event}")}]
        });
        if at == 99 {
            row["orderPriceMinTickSize"] = json!(0.02);
        }
        row
    };
    (0..EVENTS * MARKETS_EACH).map(market).collect()
}

fn written(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = folder();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

#[test]
fn a_file_of_many_batches_arrives_whole_and_in_order_and_twice_changes_nothing() {
    let all = EVENTS * MARKETS_EACH;
    let text = json!(rows()).to_string();
    let (_folder, plain) = written("rows.json", text.as_bytes());
    let mut packer = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    let (_other, packed) = written("rows.json.gz", &packer.finish().unwrap());
    let mut site = Site::dev();
    let (whole, said) = site.import_file(&plain);
    assert!(!whole, "one row cannot be taken");
    let refused = format!("market {}: orderPriceMinTickSize: got 0.02; allowed: ", FIRST_ID + 99);
    let line = said.lines().find(|line| line.starts_with("refused: ")).unwrap();
    assert!(line.contains(&refused) && line.ends_with("rows.json, row 100)"), "{line}");
    assert!(said.contains(&format!("events: {EVENTS} added, 0 updated, 0 unchanged")), "{said}");
    assert!(said.contains(&format!("markets: {} added, 0 updated, 0 unchanged", all - 1)), "{said}");
    assert!(said.contains("1 rows could not be taken whole"), "{said}");
    let rows = all - 1 + EVENTS;
    assert!(said.contains(&format!("import: {rows} of {rows} rows")), "{said}");

    for event in 0..EVENTS {
        let shown = site.read(&format!("/events/{}", 900 + event));
        let numbers = (0..MARKETS_EACH).map(|turn| turn * EVENTS + event).filter(|at| *at != 99);
        let ids: Vec<String> = numbers.map(|at| (FIRST_ID + at).to_string()).collect();
        assert_eq!(column(shown["markets"].as_array().unwrap(), "id"), ids, "as they stand in the file");
    }
    let before = site.walk("/markets?event_slug=e3&", 100);
    assert_eq!(before.len(), MARKETS_EACH);
    let (_, said) = site.import_file(&packed);
    assert!(said.contains(&format!("events: 0 added, 0 updated, {EVENTS} unchanged")), "{said}");
    assert!(said.contains(&format!("markets: 0 added, 0 updated, {} unchanged", all - 1)), "{said}");
    assert_eq!(site.walk("/markets?event_slug=e3&", 100), before);
    site.exchange.stop();
}

#[test]
fn rows_for_which_there_is_no_room_are_refused_as_the_operators_own_market_is() {
    let folder = folder();
    let exchange = Plan::dev(folder.path()).set("sizes.markets=16").start();
    let (_folder, file) = written("rows.json", json!(&rows()[..16]).to_string().as_bytes());
    let imported = exchange.operator_output(&["import", "gamma", file.to_str().unwrap()]);
    let created = exchange.operator_output(&["market", "create", "One more?"]);
    assert!(!imported.status.success() && !created.status.success());
    let refusal = "markets: the table is full; raise sizes.markets and restart";
    assert!(said(&created).contains(refusal), "{}", said(&created));
    let last = format!("not taken: market {}: {refusal} (", FIRST_ID + 15);
    assert!(said(&imported).lines().any(|line| line.starts_with(&last)), "{}", said(&imported));
    exchange.stop();
}

#[test]
fn blanks_between_a_markets_tokens_are_not_sent() {
    let mut row = rows()[0].to_string();
    row.insert_str(1, &" ".repeat(2 << 20));
    let (_folder, path) = written("blanks.json", row.as_bytes());
    let mut site = Site::dev();
    let (whole, said) = site.import_file(&path);
    assert!(whole && said.contains("markets: 1 added"), "{said}");
    assert_eq!(site.read(&format!("/markets/{FIRST_ID}"))["question"], "Number 0?");
    site.exchange.stop();
}

#[test]
fn a_body_is_never_unpacked() {
    let mut packer = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(json!(&rows()[..1]).to_string().as_bytes()).unwrap();
    let site = Site::dev();
    let mut admin = Connection::open(site.exchange.admin);
    let answer = admin.request("POST", "/import", "", &packer.finish().unwrap()).unwrap();
    assert_eq!((answer.status, &answer.json()["got"]), (400, &json!("not UTF-8, so not JSON")));
    site.exchange.stop();
}

#[test]
fn a_fault_in_the_file_sends_nothing() {
    let mut text = json!(rows()).to_string();
    text.truncate(text.len() - 20);
    let (_folder, path) = written("cut.json", text.as_bytes());
    let mut site = Site::dev();
    let (whole, said) = site.import_file(&path);
    assert!(!whole && said.contains("cut.json: not JSON: row 1200: "), "{said}");
    assert_eq!(site.get("/markets/5000").status, 404);
    site.exchange.stop();
}

/// Answers the first `answers` imports as an exchange would, then hangs up.
fn exchange_of(answers: usize) -> (u16, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        for _ in 0..answers {
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.strip_prefix("Content-Length: ") {
                    length = value.trim().parse().unwrap();
                }
                if line == "\r\n" {
                    break;
                }
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        }
    });
    (port, thread)
}

#[test]
fn an_import_that_breaks_off_says_where_and_what_was_done() {
    let (_folder, path) = written("rows.json", json!(rows()).to_string().as_bytes());
    // The first batch has the events.
    let (port, exchange) = exchange_of(3);
    let admin = format!("http://127.0.0.1:{port}");
    let output = outcry(&["import", "gamma", "--admin", &admin, path.to_str().unwrap()]);
    exchange.join().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap();
    let (at, why) = last.split_once(" to ").unwrap();
    let (row, id) = at.split_once("rows.json, row ").unwrap().1.split_once(" (market ").unwrap();
    let row: usize = row.parse().unwrap();
    assert_eq!(id, format!("{})", FIRST_ID + row - 1));
    let done: usize = why.split_once("; ").unwrap().1.split(' ').next().unwrap().parse().unwrap();
    // Row 100 is refused when it is read, so no batch has it.
    let markets = row - 1 - usize::from(100 < row);
    assert_eq!(done, EVENTS + markets, "{last}");
    let all = EVENTS * MARKETS_EACH - 1 + EVENTS;
    assert!(
        why.ends_with(&format!("{done} of {all} rows were taken before; import again to go on")),
        "{last}"
    );
}
