//! Lines of requests, as their connection sees them.

use super::*;
use crate::server::connections::connection::Connection;
use crate::server::connections::held::Held;
use crate::server::requests::proxies::Proxies;

fn answered(connection: &mut Connection, number: u32, text: &[u8], at: u64) {
    connection.line.answer(number).expect("open").extend_from_slice(text);
    connection.line.ready(number, Position(at));
}

#[test]
fn answers_leave_in_request_order_whenever_they_were_made() {
    let mut connection = Connection::empty();
    let numbers = [
        connection.line.open(Intent::Read),
        connection.line.open(Intent::Read),
        connection.line.open(Intent::Read),
    ];
    answered(&mut connection, numbers[2], b"c", 0);
    assert_eq!(connection.line.release(Position(100), 1, &Tally::default(), &Pages::default()), None);
    answered(&mut connection, numbers[0], b"a", 0);
    connection.line.release(Position(100), 1, &Tally::default(), &Pages::default());
    assert_eq!(connection.line.to_send(), b"a");
    answered(&mut connection, numbers[1], b"b", 0);
    connection.line.release(Position(100), 1, &Tally::default(), &Pages::default());
    assert_eq!(connection.line.to_send(), b"abc");
}

#[test]
fn every_answer_that_leaves_counts_once_however_many_leave_together() {
    let (mut connection, tally) = (Connection::empty(), Tally::default());
    // Requests that come together, and how many of them are answered by then; their numbers start anew in between.
    connection.line.first = u32::MAX - 3;
    connection.line.next = connection.line.first;
    let (mut next, mut count) = (connection.line.first, 0);
    for (asked, answers) in [(1, 1), (0, 0), (8, 5), (0, 3), (2, 2)] {
        for _ in 0..asked {
            connection.line.open(Intent::Write);
        }
        for _ in 0..answers {
            answered(&mut connection, next, b"a", 0);
            next = next.wrapping_add(1);
        }
        connection.line.release(Position(0), 1, &tally, &Pages::default());
        count += answers;
        assert_eq!(tally.answers.get(), count, "{answers} of {asked}");
    }
}

#[test]
fn an_answer_stays_until_its_position_is_acknowledged_and_holds_back_the_ones_behind_it() {
    let mut connection = Connection::empty();
    let numbers = [connection.line.open(Intent::Read), connection.line.open(Intent::Read)];
    answered(&mut connection, numbers[0], b"a", 128);
    answered(&mut connection, numbers[1], b"b", 0);
    assert_eq!(connection.line.release(Position(64), 1, &Tally::default(), &Pages::default()), None);
    assert_eq!(connection.line.waits_for_mark(), Some(Position(128)));
    assert_eq!(
        connection.line.release(Position(128), 1, &Tally::default(), &Pages::default()),
        Some(Position(128))
    );
    assert_eq!(connection.line.to_send(), b"ab");
}

#[test]
fn the_thirty_third_open_request_is_not_taken() {
    let mut connection = Connection::empty();
    for _ in 0..OPEN_MAX {
        assert!(connection.may_open());
        connection.line.open(Intent::Write);
    }
    assert!(!connection.may_open());
    answered(&mut connection, 0, b"a", 0);
    connection.line.release(Position(0), 1, &Tally::default(), &Pages::default());
    assert!(connection.may_open());
}

#[test]
fn nothing_more_is_read_while_too_much_is_unsent() {
    let mut connection = Connection::empty();
    connection.line.output().resize(UNSENT_BYTES_MAX, b'x');
    assert!(connection.may_open());
    connection.line.output().push(b'x');
    assert!(!connection.may_open());
    connection.line.was_sent(1);
    assert!(connection.may_open());
}

/// Opens reads while there is room; returns their numbers.
fn reads(connection: &mut Connection) -> Vec<u32> {
    let line = &mut connection.line;
    std::iter::from_fn(|| line.has_room().then(|| line.open(Intent::Read))).collect()
}

#[test]
fn reads_are_open_at_once_as_far_as_their_answers_are_guessed_to_fit() {
    let mut connection = Connection::empty();
    let mut next = 0;
    // Nothing is known of this client's reads; then each small answer halves the guess.
    for expected in [1, 3, 9] {
        assert_eq!(reads(&mut connection).len(), expected);
        for number in next..next + expected {
            let number = u32::try_from(number).expect("few");
            answered(&mut connection, number, b"small", 0);
        }
        next += expected;
        connection.line.release(Position(0), 1, &Tally::default(), &Pages::default());
        connection.line.was_sent(5 * expected);
    }
    assert_eq!(reads(&mut connection).len(), 9, "however small they were");
    let (first, behind) = (13, 14..22);
    answered(&mut connection, first, &vec![b'x'; UNSENT_BYTES_MAX], 0);
    for number in behind {
        answered(&mut connection, number, b"small", 0);
    }
    assert_eq!(reads(&mut connection), [0; 0], "a large answer is held, sent or not");
    connection.line.release(Position(0), 1, &Tally::default(), &Pages::default());
    assert_eq!(reads(&mut connection), [0; 0]);
    connection.line.was_sent(connection.line.unsent());
    assert_eq!(reads(&mut connection).len(), 9, "the large one is long ago");
}

#[test]
fn a_place_gives_back_the_body_that_a_head_does_not_want() {
    let mut connection = Connection::empty();
    let number = connection.line.open(Intent::Read);
    connection.line.drop_body(number);
    let mut answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n".to_vec();
    answer.resize(1 << 20, b' ');
    *connection.line.answer(number).expect("open") = answer;
    connection.line.ready(number, Position(0));
    let kept = connection.line.answer(number).expect("open");
    assert!(kept.ends_with(b"\r\n\r\n") && kept.capacity() <= KEPT_BYTES_MAX, "{}", kept.capacity());
}

#[test]
fn an_answer_to_a_head_has_no_body_whenever_it_is_written() {
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody";
    for written_before in [false, true] {
        let mut connection = Connection::empty();
        let number = connection.line.open(Intent::Read);
        if written_before {
            answered(&mut connection, number, ANSWER, 0);
        }
        connection.line.drop_body(number);
        if !written_before {
            answered(&mut connection, number, ANSWER, 0);
        }
        let after = connection.line.open(Intent::Read);
        answered(&mut connection, after, ANSWER, 0);
        connection.line.release(Position(0), 1, &Tally::default(), &Pages::default());
        let head = &ANSWER[..ANSWER.len() - 4];
        assert_eq!(connection.line.to_send(), [head, ANSWER].concat(), "{written_before}");
    }
}

#[test]
fn behind_a_large_answer_reads_come_one_by_one() {
    let mut connection = Connection::empty();
    let large = vec![b'x'; 4 * UNSENT_BYTES_MAX];
    let first = reads(&mut connection);
    for number in first {
        answered(&mut connection, number, &large, 0);
    }
    connection.line.release(Position(0), 1, &Tally::default(), &Pages::default());
    assert_eq!(connection.line.unsent(), large.len());
    connection.line.was_sent(large.len());
    assert_eq!(reads(&mut connection), [1]);
}

/// The memory of its buffers.
fn buffers_bytes(line: &Line) -> usize {
    let answers = line.open.iter().map(|open| open.answer.capacity());
    let spares = line.spares.iter().map(Vec::capacity);
    line.output.capacity() + answers.sum::<usize>() + spares.sum::<usize>()
}

#[test]
fn a_slot_keeps_no_buffer_of_answers() {
    let mut connection = Connection::empty();
    let large = vec![b'x'; 2 * KEPT_BYTES_MAX];
    // One leaves by itself, one is copied after it, and one never leaves.
    for (number, at) in [(0, 0), (1, 0), (2, 64)] {
        connection.line.open(Intent::Write);
        answered(&mut connection, number, &large, at);
    }
    connection.line.release(Position(0), 1, &Tally::default(), &Pages::default());
    connection.vacate();
    assert_eq!(buffers_bytes(&connection.line), 0);
}

#[test]
fn a_connection_that_waits_for_nothing_keeps_little_whatever_was_asked_before() {
    let (held, mut connection) = (Held::new(Proxies::default()), Connection::empty());
    for bytes in [1, ANSWER_BYTES, ANSWER_BYTES + 1, 8 << 10, KEPT_BYTES_MAX, KEPT_BYTES_MAX + 1, 60_000, 1] {
        let answer = vec![b'x'; bytes];
        for (intent, together) in [
            (Intent::Read, 1),
            (Intent::Read, 9),
            (Intent::Write, 1),
            (Intent::Write, 2),
            (Intent::Write, OPEN_MAX),
        ] {
            let numbers: Vec<u32> = (0..together).map(|_| connection.line.open(intent)).collect();
            for number in numbers {
                answered(&mut connection, number, &answer, 0);
                connection.count_held(&held);
            }
            connection.line.release(Position(0), 1, &Tally::default(), &Pages::default());
            connection.line.was_sent(together * bytes);
            connection.count_held(&held);
            let kept = buffers_bytes(&connection.line);
            assert!(kept <= KEPT_BYTES_MAX + SPARES_BYTES_MAX, "{kept} after {together} of {bytes}");
            assert_eq!(held.bytes(), 0);
        }
    }
    assert_eq!(connection.line.spares.capacity(), SPARES_MAX, "nothing grew");
}

#[test]
fn requests_that_come_one_by_one_use_the_same_buffers() {
    let mut connection = Connection::empty();
    // As many as a batch of orders has, and as few as a cancel.
    let answers = [7 << 10, 100].map(|bytes| vec![b'x'; bytes]);
    let mut ask = |answer: &[u8]| {
        let number = connection.line.open(Intent::Write);
        answered(&mut connection, number, answer, 0);
        connection.line.release(Position(0), 1, &Tally::default(), &Pages::default());
        connection.line.was_sent(answer.len());
        let spares = connection.line.spares.iter().chain([&connection.line.output]);
        let mut buffers: Vec<_> = spares.map(|buffer| (buffer.as_ptr(), buffer.capacity())).collect();
        buffers.sort_unstable();
        buffers
    };
    let before = (0..4).flat_map(|_| &answers).map(|answer| ask(answer)).last();
    for answer in (0..8).flat_map(|_| &answers) {
        assert_eq!(Some(ask(answer)), before);
    }
}

#[test]
fn a_read_waits_behind_an_unanswered_write_and_not_behind_a_read() {
    let mut connection = Connection::empty();
    let line = &mut connection.line;
    line.open(Intent::Read);
    assert!(!line.writes_open());
    line.open(Intent::Write);
    line.open(Intent::Read);
    assert!(line.writes_open());
    line.ready(0, Position(0));
    line.ready(1, Position(64));
    line.release(Position(0), 1, &Tally::default(), &Pages::default());
    assert!(line.writes_open());
    line.release(Position(64), 1, &Tally::default(), &Pages::default());
    assert!(!line.writes_open());
}

#[test]
fn acts_of_long_ago_are_not_open_however_many_requests_came_since() {
    // Half of all numbers later, the old one would be newer by the sign of the difference.
    for since in [0, 1, 1 << 30, (1 << 31) - 2, 1 << 31, 3 << 30] {
        let mut connection = Connection::empty();
        let line = &mut connection.line;
        line.first = u32::MAX;
        line.next = line.first;
        line.open_key_act();
        line.open(Intent::Read);
        assert!(line.writes_open() && line.key_acts_open());
        line.first = line.next.wrapping_add(since);
        line.next = line.first;
        for _ in 0..OPEN_MAX {
            line.open(Intent::Read);
            assert!(!line.writes_open() && !line.key_acts_open(), "{since} requests later");
        }
    }
}

#[test]
fn an_answer_for_a_client_that_left_is_nobodys() {
    let mut connection = Connection::empty();
    let number = connection.line.open(Intent::Read);
    let generation = connection.generation;
    connection.vacate();
    assert_ne!(connection.generation, generation);
    assert!(connection.line.answer(number).is_none());
}

#[test]
fn answers_count_among_all_from_when_they_are_written_until_they_are_sent_or_their_client_leaves() {
    let (held, large) = (Held::new(Proxies::default()), vec![b'x'; 2 * KEPT_BYTES_MAX]);
    let mut connection = Connection::empty();
    for number in [0, 1] {
        connection.line.open(Intent::Read);
        answered(&mut connection, number, &large, 0);
    }
    connection.count_held(&held);
    let output_bytes = connection.line.output.capacity();
    assert_eq!(held.bytes(), 2 * large.len() + output_bytes);
    connection.line.release(Position(0), 1, &Tally::default(), &Pages::default());
    connection.line.was_sent(large.len() - 1);
    connection.count_held(&held);
    assert!(large.len() < held.bytes(), "what was sent is given back with the last byte");
    connection.vacate();
    connection.count_held(&held);
    assert_eq!(held.bytes(), 0);
}
