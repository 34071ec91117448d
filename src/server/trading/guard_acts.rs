//! Heartbeats and fill-rate breakers: from a key-holder's request on its trading loop to the registrar and
//! back. Reads never stand in the way of a heartbeat. These acts allocate: they are few.

use super::Trade;
use super::work::{Asker, Form, Refused};
use crate::domain::{ApiKey, BreakerState, Position, Reject, Shares, TimeMs, WalletNo};
use crate::http::{Endpoint, Head};
use crate::json::{BodyReader, ReadError, ShortText, Writer};
use crate::registrar::{BEAT_WITHIN_MS, BeatRefusal, KeyOfOwner, Refusal, Registrar};
use crate::registry::{BreakerRow, Registry};
use crate::server::core_loop::REGISTRAR_LOOP;
use crate::server::requests::caller::Caller;
use crate::server::requests::refusal;
use crate::server::threads::mesh::Mesh;
use crate::server::threads::message::{ActJob, Binding, Errand, Letter, Purpose, Report, Said};

/// What a key-holder asks of its guards.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Beat { shown: Option<ApiKey> },
    StopBeating,
    SetBreaker(BreakerState),
    ShowBreaker,
    ResetBreaker,
}

impl Trade {
    /// Takes a request about a key's guards and asks the registrar.
    pub(super) fn take_guard_act(
        &mut self,
        asker: Asker,
        endpoint: Endpoint,
        caller: &Caller,
        mesh: &mut Mesh,
    ) -> Result<u32, ReadError> {
        let asked = read(endpoint, &mut self.bodies, &mut self.body)?;
        let work = self.begin_work(asker, caller, Form::Told);
        self.works.expect(work);
        let (principal, key) = (caller.principal, caller.api_key);
        let errand: Errand = Box::new(move |trade, now| run(trade, now, principal, key, asked));
        let job = Box::new(ActJob::new(Purpose::Request(work), Binding::Nobody, errand));
        if mesh.post(REGISTRAR_LOOP, Letter::Act(job)).is_err() {
            self.told_of_act(work, refusal::busy(), Position(0), 0);
        }
        Ok(work)
    }

    /// Takes what the registrar said, after `match_ns` for deciding.
    pub(in crate::server) fn told_of_act(&mut self, work: u32, said: Said, at: Position, match_ns: u64) {
        self.lap_elsewhere(work, match_ns);
        let pending = self.works.work(work);
        pending.decided_at(at);
        pending.said = Some(said);
        self.works.came(work);
    }
}

/// The key whose orders are to be cancelled when the connection is lost, by what `X-Outcry-Cancel-On-Disconnect` says.
/// A connection answers for one key: another's promise cannot be kept, as the first would be broken without a word. One
/// of a proxy is shared by clients, and lives and ends as its proxy likes: it can answer for nobody, no more than one that
/// ends with the answer. The error is that of a request that may be refused for it.
pub(super) fn promise(
    head: &Head<'_>,
    caller: &Caller,
    before: Option<KeyOfOwner>,
    is_shared: bool,
) -> Result<Option<KeyOfOwner>, Refused> {
    let own = Some((caller.principal, caller.api_key));
    let is_others = before.is_some() && before != own;
    match head.cancel_on_disconnect {
        Some("true") if is_shared => {
            Err(unpromised("true", "false: the connection is a proxy's; promise it on /ws/user"))
        }
        Some("true") if !head.keep_alive => Err(unpromised(
            "true",
            "false: this connection ends with the answer; keep it, or promise on /ws/user",
        )),
        Some("true") if is_others => {
            Err(unpromised("true", "false: this connection answers for another key"))
        }
        Some("true") => Ok(own),
        Some("false") if !is_others => Ok(None),
        Some("false") | None => Ok(before),
        Some(text) => Err(unpromised(text, "true or false")),
    }
}

/// The refusal of a promise.
fn unpromised(got: &str, allowed: &str) -> Refused {
    Refused {
        field: "X-Outcry-Cancel-On-Disconnect",
        got: ShortText::new(got),
        allowed: ShortText::new(allowed),
        ..Refused::plain(Reject::InvalidPayload)
    }
}

fn read(endpoint: Endpoint, bodies: &mut BodyReader, body: &mut [u8]) -> Result<Asked, ReadError> {
    Ok(match endpoint {
        Endpoint::Heartbeat | Endpoint::HeartbeatPlain => Asked::Beat { shown: bodies.heartbeat(body)? },
        Endpoint::HeartbeatStop => Asked::StopBeating,
        Endpoint::BreakerSet => {
            let (quantity, interval_ms) = bodies.breaker(body)?;
            Asked::SetBreaker(BreakerState { quantity, interval_ms, tripped: false })
        }
        Endpoint::BreakerClear => Asked::SetBreaker(BreakerState::default()),
        Endpoint::BreakerReset => Asked::ResetBreaker,
        Endpoint::Breaker => Asked::ShowBreaker,
        other => unreachable!("{other:?} is not about a key's guards"),
    })
}

fn run(trade: &mut Trade, now: TimeMs, principal: WalletNo, key: ApiKey, asked: Asked) -> Report {
    let steady_ms = trade.steady_ms();
    let registrar = trade.own_registrar();
    let done = match asked {
        Asked::Beat { shown } => return beat(registrar, (now, steady_ms), principal, key, shown),
        Asked::StopBeating => match registrar.disarm_switch(now, principal, key) {
            Ok(()) => return Report::done(b"{\"heartbeat_id\":\"\"}".to_vec()),
            Err(refusal) => Err(refusal),
        },
        Asked::SetBreaker(state) => registrar.set_breaker(now, principal, key, state),
        Asked::ResetBreaker => registrar.reset_breaker(now, principal, key),
        Asked::ShowBreaker => Ok(()),
    };
    match done {
        Ok(()) => Report::done(breaker(registrar.registry(), principal, &key, now)),
        Err(refusal) => refusal::report_of(refusal, got(asked, refusal).as_str()),
    }
}

/// What was asked for that is refused so.
fn got(asked: Asked, refusal: Refusal) -> ShortText {
    match (asked, refusal) {
        // More cannot be said in millionths, and is read as this.
        (Asked::SetBreaker(BreakerState { quantity: Shares(u64::MAX), .. }), Refusal::BreakerQuantity) => {
            ShortText::new("so much")
        }
        (Asked::SetBreaker(state), Refusal::BreakerQuantity) => ShortText::millionths(state.quantity.0),
        (Asked::SetBreaker(state), Refusal::BreakerInterval) => ShortText::integer(state.interval_ms),
        _ => ShortText::EMPTY,
    }
}

fn beat(
    registrar: &mut Registrar,
    (now, steady_ms): (TimeMs, u64),
    principal: WalletNo,
    key: ApiKey,
    shown: Option<ApiKey>,
) -> Report {
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.open_object();
    let (status, retry_after_s) = match registrar.beat((now, steady_ms), principal, key, shown) {
        Ok(id) => {
            json.key("status").text("ok").key("heartbeat_id").uuid(id);
            json.key("cancels_after_ms").number(BEAT_WITHIN_MS);
            (200, None)
        }
        Err(BeatRefusal { refusal, valid }) => {
            refusal::write(&mut json, refusal);
            if refusal == Refusal::HeartbeatStale {
                // The text by which the venue's client knows that the id beside it is the good one.
                json.key("error_msg").text("Invalid Heartbeat ID");
            }
            json.key("heartbeat_id");
            match valid {
                Some(id) => json.uuid(id),
                None => json.text(""),
            };
            (refusal.wire().status, refusal.retry_after_s())
        }
    };
    json.close_object();
    Report::Answer(Said { status, retry_after_s, body: out })
}

/// How a key's breaker stands; all zeros if it has none.
fn breaker(registry: &Registry, principal: WalletNo, key: &ApiKey, now: TimeMs) -> Vec<u8> {
    let row = registry.breaker(principal, key);
    let state = row.map(BreakerRow::state).filter(|state| !state.quantity.is_zero()).unwrap_or_default();
    let filled = row.filter(|_| !state.quantity.is_zero()).map(|row| row.filled(now)).unwrap_or_default();
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.open_object().key("quantity").millionths_text(state.quantity.0);
    json.key("interval_ms").number(state.interval_ms).key("filled").millionths_text(filled.0);
    json.key("tripped").boolean(state.tripped).close_object();
    out
}
