//! Everything a run leaves behind: histograms, the summary, and one page for people.

use std::path::{Path, PathBuf};

use crate::run::Outcome;
use crate::stats::{self, Quantiles};
use crate::summary::Summary;
use crate::sweep::Step;

mod arrivals;
mod as_serve;
mod glance;
mod glossary;
mod html;
mod noise;
mod numbers;
mod page;
mod planned;
mod plot;
mod room;
mod spell;
mod taker;
mod went;
mod words;
mod writes;

pub(crate) use html::{ALONE, ALONE_TEXT, Page};
pub(crate) use numbers::{about, count, micros};
pub(crate) use page::{QUANTILES, mark, quantile_row, short_reasons};
pub(crate) use planned::orders_each;
pub(crate) use plot::{Bar, bars};
pub(crate) use room::{at_the_end, busiest};
pub(crate) use went::knows_signers;
pub(crate) use words::class;

/// Writes a run's files into a new folder below `out`, and says which.
pub(crate) fn write(out: &Path, outcome: &Outcome) -> Result<PathBuf, String> {
    let summary = &outcome.summary;
    let folder = new_folder(out, &summary.scenario, &summary.environment.date)?;
    histograms(&folder, outcome)?;
    save(&folder.join("summary.json"), summary.json().as_bytes())?;
    draw(&folder, summary)?;
    Ok(folder)
}

/// Writes the page of a run into its folder.
pub(crate) fn draw(folder: &Path, summary: &Summary) -> Result<(), String> {
    let mut page = Page::new(&format!("outcry perf: {}", summary.scenario));
    page.note(&summary.purpose);
    page.about(summary)?;
    save(&folder.join("report.html"), page.end().as_bytes())
}

/// Writes the histogram of each class in both forms.
pub(crate) fn histograms(folder: &Path, outcome: &Outcome) -> Result<(), String> {
    for (class, histogram) in &outcome.histograms {
        save(&folder.join(format!("{}.hdr", class.name())), &stats::hdr(histogram))?;
        save(&folder.join(format!("{}.hgrm", class.name())), &stats::hgrm(histogram))?;
    }
    Ok(())
}

/// A run for a terminal.
pub(crate) fn text(summary: &Summary) -> String {
    let mut lines = vec![format!(
        "{:8} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "class", "count", "p50 µs", "p90 µs", "p99 µs", "p99.9 µs", "max µs"
    )];
    for times in &summary.classes {
        let Quantiles { count, p50_us, p90_us, p99_us, p999_us, max_us, .. } = times.latency;
        let [p99, p999] = [(p99_us, 100), (p999_us, 1_000)]
            .map(|(us, needed)| format!("{us:10.1}{:1}", mark(count, needed)));
        let row = format!("{count:9} {p50_us:10.1} {p90_us:10.1} {p99}{p999}{max_us:10.1}");
        lines.push(format!("{:8} {row}", times.class));
    }
    if lines.iter().any(|line| line.contains(ALONE)) {
        lines.push(ALONE_TEXT.to_owned());
    }
    let (achieved, offered) = (summary.achieved_per_s, summary.offered_per_s);
    lines.push(format!("{achieved:.0} of {offered:.0} requests a second answered"));
    let arrivals = arrivals::words(&summary.arrivals, summary.burst, offered);
    // What it means is on the page.
    let came = |words: String| words.split(", whatever").next().map(|came| came.replace('`', ""));
    lines.extend(arrivals.and_then(came));
    lines.extend(words::beside_record(summary));
    lines.extend(as_serve::note(summary));
    lines.extend(glance::lines(summary));
    lines.extend(spell::of(summary));
    lines.extend(as_serve::lines(summary));
    let planned = planned::lines(summary).into_iter().map(|line| format!("  {line}"));
    let mut planned = planned.peekable();
    let head = "what was planned, and what this run shows (why they may differ is on the page):";
    lines.extend(planned.peek().map(|_| head.to_owned()));
    lines.extend(planned);
    lines.extend(words::kernel(summary));
    lines.push(noise::can_be_valid(summary));
    lines.push(format!("{}{}", summary.verdict.word(), as_serve::besides(summary)));
    lines.extend(summary.verdict.reasons.iter().map(|reason| format!("  {reason}")));
    lines.extend(noise::next_time(summary).into_iter().map(|next| format!("  next: {next}")));
    lines.push(String::new());
    lines.join("\n")
}

/// The names of the columns of [`step_line`].
pub(crate) fn step_head() -> String {
    let names = ["offered/s", "achieved/s", "p50 µs", "p99 µs", "p99.9 µs", "max µs", "busiest"];
    names.map(|name| format!("{name:>11}")).concat()
}

/// One rate of a sweep for a terminal.
pub(crate) fn step_line(step: &Step) -> String {
    let Quantiles { p50_us, p99_us, p999_us, max_us, .. } = step.latency;
    format!(
        "{:11.0}{:11.0}{p50_us:11.1}{p99_us:11.1}{p999_us:11.1}{max_us:11.1}{:>11}  {} {}",
        step.offered_per_s,
        step.achieved_per_s,
        step.busiest.as_ref().map_or_else(String::new, |share| format!("{:.0} %", 100.0 * share.busy)),
        step.verdict.word(),
        step.verdict.reasons.join("; ")
    )
}

/// Makes a folder named by time and name; a second one within the same second gets a number.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Recorded, example};
    use crate::verdict::Verdict;

    #[test]
    fn a_page_has_every_part_and_nothing_from_outside() {
        let folder = tempfile::tempdir().unwrap();
        let recorded = Some(Recorded { check_us: 13.0, of: "mixed".to_owned(), is_of_this_cpu: true });
        draw(folder.path(), &Summary { recorded, ..example() }).unwrap();
        let html = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
        for part in [
            "<b>VALID.</b> 99 of 100 requests were sent within 1.5 µs of the moment at which they were due",
            "2,000 requests a second were offered",
            "They were due at equal distances, 500",
            "Orders that rest: half of them within 40.0\u{a0}µs",
            "What limits this box",
            "To change: a machine with 4 cores.",
            "No answer waited for a disk here",
            "this box was 2.0 times as slow",
            "Users get what <code>serve</code> does here by itself: outcry-shard0 on CPU 0 (park)",
            "This box can give a VALID run: other processes had 0.1\u{a0}% of the 2 CPUs",
            "What the plan said, and what this run showed",
            "with warm caches",
            "Not held against the plan: p99",
            "What to know of these figures",
            "How long requests took",
            "Over time",
            "Inside the server",
            "What the cores lose by themselves",
            "Machine, build, settings",
            "durability committed",
            "server 1.00 CPUs (outcry-shard0 spins:",
        ] {
            assert!(html.contains(part), "{part} is missing");
        }
        // The SVG namespace is a name; no browser fetches it.
        let html = html.replace("http://www.w3.org/2000/svg", "");
        for planted in ["http://", "https://", "src=", "href=", "@import", "url("] {
            assert!(!html.contains(planted), "{planted}");
        }
    }

    #[test]
    fn stages_that_were_not_told_have_no_part() {
        let folder = tempfile::tempdir().unwrap();
        draw(folder.path(), &Summary { stages: Vec::new(), ..example() }).unwrap();
        let html = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
        assert!(!html.contains("Inside the server"));
    }

    #[test]
    fn an_invalid_run_names_its_reasons_first() {
        let mut summary = example();
        summary.verdict = Verdict { valid: false, reasons: vec!["steal: 3 %".to_owned()] };
        let text = text(&summary);
        assert!(text.contains("INVALID\n  steal: 3 %\n  next: The host had it"), "{text}");
        let folder = tempfile::tempdir().unwrap();
        draw(folder.path(), &summary).unwrap();
        let html = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
        let at = |words: &str| html.find(words).unwrap();
        assert!(at("<b>INVALID.</b>") < at("steal: 3\u{a0}%") && at("steal: 3\u{a0}%") < at("half of them"));
        assert!(at("steal: 3\u{a0}%") < at("wait and try again"));
    }

    #[test]
    fn what_the_kernels_threads_had_is_told_where_the_data_are_on_a_disk() {
        for (data, is_told) in [("disk", true), ("memory", false)] {
            let mut summary = Summary { data: data.to_owned(), ..example() };
            summary.share.kernel = 0.042;
            let words = "threads of the kernel, which write to the disk for the server, had 0.042 CPUs";
            let folder = tempfile::tempdir().unwrap();
            draw(folder.path(), &summary).unwrap();
            let html = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
            // Once beside the verdict, once with the CPU time.
            let told = html.replace('\u{a0}', " ").matches(words).count();
            assert_eq!(
                (told, text(&summary).contains(words)),
                (if is_told { 2 } else { 0 }, is_told),
                "{data}"
            );
        }
    }

    #[test]
    fn two_runs_within_a_second_have_a_folder_each() {
        let out = tempfile::tempdir().unwrap();
        let made = [(); 3].map(|()| new_folder(out.path(), "smoke", "2026-11-22T03:04:05Z").unwrap());
        let names = made.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
        assert_eq!(names, ["20261122T030405-smoke", "20261122T030405-smoke-2", "20261122T030405-smoke-3"]);
    }
}
