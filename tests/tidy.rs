//! The house rules as a test: which room may use which, where `unsafe` may be, which module names
//! which outside crate, and which words never stay in the sources.
//!
//! The tables below are the rules; a room, crate or file that is not in them fails. The checks are
//! functions from text to complaints, so that the tests at the end can plant an offence and see it
//! found: a checker that finds nothing proves nothing.
//!
//! Sources are read as text, with comments, strings and characters blanked out. That misses what a
//! macro would put together, which nobody here does.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its own sources has to stop")]

use std::collections::BTreeSet;
use std::path::Path;

/// Each room, lowest first, and the rooms that it may use, all of which are above it in this table.
const MAY_USE: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("memory", &["domain"]),
    ("account", &["domain", "memory"]),
    ("auth", &["domain", "memory"]),
    ("book", &["domain", "memory"]),
    ("catalog", &["domain"]),
    ("http", &["domain"]),
    ("journal", &["domain", "memory"]),
    ("json", &["domain"]),
    ("limits", &["memory"]),
    ("registry", &["domain", "memory"]),
    ("stats", &[]),
    ("topology", &[]),
    ("wallet", &["domain", "memory"]),
    ("ledger", &["domain", "memory", "catalog", "journal"]),
    ("shard", &["domain", "memory", "account", "book", "journal", "registry", "ledger"]),
    ("registrar", &["domain", "memory", "auth", "catalog", "journal", "registry", "ledger"]),
    ("reader", &["domain", "memory", "auth", "catalog", "http", "journal", "json", "wallet", "ledger"]),
    (
        "server",
        &[
            "domain",
            "memory",
            "auth",
            "catalog",
            "http",
            "journal",
            "json",
            "limits",
            "registry",
            "stats",
            "topology",
            "ledger",
            "shard",
            "registrar",
            "reader",
        ],
    ),
    ("main", &["server"]),
];

/// The only files that may lift `unsafe_code`.
const UNSAFE_IN: &[&str] = &[
    "src/memory/",
    "src/journal/checksum.rs",
    "src/journal/log.rs",
    "src/server/machine/system.rs",
    "tests/common/counting.rs",
];

/// Each outside crate and where it may be named: a file, or a folder that ends in `/`.
const CRATE_LIVES_IN: &[(&str, &[&str])] = &[
    ("base64", &["src/auth.rs", "src/auth/", "src/http/websocket.rs", "src/json/"]),
    ("clap", &["src/server/plan/command.rs", "src/server/process/run.rs", "src/main.rs"]),
    ("crc_fast", &["src/journal/"]),
    ("crc32fast", &["src/reader/feed/"]),
    (
        "crossbeam",
        &["src/server/threads/mesh.rs", "src/server/threads/shared.rs", "src/server/process/snapshotter.rs"],
    ),
    ("flate2", &["src/catalog.rs", "src/catalog/"]),
    ("getrandom", &["src/server/"]),
    ("hdrhistogram", &["src/server/operator/metrics.rs"]),
    ("hmac", &["src/auth.rs", "src/auth/"]),
    ("jiff", &["src/json.rs", "src/json/"]),
    ("keccak_asm", &["src/auth.rs", "src/auth/"]),
    (
        "libc",
        &[
            "src/journal/",
            "src/memory/mapping.rs",
            "src/server/machine/system.rs",
            "src/server/operator/probes.rs",
        ],
    ),
    ("ruint", &["src/auth/known.rs", "src/auth/known/", "src/json.rs", "src/json/"]),
    ("socket2", &["src/server/connections/socket.rs"]),
    ("rustix", &["src/journal/", "src/memory/mapping.rs", "src/memory/pages.rs", "src/server/"]),
    ("secp256k1", &["src/auth.rs", "src/auth/"]),
    ("serde", &["src/catalog.rs", "src/catalog/"]),
    ("serde_json", &["src/catalog.rs", "src/catalog/", "src/json.rs", "src/json/", "src/reader/"]),
    ("sha1_smol", &["src/http/websocket.rs", "src/reader.rs", "src/reader/"]),
    ("sha2", &["src/auth.rs", "src/auth/", "src/ledger.rs", "src/ledger/"]),
    ("signal_hook", &["src/server/process/signals.rs", "perf/src/leftovers.rs"]),
    ("subtle", &["src/auth.rs", "src/auth/"]),
    ("tantivy", &["src/catalog/search.rs", "src/catalog/search/"]),
    ("toml", &["src/server/plan/options.rs"]),
    ("tracing", &["src/server.rs", "src/server/"]),
    ("tracing_subscriber", &["src/server.rs", "src/server/"]),
    ("uuid", &["src/journal/"]),
];

/// The world outside: only these rooms may name it, so that everything else can be replayed.
/// Tests may read files wherever they are.
const WORLD_LIVES_IN: &[(&str, &[&str])] = &[
    ("std::net", &["src/server/"]),
    ("std::fs", &["src/server/", "src/journal/", "src/journal.rs"]),
    ("std::env", &["src/server/"]),
    ("SystemTime", &["src/server/"]),
    ("Instant", &["src/server/"]),
    ("Mutex", NOT_ON_THE_WAY),
    ("RwLock", NOT_ON_THE_WAY),
    ("Condvar", NOT_ON_THE_WAY),
];

/// Where locks are: no order passes there on its way to its answer.
const NOT_ON_THE_WAY: &[&str] = &[
    "src/journal/disk.rs",
    "src/journal/history.rs",
    "src/journal/snapshot/shelf.rs",
    "src/server/machine/view.rs",
];

/// Words that mark unfinished work. Put together here, because this file would offend otherwise.
const UNFINISHED: &[&str] =
    &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("todo", "!(")];

/// One source file: its path from the package's root, and its text.
struct Source {
    path: String,
    text: String,
}

/// Every file below `folder` whose name ends in one of `endings`, in the order of their paths.
fn sources(folder: &str, endings: &[&str]) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                if !["target", "corpus", "artifacts", "__pycache__"].contains(&name) {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push(Source {
                    path: path.strip_prefix(root).unwrap().to_str().unwrap().to_owned(),
                    text,
                });
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// The room that a path below `src` belongs to; the crate's root is above all rooms.
fn room_of(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("src/")?;
    let room = inside.split('/').next()?.trim_end_matches(".rs");
    (room != "lib").then_some(room)
}

/// The text with comments, strings and character literals blanked out.
fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let skipped = match rest {
            [b'/', b'/', ..] => rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()),
            [b'/', b'*', ..] => block_comment_bytes(rest),
            [b'"', ..] => quoted_bytes(rest, b'"'),
            [b'r', b'"' | b'#', ..] if !code.last().copied().is_some_and(is_word) => raw_string_bytes(rest),
            [b'\'', b'\\', ..] | [b'\'', _, b'\'', ..] => quoted_bytes(rest, b'\''),
            _ => 0,
        };
        if skipped == 0 {
            code.push(bytes[at]);
            at += 1;
        } else {
            code.push(b' ');
            at += skipped;
        }
    }
    String::from_utf8_lossy(&code).into_owned()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn block_comment_bytes(text: &[u8]) -> usize {
    let mut depth = 0_usize;
    for at in 0..text.len() {
        match &text[at..] {
            [b'/', b'*', ..] => depth += 1,
            [b'*', b'/', ..] => {
                depth -= 1;
                if depth == 0 {
                    return at + 2;
                }
            }
            _ => {}
        }
    }
    text.len()
}

fn quoted_bytes(text: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// The length of `r"…"` or `r#"…"#`; 0 if this is a raw identifier or a plain `r`.
fn raw_string_bytes(text: &[u8]) -> usize {
    let hashes = text[1..].iter().take_while(|&&byte| byte == b'#').count();
    if text.get(1 + hashes) != Some(&b'"') {
        return 0;
    }
    let end: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let body = &text[hashes + 2..];
    body.windows(end.len())
        .position(|window| window == end.as_slice())
        .map_or(text.len(), |at| hashes + 2 + at + end.len())
}

/// Every place in `code` where `name` is a whole word.
fn words<'a>(code: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(name).map(|(at, _)| at).filter(move |&at| {
        let after = code.as_bytes().get(at + name.len()).copied();
        !code[..at].bytes().next_back().is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// Every place in `code` where `name` starts a path: a word that is not the tail of another path.
fn mentions<'a>(code: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    words(code, name).filter(move |&at| {
        let before = &code[..at];
        match before.strip_suffix("::") {
            Some(head) => head.bytes().next_back().is_none_or(|byte| !is_word(byte) && byte != b'>'),
            None => !before.trim_end().ends_with('.'),
        }
    })
}

/// The first names of what follows `crate::`, `outcry::` or enough `super::` in this file.
fn rooms_named(path: &str, code: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for root in ["crate", "outcry"] {
        for at in mentions(code, root) {
            if let Some(rest) = code[at + root.len()..].trim_start().strip_prefix("::") {
                first_names(rest, &mut named);
            }
        }
    }
    let depth = path.matches('/').count();
    for at in mentions(code, "super") {
        let mut rest = &code[at..];
        let mut climbed = 0;
        while let Some(above) = rest.trim_start().strip_prefix("super::") {
            climbed += 1;
            rest = above;
        }
        // One more than the depth is the root, as seen from a module inside the file.
        if climbed == depth || climbed == depth + 1 {
            let mut above = BTreeSet::new();
            first_names(rest, &mut above);
            named.extend(above.into_iter().filter(|name| MAY_USE.iter().any(|(room, _)| room == name)));
        }
    }
    named
}

/// `a::b` gives a; `{a::b, c}` gives a and c.
fn first_names(rest: &str, named: &mut BTreeSet<String>) {
    let rest = rest.trim_start();
    let Some(group) = rest.strip_prefix('{') else {
        named.insert(rest.bytes().take_while(|&byte| is_word(byte)).map(char::from).collect());
        return;
    };
    let mut depth = 0_usize;
    let mut at_name = true;
    for (at, byte) in group.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => break,
            b'}' => depth -= 1,
            b',' if depth == 0 => at_name = true,
            byte if at_name && is_word(byte) => {
                at_name = false;
                first_names(&group[at..], named);
            }
            _ => {}
        }
    }
}

/// What is wrong with the order of the table itself.
fn table_complaints(table: &[(&str, &[&str])]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (index, (room, uses)) in table.iter().enumerate() {
        for used in *uses {
            if !table[..index].iter().any(|(above, _)| above == used) {
                complaints.push(format!("MAY_USE: {room} may use {used}, which does not stand above it"));
            }
        }
    }
    complaints
}

/// What is wrong with one file's edges.
fn edge_complaints(path: &str, text: &str) -> Vec<String> {
    let Some(room) = room_of(path) else { return Vec::new() };
    let Some((_, may_use)) = MAY_USE.iter().find(|(name, _)| *name == room) else {
        return vec![format!("{path}: room {room} is not in MAY_USE; give it a place in the order")];
    };
    rooms_named(path, &code_only(text))
        .into_iter()
        .filter(|named| named != room && !named.is_empty() && !may_use.contains(&named.as_str()))
        .map(|named| format!("{path}: {room} names {named}, which MAY_USE does not allow"))
        .collect()
}

/// True if `path` is one of `places` or below one of them.
fn lies_in(path: &str, places: &[&str]) -> bool {
    places.iter().any(|place| path == *place || (place.ends_with('/') && path.starts_with(place)))
}

/// What is wrong with the outside names in one file.
fn outside_complaints(path: &str, text: &str) -> Vec<String> {
    let code = code_only(text);
    let mut complaints = Vec::new();
    for (name, places) in CRATE_LIVES_IN {
        let named = mentions(&code, name).any(|at| {
            let after = code[at + name.len()..].trim_start();
            after.starts_with("::") || code[..at].trim_end().ends_with("use")
        });
        if named && !lies_in(path, places) {
            complaints.push(format!("{path}: names the crate {name}, which lives in {}", places.join(", ")));
        }
    }
    for (name, places) in WORLD_LIVES_IN {
        let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
        if words(&code, name).next().is_some() && !lies_in(path, places) && !is_test {
            complaints.push(format!("{path}: names {name}; only {} may", places.join(", ")));
        }
    }
    complaints
}

/// True if this file lifts the ban on `unsafe`, or uses it.
fn has_unsafe(text: &str) -> bool {
    let code = code_only(text);
    mentions(&code, "unsafe").next().is_some()
        || code.split("allow(").skip(1).any(|rest| rest.split(')').next().unwrap().contains("unsafe_code"))
}

/// What is wrong with the list of files that have `unsafe` in them.
fn unsafe_complaints(files: &[&str]) -> Vec<String> {
    let others = files.iter().filter(|path| !lies_in(path, UNSAFE_IN));
    others.map(|path| format!("{path}: unsafe lives in {}", UNSAFE_IN.join(", "))).collect()
}

/// The unfinished work in one file.
fn unfinished_complaints(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| UNFINISHED.iter().any(|word| line.contains(word)))
        .map(|(index, line)| format!("{path}:{}: unfinished: {}", index + 1, line.trim()))
        .collect()
}

/// What the table of files at the head of a room lacks, and what it has beside.
fn map_complaints(path: &str, text: &str) -> Vec<String> {
    let head = text.lines().map_while(|line| line.strip_prefix("//! ").or(line.strip_prefix("//!")));
    let table =
        head.skip_while(|line| !line.starts_with("| file |")).take_while(|line| line.starts_with('|'));
    let rows: Vec<&str> = table.skip(2).filter_map(|row| row.split('|').nth(1)).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    // A file of another file, such as `account/whole`, is in a table by its own right.
    let names = rows.iter().flat_map(|first| first.split('`').skip(1).step_by(2));
    let named: BTreeSet<String> = names.filter(|name| !name.contains('/')).map(str::to_owned).collect();
    let lines: Vec<&str> = text.lines().collect();
    let is_for_tests = |at: usize| {
        let attributes = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
        attributes.into_iter().any(|line| line.starts_with("#[cfg("))
    };
    let module = |(at, line): (usize, &&'_ str)| {
        let (before, rest) = line.split_once("mod ")?;
        let name = rest.strip_suffix(';')?;
        let begins = before.is_empty() || before.starts_with("pub");
        (begins && !is_for_tests(at)).then(|| name.to_owned())
    };
    let modules: BTreeSet<String> = lines.iter().enumerate().filter_map(module).collect();
    let different = named.symmetric_difference(&modules);
    different
        .map(|name| format!("{path}: `{name}` is in its table of files or among its modules only"))
        .collect()
}

#[track_caller]
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn rooms_use_only_the_rooms_below_them() {
    let mut complaints = table_complaints(MAY_USE);
    for source in sources("src", &[".rs"]) {
        complaints.extend(edge_complaints(&source.path, &source.text));
    }
    assert_none(&complaints);
}

#[test]
fn every_edge_between_rooms_is_used() {
    let mut used: BTreeSet<(String, String)> = BTreeSet::new();
    for source in sources("src", &[".rs"]) {
        if let Some(room) = room_of(&source.path) {
            let named = rooms_named(&source.path, &code_only(&source.text));
            used.extend(named.into_iter().map(|named| (room.to_owned(), named)));
        }
    }
    let edges = MAY_USE.iter().flat_map(|(room, uses)| uses.iter().map(move |name| (*room, *name)));
    let complaints: Vec<_> = edges
        .filter(|(room, name)| !used.contains(&((*room).to_owned(), (*name).to_owned())))
        .map(|(room, name)| format!("MAY_USE: {room} may use {name} and does not"))
        .collect();
    assert_none(&complaints);
}

#[test]
fn an_outside_crate_is_named_only_where_it_lives() {
    let mut complaints = Vec::new();
    for source in sources("src", &[".rs"]) {
        complaints.extend(outside_complaints(&source.path, &source.text));
    }
    assert_none(&complaints);
}

/// The crates that a section of the manifest names, as code names them.
fn crates_of<'a>(manifest: &'a str, section: &str) -> impl Iterator<Item = String> + 'a {
    let lines = manifest.split(&format!("\n[{section}]\n")).nth(1).unwrap().lines();
    let rows = lines.take_while(|line| !line.starts_with('['));
    rows.filter(|line| line.contains('=') && !line.starts_with('#'))
        .map(|line| line.split('=').next().unwrap().trim().replace('-', "_"))
}

#[test]
fn every_dependency_has_a_home_and_is_used() {
    let manifest = include_str!("../Cargo.toml");
    let homeless = crates_of(manifest, "dependencies")
        .filter(|name| !CRATE_LIVES_IN.iter().any(|(known, _)| known == name))
        .map(|name| format!("Cargo.toml: {name} has no home in CRATE_LIVES_IN"));
    let mut complaints: Vec<String> = homeless.collect();
    for (section, folders) in
        [("dependencies", &["src"][..]), ("dev-dependencies", &["src", "tests", "benches"])]
    {
        let sources = folders.iter().flat_map(|folder| sources(folder, &[".rs"]));
        let all: String = sources.map(|source| code_only(&source.text)).collect();
        let unused = crates_of(manifest, section).filter(|name| mentions(&all, name).next().is_none());
        complaints.extend(unused.map(|name| format!("Cargo.toml: {name} is used nowhere; drop it")));
    }
    assert_none(&complaints);
}

#[test]
fn unsafe_lives_only_in_the_listed_files() {
    let sources: Vec<_> =
        ["src", "tests", "benches", "perf"].iter().flat_map(|folder| sources(folder, &[".rs"])).collect();
    let files: Vec<_> =
        sources.iter().filter(|source| has_unsafe(&source.text)).map(|source| source.path.as_str()).collect();
    assert_none(&unsafe_complaints(&files));
}

#[test]
fn nothing_is_left_unfinished() {
    let mut complaints = Vec::new();
    let texts = [".rs", ".py", ".mjs", ".toml", ".md"];
    let scripts = ["check", "instructions", "perf", "record-to-readme", "venvs"];
    let endings = [&texts[..], &scripts[..]].concat();
    for folder in ["src", "tests", "benches", "perf", "scripts"] {
        for source in sources(folder, &endings) {
            complaints.extend(unfinished_complaints(&source.path, &source.text));
        }
    }
    assert_none(&complaints);
}

#[test]
fn a_room_s_table_of_files_has_every_file_and_no_other() {
    let rooms = sources("src", &[".rs"]);
    let complaints = rooms.iter().flat_map(|source| map_complaints(&source.path, &source.text));
    assert_none(&complaints.collect::<Vec<_>>());
    assert!(
        rooms
            .iter()
            .any(|source| !map_complaints(&source.path, &source.text.replace("mod leave;", "")).is_empty())
    );
}

#[test]
fn a_planted_edge_is_found_however_it_is_spelled() {
    for planted in [
        "use crate::server::plan::Plan;",
        "use crate::{domain::Price, server};",
        "fn f() { crate::shard::Shard::new(); }",
        "use super::super::reader;",
        "use ::outcry::reader::Reader;",
        "use crate::book::{Book, naive::Twin};",
    ] {
        let complaints = edge_complaints("src/journal/log.rs", planted);
        assert_eq!(complaints.len(), 1, "{planted}: {complaints:?}");
    }
    let up = edge_complaints("src/domain/price.rs", "use crate::memory::ring;");
    assert_eq!(up, ["src/domain/price.rs: domain names memory, which MAY_USE does not allow"]);
}

#[test]
fn allowed_edges_comments_and_strings_are_no_offence() {
    let text = r##"
        //! See [`crate::server`].
        /* crate::shard /* crate::reader */ */
        use crate::domain::{Price, ids::Address};
        use super::frame;
        const TEXT: &str = "crate::server \" crate::shard";
        const RAW: &str = r#"crate::server " tantivy::x"#;
        const QUOTE: char = '"'; const LIFE: &'static str = "unsafe";
    "##;
    assert_none(&edge_complaints("src/journal/log.rs", text));
    assert_none(&outside_complaints("src/journal/log.rs", text));
    assert!(!has_unsafe(text));
}

#[test]
fn a_room_without_a_place_in_the_table_is_found() {
    assert_eq!(edge_complaints("src/helpers.rs", "").len(), 1);
    assert_eq!(edge_complaints("src/helpers/deep.rs", "").len(), 1);
}

#[test]
fn a_table_that_points_upwards_is_found() {
    assert_eq!(table_complaints(&[("low", &["high"]), ("high", &[])]).len(), 1);
    assert_eq!(table_complaints(&[("low", &["low"])]).len(), 1);
}

#[test]
fn a_planted_crate_a_clock_and_a_socket_are_found() {
    for planted in [
        "use socket2::Socket;",
        "use rustix::mm::mmap;",
        "fn f() { let now = std::time::SystemTime::now(); }",
        "fn f() { Instant::now(); }",
        "use std::net::TcpStream;",
    ] {
        assert_eq!(outside_complaints("src/shard/place.rs", planted).len(), 1, "{planted}");
    }
    assert_none(&outside_complaints("src/server/connections/socket.rs", "use socket2::Socket;"));
}

#[test]
fn planted_unsafe_is_found_outside_its_files() {
    assert!(has_unsafe("fn f() { unsafe { g() } }"));
    assert!(has_unsafe("#![allow(unsafe_code, reason = \"no\")]"));
    assert_none(&unsafe_complaints(&[
        "src/memory/cells.rs",
        "src/journal/log.rs",
        "src/server/machine/system.rs",
    ]));
    assert_eq!(unsafe_complaints(&["src/journal/writer.rs"]).len(), 1);
    assert_eq!(unsafe_complaints(&["src/server/machine/system.rs", "tests/tidy.rs"]).len(), 1);
}

#[test]
fn a_planted_unfinished_word_is_found() {
    let planted = format!("// {}: later", UNFINISHED[0]);
    assert_eq!(unfinished_complaints("src/lib.rs", &planted).len(), 1);
}
