//! The fuzz bodies on the stable toolchain: every seed as it is, every prefix of it, and many small
//! changes to it. The changes are derived from one number, which a failure prints.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its own seeds has to stop")]

use outcry::{domain, http, json};
use std::path::Path;

#[path = "fuzz/bodies.rs"]
#[allow(unreachable_pub, reason = "public for the fuzz targets, which are another crate")]
mod bodies;

/// Changed inputs for each body, unless `OUTCRY_FUZZ_INPUTS` says otherwise.
const INPUTS: u64 = 20_000;

/// The number from which the changes are derived, unless `OUTCRY_FUZZ_SEED` gives another.
const SEED: u64 = 0x6f75_7463_7279;

/// Pieces that parsers of HTTP and JSON stumble over.
const WORDS: [&[u8]; 24] = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b"\t",
    b":",
    b",",
    b"%",
    b"%3D",
    b"=",
    b"&",
    b"\"",
    b"\\u",
    b"{",
    b"}",
    b"[",
    b"]",
    b"0",
    b"18446744073709551616",
    b"-1",
    b"1e9",
    b"chunked",
    b"\xff",
];

/// A small generator (xorshift); the same numbers on every machine.
struct Chance(u64);

impl Chance {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (below.max(1) as u64)).unwrap()
    }

    /// Changes `bytes` in one place.
    fn change(&mut self, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let at = self.next(bytes.len() + 1);
        let end = (at + self.next(20)).min(bytes.len());
        match self.next(7) {
            0 if at < bytes.len() => bytes[at] = u8::try_from(self.next(256)).unwrap(),
            1 if at < bytes.len() => bytes[at] ^= 1 << self.next(8),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            4 => bytes.truncate(at),
            5 => {
                let other = &seeds[self.next(seeds.len())];
                let from = self.next(other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            _ => {
                let word = WORDS[self.next(WORDS.len())].iter().copied();
                bytes.splice(at..at, word);
            }
        }
    }
}

/// Prints the current input if the body panics.
struct Trying<'a> {
    name: &'a str,
    seed: u64,
    input: Vec<u8>,
}

impl Drop for Trying<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "fuzz body {} with OUTCRY_FUZZ_SEED={} failed on {:?}",
                self.name,
                self.seed,
                String::from_utf8_lossy(&self.input)
            );
        }
    }
}

fn number_of(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn seeds_of(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds").join(name);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn drive(name: &str) {
    let (_, body) = bodies::BODIES.iter().find(|(known, _)| *known == name).unwrap();
    let seed = number_of("OUTCRY_FUZZ_SEED", SEED).max(1);
    let attempt = |input: Vec<u8>| {
        let trying = Trying { name, seed, input };
        body(&trying.input);
    };
    let seeds = seeds_of(name);
    assert!(!seeds.is_empty(), "seeds lie beside the targets");
    for bytes in &seeds {
        for end in 0..=bytes.len() {
            attempt(bytes[..end].to_vec());
        }
    }
    let mut chance = Chance(seed);
    for _ in 0..number_of("OUTCRY_FUZZ_INPUTS", INPUTS) {
        let mut input = seeds[chance.next(seeds.len())].clone();
        for _ in 0..=chance.next(4) {
            chance.change(&mut input, &seeds);
        }
        attempt(input);
    }
}

#[test]
fn heads_hold_what_they_promise_for_any_bytes() {
    drive("head");
}

#[test]
fn chunked_bodies_hold_what_they_promise_for_any_bytes() {
    drive("chunked");
}

#[test]
fn queries_hold_what_they_promise_for_any_bytes() {
    drive("query");
}

#[test]
fn json_bodies_hold_what_they_promise_for_any_bytes() {
    drive("body");
}

#[test]
fn cursors_hold_what_they_promise_for_any_bytes() {
    drive("cursor");
}

#[test]
fn frames_hold_what_they_promise_for_any_bytes() {
    drive("frames");
}

#[test]
fn numbers_hold_what_they_promise_for_any_bytes() {
    drive("number");
}

#[test]
fn every_target_has_its_body_and_its_seeds() {
    let manifest = include_str!("fuzz/Cargo.toml");
    let targets: Vec<_> = manifest.lines().filter(|line| line.ends_with("# target")).collect();
    assert_eq!(targets.len(), bodies::BODIES.len());
    for (name, _) in bodies::BODIES {
        assert!(targets.contains(&format!("name = \"{name}\" # target").as_str()), "{name}");
        assert!(!seeds_of(name).is_empty(), "{name}");
    }
}
