//! A backup is taken while the exchange runs, and is put back, as README says it.

use crate::common::exchange::journal;
use crate::common::exchange::{Exchange, Plan};
use crate::common::folder;
use crate::common::stream::Stream;
use crate::common::trader::{KEYS, Signed, Trader, Wish, token};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

pub(crate) fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

/// Copies the snapshots first and then the rest.
fn back_up(data_dir: &Path, backup: &Path) {
    std::fs::create_dir(backup).unwrap();
    copy(&data_dir.join("snapshots"), backup);
    for entry in std::fs::read_dir(data_dir).unwrap() {
        let path = entry.unwrap().path();
        if !path.ends_with("snapshots") {
            copy(&path, backup);
        }
    }
}

/// A trader and what it knows of its account.
struct Client {
    trader: Trader,
    token: String,
}

impl Client {
    fn new(exchange: &Exchange) -> Self {
        let markets = exchange.read("/simplified-markets");
        let token = markets["data"][0]["tokens"][0]["token_id"].as_str().unwrap().to_owned();
        Self { trader: Trader::new(KEYS[1], &mut exchange.connect()), token }
    }

    fn sign(&mut self, price: u64) -> Signed {
        self.trader.sign(&Wish::buy(token(&self.token), price, 10_000_000))
    }

    fn post(&self, exchange: &Exchange, order: &Signed) -> Value {
        self.trader.post(&mut exchange.connect(), &order.body).json()
    }

    fn account(&self, exchange: &Exchange) -> Value {
        self.trader.ask(&mut exchange.connect(), "GET", "/account", "").unwrap().json()
    }

    /// The ids of its open orders, in no order.
    fn open(&self, exchange: &Exchange) -> Vec<String> {
        let orders = self.trader.pages(&mut exchange.connect(), "/data/orders");
        let mut ids: Vec<String> =
            orders.iter().map(|order| order["id"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    }

    /// Whether a stream goes on where this account was.
    fn goes_on(&self, exchange: &Exchange, account: &Value) -> bool {
        let mut stream = Stream::open(exchange, "user");
        stream.say(&json!({
            "type": "user", "auth": self.trader.stream_auth(),
            "from": account["sequence"], "stream_id": account["stream_id"],
        }));
        stream.event()["replayed"].as_bool().unwrap()
    }
}

/// What stands in the directory after the exchange has ended, before the backup is put there.
fn restore(plan: &Plan, backup: &Path) {
    let verified = journal("verify", backup);
    assert!(verified.ends_with("good\n"));
    // Segments do not say what was durable at their end: each batch tells only of what came before it.
    assert!(!verified.contains("durable"), "{verified}");
    std::fs::remove_dir_all(plan.data_dir()).unwrap();
    copy(backup, &plan.data_dir());
}

#[test]
fn a_backup_of_a_running_exchange_is_that_moment_and_tells_no_later_one() {
    for killed in [false, true] {
        let folder = folder();
        let plan = Plan::dev(folder.path());
        let backup = folder.path().join("backup");
        let mut exchange = plan.start();
        let mut client = Client::new(&exchange);
        let before = client.sign(1_000);
        client.post(&exchange, &before);
        exchange.operator(&["snapshot"]);
        let kept = client.account(&exchange);
        back_up(&plan.data_dir(), &backup);
        let after = client.sign(1_100);
        client.post(&exchange, &after);
        let lost = client.account(&exchange);
        assert_eq!(client.open(&exchange).len(), 2);
        if killed {
            exchange.kill();
            restore(&plan, &backup);
            let refused = String::from_utf8(plan.run().stderr).unwrap();
            let log = folder.path().join("ring");
            assert!(refused.contains(&format!("rm {}", log.display())), "{refused}");
            std::fs::remove_file(log).unwrap();
        } else {
            exchange.stop();
            restore(&plan, &backup);
        }

        let exchange = plan.start();
        assert_eq!(client.open(&exchange), std::slice::from_ref(&before.id_text), "killed {killed}");
        assert_eq!(client.account(&exchange)["balance"], kept["balance"], "killed {killed}");
        for (account, goes_on) in [(&kept, false), (&lost, false), (&client.account(&exchange), true)] {
            assert_eq!(client.goes_on(&exchange, account), goes_on, "killed {killed} {account}");
        }
        // Its owner posts what was lost again, and it is taken as a new one.
        assert_eq!(client.post(&exchange, &before)["orderID"], before.id_text, "the first answer");
        assert_eq!(client.post(&exchange, &after)["status"], "live");
        assert_eq!(client.open(&exchange).len(), 2);
        exchange.stop();
        assert!(journal("verify", &plan.data_dir()).ends_with("good\n"));
    }
}

#[test]
fn an_order_signed_for_a_market_that_is_lost_is_good_for_no_other() {
    let folder = folder();
    let plan = Plan::dev(folder.path());
    let backup = folder.path().join("backup");
    let exchange = plan.start();
    let mut client = Client::new(&exchange);
    exchange.operator(&["snapshot"]);
    back_up(&plan.data_dir(), &backup);
    let rain = exchange.market("Does it rain?");
    let order = client.trader.sign(&Wish::buy(token(&rain.tokens[0]), 1_000, 10_000_000));
    assert_eq!(client.post(&exchange, &order)["status"], "live");
    exchange.stop();
    restore(&plan, &backup);

    let exchange = plan.start();
    let bank = exchange.market("Does the bank fail?");
    assert!(bank.condition != rain.condition && bank.tokens.iter().all(|token| !rain.tokens.contains(token)));
    assert_eq!(client.post(&exchange, &order)["code"], "token_unknown");
    exchange.stop();
    assert!(journal("verify", &plan.data_dir()).ends_with("good\n"));
}
