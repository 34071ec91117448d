//! What `outcry tune` prints is run: it mends, does nothing twice, and is taken back.

use crate::common::exchange::{outcry_succeeds, said};
use crate::common::folder;
use crate::unpacked;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The script with every path of the machine moved below `folder`.
fn moved(script: &str, folder: &str) -> String {
    script.replace("set_value /", &format!("set_value {folder}/"))
}

fn run(script: &str, kept: &Path) -> String {
    let output = Command::new("sh").args(["-c", script]).env("OUTCRY_TUNE_KEPT", kept).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    said(&output)
}

fn conditions(path: &str) -> Vec<(String, bool)> {
    let json: Value =
        serde_json::from_str(&outcry_succeeds(&["check", "--json", "--machine", path])).unwrap();
    let conditions = json["conditions"].as_array().unwrap().iter();
    conditions
        .filter_map(|row| Some((row["condition"].as_str().unwrap().to_owned(), row["passed"].as_bool()?)))
        .collect()
}

#[test]
fn the_script_mends_what_it_can_does_nothing_twice_and_is_taken_back() {
    let (_folder, path) = unpacked("desktop");
    let kept = Path::new(&path).join("kept");
    let before = conditions(&path);
    let passed = |rows: &[(String, bool)], id: &str| rows.iter().any(|(name, passed)| name == id && *passed);

    let script = moved(&outcry_succeeds(&["tune", "--machine", &path]), &path);
    assert!(run(&script, &kept).contains("-> performance"));
    let after = conditions(&path);
    for id in ["cpu.governor", "cpu.cstates", "mem.swappiness", "net.xps", "time.clocksource"] {
        assert!(!passed(&before, id) && passed(&after, id), "{id}");
    }
    assert_eq!(run(&script, &kept), "", "a second run has nothing to do");

    run(&outcry_succeeds(&["tune", "--undo"]), &kept);
    // The kernel shows the whole list with brackets; a written file has only the word.
    std::fs::write(
        Path::new(&path).join("sys/kernel/mm/transparent_hugepage/enabled"),
        "[always] madvise never\n",
    )
    .unwrap();
    assert_eq!(conditions(&path), before);
    assert!(run(&outcry_succeeds(&["tune", "--undo"]), &kept).starts_with("nothing to take back"));
}

#[test]
fn a_clock_that_is_read_without_a_system_call_is_not_switched() {
    let (_folder, path) = unpacked("desktop");
    let switch = "clocksource0/current_clocksource tsc\n";
    for (current, available, passes, switches) in [
        ("tsc", "tsc hpet acpi_pm", true, false),
        ("kvm-clock", "kvm-clock tsc acpi_pm", true, false),
        (
            "hyperv_clocksource_tsc_page",
            "hyperv_clocksource_tsc_page tsc hyperv_clocksource_msr",
            true,
            false,
        ),
        ("arch_sys_counter", "arch_sys_counter", true, false),
        ("hyperv_clocksource_msr", "hyperv_clocksource_msr tsc", false, true),
        ("xen", "xen tsc hpet", false, true),
        ("acpi_pm", "tsc acpi_pm", false, true),
        // The kernel found the tsc unfit.
        ("hpet", "hpet acpi_pm", false, false),
    ] {
        let folder = Path::new(&path).join("sys/devices/system/clocksource/clocksource0");
        std::fs::write(folder.join("current_clocksource"), current).unwrap();
        std::fs::write(folder.join("available_clocksource"), available).unwrap();
        assert!(conditions(&path).contains(&("time.clocksource".to_owned(), passes)), "{current}");
        let script = outcry_succeeds(&["tune", "--machine", &path]);
        assert_eq!(script.contains(switch), switches, "{current}");
    }
}

#[test]
fn what_cannot_be_taken_back_stays_kept() {
    let folder = folder();
    let (kept, one) = (folder.path().join("kept"), folder.path().join("one"));
    let gone = format!("set {}/no/such/file 7\n", folder.path().display());
    std::fs::write(&kept, format!("{gone}set {} 60 and more\n", one.display())).unwrap();
    let undo = outcry_succeeds(&["tune", "--undo"]);
    let undo = || Command::new("sh").args(["-c", &undo]).env("OUTCRY_TUNE_KEPT", &kept).output().unwrap();
    let output = undo();
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("/no/such/file, which was 7"), "{}", said(&output));
    assert_eq!(std::fs::read_to_string(&one).unwrap(), "60 and more\n");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), gone);
    std::fs::create_dir_all(folder.path().join("no/such")).unwrap();
    assert!(undo().status.success() && !kept.exists());
}

#[test]
fn a_name_of_a_network_card_is_no_command() {
    let (_folder, path) = unpacked("desktop");
    let queue = Path::new(&path).join("sys/class/net/x;touch y/queues/rx-0");
    std::fs::create_dir_all(&queue).unwrap();
    std::fs::create_dir_all(queue.join("../../device/power")).unwrap();
    std::fs::write(queue.join("rps_cpus"), "ffff\n").unwrap();
    let script = outcry_succeeds(&["tune", "--machine", &path]);
    assert!(script.contains("set_value '/sys/class/net/x;touch y/queues/rx-0/rps_cpus' "), "{script}");
}
