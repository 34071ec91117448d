//! Whole files: every row is taken or refused by name, and what is said twice is merged.

use std::collections::HashMap;

use super::event::ImportedEvent;
use super::fields::{self, Fields};
use super::file::{self, FileFault};
use super::market::{ImportedMarket, MarketDefaults};
use super::{GOT_BYTES_MAX, Refused};
use crate::domain::{ConditionId, TokenId};

/// Everything that was read, each event and each market once.
#[derive(Clone, Debug, Default)]
pub struct Import {
    events: Vec<ImportedEvent>,
    markets: Vec<ImportedMarket>,
    refused: Vec<Refused>,
    repeated: usize,
    event_index: HashMap<String, usize>,
    market_index: HashMap<ConditionId, usize>,
    tokens: HashMap<TokenId, ConditionId>,
    ids: HashMap<u64, ConditionId>,
}

impl Import {
    /// Reads one file's bytes.
    pub fn read(bytes: &[u8], defaults: &MarketDefaults) -> Result<Self, FileFault> {
        let mut import = Self::default();
        import.add_file(bytes, defaults)?;
        Ok(import)
    }

    /// Reads one more file into the same import; after a fault nothing of it was taken.
    pub fn add_file(&mut self, bytes: &[u8], defaults: &MarketDefaults) -> Result<(), FileFault> {
        let text = file::text(bytes)?;
        if let Some(why) = fields::fault(&text) {
            return Err(FileFault::NotJson(why));
        }
        if let Some(rows) = fields::items(&text) {
            for (index, row) in rows.into_iter().enumerate() {
                self.add_row(row, &format!("row {}", index + 1), defaults);
            }
            return Ok(());
        }
        if Fields::parse(&text).is_none() {
            return Err(FileFault::NotRows);
        }
        self.add_row(&text, "row 1", defaults);
        Ok(())
    }

    /// Every event, in the order in which they were first named.
    #[must_use]
    pub fn events(&self) -> &[ImportedEvent] {
        &self.events
    }

    /// Every market, in the order in which they were first named.
    #[must_use]
    pub fn markets(&self) -> &[ImportedMarket] {
        &self.markets
    }

    /// Every row that could not be taken, and why.
    #[must_use]
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// Markets that were said again; of each the newer text was kept.
    #[must_use]
    pub const fn repeated(&self) -> usize {
        self.repeated
    }

    /// A row is an event if it holds markets or has no condition but a title; else a market.
    fn add_row(&mut self, raw: &str, row: &str, defaults: &MarketDefaults) {
        let Some(row_fields) = Fields::parse(raw) else {
            let got = raw.get(..GOT_BYTES_MAX).unwrap_or(raw);
            self.refused.push(Refused::new(row, "row", got, "an event or market object"));
            return;
        };
        let is_market = ["conditionId", "clobTokenIds", "question"].iter().any(|name| row_fields.has(name));
        if row_fields.has("markets") || (!is_market && row_fields.has("title")) {
            self.add_event(&row_fields, row, defaults);
        } else {
            self.add_market_of_array(&row_fields, row, defaults);
        }
    }

    fn add_event(&mut self, fields: &Fields<'_>, row: &str, defaults: &MarketDefaults) {
        let key = self.keep_event(fields, row);
        let Some(raw) = fields.raw("markets") else {
            return;
        };
        let row = key.as_ref().map_or_else(|| row.to_owned(), |key| format!("event {key}"));
        let Some(markets) = fields::items(raw) else {
            self.refused.push(Refused::new(&row, "markets", raw, "an array of market objects"));
            return;
        };
        for (index, market) in markets.into_iter().enumerate() {
            let row = format!("{row}, market {}", index + 1);
            match Fields::parse(market) {
                Some(fields) => self.add_market(&fields, &row, key.clone(), defaults),
                None => self.refused.push(Refused::new(&row, "row", market, "a market object")),
            }
        }
    }

    /// A market of an array carries the event that holds it; of several the first counts.
    fn add_market_of_array(&mut self, fields: &Fields<'_>, row: &str, defaults: &MarketDefaults) {
        let mut key = None;
        for event in fields.raw("events").and_then(fields::items).unwrap_or_default() {
            if let Some(event) = Fields::parse(event) {
                let kept = self.keep_event(&event, row);
                key = key.or(kept);
            }
        }
        self.add_market(fields, row, key, defaults);
    }

    fn keep_event(&mut self, fields: &Fields<'_>, row: &str) -> Option<String> {
        let event = match ImportedEvent::read(fields, row) {
            Ok(event) => event,
            Err(refused) => {
                self.refused.push(refused);
                return None;
            }
        };
        let key = event.key.clone();
        if let Some(&index) = self.event_index.get(&key) {
            self.events[index].absorb(&event);
        } else {
            self.event_index.insert(key.clone(), self.events.len());
            self.events.push(event);
        }
        Some(key)
    }

    fn add_market(
        &mut self,
        fields: &Fields<'_>,
        row: &str,
        event: Option<String>,
        defaults: &MarketDefaults,
    ) {
        match ImportedMarket::read(fields, row, event, defaults).and_then(|market| self.clash(market)) {
            Ok(market) => self.keep_market(market),
            Err(refused) => self.refused.push(refused),
        }
    }

    /// Two conditions of one import never share a token or an id.
    fn clash(&self, market: ImportedMarket) -> Result<ImportedMarket, Refused> {
        let other = |held: Option<&ConditionId>| held.is_some_and(|held| *held != market.condition);
        if market.tokens.iter().flatten().any(|token| other(self.tokens.get(token))) {
            return Err(Refused::new(
                &market.row(),
                "clobTokenIds",
                "a token of another market",
                "tokens of its own",
            ));
        }
        if market.market_id.is_some_and(|id| other(self.ids.get(&id))) {
            return Err(Refused::new(&market.row(), "id", "the id of another market", "an id of its own"));
        }
        Ok(market)
    }

    fn keep_market(&mut self, mut market: ImportedMarket) {
        for token in market.tokens.iter().flatten() {
            self.tokens.insert(*token, market.condition);
        }
        if let Some(id) = market.market_id {
            self.ids.insert(id, market.condition);
        }
        let Some(&index) = self.market_index.get(&market.condition) else {
            self.market_index.insert(market.condition, self.markets.len());
            self.markets.push(market);
            return;
        };
        self.repeated += 1;
        let kept = &mut self.markets[index];
        let rank = |market: &ImportedMarket| (market.updated, market.text.len(), market.text.clone());
        if rank(&market) > rank(kept) {
            market.event = market.event.take().or_else(|| kept.event.take());
            *kept = market;
        } else if kept.event.is_none() {
            kept.event = market.event;
        }
    }
}
