//! Everything a run leaves behind: histograms, the summary, and one page for people.

use std::path::{Path, PathBuf};

use crate::run::Outcome;
use crate::stats;
use crate::summary::Summary;

mod page;
mod plot;
mod words;

pub(crate) use page::Page;

/// Writes a run's files into a new folder below `out`, and says which.
pub(crate) fn write(out: &Path, outcome: &Outcome) -> Result<PathBuf, String> {
    let folder = new_folder(out, &outcome.summary.scenario, &outcome.summary.environment.date)?;
    for (class, histogram) in &outcome.histograms {
        save(&folder.join(format!("{}.hdr", class.name())), &stats::hdr(histogram))?;
        save(&folder.join(format!("{}.hgrm", class.name())), &stats::hgrm(histogram))?;
    }
    save(&folder.join("summary.json"), outcome.summary.json().as_bytes())?;
    save(&folder.join("report.html"), html(&outcome.summary)?.as_bytes())?;
    Ok(folder)
}

/// The page of one run.
fn html(summary: &Summary) -> Result<String, String> {
    let mut page = Page::new(&format!("outcry perf: {}", summary.scenario));
    page.note(&summary.purpose);
    page.verdict(summary);
    page.paragraph(&words::headline(summary));
    page.heading("What limits this box");
    page.list(&words::limits(summary));
    page.run(summary)?;
    Ok(page.end())
}

/// A folder of this time and name; a second one within a second gets a number.
pub(crate) fn new_folder(out: &Path, name: &str, date: &str) -> Result<PathBuf, String> {
    let time: String = date.chars().filter(|letter| letter.is_ascii_digit() || *letter == 'T').collect();
    let mut folder = out.join(format!("{time}-{name}"));
    let mut number = 2;
    while folder.exists() {
        folder = out.join(format!("{time}-{name}-{number}"));
        number += 1;
    }
    std::fs::create_dir_all(&folder).map_err(|fault| format!("{}: {fault}", folder.display()))?;
    Ok(folder)
}

/// Writes one file.
pub(crate) fn save(path: &Path, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(path, bytes).map_err(|fault| format!("{}: {fault}", path.display()))
}
