//! Limits that come with how others use the disk.

use super::*;
use crate::topology::checks::DiskUse;

/// What others do on the disk, besides 300 writes a second that take a millisecond each, as reads do.
fn used_by_others(busy_millionths: u64, reads_per_second: u64) -> DiskUse {
    let (writes_per_second, bytes_per_second) = (300, 2 << 20);
    let is_mostly_read = writes_per_second < reads_per_second;
    DiskUse {
        reads_per_second,
        writes_per_second,
        bytes_per_second,
        busy_millionths,
        is_mostly_read,
        who: None,
    }
}

#[test]
fn who_else_writes_to_the_disk_is_told_with_what_its_answers_wait_for() {
    let found = |durable, busy_millionths, reads, who: Option<&str>| {
        let needs = Needs { durable, ..needs(2, 1, Policy::Auto, false) };
        let mut probes = Probes::none("no");
        let who = who.map(str::to_owned);
        probes.disk = Ok(disk(5_600));
        probes.disk_quiet = Ok(used_by_others(busy_millionths, reads).by(who));
        limits(2, &needs, &probes).into_iter().find(|limit| limit.kind == Kind::Disk)
    };
    assert_eq!(found(false, 631_000, 0, None), None);
    let theirs = "one at a time, while others use it: the disk is busy 63.10 % of the time with others' work, 0 reads, 300 writes and 2048 KiB written a second; an";
    let stop = "stop who writes there (`iotop -o` says who), or give another data_dir";
    let stop_one = "stop dd (7), which writes there, or give another data_dir";
    let stop_readers = "stop who reads there (`iotop -o` says who), or give another data_dir";
    let quiet = "one at a time, with no other load (ext4)";
    for (busy_millionths, reads, who, told, change) in [
        (99_999, 0, None, quiet, "a disk that writes 4 KiB sooner, or "),
        (99_999, 0, Some("dd (7)"), quiet, "a disk that writes 4 KiB sooner, or "),
        (631_000, 0, None, theirs, stop),
        (631_000, 300, Some("dd (7)"), ", most of it by dd (7); ", stop_one),
        // Whoever writes a little is innocent of what others read.
        (
            631_000,
            301,
            Some("dd (7)"),
            "301 reads, 300 writes and 2048 KiB written a second; an",
            stop_readers,
        ),
    ] {
        let limit = found(true, busy_millionths, reads, who).expect("answers wait for the disk");
        assert!(limit.text.contains(told), "{}", limit.text);
        assert!(limit.change.as_ref().is_some_and(|text| text.starts_with(change)), "{limit:?}");
    }
}

#[test]
fn what_the_host_has_may_be_for_who_keeps_the_disk_busy() {
    let needs = needs(2, 1, Policy::Auto, false);
    let first = "stop dd (7), which writes there, and measure again: the host may have our CPUs for that; else a host that sells whole cores";
    for (busy_millionths, threads, change) in [
        (631_000, 0, first),
        (0, 0, "a host that sells whole cores"),
        (631_000, 49_000, "stop what runs there"),
    ] {
        let mut probes = Probes::none("no");
        probes.disk_quiet = Ok(used_by_others(busy_millionths, 0).by(Some("dd (7)".to_owned())));
        probes.jitter = Some(vec![Gaps {
            cpu: 0,
            lost_millionths: 50_000,
            long_millionths: 50_000,
            threads_millionths: Some(threads),
            threads_long_millionths: Some(threads),
            ..Gaps::default()
        }]);
        let came = limits(2, &needs, &probes);
        let gaps = came.iter().find(|limit| limit.kind == Kind::Gaps).expect("a CPU was taken");
        assert!(gaps.change.as_ref().is_some_and(|text| text.starts_with(change)), "{gaps:?}");
    }
}
