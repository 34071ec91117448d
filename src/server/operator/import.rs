//! `outcry import gamma FILE…`: reads files here, sends rows in batches, says what came of each.
//!
//! 1. **Survey.** All files are read row by row and merged before anything is sent, so the newest row leads wherever it
//!    stands, and a fault anywhere sends nothing. Texts of events and items are kept;
//!    of a market only where it stands, so that memory is bounded by the number of rows, not by
//!    their length.
//! 2. **Sending.** Files are read again, and rows go out as Gamma JSON: items, then events, then the
//!    markets that name them. The next kind starts when the last one is answered. Within a kind every
//!    row comes once, so several batches are under way at a time and reading, sending and the
//!    exchange's work overlap; the exchange takes them in the order in which they were sent.
//!
//! The exchange judges every row itself. A batch that it is too busy for is sent again: a row that
//! was taken changes nothing the second time. After a fault the import stops and names the rows of
//! the batch; everything before them is in the exchange, and importing again goes on from there.

mod send;
mod survey;

use std::fmt::Write as _;
use std::process::ExitCode;

use super::client::Client;
use super::terminal::on_one_line;
use crate::catalog::{Import, ImportedMarket, MarketDefaults, NAMED_MAX};
use crate::domain::{FeeSchedule, Mode, Shares, Tick};
use crate::server::plan::command::ImportCommand;
use crate::server::process::run::{complain, say};
use survey::{File, Pace};

pub(crate) use send::{Tally, send};

/// Does `import gamma`.
pub(crate) fn run(command: &ImportCommand) -> Result<ExitCode, String> {
    let ImportCommand::Gamma { admin, files } = command;
    let mut client = Client::of(admin)?;
    let files = files.iter().map(File::open).collect::<Result<Vec<_>, _>>()?;
    let import = survey::read(&files, &guess(), complain)?;
    let mut pace = Pace::default();
    let tally = send(&mut client, &import, &files, |done, all| {
        if done == all || pace.is_due() {
            complain(&format!("import: {done} of {all} rows"));
        }
    })?;
    let refused = !import.refused().is_empty() || 0 < tally.refused;
    say(&summary(&files, &import, &tally))?;
    Ok(if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The exchange has defaults of its own for what a row does not say; these stand in for them here, and the summary does
/// not depend on them.
fn guess() -> MarketDefaults {
    let tick = Tick::new(100).expect("0.01 is a tick");
    MarketDefaults { tick, min_size: Shares(5_000_000), fee: FeeSchedule::FREE }
}

/// True for a market that is not over, but takes no orders if it is new.
fn takes_no_orders(market: &ImportedMarket) -> bool {
    market.first_mode() == Mode::CancelOnly
}

fn summary(files: &[File], import: &Import, tally: &Tally) -> String {
    let markets = import.markets();
    let count = |test: &dyn Fn(&ImportedMarket) -> bool| markets.iter().filter(|market| test(market)).count();
    let mut text = format!(
        "{} files: {} events, {} conditions: {} tradable, {} cancel-only, {} closed ({} of them resolved), \
         {} said twice\n",
        files.len(),
        import.events().len(),
        markets.len(),
        count(&ImportedMarket::trades),
        count(&takes_no_orders),
        count(&|market| market.first_mode().is_closed()),
        count(&|market| market.mode == Mode::Resolved),
        import.repeated()
    );
    for (kind, said, parts) in tally.counts() {
        if kind != "items" || !import.items().is_empty() {
            let _ = writeln!(text, "{said}: {}", parts.join(", "));
        }
    }
    for market in markets.iter().filter(|market| market.tokens.is_none()) {
        let _ = writeln!(
            text,
            "catalog only: {}: no clobTokenIds, so it does not trade unless it does already",
            market.row()
        );
    }
    for market in markets.iter().filter(|market| takes_no_orders(market)) {
        let _ = writeln!(
            text,
            "cancel-only: {}: acceptingOrders or enableOrderBook is false, so it takes no orders unless it does \
             already",
            market.row()
        );
    }
    let refused = import.refused_rows().map(|((file, row), refused)| {
        format!("refused: {refused} ({})", survey::place_name(files, file, row))
    });
    let lines: Vec<String> =
        refused.chain(tally.lines.iter().map(|line| format!("not taken: {line}"))).collect();
    for line in lines.iter().take(NAMED_MAX) {
        text.push_str(&on_one_line(line));
        text.push('\n');
    }
    let rows = import.refused().len() + import.refused_more() + tally.rows;
    let _ = writeln!(text, "{rows} rows could not be taken whole");
    text
}
