//! The real engine under a script: shards over one log and one set of cells, with a ledger that
//! follows the log and is compared with them after every step.

use super::language::{MarketLine, Setup};
use super::names::BookRow;
use outcry::domain::{
    Address, ApiKey, BreakerState, Collateral, ConditionId, MarketNo, Mode, OrderId, Position, ShardNo,
    Shares, Tick, TimeMs, TokenId, WalletKind, WalletNo, Word,
};
use outcry::journal::layout::{
    BreakerSet, ExchangeMode, Frozen, MarketAdded, Money, MoneyDirection, OrderPlaced, OrdersReplaced,
    Record, RemovalReason, WalletAdded,
};
use outcry::journal::{Follower, Log};
use outcry::ledger::Ledger;
use outcry::memory::cells::Cells;
use outcry::registry::{MarketFacts, Registry, RegistryWriter};
use outcry::shard::naive::{NaiveReplaced, Report};
use outcry::shard::{
    Funding, Leaving, OrderScope, PlaceOrder, Placed, Refusal, Replace, Replaced, Shard, ShardSettings, Stage,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

const WALLETS_MAX: u32 = 32;
const MARKETS_MAX: u32 = 8;
/// Orders leave an eighth of the ring and a slack of 640 KiB per shard free for cancels.
const RING_BYTES: u64 = 8 << 20;

pub struct Fast {
    pub shards: Vec<Shard>,
    pub cells: Arc<Cells>,
    pub registry: Arc<Registry>,
    pub log: Arc<Log>,
    pub ledger: Ledger,
    placed: BTreeMap<OrderId, OrderPlaced>,
    pub last_removed: Vec<OrderId>,
    last_replaced: Option<(Position, OrdersReplaced)>,
    writer: RegistryWriter,
    follower: Follower,
    settings: ShardSettings,
    ids: BTreeMap<Position, OrderId>,
    references: u64,
}

/// Removes a principal's orders from a shard, piece by piece as the server does.
pub fn leave(
    shard: &mut Shard,
    now: TimeMs,
    (principal, scope): (WalletNo, OrderScope),
    reason: RemovalReason,
) -> Vec<OrderId> {
    let (mut leaving, mut left) = (Leaving::default(), Vec::new());
    shard.choose_open(principal, scope, &mut leaving);
    while !leaving.is_over() {
        shard.remove_some(now, &mut leaving, reason, &mut left).expect("the log has room");
    }
    left
}

impl Fast {
    pub fn new(setup: &Setup, shards: u16) -> Self {
        let settings = ShardSettings {
            shard: ShardNo(0),
            shards,
            funding: if setup.reserved { Funding::Reserved } else { Funding::Market },
            min_notional: Collateral(setup.notional),
            resting_max: setup.orders,
            open_per_owner_max: setup.open,
            digests_max: setup.digests,
            accounts_max: setup.accounts,
            accounts_per_wallet_max: setup.each,
            markets_max: MARKETS_MAX,
            books_bytes: setup.ladders * 8 * (1 << 14),
            secret: 0x9e37_79b9_7f4a_7c15,
        };
        let cells = Arc::new(Cells::new(WALLETS_MAX, shards));
        let (registry, writer) = Registry::with_capacity(WALLETS_MAX, MARKETS_MAX);
        let log = Arc::new(Log::anonymous(RING_BYTES));
        let follower = Follower::new(Arc::clone(&log), log.claimed(), None);
        let mut fast = Self {
            shards: Vec::new(),
            cells,
            registry,
            log,
            ledger: Ledger::new(),
            placed: BTreeMap::new(),
            last_removed: Vec::new(),
            last_replaced: None,
            writer,
            follower,
            settings,
            ids: BTreeMap::new(),
            references: 0,
        };
        fast.shards = fast.all_settings(shards).map(|settings| fast.empty(settings)).collect();
        fast
    }

    /// Restarts with room for what several shards had before.
    pub fn restart_with_room(&mut self, shards: u16) {
        self.restart_with(shards, |settings| {
            settings.resting_max = 4_096;
            settings.accounts_max = 4_096;
            settings.books_bytes = 1 << 20;
        });
    }

    /// Restarts with other settings.
    pub fn restart_with(&mut self, shards: u16, change: impl FnOnce(&mut ShardSettings)) {
        change(&mut self.settings);
        self.restart(shards);
    }

    fn all_settings(&self, shards: u16) -> impl Iterator<Item = ShardSettings> + use<> {
        let settings = self.settings;
        (0..shards).map(move |shard| ShardSettings { shard: ShardNo(shard), shards, ..settings })
    }

    fn empty(&self, settings: ShardSettings) -> Shard {
        let (cells, registry) = (Arc::clone(&self.cells), Arc::clone(&self.registry));
        Shard::new(settings, cells, registry, Arc::clone(&self.log))
    }

    /// Rebuilds the registry, the cells and every shard from the ledger.
    pub fn restart(&mut self, shards: u16) {
        self.settings.shards = shards;
        self.cells = Arc::new(Cells::new(WALLETS_MAX, shards));
        (self.registry, self.writer) = Registry::with_capacity(WALLETS_MAX, MARKETS_MAX);
        outcry::registrar::restore(&self.ledger, &mut self.writer, &self.cells).expect("there is room");
        let restored = self.all_settings(shards).map(|settings| {
            let (cells, registry) = (Arc::clone(&self.cells), Arc::clone(&self.registry));
            let log = Arc::clone(&self.log);
            Shard::restore(settings, cells, registry, log, &self.ledger).expect("nothing is archived")
        });
        self.shards = restored.collect();
    }

    pub fn shard_of(&self, market: MarketNo) -> usize {
        usize::from(self.registry.shard_of(market, self.settings.shards).0)
    }

    pub fn owner(&mut self, market: MarketNo) -> &mut Shard {
        let shard = self.shard_of(market);
        &mut self.shards[shard]
    }

    fn say(&mut self, record: impl Into<Record>) {
        let record = record.into();
        let mut payload = Vec::new();
        record.encode(&mut payload);
        self.log.append(record.kind(), &payload);
        self.follow();
    }

    /// Applies every committed frame to the ledger; a claim without a commit stops it.
    pub fn follow(&mut self) {
        self.last_removed.clear();
        let limit = self.log.claimed();
        while let Some(frame) = self.follower.next(limit).expect("the ring is freed as it is read") {
            let record = Record::decode(frame.kind, frame.payload).expect("shards write whole records");
            let span = frame.span;
            self.ledger.apply(span.start, span.end, &record).expect("the log never contradicts itself");
            match record {
                Record::OrderPlaced(placed) => {
                    self.ids.insert(span.start, placed.id);
                    self.placed.insert(placed.id, placed);
                }
                Record::OrdersReplaced(record) => {
                    let placed = record.each_placed(span.start).map(|(at, quote)| (at, quote.order.id));
                    self.ids.extend(placed);
                    self.last_replaced = Some((span.start, record));
                }
                // What has expired leaves before a command, and not because of it.
                Record::OrdersRemoved(record) if record.reason == RemovalReason::Expired => {}
                Record::OrdersRemoved(record) => self.note(&record.orders),
                Record::PositionAct(record) => self.note(&record.removed),
                Record::TickChanged(record) => self.note(&record.removed),
                _ => {}
            }
            self.ledger.conserved().expect("nothing is made or lost");
        }
        self.log.free(self.follower.position());
    }

    fn note(&mut self, orders: &[Position]) {
        self.last_removed.extend(orders.iter().map(|order| self.ids[order]));
    }

    pub fn add_wallet(&mut self, now: TimeMs, wallet: WalletNo, principal: WalletNo) {
        let mut address = Address::ZERO;
        address.0[0] = u8::try_from(wallet.0).unwrap() + 1;
        let kind = if wallet == principal { WalletKind::Eoa } else { WalletKind::Deposit };
        let number = self.writer.add_wallet(address, kind, Some(principal)).unwrap();
        assert_eq!(number, wallet);
        self.say(WalletAdded { time: now, wallet, address, kind, principal: Some(principal) });
    }

    pub fn add_market(&mut self, now: TimeMs, market: MarketNo, line: &MarketLine) {
        let word = |kind: u8| {
            let mut bytes = [kind; 32];
            bytes[0] = u8::try_from(market.0).unwrap();
            bytes
        };
        let tick = Tick::new(line.tick).expect("a tick");
        let facts = MarketFacts {
            condition: ConditionId(word(1)),
            tokens: [TokenId(word(2)), TokenId(word(3))],
            market_id: u64::from(market.0),
            question_id: Word(word(4)),
            neg_risk: false,
            min_size: Shares(line.min_size),
            fee: line.fee(),
            shard_key: market.0,
            tick,
            mode: Mode::Open,
            payout: None,
        };
        assert_eq!(self.writer.add_market(&facts).unwrap(), market);
        self.say(MarketAdded {
            time: now,
            market,
            event: None,
            shard_key: market.0,
            market_id: facts.market_id,
            condition: facts.condition,
            question: facts.question_id,
            tokens: facts.tokens,
            labels: vec!["Yes".into(), "No".into()],
            neg_risk: false,
            tick,
            min_size: facts.min_size,
            fee: facts.fee,
            mode: Mode::Open,
            payout: None,
            text: "{}".into(),
        });
    }

    /// Moves money as the operator; false if the wallet has less than is debited.
    pub fn money(&mut self, now: TimeMs, wallet: WalletNo, direction: MoneyDirection, amount: u64) -> bool {
        let amount = Collateral(amount);
        if direction == MoneyDirection::Debit && !self.cells.debit(wallet, amount) {
            return false;
        }
        self.references += 1;
        let reference = format!("reference {}", self.references);
        self.say(Money { time: now, wallet, direction, amount, reference });
        match direction {
            MoneyDirection::Credit => self.cells.credit(wallet, amount),
            MoneyDirection::Debit => self.cells.lowered(wallet),
        }
        true
    }

    pub fn freeze(&mut self, now: TimeMs, principal: WalletNo, frozen: bool) {
        self.writer.set_frozen(principal, frozen);
        self.say(Frozen { time: now, principal, frozen });
        for shard in self.shards.iter_mut().filter(|_| frozen) {
            leave(shard, now, (principal, OrderScope::ALL), RemovalReason::Operator);
        }
        self.follow();
    }

    pub fn exchange(&mut self, now: TimeMs, mode: Mode) {
        self.writer.set_exchange_mode(mode);
        self.say(ExchangeMode { time: now, mode });
    }

    /// Sets the breaker of a key, or takes it away, as the registrar does.
    pub fn set_breaker(
        &mut self,
        now: TimeMs,
        (principal, key): (WalletNo, ApiKey),
        quantity: u64,
        interval_ms: u64,
    ) {
        let state = BreakerState { quantity: Shares(quantity), interval_ms, tripped: false };
        self.say_breaker(now, (principal, key), state);
        self.writer.set_breaker(principal, key, state).unwrap();
        self.writer.reset_breaker(principal, &key);
    }

    /// Resets the breaker of a key; false if it has none.
    pub fn reset_breaker(&mut self, now: TimeMs, name: (WalletNo, ApiKey)) -> bool {
        let Some((_, quantity, _)) = self.breaker(now, name) else {
            return false;
        };
        let interval_ms = self.registry.breaker(name.0, &name.1).expect("it is set").state().interval_ms;
        self.set_breaker(now, name, quantity, interval_ms);
        true
    }

    /// What was filled lately of a key's orders, what trips its breaker, and whether it has tripped.
    pub fn breaker(&self, now: TimeMs, (principal, key): (WalletNo, ApiKey)) -> Option<(u64, u64, bool)> {
        let row = self.registry.breaker(principal, &key)?;
        let BreakerState { quantity, tripped, .. } = row.state();
        (!quantity.is_zero()).then(|| (row.filled(now).0, quantity.0, tripped))
    }

    /// Writes to the log which breakers have tripped since the last time.
    pub fn write_trips(&mut self, now: TimeMs) {
        let logged: Vec<ApiKey> =
            self.ledger.breakers().filter(|(.., row)| row.tripped).map(|(_, key, _)| key).collect();
        let registry = Arc::clone(&self.registry);
        let tripped = registry.breakers().filter(|row| row.state().tripped && !logged.contains(&row.key()));
        for row in tripped {
            self.say_breaker(now, (row.principal, row.key()), row.state());
        }
    }

    fn say_breaker(&mut self, time: TimeMs, (principal, key): (WalletNo, ApiKey), state: BreakerState) {
        let BreakerState { quantity, interval_ms, tripped } = state;
        self.say(BreakerSet { time, principal, key, quantity, interval_ms, tripped });
    }

    /// Removes the orders of keys whose breaker has tripped from a shard's books.
    pub fn remove_tripped(&mut self, now: TimeMs, shard: usize) {
        let registry = Arc::clone(&self.registry);
        for row in registry.breakers().filter(|row| row.state().tripped) {
            let scope = OrderScope { key: Some(row.key()), ..OrderScope::ALL };
            leave(&mut self.shards[shard], now, (row.principal, scope), RemovalReason::FillRate);
        }
    }

    pub fn begin(&mut self, now: TimeMs, place: &PlaceOrder) -> ControlFlow<Placed, Stage> {
        self.owner(place.market).begin(now, &place.ready())
    }

    pub fn advance(&mut self, place: &PlaceOrder, stage: Stage) -> ControlFlow<Placed, Stage> {
        self.owner(place.market).advance(&place.ready(), stage)
    }

    /// Does a replace; its frame must say what its answer says.
    pub fn replace(
        &mut self,
        now: TimeMs,
        request: &Replace<'_, PlaceOrder>,
    ) -> Result<NaiveReplaced, Refusal> {
        let coming: Vec<_> = request.coming.iter().map(PlaceOrder::ready).collect();
        let Replace { principal, leaving, if_gone, .. } = *request;
        let asked = Replace { principal, leaving, coming: &coming, if_gone };
        let replaced = self.owner(request.coming[0].market).replace(now, &asked);
        self.follow();
        let Replaced { replayed, left, kept_place } = replaced.map_err(|refused| refused.refusal)?;
        if replayed {
            return Ok(NaiveReplaced { replayed, ..NaiveReplaced::default() });
        }
        let (start, record) = self.last_replaced.take().expect("what was done has a frame");
        let named = request.leaving.iter().enumerate().filter(|(at, _)| left & 1 << at != 0);
        let mut named: Vec<OrderId> = named.map(|(_, id)| *id).collect();
        named.dedup();
        let came = record.each_placed(start).enumerate().map(|(at, (_, quote))| {
            assert_eq!(kept_place & 1 << at != 0, quote.takes_place_of.is_some(), "the answer and the frame");
            (quote.order.id, quote.takes_place_of.map(|former| self.ids[&former]))
        });
        let came = came.collect();
        let gone: Vec<OrderId> = record.removed.iter().map(|order| self.ids[order]).collect();
        assert!(named.iter().all(|id| gone.contains(id)), "who left by the answer left by the frame");
        Ok(NaiveReplaced { replayed, left: gone, came })
    }

    /// What an order did, from its answer and its frame; `None` if the frame cannot be read yet
    /// because an earlier one is claimed and not committed.
    pub fn report(&mut self, id: OrderId, placed: Placed) -> Option<Report> {
        self.follow();
        let mut report = Report { placed, fills: Vec::new(), removed: Vec::new(), open: Shares::ZERO };
        let Placed::Accepted { status, making, taking, trade, replayed } = placed else {
            return Some(report);
        };
        assert_eq!(trade.is_some(), taking != 0, "a trade has a frame");
        report.placed = Placed::Accepted { status, making, taking, trade: None, replayed };
        if replayed {
            return Some(report);
        }
        let frame = self.placed.remove(&id)?;
        let fills = frame.fills.iter().map(|fill| (self.ids[&fill.maker], fill.shares, fill.price));
        report.fills = fills.collect();
        report.removed = frame.removed.iter().map(|gone| (self.ids[&gone.order], gone.reason)).collect();
        report.open = frame.open;
        Some(report)
    }

    /// A market's resting orders, as its shard walks them.
    pub fn book(&self, market: MarketNo) -> Vec<BookRow> {
        let shard = &self.shards[self.shard_of(market)];
        let rows = shard.resting(market).map(|(position, open)| {
            let row = self.ledger.order_at(position).expect("what rests was placed");
            BookRow {
                id: row.id,
                side: row.fields.side,
                outcome: row.outcome,
                price: row.price,
                open: open.0,
                reserved: row.reserved.0,
            }
        });
        rows.collect()
    }

    pub fn fees(&self) -> u64 {
        (0..self.settings.shards).map(|shard| self.cells.fees(ShardNo(shard)).0).sum()
    }

    /// Checks that the ledger agrees with cells, shares and books. Only valid while no order is
    /// between two stages.
    pub fn agrees_with_its_log(&self) {
        for row in self.ledger.wallets() {
            assert_eq!(self.cells.balance(row.wallet), row.cell, "the cell of wallet {}", row.wallet.0);
            for market in self.ledger.markets() {
                let shard = &self.shards[self.shard_of(market.market)];
                let held = self.ledger.holding(row.wallet, market.market);
                assert_eq!(shard.shares(row.wallet, market.market), held, "the shares of {}", row.wallet.0);
            }
        }
        assert_eq!(self.fees(), self.ledger.fees().0, "the fees");
        for market in self.ledger.markets() {
            let mut resting: Vec<(Position, Shares)> =
                self.shards[self.shard_of(market.market)].resting(market.market).collect();
            resting.sort_unstable();
            let live: Vec<_> =
                self.ledger.live_orders(market.market).map(|row| (row.position, row.open)).collect();
            assert_eq!(resting, live, "the book of market {}", market.market.0);
        }
    }
}
