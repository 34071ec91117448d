//! `perf`: what a running `outcry` takes, measured from outside.
//!
//! # Map
//!
//! | file | the question it answers |
//! |---|---|
//! | `scenario` | what does a scenario file ask for? |
//! | `schedule` | when is each request due? |
//! | `orders`, `workload` | which bytes go out, and what has to come back? |
//! | `generator`, `http` | how are they sent on time, and answers read? |
//! | `server` | how is the server started, filled and ended? |
//! | `machine`, `jitter`, `watch` | what is the machine, what does it take away, who else had it? |
//! | `stats`, `timing`, `verdict`, `summary` | what came of it, and may it be believed? |
//! | `run` | how does one run go? |
//! | `report` | what does a person see? |
#![allow(dead_code, reason = "grows")]
#![allow(clippy::print_stdout, reason = "the result is what this program is for")]

mod generator;
mod http;
mod jitter;
mod machine;
mod orders;
mod report;
mod run;
mod scenario;
mod schedule;
mod server;
#[path = "../../benches/loopback/sign.rs"]
mod sign;
mod stats;
mod summary;
mod timing;
mod verdict;
mod watch;
mod workload;

fn main() {
    let project = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned();
    let ground = run::Ground {
        server: std::env::current_exe().unwrap().with_file_name("outcry"),
        out: project.join("target/perf"),
        project: project.clone(),
        profile: "release".into(),
        jitter: std::time::Duration::from_secs(1),
    };
    let name = std::env::args().nth(1).unwrap();
    let plan = scenario::Plan::read(&project.join("perf/scenarios"), &name).unwrap();
    let outcome = run::run(&ground, &plan).unwrap();
    let folder = report::write(&ground.out, &outcome).unwrap();
    println!("{:#?}", outcome.summary.verdict);
    println!("{:#?}", outcome.summary.classes);
    println!("{}", folder.display());
}
