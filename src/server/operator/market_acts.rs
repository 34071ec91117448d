//! What the operator does to one market: making, pausing, ticks, results and their payment.
//!
//! A market's mode, tick and payout are its shard's to write, so these errands run on the shard's
//! loop; a new market is the registrar's. Paying a market's holders goes in pieces, so that other
//! markets of the shard trade in between.

use super::act::{refused, refused_by_shard, said};
use super::desk::{self, Place};
use super::request::{NewMarket, Refusal};
use crate::catalog::{Fields, slug_of};
use crate::domain::order::SIGNATURE_BYTES_MAX;
use crate::domain::{Mode, OrderId, Outcome, Payout, Reject, Shares, Tick, TimeMs, WalletNo, Word};
use crate::journal::layout::ActKind;
use crate::json::Writer;
use crate::json::short::ShortText;
use crate::registrar::{self, MarketNames};
use crate::server::core_loop::CoreLoop;
use crate::server::requests::refusal;
use crate::server::threads::message::{Errand, Report};
use crate::server::trading::Trade;
use crate::shard::UserAct;

/// Holders that one errand pays, so that a large market's redeem lets orders through in between.
const REDEEMS_PER_ERRAND: usize = 64;

/// How often a redeem is tried while the log has no room, before it is left to be repeated.
const REDEEM_TRIES_MAX: u32 = 100_000;

/// Pauses, resumes or closes.
pub(super) fn set_mode(place: Place, mode: Mode) -> Errand {
    Box::new(move |trade, now| match trade.own_shard().set_mode(now, place.market, mode) {
        Ok(()) => said(|json| {
            place.names(json);
            json.key("mode").text(mode.text());
        }),
        Err(refusal) => refused_by_shard(&refusal),
    })
}

/// Another price step.
pub(super) fn set_tick(place: Place, tick: Tick) -> Errand {
    Box::new(move |trade, now| match trade.own_shard().set_tick(now, place.market, tick) {
        Ok(removed) => said(|json| {
            place.names(json);
            json.key("tick")
                .ten_thousandths_text(tick.ten_thousandths())
                .key("removed")
                .number(removed as u64);
        }),
        Err(refusal) => refused_by_shard(&refusal),
    })
}

/// Resolves, or finds it resolved so already; then pays, if that is wanted.
pub(super) fn resolve(place: Place, payout: Payout, redeem: bool) -> Errand {
    Box::new(move |trade, now| {
        let removed = match trade.own_shard().resolve(now, place.market, payout) {
            Ok(removed) => removed,
            Err(refusal) => match (refusal.reject, trade.registry.market(place.market).payout()) {
                (Reject::MarketResolved, Some(known)) if known == payout => 0,
                (Reject::MarketResolved, Some(known)) => return refused_as_resolved(payout, known),
                _ => return refused_by_shard(&refusal),
            },
        };
        let holders = if redeem { trade.own_shard().holders(place.market).collect() } else { Vec::new() };
        let paid = Paying { place, payout, removed, holders, paid: 0, wallets: 0, tries: 0 };
        if redeem { pay(trade, now, paid) } else { paid.said(false) }
    })
}

/// The answer to another result than the one that a market has.
fn refused_as_resolved(payout: Payout, known: Payout) -> Report {
    let [got, known] =
        [payout, known].map(|payout| ShortText::millionths(payout.per_share(Outcome::Zero).into()));
    let why = Reject::MarketResolved.wire().error;
    let error = format!("payout: got {}; allowed: {}, as {why}", got.as_str(), known.as_str());
    Report::Answer(refusal::rejected(Reject::MarketResolved, &error))
}

/// A market's holders on their way to their money.
struct Paying {
    place: Place,
    payout: Payout,
    removed: usize,
    holders: Vec<WalletNo>,
    paid: u64,
    wallets: u64,
    tries: u32,
}

impl Paying {
    fn said(&self, redeemed: bool) -> Report {
        said(|json| {
            self.place.names(json);
            json.key("mode").text("resolved").key("payout");
            desk::payout(json, self.payout);
            json.key("removed").number(self.removed as u64);
            if redeemed {
                json.key("redeemed").number(self.wallets).key("paid").millionths_text(self.paid);
            }
        })
    }
}

fn pay(trade: &mut Trade, now: TimeMs, mut paying: Paying) -> Report {
    for _ in 0..REDEEMS_PER_ERRAND {
        let Some(wallet) = paying.holders.last().copied() else {
            return paying.said(true);
        };
        let redeem = redeem_of(trade, wallet, &paying.place);
        match trade.own_shard().act(now, &redeem) {
            Ok(acted) => {
                paying.paid += acted.collateral.0;
                paying.wallets += 1;
            }
            // The log has no room: later. Orders are refused meanwhile, so this ends.
            Err(refusal) if refusal.reject == Reject::Busy && paying.tries < REDEEM_TRIES_MAX => {
                paying.tries += 1;
                break;
            }
            Err(refusal) if refusal.reject == Reject::NothingToMove => {}
            Err(refusal) => return refused_by_shard(&refusal),
        }
        paying.holders.pop();
    }
    let to = paying.place.shard_loop;
    Report::Next(to, Box::new(move |trade, now| pay(trade, now, paying)))
}

/// Everything that `wallet` holds, redeemed by the operator: nobody signed.
fn redeem_of(trade: &Trade, wallet: WalletNo, place: &Place) -> UserAct {
    UserAct {
        act: ActKind::Redeem,
        principal: trade.registry.wallet(wallet).principal().unwrap_or(wallet),
        wallet,
        market: place.market,
        amount: Shares::ZERO,
        id: OrderId::ZERO,
        salt: Word::ZERO,
        timestamp_ms: 0,
        signature: [0; SIGNATURE_BYTES_MAX],
        signature_len: 0,
    }
}

/// Makes a market of the operator's own, whose slug no other has, nor an event that does not hold it.
pub(super) fn new_market(core: &CoreLoop, market: NewMarket) -> Result<Errand, Refusal> {
    let event = match &market.event {
        None => None,
        Some(slug) => Some(desk::event_by_slug(core, slug).ok_or_else(|| {
            Refusal::of(registrar::Refusal::EventUnknown, "event", slug, "the slug of an event that is here")
        })?),
    };
    let text =
        event.and_then(|number| desk::ledger(core).events().get(number as usize)).map(|row| &*row.text);
    let group = text.and_then(NegRisk::of_event);
    let defaults = core.shared.plan.market_defaults;
    let slug = slug_of(&market.question);
    let catalog = desk::reader(core).catalog();
    let needs_number = slug.is_empty()
        || catalog.markets_by_slug(&slug).next().is_some()
        || catalog.events_by_slug(&slug).any(|other| Some(other) != event);
    Ok(Box::new(move |trade, now| {
        let registrar = trade.own_registrar();
        let names = registrar.next_market_names();
        let min_size = market.min_size.unwrap_or(defaults.min_size);
        let slug = if needs_number { numbered(&slug, names.market_id) } else { slug.clone() };
        let text = text_of(&market, &names, &slug, group.as_ref(), min_size.0, now);
        let new = registrar::NewMarket {
            event,
            market_id: None,
            condition: None,
            question: None,
            tokens: None,
            labels: [&market.labels[0], &market.labels[1]],
            neg_risk: group.is_some(),
            tick: market.tick,
            min_size,
            fee: defaults.fee,
            mode: Mode::Open,
            payout: None,
            text: &text,
        };
        match registrar.add_market(now, &new) {
            Ok(_) => said(|json| {
                json.key("marketId").number(names.market_id).key("conditionId").condition(&names.condition);
                json.key("question").text(&market.question);
                json.key("outcomes")
                    .open_array()
                    .text(&market.labels[0])
                    .text(&market.labels[1])
                    .close_array();
                json.key("negRisk").boolean(group.is_some());
                json.key("tokens").open_array().token(&names.tokens[0]).token(&names.tokens[1]).close_array();
                json.key("tick").ten_thousandths_text(market.tick.ten_thousandths());
                json.key("minSize").millionths_text(min_size.0).key("mode").text("open");
            }),
            Err(refusal) => refused(refusal, &market.question),
        }
    }))
}

/// The markets of one event of which one pays: orders of each are signed in the neg-risk domain.
struct NegRisk {
    /// What they have in common, if the event names it.
    market_id: Option<String>,
}

impl NegRisk {
    /// That of an event, if its text says that it is one.
    fn of_event(text: &str) -> Option<Self> {
        let fields = Fields::parse(text)?;
        let market_id = fields.text(NEG_RISK_MARKET);
        (fields.flag("negRisk") == Some(true)).then_some(Self { market_id })
    }
}

const NEG_RISK_MARKET: &str = "negRiskMarketID";

/// What an operator's market says about itself, in Gamma form.
fn text_of(
    market: &NewMarket,
    names: &MarketNames,
    slug: &str,
    group: Option<&NegRisk>,
    min_size: u64,
    now: TimeMs,
) -> String {
    let list = |write: &dyn Fn(&mut Writer<'_>)| {
        let mut inner = Vec::new();
        let mut json = Writer::new(&mut inner);
        json.open_array();
        write(&mut json);
        json.close_array();
        String::from_utf8(inner).expect("the writer writes text")
    };
    let labels = list(&|json| {
        json.text(&market.labels[0]).text(&market.labels[1]);
    });
    let tokens = list(&|json| {
        json.token(&names.tokens[0]).token(&names.tokens[1]);
    });
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.open_object().key("id").number_text(names.market_id).key("question").text(&market.question);
    json.key("conditionId").condition(&names.condition).key("questionID").hex(names.question.as_bytes());
    json.key("slug").text(slug).key("outcomes").text(&labels).key("clobTokenIds").text(&tokens);
    json.key("orderPriceMinTickSize").ten_thousandths_number(market.tick.ten_thousandths());
    json.key("orderMinSize").millionths_number(min_size);
    for (name, value) in [("active", true), ("closed", false), ("archived", false), ("enableOrderBook", true)]
    {
        json.key(name).boolean(value);
    }
    json.key("acceptingOrders").boolean(true).key("negRisk").boolean(group.is_some());
    if let Some(market_id) = group.and_then(|group| group.market_id.as_ref()) {
        json.key(NEG_RISK_MARKET).text(market_id);
    }
    for name in ["createdAt", "updatedAt", "startDate"] {
        json.key(name).instant(now);
    }
    json.close_object();
    String::from_utf8(out).expect("the writer writes text")
}

/// The slug of a market whose question makes none, or one that somebody else has.
fn numbered(slug: &str, market_id: u64) -> String {
    if slug.is_empty() { market_id.to_string() } else { format!("{slug}-{market_id}") }
}
