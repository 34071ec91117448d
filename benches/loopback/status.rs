//! What Linux says of a process's memory.

/// A line of the process's `status`, such as `VmHWM:`, in bytes; none once it has ended.
pub(crate) fn bytes(id: u32, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}
