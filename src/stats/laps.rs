//! Where one request's time went.

/// A part of a trading request's life. Each begins where the one before it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Stage {
    /// From when the loop read its bytes until it gets to the request.
    Recv,
    /// Head and body become fields.
    Parse,
    /// Limits and HMAC.
    Auth,
    /// EIP-712 digest and signature check.
    Sign,
    /// Waiting: for its turn, its limit, and for shards of other loops.
    Queue,
    /// A shard decides and writes its frame.
    Match,
    /// Its answer is written and waits until the frame is acknowledged.
    Journal,
}

impl Stage {
    /// All of them, in the order in which a request passes them.
    pub const ALL: [Self; 7] =
        [Self::Recv, Self::Parse, Self::Auth, Self::Sign, Self::Queue, Self::Match, Self::Journal];

    /// Its name in `Server-Timing` and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Recv => "recv",
            Self::Parse => "parse",
            Self::Auth => "auth",
            Self::Sign => "sign",
            Self::Queue => "queue",
            Self::Match => "match",
            Self::Journal => "journal",
        }
    }
}

/// The time a request has spent so far, stage by stage; moments are nanoseconds of one steady clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_field_names, reason = "the unit is part of a name")]
pub struct Laps {
    came_ns: u64,
    at_ns: u64,
    spent_ns: [u64; Stage::ALL.len()],
}

impl Laps {
    /// A request whose bytes were read at `came_ns`.
    #[must_use]
    pub fn begin(came_ns: u64) -> Self {
        Self { came_ns, at_ns: came_ns, ..Self::default() }
    }

    /// True if it was begun.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.at_ns != 0
    }

    /// Counts the time from the last lap to `now_ns` towards `stage`.
    pub fn lap(&mut self, stage: Stage, now_ns: u64) {
        let spent = now_ns.saturating_sub(self.at_ns);
        self.add(stage, spent);
        self.at_ns = self.at_ns.max(now_ns);
    }

    /// Counts the time from the last lap to `now_ns` as waiting, except `match_ns`, in which a shard of
    /// another loop decided.
    pub fn lap_elsewhere(&mut self, match_ns: u64, now_ns: u64) {
        let there = match_ns.min(now_ns.saturating_sub(self.at_ns));
        self.add(Stage::Match, there);
        self.at_ns += there;
        self.lap(Stage::Queue, now_ns);
    }

    /// The time spent on one stage, in nanoseconds.
    #[must_use]
    pub fn spent_ns(&self, stage: Stage) -> u64 {
        self.spent_ns[stage as usize]
    }

    /// The time spent in all, up to the last lap, in nanoseconds.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.at_ns - self.came_ns
    }

    fn add(&mut self, stage: Stage, ns: u64) {
        self.spent_ns[stage as usize] += ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_add_up_to_the_whole() {
        let mut laps = Laps::begin(1_000);
        for (stage, now) in [
            (Stage::Recv, 3_000),
            (Stage::Parse, 3_400),
            (Stage::Auth, 4_000),
            (Stage::Parse, 4_100),
            (Stage::Sign, 30_000),
        ] {
            laps.lap(stage, now);
        }
        laps.lap_elsewhere(900, 32_000);
        laps.lap(Stage::Journal, 32_500);
        let spent = Stage::ALL.map(|stage| laps.spent_ns(stage));
        assert_eq!(spent, [2_000, 500, 600, 25_900, 1_100, 900, 500]);
        assert_eq!(spent.iter().sum::<u64>(), laps.total_ns());
    }

    #[test]
    fn a_clock_of_another_thread_that_is_a_little_behind_takes_nothing_back() {
        let mut laps = Laps::begin(1_000);
        laps.lap(Stage::Recv, 2_000);
        laps.lap(Stage::Parse, 1_990);
        laps.lap_elsewhere(500, 2_100);
        assert_eq!(laps.total_ns(), 1_100);
        assert_eq!((laps.spent_ns(Stage::Parse), laps.spent_ns(Stage::Match)), (0, 100));
    }

    #[test]
    fn a_part_lasts_as_long_as_the_disk_hangs() {
        const HOUR_NS: u64 = 3_600_000_000_000;
        let mut laps = Laps::begin(1);
        laps.lap(Stage::Match, 1 + 10_000_000_000);
        laps.lap_elsewhere(5_000_000_000, 1 + 20_000_000_000);
        laps.lap(Stage::Journal, 1 + 20_000_000_000 + HOUR_NS);
        let [queue, decided, journal] =
            [Stage::Queue, Stage::Match, Stage::Journal].map(|stage| laps.spent_ns(stage));
        assert_eq!([queue, decided, journal], [5_000_000_000, 15_000_000_000, HOUR_NS]);
        assert_eq!(laps.total_ns(), queue + decided + journal);
    }
}
