//! What a disk has written, by the kernel's own count: of that the journal's writes are ours, and the rest others'.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{major, minor};

/// Writes since the boot of the disk that a folder is on (the kernel's Documentation/block/stat.rst); none if no disk is
/// behind it, as behind memory.
pub(crate) fn writes(folder: &Path) -> Option<u64> {
    let device = std::fs::metadata(folder).ok()?.dev();
    let path = format!("/sys/dev/block/{}:{}/stat", major(device), minor(device));
    parse(&std::fs::read_to_string(path).ok()?)
}

fn parse(stat: &str) -> Option<u64> {
    stat.split_whitespace().nth(4)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disks_writes_are_the_fifth_number() {
        for (stat, expected) in
            [("  17 0 99 3 4711 0 800 8 0 100\n", Some(4_711)), ("17 0 99 3", None), ("", None)]
        {
            assert_eq!(parse(stat), expected, "{stat}");
        }
    }
}
