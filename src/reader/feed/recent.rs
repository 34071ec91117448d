//! The last changes of books and the last events of accounts, for clients that reconnect.
//!
//! Every record fills both lists, also during recovery, so a restart forgets only what is older than
//! its snapshot. They are bounded; what has left them is not replayed.

use super::super::index::{Index, Leaving};
use crate::domain::{MarketNo, Position, Price, Shares, Side, TimeMs, WalletNo};
use crate::journal::layout::{OrderPlaced, PlacedResult, Record};
use crate::ledger::{Ledger, OrderRow, OrderState};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Changes of books that are kept: 10 MiB with two levels each.
const CHANGES_MAX: usize = 1 << 16;
/// Events of accounts that are kept: 5 MiB.
const EVENTS_MAX: usize = 1 << 16;

const _: () = assert!(
    CHANGES_MAX * (size_of::<BookChange>() + 2 * size_of::<LevelChange>()) <= 10 << 20
        && EVENTS_MAX * size_of::<Event>() <= 5 << 20
);

/// What one record did to one book.
#[derive(Clone, Debug)]
pub(super) struct BookChange {
    pub(super) market: MarketNo,
    /// The market's sequence after it.
    pub(super) sequence: u64,
    pub(super) time: TimeMs,
    pub(super) levels: Box<[LevelChange]>,
}

/// A level in terms of token 0, before and after a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reader) struct LevelChange {
    pub(in crate::reader) side: Side,
    pub(in crate::reader) price: Price,
    pub(in crate::reader) before: Shares,
    pub(in crate::reader) now: Shares,
}

/// Something that happened to an account.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) principal: WalletNo,
    /// The principal's sequence after it.
    pub(super) sequence: u64,
    pub(super) time: TimeMs,
    pub(super) what: What,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// To an order, and how it stood right after that.
    Order { order: Position, stand: Stand },
    /// The principal took part in the trade of this taker, or that trade is final.
    Trade { taker: Position, is_final: bool },
}

/// How an order stood right after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stand {
    pub(super) step: Step,
    pub(super) filled: Shares,
    /// How many trades it had by then.
    pub(super) trades: usize,
    pub(super) state: OrderState,
}

/// What an order's event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Placed,
    Filled,
    Ended,
}

/// The lists, and how many entries were ever added.
#[derive(Clone, Debug, Default)]
pub(in crate::reader) struct Recent {
    changes: VecDeque<BookChange>,
    events: VecDeque<Event>,
    changes_ever: u64,
    events_ever: u64,
}

impl Recent {
    /// Follows a record that `ledger` and `index` have just applied.
    pub(in crate::reader) fn follow(
        &mut self,
        ledger: &Ledger,
        index: &mut Index,
        start: Position,
        record: &Record,
        leaving: &[Leaving],
    ) {
        let time = record.time();
        // Before the record and not after it: the feed must still find everything that this record did.
        trim(&mut self.changes, CHANGES_MAX);
        trim(&mut self.events, EVENTS_MAX);
        index.take_changes(|market, sequence, levels| {
            self.changes.push_back(BookChange { market, sequence, time, levels });
            self.changes_ever += 1;
        });
        each_event(ledger, start, record, leaving, |principal, what| {
            let sequence = index.count_event(principal);
            self.events.push_back(Event { principal, sequence, time, what });
            self.events_ever += 1;
        });
    }

    /// How many changes and events there ever were.
    pub(super) const fn ever(&self) -> (u64, u64) {
        (self.changes_ever, self.events_ever)
    }

    /// The changes after the first `ever`.
    pub(super) fn changes_after(&self, ever: u64) -> impl Iterator<Item = &BookChange> {
        newest(&self.changes, self.changes_ever - ever)
    }

    /// The events after the first `ever`.
    pub(super) fn events_after(&self, ever: u64) -> impl Iterator<Item = &Event> {
        newest(&self.events, self.events_ever - ever)
    }

    /// The changes of each market after its number in `since`, oldest first, by one pass over the list back to the
    /// oldest of them, however many markets there are. `now` is a market's number, which is not behind that in
    /// `since`. What has left the list is missing.
    pub(super) fn changes_since(
        &self,
        since: &BTreeMap<MarketNo, u64>,
        now: impl Fn(MarketNo) -> u64,
    ) -> BTreeMap<MarketNo, Vec<&BookChange>> {
        let mut found: BTreeMap<MarketNo, Vec<_>> =
            since.keys().map(|market| (*market, Vec::new())).collect();
        let mut missing: u64 = since.iter().map(|(market, since)| now(*market) - since).sum();
        for change in self.changes.iter().rev() {
            if missing == 0 {
                break;
            }
            if since.get(&change.market).is_some_and(|since| *since < change.sequence) {
                found.entry(change.market).or_default().push(change);
                missing -= 1;
            }
        }
        for changes in found.values_mut() {
            changes.reverse();
        }
        found
    }

    /// The events of a principal after `sequence`, oldest first; none if some of them were dropped.
    pub(super) fn events_from(&self, principal: WalletNo, sequence: u64, now: u64) -> Option<Vec<&Event>> {
        let of_principal = self.events.iter().rev().filter(|event| event.principal == principal);
        let mut found: Vec<_> = of_principal.take_while(|event| sequence < event.sequence).collect();
        found.reverse();
        (found.len() as u64 == now.checked_sub(sequence)?).then_some(found)
    }
}

fn trim<T>(list: &mut VecDeque<T>, max: usize) {
    list.drain(..list.len().saturating_sub(max));
}

fn newest<T>(list: &VecDeque<T>, count: u64) -> impl Iterator<Item = &T> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    list.range(list.len().saturating_sub(count)..)
}

/// What a record means to the accounts that it concerns, in the order of their events: the orders that
/// it removed, the order that came, the makers that it met, the trade, and the ends of what was left of both.
fn each_event(
    ledger: &Ledger,
    start: Position,
    record: &Record,
    leaving: &[Leaving],
    mut each: impl FnMut(WalletNo, What),
) {
    let row = |order: Position| ledger.order_at(order).expect("what a record names is in memory");
    let ends = |after_fill: bool| {
        let gone = leaving.iter().filter(move |gone| gone.after_fill == after_fill);
        gone.map(|gone| row(gone.order))
    };
    for row in ends(false) {
        each(row.principal, order(row, Step::Ended));
    }
    if let Record::OrdersReplaced(record) = record {
        for (position, _) in record.each_placed(start) {
            let row = row(position);
            each(row.principal, order(row, Step::Placed));
        }
    }
    let Record::OrderPlaced(record) = record else {
        return;
    };
    let taker = row(start);
    let lived = !matches!(record.result, PlacedResult::Killed(_));
    if lived {
        each(taker.principal, order(taker, Step::Placed));
    }
    for fill in &record.fills {
        let maker = row(fill.maker);
        each(maker.principal, order(maker, Step::Filled));
    }
    if !record.fills.is_empty() {
        each_party(ledger, record, |principal| {
            // Some clients act on the first event, others wait for the second.
            for is_final in [false, true] {
                each(principal, What::Trade { taker: start, is_final });
            }
        });
    }
    for row in ends(true) {
        each(row.principal, order(row, Step::Ended));
    }
    // Nothing of the order rests, and not all of it was filled.
    if !lived || record.stopped.is_some() {
        each(taker.principal, order(taker, Step::Ended));
    }
}

fn order(row: &OrderRow, step: Step) -> What {
    let stand = Stand { step, filled: row.filled, trades: row.trades.len(), state: row.state };
    What::Order { order: row.position, stand }
}

/// Every principal that took part in an order's trade, each once.
fn each_party(ledger: &Ledger, record: &OrderPlaced, mut each: impl FnMut(WalletNo)) {
    let mut told = BTreeSet::new();
    let makers = record.fills.iter().map(|fill| ledger.order_at(fill.maker));
    let makers = makers.map(|row| row.expect("the ledger applied this fill").principal);
    for principal in std::iter::once(record.principal).chain(makers) {
        if told.insert(principal) {
            each(principal);
        }
    }
}
