use super::*;
use crate::domain::{OrderId, Position, WalletNo};
use orders::NEVER;
use proptest::prelude::*;

const MARKET: MarketNo = MarketNo(0);

fn order(side: Side, outcome: Outcome, ten_thousandths: u16, position: u64) -> Resting {
    Resting {
        id: id(position),
        open: Shares(5),
        position: Position(position),
        expires_s: NEVER,
        principal: WalletNo(0),
        market: MARKET,
        price: Price::new(ten_thousandths).unwrap(),
        side,
        outcome,
    }
}

fn id(position: u64) -> OrderId {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&position.to_le_bytes());
    OrderId(bytes)
}

fn books(resting_max: u32, bytes: u64) -> Books {
    Books::new(2, resting_max, bytes, 0x9e37_79b9_7f4a_7c15)
}

fn positions(books: &Books) -> Vec<u64> {
    books.walk(MARKET).map(|slot| books.orders()[slot].position.0).collect()
}

#[test]
fn orders_for_both_tokens_share_one_queue_a_price() {
    let tick = Tick::new(100).unwrap();
    let mut books = books(8, 1 << 20);
    for new in [
        order(Side::Buy, Outcome::Zero, 4_000, 1),
        order(Side::Sell, Outcome::One, 6_000, 2),
        order(Side::Buy, Outcome::Zero, 4_100, 3),
        order(Side::Sell, Outcome::Zero, 5_000, 4),
        order(Side::Buy, Outcome::One, 5_100, 5),
    ] {
        books.rest(tick, &new).unwrap();
    }
    assert_eq!(positions(&books), [3, 1, 2, 5, 4]);
    let best = |side| books.first(MARKET, side).map(|slot| books.orders()[slot].face().price);
    assert_eq!(best(Side::Buy), Price::new(4_100));
    assert_eq!(best(Side::Sell), Price::new(4_900));
}

#[test]
fn a_full_arena_and_a_full_pool_refuse_by_name_and_change_nothing() {
    let tick = Tick::new(1).unwrap();
    let mut books = books(2, 8 * (1 << 14));
    books.rest(tick, &order(Side::Buy, Outcome::Zero, 1, 1)).unwrap();
    let other = Resting { market: MarketNo(1), ..order(Side::Buy, Outcome::Zero, 1, 2) };
    assert_eq!(books.rest(tick, &other), Err(Full::Bytes));
    let last = books.rest(tick, &order(Side::Buy, Outcome::Zero, 2, 3)).unwrap();
    assert_eq!(books.rest(tick, &order(Side::Buy, Outcome::Zero, 3, 4)), Err(Full::Orders));
    books.remove(last);
    let first = books.orders().find(&id(1)).unwrap();
    books.remove(first);
    books.rest(tick, &other).unwrap();
}

#[test]
#[should_panic(expected = "BOOK-1")]
fn an_order_that_crosses_never_rests() {
    let tick = Tick::new(100).unwrap();
    let mut books = books(8, 1 << 20);
    books.rest(tick, &order(Side::Buy, Outcome::Zero, 5_000, 1)).unwrap();
    let _ = books.rest(tick, &order(Side::Buy, Outcome::One, 5_000, 2));
}

#[test]
fn a_finer_and_a_coarser_tick_keep_every_queue() {
    let cent = Tick::new(100).unwrap();
    // Room for one ladder of each tick: one that is no longer used is given back, or there is none for the next.
    let mut books = books(8, 8 * ((1 << 14) + (1 << 7)));
    for (position, price) in [(1, 4_000), (2, 4_100), (3, 4_000)] {
        books.rest(cent, &order(Side::Buy, Outcome::Zero, price, position)).unwrap();
    }
    for tick in [Tick::new(1).unwrap(), cent].repeat(2) {
        assert!(books.room_to_retick(MARKET, tick));
        books.retick(MARKET, tick);
        assert_eq!(positions(&books), [2, 1, 3]);
    }
    books.rest(cent, &order(Side::Sell, Outcome::Zero, 4_200, 4)).unwrap();
    assert_eq!(positions(&books), [2, 1, 3, 4]);
}

proptest! {
    /// The plain book is a list of (face, position), sorted when asked.
    #[test]
    fn queues_and_bests_are_those_of_a_sorted_list(
        acts in proptest::collection::vec((0_u8..4, 1_u16..99, any::<bool>(), 0_usize..64), 1..150),
    ) {
        let tick = Tick::new(100).unwrap();
        let mut books = books(64, 1 << 20);
        let mut plain: Vec<(Face, u64, Slot)> = Vec::new();
        for (position, (act, cents, flip, which)) in (1_u64..).zip(acts) {
            if act == 0 {
                if !plain.is_empty() {
                    let (_, _, slot) = plain.remove(which % plain.len());
                    books.remove(slot);
                }
            } else {
                let side = if act == 1 { Side::Buy } else { Side::Sell };
                let outcome = if flip { Outcome::One } else { Outcome::Zero };
                let new = order(side, outcome, cents * 100, position);
                let face = new.face();
                let crosses = plain.iter().any(|(other, ..)| other.side != face.side && face.reaches(other.price));
                if !crosses && plain.len() < 64 {
                    plain.push((face, position, books.rest(tick, &new).unwrap()));
                }
            }
            let mut sorted = plain.clone();
            sorted.sort_by_key(|(face, position, _)| match face.side {
                Side::Buy => (0, 10_000 - face.price.ten_thousandths(), *position),
                Side::Sell => (1, face.price.ten_thousandths(), *position),
            });
            let expected: Vec<u64> = sorted.iter().map(|(_, position, _)| *position).collect();
            prop_assert_eq!(positions(&books), expected);
            for (_, position, slot) in &plain {
                prop_assert_eq!(books.orders().find(&id(*position)), Some(*slot));
            }
        }
    }
}
