//! How wallets stand: markets, volume, profit, and the ranking.

use super::super::Reader;
use super::super::ask::{Asked, Refused};
use super::markets::write_amount;
use super::params::{Bounds, Params, missing};
use crate::catalog::page_of;
use crate::domain::{Address, Outcome, WalletNo};
use crate::json::Writer;
use crate::wallet::{Period, Totals, rounded};

const LIMIT: Bounds = Bounds { min: 1, default: 25, max: 50 };
const OFFSET: Bounds = Bounds { min: 0, default: 0, max: 1_000 };

/// Decimals of volume and profit.
const PLACES: u32 = 6;

pub(super) const PERIODS: [(&str, Period); 4] =
    [("DAY", Period::Day), ("WEEK", Period::Week), ("MONTH", Period::Month), ("ALL", Period::All)];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OrderBy {
    Profit,
    Volume,
}

const ORDERS: [(&str, OrderBy); 2] = [("PNL", OrderBy::Profit), ("VOL", OrderBy::Volume)];

/// A wallet on a board.
type Listed<'a> = (WalletNo, &'a Totals);

/// Markets have no categories here, so only the one that includes them all can be asked for.
const CATEGORIES: [(&str, Option<()>); 10] = [
    ("OVERALL", Some(())),
    ("POLITICS", None),
    ("SPORTS", None),
    ("CRYPTO", None),
    ("FINANCE", None),
    ("CULTURE", None),
    ("MENTIONS", None),
    ("WEATHER", None),
    ("ECONOMICS", None),
    ("TECH", None),
];

impl Reader {
    /// GET /traded: in how many markets a wallet ever bought or sold.
    pub(super) fn wallet_traded(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let user = Params::new(asked, &["user"])?.user()?;
        let wallet = self.wallet_at(&user);
        let markets = wallet.map_or(0, |wallet| self.model().standings().markets(wallet));
        json.open_object().key("user").address(&user);
        json.key("traded").number(markets.into()).close_object();
        Ok(())
    }

    /// GET /volume: what a wallet ever traded, bought and sold alike, without fees.
    pub(super) fn wallet_volume(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let user = Params::new(asked, &["user"])?.user()?;
        let wallet = self.wallet_at(&user);
        let volume = wallet.map_or(0, |wallet| self.model().standings().all(wallet).volume);
        json.open_object().key("user").address(&user).key("volume");
        write_amount(json, volume);
        json.close_object();
        Ok(())
    }

    /// GET /other: a wallet's shares of the outcome that stands for everything that an event does
    /// not name, in events that have such an outcome.
    pub(super) fn other_size(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let params = Params::new(asked, &["slug", "user"])?;
        let user = params.user()?;
        let slug = params.text("slug")?.ok_or(missing("slug", "an event's slug"))?;
        let size = self.wallet_at(&user).map_or(0, |wallet| self.other_shares(wallet, &slug));
        json.open_array().open_object().key("slug").text(&slug).key("user").address(&user);
        json.key("size").millionths_number(size).close_object().close_array();
        Ok(())
    }

    fn other_shares(&self, wallet: WalletNo, slug: &str) -> u64 {
        let is_other = |market| {
            let event = self.index.event(self.market(market));
            self.index.facts(market).neg_risk_other && event.is_some_and(|event| event.slug == slug)
        };
        let holdings = self.model().holdings().of_wallet(wallet);
        holdings.filter(|row| is_other(row.market)).map(|row| row.lot(Outcome::Zero).shares.0).sum()
    }

    /// GET /v1/leaderboard: wallets by the profit that they booked, or by the volume that they
    /// traded, in the last hours of a period. A wallet with neither is not on it.
    pub(super) fn leaderboard(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        const NAMES: [&str; 7] = ["category", "timePeriod", "orderBy", "limit", "offset", "user", "userName"];
        let params = Params::new(asked, &NAMES)?;
        category(&params)?;
        let period = params.word("timePeriod", &PERIODS)?.unwrap_or(Period::Day);
        let order = params.word("orderBy", &ORDERS)?.unwrap_or(OrderBy::Profit);
        let (limit, offset) = (params.limit(LIMIT)?, params.offset(OFFSET)?);
        let user = params.user_filter()?;
        let nobody = params.text("userName")?.is_some();

        let board = self.model().standings().board(period);
        let listed = (0..).map(WalletNo).zip(board).filter(|(_, totals)| **totals != Totals::default());
        let higher = |(one, of_one): &Listed<'_>, (other, of_other): &Listed<'_>| {
            let by_profit = of_other.realized.cmp(&of_one.realized);
            let by_volume = of_other.volume.cmp(&of_one.volume);
            let first = if order == OrderBy::Profit { by_profit } else { by_volume };
            let by_address = || self.address_of(*one).cmp(self.address_of(*other));
            first.then(by_profit).then(by_volume).then_with(by_address)
        };
        json.open_array();
        match user {
            _ if nobody => {}
            None => {
                let page = page_of(listed, offset, limit, higher);
                for (rank, (wallet, totals)) in (offset + 1..).zip(page) {
                    write_entry(json, rank, self.address_of(wallet), totals);
                }
            }
            Some(user) => {
                let own = self.wallet_at(&user).and_then(|wallet| listed.clone().find(|row| row.0 == wallet));
                if let Some((wallet, totals)) = own {
                    let above = listed.filter(|row| higher(row, &(wallet, totals)).is_lt()).count();
                    write_entry(json, above + 1, self.address_of(wallet), totals);
                }
            }
        }
        json.close_array();
        Ok(())
    }
}

/// Refuses the categories that other venues have.
pub(super) fn category(params: &Params<'_>) -> Result<(), Refused> {
    match params.word("category", &CATEGORIES)? {
        Some(None) => {
            let got = params.text("category")?.unwrap_or_default();
            Err(Refused::wallet("not_implemented", "category").about("category", &got, "OVERALL"))
        }
        None | Some(Some(())) => Ok(()),
    }
}

fn write_entry(json: &mut Writer<'_>, rank: usize, address: &Address, totals: &Totals) {
    json.open_object().key("rank").number_text(rank as u64).key("proxyWallet").address(address);
    json.key("userName").text("");
    json.key("vol").decimal(i128::try_from(totals.volume).unwrap_or(i128::MAX), PLACES);
    json.key("pnl").decimal(rounded(totals.realized, PLACES), PLACES);
    json.key("profileImage").text("").key("xUsername").text("");
    json.key("verifiedBadge").boolean(false).close_object();
}
