//! When each request is due: decided before the clock starts, whatever the answers do.

use std::time::Duration;

use crate::scenario::{Arrivals, Plan};

/// A sequence of random words from a seed (`SplitMix64`): the same on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `bound`, which is small, so the bias of the remainder is negligible.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("usize is at most 64 bits");
        usize::try_from(self.word() % bound).expect("it is below a usize")
    }

    /// In [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "53 bits are exact")]
        let word = (self.word() >> 11) as f64;
        word / 9_007_199_254_740_992.0
    }
}

/// Nanoseconds from the start at which requests are due, in order; those of the warm-up first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Schedule {
    /// One for each request.
    pub(crate) due_ns: Vec<u64>,
    /// How many of them are due in the warm-up.
    pub(crate) warm_up: usize,
}

impl Schedule {
    /// The schedule of a plan: bursts at a mean distance that gives the plan's rate.
    pub(crate) fn of(plan: &Plan) -> Self {
        let whole = plan.warm_up + plan.time;
        let mean_s = f64::from(plan.burst) / plan.rate;
        let mut random = Random::new(plan.seed ^ 0x7363_6865_6475_6c65);
        let mut due_ns = Vec::new();
        let mut burst = 0_u32;
        let mut at_s = 0.0;
        while at_s < whole.as_secs_f64() {
            let at = nanos(Duration::from_secs_f64(at_s));
            due_ns.extend(std::iter::repeat_n(at, plan.burst as usize));
            burst += 1;
            at_s = match plan.arrivals {
                // Multiplied, not summed, so that the last one is as exact as the first.
                Arrivals::Fixed => f64::from(burst) * mean_s,
                Arrivals::Poisson => at_s - mean_s * (1.0 - random.unit()).ln(),
            };
        }
        let warm_up = due_ns.partition_point(|&due| due < nanos(plan.warm_up));
        Self { due_ns, warm_up }
    }
}

/// A time in whole nanoseconds.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("runs are far shorter than 584 years")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(load: &str) -> Plan {
        Plan::parse("t", &format!("purpose = \"x\"\n[mix]\nplace = 1\n[load]\n{load}")).unwrap()
    }

    #[test]
    fn a_fixed_rate_has_equal_distances_and_no_drift() {
        let schedule = Schedule::of(&plan("rate = 3000\nwarm_up_s = 1\ntime_s = 2"));
        assert_eq!((schedule.due_ns.len(), schedule.warm_up), (9_000, 3_000));
        assert_eq!(schedule.due_ns[3], 1_000_000);
        assert_eq!(schedule.due_ns[6_000], 2_000_000_000);
    }

    #[test]
    fn a_burst_is_due_at_one_moment_and_the_rate_stays() {
        let schedule = Schedule::of(&plan("rate = 1000\nburst = 10\nwarm_up_s = 0\ntime_s = 1"));
        assert_eq!(schedule.due_ns.len(), 1_000);
        assert_eq!(schedule.due_ns[..10], [0; 10]);
        assert_eq!(schedule.due_ns[10], 10_000_000);
    }

    #[test]
    fn random_arrivals_keep_the_rate_and_come_again_from_the_same_seed() {
        let text = "rate = 10000\narrivals = \"poisson\"\nwarm_up_s = 0\ntime_s = 10";
        let schedule = Schedule::of(&plan(text));
        assert_eq!(schedule, Schedule::of(&plan(text)));
        // The count has a standard deviation of 316.
        assert!((98_500..101_500).contains(&schedule.due_ns.len()), "{}", schedule.due_ns.len());
        assert!(schedule.due_ns.is_sorted());
        let gaps = schedule.due_ns.windows(2).map(|pair| pair[1] - pair[0]);
        let short = gaps.filter(|&gap| gap < 69_315).count();
        // Half of all distances of a Poisson process are below the mean times ln 2.
        assert!(short.abs_diff(schedule.due_ns.len() / 2) < 1_500, "{short}");
    }
}
