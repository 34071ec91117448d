//! Whether a known key made a signature: what recovery would find, without the recovery.
//!
//! A recovery takes the point R with x = r and the parity that v says, and finds the key Q = (s R - z G) / r.
//! Conversely, the key is Q exactly if z/s G + r/s Q is that same R. So that sum is made from tables of
//! multiples of G and of Q, and then compared in x **and** in the parity of y, because (r, s) with the other
//! v is the signature of another key. What recovery refuses is refused first: r or s of 0 or not below n, s
//! above half of n.
//!
//! ```text
//! s, z, r    1/s, two products         u1, u2 below n
//! u1, u2     cut in halves             u = k1 + λ k2, 128 bits each
//! halves     digits                    11 + 11 points of G's table, 16 + 16 of Q's
//! points     added in pairs            27 at once, for one division
//! sums       one after the other       those of λ's halves first, then times λ, then the others
//! ```
//!
//! Whatever the formulas do not cover (two points with the same x, a sum without points) is answered with no,
//! like everything that does not hold. A no is therefore never final.

use super::super::curve;
use super::field::Field;
use super::point::{Pair, Point, Sum, add_pairs};
use super::scalar::{ORDER, cut};
use super::table::{Layout, terms_of};
use ruint::aliases::U256;

/// The generator's table is shared by all signers and loops, and made once: 1.3 MB.
pub(super) const OF_GENERATOR: Layout = Layout { width: 12 };

/// A signer's table: 136 KiB. One more bit would save two additions of 54, for 1.7 times the memory.
pub(super) const OF_SIGNER: Layout = Layout { width: 8 };

/// Rounds in which pairs are added at once: the first saves 0.5 µs, a second what its division takes.
const ROUNDS: u32 = 1;

/// Half of the order, rounded down.
const HALF_ORDER: U256 = U256::from_be_bytes(curve::HALF_ORDER);

/// The most points in a sum.
const TERMS_MAX: usize = 2 * (OF_GENERATOR.windows() + OF_SIGNER.windows()) as usize;

/// Scratch memory of a check and of a table's growth.
#[derive(Debug)]
pub(super) struct Scratch {
    terms: [Point; TERMS_MAX],
    pub(super) partial: [Field; OF_SIGNER.additions_max()],
}

const _: () = assert!(TERMS_MAX / 2 <= OF_SIGNER.additions_max(), "the first round has that many pairs");

impl Default for Scratch {
    fn default() -> Self {
        Self { terms: [Point::NONE; TERMS_MAX], partial: [Field::ZERO; OF_SIGNER.additions_max()] }
    }
}

/// The tables of the two points that are multiplied.
#[derive(Clone, Copy)]
pub(super) struct Tables<'a> {
    pub(super) generator: &'a [Point],
    pub(super) signer: &'a [Point],
}

/// True if a recovery from `digest` and `signature` would give the key of `tables.signer`. False may also
/// mean that the formulas could not tell.
pub(super) fn holds(
    tables: Tables<'_>,
    digest: &[u8; 32],
    signature: &[u8; 65],
    scratch: &mut Scratch,
) -> bool {
    let Some([u1, u2, r]) = factors(digest, signature) else {
        return false;
    };
    let odd = match signature[64] {
        27 => false,
        28 => true,
        _ => return false,
    };
    let Some((x, y)) = sum(tables, u1, u2, scratch) else {
        return false;
    };
    x == r && y.bit(0) == odd
}

/// z/s, r/s and r, if r and s are what recovery takes.
fn factors(digest: &[u8; 32], signature: &[u8; 65]) -> Option<[U256; 3]> {
    let (r, rest) = signature.split_first_chunk::<32>()?;
    let (s, _) = rest.split_first_chunk::<32>()?;
    let (r, s) = (U256::from_be_bytes(*r), U256::from_be_bytes(*s));
    if r.is_zero() || ORDER <= r || HALF_ORDER < s {
        return None;
    }
    // An s of zero has no inverse.
    let inverse = s.inv_mod(ORDER)?;
    let z = U256::from_be_bytes(*digest);
    Some([z.mul_mod(inverse, ORDER), r.mul_mod(inverse, ORDER), r])
}

/// The coordinates of u1 G + u2 Q.
fn sum(tables: Tables<'_>, u1: U256, u2: U256, scratch: &mut Scratch) -> Option<(U256, U256)> {
    let Scratch { terms, partial } = scratch;
    let ([g1, g2], [q1, q2]) = (cut(u1), cut(u2));
    let mut count = terms_of(OF_GENERATOR, tables.generator, g2, terms);
    count += terms_of(OF_SIGNER, tables.signer, q2, &mut terms[count..]);
    // The terms of λ's halves come first. Those left over from whole groups of pairs are multiplied by λ
    // here, so that no pair mixes the two kinds.
    let mut of_lambda = count >> ROUNDS << ROUNDS;
    for term in &mut terms[of_lambda..count] {
        *term = term.times_lambda();
    }
    count += terms_of(OF_GENERATOR, tables.generator, g1, &mut terms[count..]);
    count += terms_of(OF_SIGNER, tables.signer, q1, &mut terms[count..]);
    for _ in 0..ROUNDS {
        let pairs = count / 2;
        let pair = |index| Pair { left: 2 * index, right: 2 * index + 1, to: index };
        if !add_pairs(terms, pairs, pair, partial) {
            return None;
        }
        if count % 2 == 1 {
            terms[pairs] = terms[count - 1];
        }
        (count, of_lambda) = (count.div_ceil(2), of_lambda / 2);
    }
    let (of_lambda, others) = terms[..count].split_at(of_lambda);
    let (first, rest) = of_lambda.split_first()?;
    let sum = rest.iter().try_fold(Sum::of(*first), |sum, term| sum.plus(*term))?.times_lambda();
    others.iter().try_fold(sum, |sum, term| sum.plus(*term))?.coordinates()
}
