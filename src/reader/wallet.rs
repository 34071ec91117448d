//! What anybody may know of a wallet: its positions, what it did, and who holds a market.
//!
//! The arithmetic is [`crate::wallet`]'s; here records become its acts, parameters are read, and
//! its rows get the names and texts that clients want. Every list is as of the answer: `offset`
//! counts rows as they are then.
//!
//! | file | what it knows |
//! |---|---|
//! | `feed` | which acts a record amounts to |
//! | `params` | parameters, their bounds, and what is wrong with them |
//! | `positions` | `/positions`, `/closed-positions`, `/value` |
//! | `rows` | rows of positions as last written |
//! | `history` | `/activity`, `/trades`, `/markets/live-activity` |
//! | `markets` | `/holders`, `/oi`, `/live-volume` |
//! | `standing` | `/traded`, `/volume`, `/other`, `/v1/leaderboard` |
//! | `v2` | the same in the words of the second version, `/v2/…` |
//!
//! - An unknown wallet has no rows, and that is no error.
//! - A name in the query that the route does not know is refused, because a misspelt filter must
//!   not let everything pass. So is a repeated name, because two readers would choose differently.
//! - Sizes and prices are exact. Other numbers are rounded half away from zero, to four places in
//!   `/positions` and `/v2/value`, and to six elsewhere.
//! - There are no profiles: names and pictures are empty texts.
//! - A list ends at [`LIST_BYTES_MAX`] with at least one row; a client pages by the rows it got.

mod feed;
mod history;
mod markets;
mod params;
mod positions;
mod rows;
mod standing;
mod v2;

use super::Reader;
use super::ask::{Asked, Refused};
use super::index::Index;
use crate::catalog::Column;
use crate::domain::{Address, ConditionId, MarketNo, Outcome, Position, Shares, TimeMs, WalletNo};
use crate::http::Endpoint;
use crate::journal::layout::Record;
use crate::json::{Writer, date, name};
use crate::ledger::{Ledger, MarketRow};
use crate::memory::wire::Damage;
use crate::wallet::{Holding, Wallets};
use params::{Params, twice_named};
use rows::RowTable;
use std::collections::{BTreeSet, HashMap};

/// Bytes of rows in one list.
const LIST_BYTES_MAX: usize = 1 << 20;

/// How an outcome's token is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AssetFormat {
    /// `<condition id>:<outcome index>`.
    #[default]
    Condition,
    /// The token's id in decimal.
    Token,
}

/// How a market's end is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndDateFormat {
    /// A date and time everywhere.
    #[default]
    DateTime,
    /// A plain date in open positions, as Polymarket has it and its Rust client wants it.
    Polymarket,
}

/// What the operator decides about wallet data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalletSettings {
    /// How tokens are named.
    pub asset: AssetFormat,
    /// How ends are written.
    pub end_date: EndDateFormat,
}

/// The wallets' read model, and who has which address.
#[derive(Debug, Default)]
pub(super) struct WalletView {
    wallets: Wallets,
    by_address: HashMap<Address, WalletNo>,
    rows: RowTable,
}

impl WalletView {
    /// What happened in all wallets, to be filled from a snapshot.
    pub(super) fn kept_mut(&mut self) -> &mut Wallets {
        &mut self.wallets
    }

    /// Makes the leaderboard's periods end with the hour of `now`.
    pub(super) fn turn(&mut self, now: TimeMs) {
        self.wallets.turn(now);
    }

    /// Rebuilds what follows from the kept part and the ledger's rows, and checks that both know the same shares.
    pub(super) fn complete(&mut self, ledger: &Ledger) -> Result<(), Damage> {
        self.wallets.complete(ledger.wallets().len(), ledger.markets().len())?;
        let held = |row: &Holding| row.lots.map(|lot| lot.shares);
        let rows = self.wallets.holdings().rows().iter();
        let alike = rows.clone().all(|row| held(row) == ledger.holding(row.wallet, row.market));
        let some = rows.filter(|row| held(row) != [Shares::ZERO; 2]).count();
        if !alike || some != ledger.holdings().count() {
            return Err(Damage::of("shares of a holding"));
        }
        let last = self.wallets.activity().rows().last();
        if last.is_some_and(|last| ledger.time() < last.time || ledger.end() <= last.position) {
            return Err(Damage::of("row of activity"));
        }
        self.wallets.turn(ledger.time());
        self.by_address = ledger.wallets().iter().map(|row| (row.address, row.wallet)).collect();
        Ok(())
    }

    /// Follows a record that the ledger and the index have just applied.
    pub(super) fn follow(&mut self, ledger: &Ledger, index: &Index, start: Position, record: &Record) {
        match record {
            Record::WalletAdded(record) => drop(self.by_address.insert(record.address, record.wallet)),
            Record::EventText(_) | Record::MarketText(_) => self.rows.renew(),
            _ => {}
        }
        feed::entries(ledger, index, start, record, |entry| self.wallets.follow(&entry));
    }
}

impl Reader {
    /// The routes of wallet data.
    pub(super) fn write_wallet(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        match asked.endpoint() {
            Endpoint::Positions => self.positions(asked, json),
            Endpoint::ClosedPositions => self.closed_positions(asked, json),
            Endpoint::WalletValue => self.wallet_value(asked, json),
            Endpoint::Activity => self.activity(asked, json),
            Endpoint::WalletTrades => self.wallet_trades(asked, json),
            Endpoint::Holders => self.holders(asked, json),
            Endpoint::OpenInterest => self.open_interest(asked, json),
            Endpoint::LiveVolume => self.live_volume(asked, json),
            Endpoint::WalletTraded => self.wallet_traded(asked, json),
            Endpoint::WalletVolume => self.wallet_volume(asked, json),
            Endpoint::OtherSize => self.other_size(asked, json),
            Endpoint::Leaderboard => self.leaderboard(asked, json),
            _ => self.write_v2(asked, json),
        }
    }

    /// The markets that are asked for, themselves or by their events, and known here; none if the request names none.
    fn markets_of(&self, params: &Params<'_>) -> Result<Option<BTreeSet<MarketNo>>, Refused> {
        const NAMES: [&str; 2] = ["market", "eventId"];
        self.either_markets((params.conditions_filter(NAMES[0])?, params.events_filter(NAMES[1])?), NAMES)
    }

    /// The markets of these conditions or of these events, of which a request may name either by these parameters.
    fn either_markets(
        &self,
        (conditions, events): (Option<Vec<ConditionId>>, Option<BTreeSet<String>>),
        names: [&'static str; 2],
    ) -> Result<Option<BTreeSet<MarketNo>>, Refused> {
        if conditions.is_some() && events.is_some() {
            return Err(twice_named(names));
        }
        let known = |ids: Vec<ConditionId>| ids.iter().filter_map(|id| self.index.condition(id)).collect();
        let within = |ids: BTreeSet<String>| self.markets_of_events(&ids).collect();
        Ok(conditions.map(known).or_else(|| events.map(within)))
    }

    /// The markets of those events that are known here.
    fn markets_of_events(&self, ids: &BTreeSet<String>) -> impl Iterator<Item = MarketNo> {
        let catalog = self.index.catalog();
        let events = ids.iter().filter_map(|id| catalog.event_by_id(id));
        events.flat_map(|event| catalog.event(event).markets()).map(MarketNo)
    }

    /// The wallet of an address, if it is known here.
    #[must_use]
    pub(crate) fn wallet_at(&self, address: &Address) -> Option<WalletNo> {
        self.wallets.by_address.get(address).copied()
    }

    /// The markets in which a wallet holds shares, by number, and how many of either outcome.
    #[must_use]
    pub(crate) fn shares_of(&self, wallet: WalletNo) -> Vec<(MarketNo, [Shares; 2])> {
        let ever = self.model().holdings().of_wallet(wallet);
        let shares = ever.map(|row| (row.market, row.lots.map(|lot| lot.shares)));
        let mut held: Vec<_> = shares.filter(|(_, shares)| *shares != [Shares::ZERO; 2]).collect();
        held.sort_unstable_by_key(|(market, _)| *market);
        held
    }

    /// What happened in all wallets: the read model, which a snapshot keeps.
    pub(super) const fn model(&self) -> &Wallets {
        &self.wallets.wallets
    }

    /// The name of an outcome's token, as a JSON string.
    fn write_asset(&self, json: &mut Writer<'_>, row: &MarketRow, outcome: Outcome) {
        match self.settings.wallet.asset {
            AssetFormat::Token => json.token(&row.tokens[outcome.index()]),
            AssetFormat::Condition => json.quoted(|out| {
                name::push_hex(out, row.condition.as_bytes());
                out.extend_from_slice(if outcome == Outcome::Zero { b":0" } else { b":1" });
            }),
        };
    }

    /// `title`, `slug`, `icon` and `eventSlug` of a market.
    fn write_texts_of(&self, json: &mut Writer<'_>, row: &MarketRow) {
        let facts = self.index.facts(row.market);
        json.key("title").text(&facts.question).key("slug").text(&facts.slug).key("icon").text(&facts.icon);
        json.key("eventSlug").text(self.event_slug(row));
    }

    /// The slug of a market's event. One without an event has its own, as a search shows it: some clients take no
    /// empty one.
    fn event_slug(&self, row: &MarketRow) -> &str {
        self.index.event(row).map_or(&self.index.facts(row.market).slug, |event| &event.slug)
    }

    /// `endDate`, as [`Reader::end_of`] says.
    fn write_end(&self, json: &mut Writer<'_>, market: MarketNo, format: EndDateFormat) {
        let end = self.end_of(market);
        json.key("endDate");
        match format {
            EndDateFormat::DateTime => json.date_time(end),
            EndDateFormat::Polymarket => json.quoted(|out| date::push_date(out, end)),
        };
    }

    /// When a market ends: the date that the catalog shows of it, by which lists are ordered as well.
    fn end_of(&self, market: MarketNo) -> TimeMs {
        let end = self.index.catalog().date_of_market(market.0, Column::EndDate);
        end.expect("the catalog shows an end of every market").in_ms()
    }

    /// What a token is worth, in millionths, by the rules of [`Reader::shown_price`].
    fn price_now(&self, row: &MarketRow, outcome: Outcome) -> u32 {
        u32::try_from(self.shown_price(row, outcome)).expect("a price is at most one")
    }
}

/// The names and pictures of a wallet, which nobody has here.
fn write_no_profile(json: &mut Writer<'_>) {
    for name in ["name", "pseudonym", "bio", "profileImage", "profileImageOptimized"] {
        json.key(name).text("");
    }
}

/// Writes `rows` as an array that ends at [`LIST_BYTES_MAX`], with at least one row.
fn write_list<R>(
    json: &mut Writer<'_>,
    rows: impl IntoIterator<Item = R>,
    mut row: impl FnMut(&mut Writer<'_>, R),
) {
    json.open_array();
    let start = json.bytes();
    for (count, next) in rows.into_iter().enumerate() {
        let before = json.bytes();
        row(json, next);
        // The comma is not counted.
        if count > 0 && json.bytes() - start - 1 > LIST_BYTES_MAX {
            json.cut(before);
            break;
        }
    }
    json.close_array();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(row_bytes: &[usize]) -> usize {
        let mut out = Vec::new();
        write_list(&mut Writer::new(&mut out), row_bytes, |json, bytes| {
            json.text(&"x".repeat(*bytes));
        });
        let rows: Vec<String> = serde_json::from_slice(&out).expect("JSON");
        rows.len()
    }

    #[test]
    fn a_list_ends_at_a_mebibyte_and_holds_at_least_one_row() {
        // A row is a text in quotes; the comma before it is not counted.
        let half = LIST_BYTES_MAX / 2 - 2;
        assert_eq!(written(&[]), 0);
        assert_eq!(written(&[half - 1, half]), 2);
        assert_eq!(written(&[half, half, 1]), 2);
        assert_eq!(written(&[half, half + 2]), 1);
        assert_eq!(written(&[2 * LIST_BYTES_MAX, 1]), 1);
    }
}
