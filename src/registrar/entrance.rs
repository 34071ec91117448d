//! The door of one core loop: from the headers of an L2 request to the principal that sent it.
//!
//! Nothing here is shared: each loop has its own table of keys that it saw lately. Whether a key
//! lives is read from the registry at every request, so a revoked one is refused at once.

use super::keys;
use crate::auth::explain::{self, Check, Presenting};
use crate::auth::l2::{self, Request};
use crate::auth::{Chain, KeyEntry, KeyName, KeyTable, MacKey, MasterSecret, Passphrase, text};
use crate::domain::text::parse_uuid;
use crate::domain::{Address, ApiKey, TimeMs, WalletKind, WalletNo, Word, nonce as nonces};
use crate::registry::{KeyState, Registry};
use std::collections::HashMap;

/// The headers of an L2 request, as they came; what the signature covers is in [`Request`].
#[derive(Clone, Copy, Debug)]
pub struct Presented<'a> {
    /// `…_ADDRESS`: the owner's EOA, whichever wallet it trades with.
    pub address: &'a [u8],
    /// `…_API_KEY`.
    pub api_key: &'a [u8],
    /// `…_PASSPHRASE`.
    pub passphrase: &'a [u8],
    /// `…_SIGNATURE`.
    pub signature: &'a [u8],
}

/// Who is asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The owner.
    pub principal: WalletNo,
    /// The owner's EOA.
    pub address: Address,
    /// The key that it asks with.
    pub api_key: ApiKey,
}

/// Admits requests. One per core loop.
#[derive(Debug)]
pub struct Entrance {
    table: KeyTable,
    master: MasterSecret,
    chain: Chain,
    /// Owners by the names of their keys, for requests that name nobody.
    owners: HashMap<ApiKey, WalletNo>,
    /// How many wallets `owners` knows.
    wallets: u32,
}

impl Entrance {
    /// An entrance that keeps at least `keys` keys at hand.
    #[must_use]
    pub fn new(master: MasterSecret, chain: Chain, keys: u32) -> Self {
        Self { table: KeyTable::with_capacity(keys), master, chain, owners: HashMap::new(), wallets: 0 }
    }

    /// Who sent this request, if it is signed with a living key and its timestamp is within
    /// `window_s` of `now`. A key that is at hand costs one HMAC over the request.
    pub fn admit(
        &mut self,
        registry: &Registry,
        presented: &Presented<'_>,
        request: &Request<'_>,
        now: TimeMs,
        window_s: u64,
    ) -> Option<Caller> {
        let entry = self.entry(registry, presented, request, now, window_s)?;
        Some(Caller { principal: entry.principal, address: entry.address, api_key: entry.api_key })
    }

    /// Whether this key lives. One that is at hand costs no HMAC.
    pub fn lives(&mut self, registry: &Registry, api_key: &ApiKey, owner: &Address) -> bool {
        self.find_or_recompute(registry, api_key, owner).is_some()
    }

    /// Whose credentials these are, which came without a signature or an address in a stream's first
    /// message. Secret and passphrase are compared in constant time. A key that is not known costs
    /// [`Self::note_wallets`].
    pub fn admit_plain(
        &mut self,
        registry: &Registry,
        api_key: &[u8],
        secret: &[u8],
        passphrase: &[u8],
    ) -> Option<Caller> {
        let api_key = parse_uuid(api_key)?;
        let secret = text::base64_32(secret)?;
        if !self.owners.contains_key(&api_key) {
            self.note_wallets(registry);
        }
        let address = registry.wallet(*self.owners.get(&api_key)?).address;
        let entry = self.recompute(registry, &api_key, &address)?;
        let good = entry.mac.is_of(&secret) & entry.passphrase.is(passphrase);
        good.then_some(Caller { principal: entry.principal, address, api_key })
    }

    /// Notes the living keys of all wallets that were added since the last call, an HMAC each.
    pub fn note_wallets(&mut self, registry: &Registry) {
        // Read once: the registrar may add wallets meanwhile.
        let wallets = registry.wallet_count();
        for wallet in (self.wallets..wallets).map(WalletNo) {
            self.note_keys(registry, wallet);
        }
        self.wallets = wallets;
    }

    /// Notes that a key lives or was revoked, as the log says; the registry may not say so yet. Read-only keys are
    /// passed over: they open no stream.
    pub fn note_key(&mut self, registry: &Registry, principal: WalletNo, nonce: Word, state: KeyState) {
        if nonces::is_of_readonly_key(&nonce) {
            return;
        }
        let address = registry.wallet(principal).address;
        let KeyState { generation, active } = state;
        if active {
            self.owners.insert(self.key_called(address, nonce, generation), principal);
        } else if let Some(revoked) = generation.checked_sub(1) {
            self.owners.remove(&self.key_called(address, nonce, revoked));
        }
    }

    /// Whether a living key of this name was noted, or looked for by [`Self::admit_plain`].
    #[must_use]
    pub fn knows(&self, key: &ApiKey) -> bool {
        self.owners.contains_key(key)
    }

    /// How many keys have a known owner.
    #[cfg(test)]
    pub(super) fn owners(&self) -> usize {
        self.owners.len()
    }

    /// The name of the key of this owner, nonce and generation.
    pub(super) fn key_called(&self, address: Address, nonce: Word, generation: u32) -> ApiKey {
        self.master.api_key(&KeyName { chain: self.chain, address, nonce, generation })
    }

    /// Why a refused request does not pass for a key owner's; `query` is its query, which is never signed.
    pub fn explain(
        &mut self,
        registry: &Registry,
        presented: &Presented<'_>,
        request: &Request<'_>,
        query: Option<&str>,
        (now, window_s): (TimeMs, u64),
    ) -> Presenting {
        let skew_ms = explain::skew_ms(request.timestamp, now);
        let fails = |check| Presenting { check, skew_ms, slip: None };
        let Presented { address, api_key, passphrase, signature } = *presented;
        if [address, api_key, passphrase, signature, request.timestamp].iter().any(|text| text.is_empty()) {
            return fails(Check::Headers);
        }
        if skew_ms.is_none() {
            return fails(Check::Timestamp);
        }
        if !l2::is_fresh(request.timestamp, now, window_s) {
            return fails(Check::Freshness);
        }
        let Some(api_key) = parse_uuid(api_key) else {
            return fails(Check::KeyForm);
        };
        let Some(address) = text::address(address) else {
            return fails(Check::AddressForm);
        };
        let entry = self.find_or_recompute(registry, &api_key, &address);
        let Some(entry) = entry.filter(|entry| entry.address == address) else {
            return fails(Check::Key);
        };
        if !entry.passphrase.is(passphrase) {
            return fails(Check::Passphrase);
        }
        if text::base64_32(signature).is_none() {
            return fails(Check::HmacForm);
        }
        Presenting { slip: explain::slip(request, query, &entry.mac, signature), ..fails(Check::Hmac) }
    }

    fn note_keys(&mut self, registry: &Registry, principal: WalletNo) {
        let wallet = registry.wallet(principal);
        if wallet.kind != WalletKind::Eoa {
            return;
        }
        for (nonce, state) in keys::states(registry, principal).filter(|(_, state)| state.active) {
            self.note_key(registry, principal, nonce, state);
        }
    }

    fn entry(
        &mut self,
        registry: &Registry,
        presented: &Presented<'_>,
        request: &Request<'_>,
        now: TimeMs,
        window_s: u64,
    ) -> Option<&KeyEntry> {
        if !l2::is_fresh(request.timestamp, now, window_s) {
            return None;
        }
        let api_key = parse_uuid(presented.api_key)?;
        let address = text::address(presented.address)?;
        let entry = self.find_or_recompute(registry, &api_key, &address)?;
        let good = entry.address == address
            && entry.passphrase.is(presented.passphrase)
            && l2::is_signed(request, &entry.mac, presented.signature);
        good.then_some(entry)
    }

    fn find_or_recompute(
        &mut self,
        registry: &Registry,
        api_key: &ApiKey,
        address: &Address,
    ) -> Option<&KeyEntry> {
        let lives = |entry: &KeyEntry| {
            let state = KeyState { generation: entry.generation, active: true };
            registry.key_state(entry.principal, &entry.nonce) == Some(state)
        };
        // Looked up twice: the borrow checker would hold a reference that may be returned to the end.
        if self.table.find(api_key, lives).is_some() {
            return self.table.find(api_key, |_| true);
        }
        let entry = self.recompute(registry, api_key, address)?;
        Some(self.table.keep(entry))
    }

    /// The living key of this address that is called `api_key`.
    fn recompute(&self, registry: &Registry, api_key: &ApiKey, address: &Address) -> Option<KeyEntry> {
        let principal = registry.wallet_of(address)?;
        if registry.wallet(principal).kind != WalletKind::Eoa {
            return None;
        }
        let name = |nonce, generation| KeyName { chain: self.chain, address: *address, nonce, generation };
        let (nonce, state) = keys::states(registry, principal)
            .filter(|(_, state)| state.active)
            .find(|(nonce, state)| self.master.api_key(&name(*nonce, state.generation)) == *api_key)?;
        let made = self.master.credentials(&name(nonce, state.generation));
        Some(KeyEntry {
            api_key: made.api_key,
            address: *address,
            principal,
            nonce,
            generation: state.generation,
            mac: MacKey::new(&made.secret),
            passphrase: Passphrase::new(made.passphrase),
        })
    }
}
