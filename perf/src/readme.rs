//! Tables of figures, written between two marks from the records, so that nobody edits a number by hand: a table of
//! scenarios, a table of everything else, and the records that their rows name. `FIGURES.md` has all of them, README those
//! that matter most.

use std::path::Path;

use crate::figures::{Figure, Unit};
use crate::machine::Environment;
use crate::records::{self, Records};
use crate::report::{self, ALONE, ALONE_TEXT};
use crate::sheet::{self, Sheet};
use crate::summary::Summary;

const BEGIN: &str = "<!-- records: written by scripts/record-to-readme -->";
const END: &str = "<!-- end of records -->";

/// What README shows of sheets: by what it was measured, and the figure.
const HEADLINES: [(&str, &str); 11] = [
    ("matching", "a command, 99 ticks, 100000 live orders, alone"),
    ("matching", "a trading core's command, 99 ticks, 10000 live orders"),
    ("matching", "a trading core's command, 99 ticks, 100000 live orders"),
    ("ROUNDTRIP_DURABILITY=durable roundtrip", "an order that waits for the disk, p50"),
    ("roundtrip -- auth.known_signers_bytes=16777216", "signed POST /order, p50"),
    ("roundtrip", "signed POST /order, p50"),
    ("roundtrip", "signed POST /order, p99"),
    ("search", "a whole title, p50"),
    ("streams", "answer, 10000 follow, p50"),
    ("streams", "each subscriber, 10000 follow, p50"),
    ("wallets", "positions, p50"),
];

/// The scenarios that README shows.
const HEADLINE_SCENARIOS: [&str; 2] = ["maker-quote", "mixed"];

/// How much of the records tables show.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    /// Of each record on each machine the newest.
    All,
    /// What matters most, of the newest record on any machine.
    Headlines,
}

/// Writes the tables into README and `FIGURES.md`; with `check`, only fails if they are not up to date.
pub(crate) fn update(project: &Path, check: bool) -> Result<(), String> {
    let records = records::all(&project.join("perf/records"))?;
    for (name, show) in [("README.md", Show::Headlines), ("perf/FIGURES.md", Show::All)] {
        let path = project.join(name);
        let text = std::fs::read_to_string(&path).map_err(|fault| format!("{name}: {fault}"))?;
        let written = with_tables(&text, &records, show).map_err(|fault| format!("{name}: {fault}"))?;
        if written == text {
            println!("{name}: the tables are as the records say");
            continue;
        }
        if check {
            return Err(format!("{name}: not what the records say; run scripts/record-to-readme"));
        }
        report::save(&path, written.as_bytes())?;
        println!("{name}: the tables are written anew");
    }
    Ok(())
}

/// The text with the tables of these records between the marks.
fn with_tables(text: &str, records: &Records, show: Show) -> Result<String, String> {
    let missing = |mark: &str| format!("the line {mark} is missing");
    let (before, rest) = text.split_once(BEGIN).ok_or_else(|| missing(BEGIN))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| missing(END))?;
    Ok(format!("{before}{BEGIN}\n{}{END}{after}", tables(records, show)))
}

/// Tables of the newest record of each scenario and of each command that made a sheet, on each machine.
fn tables(records: &Records, show: Show) -> String {
    let mut runs = newest(&records.runs, |run| (&run.scenario, &run.environment));
    let mut sheets = newest(&records.sheets, |sheet| (&sheet.name, &sheet.environment));
    let is_shown = |sheet: &Sheet, figure: &Figure| {
        show == Show::All || HEADLINES.contains(&(&measured_by(sheet), &figure.what))
    };
    if show == Show::Headlines {
        runs.retain(|run| HEADLINE_SCENARIOS.contains(&scenario(run).as_str()));
        sheets.retain(|sheet| sheet.figures.iter().any(|figure| is_shown(sheet, figure)));
        keep_newest(&mut runs, |run| (scenario(run), &run.environment.date));
        keep_newest(&mut sheets, |sheet| (measured_by(sheet), &sheet.environment.date));
    }
    if runs.is_empty() && sheets.is_empty() {
        return "No run is on record yet: a machine that nobody else uses has to make it.\n".to_owned();
    }
    let mut parts = Vec::new();
    let mut notes = Vec::new();
    if !sheets.is_empty() {
        let head =
            "| measured by | what | figure | beside it | ratio | record |\n|---|---|---:|---:|---:|---:|\n";
        parts.push(
            head.to_owned()
                + &rows(&sheets, &mut notes, |sheet| (&sheet.environment, figures(sheet, is_shown))),
        );
    }
    if !runs.is_empty() {
        let head = "| scenario | what | a second | p50 | p99 | p99.9 | record |\n|---|---|---:|---:|---:|---:|---:|\n";
        parts.push(head.to_owned() + &rows(&runs, &mut notes, |run| (&run.environment, classes(run))));
        if parts.last().is_some_and(|table| table.contains(ALONE)) {
            parts.push(format!("\\{ALONE_TEXT}.\n"));
        }
    }
    parts.push(notes.concat());
    parts.join("\n")
}

/// The rows of each record, each ending with the number of its note; the notes are added to `notes`.
fn rows<'a, T>(
    of: &[&'a T],
    notes: &mut Vec<String>,
    parts: impl Fn(&'a T) -> (&'a Environment, Vec<String>),
) -> String {
    let mut text = String::new();
    for record in of {
        let (environment, rows) = parts(record);
        let number = notes.len() + 1;
        notes.push(format!("{number}. {}\n", note(environment)));
        text.extend(rows.into_iter().map(|row| format!("{row} {number} |\n")));
    }
    text
}

/// What a figure rests on.
fn note(environment: &Environment) -> String {
    format!(
        "`{}`, profile {}: {}, `{}`, {}",
        environment.command,
        environment.profile,
        environment.machine(),
        environment.commit,
        environment.day()
    )
}

/// A row for each class of a run, with its own requests a second.
fn classes(summary: &Summary) -> Vec<String> {
    let name = scenario(summary);
    let row = |times: &crate::summary::ClassTimes| {
        let latency = times.latency;
        #[allow(clippy::cast_precision_loss, reason = "requests are far fewer than 2^53")]
        let per_s = latency.count as f64 / summary.time_s;
        let quantile = |us: f64, needed: u64| report::micros(us) + report::mark(latency.count, needed);
        format!(
            "| `{name}` | {} | {} | {} | {} | {} |",
            report::class(&times.class),
            report::count(per_s),
            quantile(latency.p50_us, 0),
            quantile(latency.p99_us, 100),
            quantile(latency.p999_us, 1_000),
        )
    };
    summary.classes.iter().map(row).collect()
}

/// A scenario's name with the variables and flags with which it ran, so that other settings and another rate are not
/// taken for the scenario's own.
fn scenario(summary: &Summary) -> String {
    let (variables, arguments) = summary.environment.parts();
    format!("{variables}{}", arguments.strip_prefix("run ").unwrap_or(&summary.scenario))
}

/// A benchmark's name with its settings, so that rows with other settings are not taken for the same; for the rig's
/// own commands, the sheet's name.
fn measured_by(sheet: &Sheet) -> String {
    let (variables, arguments) = sheet.environment.parts();
    let Some(arguments) = arguments.strip_prefix("bench ") else {
        return format!("{variables}{}", sheet.name);
    };
    let bench = match arguments.split_once(" --profile ") {
        Some((name, rest)) => name.to_owned() + rest.find(' ').map_or("", |end| &rest[end..]),
        None => arguments.to_owned(),
    };
    format!("{variables}{bench}")
}

/// A row for each figure of a sheet that was measured and is shown.
fn figures(sheet: &Sheet, is_shown: impl Fn(&Sheet, &Figure) -> bool) -> Vec<String> {
    let name = measured_by(sheet);
    let row = |figure: &Figure| {
        let value = sheet::text_of(figure.value, figure.unit);
        let beside = figure.beside.as_ref().map_or_else(String::new, |beside| {
            format!("{} {}", cell(&beside.what), sheet::text_of(beside.value, figure.unit))
        });
        format!("| `{name}` | {} | {value} | {beside} | {} |", cell(&figure.what), sheet.ratio(figure))
    };
    sheet.figures.iter().filter(|figure| was_measured(figure) && is_shown(sheet, figure)).map(row).collect()
}

/// In records from before 2026-11-27: a median of the few moments in which a loop that `roundtrip` had stopped looked
/// away for long.
const OF_STOPPED_LOOP: &str = "server's away, p50";

/// Whether a figure was measured. Nothing takes no time: such a figure is of a stage that nothing passed, or below what
/// its clock can tell.
fn was_measured(figure: &Figure) -> bool {
    let is_time = matches!(figure.unit, Unit::Ns | Unit::Us | Unit::S);
    figure.what != OF_STOPPED_LOOP && !(is_time && figure.value == 0.0)
}

/// A text in which no `|` ends a table's cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The last record of each name and command on each machine, in the order of names and commands.
fn newest<'a, T>(records: &'a [T], of: impl Fn(&'a T) -> (&'a str, &'a Environment)) -> Vec<&'a T> {
    let mut kept: Vec<&T> = Vec::new();
    for record in records.iter().rev() {
        let (name, environment) = of(record);
        let is_replaced = kept.iter().any(|&newer| {
            let (newer_name, newer) = of(newer);
            newer_name == name && newer.parts() == environment.parts() && newer.replaces(environment)
        });
        if !is_replaced {
            kept.push(record);
        }
    }
    kept.sort_by_key(|&record| {
        let (name, environment) = of(record);
        let (variables, arguments) = environment.parts();
        (name, format!("{variables}{arguments} {}", environment.machine()))
    });
    kept
}

/// Of records of the same, as `of` names them beside their dates, keeps the newest.
fn keep_newest<'a, T>(records: &mut Vec<&'a T>, of: impl Fn(&'a T) -> (String, &'a String)) {
    let all = records.clone();
    let is_newer = |one: &'a T, (name, date): &(String, &String)| {
        let (other, other_date) = of(one);
        other == *name && **date < *other_date
    };
    records.retain(|record| !all.iter().any(|other| is_newer(other, &of(record))));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::example;

    fn both() -> Records {
        Records { runs: vec![example()], sheets: vec![sheet::example()] }
    }

    #[test]
    fn the_tables_stand_between_the_marks_and_the_rest_stays() {
        let text = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let written = with_tables(&text, &both(), Show::All).unwrap();
        assert!(written.starts_with(&format!("before\n{BEGIN}\n| measured by |")), "{written}");
        assert!(written.ends_with(&format!("2026-11-22\n{END}\nafter\n")), "{written}");
        assert_eq!(with_tables(&written, &both(), Show::All).unwrap(), written);
        assert!(!written.contains("old"));
    }

    #[test]
    fn a_row_names_its_record_which_has_machine_commit_date_and_command_once() {
        let wanted = "\
| measured by | what | figure | beside it | ratio | record |
|---|---|---:|---:|---:|---:|
| `roundtrip` | signed POST /order, p50 | 39.8 µs | floor 37.9 µs | 1.05 | 1 |
| `roundtrip` | server's sign, p50 | 27.9 µs |  |  | 1 |

| scenario | what | a second | p50 | p99 | p99.9 | record |
|---|---|---:|---:|---:|---:|---:|
| `mixed` | orders that rest | 2,000 | 40.0 µs | 60.0 µs | 90.0 µs | 2 |

1. `scripts/perf bench roundtrip`, profile bench: Some CPU, 2 CPUs, Linux 6.18.1, `abc1234`, 2026-11-22
2. `scripts/perf run mixed`, profile bench: Some CPU, 2 CPUs, Linux 6.18.1, `abc1234`, 2026-11-22
";
        assert_eq!(tables(&both(), Show::All), wanted);
    }

    #[test]
    fn the_newest_record_of_a_scenario_on_a_machine_counts() {
        let mut later = example();
        later.environment.date = "2026-11-23T00:00:00Z".to_owned();
        let mut elsewhere = example();
        elsewhere.environment.cpu_model = "Another CPU".to_owned();
        // Recorded by a rig that left out the script's folder.
        let mut bare = example();
        bare.environment.command = "perf run mixed".to_owned();
        let runs = vec![bare, example(), later, elsewhere];
        let text = tables(&Records { runs, sheets: Vec::new() }, Show::All);
        let notes: Vec<&str> = text.lines().filter(|line| line.starts_with(['1', '2', '3'])).collect();
        let [another, newer] = notes.as_slice() else { panic!("{text}") };
        assert!(another.contains("Another CPU") && newer.ends_with("2026-11-23"), "{text}");
    }

    #[test]
    fn the_same_scenario_at_another_rate_or_with_settings_is_another_record_and_says_so() {
        let [mut slow, mut tuned] = [example(), example()];
        slow.environment.command = "scripts/perf run mixed --rate 100".to_owned();
        tuned.environment.command = "OUTCRY_A_B=1 scripts/perf run mixed".to_owned();
        let records = Records { runs: vec![example(), slow, tuned], sheets: Vec::new() };
        let text = tables(&records, Show::All);
        for name in ["mixed", "mixed --rate 100", "OUTCRY_A_B=1 mixed"] {
            let start = format!("| `{name}` | orders that rest |");
            assert_eq!(text.lines().filter(|line| line.starts_with(&start)).count(), 1, "{text}");
        }
        let text = tables(&records, Show::Headlines);
        assert!(text.contains("| `mixed` |") && !text.contains("OUTCRY_A_B"), "{text}");
    }

    #[test]
    fn a_row_has_the_rate_of_its_class_and_marks_what_is_the_slowest_request_alone() {
        for (count, row) in [
            (10_000, "2,000 | 40.0 µs | 60.0 µs | 90.0 µs |"),
            (999, "200 | 40.0 µs | 60.0 µs | 90.0 µs* |"),
            (99, "20 | 40.0 µs | 60.0 µs* | 90.0 µs* |"),
        ] {
            let mut summary = example();
            summary.classes[0].latency.count = count;
            let text = tables(&Records { runs: vec![summary], sheets: Vec::new() }, Show::All);
            assert!(text.contains(&format!("| `mixed` | orders that rest | {row} 1 |")), "{text}");
            assert_eq!(text.contains(ALONE_TEXT), count < 1_000, "{text}");
        }
    }

    #[test]
    fn what_was_not_measured_has_no_row() {
        for (what, value, unit, has_row) in [
            ("server's read, p50", 0.0, Unit::Ns, false),
            ("first import, CPU of outcry", 0.0, Unit::S, false),
            ("server's away, p50", 31_000.0, Unit::Ns, false),
            ("server's turn, p50", 31_000.0, Unit::Ns, true),
            ("missed", 0.0, Unit::Count, true),
        ] {
            let sheet = Sheet { figures: vec![Figure::new(what, value, unit)], ..sheet::example() };
            assert_eq!(figures(&sheet, |_, _| true).len(), usize::from(has_row), "{what}");
        }
    }

    #[test]
    fn the_same_benchmark_with_other_settings_is_another_record() {
        let mut durable = sheet::example();
        durable.environment.command = "ROUNDTRIP_DURABILITY=durable scripts/perf bench roundtrip".to_owned();
        let sheets = vec![sheet::example(), durable, sheet::example()];
        let text = tables(&Records { runs: Vec::new(), sheets }, Show::All);
        assert_eq!(text.lines().filter(|line| line.contains(", profile bench: ")).count(), 2, "{text}");
    }

    #[test]
    fn a_row_says_with_which_settings_it_was_measured() {
        for (command, wanted) in [
            ("scripts/perf bench roundtrip", "roundtrip"),
            (
                "ROUNDTRIP_DURABILITY=durable scripts/perf bench roundtrip",
                "ROUNDTRIP_DURABILITY=durable roundtrip",
            ),
            ("scripts/perf bench roundtrip -- a.b=1", "roundtrip -- a.b=1"),
            ("scripts/perf bench restart --profile release -- 10 DIR", "restart -- 10 DIR"),
            ("scripts/perf bench reads --profile release", "reads"),
            ("scripts/perf scale", "bench-roundtrip"),
            ("OUTCRY_A_B=1 scripts/perf scale", "OUTCRY_A_B=1 bench-roundtrip"),
        ] {
            let mut sheet = sheet::example();
            command.clone_into(&mut sheet.environment.command);
            assert_eq!(measured_by(&sheet), wanted);
        }
    }

    #[test]
    fn without_marks_or_records_it_says_so() {
        assert!(with_tables("no marks", &Records::default(), Show::All).unwrap_err().contains(BEGIN));
        assert!(tables(&Records::default(), Show::All).contains("No run is on record yet"));
    }

    #[test]
    fn what_a_figure_is_of_cannot_end_its_cell() {
        assert_eq!(cell("a|b"), "a\\|b");
    }

    #[test]
    fn readme_shows_the_newest_record_of_what_matters_most() {
        let mut elsewhere = example();
        elsewhere.environment.cpu_model = "A newer CPU".to_owned();
        elsewhere.environment.date = "2026-11-24T00:00:00Z".to_owned();
        let mut other = example();
        other.environment.command = "scripts/perf run mixed --rate 100".to_owned();
        let runs = vec![example(), elsewhere, other];
        let text = tables(&Records { runs, sheets: vec![sheet::example()] }, Show::Headlines);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(
            rows,
            [
                "| `roundtrip` | signed POST /order, p50 | 39.8 µs | floor 37.9 µs | 1.05 | 1 |",
                "| `mixed` | orders that rest | 2,000 | 40.0 µs | 60.0 µs | 90.0 µs | 2 |",
            ]
        );
        assert!(text.contains("A newer CPU") && !text.contains("server's"), "{text}");
    }

    fn project() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    #[test]
    fn the_files_are_as_the_records_say() {
        update(project(), true).unwrap();
    }

    #[test]
    fn every_headline_has_a_row() {
        let text = tables(&records::all(&project().join("perf/records")).unwrap(), Show::Headlines);
        for (name, what) in HEADLINES {
            assert!(text.contains(&format!("| `{name}` | {what} |")), "{name}: {what}");
        }
        for name in HEADLINE_SCENARIOS {
            assert!(text.contains(&format!("| `{name}` |")), "{name}");
        }
    }
}
