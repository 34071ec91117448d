//! How long a turn of the trading loop takes at full load: the same loop, turned by hand in this
//! process, so that the clock is read around each turn and the server itself need not.

use super::load::{Account, Cancels, Pace, Placement, record, run};
use super::outcry::pin;
use super::sign::Signer;
use super::{CANCELS_EACH, CLIENT_CPU, KEYS, SERVER_CPU};
use alloy_primitives::U256;
use hdrhistogram::Histogram;
use outcry::domain::{Address, Collateral};
use outcry::server::options::Options;
use outcry::server::rig::Rig;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long it is turned.
const TIME: Duration = Duration::from_secs(2);

/// Orders for that time, and for a machine that is faster than any we know.
const ORDERS: usize = 80_000;

/// Turns shorter than this found nothing to do.
const BUSY_NS: u64 = 5_000;

/// Nanoseconds of the turns in which there was something to do.
pub(crate) fn measure(directory: &Path) -> Histogram<u64> {
    let on_client = pin(CLIENT_CPU);
    // Its other threads stay where they were made: beside the clients, as those of the server.
    let mut rig = Rig::start(&options(directory)).expect("the rig starts");
    drop(on_client);
    let _pinned = pin(SERVER_CPU);
    let port = rig.http().port();
    let signers = KEYS.map(Signer::new);
    let owners = [0, 1].map(|number: usize| Address(signers[number].address.into_array()));
    rig.credit(&owners, Collateral(1_000_000_000_000)).expect("credited");
    let token = U256::from_be_bytes(rig.market().expect("a market").tokens[0].0);
    let measures = AtomicBool::new(false);
    let mut turns = Histogram::new(3).expect("three digits");
    std::thread::scope(|scope| {
        let clients = scope.spawn(|| {
            let _pinned = pin(CLIENT_CPU);
            load(port, signers, token, &measures);
        });
        while !clients.is_finished() {
            let start = Instant::now();
            rig.turn_shard(0);
            let took = start.elapsed();
            if BUSY_NS <= u64::try_from(took.as_nanos()).expect("short") && measures.load(Ordering::Relaxed) {
                record(&mut turns, took);
            }
        }
    });
    turns
}

/// Orders as fast as they are answered, and cancels between them.
fn load(port: u16, signers: [Signer; 2], token: U256, measures: &AtomicBool) {
    let [mut maker, mut placer] = signers.map(|signer| Account::new(port, signer, token));
    let mut placement = Placement::new(port, placer.orders(ORDERS), Pace::Answered);
    let mut cancels = Cancels::rest(port, &mut maker, CANCELS_EACH, TIME);
    measures.store(true, Ordering::Relaxed);
    run(TIME, Some(&mut placement), Some(&mut cancels));
    measures.store(false, Ordering::Relaxed);
    placement.drain();
}

fn options(directory: &Path) -> Options {
    let path = |name: &str| directory.join(name).display().to_string();
    Options {
        listen_http: "127.0.0.1:0".into(),
        listen_admin: "127.0.0.1:0".into(),
        data_dir: path("data"),
        journal_log_path: path("log"),
        journal_durability: "committed".into(),
        cpu_policy: "none".into(),
        limits_mode: "off".into(),
        auth_window_s: 600,
        // The rig is as small as `dev`, which takes a tenth.
        sizes_resting_orders: 10 * Options::default().sizes_resting_orders,
        sizes_digests: 10 * Options::default().sizes_digests,
        ..Options::default()
    }
}
