//! The binary as a process: it stops when asked, and never shares what must be its own.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use common::exchange::{Plan, outcry_succeeds};
use std::path::Path;
use std::process::Output;

fn folder() -> tempfile::TempDir {
    tempfile::TempDir::with_prefix_in("process-", env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn verify(data_dir: &Path) -> String {
    outcry_succeeds(&["journal", "verify", "--data-dir", data_dir.to_str().unwrap()])
}

#[test]
fn a_graceful_stop_ends_with_success_and_a_closing_mark() {
    let folder = folder();
    let plan = Plan::dev(folder.path());
    plan.start().stop();
    let verified = verify(&plan.data_dir());
    assert!(verified.contains("stopped in good order"), "{verified}");
}

#[test]
fn a_stopped_exchange_starts_again_where_it_was() {
    let folder = folder();
    let plan = Plan::dev(folder.path());
    plan.start().stop();
    let hash = |text: &str| text.lines().find(|line| line.starts_with("state hash ")).unwrap().to_owned();
    let first = hash(&verify(&plan.data_dir()));
    plan.start().stop();
    assert_eq!(hash(&verify(&plan.data_dir())), first);
}

#[test]
fn a_disk_that_is_nearly_full_ends_it_in_good_order_and_with_failure() {
    let folder = folder();
    let plan = Plan::dev(folder.path()).set("journal.disk_free_min=1125899906842624");
    let ended = plan.run();
    assert_eq!(ended.status.code(), Some(1), "{}", said(&ended));
    assert!(said(&ended).contains("less than half; stopping"), "{}", said(&ended));
    assert!(verify(&plan.data_dir()).contains("stopped in good order"));
}

#[test]
fn a_second_instance_on_the_same_data_directory_is_refused_by_name() {
    let (folder, other) = (folder(), folder());
    let plan = Plan::dev(folder.path());
    let exchange = plan.start();
    let data_dir = plan.data_dir();
    let second = Plan::dev(other.path()).flag("--data-dir", data_dir.to_str().unwrap()).run();
    assert!(!second.status.success(), "it started");
    assert!(said(&second).contains(data_dir.to_str().unwrap()), "{}", said(&second));
    assert!(exchange.connect().read("/time").is_u64(), "the first one runs on");
    exchange.stop();
}

#[test]
fn a_second_instance_on_the_same_port_is_refused_by_name() {
    let (folder, other) = (folder(), folder());
    let exchange = Plan::dev(folder.path()).start();
    let address = format!("127.0.0.1:{}", exchange.http);
    let second = Plan::dev(other.path()).flag("--listen", &address).run();
    assert!(!second.status.success(), "it started");
    assert!(said(&second).contains(&address), "{}", said(&second));
    exchange.stop();
}
