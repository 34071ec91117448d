//! Names of a trade: its id and its settlement hash, made from its place in the log.
//!
//! A trade is one taker order with all its fills, so the position of the taker's frame names it.
//! The loop that answers the order and the reader that lists the trade later derive the same two
//! names from it, without asking each other.

use super::ids::{ApiKey, Position, Word};

/// The first six bytes of every trade id, so that people recognise one, and of what is hashed.
const MARK: [u8; 6] = *b"outcry";

/// Frames start at multiples of this, so the lowest six bits of a position say nothing.
const POSITION_STEP: u64 = 64;

/// Bits of a UUID's last eight bytes that are its variant, not data.
const VARIANT: u64 = 0b10 << 62;

/// A trade's id: a UUID of version 8 that holds the trade's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TradeId(Position);

impl TradeId {
    /// The id of the trade that the frame at `position` made.
    #[must_use]
    pub const fn new(position: Position) -> Self {
        assert!(position.0.is_multiple_of(POSITION_STEP), "frames start at multiples of 64");
        Self(position)
    }

    /// Where the trade was made.
    #[must_use]
    pub const fn position(self) -> Position {
        self.0
    }

    /// The 128 bits of the UUID.
    #[must_use]
    pub fn uuid(self) -> ApiKey {
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&MARK);
        bytes[6] = 0x80;
        bytes[8..].copy_from_slice(&(VARIANT | (self.0.0 / POSITION_STEP)).to_be_bytes());
        ApiKey(bytes)
    }

    /// The id with these 128 bits, if they are a trade id's.
    #[must_use]
    pub fn from_uuid(uuid: ApiKey) -> Option<Self> {
        let (head, tail) = uuid.0.split_at(8);
        let tail = u64::from_be_bytes(tail.try_into().expect("eight of sixteen bytes"));
        let position = Position((tail & !VARIANT).checked_mul(POSITION_STEP)?);
        let id = Self(position);
        (head[..6] == MARK && id.uuid() == uuid).then_some(id)
    }
}

/// The settlement hash of the trade, or of what else moved money or shares, that the frame at `position` made: there is
/// no chain here, but clients wait for a hash that is not zero. It follows from the position alone, so that a list of
/// many needs none of their orders. `keccak` is the keccak-256 of some bytes.
#[must_use]
pub fn settlement_hash(position: Position, keccak: fn(&[u8]) -> [u8; 32]) -> Word {
    let mut bytes = [0; MARK.len() + 8];
    bytes[..MARK.len()].copy_from_slice(&MARK);
    bytes[MARK.len()..].copy_from_slice(&position.0.to_be_bytes());
    Word(keccak(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trade_id_is_a_uuid_that_leads_back_to_its_position() {
        for position in [0, 64, 4_096, u64::MAX - 63] {
            let id = TradeId::new(Position(position));
            let uuid = id.uuid();
            assert_eq!(uuid.0[6] >> 4, 8, "version");
            assert_eq!(uuid.0[8] >> 6, 0b10, "variant");
            assert_eq!(TradeId::from_uuid(uuid), Some(id));
        }
    }

    #[test]
    fn another_uuid_is_no_trade_id() {
        let uuid = TradeId::new(Position(64)).uuid();
        for (byte, value) in [(0, b'O'), (6, 0x40), (7, 1), (8, 0)] {
            let mut other = uuid;
            other.0[byte] = value;
            assert_eq!(TradeId::from_uuid(other), None);
        }
    }

    #[test]
    fn the_hash_follows_from_the_position() {
        fn as_it_is(bytes: &[u8]) -> [u8; 32] {
            let mut hash = [0; 32];
            hash[..bytes.len()].copy_from_slice(bytes);
            hash
        }
        // Clients keep these hashes, so a version does not change them.
        let hash = settlement_hash(Position(0x0123_4567_89AB_CDC0), as_it_is);
        assert_eq!(hash.0[..14], *b"outcry\x01\x23\x45\x67\x89\xAB\xCD\xC0");
    }
}
