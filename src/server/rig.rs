//! A server in this process whose first loop is turned by hand, for tests that must see what one
//! turn does. Everything else of it runs as always.

use std::net::SocketAddr;

use super::clock::Clock;
use super::core_loop::CoreLoop;
use super::executor::Turns;
use super::options::Options;
use super::plan::{Start, plan_on};
use super::start::{Running, start_but};
use super::topology::Wait;
use crate::domain::{Address, Collateral, FeeSchedule, Mode, Shares, Tick, TokenId};
use crate::registrar::{MoneyOrder, NewMarket};

/// A server with one shard, whose loop is ours to turn.
pub struct Rig {
    core: Box<CoreLoop>,
    running: Running,
}

impl Rig {
    /// Starts a server with these options, as small as `dev`.
    pub fn start(options: &Options) -> Result<Self, String> {
        let mut plan = plan_on(options, Start { dev: true, ..Start::default() }, &[0, 1])?;
        for core in &mut plan.topology.loops {
            core.cpu = None;
        }
        // A turn with nothing to do must come back.
        plan.topology.loops[0].wait = Wait::Spin;
        let (running, core) = start_but(Some(0), plan, Clock::real())?;
        let mut core = core.expect("the first loop was left to us");
        core.turn();
        Ok(Self { core, running })
    }

    /// The public listener's address.
    #[must_use]
    pub fn http(&self) -> SocketAddr {
        self.running.http()
    }

    /// One turn of the first loop; false at the end of the process.
    pub fn turn(&mut self) -> bool {
        self.core.turn()
    }

    /// Gives each owner `amount` and makes a market, whose tokens are returned.
    pub fn seed(&mut self, owners: &[Address], amount: Collateral) -> Result<[TokenId; 2], String> {
        let now = self.core.now;
        let roles = self.core.roles.as_mut().ok_or("the loop has no roles yet")?;
        let trade = roles.trade.as_mut().ok_or("the loop has no shard")?;
        let registrar = trade.registrar.as_mut().ok_or("the loop has no registrar")?;
        for (index, wallet) in owners.iter().enumerate() {
            let reference = format!("rig-{index}");
            let order = MoneyOrder { wallet: *wallet, amount, reference: &reference };
            registrar.credit(now, &order).map_err(|refusal| refusal.to_string())?;
        }
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
        registrar.add_market(now, &market).map_err(|refusal| refusal.to_string())?;
        Ok(names.tokens)
    }
}

impl std::fmt::Debug for Rig {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Rig").field("http", &self.http()).finish_non_exhaustive()
    }
}
