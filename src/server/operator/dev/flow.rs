//! A trickle of sample flow: two accounts quote around a middle that wanders, three others take.
//!
//! Everything goes through the front door, so a refusal is an answer like any other. Nobody has
//! shares at first: an offer at p is a bid for the other outcome at 1 - p, and once shares are
//! there they are sold first, so that money comes back and the flow never dries up.

use std::collections::VecDeque;
use std::time::Duration;

use super::seed::{Door, Quoted, Seeded};
use super::trader::{Posted, Trader, Wish};
use crate::domain::{Price, Side};

/// The accounts that take.
const TAKING: [usize; 3] = [5, 6, 7];
/// Live quotes that the flow keeps on one market; older ones are cancelled.
const QUOTES_MAX: usize = 8;
/// How far from the middle quotes and takers go, in ticks.
const QUOTE_STEPS: u64 = 4;
const TAKE_STEPS: i32 = 8;
/// How far the middle wanders from where it began, in ticks.
const WANDER_STEPS: i32 = 5;
/// What a taking buy is worth at least, in hundredths of a USDC: above the smallest notional.
const NOTIONAL_HUNDREDTHS: u64 = 150;

/// Requests without an answer, one after another, after which the flow gives up. A single one may
/// be a connection that was idle for too long.
const FAULTS_MAX: u32 = 10;

/// Starts the flow on a thread of its own; it ends with the process, or when the exchange does
/// not answer any more.
pub(super) fn start(mut seeded: Seeded, orders_per_second: u32) -> Result<(), String> {
    let taking =
        TAKING.into_iter().map(|account| seeded.door.trader(account)).collect::<Result<Vec<_>, _>>()?;
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|fault| format!("flow: no randomness: {fault}"))?;
    let mut flow = Flow {
        random: Random(u64::from_le_bytes(seed)),
        markets: seeded
            .markets
            .into_iter()
            .map(|market| Wandering { market, away: 0, quotes: VecDeque::new() })
            .collect(),
        quoting: seeded.quoting,
        taking,
        door: seeded.door,
    };
    let pause = Duration::from_secs(1) / orders_per_second;
    let thread = std::thread::Builder::new().name("dev-flow".to_owned()).spawn(move || {
        let mut faults = 0;
        while faults < FAULTS_MAX {
            faults = if flow.step().is_ok() { 0 } else { faults + 1 };
            std::thread::sleep(pause);
        }
    });
    thread.map(|_| ()).map_err(|fault| format!("flow: {fault}"))
}

/// A market whose middle moves, and the flow's live quotes on it: who posted which.
struct Wandering {
    market: Quoted,
    away: i32,
    quotes: VecDeque<(usize, String)>,
}

struct Flow {
    random: Random,
    markets: Vec<Wandering>,
    quoting: Vec<Trader>,
    taking: Vec<Trader>,
    door: Door,
}

impl Flow {
    /// One order, and perhaps a cancel.
    fn step(&mut self) -> Result<(), String> {
        let market = self.random.below(self.markets.len() as u64);
        let market = usize::try_from(market).expect("an index");
        let side = if self.random.below(2) == 0 { Side::Buy } else { Side::Sell };
        if self.random.below(2) == 0 { self.quote(market, side) } else { self.take(market, side) }
    }

    fn quote(&mut self, index: usize, side: Side) -> Result<(), String> {
        let wandering = &mut self.markets[index];
        let step = i32::try_from(self.random.below(3)).expect("small") - 1;
        wandering.away = (wandering.away + step).clamp(-WANDER_STEPS, WANDER_STEPS);
        let away = 1 + i32::try_from(self.random.below(QUOTE_STEPS)).expect("small");
        let away = wandering.away + if side == Side::Buy { -away } else { away };
        let Some(price) = wandering.market.price(away) else {
            return Ok(());
        };
        let who = usize::from(side == Side::Sell);
        let hundredths = 500 + 100 * self.random.below(40);
        let posted = self.post(true, who, index, side, price, hundredths, "GTC")?;
        if let Posted::Taken(id) = posted {
            let quotes = &mut self.markets[index].quotes;
            quotes.push_back((who, id));
            if QUOTES_MAX < quotes.len() {
                let (who, oldest) = quotes.pop_front().expect("more than none");
                self.quoting[who].cancel(&mut self.door.client, &oldest)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, index: usize, side: Side) -> Result<(), String> {
        let wandering = &self.markets[index];
        let away = wandering.away + if side == Side::Buy { TAKE_STEPS } else { -TAKE_STEPS };
        let Some(price) = wandering.market.price(away) else {
            return Ok(());
        };
        let (_, own) = wandering.market.wish(side, price);
        let least = (NOTIONAL_HUNDREDTHS * 10_000).div_ceil(u64::from(own.ten_thousandths()));
        let hundredths = least.max(100 * (1 + self.random.below(20)));
        let who = usize::try_from(self.random.below(TAKING.len() as u64)).expect("an index");
        self.post(false, who, index, side, price, hundredths, "FAK").map(|_| ())
    }

    /// Posts an order for the first outcome: selling shares if there are any, else bidding.
    #[allow(clippy::too_many_arguments, reason = "one order, said in one line by its two callers")]
    fn post(
        &mut self,
        quotes: bool,
        who: usize,
        index: usize,
        side: Side,
        price: Price,
        hundredths: u64,
        kind: &'static str,
    ) -> Result<Posted, String> {
        let market = &self.markets[index].market;
        let (token, own) = market.wish(side, price);
        let other = market.tokens[usize::from(token == market.tokens[0])];
        let attempts = [(other, own.complement(), Side::Sell), (token, own, Side::Buy)];
        let neg_risk = market.neg_risk;
        let mut last = Posted::Refused(String::new());
        for (token, price, side) in attempts {
            let wish = Wish {
                token,
                neg_risk,
                side,
                price,
                hundredths,
                kind,
                salt: self.random.next() >> 11,
                timestamp_ms: self.door.clock.now().0,
            };
            let trader = if quotes { &self.quoting[who] } else { &self.taking[who] };
            last = trader.post(&mut self.door.client, &wish)?;
            if last != Posted::Refused("not_enough_balance".to_owned()) {
                break;
            }
        }
        Ok(last)
    }
}

/// `SplitMix64`: small, and good enough to choose prices with.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
