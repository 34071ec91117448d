//! The checksum over the levels of a book, which a client that rebuilds the book compares with its own.
//!
//! It is the sum, modulo 2^32, of the CRC-32 of zlib and gzip (polynomial 0x04C11DB7, reflected) over the ASCII text
//! `SIDE PRICE SIZE` of each level, as in `BUY 0.45 100`. Prices and sizes are the texts of a `book` message, which are
//! as short as possible. The order of the levels does not matter, and an empty book has 0. So what a change does to the
//! sum follows from the levels that it changed, however many there are.

use super::super::levels::{Levels, seen_from};
use super::market::OUTCOMES;
use super::recent::LevelChange;
use crate::domain::{Outcome, Price, Shares, Side};
use crate::json::decimal;

/// The checksum of a book as `outcome` sees it.
pub(in crate::reader) fn crc(levels: &Levels, outcome: Outcome) -> u32 {
    let sides = [Side::Buy, Side::Sell].into_iter();
    let levels = sides.flat_map(|side| levels.side(outcome, side).map(move |level| (side, level)));
    let mut text = Vec::with_capacity(TEXT_BYTES);
    levels
        .fold(0, |sum, (side, level)| sum.wrapping_add(of_level(&mut text, side, level.price, level.shares)))
}

/// The checksums of both books of a market.
pub(super) fn crcs(levels: &Levels) -> [u32; 2] {
    OUTCOMES.map(|outcome| crc(levels, outcome))
}

/// Makes the checksums of both books those after a change of these levels.
pub(super) fn follow(crcs: &mut [u32; 2], levels: &[LevelChange]) {
    each(levels, |outcome, before, now| {
        let crc = &mut crcs[outcome.index()];
        *crc = crc.wrapping_sub(before).wrapping_add(now);
    });
}

/// Makes the checksums of both books those before a change of these levels.
pub(super) fn go_back(crcs: &mut [u32; 2], levels: &[LevelChange]) {
    each(levels, |outcome, before, now| {
        let crc = &mut crcs[outcome.index()];
        *crc = crc.wrapping_sub(now).wrapping_add(before);
    });
}

/// What each level adds to the checksum of each book, before and after its change.
fn each(levels: &[LevelChange], mut take: impl FnMut(Outcome, u32, u32)) {
    let mut text = Vec::with_capacity(TEXT_BYTES);
    for level in levels {
        for outcome in OUTCOMES {
            let side = level.side.seen_from(outcome);
            let mut of = |shares| of_level(&mut text, side, seen_from(outcome, level.price), shares);
            take(outcome, of(level.before), of(level.now));
        }
    }
}

/// `SELL`, six digits of a price, twenty of a size with their point, and two blanks.
const TEXT_BYTES: usize = 40;

/// What a level adds, whose text is written to `text`; nothing if it is not there.
fn of_level(text: &mut Vec<u8>, side: Side, price: Price, shares: Shares) -> u32 {
    if shares.is_zero() {
        return 0;
    }
    text.clear();
    text.extend_from_slice(side.text().as_bytes());
    text.push(b' ');
    decimal::push_price(text, price);
    text.push(b' ');
    decimal::push_millionths(text, shares.0);
    crc32fast::hash(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(cents: u16) -> Price {
        Price::new(cents * 100).expect("in range")
    }

    /// Computed with Python's `zlib.crc32`.
    const LEVELS: [(&str, u32); 6] = [
        ("BUY 0.45 100", CRCS[0]),
        ("BUY 0.4 2.5", CRCS[1]),
        ("SELL 0.55 7.000001", CRCS[2]),
        ("SELL 0.55 100", CRCS[3]),
        ("SELL 0.6 2.5", CRCS[4]),
        ("BUY 0.45 7.000001", CRCS[5]),
    ];
    const CRCS: [u32; 6] =
        [4_193_645_680, 2_249_475_368, 923_499_874, 2_464_982_506, 3_014_939_048, 1_257_373_831];

    #[test]
    fn a_checksum_is_the_sum_of_those_of_zlib_over_the_documented_texts() {
        for (text, value) in LEVELS {
            assert_eq!(crc32fast::hash(text.as_bytes()), value, "{text}");
        }
        let mut levels = Levels::default();
        assert_eq!(crcs(&levels), [0, 0]);
        levels.add(Outcome::Zero, Side::Buy, price(45), Shares(100_000_000));
        levels.add(Outcome::Zero, Side::Buy, price(40), Shares(2_500_000));
        levels.add(Outcome::Zero, Side::Sell, price(55), Shares(7_000_001));
        let sum = |of: [usize; 3]| of.iter().fold(0, |sum: u32, &at| sum.wrapping_add(CRCS[at]));
        assert_eq!(crcs(&levels), [sum([0, 1, 2]), sum([3, 4, 5])]);
    }

    #[test]
    fn a_checksum_follows_changes_and_goes_back() {
        let mut levels = Levels::default();
        let (mut followed, mut seen) = ([0; 2], vec![[0; 2]]);
        let mut changes = Vec::new();
        for (side, cents, now) in [
            (Side::Buy, 40, 5),
            (Side::Sell, 60, 7),
            (Side::Buy, 40, 9),
            (Side::Buy, 41, 1),
            (Side::Sell, 60, 0),
            (Side::Buy, 40, 0),
        ] {
            let change = LevelChange {
                side,
                price: price(cents),
                before: levels.open_at(side, price(cents)),
                now: Shares(now),
            };
            levels.set(side, change.price, change.now);
            follow(&mut followed, &[change]);
            assert_eq!(followed, crcs(&levels), "{change:?}");
            changes.push(change);
            seen.push(followed);
        }
        for (change, before) in changes.iter().zip(&seen).rev() {
            go_back(&mut followed, &[*change]);
            assert_eq!(followed, *before, "{change:?}");
        }
    }
}
