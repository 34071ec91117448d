//! Who is asking: signatures, credentials and the texts that carry them.
//!
//! | question | answered by |
//! |---|---|
//! | which digest does a client sign? | [`Domains`] (EIP-712) |
//! | who signed it? | [`Curve`], one operation per question |
//! | did this known signer sign it? | [`KnownSigners`], at less cost; off unless configured |
//! | does this order's signature hold? | [`Verifier`] |
//! | which proxy and safe are an owner's? | [`mod@derive`] |
//! | who wants credentials (L1)? | [`l1`] |
//! | what are an owner's credentials? | [`Credentials`], recomputed, never stored |
//! | does this request come from a key's owner (L2)? | [`l2`] and [`KeyTable`] |
//! | why did it not hold, in words for people? | [`explain`], in `dev` only |
//!
//! Pure: no socket, no clock (now is an argument), no table of wallets. This room says only which
//! address asks; the registry says what it owns.
//!
//! Invariants:
//! - AUTH-1: no question costs more than one curve operation, and none is asked before everything
//!   cheaper holds. [`explain`] tries one for each known domain, after a refusal; [`KnownSigners`]
//!   adds a quarter of one to a refusal.
//! - AUTH-2: comparisons with anything secret take the same time wherever they differ.
//! - AUTH-3: a signature has one form: s at most n/2, v 27 or 28. Nobody can make a second one.
//! - AUTH-4: no secret is printed: every type that holds one has its own `Debug`.

mod credentials;
mod curve;
pub mod derive;
mod eip712;
pub mod explain;
mod key_table;
mod known;
pub mod l1;
pub mod l2;
mod mac;
mod signature;
pub mod text;

pub use credentials::{Credentials, KeyName, MasterSecret};
pub use curve::{Curve, Key, SIGNATURE_BYTES, Signer};
pub use eip712::{ActTerms, Chain, Domains, ORDER_TYPE, Venue, keccak};
pub use key_table::{KeyEntry, KeyTable, Passphrase};
pub use known::{KnownSigners, Tally};
pub use mac::{MacKey, same_key};
pub use signature::{Verifier, sign_order};
