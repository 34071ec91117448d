//! A running exchange packs its sealed segments, and nothing reads differently: not for its clients, not
//! at a start from a snapshot or from all frames, not in `journal verify` and `dump`.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use common::exchange::{Exchange, Plan, journal};
use common::folder;
use common::trader::{KEYS, Trader, Wish, token};
use common::wire::Connection;
use std::path::Path;

/// The smallest segment that a configuration may ask for: some 250 orders, each alone in its batch.
const SEGMENT_BYTES: u64 = 1 << 20;
/// Orders between two looks at a file, and the most looks.
const ORDERS: usize = 50;
const LOOKS_MAX: usize = 200;

/// A trader who places an order and cancels it, again and again.
struct Scene {
    connection: Connection,
    trader: Trader,
    token: String,
}

impl Scene {
    fn open(exchange: &Exchange) -> Self {
        let mut connection = exchange.connect();
        let trader = Trader::new(KEYS[1], &mut connection);
        let listed = connection.read("/simplified-markets");
        let market = listed["data"].as_array().unwrap().iter().find(|row| row["neg_risk"] == false).unwrap();
        let token = market["tokens"][0]["token_id"].as_str().unwrap().to_owned();
        Self { connection, trader, token }
    }

    fn orders(&mut self, count: usize) {
        for _ in 0..count {
            let order = self.trader.sign(&Wish::buy(token(&self.token), 100, 5_000_000));
            self.accepted("POST", &order.body);
            self.accepted("DELETE", &format!("{{\"orderID\":\"{}\"}}", order.id_text));
        }
    }

    fn accepted(&mut self, method: &str, body: &str) {
        let answer = self.trader.ask(&mut self.connection, method, "/order", body).unwrap();
        assert!(answer.status == 200, "{method} {body}: {}", answer.text());
    }
}

/// The value of a line of `journal verify`.
fn verified(data_dir: &Path, name: &str) -> String {
    let text = journal("verify", data_dir);
    assert!(text.ends_with("good\n"), "{text}");
    text.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned()
}

fn bytes(data_dir: &Path, number: u64) -> Option<u64> {
    let path = data_dir.join("journal").join(format!("{number:08}.segment"));
    std::fs::metadata(path).ok().map(|about| about.len())
}

#[test]
fn a_running_exchange_packs_its_sealed_segments_and_says_the_same_as_before() {
    let folder = folder();
    let as_written = Plan::dev(folder.path())
        .set(&format!("journal.segment_bytes={SEGMENT_BYTES}"))
        .set("journal.hash_every_frames=64")
        .set("journal.pack=false");
    let data_dir = as_written.data_dir();

    // The snapshot is in the middle of what is packed later.
    let exchange = as_written.start();
    let mut scene = Scene::open(&exchange);
    scene.orders(ORDERS);
    let position = exchange.operator(&["snapshot"])["position"].as_u64().unwrap();
    let mut looks = 0;
    while bytes(&data_dir, 4).is_none() {
        assert!(looks < LOOKS_MAX, "the third segment is not begun");
        scene.orders(ORDERS);
        looks += 1;
    }
    exchange.stop();
    let frames = journal("dump", &data_dir);
    for number in 1..=2 {
        assert_eq!(bytes(&data_dir, number), Some(SEGMENT_BYTES), "segment {number} stays as it was written");
    }

    let exchange = as_written.clone().set("journal.pack=true").start();
    let from_snapshot = format!("recovered from the snapshot at position {position} (");
    assert!(exchange.output().contains(&from_snapshot), "{}", exchange.output());
    let mut scene = Scene::open(&exchange);
    let mut looks = 0;
    while (1..=2).any(|number| bytes(&data_dir, number) == Some(SEGMENT_BYTES)) {
        assert!(looks < LOOKS_MAX, "segments 1 and 2 were not packed\n{}", exchange.output());
        scene.orders(1);
        assert!(journal("verify", &data_dir).ends_with("good\n"), "beside the exchange that packs");
        looks += 1;
    }
    let output = exchange.output();
    eprintln!("{}", output.lines().filter(|line| line.contains(" packed: ")).collect::<Vec<_>>().join("\n"));
    exchange.stop();
    let now = journal("dump", &data_dir);
    assert!(now.starts_with(&frames), "every frame of before is there as it was");
    let hash = verified(&data_dir, "state hash ");

    // From the snapshot, whose place is now in the middle of a batch, and from the first frame on; after
    // an orderly stop and after a kill.
    for from_all in [false, true] {
        if from_all {
            std::fs::remove_dir_all(data_dir.join("snapshots")).unwrap();
        }
        let mut exchange = as_written.start();
        let whence = if from_all { "recovered from all " } else { &from_snapshot };
        assert!(exchange.output().contains(whence), "{whence}\n{}", exchange.output());
        exchange.kill();
        as_written.start().stop();
        assert_eq!(verified(&data_dir, "state hash "), hash, "{whence}");
    }
}
