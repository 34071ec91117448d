//! Who a request with an API key is from: headers and route as the registrar's entrance takes them.

use std::sync::Arc;

use super::toll::Toll;
use crate::auth::explain::{self, Check, Presenting};
use crate::auth::l2::Request;
use crate::auth::{Chain, Domains, MasterSecret};
use crate::domain::{Address, ApiKey, Dialect, Reject, TimeMs, WalletNo};
use crate::http::{AuthHeaders, Class, Endpoint, Head, Route};
use crate::journal::layout::KeyChanged;
use crate::limits::{Cost, Due, Moment, RateLimits, Scope};
use crate::reader::Credentials;
use crate::registrar::{self, Entrance, Presented};
use crate::registry::{KeyState, Registry};
use crate::server::plan::Plan;

/// Keys that a loop keeps ready.
const KEYS_READY: u32 = 4_096;

/// The owner of the key that a request was signed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The owner.
    pub(crate) principal: WalletNo,
    /// Its EOA.
    pub(crate) address: Address,
    /// The key.
    pub(crate) api_key: ApiKey,
    /// Whose conventions the answer follows.
    pub(crate) dialect: Dialect,
    /// Whether it is a client that writes its headers' names in lower case, as those in Rust do.
    pub(crate) in_lower_case: bool,
}

/// Checks the callers of one loop.
pub(crate) struct Callers {
    registry: Arc<Registry>,
    entrance: Entrance,
    window_s: u64,
    read_window_s: u64,
    limits: Arc<RateLimits>,
    /// The turn's time, as limits count it.
    pub(in crate::server) moment: Moment,
}

impl Callers {
    /// Callers of a loop that nobody has called yet.
    pub(crate) fn new(
        plan: &Plan,
        registry: Arc<Registry>,
        master: MasterSecret,
        limits: Arc<RateLimits>,
    ) -> Self {
        Self {
            registry,
            entrance: Entrance::new(master, chain(plan), KEYS_READY),
            window_s: plan.window_s,
            read_window_s: plan.read_window_s,
            limits,
            moment: Moment::default(),
        }
    }

    /// Seconds that an L1 request may be off the clock.
    pub(crate) fn l1_window_s(&self) -> u64 {
        self.window_s
    }

    /// The owner of these credentials, which are shown in plain instead of being used to sign.
    pub(crate) fn check_plain(&mut self, shown: &Credentials<'_>) -> Option<crate::reader::Caller> {
        let caller = self.entrance.admit_plain(
            &self.registry,
            shown.api_key.as_bytes(),
            shown.secret.as_bytes(),
            shown.passphrase.as_bytes(),
        )?;
        // A stream's credentials name no dialect; its messages are Polymarket's.
        let dialect = Dialect::Poly;
        Some(crate::reader::Caller { principal: caller.principal, key: caller.api_key, dialect })
    }

    /// Whether the key that a request was signed with still lives.
    pub(crate) fn lives(&mut self, caller: &Caller) -> bool {
        self.entrance.lives(&self.registry, &caller.api_key, &caller.address)
    }

    /// Whether this is a living key by which an owner is known, as far as was noted.
    pub(crate) fn knows(&self, key: &ApiKey) -> bool {
        self.entrance.knows(key)
    }

    /// Notes the keys that there are, so that the first stream that names one does not wait until all are.
    pub(crate) fn note_wallets(&mut self) {
        self.entrance.note_wallets(&self.registry);
    }

    /// Notes that a key was made or revoked, as the log says.
    pub(crate) fn note_key(&mut self, key: &KeyChanged) {
        let state = KeyState { generation: key.generation, active: key.active };
        self.entrance.note_key(&self.registry, key.principal, key.nonce, state);
    }

    /// Whether this is a read-only key of this owner.
    pub(crate) fn is_readonly_key(&self, address: &Address, key: &ApiKey) -> bool {
        self.entrance.reader_for(&self.registry, address, key).is_some()
    }

    /// The owner of a read-only key, if it may ask for this.
    fn check_readonly(
        &self,
        headers: &AuthHeaders<'_>,
        key: &str,
        endpoint: Endpoint,
    ) -> Result<Caller, Reject> {
        let address = headers.address.unwrap_or("").as_bytes();
        let caller = self.entrance.admit_readonly(&self.registry, address, key.as_bytes());
        let caller = caller.ok_or(Reject::Unauthorized)?;
        if is_for_readers(endpoint) { Ok(of_entrance(caller, headers)) } else { Err(Reject::ReadonlyKey) }
    }

    /// The limits that callers are counted by.
    pub(in crate::server) fn limits(&self) -> &RateLimits {
        &self.limits
    }

    /// Counts a request by the address that it came from, before anything about it is checked.
    pub(in crate::server) fn charge(
        &self,
        toll: &mut Toll,
        endpoint: Endpoint,
        body_bytes: usize,
    ) -> Result<(), Reject> {
        toll.pay(&self.limits, endpoint, body_bytes, self.moment)
    }

    /// Counts a wallet that gets its first key by the address that it came from, if the exchange does not know it yet.
    pub(in crate::server) fn charge_for_wallet(
        &self,
        toll: &mut Toll,
        wallet: &Address,
    ) -> Result<(), Reject> {
        match self.registry.wallet_of(wallet) {
            Some(_) => Ok(()),
            None => toll.pay_for_wallet(&self.limits, self.moment),
        }
    }

    /// Counts a request as `count`, one of which was counted when its caller was checked.
    pub(in crate::server) fn charge_more(
        &self,
        toll: &mut Toll,
        endpoint: Endpoint,
        caller: &Caller,
        count: usize,
    ) -> Result<(), Reject> {
        let more = u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX);
        toll.pay_more(&self.limits, endpoint, caller.principal, more, self.moment)
    }

    /// Counts what an owner's cancels turned out to cost.
    pub(in crate::server) fn owe_for_cancels(&self, principal: WalletNo, count: u32) {
        let cost = Cost { now: count, ..Cost::NONE };
        let due = Due { party: self.limits.owner(principal.0), scope: Scope::Cancel, cost };
        self.limits.owe(due, self.moment);
    }

    /// The caller, as [`Self::identify`] finds it; the request is counted by that owner unless it shows a read-only
    /// key. If an error leaves the toll held, the request may go on later.
    pub(crate) fn check(
        &mut self,
        head: &Head<'_>,
        route: &Route<'_>,
        body: &[u8],
        now: TimeMs,
        toll: &mut Toll,
    ) -> Result<Caller, Reject> {
        let caller = self.identify(head, route, body, now)?;
        let signed = head.auth.as_ref().is_some_and(|headers| headers.api_key.is_some());
        if signed {
            toll.pay_as(&self.limits, route.endpoint, caller.principal, self.moment)?;
        }
        Ok(caller)
    }

    /// Who signed this request with an API key, or shows a read-only one.
    pub(crate) fn identify(
        &mut self,
        head: &Head<'_>,
        route: &Route<'_>,
        body: &[u8],
        now: TimeMs,
    ) -> Result<Caller, Reject> {
        let headers = head.auth.as_ref().ok_or(Reject::Unauthorized)?;
        if let (None, Some(key)) = (headers.api_key, headers.readonly_api_key) {
            return self.check_readonly(headers, key, route.endpoint);
        }
        let (presented, request) = (presented(headers), signed(headers, head, route, body));
        let window_s = self.window_s(route.endpoint);
        let caller = self.entrance.admit(&self.registry, &presented, &request, now, window_s);
        Ok(of_entrance(caller.ok_or(Reject::Unauthorized)?, headers))
    }

    /// Why [`Self::check`] refused this request: for people, in `dev`.
    pub(crate) fn explain(
        &mut self,
        head: &Head<'_>,
        route: &Route<'_>,
        body: &[u8],
        now: TimeMs,
    ) -> Presenting {
        let Some(headers) = &head.auth else {
            return Presenting { check: Check::Headers, skew_ms: None, slip: None };
        };
        if let (None, Some(key)) = (headers.api_key, headers.readonly_api_key) {
            return explain::readonly(headers.address.unwrap_or("").as_bytes(), key.as_bytes());
        }
        let (presented, request) = (presented(headers), signed(headers, head, route, body));
        let when = (now, self.window_s(route.endpoint));
        self.entrance.explain(&self.registry, &presented, &request, head.query, when)
    }

    /// Seconds that a request with an API key may be off the clock: fewer if it changes something.
    pub(crate) const fn window_s(&self, endpoint: Endpoint) -> u64 {
        if only_reads(endpoint) { self.read_window_s } else { self.window_s }
    }
}

/// True for what changes nothing: reads, and what asks for builder keys or drops notices, of which there are none.
const fn only_reads(endpoint: Endpoint) -> bool {
    use Endpoint as E;
    match endpoint {
        E::Breaker => true,
        E::ApiKeyRevoke | E::ReadonlyKeyCreate | E::ReadonlyKeyRevoke => false,
        other => !matches!(other.class(), Class::Trading),
    }
}

/// True for what a read-only key reads: whatever is its owner's, but no keys, and no guard of another key.
const fn is_for_readers(endpoint: Endpoint) -> bool {
    use Endpoint as E;
    only_reads(endpoint) && !matches!(endpoint, E::ApiKeys | E::ReadonlyKeys | E::Breaker)
}

fn presented<'a>(headers: &AuthHeaders<'a>) -> Presented<'a> {
    Presented {
        address: headers.address.unwrap_or("").as_bytes(),
        api_key: headers.api_key.unwrap_or("").as_bytes(),
        passphrase: headers.passphrase.unwrap_or("").as_bytes(),
        signature: headers.signature.unwrap_or("").as_bytes(),
    }
}

/// The parts of a request that its headers sign.
fn signed<'a>(headers: &AuthHeaders<'a>, head: &Head<'a>, route: &Route<'a>, body: &'a [u8]) -> Request<'a> {
    let prefix_bytes = route.full_path.len() - route.path.len();
    Request {
        timestamp: headers.timestamp.unwrap_or("").as_bytes(),
        method: head.method.text().as_bytes(),
        path: route.full_path.as_bytes(),
        prefix: &route.full_path.as_bytes()[..prefix_bytes],
        body,
    }
}

fn of_entrance(caller: registrar::Caller, headers: &AuthHeaders<'_>) -> Caller {
    let registrar::Caller { principal, address, api_key } = caller;
    let &AuthHeaders { dialect, in_lower_case, .. } = headers;
    Caller { principal, address, api_key, dialect, in_lower_case }
}

/// The chain of a plan.
pub(crate) fn chain(plan: &Plan) -> Chain {
    Chain::new(plan.chain_id).expect("the plan takes only chains that have contracts")
}

/// The signing domains of a plan.
pub(crate) fn domains(plan: &Plan) -> Domains {
    Domains::new(chain(plan))
}
