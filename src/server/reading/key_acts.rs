//! What key-holders do to their keys: from a request at the reader's to the registrar and back.

use super::{Read, Reading};
use crate::auth::Credentials;
use crate::auth::explain;
use crate::auth::l1::Claim;
use crate::domain::{ApiKey, Dialect, TimeMs};
use crate::http::{AuthHeaders, Endpoint, Head, Query};
use crate::json::{ShortText, Writer};
use crate::registrar::ListedKey;
use crate::server::requests::caller::Caller;
use crate::server::requests::explain::{Explanation, Judged};
use crate::server::requests::refusal;
use crate::server::threads::message::{ActJob, Binding, Errand, Purpose, ReadJob, Report};

/// How many revoked keys of one nonce are listed: each costs an HMAC on the registrar's loop, which trades too.
const REVOKED_LISTED_MAX: usize = 2;

/// True for routes of an API key that the registrar answers.
pub(super) fn is_one(endpoint: Endpoint) -> bool {
    use Endpoint as E;
    matches!(
        endpoint,
        E::ApiKeys | E::ApiKeyRevoke | E::ReadonlyKeyCreate | E::ReadonlyKeys | E::ReadonlyKeyRevoke
    )
}

/// A wallet's owner wants credentials (L1): one curve operation, then the registrar.
pub(super) fn of_wallet(
    reading: &mut Reading,
    head: &Head<'_>,
    endpoint: Endpoint,
    now: TimeMs,
    mut job: Box<ReadJob>,
) -> Read {
    let headers = head.auth.unwrap_or(AuthHeaders::none(Dialect::Service));
    let claim = Claim {
        address: headers.address.unwrap_or("").as_bytes(),
        signature: headers.signature.unwrap_or("").as_bytes(),
        timestamp: headers.timestamp.unwrap_or("").as_bytes(),
        nonce: headers.nonce.map(str::as_bytes),
        chain_id: head.chain_id.map(str::as_bytes),
    };
    let proof = match reading.verifier.claim(&claim, now, reading.followed.callers.l1_window_s()) {
        Ok(proof) => proof,
        Err(reject) => {
            let explain = reading.explains.then(|| explained(reading, &claim, now));
            let status = reading.refuse((reject, headers.dialect), &job.toll, explain.as_deref());
            return Read::Body(job, status);
        }
    };
    let creates = endpoint == Endpoint::ApiKeyCreate;
    if creates && let Err(reject) = reading.followed.callers.charge_for_wallet(&mut job.toll, &proof.address)
    {
        let status = reading.refuse((reject, headers.dialect), &job.toll, None);
        return Read::Body(job, status);
    }
    let errand: Errand = Box::new(move |trade, now| {
        let registrar = trade.own_registrar();
        let made = if creates {
            registrar.create_key(now, proof.address, proof.nonce)
        } else {
            registrar.derive_key(proof.address, proof.nonce)
        };
        match made {
            Ok(credentials) => Report::done(trio(&credentials)),
            Err(refusal) => refusal::report_of(refusal, ShortText::hex(&proof.address.0).as_str()),
        }
    });
    Read::Act(Box::new(ActJob::new(Purpose::Reader(job), Binding::Nobody, errand)))
}

/// The owner of a key makes, lists or revokes read-only ones; `meant` is the one that its body names.
pub(super) fn of_readonly(
    caller: &Caller,
    endpoint: Endpoint,
    meant: Option<ApiKey>,
    job: Box<ReadJob>,
) -> ActJob {
    let (principal, wrapped) = (caller.principal, wants_an_object(caller));
    let errand: Errand = Box::new(move |trade, now| {
        let registrar = trade.own_registrar();
        let told = match (endpoint, meant) {
            (Endpoint::ReadonlyKeys, _) => {
                Ok(listed("readonlyApiKeys", &registrar.readonly_keys(principal), wrapped))
            }
            (_, None) => registrar.create_readonly_key(now, principal).map(|key| {
                one("apiKey", |json| {
                    json.uuid(key);
                })
            }),
            (_, Some(key)) => registrar.revoke_readonly_key(now, principal, &key).map(|deleted| {
                one("deleted", |json| {
                    json.boolean(deleted);
                })
            }),
        };
        told.map_or_else(refusal::report, Report::done)
    });
    // Read-only keys are looked up where the reader is, which this answer passes: nobody else has to
    // have seen it.
    ActJob::new(Purpose::Reader(job), Binding::Nobody, errand)
}

/// Whether the caller wants an object around a list of keys: Kuest's client in Rust does, its others do not.
const fn wants_an_object(caller: &Caller) -> bool {
    match caller.dialect {
        Dialect::Poly => true,
        Dialect::Kuest => caller.in_lower_case,
        Dialect::Service => false,
    }
}

/// A list of keys, in an object as its field `name` if it is to be wrapped.
fn listed(name: &'static str, keys: &[ApiKey], wrapped: bool) -> Vec<u8> {
    written(|json| {
        if wrapped {
            json.open_object().key(name);
        }
        json.open_array();
        for key in keys {
            json.uuid(*key);
        }
        json.close_array();
        if wrapped {
            json.close_object();
        }
    })
}

/// An object with one field.
fn one(name: &'static str, value: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    written(|json| {
        json.open_object().key(name);
        value(json);
        json.close_object();
    })
}

fn written(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut Writer::new(&mut out));
    out
}

fn explained(reading: &Reading, claim: &Claim<'_>, now: TimeMs) -> Explanation {
    let judged = Judged { now, window_s: reading.followed.callers.l1_window_s() };
    let chain = reading.verifier.domains().chain();
    match explain::claim(chain, claim, now, judged.window_s) {
        Ok(signing) => crate::server::requests::explain::signing(&signing),
        Err(presenting) => crate::server::requests::explain::claiming(&presenting, judged),
    }
}

/// The owner of a key lists its keys.
pub(super) fn list(caller: &Caller, query: &Query<'_>, job: Box<ReadJob>) -> ActJob {
    let principal = caller.principal;
    let is_true = |name| query.first(name).is_some_and(|value| value.raw() == "true");
    let (metadata, revoked, wrapped) =
        (is_true("metadata"), is_true("includeRevoked"), wants_an_object(caller));
    let errand: Errand = Box::new(move |trade, _now| {
        let revoked_max = if metadata && revoked { REVOKED_LISTED_MAX } else { 0 };
        let keys = trade.own_registrar().keys(principal, revoked_max);
        let ids = || keys.iter().map(|key| key.api_key).collect::<Vec<_>>();
        Report::done(if metadata { records(&keys) } else { listed("apiKeys", &ids(), wrapped) })
    });
    ActJob::new(Purpose::Reader(job), Binding::Nobody, errand)
}

/// The owner of a key revokes one of its keys.
pub(super) fn revoke(caller: &Caller, meant: ApiKey, job: Box<ReadJob>) -> ActJob {
    let (principal, dialect) = (caller.principal, caller.dialect);
    let errand: Errand =
        Box::new(move |trade, now| match trade.own_registrar().revoke_key(now, principal, &meant) {
            // Polymarket's clients know this word alone.
            Ok(()) if dialect == Dialect::Poly => Report::done(b"\"OK\"".to_vec()),
            Ok(()) => Report::done(b"{\"revoked\":true}".to_vec()),
            Err(refusal) => refusal::report_of(refusal, ShortText::uuid(meant).as_str()),
        });
    ActJob::new(Purpose::Reader(job), Binding::EveryShard, errand)
}

fn records(keys: &[ListedKey]) -> Vec<u8> {
    written(|json| {
        json.open_array();
        for key in keys {
            json.open_object().key("apiKey").uuid(key.api_key).key("nonce").uint256(&key.nonce);
            json.key("status").text(if key.active { "active" } else { "revoked" });
            json.key("createdAt").null().key("revokedAt").null().close_object();
        }
        json.close_array();
    })
}

fn trio(credentials: &Credentials) -> Vec<u8> {
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    let secret = credentials.secret_text();
    json.open_object().key("apiKey").uuid(credentials.api_key);
    json.key("secret").text(std::str::from_utf8(&secret).expect("base64 is ASCII"));
    json.key("passphrase").text(std::str::from_utf8(&credentials.passphrase).expect("hex is ASCII"));
    json.close_object();
    out
}
