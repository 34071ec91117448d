//! The arithmetic of one outcome in one wallet.

use crate::domain::{Collateral, Shares, TimeMs};

/// 10^-18 USDC, never below zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Atto(pub u128);

/// Atto in a millionth of a USDC.
const PER_MILLIONTH: u128 = 1_000_000_000_000;

/// Millionths in one share.
const MILLIONTHS: u128 = 1_000_000;

/// Decimal places of an [`Atto`].
const PLACES: u32 = 18;

// An amount in millionths takes 64 bits, the scale to atto 40 and the scale of a share 20: the
// product of all three stays within 128 bits.
const _: () = assert!((u64::MAX as u128).checked_mul(PER_MILLIONTH * MILLIONTHS).is_some());

impl Atto {
    /// An amount of collateral.
    #[must_use]
    pub const fn of(amount: Collateral) -> Self {
        Self(amount.0 as u128 * PER_MILLIONTH)
    }

    /// What one side of `pairs` costs.
    #[must_use]
    pub const fn half_of(pairs: Shares) -> Self {
        Self(pairs.0 as u128 * (PER_MILLIONTH / 2))
    }

    /// What `shares` are worth at a price in millionths.
    #[must_use]
    pub fn worth(shares: Shares, price_millionths: u32) -> Self {
        Self(u128::from(shares.0) * u128::from(price_millionths) * (PER_MILLIONTH / MILLIONTHS))
    }

    /// This number as a signed one. Amounts of `u64` millionths leave 23 bits of room.
    #[must_use]
    pub fn signed(self) -> i128 {
        i128::try_from(self.0).unwrap_or(i128::MAX)
    }
}

/// One outcome's shares in one wallet: what they cost, and what those given up before brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lot {
    /// What it holds now.
    pub shares: Shares,
    /// Millionths of shares ever acquired.
    pub bought: u128,
    /// What the shares that it holds now cost.
    pub cost: Atto,
    /// Profit booked so far, in atto; below zero for a loss.
    pub realized: i128,
    /// What it held before the act that last closed it.
    pub closed_shares: Shares,
    /// What that had cost.
    pub closed_cost: Atto,
    /// When its shares last changed.
    pub changed: TimeMs,
}

impl Lot {
    /// `shares` come in and cost `cost`.
    pub(super) fn buy(&mut self, shares: Shares, cost: Atto, time: TimeMs) {
        self.shares += shares;
        self.bought += u128::from(shares.0);
        self.cost.0 += cost.0;
        self.changed = time;
    }

    /// `shares` leave and bring `received`. Returns the profit in atto.
    pub(super) fn sell(&mut self, shares: Shares, received: Atto, time: TimeMs) -> i128 {
        assert!(shares <= self.shares, "a lot gives only shares that it holds");
        if shares.is_zero() {
            return 0;
        }
        let left = self.shares - shares;
        if left.is_zero() {
            (self.closed_shares, self.closed_cost) = (self.shares, self.cost);
        }
        let kept = share_of(self.cost, left, self.shares);
        let gained = received.signed() - Atto(self.cost.0 - kept.0).signed();
        self.realized += gained;
        (self.shares, self.cost, self.changed) = (left, kept, time);
        gained
    }

    /// True while it holds something.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        !self.shares.is_zero()
    }

    /// True if it held something and holds nothing now.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.shares.is_zero() && self.bought > 0
    }

    /// What an open lot shows at a price in millionths.
    #[must_use]
    pub fn open_figures(&self, price_millionths: u32) -> Figures {
        let (initial, current) = (self.cost.signed(), Atto::worth(self.shares, price_millionths).signed());
        Figures {
            size: self.shares,
            average: average(self.cost, self.shares),
            initial,
            current,
            cash_pnl: current - initial,
            cash_base: initial,
            bought: self.bought,
            realized: self.realized,
        }
    }

    /// What a closed lot shows: size and average are those before it was closed; its profit is
    /// fully booked, and measured against the shares ever bought.
    #[must_use]
    pub fn closed_figures(&self) -> Figures {
        Figures {
            size: self.closed_shares,
            average: average(self.closed_cost, self.closed_shares),
            initial: self.closed_cost.signed(),
            current: 0,
            cash_pnl: self.realized,
            cash_base: at_one(self.bought),
            bought: self.bought,
            realized: self.realized,
        }
    }
}

/// What a position shows. Money is in atto.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Shares.
    pub size: Shares,
    /// Cost of one share, in atto.
    pub average: i128,
    /// What the size cost.
    pub initial: i128,
    /// What it is worth.
    pub current: i128,
    /// What would be gained by selling it.
    pub cash_pnl: i128,
    /// What the profit is measured against.
    cash_base: i128,
    /// Millionths of shares ever acquired.
    pub bought: u128,
    /// Profit booked so far.
    pub realized: i128,
}

impl Figures {
    /// The profit in percent of what it is measured against, as an integer with `places` decimals;
    /// 0 if that base is 0.
    #[must_use]
    pub fn percent_pnl(&self, places: u32) -> i128 {
        ratio(self.cash_pnl, self.cash_base, hundred(places))
    }

    /// The booked profit in percent of the shares ever bought, as an integer with `places`
    /// decimals; 0 if there are none.
    #[must_use]
    pub fn percent_realized(&self, places: u32) -> i128 {
        ratio(self.realized, at_one(self.bought), hundred(places))
    }
}

/// The powers of five that are needed to drop places of an atto. Looked up, because the exponent is
/// only known at run time.
const FIVES: [u64; PLACES as usize + 1] = {
    let mut powers = [1; PLACES as usize + 1];
    let mut next = 1;
    while next < powers.len() {
        powers[next] = 5 * powers[next - 1];
        next += 1;
    }
    powers
};

/// One hundred with `places` decimals.
fn hundred(places: u32) -> i128 {
    100 * (i128::from(FIVES[places as usize]) << places)
}

/// An amount of atto as an integer with `places` decimals, at most 18, rounded half away from zero.
#[must_use]
pub fn rounded(atto: i128, places: u32) -> i128 {
    // Ten to the n is five to the n, shifted by n. Most amounts fit 64 bits once they are shifted,
    // and a 64-bit division costs a fraction of a 128-bit one.
    let dropped = PLACES - places;
    let five = FIVES[dropped as usize];
    let half = u128::from(five) << dropped >> 1;
    let shifted = atto.unsigned_abs().checked_add(half).map(|sum| u64::try_from(sum >> dropped));
    match shifted {
        Some(Ok(shifted)) => with_sign_of(atto, (shifted / five).into()),
        _ => nearest(atto, 10_i128.pow(dropped)),
    }
}

/// `part * scale / whole`, rounded half away from zero; 0 if `whole` is not above zero. Amounts
/// above 10^11 USDC lose digits that no answer shows.
#[must_use]
pub fn ratio(part: i128, whole: i128, scale: i128) -> i128 {
    if whole <= 0 || part == 0 {
        return 0;
    }
    let (mut part, mut whole) = (part, whole);
    let bits = |number: i128| i128::BITS - number.unsigned_abs().leading_zeros();
    if bits(part) + bits(scale) >= i128::BITS {
        let room = i128::MAX / scale;
        while part.unsigned_abs() > room.unsigned_abs() {
            part /= 2;
            whole = if whole < 2 { 1 } else { whole / 2 };
        }
    }
    nearest(part * scale, whole)
}

/// `value / divisor`, rounded half away from zero. `divisor` is above zero.
fn nearest(value: i128, divisor: i128) -> i128 {
    let (value_abs, divisor) = (value.unsigned_abs(), divisor.unsigned_abs());
    let whole = value_abs / divisor;
    let rest = value_abs - whole * divisor;
    let up = rest >= divisor - rest;
    with_sign_of(value, if up { whole + 1 } else { whole })
}

fn with_sign_of(value: i128, abs: u128) -> i128 {
    let abs = abs.cast_signed();
    if value < 0 { abs.wrapping_neg() } else { abs }
}

/// What shares would be worth at the price 1, in atto.
fn at_one(millionths: u128) -> i128 {
    i128::try_from(millionths.saturating_mul(PER_MILLIONTH)).unwrap_or(i128::MAX)
}

/// The cost of one share, to the nearest atto.
fn average(cost: Atto, shares: Shares) -> i128 {
    if shares.is_zero() {
        return 0;
    }
    let shares = u128::from(shares.0);
    let scaled = cost.0 * MILLIONTHS + shares / 2;
    i128::try_from(scaled / shares).unwrap_or(i128::MAX)
}

/// The part of `cost` that `left` of `all` shares keep, to the nearest atto: never more than `cost`.
fn share_of(cost: Atto, left: Shares, all: Shares) -> Atto {
    let (left, all) = (u128::from(left.0), u128::from(all.0));
    // In two steps, because a product of cost and shares may take more than 128 bits.
    let (whole, rest) = (cost.0 / all, cost.0 % all);
    Atto(whole * left + (rest * left + all / 2) / all)
}
