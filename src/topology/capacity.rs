//! How many orders a second a plan can take, and which loop is full first.
//!
//! The signature check is measured on the CPU at hand and comes in as a probe. The rest of an order was measured on
//! one guest (AMD EPYC, 2 CPUs), as the CPU time of each thread at peak throughput, and is a constant here:
//!
//! | part of an order | CPU time | on |
//! |---|---|---|
//! | signature check | measured; of a known signer [`KNOWN_PARTS`] | a loop with sockets |
//! | sockets, parsing, HMAC, matching, frame, answer | [`REST_NS`] | the same |
//! | following the log | [`READER_NS`] | the reader's loop, and that of a feed apart |
//! | matching, where a shard has no sockets | [`MATCH_NS`], an estimate | the shard's loop |
//!
//! Orders are assumed to spread evenly over connections and shards. A core's time can be spent once: loops on one
//! core share it, two threads of a core count as one, and loops that are not pinned share the cores that pinned ones
//! leave. What the journal's thread, the system and other programs need is not counted: [`super::answers`] takes it off
//! what it says of orders a second, where somebody looked.

use super::checks::{Follower, LoopWork, Needs, Scene, Sleeps, percent};
use super::cost;
use super::limit;
use super::machine::{Cpu, Machine, count_distinct, counted};
use super::placement::{INGRESS_MAX, Policy, SHARDS_MAX};

/// An order's CPU time on a loop with sockets, all but its signature check.
pub const REST_NS: u64 = 9_700;
/// An order's CPU time on the reader's loop, and on that of a feed apart.
pub const READER_NS: u64 = 1_500;
/// An order's CPU time on a shard's loop without sockets: the match, and both ends of two rings.
pub const MATCH_NS: u64 = 3_000;
/// The check of a known signer takes this many thousandths of another signer's.
const KNOWN_PARTS: u64 = 254;
/// The percentage of the capacity beyond which the median climbs: orders stand in line.
pub(super) const COMFORTABLE_PERCENT: u64 = 80;
/// A size that has room for about a hundred signers.
pub(super) const KNOWN_SETTING: &str = "auth.known_signers_bytes=16777216";

/// A signature check on the machine of README's figures (stage `sign`, p50, of `bench roundtrip`, `53c13a2`).
const README_CHECK_NS: u64 = 27_900;

pub(super) const SECOND_NS: u64 = 1_000_000_000;

/// A check that has less than half of a CPU is seldom left alone from its start to its end.
const DISTURBED_MILLIONTHS: u64 = 500_000;

/// One loop's share of the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The loop.
    pub name: String,
    /// Its CPU, if it is pinned.
    pub cpu: Option<usize>,
    /// Whether it has connections, and checks signatures.
    pub has_sockets: bool,
    /// Whether it matches.
    is_shard: bool,
    /// Its CPU time for each order of the exchange, on average.
    pub order_ns: u64,
    /// The orders a second, of the exchange, at which its core is full, or the cores that it shares.
    pub orders_per_second: u64,
    /// The other loops on the same core, or cores.
    pub beside: Vec<String>,
}

/// How many orders a second a plan can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// One signature check as it was measured.
    pub signature_ns: u64,
    /// The share of that CPU that others had meanwhile, in millionths of the time.
    pub signature_lost_millionths: u64,
    /// Whether known signers are kept, whose checks take less.
    pub knows_signers: bool,
    /// An order's CPU time on the loop that has its connection.
    pub order_ns: u64,
    /// Orders a second in all.
    pub orders_per_second: u64,
    /// Whether a quota is used up before any core is full.
    pub is_quota: bool,
    /// The cores that loops without a CPU of their own share.
    cores: String,
    /// Every loop that works on orders, in the plan's order.
    pub parts: Vec<Part>,
    /// The loops that are full first.
    pub first: Vec<String>,
    /// What would raise it on this machine.
    pub free: Vec<String>,
    /// What to buy that would raise it.
    pub bought: Vec<String>,
}

/// The capacity of a scene's plan, or why it is not known.
pub fn of(scene: &Scene<'_>) -> Result<Capacity, String> {
    let signature_ns = scene.probes.signature_ns.clone()?;
    let (machine, needs) = (scene.machine, scene.needs);
    let works = works(needs, signature_ns);
    let parts: Vec<Part> =
        works.iter().map(|(work, order_ns)| part(machine, &works, work, *order_ns)).collect();
    let order_ns = parts.iter().map(|part| part.order_ns).sum::<u64>();
    let full_at = parts.iter().map(|part| part.orders_per_second).min().ok_or("no loop takes orders")?;
    let by_quota = by_quota(machine, order_ns);
    let is_quota = by_quota.is_some_and(|quota| quota < full_at);
    let orders_per_second = by_quota.map_or(full_at, |quota| quota.min(full_at));
    let is_first = |part: &&Part| part.orders_per_second == full_at;
    let first = parts.iter().filter(is_first).map(|part| part.name.clone()).collect();
    let mut capacity = Capacity {
        signature_ns,
        signature_lost_millionths: scene.probes.signature_lost_millionths,
        knows_signers: needs.knows_signers,
        order_ns: order_with(signature_ns, needs.knows_signers),
        orders_per_second,
        is_quota,
        cores: counted(usize::try_from(free_cores(machine, &works)).unwrap_or(usize::MAX), "core"),
        parts,
        first,
        free: Vec::new(),
        bought: Vec::new(),
    };
    (capacity.free, capacity.bought) = capacity.more(scene);
    Ok(capacity)
}

/// Orders a second if all signers were known.
pub(super) fn if_signers_are_known(scene: &Scene<'_>) -> Option<u64> {
    let needs = Needs { knows_signers: true, ..scene.needs.clone() };
    of(&Scene { needs: &needs, ..*scene }).ok().map(|known| known.orders_per_second)
}

/// The share of the loop `work`, which spends `order_ns` on each order of the exchange.
fn part(machine: &Machine, works: &[(&LoopWork, u64)], work: &LoopWork, order_ns: u64) -> Part {
    let core = core_of(machine, work);
    let together = || works.iter().filter(|(other, _)| core_of(machine, other) == core);
    let sum_ns = together().map(|(_, ns)| ns).sum::<u64>().max(1);
    let orders_per_second = if core.is_some() {
        SECOND_NS / sum_ns
    } else {
        // A loop runs on one core at a time.
        let longest_ns = together().map(|(_, ns)| *ns).max().unwrap_or(1).max(1);
        (free_cores(machine, works) * SECOND_NS / sum_ns).min(SECOND_NS / longest_ns)
    };
    let names = together().map(|(other, _)| other.name.clone()).filter(|name| *name != work.name);
    Part {
        name: work.name.clone(),
        cpu: work.cpu,
        has_sockets: work.sockets,
        is_shard: work.shard,
        order_ns,
        orders_per_second,
        beside: names.collect(),
    }
}

/// An order's CPU time on the loop that has its connection.
const fn order_with(signature_ns: u64, knows_signers: bool) -> u64 {
    REST_NS + if knows_signers { known_ns(signature_ns) } else { signature_ns }
}

/// What the check of a known signer takes.
pub(super) const fn known_ns(signature_ns: u64) -> u64 {
    signature_ns * KNOWN_PARTS / 1_000
}

/// Every loop, and its CPU time for each order of the exchange, on average.
fn works(needs: &Needs, signature_ns: u64) -> Vec<(&LoopWork, u64)> {
    let count =
        |is: fn(&LoopWork) -> bool| -> u64 { needs.work.iter().map(|work| u64::from(is(work))).sum() };
    let with_sockets = count(|work| work.sockets).max(1);
    let apart = count(|work| work.shard && !work.sockets).max(1);
    let order_ns = order_with(signature_ns, needs.knows_signers);
    let time = |work: &LoopWork| {
        let own = match (work.sockets, work.shard) {
            (true, _) => order_ns / with_sockets,
            (false, true) => MATCH_NS / apart,
            (false, false) => 0,
        };
        own + if work.follows.is_some() { READER_NS } else { 0 }
    };
    needs.work.iter().map(|work| (work, time(work))).collect()
}

fn core_of(machine: &Machine, work: &LoopWork) -> Option<usize> {
    work.cpu.map(|cpu| machine.core_of(cpu))
}

/// How many cores are left to loops that are not pinned, at least one.
fn free_cores(machine: &Machine, works: &[(&LoopWork, u64)]) -> u64 {
    let taken = count_distinct(works.iter().filter_map(|(work, _)| core_of(machine, work)));
    u64::try_from(machine.distinct(Cpu::core).saturating_sub(taken).max(1)).unwrap_or(1)
}

impl Capacity {
    /// The orders a second beyond which the median climbs.
    #[must_use]
    pub const fn comfortable_per_second(&self) -> u64 {
        self.orders_per_second * COMFORTABLE_PERCENT / 100
    }

    /// What disturbed the trial of the signature check, if that puts its time in doubt.
    pub(super) fn disturbed(&self) -> Option<String> {
        let lost = self.signature_lost_millionths;
        (DISTURBED_MILLIONTHS <= lost).then(|| {
            format!("disturbed while it was tried: others had {} of the CPU it was tried on", percent(lost))
        })
    }

    /// What it can take, in one sentence.
    #[must_use]
    pub fn text(&self) -> String {
        let tried = self
            .disturbed()
            .unwrap_or_else(|| "tried in a row; where a host has others it differs by the minute".to_owned());
        let known = if self.knows_signers { ", a known signer's a quarter of that" } else { "" };
        format!(
            "about {} orders a second ({}): a signature check took {} here just now ({tried}){known}, the rest of an order about {}",
            rounded(self.orders_per_second),
            self.sum(),
            micros(self.signature_ns),
            micros(REST_NS)
        )
    }

    /// How this machine's CPU compares with that of README's figures.
    #[must_use]
    pub fn beside_readme(&self) -> String {
        let (here, there) = (micros(self.signature_ns), micros(README_CHECK_NS));
        if let Some(disturbed) = self.disturbed() {
            return format!(
                "README's figures are not compared with this CPU: a signature check took {here} at best, there {there}, and was {disturbed}\n"
            );
        }
        let tenths = (self.signature_ns * 10 + README_CHECK_NS / 2) / README_CHECK_NS;
        let times = match tenths {
            9..=11 => "README's figures are of a CPU about as fast".to_owned(),
            tenths => {
                format!("README's times would be about {}.{} times as long here", tenths / 10, tenths % 10)
            }
        };
        format!("{times}: a signature check takes {here}, there {there}\n")
    }

    /// Where the number comes from.
    fn sum(&self) -> String {
        let carriers = self.carriers();
        if self.is_quota {
            return "then the quota of CPU time is used up".to_owned();
        }
        if !self.first_has_sockets() {
            return format!("then {} is full", self.first.join(", "));
        }
        let each = self.orders_per_second / u64::try_from(carriers).unwrap_or(u64::MAX).max(1);
        format!("{} x {}", counted(carriers, self.carrier()), rounded(each))
    }

    /// Which loop is full first and when, in a few words.
    #[must_use]
    pub fn brief(&self) -> String {
        format!("full first is {}, at about {} orders a second", self.who(), rounded(self.orders_per_second))
    }

    /// The loops that are full first.
    fn who(&self) -> String {
        let all_of = |count: usize, what: &str| match count {
            2 => format!("both {what}s at once"),
            _ => format!("all {} at once", counted(count, what)),
        };
        let carriers = self.carriers();
        match self.first.as_slice() {
            [one] => one.clone(),
            all if self.first_has_sockets() && all.len() == carriers => all_of(carriers, self.carrier()),
            all if all.len() == self.parts.len() => all_of(all.len(), "loop"),
            all => all.join(", "),
        }
    }

    /// Which loop is full first and with what.
    #[must_use]
    pub fn full_first(&self) -> String {
        let (who, is_signing) = (self.who(), self.first_has_sockets());
        let signing = self.order_ns.saturating_sub(REST_NS) * 100 / self.order_ns.max(1);
        let with = if is_signing {
            format!(", {signing} % of an order there is its signature check")
        } else {
            String::new()
        };
        let shared = self.shared().map_or_else(String::new, |text| format!("; {text}"));
        format!("{who}{with}{shared}")
    }

    /// The time of one order's signature check, a known signer's if those are kept.
    pub(super) const fn check_ns(&self) -> u64 {
        self.order_ns - REST_NS
    }

    /// What a loop that takes orders is called.
    fn carrier(&self) -> &'static str {
        if self.shards_have_sockets() { "shard" } else { "ingress loop" }
    }

    fn shards_have_sockets(&self) -> bool {
        self.parts.iter().any(|part| part.has_sockets && part.is_shard)
    }

    /// Which core a loop that is full first shares, and with whom.
    fn shared(&self) -> Option<String> {
        let part =
            self.parts.iter().find(|part| self.first.contains(&part.name) && !part.beside.is_empty())?;
        let loops = counted(1 + part.beside.len(), "loop");
        Some(match (part.cpu, part.beside.as_slice()) {
            (Some(_), others) => {
                format!("{} shares its core with {}, whose time is there once", part.name, others.join(", "))
            }
            (None, _) => {
                format!("{loops} without CPUs of their own share {}, whose time is there once", self.cores)
            }
        })
    }

    /// What lets fewer orders wait in line on one loop; none if there are as many as may be.
    pub(super) fn one_core_more(&self) -> Option<String> {
        let (one, most) = if self.shards_have_sockets() {
            ("a shard", usize::from(SHARDS_MAX))
        } else {
            ("an ingress loop", INGRESS_MAX)
        };
        (self.carriers() < most).then(|| format!("a core and {one} more"))
    }

    /// [`Self::one_core_more`], or what is left to buy.
    pub(super) fn one_core_more_or_faster(&self) -> String {
        self.one_core_more().unwrap_or_else(|| "faster cores".to_owned())
    }

    fn carriers(&self) -> usize {
        self.parts.iter().filter(|part| part.has_sockets).count()
    }

    pub(super) fn first_has_sockets(&self) -> bool {
        self.parts.iter().any(|part| part.has_sockets && self.first.contains(&part.name))
    }

    /// What would raise the capacity on this machine, and what to buy for it.
    fn more(&self, scene: &Scene<'_>) -> (Vec<String>, Vec<String>) {
        let (mut free, mut bought, mut shares) = (Vec::new(), Vec::new(), false);
        if self.is_quota {
            free.push("lift the quota".to_owned());
        } else if self.first_has_sockets() {
            let needs = scene.needs;
            let (carriers, carriers_max) = needs.carriers();
            // Loops that nobody pinned wander, and all of them run at once where there is a core for each.
            let are_cores_here =
                needs.policy == Policy::Unpinned && needs.loops <= scene.machine.distinct(Cpu::core);
            let has_own_cores = self.shared().is_none() || are_cores_here;
            let idle = limit::idle_for_orders(scene);
            let feeds = needs.work.iter().filter(|work| work.follows == Some(Follower::Feed)).count();
            let auto = match needs.policy {
                Policy::Explicit => String::new(),
                _ => format!(": auto makes one with 2 to {} cores, two with {}", 4 + feeds, 5 + feeds),
            };
            let more = (carriers + idle).min(carriers_max);
            if has_own_cores && carriers < more {
                let full_at = rounded(orders_of(needs, more, self.order_ns));
                let settings = needs.settings_of_carriers(more);
                free.push(format!("{settings} for about {full_at}, on cores that are here"));
            } else if has_own_cores {
                let own = self.one_more(scene);
                let sharing = if own.is_none() { self.one_that_shares(scene) } else { None };
                shares = sharing.is_some();
                free.extend(own.or(sharing));
            }
            if !self.knows_signers {
                free.extend(if_signers_are_known(scene).map(|most| {
                    format!("{KNOWN_SETTING} for up to {} where all signers are known", rounded(most))
                }));
            }
            bought.extend(match (has_own_cores, needs.ingress()) {
                (false, _) => Some("a core for each loop".to_owned()),
                // Cores that nobody uses are here already, or there may be no more loops.
                (true, _) if idle != 0 || carriers == carriers_max => None,
                (true, 1..) => Some("more cores, with a loop of cpu.ingress on each".to_owned()),
                (true, 0) => {
                    let without = if shares {
                        String::new()
                    } else {
                        format!("; without one it only shares, and {}", turns())
                    };
                    Some(format!(
                        "about {} for each shard more that has a core of its own (say so by {}{auto}), until the reader is \
                         full at {} without any reads{without}",
                        rounded(SECOND_NS / self.order_ns.max(1)),
                        needs.shards_setting(),
                        rounded(SECOND_NS / READER_NS),
                    ))
                }
            });
        }
        bought.push("faster cores, in proportion".to_owned());
        (free, bought)
    }

    /// An order's CPU time on all loops together.
    fn order_of_all_ns(&self) -> u64 {
        self.parts.iter().map(|part| part.order_ns).sum::<u64>().max(1)
    }

    /// One shard more than there are cores for, where that carries a quarter more, because the reader uses little of its
    /// own. Not where a loop spins, which leaves others none of its CPU, nor with second threads of cores, where the reader
    /// has more of one shard's.
    fn one_that_shares(&self, scene: &Scene<'_>) -> Option<String> {
        let (machine, needs) = (scene.machine, scene.needs);
        let (cores, (shards, shards_max)) = (machine.distinct(Cpu::core), needs.carriers());
        let is_even = machine.performance_cores() == cores && machine.allowed.len() == cores;
        let spins = needs.work.iter().any(|work| work.sleeps == Sleeps::Never);
        if needs.ingress() != 0
            || needs.policy == Policy::Explicit
            || shards == shards_max
            || !is_even
            || spins
        {
            return None;
        }
        let all_ns = self.order_of_all_ns();
        let by_cores = u64::try_from(cores).unwrap_or(u64::MAX).saturating_mul(SECOND_NS) / all_ns;
        let by_cores = by_quota(machine, all_ns).map_or(by_cores, |quota| quota.min(by_cores));
        let most = by_cores.min(orders_of(needs, shards + 1, self.order_ns));
        (self.orders_per_second / 4 * 5 <= most).then(|| {
            let (setting, most) = (needs.settings_of_carriers(shards + 1), rounded(most));
            format!(
                "{setting} for up to {most} while there are few reads; loops share cores then, and {}",
                turns()
            )
        })
    }

    /// One more loop that takes orders, where a fast core is left for it but one or both of the spare cores would be
    /// used up.
    fn one_more(&self, scene: &Scene<'_>) -> Option<String> {
        let (machine, needs) = (scene.machine, scene.needs);
        let left = machine.distinct(Cpu::core).checked_sub(needs.loops + 1)?;
        let (carriers, carriers_max) = needs.carriers();
        if machine.performance_cores() <= needs.shards + needs.ingress() || carriers == carriers_max {
            return None;
        }
        let by_quota = by_quota(machine, self.order_of_all_ns());
        let by_cores = orders_of(needs, carriers + 1, self.order_ns);
        let (most, quota) = match by_quota.filter(|&quota| quota < by_cores) {
            Some(quota) => (quota, ", where the quota of CPU time is used up"),
            None => (by_cores, ""),
        };
        let spared = ["the journal's thread and the system", "the system"].get(left);
        let looks_on = needs.work.iter().any(|work| work.sockets && work.sleeps == Sleeps::AfterSpinning);
        let price = spared.map_or_else(String::new, |who| {
            let wake = if looks_on {
                format!(
                    ", and loops sleep at once: some {} more an order after a pause",
                    micros(scene.wake_ns())
                )
            } else {
                String::new()
            };
            format!("; none is left to {who} then{wake}")
        });
        let (most, settings) = (rounded(most), needs.settings_of_carriers(carriers + 1));
        let core = if needs.policy == Policy::Unpinned { "a core" } else { "a core of its own" };
        Some(format!("{settings} for about {most}{quota}, on {core} that is here{price}"))
    }
}

/// The orders a second of `carriers` loops with sockets on a core each, up to what shards apart from them can match and
/// the reader can follow.
fn orders_of(needs: &Needs, carriers: usize, order_ns: u64) -> u64 {
    let of = |loops: usize, each_ns: u64| {
        u64::try_from(loops).unwrap_or(u64::MAX).saturating_mul(SECOND_NS) / each_ns.max(1)
    };
    let matched = if needs.ingress() == 0 { u64::MAX } else { of(needs.shards, MATCH_NS) };
    of(carriers, order_ns).min(matched).min(of(1, READER_NS))
}

/// The orders a second that the quota of CPU time lets through, if there is one, where each takes `all_ns` in all.
fn by_quota(machine: &Machine, all_ns: u64) -> Option<u64> {
    machine.quota_milli.map(|milli| milli * (SECOND_NS / 1_000) / all_ns.max(1))
}

/// What loops that share cores cost an order.
fn turns() -> String {
    format!("orders wait for turns, up to {}", cost::time(cost::SLICE_NS))
}

/// A time for people, in whole microseconds.
pub(super) fn micros(ns: u64) -> String {
    format!("{} µs", (ns + 500) / 1_000)
}

/// A count for people, in thousands or, below ten thousand, in hundreds: `28,000`.
pub(super) fn rounded(count: u64) -> String {
    let step = if count < 10_000 { 100 } else { 1_000 };
    let count = (count + step / 2) / step * step;
    match (count / 1_000_000, count / 1_000 % 1_000, count % 1_000) {
        (0, 0, rest) => rest.to_string(),
        (0, thousands, rest) => format!("{thousands},{rest:03}"),
        (millions, thousands, rest) => format!("{millions},{thousands:03},{rest:03}"),
    }
}

/// Why the capacity is not known, for people.
#[must_use]
pub fn unknown(why: &str) -> String {
    format!("what it can take: not measured: {why}\n")
}

#[cfg(test)]
pub(super) mod tests;
