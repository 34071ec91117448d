//! What `cpu.*` says: a policy, how many loops, and which CPUs by their numbers.

use super::options::Options;
use super::topology::LoopPlan;
use crate::topology::list;
use crate::topology::machine::{Cpu, Machine, counted};
use crate::topology::placement::{self, INGRESS_MAX, Policy, SHARDS_MAX};

pub(super) fn policy(options: &Options, allowed: &[usize]) -> Result<Policy, String> {
    let word = options.cpu_policy.as_str();
    let policy = Policy::NAMES.iter().find(|(name, _)| *name == word).map(|(_, policy)| *policy);
    let Some(policy) = policy else {
        let words = Policy::NAMES.map(|(name, _)| name).join(", ");
        return Err(format!("cpu.policy: got {word:?}; allowed: {words}"));
    };
    let names_nothing = options.cpu_shard_cpus.is_empty()
        && options.cpu_ingress.is_empty()
        && [&options.cpu_reader, &options.cpu_journal].iter().all(|cpu| *cpu == "auto")
        && !names_a_feed(options);
    if policy == Policy::Explicit && names_nothing {
        return Err("cpu.policy: explicit, but no CPU is named; allowed: with cpu.shard_cpus, cpu.ingress, \
                    cpu.reader, cpu.feed or cpu.journal, or another policy"
            .to_owned());
    }
    name_cpus_or_words(options, allowed)?;
    if policy != Policy::Explicit {
        let named = [
            ("cpu.shard_cpus", !options.cpu_shard_cpus.is_empty()),
            ("cpu.reader", options.cpu_reader != "auto"),
            ("cpu.feed", names_a_feed(options)),
        ];
        if let Some((name, _)) = named.iter().find(|(_, is_named)| *is_named) {
            let instead = if *name == "cpu.feed" { ", or cpu.feed=own" } else { "" };
            return Err(format!(
                "{name}: names CPUs, but cpu.policy is {word}; say cpu.policy=explicit{instead}"
            ));
        }
    }
    Ok(policy)
}

/// Refuses what names neither CPUs nor a word that is known, whatever the policy.
fn name_cpus_or_words(options: &Options, allowed: &[usize]) -> Result<(), String> {
    cpu_list("cpu.shard_cpus", &options.cpu_shard_cpus)?;
    for (name, text, words, is_named) in [
        ("cpu.reader", &options.cpu_reader, READER_WORDS, options.cpu_reader != "auto"),
        ("cpu.feed", &options.cpu_feed, FEED_WORDS, names_a_feed(options)),
    ] {
        if is_named && text.parse::<usize>().is_err() {
            cpu(name, text, words, allowed)?;
        }
    }
    Ok(())
}

/// What else than a CPU may stand there, for a refusal.
const READER_WORDS: &str = "auto, or ";
const FEED_WORDS: &str = "auto, own, or ";

/// `cpu.feed` that gives the feed a loop of its own, on a CPU that the policy chooses.
const OWN: &str = "own";

fn names_a_feed(options: &Options) -> bool {
    !["auto", OWN].contains(&options.cpu_feed.as_str())
}

/// Whether the feed has a loop of its own, and not the reader's.
pub(super) fn has_feed_apart(options: &Options) -> bool {
    options.cpu_feed == OWN || names_a_feed(options) && options.cpu_feed != options.cpu_reader
}

/// Whether the CPU of this loop is named, where the policy is explicit.
pub(super) fn is_named(options: &Options, plan: &LoopPlan) -> bool {
    match (plan.shard, plan.ingress, plan.reader) {
        (Some(_), ..) => !options.cpu_shard_cpus.is_empty(),
        (None, true, _) => true,
        (None, false, true) => options.cpu_reader != "auto",
        (None, false, false) => names_a_feed(options),
    }
}

/// How many ingress loops there are: one for each CPU that is named, or the number that is given.
pub(super) fn ingress_count(options: &Options, policy: Policy) -> Result<usize, String> {
    let count = match (policy, options.cpu_ingress.as_slice()) {
        (_, []) => 0,
        (Policy::Explicit, named) => cpu_list("cpu.ingress", named)?.len(),
        (_, [one]) => one.parse().map_err(|_| {
            format!("cpu.ingress: got {one:?}; allowed: a number of loops up to {INGRESS_MAX}")
        })?,
        (policy, _) => {
            return Err(format!(
                "cpu.ingress: names CPUs, but cpu.policy is {}; say how many loops, or cpu.policy=explicit",
                policy.text()
            ));
        }
    };
    if INGRESS_MAX < count {
        return Err(format!("cpu.ingress: got {}; allowed: up to {INGRESS_MAX}", counted(count, "loop")));
    }
    Ok(count)
}

pub(super) fn shard_count(
    options: &Options,
    machine: &Machine,
    policy: Policy,
    ingress: usize,
    feeds: usize,
) -> Result<u16, String> {
    let explicit = policy == Policy::Explicit;
    let named = cpu_list("cpu.shard_cpus", &options.cpu_shard_cpus)?.len();
    let wanted = match options.cpu_shards {
        0 if explicit => named.max(1),
        0 => placement::shards_for(machine, ingress, feeds),
        shards => usize::try_from(shards).unwrap_or(usize::MAX),
    };
    if explicit && named != 0 && named != wanted {
        return Err(format!("cpu.shard_cpus: names {named} CPUs for {wanted} shards; name one for each"));
    }
    match u16::try_from(wanted) {
        Ok(shards) if shards <= SHARDS_MAX => Ok(shards),
        _ => Err(format!("cpu.shards: got {wanted}; allowed: 0 to {SHARDS_MAX}")),
    }
}

/// The CPUs that `texts` name, ranges written out: `2-4` is 2, 3, 4.
fn cpu_list(name: &str, texts: &[String]) -> Result<Vec<usize>, String> {
    let mut cpus = Vec::new();
    for text in texts {
        let named = list::parse(text).filter(|named| !named.is_empty());
        cpus.extend(
            named.ok_or_else(|| format!("{name}: got {text:?}; allowed: CPUs, or ranges such as 2-5"))?,
        );
    }
    Ok(cpus)
}

pub(super) fn named_places(
    options: &Options,
    order: &[usize],
    shards: u16,
    merged: bool,
) -> Result<Vec<Option<usize>>, String> {
    let named = cpu_list("cpu.shard_cpus", &options.cpu_shard_cpus)?;
    let mut places: Vec<Option<usize>> = if named.is_empty() {
        vec![None; usize::from(shards)]
    } else {
        let checked =
            named.iter().map(|number| cpu("cpu.shard_cpus", &number.to_string(), "", order).map(Some));
        checked.collect::<Result<_, _>>()?
    };
    for number in cpu_list("cpu.ingress", &options.cpu_ingress)? {
        places.push(Some(cpu("cpu.ingress", &number.to_string(), "", order)?));
    }
    if has_feed_apart(options) {
        let named = [&options.cpu_reader, &options.cpu_journal];
        places.push(match options.cpu_feed.as_str() {
            OWN => order
                .iter()
                .copied()
                .find(|&cpu| !places.contains(&Some(cpu)) && !named.contains(&&cpu.to_string())),
            text => Some(cpu("cpu.feed", text, FEED_WORDS, order)?),
        });
    }
    if !merged {
        places.push(match options.cpu_reader.as_str() {
            "auto" => order.iter().copied().find(|&cpu| !places.contains(&Some(cpu))),
            text => Some(cpu("cpu.reader", text, READER_WORDS, order)?),
        });
    }
    for (index, place) in places.iter().enumerate() {
        if let Some(cpu) = place.filter(|_| places[..index].contains(place)) {
            return Err(format!(
                "cpu.shard_cpus, cpu.ingress, cpu.feed, cpu.reader: {cpu} is named twice; give every loop its own CPU"
            ));
        }
    }
    Ok(places)
}

/// The CPUs that are not isolated and on whose core no loop that trades is pinned: a thread that can wait would take
/// half of what such a loop has of its core, and the scheduler leaves isolated CPUs to whoever was pinned there.
pub(super) fn off_trading(machine: &Machine, loops: &[LoopPlan]) -> Vec<usize> {
    let trade = loops.iter().filter(|plan| plan.shard.is_some() || plan.ingress);
    let cores: Vec<usize> = trade.filter_map(|plan| machine.cpu(plan.cpu?).map(Cpu::core)).collect();
    let is_off = |cpu: &&Cpu| !cpu.isolated && !cores.contains(&cpu.core());
    machine.usable().filter(is_off).map(|cpu| cpu.id).collect()
}

/// The CPU that `text` names; `words` are what else may stand there, for the refusal.
pub(super) fn cpu(name: &str, text: &str, words: &str, cpus: &[usize]) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(cpu) if cpus.contains(&cpu) => Ok(cpu),
        _ => {
            let mut cpus = cpus.to_vec();
            cpus.sort_unstable();
            Err(format!("{name}: got {text:?}; allowed: {words}the CPUs this process may use: {cpus:?}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::topology::{self, Topology};
    use super::*;

    fn planned(cpus: usize, change: impl Fn(&mut Options)) -> Result<Topology, String> {
        let mut options = Options::default();
        change(&mut options);
        topology::plan(&options, &Machine::plain(&(0..cpus).collect::<Vec<_>>()), false)
    }

    fn list(text: &str) -> Vec<String> {
        text.split_terminator(',').map(str::to_owned).collect()
    }

    #[test]
    fn loops_that_nobody_named_keep_off_the_journal_s_cpu_and_are_not_called_named() {
        // Policy, CPUs of shards and ingress, the feed, the reader's CPU, the journal's, of how many: the threads with
        // their CPUs, `!` before those that are named.
        for (policy, [shards, ingress], [feed, reader, journal], cpus, expected) in [
            ("auto", ["", ""], ["auto", "auto", "2"], 4, "shard0@1 reader@3 !journal@2"),
            ("auto", ["", ""], ["auto", "auto", "1"], 2, "shard0@0 reader@1 !journal@1"),
            ("explicit", ["0", ""], ["auto", "auto", "1"], 3, "!shard0@0 reader@2 !journal@1"),
            ("explicit", ["0", ""], ["auto", "auto", "1"], 2, "!shard0@0 reader@1 !journal@1"),
            ("explicit", ["0", ""], ["own", "auto", "1"], 4, "!shard0@0 feed@2 reader@3 !journal@1"),
            (
                "explicit",
                ["0", "1"],
                ["2", "3", "auto"],
                5,
                "!shard0@0 !ingress0@1 !feed@2 !reader@3 journal@4",
            ),
        ] {
            let topology = planned(cpus, |options| {
                options.cpu_policy = policy.into();
                (options.cpu_shard_cpus, options.cpu_ingress) = (list(shards), list(ingress));
                (options.cpu_feed, options.cpu_reader) = (feed.into(), reader.into());
                options.cpu_journal = journal.into();
            });
            let rows = topology.expect("a topology").rows;
            let threads = rows.iter().filter_map(|row| {
                let mark = if row.why.starts_with("named") { "!" } else { "" };
                Some(format!("{mark}{}@{}", row.thread.replace("outcry-", ""), row.cpu?))
            });
            assert_eq!(threads.collect::<Vec<_>>().join(" "), expected);
        }
    }

    #[test]
    fn a_reader_that_spins_without_a_cpu_is_refused_as_a_feed_is() {
        let plan = |cpus| {
            planned(cpus, |options| {
                options.cpu_policy = "explicit".into();
                (options.cpu_shard_cpus, options.cpu_ingress) = (list("0"), list("1"));
                options.cpu_wait = "shard=park,reader=spin".into();
            })
        };
        assert_eq!(plan(4).expect("a topology").loops[2].cpu, Some(2));
        assert_eq!(
            plan(2).expect_err("refused"),
            "cpu.wait: reader=spin wants a CPU of its own, and none is left; give it one by cpu.reader, or say \
             reader=park"
        );
    }

    #[test]
    fn what_can_wait_keeps_off_cores_that_trade_and_off_isolated_cpus_where_there_are_others() {
        // The CPUs of shards and ingress, the reader's, the isolated ones, of how many: where what can wait may run. A
        // core has two threads, n and n + half of them.
        for ([shards, ingress, reader], isolated, cpus, expected) in [
            (["1", "", "2"], &[][..], 8, vec![0, 3, 4, 6, 7]),
            (["1", "0", "2"], &[], 8, vec![3, 6, 7]),
            (["1", "", "2"], &[0, 4, 7], 8, vec![3, 6]),
            // The reader's second thread is left, and it has time.
            (["0", "", "1"], &[], 4, vec![3]),
            // Nothing is left that is not beside one that trades, or not isolated.
            (["0,1", "", "2"], &[], 4, vec![3]),
            (["0", "", "1"], &[3], 4, vec![2, 3]),
        ] {
            let mut machine = Machine::plain(&(0..cpus).collect::<Vec<_>>());
            for cpu in &mut machine.cpus {
                let first = cpu.id % (cpus / 2);
                cpu.threads = vec![first, first + cpus / 2];
                cpu.isolated = isolated.contains(&cpu.id);
            }
            let options = Options {
                cpu_policy: "explicit".into(),
                cpu_shard_cpus: list(shards),
                cpu_ingress: list(ingress),
                cpu_reader: reader.into(),
                ..Options::default()
            };
            let topology = topology::plan(&options, &machine, false).expect("a topology");
            assert_eq!(topology.cpus_for_waiting(&machine.allowed), expected, "{shards} {ingress} {reader}");
        }
    }
}
