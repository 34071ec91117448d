//! Whether an order's signature holds, by signature type.
//!
//! The caller is the owner of the API key, known before this room is asked. The registry checks
//! that `maker` is one of its wallets; this room checks that the caller signed.
//!
//! | type | `signer` | signature |
//! |---|---|---|
//! | 0 EOA | the caller, and so is `maker` | 65 bytes over the order's digest |
//! | 1 proxy, 2 safe | the caller | 65 bytes over the order's digest |
//! | 3 deposit wallet | the wallet, and so is `maker` | 317 bytes, ERC-7739, signed by the caller |
//!
//! The 317 bytes: r, s, v (65) | domain separator (32) | order hash (32) | type text (186) | 0x00ba.

use super::curve::{Curve, SIGNATURE_BYTES, Signer};
use super::eip712::{ActTerms, Domains, ORDER_TYPE, Venue};
use super::known::KnownSigners;
use super::l1::{self, Claim, Proof};
use crate::domain::order::SIGNATURE_BYTES_MAX;
use crate::domain::{Address, OrderFields, OrderId, Reject, SignatureType, SignedOrder, TimeMs, Word};

const SEPARATOR_AT: usize = SIGNATURE_BYTES;
const HASH_AT: usize = SEPARATOR_AT + 32;
const TYPE_AT: usize = HASH_AT + 32;
const TYPE_LENGTH_AT: usize = TYPE_AT + ORDER_TYPE.len();

const _: () = assert!(TYPE_LENGTH_AT + 2 == SIGNATURE_BYTES_MAX, "the wrap is 317 bytes long");
const _: () = assert!(ORDER_TYPE.len() == 0x00ba, "the wrap says how long its type text is");

/// Checks signatures for one chain. One per core loop.
#[derive(Debug)]
pub struct Verifier {
    domains: Domains,
    curve: Curve,
    /// `None` unless configured; without it every signature is recovered.
    known: Option<KnownSigners>,
}

impl Verifier {
    /// A verifier for these domains.
    #[must_use]
    pub fn new(domains: Domains) -> Self {
        Self { domains, curve: Curve::default(), known: None }
    }

    /// A verifier that keeps tables of known signers in `bytes` of memory, if one fits.
    #[must_use]
    pub fn with_known_signers(domains: Domains, bytes: u64) -> Self {
        let known = (KnownSigners::TABLE_BYTES <= bytes).then(|| KnownSigners::new(bytes));
        Self { known, ..Self::new(domains) }
    }

    /// The signers that it knows; `None` if it keeps no tables.
    #[must_use]
    pub const fn known_signers(&self) -> Option<&KnownSigners> {
        self.known.as_ref()
    }

    /// The domains that it verifies for.
    #[must_use]
    pub const fn domains(&self) -> &Domains {
        &self.domains
    }

    /// Checks the parties that the order names: the part of [`Verifier::order`] that costs nothing,
    /// so that it can come before the registry is asked about `maker`.
    pub fn parties(fields: &OrderFields, caller: &Address) -> Result<(), Reject> {
        let signer = match fields.signature_type {
            SignatureType::Eoa | SignatureType::Proxy | SignatureType::Safe => caller,
            SignatureType::Deposit => &fields.maker,
        };
        if fields.signer != *signer {
            return Err(Reject::SignerMismatch);
        }
        if fields.signature_type == SignatureType::Eoa && fields.maker != *caller {
            return Err(Reject::MakerNotAuthorized);
        }
        Ok(())
    }

    /// Checks that `caller` signed this order for a market of this kind, and returns the order's
    /// id. `venue` is that of the request's headers; a deposit wallet's order names its own. At
    /// most one curve operation, before which `known` is called with the id, not yet proved.
    pub fn order(
        &mut self,
        order: &SignedOrder,
        caller: &Address,
        venue: Venue,
        neg_risk: bool,
        known: impl FnOnce(&OrderId),
    ) -> Result<OrderId, Reject> {
        let fields = &order.fields;
        Self::parties(fields, caller)?;
        let hash = self.domains.order_hash(fields);
        if fields.signature_type == SignatureType::Deposit {
            return self.deposit_order(order, &hash, caller, neg_risk, known);
        }
        let id = Domains::order_id(self.domains.orders(venue, neg_risk), &hash);
        known(&id);
        self.signed(&Word(id.0), order.signature(), caller).map(|()| id)
    }

    /// True if an order whose signature or token means nothing here was signed for an exchange that
    /// is not served. A deposit wallet's order names its exchange; any other is tried as an order
    /// of Polymarket's version 3, for one more curve operation.
    #[must_use]
    pub fn is_for_another_version(&self, order: &SignedOrder, caller: &Address) -> bool {
        if order.fields.signature_type == SignatureType::Deposit {
            let carried = order.signature().get(SEPARATOR_AT..HASH_AT);
            return carried.is_some_and(|carried| self.is_not_served(carried));
        }
        let id = Domains::order_id(self.domains.orders_version_3(), &self.domains.order_hash(&order.fields));
        self.curve.recover(&Word(id.0), order.signature()) == Some(*caller)
    }

    fn is_not_served(&self, separator: &[u8]) -> bool {
        self.domains.not_served().iter().any(|known| known.0 == separator)
    }

    /// Checks that a wallet's owner signed a split, merge or redeem, and returns the act's id.
    pub fn act(&mut self, terms: &ActTerms, signature: &[u8], owner: &Address) -> Result<OrderId, Reject> {
        let id = self.domains.act_digest(terms);
        self.signed(&Word(id.0), signature, owner).map(|()| id)
    }

    /// Checks an L1 request.
    pub fn claim(&self, claim: &Claim<'_>, now: TimeMs, window_s: u64) -> Result<Proof, Reject> {
        l1::check(claim, &self.domains, &self.curve, now, window_s)
    }

    fn deposit_order(
        &mut self,
        order: &SignedOrder,
        hash: &Word,
        caller: &Address,
        neg_risk: bool,
        known: impl FnOnce(&OrderId),
    ) -> Result<OrderId, Reject> {
        let wrap: &[u8; SIGNATURE_BYTES_MAX] =
            order.signature().try_into().map_err(|_| Reject::SignatureInvalid)?;
        let separator = *self.embedded(&wrap[SEPARATOR_AT..HASH_AT], neg_risk)?;
        let length = wrap[TYPE_LENGTH_AT..] == [0x00, 0xba];
        if wrap[HASH_AT..TYPE_AT] != hash.0
            || wrap[TYPE_AT..TYPE_LENGTH_AT] != *ORDER_TYPE.as_bytes()
            || !length
        {
            return Err(Reject::SignatureInvalid);
        }
        let id = Domains::order_id(&separator, hash);
        known(&id);
        let digest = self.domains.deposit_order_digest(&separator, hash, &order.fields.maker);
        self.signed(&digest, &wrap[..SIGNATURE_BYTES], caller).map(|()| id)
    }

    /// The separator that a wrap carries, if orders of this kind of market are taken under it.
    fn embedded(&self, carried: &[u8], neg_risk: bool) -> Result<&Word, Reject> {
        let served = |neg_risk: bool| Venue::ALL.map(|venue| self.domains.orders(venue, neg_risk));
        if let Some(separator) = served(neg_risk).into_iter().find(|separator| separator.0 == carried) {
            return Ok(separator);
        }
        Err(if self.is_not_served(carried) { Reject::OrderVersionMismatch } else { Reject::SignatureInvalid })
    }

    fn signed(&mut self, digest: &Word, signature: &[u8], caller: &Address) -> Result<(), Reject> {
        if self.known.as_mut().is_some_and(|known| known.vouches(caller, digest, signature)) {
            return Ok(());
        }
        let recovered = self.curve.recover_key(digest, signature);
        let key = recovered.filter(|key| key.address() == *caller).ok_or(Reject::SignatureInvalid)?;
        if let Some(known) = &mut self.known {
            known.learn(caller, &key);
        }
        Ok(())
    }
}

/// Signs an order as a client of `venue` does; returns the signature's bytes and how many count.
#[must_use]
pub fn sign_order(
    signer: &Signer,
    domains: &Domains,
    venue: Venue,
    neg_risk: bool,
    fields: &OrderFields,
) -> ([u8; SIGNATURE_BYTES_MAX], u16) {
    let separator = domains.orders(venue, neg_risk);
    let hash = domains.order_hash(fields);
    let mut bytes = [0; SIGNATURE_BYTES_MAX];
    if fields.signature_type != SignatureType::Deposit {
        let digest = Word(Domains::order_id(separator, &hash).0);
        bytes[..SIGNATURE_BYTES].copy_from_slice(&signer.sign(&digest));
        return (bytes, 65);
    }
    let digest = domains.deposit_order_digest(separator, &hash, &fields.maker);
    bytes[..SIGNATURE_BYTES].copy_from_slice(&signer.sign(&digest));
    bytes[SEPARATOR_AT..HASH_AT].copy_from_slice(&separator.0);
    bytes[HASH_AT..TYPE_AT].copy_from_slice(&hash.0);
    bytes[TYPE_AT..TYPE_LENGTH_AT].copy_from_slice(ORDER_TYPE.as_bytes());
    bytes[TYPE_LENGTH_AT..].copy_from_slice(&[0x00, 0xba]);
    (bytes, 317)
}

#[cfg(test)]
mod tests;
