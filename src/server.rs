//! Everything that touches the world: sockets, threads, clocks, configuration, signals.
//!
//! One OS thread is one core loop (`core_loop`). Loops carry roles: sockets of trading connections, a shard, or both;
//! the registrar, on shard 0's loop; the reader with both listeners, usually on a loop of its own; the feed, which has
//! all streams, with the reader or apart. Roles on one loop call each other; roles on two loops talk through bounded
//! queues (`mesh`) and ring a bell only if the other sleeps (`waker`).
//!
//! Invariants:
//! - Nothing leaves the process before its frame is acknowledged at the configured durability.
//! - Answers leave a connection in the order of its requests, whichever loop made them.
//! - A request in flight always has room for its answer; without room it is refused before
//!   anything is taken.
//! - Whatever comes back to a loop names the connection's slot and generation.
//!
//! # Rooms, in the order of a request
//!
//! | room | the question it answers |
//! |---|---|
//! | [`plan`] | what do the options say, and which loop runs where? |
//! | `process` | how does it start, recover and end, and what is there one of? |
//! | `threads` | where does a loop's thread come from, and how do loops talk? |
//! | `core_loop` | what happens in a turn, and in which order? |
//! | `connections` | who is let in, and what does a client have open? |
//! | `requests` | where does a request end, where is it from, what does it pay, who asks? |
//! | `trading` | what becomes of a trading request? |
//! | `reading` | what becomes of a read, and of what follows the log? |
//! | `operator` | what can the operator ask, on its listener and by commands? |
//! | [`machine`] | what is looked at of the machine? |
//!
//! [`rig`] is a server that tests hold still. The head of each room lists its files.

pub mod machine;
pub mod plan;
#[doc(hidden)]
pub mod rig;

mod connections;
mod core_loop;
mod operator;
mod process;
mod reading;
mod requests;
mod threads;
mod trading;

pub use process::run::run;

#[cfg(test)]
mod tests;
