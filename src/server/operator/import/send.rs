//! Sending: batches ahead of their answers, and what the answers say.
//!
//! One thread reads rows and sends batches, at most [`WINDOW`] ahead of the answers; the caller's
//! thread takes the answers in, so that neither side ever waits for the other to read.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::survey::{File, place_name};
use crate::catalog::{Fields, FileFault, Import, Rows, items, market_row};
use crate::server::operator::client::{Client, Requests};
use crate::server::operator::terminal::on_one_line;

/// Bytes of one batch. The exchange reads a batch in one turn of the loop on which it also answers
/// reads, so it is small; a row that is longer goes alone.
const BATCH_BYTES: usize = 128 << 10;

/// Batches under way: enough that the exchange never waits for the next one, and together a megabyte.
const WINDOW: usize = 8;

/// How often, and how far apart, a batch is tried while the exchange is busy.
const TRIES_MAX: u32 = 50;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// What the exchange said about all batches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    counts: [u64; COUNTED.len()],
    /// What was refused or not taken, one line each.
    pub(super) lines: Vec<String>,
    /// How many rows these lines are about.
    pub(super) rows: usize,
    /// How many rows were refused.
    pub(super) refused: usize,
}

/// The counts of an answer, by name.
const COUNTED: [&str; 10] = [
    "eventsAdded",
    "eventsUpdated",
    "eventsUnchanged",
    "itemsAdded",
    "itemsUpdated",
    "itemsUnchanged",
    "marketsAdded",
    "marketsUpdated",
    "marketsUnchanged",
    "marketsOlder",
];

/// The kinds of rows as counts name them, as people do, and where their counts are.
const KINDS: [(&str, &str, Range<usize>); 3] = [
    ("events", "events", 0..3),
    ("items", "tags, series and creators by themselves", 3..6),
    ("markets", "markets", 6..10),
];

impl Tally {
    /// Every kind as counts name it and as people do, with its counts in words.
    pub(super) fn counts(&self) -> impl Iterator<Item = (&'static str, &'static str, Vec<String>)> {
        KINDS.into_iter().map(|(kind, said, places)| {
            let words = |place: usize| COUNTED[place].trim_start_matches(kind).to_lowercase();
            (kind, said, places.map(|place| format!("{} {}", self.counts[place], words(place))).collect())
        })
    }

    /// Takes in an answer; `locate` finds the place of a row that the answer names.
    pub(super) fn add(&mut self, body: &str, locate: impl Fn(&str) -> Option<String>) {
        let fields = Fields::parse(body).unwrap_or_default();
        let number = |name| fields.words(name).and_then(|words| words.parse::<u64>().ok()).unwrap_or(0);
        for (count, name) in self.counts.iter_mut().zip(COUNTED) {
            *count += number(name);
        }
        // A row is sent once, so no other answer names it.
        let mut named = BTreeSet::new();
        for name in ["refused", "kept"] {
            let rows = fields.raw(name).and_then(items).unwrap_or_default();
            self.refused += if name == "refused" { rows.len() } else { 0 };
            self.lines.extend(rows.iter().filter_map(|row| Fields::parse(row)).map(|row| {
                let words = |name| row.words(name).unwrap_or_default();
                named.insert(words("row"));
                let place = locate(&words("row")).map_or_else(String::new, |place| format!(" ({place})"));
                let why = row.words("error").unwrap_or_else(|| {
                    format!("{}: got {}; allowed: {}", words("field"), words("got"), words("allowed"))
                });
                format!("{}: {why}{place}", words("row"))
            }));
        }
        let unnamed = usize::try_from(number("refusedMore")).unwrap_or(usize::MAX);
        self.refused = self.refused.saturating_add(unnamed);
        self.rows = self.rows.saturating_add(named.len()).saturating_add(unnamed);
    }
}

/// The kinds in the order in which they are sent: markets name events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Items,
    Events,
    Markets,
}

/// An array of rows of one kind.
#[derive(Debug)]
struct Batch {
    kind: Kind,
    /// Which of the kind's rows these are, in the order in which they are sent.
    rows: Range<usize>,
    body: String,
    tries: u32,
}

impl Batch {
    fn empty(kind: Kind, first: usize) -> Self {
        Self { kind, rows: first..first, body: String::from("["), tries: 0 }
    }

    fn has_room(&self, row: &str) -> bool {
        self.rows.is_empty() || self.body.len() + row.len() < BATCH_BYTES
    }

    fn add(&mut self, row: &str) {
        if !self.rows.is_empty() {
            self.body.push(',');
        }
        self.body.push_str(row);
        self.rows.end += 1;
    }
}

/// Everything that is sent, in its order.
#[derive(Clone, Copy)]
struct Cargo<'a> {
    import: &'a Import,
    files: &'a [File],
    /// The markets in the order in which they stand in their files.
    markets: &'a [usize],
}

impl Cargo<'_> {
    /// Gives all batches of a kind to `give`, until that fails.
    fn batches<E: From<String>>(
        &self,
        kind: Kind,
        mut give: impl FnMut(Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut batch = Batch::empty(kind, 0);
        let mut put = |row: &str| -> Result<(), E> {
            if !batch.has_room(row) {
                let next = Batch::empty(kind, batch.rows.end);
                let mut full = std::mem::replace(&mut batch, next);
                full.body.push(']');
                give(full)?;
            }
            batch.add(row);
            Ok(())
        };
        match kind {
            Kind::Items => self.import.items().iter().try_for_each(|item| put(&item.text))?,
            Kind::Events => self.import.events().iter().try_for_each(|event| put(&event.row()))?,
            Kind::Markets => {
                let mut open: Option<(u32, Rows<'_>)> = None;
                for &market in self.markets {
                    put(&self.market(market, &mut open)?)?;
                }
            }
        }
        if batch.rows.is_empty() {
            return Ok(());
        }
        batch.body.push(']');
        give(batch)
    }

    /// A market's text, without blanks that would make it longer than a request may be, and with the bare name of its
    /// event. `open` is the file that is being read.
    fn market<'f>(&'f self, market: usize, open: &mut Option<(u32, Rows<'f>)>) -> Result<String, String> {
        let row = &self.import.markets()[market];
        let sent = |object: &str| market_row(object, row.event.as_deref());
        let Some(place) = self.import.place(market) else {
            return Ok(sent(&row.text).expect("texts of markets were rendered here"));
        };
        let file = &self.files[place.file as usize];
        let rows = match open {
            Some((number, rows)) if *number == place.file => rows,
            _ => &mut open.insert((place.file, file.rows()?)).1,
        };
        let object = rows.cut(place.offset, place.bytes).map_err(|fault| file.named(&fault))?;
        sent(object).ok_or_else(|| file.named(&FileFault::Changed))
    }

    /// The first and the last row of a batch, as people find them.
    fn span(&self, batch: &Batch) -> String {
        let ends = [batch.rows.start, batch.rows.end - 1];
        let [first, last] = ends.map(|row| match batch.kind {
            Kind::Items => {
                let item = &self.import.items()[row];
                format!("{} {}", item.kind.text(), item.key)
            }
            Kind::Events => format!("event {}", self.import.events()[row].key),
            Kind::Markets => {
                let name = self.import.markets()[self.markets[row]].row();
                self.place(row).map_or(name.clone(), |place| format!("{place} ({name})"))
            }
        });
        if first == last { first } else { format!("{first} to {last}") }
    }

    /// Where the market that is sent at this turn stands.
    fn place(&self, turn: usize) -> Option<String> {
        let place = self.import.place(self.markets[turn])?;
        Some(place_name(self.files, place.file, place.row))
    }

    /// Where the row stands that an answer to `batch` names.
    fn locate(&self, batch: &Batch, row: &str) -> Option<String> {
        if batch.kind != Kind::Markets {
            return None;
        }
        if let Some(id) = row.strip_prefix("market ") {
            let place = self.import.place(self.import.market_with_id(id.parse().ok()?)?)?;
            return Some(place_name(self.files, place.file, place.row));
        }
        let number: usize = row.strip_prefix("row ")?.parse().ok()?;
        self.place(batch.rows.start + number.checked_sub(1)?)
    }
}

/// Sends everything that was read from `files`; `progress` is told how many rows of how many the exchange has answered
/// for. On an error those rows, and perhaps some of the batches that were under way, are in the exchange.
pub(crate) fn send(
    client: &mut Client,
    import: &Import,
    files: &[File],
    progress: impl FnMut(usize, usize),
) -> Result<Tally, String> {
    let mut markets: Vec<usize> = (0..import.markets().len()).collect();
    markets.sort_by_key(|market| import.place(*market).map(|place| (place.file, place.offset)));
    let cargo = Cargo { import, files, markets: &markets };
    let (requests, mut answers) = client.halves()?;
    let (sent, outbox) = channel();
    let (tell, told) = channel();
    std::thread::scope(|scope| {
        let feeder = scope.spawn(move || Feeder { requests, sent, told, open: 0 }.feed(cargo));
        let collected = collect(cargo, &outbox, &tell, || answers.next(), progress);
        // No more answers are read: a feeder that still sends or waits gives up.
        drop((tell, answers));
        let fed = feeder.join().expect("a feeder does not panic");
        let tally = collected?;
        match fed {
            Ok(()) => Ok(tally),
            Err(Stopped::Fault(fault)) => Err(fault),
            Err(Stopped::NobodyListens) => unreachable!("whoever collects stops only with a fault"),
        }
    })
}

/// What became of a batch.
enum Told {
    /// It is answered for.
    Taken,
    /// The exchange was too busy.
    Again(Batch),
}

/// Why sending ended early.
enum Stopped {
    /// A file or the connection failed.
    Fault(String),
    /// The answers ended, and whoever read them says why.
    NobodyListens,
}

impl From<String> for Stopped {
    fn from(fault: String) -> Self {
        Self::Fault(fault)
    }
}

/// The thread that sends.
struct Feeder {
    requests: Requests,
    sent: Sender<Batch>,
    told: Receiver<Told>,
    open: usize,
}

impl Feeder {
    fn feed(mut self, cargo: Cargo<'_>) -> Result<(), Stopped> {
        for kind in [Kind::Items, Kind::Events, Kind::Markets] {
            cargo.batches(kind, |batch| {
                while self.open == WINDOW {
                    self.hear()?;
                }
                self.post(batch)
            })?;
            while 0 < self.open {
                self.hear()?;
            }
        }
        Ok(())
    }

    /// Waits until one batch is answered; one that came back is sent again.
    fn hear(&mut self) -> Result<(), Stopped> {
        let told = self.told.recv().map_err(|_| Stopped::NobodyListens)?;
        self.open -= 1;
        match told {
            Told::Taken => Ok(()),
            Told::Again(batch) => {
                std::thread::sleep(TRY_AGAIN_AFTER);
                self.post(batch)
            }
        }
    }

    fn post(&mut self, batch: Batch) -> Result<(), Stopped> {
        let written = self.requests.post("/import", &batch.body);
        self.open += 1;
        // A batch that was not sent whole is waited for too: its answer, or the fault, comes there.
        self.sent.send(batch).map_err(|_| Stopped::NobodyListens)?;
        written.map_err(Stopped::Fault)
    }
}

/// Takes in the answers in the order of the batches.
fn collect(
    cargo: Cargo<'_>,
    outbox: &Receiver<Batch>,
    tell: &Sender<Told>,
    mut answer: impl FnMut() -> Result<crate::server::operator::client::Answer, String>,
    mut progress: impl FnMut(usize, usize),
) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let import = cargo.import;
    let all = import.events().len() + import.items().len() + import.markets().len();
    let mut done = 0;
    while let Ok(mut batch) = outbox.recv() {
        let failed = |fault: String| {
            format!(
                "{}: {fault}; {done} of {all} rows were taken before; import again to go on",
                on_one_line(&cargo.span(&batch))
            )
        };
        let answer = answer().map_err(failed)?;
        if answer.status == 503 && batch.tries < TRIES_MAX {
            batch.tries += 1;
            let _ = tell.send(Told::Again(batch));
            continue;
        }
        tally.add(&answer.success().map_err(failed)?, |row| cargo.locate(&batch, row));
        done += batch.rows.len();
        progress(done, all);
        // A feeder that failed hears nothing, and says why when it is joined.
        let _ = tell.send(Told::Taken);
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::operator::client::Answer;
    use crate::server::operator::import::{guess, summary};

    fn text(markets: usize, bytes: usize) -> String {
        let row = |n: usize| {
            format!(
                r#"{{"id":"{n}","conditionId":"0x{n:064x}","clobTokenIds":"[\"{n}1\",\"{n}2\"]","description":"{}"}}"#,
                "x".repeat(bytes)
            )
        };
        let rows: Vec<String> = (1..=markets).map(row).collect();
        format!(r#"[{{"id":"e","title":"T","markets":[{}]}}, {{"id":"9","label":"L"}}]"#, rows.join(","))
    }

    fn import(markets: usize, bytes: usize) -> Import {
        Import::read(text(markets, bytes).as_bytes(), &guess()).expect("a file")
    }

    fn batches(import: &Import) -> Vec<Batch> {
        let markets: Vec<usize> = (0..import.markets().len()).collect();
        let cargo = Cargo { import, files: &[], markets: &markets };
        let mut all = Vec::new();
        for kind in [Kind::Items, Kind::Events, Kind::Markets] {
            let kept: Result<(), String> = cargo.batches(kind, |batch| {
                all.push(batch);
                Ok(())
            });
            kept.expect("no files");
        }
        all
    }

    #[test]
    fn what_is_sent_reads_as_what_was_read() {
        let event = |event: &str| {
            let market = r#"{"id":"7","conditionId":"0x07","clobTokenIds":"[\"71\",\"72\"]""#;
            let market = market.replace("0x07", &format!("0x{:064x}", 7));
            format!(r#"[{market},"events":[{event}]}}]"#)
        };
        let bare = [
            event(r#"{"id":"6"}"#),
            event(r#"{"id":"6","slug":"s","endDate":"2027-01-01T00:00:00Z"}"#),
            event(r#"{"id":"6","slug":"s","recurrence":"daily","creatorName":"c"}"#),
        ];
        for text in [text(5, 10)].iter().chain(&bare) {
            sends_what_it_reads(text);
        }
    }

    fn sends_what_it_reads(text: &str) {
        let first = Import::read(text.as_bytes(), &guess()).expect("a file");
        assert_eq!(first.refused(), &[], "{text}");
        let batches = batches(&first);
        let kinds = batches.iter().map(|batch| batch.kind as usize).collect::<BTreeSet<_>>();
        assert_eq!(batches.len(), kinds.len(), "one of each kind");
        let mut again = Import::default();
        for batch in &batches {
            let mut rows = Rows::new(batch.body.as_bytes()).expect("a batch");
            again.add_rows(0, &mut rows, &guess(), |_| ()).expect("a batch");
        }
        assert_eq!(again.refused(), &[]);
        assert_eq!((again.events(), again.markets()), (first.events(), first.markets()));
        assert_eq!(again.items(), first.items());
    }

    #[test]
    fn batches_are_short_and_lose_no_row() {
        for bytes in [10, 50 << 10, 200 << 10] {
            let batches = batches(&import(9, bytes));
            let markets = batches.iter().filter(|batch| batch.kind == Kind::Markets);
            assert!(markets.clone().all(|batch| batch.rows.len() == 1 || batch.body.len() <= BATCH_BYTES));
            let rows: Vec<usize> = markets.flat_map(|batch| batch.rows.clone()).collect();
            assert_eq!(rows, (0..9).collect::<Vec<_>>());
        }
    }

    /// Answers batches as they come; returns what was collected, the last progress, and how many came back.
    fn collected(import: &Import, answers: &[(u16, &str)]) -> (Result<Tally, String>, usize, usize) {
        let markets: Vec<usize> = (0..import.markets().len()).collect();
        let cargo = Cargo { import, files: &[], markets: &markets };
        let (sent, outbox) = channel();
        let (tell, told) = channel();
        for batch in batches(import) {
            sent.send(batch).expect("open");
        }
        drop(sent);
        let mut answers = answers.iter();
        let mut last = 0;
        let next = || {
            let answer =
                answers.next().map(|(status, body)| Answer { status: *status, body: (*body).into() });
            answer.ok_or_else(|| "closed".to_owned())
        };
        let tally = collect(cargo, &outbox, &tell, next, |done, _| last = done);
        let again = told.try_iter().filter(|told| matches!(told, Told::Again(_))).count();
        (tally, last, again)
    }

    #[test]
    fn a_fault_names_the_rows_that_it_stopped_at_and_what_was_done_before() {
        let import = import(2, 1);
        let (tally, done, _) = collected(&import, &[(200, "{}"), (200, "{}")]);
        let said = "market 1 to market 2: closed; 2 of 4 rows were taken before; import again to go on";
        assert_eq!((tally, done), (Err(said.to_owned()), 2));
        let (tally, ..) = collected(&import, &[(200, "{}"), (400, r#"{"error":"no"}"#)]);
        let said = "event e: no; 1 of 4 rows were taken before; import again to go on";
        assert_eq!(tally, Err(said.to_owned()));
    }

    #[test]
    fn a_batch_that_the_exchange_is_too_busy_for_comes_back_and_counts_for_nothing() {
        let answers = [(200, "{}"), (503, "{}"), (200, r#"{"marketsAdded":2}"#)];
        let (tally, done, again) = collected(&import(2, 1), &answers);
        assert_eq!((tally.expect("no fault").counts[6], done, again), (2, 3, 1));
    }

    #[test]
    fn the_summary_counts_and_names() {
        let import = import(2, 1);
        let mut tally = Tally::default();
        let answer = r#"{"eventsAdded":1,"refusedMore":4,"marketsAdded":1,"marketsOlder":1,"refused":[{"row":"market 2","field":"id","got":"2","allowed":"another"},
            {"row":"market 3","code":"full","error":"markets: full"}],
            "kept":[{"row":"market 1","field":"a","got":"b","allowed":"c"},{"row":"market 1","field":"d","got":"e","allowed":"f"}]}"#;
        tally.add(answer, |row| (row == "market 2").then(|| "a.json, row 7".to_owned()));
        assert_eq!(tally.refused, 6);
        assert_eq!(
            summary(&[], &import, &tally),
            "0 files: 1 events, 2 conditions: 2 tradable, 0 cancel-only, 0 closed (0 of them resolved), 0 said twice\n\
             events: 1 added, 0 updated, 0 unchanged\n\
             tags, series and creators by themselves: 0 added, 0 updated, 0 unchanged\n\
             markets: 1 added, 0 updated, 0 unchanged, 1 older\n\
             not taken: market 2: id: got 2; allowed: another (a.json, row 7)\n\
             not taken: market 3: markets: full\n\
             not taken: market 1: a: got b; allowed: c\n\
             not taken: market 1: d: got e; allowed: f\n\
             7 rows could not be taken whole\n"
        );
    }

    #[test]
    fn what_a_file_calls_its_rows_steers_no_terminal() {
        let mut import = Import::survey();
        let text = r#"[{"id":"\u001b[2J\n9","conditionId":"0x12"},{"id":"\r8","title":"T","markets":7}]"#;
        import.add_rows(0, &mut Rows::new(text.as_bytes()).expect("a file"), &guess(), |_| ()).expect("rows");
        let mut tally = Tally::default();
        tally.add(r#"{"refused":[{"row":"event \u009b2J","error":"full"}]}"#, |_| None);
        let said = summary(&[], &import, &tally);
        let refused: Vec<&str> =
            said.lines().filter(|line| line.contains("refused: ") || line.contains("not taken: ")).collect();
        assert_eq!(
            refused,
            [
                r#"refused: market \u{1b}[2J\n9: conditionId: got "0x12"; allowed: 0x and 64 hex digits (row 1)"#,
                r"refused: event \r8: markets: got 7; allowed: an array of market objects (row 2)",
                r"not taken: event \u{9b}2J: full",
            ]
        );
        let fault = collected(&import, &[]).0.expect_err("no answer");
        assert!(fault.starts_with(r"event \r8: closed; 0 of 1 rows"), "{fault}");
    }
}
