//! Positions of a wallet or of a market, and what a wallet's are worth.

use super::super::super::Reader;
use super::super::super::ask::{ADDRESS_RULE, Asked, Refused};
use super::super::params::{Params, missing};
use super::super::positions::{DIRECTIONS, Narrowed};
use super::paging::{LIMIT, Start, conditions, events, params};
use super::{PLACES, unrealized, write_sum};
use crate::catalog::Direction;
use crate::domain::{MarketNo, Outcome};
use crate::json::{Writer, date};
use crate::wallet::{Atto, Figures, Holding, Lot, rounded};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Decimals of what a wallet is worth.
const WORTH_PLACES: u32 = 4;

/// What is smaller than a tenth of a share is dust, unless the request says what else is.
const DUST: u64 = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// What a wallet holds, also in markets that are resolved.
    Open,
    /// What its market pays for.
    Redeemable,
    /// What its market pays nothing for.
    Lost,
    /// One side of pairs.
    Mergeable,
    /// What a wallet held once.
    Closed,
}

const STATUSES: [(&str, Status); 5] = [
    ("OPEN", Status::Open),
    ("REDEEMABLE", Status::Redeemable),
    ("REDEEMABLE_LOST", Status::Lost),
    ("MERGEABLE", Status::Mergeable),
    ("CLOSED", Status::Closed),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum SortBy {
    Value,
    Price,
    Tokens,
    Unrealized,
    Realized,
    Total,
    Changed,
}

const SORTS: [(&str, SortBy); 7] = [
    ("CURRENT_VALUE", SortBy::Value),
    ("PRICE", SortBy::Price),
    ("TOKENS", SortBy::Tokens),
    ("UNREALIZED_PNL", SortBy::Unrealized),
    ("REALIZED_PNL", SortBy::Realized),
    ("TOTAL_PNL", SortBy::Total),
    ("TIMESTAMP", SortBy::Changed),
];

/// The smallest positions that pass.
#[derive(Clone, Copy)]
enum Smallest {
    /// In millionths of a share.
    Shares(u64),
    /// By their worth as it is shown, in millionths.
    Worth(u64),
}

/// A position that passed the filters, with what it is sorted by.
struct Passed<'a> {
    key: i128,
    holding: &'a Holding,
    outcome: Outcome,
}

impl Passed<'_> {
    /// Where it stands in its list: no two positions stand at one place.
    fn mark(&self) -> [i128; 4] {
        let Holding { market, wallet, .. } = *self.holding;
        [self.key, market.0.into(), wallet.0.into(), i128::from(self.outcome == Outcome::One)]
    }
}

/// Equal keys come in the order of their markets, whatever the direction.
fn order(one: &[i128; 4], other: &[i128; 4], direction: Direction) -> Ordering {
    let by_key = one[0].cmp(&other[0]);
    let by_key = if direction == Direction::Descending { by_key.reverse() } else { by_key };
    by_key.then_with(|| one[1..].cmp(&other[1..]))
}

/// Which positions pass.
struct Passing {
    status: Status,
    narrowed: Narrowed,
    smallest: Smallest,
    /// The seconds between which they last changed.
    changed: [u64; 2],
}

impl Passing {
    fn of(reader: &Reader, params: &Params<'_>, status: Status) -> Result<Self, Refused> {
        #[derive(Clone, Copy)]
        enum By {
            Cash,
            Tokens,
        }
        const BY: [(&str, By); 2] = [("CASH", By::Cash), ("TOKENS", By::Tokens)];
        let amount = params.amount("filter_amount")?;
        let dust = if matches!(status, Status::Open | Status::Redeemable) { DUST } else { 0 };
        let smallest = match params.word("filter_type", &BY)? {
            Some(By::Cash) => Smallest::Worth(amount.unwrap_or(0)),
            Some(By::Tokens) | None => Smallest::Shares(amount.unwrap_or(dust)),
        };
        let end = params.second("end")?.filter(|end| *end > 0);
        Ok(Self {
            status,
            narrowed: Narrowed { markets: reader.markets_of_v2(params)?, title: params.title()? },
            smallest,
            changed: [params.second("start")?.unwrap_or(0), end.unwrap_or(u64::MAX)],
        })
    }
}

/// The figures of a lot at a price in millionths.
fn figures(lot: &Lot, price_millionths: u32) -> Figures {
    if lot.is_open() { lot.open_figures(price_millionths) } else { lot.closed_figures() }
}

impl Reader {
    /// GET /v2/positions: those of a wallet, of a market, or of both.
    pub(super) fn positions_v2(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        // Nothing is archived here.
        const NAMES: [&str; 14] = [
            "user",
            "condition",
            "status",
            "event_id",
            "title",
            "filter_type",
            "filter_amount",
            "include_archived",
            "sort_by",
            "sort_direction",
            "start",
            "end",
            "limit",
            "cursor",
        ];
        let params = params(asked, &NAMES)?;
        let mut start = Start::of(&params, "positions", LIMIT)?;
        let status = start.word(&params, (1, "status"), &STATUSES, Status::Open)?;
        let sort = match status {
            Status::Closed => SortBy::Realized,
            Status::Mergeable => SortBy::Tokens,
            Status::Open | Status::Redeemable | Status::Lost => SortBy::Value,
        };
        let sort = start.word(&params, (2, "sort_by"), &SORTS, sort)?;
        let direction = start.word(&params, (3, "sort_direction"), &DIRECTIONS, Direction::Descending)?;
        params.flag("include_archived")?;
        let passing = Passing::of(self, &params, status)?;
        let behind = start.after::<4>()?;
        // Of a market that has many holders the prices are looked up once.
        let mut last: Option<(MarketNo, [u32; 2])> = None;
        let lots = self.holdings_v2(&params, &passing.narrowed)?.flat_map(|holding| {
            let now = |outcome| self.price_now(self.market(holding.market), outcome);
            let prices = match last {
                Some((market, prices)) if market == holding.market => prices,
                _ => [Outcome::Zero, Outcome::One].map(now),
            };
            last = Some((holding.market, prices));
            [Outcome::Zero, Outcome::One].map(|outcome| (holding, outcome, prices[outcome.index()]))
        });
        let passed = lots.filter_map(|(holding, outcome, price_millionths)| {
            let key = self.key_v2(&passing, sort, holding, outcome, price_millionths)?;
            Some(Passed { key, holding, outcome })
        });
        let listed = passed.filter(|passed| {
            behind.as_ref().is_none_or(|behind| order(&passed.mark(), behind, direction).is_gt())
        });
        let by = |one: &Passed<'_>, other: &Passed<'_>| order(&one.mark(), &other.mark(), direction);
        let (page, more) = start.cut(listed, by);
        let mark = |passed: &Passed<'_>| passed.mark().to_vec();
        let next = page.last().filter(|_| more).map(mark);
        start.write(json, &page, next, mark, |json, passed| self.write_position_v2(json, passed));
        Ok(())
    }

    /// GET /v2/value: what everything that a wallet holds is worth now.
    pub(super) fn value_v2(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let params = params(asked, &["user", "condition"])?;
        let user = params.user()?;
        let narrowed = Narrowed { markets: self.markets_of_v2(&params)?, title: None };
        let worth = |holding: &Holding| {
            let sides = [Outcome::Zero, Outcome::One];
            let row = self.market(holding.market);
            let side = |outcome| Atto::worth(holding.lot(outcome).shares, self.price_now(row, outcome));
            sides.map(|outcome| side(outcome).signed()).iter().sum::<i128>()
        };
        let wallet = self.wallet_at(&user);
        let holdings = wallet.into_iter().flat_map(|wallet| self.holdings_of(wallet, &narrowed));
        let value = holdings.map(worth).sum();
        json.open_object().key("data").open_object().key("proxy_wallet").address(&user);
        json.key("value").decimal(rounded(value, WORTH_PLACES), WORTH_PLACES);
        json.close_object().close_object();
        Ok(())
    }

    /// [`Reader::markets_of`] as the second version names them, and no more than it takes.
    pub(super) fn markets_of_v2(&self, params: &Params<'_>) -> Result<Option<BTreeSet<MarketNo>>, Refused> {
        self.either_markets((conditions(params)?, events(params)?), ["condition", "event_id"])
    }

    /// The holdings that a request is about.
    fn holdings_v2<'a>(
        &'a self,
        params: &Params<'_>,
        narrowed: &'a Narrowed,
    ) -> Result<Box<dyn Iterator<Item = &'a Holding> + 'a>, Refused> {
        if let Some(user) = params.user_filter()? {
            let wallet = self.wallet_at(&user).into_iter();
            return Ok(Box::new(wallet.flat_map(|wallet| self.holdings_of(wallet, narrowed))));
        }
        match conditions(params)?.as_deref() {
            Some([_]) => {
                let titled = move |market: &&MarketNo| self.is_titled(**market, narrowed);
                let markets = narrowed.markets.iter().flatten().filter(titled);
                Ok(Box::new(markets.flat_map(|&market| self.model().holdings().of_market(market))))
            }
            Some(several) => {
                let got = format!("{} conditions", several.len());
                Err(missing("user", ADDRESS_RULE).about("user", &got, "a wallet, or a single condition"))
            }
            None => Err(missing("user", ADDRESS_RULE)),
        }
    }

    /// What a position is sorted by, at a price in millionths; none if it does not pass.
    fn key_v2(
        &self,
        passing: &Passing,
        sort: SortBy,
        holding: &Holding,
        outcome: Outcome,
        price: u32,
    ) -> Option<i128> {
        let (lot, row) = (holding.lot(outcome), self.market(holding.market));
        let pays = row.payout.map(|payout| payout.per_share(outcome));
        let passes = match passing.status {
            Status::Open => lot.is_open(),
            Status::Redeemable => lot.is_open() && pays.is_some_and(|pays| pays > 0),
            Status::Lost => lot.is_open() && pays == Some(0),
            Status::Mergeable => self.is_mergeable(holding),
            Status::Closed => lot.is_closed(),
        };
        let [start, end] = passing.changed;
        if !passes || !(start..=end).contains(&lot.changed.seconds()) {
            return None;
        }
        let figures = figures(lot, price);
        let large = match passing.smallest {
            Smallest::Shares(smallest) => smallest <= figures.size.0,
            Smallest::Worth(smallest) => i128::from(smallest) <= rounded(figures.current, PLACES),
        };
        large.then(|| match sort {
            SortBy::Value => figures.current,
            SortBy::Price => price.into(),
            SortBy::Tokens => figures.size.0.into(),
            SortBy::Unrealized => unrealized(lot, &figures),
            SortBy::Realized => figures.realized,
            SortBy::Total => figures.realized + unrealized(lot, &figures),
            SortBy::Changed => lot.changed.0.into(),
        })
    }

    fn write_position_v2(&self, json: &mut Writer<'_>, passed: &Passed<'_>) {
        let &Passed { holding, outcome, .. } = passed;
        let (lot, row) = (holding.lot(outcome), self.market(holding.market));
        let resolved = row.payout.is_some();
        let price = self.price_now(row, outcome);
        json.open_object().key("proxy_wallet").address(self.address_of(holding.wallet));
        json.key("token_id").token(&row.tokens[outcome.index()]);
        json.key("condition_id").condition(&row.condition);
        write_figures(json, lot, price);
        json.key("status").text(match (lot.is_open(), resolved) {
            (false, _) => "CLOSED",
            (true, false) => "OPEN",
            (true, true) => "REDEEMABLE",
        });
        json.key("redeemable").boolean(lot.is_open() && resolved);
        json.key("mergeable").boolean(self.is_mergeable(holding));
        json.key("negative_risk").boolean(row.neg_risk);
        json.key("archived").boolean(false).key("verified").boolean(false);
        self.write_titles(json, Some(row));
        json.key("event_id").text(self.index.event(row).map_or("", |event| &event.id));
        json.key("outcome").text(&row.labels[outcome.index()]);
        json.key("outcome_index").number(outcome.index() as u64);
        json.key("opposite_outcome").text(&row.labels[outcome.other().index()]);
        json.key("opposite_token_id").token(&row.tokens[outcome.other().index()]);
        json.key("end_date").quoted(|out| date::push_date(out, self.end_of(row.market)));
        json.key("last_event_at").number(lot.changed.seconds());
        // Nobody notes here when a lot was first bought.
        json.key("first_entry_at").number(0);
        json.key("name").text("").key("profile_image").text("").close_object();
    }
}

/// The numbers of a position at a price in millionths.
fn write_figures(json: &mut Writer<'_>, lot: &Lot, price_millionths: u32) {
    let figures = &figures(lot, price_millionths);
    let unrealized = unrealized(lot, figures);
    let shown = |atto| rounded(atto, PLACES);
    json.key("current_size").millionths_number(lot.shares.0);
    json.key("avg_price").decimal(shown(figures.average), PLACES);
    json.key("entry_cost_usdc").decimal(shown(figures.initial), PLACES).key("entry_fees_usdc").number(0);
    json.key("total_cost_usdc").decimal(shown(figures.initial), PLACES);
    json.key("current_price").millionths_number(price_millionths.into());
    json.key("current_value").decimal(shown(figures.current), PLACES);
    write_sum(json.key("total_size"), figures.bought);
    json.key("realized_pnl").decimal(shown(figures.realized), PLACES);
    json.key("unrealized_pnl").decimal(shown(unrealized), PLACES);
    json.key("total_pnl").decimal(shown(figures.realized + unrealized), PLACES);
    json.key("percent_pnl").decimal(if lot.is_open() { figures.percent_pnl(PLACES) } else { 0 }, PLACES);
    json.key("percent_realized_pnl").decimal(figures.percent_realized(PLACES), PLACES);
}
