//! What a running exchange tells of others on its CPUs, beside its own work there.

use super::*;
use crate::topology::checks::OwnTime;

/// A shard on CPU 0, of which threads and interrupts had so many hundredths in the last second; what others had of it,
/// and whether the shard is told to spin.
fn told(used: Option<[u64; 2]>, own: Option<[u64; 2]>) -> (String, bool) {
    let stat = |[threads, interrupts]: [u64; 2]| {
        let idle = 100 - threads - interrupts;
        format!("cpu  0\ncpu0 {threads} 0 0 {idle} 0 0 {interrupts} 0\ncpu1 0 0 0 100 0 0 0 0\n")
    };
    let mut probes = Probes::none("no");
    let before = stat([0, 0]).replace("100", "0");
    probes.stat_quiet = Some(used.map_or_else(Default::default, |used| [before, stat(used)]));
    probes.own_time = own.map(|[pinned, wandering]| OwnTime {
        pinned: vec![(0, 10_000_000 * pinned)],
        wandering_ns: 10_000_000 * wandering,
    });
    let (machine, mut needs) = (Machine::plain(&[0, 1]), needs(2, 1, Policy::Auto, false));
    needs.work[0].shard = true;
    let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &probes };
    let findings = checks::run(&scene);
    let others = findings.iter().find(|finding| finding.id == "cpu.others").expect("a condition");
    let came = causes(&scene, &findings);
    let is_told = came.iter().any(|limit| limit.kind == Kind::Others);
    assert_eq!(is_told, others.verdict == Verdict::Failed);
    let spins = |limit: &Limit| limit.change.as_ref().is_some_and(|change| change.contains("shard=spin"));
    let share = others.current.strip_prefix("cpu 0 (shard0): ").unwrap_or(&others.current);
    (share.replace(" of the last 1.0 s", ""), came.iter().any(spins))
}

#[test]
fn what_a_running_exchange_does_itself_is_not_others_and_what_others_may_do_forbids_to_spin() {
    // Hundredths of the CPU: used by threads, by interrupts; by our threads there, and by those that may run anywhere.
    for (used, own, share, spins) in [
        ([0, 0], [0, 0], "0.00 %", true),
        ([100, 0], [100, 0], "0.00 %", true),
        ([100, 0], [0, 0], "100.00 %", false),
        ([100, 0], [40, 0], "60.00 %", false),
        ([10, 0], [1, 0], "9.00 %", true),
        // Packets are worked on in interrupts, and are our own clients'.
        ([60, 40], [60, 0], "0.00 %", true),
        // Ticks are a sample of who runs.
        ([54, 0], [40, 0], "0.00 %", true),
        ([55, 0], [40, 0], "15.00 %", true),
        ([18, 0], [4, 0], "14.00 %", true),
        // Where these ran is not known: it may have been on the other CPU, while others had this one.
        ([60, 0], [0, 60], "0.00 %", false),
        ([60, 0], [20, 40], "0.00 %", true),
    ] {
        assert_eq!(told(Some(used), Some(own)), (share.to_owned(), spins), "{used:?} {own:?}");
    }
    // A command sleeps meanwhile, so that all of it is others'.
    for (used, share, spins) in
        [([40, 0], "40.00 %", true), ([30, 10], "40.00 %", true), ([40, 10], "50.00 %", false)]
    {
        assert_eq!(told(Some(used), None), (share.to_owned(), spins), "{used:?}");
    }
    assert_eq!(told(None, None), ("not readable: /proc/stat".to_owned(), false));
}
