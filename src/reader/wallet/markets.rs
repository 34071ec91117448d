//! Who holds a market, what backs it, and what was traded in it.

use super::super::ask::{Asked, Refused, too_long};
use super::super::{ANSWER_BYTES_MAX, Reader};
use super::params::{Bounds, Params, twice_named};
use super::{write_list, write_no_profile};
use crate::catalog::page_of;
use crate::domain::amount::ONE;
use crate::domain::{Address, Collateral, ConditionId, MarketNo, Outcome, Shares};
use crate::json::{Writer, decimal};
use crate::ledger::MarketRow;
use crate::wallet::Holding;
use std::cmp::Reverse;
use std::collections::BTreeSet;

const HOLDERS_LIMIT: Bounds = Bounds { min: 0, default: 100, max: 500 };

/// What the wallets of several markets hold or held and one answer looks at.
const HOLDINGS_LOOKED_AT_MAX: usize = if cfg!(test) { 6 } else { 200_000 };

/// Decimals of collateral.
const MILLIONTH_PLACES: u32 = 6;

struct Holder<'a> {
    address: &'a Address,
    outcome: Outcome,
    amount: Shares,
}

impl Reader {
    /// GET /holders: the largest holders of each market, largest first, in one group for each
    /// token. The limit counts both groups of a market together.
    pub(super) fn holders(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        // Clients of the venues send the last two, which have no effect there either.
        let params = Params::new(asked, &["market", "limit", "minBalance", "min_balance", "offset"])?;
        let markets = self.known(&params.markets()?);
        let limit = params.limit(HOLDERS_LIMIT)?;
        let smallest = Shares(params.amount("minBalance")?.unwrap_or(ONE));
        self.few_holdings("market", markets.iter().map(|row| row.market))?;
        json.open_array();
        for row in markets {
            let page = page_of(self.holders_of(row.market, smallest), 0, limit, |one, other| {
                other
                    .amount
                    .cmp(&one.amount)
                    .then_with(|| one.address.cmp(other.address))
                    .then_with(|| one.outcome.cmp(&other.outcome))
            });
            for outcome in [Outcome::Zero, Outcome::One] {
                json.open_object().key("token");
                self.write_asset(json, row, outcome);
                json.key("holders").open_array();
                for holder in page.iter().filter(|holder| holder.outcome == outcome) {
                    self.write_holder(json, row, holder);
                }
                json.close_array().close_object();
            }
            if json.bytes() > ANSWER_BYTES_MAX {
                return Err(too_long().about("market", "", "fewer markets, or a lower limit"));
            }
        }
        json.close_array();
        Ok(())
    }

    /// Refuses several markets whose holdings are more than one answer looks at.
    pub(super) fn few_holdings(
        &self,
        field: &'static str,
        markets: impl Iterator<Item = MarketNo>,
    ) -> Result<(), Refused> {
        let holdings = markets.map(|market| self.model().holdings().of_market(market).len());
        let (markets, holdings) = holdings.fold((0, 0), |(count, sum), more| (count + 1, sum + more));
        if 1 < markets && HOLDINGS_LOOKED_AT_MAX < holdings {
            return Err(too_long().about(field, "", "fewer markets: these have many holders"));
        }
        Ok(())
    }

    fn holders_of(&self, market: MarketNo, smallest: Shares) -> impl Iterator<Item = Holder<'_>> {
        let of = |holding: &Holding, outcome| (holding.wallet, outcome, holding.lot(outcome).shares);
        let holdings = self.model().holdings().of_market(market);
        let lots =
            holdings.flat_map(move |holding| [Outcome::Zero, Outcome::One].map(|one| of(holding, one)));
        let large = lots.filter(move |(_, _, amount)| !amount.is_zero() && smallest <= *amount);
        large.map(|(wallet, outcome, amount)| Holder { address: self.address_of(wallet), outcome, amount })
    }

    fn write_holder(&self, json: &mut Writer<'_>, row: &MarketRow, holder: &Holder<'_>) {
        json.open_object().key("proxyWallet").address(holder.address).key("asset");
        self.write_asset(json, row, holder.outcome);
        json.key("amount").millionths_number(holder.amount.0);
        json.key("displayUsernamePublic").boolean(false);
        json.key("outcomeIndex").number(holder.outcome.index() as u64);
        write_no_profile(json);
        json.close_object();
    }

    /// GET /oi: the collateral that backs each market's shares; without a `market`, of every market
    /// that has any, largest first. What rounding leaves behind once the last share of a resolved
    /// market is redeemed backs nothing and is not counted. The list ends early where it would be too long.
    pub(super) fn open_interest(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let params = Params::new(asked, &["market"])?;
        let rows = if let Some(conditions) = params.conditions_filter("market")? {
            self.known(&conditions)
        } else {
            let markets = self.ledger.markets().iter().map(|row| (Reverse(interest(row)), row.market));
            let mut backed: Vec<_> = markets.filter(|(Reverse(interest), _)| !interest.is_zero()).collect();
            backed.sort_unstable();
            backed.into_iter().map(|(_, market)| self.market(market)).collect()
        };
        write_list(json, rows, |json, row| write_value(json, row, interest(row).0.into()));
        Ok(())
    }

    /// GET /live-volume: what was traded in each of these markets, or in those of an event (`id`), and in all of them
    /// together.
    pub(super) fn live_volume(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let params = Params::new(asked, &["market", "id"])?;
        let markets: Vec<&MarketRow> =
            match (params.conditions_filter("market")?, params.events_filter("id")?) {
                (Some(_), Some(_)) => return Err(twice_named(["market", "id"])),
                (None, Some(events)) => {
                    let markets: BTreeSet<MarketNo> = self.markets_of_events(&events).collect();
                    markets.into_iter().map(|market| self.market(market)).collect()
                }
                (_, None) => self.known(&params.markets()?),
            };
        let volume = |row: &MarketRow| self.model().standings().volume(row.market).collateral;
        json.open_array().open_object().key("total");
        write_amount(json, markets.iter().map(|row| volume(row)).sum());
        json.key("markets").open_array();
        for row in markets {
            write_value(json, row, volume(row));
            if ANSWER_BYTES_MAX < json.bytes() {
                return Err(too_long().about("id", "", "fewer events"));
            }
        }
        json.close_array().close_object().close_array();
        Ok(())
    }

    /// The markets of those conditions that are known here.
    fn known(&self, conditions: &[ConditionId]) -> Vec<&MarketRow> {
        conditions
            .iter()
            .filter_map(|id| self.index.condition(id))
            .map(|market| self.market(market))
            .collect()
    }
}

/// The collateral that backs shares which somebody holds.
pub(super) fn interest(row: &MarketRow) -> Collateral {
    if row.shares.iter().all(|shares| shares.is_zero()) { Collateral::ZERO } else { row.backing }
}

/// `{"market":…,"value":"…"}`.
fn write_value(json: &mut Writer<'_>, row: &MarketRow, millionths: u128) {
    json.open_object().key("market").condition(&row.condition).key("value");
    write_amount(json, millionths);
    json.close_object();
}

/// An amount of collateral as a text.
pub(super) fn write_amount(json: &mut Writer<'_>, millionths: u128) {
    let millionths = i128::try_from(millionths).unwrap_or(i128::MAX);
    json.quoted(|out| decimal::push_signed(out, millionths, MILLIONTH_PLACES));
}
