//! What the operator's listener does with a request: reads are answered from the ledger, acts run
//! as errands on the loop of the registrar or of the market's shard.
//!
//! Requests are judged by `request`, markets are found in the ledger, and only what was found is
//! sent. The registrar and the shards refuse by name; `{got}` in their words is filled in here.

use super::admin::{self, Done, Pending};
use super::desk::{self, Place};
use super::request::{self, Asked, MarketName, Movement, Refusal, wrong};
use super::{books, intake, made_up_reference, market_acts};
use crate::domain::{Address, Mode, Position, Reject, WalletNo};
use crate::http::Query;
use crate::journal::layout::{MoneyDirection, RemovalReason};
use crate::json::{ShortText, Writer, name};
use crate::registrar::{self, MoneyOrder};
use crate::server::core_loop::acts;
use crate::server::core_loop::{CoreLoop, REGISTRAR_LOOP};
use crate::server::process::clock::Unmoved;
use crate::server::requests::refusal;
use crate::server::requests::request::Request;
use crate::server::threads::message::{ActJob, Binding, Errand, Purpose, Report, Said};
use crate::server::trading::Trade;
use crate::shard::OrderScope;

/// Takes a request that was admitted and that the listener does not answer itself.
pub(crate) fn begin(
    core: &mut CoreLoop,
    pending: Pending,
    request: &Request<'_>,
    answer: &mut Vec<u8>,
) -> Done {
    let (head, query) = (request.head, Query::new(request.head.query));
    let asked = request::read(head.method.answered_as(), head.path, query, request.body);
    let said = match asked.and_then(|asked| go_on(core, pending, asked, request.body)) {
        Ok(Next::Sent) => return Done::Later,
        Ok(Next::Say(body)) => Said::done(body),
        Err(refusal) => refusal.said(),
    };
    admin::write_said(answer, pending, &said);
    Done::Answered(Position(0))
}

/// What comes of a request that is understood.
enum Next {
    /// This body.
    Say(Vec<u8>),
    /// An answer later: it was sent to another loop.
    Sent,
}

fn go_on(core: &mut CoreLoop, pending: Pending, asked: Asked, body: &[u8]) -> Result<Next, Refusal> {
    if !core.serves() {
        let wire = Reject::Recovering.wire();
        return Err(Refusal::new(503, wire.code, "", "", wire.error));
    }
    desk::catch_up(core);
    let (to, binding, errand) = match asked {
        Asked::Markets { after } => {
            let after = after.map(|market| find(core, market)).transpose();
            return Ok(Next::Say(desk::markets(core, after.map_err(Refusal::of_after)?.as_ref())));
        }
        Asked::Market(market) => return Ok(Next::Say(desk::market(core, &find(core, market)?))),
        Asked::Books => return Ok(Next::Say(books::list(core))),
        Asked::Book(market) => return Ok(Next::Say(books::one(core, &find(core, market)?))),
        Asked::Account(wallet) => return desk::account(core, &wallet).map(Next::Say),
        Asked::FeeAccount => return desk::fee_account(core).map(Next::Say),
        Asked::Advance(ms) => {
            room(core, REGISTRAR_LOOP)?;
            (REGISTRAR_LOOP, Binding::EveryShard, advance(core, ms)?)
        }
        Asked::Snapshot => return snapshot(core, pending),
        Asked::Import => return intake::begin(core, pending, body).map(|()| Next::Sent),
        Asked::NewMarket(market) => {
            return intake::begin_market(core, pending, market).map(|()| Next::Sent);
        }
        Asked::SetMarketMode(market, mode) => {
            let place = find(core, market)?;
            (place.shard_loop, Binding::EveryShard, market_acts::set_mode(place, mode))
        }
        Asked::SetTick(market, tick) => {
            let place = find(core, market)?;
            (place.shard_loop, Binding::Nobody, market_acts::set_tick(place, tick))
        }
        Asked::Resolve { market, payout, redeem } => {
            let place = find(core, market)?;
            (place.shard_loop, Binding::EveryShard, market_acts::resolve(place, payout, redeem))
        }
        Asked::Money(movement) => (REGISTRAR_LOOP, Binding::Nobody, money(movement)?),
        Asked::Link { wallet, owner } => {
            let errand: Errand =
                Box::new(move |trade, now| match trade.own_registrar().link(now, wallet, owner) {
                    Ok(_) => said(|json| {
                        json.key("wallet").address(&wallet).key("owner").address(&owner);
                    }),
                    Err(refusal @ registrar::Refusal::WalletNotAnOwner) => {
                        refused(refusal, &hex(owner.as_bytes()))
                    }
                    Err(refusal) => refused(refusal, &hex(wallet.as_bytes())),
                });
            (REGISTRAR_LOOP, Binding::EveryShard, errand)
        }
        Asked::Freeze { wallet, frozen } => (REGISTRAR_LOOP, Binding::EveryShard, freeze(wallet, frozen)),
        Asked::SetMode(mode) => (REGISTRAR_LOOP, Binding::EveryShard, set_exchange_mode(mode)),
    };
    room(core, to)?;
    acts::send(core, to, Box::new(ActJob::new(Purpose::Operator(pending), binding, errand)));
    Ok(Next::Sent)
}

/// Freezes the principal of `wallet` and removes its orders, or lets it trade again.
fn freeze(wallet: Address, frozen: bool) -> Errand {
    Box::new(move |trade, now| {
        let registrar = trade.own_registrar();
        let done = registrar.set_frozen(now, &wallet, frozen);
        let principal = match done {
            Ok(principal) => principal,
            Err(refusal) => return refused(refusal, &hex(wallet.as_bytes())),
        };
        let owner = registrar.registry().wallet(principal).address;
        let about = Freezing { wallet, owner, principal, at: registrar.last_claimed() };
        if frozen {
            Report::Next(0, remove_orders(0, about, 0))
        } else {
            said(|json| about.write(json, false))
        }
    })
}

/// Who is frozen or let go.
#[derive(Clone, Copy)]
struct Freezing {
    /// As the operator named it.
    wallet: Address,
    /// Who trades with it: the wallet itself, or the owner that it is linked to.
    owner: Address,
    principal: WalletNo,
    /// Where the log says so.
    at: Position,
}

impl Freezing {
    fn write(&self, json: &mut Writer<'_>, frozen: bool) {
        json.key("wallet").address(&self.wallet).key("owner").address(&self.owner);
        json.key("frozen").boolean(frozen);
    }
}

/// Removes the orders of a frozen principal from this shard on; `removed` have left the shards before it. What it places
/// once it is let go stays.
fn remove_orders(shard: usize, about: Freezing, removed: usize) -> Errand {
    Box::new(move |trade, _| {
        let then = move |trade: &mut Trade, here: usize| {
            let removed = removed + here;
            if shard + 1 < usize::from(trade.shards) {
                return Report::Next(shard + 1, remove_orders(shard + 1, about, removed));
            }
            said(|json| {
                about.write(json, true);
                json.key("ordersRemoved").number(removed as u64);
            })
        };
        // While it is frozen it gets no new orders, but one may have been judged just before that.
        let scope = move |trade: &Trade| {
            let is_frozen = trade.registry.wallet(about.principal).frozen();
            OrderScope { before: (!is_frozen).then_some(about.at), ..OrderScope::ALL }
        };
        trade.remove_orders(about.principal, scope, RemovalReason::Operator, Box::new(then))
    })
}

/// Checks that an act can be sent now: its connection is out of its slot while its request is begun, so a refusal from
/// [`acts::send`] would find nobody.
pub(super) fn room(core: &CoreLoop, to: usize) -> Result<(), Refusal> {
    let wire = Reject::Busy.wire();
    if core.mesh.may_post(to) { Ok(()) } else { Err(Refusal::new(503, wire.code, "", "", wire.error)) }
}

fn find(core: &CoreLoop, market: MarketName) -> Result<Place, Refusal> {
    desk::place(core, market).ok_or_else(|| {
        let got = match market {
            MarketName::Id(id) => id.to_string(),
            MarketName::Condition(condition) => hex(condition.as_bytes()),
        };
        let allowed = "a market that is here; see market list";
        Refusal::of(registrar::Refusal::MarketUnknown, "market", &got, allowed)
    })
}

fn snapshot(core: &CoreLoop, pending: Pending) -> Result<Next, Refusal> {
    if core.shared.snapshots.ask(pending) {
        Ok(Next::Sent)
    } else {
        Err(Refusal::new(503, "busy", "", "", "enough requests wait for a snapshot; try again"))
    }
}

/// Moves the clock; the answer says that every shard has the new time.
fn advance(core: &CoreLoop, ms: i64) -> Result<Errand, Refusal> {
    let now = core.shared.clock.advance_ms(ms).map_err(|unmoved| match unmoved {
        Unmoved::Real => Refusal::new(409, "clock_is_real", "clock", "real", "manual: dev --clock manual"),
        Unmoved::OutOfRange => wrong("advance_ms", &ms.to_string(), "to a time from 1970 to the year 9999"),
    })?;
    for waker in &core.shared.wakers {
        waker.ring();
    }
    Ok(Box::new(move |_, _| {
        said(|json| {
            json.key("timeMs").number(now.0);
        })
    }))
}

fn money(movement: Movement) -> Result<Errand, Refusal> {
    let Movement { wallet, direction, amount, reference, kind } = movement;
    let word = if direction == MoneyDirection::Credit { "credit" } else { "debit" };
    let reference = match reference {
        Some(reference) => reference,
        None => made_up_reference(word)
            .map_err(|_| Refusal::new(503, "no_randomness", "ref", "", "a text of yours"))?,
    };
    Ok(Box::new(move |trade, now| {
        let registrar = trade.own_registrar();
        let wallet = wallet.unwrap_or_else(|| {
            let registry = registrar.registry();
            registry.wallet(registry.fee_wallet().expect("every start sees to it")).address
        });
        let order = MoneyOrder { wallet, amount, reference: &reference, kind };
        let done = match direction {
            MoneyDirection::Credit => registrar.credit(now, &order),
            MoneyDirection::Debit => registrar.debit(now, &order),
        };
        match done {
            Ok(repeated) => said(|json| {
                json.key("wallet").address(&wallet).key("direction").text(word);
                json.key("amount").millionths_text(amount.0).key("ref").text(&reference);
                json.key("repeated").boolean(repeated);
                // A credit may have made it, and its kind stays.
                let row = registrar.registry().wallet_of(&wallet).map(|row| registrar.registry().wallet(row));
                if let Some(row) = row {
                    json.key("kind").text(row.kind.text());
                }
            }),
            Err(registrar::Refusal::ReferenceTaken) => {
                refused(registrar::Refusal::ReferenceTaken, &reference)
            }
            Err(
                refusal @ (registrar::Refusal::WalletUnknown
                | registrar::Refusal::WalletOfOtherKind
                | registrar::Refusal::WalletIsForFees),
            ) => refused(refusal, &hex(wallet.as_bytes())),
            Err(refusal @ registrar::Refusal::NotEnough) => {
                let amounts = [amount, registrar.available(&wallet)];
                let [got, allowed] = amounts.map(|amount| ShortText::millionths(amount.0));
                refusal::report_within(refusal, got.as_str(), allowed.as_str())
            }
            Err(refusal) => refused(refusal, ShortText::millionths(amount.0).as_str()),
        }
    }))
}

fn set_exchange_mode(mode: Mode) -> Errand {
    Box::new(move |trade, now| match trade.own_registrar().set_exchange_mode(now, mode) {
        Ok(()) => said(|json| {
            json.key("mode").text(mode.text());
        }),
        Err(refusal) => refused(refusal, mode.text()),
    })
}

/// The answer with what `write` puts into its object.
pub(super) fn said(write: impl FnOnce(&mut Writer<'_>)) -> Report {
    let mut body = Vec::new();
    let mut json = Writer::new(&mut body);
    json.open_object();
    write(&mut json);
    json.close_object();
    Report::done(body)
}

/// The answer to what the registrar refused; `got` is what it was about.
pub(super) fn refused(refusal: registrar::Refusal, got: &str) -> Report {
    refusal::report_of(refusal, ShortText::new(got).as_str())
}

/// The answer to what a shard refused.
pub(super) fn refused_by_shard(refusal: &crate::shard::Refusal) -> Report {
    Report::Answer(refusal::rejected(refusal.reject, refusal.reject.wire().error))
}

/// `0x` and lower-case hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    name::push_hex(&mut out, bytes);
    String::from_utf8(out).expect("hex is text")
}
