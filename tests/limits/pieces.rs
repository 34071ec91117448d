//! What leaves in pieces, so that other commands come in between.

use super::*;

#[test]
fn orders_that_are_to_leave_do_so_in_pieces_those_that_were_open_at_its_beginning_and_no_others() {
    let piece = u32::try_from(LEAVING_PER_PIECE).unwrap();
    let orders = 2 * piece + 1;
    let mut venue = Venue::open(orders + 1, 1, &["m"]);
    let alice = venue.wallet("alice");
    let mut order = venue.order("alice buy yes 1 x1 gtc #a");
    let mut ids = Vec::new();
    for number in 0..orders {
        order.id.0[..4].copy_from_slice(&number.to_le_bytes());
        assert_eq!(status(venue.fast.owner(MARKET).place(NOW, &order.ready())).0, Status::Live);
        ids.push(order.id);
    }
    venue.fast.follow();
    let log = Arc::clone(&venue.fast.log);
    let reason = RemovalReason::Cancelled;
    let (mut leaving, mut left) = (Leaving::default(), Vec::new());
    let shard = venue.fast.owner(MARKET);
    shard.choose_open(alice, OrderScope::ALL, &mut leaving);
    // What is placed now stays, and what is gone when it would be its turn is passed over.
    order.id.0[..4].copy_from_slice(&orders.to_le_bytes());
    assert_eq!(status(shard.place(NOW, &order.ready())).0, Status::Live);
    assert_eq!(shard.cancel(NOW, alice, &ids[1]), Ok(()));
    assert_eq!(shard.remove_some(NOW, &mut leaving, reason, &mut left), Ok(()));
    assert_eq!(left, [&ids[..1], &ids[2..LEAVING_PER_PIECE]].concat());
    // A piece for which the log has no room is the next one again.
    let payload = [0; 4_096];
    while log.room_for_cancel(1) {
        log.append(OrdersRemoved::KIND, &payload);
    }
    assert_eq!(shard.remove_some(NOW, &mut leaving, reason, &mut left), Err(CancelRefusal::Busy));
    assert_eq!((left.len(), shard.resting_count()), (LEAVING_PER_PIECE - 1, LEAVING_PER_PIECE + 2));
    log.free(log.claimed());
    assert_eq!(shard.remove_some(NOW, &mut leaving, reason, &mut left), Ok(()));
    assert_eq!((left.len(), leaving.is_over()), (2 * LEAVING_PER_PIECE - 1, false));
    assert_eq!(shard.remove_some(NOW, &mut leaving, reason, &mut left), Ok(()));
    assert_eq!((left.len(), leaving.is_over()), (2 * LEAVING_PER_PIECE, true));
    assert_eq!((left.last(), shard.resting_count()), (ids.last(), 1));
    // Where nothing is to leave, no room is needed.
    while log.room_for_cancel(1) {
        log.append(OrdersRemoved::KIND, &payload);
    }
    assert_eq!(shard.remove_some(NOW, &mut leaving, reason, &mut left), Ok(()));
}
