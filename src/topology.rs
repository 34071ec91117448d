//! What machine this is, where the roles belong on it, what is wrong with it, and how to mend that.
//!
//! Nothing here touches the machine. [`Files`] gives the text of files below `/sys` and `/proc`: `server` reads the
//! real ones or a copy of another machine's, tests read recorded ones. What only a trial can show (a port, a disk's
//! speed) comes in as [`checks::Probes`].
//!
//! | file | what it knows |
//! |---|---|
//! | [`machine`] | CPUs, cores, caches, nodes, interrupts, network queues, as the kernel reports them |
//! | [`placement`] | which CPU a loop gets under each policy, and why |
//! | [`checks`] | every condition: what is wanted, what was found, how bad a failure is |
//! | [`answers`] | what limits latency, orders a second, durable answers and reads; what to change or buy |
//! | [`capacity`] | how many orders a second the plan can take, and which loop is full first |
//! | `cost` | what a failed condition costs an order |
//! | [`limit`] | every cause found to limit this machine, what can add most to one order or read first |
//! | [`valid`] | whether a run of the latency rig could be VALID here |
//! | [`tune`] | a shell script that mends what the checks found wanting, and one that undoes it |
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
    /// The text of the file at `path`, or why it cannot be read.
    fn text(&self, path: &str) -> Result<String, String>;

    /// The names in the folder at `path`, sorted; none if it cannot be read.
    fn names(&self, path: &str) -> Vec<String>;

    /// The first line of the file at `path`, trimmed; none if that is empty.
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
