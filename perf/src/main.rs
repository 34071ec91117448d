//! `perf`: what a running `outcry` takes, measured from outside.
//!
//! A run starts a server, gives it markets and money, makes and signs every request, and only then
//! starts the clock: from there each request goes out at its moment, whatever the answers do. What
//! is measured is the time from that moment to the answer, so nothing that stalls is left out.
//!
//! # Map
//!
//! | file | the question it answers |
//! |---|---|
//! | `commands` | what was asked for? |
//! | `scenario`, `written` | what does a scenario file say? |
//! | `schedule` | when is each request due? |
//! | `orders`, `workload` | which bytes go out, and what has to come back? |
//! | `generator`, `http` | how are they sent on time, and answers read? |
//! | `server`, `leftovers` | how is the server started, filled and ended, and what if a signal ends the rig? |
//! | `machine`, `jitter`, `away`, `watch` | what is the machine, what does it take away, before and meanwhile, who else had it? |
//! | `placement`, `in_force` | where are the server's threads, and how is it set? |
//! | `looks`, `counts` | what did the server's threads tell of themselves meanwhile? |
//! | `stats`, `timing`, `parts`, `verdict`, `summary` | what came of it, where did the time go, and may it be believed? |
//! | `run`, `sweep`, `compare`, `layers` | how does one run go, many rates, two servers, one order? |
//! | `scale`, `shards` | what does an order cost as the state grows, and on two shards? |
//! | `durable` | what does an answer that waits for the disk cost, beside a bare write? |
//! | `bench`, `figures`, `sheet` | what did a benchmark of the project measure? |
//! | `report` | what does a person see? |
//! | `records`, `readme` | what is kept, and what does README say of it? |
//!
//! # What is absent
//!
//! - No code of the server makes or reads what is sent: requests are signed by libraries, and
//!   answers are read here. Only `layers`, which is about the server's own parts, calls them; `jitter` and
//!   `away` have the server's own measurement of a machine.
//! - No figure of a run that was disturbed is kept: `record` refuses it.

#![allow(clippy::print_stdout, reason = "the result is what this program is for")]

mod answers;
mod away;
mod bench;
mod commands;
mod compare;
mod counts;
mod disk;
mod durable;
#[path = "../../benches/loopback/figures.rs"]
mod figures;
mod generator;
mod http;
mod in_force;
mod jitter;
mod layers;
mod leftovers;
mod line;
mod looks;
mod machine;
mod orders;
mod parts;
mod placement;
mod readme;
mod records;
mod report;
mod run;
mod scale;
mod scenario;
mod schedule;
mod server;
mod shards;
mod sheet;
#[path = "../../benches/loopback/sign.rs"]
mod sign;
mod stats;
mod summary;
mod sweep;
mod timing;
mod verdict;
mod watch;
mod workload;
mod written;

fn main() -> std::process::ExitCode {
    commands::execute()
}
