//! What placing orders does to cancels.
//!
//! `cargo bench --bench cancels` starts Outcry with limits off, its trading loop spinning on CPU 0, and
//! everything else on CPU 1: reader, journal and the clients, which are one polling thread (`load`). It
//! 1. measures the capacity of placement: signed orders that rest, over 8 connections with up to 16 under way
//!    on each;
//! 2. cancels orders of one maker, one at a time at a fixed rate, in rounds without any placement, with
//!    placement offered by schedule at 90 % of the capacity, and at 120 %, where it queues up in the sockets.
//!    A cancel's time counts from the moment at which it was due (`due`), without that in which the client had no
//!    CPU (`clock`);
//! 3. runs the same trading loop turn by turn in this process (`turns`) and measures its turns at full load.
//!
//! Good is a p99 at 90 % that is at most the p99 without placement plus one longest turn: a cancel that
//! arrives in the middle of a turn waits for its end, and then nothing is ahead of it. The longest turn is
//! taken at its 99.9th percentile, because the maximum is due to the hypervisor or the scheduler.
//!
//! Only quiet rounds count: those in which others had at most 0.3 % of the two CPUs, and the client itself sent
//! 99 of a hundred cancels within 0.1 ms of the moment at which it could: when a cancel was due, or when the one
//! before it was answered. So a round in which the server is slow counts, and with it every cancel that was due. All
//! rounds are printed. Every reply is checked: an order that does not rest, or a cancel that does not cancel, ends the
//! run. Nothing is kept of a run with too few quiet rounds, or in which placement at 90 % did not reach its rate. There
//! are no more rounds once the server has no room for the orders of another.

#![allow(clippy::print_stdout, reason = "the result is what this program is for")]
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates and times are far below what a float holds exactly"
)]

#[path = "../loopback/client.rs"]
mod client;
mod clock;
mod due;
#[path = "../loopback/figures.rs"]
mod figures;
#[path = "../loopback/folder.rs"]
mod folder;
mod load;
mod lost;
#[allow(dead_code, reason = "benches share it, and each uses a part")]
#[path = "../loopback/outcry.rs"]
mod outcry;
mod row;
#[path = "../loopback/sign.rs"]
mod sign;
mod turns;

use figures::Unit;
use hdrhistogram::Histogram;
use load::{Account, Cancels, Pace, Placement, Ran, run};
use lost::Watch;
use outcry::{Outcry, pin};
use row::Row;
use sign::Signer;
use std::path::Path;
use std::time::Duration;

/// The first two public test keys of Anvil: the canceller's and the placer's.
const KEYS: [&str; 2] = [
    "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
];

/// Cancels go out at this interval, which no timer of the server is a multiple of.
const CANCELS_EACH: Duration = Duration::from_micros(777);

/// Quiet rounds wanted at each rate of placement, and the length of a round.
const ROUNDS: usize = 8;
const TIME: Duration = Duration::from_secs(1);

/// The most rounds that are tried to get them, as long as [`Room`] has room for their orders.
const ROUNDS_MAX: usize = 60;

/// Orders that may rest in the server: those of all rounds, to the end. More room would be another server to measure.
const RESTING_MAX: usize = 3_000_000;

/// Room of that for the orders that are cancelled: those of one round, and few that are left of each.
const CANCELLED_MAX: usize = 10_000;

/// Orders that may still come to rest.
struct Room(usize);

impl Room {
    /// Whether that is at least so many; if not, says so.
    fn has(&self, orders: usize) -> bool {
        let has = orders <= self.0;
        if !has {
            println!(
                "no more rounds: of {RESTING_MAX} orders that may rest {} are left, for {orders}",
                self.0
            );
        }
        has
    }
}

/// The part of the CPUs' time that others may have in a quiet round of placement alone.
const LOST_MAX: f64 = 0.01;

/// The same in a round with cancels. All of it on one CPU is 0.6 % of a round, so that a part of the hundredth that p99
/// leaves out is not theirs.
const CANCELS_LOST_MAX: f64 = 0.003;

/// How late the client may send in a quiet round, in ns at p99: beyond it the figure is the client's.
const LATE_NS_MAX: u64 = 100_000;

/// Rounds of placement alone, at least.
const CAPACITY_ROUNDS: usize = 3;

/// Orders for [`TIME`], enough for a machine faster than any known.
const ORDERS_MAX: usize = 40_000;

/// Placement as parts of its capacity.
const SHARES: [f64; 3] = [0.0, 0.9, 1.2];

/// The part of the offered orders that must rest where the capacity is enough for all. The last ones of a round are
/// still under way at its end.
const RESTED_MIN: f64 = 0.98;

const SERVER_CPU: usize = 0;
const CLIENT_CPU: usize = 1;

fn main() {
    let directory = folder::in_memory();
    let places = ["served", "turned"].map(|name| directory.path().join(name));
    for place in &places {
        std::fs::create_dir(place).expect("a directory");
    }
    println!("trading loop on CPU {SERVER_CPU} (spins); reader, journal and clients on CPU {CLIENT_CPU}");
    let rows = over_the_wire(&places[0]);
    let (turns, turned_rounds) = turns::measure(&places[1]);
    println!(
        "turns at full load: {}, p50 {:.1} µs, p99 {:.1}, p99.9 {:.1}, max {:.1}",
        turns.len(),
        micros(&turns, 0.5),
        micros(&turns, 0.99),
        micros(&turns, 0.999),
        micros(&turns, 1.0)
    );
    for (share, row) in SHARES.into_iter().zip(&rows) {
        row.note(&placement(share));
        if row.rounds() < ROUNDS {
            let (name, count) = (placement(share), row.rounds());
            not_valid(&format!(
                "{name}: {count} rounds count of at most {ROUNDS_MAX}, and {ROUNDS} are needed: in the others somebody \
                 else had the machine (lost %), or the client was late"
            ));
        }
        let (offered, rested) = (row.offered, row.rested_per_s());
        if share <= 1.0 && rested < RESTED_MIN * offered {
            not_valid(&format!("{}: {rested:.0} of {offered:.0} orders a second rested", placement(share)));
        }
    }
    if turned_rounds < turns::ROUNDS {
        not_valid(&format!(
            "a turn at full load: {turned_rounds} of {ROUNDS_MAX} rounds count, and {} are needed: in the others \
             somebody else had the machine",
            turns::ROUNDS
        ));
    }
    if turns.is_empty() {
        return;
    }
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
        figures::note(format!("a turn at full load, {name}"), micros(&turns, quantile), Unit::Us);
    }
    if rows[..2].iter().any(|row| row.rounds() == 0) {
        return;
    }
    let [alone, at_90] = [0, 1].map(|share: usize| micros(&rows[share].took, 0.99));
    let turn = micros(&turns, 0.999);
    let verdict = if at_90 <= alone + turn { "yes" } else { "no" };
    println!(
        "p99 at 90 % <= unloaded p99 + longest turn: {verdict} ({at_90:.1} against {alone:.1} + {turn:.1} µs)"
    );
    let bound = "p99 without placement, and the longest turn";
    figures::note_beside("a cancel's p99 at 90 %, against its bound", at_90, Unit::Us, bound, alone + turn);
}

fn not_valid(reason: &str) {
    println!("not valid: {reason}");
    figures::invalid(reason);
}

/// The name of a row.
fn placement(share: f64) -> String {
    format!("placement at {:.0} % of capacity", share * 100.0)
}

/// Measures parts 1 and 2; one row for each of [`SHARES`].
fn over_the_wire(directory: &Path) -> [Row; 3] {
    let (outcry, [mut maker, mut placer]) = start(directory);
    let _pinned = pin(CLIENT_CPU);
    let mut room = Room(RESTING_MAX - CANCELLED_MAX);
    let capacity = capacity(&outcry, &mut placer, &mut room);
    Row::head();
    let mut rows = SHARES.map(|share| Row::new(capacity * share));
    'rounds: for _ in 0..ROUNDS_MAX {
        for (share, row) in SHARES.into_iter().zip(&mut rows) {
            if row.rounds() < ROUNDS {
                let orders = placer.orders((capacity * share * TIME.as_secs_f64()) as usize + 1);
                if !room.has(orders.len()) {
                    break 'rounds;
                }
                room.0 -= orders.len();
                let mut round = measure(&outcry, &mut maker, orders, capacity * share);
                round.print(&format!("{:.0} %", share * 100.0));
                if round.lost <= CANCELS_LOST_MAX && round.late.value_at_quantile(0.99) <= LATE_NS_MAX {
                    row.add(&mut round);
                }
            }
        }
    }
    for (share, row) in SHARES.into_iter().zip(&rows) {
        row.print(&format!("quiet {:.0} %", share * 100.0));
    }
    rows
}

/// One round: cancels of one maker while orders are offered at a rate.
fn measure(outcry: &Outcry, maker: &mut Account, orders: Vec<Vec<u8>>, rate: f64) -> Row {
    let mut placement = Placement::new(outcry.http, orders, Pace::Scheduled(rate));
    let mut cancels = Cancels::rest(outcry.http, maker, CANCELS_EACH, TIME);
    let watch = Watch::begin(&[outcry.process.0.id()]);
    let Ran { rested, away } = run(TIME, Some(&mut placement), Some(&mut cancels));
    let lost = watch.lost();
    let rested = vec![rested as f64 / TIME.as_secs_f64()];
    let away = away.as_secs_f64() / (TIME + away).as_secs_f64();
    let unsent_bytes_max = placement.unsent_bytes_max;
    placement.drain();
    Row { offered: rate, rested, took: cancels.took, late: cancels.late, unsent_bytes_max, away, lost }
}

/// Orders a second that rest when each connection always has some under way: the most of some rounds, because
/// disturbances only make rounds slower.
fn capacity(outcry: &Outcry, placer: &mut Account, room: &mut Room) -> f64 {
    let mut rates = Vec::new();
    for _ in 0..ROUNDS_MAX {
        if !room.has(ORDERS_MAX) {
            break;
        }
        let mut placement = Placement::new(outcry.http, placer.orders(ORDERS_MAX), Pace::Answered);
        let watch = Watch::begin(&[outcry.process.0.id()]);
        let Ran { rested, away } = run(TIME, Some(&mut placement), None);
        let lost = watch.lost();
        // The server goes on while its client is away.
        let rate = rested as f64 / (TIME + away).as_secs_f64();
        println!("capacity: {rate:.0} orders/s, {:.1} % of the CPUs lost to others", 100.0 * lost);
        placement.drain();
        room.0 -= placement.answered;
        rates.push(rate);
        if lost <= LOST_MAX && CAPACITY_ROUNDS <= rates.len() {
            break;
        }
    }
    let capacity = rates.into_iter().fold(0.0, f64::max);
    figures::note("orders that rest, capacity", capacity, Unit::PerS);
    capacity
}

/// A server with one market, and two accounts with money.
fn start(directory: &Path) -> (Outcry, [Account; 2]) {
    let settings = [
        "journal.durability=committed",
        "cpu.policy=explicit",
        &format!("cpu.shard_cpus={SERVER_CPU}"),
        "cpu.wait=spin",
        "auth.window_s=600",
        // All orders of all rounds rest.
        &format!("sizes.resting_orders={RESTING_MAX}"),
        &format!("orders.open_per_owner_max={RESTING_MAX}"),
        &format!("sizes.digests={}", 2 * RESTING_MAX),
    ];
    let outcry = Outcry::start(directory, &settings.map(str::to_owned));
    outcry.operator(&["market", "create", "Does a cancel wait?", "--tick", "0.001"]);
    let token = outcry.token();
    let accounts = KEYS.map(|key| {
        let signer = Signer::new(key);
        let address = signer.address.to_string();
        outcry.operator(&["account", "credit", &address, "1000000", "--ref", &address]);
        Account::new(outcry.http, signer, token)
    });
    (outcry, accounts)
}

/// A quantile in microseconds.
fn micros(histogram: &Histogram<u64>, quantile: f64) -> f64 {
    histogram.value_at_quantile(quantile) as f64 / 1e3
}
