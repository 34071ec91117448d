//! Numbers modulo n, the order of the group: what a signature's equation multiplies points by.
//!
//! The curve has a λ with λ P = (β x, y), so a number is cut into two of half the length,
//! k = k1 + λ k2, and one table of multiples serves both (Gallant, Lambert and Vanstone). The cut
//! is exact whatever the rounding: (a1, b1) and (a2, b2) are two pairs with a + λ b = 0 modulo n, and
//! multiples of them are subtracted from (k, 0) so that both parts are short.

use ruint::aliases::{U256, U512};

/// The order of the group.
pub(super) const ORDER: U256 = U256::from_limbs([
    0xbfd2_5e8c_d036_4141,
    0xbaae_dce6_af48_a03b,
    0xffff_ffff_ffff_fffe,
    0xffff_ffff_ffff_ffff,
]);

/// a1, which is b2 too.
const A1: U256 = U256::from_limbs([0xe86c_90e4_9284_eb15, 0x3086_d221_a7d4_6bcd, 0, 0]);
/// -b1.
const MINUS_B1: U256 = U256::from_limbs([0x6f54_7fa9_0abf_e4c3, 0xe443_7ed6_010e_8828, 0, 0]);
/// a2.
const A2: U256 = U256::from_limbs([0x57c1_108d_9d44_cfd8, 0x14ca_50f7_a8e2_f3f6, 1, 0]);
/// 2^384 b2 / n, rounded.
const G1: U256 = U256::from_limbs([
    0xe893_209a_45db_b031,
    0x3daa_8a14_71e8_ca7f,
    0xe86c_90e4_9284_eb15,
    0x3086_d221_a7d4_6bcd,
]);
/// -2^384 b1 / n, rounded.
const G2: U256 = U256::from_limbs([
    0x1571_b4ae_8ac4_7f71,
    0x2212_08ac_9df5_06c6,
    0x6f54_7fa9_0abf_e4c4,
    0xe443_7ed6_010e_8828,
]);

/// One part of a number that was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Half {
    pub(super) magnitude: u128,
    pub(super) negative: bool,
}

/// The parts k1 and k2 of a number below n, with k = k1 + λ k2 modulo n.
pub(super) fn cut(number: U256) -> [Half; 2] {
    let (c1, c2) = (scaled(number, G1), scaled(number, G2));
    // Below 2^128 either way, so 256 bits hold them with their sign in the top bit.
    let k1 = number.wrapping_sub(c1.wrapping_mul(A1)).wrapping_sub(c2.wrapping_mul(A2));
    let k2 = c1.wrapping_mul(MINUS_B1).wrapping_sub(c2.wrapping_mul(A1));
    [half(k1), half(k2)]
}

/// number * factor / 2^384, rounded.
fn scaled(number: U256, factor: U256) -> U256 {
    let product: U512 = number.widening_mul(factor);
    let [.., below, low, high] = *product.as_limbs();
    let (low, over) = low.overflowing_add(below >> 63);
    U256::from_limbs([low, high + u64::from(over), 0, 0])
}

fn half(number: U256) -> Half {
    let negative = number.bit(255);
    let magnitude = if negative { number.wrapping_neg() } else { number };
    let [low, high, rest @ ..] = *magnitude.as_limbs();
    debug_assert_eq!(rest, [0, 0], "a part has at most 128 bits");
    Half { magnitude: u128::from(high) << 64 | u128::from(low), negative }
}
