//! A bucket that several loops charge at the same moment.

use super::buckets::Buckets;
use super::moment::Moment;
use super::rate::{Cost, Rate};
use loom::sync::Arc;
use loom::thread;

const HASH: u64 = 7 << 42 | 7;
const NOW: Moment = Moment(1_000_000);

fn take(buckets: &Buckets, rate: Rate) -> bool {
    buckets.charge(HASH, rate, Cost::ONE, NOW, 0).fits
}

#[test]
fn loops_that_charge_a_bucket_together_take_no_more_than_it_holds() {
    loom::model(|| {
        let rate = Rate::of(3, 10);
        let buckets = Arc::new(Buckets::new(1));
        assert!(take(&buckets, rate));
        let other = Arc::clone(&buckets);
        let there = thread::spawn(move || u32::from(take(&other, rate)) + u32::from(take(&other, rate)));
        let here = u32::from(take(&buckets, rate));
        assert_eq!(here + there.join().unwrap(), 2);
    });
}

#[test]
fn what_is_given_back_is_there_and_what_others_took_is_not() {
    loom::model(|| {
        let rate = Rate::of(3, 10);
        let buckets = Arc::new(Buckets::new(1));
        assert!(take(&buckets, rate));
        let other = Arc::clone(&buckets);
        let there = thread::spawn(move || other.give_back(HASH, rate, rate.cost_us(Cost::ONE), NOW));
        assert!(take(&buckets, rate));
        there.join().unwrap();
        assert!(take(&buckets, rate) && take(&buckets, rate));
        assert!(!take(&buckets, rate));
    });
}

#[test]
fn loops_that_meet_a_new_client_together_lose_no_charge_while_there_is_room() {
    loom::model(|| {
        let rate = Rate::of(2, 10);
        let buckets = Arc::new(Buckets::new(1));
        let other = Arc::clone(&buckets);
        let there = thread::spawn(move || take(&other, rate));
        assert!(take(&buckets, rate));
        assert!(there.join().unwrap());
        assert!(!take(&buckets, rate));
    });
}
