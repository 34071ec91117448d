//! What the operator can look up: markets by id, condition or event, wallets by address.
//!
//! A [`Desk`] follows the ledger's tables, which only grow: each look takes in what is new since
//! the last one, so an import of a hundred batches reads no row twice.

use std::collections::HashMap;

use super::intake::Additions;
use super::request::{MarketName, Refusal};
use crate::catalog::event_key;
use crate::domain::{Address, ConditionId, ItemKind, MarketNo, Outcome, Payout, ShardNo, WalletKind};
use crate::json::Writer;
use crate::ledger::{Ledger, MarketRow, WalletRow};
use crate::reader::Reader;
use crate::registrar;
use crate::server::core_loop::CoreLoop;
use crate::server::reading::follows::Follows;

/// How often a look-up lets the reader follow some frames, up to what clients were told.
const CATCH_UPS_MAX: u32 = 10_000;
/// Markets of a page: the reader's loop has others waiting for it.
const PAGE_MARKETS_MAX: usize = 1_000;
/// Bytes with which a page ends, as questions may be long.
const PAGE_BYTES: usize = 1 << 20;

/// Rows found so far.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    events: HashMap<String, u32>,
    events_seen: usize,
    items: HashMap<(ItemKind, String), u32>,
    items_seen: usize,
    conditions: HashMap<ConditionId, MarketNo>,
    ids: HashMap<u64, MarketNo>,
    /// Imports and new markets that were read and are not done.
    pub(crate) additions: Additions,
}

impl Desk {
    fn follow(&mut self, ledger: &Ledger) {
        for row in &ledger.events()[self.events_seen..] {
            if let Some(key) = event_key(&row.text) {
                self.events.insert(key, row.event);
            }
        }
        self.events_seen = ledger.events().len();
        for row in &ledger.items()[self.items_seen..] {
            if let Some(key) = event_key(&row.text) {
                self.items.insert((row.kind, key), row.item);
            }
        }
        self.items_seen = ledger.items().len();
        for row in &ledger.markets()[self.conditions.len()..] {
            self.conditions.insert(row.condition, row.market);
            self.ids.insert(row.market_id, row.market);
        }
    }

    /// The number of the event with this id.
    pub(super) fn event(&self, key: &str) -> Option<u32> {
        self.events.get(key).copied()
    }

    /// The number of the tag, series or creator of its own with this id.
    pub(super) fn item(&self, kind: ItemKind, key: &str) -> Option<u32> {
        self.items.get(&(kind, key.to_owned())).copied()
    }

    /// The market with this condition.
    pub(super) fn condition(&self, condition: &ConditionId) -> Option<MarketNo> {
        self.conditions.get(condition).copied()
    }
}

/// A market, and where it is traded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Its number.
    pub(super) market: MarketNo,
    /// The loop of its shard.
    pub(super) shard_loop: usize,
    market_id: u64,
    condition: ConditionId,
}

impl Place {
    /// Writes what people call it.
    pub(super) fn names(&self, json: &mut Writer<'_>) {
        json.key("marketId").number(self.market_id).key("conditionId").condition(&self.condition);
    }
}

/// Applies everything that any client was told, so that the operator sees it too.
pub(super) fn catch_up(core: &mut CoreLoop) {
    let tag = core.shared.told();
    let now = core.now;
    let (Some(marks), Follows::Reader(reading)) = (&mut core.marks, &mut core.follows) else {
        return;
    };
    for _ in 0..CATCH_UPS_MAX {
        if tag <= reading.applied() {
            break;
        }
        let mark = marks.advance();
        reading.follow(mark, now);
    }
    look(core);
}

/// Learns the names of what the reader's state has.
pub(super) fn look(core: &mut CoreLoop) {
    if let Follows::Reader(reading) = &core.follows {
        core.desk.follow(reading.reader().ledger());
    }
}

/// The reader.
pub(super) fn reader(core: &CoreLoop) -> &Reader {
    let reading = core.follows.reading();
    reading.expect("the operator's listener is on the reader's loop").reader()
}

/// The state as the reader has it.
pub(super) fn ledger(core: &CoreLoop) -> &Ledger {
    reader(core).ledger()
}

/// The market of this name.
pub(super) fn place(core: &CoreLoop, name: MarketName) -> Option<Place> {
    let market = match name {
        MarketName::Id(id) => core.desk.ids.get(&id).copied(),
        MarketName::Condition(condition) => core.desk.condition(&condition),
    }?;
    Some(place_of(core, ledger(core).market(market)?))
}

/// Where a market is traded.
pub(super) fn place_of(core: &CoreLoop, row: &MarketRow) -> Place {
    let topology = &core.shared.plan.topology;
    let ShardNo(shard) = ShardNo::of_key(row.shard_key, topology.shards);
    let shard_loop = topology.loops.iter().position(|core| core.shard == Some(shard));
    Place {
        market: row.market,
        shard_loop: shard_loop.expect("every shard has a loop"),
        market_id: row.market_id,
        condition: row.condition,
    }
}

/// The number of the event with this slug.
pub(super) fn event_by_slug(core: &CoreLoop, slug: &str) -> Option<u32> {
    reader(core).catalog().events_by_slug(slug).next()
}

/// A page of all markets as they were made, one short object each: those behind `after`, or the first.
pub(super) fn markets(core: &CoreLoop, after: Option<&Place>) -> Vec<u8> {
    let first = after.map_or(0, |place| place.market.index() + 1);
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.open_array();
    for row in ledger(core).markets().iter().skip(first).take(PAGE_MARKETS_MAX) {
        json.open_object();
        short(&mut json, reader(core), row);
        json.close_object();
        if json.bytes() >= PAGE_BYTES {
            break;
        }
    }
    json.close_array();
    out
}

/// Writes what lists say of a market into an open object.
pub(super) fn short(json: &mut Writer<'_>, reader: &Reader, row: &MarketRow) {
    let question = &reader.catalog().market(row.market.0).facts.question;
    json.key("marketId").number(row.market_id).key("conditionId").condition(&row.condition);
    json.key("question").text(question).key("mode").text(row.mode.text());
    json.key("tick").ten_thousandths_text(row.tick.ten_thousandths());
    json.key("liveOrders").number(row.live.len() as u64);
}

/// One market, everything but its text.
pub(super) fn market(core: &CoreLoop, place: &Place) -> Vec<u8> {
    let row = ledger(core).market(place.market).expect("just found");
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.open_object();
    short(&mut json, reader(core), row);
    json.key("outcomes").open_array().text(&row.labels[0]).text(&row.labels[1]).close_array();
    json.key("tokens").open_array().token(&row.tokens[0]).token(&row.tokens[1]).close_array();
    json.key("minSize").millionths_text(row.min_size.0).key("negRisk").boolean(row.neg_risk);
    json.key("feeRate")
        .millionths_text(row.fee.rate.into())
        .key("feeExponent")
        .number(row.fee.exponent.into());
    json.key("pairs").millionths_text(row.backing.0);
    json.key("shard").number(ShardNo::of_key(row.shard_key, core.shared.plan.topology.shards).0.into());
    if let Some(event) = row.event {
        json.key("event").number(event.into());
    }
    if let Some(known) = row.payout {
        json.key("payout");
        payout(&mut json, known);
    }
    json.close_object();
    out
}

/// What a share of each outcome pays.
pub(super) fn payout(json: &mut Writer<'_>, payout: Payout) {
    json.open_array();
    for outcome in [Outcome::Zero, Outcome::One] {
        json.millionths_text(payout.per_share(outcome).into());
    }
    json.close_array();
}

/// One wallet: whose it is, its money, its shares.
pub(super) fn account(core: &CoreLoop, address: &Address) -> Result<Vec<u8>, Refusal> {
    let reader = reader(core);
    let found = reader.wallet_at(address).and_then(|wallet| reader.ledger().wallet(wallet));
    let row = found.ok_or_else(|| {
        let got = super::act::hex(address.as_bytes());
        let allowed = "a wallet that was credited, linked or has an API key";
        Refusal::of(registrar::Refusal::WalletUnknown, "wallet", &got, allowed)
    })?;
    Ok(written(reader, row))
}

/// The wallet that fees are shown under: what was collected and not paid out yet is its balance.
pub(super) fn fee_account(core: &CoreLoop) -> Result<Vec<u8>, Refusal> {
    let reader = reader(core);
    let found = reader.ledger().wallets().iter().find(|row| row.kind == WalletKind::Fee);
    let none = || Refusal::new(404, "wallet_unknown", "wallet", "fees", "known when the exchange has begun");
    found.map(|row| written(reader, row)).ok_or_else(none)
}

fn written(reader: &Reader, row: &WalletRow) -> Vec<u8> {
    let ledger = reader.ledger();
    let principal = row.principal.and_then(|principal| ledger.wallet(principal));
    let balance = if row.kind == WalletKind::Fee { ledger.fees() } else { row.cell };
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.open_object().key("wallet").address(&row.address);
    json.key("kind").text(row.kind.text());
    if let Some(principal) = principal {
        json.key("owner").address(&principal.address).key("frozen").boolean(principal.frozen);
    }
    json.key("balance").millionths_text(balance.0).key("positions").open_array();
    for (market, shares) in reader.shares_of(row.wallet) {
        let market = ledger.market(market).expect("holdings name markets");
        json.open_object().key("marketId").number(market.market_id).key("shares").open_array();
        json.millionths_text(shares[0].0).millionths_text(shares[1].0).close_array().close_object();
    }
    json.close_array().close_object();
    out
}
