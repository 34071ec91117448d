//! What an order costs as the state grows, one dimension at a time: books, wallets, open orders and history. Each is
//! taken to its base, ten times and a hundred times that, while the others stay; then follows what shards gain
//! ([`crate::shards`]).
//!
//! Every size has a server of its own, which gets its state and then the same load at a moderate fixed rate: orders and
//! as many cancels, so that the state stays as it is. The cost is the server's own: all stages of an order except the
//! signature, which costs the same whatever the state is. The base is measured first and last. The difference of the
//! two is the machine's, and no smaller growth is reported.

use std::time::Duration;

use crate::bench;
use crate::figures::{Figure, Unit};
use crate::machine::{self, Environment};
use crate::report;
use crate::run::{self, BUT_SIGN, Ground, Outcome};
use crate::scenario::Plan;
use crate::shards;
use crate::sheet::{self, Sheet};
use crate::stats::Quantiles;
use crate::verdict::Verdict;
use crate::watch::FamilyWatch;

/// Requests a second, of which half are orders: far from what one loop can do, so that none waits.
const RATE: u32 = 4_000;

/// Connections, for any number of wallets.
const CONNECTIONS: u32 = 10;

/// Growth for ten times as much below which a cost is called flat.
const FLAT_MAX: f64 = 1.10;

/// How long each CPU is watched before and after each of the ten runs.
const JITTER: Duration = Duration::from_millis(100);

/// What grows. The bases are small enough to be prepared in a second. A hundred times the history, which is a million
/// orders, takes most of the time and is the limit of this measurement.
const DIMENSIONS: [(&str, u32); 4] =
    [("books", 10), ("wallets", 10), ("open orders", 1_000), ("orders of history", 10_000)];

/// The name of the sheet.
pub(crate) const SHEET: &str = "scale";

/// The least time, in microseconds, of which a ratio is told: `Server-Timing` cuts times to 0.1 µs, which is 5 % of this.
pub(crate) const RATIO_US_MIN: f64 = 2.0;

/// The largest of all sizes is this many times its base.
pub(crate) const FACTOR_MAX: u32 = 100;

/// How much of the command is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// The largest factor: 1, 10 or 100.
    pub(crate) factor_max: u32,
    /// How long each size is measured.
    pub(crate) time: Duration,
    /// Orders with which shards are measured.
    pub(crate) orders: u32,
}

/// One size, measured.
#[derive(Clone, Debug)]
struct Row {
    /// The index in [`DIMENSIONS`]; `None` is the base of all.
    dimension: Option<usize>,
    factor: u32,
    /// An order from the moment at which it was due.
    place: Quantiles,
    /// The server's medians in microseconds.
    match_us: f64,
    journal_us: f64,
    cost_us: f64,
    verdict: Verdict,
}

/// Measures all sizes and writes what was found.
pub(crate) fn run(ground: &Ground, extent: Extent) -> Result<(), String> {
    let environment = Environment::capture(&ground.project, &ground.profile);
    let ground = &Ground { jitter: JITTER, ..ground.clone() };
    let watch = FamilyWatch::begin();
    println!("{}", head());
    let mut rows = vec![measure(ground, None, 1, extent.time)?];
    for dimension in 0..DIMENSIONS.len() {
        for factor in [10, 100].into_iter().filter(|&factor| factor <= extent.factor_max) {
            rows.push(measure(ground, Some(dimension), factor, extent.time)?);
        }
    }
    rows.push(measure(ground, None, 1, extent.time)?);
    let growths = growths(&rows);
    for (name, growth) in &growths {
        println!("{}", says(name, *growth));
    }
    println!("{}", drift_says(drift(&rows)));
    let of_shards = FamilyWatch::begin();
    let shards = shards::measure(ground, extent.orders)?;
    let disturbed = Verdict::of_share(
        of_shards.share(),
        of_shards.largest().as_ref(),
        machine::allowed_cpus().len(),
        Vec::new(),
    );
    print!("{}", shards::text(&shards));
    let mut figures = figures(&rows, &growths);
    figures.extend(shards::figures(&shards));
    // Each size has its own verdict; between sizes servers start and end, and a history is written.
    let verdict = Verdict::because(reasons(&rows, &disturbed));
    let sheet = Sheet::new(SHEET.to_owned(), verdict, (watch.seconds(), watch.share()), figures, environment);
    print!("{}", bench::verdict(&sheet.verdict));
    println!("{}", sheet.write(&ground.out)?);
    Ok(())
}

/// The size of each dimension, all at their bases except one.
fn sizes(dimension: Option<usize>, factor: u32) -> [u32; DIMENSIONS.len()] {
    let mut sizes = DIMENSIONS.map(|(_, base)| base);
    if let Some(dimension) = dimension {
        sizes[dimension] *= factor;
    }
    sizes
}

fn plan(sizes: [u32; DIMENSIONS.len()], time: Duration) -> Result<Plan, String> {
    let [markets, wallets, resting, history] = sizes;
    let text = format!(
        "purpose = \"What an order costs as the state grows.\"\n[load]\nrate = {RATE}\nconnections = {CONNECTIONS}\n\
         warm_up_s = 0.5\ntime_s = {:?}\n[mix]\nplace = 1\ncancel = 1\n[books]\nmarkets = {markets}\n\
         wallets = {wallets}\nresting = {resting}\nhistory = {history}\n",
        time.as_secs_f64()
    );
    Plan::parse(SHEET, &text)
}

fn measure(ground: &Ground, dimension: Option<usize>, factor: u32, time: Duration) -> Result<Row, String> {
    let outcome = run::run(ground, &plan(sizes(dimension, factor), time)?)?;
    let row = row(dimension, factor, &outcome)?;
    println!("{}", line(&row));
    Ok(row)
}

fn row(dimension: Option<usize>, factor: u32, outcome: &Outcome) -> Result<Row, String> {
    let place = outcome.summary.class("place").ok_or("no order was answered")?.latency;
    let stage = |name: &str| {
        let stage = outcome.place.iter().find(|stage| stage.stage == name);
        let stage = stage.ok_or_else(|| format!("the server does not tell {name} in Server-Timing"))?;
        Ok::<f64, String>(stage.time.p50_us)
    };
    Ok(Row {
        dimension,
        factor,
        place,
        match_us: stage("match")?,
        journal_us: stage("journal")?,
        cost_us: stage(BUT_SIGN)?,
        verdict: outcome.summary.verdict.clone(),
    })
}

/// One of the times of a size, in microseconds.
type Time = fn(&Row) -> f64;

impl Row {
    fn name(&self) -> String {
        let Some(dimension) = self.dimension else { return "base".to_owned() };
        let (name, base) = DIMENSIONS[dimension];
        format!("{} {name}", report::count(f64::from(base * self.factor)))
    }
}

fn head() -> String {
    let names = ["p50 µs", "p99 µs", "match", "journal", BUT_SIGN];
    format!("{:22}{}", "an order, server's p50", names.map(|name| format!("{name:>13}")).concat())
}

fn line(row: &Row) -> String {
    let numbers = [row.place.p50_us, row.place.p99_us, row.match_us, row.journal_us, row.cost_us];
    let numbers = numbers.map(|number| format!("{number:13.2}")).concat();
    format!("{:22}{numbers}  {}", row.name(), row.verdict.word())
}

fn bases(rows: &[Row]) -> impl Iterator<Item = &Row> {
    rows.iter().filter(|row| row.dimension.is_none())
}

/// A time of the base: the mean of its measurements.
fn base_us(rows: &[Row], of: Time) -> f64 {
    let times: Vec<f64> = bases(rows).map(of).collect();
    #[allow(clippy::cast_precision_loss, reason = "two")]
    let count = times.len() as f64;
    times.iter().sum::<f64>() / count
}

/// The largest measurement of the base divided by the smallest.
fn drift(rows: &[Row]) -> f64 {
    let (low, high) = bases(rows)
        .fold((f64::MAX, 0.0_f64), |(low, high), row| (low.min(row.cost_us), high.max(row.cost_us)));
    high / low
}

/// The factor by which the cost grows for ten times as much of each dimension, from the base to the largest size.
fn growths(rows: &[Row]) -> Vec<(&'static str, f64)> {
    let base = base_us(rows, |row| row.cost_us);
    let one = |(index, (name, _)): (usize, &(&'static str, u32))| {
        let largest = rows.iter().filter(|row| row.dimension == Some(index)).max_by_key(|row| row.factor)?;
        let tens = f64::from(largest.factor).log10();
        Some((*name, (largest.cost_us / base).powf(1.0 / tens)))
    };
    DIMENSIONS.iter().enumerate().filter_map(one).collect()
}

fn says(name: &str, growth: f64) -> String {
    if growth <= FLAT_MAX {
        return format!("{name}: flat ({growth:.2} times for 10 times as much)");
    }
    format!("{name}: grows, {growth:.2} times for 10 times as much")
}

fn drift_says(drift: f64) -> String {
    if drift <= FLAT_MAX {
        return format!("The base came again within {:.0} %.", 100.0 * (drift - 1.0));
    }
    format!(
        "The base itself moved by {:.0} %: what grew by less than that is not told.",
        100.0 * (drift - 1.0)
    )
}

/// Why the figures are not to be believed; `shards` is who else had the CPUs while shards were measured.
fn reasons(rows: &[Row], shards: &Verdict) -> Vec<String> {
    let mut reasons: Vec<String> = rows
        .iter()
        .filter(|row| !row.verdict.valid)
        .map(|row| format!("{}: {}", row.name(), row.verdict.reasons.join("; ")))
        .collect();
    if FLAT_MAX < drift(rows) {
        reasons.push(drift_says(drift(rows)));
    }
    reasons.extend(shards.reasons.iter().map(|reason| format!("shards: {reason}")));
    reasons
}

fn figures(rows: &[Row], growths: &[(&'static str, f64)]) -> Vec<Figure> {
    let mut figures: Vec<Figure> = growths
        .iter()
        .map(|(name, growth)| (format!("an order's cost for 10 times the {name}"), *growth))
        .map(|(what, growth)| Figure::new(what, sheet::rounded(growth), Unit::Ratio))
        .collect();
    let times: [(&str, Time); 3] = [
        (&format!("{BUT_SIGN}, p50"), |row| row.cost_us),
        ("match, p50", |row| row.match_us),
        ("order, p99", |row| row.place.p99_us),
    ];
    for row in rows.iter().filter(|row| row.dimension.is_some()) {
        figures.extend(times.iter().map(|(what, of)| {
            let figure = Figure::new(format!("{}: {what}", row.name()), sheet::rounded(of(row)), Unit::Us);
            figure.beside("base", sheet::rounded(base_us(rows, *of)))
        }));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(dimension: Option<usize>, factor: u32, cost_us: f64) -> Row {
        Row {
            dimension,
            factor,
            place: Quantiles { p50_us: 40.0, p99_us: 60.0, ..Quantiles::default() },
            match_us: 1.0,
            journal_us: 0.5,
            cost_us,
            verdict: Verdict::because(Vec::new()),
        }
    }

    fn rows() -> Vec<Row> {
        vec![
            row(None, 1, 4.9),
            row(Some(0), 10, 5.0),
            row(Some(0), 100, 5.2),
            row(Some(2), 10, 20.0),
            row(Some(2), 100, 80.0),
            Row { place: Quantiles { p99_us: 80.0, ..Quantiles::default() }, ..row(None, 1, 5.1) },
        ]
    }

    #[test]
    fn growth_is_from_the_base_to_the_largest_size_by_tens() {
        let growths = growths(&rows());
        let [(books, flat), (orders, grown)] = growths.as_slice() else { panic!("{growths:?}") };
        assert_eq!((*books, *orders), ("books", "open orders"));
        assert!((flat - 1.04_f64.sqrt()).abs() < 1e-9 && (grown - 4.0).abs() < 1e-9, "{growths:?}");
        assert_eq!(says(books, *flat), "books: flat (1.02 times for 10 times as much)");
        assert_eq!(says(orders, *grown), "open orders: grows, 4.00 times for 10 times as much");
    }

    #[test]
    fn a_base_that_does_not_come_again_and_a_disturbed_size_are_reasons() {
        assert_eq!(reasons(&rows(), &Verdict::because(Vec::new())), [] as [String; 0]);
        let mut moved = rows();
        moved[5].cost_us = 9.8;
        moved[1].verdict = Verdict::because(vec!["steal: 3 %".to_owned()]);
        let reasons = reasons(&moved, &Verdict::because(vec!["steal: 4 %".to_owned()]));
        assert_eq!(reasons[0], "100 books: steal: 3 %");
        assert!(reasons[1].starts_with("The base itself moved by 100 %"), "{reasons:?}");
        assert_eq!(reasons[2..], ["shards: steal: 4 %"]);
    }

    #[test]
    fn one_dimension_grows_and_the_others_stay() {
        assert_eq!(sizes(None, 1), [10, 10, 1_000, 10_000]);
        assert_eq!(sizes(Some(3), 100), [10, 10, 1_000, 1_000_000]);
        for dimension in 0..DIMENSIONS.len() {
            plan(sizes(Some(dimension), FACTOR_MAX), Duration::from_secs(2)).unwrap();
        }
    }

    #[test]
    fn each_size_has_its_figures_once() {
        let figures = figures(&rows(), &growths(&rows()));
        assert_eq!(figures.len(), 2 + 4 * 3);
        assert_eq!(figures[2].what, "100 books: all but sign, p50");
        assert_eq!(figures[2].beside.as_ref().map(|beside| beside.value), Some(5.0));
        let p99 =
            |name: &str| figures.iter().find(|figure| figure.what == name).and_then(|it| it.beside.clone());
        assert_eq!(p99("100 books: order, p99").map(|base| base.value), Some(70.0), "the mean of both bases");
        for (index, figure) in figures.iter().enumerate() {
            assert!(figures[..index].iter().all(|other| other.what != figure.what), "{}", figure.what);
        }
    }
}
