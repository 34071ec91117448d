//! The ledger's state as parts of a snapshot: every table, in the order of its keys.
//!
//! What is over is kept like live orders while it is in memory; later an archive has it (`over`).
//! What follows from other tables (the index of digests) is not kept but rebuilt. The sums come last and
//! say how many rows each table has, so that a state which lacks a section is never taken for whole.

use super::Ledger;
use super::rows::{
    ActRow, EventRow, ItemRow, KeyRow, MarketRow, MoneyRow, OrderRow, OrderStamp, OrderState, Signed,
    WalletRow,
};
use crate::domain::{
    ApiKey, BreakerState, Collateral, MarketNo, Mode, OrderId, Position, Shares, TimeMs, WalletNo,
};
use crate::journal::layout::Tombstone;
use crate::memory::sections::{Name, Part, Section, Sink, put_all, take};
use crate::memory::wire::{Damage, Input, Out, Wire, structs};
use std::collections::HashMap;

/// All parts of a ledger. If one changes, the version of snapshots rises.
const PARTS: &[Part<Ledger>] = &[
    Part {
        name: *b"hashes  ",
        put: |ledger, out| ledger.checkpoints.iter().for_each(|checkpoint| out.value(checkpoint)),
        take: |ledger, input| Wire::take(input).map(|checkpoint| ledger.checkpoints.push_back(checkpoint)),
    },
    Part {
        name: *b"wallets ",
        put: |ledger, out| ledger.wallets.iter().for_each(|row| out.value(row)),
        take: |ledger, input| Wire::take(input).map(|row| ledger.wallets.push(row)),
    },
    Part {
        name: *b"keys    ",
        put: |ledger, out| ledger.keys.iter().for_each(|(key, row)| out.value(&(*key, *row))),
        take: |ledger, input| {
            Wire::take(input).map(|(key, row)| {
                ledger.keys.insert(key, row);
            })
        },
    },
    Part {
        name: *b"events  ",
        put: |ledger, out| ledger.events.iter().for_each(|row| out.value(row)),
        take: |ledger, input| Wire::take(input).map(|row| ledger.events.push(row)),
    },
    Part {
        name: *b"items   ",
        put: |ledger, out| ledger.items.iter().for_each(|row| out.value(row)),
        take: |ledger, input| Wire::take(input).map(|row| ledger.items.push(row)),
    },
    Part {
        name: *b"markets ",
        put: |ledger, out| ledger.markets.iter().for_each(|row| out.value(row)),
        take: |ledger, input| Wire::take(input).map(|row| ledger.markets.push(row)),
    },
    Part {
        name: *b"holdings",
        put: |ledger, out| put_sorted(&ledger.holdings, out),
        take: |ledger, input| {
            let (key, shares): ((WalletNo, MarketNo), [Shares; 2]) = Wire::take(input)?;
            ledger.holdings.insert(key, shares);
            Ok(())
        },
    },
    Part {
        name: *b"orders  ",
        put: |ledger, out| ledger.orders.values().for_each(|row| out.value(&**row)),
        take: |ledger, input| {
            let row = Box::new(OrderRow::take(input)?);
            ledger.by_id.insert(row.id, row.position);
            ledger.orders.insert(row.position, row);
            Ok(())
        },
    },
    Part {
        name: *b"acts    ",
        put: |ledger, out| ledger.acts.values().for_each(|row| out.value(row)),
        take: |ledger, input| {
            let row = ActRow::take(input)?;
            ledger.by_id.insert(row.id, row.position);
            ledger.acts.insert(row.position, row);
            Ok(())
        },
    },
    Part {
        name: *b"money   ",
        put: |ledger, out| put_sorted(&ledger.money, out),
        take: |ledger, input| {
            let (reference, row): (String, MoneyRow) = Wire::take(input)?;
            ledger.money.insert(reference, row);
            Ok(())
        },
    },
    Part {
        name: *b"tombs   ",
        put: |ledger, out| put_sorted(&ledger.tombstones.rows, out),
        take: |ledger, input| {
            let (_, row): ((OrderId, WalletNo), Tombstone) = Wire::take(input)?;
            ledger.tombstones.put(row);
            Ok(())
        },
    },
    Part {
        name: *b"places  ",
        put: |ledger, out| ledger.places.iter().for_each(|(order, from)| out.value(&(*order, *from))),
        take: |ledger, input| {
            let (order, from): (Position, Position) = Wire::take(input)?;
            ledger.places.insert(order, from);
            Ok(())
        },
    },
    Part {
        name: *b"switches",
        put: |ledger, out| ledger.switches.iter().for_each(|place| out.value(place)),
        take: |ledger, input| {
            Wire::take(input).map(|place: (WalletNo, ApiKey)| {
                ledger.switches.insert(place);
            })
        },
    },
    Part {
        name: *b"breakers",
        put: |ledger, out| ledger.breakers.iter().for_each(|(place, row)| out.value(&(*place, *row))),
        take: |ledger, input| {
            let (place, row): ((WalletNo, ApiKey), BreakerState) = Wire::take(input)?;
            ledger.breakers.insert(place, row);
            Ok(())
        },
    },
    Part { name: *b"sums    ", put: |ledger, out| out.value(&Sums::of(ledger)), take: take_sums },
];

/// What is not in tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sums {
    exchange_mode: Option<Mode>,
    fees: Collateral,
    credited: u128,
    debited: u128,
    hash: u128,
    end: Position,
    time: TimeMs,
    frames: u64,
    hashes_met: u64,
    orders_ever: u64,
    rows: Rows,
}

/// How many rows each table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rows {
    checkpoints: u64,
    wallets: u64,
    keys: u64,
    events: u64,
    items: u64,
    markets: u64,
    holdings: u64,
    orders: u64,
    acts: u64,
    money: u64,
    tombstones: u64,
    places: u64,
    switches: u64,
    breakers: u64,
}

impl Ledger {
    /// Puts the whole state into `sink`; the same state always gives the same sections.
    pub fn keep(&self, sink: &mut dyn Sink) {
        put_all(self, PARTS, sink);
    }

    /// Takes one section of a state that was kept; false if it is not one of the ledger's. With the last one
    /// it is checked that all of them agree.
    pub fn take_section(&mut self, name: Name, bytes: &[u8]) -> Result<bool, Damage> {
        // The last section says how many frames there were; nothing comes after it.
        if 0 < self.frames && PARTS.iter().any(|part| part.name == name) {
            return Err(Damage::of("order of the sections"));
        }
        take(self, PARTS, name, bytes)
    }
}

impl Sums {
    fn of(ledger: &Ledger) -> Self {
        Self {
            exchange_mode: ledger.exchange_mode,
            fees: ledger.fees,
            credited: ledger.credited,
            debited: ledger.debited,
            hash: ledger.hash,
            end: ledger.end,
            time: ledger.time,
            frames: ledger.frames,
            hashes_met: ledger.hashes_met,
            orders_ever: ledger.orders_ever,
            rows: Rows {
                checkpoints: ledger.checkpoints.len() as u64,
                wallets: ledger.wallets.len() as u64,
                keys: ledger.keys.len() as u64,
                events: ledger.events.len() as u64,
                items: ledger.items.len() as u64,
                markets: ledger.markets.len() as u64,
                holdings: ledger.holdings.len() as u64,
                orders: ledger.orders.len() as u64,
                acts: ledger.acts.len() as u64,
                money: ledger.money.len() as u64,
                tombstones: ledger.tombstones.rows.len() as u64,
                places: ledger.places.len() as u64,
                switches: ledger.switches.len() as u64,
                breakers: ledger.breakers.len() as u64,
            },
        }
    }
}

/// Takes the last part, with which the state must be whole.
fn take_sums(ledger: &mut Ledger, input: &mut Input<'_>) -> Result<(), Damage> {
    let damage = input.damage("rows");
    let sums = Sums::take(input)?;
    ledger.exchange_mode = sums.exchange_mode;
    ledger.fees = sums.fees;
    ledger.credited = sums.credited;
    ledger.debited = sums.debited;
    ledger.hash = sums.hash;
    ledger.end = sums.end;
    ledger.time = sums.time;
    ledger.frames = sums.frames;
    ledger.hashes_met = sums.hashes_met;
    ledger.orders_ever = sums.orders_ever;
    if Sums::of(ledger) != sums {
        return Err(damage);
    }
    ledger.check_whole().map_err(Damage::of)?;
    ledger.conserved().map(drop).map_err(|_| Damage::of("conservation"))
}

/// Puts a table that has no order of its own, sorted by its keys.
fn put_sorted<K: Wire + Clone + Ord, V: Wire + Clone>(table: &HashMap<K, V>, out: &mut Section<'_>) {
    let mut rows: Vec<(&K, &V)> = table.iter().collect();
    rows.sort_unstable_by_key(|(key, _)| *key);
    for (key, row) in rows {
        out.value(&(key.clone(), row.clone()));
    }
}

structs! {
    Sums { exchange_mode, fees, credited, debited, hash, end, time, frames, hashes_met, orders_ever, rows }
    Rows {
        checkpoints, wallets, keys, events, items, markets, holdings, orders, acts, money, tombstones, places,
        switches, breakers
    }
    BreakerState { quantity, interval_ms, tripped }
    WalletRow { wallet, address, kind, principal, cell, frozen }
    KeyRow { generation, active, changed }
    EventRow { event, added, text }
    ItemRow { item, kind, added, text }
    MoneyRow { wallet, direction, amount, position, time }
    OrderStamp { position, id, stamp_ms, principal, market, side, killed, taken, taken_shares }
    ActRow { position, id, wallet, market, shares, collateral, timestamp_ms }
    MarketRow {
        market, event, shard_key, market_id, condition, question, tokens, labels, neg_risk, tick, min_size,
        fee, mode, over, payout, resolved, added, text, backing, shares, book_changed, live
    }
    OrderRow {
        position, id, placed, changed, market, outcome, wallet, principal, owner, fields, expiration_s,
        order_type, post_only, self_trade, price, state, stopped, filled, open, reserved, taken,
        taken_shares, trades
    }
}

/// A byte for the variant, then the reason if it has one.
impl Wire for OrderState {
    fn put(&self, out: &mut impl Out) {
        match self {
            Self::Live => out.bytes(&[0]),
            Self::Filled => out.bytes(&[1]),
            Self::Killed(reject) => (2_u8, *reject).put(out),
            Self::Removed(reason) => (3_u8, *reason).put(out),
        }
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        let damage = input.damage("order state");
        match u8::take(input)? {
            0 => Ok(Self::Live),
            1 => Ok(Self::Filled),
            2 => Wire::take(input).map(Self::Killed),
            3 => Wire::take(input).map(Self::Removed),
            _ => Err(damage),
        }
    }
}

/// The kinds of what is signed, as bytes.
pub(super) const ORDER: u8 = 0;
pub(super) const ACT: u8 = 1;

/// A byte for the kind, then the row.
impl<O: Wire> Wire for Signed<O> {
    fn put(&self, out: &mut impl Out) {
        match self {
            Self::Order(order) => {
                ORDER.put(out);
                order.put(out);
            }
            Self::Act(act) => {
                ACT.put(out);
                act.put(out);
            }
        }
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        let damage = input.damage("kind of a row");
        match u8::take(input)? {
            ORDER => Wire::take(input).map(Self::Order),
            ACT => Wire::take(input).map(Self::Act),
            _ => Err(damage),
        }
    }
}
