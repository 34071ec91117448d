//! Events, items and markets as they come, and their texts.

use super::apply::{Applied, contradiction, require};
use super::rows::{EventRow, ItemRow, MarketRow};
use super::{Ledger, hash};
use crate::domain::{Collateral, Shares};
use crate::journal::layout::{EventText, ItemText, MarketAdded, MarketText};

impl Ledger {
    pub(super) fn put_event(&mut self, record: &EventText) -> Applied {
        let index = record.event as usize;
        require(index <= self.events.len(), "event numbers are not dense")?;
        let added = self.events.get(index).map_or(record.time, |old| old.added);
        let row = EventRow { event: record.event, added, text: record.text.clone() };
        self.hash = self.hash.wrapping_add(hash::event(&row));
        if index == self.events.len() {
            self.events.push(row);
        } else {
            let old = std::mem::replace(&mut self.events[index], row);
            self.hash = self.hash.wrapping_sub(hash::event(&old));
        }
        Ok(())
    }

    pub(super) fn put_item(&mut self, record: &ItemText) -> Applied {
        let index = record.item as usize;
        require(index <= self.items.len(), "item numbers are not dense")?;
        let old = self.items.get(index);
        require(old.is_none_or(|old| old.kind == record.kind), "an item became one of another kind")?;
        let added = old.map_or(record.time, |old| old.added);
        let row = ItemRow { item: record.item, kind: record.kind, added, text: record.text.clone() };
        self.hash = self.hash.wrapping_add(hash::item(&row));
        if index == self.items.len() {
            self.items.push(row);
        } else {
            let old = std::mem::replace(&mut self.items[index], row);
            self.hash = self.hash.wrapping_sub(hash::item(&old));
        }
        Ok(())
    }

    pub(super) fn add_market(&mut self, record: &MarketAdded) -> Applied {
        require(record.market.index() == self.markets.len(), "market numbers are not dense")?;
        let [label_0, label_1] = record.labels.as_slice() else {
            return Err(contradiction("a market has two labels"));
        };
        self.require_event(record.event)?;
        let mut row = MarketRow {
            market: record.market,
            event: record.event,
            shard_key: record.shard_key,
            market_id: record.market_id,
            condition: record.condition,
            question: record.question,
            tokens: record.tokens,
            labels: [label_0.clone(), label_1.clone()],
            neg_risk: record.neg_risk,
            tick: record.tick,
            min_size: record.min_size,
            fee: record.fee,
            mode: record.mode,
            over: None,
            payout: record.payout,
            resolved: record.payout.map(|_| record.time),
            added: record.time,
            text: record.text.clone(),
            backing: Collateral::ZERO,
            shares: [Shares::ZERO; 2],
            book_changed: record.time,
            live: std::collections::BTreeSet::new(),
        };
        row.set_mode(record.mode, record.time);
        self.hash = self.hash.wrapping_add(hash::market_text(&row)).wrapping_add(hash::market_state(&row));
        self.markets.push(row);
        Ok(())
    }

    fn require_event(&self, event: Option<u32>) -> Applied {
        let is_there = event.is_none_or(|event| (event as usize) < self.events.len());
        require(is_there, "a market names no event")
    }

    pub(super) fn put_market_text(&mut self, record: &MarketText) -> Applied {
        self.require_event(record.event)?;
        let row =
            self.markets.get_mut(record.market.index()).ok_or(contradiction("a text names no market"))?;
        let before = hash::market_text(row);
        row.event = record.event;
        row.set_text(record.text.clone(), record.time);
        self.hash = self.hash.wrapping_sub(before).wrapping_add(hash::market_text(row));
        Ok(())
    }
}
