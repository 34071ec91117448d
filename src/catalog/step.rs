//! What an imported row changes in an exchange that may know it already.

use super::event::{together, updated};
use super::fields::Fields;
use super::market::{ImportedMarket, takes_no_orders};
use super::number::decimal;
use super::{Moment, Refused};
use crate::domain::{FeeSchedule, Mode, Outcome, Payout, Shares, Tick, TokenId, Word};
use std::cmp::Ordering;

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

/// What `text` of the instant `at` changes, given the text that the exchange has: the newer text leads,
/// of two of the same instant the one that comes now, followed by the fields that only the other has, if both
/// together are not too long.
#[must_use]
pub fn text_step(known: Option<&str>, at: Moment, text: &str) -> TextStep {
    let Some(known) = known else {
        return TextStep::Add;
    };
    let (Some(old), Some(new)) = (Fields::parse(known), Fields::parse(text)) else {
        return TextStep::Update(text.to_owned());
    };
    let text = if at < updated(&old) {
        together(known, &old, &new)
    } else if old.says_all_of(&new) {
        return TextStep::Keep;
    } else {
        together(text, &new, &old)
    };
    if text == known { TextStep::Keep } else { TextStep::Update(text) }
}

/// What the exchange knows of a market.
#[derive(Clone, Copy, Debug)]
pub struct KnownMarket<'a> {
    /// Its JSON.
    pub text: &'a str,
    /// The numeric id that people use.
    pub market_id: u64,
    /// The registry number of the event that holds it.
    pub event: Option<u32>,
    /// Its question.
    pub question: Word,
    /// Its tokens.
    pub tokens: [TokenId; 2],
    /// The labels of its outcomes.
    pub labels: &'a [String; 2],
    /// True if its orders are signed in the neg-risk domain.
    pub neg_risk: bool,
    /// Its price step.
    pub tick: Tick,
    /// Its smallest resting order.
    pub min_size: Shares,
    /// What it charges.
    pub fee: FeeSchedule,
    /// Its mode.
    pub mode: Mode,
    /// Its payout once resolved.
    pub payout: Option<Payout>,
    /// True if an order rests in it or somebody holds its shares.
    pub is_live: bool,
}

/// What an imported market changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarketStep {
    /// Something changes.
    Update(MarketUpdate),
    /// Nothing.
    Keep,
    /// Nothing: the exchange has a newer text.
    Older,
}

/// The changes to a market that the exchange knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarketUpdate {
    /// The new text, if it differs.
    pub text: Option<String>,
    /// The event's number, if the market had none, or another and the text is not older.
    pub event: Option<u32>,
    /// The new tick, if the text is new and names one and the market is not live.
    pub tick: Option<Tick>,
    /// True if the row says closed and the market is neither closed nor resolved.
    pub closes: bool,
    /// The payout, if the row brings one and the market is neither live nor resolved: nobody is
    /// paid or loses by it.
    pub payout: Option<Payout>,
    /// What the row says but the market does not take.
    pub kept: Vec<Refused>,
}

/// What `market` changes, given what the exchange knows of it. `event` is the registry number of
/// the event that the row names.
///
/// The newer text stays, and of two of the same instant the one that comes now with the fields that only the other has:
/// an event often holds an abridged copy of its market. An older row only names the event of a market that has none.
///
/// Closing and the result go by the market's state, not by whether the text is new: a market that
/// trades on past its end costs its traders money, so a row that says closed closes it each time
/// the row comes, even if the operator had opened it again. A tick costs nobody anything, so an
/// unchanged text leaves the operator's tick alone. Nothing is lost by that: the exchange writes a
/// text only after everything that the text changes. No row opens or pauses a market that is here. A result that a live
/// market does not take is told each time.
#[must_use]
pub fn market_step(known: &KnownMarket<'_>, market: &ImportedMarket, event: Option<u32>) -> MarketStep {
    let mut text = None;
    if market.text != known.text {
        let at = Fields::parse(known.text).map_or(Moment::default(), |fields| updated(&fields));
        text = match market.updated.cmp(&at) {
            Ordering::Greater => Some(market.text.clone()),
            Ordering::Equal => match text_step(Some(known.text), at, &market.text) {
                TextStep::Update(text) => Some(text),
                TextStep::Add | TextStep::Keep => None,
            },
            Ordering::Less if event.is_some() && known.event.is_none() => {
                return MarketStep::Update(MarketUpdate { event, ..MarketUpdate::default() });
            }
            Ordering::Less => return MarketStep::Older,
        };
    }
    // The same text says nothing new.
    let said =
        if text.is_some() { Fields::parse(&market.text).unwrap_or_default() } else { Fields::default() };
    let is_final = known.mode == Mode::Resolved;
    let free = !known.is_live && !is_final;
    let closes = matches!(market.mode, Mode::Closed | Mode::Resolved);
    let update = MarketUpdate {
        event: event.filter(|event| known.event != Some(*event)),
        tick: Some(market.tick).filter(|tick| said.raw(TICK).is_some() && free && *tick != known.tick),
        closes: closes && !is_final && known.mode != Mode::Closed,
        payout: market.payout.filter(|_| free),
        kept: if text.is_some() {
            kept(known, market, &said)
        } else {
            untaken_result(known, market).into_iter().collect()
        },
        text,
    };
    if update == MarketUpdate::default() { MarketStep::Keep } else { MarketStep::Update(update) }
}

/// What a re-import never changes, wherever the row says something else. A row that is silent says
/// nothing else: the defaults in its place are the exchange's own.
fn kept(known: &KnownMarket<'_>, market: &ImportedMarket, said: &Fields<'_>) -> Vec<Refused> {
    let row = market.row();
    let is_live = known.is_live && known.mode != Mode::Resolved;
    let fee = FeeSchedule { version: known.fee.version, ..market.fee };
    let opens = !market.mode.is_closed() && market.tokens.is_some();
    let takes_orders = matches!(known.mode, Mode::Open | Mode::PostOnly);
    let pauses = market.mode == Mode::CancelOnly && takes_orders;
    let resumes = market.mode == Mode::Open && known.mode == Mode::CancelOnly;
    // Whoever opens one that came without tokens opens it on those that the exchange made up.
    let may_open = known.mode == Mode::Closed && market.tokens == Some(known.tokens);
    let other_result = known.payout.is_some_and(|here| market.payout.is_some_and(|there| here != there));
    let question = market.question != Word::ZERO && market.question != known.question;
    // Two schedules that take nothing are the same, and none is what a free market has.
    let enabled = said.flag("feesEnabled");
    let takes_none = fee.rate.max(known.fee.rate) == 0 || enabled == Some(false) && known.fee.rate == 0;
    let other_fee = fee != known.fee && !takes_none;
    // A flag that says the opposite of what the market does is what differs.
    let says_opposite = enabled == Some(known.fee.rate == 0);
    let named_fee = if says_opposite { "feesEnabled" } else { "feeSchedule" };
    let mut kept = kept_names(known, market);
    let stays = [
        ("questionID", question, "the question that the market has, which stays"),
        ("outcomes", market.labels != *known.labels, "the outcomes that the market has, which stay"),
        (
            "negRisk",
            market.neg_risk != known.neg_risk,
            "what the market is, which stays: orders are signed for it",
        ),
        ("orderMinSize", market.min_size != known.min_size, "the size that the market has, which stays"),
        (named_fee, other_fee, "the fee that the market has, which stays"),
        ("closed", opens && may_open, "true, as it is here; market mode opens it"),
        ("closed", opens && known.mode == Mode::Resolved, "true: its result is known here, which is final"),
        (
            takes_no_orders(said).unwrap_or(ACCEPTING),
            pauses,
            "true, as it is here; market mode makes it cancel-only",
        ),
        (ACCEPTING, resumes, "false, as it is here; market mode opens it"),
        (RESULT, other_result, "the result that the market has, which is final"),
    ];
    for (field, differs, allowed) in stays {
        if let Some(got) = said.words(field).filter(|_| differs) {
            kept.push(Refused::new(&row, field, &got, allowed));
        }
    }
    if said.raw(TICK).is_some() && market.tick != known.tick && is_live {
        kept.push(kept_tick(&row, market.tick, LIVE_TICK));
    }
    kept.extend(untaken_result(known, market));
    kept
}

/// As [`kept`], for a result that a live market waits for: told each time the row comes, as nobody is paid until then.
fn untaken_result(known: &KnownMarket<'_>, market: &ImportedMarket) -> Option<Refused> {
    let waits = known.is_live && known.mode != Mode::Resolved;
    market.payout.filter(|_| waits).map(|payout| kept_result(&market.row(), payout, LIVE_RESULT))
}

/// As [`kept`], for the id and the tokens, by which people and orders name the market.
fn kept_names(known: &KnownMarket<'_>, market: &ImportedMarket) -> Vec<Refused> {
    let trades = !matches!(known.mode, Mode::Closed | Mode::Resolved);
    let keep = |field, got: &str, allowed| Refused::new(&market.row(), field, got, allowed);
    let id = market.market_id.filter(|id| *id != known.market_id).map(|id| {
        let got = format!("{id}, here {}", known.market_id);
        keep("id", &got, "the id that the market has, which stays")
    });
    let tokens = match market.tokens {
        Some(tokens) if tokens != known.tokens => {
            Some(keep("clobTokenIds", "other tokens", "the tokens that the market has, which stay"))
        }
        None if trades && !market.mode.is_closed() => {
            Some(keep("clobTokenIds", "nothing", "the tokens that the market has: it trades on with them"))
        }
        _ => None,
    };
    id.into_iter().chain(tokens).collect()
}

const TICK: &str = "orderPriceMinTickSize";
const RESULT: &str = "outcomePrices";
const ACCEPTING: &str = "acceptingOrders";

/// Why a live market does not take the tick of its row.
pub const LIVE_TICK: &str = "the tick of the live market, which stays; see market tick";

/// Why a live market does not take the result of its row.
pub const LIVE_RESULT: &str = "the operator's word on a live market: market resolve";

/// The report on a row whose market does not take its tick.
pub(crate) fn kept_tick(row: &str, tick: Tick, why: &'static str) -> Refused {
    Refused::new(row, TICK, &decimal(tick.ten_thousandths().into(), 4), why)
}

/// The report on a row whose market does not take its result.
pub(crate) fn kept_result(row: &str, payout: Payout, why: &'static str) -> Refused {
    let [yes, no] = [Outcome::Zero, Outcome::One].map(|outcome| decimal(payout.per_share(outcome).into(), 6));
    Refused::new(row, RESULT, &format!(r#"["{yes}","{no}"]"#), why)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{defaults, known, only, row};
    use super::super::{Import, MarketDefaults};
    use super::*;

    #[test]
    fn a_fee_that_stays_is_told_by_the_field_that_says_otherwise() {
        let defaults =
            MarketDefaults { fee: FeeSchedule { rate: 20_000, ..FeeSchedule::FREE }, ..defaults() };
        let market = |more: &str| {
            let import = Import::read(row(1, more).as_bytes(), &defaults).expect("a file");
            import.markets()[0].clone()
        };
        let (free, charged) = (r#""feeSchedule":{"rate":0},"#, r#""feeSchedule":{"rate":0.05},"#);
        let disabled = r#""feesEnabled":false,"#;
        for (here, says, told) in [
            (free, "", None),
            (free, disabled, None),
            // The exchange's own fee is what a market has whose row has no schedule.
            ("", disabled, None),
            (disabled, r#""feesEnabled":false,"feeSchedule":{"rate":0.05},"#, None),
            (free, r#""feesEnabled":true,"#, Some("feesEnabled: got true")),
            (free, charged, Some("feeSchedule: got {\"rate\":0.05}")),
            (free, r#""feesEnabled":true,"feeSchedule":{"rate":0.05},"#, Some("feesEnabled: got true")),
            (free, r#""feesEnabled":false,"feeSchedule":{"rate":0.05},"#, None),
            (free, r#""feeSchedule":{"rate":0,"exponent":2},"#, None),
            (charged, r#""x":1,"#, None),
            (charged, r#""feesEnabled":true,"#, None),
            (charged, r#""feesEnabled":true,"feeSchedule":{"rate":0.05},"#, None),
            (
                charged,
                r#""feesEnabled":true,"feeSchedule":{"rate":0},"#,
                Some("feeSchedule: got {\"rate\":0}"),
            ),
            (charged, disabled, Some("feesEnabled: got false")),
            (charged, r#""feesEnabled":false,"feeSchedule":{"rate":0.05},"#, Some("feesEnabled: got false")),
        ] {
            let newer = r#""updatedAt":"2026-01-01T00:00:00Z","#;
            let (here, says) = (market(here), market(&format!("{newer}{says}")));
            let MarketStep::Update(update) = market_step(&known(&here), &says, None) else {
                panic!("its text is another one: {}", says.text);
            };
            let kept: Vec<String> = update.kept.iter().map(ToString::to_string).collect();
            let told = told
                .map(|told| format!("market 1: {told}; allowed: the fee that the market has, which stays"));
            assert_eq!(kept, told.into_iter().collect::<Vec<_>>(), "{} {}", here.text, says.text);
        }
    }

    #[test]
    fn of_two_texts_of_the_same_instant_nothing_is_lost_and_an_older_one_only_brings_its_event() {
        let [early, late] = ["1", "2"].map(|day| format!(r#""updatedAt":"2026-03-0{day}T00:00:00Z","#));
        let whole = only(&row(1, &format!(r#"{late}"slug":"q","description":"long","#)));
        let text = |more: &str| only(&row(1, &format!("{late}{more}"))).text;
        let (old, new) = (Some(4), Some(5));
        let nothing = MarketUpdate::default;
        for (said, here, names, step) in [
            (late.clone(), None, None, MarketStep::Keep),
            (late.clone(), None, new, MarketStep::Update(MarketUpdate { event: new, ..nothing() })),
            (late.clone(), old, old, MarketStep::Keep),
            (late.clone(), old, new, MarketStep::Update(MarketUpdate { event: new, ..nothing() })),
            (
                format!(r#"{late}"slug":"r","#),
                None,
                None,
                MarketStep::Update(MarketUpdate {
                    text: Some(text(r#""slug":"r","#).replace('}', r#","description":"long"}"#)),
                    ..nothing()
                }),
            ),
            (early.clone(), None, None, MarketStep::Older),
            (early.clone(), None, new, MarketStep::Update(MarketUpdate { event: new, ..nothing() })),
            (early.clone(), old, new, MarketStep::Older),
            (format!(r#"{early}"closed":true,"#), None, None, MarketStep::Older),
        ] {
            let here = KnownMarket { event: here, ..known(&whole) };
            assert_eq!(market_step(&here, &only(&row(1, &said)), names), step, "{said} {names:?}");
        }
    }

    #[test]
    fn what_a_live_market_does_not_take_is_told_until_its_result_is_known() {
        const OVER: &str = r#""updatedAt":"2026-01-01T00:00:00Z","orderPriceMinTickSize":0.001,"closed":true,
            "outcomePrices":["1","0"],"#;
        let (here, says) = (only(&row(1, "")), only(&row(1, OVER)));
        for (mode, payout, told) in [
            (Mode::Open, None, &[LIVE_TICK, LIVE_RESULT][..]),
            (Mode::Closed, None, &[LIVE_TICK, LIVE_RESULT]),
            (Mode::Resolved, says.payout, &[]),
        ] {
            let here = KnownMarket { mode, payout, is_live: true, ..known(&here) };
            let MarketStep::Update(update) = market_step(&here, &says, None) else {
                panic!("its text is another one: {}", says.text);
            };
            let kept: Vec<String> = update.kept.iter().map(ToString::to_string).collect();
            assert_eq!(kept.len(), told.len(), "{mode:?}: {kept:?}");
            assert!(kept.iter().zip(told).all(|(kept, told)| kept.ends_with(told)), "{mode:?}: {kept:?}");
        }
    }

    #[test]
    fn a_row_that_stops_or_resumes_orders_is_told_and_changes_no_mode() {
        const PAUSES: &str = "true, as it is here; market mode makes it cancel-only";
        const RESUMES: &str = "false, as it is here; market mode opens it";
        let (takes, takes_none) = (r#""acceptingOrders":true,"#, r#""acceptingOrders":false,"#);
        let no_book = r#""acceptingOrders":true,"enableOrderBook":false,"#;
        for (says, mode, told) in [
            (takes, Mode::Open, None),
            (takes, Mode::PostOnly, None),
            (takes, Mode::CancelOnly, Some(("acceptingOrders", "true", RESUMES))),
            (takes_none, Mode::Open, Some(("acceptingOrders", "false", PAUSES))),
            (takes_none, Mode::PostOnly, Some(("acceptingOrders", "false", PAUSES))),
            (takes_none, Mode::CancelOnly, None),
            (takes_none, Mode::Closed, None),
            (no_book, Mode::Open, Some(("enableOrderBook", "false", PAUSES))),
            (no_book, Mode::CancelOnly, None),
            ("", Mode::CancelOnly, None),
        ] {
            let here = only(&row(1, ""));
            let newer = format!(r#""updatedAt":"2026-01-01T00:00:00Z",{says}"#);
            let newer = only(&row(1, &newer));
            let MarketStep::Update(update) = market_step(&KnownMarket { mode, ..known(&here) }, &newer, None)
            else {
                panic!("its text is another one: {}", newer.text);
            };
            let kept: Vec<_> = told
                .into_iter()
                .map(|(field, got, allowed)| Refused::new("market 1", field, got, allowed))
                .collect();
            assert_eq!((update.closes, update.kept), (false, kept), "{says} {mode:?}");
            // The same text says nothing new.
            assert_eq!(
                market_step(&KnownMarket { mode, ..known(&newer) }, &newer, None),
                MarketStep::Keep,
                "{says} {mode:?}"
            );
        }
    }

    #[test]
    fn nobody_is_told_to_open_a_market_on_other_tokens_than_its_row_names() {
        let here = only(&row(1, ""));
        let here = KnownMarket { mode: Mode::Closed, ..known(&here) };
        for (tokens, told) in [("11", "closed"), ("13", "clobTokenIds")] {
            let said = row(1, r#""closed":false,"#).replace(r#"\"11\""#, &format!(r#"\"{tokens}\""#));
            let MarketStep::Update(update) = market_step(&here, &only(&said), None) else {
                panic!("its text is another one: {said}");
            };
            let fields: Vec<_> = update.kept.iter().map(|kept| kept.field).collect();
            assert_eq!(fields, [told]);
        }
    }
}
