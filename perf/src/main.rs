//! `perf`: measures a running `outcry` from outside.
//!
//! A run starts a server, gives it markets and money, makes and signs every request, and only then starts the clock.
//! From then on each request goes out at its moment, whatever the answers do. What is measured is the time from that
//! moment to the answer, so no stall is left out.
//!
//! # Map
//!
//! | file | the question it answers |
//! |---|---|
//! | `commands` | what was asked for? |
//! | `scenario`, `written` | what does a scenario file say? |
//! | `schedule` | when is each request due? |
//! | `orders`, `sign`, `workload` | which bytes go out, and what has to come back? |
//! | `generator`, `http` | how are they sent on time, and how are answers read? |
//! | `server`, `leftovers` | how is the server started, filled and ended, and what if a signal ends the rig? |
//! | `machine`, `jitter`, `away`, `watch` | what is the machine, what does it take away, and who else had it? |
//! | `placement`, `in_force` | where are the server's threads, and which options has it? |
//! | `looks`, `counts` | what do the server's threads report about themselves for that time? |
//! | `answers`, `stats`, `timing`, `summary` | what was the result? |
//! | `line`, `parts`, `verdict` | where did the time go, and is it valid? |
//! | `run`, `sweep`, `compare`, `layers` | how are one run, many rates, two servers, one order measured? |
//! | `scale`, `shards` | what does an order cost as the state grows, and on two shards? |
//! | `durable`, `disk` | what does an answer that waits for the disk cost, beside a bare write? |
//! | `bench`, `figures`, `sheet` | what did a benchmark of the project measure? |
//! | `report` | what does a person see? |
//! | `records`, `readme` | what is kept, and what does README show of it? |
//!
//! # What is absent
//!
//! - The rig makes and reads all traffic itself: requests are signed by libraries, and answers are parsed here. Of the
//!   code that an order passes only `layers` calls any, to measure its parts. The rest of the rig shares what looks at a
//!   machine (`server::machine`), what judges one (`topology`) and what says where a file is wrong (`server::plan`).
//! - No figure of a disturbed run is kept: `record` refuses it.

#![allow(clippy::print_stdout, reason = "the result is what this program is for")]

mod answers;
mod away;
#[path = "../../benches/loopback/bare.rs"]
mod bare;
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
