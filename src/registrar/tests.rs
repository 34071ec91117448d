//! A registrar beside a ledger that follows its log: whatever the registrar does, the ledger must
//! know, and a registrar restored from that ledger must be the same.

use super::*;
use crate::auth::l2::Request;
use crate::auth::{Credentials, MacKey, derive, text};
use crate::domain::{
    Address, Collateral, ConditionId, FeeSchedule, MarketNo, Payout, ShardNo, Shares, Tick, TokenId,
    WalletKind, WalletNo, Word,
};
use crate::journal::Follower;
use crate::journal::frame::FIRST_POSITION;

mod acts;
mod entrance;
mod guards;
mod refusals;

const NOW: TimeMs = TimeMs(1_700_000_000_000);
const LOG_BYTES: u64 = 8 << 20;

struct Rig {
    registrar: Registrar,
    follower: Follower,
    ledger: Ledger,
}

impl Rig {
    fn new() -> Self {
        Self::with(64, 8, LOG_BYTES)
    }

    fn with(wallets: u32, markets: u32, log_bytes: u64) -> Self {
        let log = Arc::new(Log::anonymous(log_bytes));
        let (_, writer) = Registry::with_capacity(wallets, markets);
        let cells = Arc::new(Cells::new(wallets, 2));
        let ledger = Ledger::new();
        let registrar = Registrar::new(&ledger, writer, Arc::clone(&log), cells, identity(), 2);
        Self { registrar, follower: Follower::new(log, FIRST_POSITION, None), ledger }
    }

    fn registry(&self) -> &Registry {
        self.registrar.registry()
    }

    /// Lets the ledger catch up; returns how many frames there were.
    fn follow(&mut self) -> u64 {
        let before = self.ledger.frames();
        let limit = self.registrar.log.claimed();
        while let Some(frame) = self.follower.next(limit).expect("nothing was freed") {
            let record = Record::decode(frame.kind, frame.payload).expect("a record of ours");
            self.ledger.apply(frame.span.start, frame.span.end, &record).expect("no contradiction");
        }
        self.ledger.conserved().expect("conserved");
        self.ledger.frames() - before
    }

    /// A registrar that knows only what the ledger knows.
    fn restarted(&mut self) -> Registrar {
        self.restarted_with(64, 8)
    }

    fn restarted_with(&mut self, wallets: u32, markets: u32) -> Registrar {
        self.follow();
        let (_, mut writer) = Registry::with_capacity(wallets, markets);
        let cells = Arc::new(Cells::new(wallets, 2));
        restore(&self.ledger, &mut writer, &cells).expect("room");
        let log = Arc::clone(&self.registrar.log);
        Registrar::new(&self.ledger, writer, log, cells, identity(), 2)
    }

    /// Asserts that a restart would change nothing.
    fn check_restart(&mut self) {
        let restarted = self.restarted();
        assert_eq!(told(&restarted), told(&self.registrar));
    }

    fn balance(&self, address: Address) -> Collateral {
        let wallet = self.registry().wallet_of(&address).expect("known");
        self.registrar.cells.balance(wallet)
    }

    fn credit(&mut self, wallet: Address, amount: u64, reference: &str) -> Result<bool, Refusal> {
        self.registrar.credit(NOW, &MoneyOrder { wallet, amount: Collateral(amount), reference, kind: None })
    }

    fn credit_as(
        &mut self,
        kind: WalletKind,
        wallet: Address,
        amount: u64,
        reference: &str,
    ) -> Result<bool, Refusal> {
        let order = MoneyOrder { wallet, amount: Collateral(amount), reference, kind: Some(kind) };
        self.registrar.credit(NOW, &order)
    }

    fn debit(&mut self, wallet: Address, amount: u64, reference: &str) -> Result<bool, Refusal> {
        self.registrar.debit(NOW, &MoneyOrder { wallet, amount: Collateral(amount), reference, kind: None })
    }
}

fn identity() -> Identity {
    Identity { start: [9; 16], master: MasterSecret::new(&[1; 32]), chain: Chain::Amoy }
}

fn address(byte: u8) -> Address {
    Address([byte; 20])
}

fn nonce(byte: u8) -> Word {
    let mut nonce = [0; 32];
    nonce[31] = byte;
    Word(nonce)
}

fn market(byte: u8) -> NewMarket<'static> {
    NewMarket {
        event: None,
        market_id: Some(u64::from(byte)),
        condition: Some(ConditionId([byte; 32])),
        question: Some(Word([byte; 32])),
        tokens: Some([TokenId([byte; 32]), TokenId([byte + 100; 32])]),
        labels: ["Yes", "No"],
        neg_risk: false,
        tick: Tick::new(100).expect("a tick"),
        min_size: Shares(5_000_000),
        fee: FeeSchedule::FREE,
        mode: Mode::Open,
        payout: None,
        text: "{}",
    }
}

/// A market that brings no names.
fn nameless() -> NewMarket<'static> {
    NewMarket { market_id: None, condition: None, question: None, tokens: None, ..market(0) }
}

/// Everything that a registrar can be asked, as text, for comparing two of them.
fn told(registrar: &Registrar) -> String {
    use std::fmt::Write;
    let registry = registrar.registry();
    let mut told = format!("{:?} {:?}", registry.exchange_mode(), registry.fee_wallet());
    for number in (0..registry.wallet_count()).map(WalletNo) {
        let row = registry.wallet(number);
        let balance = registrar.cells.balance(number);
        // Not the chains between rows: their order depends on what came first.
        let says = (row.address, row.kind, row.principal(), row.frozen(), balance);
        write!(told, "\n{says:?}").expect("texts grow");
        if row.kind == WalletKind::Eoa {
            let mut wallets: Vec<_> = registry.wallets_of(number).collect();
            wallets.sort();
            let mut keys = registrar.keys(number, usize::MAX);
            keys.sort_by_key(|key| key.nonce);
            write!(told, " {wallets:?} {keys:?}").expect("texts grow");
        }
    }
    for number in (0..registry.market_count()).map(MarketNo) {
        write!(told, "\n{:?}", registry.market(number)).expect("texts grow");
    }
    for row in registry.breakers().filter(|row| row.is_set()) {
        write!(told, "\n{:?} {:?} {:?}", row.principal, row.key(), row.state()).expect("texts grow");
    }
    write!(told, "\n{:?}", registrar.switches().collect::<Vec<_>>()).expect("texts grow");
    let mut references: Vec<_> = registrar.references.iter().collect();
    references.sort_by_key(|(reference, _)| *reference);
    let mut events: Vec<_> = registrar.events.iter().collect();
    events.sort();
    let rest = (references, events, registrar.event_count, registrar.outstanding, registrar.next_market_id);
    write!(told, "\n{rest:?}").expect("texts grow");
    told
}
