//! One 128-bit hash per row: the first half of SHA-256 over a tag and the row's fields.
//!
//! A market has two, of its text and of its state, so that trading never rehashes a description.

use super::Ledger;
use super::rows::{EventRow, ItemRow, KeyRow, MarketRow, MoneyRow, OrderRow, WalletRow};
use crate::domain::{
    ApiKey, BreakerState, Collateral, MarketNo, Mode, Outcome, Position, Shares, WalletNo, Word,
};
use sha2::{Digest, Sha256};

impl Ledger {
    /// The state hash, computed anew from every row, for whoever does not trust the kept one.
    #[must_use]
    pub fn recounted_hash(&self) -> u128 {
        let wallets = self.wallets.iter().map(wallet);
        let keys = self.keys.iter().map(|((principal, nonce), row)| key(*principal, nonce, row));
        let events = self.events.iter().map(event);
        let items = self.items.iter().map(item);
        let texts = self.markets.iter().map(market_text);
        let states = self.markets.iter().map(market_state);
        let held = self.holdings.iter().filter(|(_, shares)| **shares != [Shares::ZERO; 2]);
        let holdings = held.map(|((wallet, market), shares)| holding(*wallet, *market, *shares));
        let orders = self.orders.values().map(|row| order(row));
        let money = self.money.iter().map(|(reference, row)| money(reference, row));
        let places = self.places.iter().map(|(order, from)| place(*order, *from));
        let sums = [fees(self.fees), exchange_mode(self.exchange_mode)];
        let switches = self.switches.iter().map(|(principal, key)| switch(*principal, *key));
        let breakers = self.breakers.iter().map(|((principal, key), row)| breaker(*principal, *key, row));
        let guards = switches.chain(breakers);
        let catalog = wallets.chain(keys).chain(guards).chain(events).chain(items).chain(texts);
        let trading = states.chain(holdings).chain(orders).chain(places).chain(money).chain(sums);
        catalog.chain(trading).fold(0, u128::wrapping_add)
    }
}

/// Hashes a row's fields one after another.
struct RowHash(Sha256);

impl RowHash {
    fn of(tag: u8) -> Self {
        let mut hash = Sha256::new();
        hash.update([tag]);
        Self(hash)
    }

    fn number(mut self, value: u64) -> Self {
        self.0.update(value.to_le_bytes());
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.update(bytes);
        self
    }

    /// A text of any length, as its digest, so that neighbouring texts cannot run into each other.
    fn text(mut self, text: &str) -> Self {
        self.0.update(Sha256::digest(text.as_bytes()));
        self
    }

    fn done(self) -> u128 {
        let digest: [u8; 32] = self.0.finalize().into();
        let half: [u8; 16] = digest[..16].try_into().expect("half of 32 bytes is 16");
        u128::from_le_bytes(half)
    }
}

/// `None` has a number of its own, above every real one.
fn optional(number: Option<u32>) -> u64 {
    number.map_or(u64::MAX, u64::from)
}

pub(super) fn wallet(row: &WalletRow) -> u128 {
    RowHash::of(1)
        .number(u64::from(row.wallet.0))
        .bytes(row.address.as_bytes())
        .number(row.kind as u64)
        .number(optional(row.principal.map(|principal| principal.0)))
        .number(row.cell.0)
        .number(u64::from(row.frozen))
        .done()
}

pub(super) fn key(principal: WalletNo, nonce: &Word, row: &KeyRow) -> u128 {
    RowHash::of(2)
        .number(u64::from(principal.0))
        .bytes(nonce.as_bytes())
        .number(u64::from(row.generation))
        .number(u64::from(row.active))
        .done()
}

pub(super) fn switch(principal: WalletNo, key: ApiKey) -> u128 {
    RowHash::of(13).number(u64::from(principal.0)).bytes(key.as_bytes()).done()
}

pub(super) fn breaker(principal: WalletNo, key: ApiKey, row: &BreakerState) -> u128 {
    RowHash::of(14)
        .number(u64::from(principal.0))
        .bytes(key.as_bytes())
        .number(row.quantity.0)
        .number(row.interval_ms)
        .number(u64::from(row.tripped))
        .done()
}

pub(super) fn event(row: &EventRow) -> u128 {
    RowHash::of(3).number(u64::from(row.event)).text(&row.text).done()
}

/// The part of a market that only its registration and its text change.
pub(super) fn market_text(row: &MarketRow) -> u128 {
    RowHash::of(4)
        .number(u64::from(row.market.0))
        .number(optional(row.event))
        .number(u64::from(row.shard_key))
        .number(row.market_id)
        .bytes(row.condition.as_bytes())
        .bytes(row.question.as_bytes())
        .bytes(row.tokens[0].as_bytes())
        .bytes(row.tokens[1].as_bytes())
        .text(&row.labels[0])
        .text(&row.labels[1])
        .text(&row.text)
        .done()
}

/// The part of a market that trading and the operator change.
pub(super) fn market_state(row: &MarketRow) -> u128 {
    RowHash::of(5)
        .number(u64::from(row.market.0))
        .number(u64::from(row.neg_risk))
        .number(u64::from(row.tick.ten_thousandths()))
        .number(row.min_size.0)
        .number(u64::from(row.fee.rate))
        .number(u64::from(row.fee.exponent))
        .number(u64::from(row.fee.taker_only))
        .number(u64::from(row.fee.builder_share_bps))
        .number(u64::from(row.fee.rebate_rate))
        .number(u64::from(row.fee.version))
        .number(row.mode as u64)
        .number(optional(row.payout.map(|payout| payout.per_share(Outcome::Zero))))
        .number(row.backing.0)
        .number(row.shares[0].0)
        .number(row.shares[1].0)
        .done()
}

pub(super) fn holding(wallet: WalletNo, market: MarketNo, shares: [Shares; 2]) -> u128 {
    RowHash::of(6)
        .number(u64::from(wallet.0))
        .number(u64::from(market.0))
        .number(shares[0].0)
        .number(shares[1].0)
        .done()
}

/// Only live orders count: one that is over has no future.
pub(super) fn order(row: &OrderRow) -> u128 {
    if !row.is_live() {
        return 0;
    }
    RowHash::of(7)
        .number(row.position.0)
        .bytes(row.id.as_bytes())
        .number(row.filled.0)
        .number(row.open.0)
        .number(row.reserved.0)
        .done()
}

/// The place in the queue that an order took over from another.
pub(super) fn place(order: Position, from: Position) -> u128 {
    RowHash::of(12).number(order.0).number(from.0).done()
}

pub(super) fn money(reference: &str, row: &MoneyRow) -> u128 {
    RowHash::of(8)
        .text(reference)
        .number(u64::from(row.wallet.0))
        .number(row.direction as u64)
        .number(row.amount.0)
        .done()
}

pub(super) fn fees(amount: Collateral) -> u128 {
    if amount.is_zero() { 0 } else { RowHash::of(9).number(amount.0).done() }
}

pub(super) fn exchange_mode(mode: Option<Mode>) -> u128 {
    mode.map_or(0, |mode| RowHash::of(10).number(mode as u64).done())
}

pub(super) fn item(row: &ItemRow) -> u128 {
    RowHash::of(11).number(u64::from(row.item)).number(row.kind as u64).text(&row.text).done()
}
