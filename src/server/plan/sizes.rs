//! How much of everything there is room for, and what that takes of the machine's memory.

use super::Plan;
use super::options::Options;
use super::topology::Topology;
use crate::auth::KnownSigners;
use crate::registry::ROWS_MAX;
use crate::server::connections::connection::IDLE_BYTES_MAX;
use crate::server::connections::held::HELD_BYTES_MAX;

/// How much of everything a process has room for, and how long it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Resting orders per shard.
    pub resting_orders_max: u32,
    /// Resting orders of one owner per shard.
    pub open_per_owner_max: u32,
    /// Bytes of price ladders per shard.
    pub books_bytes: u64,
    /// Pairs of a wallet and a market with shares or open orders, per shard.
    pub positions_max: u32,
    /// Those of one wallet per shard.
    pub positions_per_wallet_max: u32,
    /// Wallets of the exchange.
    pub wallets_max: u32,
    /// Markets of the exchange.
    pub markets_max: u32,
    /// Order digests a shard remembers.
    pub digests_max: u32,
    /// Connections open at once, on all loops together.
    pub connections_max: u32,
    /// Those of one address, unless it is a trusted proxy's.
    pub connections_per_address_max: u32,
    /// How long a request's head and body may take to arrive.
    pub head_ms: u64,
    /// How long a connection may be silent between requests.
    pub idle_ms: u64,
    /// The same for a stream's client, which is asked for a pong before.
    pub stream_idle_ms: u64,
    /// Bytes that may wait for a stream's client.
    pub unread_bytes_max: usize,
    /// How long a graceful stop waits for clients to leave, which each answer asks them to.
    pub leave_ms: u64,
    /// How long it waits then for answers and clients.
    pub stop_ms: u64,
}

/// A request that takes longer to arrive is somebody who holds the slot; a head is one packet, a batch a few.
const HEAD_MS: u64 = 10_000;

/// A day: who says nothing for longer has forgotten the connection.
const IDLE_S_MAX: u64 = 86_400;

/// Three pings without a pong.
const STREAM_IDLE_MS: u64 = 75_000;

/// Longer than a busy client that is near takes to ask again: what it sends afterwards goes nowhere.
const LEAVE_MS: u64 = 100;

/// Docker kills ten seconds after it asked for the end, and the log is to be synced before that.
const STOP_MS: u64 = 5_000;

/// Markets, a hundred times as many as a large venue has had.
const MARKETS_MAX: u64 = 1 << 24;

/// Slots of a table are numbered in 32 bits, and the last number means none.
const SLOTS_MAX: u64 = (u32::MAX - 1) as u64;

/// The part of a shard's resting orders or positions that one owner may have, and of the connections one address, unless
/// the config says otherwise: whoever fills its own leaves three quarters to the others.
const PER_OWNER_PART: u64 = 4;

/// What each may have at least, unless the config says otherwise: where there is little, there are few to share it.
const PER_OWNER_MIN: u64 = 1_000;

/// Ladders of one shard: eight of the finest tick.
const BOOKS_BYTES_MIN: u64 = 1 << 20;

/// Ladders of one shard: eight million of the finest tick, and far below what a process can address.
const BOOKS_BYTES_MAX: u64 = 1 << 40;

/// The limits that `options` ask for.
pub(super) fn limits(options: &Options, topology: &Topology) -> Result<Limits, String> {
    let sized = |name: &str, value: u64, [min, max]: [u64; 2]| -> Result<u32, String> {
        if !(min..=max).contains(&value) {
            return Err(format!("{name}: got {value}; allowed: {min} to {max}"));
        }
        Ok(u32::try_from(value).expect("no table has more slots"))
    };
    let loops = u64::try_from(topology.loops.len()).expect("loops are few");
    let books_bytes = options.sizes_books_bytes;
    if !(BOOKS_BYTES_MIN..=BOOKS_BYTES_MAX).contains(&books_bytes) {
        return Err(format!(
            "sizes.books_bytes: got {books_bytes}; allowed: {BOOKS_BYTES_MIN} to {BOOKS_BYTES_MAX}"
        ));
    }
    let open_per_owner = per_owner(options.orders_open_per_owner_max, options.sizes_resting_orders);
    let positions_per_wallet = per_owner(options.sizes_positions_per_wallet, options.sizes_positions);
    let per_address = per_owner(options.sizes_connections_per_address, options.sizes_connections);
    Ok(Limits {
        resting_orders_max: sized("sizes.resting_orders", options.sizes_resting_orders, [1, SLOTS_MAX])?,
        open_per_owner_max: sized("orders.open_per_owner_max", open_per_owner, [0, SLOTS_MAX])?,
        books_bytes,
        positions_max: sized("sizes.positions", options.sizes_positions, [1, SLOTS_MAX])?,
        positions_per_wallet_max: sized("sizes.positions_per_wallet", positions_per_wallet, [0, SLOTS_MAX])?,
        wallets_max: sized("sizes.wallets", options.sizes_wallets, [16, u64::from(ROWS_MAX)])?,
        markets_max: sized("sizes.markets", options.sizes_markets, [16, MARKETS_MAX])?,
        digests_max: sized("sizes.digests", options.sizes_digests, [16, SLOTS_MAX])?,
        connections_max: sized("sizes.connections", options.sizes_connections, [loops, SLOTS_MAX])?,
        connections_per_address_max: sized("sizes.connections_per_address", per_address, [0, SLOTS_MAX])?,
        head_ms: HEAD_MS,
        // By default longer than the minute for which most clients and proxies keep one, so that it is they who close it.
        idle_ms: 1_000 * u64::from(sized("listen.idle_s", options.listen_idle_s, [1, IDLE_S_MAX])?),
        stream_idle_ms: STREAM_IDLE_MS,
        unread_bytes_max: unread_bytes_max(options)?,
        leave_ms: LEAVE_MS,
        stop_ms: STOP_MS,
    })
}

/// What one owner or address may have of `room`: 0 configures the part that is usual, and is never what comes out.
fn per_owner(configured: u64, room: u64) -> u64 {
    if configured == 0 { PER_OWNER_MIN.max(room / PER_OWNER_PART) } else { configured }
}

/// The share of each loop that checks signatures in the memory for signers' tables: none, or room for at least one.
pub(super) fn known_signers_bytes(options: &Options, topology: &Topology) -> Result<u64, String> {
    const MAX: u64 = 64 << 30;
    let (loops, bytes) = (topology.ingress_loops().len() as u64, options.auth_known_signers_bytes);
    let min = loops * KnownSigners::TABLE_BYTES;
    if bytes == 0 || (min..=MAX).contains(&bytes) {
        return Ok(bytes / loops);
    }
    Err(format!(
        "auth.known_signers_bytes: got {bytes}; allowed: 0 (off), or {min} (a signer for each of {loops} loops that \
         check signatures) to {MAX}"
    ))
}

/// What a client may leave unread; less than a large book would end every stream that follows one.
fn unread_bytes_max(options: &Options) -> Result<usize, String> {
    const MIN: u64 = 1 << 20;
    const MAX: u64 = 1 << 30;
    let bytes = options.streams_unread_bytes_max;
    let found = usize::try_from(bytes).ok().filter(|_| (MIN..=MAX).contains(&bytes));
    found.ok_or_else(|| format!("streams.unread_bytes_max: got {bytes}; allowed: {MIN} to {MAX}"))
}

impl Plan {
    /// Bytes of memory when every table is full and every connection taken, the log included; [`Self::memory_on_top`]
    /// is not.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        const EVERYTHING_ELSE: u64 = 128 << 20;
        /// What a connection keeps, and what is noted of it elsewhere.
        const CONNECTION: u64 = 72 << 10;
        const _: () = assert!((IDLE_BYTES_MAX as u64) < CONNECTION);
        let connections = u64::from(self.limits.connections_max) * CONNECTION;
        let books = self.limits.books_bytes.saturating_mul(u64::from(self.topology.shards));
        let taken: u64 = self.memory_taken().iter().map(|(_, bytes)| bytes).sum();
        let held = HELD_BYTES_MAX as u64;
        [books, connections, EVERYTHING_ELSE, held, self.log_bytes]
            .into_iter()
            .fold(taken, u64::saturating_add)
    }

    /// What may come on top, so that it can be read, with as many markets, wallets and resting orders as there is room
    /// for: for as long as they are there, and while a snapshot is made. A row's bytes are the most that
    /// `benches/footprint.rs` shows, rounded up, its markets' rows having 5 KiB in Gamma's file; of a loop more that
    /// follows the log, and of a snapshot, the larger. An estimate: longer rows take more, and positions and history are
    /// not in it.
    #[must_use]
    pub fn memory_on_top(&self) -> [u64; 2] {
        const MARKET: u64 = 7_680;
        const WALLET: u64 = 1_472;
        const RESTING_ORDER: u64 = 752;
        const MARKET_AGAIN: u64 = 6_400;
        const WALLET_AGAIN: u64 = 1_088;
        let [markets, wallets] = [self.limits.markets_max, self.limits.wallets_max].map(u64::from);
        let orders = u64::from(self.limits.resting_orders_max) * u64::from(self.topology.shards);
        let once = markets * MARKET + wallets * WALLET + orders * RESTING_ORDER;
        let again = markets * MARKET_AGAIN + wallets * WALLET_AGAIN + orders * RESTING_ORDER;
        let others = self.topology.followers().len() as u64 - 1;
        [once + others * again, again]
    }

    /// The part of [`Self::memory_bytes`] that a start takes at once, so that no order waits for a page, by the setting
    /// that asks for it. A row's bytes include its places in the indexes, and are what `benches/footprint.rs` shows,
    /// rounded up; a wallet's are 188, 212 and 261 with one, two and four shards.
    #[must_use]
    pub fn memory_taken(&self) -> Vec<(&'static str, u64)> {
        const RESTING_ORDER: u64 = 128;
        const DIGEST: u64 = 120;
        const WALLET: u64 = 164;
        const WALLET_OF_SHARD: u64 = 25;
        const POSITION: u64 = 104;
        let (limits, shards) = (&self.limits, u64::from(self.topology.shards));
        vec![
            ("sizes.resting_orders", u64::from(limits.resting_orders_max) * RESTING_ORDER * shards),
            ("sizes.digests", u64::from(limits.digests_max) * DIGEST * shards),
            (
                "auth.known_signers_bytes",
                self.known_signers_bytes * self.topology.ingress_loops().len() as u64,
            ),
            ("sizes.wallets", u64::from(limits.wallets_max) * (WALLET + WALLET_OF_SHARD * shards)),
            ("sizes.positions", u64::from(limits.positions_max) * POSITION * shards),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Fields, items};
    use crate::server::plan::{Start, plan_on};
    use std::collections::BTreeMap;
    use std::path::Path;

    fn planned(change: impl Fn(&mut Options)) -> Result<Plan, String> {
        let mut options = Options::default();
        change(&mut options);
        plan_on(&options, Start::default(), &[0, 1])
    }

    #[test]
    fn a_size_is_taken_up_to_its_limit_and_refused_after_it() {
        type Size = (&'static str, fn(&mut Options) -> &mut u64, u64, u64);
        let sizes: [Size; 7] = [
            ("sizes.wallets", |options| &mut options.sizes_wallets, 16, 1 << 30),
            ("sizes.markets", |options| &mut options.sizes_markets, 16, 1 << 24),
            ("sizes.positions", |options| &mut options.sizes_positions, 1, 4_294_967_294),
            ("sizes.digests", |options| &mut options.sizes_digests, 16, 4_294_967_294),
            ("sizes.resting_orders", |options| &mut options.sizes_resting_orders, 1, 4_294_967_294),
            ("sizes.books_bytes", |options| &mut options.sizes_books_bytes, 1 << 20, 1 << 40),
            ("sizes.connections", |options| &mut options.sizes_connections, 2, 4_294_967_294),
        ];
        for (name, slot, min, max) in sizes {
            for value in [min, max - 1, max] {
                planned(|options| *slot(options) = value).expect(name);
            }
            for value in [min - 1, max + 1, u64::MAX] {
                let fault = planned(|options| *slot(options) = value).expect_err(name);
                assert_eq!(fault, format!("{name}: got {value}; allowed: {min} to {max}"));
            }
        }
    }

    #[test]
    fn one_owner_has_a_quarter_of_orders_and_positions_and_one_address_of_connections_or_what_is_configured()
    {
        type Part = (&'static str, fn(&mut Options) -> &mut u64);
        for (room, configured, expected) in [
            (1, 0, 1_000),
            (4_003, 0, 1_000),
            (4_004, 0, 1_001),
            (1_000_000, 0, 250_000),
            (4_294_967_294, 0, 1_073_741_823),
            (1_000_000, 1, 1),
            (1_000_000, 4_294_967_294, 4_294_967_294),
        ] {
            let plan = planned(|options| {
                options.sizes_resting_orders = room;
                options.sizes_positions = room;
                options.sizes_connections = room.max(2);
                options.orders_open_per_owner_max = configured;
                options.sizes_positions_per_wallet = configured;
                options.sizes_connections_per_address = configured;
            });
            let limits = plan.expect("allowed").limits;
            let found = [
                limits.open_per_owner_max,
                limits.positions_per_wallet_max,
                limits.connections_per_address_max,
            ];
            assert_eq!(found, [expected; 3], "{configured} of {room}");
        }
        let parts: [Part; 3] = [
            ("orders.open_per_owner_max", |options| &mut options.orders_open_per_owner_max),
            ("sizes.positions_per_wallet", |options| &mut options.sizes_positions_per_wallet),
            ("sizes.connections_per_address", |options| &mut options.sizes_connections_per_address),
        ];
        for (name, slot) in parts {
            let fault = planned(|options| *slot(options) = 4_294_967_295).expect_err("refused");
            assert_eq!(fault, format!("{name}: got 4294967295; allowed: 0 to 4294967294"));
        }
    }

    /// What rows take by the newest record of `benches/footprint.rs`, in bytes.
    fn measured() -> BTreeMap<String, f64> {
        let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("perf/records");
        let files =
            std::fs::read_dir(records).expect("a directory").map(|entry| entry.expect("an entry").path());
        let newest = files.filter(|path| path.to_string_lossy().contains("-bench-footprint-")).max();
        let text = std::fs::read_to_string(newest.expect("a record")).expect("a file");
        let record = Fields::parse(&text).expect("an object");
        let figures = record.raw("figures").and_then(items).expect("a list");
        let figures = figures.into_iter().map(|row| {
            let row = Fields::parse(row).expect("an object");
            let bytes = row.raw("value").and_then(|bytes| bytes.parse().ok());
            (row.text("what").expect("a name"), bytes.expect("bytes"))
        });
        figures.collect()
    }

    #[test]
    #[allow(clippy::cast_precision_loss, reason = "a row's bytes are few")]
    fn rows_are_counted_as_they_were_measured_rounded_up() {
        type Kind = (&'static str, fn(&mut Options));
        let with = |shards: u64, change: &dyn Fn(&mut Options)| {
            let plan = planned(|options| {
                options.cpu_policy = "unpinned".to_owned();
                (options.cpu_shards, options.sizes_markets, options.sizes_wallets) = (shards, 1_000, 1_000);
                options.sizes_resting_orders = 1_000;
                change(options);
            });
            plan.expect("a plan")
        };
        let taken = |shards, table: &str| {
            let rows =
                with(shards, &|options| (options.sizes_digests, options.sizes_positions) = (1_000, 1_000))
                    .memory_taken();
            rows.iter().find(|(name, _)| *name == table).expect("it is named").1 / 1_000
        };
        let on_top = |change: &dyn Fn(&mut Options)| {
            let (few, more) = (with(1, &|_| {}).memory_on_top(), with(1, change).memory_on_top());
            [0, 1].map(|at| (more[at] - few[at]) / 1_000)
        };
        let measured = measured();
        let check = |what: &str, counted: u64| {
            let (counted, measured) = (counted as f64, measured[what].round());
            assert!(
                measured <= counted && counted <= 1.1 * measured,
                "{what}: {measured}, and counted are {counted}"
            );
        };
        for table in ["sizes.resting_orders", "sizes.digests", "sizes.wallets", "sizes.positions"] {
            check(&format!("a row of {table}"), taken(1, table));
        }
        for shards in [2, 4] {
            check(&format!("a row of sizes.wallets with {shards} shards"), taken(shards, "sizes.wallets"));
        }
        let kinds: [Kind; 3] = [
            ("a market", |options| options.sizes_markets = 2_000),
            ("a wallet", |options| options.sizes_wallets = 2_000),
            ("a resting order", |options| options.sizes_resting_orders = 2_000),
        ];
        for (kind, more) in kinds {
            let [once, again] = on_top(&more);
            check(&format!("{kind} on top, most"), once);
            let [loops, snapshot] = [", for a loop of the feed's own, most", ", while a snapshot is made"]
                .map(|what| format!("{kind} again{what}"));
            let larger = if measured[&snapshot] < measured[&loops] { loops } else { snapshot };
            check(&larger, again);
        }
    }

    #[test]
    fn what_comes_on_top_grows_with_what_can_be_read_and_the_loops_that_follow() {
        const MIB: u64 = 1 << 20;
        let with = |markets, wallets, shards, feed: &str| {
            let plan = planned(|options| {
                options.cpu_policy = "unpinned".to_owned();
                (options.cpu_shards, options.cpu_feed) = (shards, feed.to_owned());
                (options.sizes_markets, options.sizes_wallets) = (markets, wallets);
                options.sizes_resting_orders = 1 << 20;
            });
            plan.expect("a plan").memory_on_top()
        };
        for (markets, wallets, shards, feed, expected) in [
            (1 << 18, 1 << 20, 1, "auto", [4_144 * MIB, 3_440 * MIB]),
            (1 << 17, 1 << 20, 1, "auto", [3_184 * MIB, 2_640 * MIB]),
            (1 << 18, 1 << 19, 1, "auto", [3_408 * MIB, 2_896 * MIB]),
            (1 << 18, 1 << 20, 2, "auto", [4_896 * MIB, 4_192 * MIB]),
            (1 << 18, 1 << 20, 1, "own", [7_584 * MIB, 3_440 * MIB]),
        ] {
            assert_eq!(with(markets, wallets, shards, feed), expected, "{markets} {wallets} {shards} {feed}");
        }
    }

    #[test]
    fn signers_have_room_for_one_table_in_each_loop_that_checks_them_or_none() {
        let fault = planned(|options| options.auth_known_signers_bytes = 139_263).expect_err("refused");
        assert_eq!(
            fault,
            "auth.known_signers_bytes: got 139263; allowed: 0 (off), or 139264 (a signer for each of 1 loops that \
             check signatures) to 68719476736"
        );
    }

    #[test]
    fn what_signers_tables_take_is_what_is_set_however_many_loops_check_signatures() {
        let of = |plan: &Plan| {
            let taken = plan.memory_taken();
            taken.iter().find(|(name, _)| *name == "auth.known_signers_bytes").expect("it is named").1
        };
        for (shards, ingress) in [(1, "0"), (1, "1"), (2, "0"), (2, "2"), (1, "3")] {
            let plan = planned(|options| {
                options.cpu_policy = "unpinned".to_owned();
                (options.cpu_shards, options.cpu_ingress) = (shards, vec![ingress.to_owned()]);
                options.auth_known_signers_bytes = 600 << 20;
            });
            let plan = plan.expect("a plan");
            assert_eq!(of(&plan), 600 << 20, "{shards} shards, {ingress} ingress loops");
        }
    }
}
