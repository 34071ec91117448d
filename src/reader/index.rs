//! Where the routes find rows, and how each record changes that.
//!
//! The ledger keeps what is true; this keeps where to find it. Everything here could be rebuilt
//! from the ledger and the records, and the tests do that for the levels.

mod keep;

use super::Token;
use super::feed::LevelChange;
use super::levels::{Levels, seen_from};
use crate::catalog::{Catalog, EventFacts, MarketEntry, MarketFacts, Source, Texts};
use crate::domain::{
    ConditionId, MarketNo, Mode, Outcome, Position, Price, Shares, Side, TimeMs, TokenId, WalletNo, Word,
};
use crate::journal::layout::order::Removal;
use crate::journal::layout::{OrderPlaced, Record, RemovalReason};
use crate::ledger::{Ledger, MarketRow};
use std::collections::{BTreeSet, HashMap};

/// One taker order with all its fills.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trade<'a> {
    /// The taker's order, and the identity of the trade.
    pub(super) position: Position,
    /// When it was made.
    pub(super) time: TimeMs,
    /// What changed hands.
    pub(super) shares: Shares,
    /// The mean price in millionths, in terms of the taker's token, rounded against the taker.
    pub(super) price_millionths: u64,
    /// The makers, in the order in which they were met.
    pub(super) legs: &'a [Leg],
}

/// A trade in memory, where it stays for as long as the exchange exists.
#[derive(Clone, Debug)]
struct TradeRow {
    position: Position,
    time: TimeMs,
    shares: Shares,
    price_millionths: u32,
    /// Where its legs begin among those of all trades; they end where the next trade's begin.
    legs_from: u32,
}

const _: () = assert!(size_of::<TradeRow>() == 32 && size_of::<Leg>() == 16, "48 bytes with one maker");

/// One maker's part in a trade.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    /// The maker's order.
    pub(super) maker: Position,
    /// What it gave or took.
    pub(super) shares: Shares,
}

/// The last trade of a market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastTrade {
    /// The price of its last fill, in terms of token 0.
    pub(super) price: Price,
    /// The taker's side, in terms of token 0.
    pub(super) side: Side,
}

/// What belongs to one wallet number; most of it only if that is a principal.
#[derive(Clone, Debug, Default)]
pub(super) struct PrincipalIndex {
    /// Its wallets, in the order in which it got them.
    pub(super) wallets: Vec<WalletNo>,
    /// Its live orders.
    pub(super) live: BTreeSet<Position>,
    /// Indices of the trades in which it took part, in order.
    pub(super) trades: Vec<u32>,
    /// How many events it ever had: the number of the last one.
    pub(super) events: u64,
}

/// What belongs to one market.
#[derive(Clone, Debug)]
pub(super) struct MarketIndex {
    /// Its book.
    pub(super) levels: Levels,
    /// Its last trade.
    pub(super) last_trade: Option<LastTrade>,
    /// How many records have changed its book: the number of the last one.
    pub(super) sequence: u64,
}

/// A level that a record touches, and what was open there.
#[derive(Clone, Copy, Debug)]
struct Touched {
    market: MarketNo,
    side: Side,
    price: Price,
    before: Shares,
}

/// All indices.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    principals: Vec<PrincipalIndex>,
    markets: Vec<MarketIndex>,
    catalog: Catalog,
    conditions: HashMap<ConditionId, MarketNo>,
    questions: HashMap<Word, Vec<MarketNo>>,
    tokens: HashMap<TokenId, Token>,
    trades: Vec<TradeRow>,
    legs: Vec<Leg>,
    /// Levels that the last record touched.
    touched: Vec<Touched>,
    /// Markets that trade, but not freely: post-only and cancel-only ones.
    restricted: BTreeSet<MarketNo>,
}

/// An order that a record takes out of its book, with the shares that are open until then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub(super) order: Position,
    /// Without what the same record fills.
    open: Shares,
    /// It is the dust that a fill of the same record leaves.
    pub(super) after_fill: bool,
}

/// The orders that `record` will take out of their books with a rest unfilled. Called before the ledger applies
/// the record, because afterwards none of their shares are open.
pub(super) fn leaving(ledger: &Ledger, record: &Record) -> Vec<Leaving> {
    let open = |&order: &Position| {
        let row = ledger.order_at(order)?;
        Some(Leaving { order, open: row.open, after_fill: false })
    };
    match record {
        Record::OrderPlaced(record) => {
            let gone = |removal: &Removal| {
                let row = open(&removal.order)?;
                if removal.reason != RemovalReason::Dust {
                    return Some(row);
                }
                let fill = record.fills.iter().rfind(|fill| fill.maker == removal.order)?;
                Some(Leaving { open: row.open - fill.shares, after_fill: true, ..row })
            };
            record.removed.iter().filter_map(gone).collect()
        }
        Record::OrdersRemoved(record) => record.orders.iter().filter_map(open).collect(),
        Record::OrdersReplaced(record) => record.removed.iter().filter_map(open).collect(),
        Record::PositionAct(record) => record.removed.iter().filter_map(open).collect(),
        Record::TickChanged(record) => record.removed.iter().filter_map(open).collect(),
        Record::Resolved(record) => ledger
            .market(record.market)
            .map_or_else(Vec::new, |row| row.live.iter().filter_map(open).collect()),
        _ => Vec::new(),
    }
}

impl Index {
    /// Follows a record that `ledger` has just applied.
    pub(super) fn follow(&mut self, ledger: &Ledger, start: Position, record: &Record, leaving: &[Leaving]) {
        for gone in leaving {
            self.leave(ledger, gone.order, gone.open);
        }
        match record {
            Record::WalletAdded(record) => {
                self.principals.push(PrincipalIndex::default());
                if let Some(principal) = record.principal {
                    self.own(principal, record.wallet);
                }
            }
            Record::WalletLinked(record) => self.own(record.principal, record.wallet),
            Record::EventText(record) => self.catalog.put_event(record.event, ledger),
            Record::ItemText(record) => self.catalog.put_item(record.kind, record.item, ledger),
            Record::MarketAdded(record) => self.add_market(ledger, record.market),
            Record::MarketText(record) => {
                self.catalog.put_market_text(record.market.0, record.event, ledger);
                self.note_mode(ledger, record.market);
            }
            Record::MarketMode(record) => self.note_mode(ledger, record.market),
            Record::Resolved(record) => self.note_mode(ledger, record.market),
            Record::OrderPlaced(record) => self.place(ledger, start, record),
            Record::OrdersReplaced(record) => {
                for (position, quote) in record.each_placed(start) {
                    self.place(ledger, position, &quote.order);
                }
            }
            _ => {}
        }
    }

    /// What belongs to `principal`.
    pub(super) fn principal(&self, principal: WalletNo) -> Option<&PrincipalIndex> {
        self.principals.get(principal.index())
    }

    /// What belongs to `market`, which came out of the ledger.
    pub(super) fn market(&self, market: MarketNo) -> &MarketIndex {
        &self.markets[market.index()]
    }

    /// The lists of events, markets and what they mention.
    pub(super) const fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// What the text of `market` says.
    pub(super) fn facts(&self, market: MarketNo) -> &MarketFacts {
        &self.catalog.market(market.0).facts
    }

    /// What the text of the event of `market` says.
    pub(super) fn event(&self, market: &MarketRow) -> Option<&EventFacts> {
        market.event.map(|event| &self.catalog.event(event).facts)
    }

    /// The market of a condition.
    pub(super) fn condition(&self, condition: &ConditionId) -> Option<MarketNo> {
        self.conditions.get(condition).copied()
    }

    /// The markets of a question, in the order in which they came.
    pub(super) fn question(&self, question: &Word) -> &[MarketNo] {
        self.questions.get(question).map_or(&[], Vec::as_slice)
    }

    /// The market and outcome of a token.
    pub(super) fn token(&self, token: &TokenId) -> Option<Token> {
        self.tokens.get(token).copied()
    }

    /// A trade by its index.
    pub(super) fn trade(&self, index: u32) -> Trade<'_> {
        let index = index as usize;
        let row = &self.trades[index];
        let end = self.trades.get(index + 1).map_or(self.legs.len(), |next| next.legs_from as usize);
        Trade {
            position: row.position,
            time: row.time,
            shares: row.shares,
            price_millionths: row.price_millionths.into(),
            legs: &self.legs[row.legs_from as usize..end],
        }
    }

    /// The index of the trade at `position`.
    pub(super) fn trade_at(&self, position: Position) -> Option<u32> {
        let found = self.trades.binary_search_by_key(&position, |trade| trade.position).ok();
        found.map(number)
    }

    /// How many of `indices`, which are in order, were made before `position`.
    pub(super) fn trades_before(&self, indices: &[u32], position: Position) -> usize {
        indices.partition_point(|&index| self.trades[index as usize].position < position)
    }

    /// Gives `wallet` to `principal`, for good.
    fn own(&mut self, principal: WalletNo, wallet: WalletNo) {
        self.principals[principal.index()].wallets.push(wallet);
    }

    /// The markets that are post-only or cancel-only.
    pub(super) const fn restricted(&self) -> &BTreeSet<MarketNo> {
        &self.restricted
    }

    fn note_mode(&mut self, ledger: &Ledger, market: MarketNo) {
        let row = ledger.market(market).expect("the ledger applied this record");
        self.catalog.set_life(market.0, row.life());
        self.note_restriction(market, row.mode);
    }

    fn note_restriction(&mut self, market: MarketNo, mode: Mode) {
        match mode {
            Mode::PostOnly | Mode::CancelOnly => self.restricted.insert(market),
            Mode::Open | Mode::Closed | Mode::Resolved => self.restricted.remove(&market),
        };
    }

    fn add_market(&mut self, ledger: &Ledger, market: MarketNo) {
        let row = ledger.market(market).expect("the ledger applied this record");
        self.note_restriction(market, row.mode);
        self.name_market(row);
        self.markets.push(MarketIndex { levels: Levels::default(), last_trade: None, sequence: 0 });
        self.catalog.add_market(&entry(row), ledger);
    }

    fn name_market(&mut self, row: &MarketRow) {
        let market = row.market;
        self.conditions.insert(row.condition, market);
        // A market without a question has the word that is zero.
        if row.question != Word::ZERO {
            self.questions.entry(row.question).or_default().push(market);
        }
        for (token, outcome) in row.tokens.into_iter().zip([Outcome::Zero, Outcome::One]) {
            self.tokens.insert(token, Token { market, outcome });
        }
    }

    fn place(&mut self, ledger: &Ledger, position: Position, record: &OrderPlaced) {
        for fill in &record.fills {
            self.leave(ledger, fill.maker, fill.shares);
        }
        if !record.open.is_zero() {
            self.touch(record.market, record.outcome, record.fields.side, record.price);
            let levels = &mut self.markets[record.market.index()].levels;
            levels.add(record.outcome, record.fields.side, record.price, record.open);
            self.catalog.set_resting(record.market.0, levels.value());
            self.principals[record.principal.index()].live.insert(position);
        }
        if !record.fills.is_empty() {
            self.add_trade(ledger, position, record);
        }
    }

    /// `shares` of an order are no longer open; if nothing is, it is no longer live.
    fn leave(&mut self, ledger: &Ledger, order: Position, shares: Shares) {
        let row = ledger.order_at(order).expect("the ledger applied this record");
        self.touch(row.market, row.outcome, row.fields.side, row.price);
        let levels = &mut self.markets[row.market.index()].levels;
        levels.take(row.outcome, row.fields.side, row.price, shares);
        self.catalog.set_resting(row.market.0, levels.value());
        if !row.is_live() {
            self.principals[row.principal.index()].live.remove(&order);
        }
    }

    /// Notes a level of `outcome` that is about to change.
    fn touch(&mut self, market: MarketNo, outcome: Outcome, side: Side, price: Price) {
        let (side, price) = (side.seen_from(outcome), seen_from(outcome, price));
        let before = self.markets[market.index()].levels.open_at(side, price);
        self.touched.push(Touched { market, side, price, before });
    }

    /// Counts what the last record did to books, and passes it to `each`, book by book.
    pub(super) fn take_changes(&mut self, mut each: impl FnMut(MarketNo, u64, Box<[LevelChange]>)) {
        let mut touched = std::mem::take(&mut self.touched);
        // A stable sort: of a level touched twice, the first entry has what was there before.
        touched.sort_by_key(|level| (level.market, level.side as u8, level.price));
        touched.dedup_by_key(|level| (level.market, level.side as u8, level.price));
        for of_market in touched.chunk_by(|one, other| one.market == other.market) {
            let market = of_market[0].market;
            let index = &mut self.markets[market.index()];
            let changes = of_market.iter().map(|&Touched { side, price, before, .. }| {
                let now = index.levels.open_at(side, price);
                LevelChange { side, price, before, now }
            });
            let changes: Box<[_]> = changes.filter(|change| change.before != change.now).collect();
            if !changes.is_empty() {
                index.sequence += 1;
                each(market, index.sequence, changes);
            }
        }
        touched.clear();
        self.touched = touched;
    }

    /// Counts an event of a principal and returns its number.
    pub(super) fn count_event(&mut self, principal: WalletNo) -> u64 {
        let events = &mut self.principals[principal.index()].events;
        *events += 1;
        *events
    }

    fn add_trade(&mut self, ledger: &Ledger, position: Position, record: &OrderPlaced) {
        let index = number(self.trades.len());
        let in_taker_terms = |maker: Position, price: Price| {
            let row = ledger.order_at(maker).expect("the ledger applied this fill");
            if row.outcome == record.outcome { price } else { price.complement() }
        };
        let mut weighted = 0_u128;
        let mut last_price = record.price;
        for fill in &record.fills {
            last_price = in_taker_terms(fill.maker, fill.price);
            weighted += u128::from(fill.shares.0) * u128::from(last_price.millionths());
        }
        let side = record.fields.side;
        let shares = record.filled_shares();
        self.catalog.trade(record.market.0, record.time, record.filled_collateral().0);
        let market = &mut self.markets[record.market.index()];
        market.last_trade = Some(LastTrade {
            price: seen_from(record.outcome, last_price),
            side: side.seen_from(record.outcome),
        });
        let makers = record.fills.iter().map(|fill| ledger.order_at(fill.maker));
        let makers = makers.map(|row| row.expect("the ledger applied this fill").principal);
        for principal in makers.chain([record.principal]) {
            let trades = &mut self.principals[principal.index()].trades;
            if trades.last() != Some(&index) {
                trades.push(index);
            }
        }
        let legs = record.fills.iter().map(|fill| Leg { maker: fill.maker, shares: fill.shares });
        self.push_trade(&Trade {
            position,
            time: record.time,
            shares,
            price_millionths: mean_price_millionths(weighted, shares.0.into(), side),
            legs: &legs.collect::<Vec<_>>(),
        });
    }

    fn push_trade(&mut self, trade: &Trade<'_>) {
        self.trades.push(TradeRow {
            position: trade.position,
            time: trade.time,
            shares: trade.shares,
            price_millionths: u32::try_from(trade.price_millionths).expect("a mean price is below one"),
            legs_from: number(self.legs.len()),
        });
        self.legs.extend_from_slice(trade.legs);
    }
}

/// Trades and legs are numbered in 32 bits.
fn number(index: usize) -> u32 {
    u32::try_from(index).expect("four billion trades fit no machine")
}

/// The catalog rebuilt from a state alone. No client can tell it from the followed one.
#[cfg(test)]
pub(super) fn catalog_of(ledger: &Ledger) -> Catalog {
    let mut catalog = Catalog::default();
    for row in ledger.events() {
        catalog.put_event(row.event, ledger);
    }
    for row in ledger.items() {
        catalog.put_item(row.kind, row.item, ledger);
    }
    for row in ledger.markets() {
        catalog.add_market(&entry(row), ledger);
        let mut levels = Levels::default();
        for order in ledger.live_orders(row.market) {
            levels.add(order.outcome, order.fields.side, order.price, order.open);
        }
        catalog.set_resting(row.market.0, levels.value());
    }
    for row in ledger.orders().filter(|row| row.trades.first() == Some(&row.position)) {
        catalog.trade(row.market.0, row.placed, row.taken.0);
    }
    catalog
}

impl Texts for Ledger {
    fn text(&self, source: Source) -> &str {
        match source {
            Source::Event(event) => &self.events()[event as usize].text,
            Source::Market(market) => &self.markets()[market as usize].text,
            Source::Row(item) => &self.items()[item as usize].text,
        }
    }

    fn added(&self, source: Source) -> TimeMs {
        match source {
            Source::Event(event) => self.events()[event as usize].added,
            Source::Market(market) => self.markets()[market as usize].added,
            Source::Row(item) => self.items()[item as usize].added,
        }
    }
}

/// What the catalog needs of a market's row.
fn entry(row: &MarketRow) -> MarketEntry {
    MarketEntry { id: row.market_id, event: row.event, added: row.added, life: row.life() }
}

/// The mean of prices in millionths weighted by shares, rounded against the taker to a millionth: a trade at one
/// price has exactly that price, however its legs were rounded.
fn mean_price_millionths(weighted: u128, shares: u128, taker: Side) -> u64 {
    let mean = match taker {
        Side::Buy => weighted.div_ceil(shares),
        Side::Sell => weighted / shares,
    };
    u64::try_from(mean).expect("a mean price is below one")
}
