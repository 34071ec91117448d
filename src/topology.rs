//! What machine this is, where the roles belong on it, what is wrong with it, and how to mend that.
//!
//! Nothing here touches the machine. [`Files`] says what stands in a file below `/sys` or `/proc`;
//! `server` answers from the real ones or from a copy of another machine's, and tests from recorded
//! ones. What only a try can tell (a port, a disk's speed) comes in as [`checks::Probes`].
//!
//! | file | what it knows |
//! |---|---|
//! | [`machine`] | CPUs, cores, caches, nodes, interrupts, network queues, as the kernel tells them |
//! | [`placement`] | which CPU a loop gets by which policy, and why |
//! | [`checks`] | every condition: what is wanted, what is, how bad it is |
//! | [`answers`] | what limits the median, the slow and the slowest orders, orders a second, durable answers, reads; what is free, what to buy |
//! | [`capacity`] | how many orders a second the plan can take, and which loop is full first |
//! | `cost` | what a condition that is not met costs an order |
//! | [`limit`] | what was found on this machine that limits it, what can add most to one order, or to a read, first |
//! | [`valid`] | whether a run of the latency rig could be VALID here |
//! | [`tune`] | a shell script for what the checks found wanting, and one that takes it back |
//! | [`list`], [`table`] | CPU lists as the kernel writes them, tables for people |

pub mod answers;
pub mod capacity;
pub mod checks;
mod cost;
pub mod limit;
pub mod list;
pub mod machine;
pub mod placement;
pub mod table;
pub mod tune;
pub mod valid;

/// The files of a machine, by their absolute paths.
pub trait Files {
    /// What stands in the file at `path`, or why it cannot be read.
    fn text(&self, path: &str) -> Result<String, String>;

    /// The names in the folder at `path`, sorted; none if it cannot be read.
    fn names(&self, path: &str) -> Vec<String>;

    /// The first line of the file at `path` without the spaces around it, unless that is empty.
    fn line(&self, path: &str) -> Option<String> {
        let text = self.text(path).ok()?;
        let line = text.lines().next().unwrap_or_default().trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    /// The first line of the file at `path` as a number.
    fn number(&self, path: &str) -> Option<u64> {
        self.line(path)?.parse().ok()
    }
}
