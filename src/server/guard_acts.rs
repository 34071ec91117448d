//! Heartbeats and fill-rate breakers: from a key-holder's request at the reader's to the registrar and
//! back.

use super::caller::Caller;
use super::ingress::Trade;
use super::key_acts::refused;
use super::message::{ActJob, Binding, Errand, Purpose, ReadJob, Report};
use crate::domain::{ApiKey, TimeMs, WalletNo};
use crate::http::Endpoint;
use crate::json::{BodyReader, ReadError, Writer};
use crate::registrar::{BEAT_WITHIN_MS, BeatRefusal, Registrar};
use crate::registry::{BreakerRow, BreakerState, Registry};

/// What a key-holder asks of its guards.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Beat { shown: Option<ApiKey> },
    StopBeating,
    SetBreaker(BreakerState),
    ShowBreaker,
    ResetBreaker,
}

/// True for routes of an API key's guards.
pub(super) fn is_one(endpoint: Endpoint) -> bool {
    use Endpoint as E;
    matches!(
        endpoint,
        E::Heartbeat
            | E::HeartbeatPlain
            | E::HeartbeatStop
            | E::Breaker
            | E::BreakerSet
            | E::BreakerClear
            | E::BreakerReset
    )
}

/// The act that a request asks for; the body is rewritten by reading it.
pub(super) fn of_key(
    caller: &Caller,
    endpoint: Endpoint,
    bodies: &mut BodyReader,
    body: &mut [u8],
    job: Box<ReadJob>,
) -> Result<ActJob, (Box<ReadJob>, ReadError)> {
    let asked = match read(endpoint, bodies, body) {
        Ok(asked) => asked,
        Err(error) => return Err((job, error)),
    };
    let (principal, key) = (caller.principal, caller.api_key);
    let errand: Errand = Box::new(move |trade, now| run(trade, now, principal, key, asked));
    Ok(ActJob::new(Purpose::Reader(job), Binding::Nobody, errand))
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
    let Some(registrar) = &mut trade.registrar else {
        unreachable!("acts on guards go to the registrar's loop");
    };
    let done = match asked {
        Asked::Beat { shown } => return beat(registrar, now, principal, key, shown),
        Asked::StopBeating => match registrar.disarm_switch(now, principal, key) {
            Ok(()) => return Report::Answer(200, b"{\"heartbeat_id\":\"\"}".to_vec()),
            Err(refusal) => Err(refusal),
        },
        Asked::SetBreaker(state) => registrar.set_breaker(now, principal, key, state),
        Asked::ResetBreaker => registrar.reset_breaker(now, principal, key),
        Asked::ShowBreaker => Ok(()),
    };
    match done {
        Ok(()) => Report::Answer(200, breaker(registrar.registry(), &key, now)),
        Err(refusal) => refused(refusal),
    }
}

fn beat(
    registrar: &mut Registrar,
    now: TimeMs,
    principal: WalletNo,
    key: ApiKey,
    shown: Option<ApiKey>,
) -> Report {
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.open_object();
    let status = match registrar.beat(now, principal, key, shown) {
        Ok(id) => {
            json.key("heartbeat_id").uuid(id).key("cancels_after_ms").number(BEAT_WITHIN_MS);
            200
        }
        Err(BeatRefusal { refusal, valid }) => {
            let wire = refusal.wire();
            json.key("error").text(wire.error).key("code").text(wire.code).key("heartbeat_id");
            match valid {
                Some(id) => json.uuid(id),
                None => json.text(""),
            };
            wire.status
        }
    };
    json.close_object();
    Report::Answer(status, out)
}

/// How a key's breaker stands; all zeros if it has none.
fn breaker(registry: &Registry, key: &ApiKey, now: TimeMs) -> Vec<u8> {
    let row = registry.breaker(key);
    let state = row.map(BreakerRow::state).filter(|state| !state.quantity.is_zero()).unwrap_or_default();
    let filled = row.filter(|_| !state.quantity.is_zero()).map(|row| row.filled(now)).unwrap_or_default();
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.open_object().key("quantity").millionths_text(state.quantity.0);
    json.key("interval_ms").number(state.interval_ms).key("filled").millionths_text(filled.0);
    json.key("tripped").boolean(state.tripped).close_object();
    out
}
