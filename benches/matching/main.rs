//! What the book costs beside a plain one that does nothing else, and what a trading core costs around it.
//!
//! `cargo bench --bench matching` makes five million commands for each of four sizes (99 and 999 ticks, 10,000 and
//! 100,000 live orders; `workload`), and runs them on the room `book` and on the floor (`floor`), in turn, round by
//! round, on one CPU, and a million of them on a whole trading core (`trade_core`). All must make the model's fills in
//! the model's order, which a checksum verifies. A figure is the thread's CPU time for all commands, without
//! prefilling: the median of the rounds.
//!
//! Book and floor are measured twice. Either commands come alone, each unknown until its turn, or they wait in a ring,
//! as commands of other loops and of a list of cancels do in the server: then the memory that they touch first is
//! prefetched while the commands ahead of them run. With 100,000 live orders a book is larger than a core's cache, and
//! a command that comes alone waits for memory.
//!
//! The floor is what the targets compare with, and bounds nothing: it prefetches as plainly as it does everything, and
//! the book, which does that better, is quicker in most rows.
//!
//! Good is at most 25 ns a command with 10,000 live orders and 35 with 100,000, and at most 1.25 times the floor; for a
//! trading core 45 and 100 ns, without writing what was received, which the last line of its table adds.
//!
//! `cargo bench --bench matching -- core 60000` is one round of the trading core alone at the first size, with that
//! many commands, and `book 60000` one of book and floor with commands that come alone: what
//! `valgrind --tool=callgrind` counts. `full` measures a trading core whose memory of digests is full, `wallets` one
//! with a hundred times the wallets.

#![allow(clippy::print_stdout, reason = "the result is what this program is for")]
#![allow(clippy::cast_precision_loss, reason = "times are far below what a float holds exactly")]

#[path = "../loopback/figures.rs"]
mod figures;
mod floor;
mod trade_core;
mod workload;

use floor::Floor;
use outcry::book::Books;
use outcry::book::orders::{NEVER, Resting};
use outcry::domain::{self, MarketNo, OrderId, Outcome, Position, Price, Shares, Tick, WalletNo};
use outcry::memory::ahead;
use rustix::time::{ClockId, clock_gettime};
use trade_core::Core;
use workload::{Command, Kind, Side, Tally, Workload};

const COMMANDS: usize = 5_000_000;
const CORE_COMMANDS: usize = 1_000_000;
/// Digests that a shard remembers by default.
const DIGESTS: usize = 4_000_000;
const ROUNDS: usize = 5;
/// Wallets that make, as opposed to take.
const MAKERS: u32 = 1_000;
const MANY_MAKERS: u32 = 100_000;
/// Sizes: ticks, live orders.
const SIZES: [(u16, usize); 4] = [(99, 10_000), (99, 100_000), (999, 10_000), (999, 100_000)];
const SEED: u64 = 42;
const MARKET: MarketNo = MarketNo(0);
const CPU: usize = 0;

fn main() {
    let mut set = rustix::thread::CpuSet::new();
    set.set(CPU);
    rustix::thread::sched_setaffinity(None, &set).expect("the CPU is allowed");
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    match words.as_slice() {
        [] => {
            books(&SIZES, COMMANDS, ROUNDS, &COMING);
            trading_cores(&SIZES, CORE_COMMANDS, ROUNDS);
            full_memory();
            many_wallets();
        }
        [full] if full == "full" => full_memory(),
        [wallets] if wallets == "wallets" => many_wallets(),
        [core, commands] if core == "core" => {
            trading_cores(&SIZES[..1], commands.parse().expect("how many commands"), 1);
        }
        [book, commands] if book == "book" => {
            books(&SIZES[..1], commands.parse().expect("how many commands"), 1, &COMING[..1]);
        }
        _ => panic!("`core COMMANDS`, `book COMMANDS`, `full`, `wallets`, or nothing"),
    }
}

/// Book and floor.
fn books(sizes: &[(u16, usize)], commands: usize, rounds: usize, ways: &[Coming]) {
    println!(
        "{commands} commands, seed {SEED}, CPU {CPU}, {rounds} rounds in turn; ns a command: median (best)"
    );
    println!("ticks    live |       come |         book |        floor | ratio of medians | fills");
    for &(ticks, live) in sizes {
        let workload = Workload::new(ticks, live, commands, SEED);
        let orders_max = live + live / 2;
        let mut took = vec![(Vec::new(), Vec::new()); ways.len()];
        for _ in 0..rounds {
            for (&coming, (ours, theirs)) in ways.iter().zip(&mut took) {
                ours.push(run(&workload, Book::new(ticks, orders_max), coming));
                theirs.push(run(&workload, Floor::new(ticks, orders_max), coming));
            }
        }
        for (coming, (ours, theirs)) in ways.iter().zip(took) {
            let (ours, theirs) = (figure(ours), figure(theirs));
            println!(
                "{ticks:>5} {live:>7} | {:>10} | {:5.1} ({:4.1}) | {:5.1} ({:4.1}) | {:16.2} | {}",
                coming.text(),
                ours.0,
                ours.1,
                theirs.0,
                theirs.1,
                ours.0 / theirs.0,
                workload.tally.fills
            );
            let what = format!("a command, {ticks} ticks, {live} live orders, {}", coming.text());
            figures::note_beside(what, ours.0, figures::Unit::Ns, "floor", theirs.0);
        }
    }
}

/// Trading cores, and the cost of writing what was received of an order before it reaches one.
fn trading_cores(sizes: &[(u16, usize)], commands: usize, rounds: usize) {
    println!("{commands} commands with accounts, rules, fees and frames");
    println!("ticks    live |   trading core");
    for &(ticks, live) in sizes {
        let workload = Workload::new(ticks, live, commands, SEED);
        let round = || Core::new(ticks, live, live + commands, MAKERS).run(&workload, 0);
        note_core((ticks, live), "", (0..rounds).map(|_| round()).collect());
    }
    let (median, best) = figure((0..rounds).map(|_| trade_core::receiving(commands)).collect());
    println!(
        "what was received, written and summed: {median:.1} ({best:.1}) an order; 65 of 100 commands are orders"
    );
    figures::note("of an order, writing what was received", median, figures::Unit::Ns);
}

/// A trading core that has run for so long that each order makes it forget an older one.
fn full_memory() {
    let (ticks, live) = SIZES[0];
    // About two of three commands are orders.
    let untimed = DIGESTS / 2 * 3 + DIGESTS / 10;
    let workload = Workload::new(ticks, live, untimed + CORE_COMMANDS, SEED);
    let round = || Core::new(ticks, live, DIGESTS, MAKERS).run(&workload, untimed);
    let more = format!(", {DIGESTS} digests behind it");
    note_core((ticks, live), &more, (0..ROUNDS).map(|_| round()).collect());
}

/// A trading core of an exchange with many wallets, each equally likely to be next.
fn many_wallets() {
    let (ticks, live) = SIZES[0];
    let workload = Workload::new(ticks, live, CORE_COMMANDS, SEED);
    let round = || Core::new(ticks, live, live + CORE_COMMANDS, MANY_MAKERS).run(&workload, 0);
    let more = format!(", {MANY_MAKERS} wallets");
    note_core((ticks, live), &more, (0..ROUNDS).map(|_| round()).collect());
}

/// Prints the rounds of a trading core with these ticks and live orders, and with what `more` says.
fn note_core((ticks, live): (u16, usize), more: &str, rounds: Vec<f64>) {
    let (median, best) = figure(rounds);
    println!("{ticks:>5} {live:>7} | {median:6.1} ({best:5.1}){more}");
    let what = format!("a trading core's command, {ticks} ticks, {live} live orders{more}");
    figures::note(what, median, figures::Unit::Ns);
}

/// Median and best.
fn figure(mut rounds: Vec<f64>) -> (f64, f64) {
    rounds.sort_by(f64::total_cmp);
    (rounds[rounds.len() / 2], rounds[0])
}

/// How commands come.
#[derive(Clone, Copy)]
enum Coming {
    /// Each is unknown until its turn.
    Alone,
    /// The next ones wait in a ring.
    InARing,
}

const COMING: [Coming; 2] = [Coming::Alone, Coming::InARing];

impl Coming {
    const fn text(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::InARing => "in a ring",
        }
    }
}

/// How many commands ahead an order is prefetched, and its place in the index: a line from memory takes as long as four
/// commands. A trading core's commands take longer, so it looks one, three and five ahead.
const NEAR: usize = 4;
const FAR: usize = 8;

/// A book that executes the commands.
trait Engine {
    /// Prefetches what the command reads first.
    fn look_far_ahead(&self, command: &Command);
    /// Prefetches what the command reads after that.
    fn look_ahead(&self, command: &Command);
    fn add(&mut self, command: &Command);
    fn cancel(&mut self, id: &OrderId);
    fn take(&mut self, side: Side, shares: u32, tally: &mut Tally);
}

/// Nanoseconds a command; all fills are checked.
fn run(workload: &Workload, mut engine: impl Engine, coming: Coming) -> f64 {
    let mut tally = Tally::default();
    for command in &workload.prefill {
        engine.add(command);
    }
    let before = cpu_ns();
    execute_all(workload, &mut engine, coming, &mut tally);
    let took = cpu_ns() - before;
    assert_eq!(tally, workload.tally, "the fills are the model's");
    took / workload.commands.len() as f64
}

// A function of its own, as in the trading core, so that callgrind can count it alone.
#[inline(never)]
fn execute_all(workload: &Workload, engine: &mut impl Engine, coming: Coming, tally: &mut Tally) {
    for (index, command) in workload.commands.iter().enumerate() {
        if let (Coming::InARing, Some(ring)) = (coming, workload.commands.get(index..=index + 2 * FAR)) {
            // The workload is larger than every cache, whereas a server has its ring in the nearest one.
            ahead::prefetch(&ring[2 * FAR]);
            engine.look_far_ahead(&ring[FAR]);
            engine.look_ahead(&ring[NEAR]);
        }
        match command.kind {
            Kind::Add => engine.add(command),
            Kind::Cancel => engine.cancel(&command.digest),
            Kind::Take => engine.take(command.side, command.shares, tally),
        }
    }
}

fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

impl Engine for Floor {
    fn look_far_ahead(&self, command: &Command) {
        match command.kind {
            Kind::Add | Kind::Cancel => self.prefetch_bucket(&command.digest.0),
            Kind::Take => {
                if let Some(first) = self.first(command.side) {
                    self.prefetch(first);
                }
            }
        }
    }

    fn look_ahead(&self, command: &Command) {
        match command.kind {
            Kind::Add => {}
            Kind::Cancel => {
                if let Some(probably) = self.guess(&command.digest.0) {
                    self.prefetch(probably);
                }
            }
            Kind::Take => {
                if let Some(first) = self.first(command.side) {
                    self.prefetch_bucket(self.digest(first));
                }
            }
        }
    }

    fn add(&mut self, command: &Command) {
        self.add(&command.digest.0, command.order, command.side, command.price, command.shares);
    }

    fn cancel(&mut self, id: &OrderId) {
        assert!(self.cancel(&id.0), "only what rests is cancelled");
    }

    fn take(&mut self, side: Side, shares: u32, tally: &mut Tally) {
        self.take(side, shares, |maker, shares, price| tally.fill(maker, shares, price));
    }
}

/// The room `book` with one market.
struct Book {
    books: Books,
    tick: Tick,
    step: u16,
}

impl Book {
    fn new(ticks: u16, orders_max: usize) -> Self {
        let step = 10_000 / (ticks + 1);
        let tick = Tick::new(step).expect("a cent or a tenth");
        let orders_max = u32::try_from(orders_max).expect("slots are 32 bits");
        Self { books: Books::new(1, orders_max, 1 << 20, 0x9e37_79b9_7f4a_7c15), tick, step }
    }
}

const fn side(side: Side) -> domain::Side {
    match side {
        Side::Bid => domain::Side::Buy,
        Side::Ask => domain::Side::Sell,
    }
}

impl Engine for Book {
    fn look_far_ahead(&self, command: &Command) {
        match command.kind {
            Kind::Add | Kind::Cancel => self.books.orders().prefetch(&command.digest),
            Kind::Take => {
                if let Some(first) = self.books.first(MARKET, side(command.side)) {
                    self.books.prefetch(first);
                }
            }
        }
    }

    fn look_ahead(&self, command: &Command) {
        let orders = self.books.orders();
        match command.kind {
            Kind::Add => {}
            Kind::Cancel => {
                if let Some(probably) = orders.guess(&command.digest) {
                    self.books.prefetch(probably);
                }
            }
            Kind::Take => {
                if let Some(first) = self.books.first(MARKET, side(command.side)) {
                    orders.prefetch(&orders[first].id);
                }
            }
        }
    }

    fn add(&mut self, command: &Command) {
        let order = Resting {
            id: command.digest,
            open: Shares(command.shares.into()),
            position: Position(command.order.into()),
            expires_s: NEVER,
            principal: WalletNo(0),
            market: MARKET,
            price: Price::new(command.price * self.step).expect("on the grid"),
            side: side(command.side),
            outcome: Outcome::Zero,
        };
        self.books.rest(self.tick, &order).expect("there is room");
    }

    fn cancel(&mut self, id: &OrderId) {
        let found = self.books.orders().look_up(id).expect("only what rests is cancelled");
        self.books.remove_found(found);
    }

    fn take(&mut self, from: Side, mut shares: u32, tally: &mut Tally) {
        let mut next = self.books.first(MARKET, side(from));
        while shares > 0 {
            let slot = next.expect("what is taken is there");
            next = self.books.after(slot);
            if let Some(next) = next {
                self.books.prefetch(next);
            }
            let maker = &self.books.orders()[slot];
            let open = u32::try_from(maker.open.0).expect("at most 500");
            let traded = open.min(shares);
            shares -= traded;
            let maker_no = u32::try_from(maker.position.0).expect("an order's number");
            tally.fill(maker_no, traded, maker.price.ten_thousandths() / self.step);
            if traded == open {
                self.books.remove(slot);
            } else {
                self.books.reduce(slot, Shares(traded.into()));
            }
        }
    }
}
