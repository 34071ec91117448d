//! The traders and markets of a script: keys, wallets and markets of its own.

use super::{Done, Run};
use crate::common::trader::{Trader, Wish, hex_text, token_text};
use crate::language::{MarketLine, text};
use crate::names::name_and_key;
use outcry::auth::{derive, keccak};
use outcry::domain::amount::ONE;
use outcry::domain::{Address, MarketNo, Mode, SignatureType, Tick, TokenId, WalletNo};
use outcry::shard::naive::{NaiveMarket, NaiveWallet};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A wallet of a trader, for which it signs.
#[derive(Clone, Copy)]
pub struct Wallet {
    pub address: Address,
    pub kind: SignatureType,
}

/// A market of the script, as clients name it.
#[derive(Clone)]
pub struct Market {
    pub id: String,
    pub condition: String,
    pub tokens: [TokenId; 2],
}

/// The traders and markets of one script. Keys are derived from the fact that the script holds, so
/// no two scripts meet.
pub struct People {
    fact: String,
    traders: BTreeMap<String, Trader>,
    /// By wallet number.
    pub wallets: Vec<Wallet>,
    /// By market number.
    pub markets: Vec<Market>,
    /// What the operator gave, less what it took.
    pub given: u64,
}

impl People {
    pub fn of(fact: &str) -> Self {
        Self {
            fact: fact.to_owned(),
            traders: BTreeMap::new(),
            wallets: Vec::new(),
            markets: Vec::new(),
            given: 0,
        }
    }

    /// The trader who signs for a wallet's name: its principal, with the key that is named.
    pub fn trader(&mut self, who: &str) -> &mut Trader {
        self.traders.get_mut(&trader_name(who)).expect("whoever acts was made")
    }

    pub fn set_clock(&mut self, now_ms: u64) {
        for trader in self.traders.values_mut() {
            trader.clock_ms = Some(now_ms);
        }
    }

    fn signing_key(&self, name: &str) -> String {
        hex_text(&self.bytes_for(name)).trim_start_matches("0x").to_owned()
    }

    /// 32 bytes that belong to this script alone.
    fn bytes_for(&self, what: &str) -> [u8; 32] {
        keccak(format!("{}: {what}", self.fact).as_bytes()).0
    }
}

impl Run {
    /// The number of a wallet, which is made with its credentials when the script first names it.
    pub fn wallet(&mut self, name: &str) -> WalletNo {
        let (wallet, new) = self.names.wallet(name);
        for (wallet, principal) in new {
            let name = self.names.wallets[wallet.index()].clone();
            self.add_wallet(&name);
            self.twin.wallets.push(NaiveWallet { principal, cell: 0, frozen: false });
        }
        if let (_, Some(nonce)) = name_and_key(name)
            && !self.people.traders.contains_key(&trader_name(name))
        {
            let key = self.people.signing_key(owner_of(name));
            let now_ms = Some(self.site.now_ms);
            let trader = Trader::of_nonce(&key, nonce.parse().unwrap(), &mut self.site.public, now_ms);
            self.people.traders.insert(trader_name(name), trader);
        }
        wallet
    }

    fn add_wallet(&mut self, name: &str) {
        let Some((owner, _)) = name.split_once('.') else {
            let key = self.people.signing_key(name);
            let trader = Trader::at(&key, &mut self.site.public, Some(self.site.now_ms));
            self.people.wallets.push(Wallet { address: trader.address, kind: SignatureType::Eoa });
            self.people.traders.insert(name.to_owned(), trader);
            return;
        };
        let address = derive::safe(&self.people.trader(owner).address);
        let known = self.people.wallets.iter().any(|wallet| wallet.address == address);
        assert!(!known, "a principal has one safe: {name}");
        self.people.wallets.push(Wallet { address, kind: SignatureType::Safe });
    }

    pub fn add_market(&mut self, line: &MarketLine) {
        let market = self.make_market(line);
        self.people.markets.push(market);
        self.names.markets.push(line.clone());
        self.twin.markets.push(NaiveMarket {
            tick: Tick::new(line.tick).unwrap(),
            mode: Mode::Open,
            fee: line.fee(),
            min_size: line.min_size,
            payout: None,
        });
    }

    /// Makes a market: a free one as the operator does, one with fees by an import.
    fn make_market(&mut self, line: &MarketLine) -> Market {
        let question = format!("{}: {}", self.people.fact, line.name);
        let (tick, min_size) = (text(line.tick.into(), 10_000), text(line.min_size, ONE));
        let condition = if line.fee_rate == 0 {
            let market = json!({ "question": question, "tick": tick, "minSize": min_size });
            let made = self.site.operate("/markets", &market).unwrap();
            made["conditionId"].as_str().unwrap().to_owned()
        } else {
            let condition = hex_text(&self.people.bytes_for(&format!("condition {}", line.name)));
            let tokens = ["yes", "no"].map(|outcome| {
                token_text(&TokenId(self.people.bytes_for(&format!("{outcome} of {}", line.name))))
            });
            self.import(&json!({
                "question": question,
                "conditionId": condition,
                "clobTokenIds": tokens,
                "orderPriceMinTickSize": tick,
                "orderMinSize": min_size,
                "feeSchedule": {
                    "rate": text(line.fee_rate.into(), ONE),
                    "exponent": line.exponent,
                    "takerOnly": !line.makers_pay,
                },
            }));
            condition
        };
        let row = self.site.look_up(&format!("/markets/{condition}"));
        let tokens = [0, 1].map(|index| crate::common::trader::token(row["tokens"][index].as_str().unwrap()));
        Market { id: row["marketId"].to_string(), condition, tokens }
    }

    /// Imports the row of one market.
    pub fn import(&mut self, row: &Value) {
        let said = self.site.operate("/import", &json!([row])).unwrap();
        assert_eq!(said["refused"], json!([]), "{row}: {said}");
    }

    /// Fills the tables of the exchange until they have the room that the script asks for.
    pub fn fill_tables(&mut self) {
        let shape = self.site.shape;
        for _ in 0..shape.digests_filled() {
            self.fill_digest();
        }
        let rows = shape.accounts_filled();
        if rows > 0 {
            self.fill_accounts(rows);
        }
    }

    /// Has one order killed, which is remembered and leaves nothing else behind. Its stamp is
    /// younger than any of the script's, so that the script's own are the oldest.
    fn fill_digest(&mut self) {
        let mut filler = self.filler(1);
        let token = self.people.markets[0].tokens[0];
        let wish = Wish { kind: "FAK", ..Wish::buy(token, 100, 1_000_000) };
        let order = filler.sign(&wish);
        let answer = filler.post(&mut self.site.public, &order.body);
        assert_eq!(answer.json()["code"], "fak_no_match");
        self.people.traders.insert("filler".to_owned(), filler);
    }

    /// Gives one wallet shares in `rows` markets of its own.
    fn fill_accounts(&mut self, rows: u32) {
        for row in 0..rows {
            let mut filler = self.filler(1);
            let line = MarketLine { name: format!("filler {row}"), ..MarketLine::first() };
            let market = self.make_market(&line);
            let answer = filler.act(&mut self.site.public, 0, &market.condition, ONE);
            assert_eq!(answer.status, 200, "{}", answer.json());
            self.people.traders.insert("filler".to_owned(), filler);
        }
    }

    /// A trader outside the script, with this many more USDC.
    fn filler(&mut self, usdc: u64) -> Trader {
        let now_ms = Some(self.site.now_ms);
        let filler =
            self.people.traders.remove("filler").unwrap_or_else(|| {
                Trader::at(&self.people.signing_key("filler"), &mut self.site.public, now_ms)
            });
        let path = format!("/accounts/{}/credit", hex_text(&filler.address.0));
        self.site.operate(&path, &json!({ "amount": usdc.to_string() })).unwrap();
        filler
    }

    /// Moves money as the operator.
    pub fn money(&mut self, who: &str, direction: &str, amount: u64) -> Done {
        let wallet = self.wallet(who);
        let address = hex_text(&self.people.wallets[wallet.index()].address.0);
        let path = format!("/accounts/{address}/{direction}");
        let http = match self.site.operate(&path, &json!({ "amount": text(amount, ONE) })) {
            Ok(_) => "ok".to_owned(),
            Err(code) if code == "not_enough_balance" => "short".to_owned(),
            Err(code) => code,
        };
        let cell = &mut self.twin.wallets[wallet.index()].cell;
        let (after, given) = match direction {
            "credit" => (cell.checked_add(amount), self.people.given.checked_add(amount)),
            _ => (cell.checked_sub(amount), self.people.given.checked_sub(amount)),
        };
        let Some(after) = after else {
            return Done::of(http, "short".to_owned());
        };
        *cell = after;
        self.people.given = given.expect("nobody has more than was given");
        Done::of(http, "ok".to_owned())
    }

    pub fn market(&self, market: MarketNo) -> Market {
        self.people.markets[market.index()].clone()
    }
}

/// The principal before a dot or a stroke.
fn owner_of(name: &str) -> &str {
    name.split(['.', '/']).next().expect("a first part")
}

/// An owner, and the key if one is named: as `alice`, or `alice/2`.
fn trader_name(name: &str) -> String {
    let owner = owner_of(name);
    name_and_key(name).1.map_or_else(|| owner.to_owned(), |key| format!("{owner}/{key}"))
}
