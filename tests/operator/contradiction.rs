//! A journal whose frames are whole, and whose story cannot be true.

use crate::common::exchange::{Plan, journal_output, said};
use crate::common::folder;
use outcry::domain::{Collateral, Position, TimeMs, WalletNo};
use outcry::journal::layout::{Money, MoneyDirection, Record, StateHash};
use outcry::journal::{Fault, Opened, Options, open};
use std::path::Path;

/// Later than any frame that a test writes.
const TIME: TimeMs = TimeMs(4_000_000_000_000);

fn opened(folder: &Path, plan: &Plan) -> Opened {
    open(Options { log_path: Some(folder.join("ring")), ..Options::new(&plan.data_dir()) }).unwrap()
}

/// The last hash of the state that the journal holds.
fn last_hash(opened: &Opened) -> StateHash {
    let mut last = None;
    let each = opened.for_each_frame::<Fault>(|frame| {
        if let Ok(Record::StateHash(hash)) = Record::decode(frame.kind, frame.payload) {
            last = Some(hash);
        }
        Ok(())
    });
    each.unwrap();
    last.expect("one at every checkpoint")
}

/// Adds a record to a journal that was stopped in good order, and stops it so again; returns where the record is.
fn add(opened: Opened, record: &Record) -> Position {
    let started = opened.start(TIME, 1, Box::new(|_| {})).unwrap();
    let mut payload = Vec::new();
    record.encode(&mut payload);
    let span = started.log.append(record.kind(), &payload);
    started.writer.stop(TIME).unwrap();
    span.start
}

#[test]
fn a_journal_that_contradicts_itself_is_refused_by_its_place_by_verify_and_by_every_start() {
    let debit = Money {
        time: TIME,
        wallet: WalletNo(1),
        direction: MoneyDirection::Debit,
        amount: Collateral(u64::MAX),
        reference: "money that nobody has".to_owned(),
    };
    for (change, why) in [
        ("a debit", "a cell fell below zero"),
        ("a hash", "the state does not meet its recorded hash"),
        ("a hash of another place", "a state hash names a position that is no checkpoint"),
    ] {
        let folder = folder();
        let plan = Plan::dev(folder.path()).set("journal.hash_every_frames=64");
        plan.start().stop();
        let opened = opened(folder.path(), &plan);
        let hash = last_hash(&opened);
        let record: Record = match change {
            "a debit" => debit.clone().into(),
            "a hash" => StateHash { hash: hash.hash ^ 1, ..hash }.into(),
            _ => StateHash { through: Position(hash.through.0 + 64), ..hash }.into(),
        };
        let place = format!("{}", add(opened, &record).0);
        let verified = journal_output("verify", &plan.data_dir());
        for (by, output) in [("verify", verified), ("a start", plan.run()), ("another start", plan.run())] {
            let said = said(&output);
            assert!(!output.status.success(), "{change}, {by}: {said}");
            assert!(said.contains(why) && said.contains(&place), "{change} at {place}, {by}: {said}");
        }
    }
}
