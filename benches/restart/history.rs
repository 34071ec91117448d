//! A long history, written into the log of a data directory as fast as the log takes it.
//!
//! Of ten orders one rests for good, three are cancelled and six trade in pairs, each pair a mint:
//! everything that a state consists of, without a matching engine. The same counts always give the
//! same frames.

use std::ops::Range;
use std::path::Path;

use outcry::domain::{
    Address, ApiKey, Collateral, ConditionId, FeeSchedule, MarketNo, Mode, OrderFields, OrderId, OrderType,
    Outcome, Position, Price, SelfTrade, Shares, Side, SignatureType, Tick, TimeMs, TokenId, WalletKind,
    WalletNo, Word,
};
use outcry::journal::layout::{
    Fill, MarketAdded, MatchKind, Money, MoneyDirection, OrderPlaced, OrdersRemoved, PlacedResult, Record,
    RemovalReason, WalletAdded,
};
use outcry::journal::{Durability, Options, Started, open};

const WALLETS: u32 = 1_000;
const MARKETS: u32 = 200;
/// Orders of one round of the pattern.
const ROUND: u64 = 10;
const SHARES: Shares = Shares(10_000_000);
const SHARDS: u16 = 2;

/// Writes the orders with these numbers after the earlier ones; a tenth of all rest at the end.
pub(crate) fn write(data_dir: &Path, segment_bytes: u64, orders: Range<u64>) -> Result<Position, String> {
    let options = Options {
        durability: Durability::Committed,
        log_path: Some(data_dir.join("generator-log")),
        segment_bytes,
        ..Options::new(data_dir)
    };
    let opened = open(options).map_err(|fault| fault.to_string())?;
    let started = opened.start(TimeMs(1), SHARDS, Box::new(|_| {})).map_err(|fault| fault.to_string())?;
    let time = 1_700_000_000_000 + orders.start;
    let mut writer = Writer { started, payload: Vec::new(), time, orders: orders.start };
    if orders.start == 0 {
        writer.open_exchange();
    }
    while writer.orders < orders.end {
        writer.round();
    }
    let end = writer.started.log.claimed();
    writer.started.writer.stop(TimeMs(writer.time)).map_err(|fault| fault.to_string())?;
    Ok(end)
}

struct Writer {
    started: Started,
    payload: Vec<u8>,
    time: u64,
    orders: u64,
}

impl Writer {
    fn says(&mut self, record: impl Into<Record>) -> Position {
        let record = record.into();
        self.payload.clear();
        record.encode(&mut self.payload);
        while !self.started.log.room_for_order(SHARDS) {
            self.started.log.wake_writer();
            std::thread::yield_now();
        }
        self.started.log.append(record.kind(), &self.payload).start
    }

    fn open_exchange(&mut self) {
        let time = TimeMs(self.time);
        for wallet in (0..WALLETS).map(WalletNo) {
            let kind = WalletKind::Eoa;
            self.says(WalletAdded { time, wallet, address: address(wallet), kind, principal: Some(wallet) });
            let direction = MoneyDirection::Credit;
            let reference = format!("opening {}", wallet.0);
            self.says(Money { time, wallet, direction, amount: Collateral(1 << 52), reference });
        }
        for market in 0..MARKETS {
            self.says(MarketAdded {
                time,
                market: MarketNo(market),
                event: None,
                shard_key: market,
                market_id: 1_000_000_000 + u64::from(market),
                condition: ConditionId(word(1, u64::from(market))),
                question: Word(word(2, u64::from(market))),
                tokens: [3, 4].map(|tag| TokenId(word(tag, u64::from(market)))),
                labels: vec!["Yes".to_owned(), "No".to_owned()],
                neg_risk: false,
                tick: Tick::new(100).expect("0.01 is a tick"),
                min_size: Shares(5_000_000),
                fee: FeeSchedule::FREE,
                mode: Mode::Open,
                payout: None,
                text: format!("{{\"question\":\"Market {market}?\",\"slug\":\"market-{market}\"}}"),
            });
        }
    }

    fn round(&mut self) {
        let rest = self.order(Outcome::Zero, 10 + self.orders / ROUND % 30);
        self.says(rest);
        let mut cancelled = Vec::new();
        for _ in 0..3 {
            let order = self.order(Outcome::One, 20);
            cancelled.push(self.says(order));
        }
        let (time, reason) = (TimeMs(self.time), RemovalReason::Cancelled);
        self.says(OrdersRemoved { time, reason, orders: cancelled });
        for _ in 0..3 {
            let maker = self.order(Outcome::Zero, 45);
            let (market, price) = (maker.market, maker.price);
            let maker = self.says(maker);
            let mut taker = OrderPlaced { market, ..self.order(Outcome::One, 55) };
            let maker_leg = price.cost_floor(SHARES);
            taker.result = PlacedResult::Filled;
            taker.open = Shares::ZERO;
            taker.fills.push(Fill {
                maker,
                shares: SHARES,
                maker_leg,
                taker_leg: Collateral(SHARES.0) - maker_leg,
                maker_fee: Collateral::ZERO,
                taker_fee: Collateral::ZERO,
                kind: MatchKind::Mint,
                price,
            });
            self.says(taker);
        }
    }

    /// The next order, a BUY that rests.
    fn order(&mut self, outcome: Outcome, cents: u64) -> OrderPlaced {
        self.orders += 1;
        self.time += 1;
        let number = self.orders;
        let market = MarketNo(u32::try_from(number / ROUND % u64::from(MARKETS)).expect("few markets"));
        let wallet = WalletNo(u32::try_from(number * 7 % u64::from(WALLETS)).expect("few wallets"));
        let price = Price::new(u16::try_from(cents * 100).expect("below one")).expect("in range");
        OrderPlaced {
            time: TimeMs(self.time),
            market,
            outcome,
            wallet,
            principal: wallet,
            id: OrderId(word(5, number)),
            fields: OrderFields {
                salt: Word(word(6, number)),
                maker: address(wallet),
                signer: address(wallet),
                token: TokenId(word(3 + outcome as u64, u64::from(market.0))),
                maker_amount: price.cost_floor(SHARES).0,
                taker_amount: SHARES.0,
                side: Side::Buy,
                signature_type: SignatureType::Eoa,
                timestamp_ms: self.time,
                metadata: Word::ZERO,
                builder: Word::ZERO,
            },
            signature: vec![7; 65],
            expiration_s: 0,
            order_type: OrderType::Gtc,
            post_only: false,
            self_trade: SelfTrade::ExpireTaker,
            owner: ApiKey([9; 16]),
            price,
            result: PlacedResult::Rests,
            stopped: None,
            open: SHARES,
            reserved: Collateral::ZERO,
            fills: Vec::new(),
            removed: Vec::new(),
        }
    }
}

fn address(wallet: WalletNo) -> Address {
    let word = word(7, u64::from(wallet.0));
    Address(word[..20].try_into().expect("20 of 32 bytes"))
}

/// 32 bytes that look like a hash: splitmix64 over a tag and a number.
fn word(tag: u64, number: u64) -> [u8; 32] {
    let mut state = (tag << 56) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut out = [0; 32];
    for part in out.chunks_exact_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        part.copy_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes());
    }
    out
}
