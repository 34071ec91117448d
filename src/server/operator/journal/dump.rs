//! A frame as one line of JSON: its place, its name, and every field of its record.
//!
//! Amounts are decimal texts in USDC or shares, prices decimal texts, orders are named by the
//! position of their placement, wallets and markets by their numbers, as in the log itself.

use crate::domain::{FeeSchedule, OrderFields, Outcome, Payout, Position, Shares};
use crate::journal::Frame;
use crate::journal::layout::{
    ActKind, Fill, MarketAdded, MatchKind, Money, MoneyDirection, OrderPlaced, OrdersReplaced, PlacedResult,
    PositionAct, Record,
};
use crate::json::Writer;

/// Appends one frame, without the end of the line.
pub(super) fn write(frame: &Frame<'_>, record: &Record, out: &mut Vec<u8>) {
    let json = &mut Writer::new(out);
    json.open_object();
    json.key("position").number(frame.span.start.0).key("end").number(frame.span.end.0);
    json.key("epoch").number(frame.epoch.into()).key("kind").number(frame.kind.into());
    json.key("record").text(record.name()).key("timeMs").number(record.time().0);
    fields(json, record);
    json.close_object();
}

fn fields(json: &mut Writer<'_>, record: &Record) {
    match record {
        Record::Start(row) => {
            json.key("cutBytes").number(row.cut_bytes).key("shards").number(row.shards.into());
        }
        Record::Close(_) => {}
        Record::StateHash(row) => {
            json.key("through").number(row.through.0).key("hash").text(&format!("{:032x}", row.hash));
        }
        Record::WalletAdded(row) => {
            json.key("wallet").number(row.wallet.0.into()).key("address").address(&row.address);
            json.key("walletKind").text(row.kind.text());
            if let Some(principal) = row.principal {
                json.key("principal").number(principal.0.into());
            }
        }
        Record::WalletLinked(row) => {
            json.key("wallet").number(row.wallet.0.into()).key("principal").number(row.principal.0.into());
        }
        Record::KeyChanged(row) => {
            json.key("principal").number(row.principal.0.into()).key("nonce").uint256(&row.nonce);
            json.key("generation").number(row.generation.into()).key("active").boolean(row.active);
        }
        Record::Frozen(row) => {
            json.key("principal").number(row.principal.0.into()).key("frozen").boolean(row.frozen);
        }
        Record::ExchangeMode(row) => {
            json.key("mode").text(row.mode.text());
        }
        Record::Money(row) => money(json, row),
        Record::EventText(row) => {
            json.key("event").number(row.event.into()).key("text").text(&row.text);
        }
        Record::ItemText(row) => {
            json.key("kind").text(row.kind.text()).key("item").number(row.item.into());
            json.key("text").text(&row.text);
        }
        Record::MarketAdded(row) => market(json, row),
        Record::MarketText(row) => {
            json.key("market").number(row.market.0.into());
            event(json, row.event);
            json.key("text").text(&row.text);
        }
        Record::OrderPlaced(row) => order(json, row),
        Record::OrdersRemoved(row) => {
            json.key("reason").text(row.reason.text());
            positions(json, "orders", &row.orders);
        }
        Record::OrdersReplaced(row) => replaced(json, row),
        Record::SwitchArmed(row) => {
            json.key("principal").number(row.principal.0.into()).key("key").uuid(row.key);
            json.key("armed").boolean(row.armed);
        }
        Record::BreakerSet(row) => {
            json.key("principal").number(row.principal.0.into()).key("key").uuid(row.key);
            json.key("quantity").millionths_text(row.quantity.0).key("intervalMs").number(row.interval_ms);
            json.key("tripped").boolean(row.tripped);
        }
        Record::Tombstone(row) => {
            json.key("id").order_id(&row.id).key("principal").number(row.principal.0.into());
            json.key("untilMs").number(row.until.0);
        }
        Record::PositionAct(row) => act(json, row),
        Record::TickChanged(row) => {
            json.key("market").number(row.market.0.into());
            json.key("tick").ten_thousandths_text(row.tick.ten_thousandths());
            positions(json, "removed", &row.removed);
        }
        Record::MarketMode(row) => {
            json.key("market").number(row.market.0.into()).key("mode").text(row.mode.text());
        }
        Record::Resolved(row) => {
            json.key("market").number(row.market.0.into());
            payout(json, row.payout);
        }
    }
}

fn money(json: &mut Writer<'_>, row: &Money) {
    let direction = if row.direction == MoneyDirection::Credit { "credit" } else { "debit" };
    json.key("wallet").number(row.wallet.0.into()).key("direction").text(direction);
    json.key("amount").millionths_text(row.amount.0).key("ref").text(&row.reference);
}

fn market(json: &mut Writer<'_>, row: &MarketAdded) {
    json.key("market").number(row.market.0.into());
    event(json, row.event);
    json.key("shardKey").number(row.shard_key.into()).key("marketId").number(row.market_id);
    json.key("conditionId").condition(&row.condition).key("questionId").hex(row.question.as_bytes());
    json.key("tokens").open_array().token(&row.tokens[0]).token(&row.tokens[1]).close_array();
    json.key("outcomes").open_array();
    for label in &row.labels {
        json.text(label);
    }
    json.close_array();
    json.key("negRisk").boolean(row.neg_risk).key("tick").ten_thousandths_text(row.tick.ten_thousandths());
    json.key("minSize").millionths_text(row.min_size.0).key("mode").text(row.mode.text());
    fee(json, &row.fee);
    if let Some(known) = row.payout {
        payout(json, known);
    }
    json.key("text").text(&row.text);
}

fn fee(json: &mut Writer<'_>, fee: &FeeSchedule) {
    json.key("fee").open_object();
    json.key("rate").millionths_text(fee.rate.into()).key("exponent").number(fee.exponent.into());
    json.key("takerOnly").boolean(fee.taker_only).key("builderShareBps").number(fee.builder_share_bps.into());
    json.key("rebateRate").millionths_text(fee.rebate_rate.into()).key("version").number(fee.version.into());
    json.close_object();
}

fn replaced(json: &mut Writer<'_>, row: &OrdersReplaced) {
    json.key("market").number(row.market.0.into());
    positions(json, "removed", &row.removed);
    json.key("placed").open_array();
    for quote in &row.placed {
        json.open_object();
        order(json, &quote.order);
        if let Some(former) = quote.takes_place_of {
            json.key("takesPlaceOf").number(former.0);
        }
        json.close_object();
    }
    json.close_array();
}

fn order(json: &mut Writer<'_>, row: &OrderPlaced) {
    json.key("id").order_id(&row.id).key("market").number(row.market.0.into());
    json.key("outcome").number(row.outcome.index() as u64).key("wallet").number(row.wallet.0.into());
    json.key("principal").number(row.principal.0.into()).key("orderType").text(row.order_type.text());
    json.key("postOnly").boolean(row.post_only).key("selfTrade").text(&format!("{:?}", row.self_trade));
    json.key("expirationS").number(row.expiration_s).key("owner").uuid(row.owner);
    json.key("price").price_text(row.price);
    signed(json, &row.fields);
    json.key("signature").hex(&row.signature);
    let (result, why) = match row.result {
        PlacedResult::Rests => ("rests", None),
        PlacedResult::Filled => ("filled", None),
        PlacedResult::Killed(reject) => ("killed", Some(reject)),
    };
    json.key("result").text(result);
    if let Some(reject) = why.or(row.stopped) {
        json.key("stopped").text(reject.wire().code);
    }
    json.key("open").millionths_text(row.open.0).key("reserved").millionths_text(row.reserved.0);
    json.key("fills").open_array();
    for part in &row.fills {
        fill(json, part);
    }
    json.close_array().key("removed").open_array();
    for removal in &row.removed {
        json.open_object()
            .key("order")
            .number(removal.order.0)
            .key("reason")
            .text(removal.reason.text())
            .close_object();
    }
    json.close_array();
}

fn signed(json: &mut Writer<'_>, fields: &OrderFields) {
    json.key("signed").open_object();
    json.key("salt")
        .uint256(&fields.salt)
        .key("maker")
        .address(&fields.maker)
        .key("signer")
        .address(&fields.signer);
    json.key("tokenId").token(&fields.token).key("makerAmount").number_text(fields.maker_amount);
    json.key("takerAmount").number_text(fields.taker_amount).key("side").text(fields.side.text());
    json.key("signatureType")
        .number(fields.signature_type as u64)
        .key("timestamp")
        .number_text(fields.timestamp_ms);
    json.key("metadata").hex(fields.metadata.as_bytes()).key("builder").hex(fields.builder.as_bytes());
    json.close_object();
}

fn fill(json: &mut Writer<'_>, fill: &Fill) {
    let kind = match fill.kind {
        MatchKind::Transfer => "transfer",
        MatchKind::Mint => "mint",
        MatchKind::Merge => "merge",
    };
    json.open_object().key("maker").number(fill.maker.0).key("kind").text(kind);
    json.key("price").price_text(fill.price).key("shares").millionths_text(fill.shares.0);
    json.key("makerLeg").millionths_text(fill.maker_leg.0).key("takerLeg").millionths_text(fill.taker_leg.0);
    json.key("makerFee").millionths_text(fill.maker_fee.0).key("takerFee").millionths_text(fill.taker_fee.0);
    json.close_object();
}

fn act(json: &mut Writer<'_>, row: &PositionAct) {
    let kind = match row.act {
        ActKind::Split => "split",
        ActKind::Merge => "merge",
        ActKind::Redeem => "redeem",
    };
    json.key("act")
        .text(kind)
        .key("wallet")
        .number(row.wallet.0.into())
        .key("market")
        .number(row.market.0.into());
    json.key("shares").open_array();
    for Shares(shares) in row.shares {
        json.millionths_text(shares);
    }
    json.close_array().key("collateral").millionths_text(row.collateral.0).key("id").order_id(&row.id);
    json.key("salt").uint256(&row.salt).key("timestampMs").number(row.timestamp_ms);
    json.key("signature").hex(&row.signature);
    positions(json, "removed", &row.removed);
}

fn payout(json: &mut Writer<'_>, payout: Payout) {
    json.key("payout").open_array();
    for outcome in [Outcome::Zero, Outcome::One] {
        json.millionths_text(payout.per_share(outcome).into());
    }
    json.close_array();
}

fn event(json: &mut Writer<'_>, event: Option<u32>) {
    if let Some(event) = event {
        json.key("event").number(event.into());
    }
}

fn positions(json: &mut Writer<'_>, name: &'static str, positions: &[Position]) {
    json.key(name).open_array();
    for position in positions {
        json.number(position.0);
    }
    json.close_array();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Fields;
    use crate::domain::{Collateral, TimeMs, WalletNo};
    use crate::journal::Span;

    #[test]
    fn a_frame_is_one_line_of_json() {
        let record = Record::Money(Money {
            time: TimeMs(5),
            wallet: WalletNo(3),
            direction: MoneyDirection::Credit,
            amount: Collateral(1_500_000),
            reference: "line\nbreak".to_owned(),
        });
        let span = Span { start: Position(64), end: Position(192) };
        let mut line = Vec::new();
        write(&Frame { span, epoch: 1, kind: record.kind(), payload: &[] }, &record, &mut line);
        let text = String::from_utf8(line).expect("text");
        assert!(Fields::parse(&text).is_some());
        assert_eq!(
            text,
            r#"{"position":64,"end":192,"epoch":1,"kind":21,"record":"Money","timeMs":5,"wallet":3,"direction":"credit","amount":"1.5","ref":"line\nbreak"}"#
        );
    }
}
