//! Why a signature or a signed request was refused, for people who try things out.
//!
//! Nothing here runs for a request that is taken, and only `dev` asks: an explanation tries one curve
//! operation for each domain that anybody signs for (an exception to AUTH-1), and says which check failed
//! first. It reveals neither a secret nor the code that would have been right.

use super::curve::{Curve, SIGNATURE_BYTES};
use super::eip712::{
    ActTerms, Chain, Domains, KUEST_FORMER_CONTRACTS, ORDER_TYPE, Venue, separator, version_3_contract,
};
use super::l1::Claim;
use super::l2::{self, Request};
use super::{MacKey, text};
use crate::domain::order::SIGNATURE_BYTES_MAX;
use crate::domain::text::{parse_hex, parse_uint256, parse_uuid};
use crate::domain::{Address, OrderFields, Reject, SignatureType, SignedOrder, TimeMs, Word};

macro_rules! checks {
    ($( $variant:ident = $word:literal, $hint:literal; )*) => {
        /// Which check failed. The words are part of the interface.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Check { $( #[doc = concat!("`", $word, "`")] $variant, )* }

        impl Check {
            /// Every check, in the order of this table.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )* ];

            /// The word for programs.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $( Self::$variant => $word, )* }
            }

            /// The sentence for people.
            #[must_use]
            pub const fn hint(self) -> &'static str {
                match self { $( Self::$variant => $hint, )* }
            }
        }
    };
}

checks! {
    Headers = "headers", "a credential header is missing: ADDRESS, SIGNATURE and TIMESTAMP, and for L2 API_KEY and PASSPHRASE";
    Timestamp = "timestamp", "the timestamp is not a number of seconds or milliseconds since 1970";
    Freshness = "freshness", "the timestamp lies outside the window around the server's clock; ask GET /time";
    AddressForm = "address_form", "the address is not 0x and 40 hex digits";
    KeyForm = "api_key_form", "the API key is not a UUID";
    Key = "api_key", "no living key of this address has this id: revoked, of another address, or of another exchange; derive it again, or make another one to read with";
    Passphrase = "passphrase", "the passphrase is not the key's";
    HmacForm = "hmac_form", "the signature is not base64 of 32 bytes";
    Hmac = "hmac", "the HMAC is not over these bytes with the key's secret, decoded from base64; compare prehash and body_bytes with what you signed";
    ChainId = "chain_id", "X-Chain-Id is not the exchange's chain";
    Nonce = "nonce", "the nonce is not a uint256 in decimal";
    OrderVersion = "order_version", "the body is an order of version 1: it has a nonce or a fee rate, or no timestamp";
    Signer = "signer", "the order's signer is not who has to sign: the key's address, or the maker for signature type 3";
    Maker = "maker", "the maker or wallet is none of the key's address for this signature type; type 0 trades from the address itself";
    SignatureForm = "signature_form", "the signature is not r, s and v in 65 bytes with s in its lower half and v 27 or 28, nor for type 3 its 317 bytes";
    Wrap = "wrap", "the ERC-7739 signature does not wrap this order: separator, order hash or type text are others";
    Domain = "domain", "the right key signed, but for another domain: fits says for which";
    RecoveredSigner = "recovered_signer", "another address signed, or other fields than these: no known domain gives the right one";
}

/// A domain that somebody signs for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownDomain {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Its chain.
    pub chain: Chain,
    /// Its contract; only orders have one.
    pub contract: Option<Address>,
    /// What is signed for it.
    pub of: &'static str,
}

impl KnownDomain {
    fn order(venue: Venue, version: &'static str, chain: Chain, contract: Address, of: &'static str) -> Self {
        Self { name: venue.name(), version, chain, contract: Some(contract), of }
    }

    const fn l1(chain: Chain) -> Self {
        Self { name: "ClobAuthDomain", version: "1", chain, contract: None, of: "L1 requests" }
    }

    const fn act(chain: Chain) -> Self {
        Self { name: "Outcry", version: "1", chain, contract: None, of: "splits, merges and redeems" }
    }

    fn separator(&self) -> Word {
        separator(self.name, self.version, self.chain, self.contract.as_ref())
    }
}

/// What was found about a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signing {
    /// What failed.
    pub check: Check,
    /// Who has to sign.
    pub expected: Address,
    /// Under which domain.
    pub domain: KnownDomain,
    /// The digest of what was sent, under that domain: what should have been signed.
    pub digest: Word,
    /// Who signed that digest, going by the signature.
    pub recovered: Option<Address>,
    /// The domain under which the right key did sign.
    pub fits: Option<KnownDomain>,
}

/// What was found about the headers of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presenting {
    /// What failed.
    pub check: Check,
    /// How far the timestamp is ahead of the server's clock; below zero if it is behind.
    pub skew_ms: Option<i64>,
    /// The mistake under which the HMAC fits: `path_with_query`, `without_body` or `lower_case_method`.
    pub slip: Option<&'static str>,
}

/// Explains why a read-only key that was shown beside `address` was refused.
#[must_use]
pub fn readonly(address: &[u8], key: &[u8]) -> Presenting {
    let check = if address.is_empty() || key.is_empty() {
        Check::Headers
    } else if parse_uuid(key).is_none() {
        Check::KeyForm
    } else if text::address(address).is_none() {
        Check::AddressForm
    } else {
        Check::Key
    };
    Presenting { check, skew_ms: None, slip: None }
}

/// Explains why an order of `caller` was refused with `reject`.
#[must_use]
pub fn order(
    chain: Chain,
    order: &SignedOrder,
    caller: &Address,
    (venue, neg_risk): (Venue, bool),
    reject: Reject,
) -> Signing {
    let fields = &order.fields;
    let sealed = Sealed::of(order);
    let curve = Curve::default();
    let known = order_domains(chain);
    // A deposit wallet's order names its own domain.
    let named = known.iter().find(|domain| sealed.separator == Some(domain.separator().0));
    let contract = venue.contracts()[usize::from(neg_risk)];
    let own = KnownDomain::order(venue, "2", chain, contract, served_for(neg_risk));
    let served = |domain: &&KnownDomain| domain.of == served_for(neg_risk) && domain.chain == chain;
    let domain = *named.filter(served).unwrap_or(&own);
    let recover = |domain: &KnownDomain| curve.recover(&digest(domain, fields), sealed.signature?);
    let recovered = recover(&domain);
    let fits = known.iter().copied().find(|other| recover(other) == Some(*caller));
    let check = match reject {
        Reject::SignerMismatch => Check::Signer,
        Reject::MakerNotAuthorized => Check::Maker,
        _ if !sealed.has_form(&curve) => Check::SignatureForm,
        _ if sealed.wraps_another(chain, order) => Check::Wrap,
        _ if fits.is_some() => Check::Domain,
        _ => Check::RecoveredSigner,
    };
    let fits = fits.filter(|fits| *fits != domain);
    Signing { check, expected: *caller, domain, digest: digest(&domain, fields), recovered, fits }
}

/// Explains why an L1 request was refused; `Err` if the check that failed is not about the signature.
pub fn claim(chain: Chain, claim: &Claim<'_>, now: TimeMs, window_s: u64) -> Result<Signing, Presenting> {
    let skew_ms = skew_ms(claim.timestamp, now);
    let fails = |check| Err(Presenting { check, skew_ms, slip: None });
    if [claim.address, claim.signature, claim.timestamp].iter().any(|text| text.is_empty()) {
        return fails(Check::Headers);
    }
    if claim.chain_id.is_some_and(|id| text::decimal_u64(id) != Some(chain.id())) {
        return fails(Check::ChainId);
    }
    if skew_ms.is_none() {
        return fails(Check::Timestamp);
    }
    if !l2::is_fresh(claim.timestamp, now, window_s) {
        return fails(Check::Freshness);
    }
    let Some(nonce) = claim.nonce.map_or(Some([0; 32]), parse_uint256).map(Word) else {
        return fails(Check::Nonce);
    };
    let Some(address) = text::address(claim.address) else {
        return fails(Check::AddressForm);
    };
    let signature: Option<[u8; SIGNATURE_BYTES]> = parse_hex(claim.signature);
    let digest_on = |chain| Domains::new(chain).clob_auth_digest(&address, claim.timestamp, &nonce);
    Ok(on_chains(
        chain,
        &address,
        signature.as_ref().map_or(&[], |bytes| &bytes[..]),
        KnownDomain::l1,
        digest_on,
    ))
}

/// Explains why a split, merge or redeem of `owner` was refused with `reject`.
#[must_use]
pub fn act(chain: Chain, terms: &ActTerms, signature: &[u8], owner: &Address, reject: Reject) -> Signing {
    let digest_on = |chain| Word(Domains::new(chain).act_digest(terms).0);
    let found = on_chains(chain, owner, signature, KnownDomain::act, digest_on);
    let check = if reject == Reject::MakerNotAuthorized { Check::Maker } else { found.check };
    Signing { check, ..found }
}

/// Examines a signature whose domain varies only with the chain.
fn on_chains(
    chain: Chain,
    expected: &Address,
    signature: &[u8],
    domain_of: fn(Chain) -> KnownDomain,
    digest_on: impl Fn(Chain) -> Word,
) -> Signing {
    let curve = Curve::default();
    let recover = |chain| curve.recover(&digest_on(chain), signature);
    let recovered = recover(chain);
    let others = CHAINS.into_iter().filter(|other| *other != chain);
    let fits = others.into_iter().find(|other| recover(*other) == Some(*expected)).map(domain_of);
    let check = match (recovered, fits) {
        (None, None) => Check::SignatureForm,
        (_, Some(_)) => Check::Domain,
        (Some(_), None) => Check::RecoveredSigner,
    };
    let (domain, digest) = (domain_of(chain), digest_on(chain));
    Signing { check, expected: *expected, domain, digest, recovered, fits }
}

/// How far a timestamp is ahead of the server's clock; `None` if it is not a number.
#[must_use]
pub fn skew_ms(timestamp: &[u8], now: TimeMs) -> Option<i64> {
    let ahead = i128::from(l2::time_of(timestamp)?.0) - i128::from(now.0);
    i64::try_from(ahead).ok()
}

/// The mistake under which a request's HMAC fits, if it is a known one.
#[must_use]
pub fn slip(
    request: &Request<'_>,
    query: Option<&str>,
    key: &MacKey,
    signature: &[u8],
) -> Option<&'static str> {
    let whole = [request.path, b"?", query.unwrap_or("").as_bytes()].concat();
    let lower = request.method.to_ascii_lowercase();
    [
        ("path_with_query", Request { path: &whole, prefix: b"", ..*request }),
        ("without_body", Request { body: b"", ..*request }),
        ("lower_case_method", Request { method: &lower, ..*request }),
    ]
    .into_iter()
    .find(|(_, other)| l2::is_signed(other, key, signature))
    .map(|(slip, _)| slip)
}

const CHAINS: [Chain; 2] = [Chain::Amoy, Chain::Polygon];

const fn served_for(neg_risk: bool) -> &'static str {
    if neg_risk { "orders of neg-risk markets" } else { "orders of other markets" }
}

/// Every domain that a client is known to sign orders for, this exchange's chain first.
fn order_domains(chain: Chain) -> Vec<KnownDomain> {
    let mut known = Vec::new();
    for chain in [chain, if chain == Chain::Amoy { Chain::Polygon } else { Chain::Amoy }] {
        for venue in Venue::ALL {
            for (neg_risk, contract) in [false, true].into_iter().zip(venue.contracts()) {
                known.push(KnownDomain::order(venue, "2", chain, contract, served_for(neg_risk)));
            }
        }
        let version_3 = version_3_contract(chain);
        known.push(KnownDomain::order(Venue::Polymarket, "3", chain, version_3, "orders of version 3"));
        for contract in KUEST_FORMER_CONTRACTS {
            known.push(KnownDomain::order(Venue::Kuest, "2", chain, contract, "orders of former contracts"));
        }
    }
    known
}

/// What is signed for an order under a domain.
fn digest(domain: &KnownDomain, fields: &OrderFields) -> Word {
    let domains = Domains::new(domain.chain);
    let (separator, hash) = (domain.separator(), domains.order_hash(fields));
    if fields.signature_type == SignatureType::Deposit {
        domains.deposit_order_digest(&separator, &hash, &fields.maker)
    } else {
        Word(Domains::order_id(&separator, &hash).0)
    }
}

/// The parts of an order's signature, as far as its length allows.
struct Sealed<'a> {
    signature: Option<&'a [u8]>,
    separator: Option<[u8; 32]>,
}

impl<'a> Sealed<'a> {
    fn of(order: &'a SignedOrder) -> Self {
        let bytes = order.signature();
        if order.fields.signature_type != SignatureType::Deposit {
            return Self { signature: (bytes.len() == SIGNATURE_BYTES).then_some(bytes), separator: None };
        }
        if bytes.len() != SIGNATURE_BYTES_MAX {
            return Self { signature: None, separator: None };
        }
        let separator = bytes[SIGNATURE_BYTES..SIGNATURE_BYTES + 32].try_into().expect("32 bytes");
        Self { signature: Some(&bytes[..SIGNATURE_BYTES]), separator: Some(separator) }
    }

    /// Any digest will do: whether a recovery finds a signer at all depends nearly always on the form alone.
    fn has_form(&self, curve: &Curve) -> bool {
        self.signature.is_some_and(|signature| curve.recover(&Word([1; 32]), signature).is_some())
    }

    fn wraps_another(&self, chain: Chain, order: &SignedOrder) -> bool {
        let Some(separator) = self.separator else {
            return false;
        };
        let hash = Domains::new(chain).order_hash(&order.fields);
        let tail = [&hash.0[..], ORDER_TYPE.as_bytes(), &[0x00, 0xba]].concat();
        let known = order_domains(chain).iter().any(|domain| domain.separator().0 == separator);
        order.signature()[SIGNATURE_BYTES + 32..] != tail || !known
    }
}
