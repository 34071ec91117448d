//! A clock that was a day ahead and is set right: from then on nobody is held up by what happened meanwhile.
//!
//! The exchange's clock stands still until the test moves it, and a start goes on from where it stood.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use common::exchange::{Exchange, Market, Plan};
use common::folder;
use common::trader::{KEYS, Signed, Trader, Wish, token};
use common::wire::{Answer, Connection};
use serde_json::json;

const DAY_MS: i64 = 86_400_000;

/// A maker, a taker, and a market in which nobody quotes.
struct Site {
    exchange: Exchange,
    connection: Connection,
    maker: Trader,
    taker: Trader,
    tokens: [String; 2],
    now_ms: u64,
    _folder: tempfile::TempDir,
}

impl Site {
    fn start(shards: u16, ingress: u16) -> Self {
        let folder = folder();
        let plan = Plan::dev(folder.path()).set("cpu.policy=unpinned");
        let plan = plan.set(&format!("cpu.shards={shards}")).set(&format!("cpu.ingress={ingress}"));
        let exchange = plan.words(["--clock", "manual"]).start();
        let mut connection = exchange.connect();
        let now_ms = exchange.read("/time").as_u64().unwrap() * 1_000;
        let [maker, taker] = [KEYS[1], KEYS[2]].map(|key| Trader::at(key, &mut connection, Some(now_ms)));
        let Market { tokens, .. } = exchange.market("Does it rain?");
        let mut site = Self { exchange, connection, maker, taker, tokens, now_ms, _folder: folder };
        // Expirations are whole seconds.
        site.advance(0);
        site.advance(1_000 - i64::try_from(site.now_ms % 1_000).unwrap());
        site
    }

    /// Moves the clock, and those of the traders with it.
    fn advance(&mut self, ms: i64) {
        self.now_ms = self.exchange.advance(ms);
        self.traders_have(self.now_ms);
    }

    fn traders_have(&mut self, ms: u64) {
        (self.maker.clock_ms, self.taker.clock_ms) = (Some(ms), Some(ms));
    }

    /// The maker's bid for the first outcome, for five shares at .10; with an expiration it is GTD.
    fn bid(&mut self, expiration_ms: u64) -> Signed {
        let token = token(&self.tokens[0]);
        let kind = if expiration_ms == 0 { "GTC" } else { "GTD" };
        let wish = Wish { kind, ..Wish::buy(token, 1_000, 5_000_000) };
        let mut draft = self.maker.draft(&wish);
        draft.expiration = expiration_ms / 1_000;
        self.maker.seal(&draft)
    }

    /// What becomes of a bid: its status, or the code of its refusal.
    fn place(&mut self, bid: &Signed, lines: &str) -> String {
        self.connection.send(&self.maker.request_with(lines, "POST", "/order", &bid.body)).unwrap();
        said(&self.connection.answer().unwrap())
    }

    /// The maker cancels a bid that has not arrived.
    fn cancel_early(&mut self, bid: &Signed) {
        let body = json!({ "orderID": bid.id_text }).to_string();
        let answer = self.maker.ask(&mut self.connection, "DELETE", "/order", &body).unwrap();
        assert_eq!((answer.status, &answer.json()["canceled"]), (200, &json!([])), "{}", answer.json());
    }

    /// The taker buys the other outcome for .90 from whoever bids for the first.
    fn take(&mut self) -> String {
        let token = token(&self.tokens[1]);
        let wish = Wish { kind: "FAK", ..Wish::buy(token, 9_000, 5_000_000) };
        let order = self.taker.sign(&wish);
        said(&self.taker.post(&mut self.connection, &order.body))
    }

    /// The statuses of two logins by the traders' clock: with the maker's API key, and with its wallet.
    fn logins(&mut self) -> [u16; 2] {
        let by_key = self.maker.ask(&mut self.connection, "DELETE", "/orders", "[]").unwrap();
        let headers = self.maker.owner_headers();
        let by_wallet = self.connection.request("GET", "/auth/derive-api-key", &headers, b"").unwrap();
        [by_key.status, by_wallet.status]
    }
}

fn said(answer: &Answer) -> String {
    let body = answer.json();
    let word = if answer.status == 200 { &body["status"] } else { &body["code"] };
    word.as_str().unwrap_or_else(|| panic!("{body}")).to_owned()
}

#[test]
fn a_clock_that_was_a_day_ahead_holds_nobody_up_once_it_is_right() {
    for (shards, ingress) in [(1, 0), (2, 0), (1, 1)] {
        let mut site = Site::start(shards, ingress);
        let right_ms = site.now_ms;
        let expires_ms = right_ms + 60_000;
        let early = site.bid(0);

        site.advance(DAY_MS);
        let met = site.bid(0);
        assert_eq!((site.place(&met, "").as_str(), site.take().as_str()), ("live", "matched"));
        site.cancel_early(&early);
        site.traders_have(right_ms);
        assert_eq!(site.logins(), [401; 2], "who has the right time is held up");
        site.traders_have(site.now_ms);
        let expired = site.bid(expires_ms);
        assert_eq!(site.place(&expired, ""), "expired");

        site.advance(-DAY_MS);
        assert_eq!(site.now_ms, right_ms);
        assert_eq!(site.logins(), [200; 2]);
        assert_eq!(site.place(&early, ""), "live", "nobody can say how long that cancel has waited");
        assert_eq!(site.take(), "matched");
        for (deadline, becomes) in [
            ("+1000000".to_owned(), "live"),
            ((right_ms * 1_000 + 1_000_000).to_string(), "live"),
            ((right_ms * 1_000).to_string(), "deadline_passed"),
        ] {
            let bid = site.bid(0);
            assert_eq!(
                site.place(&bid, &format!("X-Outcry-Deadline: {deadline}\r\n")),
                becomes,
                "{deadline}"
            );
        }
        assert_eq!([site.take(), site.take(), site.take()], ["matched", "matched", "fak_no_match"]);

        // Ten seconds, in which a cancel waits for its order.
        let [killed, waited_for] = [0; 2].map(|_| site.bid(0));
        site.cancel_early(&killed);
        site.cancel_early(&waited_for);
        site.advance(9_999);
        assert_eq!(site.place(&killed, ""), "cancelled_before_arrival");
        site.advance(1);
        assert_eq!(site.place(&waited_for, ""), "live");
        assert_eq!(site.take(), "matched");

        // A minute, in which an order is good.
        let [first, second] = [0; 2].map(|_| site.bid(expires_ms));
        assert_eq!([site.place(&first, ""), site.place(&second, "")], ["live", "live"]);
        site.advance(49_999);
        assert_eq!(site.take(), "matched");
        site.advance(1);
        assert_eq!(site.take(), "fak_no_match");
        site.exchange.stop();
    }
}

#[test]
fn a_start_goes_on_where_time_had_come_to() {
    let folder = folder();
    let plan = Plan::dev(folder.path()).words(["--clock", "manual"]);
    let exchange = plan.start();
    let ahead_ms = exchange.advance(2 * DAY_MS);
    exchange.market("Does it rain?");
    exchange.stop();
    let exchange = plan.start();
    assert!(ahead_ms / 1_000 <= exchange.read("/time").as_u64().unwrap());
    exchange.stop();
}
