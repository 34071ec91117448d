//! Read-only keys: a client that shows one may read for its owner, and do nothing else.
//!
//! A read-only key has a row like any API key, under a nonce that nobody can sign for ([`nonce`]). Its
//! name is its whole credential: it is shown beside the owner's address and signs nothing. So, unlike
//! that of a trading key, the name is secret: it is in no order, and in no list but that of read-only
//! keys, which a read-only key may not read. Revoking raises the generation, so the next key in the
//! row has another name.

use super::keys::all_states;
use super::{Caller, Entrance, Refusal, Registrar};
use crate::auth::{same_key, text};
use crate::domain::text::parse_uuid;
use crate::domain::{Address, ApiKey, TimeMs, WalletKind, WalletNo, Word, nonce};
use crate::registry::{KeyState, Registry};

/// The most read-only keys of one owner. A request that shows one costs an HMAC for each of them.
const READONLY_KEYS_OF_OWNER_MAX: u64 = 8;

impl Registrar {
    /// Makes a read-only key of an owner, each time a new one.
    pub fn create_readonly_key(&mut self, now: TimeMs, principal: WalletNo) -> Result<ApiKey, Refusal> {
        let registry = self.registry();
        let state = |nonce: &Word| registry.key_state(principal, nonce);
        let nonce = (0..READONLY_KEYS_OF_OWNER_MAX)
            .map(nonce::of_readonly_key)
            .find(|nonce| state(nonce).is_none_or(|state| !state.active))
            .ok_or(Refusal::ReadonlyKeysOfOwnerFull)?;
        let generation = state(&nonce).map_or(0, |state| state.generation);
        self.room_for_user()?;
        if registry.key_of(principal, &nonce).is_none() {
            self.room_for_new_key()?;
        }
        self.set_key(now, principal, nonce, KeyState { generation, active: true });
        Ok(self.readonly_name(principal, nonce, generation))
    }

    /// The living read-only keys of an owner, the newest row first.
    #[must_use]
    pub fn readonly_keys(&self, principal: WalletNo) -> Vec<ApiKey> {
        living(self.registry(), principal)
            .map(|(nonce, generation)| self.readonly_name(principal, nonce, generation))
            .collect()
    }

    /// Revokes a read-only key of an owner; false if it has none of this name.
    pub fn revoke_readonly_key(
        &mut self,
        now: TimeMs,
        principal: WalletNo,
        key: &ApiKey,
    ) -> Result<bool, Refusal> {
        let mut keys = living(self.registry(), principal);
        let is_meant =
            |(nonce, generation): &(Word, u32)| self.readonly_name(principal, *nonce, *generation) == *key;
        let Some((nonce, generation)) = keys.find(is_meant) else {
            return Ok(false);
        };
        drop(keys);
        self.room_for_operator()?;
        let generation = generation.checked_add(1).expect("nobody revokes four billion times");
        self.set_key(now, principal, nonce, KeyState { generation, active: false });
        Ok(true)
    }

    fn readonly_name(&self, principal: WalletNo, nonce: Word, generation: u32) -> ApiKey {
        let owner = self.registry().wallet(principal).address;
        self.identity.master.api_key(&self.key_name(owner, nonce, generation))
    }
}

impl Entrance {
    /// The owner whose read-only key this is, if it was shown with the owner's address.
    #[must_use]
    pub fn admit_readonly(&self, registry: &Registry, address: &[u8], key: &[u8]) -> Option<Caller> {
        let address = text::address(address)?;
        self.reader_for(registry, &address, &parse_uuid(key)?)
    }

    /// The owner at this address, if `key` is one of its living read-only keys.
    #[must_use]
    pub fn reader_for(&self, registry: &Registry, address: &Address, key: &ApiKey) -> Option<Caller> {
        let principal = registry.wallet_of(address)?;
        if registry.wallet(principal).kind != WalletKind::Eoa {
            return None;
        }
        // All of them are compared, whichever it is, so that the time says nothing.
        let good = living(registry, principal).fold(false, |good, (nonce, generation)| {
            good | same_key(&self.key_called(*address, nonce, generation), key)
        });
        good.then_some(Caller { principal, address: *address, api_key: *key })
    }
}

/// The nonces and generations of an owner's living read-only keys.
fn living(registry: &Registry, principal: WalletNo) -> impl Iterator<Item = (Word, u32)> + '_ {
    all_states(registry, principal)
        .filter(|(nonce, state)| state.active && nonce::is_of_readonly_key(nonce))
        .map(|(nonce, state)| (nonce, state.generation))
}
