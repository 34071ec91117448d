//! The bodies of what a user does to a position: split, merge, redeem.

use super::ReadError;
use super::field;
use super::order;
use super::record::record;
use super::tape::Value;
use crate::domain::order::SIGNATURE_BYTES_MAX;
use crate::domain::{Address, ConditionId, SignatureType, Word};

/// A user act as it arrived; the path says which of the three it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedAct {
    /// The wallet whose shares and collateral change.
    pub wallet: Address,
    /// The market.
    pub condition: ConditionId,
    /// How much, in millionths; 0 in a redeem means everything.
    pub amount: u64,
    /// Makes the digest unique.
    pub salt: Word,
    /// When the client made the act, milliseconds since 1970.
    pub timestamp_ms: u64,
    /// How to check the signature.
    pub signature_type: SignatureType,
    /// The signature's bytes; only the first `signature_len` count.
    pub signature: [u8; SIGNATURE_BYTES_MAX],
    /// How many there are; an act's is 65 bytes long.
    pub signature_len: u16,
}

impl SignedAct {
    /// The signature as it arrived.
    #[must_use]
    pub fn signature(&self) -> &[u8] {
        &self.signature[..usize::from(self.signature_len)]
    }
}

record! { Act {
    wallet = "wallet",
    condition = "conditionId",
    amount = "amount",
    salt = "salt",
    timestamp = "timestamp",
    signature_type = "signatureType",
    signature = "signature",
} }

/// Reads one act.
pub(super) fn read(body: Value<'_, '_>) -> Result<SignedAct, ReadError> {
    let act = Act::collect(body, "body")?;
    let (signature, signature_len) = order::signature(act.signature, "65 bytes")?;
    Ok(SignedAct {
        wallet: field::address(act.wallet, "wallet")?,
        condition: field::condition(act.condition, "conditionId")?
            .ok_or_else(|| ReadError::payload("conditionId", act.condition, "0x and 64 hex digits"))?,
        amount: field::amount(act.amount, "amount")?,
        salt: field::uint256(act.salt, "salt").map(Word)?,
        timestamp_ms: field::integer(act.timestamp, "timestamp")?,
        signature_type: order::signature_type(act.signature_type)?,
        signature,
        signature_len,
    })
}
