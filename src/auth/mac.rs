//! HMAC-SHA256 with a key that is absorbed once, and comparison in constant time.

use crate::domain::ApiKey;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// A secret, already hashed in: authenticating a message starts from this state and does not hash the key
/// again.
#[derive(Clone)]
pub struct MacKey(Hmac<Sha256>);

impl std::fmt::Debug for MacKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("MacKey(secret)")
    }
}

impl MacKey {
    /// Absorbs a secret.
    #[must_use]
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(Hmac::new_from_slice(secret).expect("a key of any length is taken"))
    }

    /// True if it was made from `secret`; takes the same time wherever that differs.
    #[must_use]
    pub fn is_of(&self, secret: &[u8; 32]) -> bool {
        const WORD: &[u8] = b"the same secret has the same code";
        same(&self.over([WORD]), &Self::new(secret).over([WORD]))
    }

    /// The code of `parts`, one after the other, and of the bytes behind them.
    pub(super) fn over_mapped<'a>(
        &self,
        parts: impl IntoIterator<Item = &'a [u8]>,
        bytes: impl ExactSizeIterator<Item = u8>,
    ) -> [u8; 32] {
        const PIECE_BYTES: usize = 1 << 10;
        let mut state = self.absorbed(parts);
        let (mut bytes, mut piece) = (bytes, [0; PIECE_BYTES]);
        while 0 < bytes.len() {
            let held = bytes.len().min(PIECE_BYTES);
            piece.iter_mut().zip(bytes.by_ref().take(held)).for_each(|(place, byte)| *place = byte);
            state.update(&piece[..held]);
        }
        state.finalize().into_bytes().into()
    }

    /// The code of `parts`, one after the other.
    #[must_use]
    pub fn over<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
        self.absorbed(parts).finalize().into_bytes().into()
    }

    fn absorbed<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> Hmac<Sha256> {
        let mut state = self.0.clone();
        for part in parts {
            state.update(part);
        }
        state
    }
}

/// True if both are the same key, for keys that are themselves secret; takes the same time wherever they
/// differ.
#[must_use]
pub fn same_key(left: &ApiKey, right: &ApiKey) -> bool {
    same(left.as_bytes(), right.as_bytes())
}

/// True if both are equal; takes the same time wherever they differ.
pub(super) fn same(left: &[u8], right: &[u8]) -> bool {
    left.ct_eq(right).into()
}
