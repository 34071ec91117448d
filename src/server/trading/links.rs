//! In `dev`, the first accepted order of a deposit wallet links it to whoever signed the order.
//!
//! `serve` links a deposit wallet when the operator says so, and never because somebody claims one. `dev` has no
//! operator, so a wallet that was credited and belongs to nobody joins the principal whose key signed for it. That
//! takes three acts on two loops, each after the one before it:
//!
//! | act | where | what |
//! |---|---|---|
//! | look | the market's shard | an order that would be refused or killed is refused; nothing has changed |
//! | link | the registrar | a frame, then the registry's row |
//! | place | the market's shard | the order's frame, after the link's |
//!
//! Nobody can spend what the wallet has before it is linked. What others do between look and place (pausing the market,
//! taking the makers of a FOK) can still end the order, and leaves the wallet linked. These acts allocate: they happen
//! once for each wallet.

use super::Trade;
use super::work::Refused;
use crate::domain::{Address, OrderFields, Reject, SignatureType, WalletKind, WalletNo};
use crate::registrar;
use crate::server::core_loop::REGISTRAR_LOOP;
use crate::server::threads::mesh::Mesh;
use crate::server::threads::message::{ActJob, Binding, Errand, Letter, Purpose, Report, Ticket};
use crate::shard::{Placed, ReadyOrder, Refusal};

/// Whether the maker of an order may be linked by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claimed {
    /// A deposit wallet that belongs to nobody.
    Unlinked(WalletNo),
    /// An address that nobody knows: it has nothing to trade with.
    Unknown,
}

impl Trade {
    /// What an order claims if its maker is none of its principal's wallets; none if it may claim nothing.
    pub(super) fn claimed(&self, fields: &OrderFields) -> Option<Claimed> {
        if !self.first_order_links || fields.signature_type != SignatureType::Deposit {
            return None;
        }
        let Some(wallet) = self.registry.wallet_of(&fields.maker) else {
            return Some(Claimed::Unknown);
        };
        let row = self.registry.wallet(wallet);
        let nobodys = row.kind == WalletKind::Deposit && row.principal().is_none();
        nobodys.then_some(Claimed::Unlinked(wallet))
    }

    /// Links the order's maker to its principal if the order is good, and places it.
    pub(super) fn link_and_place(
        &mut self,
        ticket: Ticket,
        place: &ReadyOrder,
        maker: Address,
        mesh: &mut Mesh,
    ) {
        let owner = usize::from(self.registry.shard_of(place.market(), self.shards).0);
        let job = ActJob::new(Purpose::Order(ticket), Binding::Nobody, look(owner, maker, Box::new(*place)));
        if mesh.post(owner, Letter::Act(Box::new(job))).is_err() {
            self.refuse_item(ticket, Refused::plain(Reject::Busy));
        }
    }
}

fn look(owner: usize, maker: Address, place: Box<ReadyOrder>) -> Errand {
    Box::new(move |trade, now| {
        let time = trade.time_for(&place, now);
        match trade.own_shard().foresee(time, &place) {
            Ok(()) => Report::Next(REGISTRAR_LOOP, link(owner, maker, place)),
            Err(placed) => Report::Placed(placed),
        }
    })
}

fn link(owner: usize, maker: Address, place: Box<ReadyOrder>) -> Errand {
    Box::new(move |trade, now| {
        let principal = trade.registry.wallet(place.principal()).address;
        let registrar = trade.own_registrar();
        let refusal = match registrar.link(now, maker, principal) {
            Ok(_) => {
                let last: Errand = Box::new(move |trade, now| {
                    let time = trade.time_for(&place, now);
                    Report::Placed(trade.own_shard().place(time, &place))
                });
                return Report::Next(owner, last);
            }
            Err(registrar::Refusal::LogFull) => Reject::Busy,
            Err(registrar::Refusal::WalletsFull) => Reject::TableFull,
            // Somebody else's order, or the operator, was first.
            Err(_) => Reject::MakerNotAuthorized,
        };
        Report::Placed(Placed::Refused(Refusal::from(refusal)))
    })
}
