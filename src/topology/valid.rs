//! Whether a run of the latency rig (`scripts/perf`) could be VALID on this machine as it is.
//!
//! The rig judges by what others had of its CPUs. A thread that never sleeps shows that before there is any load:
//! `outcry check --jitter` runs one on each CPU. The rig takes its limits from here.

use super::checks::{Gaps, Scene, percent};
use super::machine::counted;

/// What a thread that never sleeps may lose of a CPU, in percent. A guest of two CPUs with nothing else to do loses
/// 0.5 % to that thread's own timer ticks; a neighbour that matters takes many times this.
pub const LOST_PERCENT_MAX: u8 = 2;
/// What other programs, or the host, may have of the CPUs that are measured on, in percent.
pub const SHARE_PERCENT_MAX: u8 = 1;
/// With fewer CPUs than this the rig's client cannot have one of its own.
pub const CLIENTS_OWN_FROM_CPUS: usize = 4;

/// A percent in millionths.
const PERCENT: u64 = 10_000;

/// Whether it could, and what would have to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Valid {
    /// Whether nothing that was measured speaks against it.
    pub can_be: bool,
    /// The verdict in a sentence, with each amount and its limit.
    pub text: String,
    /// What would have to change, if it could not.
    pub change: Option<String>,
}

/// Judges by the gaps of the CPUs on which server and client would be; none if those were not measured.
#[must_use]
pub fn of(scene: &Scene<'_>) -> Option<Valid> {
    let allowed = &scene.machine.allowed;
    let [first, .., last] = allowed.as_slice() else {
        return scene.probes.jitter.as_ref().map(|_| too_few());
    };
    let mut cpus = scene.cpus_with_loops();
    cpus.extend([*first, *last]);
    let rows: Vec<&Gaps> =
        scene.probes.jitter.iter().flatten().filter(|gaps| cpus.contains(&gaps.cpu)).collect();
    let worst = *rows.iter().max_by_key(|gaps| gaps.lost_millionths)?;
    let mean = |of: fn(&Gaps) -> Option<u64>| {
        let all = rows.iter().map(|gaps| of(gaps).unwrap_or(0)).sum::<u64>();
        all / u64::try_from(rows.len()).unwrap_or(u64::MAX)
    };
    let (others, host) = (mean(|gaps| gaps.threads_millionths), mean(|gaps| gaps.host_millionths));
    let (lost_max, share_max) =
        (u64::from(LOST_PERCENT_MAX) * PERCENT, u64::from(SHARE_PERCENT_MAX) * PERCENT);
    let can_be = worst.lost_millionths <= lost_max && others <= share_max && host <= share_max;
    let bad: Vec<&Gaps> = rows.iter().copied().filter(|gaps| lost_max < gaps.lost_millionths).collect();
    let is_clients_alone = !bad.is_empty() && bad.iter().all(|gaps| gaps.cpu == *last) && host <= share_max;
    let head = if can_be {
        "a VALID run of `scripts/perf` can be had here".to_owned()
    } else if is_clients_alone {
        format!(
            "perhaps no VALID run of `scripts/perf` can be had here as it is, but where who has cpu {last} leaves it to the rig's \
             client, which seldom sleeps"
        )
    } else {
        "no VALID run of `scripts/perf` can be had here as it is".to_owned()
    };
    let text = format!(
        "{head}, by these seconds: a thread that never sleeps lost {} of cpu {} ({}), other programs had {} of the CPUs ({}) and the \
         host {} ({}){}",
        percent(worst.lost_millionths),
        worst.cpu,
        beside(worst.lost_millionths <= lost_max, LOST_PERCENT_MAX),
        percent(others),
        beside(others <= share_max, SHARE_PERCENT_MAX),
        percent(host),
        beside(host <= share_max, SHARE_PERCENT_MAX),
        shared(scene, *last)
    );
    let of_cpu = |gaps: &&Gaps| {
        let of_all = if gaps.has_another_in_all() { ", for all that it lost, short stops too" } else { "" };
        format!("cpu {}{of_all}: {}", gaps.cpu, scene.remedy(&gaps.in_all()))
    };
    let to_change = if bad.is_empty() { vec![worst] } else { bad };
    let change = || to_change.iter().map(of_cpu).collect::<Vec<_>>().join("; ");
    Some(Valid { can_be, text, change: (!can_be).then(change) })
}

/// The limit of an amount, and whether the amount is within it.
#[must_use]
pub fn beside(is_within: bool, percent_max: u8) -> String {
    format!("{} {percent_max} %", if is_within { "within" } else { "above" })
}

fn too_few() -> Valid {
    Valid {
        can_be: false,
        text: "no VALID run of `scripts/perf` can be had here: one CPU, and server and client need one each"
            .to_owned(),
        change: Some("two CPUs at least, four for a client with one of its own".to_owned()),
    }
}

/// Says that the client has no CPU of its own, and what that does to a run, VALID or not.
fn shared(scene: &Scene<'_>, client: usize) -> String {
    let cpus = scene.machine.allowed.len();
    if CLIENTS_OWN_FROM_CPUS <= cpus {
        return String::new();
    }
    format!(
        "; with {} the rig's client shares cpu {client} with the server ({}), so even then reads, durable answers and tails are \
         slower than with {CLIENTS_OWN_FROM_CPUS}",
        counted(cpus, "CPU"),
        scene.needs.threads_on(client)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::capacity::tests::{Silent, needs, plain};
    use crate::topology::checks::{Pinned, Probes};

    fn gaps(cpu: usize, lost: u64, threads: u64, host: u64) -> Gaps {
        Gaps {
            cpu,
            lost_millionths: lost,
            threads_millionths: Some(threads),
            host_millionths: Some(host),
            ..Gaps::default()
        }
    }

    /// The verdict on a shard on CPU 0 and a reader on CPU 1.
    fn judged(cpus: usize, jitter: Option<Vec<Gaps>>) -> Option<Valid> {
        let pinned = [("sm0", 0), ("r1", 1)];
        let pinned = pinned.map(|(name, cpu)| Pinned { name: name.to_owned(), cpu, is_hot: cpu == 0 });
        let (machine, mut needs) = (plain(cpus), needs("sm@0 r@1"));
        needs.pinned = pinned.to_vec();
        let probes = Probes { jitter, ..Probes::none("no") };
        of(&Scene { files: &Silent, machine: &machine, needs: &needs, probes: &probes })
    }

    #[test]
    fn a_run_can_be_valid_up_to_the_rigs_limits_and_no_further() {
        for (rows, can_be, change) in [
            ([gaps(0, 20_000, 10_000, 10_000), gaps(1, 5_000, 10_000, 10_000)], true, None),
            ([gaps(0, 20_001, 0, 0), gaps(1, 5_000, 0, 0)], false, Some("cpu 0: ")),
            (
                [gaps(0, 5_000, 0, 0), gaps(1, 400_000, 380_000, 0)],
                false,
                Some("cpu 1: stop what runs there"),
            ),
            // Others' and the host's shares are of all CPUs together.
            (
                [gaps(0, 19_000, 19_000, 0), gaps(1, 1_002, 1_002, 0)],
                false,
                Some("cpu 0: stop what runs there"),
            ),
            (
                [gaps(0, 19_000, 0, 19_000), gaps(1, 1_002, 0, 1_002)],
                false,
                Some("cpu 0: a host that sells whole cores"),
            ),
            ([gaps(0, 19_000, 0, 19_000), gaps(1, 1_000, 0, 1_000)], true, None),
        ] {
            let valid = judged(2, Some(rows.to_vec())).expect("it was measured");
            assert_eq!((valid.can_be, valid.change.is_some()), (can_be, change.is_some()), "{valid:?}");
            assert!(
                valid.change.iter().zip(change).all(|(came, start)| came.starts_with(start)),
                "{valid:?}"
            );
            assert_eq!(valid.text.starts_with("a VALID run"), can_be, "{}", valid.text);
            // A program that has only the client's CPU may get little of it during a run.
            let is_clients_alone = change.is_some_and(|start| start.starts_with("cpu 1"));
            assert_eq!(valid.text.starts_with("perhaps"), is_clients_alone, "{}", valid.text);
        }
    }

    #[test]
    fn each_amount_stands_with_its_limit_and_who_shares_the_clients_cpu() {
        let rows = |last| vec![gaps(0, 407_500, 372_600, 3_900), gaps(last, 2_000, 0, 100)];
        let amounts = "no VALID run of `scripts/perf` can be had here as it is, by these seconds: a thread that never sleeps lost 40.75 % of \
                       cpu 0 (above 2 %), other programs had 18.63 % of the CPUs (above 1 %) and the host 0.20 % (within 1 %)";
        let shared = "; with 2 CPUs the rig's client shares cpu 1 with the server (r1), so even then reads, durable answers and \
                      tails are slower than with 4";
        let text = |cpus| judged(cpus, Some(rows(cpus - 1))).expect("it was measured").text;
        assert_eq!((text(2), text(4)), (format!("{amounts}{shared}"), amounts.to_owned()));
        assert!(text(3).contains("with 3 CPUs the rig's client shares cpu 2"));
        // CPUs on which neither server nor client would be say nothing.
        let far = vec![gaps(0, 0, 0, 0), gaps(3, 900_000, 900_000, 0), gaps(7, 0, 0, 0)];
        assert!(judged(8, Some(far)).expect("it was measured").can_be);
        assert_eq!(judged(2, None), None);
        assert!(
            judged(1, Some(Vec::new())).is_some_and(|valid| !valid.can_be && valid.text.contains("one CPU"))
        );
    }
}
