//! An import on its way into the exchange: what each row changes is decided against the ledger on
//! the reader's loop, then done by the registrar in pieces, so that orders go on in between.
//!
//! Imports and markets that the operator makes are done one after the other, in the order in which they came, whatever
//! connection they came on, and each is decided against what the one before it left: two markets of one question get two
//! slugs. What somebody else has added since is judged again by the registrar, which refuses what came twice. When the
//! log has no room for more, the import that is under way waits for it ([`ROOM_WAIT_MS`]). One that was refused for want
//! of room can be sent again as it is.
//!
//! A market's text is written **last**, after its tick, its closing and its result. A process that
//! dies in between leaves the old text, so the next import finds the row new and does the rest.

use std::collections::VecDeque;

use super::act::{self, said};
use super::admin::Pending;
use super::desk::{self, Place};
use super::market_acts;
use super::request::{self, Refusal};
use crate::catalog::{
    Import, ImportedEvent, ImportedItem, ImportedMarket, KnownMarket, LIVE_RESULT, LIVE_TICK, MarketStep,
    MarketUpdate, Refused, TextStep, kept_result, kept_tick, market_step, text_step,
};
use crate::domain::{MarketNo, Mode, Payout, Position, Reject, Tick, TimeMs};
use crate::json::Writer;
use crate::ledger::MarketRow;
use crate::registrar::{self, NewMarket};
use crate::server::connections::connection::OPEN_MAX;
use crate::server::core_loop::acts;
use crate::server::core_loop::{CoreLoop, REGISTRAR_LOOP};
use crate::server::reading::Reading;
use crate::server::threads::message::{ActJob, Binding, Errand, Purpose, Report};
use crate::server::trading::Trade;
use crate::shard;

/// Bytes of text that go into the log before orders are let through.
const PIECE_BYTES: usize = 32 << 10;

/// One row's change.
enum Step {
    /// A new event.
    AddEvent(ImportedEvent),
    /// An event's new text.
    UpdateEvent(u32, String),
    /// An item's text; with whether it is new.
    PutItem(ImportedItem, usize),
    /// A new market.
    AddMarket(Box<ImportedMarket>),
    /// A market's new text or event.
    UpdateMarket {
        /// Which.
        market: MarketNo,
        /// Its event, known by number or by the file's id.
        event: Option<u32>,
        /// The file's id of its event.
        event_key: Option<String>,
        /// The text.
        text: String,
    },
}

impl Step {
    fn bytes(&self) -> usize {
        match self {
            Self::AddEvent(event) => event.text.len(),
            Self::UpdateEvent(_, text) | Self::UpdateMarket { text, .. } => text.len(),
            Self::PutItem(item, _) => item.text.len(),
            Self::AddMarket(market) => market.text.len(),
        }
    }
}

/// An import under way.
#[derive(Default)]
struct Run {
    steps: VecDeque<Step>,
    changes: VecDeque<Change>,
    refused: Vec<Refused>,
    refused_more: usize,
    kept: Vec<Refused>,
    clashes: Vec<(String, registrar::Refusal)>,
    counts: Counts,
}

/// A market's changes besides its text, which its shard makes.
struct Change {
    place: Place,
    /// The row that asks for them.
    row: String,
    tick: Option<Tick>,
    closes: bool,
    payout: Option<Payout>,
}

/// Rows, by what became of them.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    events: [u64; 3],
    items: [u64; 3],
    markets: [u64; 4],
}

/// Places in [`Counts`].
const ADDED: usize = 0;
const UPDATED: usize = 1;
const UNCHANGED: usize = 2;
const OLDER: usize = 3;

/// What adds events and markets.
enum Addition {
    Import(Box<Import>),
    Market(request::NewMarket),
}

/// Imports and new markets that were read and are not done; they are on the reader's loop.
#[derive(Default)]
pub(crate) struct Additions {
    waiting: VecDeque<(Pending, Addition)>,
    is_one_under_way: bool,
    /// The position of the log at which the last one was done.
    done_at: Position,
    /// The one under way, if it waits for room in the log; and until when.
    short_of_room: Option<(Box<ActJob>, u64)>,
}

impl std::fmt::Debug for Additions {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Additions").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

impl Additions {
    /// True if the one under way waits for room in the log.
    pub(crate) const fn waits_for_room(&self) -> bool {
        self.short_of_room.is_some()
    }
}

/// Those that wait for the one under way: a connection's worth of requests.
const WAITING_MAX: usize = OPEN_MAX;

/// How long an import waits for room at most; then it is refused as busy.
const ROOM_WAIT_MS: u64 = 10_000;

/// Takes in what `body` holds, after the imports and markets that came before.
pub(super) fn begin(core: &mut CoreLoop, pending: Pending, body: &[u8]) -> Result<(), Refusal> {
    may_wait(core)?;
    let import = Import::read(body, &core.shared.plan.market_defaults).map_err(|fault| {
        Refusal::new(400, "invalid_file", "body", &fault.to_string(), "Gamma JSON: events or markets")
    })?;
    wait(core, pending, Addition::Import(Box::new(import)));
    Ok(())
}

/// Makes a market, after the imports and markets that came before it.
pub(super) fn begin_market(
    core: &mut CoreLoop,
    pending: Pending,
    market: request::NewMarket,
) -> Result<(), Refusal> {
    may_wait(core)?;
    wait(core, pending, Addition::Market(market));
    Ok(())
}

fn may_wait(core: &CoreLoop) -> Result<(), Refusal> {
    if core.desk.additions.waiting.len() == WAITING_MAX {
        let words = "enough imports and new markets wait for their turn; try again";
        return Err(Refusal::new(503, "busy", "", "", words));
    }
    act::room(core, REGISTRAR_LOOP)
}

fn wait(core: &mut CoreLoop, pending: Pending, addition: Addition) {
    core.desk.additions.waiting.push_back((pending, addition));
    send_next(core);
}

/// The one under way is done, and the log has all of it before `at`.
pub(in crate::server) fn ended(core: &mut CoreLoop, at: Position) {
    core.desk.additions.is_one_under_way = false;
    core.desk.additions.done_at = at;
}

/// Begins with the next one, once the reader's state has all of the last one. Returns whether it did.
fn send_next(core: &mut CoreLoop) -> bool {
    let additions = &core.desk.additions;
    let applied = core.follows.reading().map_or(Position(0), Reading::applied);
    if additions.is_one_under_way || applied < additions.done_at {
        return false;
    }
    let Some((pending, addition)) = core.desk.additions.waiting.pop_front() else {
        return false;
    };
    core.desk.additions.is_one_under_way = true;
    desk::look(core);
    let errand = match addition {
        Addition::Import(import) => errand(plan(core, &import)),
        // A refusal goes the same way, so that what waits behind it has its turn.
        Addition::Market(market) => market_acts::new_market(core, market)
            .unwrap_or_else(|refusal| Box::new(move |_, _| Report::Answer(refusal.said()))),
    };
    acts::send(
        core,
        REGISTRAR_LOOP,
        Box::new(ActJob::new(Purpose::Addition(pending), Binding::Nobody, errand)),
    );
    true
}

/// Goes on with imports and new markets, if there is something to go on with. Returns whether it did.
pub(in crate::server) fn go_on_adding(core: &mut CoreLoop) -> bool {
    look_for_room(core) || send_next(core)
}

/// The import under way goes on when the log has room.
pub(in crate::server) fn wait_for_room(core: &mut CoreLoop, job: Box<ActJob>) {
    assert!(core.desk.additions.is_one_under_way, "only the import under way comes here");
    core.desk.additions.short_of_room = Some((job, core.elapsed_ms + ROOM_WAIT_MS));
}

/// Resumes the import under way if there is room, or refuses it if its time is over. Returns
/// whether it did either.
fn look_for_room(core: &mut CoreLoop) -> bool {
    let Some((_, until_ms)) = &core.desk.additions.short_of_room else {
        return false;
    };
    let is_over = *until_ms <= core.elapsed_ms;
    let shards = core.shared.plan.topology.shards;
    let has_room = core.marks.as_ref().is_some_and(|marks| {
        let log = marks.log();
        log.room_for_bulk() && log.room_for_order(shards)
    });
    if !is_over && !has_room {
        return false;
    }
    let (job, _) = core.desk.additions.short_of_room.take().expect("just seen");
    if has_room {
        acts::send(core, REGISTRAR_LOOP, job);
    } else {
        acts::busy(core, *job);
    }
    true
}

fn errand(run: Run) -> Errand {
    Box::new(move |trade, now| if run.changes.is_empty() { go_on(trade, now, run) } else { change(run) })
}

/// What every row changes.
fn plan(core: &CoreLoop, import: &Import) -> Run {
    let ledger = desk::ledger(core);
    let mut run =
        Run { refused: import.refused().to_vec(), refused_more: import.refused_more(), ..Run::default() };
    for event in import.events() {
        let number = core.desk.event(&event.key);
        let known =
            number.and_then(|number| ledger.events().get(number as usize)).map(|row| row.text.as_str());
        let is_bare = event.is_bare();
        match (text_step(known, event.updated, &event.text), number) {
            // A market that only names its event says nothing about it.
            (TextStep::Keep | TextStep::Update(_), Some(_)) if is_bare => {}
            (TextStep::Update(text), Some(number)) => run.steps.push_back(Step::UpdateEvent(number, text)),
            (TextStep::Add, _) | (TextStep::Update(_), None) => {
                run.steps.push_back(Step::AddEvent(event.clone()));
            }
            (TextStep::Keep, _) => run.counts.events[UNCHANGED] += 1,
        }
    }
    for item in import.items() {
        let number = core.desk.item(item.kind, &item.key);
        let known = number.and_then(|number| ledger.items().get(number as usize)).map(|row| &*row.text);
        match text_step(known, item.updated, &item.text) {
            TextStep::Add => run.steps.push_back(Step::PutItem(item.clone(), ADDED)),
            TextStep::Update(text) => {
                run.steps.push_back(Step::PutItem(ImportedItem { text, ..item.clone() }, UPDATED));
            }
            TextStep::Keep => run.counts.items[UNCHANGED] += 1,
        }
    }
    for market in import.markets() {
        let row = core.desk.condition(&market.condition).and_then(|number| ledger.market(number));
        let Some(row) = row else {
            run.steps.push_back(Step::AddMarket(Box::new(market.clone())));
            continue;
        };
        let number = market.event.as_ref().and_then(|key| core.desk.event(key));
        let new_event = market.event.is_some() && number.is_none();
        let update = |text: Option<String>, event: Option<u32>| Step::UpdateMarket {
            market: row.market,
            event: event.or(row.event),
            event_key: market.event.clone(),
            text: text.unwrap_or_else(|| row.text.clone()),
        };
        match market_step(&known(row), market, number) {
            MarketStep::Update(change) => {
                let MarketUpdate { text, event, tick, closes, payout, kept } = change;
                run.kept.extend(kept);
                let is_changed = tick.is_some() || closes || payout.is_some();
                if text.is_some() || event.is_some() || new_event {
                    run.steps.push_back(update(text, event));
                } else {
                    run.counts.markets[if is_changed { UPDATED } else { UNCHANGED }] += 1;
                }
                let place = desk::place_of(core, row);
                if is_changed {
                    run.changes.push_back(Change { place, row: market.row(), tick, closes, payout });
                }
            }
            MarketStep::Keep if new_event => run.steps.push_back(update(None, None)),
            MarketStep::Older if new_event && row.event.is_none() => {
                run.steps.push_back(update(None, None));
            }
            MarketStep::Keep => run.counts.markets[UNCHANGED] += 1,
            MarketStep::Older => run.counts.markets[OLDER] += 1,
        }
    }
    run
}

fn known(row: &MarketRow) -> KnownMarket<'_> {
    KnownMarket {
        text: &row.text,
        market_id: row.market_id,
        event: row.event,
        question: row.question,
        tokens: row.tokens,
        labels: &row.labels,
        neg_risk: row.neg_risk,
        tick: row.tick,
        min_size: row.min_size,
        fee: row.fee,
        mode: row.mode,
        payout: row.payout,
        is_live: !row.live.is_empty() || !row.backing.is_zero(),
    }
}

/// Does one piece on the registrar's loop, and says what is next.
fn go_on(trade: &mut Trade, now: TimeMs, mut run: Run) -> Report {
    let mut bytes = 0;
    while let Some(step) = run.steps.pop_front() {
        if 0 < bytes && PIECE_BYTES < bytes + step.bytes() {
            run.steps.push_front(step);
            return Report::Next(REGISTRAR_LOOP, Box::new(move |trade, now| go_on(trade, now, run)));
        }
        bytes += step.bytes();
        if !take(trade.own_registrar(), now, &step, &mut run) {
            run.steps.push_front(step);
            return Report::WhenRoom(Box::new(move |trade, now| go_on(trade, now, run)));
        }
    }
    report(&run)
}

/// Does one step; false if there is no room for it now.
fn take(registrar: &mut registrar::Registrar, now: TimeMs, step: &Step, run: &mut Run) -> bool {
    let (row, done) = match step {
        // The event came between the plan and now.
        Step::AddEvent(event) if registrar.event(&event.key).is_some() => {
            run.counts.events[UNCHANGED] += u64::from(!event.is_bare());
            return true;
        }
        Step::AddEvent(event) => {
            let done =
                registrar.add_event(now, &event.key, &event.text).map(|_| &mut run.counts.events[ADDED]);
            (format!("event {}", event.key), done)
        }
        Step::UpdateEvent(event, text) => {
            let done = registrar.update_event(now, *event, text).map(|()| &mut run.counts.events[UPDATED]);
            (format!("event number {event}"), done)
        }
        Step::PutItem(item, counted) => {
            let done = registrar.put_item(now, item.kind, &item.key, &item.text);
            (format!("{} {}", item.kind.text(), item.key), done.map(|()| &mut run.counts.items[*counted]))
        }
        Step::AddMarket(market) => {
            let event = market.event.as_ref().and_then(|key| registrar.event(key));
            let done =
                registrar.add_market(now, &new_market(market, event)).map(|_| &mut run.counts.markets[ADDED]);
            (market.row(), done)
        }
        Step::UpdateMarket { market, event, event_key, text } => {
            let event = event_key.as_ref().and_then(|key| registrar.event(key)).or(*event);
            let done = registrar.update_market(now, *market, event, text);
            (format!("market number {}", market.0), done.map(|()| &mut run.counts.markets[UPDATED]))
        }
    };
    match done {
        Ok(count) => *count += 1,
        Err(registrar::Refusal::LogFull) => return false,
        Err(refusal) => run.clashes.push((row, refusal)),
    }
    true
}

fn new_market(market: &ImportedMarket, event: Option<u32>) -> NewMarket<'_> {
    NewMarket {
        event,
        market_id: market.market_id,
        condition: Some(market.condition),
        question: Some(market.question),
        tokens: market.tokens,
        labels: [&market.labels[0], &market.labels[1]],
        neg_risk: market.neg_risk,
        tick: market.tick,
        min_size: market.min_size,
        fee: market.fee,
        mode: market.first_mode(),
        payout: market.payout,
        text: &market.text,
    }
}

/// Does what is the shards' to do, each on its own loop; then the rest on the registrar's.
fn change(mut run: Run) -> Report {
    let Some(next) = run.changes.pop_front() else {
        return Report::Next(REGISTRAR_LOOP, Box::new(move |trade, now| go_on(trade, now, run)));
    };
    let to = next.place.shard_loop;
    Report::Next(
        to,
        Box::new(move |trade, now| {
            let Ok(kept) = next.act(trade, now) else {
                run.changes.push_front(next);
                return Report::WhenRoom(Box::new(move |_, _| change(run)));
            };
            run.kept.extend(kept);
            change(run)
        }),
    )
}

/// The log has no room for a change now.
struct NoRoom;

impl Change {
    /// Makes the changes: tick and payout only while nothing rests and nobody holds shares, as it
    /// was when this was decided. Returns what the market does not take after all. A second time it
    /// changes nothing.
    fn act(&self, trade: &mut Trade, now: TimeMs) -> Result<Vec<Refused>, NoRoom> {
        let market = self.place.market;
        let shard = trade.own_shard();
        // Only these need it, and it may be a walk over all positions.
        let asks = self.tick.is_some() || self.payout.is_some();
        let is_live =
            asks && (shard.resting(market).next().is_some() || shard.holders(market).next().is_some());
        let mut kept = Vec::new();
        if let Some(tick) = self.tick {
            let done =
                if is_live { Ok(Some(LIVE_TICK)) } else { refusal_of(shard.set_tick(now, market, tick)) };
            kept.extend(done?.map(|why| kept_tick(&self.row, tick, why)));
        }
        if let Some(payout) = self.payout {
            let done =
                if is_live { Ok(Some(LIVE_RESULT)) } else { refusal_of(shard.resolve(now, market, payout)) };
            kept.extend(done?.map(|why| kept_result(&self.row, payout, why)));
        }
        if self.closes && (is_live || self.payout.is_none()) {
            let done = refusal_of(shard.set_mode(now, market, Mode::Closed));
            kept.extend(done?.map(|why| Refused::new(&self.row, "closed", "true", why)));
        }
        Ok(kept)
    }
}

/// Why a shard did not do something, in words; nothing if it did.
fn refusal_of<T>(done: Result<T, shard::Refusal>) -> Result<Option<&'static str>, NoRoom> {
    match done.map_err(|refusal| refusal.reject) {
        Ok(_) => Ok(None),
        Err(Reject::Busy) => Err(NoRoom),
        Err(reject) => Ok(Some(reject.wire().error)),
    }
}

fn report(run: &Run) -> Report {
    said(|json| {
        let events = ["eventsAdded", "eventsUpdated", "eventsUnchanged"].into_iter().zip(run.counts.events);
        let items = ["itemsAdded", "itemsUpdated", "itemsUnchanged"].into_iter().zip(run.counts.items);
        let markets = ["marketsAdded", "marketsUpdated", "marketsUnchanged", "marketsOlder"];
        for (name, count) in events.chain(items).chain(markets.into_iter().zip(run.counts.markets)) {
            json.key(name).number(count);
        }
        json.key("refusedMore").number(run.refused_more as u64).key("refused").open_array();
        for row in &run.refused {
            line(json, &row.row, row.field, &row.got, row.allowed);
        }
        for (row, refusal) in &run.clashes {
            let wire = refusal.wire();
            json.open_object().key("row").text(row).key("code").text(wire.code);
            json.key("error").text(&wire.error.replace("{got}", row)).close_object();
        }
        json.close_array().key("kept").open_array();
        for row in &run.kept {
            line(json, &row.row, row.field, &row.got, row.allowed);
        }
        json.close_array();
    })
}

fn line(json: &mut Writer<'_>, row: &str, field: &str, got: &str, allowed: &str) {
    json.open_object().key("row").text(row).key("field").text(field);
    json.key("got").text(got).key("allowed").text(allowed).close_object();
}
