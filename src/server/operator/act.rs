//! What the operator's listener does with a request: reads are answered from the ledger, acts run
//! as errands on the loop of the registrar or of the market's shard.
//!
//! Requests are judged by `request`, markets are found in the ledger, and only what was found is
//! sent. The registrar and the shards refuse by name; `{got}` in their words is filled in here.

use super::desk::{self, Place};
use super::request::{self, Asked, MarketName, Movement, NewMarket, Refusal};
use super::{intake, made_up_reference, market_defaults};
use crate::domain::{Mode, Payout, Position, Reject, Tick, TimeMs, WalletNo};
use crate::http::respond::Extras;
use crate::journal::layout::{ActKind, MoneyDirection};
use crate::json::{ShortText, Writer, name};
use crate::registrar::{self, MarketNames, MoneyOrder};
use crate::server::acts;
use crate::server::admin::{Done, Pending, write_json};
use crate::server::core_loop::{CoreLoop, REGISTRAR_LOOP, connection_word};
use crate::server::ingress::Trade;
use crate::server::message::{ActJob, Binding, Errand, Purpose, Report};
use crate::server::request::Request;
use crate::server::shared::Phase;
use crate::shard::UserAct;

/// Holders that one errand pays, so that a large market's redeem lets orders through in between.
const REDEEMS_PER_ERRAND: usize = 64;

/// How often a log without room is looked at again before a redeem is left to be repeated.
const REDEEM_TRIES_MAX: u32 = 100_000;

/// Takes a request that was admitted and that the listener does not answer itself.
pub(crate) fn begin(
    core: &mut CoreLoop,
    pending: Pending,
    request: &Request<'_>,
    answer: &mut Vec<u8>,
) -> Done {
    let asked = request::read(request.head.method, request.head.path, request.body);
    match asked.and_then(|asked| go_on(core, pending, asked, request.body)) {
        Ok(Next::Sent) => Done::Later,
        Ok(Next::Say(body)) => respond(answer, pending, 200, &body),
        Err(refusal) => {
            let mut body = Vec::new();
            refusal.body(&mut body);
            respond(answer, pending, refusal.status, &body)
        }
    }
}

/// What comes of a request that is understood.
enum Next {
    /// This body.
    Say(Vec<u8>),
    /// An answer later: it was sent to another loop.
    Sent,
}

fn respond(answer: &mut Vec<u8>, pending: Pending, status: u16, body: &[u8]) -> Done {
    let extras = Extras { connection: connection_word(pending.keep_alive), ..Extras::default() };
    write_json(answer, status, &extras, |json| {
        json.raw(body);
    });
    Done::Answered(Position(0))
}

fn go_on(core: &mut CoreLoop, pending: Pending, asked: Asked, body: &[u8]) -> Result<Next, Refusal> {
    let ready = core.shared.phase() == Phase::Serving && core.roles.is_some();
    if !ready {
        let wire = Reject::Recovering.wire();
        return Err(Refusal::new(503, wire.code, "", "", wire.error));
    }
    desk::catch_up(core);
    let (to, binding, errand) = match asked {
        Asked::Markets => return Ok(Next::Say(desk::markets(core))),
        Asked::Market(market) => return Ok(Next::Say(desk::market(core, &find(core, market)?))),
        Asked::Account(wallet) => return desk::account(core, &wallet).map(Next::Say),
        Asked::Advance(ms) => return advance(core, ms),
        Asked::Import => (REGISTRAR_LOOP, Binding::Nobody, intake::errand(core, body)?),
        Asked::NewMarket(market) => (REGISTRAR_LOOP, Binding::Nobody, new_market(core, market)?),
        Asked::SetMarketMode(market, mode) => {
            let place = find(core, market)?;
            (place.shard_loop, Binding::EveryShard, set_mode(place, mode))
        }
        Asked::SetTick(market, tick) => {
            let place = find(core, market)?;
            (place.shard_loop, Binding::Nobody, set_tick(place, tick))
        }
        Asked::Resolve { market, payout, redeem } => {
            let place = find(core, market)?;
            (place.shard_loop, Binding::EveryShard, resolve(place, payout, redeem))
        }
        Asked::Money(movement) => (REGISTRAR_LOOP, Binding::Nobody, money(movement)?),
        Asked::Link { wallet, owner } => {
            let errand: Errand =
                Box::new(move |trade, now| match registrar_of(trade).link(now, wallet, owner) {
                    Ok(_) => said(|json| {
                        json.key("wallet").address(&wallet).key("owner").address(&owner);
                    }),
                    Err(refusal) => refused(refusal, &hex(wallet.as_bytes())),
                });
            (REGISTRAR_LOOP, Binding::EveryShard, errand)
        }
        Asked::Freeze { wallet, frozen } => {
            let errand: Errand = Box::new(move |trade, now| {
                let registrar = registrar_of(trade);
                let done =
                    if frozen { registrar.freeze(now, &wallet) } else { registrar.unfreeze(now, &wallet) };
                match done {
                    Ok(_) => said(|json| {
                        json.key("wallet").address(&wallet).key("frozen").boolean(frozen);
                    }),
                    Err(refusal) => refused(refusal, &hex(wallet.as_bytes())),
                }
            });
            (REGISTRAR_LOOP, Binding::EveryShard, errand)
        }
        Asked::SetMode(mode) => (REGISTRAR_LOOP, Binding::EveryShard, set_exchange_mode(mode)),
    };
    acts::send(core, to, Box::new(ActJob::new(Purpose::Operator(pending), binding, errand)));
    Ok(Next::Sent)
}

fn find(core: &CoreLoop, market: MarketName) -> Result<Place, Refusal> {
    desk::place(core, market).ok_or_else(|| {
        let got = match market {
            MarketName::Id(id) => id.to_string(),
            MarketName::Condition(condition) => hex(condition.as_bytes()),
        };
        Refusal::new(404, "market_unknown", "market", &got, "a market that is here; see market list")
    })
}

fn advance(core: &CoreLoop, ms: u64) -> Result<Next, Refusal> {
    let Some(now) = core.shared.clock.advance_ms(ms) else {
        return Err(Refusal::new(409, "clock_is_real", "clock", "real", "manual: dev --clock manual"));
    };
    for waker in &core.shared.wakers {
        waker.ring();
    }
    let mut body = Vec::new();
    Writer::new(&mut body).open_object().key("timeMs").number(now.0).close_object();
    Ok(Next::Say(body))
}

fn set_mode(place: Place, mode: Mode) -> Errand {
    Box::new(move |trade, now| match trade.shard.set_mode(now, place.market, mode) {
        Ok(()) => said(|json| {
            place.names(json);
            json.key("mode").text(request::mode_text(mode));
        }),
        Err(refusal) => refused_by_shard(&refusal),
    })
}

fn set_tick(place: Place, tick: Tick) -> Errand {
    Box::new(move |trade, now| match trade.shard.set_tick(now, place.market, tick) {
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
fn resolve(place: Place, payout: Payout, redeem: bool) -> Errand {
    Box::new(move |trade, now| {
        let removed = match trade.shard.resolve(now, place.market, payout) {
            Ok(removed) => removed,
            Err(refusal) => {
                let same = trade.registry.market(place.market).payout() == Some(payout);
                if refusal.reject != Reject::MarketResolved || !same {
                    return refused_by_shard(&refusal);
                }
                0
            }
        };
        let holders = if redeem { trade.shard.holders(place.market).collect() } else { Vec::new() };
        let paid = Paying { place, payout, removed, holders, paid: 0, wallets: 0, tries: 0 };
        if redeem { pay(trade, now, paid) } else { paid.said(false) }
    })
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
        match trade.shard.act(now, &redeem_of(trade, wallet, &paying.place)) {
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
        amount: crate::domain::Shares::ZERO,
        id: crate::domain::OrderId::ZERO,
        salt: crate::domain::Word::ZERO,
        timestamp_ms: 0,
        signature: [0; crate::domain::order::SIGNATURE_BYTES_MAX],
        signature_len: 0,
    }
}

fn money(movement: Movement) -> Result<Errand, Refusal> {
    let Movement { wallet, direction, amount, reference } = movement;
    let word = if direction == MoneyDirection::Credit { "credit" } else { "debit" };
    let reference = match reference {
        Some(reference) => reference,
        None => made_up_reference(word)
            .map_err(|_| Refusal::new(503, "no_randomness", "ref", "", "a text of yours"))?,
    };
    Ok(Box::new(move |trade, now| {
        let registrar = registrar_of(trade);
        let order = MoneyOrder { wallet, amount, reference: &reference };
        let done = match direction {
            MoneyDirection::Credit => registrar.credit(now, &order),
            MoneyDirection::Debit => registrar.debit(now, &order),
        };
        match done {
            Ok(result) => said(|json| {
                json.key("wallet").address(&wallet).key("direction").text(word);
                json.key("amount").millionths_text(amount.0).key("ref").text(&reference);
                json.key("repeated").boolean(result.repeated);
            }),
            Err(registrar::Refusal::ReferenceTaken) => {
                refused(registrar::Refusal::ReferenceTaken, &reference)
            }
            Err(registrar::Refusal::WalletUnknown) => {
                refused(registrar::Refusal::WalletUnknown, &hex(wallet.as_bytes()))
            }
            Err(refusal) => refused(refusal, ShortText::millionths(amount.0).as_str()),
        }
    }))
}

fn set_exchange_mode(mode: Mode) -> Errand {
    Box::new(move |trade, now| match registrar_of(trade).set_exchange_mode(now, mode) {
        Ok(()) => said(|json| {
            json.key("mode").text(request::mode_text(mode));
        }),
        Err(refusal) => refused(refusal, request::mode_text(mode)),
    })
}

fn new_market(core: &CoreLoop, market: NewMarket) -> Result<Errand, Refusal> {
    let event = match &market.event {
        None => None,
        Some(slug) => Some(desk::event_by_slug(core, slug).ok_or_else(|| {
            Refusal::new(404, "event_unknown", "event", slug, "the slug of an event that is here")
        })?),
    };
    let defaults = market_defaults(&core.shared.plan.options).map_err(|_| {
        Refusal::new(500, "configuration", "orders.min_size", "", "a configuration that check takes")
    })?;
    Ok(Box::new(move |trade, now| {
        let registrar = registrar_of(trade);
        let names = registrar.next_market_names();
        let min_size = market.min_size.unwrap_or(defaults.min_size);
        let text = text_of(&market, &names, min_size.0, now);
        let new = registrar::NewMarket {
            event,
            market_id: None,
            condition: None,
            question: None,
            tokens: None,
            labels: [&market.labels[0], &market.labels[1]],
            neg_risk: false,
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
                json.key("tokens").open_array().token(&names.tokens[0]).token(&names.tokens[1]).close_array();
                json.key("tick").ten_thousandths_text(market.tick.ten_thousandths());
                json.key("minSize").millionths_text(min_size.0).key("mode").text("open");
            }),
            Err(refusal) => refused(refusal, &market.question),
        }
    }))
}

/// What an operator's market says about itself, in Gamma form.
fn text_of(market: &NewMarket, names: &MarketNames, min_size: u64, now: TimeMs) -> String {
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
    json.key("slug")
        .text(&slug(&market.question))
        .key("outcomes")
        .text(&labels)
        .key("clobTokenIds")
        .text(&tokens);
    json.key("orderPriceMinTickSize").ten_thousandths_number(market.tick.ten_thousandths());
    json.key("orderMinSize").millionths_number(min_size);
    for (name, value) in [("active", true), ("closed", false), ("archived", false), ("enableOrderBook", true)]
    {
        json.key(name).boolean(value);
    }
    json.key("acceptingOrders").boolean(true).key("negRisk").boolean(false);
    for name in ["createdAt", "updatedAt", "startDate"] {
        json.key(name).date_time(now);
    }
    json.close_object();
    String::from_utf8(out).expect("the writer writes text")
}

/// A question as a path's segment: letters and digits, everything else one dash.
fn slug(question: &str) -> String {
    let words =
        question.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

/// The registrar of the first loop.
pub(super) fn registrar_of(trade: &mut Trade) -> &mut registrar::Registrar {
    trade.registrar.as_mut().expect("the first loop has the registrar")
}

/// The answer with what `write` puts into its object.
pub(super) fn said(write: impl FnOnce(&mut Writer<'_>)) -> Report {
    let mut body = Vec::new();
    let mut json = Writer::new(&mut body);
    json.open_object();
    write(&mut json);
    json.close_object();
    Report::Answer(200, body)
}

/// The answer to what the registrar refused; `got` is what it was about.
pub(super) fn refused(refusal: registrar::Refusal, got: &str) -> Report {
    let wire = refusal.wire();
    say_refusal(wire.status, wire.code, &wire.error.replace("{got}", ShortText::new(got).as_str()))
}

fn refused_by_shard(refusal: &crate::shard::Refusal) -> Report {
    let wire = refusal.reject.wire();
    say_refusal(wire.status, wire.code, wire.error)
}

fn say_refusal(status: u16, code: &str, error: &str) -> Report {
    let mut body = Vec::new();
    Writer::new(&mut body).open_object().key("error").text(error).key("code").text(code).close_object();
    Report::Answer(status, body)
}

/// `0x` and lower-case hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    name::push_hex(&mut out, bytes);
    String::from_utf8(out).expect("hex is text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_becomes_a_slug() {
        assert_eq!(slug("Will it rain, \"soon\"?"), "will-it-rain-soon");
        assert_eq!(slug("???"), "");
    }
}
