//! Events and markets: rows of an import, or made by the operator.
//!
//! Names that a row does not bring are made here, from bytes of this start and the market's number. A backup that is put
//! in the directory's place gives numbers again, and with them numeric ids, but to no other market the condition and the
//! tokens that clients signed for:
//!
//! | name | made as |
//! |---|---|
//! | question id | keccak(random bytes of this start, 16 \| market number, 4 bytes big-endian) |
//! | condition id | keccak(question id \| 0x02), 2 being the number of outcomes |
//! | token i | keccak(condition id \| i), one byte |
//! | numeric id | the next free one from 1,000,000,000 |
//!
//! An imported row without tokens gets some and is closed: it is in the catalog, but does not trade.

use super::{Refusal, Registrar};
use crate::auth::keccak;
use crate::catalog::{EVENT_KEY_BYTES_MAX, LABEL_BYTES_MAX, TEXT_BYTES_MAX, event_key};
use crate::domain::amount::ORDER_AMOUNT_MAX;
use crate::domain::fee::{BUILDER_SHARE_BPS_MAX, RATE_ONE};
use crate::domain::{
    ConditionId, FeeSchedule, ItemKind, MarketNo, Mode, Payout, Shares, Tick, TimeMs, TokenId, Word,
};
use crate::journal::PAYLOAD_BYTES_MAX;
use crate::journal::layout::{EventText, ItemText, MarketAdded, MarketText};
use crate::ledger::Ledger;
use crate::registry::MarketFacts;

/// Numeric ids that the exchange gives start here, above all ids of the venues.
pub(super) const OWN_MARKET_IDS_FROM: u64 = 1_000_000_000;

/// What a row's other fields take at most.
const ROW_BYTES_MAX: usize = 512;

const _: () = assert!(TEXT_BYTES_MAX + 2 * LABEL_BYTES_MAX + ROW_BYTES_MAX <= PAYLOAD_BYTES_MAX);

/// The most events; their numbers stay far below 32 bits.
const EVENTS_MAX: u32 = 1 << 24;

/// The number of outcomes, as it goes into a condition's id.
const OUTCOMES: u8 = 2;

/// A market to add. Whoever read its labels, smallest order and fees has bounded them.
#[derive(Clone, Copy, Debug)]
pub struct NewMarket<'a> {
    /// The number of the event that holds it.
    pub event: Option<u32>,
    /// Its numeric id, if it brings one.
    pub market_id: Option<u64>,
    /// Its condition, if it brings one.
    pub condition: Option<ConditionId>,
    /// Its question, if it brings one.
    pub question: Option<Word>,
    /// Its tokens, if it brings any.
    pub tokens: Option<[TokenId; 2]>,
    /// The labels of its outcomes.
    pub labels: [&'a str; 2],
    /// True if its orders are signed in the neg-risk domain.
    pub neg_risk: bool,
    /// The price step.
    pub tick: Tick,
    /// The smallest order that may rest.
    pub min_size: Shares,
    /// Its fees.
    pub fee: FeeSchedule,
    /// Its mode.
    pub mode: Mode,
    /// Its payout, if it comes resolved, and only then.
    pub payout: Option<Payout>,
    /// Its JSON.
    pub text: &'a str,
}

impl NewMarket<'_> {
    /// An imported row without tokens: the exchange gives it some, but nobody signs for them.
    const fn is_for_show(&self) -> bool {
        self.condition.is_some() && self.tokens.is_none() && self.payout.is_none()
    }

    /// What readers of files, requests and settings have seen to.
    fn assert_read(&self) {
        let label_bytes = 1..=LABEL_BYTES_MAX;
        assert!(self.labels.iter().all(|label| label_bytes.contains(&label.len())), "labels are bounded");
        assert!(self.min_size.0 <= ORDER_AMOUNT_MAX, "the smallest order is no larger than the largest");
        assert!(can_be_charged(&self.fee), "fees are such as can be charged");
        assert!(self.payout.is_some() == (self.mode == Mode::Resolved), "resolved is what has a payout");
    }
}

/// What a market is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketNames {
    /// The numeric id.
    pub market_id: u64,
    /// The question.
    pub question: Word,
    /// The condition.
    pub condition: ConditionId,
    /// The two tokens.
    pub tokens: [TokenId; 2],
}

impl Registrar {
    /// What the next market would be called if it brought no names, so that its text can say so.
    #[must_use]
    pub fn next_market_names(&self) -> MarketNames {
        let number = self.registry().market_count().to_be_bytes();
        let question = keccak(&[&self.identity.start[..], &number[..]].concat());
        let condition = condition_of(&question);
        MarketNames { market_id: self.next_market_id, question, condition, tokens: tokens_of(&condition) }
    }

    /// The number of the event with this id.
    #[must_use]
    pub fn event(&self, key: &str) -> Option<u32> {
        self.events.get(key).copied()
    }

    /// Adds an event and returns its number; an event that is known keeps its number and its text.
    /// Its text is JSON that names `key`, 1 to 64 bytes, as its id.
    pub fn add_event(&mut self, now: TimeMs, key: &str, text: &str) -> Result<u32, Refusal> {
        if let Some(number) = self.event(key) {
            return Ok(number);
        }
        assert_key(key);
        may_be_text(text)?;
        if self.event_count == EVENTS_MAX {
            return Err(Refusal::EventsFull);
        }
        self.room_for_bulk()?;
        // From here on nothing fails.
        let event = self.event_count;
        self.put_event(now, event, text);
        self.event_count += 1;
        self.events.insert(key.to_owned(), event);
        Ok(event)
    }

    /// Replaces an event's text. The caller, which has both texts, has decided that this is the newer.
    pub fn update_event(&mut self, now: TimeMs, event: u32, text: &str) -> Result<(), Refusal> {
        if self.event_count <= event {
            return Err(Refusal::EventUnknown);
        }
        may_be_text(text)?;
        self.room_for_bulk()?;
        self.put_event(now, event, text);
        Ok(())
    }

    /// Adds a tag, series or creator, or replaces the text of the one with this id. The caller, which
    /// has both texts, has decided that this is the newer. It is JSON that names `key`, 1 to 64 bytes, as its id.
    pub fn put_item(&mut self, now: TimeMs, kind: ItemKind, key: &str, text: &str) -> Result<(), Refusal> {
        assert_key(key);
        may_be_text(text)?;
        let known = self.items.get(&(kind, key.to_owned())).copied();
        if known.is_none() && self.item_count == EVENTS_MAX {
            return Err(Refusal::EventsFull);
        }
        self.room_for_bulk()?;
        // From here on nothing fails.
        let item = known.unwrap_or(self.item_count);
        let time = self.at(now);
        self.append(&ItemText { time, kind, item, text: text.to_owned() }.into());
        if known.is_none() {
            self.item_count += 1;
            self.items.insert((kind, key.to_owned()), item);
        }
        Ok(())
    }

    /// Adds a market.
    pub fn add_market(&mut self, now: TimeMs, market: &NewMarket<'_>) -> Result<MarketNo, Refusal> {
        let names = self.names_of(market);
        self.may_add(market, &names)?;
        self.room_for_bulk()?;
        // From here on nothing fails.
        let number = MarketNo(self.registry().market_count());
        let facts = MarketFacts {
            condition: names.condition,
            tokens: names.tokens,
            market_id: names.market_id,
            question_id: names.question,
            neg_risk: market.neg_risk,
            min_size: market.min_size,
            fee: market.fee,
            shard_key: market.event.unwrap_or(number.0),
            tick: market.tick,
            mode: if market.is_for_show() { Mode::Closed } else { market.mode },
            payout: market.payout,
        };
        let time = self.at(now);
        self.append(&added(time, number, market, &facts).into());
        let published = self.writer.add_market(&facts).expect("room was seen");
        assert!(published == number, "one writer numbers the markets");
        self.next_market_id = next_id_after(self.next_market_id, names.market_id);
        Ok(number)
    }

    /// Replaces a market's text and event. Its book, tick, tokens and shard stay.
    pub fn update_market(
        &mut self,
        now: TimeMs,
        market: MarketNo,
        event: Option<u32>,
        text: &str,
    ) -> Result<(), Refusal> {
        if self.registry().market_count() <= market.0 {
            return Err(Refusal::MarketUnknown);
        }
        if event.is_some_and(|event| self.event_count <= event) {
            return Err(Refusal::EventUnknown);
        }
        may_be_text(text)?;
        self.room_for_bulk()?;
        let time = self.at(now);
        self.append(&MarketText { time, market, event, text: text.to_owned() }.into());
        Ok(())
    }

    /// Restores events, items and ids from a ledger.
    pub(super) fn remember_markets(&mut self, ledger: &Ledger) {
        for row in ledger.events() {
            let key = event_key(&row.text);
            self.event_count = row.event + 1;
            if let Some(key) = key {
                self.events.insert(key, row.event);
            }
        }
        for row in ledger.items() {
            self.item_count = row.item + 1;
            if let Some(key) = event_key(&row.text) {
                self.items.insert((row.kind, key), row.item);
            }
        }
        for row in ledger.markets() {
            self.next_market_id = next_id_after(self.next_market_id, row.market_id);
        }
    }

    /// The names that a market brings, with those it lacks made here.
    fn names_of(&self, market: &NewMarket<'_>) -> MarketNames {
        let own = self.next_market_names();
        let question = market.question.unwrap_or(own.question);
        let condition = market.condition.unwrap_or_else(|| condition_of(&question));
        MarketNames {
            market_id: market.market_id.unwrap_or(own.market_id),
            question,
            condition,
            tokens: market.tokens.unwrap_or_else(|| tokens_of(&condition)),
        }
    }

    fn may_add(&self, market: &NewMarket<'_>, names: &MarketNames) -> Result<(), Refusal> {
        market.assert_read();
        let registry = self.registry();
        if market.event.is_some_and(|event| self.event_count <= event) {
            return Err(Refusal::EventUnknown);
        }
        may_be_text(market.text)?;
        if registry.condition(&names.condition).is_some() {
            return Err(Refusal::ConditionTaken);
        }
        let taken = names.tokens.iter().any(|token| registry.token(token).is_some());
        if taken || names.tokens[0] == names.tokens[1] {
            return Err(Refusal::TokenTaken);
        }
        if registry.market_by_id(names.market_id).is_some() {
            return Err(Refusal::MarketIdTaken);
        }
        if self.writer.markets_free() == 0 { Err(Refusal::MarketsFull) } else { Ok(()) }
    }

    fn put_event(&mut self, now: TimeMs, event: u32, text: &str) {
        let time = self.at(now);
        self.append(&EventText { time, event, text: text.to_owned() }.into());
    }
}

fn added(time: TimeMs, number: MarketNo, market: &NewMarket<'_>, facts: &MarketFacts) -> MarketAdded {
    MarketAdded {
        time,
        market: number,
        event: market.event,
        shard_key: facts.shard_key,
        market_id: facts.market_id,
        condition: facts.condition,
        question: facts.question_id,
        tokens: facts.tokens,
        labels: market.labels.map(str::to_owned).to_vec(),
        neg_risk: facts.neg_risk,
        tick: facts.tick,
        min_size: facts.min_size,
        fee: facts.fee,
        mode: facts.mode,
        payout: facts.payout,
        text: market.text.to_owned(),
    }
}

fn condition_of(question: &Word) -> ConditionId {
    ConditionId(keccak(&[&question.0[..], &[OUTCOMES]].concat()).0)
}

fn tokens_of(condition: &ConditionId) -> [TokenId; 2] {
    [0, 1].map(|index: u8| TokenId(keccak(&[&condition.0[..], &[index]].concat()).0))
}

/// The exchange's own ids go up from the highest in use; a venue's are below all of them.
fn next_id_after(next: u64, used: u64) -> u64 {
    next.max(used.saturating_add(1))
}

/// The id of an event or item that was read is bounded.
fn assert_key(key: &str) {
    assert!((1..=EVENT_KEY_BYTES_MAX).contains(&key.len()), "ids are bounded where they are read");
}

fn may_be_text(text: &str) -> Result<(), Refusal> {
    if text.len() <= TEXT_BYTES_MAX { Ok(()) } else { Err(Refusal::TextTooLong) }
}

fn can_be_charged(fee: &FeeSchedule) -> bool {
    fee.rate <= RATE_ONE && (1..=2).contains(&fee.exponent) && fee.builder_share_bps <= BUILDER_SHARE_BPS_MAX
}
