//! `outcry journal …`: what a data directory says, without a server and without changing a byte.
//!
//! `verify` and `replay` apply every frame to a [`Ledger`]: the very code that recovery and the
//! reader run. `verify` ends with exit code 1 at the first thing that is wrong and names its
//! place. `dump` decodes frames and applies nothing, so that it also shows a log that contradicts
//! itself.

mod dump;

use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::journal::layout::{Damage, Record};
use crate::journal::{Fault, Frame, Survey, survey};
use crate::ledger::{Ledger, Totals};
use crate::server::command::{JournalArgs, JournalCommand};
use crate::server::run::say;

/// Does one `journal` command.
pub(crate) fn run(command: &JournalCommand) -> Result<ExitCode, String> {
    match command {
        JournalCommand::Verify(args) => say(&verify(&args.data_dir)?),
        JournalCommand::Replay(args) => say(&replay(&args.data_dir)?),
        JournalCommand::Dump(args) => print_frames(args),
    }
}

/// Why a journal cannot be read to its end.
enum Stop {
    /// A file is not what was written.
    Files(Fault),
    /// A frame does not say what its kind says.
    Record(u64, Damage),
    /// A record cannot have happened.
    Impossible(u64, String),
    /// Whoever reads the dump has read enough.
    Closed,
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
            Self::Closed => out.write_str("the output was closed"),
        }
    }
}

/// A journal, applied whole.
struct Applied {
    survey: Survey,
    ledger: Ledger,
    starts: u64,
    closed: bool,
}

fn apply(data_dir: &Path) -> Result<Applied, String> {
    let mut ledger = Ledger::new();
    let (mut starts, mut closed) = (0, false);
    let survey = survey(data_dir, None, |frame| {
        let record = decode(frame)?;
        starts += u64::from(matches!(record, Record::Start(_)));
        closed = matches!(record, Record::Close(_));
        let applied = ledger.apply(frame.span.start, frame.span.end, &record);
        applied.map_err(|why| Stop::Impossible(frame.span.start.0, why.to_string()))
    });
    let survey = survey.map_err(|stop: Stop| stop.to_string())?;
    Ok(Applied { survey, ledger, starts, closed })
}

fn decode(frame: &Frame<'_>) -> Result<Record, Stop> {
    Record::decode(frame.kind, frame.payload).map_err(|damage| Stop::Record(frame.span.start.0, damage))
}

fn verify(data_dir: &Path) -> Result<String, String> {
    let applied = apply(data_dir)?;
    let totals = applied.ledger.conserved().map_err(|imbalance| imbalance.to_string())?;
    let Applied { survey, ledger, starts, closed } = applied;
    let mut lines = vec![
        format!(
            "{} frames in {} segments, {} starts, {}",
            survey.frames,
            survey.segments,
            starts,
            end_text(closed)
        ),
        format!("end at position {}, durable to {}, epoch {}", survey.end.0, survey.durable.0, survey.epoch),
        format!("{} state hashes met", ledger.hashes_met()),
        format!("state hash {:032x}", ledger.state_hash()),
        format!("chain {:016x}", survey.chain),
        law(&totals),
    ];
    if let Some(cut) = &survey.cut {
        lines.push(format!("torn tail of {} bytes: {}; the next start cuts it off", cut.bytes, cut.place));
    }
    if survey.log_bytes > 0 {
        lines.push(format!(
            "{} bytes are only in the log file; the next start takes them in",
            survey.log_bytes
        ));
    }
    if survey.in_use {
        lines.push("a server has this directory; what it wrote meanwhile is not in this report".to_owned());
    }
    lines.push("good".to_owned());
    Ok(lines.join("\n") + "\n")
}

fn end_text(closed: bool) -> &'static str {
    if closed { "stopped in good order" } else { "not closed" }
}

fn law(totals: &Totals) -> String {
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

fn replay(data_dir: &Path) -> Result<String, String> {
    let Applied { survey, ledger, .. } = apply(data_dir)?;
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
        ("orders", ledger.orders().len().to_string()),
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
    Ok(text)
}

fn print_frames(args: &JournalArgs) -> Result<ExitCode, String> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut line = Vec::new();
    let read = survey(&args.data_dir, None, |frame| {
        let record = decode(frame)?;
        line.clear();
        dump::write(frame, &record, &mut line);
        line.push(b'\n');
        out.write_all(&line).map_err(|_| Stop::Closed)
    });
    match read {
        Ok(_) => {}
        // `| head` is no fault.
        Err(Stop::Closed) => return Ok(ExitCode::SUCCESS),
        Err(stop) => {
            let _ = out.flush();
            return Err(stop.to_string());
        }
    }
    let _ = out.flush();
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_no_data_directory_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let fault = verify(folder.path()).expect_err("refused");
        assert!(fault.contains(&folder.path().display().to_string()), "{fault}");
    }

    #[test]
    fn sums_show_all_six_places() {
        assert_eq!(usdc(1), "0.000001");
        assert_eq!(usdc(1_500_000), "1.500000");
    }
}
