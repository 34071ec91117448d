//! The leaderboard as time moves on, against sums over everything that ever happened.

use super::*;
use crate::wallet::rounded;
use proptest::prelude::*;

const HOUR_MS: u64 = 3_600_000;
const TRADERS: [WalletNo; 4] = [ALICE, BOB, CAROL, ALICES_SAFE];

/// A trade, and when the board is looked at after it.
#[derive(Clone, Copy, Debug)]
struct Step {
    seller: usize,
    buyer: usize,
    cents: u16,
    shares: u64,
    wait_ms: u64,
    ahead_ms: u64,
}

fn step() -> impl Strategy<Value = Step> {
    let wait_ms = prop_oneof![0..HOUR_MS, 0..30 * HOUR_MS, 0..900 * HOUR_MS];
    let ahead_ms = prop_oneof![Just(0), 0..200 * HOUR_MS];
    // Few sizes and prices, so that wallets also tie.
    (0..4_usize, 1..4_usize, 1..4_u16, 1..3_u64, wait_ms, ahead_ms).prop_map(
        |(seller, apart, tens, shares, wait_ms, ahead_ms)| {
            let buyer = (seller + apart) % TRADERS.len();
            Step { seller, buyer, cents: 10 * tens, shares, wait_ms, ahead_ms }
        },
    )
}

/// An exchange, and when which wallet traded and gained what.
struct Board {
    exchange: Exchange,
    acts: Vec<(u64, WalletNo, u128, i128)>,
}

impl Board {
    fn follow(&mut self, step: Step) {
        let exchange = &mut self.exchange;
        let [seller, buyer] = [step.seller, step.buyer].map(|trader| TRADERS[trader]);
        exchange.now += step.wait_ms;
        let before = TRADERS.map(|trader| realized(exchange, trader));
        exchange.splits(seller, step.shares);
        let maker = exchange.rests(seller, Side::Sell, Outcome::Zero, step.cents, step.shares);
        let taker = exchange.order(buyer, Side::Buy, Outcome::Zero, step.cents, step.shares);
        exchange.fills(taker, &[(maker, step.shares)]);
        for (trader, before) in TRADERS.into_iter().zip(before) {
            let leg = u128::from(step.cents) * u128::from(step.shares * SHARE) / 100;
            let volume = if [seller, buyer].contains(&trader) { leg } else { 0 };
            let realized = realized(exchange, trader) - before;
            self.acts.push((exchange.now, trader, volume, realized));
        }
        let time = exchange.now;
        exchange.now += step.ahead_ms;
        self.check();
        self.exchange.now = time;
    }

    /// Asks for every period and order, page by page and wallet by wallet.
    fn check(&mut self) {
        for (period, hours) in [("DAY", 24), ("WEEK", 168), ("MONTH", 720), ("ALL", u64::MAX)] {
            for order in ["PNL", "VOL"] {
                let entries = self.naive(hours, order == "PNL");
                let query = format!("timePeriod={period}&orderBy={order}");
                for (offset, limit) in [(0, 50), (0, 2), (1, 1), (2, 9), (9, 9)] {
                    let page: Vec<_> = entries.iter().skip(offset).take(limit).map(String::as_str).collect();
                    self.shows(&format!("{query}&offset={offset}&limit={limit}"), &page);
                }
                for trader in TRADERS {
                    let address = address_text(trader);
                    let own = entries.iter().filter(|entry| entry.contains(&address)).map(String::as_str);
                    self.shows(&format!("{query}&user={address}"), &own.collect::<Vec<_>>());
                }
            }
        }
    }

    #[track_caller]
    fn shows(&mut self, query: &str, entries: &[&str]) {
        let (status, text) = self.exchange.sends(None, &format!("GET /v1/leaderboard?{query}"), "");
        assert_eq!((status, text), (200, format!("[{}]", entries.join(","))), "{query}");
    }

    /// Every entry of a board, as text, from all that ever happened.
    fn naive(&self, hours: u64, by_profit: bool) -> Vec<String> {
        let from_ms = (self.exchange.now / HOUR_MS + 1).saturating_sub(hours) * HOUR_MS;
        let sum = |trader: WalletNo| {
            let own = self.acts.iter().filter(|(time, of, ..)| *of == trader && from_ms <= *time);
            own.fold((0, 0), |sum, (_, _, volume, realized)| (sum.0 + volume, sum.1 + realized))
        };
        let mut rows = TRADERS.map(|trader| (sum(trader), address_text(trader))).to_vec();
        rows.retain(|(sums, _)| *sums != (0, 0));
        rows.sort_by_key(|((volume, realized), address)| {
            let first = if by_profit { *realized } else { i128::try_from(*volume).expect("small") };
            (-first, -*realized, std::cmp::Reverse(*volume), address.clone())
        });
        let text = |(rank, ((volume, realized), address)): (usize, &((u128, i128), String))| {
            let [volume, profit] =
                [i128::try_from(*volume).expect("small"), rounded(*realized, 6)].map(decimal);
            format!(
                r#"{{"rank":"{}","proxyWallet":"{address}","userName":"","vol":{volume},"pnl":{profit},"#,
                rank + 1
            ) + r#""profileImage":"","xUsername":"","verifiedBadge":false}"#
        };
        rows.iter().enumerate().map(text).collect()
    }
}

fn realized(exchange: &Exchange, wallet: WalletNo) -> i128 {
    let rows = exchange.reader.model().holdings().of_wallet(wallet);
    rows.flat_map(|row| row.lots).map(|lot| lot.realized).sum()
}

/// Millionths as a number that is as short as possible.
fn decimal(millionths: i128) -> String {
    let (sign, size) = (if millionths < 0 { "-" } else { "" }, millionths.unsigned_abs());
    let text = format!("{sign}{}.{:06}", size / 1_000_000, size % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_leaderboard_is_what_all_acts_of_its_period_add_up_to(steps in prop::collection::vec(step(), 1..16)) {
        let mut board = Board { exchange: Exchange::opened(), acts: Vec::new() };
        for step in steps {
            board.follow(step);
        }
    }
}
