//! What a second shard gains: the rate of orders at saturation on one shard and on two, and the CPU time of every
//! thread of the server for each order.
//!
//! If each shard, the reader and the client can have a CPU each, the rate is measured. With fewer CPUs that is
//! impossible: then the whole server shares one CPU in both cases, its loops sleep when they have nothing to do, and
//! the CPU time of the busiest thread gives the rate that would be possible if every thread had a CPU.
//!
//! More shards are worked out, not measured: the CPU time of shards is divided among them, and the reader and the
//! journal's thread, of which there is one each, take the same time for an order whatever the number of shards.

use std::time::Instant;

use crate::figures::{Figure, Unit};
use crate::generator::Generator;
use crate::machine;
use crate::report;
use crate::run::{Cpus, Ground, Rig};
use crate::scenario::Plan;
use crate::schedule::Schedule;
use crate::sheet;
use crate::watch;
use crate::workload::{Request, Workload};

/// How many shards are tried.
const SHARDS: [usize; 2] = [1, 2];

/// Numbers of shards that are worked out.
const ON_PAPER: [u32; 4] = [3, 4, 8, 16];

/// The name of a shard's thread, without the number at its end.
const SHARD: &str = "outcry-shard";

/// Of all orders, one in this many warms up and does not count.
const WARM_UP_PART: usize = 8;

/// Threads with less CPU time for an order than this are not reported.
const TOLD_US_MIN: f64 = 0.05;

/// CPUs besides the shards': the reader's and the client's.
const OTHER_CPUS: usize = 2;

/// The measurement of one number of shards.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    shards: usize,
    /// Orders a second that were answered.
    orders_per_s: f64,
    /// CPU time for each order by the thread's name, in microseconds.
    threads_us: Vec<(String, f64)>,
    /// True if no two loops shared a CPU.
    apart: bool,
}

impl Load {
    /// The thread that had the most CPU time, which is the first that is full.
    fn busiest(&self) -> (&str, f64) {
        let busiest = self.threads_us.iter().max_by(|one, other| one.1.total_cmp(&other.1));
        busiest.map_or(("nobody", f64::INFINITY), |(name, us)| (name, *us))
    }

    /// Orders a second with `shards` shards, if each thread has a CPU and nothing costs more with more shards.
    fn on_paper_per_s(&self, shards: u32) -> f64 {
        let of_shards: f64 =
            self.threads_us.iter().filter(|(name, _)| name.starts_with(SHARD)).map(|(_, us)| us).sum();
        (f64::from(shards) * 1e6 / of_shards).min(self.shared().1)
    }

    /// The first thread to be full of those of which there is only one, and the rate at which it is full.
    fn shared(&self) -> (&str, f64) {
        let others = self.threads_us.iter().filter(|(name, _)| !name.starts_with(SHARD));
        let busiest = others.max_by(|one, other| one.1.total_cmp(&other.1));
        busiest.map_or(("nothing", f64::INFINITY), |(name, us)| (name, 1e6 / us))
    }

    /// Orders a second if every thread had a CPU of its own and nothing else to do.
    fn implied_per_s(&self) -> f64 {
        1e6 / self.busiest().1
    }
}

/// Measures each number of shards in turn with the given number of orders.
pub(crate) fn measure(ground: &Ground, orders: u32) -> Result<Vec<Load>, String> {
    SHARDS.into_iter().map(|shards| load(ground, orders, shards)).collect()
}

fn load(ground: &Ground, orders: u32, shards: usize) -> Result<Load, String> {
    let allowed = machine::allowed_cpus();
    let cpus = Cpus::choose()?;
    let apart = shards + OTHER_CPUS <= allowed.len();
    let plan = plan(orders, &settings(&allowed, shards, apart))?;
    let mut rig = Rig::set(ground, &ground.server, &plan, cpus)?;
    if !apart {
        // Only now: started on one CPU, the server would have planned for one, with shard and reader in one loop.
        machine::keep_on(rig.server.pid(), cpus.server)?;
    }
    let flooded = flooded(&mut rig, &plan, cpus).map_err(|fault| rig.server.told(&fault));
    let (count, seconds, mut threads_us) = flooded?;
    rig.end();
    for (_, us) in &mut threads_us {
        *us /= count;
    }
    threads_us.retain(|(_, us)| TOLD_US_MIN <= *us);
    Ok(Load { shards, orders_per_s: count / seconds, threads_us, apart })
}

/// How many orders were counted, the seconds that they took, and the microseconds that each thread spent on them.
type Flooded = (f64, f64, Vec<(String, f64)>);

/// Sends all orders of a plan.
fn flooded(rig: &mut Rig, plan: &Plan, cpus: Cpus) -> Result<Flooded, String> {
    let schedule = Schedule::of(plan);
    let Workload { requests, .. } = Workload::make(plan, &schedule, &rig.tokens, &mut rig.accounts);
    let (warm_up, counted) = requests.split_at(requests.len() / WARM_UP_PART);
    let _pinned = machine::pin(cpus.client)?;
    flood(&mut rig.generator, warm_up)?;
    rig.server.settle()?;
    let before = watch::threads_ns(rig.server.pid());
    let begin = Instant::now();
    flood(&mut rig.generator, counted)?;
    let seconds = begin.elapsed().as_secs_f64();
    rig.server.settle()?;
    let after = watch::threads_ns(rig.server.pid());
    #[allow(clippy::cast_precision_loss, reason = "orders are far fewer than 2^53")]
    let count = counted.len() as f64;
    Ok((count, seconds, spent(&before, &after)))
}

fn flood(generator: &mut Generator, requests: &[Request]) -> Result<(), String> {
    generator.flood(requests).map_err(|fault| format!("at saturation: {fault}"))
}

fn settings(allowed: &[usize], shards: usize, apart: bool) -> Vec<String> {
    let numbers: Vec<String> = allowed.iter().take(shards).map(usize::to_string).collect();
    if apart {
        return vec![
            "cpu.policy=explicit".to_owned(),
            format!("cpu.shard_cpus={}", numbers.join(",")),
            format!("cpu.reader={}", allowed[shards]),
            "cpu.wait=shard=spin,reader=park".to_owned(),
        ];
    }
    vec!["cpu.policy=unpinned".to_owned(), format!("cpu.shards={shards}"), "cpu.wait=park".to_owned()]
}

/// Orders that rest, in eight markets and over sixteen connections; the rate only sets their number.
fn plan(orders: u32, settings: &[String]) -> Result<Plan, String> {
    let text = format!(
        "purpose = \"What a second shard gains.\"\n[load]\nrate = {orders}\nconnections = 16\nwarm_up_s = 0\n\
         time_s = 1\n[mix]\nplace = 1\n[books]\nmarkets = 8\nresting = 0\n"
    );
    Ok(Plan { settings: settings.to_vec(), ..Plan::parse("shards", &text)? })
}

/// Microseconds of CPU time by thread between two looks, the largest first.
fn spent(before: &[(String, u64)], after: &[(String, u64)]) -> Vec<(String, f64)> {
    let had = |name: &str| before.iter().find(|(known, _)| known == name).map_or(0, |(_, ns)| *ns);
    let mut spent: Vec<(String, f64)> = after
        .iter()
        .map(|(name, ns)| (name.clone(), crate::stats::as_micros(ns.saturating_sub(had(name)))))
        .filter(|(_, us)| 0.0 < *us)
        .collect();
    spent.sort_by(|one, other| other.1.total_cmp(&one.1));
    spent
}

/// `1 shard`, `2 shards`.
fn named(shards: usize) -> String {
    if shards == 1 { "1 shard".to_owned() } else { format!("{shards} shards") }
}

/// What was found, for a terminal.
pub(crate) fn text(loads: &[Load]) -> String {
    let mut lines = Vec::new();
    for load in loads {
        let threads: Vec<String> =
            load.threads_us.iter().map(|(name, us)| format!("{name} {us:.1}")).collect();
        let (busiest, _) = load.busiest();
        lines.push(format!(
            "{}: {} orders/s; µs of CPU an order: {}; {busiest} is full at {} orders/s",
            named(load.shards),
            report::count(load.orders_per_s),
            threads.join(", "),
            report::count(load.implied_per_s()),
        ));
    }
    if let Some(most) = loads.last() {
        let model = ON_PAPER.map(|shards| format!("{shards} {}", report::count(most.on_paper_per_s(shards))));
        let (shared, full) = most.shared();
        lines.push(format!(
            "On paper, orders a second by shards: {}; {shared}, of which there is one, is full at {}",
            model.join(", "),
            report::count(full)
        ));
    }
    if loads.iter().any(|load| !load.apart) {
        lines.push(
            "Not every loop had a CPU of its own: rates are of one CPU for the whole server, and what each \
             thread is full at is worked out from its CPU time."
                .to_owned(),
        );
    }
    lines.push(String::new());
    lines.join("\n")
}

/// The figures of all loads.
pub(crate) fn figures(loads: &[Load]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for load in loads {
        let of = |what: &str| format!("{what}, {}", named(load.shards));
        if load.apart {
            let rate = sheet::rounded(load.orders_per_s);
            figures.push(Figure::new(of("orders at saturation"), rate, Unit::PerS));
        }
        let implied = sheet::rounded(load.implied_per_s());
        figures.push(Figure::new(
            of("orders a second at which the busiest thread is full"),
            implied,
            Unit::PerS,
        ));
        for (name, us) in &load.threads_us {
            figures.push(Figure::new(of(&format!("CPU an order, {name}")), sheet::rounded(*us), Unit::Us));
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(apart: bool) -> Load {
        let threads_us = vec![("outcry-shard0".to_owned(), 20.0), ("outcry-reader".to_owned(), 5.0)];
        Load { shards: 2, orders_per_s: 30_000.0, threads_us, apart }
    }

    #[test]
    fn the_busiest_thread_says_what_could_be() {
        assert_eq!(load(true).busiest(), ("outcry-shard0", 20.0));
        let figures = figures(&[load(false)]);
        assert_eq!(
            figures[0],
            Figure::new(
                "orders a second at which the busiest thread is full, 2 shards",
                50_000.0,
                Unit::PerS
            )
        );
        assert_eq!(figures.len(), 3, "a rate of loops that share a CPU is not a figure");
        assert!(text(&[load(false)]).contains("outcry-shard0 is full at 50,000 orders/s\nOn paper, "));
        assert!(text(&[load(false)]).contains("Not every loop"));
        assert!(!text(&[load(true)]).contains("Not every loop"));
    }

    #[test]
    fn more_shards_on_paper_end_where_what_there_is_one_of_is_full() {
        let load = load(true);
        assert_eq!(load.shared(), ("outcry-reader", 200_000.0));
        let rates = [2, 4, 16].map(|shards| report::count(load.on_paper_per_s(shards)));
        assert_eq!(rates, ["100,000", "200,000", "200,000"]);
    }

    #[test]
    fn a_thread_that_did_nothing_is_left_out() {
        let at = |shard, other| vec![("shard".to_owned(), shard), ("other".to_owned(), other)];
        assert_eq!(spent(&at(1_000, 7), &at(4_000, 7)), [("shard".to_owned(), 3.0)]);
    }

    #[test]
    fn loops_that_can_be_apart_are() {
        assert_eq!(settings(&[0, 1, 2, 3], 2, true)[1..3], ["cpu.shard_cpus=0,1", "cpu.reader=2"]);
        assert_eq!(settings(&[0, 1], 2, false)[1], "cpu.shards=2");
    }
}
