//! Options as they are written: defaults, then the file, then the environment, then flags.
//!
//! One table is all that knows the names: [`Options`], its defaults and [`KEYS`] are made of its rows. It drives the
//! file (`a.b` is key `b` of table `[a]`), the environment (`OUTCRY_A_B`), `init`, `config print` and the nearest-name
//! hint.
//! Nothing is judged here except that a value has the right form; the checks that relate one
//! value to another are in `plan`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::limits::Scope;

/// Where one option lives, and what form its value has.
pub enum Slot<'a> {
    /// Any text.
    Text(&'a mut String),
    /// A whole number.
    Number(&'a mut u64),
    /// Yes or no.
    Switch(&'a mut bool),
    /// A list of texts; in the environment separated by commas.
    List(&'a mut Vec<String>),
}

/// One configuration key.
pub struct Key {
    /// `table.key`, or `key` at the top.
    pub name: &'static str,
    /// What it is for, with unit, for `init` and for people.
    pub about: &'static str,
    slot: fn(&mut Options) -> Slot<'_>,
}

macro_rules! keys {
    (
        $( $name:literal $form:ident $field:ident = $default:expr, $about:literal; )*
        scopes { $( $scope:ident $counts:literal; )* }
    ) => {
        /// What can be configured, as written. Units are in the key's description.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each field is described once, in KEYS")]
        #[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
        pub struct Options {
            $( pub $field: keys!(@type $form), )*
            pub limits_scopes: [String; Scope::ALL.len()],
            /// The keys whose value a variable gave, which a refusal names.
            pub of_variables: Vec<&'static str>,
        }

        impl Default for Options {
            fn default() -> Self {
                let limits_scopes = Scope::ALL.map(|scope| scope.rule().to_string());
                Self { $( $field: keys!(@value $form $default), )* limits_scopes, of_variables: Vec::new() }
            }
        }

        /// Every key there is. Another is an error.
        pub const KEYS: &[Key] = &[
            $( Key { name: $name, about: $about, slot: |options| Slot::$form(&mut options.$field) }, )*
            $( Key {
                name: Scope::$scope.setting(),
                about: $counts,
                slot: |options| Slot::Text(&mut options.limits_scopes[Scope::$scope as usize]),
            }, )*
        ];
    };
    (@type Text) => { String };
    (@type Number) => { u64 };
    (@type Switch) => { bool };
    (@type List) => { Vec<String> };
    (@value Text $default:expr) => { String::from($default) };
    (@value List $default:expr) => { Vec::from($default) };
    (@value $form:ident $default:expr) => { $default };
}

// Name, form, field, what it is if nobody says otherwise, and what it is for.
keys! {
    "data_dir" Text data_dir = "outcry-data", "Where segments, identity and secrets are kept.";
    "chain_id" Number chain_id = 80_002, "The chain that signatures name: 80002, or 137.";
    "venue" Text venue = "kuest", "Whose order contracts SERVICE_ requests are signed for: kuest or polymarket.";
    "trusted_proxies" List trusted_proxies = [], "Addresses, or networks as in 10.0.0.0/8, whose X-Forwarded-For says who is asking.";
    "allowed_origins" List allowed_origins = [], "Web pages whose scripts may read answers, as in https://app.example; * is every page.";
    "host_prefixes" Switch host_prefixes = false, "Also serve the catalog under /gamma, the wallets under /data, all others under /clob.";
    "price_side" Text price_side = "taker", "What GET /price?side=BUY means: taker (the price at which one can buy) or book.";
    "funding" Text funding = "shared", "shared: open BUYs are covered per market. reserved: every placement takes its money.";
    "listen.http" Text listen_http = "127.0.0.1:8080", "Address of the public listener; port 0 picks one.";
    "listen.admin" Text listen_admin = "127.0.0.1:8081", "Address of the operator's listener; loopback only.";
    "listen.idle_s" Number listen_idle_s = 75, "Seconds for which a connection may ask nothing. More than proxies in front keep one.";
    "cpu.policy" Text cpu_policy = "auto", "auto: whole cores, near each other. spread: shards in caches apart. pack: as near as can be. explicit: as named below. unpinned.";
    "cpu.shards" Number cpu_shards = 0, "How many shards; 0 lets the policy choose. May change at every start.";
    "cpu.ingress" List cpu_ingress = [], "How many loops for sockets and signatures alone, or (policy explicit) their CPUs; empty: every shard's loop has its own.";
    "cpu.shard_cpus" List cpu_shard_cpus = [], "One CPU for each shard, or ranges such as 2-5 (policy explicit).";
    "cpu.reader" Text cpu_reader = "auto", "The reader's CPU (policy explicit), or auto.";
    "cpu.feed" Text cpu_feed = "auto", "The streams' loop: auto (the reader's), own (one of its own, with a second copy of the state), or (policy explicit) its CPU.";
    "cpu.journal" Text cpu_journal = "auto", "The journal thread's CPU, or auto: any that no loop spins on.";
    "cpu.wait" Text cpu_wait = "auto", "How loops wait: auto, spin, spin-then-park or park; one word, one for each loop, or by role as in shard=spin,reader=park,journal=spin-then-park.";
    "journal.durability" Text journal_durability = "durable", "When an answer may leave: durable (survives the machine) or committed (survives the process).";
    "journal.log_path" Text journal_log_path = "", "The log's file; empty: /dev/shm/outcry-<uuid>.";
    "journal.log_bytes" Number journal_log_bytes = 32 << 20, "Bytes of the log ring.";
    "journal.segment_bytes" Number journal_segment_bytes = 64 << 20, "Bytes of one segment file.";
    "journal.pack" Switch journal_pack = true, "Rewrite full segment files in the background without their unused room; false if a backup follows files.";
    "journal.history_keep" Text journal_history_keep = "all", "all, or how many sealed segments to keep.";
    "journal.hash_every_frames" Number journal_hash_every_frames = 10_000, "A state hash goes into the log every so many frames.";
    "journal.disk_free_min" Number journal_disk_free_min = 1 << 30, "Bytes of free disk below which the exchange takes cancels only; below half of it, it stops, and does not start.";
    "sizes.resting_orders" Number sizes_resting_orders = 1_000_000, "Resting orders a shard has room for.";
    "sizes.books_bytes" Number sizes_books_bytes = 1 << 30, "Bytes of price ladders a shard has room for.";
    "sizes.wallets" Number sizes_wallets = 1_000_000, "Wallets the exchange has room for, of which an owner takes three: its own, its proxy and its safe. A sixteenth is kept for those that the operator credits or links.";
    "sizes.markets" Number sizes_markets = 1 << 18, "Markets the exchange has room for, those that are over among them; a large venue has had 164000 in all.";
    "sizes.positions" Number sizes_positions = 1_000_000, "Positions a shard has room for: what a wallet has in a market, shares or open orders.";
    "sizes.positions_per_wallet" Number sizes_positions_per_wallet = 0, "Positions that one wallet may have in a shard; 0: a quarter of sizes.positions, or 1000 if that is more.";
    "sizes.connections" Number sizes_connections = 10_000, "Connections that may be open at once; the operator's listener has 64 of its own.";
    "sizes.connections_per_address" Number sizes_connections_per_address = 0, "Those that one address may have (an IPv6 /64 is one), unless it is one of trusted_proxies; 0: a quarter, or 1000 if that is more.";
    "sizes.digests" Number sizes_digests = 4_000_000, "Order digests a shard remembers, 120 bytes each, which are there from the start.";
    "auth.window_s" Number auth_window_s = 60, "Seconds a signed request may be off the clock. An order's own stamp may be 60 s ahead of it, whatever is set here.";
    "auth.read_window_s" Number auth_read_window_s = 300, "The same for reads, whose clients reuse one signature for many pages.";
    "auth.known_signers_bytes" Number auth_known_signers_bytes = 0, "Bytes for tables of signers seen often, 139264 each and shared out among the loops that check signatures: their orders' signatures are checked in about a third of the time. 0, the default, is off: this arithmetic is Outcry's own, and nobody outside has reviewed it yet.";
    "orders.min_size" Text orders_min_size = "5", "Smallest resting order in shares, for markets that do not say.";
    "orders.min_notional" Text orders_min_notional = "1", "Smallest marketable BUY, in USDC.";
    "orders.open_per_owner_max" Number orders_open_per_owner_max = 0, "Open orders that one owner may have in a shard; 0: a quarter of sizes.resting_orders, or 1000 if that is more.";
    "fees.rate" Number fees_rate = 0, "Taker fee rate in millionths, for markets that do not say.";
    "fees.exponent" Number fees_exponent = 1, "Exponent of the fee's p(1-p): 1 or 2.";
    "fees.builder_share_bps" Number fees_builder_share_bps = 0, "Builder's share of the fee, in basis points.";
    "wallet.asset_format" Text wallet_asset_format = "condition", "condition: <condition_id>:<index>. token: the token id.";
    "wallet.end_date_format" Text wallet_end_date_format = "date-time", "date-time, or polymarket.";
    "streams.unread_bytes_max" Number streams_unread_bytes_max = 16 << 20, "Bytes that a stream's client may leave unread for a moment; beyond 1 MiB it has 5 s.";
    "metrics.server_timing" Switch metrics_server_timing = true, "Say in every trading answer what its time went to (Server-Timing).";
    "limits.mode" Text limits_mode = "auto", "enforce: who is too fast waits or gets 429. warn: is told. off: nothing is counted. auto: enforce, in dev warn.";
    scopes {
        Catalog "Every catalog route. As COUNT/WINDOW in s or m, a longer window after a comma, or none.";
        Events "GET /events and /events/keyset.";
        Markets "GET /markets of the catalog, and /markets/keyset.";
        Listings "GET /events and GET /markets of the catalog together.";
        Tags "GET /tags.";
        Search "GET /public-search.";
        Clob "Every route of the CLOB but trading writes, and whatever has no route.";
        Root "GET /.";
        Book "GET /book.";
        Books "POST /books.";
        Price "GET /price.";
        Prices "POST /prices.";
        Midpoint "GET /midpoint.";
        PricesHistory "GET /prices-history.";
        BatchPricesHistory "POST /batch-prices-history.";
        DataTrades "GET /data/trades.";
        Account "GET /account.";
        Order "POST /order, /orders, /replace and /positions/….";
        Cancel "DELETE /order, /orders, /cancel-all, /cancel-market-orders; heartbeats and breakers.";
        Wallet "Every route of wallets' data.";
        Keys "POST /auth/api-key, GET /auth/derive-api-key.";
        NewWallets "POST /auth/api-key of a wallet that the exchange does not know yet.";
        Streams "Upgrades to /ws/market and /ws/user.";
        StreamMessages "Messages on streams, each with its answer.";
    }
}

/// A name that differs so little from a key's, and in less than half of its letters, is taken for a typing error; other
/// variables are somebody else's.
const TYPING_ERRORS_MAX: usize = 3;

/// Environment names that are not configuration keys.
const OTHER_VARIABLES: &[&str] = &["OUTCRY_ADMIN", "OUTCRY_ADMIN_TOKEN", "OUTCRY_LOG", "OUTCRY_CONFIG"];

impl Options {
    /// The defaults of `dev`: a tenth of every size, and answers that every web page may read. What is configured
    /// besides is taken as it is.
    #[must_use]
    pub fn of_dev() -> Self {
        let mut options = Self { allowed_origins: vec!["*".into()], ..Self::default() };
        for size in [
            &mut options.journal_disk_free_min,
            &mut options.sizes_resting_orders,
            &mut options.sizes_books_bytes,
            &mut options.sizes_wallets,
            &mut options.sizes_positions,
            &mut options.sizes_connections,
            &mut options.sizes_digests,
        ] {
            *size /= 10;
        }
        options
    }

    /// These options, overlaid by the file at `path` (if given) and the environment.
    pub fn read(
        self,
        path: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, String> {
        let mut options = self;
        if let Some(path) = path {
            if path.as_os_str().is_empty() {
                return Err("--config, or OUTCRY_CONFIG: got nothing; allowed: a file".to_owned());
            }
            let text = std::fs::read_to_string(path)
                .map_err(|fault| format!("config: {}: {fault}", path.display()))?;
            options.overlay_file(&text).map_err(|fault| format!("{}: {fault}", path.display()))?;
        }
        options.overlay_environment(environment.into_iter())?;
        Ok(options)
    }

    /// Takes over what `text` (TOML) says.
    pub fn overlay_file(&mut self, text: &str) -> Result<(), String> {
        let table: toml::Table = text.parse().map_err(|fault: toml::de::Error| placed(text, &fault))?;
        for (name, value) in &table {
            match value {
                toml::Value::Table(inner) => {
                    known_table(name)?;
                    for (key, value) in inner {
                        self.set(&format!("{name}.{key}"), value)?;
                    }
                }
                value if tables().any(|table| table == name) => {
                    return Err(format!("{name}: got {value}; allowed: a table, [{name}]"));
                }
                value => self.set(name, value)?,
            }
        }
        Ok(())
    }

    /// Takes over every variable that names a key. One that almost does, or lacks the table, is an error.
    pub fn overlay_environment(
        &mut self,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<(), String> {
        for (name, text) in variables {
            if !name.starts_with("OUTCRY_") || OTHER_VARIABLES.contains(&name.as_str()) {
                continue;
            }
            let Some(key) = KEYS.iter().find(|key| variable(key.name) == name) else {
                let known = of_last_part(|last| variable(last) == name).map(variable);
                let near = || near(&name, KEYS.iter().map(|key| variable(key.name)));
                if let Some(known) = known.or_else(near) {
                    return Err(format!("{name}: no such setting; did you mean {known}?"));
                }
                continue;
            };
            self.set_text(key, &text).map_err(|fault| format!("{name}: {fault}"))?;
            self.of_variables.push(key.name);
        }
        Ok(())
    }

    /// A fault that begins with a key, after the variable that gave its value, if one did.
    #[must_use]
    pub(super) fn with_variable(&self, fault: String) -> String {
        let (key, _) = fault.split_once(": ").unwrap_or_default();
        if self.of_variables.contains(&key) { format!("{}: {fault}", variable(key)) } else { fault }
    }

    /// Sets one key from a flag.
    pub fn overlay_flag(&mut self, name: &str, text: &str) -> Result<(), String> {
        let key = find(name)?;
        self.of_variables.retain(|of_variable| *of_variable != key.name);
        self.set_text(key, text)
    }

    /// The settings as TOML, one commented line for each: what `init` writes.
    #[must_use]
    pub fn commented(&self) -> String {
        self.render(|about, line| format!("# {about}\n{line}\n"))
    }

    /// The settings in force as TOML: what `config print` shows.
    #[must_use]
    pub fn printed(&self) -> String {
        self.render(|_, line| format!("{line}\n"))
    }

    /// The data directory as a path.
    #[must_use]
    pub fn data_path(&self) -> PathBuf {
        PathBuf::from(&self.data_dir)
    }

    /// The log's own path, if it is not the usual one.
    #[must_use]
    pub fn log_path(&self) -> Option<PathBuf> {
        // Absolute, as a later start may be from another folder.
        let absolute = |path| std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
        (!self.journal_log_path.is_empty()).then(|| absolute(&self.journal_log_path))
    }

    fn render(&self, line: impl Fn(&str, &str) -> String) -> String {
        let mut copy = self.clone();
        let mut text = String::new();
        let mut table = "";
        for key in KEYS {
            let (section, name) = key.name.split_once('.').unwrap_or(("", key.name));
            if section != table {
                text.push_str("\n[");
                text.push_str(section);
                text.push_str("]\n");
                table = section;
            }
            let value = match (key.slot)(&mut copy) {
                Slot::Text(text) => toml::Value::String(text.clone()).to_string(),
                Slot::Number(number) => number.to_string(),
                Slot::Switch(switch) => switch.to_string(),
                Slot::List(list) => {
                    toml::Value::Array(list.iter().cloned().map(toml::Value::String).collect()).to_string()
                }
            };
            text.push_str(&line(key.about, &format!("{name} = {value}")));
        }
        text
    }

    fn set(&mut self, name: &str, value: &toml::Value) -> Result<(), String> {
        let key = find(name)?;
        let wrong = |form: &str| Err(format!("{name}: got {value}; allowed: {form}"));
        match ((key.slot)(self), value) {
            (Slot::Text(slot), toml::Value::String(text)) => slot.clone_from(text),
            (Slot::Text(slot), toml::Value::Integer(number)) => *slot = number.to_string(),
            (Slot::Text(_), toml::Value::Float(_) | toml::Value::Boolean(_)) => {
                return wrong(&format!("a text, which stands in quotes: \"{value}\""));
            }
            (Slot::Text(_), _) => return wrong("a text"),
            (Slot::Number(slot), toml::Value::Integer(number)) => match u64::try_from(*number) {
                Ok(number) => *slot = number,
                Err(_) => return wrong(WHOLE_NUMBER),
            },
            (Slot::Number(_), _) => return wrong(WHOLE_NUMBER),
            (Slot::Switch(slot), toml::Value::Boolean(switch)) => *slot = *switch,
            (Slot::Switch(_), _) => return wrong("true or false"),
            (Slot::List(slot), toml::Value::Array(items)) => {
                *slot = items
                    .iter()
                    .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
                    .collect();
            }
            (Slot::List(slot), toml::Value::Integer(number)) => *slot = vec![number.to_string()],
            (Slot::List(_), _) => return wrong("a list"),
        }
        Ok(())
    }

    fn set_text(&mut self, key: &Key, text: &str) -> Result<(), String> {
        let name = key.name;
        if matches!((key.slot)(self), Slot::List(_)) && text.trim_start().starts_with('[') {
            // As the file has it.
            let table: Result<toml::Table, _> = format!("list = {text}").parse();
            let list = table.ok().and_then(|mut table| table.remove("list"));
            let form = "a list, as in 2,3 or [\"2\", \"3\"]";
            return self.set(name, &list.ok_or_else(|| format!("{name}: got {text:?}; allowed: {form}"))?);
        }
        let wrong = |form: &str| format!("{name}: got {text:?}; allowed: {form}");
        match (key.slot)(self) {
            Slot::Text(slot) => text.clone_into(slot),
            Slot::Number(slot) => {
                *slot = text.parse().map_err(|_| wrong(WHOLE_NUMBER))?;
            }
            Slot::Switch(slot) => {
                *slot = text.parse().map_err(|_| wrong("true or false"))?;
            }
            Slot::List(slot) => {
                *slot = text
                    .split(',')
                    .map(str::trim)
                    .filter(|item| !item.is_empty())
                    .map(str::to_owned)
                    .collect();
            }
        }
        Ok(())
    }
}

/// What a number may be, whatever its setting allows besides.
const WHOLE_NUMBER: &str = "a whole number, 0 to 18446744073709551615";

/// The variables of this process that may be settings. One that is not UTF-8 is refused; others are none of ours.
pub(super) fn environment() -> Result<Vec<(String, String)>, String> {
    settings_among(std::env::vars_os())
}

fn settings_among(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Vec<(String, String)>, String> {
    let ours = variables.filter(|(name, _)| {
        name.as_bytes().starts_with(b"OUTCRY_") && !OTHER_VARIABLES.iter().any(|other| name == other)
    });
    let read = ours.map(|(name, text)| match (name.into_string(), text.into_string()) {
        (Ok(name), Ok(text)) => Ok((name, text)),
        (Ok(name), Err(text)) => Err(format!("{name}: got {}; allowed: UTF-8", text.display())),
        (Err(name), _) => Err(format!("{}: a variable's name that is not UTF-8", name.display())),
    });
    read.collect()
}

/// The environment's name of a key: `listen.http` is `OUTCRY_LISTEN_HTTP`.
fn variable(key: &str) -> String {
    format!("OUTCRY_{}", key.to_ascii_uppercase().replace('.', "_"))
}

/// What is wrong with a TOML file, after its line and column, counted from 1 in characters.
#[must_use]
pub fn placed(text: &str, fault: &toml::de::Error) -> String {
    // The library says it in words of Rust's.
    let too_large = fault.message().starts_with("invalid type: integer")
        || fault.message().ends_with("value was too large");
    let what =
        if too_large { "a number is too large; allowed: up to 9223372036854775807" } else { fault.message() };
    let Some(before) = fault.span().and_then(|span| text.get(..span.start)) else {
        return what.to_owned();
    };
    let last = before.rsplit('\n').next().unwrap_or_default();
    format!("line {}, column {}: {}", before.matches('\n').count() + 1, last.chars().count() + 1, what)
}

/// Refuses a table without settings, which would go unnoticed if it were empty.
fn known_table(name: &str) -> Result<(), String> {
    if tables().any(|table| table == name) {
        return Ok(());
    }
    Err(match near(name, tables().map(str::to_owned)) {
        Some(known) => format!("[{name}]: no such table; did you mean [{known}]?"),
        None => format!("[{name}]: no such table; {ALL_SETTINGS}"),
    })
}

fn tables() -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter_map(|key| key.name.split_once('.')).map(|(table, _)| table)
}

fn find(name: &str) -> Result<&'static Key, String> {
    if let Some(key) = KEYS.iter().find(|key| key.name == name) {
        return Ok(key);
    }
    let known = of_last_part(|last| last == name).map(str::to_owned);
    Err(match known.or_else(|| near(name, KEYS.iter().map(|key| key.name.to_owned()))) {
        Some(known) => format!("{name}: no such setting; did you mean {known}?"),
        None => format!("{name}: no such setting; {ALL_SETTINGS}"),
    })
}

/// The first setting in a table whose name without it is the one meant.
fn of_last_part(is_meant: impl Fn(&str) -> bool) -> Option<&'static str> {
    let mut names = KEYS.iter().map(|key| key.name);
    names.find(|name| name.split_once('.').is_some_and(|(_, last)| is_meant(last)))
}

/// Where the names are, for whoever wrote none that is near one.
const ALL_SETTINGS: &str = "`outcry config print` shows all there are";

/// The known name that takes the fewest edits to reach, if those are few, and not most of what was written.
fn near(name: &str, known: impl Iterator<Item = String>) -> Option<String> {
    let distance = |candidate: &String| edits(name.as_bytes(), candidate.as_bytes());
    let nearest = known.min_by_key(distance)?;
    let few = TYPING_ERRORS_MAX.min(name.len() / 2);
    (distance(&nearest) <= few).then_some(nearest)
}

/// Insertions, deletions and replacements that turn `left` into `right`.
fn edits(left: &[u8], right: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests;
