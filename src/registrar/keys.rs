//! API keys: made for an address that proved to be an owner, revoked by raising their generation.
//!
//! The key of nonce 0 exists as soon as its owner does, without a frame; keys of other nonces have
//! frames, so that a restarted server knows which to recompute. Making a key that lives returns the
//! same credentials again.

use super::wallets::ROWS_OF_OWNER;
use super::{Refusal, Registrar};
use crate::auth::{Credentials, KeyName};
use crate::domain::{Address, ApiKey, TimeMs, WalletKind, WalletNo, Word, nonce as nonces};
use crate::journal::layout::KeyChanged;
use crate::registry::{KeyState, Registry};

/// The most keys of one owner. A request that names a key costs one HMAC for each of them at worst.
pub(super) const KEYS_OF_OWNER_MAX: usize = 32;

/// A key as its owner sees it in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedKey {
    /// Its public name.
    pub api_key: ApiKey,
    /// The nonce that it was made with.
    pub nonce: Word,
    /// False once revoked; then `api_key` is the name that it had.
    pub active: bool,
}

impl Registrar {
    /// The credentials of (owner, nonce), made if there are none or if they were revoked.
    pub fn create_key(&mut self, now: TimeMs, owner: Address, nonce: Word) -> Result<Credentials, Refusal> {
        if nonces::is_of_readonly_key(&nonce) {
            return Err(Refusal::NonceKept);
        }
        if self.registry().wallet_of(&owner).is_none() {
            self.room_for_stranger()?;
            if nonce != Word::ZERO {
                self.room_for_new_key()?;
            }
        }
        let principal = self.owner(now, owner)?;
        let generation = match self.registry().key_state(principal, &nonce) {
            Some(KeyState { generation, active: true }) => generation,
            Some(KeyState { generation, active: false }) => {
                self.room_for_user()?;
                self.set_key(now, principal, nonce, KeyState { generation, active: true });
                generation
            }
            None => {
                self.room_for_user()?;
                self.room_for_key(principal)?;
                self.set_key(now, principal, nonce, KeyState { generation: 0, active: true });
                0
            }
        };
        Ok(self.identity.master.credentials(&self.key_name(owner, nonce, generation)))
    }

    /// The credentials of (owner, nonce), if they live.
    pub fn derive_key(&self, owner: Address, nonce: Word) -> Result<Credentials, Refusal> {
        let registry = self.registry();
        let principal = registry.wallet_of(&owner).ok_or(Refusal::KeyUnknown)?;
        if registry.wallet(principal).kind != WalletKind::Eoa || nonces::is_of_readonly_key(&nonce) {
            return Err(Refusal::KeyUnknown);
        }
        match registry.key_state(principal, &nonce) {
            Some(KeyState { generation, active: true }) => {
                Ok(self.identity.master.credentials(&self.key_name(owner, nonce, generation)))
            }
            _ => Err(Refusal::KeyUnknown),
        }
    }

    /// Every key of a principal that can trade, the newest first; of those of a nonce that were revoked at most
    /// `revoked_max`, the newest ones.
    #[must_use]
    pub fn keys(&self, principal: WalletNo, revoked_max: usize) -> Vec<ListedKey> {
        let owner = self.registry().wallet(principal).address;
        let listed = |(nonce, state): (Word, KeyState)| {
            let of_generation = move |generation, active| {
                let api_key = self.identity.master.api_key(&self.key_name(owner, nonce, generation));
                ListedKey { api_key, nonce, active }
            };
            // What is below the present generation was revoked.
            let revoked = (0..state.generation).rev().take(revoked_max);
            let living = state.active.then_some(state.generation).map(|living| of_generation(living, true));
            living.into_iter().chain(revoked.map(move |generation| of_generation(generation, false)))
        };
        states(self.registry(), principal).flat_map(listed).collect()
    }

    /// Revokes a living key of a principal. Its secret is worthless from here on; making the key again
    /// gives new credentials.
    pub fn revoke_key(&mut self, now: TimeMs, principal: WalletNo, api_key: &ApiKey) -> Result<(), Refusal> {
        let owner = self.registry().wallet(principal).address;
        let is_meant = |&(nonce, state): &(Word, KeyState)| {
            state.active
                && self.identity.master.api_key(&self.key_name(owner, nonce, state.generation)) == *api_key
        };
        let (nonce, _) =
            states(self.registry(), principal).find(is_meant).ok_or(Refusal::KeyToRevokeUnknown)?;
        self.room_for_operator()?;
        if self.registry().key_of(principal, &nonce).is_none() {
            self.room_for_key_row()?;
        }
        let state = self.registry().key_state(principal, &nonce).expect("it was listed");
        let generation = state.generation.checked_add(1).expect("nobody revokes four billion times");
        self.set_key(now, principal, nonce, KeyState { generation, active: false });
        // Nobody can reset a revoked key's breaker. Its switch stays, and goes off when no beat comes.
        self.drop_breaker(now, principal, *api_key);
        Ok(())
    }

    pub(super) fn set_key(&mut self, now: TimeMs, principal: WalletNo, nonce: Word, state: KeyState) {
        let time = self.at(now);
        let KeyState { generation, active } = state;
        // Whoever has seen the frame of a revocation may not find the key alive any more.
        if !active {
            self.writer.set_key(principal, nonce, state).expect("the caller saw the room");
        }
        self.append(&KeyChanged { time, principal, nonce, generation, active }.into());
        if active {
            self.writer.set_key(principal, nonce, state).expect("the caller saw the room");
        }
    }

    fn room_for_key(&self, principal: WalletNo) -> Result<(), Refusal> {
        if states(self.registry(), principal).count() < KEYS_OF_OWNER_MAX {
            self.room_for_new_key()
        } else {
            Err(Refusal::KeysOfOwnerFull)
        }
    }

    /// A third of the rows is kept for keys of nonce 0. Such a key takes a row when it is revoked, which must always
    /// go: there are as many rows of keys as of wallets, and every owner that can sign has three wallets to itself.
    pub(super) fn room_for_new_key(&self) -> Result<(), Refusal> {
        let free = self.writer.keys_free();
        let kept = (free + self.registry().key_count()) / ROWS_OF_OWNER;
        if kept < free { Ok(()) } else { Err(Refusal::KeysFull) }
    }

    fn room_for_key_row(&self) -> Result<(), Refusal> {
        if 0 < self.writer.keys_free() { Ok(()) } else { Err(Refusal::KeysFull) }
    }

    pub(super) const fn key_name(&self, address: Address, nonce: Word, generation: u32) -> KeyName {
        KeyName { chain: self.identity.chain, address, nonce, generation }
    }
}

/// A principal's keys that can trade: what [`all_states`] has without those that may only read.
pub(super) fn states(
    registry: &Registry,
    principal: WalletNo,
) -> impl Iterator<Item = (Word, KeyState)> + '_ {
    all_states(registry, principal).filter(|(nonce, _)| !nonces::is_of_readonly_key(nonce))
}

/// A principal's keys: those with rows, the newest first, and then that of nonce 0 if it has none.
pub(super) fn all_states(
    registry: &Registry,
    principal: WalletNo,
) -> impl Iterator<Item = (Word, KeyState)> + '_ {
    let rows = registry.keys_of(principal).map(|row| (row.nonce, row.state()));
    let zero_has_row = registry.key_of(principal, &Word::ZERO).is_some();
    let zero = registry.key_state(principal, &Word::ZERO).filter(|_| !zero_has_row);
    rows.chain(zero.map(|state| (Word::ZERO, state)))
}
