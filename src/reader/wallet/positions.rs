//! Open and closed positions, and what the open ones are worth.
//!
//! Rows that a list's sort calls equal come in the order in which their markets were listed, the
//! first outcome first, whatever the direction.

use super::super::Reader;
use super::super::ask::{Asked, Refused};
use super::params::{Bounds, Params};
use super::rows::Made;
use super::{EndDateFormat, write_list};
use crate::catalog::{Direction, page_of};
use crate::domain::amount::ONE;
use crate::domain::{Address, MarketNo, Outcome, Shares, TimeMs, WalletNo};
use crate::json::Writer;
use crate::wallet::{Figures, Holding, Lot, rounded};
use std::cmp::Ordering;
use std::collections::BTreeSet;

const OPEN_LIMIT: Bounds = Bounds { min: 0, default: 100, max: 500 };
const OPEN_OFFSET: Bounds = Bounds { min: 0, default: 0, max: 10_000 };
const CLOSED_LIMIT: Bounds = Bounds { min: 0, default: 10, max: 50 };
const CLOSED_OFFSET: Bounds = Bounds { min: 0, default: 0, max: 100_000 };

/// Decimals of an open position's rounded numbers.
const OPEN_PLACES: u32 = 4;

/// Decimals of a closed position's rounded numbers, and of a wallet's value.
const CLOSED_PLACES: u32 = 6;

/// Places by which percentages are compared.
const SORTED_PLACES: u32 = 6;

#[derive(Clone, Copy, PartialEq, Eq)]
enum SortBy {
    Current,
    Initial,
    Tokens,
    CashPnl,
    PercentPnl,
    Title,
    Resolving,
    Price,
    AvgPrice,
    Changed,
}

const OPEN_SORTS: [(&str, SortBy); 9] = [
    ("CURRENT", SortBy::Current),
    ("INITIAL", SortBy::Initial),
    ("TOKENS", SortBy::Tokens),
    ("CASHPNL", SortBy::CashPnl),
    ("PERCENTPNL", SortBy::PercentPnl),
    ("TITLE", SortBy::Title),
    ("RESOLVING", SortBy::Resolving),
    ("PRICE", SortBy::Price),
    ("AVGPRICE", SortBy::AvgPrice),
];

const CLOSED_SORTS: [(&str, SortBy); 5] = [
    ("REALIZEDPNL", SortBy::CashPnl),
    ("TITLE", SortBy::Title),
    ("PRICE", SortBy::Price),
    ("AVGPRICE", SortBy::AvgPrice),
    ("TIMESTAMP", SortBy::Changed),
];

pub(super) const DIRECTIONS: [(&str, Direction); 2] =
    [("ASC", Direction::Ascending), ("DESC", Direction::Descending)];

/// A position that passed the filters: only what sorting has to move.
struct Passed<'a> {
    key: Key,
    holding: &'a Holding,
    outcome: Outcome,
}

/// The sort key of a position. All keys of one list are of one kind.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Number(i128),
    Time(TimeMs),
    Title(String),
}

/// The positions that a list is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Open,
    Closed,
}

impl Of {
    /// How many shares such a position has.
    const fn size(self, lot: &Lot) -> Shares {
        match self {
            Self::Open => lot.shares,
            Self::Closed => lot.closed_shares,
        }
    }

    /// The figures of such a position's lot at a price in millionths.
    fn figures(self, lot: &Lot, price_millionths: u32) -> Figures {
        match self {
            Self::Open => lot.open_figures(price_millionths),
            Self::Closed => lot.closed_figures(),
        }
    }

    /// Writes the numbers of such a position.
    fn write_figures(self, json: &mut Writer<'_>, lot: &Lot, price_millionths: u32) {
        let figures = &self.figures(lot, price_millionths);
        let places = match self {
            Self::Open => OPEN_PLACES,
            Self::Closed => CLOSED_PLACES,
        };
        let shown = |atto| rounded(atto, places);
        json.key("size").millionths_number(figures.size.0);
        json.key("avgPrice").decimal(shown(figures.average), places);
        json.key("initialValue").decimal(shown(figures.initial), places);
        json.key("currentValue").decimal(shown(figures.current), places);
        json.key("cashPnl").decimal(shown(figures.cash_pnl), places);
        json.key("percentPnl").decimal(figures.percent_pnl(places), places);
        json.key("totalBought").decimal(i128::try_from(figures.bought).unwrap_or(i128::MAX), 6);
        json.key("realizedPnl").decimal(shown(figures.realized), places);
        json.key("percentRealizedPnl").decimal(figures.percent_realized(places), places);
        json.key("curPrice").millionths_number(price_millionths.into());
    }
}

/// What positions are narrowed to.
pub(super) struct Narrowed {
    pub(super) markets: Option<BTreeSet<MarketNo>>,
    /// What the market's question has in it, in lower case.
    pub(super) title: Option<String>,
}

impl Reader {
    /// GET /positions: what a wallet holds, including losing shares that were not redeemed.
    pub(super) fn positions(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        // Nothing is archived here.
        const NAMES: [&str; 12] = [
            "archived",
            "user",
            "market",
            "eventId",
            "sizeThreshold",
            "redeemable",
            "mergeable",
            "limit",
            "offset",
            "sortBy",
            "sortDirection",
            "title",
        ];
        let params = Params::new(asked, &NAMES)?;
        let user = params.user()?;
        let narrowed = self.narrowed(&params)?;
        let smallest = params.amount("sizeThreshold")?.unwrap_or(ONE);
        let redeemable = params.flag("redeemable")?.unwrap_or(false);
        let mergeable = params.flag("mergeable")?.unwrap_or(false);
        let (limit, offset) = (params.limit(OPEN_LIMIT)?, params.offset(OPEN_OFFSET)?);
        let sort = params.word("sortBy", &OPEN_SORTS)?.unwrap_or(SortBy::Tokens);
        let direction = params.word("sortDirection", &DIRECTIONS)?.unwrap_or(Direction::Descending);

        let passes = |holding: &Holding, lot: &Lot| {
            lot.is_open()
                && smallest <= lot.shares.0
                && (!mergeable || self.is_mergeable(holding))
                && (!redeemable || self.is_resolved(holding))
        };
        let passed = self
            .passed(user, &narrowed, passes, |holding, outcome| self.key(Of::Open, sort, holding, outcome));
        let page = page_of(passed, offset, limit, |one, other| order(one, other, direction));
        write_list(json, page, |json, passed| self.write_position(json, Of::Open, &user, &passed));
        Ok(())
    }

    /// GET /closed-positions: what a wallet held once and sold, merged or redeemed to the last share.
    pub(super) fn closed_positions(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        // The venue's own site sends a threshold here, which has no effect.
        const NAMES: [&str; 9] = [
            "user",
            "market",
            "eventId",
            "title",
            "limit",
            "offset",
            "sortBy",
            "sortDirection",
            "sizeThreshold",
        ];
        let params = Params::new(asked, &NAMES)?;
        let user = params.user()?;
        let narrowed = self.narrowed(&params)?;
        let (limit, offset) = (params.limit(CLOSED_LIMIT)?, params.offset(CLOSED_OFFSET)?);
        let sort = params.word("sortBy", &CLOSED_SORTS)?.unwrap_or(SortBy::CashPnl);
        let direction = params.word("sortDirection", &DIRECTIONS)?.unwrap_or(Direction::Descending);
        let passes = |_: &Holding, lot: &Lot| lot.is_closed();
        let passed = self
            .passed(user, &narrowed, passes, |holding, outcome| self.key(Of::Closed, sort, holding, outcome));
        let page = page_of(passed, offset, limit, |one, other| order(one, other, direction));
        write_list(json, page, |json, passed| self.write_position(json, Of::Closed, &user, &passed));
        Ok(())
    }

    /// GET /value: what everything that a wallet holds is worth now.
    pub(super) fn wallet_value(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let params = Params::new(asked, &["user", "market"])?;
        let user = params.user()?;
        let narrowed = self.narrowed(&params)?;
        let passes = |_: &Holding, lot: &Lot| lot.is_open();
        let by_size = |holding: &Holding, outcome| self.key(Of::Open, SortBy::Tokens, holding, outcome);
        let passed = self.passed(user, &narrowed, passes, by_size);
        let worth = |passed: Passed<'_>| {
            let price_millionths = self.price_now(self.market(passed.holding.market), passed.outcome);
            Of::Open.figures(passed.holding.lot(passed.outcome), price_millionths).current
        };
        let value = passed.map(worth).sum();
        json.open_array().open_object().key("user").address(&user);
        json.key("value").decimal(rounded(value, CLOSED_PLACES), CLOSED_PLACES);
        json.close_object().close_array();
        Ok(())
    }

    /// One position, copied from its last answer if nothing in it has changed.
    fn write_position(&self, json: &mut Writer<'_>, of: Of, user: &Address, passed: &Passed<'_>) {
        let &Passed { holding, outcome, .. } = passed;
        let row = self.market(holding.market);
        let price_millionths = self.price_now(row, outcome);
        let (resolved, neg_risk) = (row.payout.is_some(), row.neg_risk);
        let made = Made { holding: *holding, outcome, price_millionths, resolved, neg_risk };
        self.wallets.rows.write(json, &made, |json| {
            json.open_object().key("proxyWallet").address(user).key("asset");
            self.write_asset(json, row, outcome);
            json.key("conditionId").condition(&row.condition);
            of.write_figures(json, holding.lot(outcome), price_millionths);
            let is_open = of == Of::Open;
            json.key("redeemable").boolean(is_open && resolved);
            json.key("mergeable").boolean(is_open && self.is_mergeable(holding));
            self.write_texts_of(json, row);
            json.key("outcome").text(&row.labels[outcome.index()]);
            json.key("outcomeIndex").number(outcome.index() as u64);
            json.key("oppositeOutcome").text(&row.labels[outcome.other().index()]).key("oppositeAsset");
            self.write_asset(json, row, outcome.other());
            json.key("timestamp").number(holding.lot(outcome).changed.seconds());
            if is_open {
                self.write_end(json, row.market, self.settings.wallet.end_date);
                json.key("negativeRisk").boolean(neg_risk);
            } else {
                self.write_end(json, row.market, EndDateFormat::DateTime);
            }
            json.close_object();
        });
    }

    /// Whether the market pays its shares out.
    fn is_resolved(&self, holding: &Holding) -> bool {
        self.market(holding.market).payout.is_some()
    }

    /// Whether the wallet can merge pairs of shares; those of a resolved market are only redeemed.
    pub(super) fn is_mergeable(&self, holding: &Holding) -> bool {
        holding.is_mergeable() && !self.is_resolved(holding)
    }

    fn narrowed(&self, params: &Params<'_>) -> Result<Narrowed, Refused> {
        Ok(Narrowed { markets: self.markets_of(params)?, title: params.title()? })
    }

    /// The positions of a wallet that pass, each with its key.
    fn passed<'a>(
        &'a self,
        user: Address,
        narrowed: &Narrowed,
        passes: impl Fn(&Holding, &Lot) -> bool,
        key: impl Fn(&'a Holding, Outcome) -> Key,
    ) -> impl Iterator<Item = Passed<'a>> {
        let holdings =
            self.wallet_at(&user).into_iter().flat_map(|wallet| self.holdings_of(wallet, narrowed));
        let lots =
            holdings.flat_map(|holding| [Outcome::Zero, Outcome::One].map(|outcome| (holding, outcome)));
        let passed = lots.filter(move |(holding, outcome)| passes(holding, holding.lot(*outcome)));
        passed.map(move |(holding, outcome)| Passed { key: key(holding, outcome), holding, outcome })
    }

    /// The sort key of a position.
    fn key(&self, of: Of, sort: SortBy, holding: &Holding, outcome: Outcome) -> Key {
        let lot = holding.lot(outcome);
        let price = || self.price_now(self.market(holding.market), outcome);
        let figures = || of.figures(lot, price());
        match sort {
            SortBy::Current => Key::Number(figures().current),
            SortBy::Initial => Key::Number(figures().initial),
            SortBy::Tokens => Key::Number(of.size(lot).0.into()),
            SortBy::CashPnl => Key::Number(figures().cash_pnl),
            SortBy::PercentPnl => Key::Number(figures().percent_pnl(SORTED_PLACES)),
            SortBy::Title => Key::Title(self.title(holding.market).to_lowercase()),
            SortBy::Resolving => Key::Time(self.end_of(holding.market)),
            SortBy::Price => Key::Number(price().into()),
            SortBy::AvgPrice => Key::Number(figures().average),
            SortBy::Changed => Key::Time(lot.changed),
        }
    }

    /// The holdings of a wallet that pass.
    pub(super) fn holdings_of<'a, 'n>(
        &'a self,
        wallet: WalletNo,
        narrowed: &'n Narrowed,
    ) -> impl Iterator<Item = &'a Holding> + use<'a, 'n> {
        let holdings = self.model().holdings();
        let (all, named) = match &narrowed.markets {
            None => (Some(holdings.of_wallet(wallet)), None),
            Some(markets) => (None, Some(markets.iter().filter_map(move |at| holdings.of(wallet, *at)))),
        };
        let titled = |holding: &&Holding| self.is_titled(holding.market, narrowed);
        all.into_iter().flatten().chain(named.into_iter().flatten()).filter(titled)
    }

    /// Whether the question of a market has in it what is asked for.
    pub(super) fn is_titled(&self, market: MarketNo, narrowed: &Narrowed) -> bool {
        let title = || self.title(market).to_lowercase();
        narrowed.title.as_ref().is_none_or(|wanted| title().contains(wanted.as_str()))
    }

    fn title(&self, market: MarketNo) -> &str {
        &self.index.facts(market).question
    }
}

/// Equal keys come in the order of their markets, whatever the direction.
fn order(one: &Passed<'_>, other: &Passed<'_>, direction: Direction) -> Ordering {
    let by_key = one.key.cmp(&other.key);
    let place = |passed: &Passed<'_>| (passed.holding.market, passed.outcome);
    let by_key = if direction == Direction::Descending { by_key.reverse() } else { by_key };
    by_key.then_with(|| place(one).cmp(&place(other)))
}
