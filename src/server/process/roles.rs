//! From the journal to the roles of every loop.
//!
//! Recovery loads a snapshot and applies the frames after it to the reader's ledger; registry, cells, registrar and
//! shards are restored from that ledger; then the log goes on in a new epoch and every loop gets its roles.

use std::collections::HashSet;
use std::sync::Arc;
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use super::clock::STEP_MS;
use super::made_with;
use super::recovery;
use super::secret;
use super::signals::Ending;
use super::snapshotter;
use super::streams;
use crate::auth::{MasterSecret, Venue, Verifier, keccak};
use crate::domain::{Address, Position, ShardNo, TimeMs};
use crate::http::route::HostPrefixes;
use crate::journal::{
    self, Archive, Fault, Follower, Gone, Listener, Log, Opened, Segments, Started, WriterHandle,
};
use crate::ledger::Ledger;
use crate::memory::cells::Cells;
use crate::reader::{Reader, Settings, StreamIds};
use crate::registrar::{self, Identity, Registrar};
use crate::registry::{BREAKERS_MAX, Full, Registry, RegistryWriter};
use crate::server::core_loop::Roles;
use crate::server::machine::run_delay::RunDelay;
use crate::server::operator::journal::law;
use crate::server::plan::topology::{Topology, Wait};
use crate::server::plan::{Limits, Plan};
use crate::server::reading::followed::Followed;
use crate::server::reading::follows::Follows;
use crate::server::reading::searcher::Searcher;
use crate::server::reading::searching::Searching;
use crate::server::reading::{self, Reading};
use crate::server::requests::caller::{self, Callers};
use crate::server::threads::marks::Marks;
use crate::server::threads::shared::Shared;
use crate::server::threads::thread;
use crate::server::trading::{self, Trade};
use crate::shard::{Lacks, Shard, ShardSettings, Unrestored};

/// What the main thread keeps of other threads while the loops use them.
#[derive(Default)]
pub(crate) struct Held {
    writer: Option<WriterHandle>,
    searcher: Option<Searcher>,
    snapshotter: Option<snapshotter::Handle>,
    recovered: String,
}

impl Held {
    /// What the start found, in one sentence.
    pub(crate) fn recovered(&self) -> &str {
        &self.recovered
    }

    /// Ends the search thread; nobody asks it any more.
    pub(crate) fn end_search(&mut self) {
        if let Some(searcher) = self.searcher.take() {
            searcher.stop();
        }
    }

    /// Syncs the log and writes the closing mark. A snapshot that is being made may take longer than those who stop the
    /// process wait, so the mark does not wait for it.
    pub(crate) fn close(&mut self, now: TimeMs) -> Result<(), String> {
        if let Some(snapshotter) = &self.snapshotter {
            snapshotter.begin_stop();
        }
        let closed = self.writer.take().map_or(Ok(()), |writer| writer.stop(now));
        self.stop_snapshots();
        closed.map_err(|fault| fault.to_string())
    }

    /// Leaves the log as it is, for the next start, and says what went wrong with it.
    pub(crate) fn abandon(&mut self) {
        self.stop_snapshots();
        if let Some(Err(fault)) = self.writer.take().map(WriterHandle::abandon) {
            tracing::error!("journal: {fault}");
        }
    }

    fn stop_snapshots(&mut self) {
        if let Some(snapshotter) = self.snapshotter.take() {
            snapshotter.stop();
        }
    }
}

/// Opens and replays the journal and gives every loop its roles. `goes_on` is called before the journal goes on.
///
/// A refusal after the journal went on leaves what a stop in good order leaves: no log file in shared memory, which
/// would be ahead of a backup that is put in the directory's place.
pub(crate) fn restore(
    shared: &Arc<Shared>,
    goes_on: impl FnOnce(&Shared) -> Result<(), String>,
) -> Result<Held, String> {
    let plan = &shared.plan;
    let secret = secret::load(&plan.data_dir, plan.chain_id)?;
    let settings = reader_settings(plan);
    let (opened, reader, recovered) = recover(plan, &settings)?;
    shared.clock.go_on_from(reader.ledger().time());
    warn_of_clock(shared.clock.now(), reader.ledger().time());
    let snapshots = opened.snapshots().on(plan.snapshot_disk.clone()).leaving_free(plan.disk_free_min);
    let last_segment = opened.snapshot_segment();
    let packer = plan.options.journal_pack.then(|| opened.packer().leaving_free(plan.disk_free_min));
    let end = opened.recovered().end;
    let is_continued = !opened.recovered().may_have_lost();
    let [before, this] = [opened.recovered().before, opened.recovered().epoch]
        .map(|epoch| streams::Start { exchange: opened.exchange().as_u128(), epoch });
    let stream_ids = streams::ids(&plan.data_dir, before, is_continued)?;
    let master = MasterSecret::new(&secret);
    let exchange = *opened.exchange().as_bytes();

    let limits = &plan.limits;
    let shards = plan.topology.shards;
    let (registry, mut writer) = Registry::with_capacity(limits.wallets_max, limits.markets_max);
    let cells = Arc::new(Cells::new(limits.wallets_max, shards));
    registrar::restore(reader.ledger(), &mut writer, &cells)
        .map_err(|full| overfull(full, reader.ledger(), limits))?;
    goes_on(shared)?;
    let started = opened
        .start(shared.clock.now(), shards, Box::new(Scribe::new(shared)))
        .map_err(|fault| fault.to_string())?;
    let Started { log, segments, writer: journal } = started;

    let archive = reader.ledger().archive().clone();
    let parts = snapshotter::Parts {
        snapshots,
        packer,
        segments: Arc::clone(&segments),
        log: Arc::clone(&log),
        settings,
        last_segment,
        archive,
    };
    let state = State { registry, writer, cells, log, segments, reader, end, master, exchange, stream_ids };
    let mut held = Held { writer: Some(journal), recovered, ..Held::default() };
    let kept = streams::keep(&plan.data_dir, this, &state.stream_ids)
        .and_then(|()| made_with::keep(&plan.data_dir, &secret, plan.chain_id));
    match kept.and_then(|()| give_roles(shared, state, parts, &mut held)) {
        Ok(()) => Ok(held),
        Err(why) => {
            held.end_search();
            Err(match held.close(shared.clock.now()) {
                Ok(()) => why,
                Err(fault) => format!("{why}; and then, {fault}"),
            })
        }
    }
}

/// The state that was recovered, and the log that goes on after it.
struct State {
    registry: Arc<Registry>,
    writer: RegistryWriter,
    cells: Arc<Cells>,
    log: Arc<Log>,
    segments: Arc<Segments>,
    reader: Reader,
    /// Where the log goes on.
    end: Position,
    master: MasterSecret,
    exchange: [u8; 16],
    stream_ids: StreamIds,
}

/// Starts the threads beside the loops, which `held` keeps, and gives every loop its roles. Refuses before any loop
/// has one.
fn give_roles(
    shared: &Arc<Shared>,
    state: State,
    parts: snapshotter::Parts,
    held: &mut Held,
) -> Result<(), String> {
    let plan = &shared.plan;
    let shards = plan.topology.shards;
    let State { registry, writer, cells, log, segments, reader, end, master, exchange, stream_ids } = state;
    let identity = Identity { start: secret::random()?, master: master.clone(), chain: caller::chain(plan) };
    let ledger = reader.ledger();
    let mut registrar =
        Registrar::new(ledger, writer, Arc::clone(&log), Arc::clone(&cells), identity, shards);
    ensure_fee_wallet(&mut registrar, &exchange, shared.clock.now())?;
    registrar.complete_last_owner(shared.clock.now()).map_err(|refusal| refusal.to_string())?;
    let mut registrar = Some(registrar);
    let mut of_shards = restore_shards(plan, &cells, &registry, &log, ledger)?;
    let (searcher, ends) = Searcher::start(shared)?;
    held.searcher = Some(searcher);
    held.snapshotter = Some(snapshotter::start(shared, parts)?);
    // Nothing is refused from here on.
    let mut searching = Some(Searching::new(ends, &reader));
    let feed_reader =
        (plan.topology.feed_loop() != plan.topology.reader_loop()).then(|| reader.for_streams());
    let (mut reader, mut feed_reader) = (Some(reader), feed_reader);
    for (no, loop_plan) in plan.topology.loops.iter().enumerate() {
        let callers =
            || Callers::new(plan, Arc::clone(&registry), master.clone(), Arc::clone(&shared.limits));
        let trades = loop_plan.shard.is_some() || loop_plan.ingress;
        let trade = trades.then(|| {
            let shard = loop_plan.shard;
            let take = |number: u16| of_shards[usize::from(number)].take().expect("each shard has one loop");
            let parts = trading::Parts {
                shard: shard.map(take),
                registrar: if shard == Some(0) { registrar.take() } else { None },
                // The others check no signatures.
                known_signers_bytes: if loop_plan.ingress { plan.known_signers_bytes } else { 0 },
                registry: Arc::clone(&registry),
                callers: callers(),
                clock: shared.clock.clone(),
            };
            Trade::new(plan, parts)
        });
        let followed = |reader| {
            let follower = Follower::new(Arc::clone(&log), end, Some(Arc::clone(&segments)));
            let mut callers = callers();
            callers.note_wallets();
            Followed::new(reader, follower, callers, stream_ids.clone())
        };
        let follows = if loop_plan.reader {
            Follows::Reader(Box::new(Reading::new(reading::Parts {
                followed: followed(reader.take().expect("there is one reader")),
                log: Arc::clone(&log),
                hash_every_frames: plan.hash_every_frames,
                shards,
                verifier: Verifier::new(caller::domains(plan)),
                prefixes: prefixes(plan),
                searching: searching.take().expect("there is one reader"),
                home: no,
                explains: plan.explains,
            })))
        } else if loop_plan.feed {
            Follows::Feed(Box::new(followed(feed_reader.take().expect("there is one feed"))))
        } else {
            Follows::Nothing
        };
        let roles = Roles { marks: Marks::new(Arc::clone(&log), plan.durability), trade, follows };
        assert!(shared.roles[no].push(roles).is_ok(), "roles are given once");
        shared.wakers[no].ring();
    }
    Ok(())
}

/// Every shard as `ledger` has it, each made on a thread of its own: at a start there is nothing else
/// to do, and a shard remembers millions of orders.
fn restore_shards(
    plan: &Plan,
    cells: &Arc<Cells>,
    registry: &Arc<Registry>,
    log: &Arc<Log>,
    ledger: &Ledger,
) -> Result<Vec<Option<Shard>>, String> {
    let settings = (0..plan.topology.shards).map(|number| shard_settings(plan, ShardNo(number)));
    let settings: Vec<ShardSettings> = settings.collect::<Result<_, _>>()?;
    std::thread::scope(|scope| {
        let restore = |settings| {
            let (cells, registry, log) = (Arc::clone(cells), Arc::clone(registry), Arc::clone(log));
            let work = move || Shard::restore(settings, cells, registry, log, ledger);
            let thread = std::thread::Builder::new().name("outcry-restore".to_owned());
            thread
                .spawn_scoped(scope, work)
                .map_err(|fault| format!("shards: no thread to restore one: {fault}"))
        };
        let threads: Vec<_> = settings.into_iter().map(restore).collect::<Result<_, _>>()?;
        let join = |thread: ScopedJoinHandle<'_, Result<Shard, Unrestored>>| {
            let restored = thread.join().expect("restoring refuses instead of dying");
            restored.map(Some).map_err(|why| unrestored(&why, plan, registry, ledger))
        };
        threads.into_iter().map(join).collect()
    })
}

/// Why the registry cannot be restored: what the setting is and what it must be at least.
fn overfull(full: Full, ledger: &Ledger, limits: &Limits) -> String {
    let Limits { wallets_max, markets_max, .. } = *limits;
    let (setting, got, rows, what) = match full {
        Full::Wallets => ("sizes.wallets", wallets_max, ledger.wallets().len(), "wallets"),
        Full::Keys => ("sizes.wallets", wallets_max, ledger.keys().count(), "API keys"),
        Full::Markets => ("sizes.markets", markets_max, ledger.markets().len(), "markets"),
        Full::Breakers => {
            let rows = ledger.breakers().count();
            return format!("breakers: the journal holds {rows}, and there is room for {BREAKERS_MAX}");
        }
    };
    format!("{setting}: got {got}, and the journal holds {rows} {what}: give it at least {rows}")
}

/// Why the shards cannot be restored, and which setting to raise, where that can be counted to what.
fn unrestored(why: &Unrestored, plan: &Plan, registry: &Registry, ledger: &Ledger) -> String {
    let lacks = match why {
        Unrestored::Archive(fault) => {
            return format!("{fault}; move its directory away to begin from the segments");
        }
        Unrestored::Full(lacks) => *lacks,
    };
    let limits = &plan.limits;
    let (key, max) = match lacks {
        Lacks::Orders => ("sizes.resting_orders", u64::from(limits.resting_orders_max)),
        Lacks::Accounts => ("sizes.positions", u64::from(limits.positions_max)),
        Lacks::Books => ("sizes.books_bytes", limits.books_bytes),
    };
    let shards = plan.topology.shards;
    let least = needed(lacks, registry, ledger, shards)
        .map_or_else(|| "give it more".to_owned(), |least| format!("give it at least {least}"));
    format!(
        "{key}: got {max}, of each shard; the journal holds more for one of {shards}: {least}, or start with more shards \
         (cpu.shards)"
    )
}

/// How many rows the fullest shard needs. How many bytes of books, only making them tells.
fn needed(lacks: Lacks, registry: &Registry, ledger: &Ledger, shards: u16) -> Option<usize> {
    let live = || {
        let markets = ledger.markets().iter().map(|row| row.market);
        markets.flat_map(|market| ledger.live_orders(market))
    };
    let mut rows = vec![0; usize::from(shards)];
    let mut count = |market| rows[usize::from(registry.shard_of(market, shards).0)] += 1;
    match lacks {
        Lacks::Orders => live().for_each(|order| count(order.market)),
        Lacks::Accounts => {
            let mut accounts: HashSet<_> =
                ledger.holdings().map(|(wallet, market, _)| (wallet, market)).collect();
            accounts.extend(live().map(|order| (order.wallet, order.market)));
            for (_, market) in accounts {
                count(market);
            }
        }
        Lacks::Books => return None,
    }
    rows.into_iter().max()
}

/// Opens the journal and applies what it holds: a snapshot, if there is one, and every frame after it.
fn recover(plan: &Plan, settings: &Settings) -> Result<(Opened, Reader, String), String> {
    let began = Instant::now();
    let disk = plan.disk.clone();
    let opened = journal::open_with(journal_options(plan), disk, |snapshot| {
        let reader = recovery::load(settings, snapshot, &Archive::default())?;
        // The shards read them next. If they are damaged, an older snapshot may have them whole.
        reader.ledger().archive().check_unfilled_stamps()?;
        Ok(reader)
    });
    let (opened, kept) = opened.map_err(|fault| fault.to_string())?;
    let loaded_ms = began.elapsed().as_millis();
    report(&opened, plan);
    let mut reader = kept.unwrap_or_else(|| Reader::new(settings.clone()));
    let applied = opened.for_each_frame(|frame| recovery::apply(&mut reader, frame));
    applied.map_err(|stop| stop.to_string())?;
    let ledger = reader.ledger();
    let totals = ledger.conserved().map_err(|imbalance| format!("journal: {imbalance:?}"))?;
    let whence = match opened.recovered().snapshot {
        Some((position, frames)) => format!(
            "the snapshot at position {} ({frames} frames, read in {loaded_ms} ms) and {} frames after it",
            position.0,
            opened.recovered().frames - frames
        ),
        None => format!("all {} frames", opened.recovered().frames),
    };
    let said = format!(
        "recovered from {whence}, in {} ms; met {} state hashes, state hash {:032x}, {}",
        began.elapsed().as_millis(),
        ledger.hashes_met(),
        ledger.state_hash(),
        law(&totals)
    );
    Ok((opened, reader, said))
}

/// Says whether the machine's clock is behind what the journal has seen.
fn warn_of_clock(now: TimeMs, newest: TimeMs) {
    if now.plus_ms(STEP_MS) <= newest {
        tracing::warn!(
            "clock: the newest frame is {} ms ahead of this machine's clock; until that has caught up, frames keep \
             that time, while expirations, deadlines and logins go by the clock; if the clock is wrong, stop and set it",
            newest.0 - now.0
        );
    }
}

/// Logs what was found at the start, warnings first.
fn report(opened: &Opened, plan: &Plan) {
    let recovered = opened.recovered();
    if plan.history_keep.is_none() && recovered.gone != Gone(0) {
        tracing::warn!("journal.history_keep: all, but {}", recovered.gone);
    }
    for note in &recovered.notes {
        tracing::warn!("{note}");
    }
    if let Some(cut) = &recovered.cut {
        tracing::warn!("journal: a torn tail of {} bytes was cut: {}", cut.bytes, cut.place);
    }
    if recovered.uncommitted_bytes > 0 {
        tracing::warn!(
            "journal: {} bytes in the log were never committed; dropped",
            recovered.uncommitted_bytes
        );
    }
    tracing::info!(
        "journal: epoch {}, {} frames to position {}, {} bytes only in the log {}",
        recovered.epoch,
        recovered.frames,
        recovered.end.0,
        recovered.adopted_bytes,
        opened.log_path().display()
    );
}

/// How often a journal thread that spins before it parks looks for more: about 1 ms.
const JOURNAL_LOOKS: u32 = 40_000;

fn journal_options(plan: &Plan) -> journal::Options {
    let mut options = journal::Options::new(&plan.data_dir);
    options.log_path.clone_from(&plan.log_path);
    options.log_bytes = plan.log_bytes;
    options.segment_bytes = plan.segment_bytes;
    options.durability = plan.durability;
    options.looks_max = match plan.topology.journal_wait {
        Wait::Park => 0,
        Wait::SpinThenPark => JOURNAL_LOOKS,
        Wait::Spin => u32::MAX,
    };
    options.claimed = plan.claimed;
    options
}

/// Runs on the journal's thread: puts it in its place once, wakes the loops that wait for the disk, and then counts.
struct Scribe {
    shared: Arc<Shared>,
    /// Counts how long the thread was ready and did not run, from when it was put in its place.
    run_delay: Option<RunDelay>,
}

impl Scribe {
    fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), run_delay: None }
    }
}

/// Puts the journal's thread in its place.
fn take_place(topology: &Topology) -> RunDelay {
    let is_pinned = thread::pin(topology.journal_cpu);
    thread::come_first(is_pinned && topology.journal_may_be_real_time());
    RunDelay::of_this_thread()
}

impl Listener for Scribe {
    fn writing(&mut self) {
        self.shared.journal_tally.writing(self.shared.clock.elapsed_ns());
    }

    fn durable(&mut self, upto: Position) {
        let now_ns = self.shared.clock.elapsed_ns();
        self.shared.wake_up_to(upto);
        let run_delay = self.run_delay.get_or_insert_with(|| take_place(&self.shared.plan.topology));
        self.shared.journal_tally.wrote(now_ns, run_delay.since_last());
    }

    fn failed(&mut self) {
        self.shared.wake_up_to(Position(u64::MAX));
    }

    fn not_ahead(&mut self, why: &Fault) {
        tracing::warn!("journal: {why}; it is tried again, and at the latest when it is needed");
    }
}

/// The journal cannot write: every loop stops sending, the process ends.
pub(crate) fn journal_failed(shared: &Shared, log: &Log) -> bool {
    let failed = log.failed();
    if failed {
        shared.ending.send(Ending::JournalFault);
    }
    failed
}

fn shard_settings(plan: &Plan, shard: ShardNo) -> Result<ShardSettings, String> {
    let limits = &plan.limits;
    Ok(ShardSettings {
        shard,
        shards: plan.topology.shards,
        funding: plan.funding,
        min_notional: plan.min_notional,
        resting_max: limits.resting_orders_max,
        open_per_owner_max: limits.open_per_owner_max,
        digests_max: limits.digests_max,
        accounts_max: limits.positions_max,
        accounts_per_wallet_max: limits.positions_per_wallet_max,
        markets_max: limits.markets_max,
        books_bytes: limits.books_bytes,
        secret: u64::from_le_bytes(secret::random()?) | 1,
    })
}

fn reader_settings(plan: &Plan) -> Settings {
    Settings {
        keccak: |bytes| keccak(bytes).0,
        price_side: plan.price_side,
        exchanges: Venue::ALL.iter().flat_map(|venue| venue.contracts()).collect(),
        builder_share_bps: plan.market_defaults.fee.builder_share_bps,
        wallet: plan.wallet,
    }
}

/// How paths begin.
pub(crate) fn prefixes(plan: &Plan) -> HostPrefixes {
    if plan.options.host_prefixes { HostPrefixes::On } else { HostPrefixes::Off }
}

/// Fees are shown under one wallet, whose address nobody has a key for.
fn ensure_fee_wallet(registrar: &mut Registrar, exchange: &[u8; 16], now: TimeMs) -> Result<(), String> {
    let hash = keccak(&[&exchange[..], b"fee wallet"].concat());
    let address = Address(hash.0[12..].try_into().expect("20 of 32 bytes"));
    registrar.fee_wallet(now, address).map(|_| ()).map_err(|refusal| refusal.to_string())
}
