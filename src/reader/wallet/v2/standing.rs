//! How wallets stand: the ranking, what one traded, and its profit over time.
//!
//! What a wallet did is known by the hour for [`HOURS_KEPT`] hours, and before that in sum. Profit is what was booked.

use super::super::super::Reader;
use super::super::super::ask::{Asked, Refused};
use super::super::super::bars::HOUR_S;
use super::super::params::{Params, invalid};
use super::super::standing::{OrderBy, PERIODS, category};
use super::paging::{LIMIT, Start, params};
use super::{PLACES, write_sum};
use crate::domain::{Address, WalletNo};
use crate::json::Writer;
use crate::wallet::{HOURS_KEPT, Period, Totals, rounded};
use std::cmp::Ordering;

const HOURS_OF_DAY: u64 = 24;

const SORTS: [(&str, OrderBy); 2] = [("PNL", OrderBy::Profit), ("VOLUME", OrderBy::Volume)];

/// A wallet on a board.
#[derive(Clone, Copy)]
struct Listed<'a> {
    wallet: WalletNo,
    address: &'a Address,
    /// What the board is sorted by, and what decides a tie; the address decides the rest.
    keys: [i128; 2],
    totals: &'a Totals,
}

fn keys(sort: OrderBy, totals: &Totals) -> [i128; 2] {
    let volume = i128::try_from(totals.shares).unwrap_or(i128::MAX);
    match sort {
        OrderBy::Profit => [totals.realized, volume],
        OrderBy::Volume => [volume, totals.realized],
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
    hours: u64,
}

const fn span(name: &'static str, hours: u64) -> (&'static str, Span) {
    (name, Span { name, hours })
}

/// How far a list of points reaches back: 30 days at most, for which hours are known.
const INTERVALS: [(&str, Span); 7] = [
    span("max", 30 * HOURS_OF_DAY),
    span("all", 30 * HOURS_OF_DAY),
    span("1m", 30 * HOURS_OF_DAY),
    span("1w", 7 * HOURS_OF_DAY),
    DAY,
    span("12h", 12),
    span("6h", 6),
];

/// How far its points are apart.
const FIDELITIES: [(&str, Span); 5] = [DAY, span("18h", 18), span("12h", 12), span("3h", 3), HOUR];

const DAY: (&str, Span) = span("1d", HOURS_OF_DAY);
const HOUR: (&str, Span) = span("1h", 1);

impl Reader {
    /// GET /v2/leaderboard: wallets by the profit that they booked, or by the shares that they traded, in the last hours
    /// of a period; or where one of them stands. A wallet with neither is not on it.
    pub(super) fn leaderboard_v2(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let params = params(asked, &["time_period", "category", "sort_by", "user", "limit", "cursor"])?;
        category(&params)?;
        let mut start = Start::of(&params, "leaderboard", LIMIT)?;
        let period = start.word(&params, (1, "time_period"), &PERIODS, Period::Day)?;
        let sort = start.word(&params, (2, "sort_by"), &SORTS, OrderBy::Profit)?;
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
        let (shown, more) = start.cut(on_board().filter(behind), higher);
        // Those with equal keys share a rank. Nobody is above the first page.
        let first = shown.first().filter(|_| after.is_some());
        let above = first.map_or([0; 2], |first| {
            on_board().fold([0; 2], |[higher_keys, before], row| {
                let is_before = higher(&row, first).is_lt();
                [higher_keys + usize::from(first.keys[0] < row.keys[0]), before + usize::from(is_before)]
            })
        });
        let mut ranks: Vec<usize> = Vec::with_capacity(shown.len());
        for (place, row) in shown.iter().enumerate() {
            ranks.push(match place.checked_sub(1) {
                None => above[0] + 1,
                Some(last) if shown[last].keys[0] == row.keys[0] => ranks[last],
                Some(_) => above[1] + place + 1,
            });
        }
        let ranked: Vec<(usize, Listed<'_>)> = ranks.into_iter().zip(shown).collect();
        let mark = |(_, row): &(usize, Listed<'_>)| vec![row.keys[0], row.keys[1], row.wallet.0.into()];
        let next = ranked.last().filter(|_| more).map(mark);
        start.write(json, &ranked, next, mark, |json, (rank, row)| {
            json.open_object().key("rank").number(*rank as u64);
            write_entry(json, row.address, row.totals);
            json.close_object();
        });
        Ok(())
    }

    /// Every wallet that is on a board.
    fn listed_v2(&self, period: Period, sort: OrderBy) -> impl Iterator<Item = Listed<'_>> {
        let board = (0..).map(WalletNo).zip(self.model().standings().board(period));
        let listed = board.filter(|(_, totals)| **totals != Totals::default());
        listed.map(move |(wallet, totals)| Listed {
            wallet,
            address: self.address_of(wallet),
            keys: keys(sort, totals),
            totals,
        })
    }

    /// Where one wallet stands, if it is on the board.
    fn write_rank(&self, json: &mut Writer<'_>, user: &Address, period: Period) {
        let board = self.model().standings().board(period);
        let own = self.wallet_at(user).and_then(|wallet| board.get(wallet.index()));
        json.open_object().key("data");
        json.or_null(own.filter(|totals| **totals != Totals::default()), |json, own| {
            json.open_object();
            write_entry(json, user, own);
            for (name, sort) in [("rank_pnl", OrderBy::Profit), ("rank_volume", OrderBy::Volume)] {
                let key = keys(sort, own)[0];
                let above = self.listed_v2(period, sort).filter(|other| key < other.keys[0]).count();
                json.key(name).number(above as u64 + 1);
            }
            json.close_object()
        });
        json.close_object();
    }

    /// GET /v2/user-stats: in how many markets a wallet traded, and the most that it gained by one outcome.
    pub(super) fn user_stats_v2(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let user = params(asked, &["user"])?.user()?;
        json.open_object().key("data");
        json.or_null(self.wallet_at(&user), |json, wallet| {
            let lots = self.model().holdings().of_wallet(wallet).flat_map(|row| row.lots);
            let biggest = lots.map(|lot| lot.realized).max().unwrap_or(0).max(0);
            let standings = self.model().standings();
            json.open_object().key("proxy_wallet").address(&user);
            json.key("trades").number(standings.markets(wallet).into());
            json.key("biggest_win").decimal(rounded(biggest, PLACES), PLACES);
            json.key("views").number(0).key("all_time_pnl");
            write_point(json, asked.now().seconds(), &standings.all(wallet));
            json.close_object()
        });
        json.close_object();
        Ok(())
    }

    /// GET /v2/user-volume: what a wallet traded on whole days of UTC, bought and sold alike, without fees.
    pub(super) fn user_volume_v2(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let params = params(asked, &["user", "start", "end"])?;
        let user = params.user()?;
        let (start, end) = (day(&params, "start")?, day(&params, "end")?);
        let totals = match self.wallet_at(&user) {
            None => Totals::default(),
            Some(wallet) => {
                let known_from = (self.hour_now(asked) + 1).saturating_sub(HOURS_KEPT);
                let until = |day: &Day, hour: u64| self.traded_until(wallet, day, hour, known_from);
                let all = self.model().standings().all(wallet);
                let before = start.as_ref().map_or(Ok(Totals::default()), |day| until(day, day.first))?;
                let in_all = end.as_ref().map_or(Ok(all), |day| until(day, day.first + HOURS_OF_DAY))?;
                let in_order = end.is_none_or(|end| start.is_none_or(|start| start.first <= end.first));
                if in_order { in_all - before } else { Totals::default() }
            }
        };
        json.open_object().key("data").open_object();
        write_traded(json, &totals);
        json.close_object().close_object();
        Ok(())
    }

    /// What a wallet traded until the beginning of an `hour`, if that is known: the hour is `known_from` or later, or
    /// not after the wallet's first act.
    fn traded_until(
        &self,
        wallet: WalletNo,
        day: &Day,
        hour: u64,
        known_from: u64,
    ) -> Result<Totals, Refused> {
        let first = self.model().activity().of_wallet(wallet).next();
        if first.is_none_or(|row| hour <= row.time.seconds() / HOUR_S) {
            return Ok(Totals::default());
        }
        if hour < known_from {
            return Err(invalid(
                day.field,
                &day.sent.to_string(),
                "0, a second within 30 days, or one not after the first act".into(),
            ));
        }
        let standings = self.model().standings();
        let after = standings.hours_of(wallet).take_while(|(of, _)| hour <= *of);
        Ok(after.fold(standings.all(wallet), |sum, (_, totals)| sum - totals))
    }

    /// GET /v2/user-pnl: what a wallet had gained and traded by some seconds, oldest first; the last one is now.
    pub(super) fn user_pnl_v2(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let params = params(asked, &["user", "interval", "fidelity"])?;
        let user = params.user()?;
        let interval = params.word("interval", &INTERVALS)?.unwrap_or(DAY.1);
        let fidelity = params.word("fidelity", &FIDELITIES)?.unwrap_or(HOUR.1);
        json.open_object().key("data").open_object().key("proxy_wallet").address(&user);
        json.key("interval").text(interval.name).key("fidelity").text(fidelity.name);
        json.key("source_fidelity").text(HOUR.0).key("points").open_array();
        if let Some(wallet) = self.wallet_at(&user) {
            let standings = self.model().standings();
            let mut hours: Vec<(u64, Totals)> = standings.hours_of(wallet).collect();
            let mut sum = hours.iter().fold(standings.all(wallet), |sum, (_, totals)| sum - *totals);
            let now_s = asked.now().seconds();
            let first = (now_s / HOUR_S + 1).saturating_sub(interval.hours);
            // Points are at whole multiples of their distance, but for the last one, which is now.
            let mut end = (first + 1).next_multiple_of(fidelity.hours);
            loop {
                let is_last = now_s <= end * HOUR_S;
                while let Some((_, totals)) = hours.pop_if(|(hour, _)| is_last || *hour < end) {
                    sum += totals;
                }
                write_point(json, now_s.min(end * HOUR_S), &sum);
                if is_last {
                    break;
                }
                end += fidelity.hours;
            }
        }
        json.close_array().close_object().close_object();
        Ok(())
    }

    /// The hour that it is, or that of the last act while the log is ahead of a clock that was set back.
    fn hour_now(&self, asked: &Asked<'_>) -> u64 {
        self.model().standings().newest().max(asked.now().seconds() / HOUR_S)
    }
}

/// A day that a parameter names.
struct Day {
    field: &'static str,
    /// The second that was sent.
    sent: u64,
    /// Its first hour.
    first: u64,
}

/// The day of a parameter, if it names one; 0 names none.
fn day(params: &Params<'_>, field: &'static str) -> Result<Option<Day>, Refused> {
    let sent = params.second(field)?.filter(|second| *second > 0);
    Ok(sent.map(|sent| Day { field, sent, first: sent / HOUR_S / HOURS_OF_DAY * HOURS_OF_DAY }))
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
