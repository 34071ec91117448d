//! What an imported row changes in an exchange that may know it already.

use super::TEXT_BYTES_MAX;
use super::event::updated;
use super::fields::Fields;
use super::market::ImportedMarket;
use super::{Moment, Refused};
use crate::domain::{FeeSchedule, Mode, Payout, Shares, Tick, TokenId};

/// What the text of an imported event or item changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextStep {
    /// It is new.
    Add,
    /// Its text is now this.
    Update(String),
    /// Nothing.
    Keep,
}

/// What `text` of the instant `updated` changes, given the text that the exchange has: of two texts
/// the newer leads, of two of the same instant the one that comes now, and what only the other has
/// stays behind it.
#[must_use]
pub fn text_step(known: Option<&str>, at: Moment, text: &str) -> TextStep {
    let Some(known) = known else {
        return TextStep::Add;
    };
    let (Some(old), Some(new)) = (Fields::parse(known), Fields::parse(text)) else {
        return TextStep::Update(text.to_owned());
    };
    let text = if at < updated(&old) {
        old.with_rest_of(&new)
    } else if old.says_all_of(&new) {
        return TextStep::Keep;
    } else {
        new.with_rest_of(&old)
    };
    if text == known || text.len() > TEXT_BYTES_MAX { TextStep::Keep } else { TextStep::Update(text) }
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
    /// True if an order rests in it or somebody holds its shares.
    pub is_live: bool,
}

/// What an imported market changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarketStep {
    /// It is new.
    Add,
    /// Something of it changes.
    Update(MarketUpdate),
    /// Nothing.
    Keep,
    /// Nothing: the exchange has a newer text.
    Older,
}

/// What changes of a market that the exchange knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarketUpdate {
    /// The new text, if it differs.
    pub text: Option<String>,
    /// The event's number, if it had none or another.
    pub event: Option<u32>,
    /// The new tick, if the text is new and the market not live.
    pub tick: Option<Tick>,
    /// True if the row says closed and the market is not.
    pub closes: bool,
    /// The payout, if the row brings one and the market is not live: nobody is paid or loses by it.
    pub payout: Option<Payout>,
    /// What the row says and the market does not take.
    pub kept: Vec<Refused>,
}

/// What `market` changes, given what the exchange has of it. `event` is the registry number of
/// the event that the row names.
///
/// Closing and the result go by what the market is, not by whether the text is a new one: a market
/// that trades on behind its end costs its traders money, so a row that says closed closes it each
/// time it comes, also one that the operator opened again. A tick costs nobody anything, so the
/// same text leaves the operator's alone. Nothing is lost by that: the exchange writes a text down
/// behind everything that it changes.
#[must_use]
pub fn market_step(
    known: Option<&KnownMarket<'_>>,
    market: &ImportedMarket,
    event: Option<u32>,
) -> MarketStep {
    let Some(known) = known else {
        return MarketStep::Add;
    };
    let text = (market.text != known.text).then(|| market.text.clone());
    let known_updated = || Fields::parse(known.text).map_or(Moment::default(), |fields| updated(&fields));
    if text.is_some() && market.updated < known_updated() {
        return MarketStep::Older;
    }
    let event = event.filter(|event| known.event != Some(*event));
    let is_final = known.mode == Mode::Resolved;
    let free = !known.is_live && !is_final;
    let closes = matches!(market.mode, Mode::Closed | Mode::Resolved);
    let update = MarketUpdate {
        tick: Some(market.tick).filter(|tick| text.is_some() && free && *tick != known.tick),
        closes: closes && !is_final && known.mode != Mode::Closed,
        payout: market.payout.filter(|_| free),
        kept: if text.is_some() { kept(known, market, free) } else { Vec::new() },
        text,
        event,
    };
    if update == MarketUpdate::default() { MarketStep::Keep } else { MarketStep::Update(update) }
}

/// What a re-import never touches, where the row says something else.
fn kept(known: &KnownMarket<'_>, market: &ImportedMarket, free: bool) -> Vec<Refused> {
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
        "the tokens that the market has, which stay",
    );
    let goes_on = !matches!(known.mode, Mode::Closed | Mode::Resolved) && market.mode == Mode::Open;
    keep(
        market.tokens.is_none() && goes_on,
        "clobTokenIds",
        "nothing".to_owned(),
        "the tokens that the market has: it trades on with them",
    );
    let size = format!("{} millionths", market.min_size.0);
    keep(
        market.min_size != known.min_size,
        "orderMinSize",
        size,
        "the size that the market has, which stays",
    );
    let fee = FeeSchedule { version: known.fee.version, ..market.fee };
    let rate = format!("rate {} millionths", fee.rate);
    keep(fee != known.fee, "feeSchedule", rate, "the fee that the market has, which stays");
    if market.tick != known.tick && !free {
        kept.push(kept_tick(&row, market.tick, LIVE_TICK));
    }
    if market.payout.is_some() && known.mode != Mode::Resolved && !free {
        kept.push(kept_result(&row, LIVE_RESULT));
    }
    kept
}

/// Why a live market does not take the tick of its row.
pub const LIVE_TICK: &str = "the tick of the live market, which stays; see market tick";

/// Why a live market does not take the result of its row.
pub const LIVE_RESULT: &str = "the operator's word on a live market: market resolve";

/// What is said of a row whose market does not take its tick.
pub(crate) fn kept_tick(row: &str, tick: Tick, why: &'static str) -> Refused {
    let got = format!("{}/10000", tick.ten_thousandths());
    Refused::new(row, "orderPriceMinTickSize", &got, why)
}

/// What is said of a row whose market does not take its result.
pub(crate) fn kept_result(row: &str, why: &'static str) -> Refused {
    Refused::new(row, "outcomePrices", "a result", why)
}
