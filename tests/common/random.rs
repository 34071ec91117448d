//! Random choices that a printed seed reproduces.

/// A small generator (xorshift64*); good enough to spread choices, and the same everywhere.
pub struct Random(u64);

impl Random {
    /// The generator of `OUTCRY_SEED`, or of the clock; prints the line that repeats this run.
    pub fn printed(test: &str) -> Self {
        let seed =
            std::env::var("OUTCRY_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(|| {
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
                u64::from(now.subsec_nanos()) ^ now.as_secs()
            });
        eprintln!("{test}: repeat with OUTCRY_SEED={seed}");
        Self::new(seed)
    }

    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 1
    }

    /// A number in 0..bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let index = usize::try_from(self.below(items.len() as u64)).unwrap();
        &items[index]
    }
}
