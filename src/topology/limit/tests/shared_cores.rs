//! What mends two loops on one core.

use super::*;

#[test]
fn loops_on_one_core_are_told_what_parts_them_on_this_machine() {
    let lift = "CPUs 1-3,5-7 are kept from this process: lift its mask (taskset, the cpuset, systemd's CPUAffinity=)";
    let tails = "it runs as it is, with longer tails";
    for (allowed, places, expected) in [
        (vec![0, 4], vec![0, 4], format!("{lift}; {tails}")),
        (
            vec![0, 4],
            vec![0, 4, 4],
            format!("{lift}; beyond that a machine with 5 cores, or fewer shards (cpu.shards); {tails}"),
        ),
        // Each could have a core.
        (
            vec![0, 1, 4, 5],
            vec![1, 5],
            "cpu.policy=auto, or CPUs of different cores (cpu.policy=explicit)".to_owned(),
        ),
    ] {
        let mut machine = Machine::plain(&(0..8).collect::<Vec<_>>());
        for cpu in &mut machine.cpus {
            cpu.threads = vec![cpu.id % 4, cpu.id % 4 + 4];
        }
        machine.allowed = allowed;
        let mut needs = needs(8, places.len() - 1, Policy::Auto, false);
        for (thread, cpu) in needs.pinned.iter_mut().zip(places) {
            thread.cpu = cpu;
        }
        let scene = Scene { files: &Silent, machine: &machine, needs: &needs, probes: &Probes::none("no") };
        let findings = checks::run(&scene);
        let condition = failed(&findings, "cpu.smt").next().expect("two on one core");
        assert_eq!(condition.remedy(), Some(expected), "{:?}", machine.allowed);
    }
}
