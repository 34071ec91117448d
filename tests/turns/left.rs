//! Connections that leave before their requests are decided or their messages are heard.

use super::*;
use rustix::net::sockopt::set_socket_linger;
use std::net::Shutdown;

/// More turns than a batch and the cancels behind it take.
const TURNS_MAX: usize = 50;

const PROMISE: &str = "X-Outcry-Cancel-On-Disconnect: true\r\n";

/// A trader, two markets, which are of two shards if there are two, and connections that stay.
struct Scene {
    rig: Rig,
    trader: Trader,
    tokens: [TokenId; 2],
    trading: TcpStream,
    reading: TcpStream,
    _data: tempfile::TempDir,
}

impl Scene {
    fn new(shards: u64, ingress: u64) -> Self {
        let (mut rig, data) = rig(shards, ingress);
        let trader = trader(&mut rig);
        let tokens = [0; 2].map(|_| rig.market().unwrap().tokens[0]);
        let [trading, reading] = [(); 2].map(|()| connect(rig.http().port()));
        Self { rig, trader, tokens, trading, reading, _data: data }
    }

    fn bid(&mut self, market: usize) -> Signed {
        self.trader.sign(&bid(self.tokens[market], 1_000))
    }

    /// A connection that promises with two requests at once, which are not read yet: a cancel of an order that rests,
    /// and a batch; and the ids of the batch.
    fn promise(&mut self, market: usize) -> (TcpStream, Vec<String>) {
        let mut client = connect(self.rig.http().port());
        let resting = self.bid(market);
        let said = ask(&mut self.rig, &mut client, &self.trader.request("POST", "/order", &resting.body));
        assert!(said.contains("\"live\""), "{said}");
        let orders: Vec<Signed> = (0..BATCH).map(|at| self.bid(at % 2)).collect();
        let bodies: Vec<&str> = orders.iter().map(|order| order.body.as_str()).collect();
        let cancel = self.trader.request_with(PROMISE, "DELETE", "/order", &cancel_body(&resting.id_text));
        let batch = self.trader.request_with(PROMISE, "POST", "/orders", &format!("[{}]", bodies.join(",")));
        client.write_all(&[cancel, batch].concat()).unwrap();
        (client, orders.into_iter().map(|order| order.id_text).collect())
    }

    /// Asserts that none of the orders rests, and that those that were placed say why; returns how many these are.
    fn none_rests(&mut self, ids: &[String], case: &str) -> usize {
        let cancel = self.trader.request("DELETE", "/orders", &format!("{ids:?}"));
        let said = ask(&mut self.rig, &mut self.trading, &cancel);
        assert!(said.contains("\"canceled\":[]"), "{case}: {said}");
        let mut placed = 0;
        for id in ids {
            let request = self.trader.request("GET", &format!("/data/order/{id}"), "");
            let shown = ask(&mut self.rig, &mut self.reading, &request);
            let is_placed = shown.starts_with("HTTP/1.1 200");
            assert_eq!(is_placed, shown.contains("\"disconnected\""), "{case}: {shown}");
            placed += usize::from(is_placed);
        }
        placed
    }
}

#[test]
fn of_a_promised_batch_whose_connection_leaves_meanwhile_nothing_rests() {
    for (shards, ingress) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
        let mut scene = Scene::new(shards, ingress);
        let mut placed = 0;
        for (turns, market) in (0..BATCH).flat_map(|turns| [(turns, 0), (turns, 1)]) {
            // A reset is noticed with the cancel's answer, while the batch is judged, or with the batch's.
            for is_reset in [true, false] {
                let (leaving, ids) = scene.promise(market);
                (0..turns).for_each(|_| assert!(scene.rig.turn()));
                if is_reset {
                    set_socket_linger(&leaving, Some(Duration::ZERO)).unwrap();
                }
                drop(leaving);
                (0..TURNS_MAX).for_each(|_| assert!(scene.rig.turn()));
                let case = format!("{shards} shards, {ingress} ingress, {turns} turns, reset: {is_reset}");
                placed += scene.none_rests(&ids, &case);
            }
        }
        assert!(BATCH * BATCH < placed, "only {placed} were placed at all");
    }
}

/// One connection is lost, and before the orders of its key have left, another one places one more.
#[test]
fn what_is_placed_after_a_connection_was_lost_leaves_only_if_its_own_is_lost_too() {
    for is_lost_too in [true, false] {
        let mut scene = Scene::new(1, 0);
        let orders = [(); 3].map(|()| scene.bid(0));
        let [first, second, third] =
            orders.each_ref().map(|order| scene.trader.request_with(PROMISE, "POST", "/order", &order.body));
        let mut clients = [(); 2].map(|()| connect(scene.rig.http().port()));
        for (client, order) in clients.iter_mut().zip([first, second]) {
            let said = ask(&mut scene.rig, client, &order);
            assert!(said.contains("\"live\""), "{said}");
        }
        let [lost, mut other] = clients;
        other.write_all(&third).unwrap();
        drop(lost);
        assert!(scene.rig.turn());
        let other = (!is_lost_too).then_some(other);
        (0..TURNS_MAX).for_each(|_| assert!(scene.rig.turn()));
        let [first, second, third] = orders.map(|order| order.id_text);
        if !is_lost_too {
            let cancel = scene.trader.request("DELETE", "/order", &cancel_body(&third));
            let said = ask(&mut scene.rig, &mut scene.trading, &cancel);
            assert!(said.contains(&format!("\"canceled\":[\"{third}\"]")), "{said}");
        }
        let left = if is_lost_too { vec![first, second, third] } else { vec![first, second] };
        assert_eq!(scene.none_rests(&left, "one after the other"), left.len());
        drop(other);
    }
}

#[test]
fn a_loop_rests_while_a_request_is_open_whose_client_reset_its_connection() {
    const TURNS: usize = 1_000;
    let (mut rig, _data) = rig(2, 0);
    let mut trader = trader(&mut rig);
    let tokens = [0; 2].map(|_| rig.market().unwrap().tokens[0]);
    let bid = |market: usize| trader.sign(&super::bid(tokens[market], 1_000)).body;
    let orders = [0; 4].map(bid);
    let mut clients = [(); 2].map(|()| connect(rig.http().port()));
    // Their first request brings each to another loop.
    for (client, order) in clients.iter_mut().zip(&orders) {
        let said = ask(&mut rig, client, &trader.request("POST", "/order", order));
        assert!(said.contains("\"live\""), "{said}");
    }
    // The first market's shard stands still, so it does not answer the loop of the other.
    for (client, order) in clients.iter_mut().zip(&orders[2..]) {
        client.write_all(&trader.request("POST", "/order", order)).unwrap();
    }
    let rests = |rig: &mut Rig| (0..TURNS).filter(|_| rig.turn_loop(1) && rig.rests(1)).count();
    assert!(0 < rests(&mut rig), "it waits for the shard");
    for client in clients {
        set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
    }
    rests(&mut rig);
    assert!(0 < rests(&mut rig), "it turns for one who is gone");
    // Both orders were taken, and rest.
    let mut reading = connect(rig.http().port());
    let said = ask(&mut rig, &mut reading, &trader.request("DELETE", "/cancel-all", ""));
    assert_eq!(said.matches("\"0x").count(), orders.len(), "{said}");
}

#[test]
fn a_stream_that_leaves_is_heard_to_its_last_word_however_much_it_had_said_before() {
    // What is said before; whether that is answered, which a client that has closed does not take.
    let said_before = [(1, 0), (1, 21_000), (1, 60_000), (64, 0)];
    let ways = said_before.map(|before| [(before, true), (before, false)]).concat();
    for (((messages, bytes), takes_back), closes) in ways.iter().flat_map(|way| [(way, false), (way, true)]) {
        let data = folder();
        let mut rig = Rig::start_on_one_loop(&options(&data, 1, 0)).unwrap();
        let mut trader = trader(&mut rig);
        let order = trader.sign(&bid(rig.market().unwrap().tokens[0], 1_000));
        let [mut trading, mut stream] = [(); 2].map(|()| connect(rig.http().port()));
        let said = ask(&mut rig, &mut trading, &trader.request("POST", "/order", &order.body));
        assert!(said.contains("\"live\""), "{said}");
        assert!(ask(&mut rig, &mut stream, &upgrade("user")).starts_with("HTTP/1.1 101"));
        let auth = trader.stream_auth();
        let promise = format!("{{\"type\":\"user\",\"auth\":{auth},\"cancel_on_disconnect\":true}}");
        let said = ask(&mut rig, &mut stream, &text_frame(&promise));
        assert!(said.contains("\"subscribed\""), "{said}");
        // All of it has come before the loop looks.
        let before = match messages {
            1 => text_frame(&format!("{{\"type\":\"user\"{}}}", " ".repeat(*bytes))),
            _ => text_frame("PING").repeat(*messages),
        };
        let last = text_frame(&format!("{{\"type\":\"user\",\"cancel_on_disconnect\":{}}}", !takes_back));
        stream.write_all(&[before, last].concat()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        if closes {
            drop(stream);
        }
        (0..TURNS_MAX).for_each(|_| assert!(rig.turn()));
        let cancel = trader.request("DELETE", "/order", &cancel_body(&order.id_text));
        let said = ask(&mut rig, &mut trading, &cancel);
        let stays = said.contains("\"canceled\":[\"0x");
        assert_eq!(
            stays, *takes_back,
            "behind {messages} messages and {bytes} bytes, closes: {closes}: {said}"
        );
    }
}

#[test]
fn a_loop_turns_on_when_a_stream_leaves_that_is_owed_books() {
    /// Their books, though empty, are more than is written when they are asked for.
    const MARKETS: usize = 150;
    /// More than some turns hear, so the end is seen before what is said behind them is heard.
    const PINGS: usize = 64;
    let data = folder();
    let mut rig = Rig::start_on_one_loop(&options(&data, 1, 0)).unwrap();
    let markets: Vec<String> = (0..MARKETS).map(|_| hex_text(&rig.market().unwrap().condition.0)).collect();
    // Its key comes behind the markets, so the reader has them.
    let trader = trader(&mut rig);
    let [mut leaving, mut staying] = [(); 2].map(|()| connect(rig.http().port()));
    let said = ask(&mut rig, &mut leaving, &trader.request_with(PROMISE, "DELETE", "/orders", "[]"));
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    assert!(ask(&mut rig, &mut leaving, &upgrade("market")).starts_with("HTTP/1.1 101"));
    // All of it has come before the loop looks.
    let asks = text_frame(&format!("{{\"type\":\"market\",\"markets\":{markets:?}}}"));
    leaving.write_all(&[text_frame("PING").repeat(PINGS), asks].concat()).unwrap();
    leaving.shutdown(Shutdown::Write).unwrap();
    (0..TURNS_MAX).for_each(|_| assert!(rig.turn()));
    assert!(ask(&mut rig, &mut staying, &upgrade("market")).starts_with("HTTP/1.1 101"));
}
