//! What an imported row changes in an exchange that may know it already.

use super::TEXT_BYTES_MAX;
use super::event::{ImportedEvent, updated};
use super::fields::Fields;
use super::market::ImportedMarket;
use super::{Moment, Refused};
use crate::domain::{FeeSchedule, Mode, Shares, Tick, TokenId};

/// What an imported event changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventStep {
    /// It is new.
    Add,
    /// Its text is now this.
    Update(String),
    /// Nothing.
    Keep,
}

/// What `event` changes, given the text that the exchange has of it: of two texts the newer leads,
/// of two of the same instant the one that comes now, and what only the other has stays behind it.
#[must_use]
pub fn event_step(known: Option<&str>, event: &ImportedEvent) -> EventStep {
    let Some(known) = known else {
        return EventStep::Add;
    };
    let (Some(old), Some(new)) = (Fields::parse(known), Fields::parse(&event.text)) else {
        return EventStep::Update(event.text.clone());
    };
    let text = if event.updated < updated(&old) {
        old.with_rest_of(&new)
    } else if old.says_all_of(&new) {
        return EventStep::Keep;
    } else {
        new.with_rest_of(&old)
    };
    if text == known || text.len() > TEXT_BYTES_MAX { EventStep::Keep } else { EventStep::Update(text) }
}

/// What the exchange knows of a market.
#[derive(Clone, Copy, Debug)]
pub struct KnownMarket<'a> {
    /// Its JSON.
    pub text: &'a str,
    /// The registry number of the event that holds it.
    pub event: Option<u32>,
    /// Its tokens.
    pub tokens: [TokenId; 2],
    /// Its price step.
    pub tick: Tick,
    /// Its smallest resting order.
    pub min_size: Shares,
    /// What it charges.
    pub fee: FeeSchedule,
    /// What it takes.
    pub mode: Mode,
}

/// What an imported market changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarketStep {
    /// It is new.
    Add,
    /// Its text, its event or its mode changes.
    Update {
        /// The new text, if it differs.
        text: Option<String>,
        /// The event's number, if it had none or another.
        event: Option<u32>,
        /// Closed, if the row says so and the market is not.
        mode: Option<Mode>,
        /// What the row says and a live market does not take.
        kept: Vec<Refused>,
    },
    /// Nothing.
    Keep,
    /// Nothing: the exchange has a newer text.
    Older,
}

/// What `market` changes, given what the exchange has of it. `event` is the registry number of
/// the event that the row names.
#[must_use]
pub fn market_step(
    known: Option<&KnownMarket<'_>>,
    market: &ImportedMarket,
    event: Option<u32>,
) -> MarketStep {
    let Some(known) = known else {
        return MarketStep::Add;
    };
    let known_updated = Fields::parse(known.text).map_or(Moment::default(), |fields| updated(&fields));
    if market.updated < known_updated {
        return MarketStep::Older;
    }
    let text = (market.text != known.text).then(|| market.text.clone());
    let event = event.filter(|event| known.event != Some(*event));
    let closes = matches!(market.mode, Mode::Closed | Mode::Resolved);
    let mode = (closes && text.is_some() && !matches!(known.mode, Mode::Closed | Mode::Resolved))
        .then_some(Mode::Closed);
    if text.is_none() && event.is_none() {
        return MarketStep::Keep;
    }
    MarketStep::Update { text, event, mode, kept: kept(known, market) }
}

/// What a re-import never touches, where the row says something else.
fn kept(known: &KnownMarket<'_>, market: &ImportedMarket) -> Vec<Refused> {
    let row = market.row();
    let mut kept = Vec::new();
    let mut keep = |differs: bool, field, got: String, allowed| {
        if differs {
            kept.push(Refused::new(&row, field, &got, allowed));
        }
    };
    let tokens_differ = market.tokens.is_some_and(|tokens| tokens != known.tokens);
    keep(
        tokens_differ,
        "clobTokenIds",
        "other tokens".to_owned(),
        "the tokens of the live market, which stay",
    );
    let tick = format!("{}/10000", market.tick.ten_thousandths());
    keep(
        market.tick != known.tick,
        "orderPriceMinTickSize",
        tick,
        "the tick of the live market, which stays; see market tick",
    );
    let size = format!("{} millionths", market.min_size.0);
    keep(market.min_size != known.min_size, "orderMinSize", size, "the size of the live market, which stays");
    let fee = FeeSchedule { version: known.fee.version, ..market.fee };
    keep(
        fee != known.fee,
        "feeSchedule",
        format!("rate {} millionths", fee.rate),
        "the fee of the live market, which stays",
    );
    let resolves = market.mode == Mode::Resolved && known.mode != Mode::Resolved;
    keep(resolves, "outcomePrices", "a result".to_owned(), "the operator's word: market resolve");
    kept
}
