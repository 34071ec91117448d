//! What a disk has done, for whichever process, by the kernel's own count.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{major, minor};

use crate::topology::checks::DiskUse;

/// What a block device has done since the boot, by its `stat` (the kernel's Documentation/block/stat.rst).
#[derive(Debug, PartialEq, Eq)]
pub struct DiskCount {
    reads: u64,
    /// What reads took altogether, and what writes did.
    took_ms: [u64; 2],
    /// Writes.
    pub writes: u64,
    /// Sectors of 512 bytes, whatever the device's own size.
    sectors_written: u64,
    busy_ms: u64,
}

impl DiskCount {
    /// The count of the device that a folder is on, else the name of what could not be read, as for a folder in memory.
    pub fn of(folder: &Path) -> Result<Self, String> {
        let device = std::fs::metadata(folder).map_err(|fault| format!("stat: {fault}"))?.dev();
        let path = format!("/sys/dev/block/{}:{}/stat", major(device), minor(device));
        let text = std::fs::read_to_string(&path).map_err(|_| path.clone())?;
        Self::parse(&text).ok_or(path)
    }

    fn parse(text: &str) -> Option<Self> {
        let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let number = |index: usize| numbers.get(index).copied();
        Some(Self {
            reads: number(0)?,
            took_ms: [number(3)?, number(7)?],
            writes: number(4)?,
            sectors_written: number(6)?,
            busy_ms: number(9)?,
        })
    }

    /// Bytes that were written from this count to a later one.
    #[must_use]
    pub fn bytes_until(&self, later: &Self) -> u64 {
        512 * later.sectors_written.saturating_sub(self.sectors_written)
    }

    /// What was done from this count to a later one, `time` apart.
    pub(crate) fn until(&self, later: &Self, time: Duration) -> DiskUse {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
        let since = |of: fn(&Self) -> u64| of(later).saturating_sub(of(self));
        DiskUse {
            reads_per_second: since(|count| count.reads) * 1_000 / ms,
            writes_per_second: since(|count| count.writes) * 1_000 / ms,
            bytes_per_second: self.bytes_until(later) * 1_000 / ms,
            is_mostly_read: since(|count| count.took_ms[1]) < since(|count| count.took_ms[0]),
            busy_millionths: (since(|count| count.busy_ms) * 1_000_000 / ms).min(1_000_000),
            who: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_had_of_a_disk_is_told_by_the_second() {
        let line = |reads: u64, writes: u64, sectors: u64, busy_ms: u64, [reading, writing]: [u64; 2]| {
            let text = format!(
                "  {reads} 0 99 {reading} {writes} 0 {sectors} {writing} 0 {busy_ms} 11 0 0 0 0 0 0\n"
            );
            DiskCount::parse(&text).expect("counts")
        };
        let before = line(7, 10, 800, 100, [3, 8]);
        let after = line(27, 60, 2_848, 350, [103, 108]);
        let used = before.until(&after, Duration::from_millis(500));
        assert_eq!(
            (used.reads_per_second, used.writes_per_second, used.bytes_per_second, used.busy_millionths),
            (40, 100, 2 << 20, 500_000)
        );
        assert!(used.is_felt() && !used.is_mostly_read);
        // Few reads that take long are more than many quick writes.
        let read = before.until(&line(9, 300, 2_848, 350, [104, 108]), Duration::from_millis(500));
        assert!(read.is_mostly_read);
        assert_eq!(
            used.amount(),
            "busy 50.00 % of the time with others' work, 40 reads, 100 writes and 2048 KiB written a second"
        );
        assert_eq!(DiskCount::parse("1 2 3"), None);
    }
}
