//! Two servers, or two settings of one, under the same load. Runs come in pairs whose order changes (AB,
//! BA, …), so that drift affects both sides alike; the result is a ratio, with an interval from resampling
//! the pairs.

use std::path::PathBuf;
use std::process::Command;

use serde::Serialize;

use crate::machine;
use crate::report::{self, Page};
use crate::run::{self, Ground};
use crate::scenario::Plan;
use crate::schedule::Random;
use crate::summary::{ClassTimes, Summary};

/// Resamples for an interval; between seeds its ends move by less than one printed digit.
const RESAMPLES: usize = 10_000;

/// The part of all resamples whose median lies within the interval.
const CONFIDENCE: f64 = 0.95;

/// The figure of a class that is compared.
type Figure = fn(&ClassTimes) -> f64;

/// The ratio of one figure of B to that of A.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Ratio {
    /// Class and quantile.
    pub(crate) figure: String,
    /// Median of the ratios of all pairs.
    pub(crate) median: f64,
    /// Lower end of the interval that holds the medians of 95 of 100 resamples.
    pub(crate) low: f64,
    /// Upper end of that interval.
    pub(crate) high: f64,
    /// Median of A in microseconds.
    pub(crate) a_us: f64,
    /// Median of B in microseconds.
    pub(crate) b_us: f64,
}

impl Ratio {
    /// What it means.
    pub(crate) fn says(&self) -> String {
        let part = |ratio: f64| format!("{:.1} %", 100.0 * (ratio - 1.0).abs());
        match (self.low, self.high) {
            (low, _) if 1.0 < low => format!("B is slower, by {}", part(self.median)),
            (_, high) if high < 1.0 => format!("B is faster, by {}", part(self.median)),
            _ => "no difference seen".to_owned(),
        }
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
    let plans = plans(plan, sides, machine::allowed_cpus().len())?;
    let [a, b] = sides.map(|side| side.text());
    println!("A is {a}; B is {b}; {pairs} pairs of {} at {}/s", plan.name, plan.rate);
    let mut runs: [Vec<Summary>; 2] = [Vec::new(), Vec::new()];
    for pair in 0..pairs {
        let order = if pair.is_multiple_of(2) { [0, 1] } else { [1, 0] };
        for side in order {
            let ground = Ground { server: binaries[side].clone(), ..ground.clone() };
            let summary = run::run(&ground, &plans[side])?.summary;
            println!(
                "{}{:3}: p50 {:9.1} µs  p99 {:9.1} µs  {}",
                ["A", "B"][side],
                pair + 1,
                summary.all.p50_us,
                summary.all.p99_us,
                summary.verdict.word()
            );
            runs[side].push(summary);
        }
    }
    let ratios = ratios(&runs[0], &runs[1], plan.seed);
    for ratio in &ratios {
        println!("{}", line(ratio));
    }
    let invalid = runs.iter().flatten().filter(|summary| !summary.verdict.valid).count();
    let caution = caution(invalid, 2 * pairs);
    println!("{caution}");
    let last = runs[1].last().expect("there are pairs");
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
    Ok(())
}

/// The plan of each side on a machine with `cpus` CPUs; the side's own settings come last.
fn plans(plan: &Plan, sides: [Side<'_>; 2], cpus: usize) -> Result<[Plan; 2], String> {
    let here = plan.on(cpus)?;
    Ok(sides.map(|side| here.clone().set(side.set)))
}

/// How much the ratios may be believed.
fn caution(invalid: usize, runs: u32) -> String {
    match invalid {
        0 => format!("All {runs} runs are VALID."),
        _ => format!("{invalid} of {runs} runs are INVALID: the ratios are an indication, not a result."),
    }
}

fn line(ratio: &Ratio) -> String {
    format!(
        "{:12} A {:9.1} µs  B {:9.1} µs  B/A {:.3} [{:.3}, {:.3}]  {}",
        ratio.figure,
        ratio.a_us,
        ratio.b_us,
        ratio.median,
        ratio.low,
        ratio.high,
        ratio.says()
    )
}

/// The binary that a name means: a file, or the binary kept for a revision.
fn binary(ground: &Ground, name: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(name);
    if path.is_file() {
        return Ok(path);
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
fn ratios(before: &[Summary], after: &[Summary], seed: u64) -> Vec<Ratio> {
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
                found.push(ratio(format!("{} {name}", class.class), &before, &after, seed));
            }
        }
    }
    found
}

fn ratio(figure: String, before: &[f64], after: &[f64], seed: u64) -> Ratio {
    let pairs: Vec<f64> = before.iter().zip(after).map(|(before, after)| after / before).collect();
    let mut random = Random::new(seed);
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| median(&mut (0..pairs.len()).map(|_| pairs[random.below(pairs.len())]).collect::<Vec<_>>()))
        .collect();
    medians.sort_by(f64::total_cmp);
    #[allow(clippy::cast_precision_loss, reason = "resamples are few")]
    let at = |part: f64| medians[crate::stats::small(part * (RESAMPLES - 1) as f64)];
    let tail = (1.0 - CONFIDENCE) / 2.0;
    Ratio {
        figure,
        median: median(&mut pairs.clone()),
        low: at(tail),
        high: at(1.0 - tail),
        a_us: median(&mut before.to_vec()),
        b_us: median(&mut after.to_vec()),
    }
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
        "{} pairs of runs, in changing order. The ratio is the median of B to A over the pairs; the interval \
         holds the medians of 95 of 100 resamples of the pairs.",
        comparison.pairs
    ));
    let rows = comparison.ratios.iter().map(|ratio| {
        vec![
            ratio.figure.clone(),
            report::micros(ratio.a_us),
            report::micros(ratio.b_us),
            format!("{:.3}", ratio.median),
            format!("{:.3} to {:.3}", ratio.low, ratio.high),
            ratio.says(),
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

    fn noisy(level: f64, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..20).map(|_| level * (0.95 + 0.1 * random.unit())).collect()
    }

    #[test]
    fn a_difference_is_seen_and_none_is_not() {
        let before = noisy(100.0, 1);
        let slower = ratio("x".to_owned(), &before, &noisy(120.0, 2), 7);
        assert!(slower.says().starts_with("B is slower, by "), "{slower:?}");
        assert!((1.15..1.25).contains(&slower.median), "{slower:?}");
        let faster = ratio("x".to_owned(), &before, &noisy(80.0, 3), 7);
        assert!(faster.says().starts_with("B is faster, by "), "{faster:?}");
        let mut other = before.clone();
        other.reverse();
        let same = ratio("x".to_owned(), &before, &other, 7);
        assert_eq!(same.says(), "no difference seen", "{same:?}");
        assert!(same.low <= same.median && same.median <= same.high, "{same:?}");
    }

    #[test]
    fn the_sides_differ_in_what_is_set_for_each_and_in_nothing_else() {
        let text = "purpose = \"x\"\n[load]\nrate = 1\n[mix]\nplace = 1\n[server]\ncpus = 3\n[server.set]\n\
                    \"cpu.ingress\" = \"1\"\n\"cpu.wait\" = \"spin\"\n[server.set_on_fewer]\n\"cpu.wait\" = \"park\"\n";
        let plan = Plan::parse("t", text).unwrap();
        for (set, cpus, settings, said) in [
            (vec![], 2, vec!["cpu.ingress=1", "cpu.wait=park"], "outcry"),
            (vec![], 3, vec!["cpu.ingress=1", "cpu.wait=spin"], "outcry"),
            (
                vec!["cpu.ingress=", "cpu.wait=spin"],
                2,
                vec!["cpu.wait=spin"],
                "outcry with cpu.ingress= cpu.wait=spin",
            ),
        ] {
            let set: Vec<String> = set.into_iter().map(str::to_owned).collect();
            let (own, none) = (Side { server: "outcry", set: &set }, Side { server: "outcry", set: &[] });
            let [a, b] = plans(&plan, [own, none], cpus).unwrap();
            assert_eq!(
                (a.settings.clone(), own.text().as_str()),
                (settings.into_iter().map(str::to_owned).collect(), said)
            );
            assert_eq!(Plan { settings: b.settings.clone(), ..a }, b);
        }
    }

    #[test]
    fn the_same_runs_have_the_ratio_one() {
        let values = noisy(50.0, 4);
        let same = ratio("x".to_owned(), &values, &values, 7);
        assert_eq!((same.median, same.low, same.high), (1.0, 1.0, 1.0));
    }

    #[test]
    fn a_median_is_the_middle_or_between_the_two() {
        let medians = (median(&mut [3.0, 1.0, 2.0]), median(&mut [4.0, 1.0, 2.0, 3.0]));
        assert_eq!(medians, (2.0, 2.5));
    }
}
