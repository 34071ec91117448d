//! How long a turn of the trading loop takes at full load: the same loop, driven turn by turn in
//! this process, so that the clock is read around each turn without a change of the server.

use super::load::{Account, Cancels, Pace, Placement, record, run};
use super::lost::Watch;
use super::outcry::pin;
use super::sign::Signer;
use super::{CANCELS_EACH, CLIENT_CPU, KEYS, LOST_MAX, ORDERS_MAX, ROUNDS_MAX, SERVER_CPU, TIME};
use alloy_primitives::U256;
use hdrhistogram::Histogram;
use outcry::domain::{Address, Collateral};
use outcry::server::plan::options::Options;
use outcry::server::rig::Rig;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// Turns shorter than this found nothing to do.
const BUSY: Duration = Duration::from_micros(5);

/// Quiet rounds wanted.
pub(crate) const ROUNDS: usize = 3;

/// The clients' phases: preparing, loading the loop, and telling whether the last round counts.
const PREPARES: u8 = 0;
const MEASURES: u8 = 1;
const QUIET: u8 = 2;
const DISTURBED: u8 = 3;

/// Nanoseconds of the turns in which there was something to do, and how many quiet rounds they are of.
pub(crate) fn measure(directory: &Path) -> (Histogram<u64>, usize) {
    let on_client = pin(CLIENT_CPU);
    // The rig's other threads stay where they were started: beside the clients, as the server's do.
    let mut rig = Rig::start(&options(directory)).expect("the rig starts");
    drop(on_client);
    let _pinned = pin(SERVER_CPU);
    let port = rig.http().port();
    let signers = KEYS.map(Signer::new);
    let owners = [0, 1].map(|number: usize| Address(signers[number].address.into_array()));
    rig.credit(&owners, Collateral(1_000_000_000_000)).expect("credited");
    let token = U256::from_be_bytes(rig.market().expect("a market").tokens[0].0);
    let phase = AtomicU8::new(PREPARES);
    let [mut turns, mut round] = [(), ()].map(|()| Histogram::new(3).expect("three digits"));
    let quiet_rounds = std::thread::scope(|scope| {
        let clients = scope.spawn(|| {
            let _pinned = pin(CLIENT_CPU);
            load(port, signers, token, &phase)
        });
        while !clients.is_finished() {
            let start = Instant::now();
            rig.turn_loop(0);
            let took = start.elapsed();
            match phase.load(Ordering::Acquire) {
                MEASURES if BUSY <= took => record(&mut round, took),
                QUIET | DISTURBED if !round.is_empty() => {
                    if phase.load(Ordering::Acquire) == QUIET {
                        turns.add(&round).expect("the histogram grows");
                    }
                    round.reset();
                    phase.store(PREPARES, Ordering::Release);
                }
                _ => {}
            }
        }
        clients.join().expect("the clients end the run if anything is wrong")
    });
    (turns, quiet_rounds)
}

/// Rounds of orders as fast as they are answered, with cancels between them; how many of them were quiet.
fn load(port: u16, signers: [Signer; 2], token: U256, phase: &AtomicU8) -> usize {
    let [mut maker, mut placer] = signers.map(|signer| Account::new(port, signer, token));
    let mut quiet_rounds = 0;
    for _ in 0..ROUNDS_MAX {
        let mut placement = Placement::new(port, placer.orders(ORDERS_MAX), Pace::Answered);
        let mut cancels = Cancels::rest(port, &mut maker, CANCELS_EACH, TIME);
        let watch = Watch::begin(&[]);
        phase.store(MEASURES, Ordering::Release);
        run(TIME, Some(&mut placement), Some(&mut cancels));
        let is_quiet = watch.lost() <= LOST_MAX;
        phase.store(if is_quiet { QUIET } else { DISTURBED }, Ordering::Release);
        while phase.load(Ordering::Acquire) != PREPARES {
            std::hint::spin_loop();
        }
        placement.drain();
        quiet_rounds += usize::from(is_quiet);
        if quiet_rounds == ROUNDS {
            break;
        }
    }
    quiet_rounds
}

fn options(directory: &Path) -> Options {
    let path = |name: &str| directory.join(name).display().to_string();
    Options {
        listen_http: "127.0.0.1:0".into(),
        listen_admin: "127.0.0.1:0".into(),
        data_dir: path("data"),
        journal_log_path: path("log"),
        journal_durability: "committed".into(),
        cpu_policy: "unpinned".into(),
        limits_mode: "off".into(),
        auth_window_s: 600,
        sizes_resting_orders: (ROUNDS_MAX * ORDERS_MAX) as u64,
        orders_open_per_owner_max: (ROUNDS_MAX * ORDERS_MAX) as u64,
        sizes_digests: Options::default().sizes_digests,
        ..Options::of_dev()
    }
}
