//! What the advice does, and what it leaves.

use super::*;

#[test]
fn values_stay_as_they_are_whatever_their_place_and_length() {
    for length in [0, 1, BYTES_MIN - 1, BYTES_MIN, BYTES_MIN + 1, 3 * BYTES_MIN + 4_095] {
        let mut values: Vec<u8> = (0..=u8::MAX).cycle().take(length).collect();
        let expected = values.clone();
        make_ready(&mut values);
        assert!(values == expected, "{length} bytes");
    }
}

#[test]
fn memory_is_resident_after_it() {
    let resident_kib = || {
        let status = std::fs::read_to_string("/proc/self/smaps_rollup").expect("procfs");
        let line = status.lines().find(|line| line.starts_with("Rss:")).expect("Rss");
        line.split_whitespace().nth(1).expect("a number").parse::<usize>().expect("KiB")
    };
    let mut values = vec![0_u64; 32 << 20];
    let before = resident_kib();
    make_ready(&mut values);
    // Other tests give memory back meanwhile, but not a quarter of a gigabyte.
    assert!(before + (128 << 10) < resident_kib(), "256 MiB were asked for");
}
