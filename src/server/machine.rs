//! What is looked at of the machine while it runs: its disks, its CPUs, its files, and who else is on it.
//!
//! What follows from a machine, and what is wrong with it, is [`crate::topology`]'s to say; what only a try can tell,
//! `operator::probes` tries.
//!
//! | file | what it looks at |
//! |---|---|
//! | `files` | the machine's own files, or a copy of another machine's |
//! | `disk` | how much room is left where the exchange writes, and what that means |
//! | `disk_count`, `disk_writers` | what a disk has done, and who writes |
//! | `crowd` | who else ran, by name |
//! | `own_time` | what the exchange's own threads use of each CPU |
//! | `run_delay` | for how long a thread was ready and had no CPU |
//! | `jitter` | how often a CPU is taken from a thread that never sleeps |
//! | `view` | all of it together, as the operator's listener reports it |
//! | `system` | the system calls that no crate wraps; the only unsafe file of the server |

pub mod crowd;
pub mod disk_count;
pub mod disk_writers;
pub mod jitter;
pub mod system;

pub(super) mod disk;
pub(super) mod files;
pub(super) mod own_time;
pub(super) mod run_delay;
pub(super) mod view;
