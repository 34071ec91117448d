//! Who writes to disks, by the kernel's own count of each process (`write_bytes` of `/proc/PID/io`, proc(5)): root sees
//! everybody's, others only their own.

use std::collections::BTreeMap;

use super::crowd::{is_ours, numbers, shown};

/// A look at every process but this one and the server.
#[derive(Debug)]
pub struct DiskWriters(BTreeMap<u32, u64>);

impl DiskWriters {
    /// All processes but this one and `server`.
    #[must_use]
    pub fn now(server: Option<u32>) -> Self {
        let others = numbers("/proc").filter(|&id| !is_ours(id, server));
        Self(others.filter_map(|id| Some((id, written(id)?))).collect())
    }

    /// The process, with its number, that wrote most until `later`, if that was at least half of `bytes`, which are
    /// what one disk wrote. The kernel does not say to which disk a process wrote.
    #[must_use]
    pub fn most_of(&self, later: &Self, bytes: u64) -> Option<String> {
        let (bytes_most, id) = self.most(later)?;
        let name = std::fs::read_to_string(format!("/proc/{id}/comm")).ok()?;
        let is_most = 0 < bytes && 0 < bytes_most && bytes / 2 <= bytes_most;
        is_most.then(|| format!("{} ({id})", shown(name.trim_end_matches('\n'))))
    }

    fn most(&self, later: &Self) -> Option<(u64, u32)> {
        let since = |(id, all): (&u32, &u64)| (all.saturating_sub(*self.0.get(id).unwrap_or(&0)), *id);
        later.0.iter().map(since).max()
    }
}

fn written(id: u32) -> Option<u64> {
    count(&std::fs::read_to_string(format!("/proc/{id}/io")).ok()?)
}

fn count(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wrote_most_meanwhile_is_found_however_much_others_had_written_before() {
        let look = |counts: &[(u32, u64)]| DiskWriters(counts.iter().copied().collect());
        let before = look(&[(1, 9_000), (2, 10)]);
        for (later, most) in [
            (vec![(1, 9_100), (2, 400)], Some((390, 2))),
            // One that came meanwhile has written all that it has.
            (vec![(1, 9_100), (3, 500)], Some((500, 3))),
            (vec![], None),
        ] {
            assert_eq!(before.most(&look(&later)), most);
        }
        assert_eq!(count("rchar: 5\nwrite_bytes: 4096\ncancelled_write_bytes: 7\n"), Some(4_096));
    }

    #[test]
    fn half_of_what_a_disk_wrote_is_a_name() {
        let id = std::process::id();
        let look = |bytes| DiskWriters([(id, bytes)].into());
        let named = |bytes| look(100).most_of(&look(600), bytes);
        assert!(named(1_000).is_some_and(|who| who.ends_with(&format!(" ({id})"))));
        // Of a disk to which nobody wrote nobody had half, whatever was written elsewhere.
        assert_eq!([named(1_002), named(0), look(100).most_of(&look(100), 0)], [None, None, None]);
    }
}
