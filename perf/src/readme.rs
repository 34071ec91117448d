//! README's table of figures, written from the records between two marks, so that nobody edits a
//! number by hand.

use std::path::Path;

use crate::records;
use crate::report;
use crate::summary::Summary;

const BEGIN: &str = "<!-- records: written by scripts/record-to-readme -->";
const END: &str = "<!-- end of records -->";

/// Writes the table into README, or says that it is not as it would be written.
pub(crate) fn update(project: &Path, check: bool) -> Result<(), String> {
    let path = project.join("README.md");
    let text = std::fs::read_to_string(&path).map_err(|fault| format!("README.md: {fault}"))?;
    let written = with_table(&text, &records::all(&project.join("perf/records"))?)?;
    if written == text {
        println!("README's table is as the records say");
        return Ok(());
    }
    if check {
        return Err("README's table is not what the records say; run scripts/record-to-readme".to_owned());
    }
    report::save(&path, written.as_bytes())?;
    println!("README's table is written anew");
    Ok(())
}

/// The text with the table of these records between the marks.
fn with_table(text: &str, records: &[Summary]) -> Result<String, String> {
    let missing = |mark: &str| format!("README.md: the line {mark} is missing");
    let (before, rest) = text.split_once(BEGIN).ok_or_else(|| missing(BEGIN))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| missing(END))?;
    Ok(format!("{before}{BEGIN}\n{}{END}{after}", table(records)))
}

/// A row for each class of the newest record of each scenario on each machine.
fn table(records: &[Summary]) -> String {
    if records.is_empty() {
        return "No run is on record yet: a machine that nobody else uses has to make it.\n".to_owned();
    }
    let mut rows = vec![String::from(
        "| scenario | what | a second | p50 | p99 | p99.9 | machine, commit, date |\n|---|---|---:|---:|---:|---:|---|\n",
    )];
    for summary in newest(records) {
        let environment = &summary.environment;
        let day = environment.date.get(..10).unwrap_or(&environment.date);
        let place =
            format!("{}, `{}`, {day}, `{}`", environment.machine(), environment.commit, environment.command);
        for times in &summary.classes {
            let latency = times.latency;
            rows.push(format!(
                "| `{}` | {} | {} | {} | {} | {} | {place} |\n",
                summary.scenario,
                report::class(&times.class),
                report::count(summary.achieved_per_s),
                report::micros(latency.p50_us),
                report::micros(latency.p99_us),
                report::micros(latency.p999_us),
            ));
        }
    }
    rows.concat()
}

/// The last record of each scenario on each machine, in the order of the scenarios' names.
fn newest(records: &[Summary]) -> Vec<&Summary> {
    let mut found: Vec<&Summary> = Vec::new();
    for summary in records {
        let same = |other: &&mut &Summary| {
            other.scenario == summary.scenario && other.environment.machine() == summary.environment.machine()
        };
        match found.iter_mut().find(same) {
            Some(older) => *older = summary,
            None => found.push(summary),
        }
    }
    found.sort_by(|one, other| one.scenario.cmp(&other.scenario));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::example;

    #[test]
    fn the_table_stands_between_the_marks_and_the_rest_stays() {
        let text = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let written = with_table(&text, &[example()]).unwrap();
        assert!(written.starts_with(&format!("before\n{BEGIN}\n| scenario |")), "{written}");
        assert!(written.ends_with(&format!("|\n{END}\nafter\n")), "{written}");
        assert_eq!(with_table(&written, &[example()]).unwrap(), written);
        assert!(!written.contains("old"));
    }

    #[test]
    fn a_row_has_machine_commit_date_and_command() {
        let text = table(&[example()]);
        let row = text.lines().nth(2).unwrap();
        assert_eq!(
            row,
            "| `mixed` | orders that rest | 2,000 | 40.0 µs | 60.0 µs | 90.0 µs | Some CPU, 2 CPUs, Linux 6.18.1, \
             `abc1234`, 2026-11-22, `scripts/perf run mixed` |"
        );
    }

    #[test]
    fn the_newest_record_of_a_scenario_on_a_machine_counts() {
        let mut later = example();
        later.environment.date = "2026-11-23T00:00:00Z".to_owned();
        let mut elsewhere = example();
        elsewhere.environment.cpu_model = "Another CPU".to_owned();
        let rows = [example(), later.clone(), elsewhere.clone()];
        assert_eq!(newest(&rows), [&later, &elsewhere]);
    }

    #[test]
    fn without_marks_or_records_it_says_so() {
        assert!(with_table("no marks", &[]).unwrap_err().contains(BEGIN));
        assert!(table(&[]).contains("No run is on record yet"));
    }

    #[test]
    fn readme_is_as_the_records_say() {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        update(project, true).unwrap();
    }
}
