//! The CRC over the levels of a book, which a client that rebuilds the book compares with its own.
//!
//! It is the CRC-32 of zlib and gzip (polynomial 0x04C11DB7, reflected) over ASCII text: for each level of
//! `bids` and then of `asks`, in the order of a `book` message (best level last), `price:size;`, with `|`
//! between the sides. Prices and sizes are the message's texts, which are as short as possible. So the
//! text of an empty book is `|`, and nothing but levels matters.

use super::super::levels::Levels;
use crate::domain::{Outcome, Side};
use crate::json::decimal;

/// The CRC of a book as `outcome` sees it.
pub(in crate::reader) fn crc(levels: &Levels, outcome: Outcome) -> u32 {
    /// How many bytes of text are hashed at a time.
    const PART_BYTES: usize = 4_096;
    let mut hasher = crc32fast::Hasher::new();
    let mut text = Vec::with_capacity(PART_BYTES + 64);
    for side in [Side::Buy, Side::Sell] {
        for level in levels.side(outcome, side) {
            decimal::push_price(&mut text, level.price);
            text.push(b':');
            decimal::push_millionths(&mut text, level.shares.0);
            text.push(b';');
            if PART_BYTES <= text.len() {
                hasher.update(&text);
                text.clear();
            }
        }
        if side == Side::Buy {
            text.push(b'|');
        }
    }
    hasher.update(&text);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Price, Shares};

    /// Computed with Python's `zlib.crc32`.
    #[test]
    fn checksums_are_those_of_zlib_over_the_documented_text() {
        let price = |cents: u16| Price::new(cents * 100).expect("in range");
        let mut levels = Levels::default();
        assert_eq!(crc(&levels, Outcome::Zero), VECTORS[0].1);
        levels.add(Outcome::Zero, Side::Buy, price(45), Shares(100_000_000));
        levels.add(Outcome::Zero, Side::Buy, price(40), Shares(2_500_000));
        levels.add(Outcome::Zero, Side::Sell, price(55), Shares(7_000_001));
        assert_eq!(crc(&levels, Outcome::Zero), VECTORS[1].1);
        assert_eq!(crc(&levels, Outcome::One), VECTORS[2].1);
        for (text, value) in VECTORS {
            assert_eq!(crc32fast::hash(text.as_bytes()), value, "{text}");
        }
    }

    const VECTORS: [(&str, u32); 3] = [
        ("|", 2_343_686_810),
        ("0.4:2.5;0.45:100;|0.55:7.000001;", 706_159_220),
        ("0.45:7.000001;|0.6:2.5;0.55:100;", 2_615_765_851),
    ];
}
