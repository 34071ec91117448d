//! What refusals of signatures and credentials say in addition in `dev`: which check failed, as JSON.
//!
//! All of it happens after a refusal, and only in `dev`: `serve` never comes here. It says what the client sent and
//! what can be computed from that; no secret, and not the MAC that would have been right.

use super::caller::Caller;
use super::request::Request;
use crate::auth::explain::{self, Check, KnownDomain, Presenting, Signing};
use crate::domain::{Reject, TimeMs};
use crate::http::{Head, Route};
use crate::json::{ShortText, Writer};
use crate::server::trading::work::Refused;
use crate::server::trading::{Trade, venue_of};

/// An `explain` object.
pub(in crate::server) type Explanation = Box<[u8]>;

/// When a request was judged.
#[derive(Clone, Copy, Debug)]
pub(in crate::server) struct Judged {
    pub(in crate::server) now: TimeMs,
    pub(in crate::server) window_s: u64,
}

impl Trade {
    /// Explains the refusal of a whole request.
    pub(in crate::server) fn explain_request(
        &mut self,
        route: &Route<'_>,
        request: &Request<'_>,
        refused: &Refused,
        now: TimeMs,
    ) -> Option<Explanation> {
        match refused.reject {
            Reject::Unauthorized => {
                let (head, body) = (&request.head, request.body);
                let found = self.callers.explain(head, route, body, now);
                let judged = Judged { now, window_s: self.callers.window_s(route.endpoint) };
                Some(presenting(&found, head, route, body, judged))
            }
            Reject::OrderVersionMismatch => Some(of_other_version()),
            // Without an order, only splits, merges and redeems are refused so.
            reject @ (Reject::SignatureInvalid | Reject::MakerNotAuthorized) => {
                self.explain_act(route, request, reject, now).map(|found| signing(&found))
            }
            _ => None,
        }
    }

    /// Explains the refusal of one order, and keeps it until the answer is written.
    pub(in crate::server) fn explain_item(
        &mut self,
        work: u32,
        item: usize,
        caller: &Caller,
        refused: &Refused,
    ) {
        let explained = match (&self.orders[item], refused.reject) {
            (
                Ok(order),
                Reject::SignatureInvalid
                | Reject::SignerMismatch
                | Reject::MakerNotAuthorized
                | Reject::OrderVersionMismatch,
            ) => {
                let market = self.registry.token(&order.fields.token);
                let neg_risk = market.is_some_and(|(market, _)| self.registry.market(market).neg_risk);
                let asked = (venue_of(caller.dialect, self.venue), neg_risk);
                let chain = self.verifier.domains().chain();
                signing(&explain::order(chain, order, &caller.address, asked, refused.reject))
            }
            (Err(_), Reject::OrderVersionMismatch) => of_other_version(),
            _ => return,
        };
        self.works.work(work).explained.push((item, explained));
    }
}

/// Explains the headers of a request.
pub(in crate::server) fn presenting(
    found: &Presenting,
    head: &Head<'_>,
    route: &Route<'_>,
    body: &[u8],
    judged: Judged,
) -> Explanation {
    let timestamp = head.auth.as_ref().and_then(|headers| headers.timestamp).unwrap_or("");
    written(found.check, |json| {
        clock(json, found, judged);
        let method = head.method.text();
        json.key("prehash").text(&format!(
            "{}{method}{}",
            ShortText::new(timestamp).as_str(),
            route.full_path
        ));
        json.key("body_bytes").number(body.len() as u64).key("fits").text_or_null(found.slip);
    })
}

/// Explains the headers of an L1 request.
pub(in crate::server) fn claiming(found: &Presenting, judged: Judged) -> Explanation {
    written(found.check, |json| clock(json, found, judged))
}

/// Explains a signature.
pub(in crate::server) fn signing(found: &Signing) -> Explanation {
    written(found.check, |json| {
        json.key("digest").hex(&found.digest.0).key("domain");
        domain(json, &found.domain);
        json.key("signer_expected").address(&found.expected).key("signer_recovered");
        json.or_null(found.recovered.as_ref(), Writer::address);
        json.key("fits").or_null(found.fits.as_ref(), domain);
    })
}

fn of_other_version() -> Explanation {
    written(Check::OrderVersion, |_| {})
}

fn written(check: Check, more: impl FnOnce(&mut Writer<'_>)) -> Explanation {
    let mut out = Vec::new();
    let json = &mut Writer::new(&mut out);
    json.open_object().key("check").text(check.word()).key("hint").text(check.hint());
    more(json);
    json.close_object();
    out.into()
}

fn clock(json: &mut Writer<'_>, found: &Presenting, judged: Judged) {
    json.key("server_time_ms").number(judged.now.0).key("window_ms").number(judged.window_s * 1_000);
    json.key("skew_ms").or_null(found.skew_ms, |json, skew| json.raw(skew.to_string().as_bytes()));
}

fn domain<'json, 'out>(json: &'json mut Writer<'out>, known: &KnownDomain) -> &'json mut Writer<'out> {
    json.open_object().key("name").text(known.name).key("version").text(known.version);
    json.key("chainId").number(known.chain.id());
    if let Some(contract) = &known.contract {
        json.key("verifyingContract").address(contract);
    }
    json.key("of").text(known.of).close_object()
}
