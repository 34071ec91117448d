//! Starts that are refused late: for what they lack once the journal is read, or once it has gone on. They stop in good
//! order and leave no log that would be ahead of a backup.

use super::backup::copy;
use crate::common::exchange::{Plan, journal};
use crate::common::folder;
use crate::common::trader::{KEYS, Trader, Wish, token};

fn in_good_order(starts: u32) -> String {
    format!(", {starts} starts, stopped in good order")
}

#[test]
fn a_start_that_lacks_room_names_what_it_needs_and_leaves_no_log_that_is_ahead_of_a_backup() {
    let folder = folder();
    let plan = Plan::dev(folder.path());
    let data_dir = plan.data_dir();
    let (log, backup) = (folder.path().join("ring"), folder.path().join("backup"));
    let exchange = plan.start();
    for number in 10..30 {
        exchange.operator(&["account", "credit", &format!("0x{number:040}"), "1"]);
    }
    exchange.stop();
    copy(&data_dir, &backup);
    let wallets = journal("replay", &data_dir);
    let wallets = wallets.lines().find_map(|line| line.strip_prefix("wallets ")).unwrap().trim().to_owned();
    let needed = format!("sizes.wallets: got 16, and the journal holds {wallets} wallets: give it at least");
    // The registry is made before the journal goes on, a shard after that.
    for (setting, words, starts) in [
        ("sizes.wallets=16", needed.as_str(), 1),
        ("sizes.markets=16", "sizes.markets: got 16, and the journal holds", 1),
        ("sizes.resting_orders=1", "sizes.resting_orders: got 1, of each shard", 2),
    ] {
        let output = plan.clone().set(setting).run();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{setting}: {said}");
        assert!(!log.exists(), "{setting} leaves {}", log.display());
        let text = journal("verify", &data_dir);
        assert!(text.contains(&in_good_order(starts)), "{setting}: {text}");
    }
    std::fs::remove_dir_all(&data_dir).unwrap();
    copy(&backup, &data_dir);
    for setting in ["sizes.resting_orders", "sizes.positions"] {
        let tried = |size: u64| plan.clone().set(&format!("{setting}={size}"));
        let said = String::from_utf8(tried(1).run().stderr).unwrap();
        let least =
            said.split_once(": give it at least ").and_then(|(_, rest)| rest.split_once(", or start"));
        let least: u64 = least.unwrap().0.parse().unwrap();
        assert!(!tried(least - 1).run().status.success(), "{setting} {least}");
        tried(least).start().stop();
    }
}

#[test]
fn a_start_whose_newest_archive_of_orders_is_damaged_begins_before_it_and_remembers_all() {
    let folder = folder();
    let plan = Plan::dev(folder.path());
    let data_dir = plan.data_dir();
    let exchange = plan.start();
    let mut connection = exchange.connect();
    let mut trader = Trader::new(KEYS[1], &mut connection);
    let markets = exchange.read("/simplified-markets");
    let token = token(markets["data"][0]["tokens"][0]["token_id"].as_str().unwrap());
    // It is killed, so the snapshot's archive has it.
    let wish = Wish { kind: "FAK", ..Wish::buy(token, 100, 500_000_000) };
    let order = trader.sign(&wish);
    let killed = trader.post(&mut connection, &order.body);
    assert_eq!(killed.json()["code"], "fak_no_match");
    exchange.operator(&["snapshot"]);
    exchange.stop();

    let runs = std::fs::read_dir(data_dir.join("snapshots")).unwrap().map(|file| file.unwrap().path());
    let run = runs.into_iter().find(|file| file.extension().is_some_and(|end| end == "run")).unwrap();
    let whole = std::fs::read(&run).unwrap();
    // What a shard remembers of it comes before its row.
    let at = whole.windows(32).position(|bytes| bytes == order.id.0).unwrap();
    let mut damaged = whole.clone();
    damaged[at] ^= 1;
    std::fs::write(&run, damaged).unwrap();
    let exchange = plan.start();
    let again = trader.post(&mut exchange.connect(), &order.body);
    assert_eq!((again.status, again.header("Idempotent-Replayed")), (400, Some("true")));
    exchange.stop();
}
