//! Trades of wallets and markets, and what a wallet did: lists that only grow at one end.
//!
//! A cursor is the place, among all rows, of the last row that was looked at. A filter that passes few rows ends a page
//! early, perhaps without a row; the cursor leads on.

use super::super::super::Reader;
use super::super::super::ask::{Asked, Refused};
use super::super::history::{Filter, Form, NO_OUTCOME, SIDES, kinds, merged};
use super::super::params::Params;
use super::super::positions::DIRECTIONS;
use super::paging::{LIMIT, Start, params};
use super::write_no_profile;
use crate::catalog::Direction;
use crate::domain::MarketNo;
use crate::json::Writer;
use crate::wallet::{Kind, Role, Row};
use std::ops::Range;

/// Rows that one page looks at: about a millisecond of work.
const ROWS_LOOKED_AT_MAX: usize = 100_000;

/// The same where each row is the newest of many lists.
const ROWS_MERGED_MAX: usize = 10_000;

/// The smallest trades that are listed, unless the request says which, in millionths of a share.
const SMALLEST: u64 = 10_000;

/// The rows of a page, and the last row that was looked at if there are more.
struct Page<'a> {
    rows: Vec<&'a Row>,
    behind: Option<&'a Row>,
}

/// At most `limit` of the rows that pass, of as many as may be looked at.
fn page<'a>(
    rows: impl Iterator<Item = &'a Row>,
    filter: &Filter,
    limit: usize,
    looked_at_max: usize,
) -> Page<'a> {
    let (mut page, mut last) = (Vec::new(), None);
    for (looked_at, row) in rows.enumerate() {
        let passes = filter.passes(row);
        if looked_at == looked_at_max || (passes && page.len() == limit) {
            return Page { rows: page, behind: last };
        }
        if passes {
            page.push(row);
        }
        last = Some(row);
    }
    Page { rows: page, behind: None }
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
        let amount = params.amount("filter_amount")?;
        let (cash_min, shares_min) = match params.word("filter_type", &[("CASH", true), ("TOKENS", false)])? {
            Some(true) => (amount.unwrap_or(0), 0),
            Some(false) | None => (0, amount.unwrap_or(SMALLEST)),
        };
        let takers = params.flag("taker_only")?.unwrap_or(true);
        let filter = Filter {
            kinds: Some(vec![Kind::Trade]),
            markets: self.markets_of_v2(&params)?,
            side: params.word("side", &SIDES)?,
            role: takers.then_some(Role::Taker),
            cash_min,
            shares_min,
        };
        let activity = self.model().activity();
        let places = self.places(&params, &start, Direction::Descending)?;
        let user = params.user_filter()?;
        let page = match (user.map(|user| self.wallet_at(&user)), &filter.markets) {
            (Some(None), _) => Page { rows: Vec::new(), behind: None },
            (Some(Some(wallet)), _) => {
                page(activity.of_wallet_at(wallet, places).rev(), &filter, start.limit, ROWS_LOOKED_AT_MAX)
            }
            (None, None) => {
                page(activity.rows()[places].iter().rev(), &filter, start.limit, ROWS_LOOKED_AT_MAX)
            }
            (None, Some(markets)) => {
                let of = |&market: &MarketNo| activity.trades_at(market, places.clone());
                page(merged(markets.iter().map(of)), &filter, start.limit, ROWS_MERGED_MAX)
            }
        };
        self.write_feed(json, &start, &page, Form::Trade);
        Ok(())
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
        let filter = Filter {
            kinds: kinds(&params, "exclude_deposits_withdrawals")?,
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
                    Direction::Descending => page(rows.rev(), &filter, start.limit, ROWS_LOOKED_AT_MAX),
                    Direction::Ascending => page(rows, &filter, start.limit, ROWS_LOOKED_AT_MAX),
                }
            }
        };
        self.write_feed(json, &start, &page, Form::Activity);
        Ok(())
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

    fn write_feed(&self, json: &mut Writer<'_>, start: &Start, page: &Page<'_>, form: Form) {
        let place = |row: &Row| vec![self.model().activity().place_of(row) as i128];
        let behind = page.behind.map(place);
        start.write(
            json,
            &page.rows,
            behind,
            |row| place(row),
            |json, row| self.write_row_v2(json, row, form),
        );
    }

    fn write_row_v2(&self, json: &mut Writer<'_>, row: &Row, form: Form) {
        let market = row.market().map(|market| self.market(market));
        let trade = market.filter(|_| row.kind == Kind::Trade);
        json.open_object().key("proxy_wallet").address(self.address_of(row.wallet));
        json.key("timestamp").number(row.time.seconds()).key("condition_id");
        match market {
            Some(market) => json.condition(&market.condition),
            None => json.text(""),
        };
        json.key("size").millionths_number(row.shares.0);
        if form == Form::Activity {
            json.key("type").text(row.kind.text()).key("usdc_size").millionths_number(row.cash.0);
        }
        json.key("transaction_hash").hex(self.settlement_hash(row.position).as_bytes());
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Collateral, Position, TimeMs, WalletNo};
    use crate::wallet::{Act, Entry, Wallets};

    #[test]
    fn a_page_looks_at_so_many_rows_and_says_where_it_stopped() {
        const WALLET: WalletNo = WalletNo(0);
        let mut wallets = Wallets::new();
        let credits = (0..=ROWS_LOOKED_AT_MAX as u64).map(|row| Entry {
            position: Position(64 * row),
            time: TimeMs(row),
            wallet: WALLET,
            act: Act::Credit(Collateral(row)),
        });
        credits.for_each(|entry| wallets.follow(&entry));
        let activity = wallets.activity();
        let first = Filter { cash_min: ROWS_LOOKED_AT_MAX as u64, ..Filter::default() };
        let shown = |places: Range<usize>, filter: &Filter, limit: usize| {
            let page = page(activity.of_wallet_at(WALLET, places).rev(), filter, limit, ROWS_LOOKED_AT_MAX);
            (page.rows.len(), page.behind.map(|row| activity.place_of(row)))
        };
        assert_eq!(
            shown(0..ROWS_LOOKED_AT_MAX + 1, &first, 9),
            (1, Some(1)),
            "the oldest row is not looked at"
        );
        assert_eq!(shown(0..1, &first, 9), (0, None));
        assert_eq!(shown(0..ROWS_LOOKED_AT_MAX, &first, 9), (0, None), "all of them");
        let all = Filter::default();
        assert_eq!(shown(0..10, &all, 9), (9, Some(1)));
        assert_eq!(shown(0..9, &all, 9), (9, None));
    }
}
