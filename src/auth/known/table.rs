//! Multiples of a point, so that its product with a number is a sum without doublings.
//!
//! A half of 128 bits is read as digits of `width` bits, and window i of the table holds 1, 2, 3 ... times
//! 2^(width i) P. Digits are signed, from -2^(width-1) to 2^(width-1), and a negative one takes the point's
//! negative, so a window needs half as many points. No carry leaves the last window: its digits run to
//! 2^bits, where bits is how many are left.
//!
//! | width | windows | points | bytes |
//! |---|---|---|---|
//! | 8 | 16 | 15 x 128 + 256 | 139,264 |
//! | 12 | 11 | 10 x 2,048 + 256 | 1,327,104 |
//!
//! A table grows in [`Growth::step`]s, each bounded, because a loop that trades cannot stop for the
//! 250 µs of a whole one.

use super::field::Field;
use super::point::{Pair, Point, add_pairs};
use super::scalar::Half;

/// Bits of a half.
const HALF_BITS: u32 = u128::BITS;

/// How the multiples of one point are laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Bits of a digit, from 2.
    pub(super) width: u32,
}

impl Layout {
    /// Digits of a half.
    pub(super) const fn windows(self) -> u32 {
        HALF_BITS.div_ceil(self.width)
    }

    /// Points of a whole table.
    pub(super) const fn points(self) -> usize {
        let last = self.windows() - 1;
        self.start(last) + self.entries(last)
    }

    /// The most additions that a step does.
    pub(super) const fn additions_max(self) -> usize {
        let (most, last) = (1 << (self.width - 1), self.entries(self.windows() - 1));
        if last < most { most } else { last }
    }

    const fn start(self, window: u32) -> usize {
        (window as usize) << (self.width - 1)
    }

    const fn entries(self, window: u32) -> usize {
        if window + 1 == self.windows() {
            1 << (HALF_BITS - self.width * window)
        } else {
            1 << (self.width - 1)
        }
    }
}

/// How far a table has grown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    window: u32,
    /// Points in that window; 0 once all windows are whole.
    entries: usize,
}

impl Growth {
    /// A table of `point` alone.
    pub(super) const fn begin(table: &mut [Point], point: Point) -> Self {
        table[0] = point;
        Self { window: 0, entries: 1 }
    }

    pub(super) const fn is_whole(self) -> bool {
        self.entries == 0
    }

    /// Adds points: at most as many as the window has already, for at most two divisions. `partial` is
    /// scratch for [`Layout::additions_max`] numbers.
    pub(super) fn step(&mut self, layout: Layout, table: &mut [Point], partial: &mut [Field]) {
        debug_assert!(!self.is_whole());
        let (start, entries) = (layout.start(self.window), layout.entries(self.window));
        if self.entries == 1 {
            table[start + 1] = table[start].doubled();
            self.entries = 2;
        } else {
            // The last point plus each one before it: no two of these points have the same x, because they
            // are different multiples, far below the group's order.
            let (last, next) = (start + self.entries - 1, start + self.entries);
            let count = (self.entries - 1).min(entries - self.entries);
            let pair = |index| Pair { left: last, right: start + index, to: next + index };
            assert!(add_pairs(table, count, pair, partial), "multiples of a point are different points");
            self.entries += count;
        }
        if self.entries < entries {
            return;
        }
        if self.window + 1 == layout.windows() {
            self.entries = 0;
        } else {
            self.window += 1;
            // The window ended with 2^(width-1) times its first point.
            table[layout.start(self.window)] = table[start + entries - 1].doubled();
            self.entries = 1;
        }
    }
}

/// All multiples of `point`.
pub(super) fn whole_table(layout: Layout, point: Point) -> Box<[Point]> {
    let mut table = vec![Point::NONE; layout.points()].into_boxed_slice();
    let mut partial = vec![Field::ZERO; layout.additions_max()];
    let mut growth = Growth::begin(&mut table, point);
    while !growth.is_whole() {
        growth.step(layout, &mut table, &mut partial);
    }
    table
}

/// Writes the points whose sum is `half` times the table's point to the start of `terms`, and returns their
/// number: a digit of zero has none. `terms` has room for one point of each window.
#[inline]
pub(super) fn terms_of(layout: Layout, table: &[Point], half: Half, terms: &mut [Point]) -> usize {
    let (width, last) = (layout.width, layout.windows() - 1);
    let (half_digit, mask) = (1_u64 << (width - 1), (1_u64 << width) - 1);
    let mut rest = half.magnitude;
    let (mut carry, mut count) = (0, 0);
    for window in 0..=last {
        let low = u64::try_from(rest & u128::from(mask)).expect("a digit is short");
        rest >>= width;
        let digit = low + carry;
        let wraps = window < last && half_digit < digit;
        carry = u64::from(wraps);
        let times = if wraps { mask + 1 - digit } else { digit };
        if times == 0 {
            continue;
        }
        let point = table[layout.start(window) + usize::try_from(times).expect("a digit is short") - 1];
        terms[count] = if wraps == half.negative { point } else { point.negated() };
        count += 1;
    }
    count
}
