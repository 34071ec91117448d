//! What users get where a run's threads were placed for measuring: where `serve` puts the threads by itself, and how
//! the same load fared there.

use super::numbers::micros;
use super::page::{mark, short_reasons};
use super::words::{class, without_disk};
use crate::placement;
use crate::stats::Quantiles;
use crate::summary::{AsServe, Summary};

/// The head of the table that has both runs.
pub(super) const HEAD: [&str; 5] = ["", "p50, as above", "p50, as serve", "p99, as above", "p99, as serve"];

/// Where the threads were, where `serve` puts them, and the command that measures that; none where both are the same.
pub(super) fn note(summary: &Summary) -> Option<String> {
    let both = placement::caution(&summary.threads, &summary.threads_by_itself)?;
    let measured = match summary.as_serve {
        Some(_) => "measured below under the same load".to_owned(),
        None => format!("`{} --as-serve` measures that", again(summary)),
    };
    Some(format!("{both}; {measured}."))
}

/// The command of this run, ready to be typed again. If another command made the run, or if the command was not kept,
/// it is built from the scenario's name.
fn again(summary: &Summary) -> String {
    let is_of_scenario = ["run ", "sweep "]
        .iter()
        .any(|word| summary.typed.strip_prefix("scripts/perf ").is_some_and(|rest| rest.starts_with(word)));
    if is_of_scenario { summary.typed.clone() } else { format!("scripts/perf run {}", summary.scenario) }
}

/// The table's title, which says whether its other run was VALID.
pub(super) fn title(as_serve: &AsServe) -> String {
    format!(
        "The same load, placed and waiting as serve does here by itself, without a disk ({})",
        verdict(as_serve)
    )
}

fn verdict(as_serve: &AsServe) -> String {
    let word = as_serve.verdict.word();
    match as_serve.verdict.reasons.as_slice() {
        [] => word.to_owned(),
        reasons => format!("{word}: {}", short_reasons(reasons)),
    }
}

/// Each reason against the other run, with its amount and who had it.
pub(super) fn reasons(as_serve: &AsServe) -> Vec<String> {
    as_serve.verdict.reasons.iter().map(|reason| format!("As serve, INVALID for {reason}.")).collect()
}

/// An addition to the verdict, if only the other run was INVALID.
pub(super) fn besides(summary: &Summary) -> &'static str {
    let other = summary.as_serve.as_ref().filter(|as_serve| summary.verdict.valid && !as_serve.verdict.valid);
    other.map_or("", |_| ", but not the run placed as `serve` does, of which the reasons stand above")
}

/// A row for each class, from both runs.
pub(super) fn rows(summary: &Summary, as_serve: &AsServe) -> Vec<Vec<String>> {
    let row = |(name, own): &(String, Quantiles)| {
        let here = &summary.class(name)?.latency;
        let p99 = |times: &Quantiles| format!("{}{}", micros(times.p99_us), mark(times.count, 100));
        Some(vec![class(name).to_owned(), micros(here.p50_us), micros(own.p50_us), p99(here), p99(own)])
    };
    as_serve.classes.iter().filter_map(row).collect()
}

/// The table for a terminal.
pub(super) fn lines(summary: &Summary) -> Vec<String> {
    let table = summary.as_serve.as_ref().map_or_else(Vec::new, |as_serve| {
        let head = format!("placed and waiting as `serve` does, without a disk ({}):", verdict(as_serve));
        let line = |row: Vec<String>| {
            format!("  {}: p50 {} (above: {}); p99 {} (above: {})", row[0], row[2], row[1], row[4], row[3])
        };
        let reasons = as_serve.verdict.reasons.iter().map(|reason| format!("  INVALID for {reason}"));
        let table = rows(summary, as_serve).into_iter().map(line);
        [head].into_iter().chain(table).chain(reasons).collect()
    });
    table.into_iter().chain(without_disk(summary)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::example;
    use crate::verdict::Verdict;

    #[test]
    fn what_users_get_is_measured_or_said_how_to_measure() {
        let placed = "Placed for measuring: outcry-shard0 on CPU 0 (spin). Users get what `serve` does here by itself: outcry-shard0 on \
                      CPU 0 (park)";
        let own = Quantiles { count: 99, p50_us: 56.0, p99_us: 90.0, ..Quantiles::default() };
        let classes = vec![("place".to_owned(), own), ("read".to_owned(), own)];
        let with = |reasons: &[&str]| {
            let reasons = reasons.iter().map(|&reason| reason.to_owned()).collect();
            let own = AsServe::of(example());
            Some(AsServe { verdict: Verdict::because(reasons), classes: classes.clone(), ..own })
        };
        let row = "  orders that rest: p50 56.0 µs (above: 40.0 µs); p99 90.0 µs* (above: 60.0 µs)";
        for (as_serve, expected) in [
            (None, vec![format!("{placed}; `scripts/perf run mixed --as-serve` measures that.")]),
            (
                with(&[]),
                vec![
                    format!("{placed}; measured below under the same load."),
                    "placed and waiting as `serve` does, without a disk (VALID):".to_owned(),
                    row.to_owned(),
                ],
            ),
            (
                with(&["steal: 3 %", "others had CPU 0: before", "others had CPU 1: after, sh (7)"]),
                vec![
                    format!("{placed}; measured below under the same load."),
                    "placed and waiting as `serve` does, without a disk (INVALID: steal, others had CPU 0, others had \
                     CPU 1):"
                        .to_owned(),
                    row.to_owned(),
                    "  INVALID for steal: 3 %".to_owned(),
                    "  INVALID for others had CPU 0: before".to_owned(),
                    "  INVALID for others had CPU 1: after, sh (7)".to_owned(),
                ],
            ),
        ] {
            let summary = Summary { as_serve, ..example() };
            let reasons = summary.as_serve.as_ref().map_or(0, |as_serve| reasons(as_serve).len());
            assert_eq!((besides(&summary).is_empty(), reasons), if expected.len() < 4 { (true, 0) } else { (false, 3) });
            let mut said: Vec<String> = note(&summary).into_iter().chain(lines(&summary)).collect();
            assert!(said.pop().is_some_and(|last| last.starts_with("No answer waited for a disk")));
            assert_eq!(said, expected);
        }
        let same = Summary { threads_by_itself: example().threads, ..example() };
        assert_eq!(note(&same), None);
        // The command is repeated as typed, with the file's folder; if another command was typed, only the name is
        // known.
        for (typed, told) in [
            (
                "scripts/perf run 'my scenarios/a.toml' --rate 5",
                "`scripts/perf run 'my scenarios/a.toml' --rate 5 --as-serve`",
            ),
            ("scripts/perf sweep x/a.toml", "`scripts/perf sweep x/a.toml --as-serve`"),
            ("scripts/perf smoke", "`scripts/perf run mixed --as-serve`"),
            ("", "`scripts/perf run mixed --as-serve`"),
        ] {
            let said = note(&Summary { typed: typed.to_owned(), ..example() }).unwrap();
            assert!(said.contains(told), "{said}");
        }
    }
}
