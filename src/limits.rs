//! How much of the exchange one client may use: rate limits, pure, with the time as an argument.
//!
//! A request is counted in one or more scopes ([`Scope`]), each by a bucket ([`buckets`]) of the address that
//! it came from and, once its signature is checked, by another one of the owner of the key. Owners, not keys:
//! keys are free, so a bucket for each would limit nobody.
//!
//! The outcomes of a charge:
//! - there is room: it passes;
//! - there will be room within [`WAIT_US_MAX`]: it is charged now and its connection waits until then. A
//!   client that is a little too fast thus runs at its rate and never sees a refusal;
//! - otherwise: it is refused, nothing is charged in any scope, and what it has paid before in these buckets
//!   is given back. A refused request thus costs its client nothing, and a client that keeps asking gets
//!   through.
//!
//! Placing orders never uses up what cancels need: `order` and `cancel` are scopes of their own, and neither
//! is counted in `clob`.
//!
//! [`Mode::Warn`] counts and warns, and lets everything pass; [`Mode::Off`] counts nothing.

mod buckets;
pub(crate) mod fair;
mod moment;
mod rate;
mod scope;

use std::hash::{DefaultHasher, Hasher};

use crate::memory::sync::{AtomicBool, AtomicU64, Ordering};
use buckets::{Buckets, Taken};
use moment::US_PER_S;
pub use moment::{Moment, WAIT_US_MAX};
pub use rate::{COUNT_MAX, Cost, Rate, WINDOW_S_MAX};
pub use scope::{Rule, Scope, Unit};

/// Buckets of the process, in 4 MiB: a hundred thousand clients in five scopes each.
pub const BUCKETS: usize = 1 << 19;

/// What is done about a client that exceeds a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It waits, or is refused.
    Enforce,
    /// It is warned.
    Warn,
    /// Nothing is counted.
    Off,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Enforce, Self::Warn, Self::Off];

    /// Its name in the config.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Warn => "warn",
            Self::Off => "off",
        }
    }
}

/// Whose buckets are charged: an address or an owner, as a secret hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Party(u64);

impl Party {
    /// Its row in a table of `rows`, a power of two.
    #[must_use]
    pub fn row(self, rows: usize) -> usize {
        usize::try_from(self.0 & (rows as u64 - 1)).expect("less than rows")
    }

    /// A party of that row, for tests.
    #[cfg(test)]
    pub(crate) const fn of_row(row: u64) -> Self {
        Self(row)
    }
}

/// One scope that a request is counted in.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    /// Whose bucket.
    pub party: Party,
    /// Which one.
    pub scope: Scope,
    /// How much.
    pub cost: Cost,
}

/// A client's standing in the tightest of the buckets that its request was charged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whose bucket it is.
    pub party: Party,
    /// What is counted in it.
    pub scope: Scope,
    /// How much it takes, and in how long.
    pub rate: Rate,
    /// How many it would take now.
    pub remaining: u32,
    /// Seconds until it takes all of them again.
    pub reset_s: u32,
    /// The limit is exceeded, but not enforced.
    pub over: bool,
}

/// The outcome of a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is room.
    Pass,
    /// There will be room at this moment; the request is charged already.
    Wait(Moment),
    /// Nothing is charged; there would be room after `retry_after_s` seconds.
    Refuse {
        /// Rounded up.
        retry_after_s: u32,
    },
}

/// What a limit did to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limited {
    /// It waited.
    Waited,
    /// It was refused.
    Refused,
    /// It passed with a warning.
    Warned,
}

impl Limited {
    /// All of them, by their names.
    pub const NAMES: [(&'static str, Self); 3] =
        [("waited", Self::Waited), ("refused", Self::Refused), ("warned", Self::Warned)];
}

/// The rule of every scope; `None` where nothing is limited.
pub type Rules = [Option<Rule>; Scope::ALL.len()];

/// The limits of a process and everybody's buckets.
#[derive(Debug)]
pub struct RateLimits {
    mode: Mode,
    rules: Rules,
    secret: [u64; 2],
    buckets: Buckets,
    counts: [AtomicU64; Limited::NAMES.len()],
    suspended: AtomicBool,
}

impl RateLimits {
    /// Limits whose buckets are all idle. `secret` must not be known outside the process.
    #[must_use]
    pub fn new(mode: Mode, rules: Rules, secret: [u64; 2]) -> Self {
        let buckets = if mode == Mode::Off { 1 } else { BUCKETS };
        Self {
            mode,
            rules,
            secret,
            buckets: Buckets::new(buckets),
            counts: Default::default(),
            suspended: AtomicBool::new(false),
        }
    }

    /// Counts nothing from here on.
    pub fn suspend(&self) {
        self.suspended.store(true, Ordering::Relaxed);
    }

    /// Counts again.
    pub fn resume(&self) {
        self.suspended.store(false, Ordering::Relaxed);
    }

    /// What is done about a client that exceeds a limit.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// The rule of a scope.
    #[must_use]
    pub const fn rule(&self, scope: Scope) -> Option<Rule> {
        self.rules[scope as usize]
    }

    /// Counts a request that was limited. The caller of [`Self::charge`] counts, because a request may be
    /// charged twice.
    pub fn count(&self, limited: Limited) {
        self.counts[limited as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How many requests were limited in this way.
    #[must_use]
    pub fn counted(&self, limited: Limited) -> u64 {
        self.counts[limited as usize].load(Ordering::Relaxed)
    }

    /// The party at an IPv4 address.
    #[must_use]
    pub fn ipv4(&self, address: u32) -> Party {
        self.party(b'4', address.into())
    }

    /// The party in an IPv6 network of 64 bits, which is what one customer has.
    #[must_use]
    pub fn ipv6(&self, network: u64) -> Party {
        self.party(b'6', network)
    }

    /// The party of an owner, whichever of its keys it uses.
    #[must_use]
    pub fn owner(&self, number: u32) -> Party {
        self.party(b'o', number.into())
    }

    fn party(&self, kind: u8, name: u64) -> Party {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.secret[0]);
        hasher.write_u64(self.secret[1]);
        hasher.write_u8(kind);
        hasher.write_u64(name);
        Party(hasher.finish())
    }

    /// Charges a request in every scope that it is counted in, or in none. A due whose `cost.now` is 0 is not
    /// judged; it only names what has been paid. The standing is that in the tightest bucket, where the
    /// request waits longest or has the fewest left; `None` if nothing was counted.
    pub fn charge(
        &self,
        dues: impl Iterator<Item = Due> + Clone,
        now: Moment,
    ) -> (Verdict, Option<Standing>) {
        self.charge_within(if self.mode == Mode::Enforce { WAIT_US_MAX } else { 0 }, dues, now)
    }

    /// Like [`Self::charge`], for a request that nobody can hold: it is refused where it would wait.
    pub fn charge_at_once(
        &self,
        dues: impl Iterator<Item = Due> + Clone,
        now: Moment,
    ) -> (Verdict, Option<Standing>) {
        self.charge_within(0, dues, now)
    }

    /// Counts what a request turned out to cost beyond what it was charged. It is over, so nothing is judged: the party's
    /// later requests wait for it, up to about as long as any may.
    pub fn owe(&self, due: Due, now: Moment) {
        self.owe_up_to(Rate::waiting_us_max, due, now);
    }

    /// Like [`Self::owe`], but later requests wait for all of it.
    pub fn owe_all(&self, due: Due, now: Moment) {
        self.owe_up_to(Rate::ahead_us_max, due, now);
    }

    fn owe_up_to(&self, most_us: impl Fn(Rate) -> u64, due: Due, now: Moment) {
        if due.cost.now == 0 || self.mode == Mode::Off || self.suspended.load(Ordering::Relaxed) {
            return;
        }
        for Entry { due, hash, rate } in self.entries(std::iter::once(due)) {
            self.buckets.owe(hash, rate, due.cost, now, most_us(rate));
        }
    }

    fn charge_within(
        &self,
        wait_us_max: u64,
        dues: impl Iterator<Item = Due> + Clone,
        now: Moment,
    ) -> (Verdict, Option<Standing>) {
        if self.mode == Mode::Off || self.suspended.load(Ordering::Relaxed) {
            return (Verdict::Pass, None);
        }
        let mut tightest: Option<(Taken, Entry)> = None;
        let (mut charged, mut fits) = (0_u32, true);
        for (index, entry) in
            self.entries(dues.clone()).enumerate().filter(|(_, entry)| entry.due.cost.now != 0)
        {
            let taken = self.buckets.charge(entry.hash, entry.rate, entry.due.cost, now, wait_us_max);
            assert!(index < 32, "a request is counted in few buckets");
            charged |= u32::from(taken.fits) << index;
            fits &= taken.fits;
            let looser = |(other, stood): &(Taken, Entry)| {
                let remaining = (entry.rate.remaining(taken.ahead_us), stood.rate.remaining(other.ahead_us));
                (other.wait_us, remaining.0) < (taken.wait_us, remaining.1)
            };
            if tightest.as_ref().is_none_or(looser) {
                tightest = Some((taken, entry));
            }
        }
        let Some((taken, entry)) = tightest else {
            return (Verdict::Pass, None);
        };
        let standing = entry.stands(taken.ahead_us);
        if fits && taken.wait_us == 0 {
            return (Verdict::Pass, Some(standing));
        }
        if fits {
            return (Verdict::Wait(now.after_us(taken.wait_us)), Some(standing));
        }
        let refuses = self.mode == Mode::Enforce;
        for (index, entry) in self.entries(dues).enumerate() {
            let charged_us = if charged & (1 << index) == 0 { 0 } else { entry.rate.cost_us(entry.due.cost) };
            let paid_us = if refuses { entry.paid_us() } else { 0 };
            self.buckets.give_back(entry.hash, entry.rate, charged_us + paid_us, now);
        }
        if !refuses {
            return (Verdict::Pass, Some(Standing { over: true, ..standing }));
        }
        let standing = entry.stands(taken.ahead_us.saturating_sub(entry.paid_us()));
        (Verdict::Refuse { retry_after_s: whole_seconds(taken.wait_us) }, Some(standing))
    }

    /// The buckets of some dues: one for each rate of each scope.
    fn entries(&self, dues: impl Iterator<Item = Due>) -> impl Iterator<Item = Entry> {
        dues.filter_map(|due| Some((due, self.rule(due.scope)?))).flat_map(|(due, rule)| {
            (0_u64..).zip(rule.rates()).map(move |(index, rate)| Entry {
                due,
                hash: mixed(due.party, 2 * (due.scope as u64) + index),
                rate,
            })
        })
    }
}

/// One bucket that a request is counted in.
struct Entry {
    due: Due,
    hash: u64,
    rate: Rate,
}

impl Entry {
    /// What the request has paid into this bucket before, at most the whole bucket.
    fn paid_us(&self) -> u64 {
        self.rate.cost_us(Cost { now: self.due.cost.paid, ..Cost::NONE })
    }

    fn stands(&self, ahead_us: u64) -> Standing {
        Standing {
            party: self.due.party,
            scope: self.due.scope,
            rate: self.rate,
            remaining: self.rate.remaining(ahead_us),
            reset_s: whole_seconds(ahead_us),
            over: false,
        }
    }
}

fn whole_seconds(us: u64) -> u32 {
    u32::try_from(us.div_ceil(US_PER_S)).expect("nothing lies further ahead than a window")
}

/// The hash of one bucket of a party, itself secret: each of its bits depends on every bit of both arguments
/// (the finalizer of splitmix64).
const fn mixed(party: Party, bucket: u64) -> u64 {
    let mut word = party.0 ^ (bucket + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests;
