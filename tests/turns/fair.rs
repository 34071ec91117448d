//! Whose order gets its signature check next.

use super::{BATCH, CHECKS_PER_TURN, bid, cancel_body, options, trader, turn_until};
use crate::common::folder;
use crate::common::rig::connect;
use crate::common::trader::{Trader, Wish};
use outcry::server::plan::options::Options;
use outcry::server::rig::Rig;
use std::io::Write;
use std::net::TcpStream;

/// Connections with a batch each.
const BATCHERS: usize = 20;

#[test]
fn a_new_client_has_no_place_of_the_one_who_had_its_slot() {
    const GONE: usize = 10;
    let mut scene = Scene::new(0, BATCHERS + GONE);
    let batches: Vec<TcpStream> = scene.clients.drain(..).collect();
    for client in &batches {
        scene.send_batch(client);
    }
    scene.rig.turn();
    // The last of those that wait are gone at once, and others get their slots.
    for client in batches.iter().skip(BATCHERS) {
        rustix::net::sockopt::set_socket_linger(client, Some(std::time::Duration::ZERO)).unwrap();
    }
    let batches: Vec<TcpStream> = batches.into_iter().take(BATCHERS).collect();
    scene.rig.turn();
    let mut late = connect(scene.rig.http().port());
    // It comes to this loop, and into a slot, with its first trading request; another thread's time is nobody's turn.
    let cancel = scene.trader.request("DELETE", "/order", &cancel_body(&format!("0x{:064x}", 0)));
    late.write_all(&cancel).unwrap();
    turn_until(&mut scene.rig, &mut late);
    let turns = scene.turns_of_order(&mut late, "10.0.0.2");
    assert!(turns <= 2 * BATCH.div_ceil(CHECKS_PER_TURN), "{turns} turns");
    drop(batches);
}

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

#[test]
fn a_deadline_from_now_counts_from_the_arrival_and_not_from_the_turn() {
    for ingress in [0, 1] {
        let mut scene = Scene::new(ingress, BATCHERS + 1);
        let mut last = scene.clients.pop().unwrap();
        for batcher in std::mem::take(&mut scene.clients) {
            scene.send_batch(&batcher);
            scene.batchers.push(batcher);
        }
        // The signatures before it take more than these two milliseconds on any machine.
        let text = scene.order(&mut last, "10.0.0.1", "X-Outcry-Deadline: +2000\r\n").1;
        assert!(text.contains("deadline_passed"), "{text}");
    }
}

/// In how many turns an order that comes from `client` is answered behind many batches that came from `10.0.0.1`.
fn turns_behind_batches(ingress: u64, client: &str) -> usize {
    let mut scene = Scene::new(ingress, BATCHERS + 1);
    let mut last = scene.clients.pop().unwrap();
    for batcher in std::mem::take(&mut scene.clients) {
        scene.send_batch(&batcher);
        scene.batchers.push(batcher);
    }
    scene.turns_of_order(&mut last, client)
}

/// A rig behind a proxy, a trader, and connections on the loop that is turned.
struct Scene {
    rig: Rig,
    trader: Trader,
    wish: Wish<'static>,
    clients: Vec<TcpStream>,
    batchers: Vec<TcpStream>,
    _data: tempfile::TempDir,
}

impl Scene {
    fn new(ingress: u64, connections: usize) -> Self {
        let data = folder();
        // Whose requests come in turn is nobody's limit.
        let options = Options {
            trusted_proxies: vec!["127.0.0.1".to_owned()],
            limits_mode: "off".into(),
            ..options(&data, 1, ingress)
        };
        let mut rig = Rig::start(&options).unwrap();
        let port = rig.http().port();
        let trader = trader(&mut rig);
        let wish = bid(rig.market().unwrap().tokens[0], 1_000);
        let mut clients: Vec<TcpStream> = (0..connections).map(|_| connect(port)).collect();
        // Each carries a trading request first, so all are on the loop that is turned.
        for client in &mut clients {
            let cancel = trader.request("DELETE", "/order", &cancel_body(&format!("0x{:064x}", 0)));
            client.write_all(&cancel).unwrap();
            turn_until(&mut rig, client);
        }
        Self { rig, trader, wish, clients, batchers: Vec::new(), _data: data }
    }

    fn send_batch(&mut self, mut client: &TcpStream) {
        let bodies: Vec<String> = (0..BATCH).map(|_| self.trader.sign(&self.wish).body).collect();
        let line = "X-Forwarded-For: 10.0.0.1\r\n";
        let batch = self.trader.request_with(line, "POST", "/orders", &format!("[{}]", bodies.join(",")));
        client.write_all(&batch).unwrap();
    }

    /// In how many turns an order of `client` is answered.
    fn turns_of_order(&mut self, socket: &mut TcpStream, client: &str) -> usize {
        let (turns, text) = self.order(socket, client, "");
        assert!(text.contains("\"live\""), "{text}");
        turns
    }

    /// An order of `client` with more header lines: in how many turns it is answered, and the answer.
    fn order(&mut self, socket: &mut TcpStream, client: &str, lines: &str) -> (usize, String) {
        let order = self.trader.sign(&self.wish).body;
        let lines = format!("X-Forwarded-For: {client}\r\n{lines}");
        socket.write_all(&self.trader.request_with(&lines, "POST", "/order", &order)).unwrap();
        turn_until(&mut self.rig, socket)
    }
}
