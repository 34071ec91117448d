//! Collateral and shares: integers in millionths, never floats.
//!
//! A pair of shares (one of each outcome) always costs and returns exactly 1.000000, so both
//! units have the same scale: a million millionths of a share at the price 1 are one USDC.

use std::ops::{Add, AddAssign, Sub, SubAssign};

/// Millionths in one USDC and in one share.
pub const ONE: u64 = 1_000_000;

/// The largest order: a billion shares or a billion USDC, in millionths. Products of two such
/// amounts fit `u128` with room to spare, and sums of thousands of them fit `u64`.
pub const ORDER_AMOUNT_MAX: u64 = 1_000_000_000 * ONE;

macro_rules! amount {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// Nothing.
            pub const ZERO: Self = Self(0);

            /// True if there is nothing.
            #[must_use]
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }

            /// The sum, or `None` past `u64::MAX`.
            #[must_use]
            pub const fn checked_add(self, other: Self) -> Option<Self> {
                match self.0.checked_add(other.0) {
                    Some(sum) => Some(Self(sum)),
                    None => None,
                }
            }

            /// The difference, or `None` below zero.
            #[must_use]
            pub const fn checked_sub(self, other: Self) -> Option<Self> {
                match self.0.checked_sub(other.0) {
                    Some(rest) => Some(Self(rest)),
                    None => None,
                }
            }

            /// The difference, or zero where it would be negative.
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        // Money never wraps: these operators panic in every profile, because an overflow here
        // is a bug of ours and the log is there to recover from.
        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                self.checked_add(other).expect("sums of amounts stay within u64")
            }
        }
        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                self.checked_sub(other).expect("amounts never fall below zero")
            }
        }
        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }
        impl SubAssign for $name {
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }
        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
                iter.fold(Self::ZERO, Add::add)
            }
        }
    };
}

amount!(
    /// An amount of collateral in millionths of one USDC.
    Collateral
);
amount!(
    /// An amount of outcome shares in millionths of one share.
    Shares
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "never fall below zero")]
    fn an_amount_never_wraps_below_zero() {
        let _ = Shares(1) - Shares(2);
    }

    #[test]
    fn differences_saturate_only_where_asked() {
        assert_eq!(Collateral(1).saturating_sub(Collateral(2)), Collateral::ZERO);
        assert_eq!(Collateral(1).checked_sub(Collateral(2)), None);
    }
}
