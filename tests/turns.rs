//! What one turn of a trading loop does first, and how much of it: cancels before everything
//! else, and never more than two signature checks.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use common::trader::{KEYS, Trader, Wish};
use common::wire::Connection;
use outcry::domain::{Collateral, Side};
use outcry::server::options::Options;
use outcry::server::rig::Rig;

/// Orders in a batch, and the checks of one turn.
const BATCH: usize = 15;
const CHECKS_PER_TURN: usize = 2;
const PATIENCE: Duration = Duration::from_mins(2);

fn rig() -> (Rig, tempfile::TempDir) {
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let options = Options {
        listen_http: "127.0.0.1:0".into(),
        listen_admin: "127.0.0.1:0".into(),
        data_dir: data.path().display().to_string(),
        journal_log_path: data.path().join("log").display().to_string(),
        journal_segment_bytes: 4 << 20,
        journal_durability: "committed".into(),
        cpu_policy: "none".into(),
        ..Options::default()
    };
    (Rig::start(&options).unwrap(), data)
}

fn connect(port: u16) -> TcpStream {
    let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.set_nodelay(true).unwrap();
    client.set_nonblocking(true).unwrap();
    client
}

/// What has come, without waiting.
fn arrived(client: &mut TcpStream) -> String {
    let mut bytes = [0; 16 << 10];
    match client.read(&mut bytes) {
        Ok(count) => String::from_utf8_lossy(&bytes[..count]).into_owned(),
        Err(error) if error.kind() == ErrorKind::WouldBlock => String::new(),
        Err(error) => panic!("{error}"),
    }
}

/// Turns until something came; says after how many turns.
fn turn_until(rig: &mut Rig, client: &mut TcpStream) -> (usize, String) {
    let deadline = Instant::now() + PATIENCE;
    for turns in 1.. {
        rig.turn();
        let text = arrived(client);
        if !text.is_empty() {
            return (turns, text);
        }
        assert!(Instant::now() < deadline, "no answer came");
    }
    unreachable!("the loop ends by an answer or by the deadline")
}

#[test]
fn a_cancel_overtakes_a_batch_whose_signatures_take_many_turns() {
    let (mut rig, _data) = rig();
    let port = rig.http().port();
    let maker = std::thread::spawn(move || Trader::new(KEYS[0], &mut Connection::open(port)));
    while !maker.is_finished() {
        rig.turn();
    }
    let mut trader = maker.join().unwrap();
    rig.credit(&[trader.address], Collateral(1_000_000_000)).unwrap();
    let tokens = rig.market().unwrap().tokens;
    let wish = Wish {
        token: tokens[0],
        side: Side::Buy,
        price: 1_000,
        shares: 5_000_000,
        kind: "GTC",
        neg_risk: false,
    };
    // Both connections carry a trading request first, so that both are on the loop that we turn.
    let mut clients = [connect(port), connect(port)];
    let mut resting = Vec::new();
    for client in &mut clients {
        let signed = trader.sign(&wish);
        client.write_all(&trader.request("POST", "/order", &signed.body)).unwrap();
        let (_, text) = turn_until(&mut rig, client);
        assert!(text.contains("\"live\""), "{text}");
        resting.push(signed);
    }
    let bodies: Vec<String> = (0..BATCH).map(|_| trader.sign(&wish).body).collect();
    let batch = trader.request("POST", "/orders", &format!("[{}]", bodies.join(",")));
    let cancel = format!("{{\"orderID\":\"{}\"}}", resting[0].id_text);
    let cancel = trader.request("DELETE", "/order", &cancel);
    let [batcher, canceller] = &mut clients;
    batcher.write_all(&batch).unwrap();
    canceller.write_all(&cancel).unwrap();
    let (turns, text) = turn_until(&mut rig, canceller);
    assert!(turns <= 2 && text.contains(&resting[0].id_text), "after {turns} turns: {text}");
    let (more, text) = turn_until(&mut rig, batcher);
    assert_eq!(text.matches("\"success\":true").count(), BATCH, "{text}");
    assert!(turns + more >= BATCH.div_ceil(CHECKS_PER_TURN), "a batch in {turns} + {more} turns");
}
