//! Trades: one for each taker order, with all its makers, the same for everybody who took part.
//!
//! `type` and `trader_side` say which part the caller had; the rest is in the taker's terms, and
//! each maker's entry in the maker's own. Filters on market and token look at the caller's own
//! legs, filters on addresses at everybody's.

use std::borrow::Cow;

use super::ask::{Asked, Narrowed, Refused};
use super::index::{Leg, Trade};
use super::page::Looked;
use super::{Caller, Reader, Token, page};
use crate::domain::{Address, Dialect, FeeSchedule, MarketNo, Position, TimeMs, TradeId};
use crate::json::Writer;
use crate::ledger::OrderRow;

const BAD_FILTER: Refused = Refused::new(400, "invalid_trade_params", "Invalid trade params payload");

/// What a listing of trades is narrowed to.
struct Filter {
    market: Narrowed<MarketNo>,
    token: Narrowed<Token>,
    taker: Option<Address>,
    maker: Option<Address>,
    /// A taker or a maker.
    party: Option<Address>,
    before: Option<TimeMs>,
    after: Option<TimeMs>,
}

impl Filter {
    /// True if it narrows by time only: then no order has to be read.
    fn names_nothing(&self) -> bool {
        self.market == Narrowed::No
            && self.token == Narrowed::No
            && self.taker.is_none()
            && self.maker.is_none()
            && self.party.is_none()
    }
}

impl Reader {
    /// GET /data/trades: the trades in which the caller took part, newest first.
    pub(super) fn trades(
        &self,
        caller: Caller,
        asked: &Asked<'_>,
        json: &mut Writer<'_>,
    ) -> Result<(), Refused> {
        let filter = self.filter(asked)?;
        let id = asked.uuid_filter(BAD_FILTER)?.map(TradeId::from_uuid);
        let start = page::start(asked, BAD_FILTER)?;
        let (Some(start), Some(own)) = (start, self.index.principal(caller.principal)) else {
            page::empty(json, page::ROWS_OF_ACCOUNT, page::END);
            return Ok(());
        };
        let own = &own.trades[..];
        let candidates = match id {
            None => own,
            Some(id) => self.only(own, id),
        };
        let end = match start.after_key {
            None => candidates.len(),
            Some(key) => self.index.trades_before(candidates, Position(key)),
        };
        let rows = candidates[..end].iter().rev().map(|&index| {
            let trade = self.index.trade(index);
            let mut work = page::WORK_OF_ROW;
            let passes = self.passes(&trade, caller, &filter, &mut work)?;
            Ok(Looked { key: trade.position.0, work, row: passes.then_some(trade) })
        });
        page::write(json, (page::ROWS_OF_ACCOUNT, page::END), start, rows, |json, trade| {
            self.write_trade(json, &trade, caller)
        })
    }

    fn filter(&self, asked: &Asked<'_>) -> Result<Filter, Refused> {
        Ok(Filter {
            market: Narrowed::by(asked.condition_filter(BAD_FILTER)?, |id| self.index.condition(id)),
            token: Narrowed::by(asked.token_filter("asset_id", BAD_FILTER)?, |id| self.index.token(id)),
            taker: asked.address_filter("taker", BAD_FILTER)?.map(Address),
            maker: asked.address_filter("maker", BAD_FILTER)?.map(Address),
            party: asked.address_filter("maker_address", BAD_FILTER)?.map(Address),
            before: asked.time("before", BAD_FILTER)?,
            after: asked.end_of_time("after", BAD_FILTER)?,
        })
    }

    /// The one of `own` that `id` names, if any.
    fn only<'a>(&self, own: &'a [u32], id: Option<TradeId>) -> &'a [u32] {
        let index = id.and_then(|id| self.index.trade_at(id.position()));
        match index.and_then(|index| own.binary_search(&index).ok()) {
            Some(at) => &own[at..=at],
            None => &[],
        }
    }

    /// Whether a trade passes; `work` grows by what it takes to find out.
    fn passes(
        &self,
        trade: &Trade<'_>,
        caller: Caller,
        filter: &Filter,
        work: &mut u64,
    ) -> Result<bool, Refused> {
        let in_time = filter.before.is_none_or(|before| trade.time < before)
            && filter.after.is_none_or(|after| trade.time > after);
        if !in_time || filter.names_nothing() {
            return Ok(in_time);
        }
        let taker = self.look_at(trade.position, work)?;
        if !filter.market.passes(&taker.market) {
            return Ok(false);
        }
        let of = |row: &OrderRow, address: &Address| self.address_of(row.wallet) == address;
        if filter.taker.is_some_and(|address| !of(&taker, &address)) {
            return Ok(false);
        }
        if let Some(address) = filter.maker
            && !self.any_maker(trade, work, |row| of(row, &address))?
        {
            return Ok(false);
        }
        if let Some(address) = filter.party
            && !of(&taker, &address)
            && !self.any_maker(trade, work, |row| of(row, &address))?
        {
            return Ok(false);
        }
        let own = |row: &OrderRow| {
            let token = Token { market: row.market, outcome: row.outcome };
            row.principal == caller.principal && filter.token.passes(&token)
        };
        Ok(filter.token == Narrowed::No || own(&taker) || self.any_maker(trade, work, own)?)
    }

    /// An order; `work` grows by what it takes to get it.
    pub(super) fn look_at(&self, order: Position, work: &mut u64) -> Result<Cow<'_, OrderRow>, Refused> {
        let row = self.order_at(order)?;
        *work += match &row {
            Cow::Borrowed(_) => page::WORK_OF_ORDER,
            Cow::Owned(row) => page::WORK_OF_ARCHIVED + work_of_length(row),
        };
        Ok(row)
    }

    fn any_maker(
        &self,
        trade: &Trade<'_>,
        work: &mut u64,
        holds: impl Fn(&OrderRow) -> bool,
    ) -> Result<bool, Refused> {
        for leg in trade.legs {
            if holds(&*self.look_at(leg.maker, work)?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes a trade; returns what work it was that its orders are long. That they may be archived is not counted, as
    /// a page has no more than a hundred trades, and is the same page before and after that.
    fn write_trade(&self, json: &mut Writer<'_>, trade: &Trade<'_>, caller: Caller) -> Result<u64, Refused> {
        let taker = self.order_at(trade.position)?;
        let mut work = work_of_length(&taker);
        let market = self.market(taker.market);
        let fee = base_fee(market.fee.rate);
        let role = if taker.principal == caller.principal { "TAKER" } else { "MAKER" };
        json.open_object();
        json.key("id").uuid(TradeId::new(trade.position).uuid());
        json.key("taker_order_id").order_id(&taker.id);
        json.key("market").condition(&market.condition);
        json.key("asset_id").token(&market.tokens[taker.outcome.index()]);
        json.key("side").text(taker.fields.side.text());
        json.key("size").millionths_text(trade.shares.0);
        json.key("fee_rate_bps").number_text(fee);
        json.key("price").millionths_text(trade.price_millionths);
        json.key("status").text(match caller.dialect {
            Dialect::Service => "MATCHED",
            Dialect::Kuest | Dialect::Poly => "CONFIRMED",
        });
        for name in ["match_time", "last_update"] {
            json.key(name);
            match caller.dialect {
                Dialect::Service => json.instant(trade.time),
                Dialect::Kuest | Dialect::Poly => json.number_text(trade.time.seconds()),
            };
        }
        json.key("outcome").text(self.label(taker.market, taker.outcome));
        json.key("maker_address").address(self.address_of(taker.wallet));
        json.key("owner").uuid(taker.owner);
        json.key("transaction_hash").hex(self.settlement_hash(trade.position).as_bytes());
        json.key("bucket_index").number(0);
        json.key("maker_orders").open_array();
        let maker_fee = maker_base_fee(&market.fee);
        for leg in trade.legs {
            let maker = self.order_at(leg.maker)?;
            work += work_of_length(&maker);
            self.write_leg(json, leg, &maker, maker_fee);
        }
        json.close_array().key("type").text(role).key("trader_side").text(role).close_object();
        Ok(work)
    }

    /// The part of `maker` in a trade.
    pub(super) fn write_leg(&self, json: &mut Writer<'_>, leg: &Leg, maker: &OrderRow, fee: u64) {
        let token = &self.market(maker.market).tokens[maker.outcome.index()];
        json.open_object().key("order_id").order_id(&maker.id);
        json.key("maker_address").address(self.address_of(maker.wallet));
        json.key("owner").uuid(maker.owner);
        json.key("matched_amount").millionths_text(leg.shares.0);
        json.key("fee_rate_bps").number_text(fee);
        json.key("price").price_text(maker.price);
        json.key("asset_id").token(token);
        json.key("outcome").text(self.label(maker.market, maker.outcome));
        json.key("side").text(maker.fields.side.text()).close_object();
    }
}

/// The work of reading a row from an archive, beyond that of a short one.
fn work_of_length(row: &OrderRow) -> u64 {
    row.trades.len() as u64 / page::TRADES_OF_WORK
}

/// What makers pay, as [`base_fee`] of the rate.
pub(super) fn maker_base_fee(fee: &FeeSchedule) -> u64 {
    if fee.taker_only { 0 } else { base_fee(fee.rate) }
}

/// A fee rate in basis points, rounded down from millionths.
pub(super) fn base_fee(rate: u32) -> u64 {
    u64::from(rate) / 100
}
