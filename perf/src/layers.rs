//! What each layer of one order costs: the book and the money alone, the handling of bytes before them, the signature,
//! and everything else that makes a server.
//!
//! The server gets the requests first, by a schedule on which none should meet another. When it has ended, the very
//! same requests go through the library's own public functions, in this process on the client's CPU: these are the
//! first three layers. What the round trip takes besides is the kernel's sockets, the loops and the answer.

use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use outcry::auth::l2::{self, is_signed};
use outcry::auth::{Chain, Domains, MacKey, Venue, Verifier, text};
use outcry::domain::{
    Address, Collateral, ConditionId, FeeSchedule, MarketNo, Mode, OrderId, Outcome, ShardNo, Shares,
    SignedOrder, Tick, TimeMs, TokenId, WalletKind, WalletNo, Word,
};
use outcry::http::route::HostPrefixes;
use outcry::http::{Limits, Query, parse, route};
use outcry::journal::{Durability, Log, Options, open};
use outcry::json::BodyReader;
use outcry::memory::cells::Cells;
use outcry::registry::{MarketFacts, Registry, RegistryWriter};
use outcry::shard::{Funding, Placed, ReadyOrder, Shard, ShardSettings, Status};

use crate::bare::Bare;
use crate::leftovers::Folder;
use crate::machine::{self, Environment};
use crate::report::{self, Bar, Page};
use crate::run::{Cpus, Ground, Rig};
use crate::scenario::Plan;
use crate::schedule::{Schedule, nanos};
use crate::stats::{self, Nanos, Quantiles, histogram, record};
use crate::verdict::Verdict;
use crate::watch::{FamilyWatch, Other, Share};
use crate::workload::Request;

/// Orders a second over the socket, so few that none waits for another.
const RATE: usize = 2_000;

/// Orders that are synced to the disk one by one, each of which may take milliseconds.
const DURABLE: usize = 500;

/// Bytes of an order's record without fills.
const RECORD_BYTES: usize = 288;

/// Any kind of record.
const RECORD_KIND: u16 = 32;

/// The kinds of file systems without a disk: tmpfs and ramfs, by `statfs`.
const IN_MEMORY: [rustix::fs::FsWord; 2] = [0x0102_1994, 0x8584_58f6];

const RING_BYTES: u64 = 32 << 20;

const MARKET: MarketNo = MarketNo(0);
const WALLET: WalletNo = WalletNo(0);

/// The times of one layer.
struct Layer {
    name: &'static str,
    times: Nanos,
}

/// Measures all layers and writes what was found.
pub(crate) fn run(ground: &Ground, orders: usize) -> Result<(), String> {
    let cpus = Cpus::choose()?;
    let plan = plan(orders)?;
    on_a_disk(&ground.out)?;
    let watch = FamilyWatch::begin();
    let schedule = Schedule::of(&plan);
    let mut rig = Rig::set(ground, &ground.server, &plan, cpus)?;
    let secret = text::base64_32(rig.accounts[0].secret().as_bytes()).ok_or("the secret is not base64")?;
    let owner = rig.accounts[0].address();
    let owner =
        alloy_primitives::Address::parse_checksummed(&owner, None).map_err(|fault| fault.to_string())?;
    let token = TokenId(rig.tokens[0][0].to_be_bytes());
    let loaded = rig.load(&plan, &schedule, cpus, &cpus.both())?;
    rig.end();
    let mut layers = {
        let _pinned = machine::pin(cpus.client)?;
        let mut desk = Desk::new(&secret, Address(owner.into_array()), token, loaded.requests.len());
        desk.run(&loaded.requests, schedule.warm_up)?
    };
    let mut whole = histogram();
    for index in schedule.warm_up..loaded.requests.len() {
        let (sent, answered) = (loaded.times.sent_ns[index], loaded.times.answered_ns[index]);
        if answered == crate::generator::NEVER {
            return Err("an order was not answered".to_owned());
        }
        record(&mut whole, answered - sent);
    }
    layers.push(Layer { name: "POST /order, loopback", times: whole });
    layers.push(Layer { name: "durable on this disk", times: durable(&ground.out)? });
    layers.push(Layer { name: "a bare write of 4 KiB", times: bare(&ground.out)? });
    say(ground, &layers, &caution(watch.share(), watch.largest().as_ref(), machine::allowed_cpus().len()))
}

/// Whether anybody else had the CPUs from the first layer to the last.
fn caution(share: Share, largest: Option<&Other>, cpus: usize) -> String {
    let verdict = Verdict::of_share(share, largest, cpus, Vec::new());
    if verdict.valid {
        return format!(
            "VALID: others had {:.3} of the {cpus} CPUs, the hypervisor {:.3}.",
            share.others, share.stolen
        );
    }
    format!("INVALID: {}.", verdict.reasons.join("; "))
}

/// One connection that places orders which rest.
fn plan(orders: usize) -> Result<Plan, String> {
    if !(100..=1_000_000).contains(&orders) {
        return Err(format!("--orders: got {orders}; allowed: 100 to 1000000"));
    }
    #[allow(clippy::cast_precision_loss, reason = "at most a million")]
    let seconds = orders as f64 / RATE as f64;
    let text = format!(
        "purpose = \"What each layer of one order costs.\"\n[load]\nrate = {RATE}\nconnections = 1\n\
         warm_up_s = 0.5\ntime_s = {seconds:?}\n[mix]\nplace = 1\n[books]\nresting = 0\n"
    );
    Plan::parse("layers", &text)
}

/// The parts of the server that one order needs, without a server.
struct Desk {
    reader: BodyReader,
    key: MacKey,
    verifier: Verifier,
    owner: Address,
    /// The token of the first outcome.
    token: TokenId,
    /// The order on its way to the shard.
    ready: ReadyOrder,
    shard: Shard,
    log: Arc<Log>,
    _registry: RegistryWriter,
}

impl Desk {
    fn new(secret: &[u8; 32], owner: Address, token: TokenId, orders: usize) -> Self {
        let (registry, mut writer) = Registry::with_capacity(8, 8);
        writer.add_wallet(owner, WalletKind::Eoa, Some(WALLET)).expect("the first wallet");
        writer.add_market(&facts(token)).expect("the first market");
        let cells = Arc::new(Cells::new(8, 1));
        cells.credit(WALLET, Collateral(1_000_000_000_000));
        let log = Arc::new(Log::anonymous(RING_BYTES));
        let orders = u32::try_from(orders).expect("at most a million and a half");
        let settings = ShardSettings {
            shard: ShardNo(0),
            shards: 1,
            funding: Funding::Market,
            min_notional: Collateral(1_000_000),
            resting_max: orders + 16,
            open_per_owner_max: orders + 16,
            digests_max: 2 * orders + 16,
            accounts_max: 16,
            accounts_per_wallet_max: 16,
            markets_max: 8,
            books_bytes: 1 << 20,
            secret: 1,
        };
        Self {
            reader: BodyReader::new(),
            key: MacKey::new(secret),
            verifier: Verifier::new(Domains::new(Chain::Amoy)),
            owner,
            token,
            ready: ReadyOrder::BLANK,
            shard: Shard::new(settings, cells, registry, Arc::clone(&log)),
            log,
            _registry: writer,
        }
    }

    /// Sends each request through each layer, in the order of a request's life.
    fn run(&mut self, requests: &[Request], warm_up: usize) -> Result<Vec<Layer>, String> {
        let [mut engine, mut bytes, mut signature] = [(); 3].map(|()| histogram());
        for (index, request) in requests.iter().enumerate() {
            let start = Instant::now();
            let order = self.read(&request.bytes)?;
            let read = Instant::now();
            let id = self.verifier.order(&order, &self.owner, Venue::Polymarket, false, |_| ());
            let id = id.map_err(|reject| format!("the signature: {reject:?}"))?;
            let verified = Instant::now();
            self.place(&order, id)?;
            let placed = Instant::now();
            if warm_up <= index {
                record(&mut bytes, nanos(read - start));
                record(&mut signature, nanos(verified - read));
                record(&mut engine, nanos(placed - verified));
            }
        }
        Ok(vec![
            Layer { name: "book, money, frame", times: engine },
            Layer { name: "head, HMAC, body", times: bytes },
            Layer { name: "digest, signature", times: signature },
        ])
    }

    fn read(&mut self, request: &[u8]) -> Result<SignedOrder, String> {
        let head = parse(request, &Limits::SERVED).map_err(|bad| format!("the head: {bad:?}"))?;
        let head = head.ok_or("the head is not whole")?;
        route(head.method, head.host, head.path, Query::new(head.query), HostPrefixes::Off)
            .map_err(|refused| format!("the route: {refused:?}"))?;
        let auth = head.auth.ok_or("a request without credentials")?;
        let at = memchr::memmem::find(request, b"\r\n\r\n").ok_or("a request without a body")? + 4;
        let body = &request[at..];
        let signed = l2::Request {
            timestamp: auth.timestamp.unwrap_or_default().as_bytes(),
            method: b"POST",
            path: b"/order",
            prefix: b"",
            body,
        };
        if !is_signed(&signed, &self.key, auth.signature.unwrap_or_default().as_bytes()) {
            return Err("the HMAC does not fit".to_owned());
        }
        // The server parses in its buffer; the copy here is 760 bytes, some 10 ns.
        let mut body = body.to_vec();
        self.reader.order(&mut body).map_err(|wrong| format!("the body: {wrong:?}"))
    }

    fn place(&mut self, order: &SignedOrder, id: OrderId) -> Result<(), String> {
        // Does the journal thread's part; otherwise the ring would soon be full.
        if !self.log.room_for_order(1) {
            self.log.free(self.log.claimed());
        }
        let outcome = if order.fields.token == self.token { Outcome::Zero } else { Outcome::One };
        self.ready.write(order, &id, (WALLET, WALLET), (MARKET, outcome));
        match self.shard.place(now(), &self.ready) {
            Placed::Accepted { status: Status::Live, .. } => Ok(()),
            other => Err(format!("an order did not rest: {other:?}")),
        }
    }
}

fn facts(token: TokenId) -> MarketFacts {
    MarketFacts {
        condition: ConditionId([1; 32]),
        tokens: [token, TokenId([2; 32])],
        market_id: 1,
        question_id: Word([3; 32]),
        neg_risk: false,
        min_size: Shares(5_000_000),
        fee: FeeSchedule::FREE,
        shard_key: 0,
        tick: Tick::new(100).expect("a cent is a tick"),
        mode: Mode::Open,
        payout: None,
    }
}

fn now() -> TimeMs {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is behind 1970");
    TimeMs(u64::try_from(since.as_millis()).expect("this era"))
}

/// The time from an append until the disk has it, one at a time.
fn durable(place: &Path) -> Result<Nanos, String> {
    let folder = Folder::new_in(place)?;
    let options = Options {
        log_path: Some(folder.path().join("log")),
        durability: Durability::Durable,
        // The folder itself is locked, as a journal's is.
        ..Options::new(&folder.path().join("data"))
    };
    let opened = open(options).map_err(|fault| format!("the journal: {fault}"))?;
    let started =
        opened.start(TimeMs(1), 1, Box::new(|_| {})).map_err(|fault| format!("the journal: {fault}"))?;
    let payload = [7; RECORD_BYTES];
    let mut times = histogram();
    for _ in 0..DURABLE {
        let start = Instant::now();
        let span = started.log.append(RECORD_KIND, &payload);
        started.log.wake_writer();
        while started.log.durable() < span.end {
            // The writer may be on this CPU.
            std::thread::yield_now();
        }
        record(&mut times, nanos(start.elapsed()));
    }
    started.writer.stop(TimeMs(2)).map_err(|fault| format!("the journal: {fault}"))?;
    Ok(times)
}

/// Makes the folder `place`, if it is not there, and checks that it is on a disk that is written past the page cache.
pub(crate) fn on_a_disk(place: &Path) -> Result<(), String> {
    let fault = |fault: std::io::Error| format!("--out: {}: {fault}", place.display());
    std::fs::create_dir_all(place).map_err(fault)?;
    let kind = rustix::fs::statfs(place).map_err(|error| fault(error.into()))?.f_type;
    if IN_MEMORY.contains(&kind) {
        return Err(format!(
            "--out: {} is in memory; needed: a folder on a disk, to write to",
            place.display()
        ));
    }
    let folder = Folder::new_in(place)?;
    Bare::make(folder.path()).and_then(|mut disk| disk.write()).map_err(fault)?;
    Ok(())
}

/// The least that a disk write takes.
pub(crate) fn bare(place: &Path) -> Result<Nanos, String> {
    let fault = |fault: std::io::Error| format!("{}: {fault}", place.display());
    let folder = Folder::new_in(place)?;
    let mut disk = Bare::make(folder.path()).map_err(fault)?;
    let mut times = histogram();
    for _ in 0..DURABLE {
        record(&mut times, nanos(disk.write().map_err(fault)?));
    }
    Ok(times)
}

/// The waterfall: each layer starts where the one before it ends; the last bar is the rest of the
/// round trip.
fn bars(layers: &[Layer]) -> Vec<Bar> {
    let p50 = |layer: &Layer| stats::micros(&layer.times, 0.5);
    let [inner @ .., whole, durable, bare] = layers else { return Vec::new() };
    let text = |layer: &Layer| {
        let Quantiles { p50_us, p99_us, .. } = Quantiles::of(&layer.times);
        format!("p50 {} · p99 {}", report::micros(p50_us), report::micros(p99_us))
    };
    let bar = |layer: &Layer, from, to| {
        let (name, text) = (layer.name.to_owned(), text(layer));
        Bar { name, from, to, text, is_whole: false }
    };
    let (mut from, mut bars) = (0.0, Vec::new());
    for layer in inner {
        bars.push(bar(layer, from, from + p50(layer)));
        from += p50(layer);
    }
    let rest = (p50(whole) - from).max(0.0);
    bars.push(Bar {
        name: "sockets, loops, answer".to_owned(),
        from,
        to: from + rest,
        text: format!("{} · what is left", report::micros(rest)),
        is_whole: false,
    });
    bars.push(Bar { is_whole: true, ..bar(whole, 0.0, p50(whole)) });
    let end = p50(whole) + p50(durable);
    bars.push(bar(durable, p50(whole), end));
    let end = p50(whole) + p50(bare);
    bars.push(bar(bare, p50(whole), end));
    bars
}

fn say(ground: &Ground, layers: &[Layer], caution: &str) -> Result<(), String> {
    let rows: Vec<Vec<String>> =
        layers.iter().map(|layer| report::quantile_row(layer.name, &Quantiles::of(&layer.times))).collect();
    for row in &rows {
        println!(
            "{:26} {:>8} p50 {:>9}  p90 {:>9}  p99 {:>9}  max {:>9}",
            row[0], row[1], row[2], row[3], row[4], row[7]
        );
    }
    let bars = bars(layers);
    for bar in &bars {
        println!("{:26} {}", bar.name, bar.text);
    }
    println!("{caution}");
    let environment = Environment::capture(&ground.project, &ground.profile);
    let folder = report::new_folder(&ground.out, "layers", &environment.date)?;
    let mut page = Page::new("outcry perf: the layers of one order");
    page.paragraph(caution);
    page.note(
        "The same signed orders through the server, by schedule, and then layer by layer through the library's own \
         functions; p50. The first four bars, each from where the one above it ends, are the parts of the \
         round trip below them; what a disk adds to it stands on its end, by the journal and by a bare write.",
    );
    page.chart(&[], &report::bars(&bars)?);
    page.table("Layers", &report::QUANTILES, &rows);
    page.note(&format!(
        "{}, commit {}, {}, profile {}, {}. The last two layers are a journal of its own, and direct writes that are synced (O_DIRECT, O_DSYNC), on the disk of {}; the server's \
         answers are committed, in shared memory.",
        environment.machine(),
        environment.commit,
        environment.date,
        environment.profile,
        environment.command,
        // Without the project's own folder.
        ground.out.strip_prefix(&ground.project).unwrap_or(&ground.out).display()
    ));
    let path = folder.join("report.html");
    report::save(&path, page.end().as_bytes())?;
    println!("{}", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bars_of_the_parts_end_where_the_whole_does() {
        let layer = |name, micros: u64| {
            let mut times = histogram();
            record(&mut times, micros * 1_000);
            Layer { name, times }
        };
        let bars = bars(&[
            layer("a", 1),
            layer("b", 3),
            layer("c", 26),
            layer("whole", 40),
            layer("durable", 900),
            layer("bare", 80),
        ]);
        let ends: Vec<f64> = bars.iter().map(|bar| bar.to.round()).collect();
        assert_eq!(ends, [1.0, 4.0, 30.0, 40.0, 40.0, 940.0, 120.0]);
        let follows = |pair: &[Bar]| pair[0].to.total_cmp(&pair[1].from).is_eq();
        assert!(bars[..4].windows(2).all(follows));
    }

    #[test]
    fn a_place_in_memory_is_refused_before_anything_is_measured() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let place = folder.path().join("new");
        let complaint = on_a_disk(&place).unwrap_err();
        let expected =
            format!("--out: {} is in memory; needed: a folder on a disk, to write to", place.display());
        assert_eq!(complaint, expected);
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(on_a_disk(&file).unwrap_err().starts_with(&format!("--out: {}: ", file.display())));
    }

    #[test]
    fn too_few_or_too_many_orders_are_refused() {
        assert!(plan(99).unwrap_err().contains("allowed: 100 to 1000000"));
        assert!(plan(100).is_ok() && plan(1_000_001).is_err());
    }
}
