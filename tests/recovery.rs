//! The journal in a process that is killed: every frame that was reported as committed is there
//! afterwards.
//!
//! The process is this test itself, started again with a directory in its environment. It appends
//! from two threads and prints each number once its frame is committed. It is killed after a given
//! number of lines, at no special instant.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use outcry::domain::TimeMs;
use outcry::journal::{CommittedMark, Durability, Fault, Log, Options, Recovered, open};

const KIND: u16 = 32;
const SHARDS: u16 = 2;
const DIRECTORY: &str = "OUTCRY_TEST_JOURNAL";
const LOG_BYTES: u64 = 8 * 1024 * 1024;

fn options(directory: &Path) -> Options {
    Options {
        shared_memory: directory.join("memory"),
        log_bytes: LOG_BYTES,
        segment_bytes: 1024 * 1024,
        durability: Durability::Committed,
        ..Options::new(&directory.join("data"))
    }
}

/// The bytes of a thread's `number`-th payload.
const fn bytes_of(number: u64) -> u64 {
    16 + number * 131 % 3_000
}

/// The bytes of a thread's payloads below the `number`-th.
fn bytes_below(number: u64) -> u64 {
    (0..number).map(bytes_of).sum()
}

/// The payload of a thread's `number`-th frame, which tells the thread and the length.
fn payload(thread: u64, number: u64) -> Vec<u8> {
    let mut payload = vec![1; usize::try_from(bytes_of(number)).unwrap()];
    payload[..8].copy_from_slice(&thread.to_le_bytes());
    payload[8..16].copy_from_slice(&number.to_le_bytes());
    payload
}

/// The numbers of each thread's frames, in the order of the log; every frame is checked.
fn recovered(directory: &Path) -> (Recovered, [Vec<u64>; 2]) {
    let opened = open(options(directory)).unwrap();
    let mut numbers = [Vec::new(), Vec::new()];
    let each = opened.for_each_frame::<Fault>(|frame| {
        if frame.kind == KIND {
            let word = |at: usize| u64::from_le_bytes(frame.payload[at..at + 8].try_into().unwrap());
            assert_eq!(frame.payload, payload(word(0), word(8)));
            numbers[usize::try_from(word(0)).unwrap()].push(word(8));
        }
        Ok(())
    });
    each.unwrap();
    (opened.recovered().clone(), numbers)
}

/// The work of the process that will be killed: append, see that it is committed, print that.
fn append_for_ever(log: &Log, thread: u64, mut number: u64) {
    let mut mark = CommittedMark::new(log);
    loop {
        while !log.room_for_order(SHARDS) {
            log.wake_writer();
            std::thread::yield_now();
        }
        let span = log.append(KIND, &payload(thread, number));
        log.wake_writer();
        while mark.advance(log) < span.end {
            std::hint::spin_loop();
        }
        writeln!(std::io::stdout().lock(), "committed {thread} {number}").unwrap();
        number += 1;
    }
}

/// Not a test of its own: this is the other process, if the environment says so.
#[test]
fn the_process_that_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else {
        return;
    };
    let (_, numbers) = recovered(&directory);
    let opened = open(options(&directory)).unwrap();
    let started = opened.start(TimeMs(1), SHARDS, Box::new(|_| {})).unwrap();
    std::thread::scope(|scope| {
        for (thread, numbers) in (0..).zip(&numbers) {
            let log = Arc::clone(&started.log);
            scope.spawn(move || append_for_ever(&log, thread, numbers.len() as u64));
        }
    });
}

#[test]
fn what_a_killed_process_committed_is_there_and_nothing_is_there_twice() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("memory")).unwrap();
    let mut expected = [0, 0];
    for round in 0..8_usize {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_process_that_is_killed", "--nocapture"])
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = 0;
        while said < 1 + round * 400 {
            let line = lines.next().expect("it goes on for ever").unwrap();
            // The harness may have printed something in front of the first.
            let Some((_, numbers)) = line.split_once("committed ") else {
                continue;
            };
            let (thread, number) = numbers.split_once(' ').unwrap();
            let thread: usize = thread.parse().unwrap();
            assert_eq!(number.parse::<u64>().unwrap(), expected[thread]);
            expected[thread] += 1;
            said += 1;
        }
        if round == 2 {
            let refused = open(options(directory.path()));
            assert!(matches!(refused, Err(Fault::DataDirInUse(_))), "two processes");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What it printed while it was being killed counts too.
        for line in lines.map_while(Result::ok) {
            let words: Vec<_> = line.split(' ').collect();
            if let ["committed", thread, number] = words[..]
                && let (Ok(thread), Ok(number)) = (thread.parse::<usize>(), number.parse::<u64>())
                && number == expected[thread]
            {
                expected[thread] += 1;
            }
        }
        let (found, numbers) = recovered(directory.path());
        assert!(found.log_taken && !found.closed, "round {round}");
        for (thread, numbers) in numbers.iter().enumerate() {
            assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "thread {thread}, round {round}");
            let (there, said) = (numbers.len() as u64, expected[thread]);
            assert!(said <= there, "thread {thread} said {said} and {there} are there, round {round}");
            // One frame may have been committed but not printed any more.
            assert!(there <= said + 1, "thread {thread}, round {round}");
            expected[thread] = there;
        }
    }
}

#[test]
fn a_reboot_leaves_a_clean_prefix_of_what_was_committed() {
    let directory = tempfile::tempdir().unwrap();
    let memory = directory.path().join("memory");
    std::fs::create_dir(&memory).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_process_that_is_killed", "--nocapture"])
        .env(DIRECTORY, directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The log has no room for what either thread says, so it is not only there.
    let mut said = [0; 2];
    while said.iter().any(|number| bytes_below(*number) <= LOG_BYTES) {
        let line = lines.next().expect("it goes on for ever").unwrap();
        if let Some((_, numbers)) = line.split_once("committed ") {
            let (thread, number) = numbers.split_once(' ').unwrap();
            said[thread.parse::<usize>().unwrap()] = number.parse::<u64>().unwrap() + 1;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_dir_all(&memory).unwrap();
    std::fs::create_dir(&memory).unwrap();
    let (found, numbers) = recovered(directory.path());
    assert!(!found.log_taken && !found.closed);
    assert!(
        found.notes.iter().any(|note| note.contains("its log file is gone, empty or stale")),
        "{:?}",
        found.notes
    );
    for (numbers, said) in numbers.iter().zip(said) {
        let there = numbers.len() as u64;
        assert!(numbers.iter().copied().eq(0..there));
        assert!(bytes_below(said) <= bytes_below(there) + LOG_BYTES, "{said} were said, {there} are there");
    }
}
