//! The orders of one request on their way to their shards: one after another, as far as a turn's budget goes, each gets
//! its signature checked and is then sent to its shard.

use super::links::Claimed;
use super::words;
use super::work::{Item, Outcome, Refused};
use super::{Trade, of_read, venue_of};
use crate::auth::Verifier;
use crate::domain::{Address, MarketNo, Mode, OrderId, Reject, SignedOrder, TimeMs};
use crate::server::requests::caller::Caller;
use crate::server::threads::mesh::{Mesh, Share};
use crate::server::threads::message::{Asked, Question, Ticket};
use crate::shard::ReadyOrder;
use crate::shard::ahead::{Before, Coming};
use crate::stats::Stage;

/// Orders of one request that wait for their curve operations.
pub(super) struct Staged {
    work: u32,
    caller: Caller,
    next: usize,
}

impl Staged {
    /// A request's orders, none of them judged yet.
    pub(super) const fn first(work: u32, caller: Caller) -> Self {
        Self { work, caller, next: 0 }
    }
}

impl Trade {
    /// Queues the orders that were just read for their signature checks.
    pub(super) fn stage(&mut self, work: u32, caller: Caller) {
        let items = self.orders.iter().map(|_| Item { id: None, outcome: Outcome::Open });
        self.works.work(work).items.extend(items);
        for _ in 0..self.orders.len() {
            self.works.expect(work);
        }
        self.staged = Some(Staged::first(work, caller));
    }

    /// Checks and places staged orders as far as this turn's budget goes.
    pub(super) fn run_staged(&mut self, now: TimeMs, mesh: &mut Mesh) {
        while let Some(staged) = &mut self.staged {
            if staged.next == self.orders.len() {
                self.staged = None;
                self.run_replace(now, mesh);
                return;
            }
            if self.signatures_left == 0 {
                return;
            }
            let (work, caller, item) = (staged.work, staged.caller, staged.next);
            staged.next += 1;
            let ticket = Ticket { work, item: u32::try_from(item).expect("a request has few orders") };
            self.lap_of(work, Stage::Queue);
            let mut place = self.ready.take().expect("it is put back below");
            let judged = self.judge(&caller, item, &mut place);
            self.lap_of(work, Stage::Sign);
            if let (true, Err(refused)) = (self.explains, &judged) {
                self.explain_item(work, item, &caller, refused);
            }
            if self.replaces.is_staged() {
                match judged {
                    Ok(None) => self.add_to_replace(&place),
                    // A wallet that nobody has traded with has nothing to replace.
                    Ok(Some(_)) => self.stop_replace(item, Refused::plain(Reject::MakerNotAuthorized)),
                    Err(refused) => self.stop_replace(item, refused),
                }
            } else {
                match judged {
                    Ok(links) => {
                        self.works.work(work).items[item].id = Some(*place.id());
                        match links {
                            Some(maker) => self.link_and_place(ticket, &place, maker, mesh),
                            None => self.place(ticket, &place, now, mesh),
                        }
                    }
                    Err(refused) => self.refuse_item(ticket, refused),
                }
            }
            self.ready = Some(place);
        }
    }

    fn stop_replace(&mut self, item: usize, refused: Refused) {
        self.staged = None;
        self.refuse_replace(item, refused);
    }

    /// Judges everything about an order that does not need its shard. A good one is written to `ready`; returns its
    /// maker's address if that wallet has to be linked first.
    fn judge(
        &mut self,
        caller: &Caller,
        item: usize,
        ready: &mut ReadyOrder,
    ) -> Result<Option<Address>, Refused> {
        let order = *self.orders[item].as_ref().map_err(of_read)?;
        let fields = &order.fields;
        let plain = Refused::plain;
        if self.registry.exchange_mode() == Mode::PostOnly && !order.post_only {
            return Err(plain(Reject::PostOnlyMode));
        }
        if order.owner != caller.api_key {
            return Err(words::of_another_key(order.owner));
        }
        Verifier::parties(fields, &caller.address)
            .map_err(|reject| words::of_parties(reject, fields, &caller.address))?;
        let Some((market, outcome)) = self.registry.token(&fields.token) else {
            // Version 3 orders name positions where others name tokens.
            return Err(match self.other_version(&order, caller, Reject::TokenUnknown) {
                Reject::TokenUnknown => words::token_unknown(&fields.token),
                other => plain(other),
            });
        };
        self.names_market(&order, market)?;
        let wallet = match self.wallet_of(caller, "maker", &fields.maker) {
            Ok(wallet) => Ok(wallet),
            Err(refused) => Err(self.claimed(fields).ok_or(refused)?),
        };
        let venue = venue_of(caller.dialect, self.venue);
        let neg_risk = self.registry.market(market).neg_risk;
        self.signatures_left -= 1;
        let shard = self.shard.as_ref();
        let ahead = |id: &OrderId| {
            if let Some(shard) = shard {
                let owner = wallet.as_ref().ok().map(|wallet| (*wallet, caller.principal));
                let coming = Coming::order(id, (market, outcome), fields.side, owner);
                for before in Before::ALL {
                    shard.prefetch(coming, before);
                }
            }
        };
        let id = match self.verifier.order(&order, &caller.address, venue, neg_risk, ahead) {
            Ok(id) => id,
            Err(Reject::SignatureInvalid) => {
                return Err(plain(self.other_version(&order, caller, Reject::SignatureInvalid)));
            }
            Err(reject) => return Err(plain(reject)),
        };
        if self.registry.wallet(caller.principal).frozen() {
            return Err(words::frozen(&caller.address));
        }
        // The first order is judged in the turn in which the request was taken; before the others the key may have been
        // revoked.
        if 0 < item && !self.callers.lives(caller) {
            return Err(plain(Reject::Unauthorized));
        }
        let (wallet, links) = match wallet {
            Ok(wallet) => (wallet, None),
            Err(Claimed::Unlinked(wallet)) => (wallet, Some(fields.maker)),
            Err(Claimed::Unknown) => return Err(plain(Reject::NotEnoughBalance)),
        };
        ready.write(&order, &id, (wallet, caller.principal), (market, outcome));
        Ok(links)
    }

    /// Whether the condition that the order names, if it does, is that of its token's market.
    fn names_market(&self, order: &SignedOrder, market: MarketNo) -> Result<(), Refused> {
        let Some(condition) = &order.condition else {
            return Ok(());
        };
        let reject = match self.registry.condition(condition) {
            Some(named) if named == market => return Ok(()),
            Some(_) => Reject::ConditionMismatch,
            None => Reject::ConditionUnknown,
        };
        Err(words::of_condition(reject, condition))
    }

    /// The refusal of an order whose token or signature means nothing here, perhaps as it is for other contracts; one
    /// curve operation.
    fn other_version(&mut self, order: &SignedOrder, caller: &Caller, otherwise: Reject) -> Reject {
        self.signatures_left = self.signatures_left.saturating_sub(1);
        let other = self.verifier.is_for_another_version(order, &caller.address);
        if other { Reject::OrderVersionMismatch } else { otherwise }
    }

    fn place(&mut self, ticket: Ticket, place: &ReadyOrder, now: TimeMs, mesh: &mut Mesh) {
        let owner = self.registry.shard_of(place.market(), self.shards);
        if Some(owner) == self.shard_no() {
            let time = self.time_for(place, now);
            let placed = self.own_shard().place(time, place);
            let at = self.last_decided();
            self.placed(ticket, &placed, at);
            self.lap_of(ticket.work, Stage::Match);
            return;
        }
        let asked = Asked { ticket, question: Question::Place(*place) };
        if !mesh.ask(usize::from(owner.0), &asked, Share::Order) {
            self.refuse_item(ticket, Refused::plain(Reject::Busy));
        }
    }
}
