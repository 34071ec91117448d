//! Trades of wallets and markets, and what a wallet did: lists that only grow at one end.
//!
//! A cursor is the place, among all rows, of the last row that was looked at. A filter that passes few rows ends a page
//! early, perhaps without a row, and its cursor leads on.

use super::super::super::Reader;
use super::super::super::ask::{Asked, Refused};
use super::super::history::{Filter, NO_OUTCOME, SIDES, TYPES_ELSEWHERE};
use super::super::params::Params;
use super::super::positions::DIRECTIONS;
use super::paging::{LIMIT, Start, params};
use super::write_no_profile;
use crate::catalog::Direction;
use crate::domain::MarketNo;
use crate::json::Writer;
use crate::wallet::{Kind, Role, Row, Rows};
use std::ops::Range;

/// Rows that one page looks at: about a millisecond of work.
const ROWS_LOOKED_AT_MAX: usize = 100_000;

/// The smallest trades that are listed, unless the request says which, in millionths of a share.
const SMALLEST: u64 = 10_000;

/// Types of the second version that neither this exchange nor the first version has.
const TYPES_NEW: [&str; 3] = ["REFERRAL_REWARD", "MIGRATION", "TIP"];

/// The rows of a page, and the last row that was looked at if there are more.
struct Page<'a> {
    rows: Vec<&'a Row>,
    behind: Option<&'a Row>,
}

/// At most `limit` of the rows that pass.
fn page<'a>(rows: impl Iterator<Item = &'a Row>, filter: &Filter, limit: usize) -> Page<'a> {
    let (mut page, mut last) = (Vec::new(), None);
    for (looked_at, row) in rows.enumerate() {
        let passes = filter.passes(row);
        if looked_at == ROWS_LOOKED_AT_MAX || (passes && page.len() == limit) {
            return Page { rows: page, behind: last };
        }
        if passes {
            page.push(row);
        }
        last = Some(row);
    }
    Page { rows: page, behind: None }
}

/// The rows of several lists, each newest first and with positions of its own, newest first.
fn merged<'a>(lists: impl Iterator<Item = impl Rows<'a>>) -> impl Iterator<Item = &'a Row> {
    let mut lists: Vec<_> = lists.map(|list| list.rev().peekable()).collect();
    std::iter::from_fn(move || {
        let heads = lists.iter_mut().enumerate();
        let heads = heads.filter_map(|(place, list)| Some((list.peek()?.position, place)));
        let (_, newest) = heads.max()?;
        lists[newest].next()
    })
}

impl Reader {
    /// GET /v2/trades: what takers did, newest first; makers too if asked for.
    pub(super) fn trades_v2(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        const NAMES: [&str; 11] = [
            "user",
            "condition",
            "event_id",
            "side",
            "taker_only",
            "filter_type",
            "filter_amount",
            "start",
            "end",
            "limit",
            "cursor",
        ];
        let params = params(asked, &NAMES)?;
        let start = Start::of(&params, "trades", LIMIT)?;
        params.word("filter_type", &[("TOKENS", ())])?;
        let takers = params.flag("taker_only")?.unwrap_or(true);
        let filter = Filter {
            kinds: Some(vec![Kind::Trade]),
            markets: self.markets_of_v2(&params)?,
            side: params.word("side", &SIDES)?,
            role: takers.then_some(Role::Taker),
            shares_min: params.amount("filter_amount")?.unwrap_or(SMALLEST),
            ..Filter::default()
        };
        let activity = self.model().activity();
        let places = self.places(&params, &start, Direction::Descending)?;
        let user = params.user_filter()?;
        let page = match (user.map(|user| self.wallet_at(&user)), &filter.markets) {
            (Some(None), _) => Page { rows: Vec::new(), behind: None },
            (Some(Some(wallet)), _) => {
                page(activity.of_wallet_at(wallet, places).rev(), &filter, start.limit)
            }
            (None, None) => page(activity.rows()[places].iter().rev(), &filter, start.limit),
            (None, Some(markets)) => {
                let of = |&market: &MarketNo| activity.trades_at(market, places.clone());
                page(merged(markets.iter().map(of)), &filter, start.limit)
            }
        };
        self.write_feed(json, &start, &page, |json, row| self.write_trade_v2(json, row))
    }

    /// GET /v2/activity: trades, splits, merges and redeems of one wallet; the operator's money too if asked for.
    pub(super) fn activity_v2(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        const NAMES: [&str; 12] = [
            "user",
            "type",
            "condition",
            "event_id",
            "side",
            "start",
            "end",
            "sort_by",
            "sort_direction",
            "exclude_deposits_withdrawals",
            "limit",
            "cursor",
        ];
        let params = params(asked, &NAMES)?;
        let user = params.user()?;
        let mut start = Start::of(&params, "activity", LIMIT)?;
        params.word("sort_by", &[("TIMESTAMP", ())])?;
        let direction = start.word(&params, (1, "sort_direction"), &DIRECTIONS, Direction::Descending)?;
        let here = Kind::ALL.map(|kind| (kind.text(), Some(kind)));
        let elsewhere = TYPES_ELSEWHERE.iter().chain(&TYPES_NEW).map(|word| (*word, None));
        let types: Vec<(&str, Option<Kind>)> = here.into_iter().chain(elsewhere).collect();
        let named = params.words("type", &types)?.map(|kinds| kinds.into_iter().flatten().collect());
        let is_shares = |kind: &Kind| !matches!(kind, Kind::Deposit | Kind::Withdrawal);
        let without_money = params.flag("exclude_deposits_withdrawals")?.unwrap_or(true);
        let of_shares = without_money.then(|| Kind::ALL.into_iter().filter(is_shares).collect());
        let filter = Filter {
            kinds: named.or(of_shares),
            markets: self.markets_of_v2(&params)?,
            side: params.word("side", &SIDES)?,
            ..Filter::default()
        };
        let places = self.places(&params, &start, direction)?;
        let page = match self.wallet_at(&user) {
            None => Page { rows: Vec::new(), behind: None },
            Some(wallet) => {
                let rows = self.model().activity().of_wallet_at(wallet, places);
                match direction {
                    Direction::Descending => page(rows.rev(), &filter, start.limit),
                    Direction::Ascending => page(rows, &filter, start.limit),
                }
            }
        };
        self.write_feed(json, &start, &page, |json, row| self.write_activity_v2(json, row))
    }

    /// The places of the rows that a page may have: those of its seconds, behind its cursor.
    fn places(
        &self,
        params: &Params<'_>,
        start: &Start,
        direction: Direction,
    ) -> Result<Range<usize>, Refused> {
        let end = params.second("end")?.filter(|end| *end > 0).unwrap_or(u64::MAX);
        let mut places = self.model().activity().places(params.second("start")?.unwrap_or(0), end);
        if let Some([after]) = start.after()? {
            let after = usize::try_from(after).unwrap_or(0);
            match direction {
                Direction::Descending => places.end = places.end.min(after),
                Direction::Ascending => places.start = places.start.max(after.saturating_add(1)),
            }
        }
        // Nothing is between them if the cursor is outside of the seconds.
        places.start = places.start.min(places.end);
        Ok(places)
    }

    fn write_feed(
        &self,
        json: &mut Writer<'_>,
        start: &Start,
        page: &Page<'_>,
        mut write: impl FnMut(&mut Writer<'_>, &Row) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let place = |row: &Row| vec![self.model().activity().place_of(row) as i128];
        let behind = page.behind.map(place);
        start.write(json, &page.rows, behind, |row| place(row), |json, row| write(json, row))
    }

    fn write_trade_v2(&self, json: &mut Writer<'_>, row: &Row) -> Result<(), Refused> {
        let market = self.market(row.market().expect("a trade has a market"));
        json.open_object().key("proxy_wallet").address(self.address_of(row.wallet));
        json.key("side").text(row.side.text());
        json.key("token_id").token(&market.tokens[row.outcome.index()]);
        json.key("condition_id").condition(&market.condition);
        json.key("size").millionths_number(row.shares.0);
        json.key("price").millionths_number(row.price_millionths.into());
        json.key("timestamp").number(row.time.seconds());
        self.write_titles(json, Some(market));
        json.key("outcome").text(&market.labels[row.outcome.index()]);
        json.key("outcome_index").number(row.outcome.index() as u64);
        write_no_profile(json);
        json.key("transaction_hash").hex(self.hash_of(row)?.as_bytes()).close_object();
        Ok(())
    }

    fn write_activity_v2(&self, json: &mut Writer<'_>, row: &Row) -> Result<(), Refused> {
        let market = row.market().map(|market| self.market(market));
        let trade = market.filter(|_| row.kind == Kind::Trade);
        json.open_object().key("proxy_wallet").address(self.address_of(row.wallet));
        json.key("timestamp").number(row.time.seconds()).key("condition_id");
        match market {
            Some(market) => json.condition(&market.condition),
            None => json.text(""),
        };
        json.key("type").text(row.kind.text()).key("size").millionths_number(row.shares.0);
        json.key("usdc_size").millionths_number(row.cash.0);
        json.key("transaction_hash").hex(self.hash_of(row)?.as_bytes());
        json.key("price").millionths_number(row.price_millionths.into()).key("token_id");
        match trade {
            Some(market) => json.token(&market.tokens[row.outcome.index()]),
            None => json.text(""),
        };
        json.key("side").text(if trade.is_some() { row.side.text() } else { "" });
        json.key("outcome_index").number(trade.map_or(NO_OUTCOME, |_| row.outcome.index() as u64));
        self.write_titles(json, market);
        json.key("outcome").text(trade.map_or("", |market| &market.labels[row.outcome.index()]));
        write_no_profile(json);
        json.close_object();
        Ok(())
    }
}
