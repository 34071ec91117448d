//! Which nonces of API keys mean what.
//!
//! An owner signs for a key with any uint256 as its nonce. Nonces that begin with [`MARK`] are kept
//! for read-only keys, which nobody signs for, so the log needs no field that says what a key may do.

use super::Word;

/// What the nonces of read-only keys begin with. Nobody counts that far by accident.
const MARK: &[u8; 24] = b"outcry read-only key nr.";

/// The nonce of an owner's read-only key.
#[must_use]
pub fn of_readonly_key(number: u64) -> Word {
    let mut word = [0; 32];
    word[..MARK.len()].copy_from_slice(MARK);
    word[MARK.len()..].copy_from_slice(&number.to_be_bytes());
    Word(word)
}

/// True if a key with this nonce may only read.
#[must_use]
pub fn is_of_readonly_key(nonce: &Word) -> bool {
    nonce.0.starts_with(MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_of_a_read_only_key_or_of_one_that_trades() {
        for number in [0, 1, u64::MAX] {
            assert!(is_of_readonly_key(&of_readonly_key(number)));
        }
        // The log has them, so they mean the same in every version.
        assert_eq!(of_readonly_key(0x0102).0, *b"outcry read-only key nr.\0\0\0\0\0\0\x01\x02");
        assert!(!is_of_readonly_key(&Word::ZERO));
        assert!(!is_of_readonly_key(&Word([0xff; 32])));
    }
}
