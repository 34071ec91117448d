//! Shards on threads of their own, sharing cells and the log as in a server.
//!
//! The scripts interleave shards step by step; here the machine does so between any two
//! instructions. The ledger that follows the log finds any frame that spends what is not there. At
//! the end every cell and every share is where the log says.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(unreachable_pub, dead_code, reason = "the scripts' files are shared with other tests")]

#[path = "scripts/fast.rs"]
mod fast;
#[path = "scripts/language.rs"]
mod language;
#[path = "scripts/names.rs"]
mod names;
#[path = "scripts/random.rs"]
mod random;

use fast::Fast;
use language::{Command, MarketLine, Setup, parse};
use names::Names;
use outcry::domain::{MarketNo, Shares, Side, TimeMs};
use outcry::journal::Log;
use outcry::journal::layout::{MoneyDirection, RemovalReason};
use outcry::ledger::OrderState;
use outcry::shard::{PlaceOrder, Placed, Shard};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;

const NOW: TimeMs = TimeMs(1_700_000_000_000);
const ORDERS_PER_SHARD: usize = 4_000;
const MARKETS: [&str; 8] = ["m", "n", "o", "p", "q", "r", "s", "t"];

fn venue(shards: u16, reserved: bool) -> (Fast, Names) {
    let setup = Setup {
        shards: vec![shards],
        reserved,
        notional: 0,
        orders: 20_000,
        open: 20_000,
        digests: 100_000,
        accounts: 1_000,
        each: 1_000,
        ladders: 4,
    };
    let (mut fast, mut names) = (Fast::new(&setup, shards), Names::default());
    for (number, name) in (0..).zip(MARKETS) {
        let line = MarketLine {
            name: name.to_owned(),
            tick: 100,
            fee_rate: 44_100,
            exponent: 1,
            builder_bps: 0,
            makers_pay: number % 2 == 1,
            min_size: 0,
        };
        fast.add_market(NOW, MarketNo(number), &line);
        names.markets.push(line);
    }
    // So little that cells run short all the time; reserved collateral does not.
    let credit = if reserved { 2_000_000_000 } else { 200_000_000 };
    for trader in random::TRADERS {
        let (wallet, new) = names.wallet(trader);
        for (wallet, principal) in new {
            fast.add_wallet(NOW, wallet, principal);
        }
        fast.money(NOW, wallet, MoneyDirection::Credit, credit);
    }
    (fast, names)
}

/// The orders of one shard, drawn before the threads start.
fn orders(names: &mut Names, shard: u16, shards: u16) -> Vec<PlaceOrder> {
    let markets: Vec<&str> = MARKETS
        .iter()
        .enumerate()
        .filter(|(number, _)| number % usize::from(shards) == usize::from(shard))
        .map(|(_, name)| *name)
        .collect();
    let mut draw = random::Draw::from_seed(u64::from(shard) + 100 * u64::from(shards));
    let draw_one = |label| {
        let text = random::order(&mut draw, label, &markets);
        let (_, lines) = parse(&text);
        let Command::Order(line) = &lines[0].command else {
            panic!("{text:?} is no order");
        };
        let (wallet, _) = names.wallet(&line.who);
        names.place(line, wallet, NOW)
    };
    let first = u64::from(shard) * ORDERS_PER_SHARD as u64;
    (first..).take(ORDERS_PER_SHARD).map(draw_one).collect()
}

/// Places, cancels and sweeps; returns how many orders were filled.
fn trade(shard: &mut Shard, orders: &[PlaceOrder], start: &Barrier, log: &Log) -> usize {
    start.wait();
    let mut filled = 0;
    for (index, order) in orders.iter().enumerate() {
        // The follower frees the ring; a server would answer 503 here instead.
        while !log.room_for_order(4) {
            std::thread::yield_now();
        }
        if matches!(shard.place(NOW, &order.ready()), Placed::Accepted { trade: Some(_), .. }) {
            filled += 1;
        }
        if index % 2 == 1 {
            let old: &PlaceOrder = &orders[index / 2];
            // Most have left by then.
            let _ = shard.cancel(NOW, old.principal, &old.id);
        }
        if index % 3 == 2 {
            shard.sweep(NOW);
        }
    }
    filled
}

fn run(shards: u16, reserved: bool) {
    let (mut fast, mut names) = venue(shards, reserved);
    let work: Vec<Vec<PlaceOrder>> = (0..shards).map(|shard| orders(&mut names, shard, shards)).collect();
    let cores = std::mem::take(&mut fast.shards);
    let start = Arc::new(Barrier::new(usize::from(shards)));
    let threads: Vec<_> = cores
        .into_iter()
        .zip(work)
        .map(|(mut shard, orders)| {
            let (start, log) = (Arc::clone(&start), Arc::clone(&fast.log));
            std::thread::spawn(move || {
                let filled = trade(&mut shard, &orders, &start, &log);
                (shard, filled)
            })
        })
        .collect();
    while !threads.iter().all(JoinHandle::is_finished) {
        fast.follow();
        std::thread::yield_now();
    }
    let mut all_filled = 0;
    for thread in threads {
        let (shard, filled) = thread.join().unwrap();
        all_filled += filled;
        fast.shards.push(shard);
    }
    assert!(ORDERS_PER_SHARD / 20 < all_filled, "the shards hardly traded: {all_filled}");
    for shard in &mut fast.shards {
        while shard.sweep(NOW) {}
    }
    fast.follow();
    fast.agrees_with_its_log();
    let unfunded = OrderState::Removed(RemovalReason::Unfunded);
    let removed = fast.ledger.orders().filter(|row| row.state == unfunded).count();
    assert!(reserved || 0 < removed, "no cell ran short: the orders were too small");
    everything_open_is_covered(&fast);
}

/// After the last sweep no market asks for more than its wallets have.
fn everything_open_is_covered(fast: &Fast) {
    for market in fast.ledger.markets() {
        for wallet in fast.ledger.wallets() {
            let mine = fast.ledger.live_orders(market.market).filter(|row| row.wallet == wallet.wallet);
            let (mut buying, mut selling) = (0, [Shares::ZERO; 2]);
            for row in mine {
                match row.fields.side {
                    Side::Buy if row.reserved.is_zero() => {
                        buying +=
                            row.price.cost_ceil(row.open).0 + market.fee.maker_fee(row.open, row.price).0;
                    }
                    Side::Buy => {}
                    Side::Sell => selling[row.outcome.index()] += row.open,
                }
            }
            let held = fast.ledger.holding(wallet.wallet, market.market);
            assert!(buying <= wallet.cell.0, "wallet {} buys for more than it has", wallet.wallet.0);
            assert!(selling[0] <= held[0] && selling[1] <= held[1], "wallet {} oversells", wallet.wallet.0);
        }
    }
}

#[test]
fn two_threads_of_shards_spend_nothing_twice() {
    run(2, false);
}

#[test]
fn four_threads_of_shards_spend_nothing_twice() {
    run(4, false);
}

#[test]
fn four_threads_of_shards_that_set_collateral_aside_spend_nothing_twice() {
    run(4, true);
}
