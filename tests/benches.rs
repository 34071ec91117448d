//! The arithmetic of benchmarks. They have a harness of their own, which runs no tests.

#[path = "../benches/cancels/due.rs"]
mod due;

use due::{Due, Ready};
use std::time::Duration;

/// Cancels every 10 µs for 40 µs: for each, when the client looks, when its answer comes, and what is told of it.
#[track_caller]
fn check(cancels: &[(u64, u64, [u64; 2])]) {
    let us = Duration::from_micros;
    let mut due = Due::new(us(10), us(40));
    for &(looks, answered, [was_due, late]) in cancels {
        assert!(!due.is_over());
        assert_eq!(due.take(us(looks)), Some(Ready { due: us(was_due), late: us(late) }));
        due.answered(us(answered));
    }
    assert!(due.is_over() && due.take(us(1_000)).is_none());
}

#[test]
fn a_slow_answer_is_the_servers_and_a_late_look_is_the_clients() {
    // All is well.
    check(&[(0, 2, [0, 0]), (10, 12, [10, 0]), (20, 22, [20, 0]), (30, 32, [30, 0])]);
    // The first answer comes after 25 µs. Two cancels were due meanwhile: they count from when they were due, and the
    // client sends them at once.
    check(&[(0, 25, [0, 0]), (25, 27, [10, 0]), (28, 29, [20, 1]), (30, 32, [30, 0])]);
    // The client looks 7 µs too late.
    check(&[(0, 2, [0, 0]), (17, 19, [10, 7]), (20, 22, [20, 0]), (30, 32, [30, 0])]);
    // The server is silent until long after the round: what was due in it is sent all the same.
    check(&[(0, 500, [0, 0]), (500, 501, [10, 0]), (501, 502, [20, 0]), (502, 503, [30, 0])]);
}

#[test]
fn nothing_is_sent_before_it_is_due() {
    let us = Duration::from_micros;
    let mut due = Due::new(us(10), us(20));
    assert!(due.take(us(0)).is_some());
    assert_eq!(due.take(us(9)), None);
    assert!(due.take(us(10)).is_some());
}
