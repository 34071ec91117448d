//! What others took from this benchmark, which spins a thread on each of the two CPUs and should have
//! all their time.

use std::time::Instant;

/// The CPU time of some processes, from a moment on.
pub(crate) struct Watch {
    pids: Vec<u32>,
    begin: Instant,
    used_ns: u64,
}

impl Watch {
    /// Watches this process and `others`.
    pub(crate) fn begin(others: &[u32]) -> Self {
        let pids = [&[std::process::id()], others].concat();
        let used_ns = used_ns(&pids);
        Self { pids, begin: Instant::now(), used_ns }
    }

    /// The part of two CPUs' time since then that the watched processes did not have.
    pub(crate) fn lost(&self) -> f64 {
        let used_ns = used_ns(&self.pids) - self.used_ns;
        (1.0 - used_ns as f64 / (2.0 * self.begin.elapsed().as_nanos() as f64)).max(0.0)
    }
}

/// The CPU time in nanoseconds that all threads of these processes have had.
fn used_ns(pids: &[u32]) -> u64 {
    let of_thread = |path: std::path::PathBuf| -> u64 {
        // A thread that ends between two looks has had nothing worth counting.
        let text = std::fs::read_to_string(path.join("schedstat")).unwrap_or_default();
        text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    let threads = |pid: &u32| std::fs::read_dir(format!("/proc/{pid}/task")).expect("the process runs");
    pids.iter().flat_map(threads).map(|thread| of_thread(thread.expect("a thread").path())).sum()
}
