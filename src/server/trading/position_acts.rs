//! Splits, merges and redeems: from a signed body to the market's shard and back.

use super::words;
use super::work::{Asker, Form, Item, Outcome, Refused};
use super::{Trade, of_read};
use crate::auth::ActTerms;
use crate::auth::explain::{self, Signing};
use crate::domain::{Position, Reject, Shares, TimeMs};
use crate::http::{Endpoint, Route};
use crate::journal::layout::ActKind;
use crate::json::read::SignedAct;
use crate::server::requests::caller::Caller;
use crate::server::requests::request::Request;
use crate::server::threads::mesh::{Mesh, Share};
use crate::server::threads::message::{Asked, Question, Ticket};
use crate::shard::{Acted, Refusal, UserAct};
use crate::stats::Stage;

impl Trade {
    /// Takes a split, merge or redeem; returns its place among the works.
    pub(super) fn position_act(
        &mut self,
        asker: Asker,
        endpoint: Endpoint,
        caller: &Caller,
        now: TimeMs,
        mesh: &mut Mesh,
    ) -> Result<u32, Refused> {
        let plain = Refused::plain;
        let signed = self.bodies.act(&mut self.body).map_err(|error| of_read(&error))?;
        self.lap(Stage::Parse);
        let market = self.registry.condition(&signed.condition);
        let market = market.ok_or_else(|| words::condition_unknown(&signed.condition))?;
        let wallet = self.wallet_of(caller, "wallet", &signed.wallet)?;
        let act = kind_of(endpoint);
        let terms = terms_of(act, &signed);
        self.signatures_left -= 1;
        let checked = self.verifier.act(&terms, signed.signature(), &caller.address);
        self.lap(Stage::Sign);
        let id = checked.map_err(plain)?;
        if self.registry.wallet(caller.principal).frozen() && act != ActKind::Merge {
            return Err(words::frozen(&caller.address));
        }
        let user_act = UserAct {
            act,
            principal: caller.principal,
            wallet,
            market,
            amount: Shares(signed.amount),
            id,
            salt: signed.salt,
            timestamp_ms: signed.timestamp_ms,
            signature: signed.signature,
            signature_len: signed.signature_len,
        };
        let work = self.begin_work(asker, caller, Form::Act);
        self.works.work(work).items.push(Item { id: Some(id), outcome: Outcome::Open });
        self.works.expect(work);
        self.send_act(Ticket { work, item: 0 }, &user_act, now, mesh);
        Ok(work)
    }

    /// Explains why the act of this request was refused; only to a caller that is identified.
    pub(in crate::server) fn explain_act(
        &mut self,
        route: &Route<'_>,
        request: &Request<'_>,
        reject: Reject,
        now: TimeMs,
    ) -> Option<Signing> {
        let caller = self.callers.identify(&request.head, route, request.body, now).ok()?;
        self.body.clear();
        self.body.extend_from_slice(request.body);
        let signed = self.bodies.act(&mut self.body).ok()?;
        let terms = terms_of(kind_of(route.endpoint), &signed);
        let chain = self.verifier.domains().chain();
        Some(explain::act(chain, &terms, signed.signature(), &caller.address, reject))
    }

    fn send_act(&mut self, ticket: Ticket, act: &UserAct, now: TimeMs, mesh: &mut Mesh) {
        let owner = self.registry.shard_of(act.market, self.shards);
        if Some(owner) == self.shard_no() {
            let acted = self.own_shard().act(now, act);
            self.acted(ticket, &acted, self.last_decided());
            self.lap_of(ticket.work, Stage::Match);
            return;
        }
        let asked = Asked { ticket, question: Question::Act(*act) };
        if !mesh.ask(usize::from(owner.0), &asked, Share::Order) {
            self.refuse_item(ticket, Refused::plain(Reject::Busy));
        }
    }

    /// Takes what the shard said.
    pub(super) fn acted(&mut self, ticket: Ticket, acted: &Result<Acted, Refusal>, at: Position) {
        let work = self.works.work(ticket.work);
        work.decided_at(at);
        work.items[ticket.item as usize].outcome = match acted {
            Ok(acted) => Outcome::Accepted {
                status: "",
                making: acted.collateral.0,
                taking: acted.shares[0].0.max(acted.shares[1].0),
                trade: None,
                replayed: acted.replayed,
            },
            Err(refusal) => Outcome::Refused { refused: words::of_act(refusal), replayed: false },
        };
        self.works.came(ticket.work);
    }
}

const fn kind_of(endpoint: Endpoint) -> ActKind {
    match endpoint {
        Endpoint::Split => ActKind::Split,
        Endpoint::Merge => ActKind::Merge,
        _ => ActKind::Redeem,
    }
}

/// What the wallet's owner has to sign.
const fn terms_of(act: ActKind, signed: &SignedAct) -> ActTerms {
    ActTerms {
        act: act as u8,
        wallet: signed.wallet,
        condition: signed.condition,
        amount: signed.amount,
        salt: signed.salt,
        timestamp_ms: signed.timestamp_ms,
        signature_type: signed.signature_type,
    }
}
