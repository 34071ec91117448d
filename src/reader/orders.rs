//! Orders: one record that every client can read, and the three routes that show it.
//!
//! A record carries each field under the specification's name and under Polymarket's. Only the
//! case of `status` and the form of `owner` differ by the family of the caller's headers.

use super::ask::{Asked, Narrowed, Refused, too_long};
use super::index::PrincipalIndex;
use super::{ANSWER_BYTES_MAX, Caller, Reader, Token, page, write_owner};
use crate::domain::{Dialect, MarketNo, Outcome, Position, TimeMs, TradeId};
use crate::journal::layout::RemovalReason;
use crate::json::{Writer, decimal};
use crate::ledger::{OrderRow, OrderState};

/// Trades that an order's record names: the newest ones. A large maker meets any number of takers,
/// and all of them are in the list of trades.
const ASSOCIATED_TRADES_MAX: usize = 1_000;

const NO_ORDER: Refused = Refused::new(404, "order_unknown", "order not found");

const BAD_FILTER: Refused = Refused::new(400, "invalid_order_params", "invalid order params payload");

impl Reader {
    /// GET /data/order/{id}: the record wrapped, and beside it flat, because some clients want
    /// the one and some the other.
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
        let id = asked.order_filter("id", BAD_FILTER)?;
        let market = Narrowed::by(asked.condition_filter(BAD_FILTER)?, |id| self.index.condition(id));
        let token = Narrowed::by(asked.token_filter("asset_id", BAD_FILTER)?, |id| self.index.token(id));
        let start = page::start(asked, BAD_FILTER)?;
        let (Some(start), Some(own)) = (start, self.index.principal(caller.principal)) else {
            page::empty(json, page::ROWS_OF_ACCOUNT, end);
            return Ok(());
        };
        let passes = |row: &OrderRow| {
            id.is_none_or(|id| row.id == id)
                && market.passes(&row.market)
                && token.passes(&Token { market: row.market, outcome: row.outcome })
        };
        let rows = newest_first(own, start).map(|position| {
            let row = self.ledger.order_at(position).expect("live orders are in memory");
            Ok((position.0, passes(row).then_some(row)))
        });
        page::write(json, (page::ROWS_OF_ACCOUNT, end), start, rows, |json, row| {
            json.open_object();
            self.write_order(json, row, caller.dialect);
            json.close_object();
            Ok(())
        })
    }

    /// POST /data/orders: one answer for each id, in the order asked.
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
        json.key("originalSize").millionths_text(row.size().0);
        json.key("original_size").millionths_text(row.size().0);
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
        json.key("createdAt").quoted(|out| push_rfc3339(out, row.placed));
        json.key("created_at").number(row.placed.seconds());
        json.key("reason").text(reason(row));
    }

    /// The label of an outcome.
    pub(super) fn label(&self, market: MarketNo, outcome: Outcome) -> &str {
        &self.market(market).labels[outcome.index()]
    }
}

fn newest_first(own: &PrincipalIndex, start: page::Start) -> impl Iterator<Item = Position> {
    let before = Position(start.behind.unwrap_or(u64::MAX));
    own.live.range(..before).rev().copied()
}

/// The status word of an order: upper case for `POLY_`, lower case for the others. What stopped on arrival
/// with a rest is cancelled, as its owner's stream says.
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

/// Why an order that does not rest ended with less than it asked for, though nothing stopped it.
pub(super) const REST_NOT_FILLED: &str = "rest_not_filled";

/// Why an order is no longer live, or stopped with a rest; empty if it has nothing to explain.
pub(super) fn reason(row: &OrderRow) -> &'static str {
    match (row.state, row.stopped) {
        (OrderState::Removed(reason), _) => reason.text(),
        (OrderState::Killed(reject), _) | (_, Some(reject)) => reject.wire().code,
        (OrderState::Filled, None) if row.filled < row.size() => REST_NOT_FILLED,
        _ => "",
    }
}

/// Appends an instant as `2026-11-20T12:34:56.789Z`.
pub(super) fn push_rfc3339(out: &mut Vec<u8>, time: TimeMs) {
    const SECONDS_A_DAY: u64 = 86_400;
    let (days, second) = (time.seconds() / SECONDS_A_DAY, time.seconds() % SECONDS_A_DAY);
    let (year, month, day) = civil(days);
    let parts = [
        (year, 4, b'-'),
        (month, 2, b'-'),
        (day, 2, b'T'),
        (second / 3_600, 2, b':'),
        (second / 60 % 60, 2, b':'),
        (second % 60, 2, b'.'),
        (time.0 % 1_000, 3, b'Z'),
    ];
    for (number, digits, mark) in parts {
        let mut power = 10_u64.pow(digits - 1);
        while power > 1 && number < power {
            out.push(b'0');
            power /= 10;
        }
        decimal::push_integer(out, number);
        out.push(mark);
    }
}

/// Year, month and day of the days since 1970-01-01, by counting from 1 March of the year 0, so
/// that the leap day comes last: 400 years are 146,097 days.
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970: u64 = 719_468;
    let days = days + DAYS_TO_1970;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_as_rfc_3339() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_001, "2000-02-29T00:00:00.001Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_703_875_200_000, "2023-12-29T18:40:00.000Z"),
            (4_107_542_400_010, "2100-03-01T00:00:00.010Z"),
        ] {
            let mut out = Vec::new();
            push_rfc3339(&mut out, TimeMs(ms));
            assert_eq!(String::from_utf8(out).as_deref(), Ok(text));
        }
    }
}
