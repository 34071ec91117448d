//! Whose order gets its signature check next.

use super::{BATCH, CHECKS_PER_TURN, bid, cancel_body, connect, options, trader, turn_until};
use outcry::server::plan::options::Options;
use outcry::server::rig::Rig;
use std::io::Write;
use std::net::TcpStream;

/// Connections with a batch each.
const BATCHERS: usize = 20;

#[test]
fn an_order_waits_for_one_batch_of_another_address_and_for_all_of_its_own() {
    let turns_of_a_batch = BATCH.div_ceil(CHECKS_PER_TURN);
    for ingress in [0, 1] {
        let waited = turns_behind_batches(ingress, "10.0.0.2");
        assert!(waited <= 2 * turns_of_a_batch, "{waited} turns behind batches of another address");
        let waited = turns_behind_batches(ingress, "10.0.0.1");
        assert!(
            BATCHERS * BATCH / CHECKS_PER_TURN <= waited,
            "{waited} turns behind batches of the same one"
        );
    }
}

/// In how many turns an order that comes from `client` is answered behind many batches that came from `10.0.0.1`.
fn turns_behind_batches(ingress: u64, client: &str) -> usize {
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let proxies = vec!["127.0.0.1".to_owned()];
    let mut rig = Rig::start(&Options { trusted_proxies: proxies, ..options(&data, 1, ingress) }).unwrap();
    let port = rig.http().port();
    let mut trader = trader(&mut rig);
    let wish = bid(rig.market().unwrap().tokens[0], 1_000);
    // Each carries a trading request first, so all are on the loop that is turned.
    let mut clients: Vec<TcpStream> = (0..=BATCHERS).map(|_| connect(port)).collect();
    for client in &mut clients {
        let cancel = trader.request("DELETE", "/order", &cancel_body(&format!("0x{:064x}", 0)));
        client.write_all(&cancel).unwrap();
        turn_until(&mut rig, client);
    }
    let (last, batchers) = clients.split_last_mut().unwrap();
    for batcher in batchers {
        let bodies: Vec<String> = (0..BATCH).map(|_| trader.sign(&wish).body).collect();
        let line = "X-Forwarded-For: 10.0.0.1\r\n";
        let batch = trader.request_with(line, "POST", "/orders", &format!("[{}]", bodies.join(",")));
        batcher.write_all(&batch).unwrap();
    }
    let line = format!("X-Forwarded-For: {client}\r\n");
    let order = trader.sign(&wish).body;
    last.write_all(&trader.request_with(&line, "POST", "/order", &order)).unwrap();
    let (turns, text) = turn_until(&mut rig, last);
    assert!(text.contains("\"live\""), "{text}");
    turns
}
