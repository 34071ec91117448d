//! The signed fields as a record stores them: what most orders have in common is left out.
//!
//! | bytes   | field                                                                        |
//! |--------:|------------------------------------------------------------------------------|
//! |       1 | which of the fields with two lengths have the longer one ([`Longer`])        |
//! | 8 or 32 | salt: its last eight bytes if all before them are zero, as clients make it   |
//! |      20 | maker                                                                        |
//! | 0 or 20 | signer: nothing if the maker signed                                          |
//! |      32 | token                                                                        |
//! |       8 | maker amount                                                                 |
//! |       8 | taker amount                                                                 |
//! |       1 | side                                                                         |
//! |       1 | signature type                                                               |
//! |       8 | timestamp                                                                    |
//! | 0 or 32 | metadata: nothing if zero                                                    |
//! | 0 or 32 | builder: nothing if zero                                                     |
//!
//! SIGNED-1: the same fields have the same bytes. A field that is longer than it has to be is damage.

use crate::domain::{Address, OrderFields, Side, SignatureType, TokenId, Word};
use crate::memory::wire::{Damage, Input, Out, Wire};

/// The most bytes that signed fields take.
pub(super) const SIGNED_BYTES_MAX: usize = 1 + 32 + 20 + 20 + 32 + 8 + 8 + 1 + 1 + 8 + 32 + 32;

/// How much of a salt is zero in the shorter form.
const SALT_ZEROS: usize = 24;

/// A bit for each field that has its longer form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Longer(u8);

impl Longer {
    const SALT: u8 = 1;
    const SIGNER: u8 = 2;
    const METADATA: u8 = 4;
    const BUILDER: u8 = 8;

    fn of(fields: &OrderFields) -> Self {
        let bit = |is_longer, bit| if is_longer { bit } else { 0 };
        Self(
            bit(fields.salt.0[..SALT_ZEROS] != [0; SALT_ZEROS], Self::SALT)
                | bit(fields.signer != fields.maker, Self::SIGNER)
                | bit(fields.metadata != Word::ZERO, Self::METADATA)
                | bit(fields.builder != Word::ZERO, Self::BUILDER),
        )
    }

    const fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

impl Wire for OrderFields {
    fn put(&self, out: &mut impl Out) {
        let longer = Longer::of(self);
        longer.0.put(out);
        let salt = self.salt.as_bytes();
        out.bytes(if longer.has(Longer::SALT) { salt } else { &salt[SALT_ZEROS..] });
        self.maker.put(out);
        if longer.has(Longer::SIGNER) {
            self.signer.put(out);
        }
        self.token.put(out);
        self.maker_amount.put(out);
        self.taker_amount.put(out);
        self.side.put(out);
        self.signature_type.put(out);
        self.timestamp_ms.put(out);
        if longer.has(Longer::METADATA) {
            self.metadata.put(out);
        }
        if longer.has(Longer::BUILDER) {
            self.builder.put(out);
        }
    }

    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        let damage = input.damage("lengths of signed fields");
        let longer = Longer(u8::take(input)?);
        let salt = if longer.has(Longer::SALT) { Word::take(input)? } else { short_salt(input)? };
        let maker = Address::take(input)?;
        let signer = if longer.has(Longer::SIGNER) { Address::take(input)? } else { maker };
        let token = TokenId::take(input)?;
        let (maker_amount, taker_amount) = (u64::take(input)?, u64::take(input)?);
        let (side, signature_type) = (Side::take(input)?, SignatureType::take(input)?);
        let timestamp_ms = u64::take(input)?;
        let metadata = if longer.has(Longer::METADATA) { Word::take(input)? } else { Word::ZERO };
        let builder = if longer.has(Longer::BUILDER) { Word::take(input)? } else { Word::ZERO };
        let fields = Self {
            salt,
            maker,
            signer,
            token,
            maker_amount,
            taker_amount,
            side,
            signature_type,
            timestamp_ms,
            metadata,
            builder,
        };
        if Longer::of(&fields) == longer { Ok(fields) } else { Err(damage) }
    }
}

fn short_salt(input: &mut Input<'_>) -> Result<Word, Damage> {
    let mut salt = Word::ZERO;
    salt.0[SALT_ZEROS..].copy_from_slice(input.bytes(32 - SALT_ZEROS)?);
    Ok(salt)
}
