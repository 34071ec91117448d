//! How wallets stand: the ranking, what one traded, and its profit over time.
//!
//! What a wallet did is known by the hour for [`HOURS_KEPT`] hours, and before that in sum. Profit is what was booked.

use super::super::super::Reader;
use super::super::super::ask::{ADDRESS_RULE, Asked, Refused};
use super::super::params::{Params, invalid, missing};
use super::super::standing::{best_of, category};
use super::paging::{LIMIT, Start, params};
use crate::domain::{Address, WalletNo};
use crate::json::Writer;
use crate::wallet::{HOURS_KEPT, Period, Totals, rounded};
use std::cmp::Ordering;

/// Decimals of volume and profit.
const PLACES: u32 = 6;

const HOUR_S: u64 = 3_600;
const HOURS_OF_DAY: u64 = 24;

const PERIODS: [(&str, Period); 4] =
    [("day", Period::Day), ("week", Period::Week), ("month", Period::Month), ("all", Period::All)];

#[derive(Clone, Copy, PartialEq, Eq)]
enum SortBy {
    Profit,
    Volume,
}

const SORTS: [(&str, SortBy); 2] = [("PNL", SortBy::Profit), ("VOLUME", SortBy::Volume)];

/// A wallet on a board.
#[derive(Clone, Copy)]
struct Listed<'a> {
    wallet: WalletNo,
    address: &'a Address,
    /// What the board is sorted by, and what decides a tie; the address decides the rest.
    keys: [i128; 2],
    totals: &'a Totals,
}

impl SortBy {
    fn keys(self, totals: &Totals) -> [i128; 2] {
        let volume = i128::try_from(totals.shares).unwrap_or(i128::MAX);
        match self {
            Self::Profit => [totals.realized, volume],
            Self::Volume => [volume, totals.realized],
        }
    }
}

/// The higher one first.
fn higher(one: &Listed<'_>, other: &Listed<'_>) -> Ordering {
    other.keys.cmp(&one.keys).then_with(|| one.address.cmp(other.address))
}

/// Some hours, by their name.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Span {
    name: &'static str,
    /// None is from the first act.
    hours: Option<u64>,
}

const fn span(name: &'static str, hours: Option<u64>) -> (&'static str, Span) {
    (name, Span { name, hours })
}

/// How far a list of points reaches back.
const INTERVALS: [(&str, Span); 7] = [
    span("max", None),
    span("all", None),
    span("1m", Some(30 * HOURS_OF_DAY)),
    span("1w", Some(7 * HOURS_OF_DAY)),
    DAY,
    span("12h", Some(12)),
    span("6h", Some(6)),
];

/// How far its points are apart.
const FIDELITIES: [(&str, Span); 5] =
    [DAY, span("18h", Some(18)), span("12h", Some(12)), span("3h", Some(3)), HOUR];

const DAY: (&str, Span) = span("1d", Some(HOURS_OF_DAY));
const HOUR: (&str, Span) = span("1h", Some(1));

impl Reader {
    /// GET /v2/leaderboard: wallets by the profit that they booked, or by the shares that they traded, in the last hours
    /// of a period; or where one of them stands. A wallet with neither is not on it.
    pub(super) fn leaderboard_v2(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let params = params(asked, &["time_period", "category", "sort_by", "user", "limit", "cursor"])?;
        category(&params)?;
        let mut start = Start::of(&params, "leaderboard", LIMIT)?;
        let period = start.word(&params, (1, "time_period"), &PERIODS, Period::Day)?;
        let sort = start.word(&params, (2, "sort_by"), &SORTS, SortBy::Profit)?;
        if let Some(user) = params.user_filter()? {
            self.write_rank(json, &user, period);
            return Ok(());
        }
        let on_board = || self.listed_v2(period, sort);
        let after = start.after::<3>()?;
        let behind = |row: &Listed<'_>| {
            after.is_none_or(|[first, second, wallet]| {
                let wallet = u32::try_from(wallet).unwrap_or(u32::MAX);
                let address = self.ledger.wallets().get(wallet as usize).map(|row| &row.address);
                let by_keys = [first, second].cmp(&row.keys);
                by_keys.then_with(|| row.address.cmp(address.unwrap_or(&Address::ZERO))).is_gt()
            })
        };
        let page = best_of(on_board().filter(behind), start.limit + 1, higher);
        let shown = &page[..page.len().min(start.limit)];
        // Those with equal keys share a rank.
        let above = |row: &Listed<'_>| on_board().filter(|other| row.keys[0] < other.keys[0]).count();
        let before =
            shown.first().map_or(0, |first| on_board().filter(|row| higher(row, first).is_lt()).count());
        let mut ranks: Vec<usize> = Vec::with_capacity(shown.len());
        for (place, row) in shown.iter().enumerate() {
            ranks.push(match place.checked_sub(1) {
                None => above(row) + 1,
                Some(last) if shown[last].keys[0] == row.keys[0] => ranks[last],
                Some(_) => before + place + 1,
            });
        }
        let ranked: Vec<(usize, Listed<'_>)> = ranks.into_iter().zip(shown.iter().copied()).collect();
        let mark = |(_, row): &(usize, Listed<'_>)| vec![row.keys[0], row.keys[1], row.wallet.0.into()];
        let next = ranked.last().filter(|_| page.len() > start.limit).map(mark);
        start.write(json, &ranked, next, mark, |json, (rank, row)| {
            json.open_object().key("rank").number(*rank as u64);
            write_entry(json, row.address, row.totals);
            json.close_object();
            Ok(())
        })
    }

    /// Every wallet that is on a board.
    fn listed_v2(&self, period: Period, sort: SortBy) -> impl Iterator<Item = Listed<'_>> {
        let board = (0..).map(WalletNo).zip(self.model().standings().board(period));
        let listed = board.filter(|(_, totals)| **totals != Totals::default());
        listed.map(move |(wallet, totals)| Listed {
            wallet,
            address: self.address_of(wallet),
            keys: sort.keys(totals),
            totals,
        })
    }

    /// Where one wallet stands, if it is on the board.
    fn write_rank(&self, json: &mut Writer<'_>, user: &Address, period: Period) {
        let on_board = |sort| self.listed_v2(period, sort);
        let own = |sort| {
            let wallet = self.wallet_at(user)?;
            on_board(sort).find(|row| row.wallet == wallet)
        };
        json.open_object().key("data");
        match own(SortBy::Profit) {
            None => drop(json.null()),
            Some(row) => {
                json.open_object();
                write_entry(json, user, row.totals);
                for (name, sort) in [("rank_pnl", SortBy::Profit), ("rank_volume", SortBy::Volume)] {
                    let key = sort.keys(row.totals)[0];
                    let above = on_board(sort).filter(|other| key < other.keys[0]).count();
                    json.key(name).number(above as u64 + 1);
                }
                json.close_object();
            }
        }
        json.close_object();
    }

    /// GET /v2/user-stats: in how many markets a wallet traded, and the most that it gained by one outcome.
    pub(super) fn user_stats_v2(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let user = params(asked, &["user"])?.user()?;
        json.open_object().key("data");
        match self.wallet_at(&user) {
            None => drop(json.null()),
            Some(wallet) => {
                let lots = self.model().holdings().of_wallet(wallet).flat_map(|row| row.lots);
                let biggest = lots.map(|lot| lot.realized).max().unwrap_or(0).max(0);
                let standings = self.model().standings();
                json.open_object().key("proxy_wallet").address(&user);
                json.key("trades").number(standings.markets(wallet).into());
                json.key("biggest_win").decimal(rounded(biggest, PLACES), PLACES);
                json.key("views").number(0).key("all_time_pnl");
                write_point(json, asked.now().seconds(), &standings.all(wallet));
                json.close_object();
            }
        }
        json.close_object();
        Ok(())
    }

    /// GET /v2/user-volume: what a wallet traded on whole days of UTC, bought and sold alike, without fees.
    pub(super) fn user_volume_v2(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let params = params(asked, &["user", "start", "end"])?;
        let user = params.user()?;
        let now = asked.now().seconds() / HOUR_S;
        let start = day(&params, "start", now)?.unwrap_or(0);
        let end = day(&params, "end", now)?.map_or(u64::MAX, |first| first + HOURS_OF_DAY);
        let totals = self.wallet_at(&user).map_or(Totals::default(), |wallet| {
            let standings = self.model().standings();
            let within = |hour: u64| start <= hour && hour < end;
            let hours = standings.hours_of(wallet);
            if start > 0 {
                return hours
                    .filter(|(hour, _)| within(*hour))
                    .fold(Totals::default(), |sum, (_, totals)| sum + totals);
            }
            // What was before the hours that are kept is only known in sum.
            hours
                .filter(|(hour, _)| !within(*hour))
                .fold(standings.all(wallet), |sum, (_, totals)| sum - totals)
        });
        json.open_object().key("data").open_object();
        write_traded(json, &totals);
        json.close_object().close_object();
        Ok(())
    }

    /// GET /v2/user-pnl: what a wallet had gained and traded by the end of each of some spans of hours, oldest first.
    pub(super) fn user_pnl_v2(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let params = params(asked, &["user", "user_address", "interval", "fidelity"])?;
        let user = params.user_filter()?.or(params.address_filter("user_address")?);
        let user = user.ok_or(missing("user", ADDRESS_RULE))?;
        let interval = params.word("interval", &INTERVALS)?.unwrap_or(DAY.1);
        let fidelity = params.word("fidelity", &FIDELITIES)?.unwrap_or(HOUR.1);
        let width = fidelity.hours.unwrap_or(1);
        json.open_object().key("data").open_object().key("proxy_wallet").address(&user);
        json.key("interval").text(interval.name).key("fidelity").text(fidelity.name);
        json.key("source_fidelity").text(HOUR.0).key("points").open_array();
        if let Some(wallet) = self.wallet_at(&user) {
            let standings = self.model().standings();
            let mut hours: Vec<(u64, Totals)> = standings.hours_of(wallet).collect();
            let now = (asked.now().seconds() / HOUR_S).max(hours.first().map_or(0, |(hour, _)| *hour));
            let oldest = hours.last().map_or(now, |(hour, _)| *hour);
            let first = interval.hours.map_or(oldest, |hours| (now + 1).saturating_sub(hours));
            let first = first.max(now.saturating_sub(HOURS_KEPT));
            let mut sum = hours.iter().fold(standings.all(wallet), |sum, (_, totals)| sum - *totals);
            let mut begin = first - first % width;
            while begin <= now {
                while let Some((_, totals)) = hours.pop_if(|(hour, _)| *hour < begin + width) {
                    sum += totals;
                }
                write_point(json, begin * HOUR_S, &sum);
                begin += width;
            }
        }
        json.close_array().close_object().close_object();
        Ok(())
    }
}

/// The first hour of a day that a parameter names, if it names one; 0 names none.
fn day(params: &Params<'_>, field: &'static str, now: u64) -> Result<Option<u64>, Refused> {
    let Some(second) = params.second(field)?.filter(|second| *second > 0) else {
        return Ok(None);
    };
    let hour = second / HOUR_S;
    let first = hour - hour % HOURS_OF_DAY;
    if first + HOURS_KEPT <= now {
        return Err(invalid(field, &second.to_string(), "0, or a second within 30 days".into()));
    }
    Ok(Some(first))
}

fn write_entry(json: &mut Writer<'_>, address: &Address, totals: &Totals) {
    json.key("user_id").address(address);
    json.key("pnl").decimal(rounded(totals.realized, PLACES), PLACES);
    write_sum(json.key("volume"), totals.shares);
    json.key("user_name").text("").key("profile_image").text("").key("x_username").text("");
    json.key("verified").boolean(false);
}

/// What was gained and traded by some second.
fn write_point(json: &mut Writer<'_>, second: u64, totals: &Totals) {
    let profit = rounded(totals.realized, PLACES);
    json.open_object().key("timestamp").number(second).key("source_block").number(0);
    json.key("realized_market_pnl").decimal(profit, PLACES);
    json.key("realized_lp_pnl").number(0).key("realized_combo_pnl").number(0);
    json.key("realized_pnl").decimal(profit, PLACES);
    write_traded(json, totals);
    json.close_object();
}

fn write_traded(json: &mut Writer<'_>, totals: &Totals) {
    write_sum(json.key("volume"), totals.shares);
    write_sum(json.key("volume_usdc"), totals.volume);
    json.key("trade_count").number(totals.trades);
}

/// A sum of millionths as a number.
fn write_sum(json: &mut Writer<'_>, millionths: u128) {
    json.decimal(i128::try_from(millionths).unwrap_or(i128::MAX), PLACES);
}
