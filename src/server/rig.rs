//! A server in this process that tests hold still: one whose trading loops they turn by hand, or one
//! that replays its log when they say so. Everything else of it runs as always.

use std::net::SocketAddr;

use super::core_loop::{CoreLoop, REGISTRAR_LOOP};
use super::plan::options::Options;
use super::plan::topology::{Topology, Wait};
use super::plan::{Plan, Start, plan_on};
use super::process::clock::Clock;
use super::process::start::{End, Running, begin, start_but};
use super::reading::Reading;
use super::threads::thread::Turns;
use super::trading::Trade;
use crate::auth::{KnownSigners, Tally};
use crate::domain::{
    Address, Collateral, ConditionId, FeeSchedule, MarketNo, Mode, Payout, Shares, Tick, TimeMs, TokenId,
};
use crate::registrar::{MoneyOrder, NewMarket, Registrar};

/// CPUs for the trading loops and for a loop of the reader's own, of which none is pinned.
const TWO_CPUS: &[usize] = &[0, 1];
/// The CPU of a server of one loop.
const ONE_CPU: &[usize] = &[0];

/// A server whose shards are ours to turn.
pub struct Rig {
    #[allow(clippy::vec_box, reason = "a loop is too large to be moved about")]
    cores: Vec<Box<CoreLoop>>,
    running: Running,
}

/// A market that a rig has made.
#[derive(Clone, Copy, Debug)]
pub struct RigMarket {
    /// Its tokens.
    pub tokens: [TokenId; 2],
    /// Its condition.
    pub condition: ConditionId,
    number: MarketNo,
}

impl Rig {
    /// Starts a server with these options, without a token as in `dev`; the reader has a loop of its own.
    pub fn start(options: &Options) -> Result<Self, String> {
        // All but the reader's own.
        Self::start_as_on(options, TWO_CPUS, Topology::reader_loop)
    }

    /// Starts one of which every loop is turned by hand, the reader's too, which is the last.
    pub fn start_whole(options: &Options) -> Result<Self, String> {
        Self::start_as_on(options, TWO_CPUS, |topology| topology.loops.len())
    }

    /// Starts one of which a single loop is everything, as on a machine with one CPU.
    pub fn start_on_one_loop(options: &Options) -> Result<Self, String> {
        Self::start_as_on(options, ONE_CPU, |topology| topology.loops.len())
    }

    fn start_as_on(
        options: &Options,
        cpus: &[usize],
        by_hand: impl Fn(&Topology) -> usize,
    ) -> Result<Self, String> {
        let mut plan = unpinned(options, cpus)?;
        let by_hand = by_hand(&plan.topology);
        // A turn with nothing to do must come back.
        for core in &mut plan.topology.loops[..by_hand] {
            core.wait = Wait::Spin;
        }
        let (running, cores) = start_but(by_hand, plan, Clock::real())?;
        let mut rig = Self { cores, running };
        rig.turn();
        Ok(rig)
    }

    /// The public listener's address.
    #[must_use]
    pub fn http(&self) -> SocketAddr {
        self.running.http()
    }

    /// One turn of every loop that is turned by hand; false at the end of the process.
    pub fn turn(&mut self) -> bool {
        let mut going = true;
        for no in 0..self.cores.len() {
            going &= self.turn_loop(no);
        }
        going
    }

    /// One turn of one loop; the others stand still. Shards' loops come first, then that of a feed apart.
    pub fn turn_loop(&mut self, no: usize) -> bool {
        self.cores[no].turn()
    }

    /// Whether the last turn of a loop found nothing to do.
    #[must_use]
    pub fn rests(&self, no: usize) -> bool {
        self.cores[no].rests()
    }

    /// Reads of a loop's own clients that the reader on it has taken and not answered.
    #[must_use]
    pub fn reads_of_its_own(&self, no: usize) -> usize {
        self.cores[no].follows.reading().map_or(0, Reading::own_count)
    }

    /// Gives each owner `amount`.
    pub fn credit(&mut self, owners: &[Address], amount: Collateral) -> Result<(), String> {
        let (now, registrar) = self.registrar()?;
        for (index, wallet) in owners.iter().enumerate() {
            let reference = format!("rig-{index}");
            let order = MoneyOrder { wallet: *wallet, amount, reference: &reference, kind: None };
            registrar.credit(now, &order).map_err(|refusal| refusal.to_string())?;
        }
        Ok(())
    }

    /// Makes a market. Markets go to the shards in turn.
    pub fn market(&mut self) -> Result<RigMarket, String> {
        let (now, registrar) = self.registrar()?;
        let names = registrar.next_market_names();
        let market = NewMarket {
            event: None,
            market_id: None,
            condition: None,
            question: None,
            tokens: None,
            labels: ["Yes", "No"],
            neg_risk: false,
            tick: Tick::new(100).ok_or("a cent is a tick")?,
            min_size: Shares(5_000_000),
            fee: FeeSchedule::FREE,
            mode: Mode::Open,
            payout: None,
            text: "{}",
        };
        let number = registrar.add_market(now, &market).map_err(|refusal| refusal.to_string())?;
        Ok(RigMarket { tokens: names.tokens, condition: names.condition, number })
    }

    /// The shard that has the market.
    pub fn shard_of(&mut self, market: &RigMarket) -> Result<usize, String> {
        for no in 0..self.cores.len() {
            if self.trade(no)?.1.shard.as_ref().is_some_and(|shard| shard.owns(market.number)) {
                return Ok(no);
            }
        }
        Err("no shard has the market".to_owned())
    }

    /// How often the loop of a shard knew a signer; none if it keeps no tables.
    pub fn known_signers(&mut self, shard: usize) -> Result<Option<Tally>, String> {
        Ok(self.trade(shard)?.1.verifier.known_signers().map(KnownSigners::tally))
    }

    /// Resolves a market: its first outcome pays everything.
    pub fn resolve(&mut self, market: &RigMarket) -> Result<(), String> {
        let payout = Payout::new(1_000_000).ok_or("a share pays at most one")?;
        let owner = self.shard_of(market)?;
        let (now, trade) = self.trade(owner)?;
        let resolved = trade.own_shard().resolve(now, market.number, payout);
        resolved.map(drop).map_err(|refusal| format!("{refusal:?}"))
    }

    fn registrar(&mut self) -> Result<(TimeMs, &mut Registrar), String> {
        let (now, trade) = self.trade(REGISTRAR_LOOP)?;
        Ok((now, trade.registrar.as_mut().ok_or("the loop has no registrar")?))
    }

    fn trade(&mut self, no: usize) -> Result<(TimeMs, &mut Trade), String> {
        let core = &mut self.cores[no];
        core.marks.as_ref().ok_or("the loop has no roles yet")?;
        Ok((core.now, core.trade.as_mut().ok_or("the loop has no shard")?))
    }
}

/// A server whose loops run, but whose log is not replayed yet.
pub struct Early {
    running: Running,
}

impl Early {
    /// Opens the doors of a server with these options, without a token as in `dev`.
    pub fn start(options: &Options) -> Result<Self, String> {
        let (running, _) = begin(0, unpinned(options, TWO_CPUS)?, Clock::real())?;
        Ok(Self { running })
    }

    /// The public listener's address.
    #[must_use]
    pub fn http(&self) -> SocketAddr {
        self.running.http()
    }

    /// Replays the log and serves.
    pub fn recover(&mut self) -> Result<(), String> {
        self.running.recover(|_| Ok(()))
    }

    /// Ends it; false if that was not in good order.
    #[must_use]
    pub fn stop(mut self) -> bool {
        self.running.stop() == End::Clean
    }
}

fn unpinned(options: &Options, cpus: &[usize]) -> Result<Plan, String> {
    let mut plan = plan_on(options, Start { dev: true, ..Start::default() }, cpus)?;
    // As in `serve`, whose trading loops are what is measured here.
    plan.explains = false;
    for core in &mut plan.topology.loops {
        core.cpu = None;
    }
    Ok(plan)
}

impl std::fmt::Debug for Early {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Early").field("http", &self.http()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Rig {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Rig").field("http", &self.http()).finish_non_exhaustive()
    }
}
