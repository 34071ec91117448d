//! Whom others on a CPU delay, by how the loops there wait.

use super::*;

#[test]
fn only_a_loop_that_never_sleeps_makes_the_median_order_wait_for_others() {
    use Sleeps::{AfterSpinning, AtOnce, Never};
    let each = "about 4 ms an order on average, 4 ms a turn";
    let some = "most meet nothing: a loop that sleeps is woken before them";
    let stat =
        |busy: u64| format!("cpu  0\ncpu0 {busy} 0 0 {} 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0\n", 100 - busy);
    for (cpus, policy, sleeps, touches, said) in [
        (4, Policy::Auto, Never, Touches::P50, each),
        (4, Policy::Auto, AfterSpinning, Touches::P99, some),
        (4, Policy::Auto, AtOnce, Touches::P99, some),
        // Nothing is pinned.
        (1, Policy::Auto, AtOnce, Touches::P99, some),
        (4, Policy::Unpinned, AfterSpinning, Touches::P99, some),
        (4, Policy::Unpinned, Never, Touches::P50, each),
    ] {
        let mut needs = needs(cpus, 1, policy, false);
        needs.work[0].sleeps = sleeps;
        let mut probes = Probes::none("no");
        probes.stat_quiet = Some([stat(0).replace("100", "0"), stat(100)]);
        let came = limits(cpus, &needs, &probes);
        let others = came.iter().find(|limit| limit.kind == Kind::Others).expect("a limit");
        assert_eq!(others.touches, Some(touches), "{policy:?} {sleeps:?}: {}", others.text);
        assert!(others.text.ends_with(said), "{policy:?} {sleeps:?}: {}", others.text);
    }
}

#[test]
fn a_loop_that_sleeps_after_a_while_does_not_spin_all_the_same() {
    let cores = "2 cores for 2 loops, the journal and the system, 4 would do: shard0 spins";
    for (sleeps, said, costs) in [
        (
            Sleeps::Never,
            " all the same, and the others share what is left",
            "up to 4 ms an order, while what spins",
        ),
        (
            Sleeps::AfterSpinning,
            " for some 50 µs before it sleeps, and an order after that waits for a wake-up of some 16 µs",
            "about 16 µs an order for a wake-up",
        ),
    ] {
        let mut needs = needs(2, 1, Policy::Explicit, false);
        needs.work[0].sleeps = sleeps;
        assert_eq!(of(2, &needs, &Probes::none("no")), [format!("{cores}{said}")]);
        let machine = Machine::plain(&[0, 1]);
        let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &Probes::none("no") };
        let findings = checks::run(&scene);
        let condition = failed(&findings, "cpu.overcommit").next().expect("too few cores");
        assert!(condition.amount.as_ref().is_some_and(|amount| amount.contains(costs)), "{condition:?}");
        // What works for 50 µs more is disturbed by others as well.
        let isolated = failed(&findings, "cpu.isolated").next().expect("nothing is isolated");
        assert_eq!(isolated.severity, Severity::Warning);
    }
}

#[test]
fn under_a_quota_the_wake_up_of_every_order_is_told_beside_it() {
    let mut machine = Machine::plain(&(0..16).collect::<Vec<_>>());
    machine.quota_milli = Some(6_000);
    let needs = needs(16, 1, Policy::Auto, false);
    let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &Probes::none("no") };
    let came = causes(&scene, &checks::run(&scene));
    let told: Vec<_> = came.iter().map(|limit| (limit.kind, limit.touches)).take(2).collect();
    assert_eq!(told, [(Kind::Quota, Some(Touches::P99)), (Kind::WakeUps, Some(Touches::P50))]);
    // Loops that spin would use the quota up.
    assert!(came[1].change.as_ref().is_some_and(|change| change.starts_with("give whole CPUs instead")));
}
