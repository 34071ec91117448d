//! One core loop: the turn that everything on its thread happens in.
//!
//! A turn, in this order, each step bounded, but that a change is copied for all who follow it, and sent to those of
//! them for whom much waits already:
//! 1. what epoll reports: new clients, bytes in, room to send; and held requests whose limit has room again;
//! 2. requests: first the cancels of ready connections, whose answers leave at once, but of very many orders; then
//!    the rest, with at most [`super::trading::SIGNATURES_PER_TURN`] signature checks, fairly by address
//!    (`connections/fair.rs`). After each, the journal's thread is woken and answers that are due leave before the next
//!    begins. Before the first stream's client is heard, frames of the log;
//! 3. what other loops sent, and a piece of what goes on here: a long cancel, some errands;
//! 4. the roles' own work: expiries and removals of the shard, frames and reads of the reader, frames of the feed;
//! 5. decided requests get their answers, answers whose position is acknowledged are released, and each connection that
//!    has one sends once;
//! 6. bells, once for each loop that got something;
//! 7. deadlines and streams, last, as a change may cost two hashes of a book and go to many: what streams are told is
//!    written and put into the memory of each, and first books as far as clients read. Those of accounts send, then some
//!    of those of markets, in turn. Bells again, for loops that must know;
//! 8. while the server drains, idle connections close; if nothing happened: spin or sleep, as the plan says.
//!
//! Loops start before recovery is done and get their roles when it is; until then trading is
//! answered 425 and reads 503.
//!
//! | file | what it does |
//! |---|---|
//! | `sockets` | clients come, bytes come and go, clients leave |
//! | `serve` | requests in buffers: what they are, and who answers them |
//! | `refuse` | answers to what nobody takes |
//! | `work` | what other loops sent, and the roles' own work |
//! | `acts` | acts on their way: posted, confirmed, answered |
//! | `guards` | cancels a key's orders when its owner cannot |
//! | `stream` | connections that became streams |
//! | `idle` | deadlines, sleep, the end |
//! | `tables` | which tables are nearly full |

pub(super) mod acts;
mod guards;
mod idle;
mod refuse;
mod serve;
mod sockets;
mod stream;
pub(super) mod tables;
mod work;

pub(crate) use serve::Step;
pub(crate) use stream::CLOSES;

use std::collections::{BTreeMap, VecDeque};
use std::net::TcpListener;
use std::sync::Arc;

use super::connections::Connections;
use super::connections::heard::HeardUntil;
use super::connections::house::OPERATORS_MAX;
use super::connections::socket::{Interest, Ready, Watch, Watched};
use super::machine::disk::DiskWatch;
use super::operator::admin;
use super::plan::topology::Wait;
use super::process::clock::Steps;
use super::process::roles;
use super::process::signals::Ending;
use super::reading::follows::Follows;
use super::reading::waiting::UnderWay;
use super::threads::marks::Marks;
use super::threads::mesh::Mesh;
use super::threads::message::ActJob;
use super::threads::shared::{Phase, Shared};
use super::threads::tally::Tally;
use super::threads::thread::Turns;
use super::trading::Trade;
use super::trading::work::WorkNo;
use crate::domain::{Position, TimeMs};
use crate::http::respond;
use crate::http::route::HostPrefixes;
use crate::journal::Durability;
use crate::limits::Moment;
use crate::registrar::KeyOfOwner;

/// What a loop gets when recovery is done.
pub(crate) struct Roles {
    /// How far the log is acknowledged.
    pub(crate) marks: Marks,
    /// Sockets of trading connections, a shard, perhaps the registrar.
    pub(crate) trade: Option<Trade>,
    /// The reader or the feed.
    pub(crate) follows: Follows,
}

/// The listeners; the reader's loop has them.
pub(crate) struct Doors {
    /// For everybody.
    pub(crate) http: TcpListener,
    /// For the operator.
    pub(crate) admin: TcpListener,
    /// Whether both are shut until the next round of deadlines, because there was no descriptor for a client.
    shut: bool,
    /// Until when nothing more is said about that.
    silent_until_ms: u64,
}

impl Doors {
    /// Both doors, open.
    pub(crate) const fn new(http: TcpListener, admin: TcpListener) -> Self {
        Self { http, admin, shut: false, silent_until_ms: 0 }
    }
}

/// The registrar is with shard 0, whose loop is the first.
pub(crate) const REGISTRAR_LOOP: usize = 0;

/// One thread's whole state.
pub(crate) struct CoreLoop {
    pub(super) shared: Arc<Shared>,
    pub(super) mesh: Mesh,
    /// See [`Roles::marks`]; none before recovery is done, and then no other role either.
    pub(super) marks: Option<Marks>,
    pub(super) trade: Option<Trade>,
    pub(super) follows: Follows,
    /// Bytes that streams were to be told before the first of their clients was heard in this turn; none before that.
    told_before_hearing: Option<usize>,
    connections: Connections,
    pub(super) now: TimeMs,
    pub(super) elapsed_ms: u64,
    /// The turn's time, as limits count it.
    moment: Moment,
    /// When the first held request may go on.
    held_until: Option<Moment>,
    pub(super) token: admin::Token,
    pub(super) desk: super::operator::desk::Desk,
    claimed: Position,
    /// How many breakers had tripped when this loop last rang the registrar's.
    trips_rung: u32,
    /// And when it last looked for keys whose orders are to be cancelled.
    trips_looked: u32,
    /// The end of the last frame that the journal's thread was woken for.
    told_journal: Position,
    /// The position up to which answers could leave at the last release.
    released: Position,
    /// Errands that wait for their turn on this loop or continue on it, each with the loop that sent it.
    errands: VecDeque<(usize, Box<ActJob>)>,
    /// The server's own acts for which the post had no room, each with the loop that it goes to.
    unsent: VecDeque<(usize, Box<ActJob>)>,
    /// Keys whose connections are lost, each with the request that has to be decided first.
    lost: Vec<(KeyOfOwner, WorkNo)>,
    /// Keys whose orders leave because a connection was lost; and if others were lost meanwhile, up to where the log has
    /// the orders that leave next.
    losing: BTreeMap<KeyOfOwner, Option<Position>>,
    /// Reads of its clients that are not answered yet.
    reads: UnderWay,
    /// When the loops that follow the log were last rung because of new frames.
    rang_followers_ms: u64,
    disk: Option<DiskWatch>,
    /// Until when no more is said of tables that are nearly full.
    tables_silent_until_ms: u64,
    /// Whether it was said that the disk hangs.
    disk_hangs: bool,
    /// Notices when the machine's clock was set; only on the loop with the doors.
    clock_steps: Option<Steps>,
    wait: Wait,
    watch: Watch,
    events: Vec<Ready>,
    /// By which deadlines of clients are judged.
    heard: HeardUntil,
    doors: Option<Doors>,
    prefixes: HostPrefixes,
    idle_turns: u32,
    /// When the last turn began, if it found no work and did not sleep.
    spun_from_ns: Option<u64>,
    sweep_idle_until_ms: u64,
    next_ingress: usize,
    drained: bool,
}

impl CoreLoop {
    /// A loop that has no roles yet.
    pub(crate) fn new(shared: &Arc<Shared>, mesh: Mesh, doors: Option<Doors>) -> Result<Self, String> {
        let name = &shared.plan.topology.loops[mesh.no()].name;
        let token = admin::Token::load(&shared.plan)?;
        Self::watching(shared, mesh, doors, token).map_err(|fault| format!("{name}: {fault}"))
    }

    fn watching(
        shared: &Arc<Shared>,
        mesh: Mesh,
        doors: Option<Doors>,
        token: admin::Token,
    ) -> std::io::Result<Self> {
        let watch = Watch::new()?;
        watch.add(shared.wakers[mesh.no()].bell(), Watched::Bell, Interest::READABLE)?;
        if let Some(doors) = &doors {
            watch.add(&doors.http, Watched::PublicDoor, Interest::READABLE)?;
            watch.add(&doors.admin, Watched::AdminDoor, Interest::READABLE)?;
        }
        let prefixes = roles::prefixes(&shared.plan);
        Ok(Self {
            wait: shared.plan.topology.loops[mesh.no()].wait,
            connections: Connections::new(shared.plan.limits.connections_max.saturating_add(OPERATORS_MAX)),
            shared: Arc::clone(shared),
            mesh,
            desk: super::operator::desk::Desk::default(),
            marks: None,
            trade: None,
            follows: Follows::Nothing,
            told_before_hearing: None,
            now: TimeMs(0),
            elapsed_ms: 0,
            moment: Moment::default(),
            held_until: None,
            token,
            claimed: Position(0),
            trips_rung: 0,
            trips_looked: 0,
            told_journal: Position(0),
            released: Position(0),
            errands: VecDeque::new(),
            unsent: VecDeque::new(),
            lost: Vec::new(),
            losing: BTreeMap::new(),
            reads: UnderWay::new(),
            rang_followers_ms: 0,
            disk: doors.is_some().then(|| DiskWatch::new(&shared.plan.data_dir, shared.plan.disk_free_min)),
            disk_hangs: false,
            tables_silent_until_ms: 0,
            clock_steps: doors.as_ref().and_then(|_| shared.clock.steps()),
            watch,
            events: Vec::with_capacity(64),
            heard: HeardUntil::default(),
            doors,
            prefixes,
            idle_turns: 0,
            spun_from_ns: None,
            sweep_idle_until_ms: 0,
            next_ingress: 0,
            drained: false,
        })
    }

    /// This loop's counters.
    fn tally(&self) -> &Tally {
        &self.shared.tallies[self.mesh.no()]
    }

    /// Counts a turn that had work in it.
    fn count_turn(&self, began_ns: u64) {
        let tally = self.tally();
        tally.turned(self.shared.clock.elapsed_ns() - began_ns);
        tally.connections.set(self.connections.count() as usize);
        tally.in_flight.set(self.mesh.in_flight());
        if let Some(trade) = self.trade.as_ref() {
            tally.undecided.set(trade.works.len());
            if let Some(shard) = &trade.shard {
                tally.resting.set(shard.resting_count());
                tally.positions.set(shard.position_count());
                tally.books_bytes.set(usize::try_from(shard.books_bytes()).expect("a pool fits memory"));
                tally.digests.set(shard.digest_count());
            }
            if let Some(known) = trade.verifier.known_signers() {
                tally.known_signers.set(known.tally());
            }
        }
    }

    /// Takes the roles once recovery has made them; they begin in the middle of this turn.
    fn take_roles(&mut self) {
        if self.marks.is_none()
            && let Some(Roles { marks, trade, follows }) = self.shared.roles[self.mesh.no()].pop()
        {
            (self.marks, self.trade, self.follows) = (Some(marks), trade, follows);
            self.begin_trade();
        }
    }

    fn begin_trade(&mut self) {
        if let Some(trade) = self.trade.as_mut() {
            trade.begin_turn(self.moment);
        }
    }

    /// Whether recovery is over for every loop, asked anew within the turn: a client that has read the ports must
    /// be served.
    pub(super) fn has_recovered(&mut self) -> bool {
        let has_recovered = Phase::Recovering < self.shared.phase();
        self.take_roles();
        has_recovered && self.marks.is_some()
    }

    /// Whether the last turn found no work and did not sleep.
    pub(super) const fn rests(&self) -> bool {
        self.spun_from_ns.is_some()
    }

    /// Whether requests are answered: it has recovered and what it waits for is there, and the disk does not hang, or no
    /// answer waits for it.
    pub(super) fn is_ready(&mut self) -> bool {
        let waits_for_disk = self.durability() == Durability::Durable;
        self.has_recovered() && self.shared.is_ready() && !(waits_for_disk && self.shared.disk_hangs())
    }

    /// When answers leave, by now: a log that is lost makes them wait for the disk.
    pub(super) fn durability(&self) -> Durability {
        self.marks.as_ref().map_or(self.shared.plan.durability, Marks::durability)
    }

    /// Whether everything works: recovery is over, and the end has not begun.
    pub(super) fn serves(&mut self) -> bool {
        self.has_recovered() && self.shared.phase() == Phase::Serving
    }
}

impl Drop for CoreLoop {
    /// A loop that dies takes the process with it: what it had open is unknown until the restart.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.ending.send(Ending::LoopDied);
        }
    }
}

impl Turns for CoreLoop {
    fn turn(&mut self) -> bool {
        let phase = self.shared.phase();
        if phase == Phase::Stopped {
            self.close_all();
            return false;
        }
        self.now = self.shared.clock.now_after(self.now);
        let began_ns = self.shared.clock.elapsed_ns();
        self.elapsed_ms = began_ns / 1_000_000;
        if let Some(from_ns) = self.spun_from_ns.take() {
            self.tally().spun(began_ns - from_ns);
        }
        self.moment = self.shared.clock.moment(self.elapsed_ms);
        self.take_roles();
        self.told_before_hearing = None;
        // 1. What epoll reports, and held requests.
        let mut busy = self.take_events(phase);
        if self.held_until.is_some_and(|until| until <= self.moment) {
            self.held_until = self.connections.release_held(self.moment);
        }
        // 2. Requests.
        self.begin_trade();
        busy |= self.serve_cancels(phase);
        busy |= self.serve_ready(phase);
        // 3. Other loops.
        busy |= self.take_messages();
        // 4. The roles' own work.
        busy |= self.work();
        // 5. Answers.
        self.finish();
        busy |= self.release();
        self.send_all(phase);
        // 6. Bells.
        self.mesh.ring_bells();
        // 7. Deadlines and streams, of which other loops may have to know.
        self.write_streams();
        busy |= self.check_times();
        self.deliver_streams();
        self.send_all(phase);
        self.send_streams(phase);
        self.mesh.ring_bells();
        // 8. The end, or rest.
        match phase {
            Phase::Recovering | Phase::Serving | Phase::Stopped => {}
            Phase::Leaving => self.close_doors(),
            Phase::Draining => self.drain(),
        }
        if busy || self.connections.any_to_serve() {
            self.idle_turns = 0;
            self.count_turn(began_ns);
        } else if !self.idle(phase) {
            self.spun_from_ns = Some(began_ns);
        }
        true
    }
}

/// An answer's `Connection` header.
pub(super) const fn connection_word(keep_alive: bool) -> respond::Connection {
    if keep_alive { respond::Connection::KeepAlive } else { respond::Connection::Close }
}
