//! Wallets and their owners.
//!
//! An owner gets three rows at once: its own address, and the proxy and safe that Polymarket's
//! contracts would create for it, so that an order may name any of them from the first day. Each row
//! has a frame of its own, so a start completes the owner between whose frames the process died.

use super::{Refusal, Registrar};
use crate::auth::derive;
use crate::domain::{Address, TimeMs, WalletKind, WalletNo};
use crate::journal::layout::{Frozen, WalletAdded, WalletLinked};

/// Rows that a new owner takes at most; one that can sign shares them with no other owner.
pub(super) const ROWS_OF_OWNER: u32 = 3;

/// One row in this many is kept for wallets that the operator names.
const KEPT_PART: u32 = 16;

impl Registrar {
    /// The principal with this address, added if it is unknown.
    pub fn owner(&mut self, now: TimeMs, address: Address) -> Result<WalletNo, Refusal> {
        let known = self.registry().wallet_of(&address);
        if known.is_some_and(|wallet| self.registry().wallet(wallet).kind != WalletKind::Eoa) {
            return Err(Refusal::WalletNotAnOwner);
        }
        let missing = self.rows_missing(&address);
        if let Some(owner) = known.filter(|_| missing == 0) {
            return Ok(owner);
        }
        self.room_for_user()?;
        if self.writer.wallets_free() < missing {
            return Err(Refusal::WalletsFull);
        }
        // From here on nothing fails.
        let owner = match known {
            Some(owner) => owner,
            None => self.add_wallet(now, address, WalletKind::Eoa, None),
        };
        self.add_derived(now, derive::proxy(&address), WalletKind::Proxy, owner);
        self.add_derived(now, derive::safe(&address), WalletKind::Safe, owner);
        Ok(owner)
    }

    /// Gives the owner that came last what it lacks: the last start did so for those before it.
    pub fn complete_last_owner(&mut self, now: TimeMs) -> Result<(), Refusal> {
        let registry = self.registry();
        let rows = (0..registry.wallet_count()).rev().map(|number| registry.wallet(WalletNo(number)));
        let last = rows.map(|row| (row.kind, row.address)).find(|(kind, _)| *kind == WalletKind::Eoa);
        last.map_or(Ok(()), |(_, address)| self.owner(now, address).map(drop))
    }

    /// How many of this owner's wallets are not its own yet: they have no row, or are deposit wallets of nobody.
    fn rows_missing(&self, owner: &Address) -> u32 {
        let own = [*owner, derive::proxy(owner), derive::safe(owner)];
        let is_missing = |address| match self.registry().wallet_of(&address) {
            Some(wallet) => self.is_nobodys(wallet),
            None => true,
        };
        own.map(|address| u32::from(is_missing(address))).iter().sum()
    }

    fn is_nobodys(&self, wallet: WalletNo) -> bool {
        let row = self.registry().wallet(wallet);
        row.kind == WalletKind::Deposit && row.principal().is_none()
    }

    /// Whether there are rows for an owner that only its own signature vouches for. Whoever can sign can have as many
    /// as it likes, so a part of all is kept for the wallets that the operator names.
    pub(super) fn room_for_stranger(&self) -> Result<(), Refusal> {
        let free = self.writer.wallets_free();
        let kept = (free + self.registry().wallet_count()) / KEPT_PART;
        if free < kept + ROWS_OF_OWNER { Err(Refusal::WalletsFull) } else { Ok(()) }
    }

    /// Makes `wallet` a deposit wallet of `owner`; each is added if it is unknown. A link is final;
    /// linking the same two again changes nothing.
    pub fn link(&mut self, now: TimeMs, wallet: Address, owner: Address) -> Result<WalletNo, Refusal> {
        self.may_link(&wallet, &owner)?;
        let known = self.registry().wallet_of(&wallet);
        if let Some(linked) = known.filter(|known| self.registry().wallet(*known).principal().is_some()) {
            return Ok(linked);
        }
        self.room_for_user()?;
        if self.writer.wallets_free() < self.rows_missing(&owner) + u32::from(known.is_none()) {
            return Err(Refusal::WalletsFull);
        }
        // From here on nothing fails: `owner` finds what was just checked.
        let owner = self.owner(now, owner)?;
        let Some(number) = self.registry().wallet_of(&wallet) else {
            return Ok(self.add_wallet(now, wallet, WalletKind::Deposit, Some(owner)));
        };
        self.join(now, number, owner);
        Ok(number)
    }

    /// Whether `link` may go on: the wallet is unknown, owned by nobody, or the owner's already.
    fn may_link(&self, wallet: &Address, owner: &Address) -> Result<(), Refusal> {
        let registry = self.registry();
        let owner_number = registry.wallet_of(owner);
        if owner_number.is_some_and(|number| registry.wallet(number).kind != WalletKind::Eoa) {
            return Err(Refusal::WalletNotAnOwner);
        }
        if wallet == owner {
            return Err(Refusal::WalletIsAnOwner);
        }
        let Some(number) = registry.wallet_of(wallet) else { return Ok(()) };
        let row = registry.wallet(number);
        match (row.kind, row.principal()) {
            (WalletKind::Eoa, _) => Err(Refusal::WalletIsAnOwner),
            (WalletKind::Fee, _) => Err(Refusal::WalletIsForFees),
            (_, None) => Ok(()),
            (_, principal) if principal == owner_number => Ok(()),
            (_, Some(_)) => Err(Refusal::WalletLinkedElsewhere),
        }
    }

    /// Stops the principal that this address belongs to from trading, splitting and redeeming, or lets it do so again.
    /// The open orders of one that is frozen are the shards' to remove.
    pub fn set_frozen(&mut self, now: TimeMs, address: &Address, frozen: bool) -> Result<WalletNo, Refusal> {
        let principal = self.principal_to_change(address)?;
        if self.registry().wallet(principal).frozen() != frozen {
            self.room_for_operator()?;
            let time = self.at(now);
            self.append(&Frozen { time, principal, frozen }.into());
            self.writer.set_frozen(principal, frozen);
        }
        Ok(principal)
    }

    /// The wallet that fees are shown under, which `address` becomes if there is none yet: the first stays.
    pub fn fee_wallet(&mut self, now: TimeMs, address: Address) -> Result<WalletNo, Refusal> {
        if let Some(wallet) = self.registry().fee_wallet() {
            return Ok(wallet);
        }
        if self.registry().wallet_of(&address).is_some() {
            return Err(Refusal::WalletIsAnOwner);
        }
        self.room_for_operator()?;
        if self.writer.wallets_free() == 0 {
            return Err(Refusal::WalletsFull);
        }
        Ok(self.add_wallet(now, address, WalletKind::Fee, None))
    }

    fn principal_to_change(&self, address: &Address) -> Result<WalletNo, Refusal> {
        let wallet = self.registry().wallet_of(address).ok_or(Refusal::WalletUnknown)?;
        let row = self.registry().wallet(wallet);
        match row.kind {
            WalletKind::Fee => Err(Refusal::WalletIsForFees),
            _ => row.principal().ok_or(Refusal::WalletUnlinked),
        }
    }

    /// Adds a derived wallet, unless its address is known: then the wallet stays what it is, except that
    /// a deposit wallet which nobody owns is joined to the owner that its address derives from.
    fn add_derived(&mut self, now: TimeMs, address: Address, kind: WalletKind, owner: WalletNo) {
        match self.registry().wallet_of(&address) {
            Some(known) => self.join(now, known, owner),
            None => {
                self.add_wallet(now, address, kind, Some(owner));
            }
        }
    }

    /// Gives a deposit wallet that nobody owns to `principal`; any other wallet stays as it is.
    fn join(&mut self, now: TimeMs, wallet: WalletNo, principal: WalletNo) {
        if self.is_nobodys(wallet) {
            let time = self.at(now);
            self.append(&WalletLinked { time, wallet, principal }.into());
            self.writer.link(wallet, principal);
        }
    }

    /// Adds a row whose address is unknown and for which there is room.
    pub(super) fn add_wallet(
        &mut self,
        now: TimeMs,
        address: Address,
        kind: WalletKind,
        principal: Option<WalletNo>,
    ) -> WalletNo {
        let wallet = WalletNo(self.registry().wallet_count());
        let principal = if kind == WalletKind::Eoa { Some(wallet) } else { principal };
        let time = self.at(now);
        self.append(&WalletAdded { time, wallet, address, kind, principal }.into());
        let added = self.writer.add_wallet(address, kind, principal).expect("the caller saw the room");
        assert!(added == wallet, "one writer numbers the wallets");
        wallet
    }
}
