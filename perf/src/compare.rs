//! Two servers, or two settings of one, under the same load. Runs come in pairs whose order changes (AB, BA, …), so that
//! drift affects both sides alike. The result is the median of the pairs' ratios.
//!
//! If A and B are alike, each pair is as likely to be above 1 as below. So how many are tells how likely chance alone is
//! to do that, whatever noise is like (the sign test), and the same count gives the interval of the median. Several
//! figures have as many chances to look different, so a difference is claimed only if its chance, times the number of
//! figures, is at most one in twenty (Bonferroni).

use std::path::PathBuf;
use std::process::Command;

use serde::Serialize;

use crate::machine;
use crate::report::{self, Page};
use crate::run::{self, Cpus, Ground};
use crate::scenario::Plan;
use crate::server;
use crate::summary::{ClassTimes, Summary};

/// A difference with at most this chance of being none is claimed.
const CHANCE_MAX: f64 = 0.05;

/// The fewest pairs of which one figure can say anything: if all of six agree, chance does that in 3 of 100 comparisons,
/// and in 6 of 100 with five.
pub(crate) const PAIRS_MIN: u32 = 6;

/// The figure of a class that is compared.
type Figure = fn(&ClassTimes) -> f64;

/// The ratio of one figure of B to that of A.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Ratio {
    /// Class and quantile.
    pub(crate) figure: String,
    /// Median of the ratios of all pairs.
    pub(crate) median: f64,
    /// Lower end of the interval that holds the true median in 95 of 100 comparisons, of this figure alone.
    pub(crate) low: f64,
    /// Upper end of that interval.
    pub(crate) high: f64,
    /// The chance that so many pairs agree if A and B are alike.
    pub(crate) chance: f64,
    /// Median of A in microseconds.
    pub(crate) a_us: f64,
    /// Median of B in microseconds.
    pub(crate) b_us: f64,
}

impl Ratio {
    /// What it means.
    pub(crate) fn says(&self, among: Among) -> String {
        if CHANCE_MAX < self.chance {
            return "no difference seen".to_owned();
        }
        let is = if among.claims(self.chance) { "is" } else { "seems" };
        let way = if 1.0 < self.median { "slower" } else { "faster" };
        format!("B {is} {way}, by {:.1} %", 100.0 * (self.median - 1.0).abs())
    }
}

/// What a ratio stands among.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Among {
    /// How many figures are compared.
    pub(crate) figures: usize,
    /// How many runs are INVALID.
    pub(crate) invalid_runs: usize,
}

impl Among {
    /// Whether a difference is claimed: no run is INVALID, and all figures together have that chance at most.
    fn claims(self, chance: f64) -> bool {
        #[allow(clippy::cast_precision_loss, reason = "figures are few")]
        let figures = self.figures as f64;
        self.invalid_runs == 0 && chance * figures <= CHANCE_MAX
    }
}

/// One side of the comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side<'a> {
    /// A binary, or a revision.
    pub(crate) server: &'a str,
    /// Settings that are laid over the scenario's.
    pub(crate) set: &'a [String],
}

impl Side<'_> {
    fn text(&self) -> String {
        if self.set.is_empty() {
            self.server.to_owned()
        } else {
            format!("{} with {}", self.server, self.set.join(" "))
        }
    }
}

/// What a comparison leaves behind.
#[derive(Debug, Serialize)]
struct Comparison<'a> {
    scenario: &'a str,
    a: &'a str,
    b: &'a str,
    a_set: &'a [String],
    b_set: &'a [String],
    pairs: u32,
    invalid_runs: usize,
    ratios: &'a [Ratio],
    environment: &'a crate::machine::Environment,
}

/// Compares two servers and writes what was found.
pub(crate) fn run(ground: &Ground, plan: &Plan, sides: [Side<'_>; 2], pairs: u32) -> Result<(), String> {
    let binaries = [binary(ground, sides[0].server)?, binary(ground, sides[1].server)?];
    let plans = plans(plan, sides, machine::allowed_cpus().len(), Cpus::choose()?)?;
    let [a, b] = sides.map(|side| side.text());
    println!("A is {a}; B is {b}; {pairs} pairs of {} at {}/s", plan.name, plan.rate);
    let grounds = binaries.map(|server| Ground { server, ..ground.clone() });
    let (runs, failed) =
        in_pairs(pairs, |side| run::run(&grounds[side], &plans[side]).map(|outcome| outcome.summary));
    let Some(last) = runs[1].last() else { return failed.map_or(Ok(()), Err) };
    let pairs = u32::try_from(runs[1].len()).expect("no more than were asked for");
    let ratios = ratios(&runs[0], &runs[1]);
    let invalid = runs.iter().flatten().filter(|summary| !summary.verdict.valid).count();
    let among = Among { figures: ratios.len(), invalid_runs: invalid };
    for ratio in &ratios {
        println!("{}", line(ratio, among));
    }
    let caution = caution(invalid, 2 * pairs);
    println!("{caution}");
    let comparison = Comparison {
        scenario: &plan.name,
        a: sides[0].server,
        b: sides[1].server,
        a_set: sides[0].set,
        b_set: sides[1].set,
        pairs,
        invalid_runs: invalid,
        ratios: &ratios,
        environment: &last.environment,
    };
    println!("{}", write(ground, &comparison, [&a, &b], &caution)?);
    failed.map_or(Ok(()), Err)
}

/// The sides in the order in which this pair runs them: what changes with time then favours neither.
pub(crate) fn sides_of(pair: u32) -> [usize; 2] {
    if pair.is_multiple_of(2) { [0, 1] } else { [1, 0] }
}

/// The runs of both sides, pair by pair; if one fails, those of the pairs before it, and which it was.
fn in_pairs(
    pairs: u32,
    mut measure: impl FnMut(usize) -> Result<Summary, String>,
) -> ([Vec<Summary>; 2], Option<String>) {
    let mut runs: [Vec<Summary>; 2] = [Vec::new(), Vec::new()];
    for pair in 0..pairs {
        for side in sides_of(pair) {
            let name = ["A", "B"][side];
            let summary = match measure(side) {
                Ok(summary) => summary,
                Err(fault) => {
                    for runs in &mut runs {
                        runs.truncate(pair as usize);
                    }
                    let number = pair + 1;
                    return (runs, Some(format!("{name} of pair {number} of {pairs} failed: {fault}")));
                }
            };
            println!(
                "{name}{:3}: p50 {:9.1} µs  p99 {:9.1} µs  {}",
                pair + 1,
                summary.all.p50_us,
                summary.all.p99_us,
                summary.verdict.word()
            );
            runs[side].push(summary);
        }
    }
    (runs, None)
}

/// The plan of each side on a machine with `cpus` CPUs, on those that are `chosen`. The side's own settings come last,
/// behind what a run adds by itself: a side that names one setting of CPUs keeps the others, but for the CPUs of shards
/// where it says how many there are or who places them.
fn plans(plan: &Plan, sides: [Side<'_>; 2], cpus: usize, chosen: Cpus) -> Result<[Plan; 2], String> {
    const PLACING: [&str; 3] = ["cpu.policy=", "cpu.shards=", "cpu.shard_cpus="];
    let places = |setting: &String| PLACING.iter().any(|name| setting.starts_with(name));
    let here = plan.on(cpus)?;
    let settings = run::settings(&here, chosen);
    Ok(sides.map(|side| {
        let is_placed = side.set.iter().any(places);
        let stays = |setting: &&String| !(is_placed && places(setting)) || here.settings.contains(setting);
        let settings = settings.iter().filter(stays).cloned().collect();
        Plan { settings, ..here.clone() }.set(side.set)
    }))
}

/// How much the ratios may be believed.
fn caution(invalid: usize, runs: u32) -> String {
    match invalid {
        0 => format!("All {runs} runs are VALID."),
        _ => format!(
            "{invalid} of {runs} runs are INVALID: the ratios are an indication, and nothing is claimed."
        ),
    }
}

fn line(ratio: &Ratio, among: Among) -> String {
    format!(
        "{:12} A {:9.1} µs  B {:9.1} µs  B/A {:.3} [{:.3}, {:.3}]  {}",
        ratio.figure,
        ratio.a_us,
        ratio.b_us,
        ratio.median,
        ratio.low,
        ratio.high,
        ratio.says(among)
    )
}

/// The binary that a name means: a file, or the binary kept for a revision.
fn binary(ground: &Ground, name: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(name);
    if path.is_file() {
        return server::binary(&path);
    }
    let output = Command::new("git")
        .arg("-C")
        .arg(&ground.project)
        .args(["rev-parse", "--verify", "--quiet", "--short=7", &format!("{name}^{{commit}}")])
        .output()
        .map_err(|fault| format!("git: {fault}"))?;
    let commit = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if commit.is_empty() {
        return Err(format!("{name}: neither a file nor a revision"));
    }
    let path = ground.project.join("target/perf/servers").join(&commit).join("outcry");
    if path.is_file() {
        return Ok(path);
    }
    Err(format!(
        "{name}: revision {commit} is not built; check it out elsewhere, build it with the same profile, \
         and put its binary at target/perf/servers/{commit}/outcry"
    ))
}

/// The ratios of p50 and p99 of each class that both have.
fn ratios(before: &[Summary], after: &[Summary]) -> Vec<Ratio> {
    let Some(first) = before.first() else { return Vec::new() };
    let mut found = Vec::new();
    for class in &first.classes {
        let quantiles: [(&str, Figure); 2] =
            [("p50", |times| times.latency.p50_us), ("p99", |times| times.latency.p99_us)];
        for (name, value) in quantiles {
            let values = |runs: &[Summary]| -> Vec<f64> {
                runs.iter().filter_map(|run| run.class(&class.class)).map(value).collect()
            };
            let (before, after) = (values(before), values(after));
            if before.len() == after.len() {
                found.push(ratio(format!("{} {name}", class.class), &before, &after));
            }
        }
    }
    found
}

fn ratio(figure: String, before: &[f64], after: &[f64]) -> Ratio {
    let mut pairs: Vec<f64> = before.iter().zip(after).map(|(before, after)| after / before).collect();
    let median_ratio = median(&mut pairs);
    let count = pairs.len();
    // Pairs that do not differ agree with neither side.
    let agreeing = |way: fn(&f64) -> bool| pairs.iter().filter(|pair| way(pair)).count();
    let against = count - agreeing(|pair| *pair < 1.0).max(agreeing(|pair| 1.0 < *pair));
    // So many of the lowest and of the highest pairs lie outside the interval.
    let outside = (0..count / 2).take_while(|&few| chance(few, count) <= CHANCE_MAX).count();
    let last = outside.saturating_sub(1);
    Ratio {
        figure,
        median: median_ratio,
        low: pairs[last],
        high: pairs[count - 1 - last],
        chance: chance(against, count),
        a_us: median(&mut before.to_vec()),
        b_us: median(&mut after.to_vec()),
    }
}

/// The chance that at most `against` of `pairs` fair coins, or all but so many, show the same side.
fn chance(against: usize, pairs: usize) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "pairs are few")]
    let [pairs, against] = [pairs as f64, against as f64];
    let mut log_ways = -pairs * std::f64::consts::LN_2;
    let (mut side, mut few) = (0.0, 0.0);
    while few <= against {
        side += f64::exp(log_ways);
        few += 1.0;
        log_ways += f64::ln((pairs - few + 1.0) / few);
    }
    (2.0 * side).min(1.0)
}

/// The middle value, or the midpoint of the two in the middle.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) {
        f64::midpoint(values[middle - 1], values[middle])
    } else {
        values[middle]
    }
}

fn write(
    ground: &Ground,
    comparison: &Comparison<'_>,
    sides: [&str; 2],
    caution: &str,
) -> Result<String, String> {
    let name = format!("compare-{}", comparison.scenario);
    let folder = report::new_folder(&ground.out, &name, &crate::machine::now())?;
    let mut json = serde_json::to_string_pretty(comparison).expect("it has no maps with odd keys");
    json.push('\n');
    report::save(&folder.join("compare.json"), json.as_bytes())?;
    let mut page = Page::new(&format!("outcry perf: two servers under {}", comparison.scenario));
    page.paragraph(&format!("A is {}; B is {}. {caution}", sides[0], sides[1]));
    page.note(&format!(
        "{} pairs of runs, in changing order. The ratio is the median of B to A over the pairs; the interval holds the true one \
         in 95 of 100 comparisons, for each figure alone. B is slower or faster if chance does what was seen, in any of \
         the {} figures, in at most 5 of 100 comparisons of equals, and if all runs are VALID; it seems so if chance does it \
         in at most 5 of 100 in this figure alone.",
        comparison.pairs,
        comparison.ratios.len()
    ));
    let among = Among { figures: comparison.ratios.len(), invalid_runs: comparison.invalid_runs };
    let rows = comparison.ratios.iter().map(|ratio| {
        vec![
            ratio.figure.clone(),
            report::micros(ratio.a_us),
            report::micros(ratio.b_us),
            format!("{:.3}", ratio.median),
            format!("{:.3} to {:.3}", ratio.low, ratio.high),
            ratio.says(among),
        ]
    });
    page.table("B to A", &["", "A", "B", "ratio", "interval", ""], &rows.collect::<Vec<_>>());
    let path = folder.join("report.html");
    report::save(&path, page.end().as_bytes())?;
    Ok(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Random;

    fn noisy(level: f64, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..20).map(|_| level * (0.95 + 0.1 * random.unit())).collect()
    }

    const ONE: Among = Among { figures: 1, invalid_runs: 0 };

    #[test]
    fn a_difference_is_seen_and_none_is_not() {
        let before = noisy(100.0, 1);
        let slower = ratio("x".to_owned(), &before, &noisy(120.0, 2));
        assert!(slower.says(ONE).starts_with("B is slower, by "), "{slower:?}");
        assert!((1.15..1.25).contains(&slower.median), "{slower:?}");
        let faster = ratio("x".to_owned(), &before, &noisy(80.0, 3));
        assert!(faster.says(ONE).starts_with("B is faster, by "), "{faster:?}");
        let mut other = before.clone();
        other.reverse();
        let same = ratio("x".to_owned(), &before, &other);
        assert_eq!(same.says(ONE), "no difference seen", "{same:?}");
        assert!(same.low <= same.median && same.median <= same.high, "{same:?}");
    }

    #[test]
    fn what_is_claimed_depends_on_pairs_that_agree_on_figures_and_on_the_runs() {
        let (is, seems, none) = ("B is slower, by 10.0 %", "B seems slower, by 10.0 %", "no difference seen");
        let text = |end: f64| format!("{end:.3}");
        // Of all pairs so many are 10 % slower; the others are as much faster.
        for (slower, pairs, figures, invalid_runs, says, interval) in [
            (6, 6, 1, 0, is, [1.1, 1.1]),
            (6, 6, 2, 0, seems, [1.1, 1.1]),
            (10, 10, 6, 0, is, [1.1, 1.1]),
            (10, 10, 6, 1, seems, [1.1, 1.1]),
            (9, 10, 6, 0, seems, [1.1, 1.1]),
            (9, 10, 2, 0, is, [1.1, 1.1]),
            (8, 10, 1, 0, none, [0.9, 1.1]),
            (18, 20, 6, 0, is, [1.1, 1.1]),
            (15, 20, 6, 0, seems, [1.1, 1.1]),
            (14, 20, 6, 0, none, [0.9, 1.1]),
        ] {
            let after: Vec<f64> = (0..pairs).map(|pair| if pair < slower { 110.0 } else { 90.0 }).collect();
            let ratio = ratio("x".to_owned(), &vec![100.0; pairs], &after);
            let of =
                format!("{slower} of {pairs} pairs, {figures} figures, {invalid_runs} INVALID: {ratio:?}");
            assert_eq!(ratio.says(Among { figures, invalid_runs }), says, "{of}");
            assert_eq!([ratio.low, ratio.high].map(text), interval.map(text), "{of}");
            assert_eq!(ratio.chance <= CHANCE_MAX, 1.0 < ratio.low, "the interval says the same: {of}");
        }
    }

    #[test]
    fn equals_are_called_different_in_at_most_one_of_twenty_comparisons() {
        let among = Among { figures: 6, invalid_runs: 0 };
        let mut random = Random::new(7);
        for pairs in [6, 10, 20] {
            let mut runs = || -> Vec<f64> { (0..pairs).map(|_| 100.0 + 10.0 * random.unit()).collect() };
            let mut is_different = || ratio("x".to_owned(), &runs(), &runs()).says(among).starts_with("B is");
            let wrong =
                (0..1_000).filter(|_| (0..among.figures).filter(|_| is_different()).count() > 0).count();
            assert!(wrong <= 50, "{wrong} of 1,000 comparisons with {pairs} pairs");
        }
    }

    #[test]
    fn the_chance_is_that_of_fair_coins() {
        for (against, pairs, expected) in
            [(0, 6, 2.0 / 64.0), (1, 10, 22.0 / 1_024.0), (5, 10, 1.0), (0, 1_000, 0.0), (500, 1_000, 1.0)]
        {
            assert!((chance(against, pairs) - expected).abs() < 1e-9, "{against} of {pairs}");
        }
    }

    #[test]
    fn the_sides_differ_in_what_is_set_for_each_and_in_nothing_else() {
        let text = "purpose = \"x\"\n[load]\nrate = 1\n[mix]\nplace = 1\n[server]\ncpus = 3\n[server.set]\n\
                    \"cpu.ingress\" = \"1\"\n\"cpu.wait\" = \"spin\"\n[server.set_on_fewer]\n\"cpu.wait\" = \"park\"\n";
        let plan = Plan::parse("t", text).unwrap();
        let bare = Plan::parse("t", "purpose = \"x\"\n[load]\nrate = 1\n[mix]\nplace = 1\n").unwrap();
        let chosen = Cpus { client: 1, server: 0 };
        for (plan, set, cpus, settings, said) in [
            (&plan, vec![], 2, vec!["cpu.ingress=1", "cpu.wait=park"], "outcry"),
            (&plan, vec![], 3, vec!["cpu.ingress=1", "cpu.wait=spin"], "outcry"),
            (
                &plan,
                vec!["cpu.ingress=", "cpu.wait=spin"],
                2,
                vec!["cpu.wait=spin"],
                "outcry with cpu.ingress= cpu.wait=spin",
            ),
            (
                &bare,
                vec!["cpu.wait=park"],
                2,
                vec!["cpu.policy=explicit", "cpu.shard_cpus=0", "cpu.wait=park"],
                "outcry with cpu.wait=park",
            ),
            (
                &bare,
                vec!["cpu.shards=2"],
                2,
                vec!["cpu.shards=2", "cpu.wait=spin"],
                "outcry with cpu.shards=2",
            ),
        ] {
            let set: Vec<String> = set.into_iter().map(str::to_owned).collect();
            let (own, none) = (Side { server: "outcry", set: &set }, Side { server: "outcry", set: &[] });
            let [a, b] = plans(plan, [own, none], cpus, chosen).unwrap();
            let mut found = a.settings.clone();
            found.sort_unstable();
            let always = ["auth.window_s=600", "journal.durability=committed"];
            let expected = always[..1].iter().copied().chain(settings).chain(always[1..].iter().copied());
            assert_eq!((found, own.text().as_str()), (expected.map(str::to_owned).collect(), said));
            assert_eq!(Plan { settings: b.settings.clone(), ..a }, b);
        }
    }

    #[test]
    fn a_run_that_fails_leaves_the_pairs_before_it() {
        // Runs come as A B, B A, A B.
        for (fails_at, whole, failed) in [
            (1, 0, Some("A of pair 1 of 3 failed: it died")),
            (2, 0, Some("B of pair 1 of 3 failed: it died")),
            (4, 1, Some("A of pair 2 of 3 failed: it died")),
            (6, 2, Some("B of pair 3 of 3 failed: it died")),
            (7, 3, None),
        ] {
            let mut count = 0;
            let (runs, told) = in_pairs(3, |_| {
                count += 1;
                if count < fails_at { Ok(crate::summary::example()) } else { Err("it died".to_owned()) }
            });
            assert_eq!((runs.map(|runs| runs.len()), told.as_deref()), ([whole; 2], failed), "{fails_at}");
        }
    }

    #[test]
    fn the_same_runs_have_the_ratio_one() {
        let values = noisy(50.0, 4);
        let same = ratio("x".to_owned(), &values, &values);
        assert_eq!((same.median, same.low, same.high, same.chance), (1.0, 1.0, 1.0, 1.0));
    }

    #[test]
    fn a_median_is_the_middle_or_between_the_two() {
        let medians = (median(&mut [3.0, 1.0, 2.0]), median(&mut [4.0, 1.0, 2.0, 3.0]));
        assert_eq!(medians, (2.0, 2.5));
    }
}
