//! Which number a name has, which every order asks about its token and its maker; beside the maps that
//! most people would use: one under a lock, as names are added while others look, one that nobody may
//! change, and a sorted one.
//!
//! All of them hold 100,000 wallets and as many markets. Half of the names looked up exist. A good number:
//! no more than the map that nobody may change.

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a bench stops at the first surprise")]

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::hash::Hash;
use std::hint::black_box;
use std::sync::RwLock;

use criterion::{Criterion, criterion_group, criterion_main};
use outcry::domain::{
    Address, ConditionId, FeeSchedule, MarketNo, Mode, Outcome, Shares, Tick, TokenId, WalletKind, WalletNo,
    Word,
};
use outcry::registry::{MarketFacts, Registry};

const ROWS: u32 = 100_000;

/// A name of `N` bytes, from the kind of what it names and its number.
fn name<const N: usize>(tag: u8, number: u32) -> [u8; N] {
    let mut state = u64::from(tag) << 32 | u64::from(number);
    std::array::from_fn(|_| {
        state = (state ^ state >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(0x9e37_79b9_7f4a_7c15);
        u8::try_from(state >> 56).unwrap()
    })
}

fn address(number: u32) -> Address {
    Address(name(1, number))
}

fn condition(number: u32) -> ConditionId {
    ConditionId(name(2, number))
}

/// The token of an outcome, numbered by its market's number times two plus the outcome.
fn token(number: u32) -> TokenId {
    TokenId(name(3, number))
}

fn token_of(number: u32) -> (MarketNo, Outcome) {
    (MarketNo(number / 2), if number.is_multiple_of(2) { Outcome::Zero } else { Outcome::One })
}

fn filled() -> std::sync::Arc<Registry> {
    let (registry, mut writer) = Registry::with_capacity(ROWS, ROWS);
    for number in 0..ROWS {
        let wallet = writer.add_wallet(address(number), WalletKind::Eoa, None);
        let market = writer.add_market(&MarketFacts {
            condition: condition(number),
            tokens: [token(2 * number), token(2 * number + 1)],
            market_id: number.into(),
            question_id: Word::ZERO,
            neg_risk: false,
            min_size: Shares(5_000_000),
            fee: FeeSchedule::FREE,
            shard_key: number,
            tick: Tick::new(100).unwrap(),
            mode: Mode::Open,
            payout: None,
        });
        assert_eq!((wallet, market), (Ok(WalletNo(number)), Ok(MarketNo(number))));
    }
    registry
}

/// Looks names up in an order that defeats caches.
fn beside<Name: Copy + Eq + Hash + Ord, Number: Copy + Debug + PartialEq>(
    criterion: &mut Criterion,
    what: &str,
    rows: &[(Name, Number)],
    strangers: &[Name],
    ours: impl Fn(&Name) -> Option<Number>,
) {
    let frozen: HashMap<Name, Number> = rows.iter().copied().collect();
    let sorted: BTreeMap<Name, Number> = rows.iter().copied().collect();
    let locked = RwLock::new(frozen.clone());
    let names: Vec<Name> = rows.iter().map(|(name, _)| *name).chain(strangers.iter().copied()).collect();
    for name in &names {
        assert_eq!(ours(name), frozen.get(name).copied());
        assert_eq!(ours(name), sorted.get(name).copied());
    }
    let mut next = 0;
    let mut any = || {
        next = (next + 1_048_583) % names.len();
        black_box(&names[next])
    };
    let mut group = criterion.benchmark_group(what);
    group.bench_function("outcry", |bencher| bencher.iter(|| ours(any())));
    group.bench_function("locked map", |bencher| {
        bencher.iter(|| locked.read().unwrap().get(any()).copied());
    });
    group.bench_function("map", |bencher| bencher.iter(|| frozen.get(any()).copied()));
    group.bench_function("sorted map", |bencher| bencher.iter(|| sorted.get(any()).copied()));
    group.finish();
}

fn lookups(criterion: &mut Criterion) {
    let registry = filled();
    let both = || (0..ROWS, ROWS..2 * ROWS);
    let (here, strange) = both();
    let tokens: Vec<_> = (0..2 * ROWS).map(|number| (token(number), token_of(number))).collect();
    let strangers: Vec<_> = (2 * ROWS..4 * ROWS).map(token).collect();
    beside(criterion, "the market of a token", &tokens, &strangers, |token| registry.token(token));
    let wallets: Vec<_> = here.map(|number| (address(number), WalletNo(number))).collect();
    let strangers: Vec<_> = strange.map(address).collect();
    beside(criterion, "the wallet of an address", &wallets, &strangers, |name| registry.wallet_of(name));
    let (here, strange) = both();
    let conditions: Vec<_> = here.map(|number| (condition(number), MarketNo(number))).collect();
    let strangers: Vec<_> = strange.map(condition).collect();
    beside(criterion, "the market of a condition", &conditions, &strangers, |name| registry.condition(name));
}

criterion_group!(benches, lookups);
criterion_main!(benches);
