//! The process: from the command line to its exit code, and what it has one of.
//!
//! | file | what it knows |
//! |---|---|
//! | `run` | who does what the command line asked |
//! | `start` | starting and stopping, step by step |
//! | `roles` | from the journal to the roles of every loop |
//! | `recovery` | the reader as a snapshot and the frames after it leave it |
//! | `snapshotter` | the thread that makes snapshots |
//! | `signals` | what ends the process |
//! | `clock` | the one clock; everybody else is handed the time |
//! | `secret` | the master secret, and the operator's token |
//! | `made_with` | which secret and chain clients' keys were made with |
//! | `ports_file` | the file that says which ports were bound |
//! | `streams` | which streams' ids are still good |
//! | `logging` | what every thread has to say, on standard error |

pub(super) mod clock;
mod logging;
mod made_with;
mod ports_file;
mod recovery;
pub(super) mod roles;
pub(super) mod run;
pub(super) mod secret;
pub(super) mod signals;
pub(super) mod snapshotter;
pub(super) mod start;
mod streams;
