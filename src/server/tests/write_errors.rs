//! A disk that begins to fail under a running server: what clients hear, and what is there after
//! the next start.

use std::path::Path;

use super::{Client, Trader, hex, options, says, seed, until};
use crate::domain::{Side, TokenId};
use crate::journal::Disk;
use crate::server::operator::journal::{dump, replay, verify};
use crate::server::plan::options::Options;
use crate::server::plan::{Start, plan_on};
use crate::server::process::clock::Clock;
use crate::server::process::start::{End, Running, start};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// Orders that are answered before the disk fails, and orders that are sent at once after it.
const GOOD: usize = 20;
const LATE: usize = 16;

fn serve(options: &Options, disk: Disk) -> Running {
    let dev = Start { dev: true, ..Start::default() };
    let mut plan = plan_on(options, dev, &[0, 1]).expect("a plan");
    plan.disk = disk;
    start(plan, Clock::real()).expect("starts")
}

/// Requests for `count` resting orders, each with its order's id.
fn orders(trader: &mut Trader, token: &TokenId, count: usize) -> Vec<(String, Vec<u8>)> {
    let one = |_| {
        let (id, body) = trader.order(token, Side::Buy, 10, 5);
        (hex(&id.0), trader.request("POST", "/order", &body))
    };
    (0..count).map(one).collect()
}

/// Sends orders to a server whose disk has just failed, until it closes the connection; returns the ids of those that
/// it answered.
fn answered_late(client: &mut Client, late: &[(String, Vec<u8>)]) -> Vec<String> {
    let bytes: Vec<u8> = late.iter().flat_map(|(_, request)| request.iter().copied()).collect();
    client.send(&bytes);
    let mut answered = Vec::new();
    while let Some(answer) = client.answer_or_end() {
        let (id, _) = &late[answered.len()];
        says(&answer, 200, id);
        answered.push(id.clone());
    }
    answered
}

/// What `journal dump` says besides the frames.
fn dump_says(data_dir: &Path, log_path: Option<&Path>) -> Vec<String> {
    let mut said = Vec::new();
    let dumped = dump(data_dir, log_path, &mut std::io::sink(), |line| said.push(line.to_owned()));
    assert!(dumped.is_ok(), "the frames are good");
    said
}

/// Each of the `journal` commands names, in one line that has these `words`, what is not in the segments.
#[track_caller]
fn says_what_it_leaves_out(data_dir: &Path, log_path: Option<&Path>, words: &str) {
    let verified = verify(data_dir, log_path).expect("good");
    assert!(verified.ends_with("good\n"), "{verified}");
    let line = verified.lines().find(|line| line.contains(words)).expect(words);
    let replayed = replay(data_dir, log_path).expect("good");
    assert!(replayed.lines().any(|said| said == line), "{line}\n{replayed}");
    let dumped = dump_says(data_dir, log_path);
    assert!(dumped.iter().any(|said| said == line), "{line}\n{dumped:?}");
}

/// When answers leave.
#[derive(Clone, Copy, PartialEq)]
enum Answers {
    Durable,
    Committed,
    /// The log's file is removed before the disk fails.
    CommittedUntilTheLogIsLost,
}

/// Runs until the disk fails with `errno`, and again on a good one.
fn a_server_on_a_failing_disk(answers: Answers, errno: i32) {
    // Beside the test's binary: what is durable must not be in memory.
    let binary = std::env::current_exe().expect("a test has a path");
    let data = tempfile::tempdir_in(binary.parent().expect("it is in a directory")).expect("a directory");
    let durability = if answers == Answers::Durable { "durable" } else { "committed" };
    let options = Options { journal_durability: durability.into(), ..options(&data, 1) };
    let log_path = options.log_path().expect("the log has a path of its own");
    let disk = Disk::failing_after(u64::MAX, errno);
    let running = serve(&options, disk.clone());
    let mut client = Client::connect(running.http());
    let mut trader = Trader::new(1, &mut client);
    let token = seed(&running, &[&trader.address], 1)[0][0];
    let mut acknowledged = Vec::new();
    for (id, request) in orders(&mut trader, &token, GOOD) {
        says(&client.ask(&request), 200, "\"status\":\"live\"");
        acknowledged.push(id);
    }

    if answers == Answers::CommittedUntilTheLogIsLost {
        std::fs::remove_file(&log_path).expect("removed");
        let mut operator = Client::connect(running.admin());
        let ready = b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n";
        until("answers wait for the disk", || operator.ask(ready).1.contains("\"durability\":\"durable\""));
    }
    let late = orders(&mut trader, &token, LATE);
    disk.fail();
    // As `main` does it: whoever waits for the end meets it.
    let end = std::thread::spawn(move || running.wait());
    let answered = answered_late(&mut client, &late);
    assert_eq!(end.join().expect("it ends by itself"), End::Broken);
    if answers != Answers::Committed {
        assert!(answered.is_empty(), "not durable, but answered: {answered:?}");
    }
    acknowledged.extend(answered);

    if answers != Answers::CommittedUntilTheLogIsLost {
        says_what_it_leaves_out(data.path(), Some(&log_path), "bytes are only in the log file");
    }
    says_what_it_leaves_out(data.path(), None, "no log at /dev/shm/outcry-");

    let mut running = serve(&options, Disk::default());
    let mut client = Client::connect(running.http());
    for id in &acknowledged {
        let path = format!("/data/order/{id}");
        says(&client.ask(&trader.request("GET", &path, "")), 200, id);
    }
    let (id, request) = orders(&mut trader, &token, 1).remove(0);
    says(&client.ask(&request), 200, &id);
    assert_eq!(running.stop(), End::Clean);
    let text = verify(data.path(), Some(&log_path)).expect("good");
    assert!(text.contains("stopped in good order") && text.ends_with("good\n"), "{text}");
    assert_eq!(dump_says(data.path(), Some(&log_path)), [""; 0]);
}

#[test]
fn a_disk_that_hangs_is_not_ready_and_what_waits_for_it_is_answered_when_it_goes_on() {
    let data = tempfile::tempdir().expect("a directory");
    let options = Options { journal_durability: "durable".into(), ..options(&data, 1) };
    let disk = Disk::failing_after(u64::MAX, EIO);
    let mut running = serve(&options, disk.clone());
    let mut client = Client::connect(running.http());
    let mut trader = Trader::new(1, &mut client);
    let token = seed(&running, &[&trader.address], 1)[0][0];
    let mut operator = Client::connect(running.admin());
    let mut ready = || operator.ask(b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n");
    until("the disk writes", || ready().0 == 200);

    disk.let_through(0);
    let (id, request) = orders(&mut trader, &token, 1).remove(0);
    client.send(&request);
    until("a write that does not end is seen", || ready().0 == 503);
    says(&ready(), 503, "\"ready\":false");
    says(&ready(), 503, "\"disk\":\"hangs\"");

    disk.let_through(u64::MAX);
    says(&client.answer(), 200, &id);
    until("the disk writes again", || ready().0 == 200);
    assert_eq!(running.stop(), End::Clean);
}

#[test]
fn under_durable_no_answer_leaves_behind_a_write_error_and_nothing_is_lost() {
    for errno in [EIO, ENOSPC] {
        a_server_on_a_failing_disk(Answers::Durable, errno);
    }
}

#[test]
fn under_committed_whatever_was_answered_around_a_write_error_is_there_afterwards() {
    for errno in [EIO, ENOSPC] {
        a_server_on_a_failing_disk(Answers::Committed, errno);
    }
}

#[test]
fn once_the_log_is_lost_whatever_was_answered_is_there_after_a_write_error() {
    a_server_on_a_failing_disk(Answers::CommittedUntilTheLogIsLost, EIO);
}
