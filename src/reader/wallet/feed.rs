//! Which acts of which wallets a record amounts to.
//!
//! A taker has one act for its whole order, each maker one for each fill. Times are the ledger's,
//! which never run backwards; the times of different shards may differ by some milliseconds.

use super::super::index::Index;
use crate::domain::{Collateral, Outcome, Position, Shares};
use crate::journal::layout::{ActKind, Fill, MoneyDirection, OrderPlaced, PositionAct, Record};
use crate::ledger::Ledger;
use crate::wallet::{Act, Entry, Role, Trade};

/// Calls `entry` with every act of the record at `start`, which `ledger` and `index` have applied.
pub(super) fn entries(
    ledger: &Ledger,
    index: &Index,
    start: Position,
    record: &Record,
    mut entry: impl FnMut(Entry),
) {
    let time = ledger.time();
    let mut tell = |wallet, act| entry(Entry { position: start, time, wallet, act });
    match record {
        Record::OrderPlaced(order) if !order.fills.is_empty() => {
            for fill in &order.fills {
                let maker = ledger.order_at(fill.maker).expect("the ledger applied this fill");
                tell(maker.wallet, Act::Traded(maker_trade(maker.outcome, maker.fields.side, order, fill)));
            }
            tell(order.wallet, Act::Traded(taker_trade(index, start, order)));
        }
        Record::PositionAct(act) => tell(act.wallet, position_act(ledger, act)),
        Record::Money(money) => tell(
            money.wallet,
            match money.direction {
                MoneyDirection::Credit => Act::Credit(money.amount),
                MoneyDirection::Debit => Act::Debit(money.amount),
            },
        ),
        _ => {}
    }
}

fn maker_trade(outcome: Outcome, side: crate::domain::Side, taker: &OrderPlaced, fill: &Fill) -> Trade {
    Trade {
        market: taker.market,
        outcome,
        side,
        role: Role::Maker,
        shares: fill.shares,
        leg: fill.maker_leg,
        fee: fill.maker_fee,
        price_millionths: fill.price.millionths(),
    }
}

fn taker_trade(index: &Index, start: Position, order: &OrderPlaced) -> Trade {
    let trade = index.trade_at(start).expect("the index follows every trade");
    let price = index.trade(trade).price_millionths;
    Trade {
        market: order.market,
        outcome: order.outcome,
        side: order.fields.side,
        role: Role::Taker,
        shares: order.filled_shares(),
        leg: order.filled_collateral(),
        fee: order.fees(),
        price_millionths: u32::try_from(price).expect("a mean price is below one"),
    }
}

fn position_act(ledger: &Ledger, act: &PositionAct) -> Act {
    let (market, Collateral(pairs)) = (act.market, act.collateral);
    match act.act {
        ActKind::Split => Act::Split { market, pairs: Shares(pairs) },
        ActKind::Merge => Act::Merge { market, pairs: Shares(pairs) },
        ActKind::Redeem => {
            let payout = ledger.market(market).and_then(|row| row.payout);
            let payout = payout.expect("the ledger lets nobody redeem before the payout is known");
            Act::Redeem { market, shares: act.shares, payout, paid: act.collateral }
        }
    }
}
