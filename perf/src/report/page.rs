//! The contents of the page of a run, and of a sweep.

use super::html::{ALONE, Page, escaped};
use super::plot::{self, Bar, Chart, Series};
use super::{as_serve, glance, glossary, noise, numbers, planned, words};
use crate::jitter::Jitter;
use crate::parts::Parts;
use crate::stats::Quantiles;
use crate::summary::{LoopBusy, Stage, Summary};
use crate::sweep::Step;

/// The head of a table of [`quantile_row`]s.
pub(crate) const QUANTILES: [&str; 8] = ["", "count", "p50", "p90", "p99", "p99.9", "p99.99", "max"];

/// The server does not know when the warm-up ends.
const READS_IN_SERVER: &str =
    "Reads in the server, from their bytes to their answers, those of the warm-up included";

impl Page {
    /// The verdict with its reasons.
    pub(crate) fn verdict(&mut self, summary: &Summary) {
        let verdict = &summary.verdict;
        let class = if verdict.valid { "verdict" } else { "verdict invalid" };
        let says = if verdict.valid {
            format!(
                " 99 of 100 requests were sent within {} of the moment at which they were due, and all were answered.",
                numbers::micros(summary.late.p99_us)
            )
        } else {
            " The figures below are not the server's alone.".to_owned()
        };
        self.push(&format!("<div class=\"{class}\"><b>{}.</b>{says}", verdict.word()));
        self.paragraph(&noise::can_be_valid(summary));
        if !verdict.valid {
            self.list(&verdict.reasons);
            for words in noise::next_time(summary) {
                self.paragraph(&words);
            }
        }
        self.push("</div>");
    }

    /// All sections about one run.
    pub(crate) fn about(&mut self, summary: &Summary) -> Result<(), String> {
        self.verdict(summary);
        self.paragraph(&words::offered(summary));
        self.list(&words::answers(summary));
        if let Some(words) = words::beside_record(summary) {
            self.paragraph(&words);
        }
        if let Some(words) = as_serve::note(summary) {
            self.note(&words);
        }
        self.heading("What limits this box");
        let rows: Vec<_> = glance::rows(summary).into_iter().map(Vec::from).collect();
        if !rows.is_empty() {
            self.words("At a glance", &glance::HEAD, &rows);
        }
        if let Some(as_serve) = &summary.as_serve {
            self.table(&as_serve::title(as_serve), &as_serve::HEAD, &as_serve::rows(summary, as_serve));
            self.list(&as_serve::reasons(as_serve));
        }
        if let Some(words) = words::without_disk(summary) {
            self.note(&words);
        }
        self.folded("The same in full, with what was measured besides", &words::limits(summary));
        self.planned(summary);
        self.own_account(summary);
        self.heading("What to know of these figures");
        self.list(&words::cautions(summary));
        self.percentiles(summary)?;
        self.time_line(summary)?;
        self.stages(summary)?;
        self.heading("What the cores lose by themselves");
        self.note(
            "A thread that only spins, before and after the run, on all of the same cores at once: each moment of more than \
             1 µs in which it did not run is a gap. One in a hundred, or a thousand, that come at any moment waits as long as the \
             columns before the last say: a long gap is met more often than a short one.",
        );
        let when = |when: &str, rows: &[Jitter]| -> Vec<Vec<String>> {
            rows.iter().map(|row| jitter_row(&format!("{when}, CPU {}", row.cpu), row)).collect()
        };
        let rows = [when("before", &summary.jitter_before), when("after", &summary.jitter_after)].concat();
        self.table(
            "Gaps",
            &["", "gaps/s", "p50", "p99", "p99.9", "max", "1 in 100 waits", "1 in 1,000 waits", "time lost"],
            &rows,
        );
        self.environment(summary);
        self.heading("What the words mean");
        self.list(&glossary::words());
        Ok(())
    }

    /// The server's own account of the machine.
    fn own_account(&mut self, summary: &Summary) {
        let limits = words::own_account(summary);
        // If the plan of this run has its figures, those from another moment would only confuse.
        let is_planned = summary.planned.as_ref().is_some_and(|planned| !planned.how_much.is_empty());
        let answers = if is_planned { Vec::new() } else { words::own_answers(summary) };
        if limits.is_empty() && answers.is_empty() {
            return;
        }
        self.heading("What the server says of this machine");
        self.note("By `outcry topology`, of `serve` left alone, without a look at this run.");
        self.list(&limits);
        self.facts(&answers);
    }

    /// Rates of a sweep against the time that requests took.
    pub(crate) fn hockey_stick(&mut self, steps: &[Step]) -> Result<(), String> {
        self.heading("Time against rate");
        self.note("All classes together, from the moment at which each request was due. Where the lines climb, requests queue up.");
        let measured = || steps.iter().filter(|step| step.is_measured());
        let line = |colour, value: fn(&Quantiles) -> f64| Series {
            colour,
            points: measured().map(|step| (step.offered_per_s, value(&step.latency))).collect(),
        };
        let series =
            [line(0, |times| times.p50_us), line(1, |times| times.p99_us), line(3, |times| times.p999_us)];
        let right = steps.iter().map(|step| step.offered_per_s).fold(1.0, f64::max);
        let chart = Chart {
            x_name: "requests a second, offered",
            x_text: &numbers::count,
            x: (0.0, right * 1.02),
            x_labels: 8,
            series: &series,
            dots: true,
        };
        self.chart(&[(0, "p50"), (1, "p99"), (3, "p99.9")], &chart.svg()?);
        let rows = steps.iter().map(|step| {
            let row = quantile_row("", &step.latency);
            let times = [2, 4, 5, 7].map(|column: usize| row[column].clone());
            let rates = [step.offered_per_s, step.achieved_per_s].map(numbers::count);
            let busiest = step
                .busiest
                .as_ref()
                .map_or_else(String::new, |share| format!("{}, {:.0} %", share.name, 100.0 * share.busy));
            let verdict = match step.verdict.reasons.as_slice() {
                [] => step.verdict.word().to_owned(),
                reasons => format!("{}: {}", step.verdict.word(), short_reasons(reasons)),
            };
            rates.into_iter().chain(times).chain([busiest, verdict]).collect()
        });
        let head = ["offered/s", "achieved/s", "p50", "p99", "p99.9", "max", "worked most", "verdict"];
        self.table("Each rate with a server of its own", &head, &rows.collect::<Vec<_>>());
        Ok(())
    }

    fn percentiles(&mut self, summary: &Summary) -> Result<(), String> {
        self.heading("How long requests took");
        self.note(
            "From the moment at which a request was due, so a stall is charged to all that it held up. To the \
             right the rare ones: at 99 %, one of a hundred took at least this. Upwards each line is ten times \
             the one below.",
        );
        let mut series = Vec::new();
        let mut names = Vec::new();
        for (colour, curve) in summary.curves.iter().enumerate() {
            let points = curve.points.iter().map(|&(quantile, micros)| (plot::nines(quantile), micros));
            series.push(Series { colour, points: points.collect() });
            names.push((colour, words::class(&curve.class)));
        }
        let right = series.iter().filter_map(|line| Some(line.points.last()?.0)).fold(2.0, f64::max);
        let chart = Chart {
            x_name: "percentile",
            x_text: &plot::nines_text,
            x: (0.0, right),
            x_labels: 8,
            series: &series,
            dots: false,
        };
        self.chart(&names, &chart.svg()?);
        let rows =
            summary.classes.iter().map(|times| quantile_row(words::class(&times.class), &times.latency));
        self.table("From the moment at which each was due", &QUANTILES, &rows.collect::<Vec<_>>());
        let rows =
            summary.classes.iter().map(|times| quantile_row(words::class(&times.class), &times.service));
        let mut rows: Vec<_> = rows.collect();
        rows.push(quantile_row("sent late by", &summary.late));
        self.table("From the moment at which each was sent", &QUANTILES, &rows);
        Ok(())
    }

    fn time_line(&mut self, summary: &Summary) -> Result<(), String> {
        self.heading("Over time");
        self.note("All requests by the tenth of a second in which they were due.");
        let line = |colour, value: fn(&crate::summary::Moment) -> f64| Series {
            colour,
            points: summary.time_line.iter().map(|moment| (moment.at_s, value(moment))).collect(),
        };
        let series = [
            line(0, |moment| moment.p50_us),
            line(1, |moment| moment.p99_us),
            line(3, |moment| moment.max_us),
        ];
        let chart = Chart {
            x_name: "seconds",
            x_text: &|second| format!("{}", (second * 10.0).round() / 10.0),
            x: (0.0, summary.time_s),
            x_labels: 10,
            series: &series,
            dots: false,
        };
        self.chart(&[(0, "p50"), (1, "p99"), (3, "max")], &chart.svg()?);
        Ok(())
    }

    fn stages(&mut self, summary: &Summary) -> Result<(), String> {
        if summary.stages.is_empty() {
            return Ok(());
        }
        self.heading("Inside the server");
        self.note(
            "What the server said about each answer (Server-Timing); its own clock. The stages of a request:",
        );
        self.list(&glossary::stages(&summary.stages));
        if glossary::has_reads(summary) {
            self.note(glossary::READS);
            let rows: Vec<_> =
                summary.reads_in_server.iter().map(|times| quantile_row("reads", times)).collect();
            if !rows.is_empty() {
                self.table(READS_IN_SERVER, &QUANTILES, &rows);
            }
        }
        let most = summary.commonest(|times| !times.stages.is_empty());
        let (class, stages) = most
            .map_or(("all classes", &summary.stages), |times| (words::class(&times.class), &times.stages));
        self.note(&format!("The median of each stage, one behind the other, of {class}:"));
        self.chart(&[], &plot::bars(&stage_bars(stages))?);
        self.parts(summary);
        let rows = |stages: &[Stage]| -> Vec<Vec<String>> {
            stages.iter().map(|stage| quantile_row(&stage.stage, &stage.time)).collect()
        };
        for times in summary.classes.iter().filter(|times| !times.stages.is_empty()) {
            self.table(
                &format!("Stages of {}", words::class(&times.class)),
                &QUANTILES,
                &rows(&times.stages),
            );
        }
        let batches = if summary.class("batch").is_some() {
            "; a batch of 15 counts as one, and is the longest of sign"
        } else {
            ""
        };
        self.table(&format!("Stages of all classes together{batches}"), &QUANTILES, &rows(&summary.stages));
        Ok(())
    }

    /// What the server said before the run, and what happened.
    fn planned(&mut self, summary: &Summary) {
        let row = |row: planned::Row| vec![row.what, row.plan, row.showed, row.times, row.why];
        let rows: Vec<_> = planned::rows(summary).into_iter().map(row).collect();
        if !rows.is_empty() {
            let head = ["", "plan", "this run", "", "why they may differ"];
            self.words("What the plan said, and what this run showed", &head, &rows);
        }
        if let Some(words) = planned::left_out(summary) {
            self.note(&words);
        }
    }

    /// Where the middle and the slowest requests of each class spent their time.
    fn parts(&mut self, summary: &Summary) {
        let Some(most) = summary.parts.iter().max_by_key(|parts| parts.stages.len()) else { return };
        let names: Vec<&str> = most.stages.iter().map(|(name, _)| name.as_str()).collect();
        let head = [&["", "requests", "took", "late"][..], &names, &["client", "in line", "unseen"]];
        let row = |parts: &Parts| {
            let of = |name: &&str| match parts.stage_us(name) {
                None if parts.stages.is_empty() => "-".to_owned(),
                us => numbers::micros(us.unwrap_or(0.0)),
            };
            let first =
                [format!("{}, {}", words::class(&parts.class), parts.of), numbers::count_of(parts.requests)];
            let times = [parts.latency_us, parts.late_us].map(numbers::micros).into_iter();
            let times = times.chain(names.iter().map(of));
            let told = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), numbers::micros);
            let outside = [parts.client_us, parts.line_us, Some(parts.unseen_us())].map(told);
            first.into_iter().chain(times).chain(outside).collect()
        };
        self.table(
            "Where the time went, on average of the requests around the median, around p99 and of the slowest thousandth",
            &head.concat(),
            &summary.parts.iter().map(row).collect::<Vec<_>>(),
        );
        self.note(
            "What follows `took` adds up to it. `late`: before it was sent. `client`: the request or its answer may \
             have lain there so long while the client sent, read others, or others had its CPU; the rig's. `in line`: \
             its loop was at others meanwhile, known where one loop has all connections. `unseen`: the remainder, of the kernel, the network, the scheduler and other processes, and of reads, of which the server tells no \
             stage, what it took itself.",
        );
    }

    fn environment(&mut self, summary: &Summary) {
        let environment = &summary.environment;
        self.heading("Machine, build, settings");
        let dirty = if environment.dirty { " with changes that are not committed" } else { "" };
        self.facts(&[
            ("command", environment.command.clone()),
            ("date", environment.date.clone()),
            ("commit", format!("{}{dirty}", environment.commit)),
            ("build", format!("{}, profile {}", environment.rustc, environment.profile)),
            ("CPU", environment.cpu_model.clone()),
            (
                "CPUs",
                format!(
                    "{}; server on {}, client on {}",
                    environment.cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
                    server_cpus(summary),
                    summary.client_cpu
                ),
            ),
            ("CPU time", cpu_time(summary)),
            ("loops worked", loops_worked(summary)),
            ("hypervisor", environment.hypervisor.clone()),
            ("memory", format!("{} MiB", environment.memory_bytes >> 20)),
            ("kernel", environment.kernel.clone()),
            ("kernel tuning", environment.kernel_tuning.clone()),
            ("governor", environment.governor.clone()),
            ("isolated CPUs", environment.isolated_cpus.clone()),
            ("nohz_full", environment.nohz_full.clone()),
            ("clock source", environment.clocksource.clone()),
            ("mitigations", environment.mitigations.join("; ")),
            ("huge pages", environment.huge_pages.clone()),
            ("load average", environment.load_average.clone()),
            ("seed", summary.seed.to_string()),
            ("warm-up", format!("{} s, in no time that the client took", summary.warm_up_s)),
            ("data", summary.data.clone()),
            ("settings that differ", summary.settings.join(" ")),
        ]);
        if !summary.server_said.is_empty() {
            self.heading("What the server said of itself");
            let said = escaped(&summary.server_said.join("\n"));
            self.push(&format!("<div class=\"wide\"><pre>{said}</pre></div>"));
        }
        if !summary.server_warned.is_empty() {
            self.heading("What the server warned of");
            let warned = escaped(&summary.server_warned.join("\n"));
            self.push(&format!("<div class=\"wide\"><pre>{warned}</pre></div>"));
        }
    }
}

/// A bar for each stage, from where the one before it ends; the total's bar starts at 0.
fn stage_bars(stages: &[Stage]) -> Vec<Bar> {
    let mut from = 0.0;
    let bar = |stage: &Stage| {
        let start = if stage.stage == "total" { 0.0 } else { from };
        let end = start + stage.time.p50_us;
        from = end;
        Bar {
            name: stage.stage.clone(),
            from: start,
            to: end,
            is_whole: stage.stage == "total",
            text: format!(
                "p50 {} · p99 {}",
                numbers::micros(stage.time.p50_us),
                numbers::micros(stage.time.p99_us)
            ),
        }
    };
    stages.iter().map(bar).collect()
}

/// The first words of each reason, without repetition: as much as fits into a cell.
pub(crate) fn short_reasons(reasons: &[String]) -> String {
    let mut short: Vec<&str> = Vec::new();
    for words in reasons.iter().map(|reason| reason.split(':').next().unwrap_or_default()) {
        if !short.contains(&words) {
            short.push(words);
        }
    }
    short.join(", ")
}

/// The CPUs of the server's trading loops.
fn server_cpus(summary: &Summary) -> String {
    if summary.threads.is_empty() {
        return summary.server_cpu.to_string();
    }
    let trading = summary.threads.iter().filter(|thread| thread.is_trading());
    let mut cpus: Vec<String> =
        trading.map(|thread| thread.cpu.map_or_else(|| "any".to_owned(), |cpu| cpu.to_string())).collect();
    cpus.dedup();
    cpus.join(", ")
}

fn cpu_time(summary: &Summary) -> String {
    let share = summary.share;
    let spins = summary.threads.iter().filter(|thread| thread.spins());
    let names: Vec<&str> = spins.map(|thread| thread.name.as_str()).collect();
    let spun = match names.as_slice() {
        [] => String::new(),
        [name] => format!(" ({name} spins: its CPU counts as used whether it works or not)"),
        names => format!(" ({} spin: their CPUs count as used whether they work or not)", names.join(", ")),
    };
    let kernel = words::kernel(summary).map_or_else(String::new, |words| format!("; {words}"));
    format!(
        "server {:.2} CPUs{spun}, others {:.2}, stolen by the hypervisor {:.2}{kernel}",
        share.server, share.others, share.stolen
    )
}

/// How much of the time each of the server's loops worked.
fn loops_worked(summary: &Summary) -> String {
    let of = |share: &LoopBusy| format!("{} {:.0} %", share.name, 100.0 * share.busy);
    let all: Vec<String> = summary.loops.iter().map(of).collect();
    if all.is_empty() { "not told".to_owned() } else { all.join(", ") }
}

/// A row of quantiles.
pub(crate) fn quantile_row(name: &str, quantiles: &Quantiles) -> Vec<String> {
    let count = numbers::count_of(quantiles.count);
    let times = [
        (quantiles.p50_us, 0),
        (quantiles.p90_us, 0),
        (quantiles.p99_us, 100),
        (quantiles.p999_us, 1_000),
        (quantiles.p9999_us, 10_000),
        (quantiles.max_us, 0),
    ];
    let cell = |(us, needed)| format!("{}{}", numbers::micros(us), mark(quantiles.count, needed));
    [name.to_owned(), count].into_iter().chain(times.map(cell)).collect()
}

/// The mark after a quantile of `count` requests that takes at least `needed`.
pub(crate) fn mark(count: u64, needed: u64) -> &'static str {
    if 0 < count && count < needed { ALONE } else { "" }
}

/// A row of gaps.
pub(crate) fn jitter_row(name: &str, row: &Jitter) -> Vec<String> {
    let times = [row.p50_us, row.p99_us, row.p999_us, row.max_us].map(numbers::micros);
    let first = [name.to_owned(), numbers::count(row.gaps_per_s)];
    let waits = [row.wait_p99_us, row.wait_p999_us].map(|us| us.map_or_else(String::new, numbers::micros));
    let lost = format!("{:.2} %", row.lost_percent);
    first.into_iter().chain(times).chain(waits).chain([lost]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::example;

    #[test]
    fn the_page_says_where_the_trading_loops_are() {
        for (cpus, expected) in [
            (vec![], "server on 0, client"),
            (vec![Some(2)], "server on 2, client"),
            (vec![Some(2), Some(1)], "server on 2, 1, client"),
            (vec![None, None], "server on any, client"),
        ] {
            let thread = |cpu| crate::placement::Thread { cpu, ..example().threads[0].clone() };
            let summary = Summary { threads: cpus.into_iter().map(thread).collect(), ..example() };
            let mut page = Page::new("x");
            page.about(&summary).unwrap();
            let page = page.end();
            assert!(page.contains(expected), "{expected}\n{page}");
        }
    }

    #[test]
    fn the_page_says_which_figures_have_the_warm_up_in_them() {
        let mut summary = example();
        "read".clone_into(&mut summary.classes[0].class);
        summary.classes[0].stages.clear();
        summary.reads_in_server = Some(Quantiles { count: 12_208, ..summary.all });
        let mut page = Page::new("x");
        page.about(&summary).unwrap();
        let page = page.end();
        for words in [
            "from their bytes to their answers, those of the warm-up included",
            "1 s, in no time that the client took",
        ] {
            assert!(page.contains(words), "{words}\n{page}");
        }
    }

    #[test]
    fn a_quantile_of_the_slowest_request_alone_is_marked_and_explained() {
        for (count, marked) in [
            (0, [false; 3]),
            (99, [true; 3]),
            (100, [false, true, true]),
            (999, [false, true, true]),
            (1_000, [false, false, true]),
            (9_999, [false, false, true]),
            (10_000, [false; 3]),
        ] {
            let row = quantile_row("orders", &Quantiles { count, ..Quantiles::default() });
            let came = [4, 5, 6].map(|column: usize| row[column].ends_with('*'));
            assert_eq!(came, marked, "{count}: {row:?}");
            assert!([2, 3, 7].iter().all(|&column: &usize| !row[column].ends_with('*')), "{row:?}");
            let mut page = Page::new("x");
            page.table("c", &QUANTILES, std::slice::from_ref(&row));
            page.table("the line is not said twice", &QUANTILES, &[row]);
            let lines = page.end().matches("the slowest request alone").count();
            assert_eq!(lines, usize::from(marked[2]), "{count}");
        }
    }
}
