//! A trading core under the same commands: every rule judged, accounts and collateral kept, self-trades looked for,
//! fees charged, and one frame a command, with all that was signed, written to a log in memory.
//!
//! Orders arrive ready, as from the loop that checked their signatures: what was received is already written and
//! checksummed. That is timed separately, see [`receiving`].
//!
//! The core looks up to five commands ahead and prefetches what they will touch. In the server it can do so because
//! commands of other loops wait in a ring, cancels in a list, and an order's signature check takes time.
//!
//! A hundred wallets take; other wallets, a thousand or more, make. Between two blocks of commands the log is read
//! back, its fills are compared with the model's, and its ring is freed. That is not timed, because other threads do
//! it in an exchange.

use super::cpu_ns;
use super::workload::{Command, Kind, Side, Tally, Workload};
use outcry::domain::{
    self, Address, ApiKey, Collateral, ConditionId, FeeSchedule, MarketNo, Mode, OrderFields, OrderId,
    OrderType, Outcome, Position, SelfTrade, ShardNo, Shares, SignatureType, SignedOrder, Tick, TimeMs,
    TokenId, WalletKind, WalletNo, Word,
};
use outcry::journal::layout::{ActKind, Record};
use outcry::journal::{Follower, Log};
use outcry::memory::cells::Cells;
use outcry::registry::{MarketFacts, Registry};
use outcry::shard::ahead::{Before, Coming};
use outcry::shard::{Funding, PlaceOrder, Placed, ReadyOrder, Shard, ShardSettings, Status, UserAct};
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;

const TAKERS: u32 = 100;
const MARKET: MarketNo = MarketNo(0);
const NOW: TimeMs = TimeMs(1_700_000_000_000);
/// Millionths.
const ONE: u64 = 1_000_000;
const RING_BYTES: u64 = 64 << 20;
/// Commands between two readings of the log.
const BLOCK: usize = 4_096;
/// Commands whose orders are made ready together: few enough to stay in a core's own cache, where a server has them,
/// and enough to make the reading of the clock between batches negligible.
const BATCH: usize = 512;

/// One shard and what it runs on.
pub(crate) struct Core {
    shard: Shard,
    log: Arc<Log>,
    follower: Follower,
    /// An order that is overwritten for each command, as the reader of bodies overwrites its own.
    order: PlaceOrder,
    /// A batch of ready orders; the entry of a cancel is unused.
    ready: Vec<ReadyOrder>,
    /// The time at which the next order is signed.
    timestamp_ms: u64,
    step: u16,
    /// Each resting order's number by its position.
    orders: HashMap<Position, u32>,
    makers: u32,
    taken: u32,
}

impl Core {
    /// A core with this many ticks, live orders, remembered digests and wallets that make.
    pub(crate) fn new(ticks: u16, live: usize, digests: usize, makers: u32) -> Self {
        let step = 10_000 / (ticks + 1);
        let resting_max = u32::try_from(live + live / 2).expect("slots are 32 bits");
        let settings = ShardSettings {
            shard: ShardNo(0),
            shards: 1,
            funding: Funding::Market,
            min_notional: Collateral(1),
            resting_max,
            open_per_owner_max: resting_max,
            digests_max: u32::try_from(digests).expect("numbers are 32 bits"),
            accounts_max: makers + TAKERS,
            accounts_per_wallet_max: 1,
            markets_max: 1,
            books_bytes: 1 << 20,
            secret: 0x9e37_79b9_7f4a_7c15,
        };
        let wallets = makers + TAKERS;
        let cells = Arc::new(Cells::new(wallets, 1));
        let (registry, mut writer) = Registry::with_capacity(wallets, 1);
        for number in 0..wallets {
            let mut address = Address::ZERO;
            address.0[..4].copy_from_slice(&(number + 1).to_le_bytes());
            let wallet = writer.add_wallet(address, WalletKind::Eoa, None).expect("there is room");
            cells.credit(wallet, Collateral(1_000_000_000 * ONE));
        }
        writer.add_market(&market(step)).expect("there is room");
        let log = Arc::new(touched_log());
        let follower = Follower::new(Arc::clone(&log), log.claimed(), None);
        let mut shard = Shard::new(settings, cells, Arc::clone(&registry), Arc::clone(&log));
        for number in 0..wallets {
            shard.act(NOW, &split(number)).expect("each has the money");
        }
        Self {
            shard,
            log,
            follower,
            order: blank(),
            ready: vec![ReadyOrder::BLANK; BATCH],
            // So early that not even the last command's time is ahead of the clock.
            timestamp_ms: NOW.0 - 100_000_000,
            step,
            orders: HashMap::new(),
            makers,
            taken: 0,
        }
    }

    /// Nanoseconds a command after the first `untimed` ones; all fills are checked.
    pub(crate) fn run(mut self, workload: &Workload, untimed: usize) -> f64 {
        let mut tally = Tally::default();
        for block in workload.prefill.chunks(BLOCK) {
            self.execute_block(block);
            self.read_back(&mut tally);
        }
        let (first, timed) = workload.commands.split_at(untimed);
        for block in first.chunks(BLOCK) {
            self.execute_block(block);
            self.read_back(&mut tally);
        }
        let mut took = 0.0;
        for block in timed.chunks(BLOCK) {
            took += self.execute_block(block);
            self.read_back(&mut tally);
        }
        assert_eq!(tally, workload.tally, "the fills are the model's");
        took / timed.len() as f64
    }

    /// Nanoseconds of a block's commands alone.
    fn execute_block(&mut self, commands: &[Command]) -> f64 {
        let mut took = 0.0;
        for batch in commands.chunks(BATCH) {
            self.make_ready(batch);
            let before = cpu_ns();
            self.execute_all(batch);
            took += cpu_ns() - before;
        }
        took
    }

    fn make_ready(&mut self, commands: &[Command]) {
        for (index, command) in commands.iter().enumerate() {
            self.fill_in(command);
            self.order.write_to(&mut self.ready[index]);
        }
    }

    // A function of its own, so that callgrind's `--toggle-collect` can count it alone.
    #[inline(never)]
    fn execute_all(&mut self, commands: &[Command]) {
        for (index, command) in commands.iter().enumerate() {
            for before in Before::ALL {
                let coming = index + 1 + before.commands();
                if let Some(command) = commands.get(coming) {
                    self.shard.prefetch(self.coming(coming, command), before);
                }
            }
            self.execute(index, command);
        }
    }

    fn coming<'a>(&'a self, index: usize, command: &'a Command) -> Coming<'a> {
        match command.kind {
            Kind::Cancel => Coming::cancel(&command.digest),
            Kind::Add | Kind::Take => self.ready[index].coming(),
        }
    }

    fn execute(&mut self, index: usize, command: &Command) {
        let expected = match command.kind {
            Kind::Cancel => {
                let principal = self.maker(command.order);
                let cancelled = self.shard.cancel(NOW, principal, &command.digest);
                cancelled.expect("only what rests is cancelled");
                return;
            }
            Kind::Add => Status::Live,
            Kind::Take => Status::Matched,
        };
        let placed = self.shard.place(NOW, &self.ready[index]);
        assert!(matches!(placed, Placed::Accepted { status, .. } if status == expected), "{placed:?}");
    }

    /// The owner of a resting order: consecutive orders get wallets that are far apart.
    const fn maker(&self, order: u32) -> WalletNo {
        WalletNo(order.wrapping_mul(0x9e37_79b9) % self.makers)
    }

    fn fill_in(&mut self, command: &Command) {
        let (side, price, wallet) = match command.kind {
            Kind::Cancel => return,
            Kind::Add => (command.side, command.price * self.step, self.maker(command.order)),
            Kind::Take => {
                self.taken += 1;
                // As good as a market order: it takes down to the last price of the other side.
                let (side, price) = match command.side {
                    Side::Bid => (Side::Ask, self.step),
                    Side::Ask => (Side::Bid, 10_000 - self.step),
                };
                (side, price, WalletNo(self.makers + self.taken % TAKERS))
            }
        };
        let order = &mut self.order;
        (order.id, order.wallet, order.principal) = (command.digest, wallet, wallet);
        let shares = u64::from(command.shares) * ONE;
        let collateral = shares / 10_000 * u64::from(price);
        let fields = &mut order.order.fields;
        (fields.side, fields.maker_amount, fields.taker_amount) = match side {
            Side::Bid => (domain::Side::Buy, collateral, shares),
            Side::Ask => (domain::Side::Sell, shares, collateral),
        };
        fields.salt = salt(command.order);
        fields.timestamp_ms = self.timestamp_ms;
        self.timestamp_ms += 1;
    }

    /// Reads what was written, counts its fills, and frees it.
    fn read_back(&mut self, tally: &mut Tally) {
        let limit = self.log.claimed();
        while let Some(frame) = self.follower.next(limit).expect("the ring holds a block") {
            let record = Record::decode(frame.kind, frame.payload).expect("shards write whole records");
            let Record::OrderPlaced(placed) = record else { continue };
            let word = placed.fields.salt.0;
            let order = u32::from_be_bytes([word[28], word[29], word[30], word[31]]);
            self.orders.insert(frame.span.start, order);
            for fill in &placed.fills {
                let shares = u32::try_from(fill.shares.0 / ONE).expect("at most 500");
                tally.fill(self.orders[&fill.maker], shares, fill.price.ten_thousandths() / self.step);
            }
        }
        self.log.free(self.follower.position());
    }
}

/// Nanoseconds an order for what was received: writing and checksumming its fields and signature.
pub(crate) fn receiving(orders: usize) -> f64 {
    let mut order = blank();
    let mut ready = vec![ReadyOrder::BLANK; BATCH];
    let mut took = 0.0;
    for _ in 0..orders.div_ceil(BATCH) {
        let before = cpu_ns();
        for place in &mut ready {
            order.order.fields.timestamp_ms += 1;
            order.write_to(place);
        }
        took += cpu_ns() - before;
        black_box(&ready);
    }
    took / orders.next_multiple_of(BATCH) as f64
}

/// A log that was written all the way around once: in an exchange its pages are mapped from the start.
fn touched_log() -> Log {
    let log = Log::anonymous(RING_BYTES);
    while log.claimed().0 <= RING_BYTES {
        log.append(1, &[0; 4_000]);
        log.free(log.claimed());
    }
    log
}

fn salt(order: u32) -> Word {
    let mut word = [0; 32];
    word[28..].copy_from_slice(&order.to_be_bytes());
    Word(word)
}

fn market(step: u16) -> MarketFacts {
    MarketFacts {
        condition: ConditionId([1; 32]),
        tokens: [TokenId([2; 32]), TokenId([3; 32])],
        market_id: 1,
        question_id: Word([4; 32]),
        neg_risk: false,
        min_size: Shares(ONE),
        fee: FeeSchedule {
            rate: 40_000,
            exponent: 1,
            taker_only: true,
            builder_share_bps: 0,
            rebate_rate: 0,
            version: 0,
        },
        shard_key: 0,
        tick: Tick::new(step).expect("a cent or a tenth"),
        mode: Mode::Open,
        payout: None,
    }
}

/// Every wallet begins with half a billion of both outcomes.
fn split(number: u32) -> UserAct {
    UserAct {
        act: ActKind::Split,
        principal: WalletNo(number),
        wallet: WalletNo(number),
        market: MARKET,
        amount: Shares(500_000_000 * ONE),
        id: OrderId::ZERO,
        salt: Word::ZERO,
        timestamp_ms: NOW.0,
        signature: [0; domain::order::SIGNATURE_BYTES_MAX],
        signature_len: 0,
    }
}

fn blank() -> PlaceOrder {
    let fields = OrderFields {
        salt: Word::ZERO,
        maker: Address::ZERO,
        signer: Address::ZERO,
        token: TokenId([2; 32]),
        maker_amount: 0,
        taker_amount: 0,
        side: domain::Side::Buy,
        signature_type: SignatureType::Eoa,
        timestamp_ms: 0,
        metadata: Word::ZERO,
        builder: Word::ZERO,
    };
    let order = SignedOrder {
        fields,
        signature: [0x5a; domain::order::SIGNATURE_BYTES_MAX],
        signature_len: 65,
        expiration_s: 0,
        deadline_ms: 0,
        order_type: OrderType::Gtc,
        post_only: false,
        self_trade: SelfTrade::ExpireTaker,
        owner: ApiKey::ZERO,
        condition: None,
    };
    let nobody = WalletNo(0);
    PlaceOrder {
        order,
        id: OrderId::ZERO,
        principal: nobody,
        wallet: nobody,
        market: MARKET,
        outcome: Outcome::Zero,
    }
}
