//! The one writer of the registry.

use super::breakers::BreakerRow;
use super::rows::{KeyRow, MarketRow, WalletRow};
use super::{Full, KeyState, MarketFacts, Registry, token_entry};
use crate::domain::{Address, ApiKey, BreakerState, MarketNo, Mode, Outcome, WalletKind, WalletNo, Word};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The right to write one registry. There is one of it, and it cannot be cloned:
///
/// ```compile_fail
/// let (_, writer) = outcry::registry::Registry::with_capacity(1, 1);
/// let second = writer.clone();
/// ```
#[derive(Debug)]
pub struct RegistryWriter {
    registry: Arc<Registry>,
}

impl RegistryWriter {
    pub(super) const fn new(registry: Arc<Registry>) -> Self {
        Self { registry }
    }

    /// The registry, as everybody reads it.
    #[must_use]
    pub const fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Wallets that can still be added.
    #[must_use]
    pub fn wallets_free(&self) -> u32 {
        self.registry.wallets.free()
    }

    /// API keys that can still be added.
    #[must_use]
    pub fn keys_free(&self) -> u32 {
        self.registry.keys.free()
    }

    /// Keys that can still get a fill-rate breaker.
    #[must_use]
    pub fn breakers_free(&self) -> u32 {
        self.registry.breakers.free()
    }

    /// Markets that can still be added.
    #[must_use]
    pub fn markets_free(&self) -> u32 {
        self.registry.markets.free()
    }

    /// Adds a wallet that has no row yet. `principal` is an EOA's number; it is ignored for an EOA,
    /// which is its own principal.
    pub fn add_wallet(
        &mut self,
        address: Address,
        kind: WalletKind,
        principal: Option<WalletNo>,
    ) -> Result<WalletNo, Full> {
        let registry = &*self.registry;
        assert!(registry.wallet_of(&address).is_none(), "an address has one wallet");
        assert!(kind != WalletKind::Fee || registry.fee_wallet().is_none(), "there is one fee wallet");
        let row = WalletRow::new(address, kind);
        let number = WalletNo(registry.wallets.count());
        let owner = if kind == WalletKind::Eoa { None } else { principal };
        // The row is complete before anybody can see it.
        match owner {
            Some(owner) => row.join(owner, self.principal(owner).first_sibling()),
            None if kind == WalletKind::Eoa => row.join(number, None),
            None => {}
        }
        registry.wallets.publish(row).ok_or(Full::Wallets)?;
        if let Some(owner) = owner {
            self.principal(owner).set_first_sibling(number);
        }
        if kind == WalletKind::Fee {
            registry.fee_wallet.store(number.0, Ordering::Release);
        }
        registry.wallet_by_address.insert(address.as_bytes(), number.0);
        Ok(number)
    }

    /// Gives an unlinked wallet to a principal.
    pub fn link(&mut self, wallet: WalletNo, principal: WalletNo) {
        assert!(self.registry.wallet(wallet).principal().is_none(), "a wallet is linked once");
        let owner = self.principal(principal);
        self.registry.wallet(wallet).join(principal, owner.first_sibling());
        owner.set_first_sibling(wallet);
    }

    fn principal(&self, principal: WalletNo) -> &WalletRow {
        let owner = self.registry.wallet(principal);
        assert!(owner.kind == WalletKind::Eoa, "a principal is named by its EOA");
        owner
    }

    /// Stops a principal from trading, or lets it trade again.
    pub fn set_frozen(&mut self, principal: WalletNo, frozen: bool) {
        self.registry.wallet(principal).set_frozen(frozen);
    }

    /// Publishes the state of the key (principal, nonce), which may be new.
    pub fn set_key(&mut self, principal: WalletNo, nonce: Word, state: KeyState) -> Result<(), Full> {
        let registry = &*self.registry;
        if let Some(row) = registry.key_of(principal, &nonce) {
            assert!(row.state().generation <= state.generation, "generations only rise");
            row.set_state(state);
            return Ok(());
        }
        let owner = self.principal(principal);
        let row = KeyRow::new(principal, nonce, state, owner.first_key());
        owner.set_first_key(registry.keys.publish(row).ok_or(Full::Keys)?);
        Ok(())
    }

    /// Sets the breaker of a key, which may be new; a quantity of zero takes it away.
    pub fn set_breaker(&mut self, principal: WalletNo, key: ApiKey, state: BreakerState) -> Result<(), Full> {
        let registry = &*self.registry;
        let row = self.breaker_row(principal, key)?;
        let before = row.is_set();
        match (before, !state.quantity.is_zero()) {
            (false, true) => drop(registry.breakers_set.fetch_add(1, Ordering::AcqRel)),
            (true, false) => drop(registry.breakers_set.fetch_sub(1, Ordering::AcqRel)),
            _ => {}
        }
        row.set(state);
        Ok(())
    }

    /// The row of a key's breaker: its own, or one of its owner's that no breaker is set in, or a new one.
    fn breaker_row(&self, principal: WalletNo, key: ApiKey) -> Result<&BreakerRow, Full> {
        let registry = &*self.registry;
        if let Some(row) = registry.breaker(principal, &key) {
            return Ok(row);
        }
        if let Some(row) = registry.breakers_of(principal).find(|row| !row.is_set()) {
            row.give_to(key);
            return Ok(row);
        }
        let number = registry.breakers.publish(BreakerRow::new(principal, key)).ok_or(Full::Breakers)?;
        match registry.breakers_of(principal).last() {
            Some(last) => last.set_next(number),
            None => registry.breaker_by_owner.insert(&principal.0.to_le_bytes(), number),
        }
        Ok(registry.breakers.row(number))
    }

    /// Forgets what the breaker of a key has counted.
    pub fn reset_breaker(&mut self, principal: WalletNo, key: &ApiKey) {
        if let Some(row) = self.registry.breaker(principal, key) {
            row.forget();
            row.set(BreakerState { tripped: false, ..row.state() });
        }
    }

    /// Adds a market whose condition, tokens and id are new.
    pub fn add_market(&mut self, facts: &MarketFacts) -> Result<MarketNo, Full> {
        let registry = &*self.registry;
        assert!(facts.payout.is_some() == (facts.mode == Mode::Resolved), "resolved means a payout");
        assert!(facts.tokens[0] != facts.tokens[1], "a market has two tokens");
        assert!(facts.tokens.iter().all(|token| registry.token(token).is_none()), "a token has one market");
        assert!(registry.condition(&facts.condition).is_none(), "a condition has one market");
        assert!(registry.market_by_id(facts.market_id).is_none(), "an id has one market");
        let row = MarketRow::new(facts);
        let number = MarketNo(registry.markets.publish(row).ok_or(Full::Markets)?);
        for outcome in [Outcome::Zero, Outcome::One] {
            let token = facts.tokens[outcome.index()];
            registry.market_by_token.insert(token.as_bytes(), token_entry(number, outcome));
        }
        registry.market_by_condition.insert(facts.condition.as_bytes(), number.0);
        registry.market_by_id.insert(&facts.market_id.to_le_bytes(), number.0);
        Ok(number)
    }

    /// Publishes the mode of the whole exchange.
    pub fn set_exchange_mode(&mut self, mode: Mode) {
        // Release pairs with the acquire in `Registry::exchange_mode`.
        self.registry.exchange_mode.store(mode as u8, Ordering::Release);
    }
}
