//! Points of the curve y^2 = x^3 + 7 and the two ways of adding them.
//!
//! [`add_pairs`] adds many pairs at once and shares one division among them: 6 multiplications per
//! pair. [`Sum`] adds one point after the other without any: 11 multiplications each, and one
//! division when the result is read. Both formulas fail for two points with the same x: a point and
//! itself, or a point and its negative, whose sum is the point at infinity. Both report that to
//! their caller, so the point at infinity never occurs here.

use super::field::Field;
use ruint::aliases::U256;

/// A cube root of 1 modulo p: (β x, y) is λ times (x, y).
const BETA: Field = Field::new(U256::from_limbs([
    0xc139_6c28_7195_01ee,
    0x9cf0_4975_12f5_8995,
    0x6e64_479e_ac34_34e9,
    0x7ae9_6a2b_657c_0710,
]));

/// A point that is not the one at infinity: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Point {
    x: Field,
    y: Field,
}

const _: () = assert!(size_of::<Point>() == 64, "a look into a table costs one cache line");

impl Point {
    /// Fills places that have no point yet. It is not on the curve.
    pub(super) const NONE: Self = Self { x: Field::ZERO, y: Field::ZERO };

    /// The generator of the group.
    pub(super) const GENERATOR: Self = Self {
        x: Field::new(U256::from_limbs([
            0x59f2_815b_16f8_1798,
            0x029b_fcdb_2dce_28d9,
            0x55a0_6295_ce87_0b07,
            0x79be_667e_f9dc_bbac,
        ])),
        y: Field::new(U256::from_limbs([
            0x9c47_d08f_fb10_d4b8,
            0xfd17_b448_a685_5419,
            0x5da4_fbfc_0e11_08a8,
            0x483a_da77_26a3_c465,
        ])),
    };

    /// The point with these coordinates, which the caller knows to be on the curve.
    pub(super) const fn new(x: U256, y: U256) -> Self {
        Self { x: Field::new(x), y: Field::new(y) }
    }

    #[inline]
    pub(super) fn negated(self) -> Self {
        Self { x: self.x, y: -self.y }
    }

    /// λ times this point.
    #[inline]
    pub(super) fn times_lambda(self) -> Self {
        Self { x: BETA * self.x, y: self.y }
    }

    /// Twice this point; costs a division. No point of this curve is its own negative.
    pub(super) fn doubled(self) -> Self {
        let square = self.x.square();
        let inverse = (self.y + self.y).inverse().expect("the group's order is odd");
        let slope = (square + square + square) * inverse;
        let x = slope.square() - self.x - self.x;
        Self { x, y: slope * (self.x - x) - self.y }
    }

    #[cfg(test)]
    pub(super) fn coordinates(self) -> (U256, U256) {
        (self.x.number(), self.y.number())
    }
}

/// Two points to add and the place of their sum, as indices.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    pub(super) left: usize,
    pub(super) right: usize,
    pub(super) to: usize,
}

/// Adds pairs 0 to `count` of `points`, in that order; a sum may take the place of a point that no
/// later pair adds. `partial` is scratch for `count` numbers. False, with nothing changed, if two
/// points of a pair have the same x.
pub(super) fn add_pairs(
    points: &mut [Point],
    count: usize,
    pair: impl Fn(usize) -> Pair,
    partial: &mut [Field],
) -> bool {
    // partial[i] is the product of the divisors of all pairs after i; one division then gives the
    // inverse of each in turn (Montgomery's trick).
    let mut product = Field::ONE;
    for index in (0..count).rev() {
        let Pair { left, right, .. } = pair(index);
        partial[index] = product;
        product = product * (points[right].x - points[left].x);
    }
    let Some(mut inverse) = product.inverse() else {
        return false;
    };
    for (index, behind) in partial[..count].iter().enumerate() {
        let Pair { left, right, to } = pair(index);
        let (left, right) = (points[left], points[right]);
        let slope = (right.y - left.y) * (inverse * *behind);
        inverse = inverse * (right.x - left.x);
        let x = slope.square() - left.x - right.x;
        points[to] = Point { x, y: slope * (left.x - x) - left.y };
    }
    true
}

/// A sum of points: (x / z^2, y / z^3).
#[derive(Clone, Copy)]
pub(super) struct Sum {
    x: Field,
    y: Field,
    z: Field,
}

impl Sum {
    /// A sum of one point.
    pub(super) const fn of(point: Point) -> Self {
        Self { x: point.x, y: point.y, z: Field::ONE }
    }

    /// The sum with `point` added; `None` if the sum so far has the same x.
    #[inline]
    pub(super) fn plus(self, point: Point) -> Option<Self> {
        let zz = self.z.square();
        let across = point.x * zz - self.x;
        let up = point.y * (zz * self.z) - self.y;
        if across.is_zero() {
            return None;
        }
        let square = across.square();
        let cube = square * across;
        let shared = self.x * square;
        let x = up.square() - cube - (shared + shared);
        let y = up * (shared - x) - self.y * cube;
        Some(Self { x, y, z: self.z * across })
    }

    /// λ times this sum.
    pub(super) fn times_lambda(self) -> Self {
        Self { x: BETA * self.x, ..self }
    }

    /// Its coordinates, below p; costs a division.
    pub(super) fn coordinates(self) -> Option<(U256, U256)> {
        let inverse = self.z.inverse()?;
        let square = inverse.square();
        Some(((self.x * square).number(), (self.y * (square * inverse)).number()))
    }
}
