//! secp256k1: from a digest and a signature to the address that signed, and back.

use super::eip712::keccak;
use crate::domain::{Address, Word};
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{All, Message, PublicKey, Secp256k1, SecretKey, VerifyOnly};

/// Bytes of a signature: r, s, v.
pub const SIGNATURE_BYTES: usize = 65;

/// Half of the group's order, the largest s. Of the two values of s that fit, the larger is
/// refused, so that nobody can turn a signature into another one of the same order.
pub(super) const HALF_ORDER: [u8; 32] = [
    0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x5d,
    0x57, 0x6e, 0x73, 0x57, 0xa4, 0x50, 0x1d, 0xdf, 0xe9, 0x2f, 0x46, 0x68, 0x1b, 0x20, 0xa0,
];

/// Says who signed. One per core loop.
#[derive(Debug)]
pub struct Curve {
    context: Secp256k1<VerifyOnly>,
}

impl Default for Curve {
    fn default() -> Self {
        Self { context: Secp256k1::verification_only() }
    }
}

impl Curve {
    /// The address whose key signed `digest`; `None` if the signature is malformed or not in its
    /// canonical form. A recovery always gives some address, so the caller compares.
    #[must_use]
    pub fn recover(&self, digest: &Word, signature: &[u8]) -> Option<Address> {
        self.recover_key(digest, signature).map(|key| key.address())
    }

    /// The public key whose address [`Self::recover`] gives.
    #[must_use]
    pub fn recover_key(&self, digest: &Word, signature: &[u8]) -> Option<Key> {
        let signature: &[u8; SIGNATURE_BYTES] = signature.try_into().ok()?;
        let recovery = match signature[64] {
            27 => RecoveryId::Zero,
            28 => RecoveryId::One,
            _ => return None,
        };
        if signature[32..64] > HALF_ORDER[..] {
            return None;
        }
        let signature = RecoverableSignature::from_compact(&signature[..64], recovery).ok()?;
        let key = self.context.recover_ecdsa(Message::from_digest(digest.0), &signature).ok()?;
        Some(Key::new(&key))
    }
}

/// A public key that came from libsecp256k1, so it is a point of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    x: [u8; 32],
    y: [u8; 32],
}

impl Key {
    fn new(key: &PublicKey) -> Self {
        let [_, point @ ..] = key.serialize_uncompressed();
        let (x, y) = point.split_first_chunk().expect("32 of 64 bytes");
        Self { x: *x, y: y.try_into().expect("32 of 64 bytes") }
    }

    /// The address of whoever has this key.
    #[must_use]
    pub fn address(&self) -> Address {
        let hash = keccak([self.x, self.y].as_flattened());
        Address(hash.0[12..].try_into().expect("20 of 32 bytes"))
    }

    /// Its x and y, big-endian.
    #[must_use]
    pub const fn coordinates(&self) -> ([u8; 32], [u8; 32]) {
        (self.x, self.y)
    }
}

/// A key that signs: for seeded accounts, load generators and tests. The server never has a
/// client's.
pub struct Signer {
    context: Secp256k1<All>,
    secret: SecretKey,
    address: Address,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Signer").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Signer {
    /// The signer with this private key, or none if it is zero or not below the group's order.
    #[must_use]
    pub fn new(secret: [u8; 32]) -> Option<Self> {
        let context = Secp256k1::new();
        let secret = SecretKey::from_byte_array(secret).ok()?;
        let address = Key::new(&PublicKey::from_secret_key(&context, &secret)).address();
        Some(Self { context, secret, address })
    }

    /// The address of the key.
    #[must_use]
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// The signature of `digest`, the same every time (RFC 6979).
    #[must_use]
    pub fn sign(&self, digest: &Word) -> [u8; SIGNATURE_BYTES] {
        let signature = self.context.sign_ecdsa_recoverable(Message::from_digest(digest.0), &self.secret);
        let (recovery, compact) = signature.serialize_compact();
        let mut bytes = [0; SIGNATURE_BYTES];
        bytes[..64].copy_from_slice(&compact);
        bytes[64] = match recovery {
            RecoveryId::Zero => 27,
            RecoveryId::One => 28,
            RecoveryId::Two | RecoveryId::Three => unreachable!("no x above the order was ever found"),
        };
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn signer(byte: u8) -> Signer {
        Signer::new([byte; 32]).expect("a small number is a key")
    }

    /// order - s, with the other v: valid for plain ECDSA, and the form that we refuse.
    fn other_form(signature: &[u8; SIGNATURE_BYTES]) -> [u8; SIGNATURE_BYTES] {
        const ORDER: [u8; 32] = [
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
            0xba, 0xae, 0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41,
        ];
        let mut other = *signature;
        let mut borrow = 0;
        for index in (0..32).rev() {
            let (first, below) = ORDER[index].overflowing_sub(signature[32 + index]);
            let (second, below_too) = first.overflowing_sub(borrow);
            other[32 + index] = second;
            borrow = u8::from(below || below_too);
        }
        other[64] = 27 + 28 - signature[64];
        other
    }

    #[test]
    fn a_signature_has_one_form() {
        let signer = signer(7);
        let digest = keccak(b"order");
        let good = signer.sign(&digest);
        let curve = Curve::default();
        assert_eq!(curve.recover(&digest, &good), Some(*signer.address()));
        assert_eq!(curve.recover(&digest, &other_form(&good)), None, "s above half the order");
        for v in (0..=255).filter(|v| *v != 27 && *v != 28) {
            let mut bad = good;
            bad[64] = v;
            assert_eq!(curve.recover(&digest, &bad), None, "v {v}");
        }
        assert_eq!(curve.recover(&digest, &good[..64]), None);
        assert_eq!(curve.recover(&digest, &[&good[..], &[0]].concat()), None);
        assert_eq!(curve.recover(&digest, &[0; SIGNATURE_BYTES]), None);
    }

    proptest! {
        #[test]
        fn who_signed_is_found_and_a_changed_bit_gives_somebody_else(
            secret in 1_u8..=255, digest: [u8; 32], at in 0_usize..64, bit in 0_u8..8,
        ) {
            let signer = signer(secret.min(0x7f));
            let digest = Word(digest);
            let curve = Curve::default();
            let mut signature = signer.sign(&digest);
            prop_assert_eq!(curve.recover(&digest, &signature), Some(*signer.address()));
            signature[at] ^= 1 << bit;
            prop_assert_ne!(curve.recover(&digest, &signature), Some(*signer.address()));
        }
    }
}
