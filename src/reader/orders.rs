//! Orders: one record that every client can read, and the three routes that show it.
//!
//! A record carries each field under the specification's name and under Polymarket's. Only the
//! case of `status` and the form of `owner` differ by the family of the caller's headers.

use super::ask::{Asked, Narrowed, Refused, too_long};
use super::index::PrincipalIndex;
use super::page::Looked;
use super::{ANSWER_BYTES_MAX, Caller, Reader, Token, page, write_owner};
use crate::domain::{Dialect, MarketNo, Outcome, Position, Shares, TradeId};
use crate::journal::layout::RemovalReason;
use crate::json::Writer;
use crate::ledger::{OrderRow, OrderState};

/// Trades that an order's record names: the newest ones. A large maker meets any number of takers,
/// and all of them are in the list of trades.
const ASSOCIATED_TRADES_MAX: usize = 1_000;

const NO_ORDER: Refused = Refused::new(404, "order_unknown", "order not found");

const BAD_FILTER: Refused = Refused::new(400, "invalid_order_params", "invalid order params payload");

impl Reader {
    /// GET /data/order/{id}: the record both wrapped in `order` and flat, because some clients want the
    /// one and some the other.
    pub(super) fn order(
        &self,
        caller: Caller,
        asked: &Asked<'_>,
        json: &mut Writer<'_>,
    ) -> Result<(), Refused> {
        let id = asked.captured_order()?;
        let row = self.ledger.find(&id)?.filter(|row| row.principal == caller.principal).ok_or(NO_ORDER)?;
        json.open_object().key("order").open_object();
        self.write_order(json, &row, caller.dialect);
        json.close_object();
        self.write_order(json, &row, caller.dialect);
        json.close_object();
        Ok(())
    }

    /// GET /data/orders: the caller's live orders, newest first.
    pub(super) fn orders(
        &self,
        caller: Caller,
        asked: &Asked<'_>,
        json: &mut Writer<'_>,
    ) -> Result<(), Refused> {
        let end = match caller.dialect {
            Dialect::Service => "",
            Dialect::Kuest | Dialect::Poly => page::END,
        };
        let order = Narrowed::by(asked.order_filter("id", BAD_FILTER)?, |id| {
            self.ledger.order(id).map(|row| row.position)
        });
        let market = Narrowed::by(asked.condition_filter(BAD_FILTER)?, |id| self.index.condition(id));
        let token = Narrowed::by(asked.token_filter("asset_id", BAD_FILTER)?, |id| self.index.token(id));
        let start = page::start(asked, BAD_FILTER)?;
        let (Some(start), Some(own)) = (start, self.index.principal(caller.principal)) else {
            page::empty(json, page::ROWS_OF_ACCOUNT, end);
            return Ok(());
        };
        let passes = |row: &OrderRow| {
            market.passes(&row.market) && token.passes(&Token { market: row.market, outcome: row.outcome })
        };
        let rows = newest_first(own, start, order).map(|position| {
            let row = self.live_order(position);
            Ok(Looked { key: position.0, work: page::WORK_OF_ORDER, row: passes(row).then_some(row) })
        });
        page::write(json, (page::ROWS_OF_ACCOUNT, end), start, rows, |json, row| {
            json.open_object();
            self.write_order(json, row, caller.dialect);
            json.close_object();
            Ok(0)
        })
    }

    /// An order that has not left.
    pub(super) fn live_order(&self, position: Position) -> &OrderRow {
        self.ledger.order_at(position).expect("live orders are in memory")
    }

    /// POST /data/orders: one entry for each id, in the order of the request.
    pub(super) fn orders_by_id(
        &self,
        caller: Caller,
        asked: &Asked<'_>,
        json: &mut Writer<'_>,
    ) -> Result<(), Refused> {
        json.open_array();
        for id in asked.order_ids() {
            let row = self.ledger.find(id)?.filter(|row| row.principal == caller.principal);
            json.open_object().key("order_id").order_id(id);
            if let Some(row) = row {
                json.key("status").number(200).key("order").open_object();
                self.write_order(json, &row, caller.dialect);
                json.close_object();
            } else {
                json.key("status").number(404).key("error").text("order not found");
            }
            json.close_object();
            if json.bytes() > ANSWER_BYTES_MAX {
                return Err(too_long().about("body", "", "fewer orders"));
            }
        }
        json.close_array();
        Ok(())
    }

    /// Writes the fields of an order into an open object.
    pub(super) fn write_order(&self, json: &mut Writer<'_>, row: &OrderRow, dialect: Dialect) {
        let market = self.market(row.market);
        let trades = |json: &mut Writer<'_>, name| {
            json.key(name).open_array();
            let older = row.trades.len().saturating_sub(ASSOCIATED_TRADES_MAX);
            for &position in &row.trades[older..] {
                json.uuid(TradeId::new(position).uuid());
            }
            json.close_array();
        };
        let token = &market.tokens[row.outcome.index()];
        let address = self.address_of(row.wallet);
        trades(json, "associateTrades");
        trades(json, "associate_trades");
        json.key("id").order_id(&row.id).key("status").text(status(row, dialect));
        json.key("market").condition(&market.condition);
        let size = original_size(row);
        json.key("originalSize").millionths_text(size.0).key("original_size").millionths_text(size.0);
        json.key("outcome").text(self.label(row.market, row.outcome));
        json.key("makerAddress").address(address).key("maker_address").address(address);
        json.key("owner");
        write_owner(json, row.owner, dialect);
        json.key("price").price_text(row.price).key("side").text(row.fields.side.text());
        json.key("sizeMatched").millionths_text(row.filled.0);
        json.key("size_matched").millionths_text(row.filled.0);
        json.key("assetId").token(token).key("asset_id").token(token);
        json.key("expiration").number_text(row.expiration_s);
        json.key("order_type").text(row.order_type.text());
        json.key("createdAt").instant(row.placed);
        json.key("created_at").number(row.placed.seconds());
        json.key("reason").text(reason(row));
    }

    /// The label of an outcome.
    pub(super) fn label(&self, market: MarketNo, outcome: Outcome) -> &str {
        &self.market(market).labels[outcome.index()]
    }
}

/// The shares that an order asked for. A buy for an amount may get more than it was signed for, if they are
/// cheaper than its limit; then it is these.
pub(super) fn original_size(row: &OrderRow) -> Shares {
    row.size().max(row.filled)
}

/// The live orders that a page may begin with, or the one of them that is meant.
fn newest_first(
    own: &PrincipalIndex,
    start: page::Start,
    order: Narrowed<Position>,
) -> impl Iterator<Item = Position> {
    let before = Position(start.after_key.unwrap_or(u64::MAX));
    let places = match order {
        Narrowed::No => Position(0)..before,
        Narrowed::To(only) if only < before => only..Position(only.0 + 1),
        Narrowed::To(_) | Narrowed::ToNothing => before..before,
    };
    own.live.range(places).rev().copied()
}

/// The status word of an order: upper case for `POLY_`, lower case for the others. An order that stopped
/// on arrival with a rest is cancelled, as its owner's stream says.
fn status(row: &OrderRow, dialect: Dialect) -> &'static str {
    let (lower, upper) = match row.state {
        OrderState::Live => ("live", "LIVE"),
        OrderState::Filled if row.stopped.is_none() => ("matched", "MATCHED"),
        OrderState::Removed(RemovalReason::MarketResolved) => {
            ("canceled_market_resolved", "CANCELED_MARKET_RESOLVED")
        }
        OrderState::Filled | OrderState::Removed(_) | OrderState::Killed(_) => ("canceled", "CANCELED"),
    };
    if dialect == Dialect::Poly { upper } else { lower }
}

/// Why an order is no longer live, or stopped with a rest; empty while it rests.
pub(super) fn reason(row: &OrderRow) -> &'static str {
    match (row.state, row.stopped) {
        (OrderState::Removed(reason), _) => reason.text(),
        (OrderState::Killed(reject), _) | (_, Some(reject)) => reject.wire().code,
        // It does not rest, and nothing else stopped it.
        (OrderState::Filled, None) if row.falls_short() => "rest_not_filled",
        (OrderState::Filled, None) => "filled",
        (OrderState::Live, None) => "",
    }
}
