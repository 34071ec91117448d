//! From a request to a shard's decision to an answer: the trading role of a loop.
//!
//! A trading request is judged in this order: the limits of its address, room for it, the exchange's mode, who is
//! asking and that owner's limits, what the body says; then order by order whose it is and whether its signature
//! holds. Only then a shard hears of it, by a direct call if the shard is on this loop, through a ring if not.
//!
//! [`Reject`]'s rows follow this order only roughly: recovery comes before the limits, a full ring refuses as busy
//! last, post-only mode is judged with an order's owner, a wrong version also with its token or signature, and the form
//! of every field with the body.
//!
//! Curve operations are the one expensive step. Orders wait for theirs in [`Trade::staged`], at
//! most one request's at a time, and at most [`SIGNATURES_PER_TURN`] are done in a turn, so that
//! cancels and answers never wait long behind a batch. Which request is next is decided fairly by address
//! (`connections/fair.rs`).
//!
//! | file | what it knows |
//! |---|---|
//! | `work` | requests under way: what was asked, what the shards said so far |
//! | `deadlines` | until when a request's orders may be judged |
//! | `staging` | orders on their way to their shards |
//! | `links` | in `dev`, whose a deposit wallet becomes by its first order |
//! | `replaces` | orders that take each other's places, all together |
//! | `cancels`, `wide` | cancels, for which every shard is asked |
//! | `position_acts` | splits, merges, redeems |
//! | `guard_acts` | heartbeats and fill-rate breakers |
//! | `decisions` | what shards decided, and what other loops ask of this one |
//! | `words`, `render` | what they said as people read it, and as bytes |
//! | `timing` | what the time of a request went to |
#![allow(
    clippy::result_large_err,
    reason = "a refusal carries its words by value, so that nothing allocates"
)]

mod cancels;
mod deadlines;
mod decisions;
mod guard_acts;
mod links;
mod position_acts;
mod render;
pub(super) mod replaces;
mod staging;
pub(super) mod timing;
pub(super) mod wide;
mod words;
pub(super) mod work;

use std::collections::VecDeque;
use std::sync::Arc;

use super::connections::Client;
use super::connections::connection::{Intent, Line, Timed};
use super::core_loop::{Step, connection_word};
use super::plan::Plan;
use super::process::clock::Clock;
use super::requests::caller::{Caller, Callers};
use super::requests::request::Request;
use super::requests::toll::Toll;
use super::threads::mesh::Mesh;
use super::threads::message::{ActJob, Ticket};
use crate::auth::{Venue, Verifier};
use crate::domain::{Address, Dialect, Mode, OrderId, Position, Reject, SignedOrder, TimeMs, WalletNo};
use crate::http::respond::Extras;
use crate::http::{Endpoint, Head, Route};
use crate::json::read::{CANCELS_MAX, ORDERS_MAX};
use crate::json::{BodyReader, ReadError};
use crate::limits::Moment;
use crate::registrar::Registrar;
use crate::registry::Registry;
use crate::shard::{OrderScope, ReadyOrder, Shard};
use crate::stats::{Laps, Stage};
use guard_acts::promise;
use replaces::ReplaceJobs;
use staging::Staged;
use wide::{WIDE_WORKS_MAX, WideJob, WideJobs};
use work::{Asker, Form, Outcome, Refused, Works};

/// Curve operations in one turn: the one step of an order that takes long.
pub(crate) const SIGNATURES_PER_TURN: usize = 2;

/// Bytes of a body that the scratch buffer holds without growing: a batch of fifteen orders.
const BODY_BYTES_KEPT: usize = 32 << 10;

/// Orders of one cancel that limits count as one request.
const CANCELS_COUNTED_AS_ONE: usize = 16;

/// Sockets' side and shard's side of trading on one loop.
pub(crate) struct Trade {
    /// This loop's shard; an ingress loop has none.
    pub(super) shard: Option<Shard>,
    pub(super) registrar: Option<Registrar>,
    pub(super) shards: u16,
    pub(super) registry: Arc<Registry>,
    pub(super) works: Works,
    wide_jobs: WideJobs,
    /// Cancels of many orders that go on here, one of an owner, and the loops that asked for them.
    leaving: VecDeque<(usize, Box<WideJob>)>,
    /// The others, each of an owner that has one there.
    waiting: VecDeque<(usize, Box<WideJob>)>,
    replaces: ReplaceJobs,
    pub(super) callers: Callers,
    clock: Clock,
    pub(super) verifier: Verifier,
    pub(super) venue: Venue,
    /// The first order of a deposit wallet links it: `dev` only.
    first_order_links: bool,
    /// Refused signatures are explained: `dev` only.
    explains: bool,
    bodies: BodyReader,
    body: Vec<u8>,
    staged: Option<Staged>,
    pub(super) orders: Vec<Result<SignedOrder, ReadError>>,
    /// The order that is on its way to its shard is written here; `None` only meanwhile.
    ready: Option<Box<ReadyOrder>>,
    ids: Vec<OrderId>,
    signatures_left: usize,
    /// Where the time of the request under way went.
    laps: Laps,
    /// Answers carry `Server-Timing`.
    tells_timing: bool,
}

/// What the roles of one loop are made from.
pub(crate) struct Parts {
    /// The shard, unless the loop is for ingress alone.
    pub(crate) shard: Option<Shard>,
    /// The registrar, on shard 0's loop.
    pub(crate) registrar: Option<Registrar>,
    /// Memory for tables of known signers.
    pub(crate) known_signers_bytes: u64,
    /// The registry.
    pub(crate) registry: Arc<Registry>,
    /// Checks credentials.
    pub(crate) callers: Callers,
    /// The time within a turn.
    pub(crate) clock: Clock,
}

impl Trade {
    /// The trading role, around a shard if there is one.
    pub(crate) fn new(plan: &Plan, parts: Parts) -> Self {
        Self {
            shard: parts.shard,
            registrar: parts.registrar,
            shards: plan.topology.shards,
            registry: parts.registry,
            works: Works::new(),
            wide_jobs: WideJobs::new(usize::from(plan.topology.shards)),
            leaving: VecDeque::with_capacity(plan.topology.trading_loops() * WIDE_WORKS_MAX),
            waiting: VecDeque::with_capacity(plan.topology.trading_loops() * WIDE_WORKS_MAX),
            replaces: ReplaceJobs::default(),
            callers: parts.callers,
            clock: parts.clock,
            verifier: Verifier::with_known_signers(
                super::requests::caller::domains(plan),
                parts.known_signers_bytes,
            ),
            venue: plan.venue,
            first_order_links: plan.dev,
            explains: plan.explains,
            bodies: BodyReader::new(),
            body: Vec::with_capacity(BODY_BYTES_KEPT),
            staged: None,
            orders: Vec::with_capacity(ORDERS_MAX),
            ready: Some(Box::new(ReadyOrder::BLANK)),
            ids: Vec::with_capacity(CANCELS_MAX),
            signatures_left: SIGNATURES_PER_TURN,
            laps: Laps::default(),
            tells_timing: plan.options.metrics_server_timing,
        }
    }

    /// Begins a turn, with its time and its signature budget.
    pub(crate) fn begin_turn(&mut self, moment: Moment) {
        self.callers.moment = moment;
        self.signatures_left = SIGNATURES_PER_TURN;
    }

    /// Goes on with the orders that the last turn left. Returns whether there were any.
    pub(crate) fn run_left_over(&mut self, now: TimeMs, mesh: &mut Mesh) -> bool {
        let busy = self.staged.is_some();
        self.run_staged(now, mesh);
        busy
    }

    /// True while orders of a request wait for their curve operations.
    pub(crate) fn has_staged(&self) -> bool {
        self.staged.is_some()
    }

    /// True if a request that costs curve operations may begin in this turn.
    pub(crate) fn may_sign(&self) -> bool {
        self.staged.is_none() && self.signatures_left > 0
    }

    /// Whether a client's next trading request has to wait for its last one. These are done in the order in which
    /// it was sent, whatever the shards: a cancel finds the order sent before it, and positions grow with the answers.
    pub(crate) fn is_behind_its_last(&self, line: &Line) -> bool {
        line.last_work.is_some_and(|work| self.works.is_undecided(work))
    }

    /// Takes one trading request that is not behind its last one and, if it costs curve operations, may begin.
    pub(crate) fn begin(
        &mut self,
        client: Client,
        line: &mut Line,
        route: &Route<'_>,
        request: &Request<'_>,
        now: TimeMs,
        mesh: &mut Mesh,
    ) -> Step {
        let signs = needs_signature(route.endpoint);
        if !self.may_cancel(route.endpoint, mesh) {
            return Step::Later;
        }
        let asker = Asker { client, number: line.next_number(), keep_alive: request.head.keep_alive };
        self.laps = line.laps;
        self.lap(Stage::Parse);
        let caller = self.admit(&mut line.toll, route, request, now);
        self.lap(Stage::Auth);
        let mut answers_for = None;
        let taken = caller.and_then(|caller| {
            answers_for = match route.endpoint {
                // A read, though it is answered here.
                Endpoint::Breaker => line.answers_for,
                // What cancels or guards is taken whatever it promises.
                _ => match promise(&request.head, &caller, line.answers_for, line.is_shared) {
                    Err(refused) if signs => return Err(refused),
                    promised => promised.unwrap_or(line.answers_for),
                },
            };
            self.take(asker, &caller, &mut line.toll, route, request, now, mesh)
        });
        if taken.is_err() && line.toll.held().is_some() {
            return Step::Held;
        }
        let number = line.open(Intent::Write);
        if let Ok(work) = taken {
            self.works.work(work).rate_limit = line.toll.head();
            line.last_work = Some(self.works.name(work));
            line.answers_for = answers_for;
        }
        if let Err(refused) = taken {
            let refused = words::of_limit(refused, &line.toll);
            self.lap(Stage::Parse);
            let form = if route.endpoint == Endpoint::PlaceOrder { Form::Order } else { Form::Act };
            let toll = line.toll;
            let explained =
                if self.explains { self.explain_request(route, request, &refused, now) } else { None };
            let timing = self.tells_timing.then(|| timing::Value::new(&self.laps));
            let extras = Extras {
                connection: connection_word(request.head.keep_alive),
                server_timing: timing.as_ref().map(timing::Value::text),
                ..render::extras_of_refused(&refused, &toll)
            };
            let out = line.answer(number).expect("just opened");
            let form = (form, request.head.dialect());
            let timing_end = render::refused(out, form, &refused, explained.as_deref(), &extras);
            // A refusal that no shard has seen reports no frame, so it waits for none.
            line.ready(number, Position(0));
            line.timed(number, Timed::Trade { laps: self.laps, timing_end });
            return Step::Took;
        }
        self.run_staged(now, mesh);
        if signs { Step::TookMine } else { Step::Took }
    }

    /// Whether there is room for this request if it is a cancel, which waits for room instead of being refused: every
    /// order can be filled until it is cancelled.
    fn may_cancel(&self, endpoint: Endpoint, mesh: &Mesh) -> bool {
        match endpoint {
            Endpoint::CancelOrder => self.works.has_room() && mesh.may_ask_all(),
            Endpoint::CancelOrders | Endpoint::CancelAll | Endpoint::CancelMarketOrders => {
                self.works.has_room()
                    && self.works.has_room_for_wide()
                    && mesh.may_ask_all()
                    && mesh.may_post_all(self.shards)
            }
            _ => true,
        }
    }

    /// Who asks, if limits and the exchange's mode let it.
    fn admit(
        &mut self,
        toll: &mut Toll,
        route: &Route<'_>,
        request: &Request<'_>,
        now: TimeMs,
    ) -> Result<Caller, Refused> {
        self.callers.charge(toll, route.endpoint, request.body.len()).map_err(Refused::plain)?;
        if !self.works.has_room() {
            return Err(Refused::plain(Reject::Busy));
        }
        self.exchange_takes(route.endpoint).map_err(Refused::plain)?;
        let caller = self.callers.check(&request.head, route, request.body, now, toll);
        caller.map_err(Refused::plain)
    }

    /// Reads the body and begins what it asks for.
    #[allow(clippy::too_many_arguments, reason = "a request and what it is taken with")]
    fn take(
        &mut self,
        asker: Asker,
        caller: &Caller,
        toll: &mut Toll,
        route: &Route<'_>,
        request: &Request<'_>,
        now: TimeMs,
        mesh: &mut Mesh,
    ) -> Result<u32, Refused> {
        self.body.clear();
        self.body.extend_from_slice(request.body);
        match route.endpoint {
            Endpoint::PlaceOrder | Endpoint::PlaceOrders | Endpoint::Replace => {
                self.take_orders(asker, toll, route.endpoint, &request.head, caller)
            }
            Endpoint::CancelOrder
            | Endpoint::CancelOrders
            | Endpoint::CancelAll
            | Endpoint::CancelMarketOrders => {
                self.take_cancel(asker, toll, route.endpoint, caller, now, mesh)
            }
            Endpoint::Split | Endpoint::Merge | Endpoint::Redeem => {
                self.position_act(asker, route.endpoint, caller, now, mesh)
            }
            Endpoint::Heartbeat
            | Endpoint::HeartbeatPlain
            | Endpoint::HeartbeatStop
            | Endpoint::Breaker
            | Endpoint::BreakerSet
            | Endpoint::BreakerClear
            | Endpoint::BreakerReset => {
                let taken = self.take_guard_act(asker, route.endpoint, caller, mesh);
                taken.map_err(|error| of_read(&error))
            }
            other => unreachable!("{other:?} is not a trading endpoint"),
        }
    }

    /// Reads the orders of a body, which are judged in turns from then on.
    fn take_orders(
        &mut self,
        asker: Asker,
        toll: &mut Toll,
        endpoint: Endpoint,
        head: &Head<'_>,
        caller: &Caller,
    ) -> Result<u32, Refused> {
        if endpoint == Endpoint::Replace {
            let work = self.take_replace(asker, head, caller, toll)?;
            self.staged = Some(Staged::first(work, *caller));
            return Ok(work);
        }
        let form = if endpoint == Endpoint::PlaceOrder {
            let order = self.bodies.order(&mut self.body).map_err(|error| of_read(&error))?;
            self.orders.clear();
            self.orders.push(Ok(order));
            Form::Order
        } else {
            let read = self.bodies.orders(&mut self.body, &mut self.orders);
            read.map_err(|error| of_read(&error))?;
            let paid = self.callers.charge_more(toll, endpoint, caller, self.orders.len());
            paid.map_err(Refused::plain)?;
            Form::Orders
        };
        let deadline_ms = self.deadline_ms(head, toll)?;
        self.orders.iter_mut().flatten().for_each(|order| order.deadline_ms = deadline_ms);
        let work = self.begin_work(asker, caller, form);
        self.stage(work, *caller);
        Ok(work)
    }

    /// Takes a place for a request whose body was read: from here on its time is the work's.
    fn begin_work(&mut self, asker: Asker, caller: &Caller, form: Form) -> u32 {
        self.lap(Stage::Parse);
        let work = self.works.begin(asker, caller.dialect, form);
        self.works.work(work).laps = self.laps;
        work
    }

    /// Reads what a body cancels, and begins to cancel it.
    fn take_cancel(
        &mut self,
        asker: Asker,
        toll: &mut Toll,
        endpoint: Endpoint,
        caller: &Caller,
        now: TimeMs,
        mesh: &mut Mesh,
    ) -> Result<u32, Refused> {
        match endpoint {
            Endpoint::CancelAll => {
                let work = self.begin_work(asker, caller, Form::Cancel);
                self.cancel_wide(work, caller, OrderScope::ALL, now, mesh);
                return Ok(work);
            }
            Endpoint::CancelMarketOrders => {
                let scope = self.bodies.cancel_scope(&mut self.body).map_err(|error| of_read(&error))?;
                let missing = scope.market.is_none() && scope.token.is_none();
                if missing && caller.dialect != Dialect::Poly {
                    return Err(words::scope_missing());
                }
                let work = self.begin_work(asker, caller, Form::Cancel);
                self.cancel_scope(work, caller, &scope, now, mesh);
                return Ok(work);
            }
            Endpoint::CancelOrder => {
                let id = self.bodies.cancel(&mut self.body).map_err(|error| of_read(&error))?;
                self.ids.clear();
                self.ids.push(id);
            }
            _ => {
                let read = self.bodies.cancels(&mut self.body, &mut self.ids);
                read.map_err(|error| of_read(&error))?;
                let counted = self.ids.len().div_ceil(CANCELS_COUNTED_AS_ONE);
                let paid = self.callers.charge_more(toll, endpoint, caller, counted);
                paid.map_err(Refused::plain)?;
            }
        }
        let work = self.begin_work(asker, caller, Form::Cancel);
        self.cancel_list(work, caller, now, mesh);
        Ok(work)
    }

    /// Whether the exchange's mode takes this request.
    fn exchange_takes(&self, endpoint: Endpoint) -> Result<(), Reject> {
        let places = matches!(endpoint, Endpoint::PlaceOrder | Endpoint::PlaceOrders | Endpoint::Replace);
        match self.registry.exchange_mode() {
            Mode::CancelOnly if places => Err(Reject::CancelOnly),
            Mode::Closed | Mode::Resolved if places => Err(Reject::TradingDisabled),
            _ => Ok(()),
        }
    }

    /// The request that is being taken has finished `stage`.
    fn lap(&mut self, stage: Stage) {
        self.laps.lap(stage, self.clock.elapsed_ns());
    }

    /// A request under way has finished `stage`.
    fn lap_of(&mut self, work: u32, stage: Stage) {
        self.works.work(work).laps.lap(stage, self.clock.elapsed_ns());
    }

    /// Who was asked for a request under way has answered, after `match_ns` for deciding and otherwise waiting.
    pub(in crate::server) fn lap_elsewhere(&mut self, work: u32, match_ns: u64) {
        let now_ns = self.clock.elapsed_ns();
        self.works.work(work).laps.lap_elsewhere(match_ns, now_ns);
    }

    /// The caller's wallet of this address, which `field` names.
    fn wallet_of(
        &self,
        caller: &Caller,
        field: &'static str,
        address: &Address,
    ) -> Result<WalletNo, Refused> {
        let wallet = self.registry.wallet_of(address);
        let wallet =
            wallet.filter(|&wallet| self.registry.wallet(wallet).principal() == Some(caller.principal));
        wallet.ok_or_else(|| words::not_authorized(field, address))
    }

    fn refuse_item(&mut self, ticket: Ticket, refused: Refused) {
        let item = &mut self.works.work(ticket.work).items[ticket.item as usize];
        item.outcome = Outcome::Refused { refused, replayed: false };
        self.works.came(ticket.work);
    }
}

/// The shard's own work, and what is decided.
impl Trade {
    /// The shard's own work.
    pub(crate) fn work(&mut self, now: TimeMs) -> bool {
        self.shard.as_mut().is_some_and(|shard| shard.sweep(now))
    }

    /// The end of the last frame that this loop made.
    pub(crate) fn last_claimed(&self) -> Position {
        let registrar = self.registrar.as_ref().map_or(Position(0), Registrar::last_claimed);
        self.last_decided().max(registrar)
    }

    /// Does an errand of the operator or of a key-holder.
    pub(crate) fn run_errand(&mut self, job: &mut ActJob, now: TimeMs) {
        let errand = job.errand.take().expect("an errand is done once");
        let began_ns = self.clock.elapsed_ns();
        job.report = Some(errand(self, now));
        job.match_ns += self.clock.elapsed_ns() - began_ns;
        job.at = job.at.max(self.last_claimed());
    }

    /// The client of the next request that is decided.
    pub(crate) fn next_finished(&mut self) -> Option<Client> {
        let work = self.works.next_finished()?;
        Some(self.works.work(work).client)
    }

    /// Writes the answer of the request that [`Self::next_finished`] named, if its client is there.
    pub(crate) fn render(&mut self, line: Option<&mut Line>) {
        let place = self.works.next_finished().expect("a request was finished");
        let work = self.works.work(place);
        if let Some(line) = line
            && let Some(out) = line.answer(work.number)
        {
            let timing = self.tells_timing.then(|| timing::Value::new(&work.laps));
            let timing_end = render::decided(out, work, timing.as_ref().map(timing::Value::text));
            line.ready(work.number, work.at);
            line.timed(work.number, Timed::Trade { laps: work.laps, timing_end });
        }
        self.works.end();
    }
}

/// The refusal of a body.
fn of_read(error: &ReadError) -> Refused {
    Refused {
        field: error.field,
        got: error.got,
        allowed: crate::json::ShortText::new(error.allowed),
        ..Refused::plain(error.reject)
    }
}

/// The contracts that an order is signed for.
pub(super) fn venue_of(dialect: Dialect, service: Venue) -> Venue {
    match dialect {
        Dialect::Poly => Venue::Polymarket,
        Dialect::Kuest => Venue::Kuest,
        Dialect::Service => service,
    }
}

/// True if the request costs curve operations.
pub(crate) const fn needs_signature(endpoint: Endpoint) -> bool {
    matches!(
        endpoint,
        Endpoint::PlaceOrder
            | Endpoint::PlaceOrders
            | Endpoint::Replace
            | Endpoint::Split
            | Endpoint::Merge
            | Endpoint::Redeem
    )
}
