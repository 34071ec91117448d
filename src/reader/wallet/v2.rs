//! The second version of the data API, under `/v2`: what the first version tells, in other words.
//!
//! - An answer is `{"data":…}`; a list in pages has `"pagination":{"limit","offset","has_more","next_cursor"}` beside
//!   it (`paging`). A wallet that is unknown has empty lists, zeros, or `"data":null`.
//! - Names in a query may be in camel case or have underscores, and some have a second one (`paging`).
//! - Amounts are numbers, sizes and volumes are shares, and names that end in `_usdc` are collateral. Times are whole
//!   seconds. A token is always named by its id, whatever [`super::AssetFormat`] says.
//! - Costs have fees in them, as in the first version, so `entry_fees_usdc` is 0.
//!
//! Rows and names are those of Polymarket's `data-api.polymarket.com/v2/openapi.json` (version 0.1.0).
//!
//! | file | what it knows |
//! |---|---|
//! | `paging` | parameters that many share, cursors, and what stands around the rows |
//! | `positions` | `/v2/positions`, `/v2/value` |
//! | `feed` | `/v2/trades`, `/v2/activity` |
//! | `prices` | `/v2/prices-history` |
//! | `markets` | `/v2/holders`, `/v2/oi`, `/v2/live-volume`, `/v2/tokens`, `/v2/resolutions` |
//! | `standing` | `/v2/leaderboard`, `/v2/user-stats`, `/v2/user-volume`, `/v2/user-pnl` |

mod feed;
mod markets;
mod paging;
mod positions;
mod prices;
mod standing;

use super::super::Reader;
use super::super::ask::{Asked, Refused, no_route};
use crate::http::Endpoint;
use crate::json::Writer;
use crate::ledger::MarketRow;
use crate::wallet::{Figures, Lot};
use paging::{LIMIT, Start, params};

/// Decimals of amounts, and of percentages.
const PLACES: u32 = 6;

impl Reader {
    /// The routes of the second version.
    pub(super) fn write_v2(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        match asked.endpoint() {
            Endpoint::PositionsV2 => self.positions_v2(asked, json),
            Endpoint::ValueV2 => self.value_v2(asked, json),
            Endpoint::TradesV2 => self.trades_v2(asked, json),
            Endpoint::ActivityV2 => self.activity_v2(asked, json),
            Endpoint::PricesHistoryV2 => self.prices_history_v2(asked, json),
            Endpoint::HoldersV2 => self.holders_v2(asked, json),
            Endpoint::OpenInterestV2 => self.open_interest_v2(asked, json),
            Endpoint::LiveVolumeV2 => self.live_volume_v2(asked, json),
            Endpoint::TokensV2 => self.tokens_v2(asked, json),
            Endpoint::ResolutionsV2 => self.resolutions_v2(asked, json),
            Endpoint::LeaderboardV2 => self.leaderboard_v2(asked, json),
            Endpoint::UserStatsV2 => self.user_stats_v2(asked, json),
            Endpoint::UserVolumeV2 => self.user_volume_v2(asked, json),
            Endpoint::UserPnlV2 => self.user_pnl_v2(asked, json),
            Endpoint::CombosV2 => no_combos(asked, json),
            Endpoint::BuildersV2 => no_builders(asked, json),
            Endpoint::BuildersVolumeV2 => {
                params(asked, &["interval", "limit"])?;
                json.open_object().key("data").open_array().close_array().close_object();
                Ok(())
            }
            _ => Err(no_route()),
        }
    }

    /// `title`, `slug`, `icon` and `event_slug` of a market; without one they are empty.
    fn write_titles(&self, json: &mut Writer<'_>, row: Option<&MarketRow>) {
        let facts = row.map(|row| self.index.facts(row.market));
        json.key("title").text(facts.map_or("", |facts| &facts.question));
        json.key("slug").text(facts.map_or("", |facts| &facts.slug));
        json.key("icon").text(facts.map_or("", |facts| &facts.icon));
        json.key("event_slug").text(row.map_or("", |row| self.event_slug(row)));
    }
}

/// Combinations of markets, which nobody can trade here: an empty list.
fn no_combos(asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
    const NAMES: [&str; 9] = [
        "user",
        "condition",
        "status",
        "sort_by",
        "sort_direction",
        "updated_after",
        "updated_before",
        "limit",
        "cursor",
    ];
    let params = params(asked, &NAMES)?;
    params.user()?;
    nothing(&Start::of(&params, "combos", LIMIT)?, json);
    Ok(())
}

/// Builders by volume, whose orders nobody counts here: an empty list.
fn no_builders(asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
    let params = params(asked, &["time_period", "limit", "cursor"])?;
    nothing(&Start::of(&params, "builders", LIMIT)?, json);
    Ok(())
}

fn nothing(start: &Start, json: &mut Writer<'_>) {
    start.write(json, &[], None, |(): &()| Vec::new(), |_, ()| {});
}

/// What would be gained by selling what is left of a lot with these figures.
const fn unrealized(lot: &Lot, figures: &Figures) -> i128 {
    if lot.is_open() { figures.current - figures.initial } else { 0 }
}

/// A sum of millionths, as a number.
fn write_sum(json: &mut Writer<'_>, millionths: u128) {
    json.decimal(i128::try_from(millionths).unwrap_or(i128::MAX), PLACES);
}

/// The names and pictures of a wallet, which nobody has here.
fn write_no_profile(json: &mut Writer<'_>) {
    for name in ["name", "pseudonym", "bio", "profile_image", "profile_image_optimized"] {
        json.key(name).text("");
    }
}
