//! A maker or a taker: its acts are random, its knowledge is what it was told.

use super::compare::Told;
use super::gate::Gate;
use super::ledger::{Balances, Ledger};
use super::link::{Link, Next, Request, next};
use super::{PATIENCE, Trouble};
use crate::common::exchange::Market;
use crate::common::random::Random;
use crate::common::text;
use crate::common::trader::{KEYS, Trader};
use crate::common::wire::Connection;
use serde_json::{Value, json};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tungstenite::WebSocket;

/// The most acts for which a client stays off its stream after a cut.
const AWAY_MAX: u64 = 40;

/// How a client trades, and what cancels its orders for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Maker,
    /// The connection for its requests promises cancel-on-disconnect.
    MakerOnConnection,
    /// Its stream promises it; and it has little collateral, so that its buys are uncovered now and
    /// then.
    MakerOnStream,
    /// It has a dead-man switch.
    MakerWithSwitch,
    Taker,
}

/// A split or merge whose refusal may not be final, because a copy of it may have been on its way.
pub struct Act {
    pub path: &'static str,
    pub body: String,
    pub market: usize,
    pub amount: u64,
}

pub struct Client<'a> {
    pub role: Role,
    pub trader: Trader,
    pub ledger: Ledger,
    pub link: Link<'a>,
    pub random: Random,
    pub markets: &'a [Market],
    /// Orders that were answered, kept to be posted again.
    pub bodies: Vec<(String, String)>,
    pub unsettled: Vec<Act>,
    /// The id that the next heartbeat shows.
    pub beat: String,
    stream: Option<WebSocket<TcpStream>>,
    away: u64,
}

impl<'a> Client<'a> {
    /// A client that has read its account once.
    pub fn new(
        number: usize,
        role: Role,
        random: Random,
        markets: &'a [Market],
        gate: &'a Gate,
        trouble: &'a Trouble,
    ) -> Self {
        let open = gate.wait();
        let lines = match role {
            Role::MakerOnConnection => "X-Outcry-Cancel-On-Disconnect: true\r\n",
            _ => "",
        };
        // The first test account is left to people who try the binary by hand.
        let trader = Trader::at(KEYS[number + 1], &mut Connection::open(open.port), Some(open.now_ms));
        let mut client = Self {
            role,
            trader,
            ledger: Ledger::default(),
            link: Link::new(number, gate, trouble, lines),
            random,
            markets,
            bodies: Vec::new(),
            unsettled: Vec::new(),
            beat: String::new(),
            stream: None,
            away: 0,
        };
        client.begin_anew();
        client
    }

    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.below(bound as u64)).unwrap()
    }

    pub fn ask(&mut self, method: &str, path: &str, body: &str) -> super::link::Answered {
        self.link.ask(&mut self.trader, &Request::new(method, path, body), &mut self.random)
    }

    pub fn read(&mut self, path: &str) -> Option<Value> {
        self.link.read(&mut self.trader, path, &mut self.random)
    }

    /// Starts again as documented: the account at one moment, then the records of orders that it does
    /// not show.
    fn begin_anew(&mut self) {
        self.settle();
        let account = self.read("/account").expect("everybody has an account");
        let open = self.ledger.snapshot(&account).unwrap();
        for id in open {
            let record = self.read(&format!("/data/order/{id}"));
            self.ledger.look(&id, record.as_ref()).unwrap();
        }
        let trades = self.link.pages(&mut self.trader, "/data/trades", &mut self.random);
        self.ledger.list(&trades);
    }

    /// Posts again whatever was refused while a copy of it may have been on its way.
    pub fn settle(&mut self) {
        for act in std::mem::take(&mut self.unsettled) {
            self.pairs(act);
        }
    }

    /// Splits or merges until the outcome is known, or nearly so.
    pub fn pairs(&mut self, act: Act) {
        let deadline = Instant::now() + PATIENCE;
        let mut doubt = false;
        let answer = loop {
            let said = self.ask("POST", act.path, &act.body);
            doubt |= said.doubt;
            // There is no room on the way to the shard, or somebody else's order is just being paid for.
            if said.answer.status != 503 {
                break said.answer;
            }
            assert!(Instant::now() < deadline, "{}: {}", act.path, said.answer.json());
        };
        let body = answer.json();
        if answer.status == 200 {
            let direction = if act.path.ends_with("split") { 1 } else { -1 };
            self.ledger.pairs(&self.markets[act.market].tokens, direction, act.amount);
        } else {
            let code = text(&body["code"]);
            assert!(["not_enough_balance", "nothing_to_move"].contains(&code), "{} {body}", act.path);
            if doubt {
                self.unsettled.push(act);
            }
        }
    }

    /// Reads what the stream has sent so far, and reconnects if it broke.
    pub fn listen(&mut self) {
        if self.link.gate.is_held(self.link.client) {
            self.stream = None;
            return;
        }
        if self.stream.is_none() {
            if 0 < self.away {
                self.away -= 1;
                return;
            }
            if !self.follow() {
                return;
            }
        }
        while let Some(stream) = &mut self.stream {
            match next(stream) {
                Next::Message(said) if said["type"] == "heartbeat" => {}
                Next::Message(said) => self.told(&said),
                Next::Nothing => return,
                Next::Broken => self.lost(),
            }
        }
    }

    fn lost(&mut self) {
        self.stream = None;
        self.away = self.random.below(AWAY_MAX);
    }

    fn told(&mut self, said: &Value) {
        // The exchange announces each change of its mode, also before it ends.
        if said["type"] == "mode" {
            return;
        }
        self.link.trouble.events.fetch_add(1, Ordering::Relaxed);
        self.ledger.note(said).unwrap();
    }

    /// Follows its stream from where it was; false if the stream broke.
    fn follow(&mut self) -> bool {
        let ask = json!({
            "from": self.ledger.sequence, "stream_id": self.ledger.stream_id,
            "cancel_on_disconnect": self.role == Role::MakerOnStream,
        });
        let Some((stream, said)) = self.link.stream(ask, &self.trader) else {
            self.lost();
            return false;
        };
        let before = std::mem::replace(&mut self.ledger.stream_id, text(&said["stream_id"]).to_owned());
        let now = said["sequence"].as_u64().unwrap();
        assert!(self.ledger.sequence <= now, "told up to {}: {said}", self.ledger.sequence);
        if said["replayed"] == false {
            self.link.trouble.recoveries.fetch_add(1, Ordering::Relaxed);
            drop(stream);
            // It was away for too long, and not because its stream is unknown.
            let again = self.link.stream(json!({ "from": now, "stream_id": before }), &self.trader);
            if let Some((_, said)) = again.filter(|(_, said)| said["sequence"] == now) {
                assert_eq!(said["replayed"], true, "nothing that was told was cut");
            }
            self.begin_anew();
            return false;
        }
        self.link.trouble.replays.fetch_add(u64::from(self.ledger.sequence < now), Ordering::Relaxed);
        stream.get_ref().set_nonblocking(true).unwrap();
        self.stream = Some(stream);
        true
    }

    /// Once nothing happens any more, reads everything that the stream has to say.
    pub fn catch_up(&mut self) {
        self.settle();
        assert!(self.unsettled.is_empty(), "no copy is on its way");
        loop {
            let ask = json!({ "from": self.ledger.sequence, "stream_id": self.ledger.stream_id });
            let (mut stream, said) = self.link.stream(ask, &self.trader).expect("nobody cuts it now");
            if said["replayed"] == false {
                self.begin_anew();
                continue;
            }
            text(&said["stream_id"]).clone_into(&mut self.ledger.stream_id);
            let now = said["sequence"].as_u64().unwrap();
            while self.ledger.sequence < now {
                match next(&mut stream) {
                    Next::Message(said) if said["type"] == "heartbeat" => {}
                    Next::Message(said) => self.told(&said),
                    Next::Nothing | Next::Broken => panic!("{} of {now}", self.ledger.sequence),
                }
            }
            return;
        }
    }

    /// What every kind of read says about this client.
    pub fn everything(&mut self) -> Told {
        let ids: Vec<String> = self.ledger.orders.keys().cloned().collect();
        let orders = ids.into_iter().map(|id| {
            let record = self.read(&format!("/data/order/{id}"));
            (id, record)
        });
        let orders = orders.collect();
        let [live, trades] = ["/data/orders", "/data/trades"]
            .map(|path| self.link.pages(&mut self.trader, path, &mut self.random));
        let markets = self.markets;
        let mut balance = |asset: &str| -> i128 {
            let shown = self.read(&format!("/balance-allowance?asset_type={asset}")).unwrap();
            text(&shown["balance"]).parse().unwrap()
        };
        let collateral = balance("COLLATERAL");
        let tokens = markets.iter().flat_map(|market| &market.tokens);
        let shares =
            tokens.map(|token| (token.clone(), balance(&format!("CONDITIONAL&token_id={token}")))).collect();
        let account = self.read("/account").unwrap();
        Told { orders, live, trades, balances: Balances { collateral, shares }, account }
    }
}
