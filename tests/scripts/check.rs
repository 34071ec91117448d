//! Runs a script on the shards and on the naive twin, side by side, and compares everything after
//! every line: answers, fills, books in order, cells, shares, fees; and the shards with their log.

use super::fast::{Fast, leave};
use super::language::{
    BreakerAct, Command, Line, MarketLine, START_MS, Setup, TOMBSTONE_MS, parse, scripts, text,
};
use super::names::{BookRow, Names, breaker_text};
use super::random::Draw;
use outcry::domain::amount::ONE;
use outcry::domain::order::SIGNATURE_BYTES_MAX;
use outcry::domain::{MarketNo, Mode, OrderId, Shares, Side, Tick, TimeMs, WalletNo, Word};
use outcry::journal::layout::{MoneyDirection, RemovalReason};
use outcry::shard::naive::{Naive, NaiveMarket, NaiveWallet, Report};
use outcry::shard::{
    CancelRefusal, Funding, IfGone, OrderScope, PlaceOrder, Refusal, Replace, Stage, UserAct,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// More sweeps than any script needs.
const SWEEPS_MAX: usize = 64;

/// Runs every script of a file, and reports all that fail, not only the first.
#[track_caller]
pub fn check_all(file: &str) {
    let scripts = scripts(file);
    let fails = |script: &str| std::panic::catch_unwind(|| check(script)).is_err();
    let failed: Vec<&str> =
        scripts.iter().filter(|(_, script)| fails(script)).map(|(fact, _)| *fact).collect();
    assert!(failed.is_empty(), "these do not hold: {failed:#?}");
}

/// Runs the script with every number of shards that it asks for, twice: once stage by stage, and once with whole
/// orders, of which those that meet nobody go the short way.
///
/// Returns every word that occurred in a result.
#[track_caller]
pub fn check(script: &str) -> BTreeSet<String> {
    let (setup, lines) = parse(script);
    let mut words = BTreeSet::new();
    for (shards, whole) in setup.shards.iter().flat_map(|shards| [(*shards, false), (*shards, true)]) {
        let mut run = Run::new(&setup, shards, whole);
        for line in &lines {
            run.line(line);
        }
        run.survives_a_restart();
        words.append(&mut run.words);
    }
    words
}

/// Runs the script on one shard; returns the result of its last line.
pub fn last_result(script: &str) -> String {
    let (setup, lines) = parse(script);
    let mut run = Run::new(&setup, 1, true);
    lines.iter().map(|line| run.line(line)).last().unwrap_or_default()
}

/// Checks `count` scripts drawn by `make`, each from a seed of its own; prints the first that fails
/// in full, with its seed. Every word of `met` must occur in some result, or the scripts have
/// become too tame to prove anything.
#[track_caller]
pub fn check_random(count: u64, make: impl Fn(&mut Draw) -> String, met: &[&str]) {
    let mut words = BTreeSet::new();
    for seed in 0..count {
        let script = make(&mut Draw::from_seed(seed));
        let Ok(mut more) = std::panic::catch_unwind(|| check(&script)) else {
            panic!("seed {seed} makes a script on which shards, twin or log differ:\n{script}");
        };
        words.append(&mut more);
    }
    let missing: Vec<&&str> = met.iter().filter(|word| !words.contains(**word)).collect();
    assert!(missing.is_empty(), "no script met {missing:?}");
}

struct Held {
    place: PlaceOrder,
    next: Stage,
}

struct Run {
    fast: Fast,
    twin: Naive,
    names: Names,
    now: TimeMs,
    held: BTreeMap<String, Held>,
    /// Orders that are not held are placed by one call, as the server places them.
    whole: bool,
    at: String,
    words: BTreeSet<String>,
}

impl Run {
    fn new(setup: &Setup, shards: u16, whole: bool) -> Self {
        let mut twin = Naive::new(shards, if setup.reserved { Funding::Reserved } else { Funding::Market });
        twin.min_notional = setup.notional;
        twin.orders_max = setup.orders as usize;
        twin.open_per_owner_max = setup.open as usize;
        twin.accounts_max = setup.accounts as usize;
        twin.accounts_per_wallet_max = setup.each as usize;
        twin.digests_max = setup.digests as usize;
        let mut run = Self {
            fast: Fast::new(setup, shards),
            twin,
            names: Names::default(),
            now: TimeMs(START_MS),
            held: BTreeMap::new(),
            whole,
            at: format!("{shards} shards"),
            words: BTreeSet::new(),
        };
        run.twin.now = run.now;
        run.add_market(&MarketLine::first());
        run
    }

    fn line(&mut self, line: &Line) -> String {
        self.at = format!("{} shards, line {}: {}", self.fast.shards.len(), line.number, line.text);
        let (fast, twin) = self.command(&line.command);
        self.fast.write_trips(self.now);
        assert_eq!(fast, twin, "the shards (left) and the naive twin differ at {}", self.at);
        if let Some(expected) = &line.expected {
            assert_eq!(&fast, expected, "what came (left) is not what was expected at {}", self.at);
        }
        self.words.extend(fast.split([' ', ',']).filter(|word| word.len() > 3).map(str::to_owned));
        self.compare();
        fast
    }

    fn compare(&mut self) {
        let at = &self.at;
        for (index, name) in self.names.wallets.iter().enumerate() {
            let wallet = WalletNo(u32::try_from(index).unwrap());
            assert_eq!(
                self.fast.cells.balance(wallet).0,
                self.twin.wallets[index].cell,
                "{name}'s money at {at}"
            );
            for market in 0..self.names.markets.len() {
                let market = MarketNo(u32::try_from(market).unwrap());
                let held = self.twin.shares.get(&(wallet, market)).copied().unwrap_or_default();
                let fast = &self.fast.shards[self.fast.shard_of(market)];
                assert_eq!(fast.shares(wallet, market), held.map(Shares), "{name}'s shares at {at}");
            }
        }
        if !self.held.is_empty() {
            return;
        }
        for (index, name) in self.names.wallets.iter().enumerate() {
            let principal = WalletNo(u32::try_from(index).unwrap());
            for (shard, fast) in (0..).zip(&self.fast.shards) {
                let twin = self.twin.orders.iter().filter(|order| order.principal == principal);
                let twin = twin.filter(|order| self.fast.shard_of(order.market) == shard).count();
                assert_eq!(fast.open_orders(principal) as usize, twin, "{name}'s open orders at {at}");
            }
            for who in [name.clone(), format!("{name}/2")] {
                let (principal, key) = self.names.key(&who);
                let fast = self.fast.breaker(self.now, (principal, key));
                assert_eq!(fast, self.twin.breaker(key), "{who}'s breaker at {at}");
            }
        }
        assert_eq!(self.fast.fees(), self.twin.fees, "the fees at {at}");
        for market in 0..self.names.markets.len() {
            let market = MarketNo(u32::try_from(market).unwrap());
            assert_eq!(self.fast.book(market), self.twin_book(market), "the book at {at}");
        }
        self.fast.agrees_with_its_log();
    }

    /// Restores with every number of shards and compares again.
    fn survives_a_restart(&mut self) {
        if !self.held.is_empty() {
            return;
        }
        let shards = u16::try_from(self.fast.shards.len()).unwrap();
        for other in [1, 2, 4, shards] {
            self.at = format!("restored with {other} shards");
            self.fast.restart_with_room(other);
            self.twin.forget_fills();
            self.compare();
        }
    }

    fn twin_book(&self, market: MarketNo) -> Vec<BookRow> {
        let mut orders: Vec<_> = self.twin.orders.iter().filter(|order| order.market == market).collect();
        orders.sort_by_key(|order| order.queue);
        let mut rows: Vec<BookRow> = orders
            .into_iter()
            .map(|order| BookRow {
                id: order.id,
                side: order.side,
                outcome: order.outcome,
                price: order.price,
                open: order.open,
                reserved: order.reserved,
            })
            .collect();
        rows.sort_by_key(|row| match row.face_side() {
            Side::Buy => (0, 10_000 - row.face_price().ten_thousandths()),
            Side::Sell => (1, row.face_price().ten_thousandths()),
        });
        rows
    }

    fn wallet(&mut self, name: &str) -> WalletNo {
        let (wallet, new) = self.names.wallet(name);
        for (wallet, principal) in new {
            self.fast.add_wallet(self.now, wallet, principal);
            self.twin.wallets.push(NaiveWallet { principal, cell: 0, frozen: false });
        }
        wallet
    }

    fn add_market(&mut self, line: &MarketLine) {
        let market = MarketNo(u32::try_from(self.names.markets.len()).unwrap());
        self.names.markets.push(line.clone());
        self.fast.add_market(self.now, market, line);
        self.twin.markets.push(NaiveMarket {
            tick: Tick::new(line.tick).unwrap(),
            mode: Mode::Open,
            fee: line.fee(),
            min_size: line.min_size,
            payout: None,
        });
    }

    /// Runs a line on the shards and on the twin; returns both results.
    fn command(&mut self, command: &Command) -> (String, String) {
        match command {
            Command::Setup => same(String::new()),
            Command::Market(line) => {
                self.add_market(line);
                same(String::new())
            }
            Command::Credit { who, amount } => self.money(who, MoneyDirection::Credit, *amount),
            Command::Debit { who, amount } => self.money(who, MoneyDirection::Debit, *amount),
            Command::Order(line) => {
                let wallet = self.wallet(&line.who);
                let place = self.names.place(line, wallet, self.now);
                self.order(&line.label, &place, line.hold)
            }
            Command::Go { label, hold } => self.go(label, *hold),
            Command::Again { label, who } => {
                let mut place = self.names.orders[label];
                if let Some(who) = who {
                    place.wallet = self.wallet(who);
                    place.principal = self.names.principals[place.wallet.index()];
                }
                self.order(label, &place, None)
            }
            Command::Cancel { who, label } => self.cancel(who, label),
            Command::CancelScope { who, market, outcome } => {
                let market = market.as_ref().map(|name| self.names.market(name));
                self.cancel_scope(who, market, *outcome)
            }
            Command::Tombstone { who, label } => self.tombstone(who, label),
            Command::Replace { .. } => self.replace(command),
            Command::Breaker { who, act } => self.breaker(who, *act),
            Command::Act { .. } => self.act(command),
            Command::Tick { market, tick } => self.tick(self.names.market(market), *tick),
            Command::Mode { market, mode } => self.mode(self.names.market(market), *mode),
            Command::Resolve { market, payout } => self.resolve(self.names.market(market), *payout),
            Command::Freeze { who, frozen } => self.freeze(who, *frozen),
            Command::Exchange(mode) => self.exchange(*mode),
            Command::Wait { seconds } => {
                self.now = TimeMs(self.now.0.saturating_add_signed(seconds * 1_000));
                self.twin.now = self.now;
                same(String::new())
            }
            Command::Sweep { market } => {
                self.sweep(market.as_ref().map(|name| self.names.market(name)));
                same(String::new())
            }
            Command::Restart => {
                let shards = u16::try_from(self.fast.shards.len()).unwrap();
                self.fast.restart(shards);
                self.twin.forget_fills();
                same(String::new())
            }
            Command::Book { market } => {
                let market = self.names.market(market);
                let (fast, twin) = (self.fast.book(market), self.twin_book(market));
                (self.names.book_text(&fast), self.names.book_text(&twin))
            }
            Command::Has { who, market } => self.has(who, self.names.market(market)),
            Command::Fees => (text(self.fast.fees(), ONE), text(self.twin.fees, ONE)),
        }
    }

    fn mode(&mut self, market: MarketNo, mode: Mode) -> (String, String) {
        let now = self.now;
        let fast = done(self.fast.owner(market).set_mode(now, market, mode));
        self.fast.follow();
        let row = &mut self.twin.markets[market.index()];
        if row.mode == Mode::Resolved {
            return (fast, "refused market_resolved".to_owned());
        }
        row.mode = mode;
        (fast, "ok".to_owned())
    }

    fn freeze(&mut self, who: &str, frozen: bool) -> (String, String) {
        let wallet = self.wallet(who);
        self.fast.freeze(self.now, wallet, frozen);
        let _ = self.twin.freeze(wallet, frozen);
        same("ok".to_owned())
    }

    fn exchange(&mut self, mode: Mode) -> (String, String) {
        self.fast.exchange(self.now, mode);
        self.twin.exchange = mode;
        same("ok".to_owned())
    }

    fn money(&mut self, who: &str, direction: MoneyDirection, amount: u64) -> (String, String) {
        let wallet = self.wallet(who);
        let fast = self.fast.money(self.now, wallet, direction, amount);
        let cell = &mut self.twin.wallets[wallet.index()].cell;
        let after = match direction {
            MoneyDirection::Credit => cell.checked_add(amount),
            MoneyDirection::Debit => cell.checked_sub(amount),
        };
        *cell = after.unwrap_or(*cell);
        let word = |done| if done { "ok" } else { "short" }.to_owned();
        (word(fast), word(after.is_some()))
    }

    fn order(&mut self, label: &str, place: &PlaceOrder, hold: Option<Stage>) -> (String, String) {
        if self.whole && hold.is_none() {
            return self.whole_order(place);
        }
        let fast = self.fast.begin(self.now, place);
        let twin = self.twin.begin(place);
        self.drive(label, place, fast, twin, hold)
    }

    fn whole_order(&mut self, place: &PlaceOrder) -> (String, String) {
        let mut twin = self.twin.begin(place);
        let report = loop {
            match twin {
                Ok(stage) => twin = self.twin.advance(place, stage),
                Err(report) => break report,
            }
        };
        let now = self.now;
        let placed = self.fast.owner(place.market).place(now, &place.ready());
        let fast = self.fast.report(place.id, placed).unwrap_or_else(|| report.clone());
        assert_eq!(fast, report, "the report (shards left, twin right) at {}", self.at);
        let kind = place.order.order_type;
        (self.names.order_text(&fast, kind), self.names.order_text(&report, kind))
    }

    fn go(&mut self, label: &str, hold: Option<Stage>) -> (String, String) {
        let Some(Held { place, next }) = self.held.remove(label) else {
            return same(String::new());
        };
        self.drive(label, &place, ControlFlow::Continue(next), Ok(next), hold)
    }

    /// Advances both until they are done, or have finished the stage after which to hold.
    fn drive(
        &mut self,
        label: &str,
        place: &PlaceOrder,
        mut fast: ControlFlow<outcry::shard::Placed, Stage>,
        mut twin: Result<Stage, Report>,
        hold: Option<Stage>,
    ) -> (String, String) {
        let mut last = None;
        loop {
            match (fast, twin) {
                (ControlFlow::Continue(stage), Ok(other)) => {
                    assert_eq!(stage, other, "the next stage (shards left, twin right) at {}", self.at);
                    if last.is_some() && last == hold {
                        self.held.insert(label.to_owned(), Held { place: *place, next: stage });
                        return same("held".to_owned());
                    }
                    last = Some(stage);
                    fast = self.fast.advance(place, stage);
                    twin = self.twin.advance(place, stage);
                }
                (ControlFlow::Break(placed), Err(report)) => {
                    let fast = self.fast.report(place.id, placed).unwrap_or_else(|| report.clone());
                    assert_eq!(fast, report, "the report (shards left, twin right) at {}", self.at);
                    let kind = place.order.order_type;
                    return (self.names.order_text(&fast, kind), self.names.order_text(&report, kind));
                }
                (fast, twin) => panic!("the shards {fast:?} and the twin {twin:?} differ at {}", self.at),
            }
        }
    }

    fn cancel(&mut self, who: &str, label: &str) -> (String, String) {
        let wallet = self.wallet(who);
        let principal = self.names.principals[wallet.index()];
        let id = self.names.id(label);
        let now = self.now;
        let answers: Vec<_> =
            self.fast.shards.iter_mut().map(|shard| shard.cancel(now, principal, &id)).collect();
        self.fast.follow();
        let fast = match () {
            () if answers.contains(&Ok(())) => "ok",
            () if answers.contains(&Err(CancelRefusal::Gone)) => "gone",
            () => "unknown",
        };
        let twin = match () {
            () if self.twin.cancel(principal, &id) => "ok",
            () if self.twin.decided(principal, &id) => "gone",
            () => "unknown",
        };
        (fast.to_owned(), twin.to_owned())
    }

    fn cancel_scope(
        &mut self,
        who: &str,
        market: Option<MarketNo>,
        outcome: Option<outcry::domain::Outcome>,
    ) -> (String, String) {
        let wallet = self.wallet(who);
        let principal = self.names.principals[wallet.index()];
        let token = market.zip(outcome);
        let mut ids = Vec::new();
        let now = self.now;
        for shard in &mut self.fast.shards {
            let asked = (principal, OrderScope { market, token, ..OrderScope::ALL });
            ids.extend(leave(shard, now, asked, RemovalReason::Cancelled));
        }
        self.fast.follow();
        let mut gone = self.twin.remove_where(|order| {
            order.principal == principal
                && market.is_none_or(|market| market == order.market)
                && outcome.is_none_or(|outcome| outcome == order.outcome)
        });
        ids.sort_by_key(|id| self.names.label(id));
        gone.sort_by_key(|id| self.names.label(id));
        (self.names.labels(&ids), self.names.labels(&gone))
    }

    fn tombstone(&mut self, who: &str, label: &str) -> (String, String) {
        let wallet = self.wallet(who);
        let wallet = self.names.principals[wallet.index()];
        let id = self.names.id(label);
        let now = self.now;
        let mut left = true;
        for shard in &mut self.fast.shards {
            left &= shard.tombstone(now, wallet, &id);
        }
        self.fast.follow();
        self.twin.tombstone(wallet, &id, now.0 + TOMBSTONE_MS);
        let fast = if left { "ok" } else { "no room" };
        (fast.to_owned(), "ok".to_owned())
    }

    fn replace(&mut self, command: &Command) -> (String, String) {
        let Command::Replace { who, leaving, anyway, coming } = command else {
            unreachable!("only replaces come here");
        };
        let wallet = self.wallet(who);
        let leaving: Vec<OrderId> = leaving.iter().map(|label| self.names.id(label)).collect();
        let now = self.now;
        let orders: Vec<PlaceOrder> = coming.iter().map(|line| self.names.place(line, wallet, now)).collect();
        let request = Replace {
            principal: self.names.principals[wallet.index()],
            leaving: &leaving,
            coming: &orders,
            if_gone: if *anyway { IfGone::Place } else { IfGone::Refuse },
        };
        let fast = self.fast.replace(now, &request);
        let twin = self.twin.replace(&request);
        (self.names.replace_text(&fast), self.names.replace_text(&twin))
    }

    fn act(&mut self, command: &Command) -> (String, String) {
        let Command::Act { who, act, amount, market, label } = command else {
            unreachable!("only acts come here");
        };
        let wallet = self.wallet(who);
        let principal = self.names.principals[wallet.index()];
        let market = self.names.market(market);
        let label = label.clone().unwrap_or_else(|| format!("{} {}", self.at, self.twin.fees));
        let id = self.names.id(&label);
        let now = self.now;
        let request = UserAct {
            act: *act,
            principal,
            wallet,
            market,
            amount: Shares(*amount),
            id,
            salt: Word::ZERO,
            timestamp_ms: now.0,
            signature: [0; SIGNATURE_BYTES_MAX],
            signature_len: 65,
        };
        let fast = self.fast.owner(market).act(now, &request);
        self.fast.follow();
        let gone = self.fast.last_removed.clone();
        let twin = self.twin.act(&request);
        let fast = self.act_text(fast.map(|acted| (acted.collateral.0, gone)));
        (fast, self.act_text(twin))
    }

    fn breaker(&mut self, who: &str, act: BreakerAct) -> (String, String) {
        let _ = self.wallet(who);
        let (now, name) = (self.now, self.names.key(who));
        let (quantity, interval_ms) = match act {
            BreakerAct::Set { quantity, interval_ms } => (quantity, interval_ms),
            BreakerAct::Off => (0, 0),
            BreakerAct::Reset => {
                let word = |done| if done { "ok" } else { "refused breaker_not_set" }.to_owned();
                return (word(self.fast.reset_breaker(now, name)), word(self.twin.reset_breaker(name.1)));
            }
            BreakerAct::Show => {
                let fast = self.fast.breaker(now, name);
                return (breaker_text(fast), breaker_text(self.twin.breaker(name.1)));
            }
        };
        self.fast.set_breaker(now, name, quantity, interval_ms);
        self.twin.set_breaker(name.1, quantity, interval_ms);
        same("ok".to_owned())
    }

    fn act_text(&self, acted: Result<(u64, Vec<OrderId>), Refusal>) -> String {
        acted.map_or_else(refused, |(collateral, gone)| text(collateral, ONE) + &self.names.unfunded(&gone))
    }

    fn tick(&mut self, market: MarketNo, tick: u16) -> (String, String) {
        let tick = Tick::new(tick).expect("a tick");
        let now = self.now;
        let fast = self.fast.owner(market).set_tick(now, market, tick);
        self.fast.follow();
        let fast = fast.map_or_else(refused, |_| self.names.gone(&self.fast.last_removed));
        if self.twin.markets[market.index()].mode == Mode::Resolved {
            return (fast, "refused market_resolved".to_owned());
        }
        self.twin.markets[market.index()].tick = tick;
        let gone = self.twin.remove_where(|order| order.market == market && !tick.holds(order.price));
        (fast, self.names.gone(&gone))
    }

    fn resolve(&mut self, market: MarketNo, payout: outcry::domain::Payout) -> (String, String) {
        let now = self.now;
        let before: Vec<OrderId> = self.fast.ledger.live_orders(market).map(|row| row.id).collect();
        let fast = self.fast.owner(market).resolve(now, market, payout);
        self.fast.follow();
        let row = &mut self.twin.markets[market.index()];
        if row.mode == Mode::Resolved {
            return (fast.map_or_else(refused, |_| "ok".to_owned()), "refused market_resolved".to_owned());
        }
        row.mode = Mode::Resolved;
        row.payout = Some(payout);
        let gone = self.twin.remove_where(|order| order.market == market);
        (fast.map_or_else(refused, |_| self.names.gone(&before)), self.names.gone(&gone))
    }

    fn sweep(&mut self, market: Option<MarketNo>) {
        let now = self.now;
        for index in 0..self.fast.shards.len() {
            if market.is_some_and(|market| self.fast.shard_of(market) != index) {
                continue;
            }
            let more = (0..SWEEPS_MAX).all(|_| self.fast.shards[index].sweep(now));
            assert!(!more || !self.held.is_empty(), "a sweep comes to an end at {}", self.at);
            self.fast.remove_tripped(now, index);
            self.twin.sweep(u16::try_from(index).unwrap());
        }
        self.fast.follow();
    }

    fn has(&mut self, who: &str, market: MarketNo) -> (String, String) {
        let wallet = self.wallet(who);
        let line = |cell: u64, shares: [u64; 2]| {
            format!("{} yes {} no {}", text(cell, ONE), text(shares[0], ONE), text(shares[1], ONE))
        };
        let shard = &self.fast.shards[self.fast.shard_of(market)];
        let fast =
            line(self.fast.cells.balance(wallet).0, shard.shares(wallet, market).map(|shares| shares.0));
        let held = self.twin.shares.get(&(wallet, market)).copied().unwrap_or_default();
        (fast, line(self.twin.wallets[wallet.index()].cell, held))
    }
}

fn same(text: String) -> (String, String) {
    (text.clone(), text)
}

fn refused(refusal: Refusal) -> String {
    format!("refused {}", refusal.reject.wire().code)
}

fn done(result: Result<(), Refusal>) -> String {
    result.map_or_else(refused, |()| "ok".to_owned())
}
