//! `outcry journal …`: what a data directory says, without a server and without changing a byte.
//!
//! `verify` and `replay` apply every frame to a [`Ledger`]: the very code that recovery and the reader run. `verify`
//! ends with exit code 1 at the first frame that is wrong and names its place; every snapshot is read and compared with
//! the state at its position, and exit code 1 names each that is damaged or differs. `dump` decodes frames and applies
//! nothing, so that it also shows a log that contradicts itself.

mod dump;

use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::domain::Position;
use crate::journal::layout::{Damage, Record};
use crate::journal::{self, Archive, Base, Fault, Frame, SnapshotReader, Survey, survey};
use crate::ledger::{Ledger, Totals};
use crate::server::operator::admin;
use crate::server::operator::terminal::in_json;
use crate::server::plan::command::{JournalArgs, JournalCommand};
use crate::server::process::run::{complain, said, say};
use crate::server::process::secret;

/// Does one `journal` command.
pub(crate) fn run(command: &JournalCommand) -> Result<ExitCode, String> {
    match command {
        JournalCommand::Verify(args) => {
            let (data_dir, log_path) = args.places()?;
            say(&verify(&data_dir, log_path.as_deref())?)
        }
        JournalCommand::Replay(args) => {
            let (data_dir, log_path) = args.places()?;
            say(&replay(&data_dir, log_path.as_deref())?)
        }
        JournalCommand::Dump(args) => print_frames(args),
    }
}

/// Why a journal cannot be read to its end.
pub(crate) enum Stop {
    /// A file is not what was written.
    Files(Fault),
    /// A frame does not say what its kind says.
    Record(u64, Damage),
    /// A record cannot have happened.
    Impossible(u64, String),
    /// The dump could not be printed.
    Unprinted(std::io::Error),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Files(fault)
    }
}

impl std::fmt::Display for Stop {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Files(fault) => write!(out, "{fault}"),
            Self::Record(position, damage) => write!(
                out,
                "frame at position {position}: {} at byte {} of the payload is not what its kind says",
                damage.field, damage.at
            ),
            Self::Impossible(position, why) => write!(out, "frame at position {position}: {why}"),
            Self::Unprinted(fault) => write!(out, "standard output: {fault}"),
        }
    }
}

/// A journal, applied as far as its files go.
struct Applied {
    survey: Survey,
    ledger: Ledger,
    starts: u64,
    closed: bool,
    /// Where it began, if not at the first frame.
    begun: Option<String>,
    shelf: Shelf,
}

/// What is known of each snapshot.
#[derive(Default)]
struct Shelf {
    /// Those that are whole and whose position was not reached yet, the newest first.
    ahead: Vec<Base>,
    /// Those whose hash is that of the state at their position.
    good: Vec<String>,
    /// What is wrong with the others, by file.
    wrong: Vec<String>,
}

impl Shelf {
    /// Reads every snapshot to its end, with its archive, and computes its state hash anew.
    fn read(data_dir: &Path) -> Result<Self, Fault> {
        let mut shelf = Self::default();
        for kept in journal::snapshots(data_dir)?.check(|snapshot| load(snapshot).map(drop))? {
            match kept {
                Ok(base) => shelf.ahead.push(base),
                Err(fault) => shelf.wrong.push(fault.to_string()),
            }
        }
        Ok(shelf)
    }

    /// Compares the snapshots up to position `at` with the state before the frame there.
    fn meet(&mut self, at: Position, ledger: &Ledger) {
        while let Some(kept) = self.ahead.pop_if(|kept| kept.position <= at) {
            let file = kept.file.display();
            if ledger.end() <= kept.position && kept.hash == ledger.state_hash() {
                self.good.push(format!("snapshot {file}: good"));
            } else {
                self.wrong.push(format!(
                    "snapshot {file}: state hash: expected {:032x}, found {:032x}",
                    ledger.state_hash(),
                    kept.hash
                ));
            }
        }
    }
}

/// Applies every frame that is there. If the first segments are not there, the state that they led to comes from the
/// oldest whole snapshot; every other snapshot is compared with the state.
fn apply(data_dir: &Path, log_path: Option<&Path>) -> Result<Applied, String> {
    let (base, mut ledger) = beginning(data_dir).map_err(|fault| fault.to_string())?;
    let mut shelf = Shelf::read(data_dir).map_err(|fault| fault.to_string())?;
    let (mut starts, mut closed) = (0, false);
    let survey = survey(data_dir, log_path, base.as_ref(), |frame| {
        let record = decode(frame)?;
        shelf.meet(frame.span.start, &ledger);
        starts += u64::from(matches!(record, Record::Start(_)));
        closed = matches!(record, Record::Close(_));
        let applied = ledger.apply(frame.span.start, frame.span.end, &record);
        applied.map_err(|why| Stop::Impossible(frame.span.start.0, why.to_string()))
    });
    let survey = survey.map_err(|stop: Stop| stop.to_string())?;
    shelf.meet(survey.end, &ledger);
    if !survey.in_use {
        let ahead = shelf.ahead.drain(..);
        shelf
            .wrong
            .extend(ahead.map(|kept| format!("snapshot {}: is ahead of the segments", kept.file.display())));
    }
    let begun =
        base.as_ref().map(|base| begins(data_dir, base)).transpose().map_err(|fault| fault.to_string())?;
    Ok(Applied { survey, ledger, starts, closed, begun, shelf })
}

/// Loads the ledger of a snapshot, and checks that its rows have the hash that its header says.
fn load(snapshot: &mut SnapshotReader) -> Result<Ledger, Fault> {
    let mut ledger = Ledger::new();
    ledger.set_archive(snapshot.archive(&Archive::default())?);
    while let Some((name, bytes)) = snapshot.next()? {
        // Sections that are not the ledger's are the reader's, and are passed over here.
        if let Err(damage) = ledger.take_section(name, bytes) {
            return Err(snapshot.meaningless(damage.field, damage.at));
        }
    }
    let hash = ledger.recounted_hash();
    if hash == snapshot.base().hash && hash == ledger.state_hash() {
        Ok(ledger)
    } else {
        Err(snapshot.meaningless("state hash of the rows", 0))
    }
}

/// Where applying begins: at the first frame, or at the oldest whole snapshot.
fn beginning(data_dir: &Path) -> Result<(Option<Base>, Ledger), Fault> {
    if journal::has_first_segment(data_dir)? {
        return Ok((None, Ledger::new()));
    }
    // What is wrong with other snapshots is reported by [`Shelf::read`].
    let oldest = journal::snapshots(data_dir)?.oldest(&mut Vec::new(), load)?;
    let (base, ledger) = oldest.unzip();
    Ok((base, ledger.unwrap_or_default()))
}

fn begins(data_dir: &Path, base: &Base) -> Result<String, Fault> {
    let gone = journal::gone(data_dir)?;
    Ok(format!("{gone}; begins at the snapshot of position {}", base.position.0))
}

fn decode(frame: &Frame<'_>) -> Result<Record, Stop> {
    Record::decode(frame.kind, frame.payload).map_err(|damage| Stop::Record(frame.span.start.0, damage))
}

/// What `journal verify` says of a data directory and its log: an error if anything in it is not what it should be, a
/// snapshot included, though a start does without a damaged one, and the secrets, without which there is no start.
pub(crate) fn verify(data_dir: &Path, log_path: Option<&Path>) -> Result<String, String> {
    let applied = apply(data_dir, log_path)?;
    let totals = applied.ledger.conserved().map_err(|imbalance| imbalance.to_string())?;
    let Applied { survey, ledger, starts, closed, begun, shelf } = applied;
    let mut lines = vec![
        format!(
            "{} frames in {} segments, {} starts, {}",
            survey.frames,
            survey.segments,
            starts,
            end_text(closed)
        ),
        format!("end at position {}, epoch {}", survey.end.0, survey.epoch),
        format!("{} state hashes met", ledger.hashes_met()),
        format!("state hash {:032x}", ledger.state_hash()),
        format!("chain {:016x}", survey.chain),
        law(&totals),
    ];
    lines.extend(begun);
    lines.extend(shelf.good);
    lines.extend(left_out(survey, closed));
    let secrets = secret::fault(data_dir, None, admin::token_of_environment().is_none());
    if shelf.wrong.is_empty() && secrets.is_none() {
        lines.push("good".to_owned());
        return Ok(lines.join("\n") + "\n");
    }
    if !shelf.wrong.is_empty() {
        lines.push(format!("segments are good, snapshots are not: {}", shelf.wrong.len()));
        lines.extend(shelf.wrong);
    }
    lines.extend(secrets.map(|fault| format!("segments are good, but the next start is refused: {fault}")));
    Err(lines.join("\n"))
}

/// What was written, or may have been, and is not among the frames that were read. `closed` says whether the last of
/// them is the close of a stop in good order.
fn left_out(survey: Survey, closed: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(cut) = &survey.cut {
        lines.push(format!("torn tail of {} bytes: {}; the next start cuts it off", cut.bytes, cut.place));
    }
    if survey.log_bytes > 0 {
        lines.push(format!(
            "{} bytes are only in the log file; the next start takes them in",
            survey.log_bytes
        ));
    }
    lines.extend(survey.notes);
    if !closed && !survey.in_use && !survey.log_found {
        lines.push(format!(
            "no log at {}: what was not in segments yet is not counted; if the log has another path, give \
             --log-path",
            survey.log_path.display()
        ));
    }
    if survey.in_use {
        lines.push("a server has this directory; what it wrote meanwhile is not in this report".to_owned());
    }
    lines
}

fn end_text(closed: bool) -> &'static str {
    if closed { "stopped in good order" } else { "not closed" }
}

/// The law of conservation with its sums, in USDC.
pub(crate) fn law(totals: &Totals) -> String {
    format!(
        "conserved: cells {} + fees {} + reserved {} + backing {} = credited {} - debited {}",
        usdc(totals.cells),
        usdc(totals.fees),
        usdc(totals.reserved),
        usdc(totals.backing),
        usdc(totals.credited),
        usdc(totals.debited)
    )
}

/// Millionths as USDC, all six places.
fn usdc(millionths: u128) -> String {
    format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)
}

/// What `journal replay` prints: the state that the frames in the segments lead to, and what is not among them.
pub(crate) fn replay(data_dir: &Path, log_path: Option<&Path>) -> Result<String, String> {
    let Applied { survey, ledger, closed, begun, shelf, .. } = apply(data_dir, log_path)?;
    let totals = ledger.totals();
    let live: usize = ledger.markets().iter().map(|market| market.live.len()).sum();
    let lines = [
        ("state hash", format!("{:032x}", ledger.state_hash())),
        ("position", survey.end.0.to_string()),
        ("frames", ledger.frames().to_string()),
        ("time ms", ledger.time().0.to_string()),
        ("wallets", ledger.wallets().len().to_string()),
        ("keys", ledger.keys().count().to_string()),
        ("events", ledger.events().len().to_string()),
        ("markets", ledger.markets().len().to_string()),
        ("orders", ledger.orders_ever().to_string()),
        ("live orders", live.to_string()),
        ("holdings", ledger.holdings().count().to_string()),
        ("cells", usdc(totals.cells)),
        ("fees", usdc(totals.fees)),
        ("reserved", usdc(totals.reserved)),
        ("backing", usdc(totals.backing)),
        ("credited", usdc(totals.credited)),
        ("debited", usdc(totals.debited)),
    ];
    let mut text = String::new();
    for (name, value) in lines {
        let _ = writeln!(text, "{name:12} {value}");
    }
    let left_out = left_out(survey, closed);
    for said in begun.into_iter().chain(shelf.good).chain(shelf.wrong).chain(left_out) {
        text.push_str(&said);
        text.push('\n');
    }
    Ok(text)
}

fn print_frames(args: &JournalArgs) -> Result<ExitCode, String> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let (data_dir, log_path) = args.places()?;
    // What is said is printed apart from the frames, which are for programs to read.
    match dump(&data_dir, log_path.as_deref(), &mut out, complain) {
        Err(Stop::Unprinted(fault)) => said(Err(fault)),
        Err(stop) => said(out.flush()).and(Err(stop.to_string())),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

/// Writes every frame in the segments to `out`, a line each, and calls `say` with where they begin and with what is not
/// among them.
pub(crate) fn dump(
    data_dir: &Path,
    log_path: Option<&Path>,
    out: &mut impl Write,
    mut say: impl FnMut(&str),
) -> Result<(), Stop> {
    let base = beginning(data_dir)?.0;
    if let Some(base) = &base {
        say(&begins(data_dir, base)?);
    }
    let (mut line, mut closed) = (Vec::new(), false);
    let survey = survey(data_dir, log_path, base.as_ref(), |frame| {
        let record = decode(frame)?;
        closed = matches!(record, Record::Close(_));
        line.clear();
        dump::write(frame, &record, &mut line);
        line.push(b'\n');
        let line = std::str::from_utf8(&line).expect("JSON is text");
        out.write_all(in_json(line).as_bytes()).map_err(Stop::Unprinted)
    })?;
    out.flush().map_err(Stop::Unprinted)?;
    for line in left_out(survey, closed) {
        say(&line);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_no_data_directory_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let fault = verify(folder.path(), None).expect_err("refused");
        assert!(fault.contains(&folder.path().display().to_string()), "{fault}");
    }

    #[test]
    fn sums_show_all_six_places() {
        assert_eq!(usdc(1), "0.000001");
        assert_eq!(usdc(1_500_000), "1.500000");
    }
}
