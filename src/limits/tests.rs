use super::*;
use proptest::prelude::*;

const SECRET: [u64; 2] = [7, 11];

/// The rules of a table such as `book 2/10s; order 2/10s, 3/1m`; nothing else is limited.
fn limits(mode: Mode, table: &str) -> RateLimits {
    let mut rules: Rules = [None; Scope::ALL.len()];
    for line in table.split(';').map(str::trim).filter(|line| !line.is_empty()) {
        let (name, rule) = line.split_once(' ').expect("a name and a rule");
        let scope = Scope::ALL.into_iter().find(|scope| scope.name() == name).expect("a scope");
        rules[scope as usize] = Some(Rule::parse(rule).expect("a rule"));
    }
    RateLimits::new(mode, rules, SECRET)
}

fn due(party: Party, scope: Scope, cost: u32) -> Due {
    Due { party, scope, cost: Cost { now: cost, ..Cost::NONE } }
}

/// Runs lines such as `0 book 1 -> pass 1 left of 2, 5 s`: milliseconds, scopes, cost, and the outcome.
#[track_caller]
fn check(limits: &RateLimits, script: &str) {
    let party = limits.ipv4(1);
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (asked, expected) = line.split_once(" -> ").expect("a line has two sides");
        let words: Vec<&str> = asked.split_whitespace().collect();
        let now = Moment::of_ms(words[0].parse().expect("milliseconds"));
        let cost = words[2].parse().expect("a cost");
        let dues = words[1].split('+').map(|name| {
            let scope = Scope::ALL.into_iter().find(|scope| scope.name() == name).expect("a scope");
            due(party, scope, cost)
        });
        let (verdict, standing) = limits.charge(dues, now);
        let verdict = match verdict {
            Verdict::Pass => "pass".to_owned(),
            Verdict::Wait(until) => format!("wait {} ms", now.ms_until(until)),
            Verdict::Refuse { retry_after_s } => format!("refuse for {retry_after_s} s"),
        };
        let standing = standing.map_or(String::new(), |stands| {
            let over = if stands.over { ", over" } else { "" };
            format!(" {} left of {}, {} s{over}", stands.remaining, stands.rate.count, stands.reset_s)
        });
        assert_eq!(format!("{verdict}{standing}"), expected, "{line}");
    }
}

#[test]
fn what_nobody_can_hold_is_refused_where_it_would_wait_and_nothing_is_charged() {
    let limits = limits(Mode::Enforce, "book 4/2s; clob 100/1s");
    check(&limits, "0 book 4 -> pass 0 left of 4, 2 s");
    let party = limits.ipv4(1);
    for now in [0, 1].map(Moment::of_ms) {
        let dues = [due(party, Scope::Clob, 1), due(party, Scope::Book, 1)];
        let (verdict, standing) = limits.charge_at_once(dues.into_iter(), now);
        assert_eq!(verdict, Verdict::Refuse { retry_after_s: 1 });
        assert_eq!(standing.map(|stands| stands.remaining), Some(0));
    }
    check(
        &limits,
        "1 clob 1 -> pass 99 left of 100, 1 s
         1 book 1 -> wait 499 ms 0 left of 4, 3 s",
    );
}

#[test]
fn a_burst_passes_then_requests_wait_then_they_are_refused() {
    check(
        &limits(Mode::Enforce, "book 4/2s"),
        "0 book 1 -> pass 3 left of 4, 1 s
         0 book 1 -> pass 2 left of 4, 1 s
         0 book 2 -> pass 0 left of 4, 2 s
         0 book 1 -> wait 500 ms 0 left of 4, 3 s
         0 book 1 -> wait 1000 ms 0 left of 4, 3 s
         0 book 1 -> refuse for 2 s 0 left of 4, 3 s
         499 book 1 -> refuse for 2 s 0 left of 4, 3 s
         500 book 1 -> wait 1000 ms 0 left of 4, 3 s
         3500 book 1 -> pass 3 left of 4, 1 s
         9999 book 4 -> pass 0 left of 4, 2 s",
    );
}

#[test]
fn a_refusal_in_one_scope_charges_none_and_names_the_longest() {
    check(
        &limits(Mode::Enforce, "book 2/2s; clob 9/9s"),
        "0 book+clob 2 -> pass 0 left of 2, 2 s
         0 clob+book 2 -> refuse for 2 s 0 left of 2, 2 s
         0 book+clob 2 -> refuse for 2 s 0 left of 2, 2 s
         0 clob 7 -> pass 0 left of 9, 9 s
         0 book+clob 2 -> refuse for 2 s 0 left of 2, 2 s
         0 book+clob 1 -> wait 1000 ms 0 left of 2, 3 s",
    );
}

#[test]
fn burst_and_sustained_must_both_have_room() {
    check(
        &limits(Mode::Enforce, "order 2/1s, 5/1m"),
        "0 order 2 -> pass 0 left of 2, 1 s
         2000 order 2 -> pass 0 left of 2, 1 s
         4000 order 2 -> refuse for 8 s 1 left of 5, 44 s
         4000 order 1 -> pass 0 left of 5, 56 s
         5000 order 1 -> refuse for 7 s 0 left of 5, 55 s
         12000 order 1 -> pass 0 left of 5, 60 s",
    );
}

#[test]
fn a_refused_request_gets_back_what_it_has_paid_before() {
    for (mode, left) in [(Mode::Enforce, 3), (Mode::Warn, 2)] {
        let limits = limits(mode, "order 4/4s, 9/1m");
        let (address, owner) = (limits.ipv4(1), limits.owner(1));
        let now = Moment::of_ms(0);
        let pay = |costs: &[(Party, Cost)]| {
            let due = |&(party, cost): &(Party, Cost)| Due { party, scope: Scope::Order, cost };
            limits.charge(costs.iter().map(due), now)
        };
        let left_of = |party| {
            let one = [(party, Cost::ONE)];
            pay(&one).1.expect("counted").remaining + 1
        };
        // Its owner has no room for it; the address that it came from has.
        let other = limits.owner(2);
        assert_eq!(pay(&[(other, Cost { now: 4, ..Cost::NONE })]).0, Verdict::Pass);
        assert_eq!(pay(&[(address, Cost::ONE)]).0, Verdict::Pass);
        assert_eq!(pay(&[(address, Cost::PAID), (owner, Cost { now: 3, ..Cost::NONE })]).0, Verdict::Pass);
        assert_eq!(pay(&[(address, Cost::ONE)]).0, Verdict::Pass);
        let (verdict, standing) = pay(&[(address, Cost::PAID), (other, Cost { now: 2, ..Cost::NONE })]);
        let refused = mode == Mode::Enforce;
        assert_eq!(verdict != Verdict::Pass, refused);
        assert_eq!(standing.map(|stands| (stands.remaining, stands.over)), Some((0, !refused)));
        assert_eq!(left_of(address), left, "{mode:?}");
        // Both have paid for one of its four orders, and there is no room for the others.
        assert_eq!(pay(&[(owner, Cost::ONE)]).0, Verdict::Pass);
        let (_, standing) = pay(&[(owner, Cost { now: 3, ..Cost::PAID })]);
        assert_eq!(
            standing.map(|stands| (stands.remaining, stands.over)),
            Some((u32::from(refused), !refused))
        );
    }
}

#[test]
fn what_costs_more_than_the_burst_costs_the_burst() {
    check(
        &limits(Mode::Enforce, "order 3/3s"),
        "0 order 15 -> pass 0 left of 3, 3 s
         3000 order 15 -> pass 0 left of 3, 3 s",
    );
}

#[test]
fn warn_says_that_it_is_over_and_lets_everything_pass() {
    let limits = limits(Mode::Warn, "book 1/10s");
    check(
        &limits,
        "0 book 1 -> pass 0 left of 1, 10 s
         0 book 1 -> pass 0 left of 1, 10 s, over
         9999 book 1 -> pass 0 left of 1, 1 s, over
         10000 book 1 -> pass 0 left of 1, 10 s",
    );
}

#[test]
fn off_and_scopes_without_a_rule_count_nothing() {
    for limits in [limits(Mode::Off, "book 1/10s"), limits(Mode::Enforce, "tags 1/10s")] {
        check(&limits, "0 book 1 -> pass\n 0 book 1 -> pass");
    }
}

#[test]
fn what_is_suspended_counts_nothing_until_it_is_resumed() {
    let limits = limits(Mode::Enforce, "book 1/10s");
    limits.suspend();
    limits.owe(due(limits.ipv4(1), Scope::Book, 1), Moment::of_ms(0));
    check(&limits, "0 book 1 -> pass\n 0 book 1 -> pass");
    limits.resume();
    check(&limits, "0 book 1 -> pass 0 left of 1, 10 s\n 0 book 1 -> refuse for 10 s 0 left of 1, 10 s");
}

#[test]
fn what_was_paid_is_not_judged_again() {
    let limits = limits(Mode::Enforce, "order 4/4s");
    check(&limits, "0 order 4 -> pass 0 left of 4, 4 s\n 0 order 1 -> wait 1000 ms 0 left of 4, 5 s");
    let owner = due(limits.owner(1), Scope::Order, 1);
    let paid = Due { party: limits.ipv4(1), scope: Scope::Order, cost: Cost::PAID };
    let (verdict, standing) = limits.charge([paid, owner].into_iter(), Moment::of_ms(0));
    assert_eq!((verdict, standing.map(|stands| stands.remaining)), (Verdict::Pass, Some(3)));
}

#[test]
fn what_is_given_back_to_a_bucket_that_is_gone_takes_none_of_another() {
    let (buckets, rate, now) = (Buckets::new(8), Rate::of(2, 10), Moment::of_ms(7));
    let [busy @ .., gone] = [1_u64, 2, 3, 4, 5, 6, 7, 8, 9].map(|tag| tag << 42);
    let two = Cost { now: 2, ..Cost::NONE };
    assert!(busy.iter().all(|&hash| buckets.charge(hash, rate, two, now, 0).fits));
    buckets.give_back(gone, rate, 1, now);
    assert!(busy.iter().all(|&hash| !buckets.charge(hash, rate, Cost::ONE, now, 0).fits));
}

#[test]
fn parties_and_scopes_have_buckets_of_their_own() {
    let limits = limits(Mode::Enforce, "order 1/1m; cancel 1/1m");
    let parties = [limits.ipv4(1), limits.ipv6(1), limits.ipv4(2), limits.owner(1)];
    for expected in [Verdict::Pass, Verdict::Refuse { retry_after_s: 60 }] {
        for scope in [Scope::Order, Scope::Cancel] {
            for party in parties {
                let (verdict, _) = limits.charge(std::iter::once(due(party, scope, 1)), Moment::of_ms(5));
                assert_eq!(verdict, expected, "{scope:?} of {party:?}");
            }
        }
    }
}

#[test]
fn time_may_go_back_or_begin_anew_and_nobody_is_locked_out() {
    let limits = limits(Mode::Enforce, "book 1/10s");
    let party = limits.owner(1);
    let ask = |ms: u64| limits.charge(std::iter::once(due(party, Scope::Book, 1)), Moment::of_ms(ms)).0;
    assert_eq!(ask(1 << 33), Verdict::Pass);
    assert_eq!(ask(1 << 20), Verdict::Pass);
    // Around the end of a word's range.
    let end_ms = (1_u64 << 42) / 1_000;
    assert_eq!(ask(end_ms - 5_000), Verdict::Pass);
    assert!(matches!(ask(end_ms + 1), Verdict::Refuse { .. }));
    assert_eq!(ask(end_ms + 5_000), Verdict::Pass);
}

#[test]
fn a_loop_whose_turn_began_earlier_finds_a_full_bucket_full() {
    for debt in [false, true] {
        let limits = limits(Mode::Enforce, "cancel 4/2s");
        check(&limits, "70000 cancel 4 -> pass 0 left of 4, 2 s");
        if debt {
            limits.owe(due(limits.ipv4(1), Scope::Cancel, 1_000), Moment::of_ms(70_000));
        } else {
            check(&limits, "70000 cancel 2 -> wait 1000 ms 0 left of 4, 3 s");
        }
        check(
            &limits,
            "70000 cancel 1 -> refuse for 2 s 0 left of 4, 3 s
             69999 cancel 1 -> refuse for 2 s 0 left of 4, 4 s
             10000 cancel 1 -> refuse for 62 s 0 left of 4, 63 s",
        );
        limits.owe(due(limits.ipv4(1), Scope::Cancel, 1), Moment::of_ms(69_999));
        check(
            &limits,
            "70000 cancel 1 -> refuse for 2 s 0 left of 4, 3 s
             70500 cancel 1 -> wait 1000 ms 0 left of 4, 3 s",
        );
    }
}

#[test]
fn what_is_owed_is_waited_for_a_second_and_an_interval_at_most() {
    for mode in [Mode::Enforce, Mode::Off] {
        let limits = limits(mode, "cancel 10/5s");
        let party = limits.ipv4(1);
        for (owed, next) in [
            (3, "0 cancel 1 -> pass 6 left of 10, 2 s"),
            (6, "0 cancel 1 -> wait 500 ms 0 left of 10, 6 s"),
            (1_000, "0 cancel 1 -> refuse for 2 s 0 left of 10, 6 s"),
        ] {
            limits.owe(due(party, Scope::Cancel, owed), Moment::of_ms(0));
            check(&limits, if mode == Mode::Off { "0 cancel 1 -> pass" } else { next });
        }
        check(
            &limits,
            if mode == Mode::Off {
                "1 cancel 1 -> pass"
            } else {
                "500 cancel 1 -> wait 1000 ms 0 left of 10, 6 s"
            },
        );
    }
}

#[test]
fn what_is_owed_in_full_is_waited_for_in_full_up_to_a_burst() {
    for (owed, waits) in
        [(5, "refuse for 4 s 0 left of 10, 9 s"), (1_000, "refuse for 7 s 0 left of 10, 11 s")]
    {
        let limits = limits(Mode::Enforce, "stream_messages 10/5s");
        let party = limits.ipv4(1);
        check(
            &limits,
            "0 stream_messages 10 -> pass 0 left of 10, 5 s
             0 stream_messages 2 -> wait 1000 ms 0 left of 10, 6 s",
        );
        limits.owe_all(due(party, Scope::StreamMessages, owed), Moment::of_ms(0));
        check(&limits, &format!("0 stream_messages 1 -> {waits}"));
    }
}

#[test]
fn a_flood_of_addresses_takes_no_memory_and_frees_nobody_at_its_limit() {
    let limits = limits(Mode::Enforce, "clob 100/10s");
    let bytes = limits.buckets.bytes();
    assert_eq!(bytes, BUCKETS * 8);
    let now = Moment::of_ms(1_000_000);
    let ask = |party, cost| limits.charge(std::iter::once(due(party, Scope::Clob, cost)), now).0;
    let busy: Vec<_> = (0..200).map(|number| limits.owner(number)).collect();
    assert!(busy.iter().all(|&party| ask(party, 100) == Verdict::Pass));
    let passed = (0..4_000_000).filter(|&number| ask(limits.ipv4(number), 1) == Verdict::Pass).count();
    // A stranger in four million may share the bucket of somebody who is busy.
    assert!(3_999_900 <= passed, "{passed}");
    assert!(
        busy.iter().all(|&party| matches!(ask(party, 11), Verdict::Refuse { .. })),
        "nobody is forgotten"
    );
    assert_eq!(limits.buckets.bytes(), bytes);
}

#[test]
fn loops_that_charge_one_bucket_together_take_as_much_as_one() {
    let limits = limits(Mode::Enforce, "clob 1000/10m");
    let party = limits.owner(1);
    let passed = |_| {
        let ask = |_: &u32| limits.charge(std::iter::once(due(party, Scope::Clob, 1)), Moment::of_ms(1)).0;
        (0..2_000).filter(|count| ask(count) == Verdict::Pass).count()
    };
    // One before, or two may take a place for it at the same moment.
    assert_eq!(limits.charge(std::iter::once(due(party, Scope::Clob, 1)), Moment::of_ms(1)).0, Verdict::Pass);
    let together: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|number| scope.spawn(move || passed(number))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it counts")).sum()
    });
    assert_eq!(together, 999);
}

/// A plain token bucket, which is refilled. It counts microseconds of the interval, so that it has no
/// fractions; tokens may be owed for as long as a request may wait.
struct Twin {
    tokens_us: i128,
    at_us: u64,
}

impl Twin {
    fn ask(&mut self, rate: Rate, cost: u32, now_us: u64) -> Verdict {
        let interval = i128::from((u64::from(rate.window_s) * 1_000_000).div_ceil(u64::from(rate.count)));
        let depth = interval * i128::from(rate.count);
        self.tokens_us = depth.min(self.tokens_us + i128::from(now_us - self.at_us));
        self.at_us = now_us;
        let left = self.tokens_us - interval * i128::from(cost.min(rate.count));
        if left < -i128::from(WAIT_US_MAX) {
            let retry_after_s = u32::try_from((-left + 999_999) / 1_000_000).expect("small");
            return Verdict::Refuse { retry_after_s };
        }
        self.tokens_us = left;
        match u64::try_from(-left) {
            Ok(owed) if owed > 0 => Verdict::Wait(Moment(now_us).after_us(owed)),
            _ => Verdict::Pass,
        }
    }
}

proptest! {
    #[test]
    fn a_bucket_is_a_token_bucket(
        count in 1_u32..50,
        window_s in 1_u32..20,
        asked in prop::collection::vec((0_u32..3, 1_u32..6, 0_u64..2_000_000), 1..200),
    ) {
        let rate = Rate::of(count, window_s);
        let mut rules: Rules = [None; Scope::ALL.len()];
        rules[Scope::Order as usize] = Some(Rule { burst: rate, sustained: None });
        let limits = RateLimits::new(Mode::Enforce, rules, SECRET);
        let mut now_us = 5_000_000;
        let mut twins: Vec<_> = (0..3).map(|_| Twin { tokens_us: i128::MAX / 2, at_us: 0 }).collect();
        for (who, cost, later_us) in asked {
            now_us += later_us;
            let dues = std::iter::once(due(limits.owner(who), Scope::Order, cost));
            let (verdict, _) = limits.charge(dues, Moment(now_us));
            prop_assert_eq!(verdict, twins[who as usize].ask(rate, cost, now_us));
        }
    }
}
