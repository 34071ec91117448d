//! Refusals for which a part of the server must stand still: a log that has not been replayed yet,
//! and a shard that nobody turns. The server runs in this process; clients reach it over loopback.

use super::{Scene, Seen, state_hash};
use crate::common::rig::{arrived, connect, while_turning};
use crate::common::trader::{KEYS, Signed, Trader, Wish};
use crate::common::wire::{Answer, Connection};
use crate::common::{self, folder};
use outcry::domain::{Collateral, TokenId};
use outcry::server::plan::options::Options;
use outcry::server::rig::{Early, Rig};
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;

/// Orders in a batch, and one more batch than the way to another shard has room for: 192 of its 256
/// slots are for orders.
const BATCH: usize = 15;
const BATCHES: usize = 14;
const WAY_ORDERS_MAX: usize = 192;
const _: () = assert!((BATCHES - 1) * BATCH >= WAY_ORDERS_MAX);

/// What is answered is in the journal, which is read beside the server.
fn options(folder: &Path, shards: u64) -> Options {
    Options { journal_durability: "durable".into(), ..common::rig::options(folder, shards) }
}

/// A good order, before the log is replayed and after.
pub(super) fn recovering() -> Seen {
    let mut scene = Scene::new(&[]);
    let order = scene.draft();
    let Scene { exchange, plan, first, _folder: folder, .. } = scene;
    exchange.stop();
    let data_dir = plan.data_dir();
    let mut early = Early::start(&options(folder.path(), 1)).unwrap();
    let mut connection = Connection::open(early.http().port());
    let before = state_hash(&data_dir);
    let answer = first.post(&mut connection, &order.body);
    let after = state_hash(&data_dir);
    early.recover().unwrap();
    let taken = first.post(&mut connection, &order.body);
    assert!(taken.status == 200, "{}", taken.json());
    assert!(early.stop(), "a graceful stop");
    Seen { before, answer, after }
}

/// An order for a shard whose way is full of other orders.
pub(super) fn busy() -> Seen {
    let folder = folder();
    let data_dir = folder.path().join("data");
    let mut rig = Rig::start(&options(folder.path(), 2)).unwrap();
    let port = rig.http().port();
    let mut trader = while_turning(&mut rig, move || Trader::new(KEYS[0], &mut Connection::open(port)));
    rig.credit(&[trader.address], Collateral(1_000_000_000)).unwrap();
    let market = rig.market().unwrap();
    assert_eq!(rig.shard_of(&market), Ok(0), "markets go to the shards in turn");
    let mut order = || trader.sign(&resting(market.tokens[0]));
    let (first, refused) = (order(), order());
    let batches: Vec<Vec<Signed>> = (0..BATCHES).map(|_| (0..BATCH).map(|_| order()).collect()).collect();
    let request = trader.request("POST", "/order", &first.body);
    let taken = while_turning(&mut rig, move || {
        let mut connection = Connection::open(port);
        connection.send(&request).unwrap();
        connection.answer().unwrap()
    });
    assert!(taken.status == 200, "{}", taken.json());

    // From here on only the second shard turns.
    let mut clients = clients_of_second_shard(&mut rig, &trader);
    let before = state_hash(&data_dir);
    for (client, batch) in clients.iter_mut().zip(&batches) {
        let bodies: Vec<&str> = batch.iter().map(|order| order.body.as_str()).collect();
        let body = format!("[{}]", bodies.join(","));
        client.write_all(&trader.request("POST", "/orders", &body)).unwrap();
    }
    // Batches are judged one after the other, so the last one finds the way full, whichever it is.
    let (full, text) = first_answer(&mut rig, &mut clients);
    assert_eq!(text.matches("\"code\":\"busy\"").count(), BATCH, "{text}");
    clients[full].write_all(&trader.request("POST", "/order", &refused.body)).unwrap();
    let answer = short_answer(&mut rig, &mut clients[full]);
    let after = state_hash(&data_dir);

    // The others are answered once it goes on, and there is room again.
    let mut waiting = clients;
    let mut idle = waiting.swap_remove(full);
    let mut taken = 0;
    while !waiting.is_empty() {
        rig.turn();
        waiting.retain_mut(|client| {
            let text = arrived(client);
            taken += text.matches("\"success\":true").count();
            text.is_empty()
        });
    }
    assert_eq!(taken, WAY_ORDERS_MAX);
    idle.write_all(&trader.request("POST", "/order", &refused.body)).unwrap();
    let again = loop {
        rig.turn();
        let text = arrived(&mut idle);
        if !text.is_empty() {
            break text;
        }
    };
    assert!(again.starts_with("HTTP/1.1 200"), "{again}");
    Seen { before, answer, after }
}

fn resting(token: TokenId) -> Wish<'static> {
    Wish::buy(token, 1_000, 5_000_000)
}

/// As many clients as batches, all with connections on the second shard. Connections go to the
/// shards in turn, and only those of a shard that turns get an answer.
fn clients_of_second_shard(rig: &mut Rig, trader: &Trader) -> Vec<TcpStream> {
    let port = rig.http().port();
    let mut asking: Vec<TcpStream> = (0..2 * BATCHES)
        .map(|_| {
            let mut client = connect(port);
            client.write_all(&trader.request("DELETE", "/orders", "[]")).unwrap();
            client
        })
        .collect();
    let mut answered = Vec::new();
    while answered.len() < BATCHES {
        let (index, text) = first_answer(rig, &mut asking);
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        answered.push(asking.swap_remove(index));
    }
    answered
}

/// The first of the clients that is answered while only the second shard turns, and its answer.
fn first_answer(rig: &mut Rig, clients: &mut [TcpStream]) -> (usize, String) {
    loop {
        rig.turn_loop(1);
        for (index, client) in clients.iter_mut().enumerate() {
            let text = arrived(client);
            if !text.is_empty() {
                return (index, text);
            }
        }
    }
}

/// The next answer of one client, which is short and arrives in one piece.
fn short_answer(rig: &mut Rig, client: &mut TcpStream) -> Answer {
    let (_, text) = first_answer(rig, std::slice::from_mut(client));
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_owned(), body: body.as_bytes().to_vec() }
}
