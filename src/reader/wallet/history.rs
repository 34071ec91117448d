//! What wallets did: activity of one wallet, trades of all, and the latest trades of one market.
//!
//! A filter looks at rows one by one, newest first, and at no more than [`ROWS_LOOKED_AT_MAX`]: a list
//! that would need more is refused, and the refusal says how to narrow it. Nearly every list has one:
//! `/trades` looks for trades, and `/activity` passes over the operator's money. Only where that is
//! asked for too, with no `type` and nothing else, a page is cut straight out of the wallet's rows,
//! however many there are.

use super::super::Reader;
use super::super::ask::{Asked, Refused};
use super::super::trades::base_fee;
use super::params::{Bounds, Params};
use super::positions::DIRECTIONS;
use super::{write_list, write_no_profile};
use crate::catalog::{Direction, page_of};
use crate::domain::{MarketNo, Side};
use crate::json::Writer;
use crate::wallet::{Kind, Role, Row, Rows};
use std::collections::{BTreeSet, BinaryHeap};

const ACTIVITY_LIMIT: Bounds = Bounds { min: 0, default: 100, max: 500 };
const TRADES_LIMIT: Bounds = Bounds { min: 0, default: 100, max: 10_000 };
const OFFSET: Bounds = Bounds { min: 0, default: 0, max: 10_000 };

/// Rows that one answer looks at: some milliseconds of work.
const ROWS_LOOKED_AT_MAX: usize = 1_000_000;

/// The same where each row is the newest of many lists.
const ROWS_MERGED_MAX: usize = 100_000;

/// What other venues show as the outcome of a row without one.
pub(super) const NO_OUTCOME: u64 = 999;

/// Trades in one market's live activity, which takes no parameters.
const LIVE_ROWS: usize = 100;

/// How to ask for fewer rows.
const NARROW_ACTIVITY: &str = "a start and an end with fewer rows between them";
const NARROW_TRADES: &str = "a user, one market, or takerOnly=false";

pub(super) const SIDES: [(&str, Side); 2] = [("BUY", Side::Buy), ("SELL", Side::Sell)];

/// Types that other venues have and this exchange does not; asking for them is no mistake, but they
/// match nothing.
const TYPES_ELSEWHERE: [&str; 9] = [
    "REWARD",
    "CONVERSION",
    "YIELD",
    "MAKER_REBATE",
    "TAKER_REBATE",
    // As the Rust SDK writes it.
    "MAKERREBATE",
    "REFERRAL_REWARD",
    "MIGRATION",
    "TIP",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum SortBy {
    Timestamp,
    Tokens,
    Cash,
}

const SORTS: [(&str, SortBy); 3] =
    [("TIMESTAMP", SortBy::Timestamp), ("TOKENS", SortBy::Tokens), ("CASH", SortBy::Cash)];

/// What a list of rows is narrowed to.
#[derive(Default)]
pub(super) struct Filter {
    pub(super) kinds: Option<Vec<Kind>>,
    pub(super) markets: Option<BTreeSet<MarketNo>>,
    pub(super) side: Option<Side>,
    pub(super) role: Option<Role>,
    pub(super) cash_min: u64,
    pub(super) shares_min: u64,
}

impl Filter {
    /// True if every row passes.
    fn is_none(&self) -> bool {
        self.kinds.is_none()
            && self.markets.is_none()
            && self.side.is_none()
            && self.role.is_none()
            && self.cash_min == 0
            && self.shares_min == 0
    }

    pub(super) fn passes(&self, row: &Row) -> bool {
        let trade = row.kind == Kind::Trade;
        self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&row.kind))
            && self.side.is_none_or(|side| trade && row.side == side)
            && self.role.is_none_or(|role| trade && row.role == role)
            && self.cash_min <= row.cash.0
            && self.shares_min <= row.shares.0
            && self
                .markets
                .as_ref()
                .is_none_or(|markets| row.market().is_some_and(|market| markets.contains(&market)))
    }
}

impl Reader {
    /// GET /activity: trades, splits, merges and redeems of one wallet; the operator's money too if asked for.
    pub(super) fn activity(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        const NAMES: [&str; 12] = [
            "user",
            "limit",
            "offset",
            "market",
            "eventId",
            "excludeDepositsWithdrawals",
            "type",
            "side",
            "start",
            "end",
            "sortBy",
            "sortDirection",
        ];
        let params = Params::new(asked, &NAMES)?;
        let user = params.user()?;
        let (limit, offset) = (params.limit(ACTIVITY_LIMIT)?, params.offset(OFFSET)?);
        let filter = Filter {
            kinds: kinds(&params, "excludeDepositsWithdrawals")?,
            markets: self.markets_of(&params)?,
            side: params.word("side", &SIDES)?,
            ..Filter::default()
        };
        let start = params.second("start")?.unwrap_or(0);
        let end = params.second("end")?.unwrap_or(u64::MAX);
        let sort = params.word("sortBy", &SORTS)?.unwrap_or(SortBy::Timestamp);
        let direction = params.word("sortDirection", &DIRECTIONS)?.unwrap_or(Direction::Descending);
        let Some(wallet) = self.wallet_at(&user) else {
            json.open_array().close_array();
            return Ok(());
        };
        let activity = self.model().activity();
        let rows = activity.of_wallet_at(wallet, activity.places(start, end));
        let page = match (sort, direction) {
            (SortBy::Timestamp, Direction::Descending) => {
                listed(rows.rev(), &filter, offset, limit, ROWS_LOOKED_AT_MAX)
            }
            (SortBy::Timestamp, Direction::Ascending) => {
                listed(rows, &filter, offset, limit, ROWS_LOOKED_AT_MAX)
            }
            (sort, direction) => sorted(rows, &filter, (sort, direction), offset, limit),
        };
        let page = page.ok_or_else(|| too_many_rows("start", NARROW_ACTIVITY))?;
        write_list(json, page, |json, row| self.write_row(json, row, Form::Activity));
        Ok(())
    }

    /// GET /trades: what takers did, newest first; makers too if asked for.
    pub(super) fn wallet_trades(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        // Some clients send a token, which has no effect on the venues either.
        const NAMES: [&str; 10] = [
            "asset_id",
            "limit",
            "offset",
            "takerOnly",
            "filterType",
            "filterAmount",
            "market",
            "eventId",
            "user",
            "side",
        ];
        let params = Params::new(asked, &NAMES)?;
        let user = params.user_filter()?;
        let (limit, offset) = (params.limit(TRADES_LIMIT)?, params.offset(OFFSET)?);
        let takers = params.flag("takerOnly")?.unwrap_or(true);
        let (cash_min, shares_min) = smallest(&params)?;
        let filter = Filter {
            kinds: Some(vec![Kind::Trade]),
            markets: self.markets_of(&params)?,
            side: params.word("side", &SIDES)?,
            role: takers.then_some(Role::Taker),
            cash_min,
            shares_min,
        };
        let activity = self.model().activity();
        let page = match (user.map(|user| self.wallet_at(&user)), &filter.markets) {
            (Some(None), _) => Some(Vec::new()),
            (Some(Some(wallet)), _) => {
                listed(activity.of_wallet(wallet).rev(), &filter, offset, limit, ROWS_LOOKED_AT_MAX)
            }
            (None, None) => listed(activity.rows().iter().rev(), &filter, offset, limit, ROWS_LOOKED_AT_MAX),
            (None, Some(markets)) => {
                let most = if markets.len() == 1 { ROWS_LOOKED_AT_MAX } else { ROWS_MERGED_MAX };
                let of = |&market: &MarketNo| activity.trades_of(market);
                listed(merged(markets.iter().map(of)), &filter, offset, limit, most)
            }
        };
        let page = page.ok_or_else(|| too_many_rows("user", NARROW_TRADES))?;
        write_list(json, page, |json, row| self.write_row(json, row, Form::Trade));
        Ok(())
    }

    /// GET /markets/live-activity/{condition}: what takers did in one market, newest first.
    pub(in super::super) fn live_activity(
        &self,
        asked: &Asked<'_>,
        json: &mut Writer<'_>,
    ) -> Result<(), Refused> {
        let market = self.market_of_path(asked)?;
        let trades = self.model().activity().trades_of(market).rev();
        let takers = trades.filter(|row| row.role == Role::Taker).take(LIVE_ROWS);
        write_list(json, takers, |json, row| self.write_live(json, row, market));
        Ok(())
    }

    fn write_live(&self, json: &mut Writer<'_>, row: &Row, market: MarketNo) {
        let (terms, facts) = (self.market(market), self.index.facts(market));
        json.open_object().key("event_type").text("trade").key("market").open_object();
        json.key("condition_id").condition(&terms.condition);
        json.key("asset_id").token(&terms.tokens[row.outcome.index()]);
        json.key("question").text(&facts.question).key("icon").text(&facts.icon);
        json.key("slug").text(&facts.slug).close_object();
        json.key("user").open_object().key("address").address(self.address_of(row.wallet));
        for name in ["username", "profile_picture", "optimized_profile_picture", "pseudonym"] {
            json.key(name).text("");
        }
        json.close_object().key("side").text(row.side.text());
        json.key("size").millionths_text(row.shares.0);
        json.key("fee_rate_bps").number_text(base_fee(terms.fee.rate));
        json.key("price").millionths_text(row.price_millionths.into());
        json.key("outcome").text(&terms.labels[row.outcome.index()]);
        json.key("outcome_index").number(row.outcome.index() as u64);
        json.key("transaction_hash").hex(self.settlement_hash(row.position).as_bytes());
        json.key("timestamp").number_text(row.time.seconds()).close_object();
    }

    fn write_row(&self, json: &mut Writer<'_>, row: &Row, form: Form) {
        let market = row.market().map(|market| self.market(market));
        let trade = market.filter(|_| row.kind == Kind::Trade);
        json.open_object().key("proxyWallet").address(self.address_of(row.wallet));
        json.key("timestamp").number(row.time.seconds()).key("conditionId");
        match market {
            Some(market) => json.condition(&market.condition),
            None => json.text(""),
        };
        if form == Form::Activity {
            json.key("type").text(row.kind.text());
        }
        json.key("size").millionths_number(row.shares.0).key("usdcSize").millionths_number(row.cash.0);
        json.key("transactionHash").hex(self.settlement_hash(row.position).as_bytes());
        json.key("price").millionths_number(row.price_millionths.into()).key("asset");
        match trade {
            Some(market) => self.write_asset(json, market, row.outcome),
            None => drop(json.text("")),
        }
        json.key("side").text(if trade.is_some() { row.side.text() } else { "" });
        json.key("outcomeIndex").number(trade.map_or(NO_OUTCOME, |_| row.outcome.index() as u64));
        match market {
            Some(market) => self.write_texts_of(json, market),
            None => ["title", "slug", "icon", "eventSlug"].into_iter().for_each(|name| {
                json.key(name).text("");
            }),
        }
        json.key("outcome").text(trade.map_or("", |market| &market.labels[row.outcome.index()]));
        write_no_profile(json);
        json.close_object();
    }
}

/// How much of a row is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Activity,
    Trade,
}

/// The kinds of rows that are asked for; none if all are. Without a `type` the operator's money is left out unless
/// `without_money` is false, as on the venues, whose clients know no such kinds.
pub(super) fn kinds(params: &Params<'_>, without_money: &'static str) -> Result<Option<Vec<Kind>>, Refused> {
    let here = Kind::ALL.map(|kind| (kind.text(), Some(kind)));
    let words: Vec<(&str, Option<Kind>)> =
        here.into_iter().chain(TYPES_ELSEWHERE.map(|word| (word, None))).collect();
    let named = params.words("type", &words)?.map(|kinds| kinds.into_iter().flatten().collect());
    let is_shares = |kind: &Kind| !matches!(kind, Kind::Deposit | Kind::Withdrawal);
    let without_money = params.flag(without_money)?.unwrap_or(true);
    Ok(named.or_else(|| without_money.then(|| Kind::ALL.into_iter().filter(is_shares).collect())))
}

/// `filterType` and `filterAmount`, which come together: the smallest cash and the fewest shares.
fn smallest(params: &Params<'_>) -> Result<(u64, u64), Refused> {
    const TYPES: [(&str, SortBy); 2] = [("CASH", SortBy::Cash), ("TOKENS", SortBy::Tokens)];
    match (params.word("filterType", &TYPES)?, params.amount("filterAmount")?) {
        (None, None) => Ok((0, 0)),
        (Some(SortBy::Cash), Some(amount)) => Ok((amount, 0)),
        (Some(_), Some(amount)) => Ok((0, amount)),
        (Some(_), None) => Err(super::params::missing("filterAmount", "a number, together with filterType")),
        (None, Some(_)) => {
            Err(super::params::missing("filterType", "CASH or TOKENS, together with filterAmount"))
        }
    }
}

/// The rows of several lists, each newest first and with positions of its own, newest first.
pub(super) fn merged<'a>(lists: impl Iterator<Item = impl Rows<'a>>) -> impl Iterator<Item = &'a Row> {
    let mut lists: Vec<_> = lists.map(|list| list.rev().peekable()).collect();
    let heads = lists.iter_mut().enumerate();
    let mut newest: BinaryHeap<_> =
        heads.filter_map(|(place, list)| Some((list.peek()?.position, place))).collect();
    std::iter::from_fn(move || {
        let (_, place) = newest.pop()?;
        let row = lists[place].next();
        newest.extend(lists[place].peek().map(|next| (next.position, place)));
        row
    })
}

/// The rows that pass, from `offset`, at most `limit`; none if more than `looked_at_max` would have to be looked at.
fn listed<'a>(
    rows: impl Iterator<Item = &'a Row>,
    filter: &Filter,
    offset: usize,
    limit: usize,
    looked_at_max: usize,
) -> Option<Vec<&'a Row>> {
    if filter.is_none() {
        return Some(rows.skip(offset).take(limit).collect());
    }
    let (mut page, mut to_skip) = (Vec::new(), offset);
    for (looked_at, row) in rows.enumerate() {
        if page.len() == limit {
            break;
        }
        if looked_at == looked_at_max {
            return None;
        }
        if filter.passes(row) {
            if to_skip > 0 {
                to_skip -= 1;
            } else {
                page.push(row);
            }
        }
    }
    Some(page)
}

/// The rows that pass, in another order than that of time, equal ones newest first; none if there
/// are too many to sort.
fn sorted<'a>(
    rows: impl ExactSizeIterator<Item = &'a Row>,
    filter: &Filter,
    (sort, direction): (SortBy, Direction),
    offset: usize,
    limit: usize,
) -> Option<Vec<&'a Row>> {
    if rows.len() > ROWS_LOOKED_AT_MAX {
        return None;
    }
    let key = |row: &Row| if sort == SortBy::Cash { row.cash.0 } else { row.shares.0 };
    let passed = rows.enumerate().filter(|(_, row)| filter.passes(row));
    let keyed = passed.map(|(place, row)| (key(row), place, row));
    let page = page_of(keyed, offset, limit, |one, other| {
        let order = one.0.cmp(&other.0);
        let order = if direction == Direction::Descending { order.reverse() } else { order };
        order.then(other.1.cmp(&one.1))
    });
    Some(page.into_iter().map(|(_, _, row)| row).collect())
}

fn too_many_rows(field: &'static str, remedy: &'static str) -> Refused {
    let refused = Refused::wallet("too_many_rows", "the answer is not among the newest rows");
    refused.about(field, "", remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Collateral, Position, TimeMs, WalletNo};
    use crate::wallet::{Act, Entry, Wallets};

    #[test]
    fn a_filter_and_a_sort_look_at_a_million_rows_and_no_more() {
        const WALLET: WalletNo = WalletNo(0);
        let mut wallets = Wallets::new();
        let mut credits = (0..).map(|row| Entry {
            position: Position(64 * row),
            time: TimeMs(row),
            wallet: WALLET,
            act: Act::Credit(Collateral(row)),
        });
        credits.by_ref().take(ROWS_LOOKED_AT_MAX).for_each(|entry| wallets.follow(&entry));
        let first = Filter { cash_min: 1, ..Filter::default() };
        let nothing = Filter { side: Some(Side::Buy), ..Filter::default() };
        let count = |wallets: &Wallets, filter: &Filter, offset: usize, limit: usize| {
            let rows = wallets.activity().of_wallet(WALLET).rev();
            listed(rows, filter, offset, limit, ROWS_LOOKED_AT_MAX).map(|page| page.len())
        };
        let most = |wallets: &Wallets| {
            let order = (SortBy::Cash, Direction::Descending);
            let page = sorted(wallets.activity().of_wallet(WALLET), &Filter::default(), order, 0, 2);
            page.map(|page| page.iter().map(|row| row.cash.0).collect::<Vec<_>>())
        };
        assert_eq!(count(&wallets, &nothing, 0, 9), Some(0));
        assert_eq!(count(&wallets, &first, ROWS_LOOKED_AT_MAX - 2, 9), Some(1));
        assert_eq!(most(&wallets), Some(vec![999_999, 999_998]));
        wallets.follow(&credits.next().expect("endless"));
        assert_eq!(count(&wallets, &nothing, 0, 9), None);
        assert_eq!(count(&wallets, &first, ROWS_LOOKED_AT_MAX - 2, 2), Some(2), "found before the end");
        assert_eq!(count(&wallets, &first, ROWS_LOOKED_AT_MAX - 2, 3), None);
        assert_eq!(count(&wallets, &Filter::default(), ROWS_LOOKED_AT_MAX, 9), Some(1), "nothing to look at");
        assert_eq!(most(&wallets), None);
    }
}
