//! An account at one moment, through the running binary: what `GET /account` says, and that the user
//! stream continues exactly where it stops.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use common::exchange::{Exchange, Market, Plan};
use common::random::Random;
use common::stream::Stream;
use common::trader::{KEYS, Trader, Wish, hex_text, micro, token};
use common::wire::Connection;
use common::{folder, text};
use outcry::domain::Side;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Acts between two reads of the account, and how many such rounds there are.
const ACTS: usize = 40;
const ROUNDS: usize = 4;

/// An exchange with a market of its own, without fees, and two traders with shares of both tokens.
struct Site {
    exchange: Exchange,
    connection: Connection,
    traders: [Trader; 2],
    condition: String,
    tokens: [String; 2],
    _folder: tempfile::TempDir,
}

impl Site {
    fn start() -> Self {
        let folder = folder();
        let exchange = Plan::dev(folder.path()).set("cpu.policy=unpinned").start();
        let mut connection = exchange.connect();
        let mut traders = [KEYS[1], KEYS[2]].map(|key| Trader::new(key, &mut connection));
        let Market { condition, tokens } = exchange.market("Does it rain?");
        for trader in &mut traders {
            let split = trader.act(&mut connection, 0, &condition, 500_000_000);
            assert_eq!(split.status, 200, "{}", split.json());
        }
        Self { exchange, connection, traders, condition, tokens, _folder: folder }
    }

    /// Places an order of the first or the second trader; returns its id if it rests.
    fn order(&mut self, who: usize, random: &mut Random) -> Option<String> {
        let side = *random.pick(&[Side::Buy, Side::Sell]);
        // A FAK buy is for an amount of collateral: it would buy fractions of shares, whose legs are
        // rounded.
        let kinds: &[&'static str] = if side == Side::Buy { &["GTC"] } else { &["GTC", "FAK"] };
        let kind = *random.pick(kinds);
        let wish = Wish {
            token: token(&self.tokens[usize::try_from(random.below(2)).unwrap()]),
            side,
            price: 100 * (40 + random.below(20)),
            shares: 1_000_000 * (5 + random.below(20)),
            kind,
            neg_risk: false,
        };
        let signed = self.traders[who].sign(&wish);
        let answer = self.traders[who].post(&mut self.connection, &signed.body);
        (answer.json()["status"] == "live").then_some(signed.id_text)
    }

    /// What the first trader has.
    fn account(&mut self) -> Value {
        let answer = self.traders[0].ask(&mut self.connection, "GET", "/account", "").unwrap();
        let account = answer.json();
        assert_eq!(answer.status, 200, "{account}");
        assert_eq!(answer.header("X-Outcry-Seq").unwrap(), account["seq"], "the header says the same");
        account
    }

    /// The first trader's events after one account, up to the number of another.
    fn events(&self, from: &Value, to: &Value) -> Vec<Value> {
        let mut stream = Stream::open(&self.exchange, "user");
        stream.say(&json!({
            "type": "user", "auth": self.traders[0].stream_auth(),
            "from": from["sequence"], "stream_id": from["stream_id"],
        }));
        let told = stream.next();
        assert_eq!(told["replayed"], true, "{told}");
        assert_eq!(told["stream_id"], from["stream_id"]);
        let first = from["sequence"].as_u64().unwrap() + 1;
        let numbers = first..=to["sequence"].as_u64().unwrap();
        let next = |number: u64| {
            let event = stream.event();
            assert_eq!(event["sequence"], number, "{event}");
            event
        };
        numbers.map(next).collect()
    }
}

/// What a client knows from an account and the events after it, in millionths.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    /// Live orders: token, side, price, size and the filled part.
    orders: BTreeMap<String, (String, String, u64, u64, u64)>,
    balance: i128,
    shares: BTreeMap<String, i128>,
}

impl Known {
    fn of(account: &Value) -> Self {
        let orders = account["orders"].as_array().unwrap().iter().map(order).collect();
        let positions = account["positions"].as_array().unwrap().iter();
        let shares = positions.map(|row| (text(&row["token_id"]).to_owned(), signed(&row["size"])));
        Self { orders, balance: signed(&account["balances"][0]["balance"]), shares: shares.collect() }
    }

    fn note(&mut self, event: &Value) {
        let id = text(&event["id"]);
        match (text(&event["event_type"]), text(&event["status"])) {
            ("order", "LIVE") => drop(self.orders.insert(id.to_owned(), order(event).1)),
            ("order", _) => drop(self.orders.remove(id)),
            ("trade", "MATCHED") => self.trade(event),
            // The same trade again, which is final now.
            ("trade", "CONFIRMED") => {}
            other => panic!("{other:?}: {event}"),
        }
    }

    /// Applies a trade: a maker has its own orders in it, a taker pays or gets the counterpart of its
    /// makers.
    fn trade(&mut self, event: &Value) {
        let legs = event["maker_orders"].as_array().unwrap();
        if event["trader_side"] == "MAKER" {
            for leg in legs {
                self.moves(&leg["asset_id"], text(&leg["side"]), micro(text(&leg["price"])), leg);
            }
            return;
        }
        for leg in legs {
            let price = micro(text(&leg["price"]));
            let same = leg["asset_id"] == event["asset_id"];
            let price = if same { price } else { 1_000_000 - price };
            self.moves(&event["asset_id"], text(&event["side"]), price, leg);
        }
    }

    fn moves(&mut self, asset: &Value, side: &str, price: u64, leg: &Value) {
        let shares = signed(&leg["matched_amount"]);
        let paid = shares * i128::from(price) / 1_000_000;
        let direction = if side == "BUY" { 1 } else { -1 };
        *self.shares.entry(text(asset).to_owned()).or_default() += direction * shares;
        self.balance -= direction * paid;
    }

    /// What open orders need: the cost of all buys, and the shares of each token in sells.
    fn open(&self) -> (u64, BTreeMap<&str, u64>) {
        let mut selling = BTreeMap::new();
        let mut buying = 0;
        for (token, side, price, size, filled) in self.orders.values() {
            match side.as_str() {
                "BUY" => buying += price * (size - filled) / 1_000_000,
                _ => *selling.entry(token.as_str()).or_default() += size - filled,
            }
        }
        (buying, selling)
    }
}

fn order(row: &Value) -> (String, (String, String, u64, u64, u64)) {
    let number = |name: &str| micro(text(&row[name]));
    let (token, side) = (text(&row["asset_id"]).to_owned(), text(&row["side"]).to_owned());
    let fields = (token, side, number("price"), number("original_size"), number("size_matched"));
    (text(&row["id"]).to_owned(), fields)
}

fn signed(text_of: &Value) -> i128 {
    i128::from(micro(text(text_of)))
}

#[test]
fn a_snapshot_and_the_events_after_it_are_the_next_snapshot() {
    let mut site = Site::start();
    let mut random = Random::printed("account");
    let mut resting: Vec<(usize, String)> = Vec::new();
    let mut before = site.account();
    let mut traded = 0;
    for _ in 0..ROUNDS {
        for _ in 0..ACTS {
            let who = usize::try_from(random.below(2)).unwrap();
            if !resting.is_empty() && random.below(4) == 0 {
                let index = usize::try_from(random.below(resting.len() as u64)).unwrap();
                let (who, id) = resting.swap_remove(index);
                let body = json!({ "orderID": id }).to_string();
                site.traders[who].ask(&mut site.connection, "DELETE", "/order", &body).unwrap();
            } else if let Some(id) = site.order(who, &mut random) {
                resting.push((who, id));
            }
        }
        let after = site.account();
        assert!(before["seq"] != after["seq"]);
        let mut known = Known::of(&before);
        for event in site.events(&before, &after) {
            traded += usize::from(event["event_type"] == "trade" && event["status"] == "MATCHED");
            known.note(&event);
        }
        known.shares.retain(|_, shares| *shares != 0);
        assert_eq!(known, Known::of(&after));
        let (buying, selling) = known.open();
        assert_eq!(micro(text(&after["balances"][0]["open_buys"])), buying, "{after}");
        for row in after["positions"].as_array().unwrap() {
            let open = selling.get(text(&row["token_id"])).copied().unwrap_or_default();
            assert_eq!(micro(text(&row["open_sells"])), open, "{row}");
            let [size, available] = ["size", "available"].map(|name| micro(text(&row[name])));
            assert_eq!(available, size - open, "{row}");
        }
        before = after;
    }
    assert!(0 < traded, "something was traded");
    site.exchange.stop();
}

#[test]
fn an_account_says_what_its_parts_say() {
    let mut site = Site::start();
    let mut random = Random::printed("parts");
    for _ in 0..ACTS {
        site.order(0, &mut random);
        site.order(1, &mut random);
    }
    for family in ["POLY", "KUEST", "SERVICE"] {
        site.traders[0].family = family;
        let account = site.account();
        let Site { connection, traders: [trader, _], condition, .. } = &mut site;
        let orders = trader.read(connection, "/data/orders");
        assert_eq!(account["orders"], orders["data"], "{family}");
        let balance = trader.read(connection, "/balance-allowance?asset_type=COLLATERAL");
        assert_eq!(micro(text(&account["balances"][0]["balance"])).to_string(), balance["balance"]);
        for row in account["positions"].as_array().unwrap() {
            let token = text(&row["token_id"]);
            let path = format!("/balance-allowance?asset_type=CONDITIONAL&token_id={token}");
            let held = trader.read(connection, &path);
            assert_eq!(micro(text(&row["size"])).to_string(), held["balance"]);
            assert_eq!(row["condition_id"], *condition);
        }
        assert_eq!(account["address"], hex_text(&trader.address.0));
        let narrowed = trader.read(connection, &format!("/account?market={condition}"));
        let other = trader.read(connection, &format!("/account?market=0x{}", "ab".repeat(32)));
        for name in ["orders", "positions"] {
            assert_eq!(narrowed[name], account[name], "all is of this market");
            assert_eq!(other[name], json!([]), "nothing is of another");
        }
        for part in [&narrowed, &other] {
            assert_eq!(part["balances"], account["balances"], "balances are whole");
        }
    }
    let refused = site.connection.request("GET", "/account", "", b"").unwrap();
    assert_eq!((refused.status, &refused.json()["code"]), (401, &json!("invalid_l2")));
    site.exchange.stop();
}
