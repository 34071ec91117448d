//! `outcry import gamma FILE…`: reads files here, sends rows in batches, says what came of each.
//!
//! All files are read and merged before anything is sent, so their order makes no difference.
//! Rows go out as Gamma JSON again, events before the markets that name them, in batches that fit
//! a request's body; the exchange judges every row itself. A batch that the exchange is too busy
//! for is sent again: a row that was taken changes nothing the second time.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use super::client::Client;
use crate::catalog::{Fields, Import, ImportedMarket, MarketDefaults, items, quoted};
use crate::domain::{FeeSchedule, Mode, Shares, Tick};
use crate::server::command::ImportCommand;
use crate::server::run::{complain, say};

/// Bytes of one batch: half of what a request's body may have, and above the largest row.
const BATCH_BYTES: usize = 512 << 10;
const _: () = assert!(crate::catalog::TEXT_BYTES_MAX < BATCH_BYTES, "a row fits a batch");

/// How often, and how far apart, a batch is tried while the exchange is busy.
const TRIES_MAX: u32 = 50;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Refused rows that the summary names one by one; the count is always whole.
const NAMED_MAX: usize = 1_000;

/// What the exchange said about all batches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    counts: [u64; COUNTED.len()],
    /// Rows that were refused or not taken whole, one line each.
    pub(crate) lines: Vec<String>,
}

/// The counts of an answer, by name.
const COUNTED: [&str; 7] = [
    "eventsAdded",
    "eventsUpdated",
    "eventsUnchanged",
    "marketsAdded",
    "marketsUpdated",
    "marketsUnchanged",
    "marketsOlder",
];

impl Tally {
    /// One count by its name.
    pub(crate) fn count(&self, name: &str) -> u64 {
        COUNTED.iter().position(|counted| *counted == name).map_or(0, |index| self.counts[index])
    }

    fn add(&mut self, body: &str) {
        let fields = Fields::parse(body).unwrap_or_default();
        for (count, name) in self.counts.iter_mut().zip(COUNTED) {
            *count += fields.words(name).and_then(|words| words.parse::<u64>().ok()).unwrap_or(0);
        }
        for name in ["refused", "kept"] {
            let rows = fields.raw(name).and_then(items).unwrap_or_default();
            self.lines.extend(rows.iter().filter_map(|row| Fields::parse(row)).map(|row| {
                let words = |name| row.words(name).unwrap_or_default();
                format!(
                    "{}: {}: got {}; allowed: {}",
                    words("row"),
                    words("field"),
                    words("got"),
                    words("allowed")
                )
            }));
        }
    }
}

/// Does `import gamma`.
pub(crate) fn run(command: &ImportCommand) -> Result<ExitCode, String> {
    let ImportCommand::Gamma { admin, files } = command;
    let mut import = Import::default();
    for path in files {
        let bytes = std::fs::read(path).map_err(|fault| format!("{}: {fault}", path.display()))?;
        import.add_file(&bytes, &guess()).map_err(|fault| format!("{}: {fault}", path.display()))?;
    }
    let mut client = Client::of(admin)?;
    let tally = send(&mut client, &import, |done, all| complain(&format!("import: {done} of {all} rows")))?;
    let refused = !import.refused().is_empty();
    say(&summary(files.len(), &import, &tally))?;
    Ok(if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Sends everything that was read; `progress` is told how many rows of how many are done.
pub(crate) fn send(
    client: &mut Client,
    import: &Import,
    mut progress: impl FnMut(usize, usize),
) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let all = import.events().len() + import.markets().len();
    let mut done = 0;
    for (batch, rows) in batches(import) {
        tally.add(&post(client, &batch)?);
        done += rows;
        progress(done, all);
    }
    Ok(tally)
}

fn post(client: &mut Client, batch: &str) -> Result<String, String> {
    for _ in 1..TRIES_MAX {
        let answer = client.post("/import", batch)?;
        if answer.status != 503 {
            return answer.success();
        }
        std::thread::sleep(TRY_AGAIN_AFTER);
    }
    client.post("/import", batch)?.success()
}

/// Arrays of rows, each with how many it holds; events first.
fn batches(import: &Import) -> Vec<(String, usize)> {
    let events = import.events().iter().map(|event| event.text.clone());
    let mut batches: Vec<(String, usize)> = Vec::new();
    let mut batch = String::from("[");
    let mut rows = 0;
    for row in events.chain(import.markets().iter().map(with_event)) {
        if rows > 0 && BATCH_BYTES < batch.len() + row.len() {
            batch.push(']');
            batches.push((std::mem::replace(&mut batch, String::from("[")), rows));
            rows = 0;
        }
        if rows > 0 {
            batch.push(',');
        }
        batch.push_str(&row);
        rows += 1;
    }
    if rows > 0 {
        batch.push(']');
        batches.push((batch, rows));
    }
    batches
}

/// A market's text with the bare name of its event, as the import reads it.
fn with_event(market: &ImportedMarket) -> String {
    let Some(event) = &market.event else {
        return market.text.clone();
    };
    let inner = market.text.strip_suffix('}').expect("a text is an object");
    let comma = if inner.ends_with('{') { "" } else { "," };
    format!("{inner}{comma}\"events\":[{{\"id\":{}}}]}}", quoted(event))
}

/// What the exchange will put where a row is silent is its own business; here it only decides
/// what the summary says, and that does not depend on it.
fn guess() -> MarketDefaults {
    let tick = Tick::new(100).expect("0.01 is a tick");
    MarketDefaults { tick, min_size: Shares(5_000_000), fee: FeeSchedule::FREE }
}

fn summary(files: usize, import: &Import, tally: &Tally) -> String {
    let markets = import.markets();
    let count = |test: &dyn Fn(&ImportedMarket) -> bool| markets.iter().filter(|market| test(market)).count();
    let mut text = format!(
        "{files} files: {} events, {} conditions: {} tradable, {} closed ({} of them resolved), {} said twice\n",
        import.events().len(),
        markets.len(),
        count(&ImportedMarket::trades),
        count(&|market| !market.trades()),
        count(&|market| market.mode == Mode::Resolved),
        import.repeated()
    );
    for (kind, names) in [("events", &COUNTED[..3]), ("markets", &COUNTED[3..])] {
        let parts: Vec<String> = names
            .iter()
            .map(|name| format!("{} {}", tally.count(name), name.trim_start_matches(kind).to_lowercase()))
            .collect();
        let _ = writeln!(text, "{kind}: {}", parts.join(", "));
    }
    for market in markets.iter().filter(|market| market.tokens.is_none()) {
        let _ = writeln!(text, "catalog only: {}: no clobTokenIds, so it does not trade", market.row());
    }
    let lines: Vec<String> = import
        .refused()
        .iter()
        .map(|row| format!("refused: {row}"))
        .chain(tally.lines.iter().map(|line| format!("not taken: {line}")))
        .collect();
    for line in lines.iter().take(NAMED_MAX) {
        text.push_str(line);
        text.push('\n');
    }
    let _ = writeln!(text, "{} rows could not be taken whole", lines.len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import(markets: usize, bytes: usize) -> Import {
        let row = |n: usize| {
            format!(
                r#"{{"id":"{n}","conditionId":"0x{n:064x}","clobTokenIds":"[\"{n}1\",\"{n}2\"]","description":"{}"}}"#,
                "x".repeat(bytes)
            )
        };
        let rows: Vec<String> = (1..=markets).map(row).collect();
        let text = format!(r#"[{{"id":"e","title":"T","markets":[{}]}}]"#, rows.join(","));
        Import::read(text.as_bytes(), &guess()).expect("a file")
    }

    #[test]
    fn what_is_sent_reads_as_what_was_read() {
        let first = import(5, 10);
        let batches = batches(&first);
        assert_eq!(batches.len(), 1);
        let again = Import::read(batches[0].0.as_bytes(), &guess()).expect("a batch");
        assert_eq!(again.refused(), &[]);
        assert_eq!((again.events(), again.markets()), (first.events(), first.markets()));
    }

    #[test]
    fn batches_fit_a_body_and_lose_no_row() {
        let all = import(9, 200 << 10);
        let batches = batches(&all);
        assert!(batches.iter().all(|(batch, _)| batch.len() < BATCH_BYTES + 2));
        assert_eq!(batches.iter().map(|(_, rows)| rows).sum::<usize>(), 10);
    }

    #[test]
    fn the_summary_counts_and_names() {
        let import = import(2, 1);
        let mut tally = Tally::default();
        tally.add(r#"{"eventsAdded":1,"marketsAdded":1,"marketsOlder":1,"refused":[{"row":"market 2","field":"id","got":"2","allowed":"another"}],"kept":[]}"#);
        let text = summary(1, &import, &tally);
        assert_eq!(
            text,
            "1 files: 1 events, 2 conditions: 2 tradable, 0 closed (0 of them resolved), 0 said twice\n\
             events: 1 added, 0 updated, 0 unchanged\n\
             markets: 1 added, 0 updated, 0 unchanged, 1 older\n\
             not taken: market 2: id: got 2; allowed: another\n\
             1 rows could not be taken whole\n"
        );
    }
}
