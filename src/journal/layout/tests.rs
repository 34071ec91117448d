use super::*;
use crate::domain::order::SIGNATURE_BYTES_MAX;
use crate::domain::{
    Address, ApiKey, Collateral, MarketNo, OrderFields, OrderId, OrderType, Outcome, Position, Price, Reject,
    SelfTrade, Shares, Side, SignatureType, SignedOrder, TimeMs, TokenId, WalletNo, Word,
};
use crate::journal::{Follower, Log};
use crate::memory::wire::Input;
use std::sync::Arc;

fn placed() -> OrderPlaced {
    let price = Price::new(5_100).expect("in range");
    let fill = Fill {
        maker: Position(64),
        shares: Shares(10_000_000),
        maker_leg: Collateral(5_100_000),
        taker_leg: Collateral(4_900_000),
        maker_fee: Collateral::ZERO,
        taker_fee: Collateral(10),
        kind: MatchKind::Mint,
        price,
    };
    OrderPlaced {
        time: TimeMs(1),
        market: MarketNo(2),
        outcome: Outcome::One,
        wallet: WalletNo(3),
        principal: WalletNo(4),
        id: OrderId([5; 32]),
        fields: OrderFields {
            salt: Word([6; 32]),
            maker: Address([7; 20]),
            signer: Address([8; 20]),
            token: TokenId([9; 32]),
            maker_amount: 10,
            taker_amount: 11,
            side: Side::Sell,
            signature_type: SignatureType::Deposit,
            timestamp_ms: 12,
            metadata: Word([13; 32]),
            builder: Word([14; 32]),
        },
        signature: vec![15; 317],
        expiration_s: 16,
        order_type: OrderType::Gtd,
        post_only: false,
        self_trade: SelfTrade::ExpireBoth,
        owner: ApiKey([17; 16]),
        price,
        result: PlacedResult::Rests,
        stopped: Some(Reject::SelfTradeStopped),
        open: Shares(18),
        reserved: Collateral(19),
        fills: vec![fill; 3],
        removed: vec![Removal { order: Position(128), reason: RemovalReason::Unfunded }],
    }
}

/// Signed fields, of which those named by `bits` have their longer form.
fn fields(bits: u8) -> OrderFields {
    let all = placed().fields;
    let has = |bit: u8| bits & bit != 0;
    let mut salt = all.salt;
    salt.0[..24].fill(0);
    OrderFields {
        salt: if has(1) { all.salt } else { salt },
        signer: if has(2) { all.signer } else { all.maker },
        metadata: if has(4) { all.metadata } else { Word::ZERO },
        builder: if has(8) { all.builder } else { Word::ZERO },
        ..all
    }
}

/// How many bytes that adds.
fn longer_bytes(bits: u8) -> usize {
    let lengths = [(1, 24), (2, 20), (4, 32), (8, 32)];
    lengths.into_iter().filter(|(bit, _)| bits & bit != 0).map(|(_, bytes)| bytes).sum()
}

#[test]
fn signed_fields_have_one_form_and_it_is_the_shortest() {
    for bits in 0..16 {
        let (fields, mut bytes) = (fields(bits), Vec::new());
        fields.put(&mut bytes);
        assert_eq!((bytes[0], bytes.len()), (bits, 87 + longer_bytes(bits)), "the table of the fields");
        assert_eq!(read(&bytes), Ok(fields), "{bits:04b}");
        // Each longer field repeats one byte, which gets the value for which it would be left out.
        for (bit, is, left_out) in [(1, 6, 0), (2, 8, 7), (4, 13, 0), (8, 14, 0)] {
            let mut bytes = bytes.clone();
            bytes[1..].iter_mut().filter(|byte| **byte == is).for_each(|byte| *byte = left_out);
            assert_eq!(
                read(&bytes).is_err(),
                bits & bit != 0,
                "{bits:04b}: it is there and could be left out"
            );
        }
        for unknown in [16, 32, 64, 128] {
            bytes[0] = bits | unknown;
            assert!(read(&bytes).is_err(), "{:08b}", bytes[0]);
        }
    }
}

fn read(bytes: &[u8]) -> Result<OrderFields, Damage> {
    let mut input = Input::new(bytes);
    let fields = OrderFields::take(&mut input)?;
    input.finish().map(|()| fields)
}

#[test]
fn an_order_reads_back_as_it_was_written_and_a_cut_or_longer_payload_does_not() {
    let record = Record::from(placed());
    let mut payload = Vec::new();
    record.encode(&mut payload);
    assert_eq!(Record::decode(record.kind(), &payload), Ok(record.clone()));
    for cut in 0..payload.len() {
        assert!(Record::decode(record.kind(), &payload[..cut]).is_err(), "cut at {cut}");
    }
    payload.push(0);
    assert!(Record::decode(record.kind(), &payload).is_err());
}

#[test]
fn what_is_zero_in_an_order_is_checked() {
    let mut payload = Vec::new();
    Record::from(placed()).encode(&mut payload);
    let removal = payload.len() - order::REMOVAL_BYTES;
    let fill = removal - order::FILL_BYTES;
    let received = removal - 3 * order::FILL_BYTES;
    let cases = [("zeros", received - 1), ("fill", fill + 49), ("fill", fill + 52), ("removal", removal + 9)];
    for (field, at) in cases {
        let mut payload = payload.clone();
        assert_eq!(payload[at], 0, "{field}");
        payload[at] = 1;
        let damage = Record::decode(OrderPlaced::KIND, &payload).expect_err(field);
        assert_eq!(damage.field, field, "{damage}");
    }
}

#[test]
fn whatever_byte_of_a_shards_record_is_changed_it_is_damage_or_another_record() {
    let (time, reason) = (TimeMs(7), RemovalReason::Expired);
    let removed = OrdersRemoved { time, reason, orders: vec![Position(64), Position(128)] };
    for record in [Record::from(placed()), removed.into()] {
        let mut payload = Vec::new();
        record.encode(&mut payload);
        for at in 0..payload.len() {
            let was = payload[at];
            for byte in (0..=255).filter(|byte| *byte != was) {
                payload[at] = byte;
                let Ok(other) = Record::decode(record.kind(), &payload) else { continue };
                let mut again = Vec::new();
                other.encode(&mut again);
                assert_eq!(again, payload, "byte {at} is {byte}");
            }
            payload[at] = was;
        }
    }
    let nobody = [7_u64.to_le_bytes(), [0; 8]];
    assert!(OrdersRemoved::decode(nobody.as_flattened()).is_err(), "nobody left");
}

#[test]
fn what_was_received_and_what_was_decided_make_the_payload_of_the_record() {
    let (mut record, mut received) = (placed(), Received::NOTHING);
    let cases = [(65, 0), (65, 1), (317, 0), (317, 3), (1, 2), (0, 0)];
    for ((signature, fills), longer) in
        cases.into_iter().flat_map(|case| (0..16).map(move |bits| (case, bits)))
    {
        record.signature = vec![15; signature];
        record.fields = fields(longer);
        record.fills.truncate(fills);
        record.fills.resize(fills, placed().fills[0].clone());
        let OrderPlaced { price, result, stopped, open, reserved, .. } = record;
        let order = SignedOrder {
            fields: record.fields,
            signature: [15; SIGNATURE_BYTES_MAX],
            signature_len: u16::try_from(signature).unwrap(),
            expiration_s: record.expiration_s,
            deadline_ms: 1,
            order_type: record.order_type,
            post_only: record.post_only,
            self_trade: record.self_trade,
            owner: record.owner,
            condition: None,
        };
        let (wallet, market) = ((record.wallet, record.principal), (record.market, record.outcome));
        received.write(&order, &record.id, wallet, market);
        let (fills, removed) = (record.fills.iter().cloned(), record.removed.iter().cloned());
        let decision = Decision { price, result, stopped, open, reserved, fills, removed };
        let mut room = [[0xff; 8]; 64];
        let decided = received.decide(record.time, decision, &mut room);
        let parts = received.payload(&decided, &room);
        let log = Log::anonymous(1 << 12);
        let claim = log.claim(parts.bytes());
        let span = log.commit_parts(claim, OrderPlaced::KIND, &parts);

        let mut expected = Vec::new();
        record.encode(&mut expected);
        let lines = (228 - 65 + signature + longer_bytes(longer)).next_multiple_of(64);
        let tail = record.fills.len() * order::FILL_BYTES + order::REMOVAL_BYTES;
        assert_eq!(expected.len(), 32 + lines + tail, "the table of the parts");
        let mut follower = Follower::new(Arc::new(log), span.start, None);
        let frame = follower.next(span.end).expect("it is in the ring").expect("it is committed");
        assert_eq!((frame.kind, frame.payload), (OrderPlaced::KIND, &expected[..]), "{signature} bytes");
    }
}

#[test]
fn orders_that_leave_are_written_as_their_record_is() {
    for count in [1, 2, 3, 20] {
        let orders = vec![Position(64); count];
        let mut room = [[0xff; 8]; 64];
        let payload =
            OrdersRemoved::write(TimeMs(7), RemovalReason::Expired, orders.iter().copied(), &mut room);
        let log = Arc::new(Log::anonymous(1 << 12));
        let span = log.append_parts(OrdersRemoved::KIND, &payload);
        let mut follower = Follower::new(log, span.start, None);
        let frame = follower.next(span.end).expect("it is in the ring").expect("it is committed");
        let record = OrdersRemoved { time: TimeMs(7), reason: RemovalReason::Expired, orders };
        assert_eq!(frame.kind, OrdersRemoved::KIND);
        assert_eq!(OrdersRemoved::decode(frame.payload), Ok(record), "{count}");
    }
}

#[test]
fn the_sizes_that_the_limits_are_computed_from_are_the_sizes_written() {
    let mut order = placed();
    let bytes = |order: &OrderPlaced| {
        let mut payload = Vec::new();
        order.encode(&mut payload);
        payload.len()
    };
    let with_all = bytes(&order);
    order.fills.clear();
    let without_fills = bytes(&order);
    order.removed.clear();
    let head = bytes(&order);
    assert_eq!(with_all - without_fills, 3 * order::FILL_BYTES);
    assert_eq!(without_fills - head, order::REMOVAL_BYTES);
    assert!(head <= order::ORDER_HEAD_BYTES_MAX, "{head}");
}

#[test]
fn an_impossible_value_is_named() {
    let mut payload = Vec::new();
    Close { time: TimeMs(1) }.encode(&mut payload);
    assert_eq!(Record::decode(999, &payload), Err(Damage { field: "kind", at: 0 }));
}
