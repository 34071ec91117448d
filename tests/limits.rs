//! Every limit of a trade core, at one below, at the limit, and one above: what happens there, and
//! that nothing else does.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(unreachable_pub, dead_code, reason = "the scripts' files are shared with other tests")]

#[path = "scripts/fast.rs"]
mod fast;
#[path = "scripts/language.rs"]
mod language;
#[path = "scripts/names.rs"]
mod names;
#[path = "limits/pieces.rs"]
mod pieces;

use fast::Fast;
use language::{Command, MarketLine, OrderLine, Setup, parse};
use names::Names;
use outcry::domain::{Collateral, MarketNo, OrderId, Position, Reject, Shares, TimeMs, WalletNo};
use outcry::journal::layout::order::{FILLS_MAX, REMOVALS_MAX};
use outcry::journal::layout::{MoneyDirection, OrdersRemoved, Record, RemovalReason};
use outcry::journal::{FRAME_BYTES_MAX, Follower, Log};
use outcry::shard::{
    CancelRefusal, IfGone, LEAVING_PER_PIECE, Leaving, OrderScope, PlaceOrder, Placed, Refusal, Replace,
    Status,
};
use std::sync::Arc;

const NOW: TimeMs = TimeMs(1_700_000_000_000);
const MARKET: MarketNo = MarketNo(0);

/// One shard, the named markets, and traders with money and shares.
struct Venue {
    fast: Fast,
    names: Names,
}

impl Venue {
    fn open(orders: u32, ladders: u64, markets: &[&str]) -> Self {
        let setup = Setup {
            shards: vec![1],
            reserved: false,
            notional: 0,
            orders,
            open: orders,
            digests: 100_000,
            accounts: 64,
            each: 64,
            ladders,
        };
        let mut venue = Self { fast: Fast::new(&setup, 1), names: Names::default() };
        for (number, name) in (0..).zip(markets) {
            let line = MarketLine {
                name: (*name).to_owned(),
                tick: 1,
                fee_rate: 0,
                exponent: 1,
                builder_bps: 0,
                makers_pay: false,
                min_size: 0,
            };
            venue.fast.add_market(NOW, MarketNo(number), &line);
            venue.names.markets.push(line);
        }
        venue
    }

    fn order(&mut self, text: &str) -> PlaceOrder {
        let (_, lines) = parse(text);
        let Command::Order(line) = &lines[0].command else {
            panic!("{text:?} is no order");
        };
        let line: OrderLine = line.clone();
        let wallet = self.wallet(&line.who);
        self.names.place(&line, wallet, NOW)
    }

    fn wallet(&mut self, name: &str) -> WalletNo {
        let (wallet, new) = self.names.wallet(name);
        for (wallet, principal) in new {
            self.fast.add_wallet(NOW, wallet, principal);
            self.fast.money(NOW, wallet, MoneyDirection::Credit, 1_000_000_000_000);
        }
        wallet
    }

    fn place(&mut self, text: &str) -> Placed {
        let order = self.order(text);
        let placed = self.fast.owner(order.market).place(NOW, &order.ready());
        self.fast.follow();
        placed
    }
}

fn refused(placed: Placed) -> Option<Reject> {
    match placed {
        Placed::Refused(Refusal { reject, .. }) => Some(reject),
        Placed::Accepted { .. } => None,
    }
}

fn status(placed: Placed) -> (Status, u64) {
    match placed {
        Placed::Accepted { status, taking, .. } => (status, taking),
        Placed::Refused(refusal) => panic!("refused: {refusal:?}"),
    }
}

#[test]
fn an_order_fills_at_most_as_many_makers_as_a_message_to_its_taker_holds() {
    let makers = FILLS_MAX as u64 + 1;
    let mut venue = Venue::open(10_000, 1, &["m"]);
    for number in 0..makers {
        assert_eq!(status(venue.place(&format!("alice buy yes 50 x1 gtc #{number}"))).0, Status::Live);
    }
    let one = 1_000_000;
    let killed = venue.place(&format!("bob buy no 50 ${} fok #k", makers / 2 + 1));
    assert_eq!(status(killed), (Status::Killed(Reject::FillsLimit), 0));
    let filled = venue.place(&format!("bob buy no 50 x{makers} gtc #t"));
    assert_eq!(status(filled), (Status::Matched, FILLS_MAX as u64 * one));
    let row = venue.fast.ledger.order(&venue.names.orders["t"].id).unwrap();
    assert_eq!((row.stopped, row.open), (Some(Reject::FillsLimit), Shares::ZERO));
    assert_eq!(venue.fast.owner(MARKET).resting_count(), 1);
    let last = venue.place("bob buy no 50 x1 gtc #u");
    assert_eq!(status(last), (Status::Matched, one));
    venue.fast.agrees_with_its_log();
}

#[test]
fn an_order_that_got_all_it_can_from_as_many_makers_is_full() {
    let makers = FILLS_MAX as u64;
    let mut venue = Venue::open(10_000, 1, &["m"]);
    for number in 0..=makers {
        assert_eq!(status(venue.place(&format!("alice buy yes 30 x1 gtc #{number}"))).0, Status::Live);
    }
    // They cost 1,433.6. A millionth is left, for which the last maker would have to be filled for nothing.
    let filled = venue.place(&format!("bob buy no $1433.600001 x{makers} fok #t"));
    assert_eq!(status(filled), (Status::Matched, makers * 1_000_000));
    assert_eq!(venue.fast.owner(MARKET).resting_count(), 1);
    venue.fast.agrees_with_its_log();
}

#[test]
fn an_order_removes_at_most_as_many_makers_as_a_frame_holds() {
    let makers = REMOVALS_MAX + 1;
    let mut venue = Venue::open(10_000, 1, &["m"]);
    for number in 0..makers {
        assert_eq!(status(venue.place(&format!("alice buy yes 50 x1 gtc #{number}"))).0, Status::Live);
    }
    let killed = venue.place(&format!("alice buy no 50 x{makers} gtc maker #t"));
    assert_eq!(status(killed), (Status::Killed(Reject::FillsLimit), 0));
    assert_eq!(venue.fast.owner(MARKET).resting_count(), 1);
    let rests = venue.place(&format!("alice buy no 50 x{makers} gtc maker #u"));
    assert_eq!(status(rests), (Status::Live, 0));
    assert_eq!(venue.fast.owner(MARKET).resting_count(), 1);
    venue.fast.agrees_with_its_log();
}

#[test]
fn a_new_tick_that_more_orders_are_off_than_one_frame_holds_takes_several() {
    const IN_FRAME: u32 = 32_768;
    let orders = IN_FRAME + 3;
    let mut venue = Venue::open(orders, 2, &["m"]);
    let mut order = venue.order("alice buy yes 1.01 x1 gtc #a");
    for number in 0..orders {
        order.id.0[..4].copy_from_slice(&number.to_le_bytes());
        assert_eq!(status(venue.fast.owner(MARKET).place(NOW, &order.ready())).0, Status::Live);
        if number % 1_000 == 0 {
            venue.fast.log.free(venue.fast.log.claimed());
        }
    }
    let log = Arc::clone(&venue.fast.log);
    let coarser = outcry::domain::Tick::new(100).unwrap();
    // There is room for one frame, but not for both.
    let filler =
        OrdersRemoved { time: NOW, reason: RemovalReason::Operator, orders: vec![Position(0); 1_000] };
    let mut payload = Vec::new();
    filler.encode(&mut payload);
    while Log::slack(1) + 2 * FRAME_BYTES_MAX as u64 <= log.room() {
        log.append(OrdersRemoved::KIND, &payload);
    }
    let claimed = log.claimed();
    assert_eq!(venue.fast.owner(MARKET).set_tick(NOW, MARKET, coarser), Err(Reject::Busy.into()));
    assert_eq!((log.claimed(), venue.fast.owner(MARKET).resting_count()), (claimed, orders as usize));
    log.free(claimed);
    let mut follower = Follower::new(Arc::clone(&log), log.claimed(), None);
    assert_eq!(venue.fast.owner(MARKET).set_tick(NOW, MARKET, coarser), Ok(orders as usize));
    assert_eq!(venue.fast.owner(MARKET).resting_count(), 0);
    let mut frames = Vec::new();
    while let Some(frame) = follower.next(log.claimed()).unwrap() {
        frames.push(match Record::decode(frame.kind, frame.payload).unwrap() {
            Record::OrdersRemoved(record) => (record.reason, record.orders),
            Record::TickChanged(record) => (RemovalReason::TickChanged, record.removed),
            other => panic!("{other:?}"),
        });
    }
    let counts: Vec<_> = frames.iter().map(|(reason, removed)| (*reason, removed.len())).collect();
    assert_eq!(counts, [(RemovalReason::TickChanged, 3), (RemovalReason::TickChanged, IN_FRAME as usize)]);
    let mut all: Vec<_> = frames.into_iter().flat_map(|(_, removed)| removed).collect();
    all.dedup();
    assert!(all.is_sorted() && all.len() == orders as usize, "each once, oldest first");
}

#[test]
fn what_expired_counts_no_more_when_it_is_asked_who_is_covered() {
    // More than a sweep removes in one piece.
    const EXPIRING: u32 = 257;
    let mut venue = Venue::open(1_000, 1, &["m"]);
    for number in 0..EXPIRING {
        let order = format!("alice buy yes 60 x1 gtd #{number} expires 10");
        assert_eq!(status(venue.place(&order)).0, Status::Live);
    }
    assert_eq!(status(venue.place("alice buy yes 40 x1 gtc #stays")).0, Status::Live);
    let alice = venue.wallet("alice");
    assert!(venue.fast.money(NOW, alice, MoneyDirection::Debit, 999_999_500_000));
    let later = NOW.plus_ms(10_000);
    while venue.fast.owner(MARKET).sweep(later) {}
    venue.fast.follow();
    let left: Vec<_> = venue.fast.book(MARKET).iter().map(|row| venue.names.label(&row.id)).collect();
    assert_eq!(left, ["stays"]);
    venue.fast.agrees_with_its_log();
}

#[test]
fn who_has_more_orders_than_it_may_can_still_replace_them_by_as_many() {
    let mut venue = Venue::open(16, 1, &["m"]);
    let alice = venue.wallet("alice");
    let mut ids: Vec<_> = (0..8)
        .map(|number| {
            let order = venue.order(&format!("alice buy yes 1 x1 gtc #{number}"));
            assert_eq!(status(venue.fast.owner(MARKET).place(NOW, &order.ready())).0, Status::Live);
            order.id
        })
        .collect();
    venue.fast.follow();
    venue.fast.restart_with(1, |settings| settings.open_per_owner_max = 3);
    for (leaving, coming, allowed) in [(0, 1, false), (1, 1, true), (1, 2, false), (4, 2, true), (5, 1, true)]
    {
        let mut order = venue.order("alice buy yes 2 x1 gtc #new");
        let coming: Vec<_> = (0..coming)
            .map(|number: u8| {
                order.id.0[..3].copy_from_slice(&[leaving, coming, number]);
                order.ready()
            })
            .collect();
        let request = Replace {
            principal: alice,
            leaving: &ids[..leaving.into()],
            coming: &coming,
            if_gone: IfGone::Refuse,
        };
        let shard = venue.fast.owner(MARKET);
        let before = shard.resting_count();
        match shard.replace(NOW, &request) {
            Ok(_) => {
                assert!(allowed, "{leaving} for {}", coming.len());
                ids.drain(..usize::from(leaving));
                ids.extend(coming.iter().map(|order| *order.id()));
                assert_eq!(shard.resting_count(), before - usize::from(leaving) + coming.len());
            }
            Err(refusal) => {
                assert!(!allowed, "{leaving} for {}: {refusal:?}", coming.len());
                assert_eq!(shard.resting_count(), before);
            }
        }
    }
}

#[test]
fn a_sweep_says_whether_orders_left_so_that_they_are_counted_anew() {
    let mut venue = Venue::open(1_000, 1, &["m"]);
    assert_eq!(status(venue.place("alice buy yes 60 x1 gtd #expires expires 10")).0, Status::Live);
    let shard = venue.fast.owner(MARKET);
    assert!(!shard.sweep(NOW), "none has expired");
    let later = NOW.plus_ms(10_000);
    assert!(shard.sweep(later));
    assert_eq!(shard.resting_count(), 0);
    assert!(!shard.sweep(later), "none is left");
    assert_eq!(status(venue.place("alice buy yes 60 x1 gtc #unfunded")).0, Status::Live);
    let alice = venue.wallet("alice");
    assert!(venue.fast.money(NOW, alice, MoneyDirection::Debit, 999_999_500_000));
    let shard = venue.fast.owner(MARKET);
    assert!(shard.sweep(later));
    assert_eq!(shard.resting_count(), 0);
    assert!(!shard.sweep(later));
    venue.fast.follow();
    venue.fast.agrees_with_its_log();
}

#[test]
fn some_thousand_expired_orders_leave_before_an_order_and_more_make_it_busy() {
    const MOST: u64 = 16 * 256;
    for (expiring, expected) in [(MOST - 1, None), (MOST, None), (MOST + 1, Some(Reject::Busy))] {
        let mut venue = Venue::open(10_000, 1, &["m"]);
        for number in 0..expiring {
            let order = format!("alice buy yes 60 x1 gtd #{number} expires 10");
            assert_eq!(status(venue.place(&order)).0, Status::Live);
        }
        let later = NOW.plus_ms(10_000);
        let order = venue.order("bob buy yes 60 x1 gtc #t");
        let placed = venue.fast.owner(MARKET).place(later, &order.ready());
        assert_eq!(refused(placed), expected, "{expiring}");
        if expected.is_some() {
            assert_eq!(venue.fast.owner(MARKET).resting_count(), 1, "the sweep goes on from there");
            assert_eq!(status(venue.fast.owner(MARKET).place(later, &order.ready())).0, Status::Live);
        }
        assert_eq!(venue.fast.owner(MARKET).resting_count(), 1);
        venue.fast.follow();
        venue.fast.agrees_with_its_log();
    }
}

#[test]
fn a_full_arena_refuses_what_would_rest_and_still_trades_and_cancels() {
    let mut venue = Venue::open(2, 1, &["m"]);
    assert_eq!(refused(venue.place("alice buy yes 50 x1 gtc #a")), None);
    assert_eq!(refused(venue.place("alice buy yes 49 x1 gtc #b")), None);
    assert_eq!(refused(venue.place("alice buy yes 48 x1 gtc #c")), Some(Reject::BookFull));
    assert_eq!(refused(venue.place("bob buy no 50 x1 gtc #t")), None);
    assert_eq!(refused(venue.place("alice buy yes 48 x1 gtc #c")), None);
    venue.fast.agrees_with_its_log();
}

#[test]
fn a_full_pool_refuses_another_book_until_one_is_empty() {
    let mut venue = Venue::open(16, 2, &["m", "n", "o"]);
    assert_eq!(refused(venue.place("alice buy yes 50 x1 gtc #a in m")), None);
    assert_eq!(refused(venue.place("alice buy yes 50 x1 gtc #b in n")), None);
    assert_eq!(refused(venue.place("alice buy yes 50 x1 gtc #c in o")), Some(Reject::NoRoomForBook));
    let (alice, a) = (venue.wallet("alice"), venue.names.orders["a"].id);
    assert_eq!(venue.fast.owner(MARKET).cancel(NOW, alice, &a), Ok(()));
    assert_eq!(refused(venue.place("alice buy yes 50 x1 gtc #c in o")), None);
    let coarser = outcry::domain::Tick::new(100).unwrap();
    assert_eq!(
        venue.fast.owner(MARKET).set_tick(NOW, MarketNo(1), coarser).unwrap_err().reject,
        Reject::NoRoomForBook
    );
}

#[test]
fn a_full_pool_refuses_a_replace_that_needs_another_book() {
    let mut venue = Venue::open(16, 2, &["m", "n", "o"]);
    assert_eq!(refused(venue.place("alice buy yes 50 x1 gtc #a in m")), None);
    assert_eq!(refused(venue.place("alice buy yes 50 x1 gtc #b in n")), None);
    let b = venue.names.orders["b"].id;
    for (leaving, coming, expected) in [
        (vec![], "alice buy yes 50 x1 gtc #c in o", Err(Reject::NoRoomForBook)),
        (vec![], "alice buy yes 49 x1 gtc #d in n", Ok(0)),
        // The book of its market is given back and taken again.
        (vec![b, OrderId([7; 32])], "alice buy yes 48 x1 gtc #e in n", Ok(1)),
    ] {
        let before = venue.fast.owner(MARKET).resting_count();
        let coming = [venue.order(coming)];
        let principal = coming[0].principal;
        let request = Replace { principal, leaving: &leaving, coming: &coming, if_gone: IfGone::Place };
        let replaced = venue.fast.replace(NOW, &request);
        assert_eq!(replaced.map(|done| done.left.len()).map_err(|refusal| refusal.reject), expected);
        let came = usize::from(expected.is_ok());
        assert_eq!(venue.fast.owner(MARKET).resting_count(), before + came - expected.unwrap_or(0));
        venue.fast.agrees_with_its_log();
    }
}

#[test]
fn an_order_worth_nothing_is_told_the_size_that_is_worth_something_at_every_price() {
    let mut venue = Venue::open(16, 1, &["m"]);
    for line in ["alice buy yes 50 x1 gtc #a", "bob buy no 50 x1 gtc #b", "bob sell no 0.01 x1 gtc #cheap"] {
        assert_eq!(refused(venue.place(line)), None, "{line}");
    }
    for _ in ["it is not remembered", "so the same order is told the same"] {
        let said = venue.place("alice buy no 50 x0.00002 gtc #small");
        let refusal = Refusal { reject: Reject::SizeTooSmall, got: 20, allowed: 10_000 };
        assert_eq!(said, Placed::Refused(refusal));
    }
    assert_eq!(status(venue.place("alice buy no 50 x0.01 gtc #least")).0, Status::Matched);
}

#[test]
fn a_principal_has_a_quota_of_tombstones_that_run_out() {
    let mut venue = Venue::open(16, 1, &["m"]);
    let (alice, bob) = (venue.wallet("alice"), venue.wallet("bob"));
    let shard = venue.fast.owner(MARKET);
    let id = |number: u16| {
        let mut bytes = [9; 32];
        bytes[..2].copy_from_slice(&number.to_le_bytes());
        OrderId(bytes)
    };
    for number in 0..256 {
        assert!(shard.tombstone(NOW, alice, &id(number)));
    }
    assert!(shard.tombstone(NOW, alice, &id(255)), "a repeat takes no more of it");
    assert!(!shard.tombstone(NOW, alice, &id(256)));
    assert!(shard.tombstone(NOW, bob, &id(256)));
    let later = NOW.plus_ms(10_000);
    assert!(shard.tombstone(later, alice, &id(256)));
    venue.fast.follow();
}

#[test]
fn a_short_log_refuses_orders_first_and_cancels_last_and_loses_nothing() {
    let mut venue = Venue::open(16, 1, &["m"]);
    venue.place("alice buy yes 50 x1 gtc #a");
    venue.place("alice buy yes 49 x1 gtc #b");
    let order = venue.order("bob buy yes 40 x1 gtc #c");
    let (alice, bob) = (venue.wallet("alice"), venue.wallet("bob"));
    let filler =
        OrdersRemoved { time: NOW, reason: RemovalReason::Operator, orders: vec![Position(0); 32_000] };
    let mut payload = Vec::new();
    filler.encode(&mut payload);
    let log = Arc::clone(&venue.fast.log);
    // Until orders have no room; nobody follows the log, so nothing is freed.
    while log.room_for_order(1) {
        log.append(OrdersRemoved::KIND, &payload);
    }
    let (a, b) = (venue.names.orders["a"].id, venue.names.orders["b"].id);
    let cells = Arc::clone(&venue.fast.cells);
    let before = cells.balance(bob);
    let shard = venue.fast.owner(MARKET);
    assert_eq!(refused(shard.place(NOW, &order.ready())), Some(Reject::Busy));
    assert_eq!(cells.balance(bob), before);
    assert_eq!(shard.cancel(NOW, alice, &a), Ok(()), "cancels have a reserve");
    while log.room_for_cancel(1) {
        log.append(OrdersRemoved::KIND, &payload);
    }
    assert_eq!(shard.cancel(NOW, alice, &b), Err(CancelRefusal::Busy));
    assert_eq!(shard.resting_count(), 1);
    assert!(Collateral::ZERO < before);
}

#[test]
fn what_is_placed_after_the_moment_that_is_meant_stays() {
    let mut venue = Venue::open(8, 1, &["m"]);
    let alice = venue.wallet("alice");
    let [first, second] = ["#a", "#b"].map(|label| venue.order(&format!("alice buy yes 1 x1 gtc {label}")));
    assert_eq!(status(venue.fast.owner(MARKET).place(NOW, &first.ready())).0, Status::Live);
    let before = venue.fast.log.claimed();
    let shard = venue.fast.owner(MARKET);
    assert_eq!(status(shard.place(NOW, &second.ready())).0, Status::Live);
    let (mut leaving, mut left) = (Leaving::default(), Vec::new());
    shard.choose_open(alice, OrderScope { before: Some(before), ..OrderScope::ALL }, &mut leaving);
    assert_eq!(shard.looked_in_vain(), 1);
    assert_eq!(shard.remove_some(NOW, &mut leaving, RemovalReason::Disconnected, &mut left), Ok(()));
    assert_eq!(left, [first.id]);
}

#[test]
fn a_tombstone_waits_ten_seconds_by_a_clock_that_was_set_back_restarts_included() {
    let ahead = NOW.plus_ms(86_400_000);
    let at = |seconds: u64| NOW.plus_ms(1_000 * seconds);
    for restarts in [false, true] {
        let mut venue = Venue::open(16, 1, &["m"]);
        let [seen, early, late] =
            ["seen", "early", "late"].map(|label| venue.order(&format!("alice buy yes 40 x1 gtc #{label}")));
        let alice = seen.wallet;
        assert_eq!(status(venue.fast.owner(MARKET).place(ahead, &seen.ready())).0, Status::Live);
        assert!(venue.fast.owner(MARKET).tombstone(at(5), alice, &early.id));
        assert!(venue.fast.owner(MARKET).tombstone(at(6), alice, &late.id));
        venue.fast.follow();
        if restarts {
            venue.fast.restart(1);
        }
        let shard = venue.fast.owner(MARKET);
        assert_eq!(
            status(shard.place(at(14), &early.ready())).0,
            Status::Killed(Reject::CancelledBeforeArrival),
            "the cancel waits for ten seconds, restarts: {restarts}"
        );
        assert_eq!(status(shard.place(at(16), &late.ready())).0, Status::Live, "and no longer");
    }
}

#[test]
fn a_log_remembers_only_the_tombstones_that_wait() {
    let mut venue = Venue::open(16, 1, &["m"]);
    let order = venue.order("alice buy yes 40 x1 gtc #a");
    // Ahead, set back by a day, and on from there: each of these ends what came before.
    for (number, seconds) in [(1, 86_400), (2, 0), (3, 10), (4, 20)] {
        let now = NOW.plus_ms(1_000 * seconds);
        assert!(venue.fast.owner(MARKET).tombstone(now, order.wallet, &OrderId([number; 32])));
        venue.fast.follow();
        let waiting: Vec<_> = venue.fast.ledger.tombstones().map(|waiting| waiting.id.0[0]).collect();
        assert_eq!(waiting, [number], "after {seconds} s");
    }
}

#[test]
fn a_clock_that_was_ahead_and_set_back_holds_nobody_up_and_frames_keep_their_order() {
    let ahead = NOW.plus_ms(86_400_000);
    let at = |seconds: u64| NOW.plus_ms(1_000 * seconds);
    for restarts in [false, true] {
        let mut venue = Venue::open(16, 1, &["m"]);
        let [seen, old, early, late] = ["seen", "old", "early", "late"]
            .map(|label| venue.order(&format!("alice buy yes 40 x1 gtc #{label}")));
        let alice = seen.wallet;
        assert_eq!(status(venue.fast.owner(MARKET).place(ahead, &seen.ready())).0, Status::Live);
        assert!(venue.fast.owner(MARKET).tombstone(ahead, alice, &old.id));
        venue.fast.follow();
        assert_eq!(venue.fast.ledger.time(), ahead);
        if restarts {
            venue.fast.restart(1);
        }

        let minute = venue.order("bob buy yes 30 x1 gtd expires 60 #minute");
        let mut hurried = venue.order("bob buy yes 31 x1 gtc #hurried");
        hurried.order.deadline_ms = at(5).0 + 1;
        let shard = venue.fast.owner(MARKET);
        assert_eq!(status(shard.place(at(5), &minute.ready())).0, Status::Live, "it has 55 s by the clock");
        assert_eq!(
            status(shard.place(at(5), &hurried.ready())).0,
            Status::Live,
            "it came in time by the clock"
        );
        assert_eq!(
            status(shard.place(at(5), &old.ready())).0,
            Status::Live,
            "its cancel is of a time that never was"
        );
        for unseen in [&early, &late] {
            assert!(shard.tombstone(at(5), alice, &unseen.id));
        }
        let killed = Status::Killed(Reject::CancelledBeforeArrival);
        assert_eq!(status(shard.place(at(14), &early.ready())).0, killed, "the cancel waits for ten seconds");
        assert_eq!(status(shard.place(at(15), &late.ready())).0, Status::Live, "and no longer");
        shard.sweep(at(59));
        assert_eq!(shard.resting_count(), 5);
        shard.sweep(at(60));
        assert_eq!(shard.resting_count(), 4);
        venue.fast.follow();
        venue.fast.agrees_with_its_log();
        assert_eq!(venue.fast.ledger.time(), ahead, "no frame is from before another");
    }
}
