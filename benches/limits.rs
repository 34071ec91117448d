//! What it costs to count one order: four buckets, a burst and a sustained one each for its address and
//! its owner, beside a naive table of token buckets under a lock.
//!
//! A good number: below 1 % of an order's round trip, and no more than some cache misses for a stranger.

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a bench stops at the first surprise")]

use criterion::{Criterion, criterion_group, criterion_main};
use outcry::limits::{Cost, Due, Mode, Moment, RateLimits, Rule, Scope, Verdict};
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Mutex;

/// The tokens of each client and window: the map grows with every unknown client.
#[derive(Default)]
struct Naive(Mutex<HashMap<(u32, u32), Tokens>>);

/// The tokens left, and when that was.
struct Tokens {
    left: f64,
    at_ms: u64,
}

impl Naive {
    fn take(&self, client: u32, rule: Rule, now_ms: u64) -> bool {
        let mut buckets = self.0.lock().unwrap();
        [Some(rule.burst), rule.sustained].into_iter().flatten().all(|rate| {
            let full = f64::from(rate.count);
            let tokens =
                buckets.entry((client, rate.window_s)).or_insert(Tokens { left: full, at_ms: now_ms });
            let since_s = f64::from(u32::try_from(now_ms - tokens.at_ms).unwrap()) / 1_000.0;
            tokens.left = full.min(tokens.left + since_s * full / f64::from(rate.window_s)) - 1.0;
            tokens.at_ms = now_ms;
            0.0 <= tokens.left
        })
    }
}

/// Counts one order: for its address, and for its owner, whom the signature proved.
fn order(limits: &RateLimits, client: u32, now_ms: u64) -> bool {
    [limits.ipv4(client), limits.owner(client)].into_iter().all(|party| {
        let due = Due { party, scope: Scope::Order, cost: Cost::ONE };
        limits.charge(std::iter::once(due), Moment::of_ms(now_ms)).0 == Verdict::Pass
    })
}

fn count(criterion: &mut Criterion) {
    let rules = Scope::ALL.map(|scope| Some(scope.rule()));
    for (name, strangers) in [("one client", false), ("strangers", true)] {
        let mut group = criterion.benchmark_group(format!("limits, {name}"));
        let who = |number: u64| if strangers { u32::try_from(number % (1 << 22)).unwrap() } else { 1 };
        let limits = RateLimits::new(Mode::Enforce, rules, [1, 2]);
        let mut number = 0;
        group.bench_function("buckets", |bencher| {
            bencher.iter(|| {
                number += 1;
                assert!(order(&limits, black_box(who(number)), number * 50), "nobody is too fast");
            });
        });
        let naive = Naive::default();
        group.bench_function("naive", |bencher| {
            bencher.iter(|| {
                number += 1;
                let client = black_box(who(number));
                let passed = [2 * client, 2 * client + 1]
                    .into_iter()
                    .all(|party| naive.take(party, Scope::Order.rule(), number * 50));
                assert!(passed, "nobody is too fast");
            });
        });
        group.finish();
    }
}

criterion_group!(benches, count);
criterion_main!(benches);
