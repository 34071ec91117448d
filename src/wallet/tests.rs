//! Random histories against the plain twin, and the arithmetic in tables.

use super::naive::Naive;
use super::*;
use crate::memory::sections::Name;
use crate::memory::wire::Wire;
use proptest::prelude::*;

const WALLETS: u32 = 3;
const MARKETS: u32 = 3;
const SHARE: u64 = 1_000_000;
const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
const SIDES: [Outcome; 2] = [Outcome::Zero, Outcome::One];

/// An act as drawn, before it is known what the wallet holds.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    wallet: u32,
    market: u32,
    kind: u8,
    outcome: bool,
    taker: bool,
    amount: u64,
    price_millionths: u32,
    fee: u64,
    wait_ms: u64,
    /// How far ahead of the last act the boards are looked at before the next.
    ahead_ms: u64,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    // Dust, whole shares, and up to the largest order.
    let amount = prop_oneof![1..50_u64, (1..5_000_u64).prop_map(|n| n * SHARE), 1..=1_000_000_000 * SHARE];
    let wait_ms = prop_oneof![Just(0), 1..2_000_u64, 1..40_000_000_u64, 1..20 * DAY_MS];
    let ahead_ms = prop_oneof![Just(0), 1..2 * DAY_MS, 1..40 * DAY_MS];
    (
        0..WALLETS,
        0..MARKETS,
        0..7_u8,
        any::<bool>(),
        any::<bool>(),
        amount,
        1..1_000_000_u32,
        0..100_u64,
        (wait_ms, ahead_ms),
    )
        .prop_map(|(wallet, market, kind, outcome, taker, amount, price_millionths, fee, times)| {
            let (wait_ms, ahead_ms) = times;
            Drawn { wallet, market, kind, outcome, taker, amount, price_millionths, fee, wait_ms, ahead_ms }
        })
}

/// The model and its twin, fed alike with acts that are possible.
#[derive(Default)]
struct Pair {
    wallets: Wallets,
    naive: Naive,
    /// When which wallet booked which profit.
    booked: Vec<(u64, WalletNo, i128)>,
    time: u64,
}

impl Pair {
    fn follow(&mut self, drawn: Drawn) {
        self.time += drawn.wait_ms;
        let (wallet, market) = (WalletNo(drawn.wallet), MarketNo(drawn.market));
        let held = self.wallets.holdings().of(wallet, market);
        let held = held.map_or([Shares::ZERO; 2], |row| row.lots.map(|lot| lot.shares));
        let Some(act) = possible(&drawn, market, held) else {
            return;
        };
        let position = Position(64 * self.naive.entries.len() as u64);
        let entry = Entry { position, time: TimeMs(self.time), wallet, act };
        let before = self.realized(wallet);
        self.wallets.follow(&entry);
        self.naive.entries.push(entry);
        self.booked.push((self.time, wallet, self.realized(wallet) - before));
        self.check_boards(self.time + drawn.ahead_ms);
    }

    /// What the lots of `wallet` say that it ever gained.
    fn realized(&self, wallet: WalletNo) -> i128 {
        self.wallets.holdings().of_wallet(wallet).flat_map(|row| row.lots).map(|lot| lot.realized).sum()
    }

    /// Compares every board with the sums of all entries of its period up to `now`.
    fn check_boards(&mut self, now: u64) {
        self.wallets.turn(TimeMs(now));
        let standings = self.wallets.standings();
        let last = self.naive.entries.last().map_or(0, |entry| entry.time.0);
        let hour = now.max(last) / HOUR_MS;
        for (period, hours) in
            [(Period::Day, 24), (Period::Week, 168), (Period::Month, 720), (Period::All, u64::MAX)]
        {
            let from_ms = (hour + 1).saturating_sub(hours) * HOUR_MS;
            for wallet in (0..WALLETS).map(WalletNo) {
                let since = self.booked.iter().filter(|(time, of, _)| *of == wallet && from_ms <= *time);
                let (traded, markets) = self.naive.traded(wallet, from_ms);
                let naive = Totals { realized: since.map(|(_, _, gained)| gained).sum(), ..traded };
                let shown = standings.board(period).get(wallet.index()).copied().unwrap_or_default();
                assert_eq!(shown, naive, "{period:?} of {wallet:?} at {now}");
                assert_eq!(standings.markets(wallet) as usize, markets);
                if period == Period::Month {
                    let hours: Vec<_> = standings.hours_of(wallet).collect();
                    assert!(hours.is_sorted_by(|(one, _), (next, _)| next < one), "newest first");
                    let mut sum = Totals::default();
                    let within = hours.iter().filter(|(hour, _)| from_ms <= hour * HOUR_MS);
                    within.for_each(|(_, totals)| sum += *totals);
                    assert_eq!(sum, naive, "its hours add up");
                }
            }
        }
    }

    fn check(&self) {
        for (wallet, market) in each_pair() {
            let row = self.wallets.holdings().of(wallet, market);
            let lots = row.map_or([Lot::default(); 2], |row| row.lots);
            let mut paid = self.naive.lost(wallet, market) * 1_000_000;
            for outcome in SIDES {
                let (lot, naive) = (&lots[outcome.index()], self.naive.lot(wallet, market, outcome));
                assert_eq!(i128::from(lot.shares.0), naive.shares);
                assert_eq!(i128::try_from(lot.bought), Ok(naive.bought));
                assert_eq!(lot.is_closed(), naive.bought > 0 && naive.shares == 0);
                // The twin pays redeems in fractions; each was rounded down by less than a millionth.
                near(lot.realized, naive.realized, naive.bought, self.naive.entries.len());
                near(lot.open_figures(0).average, naive.average, 1_000_000, 0);
                paid += naive.paid * 1_000_000;
            }
            let [zero, one] = lots.map(|lot| lot.cost.signed() - lot.realized);
            assert_eq!(zero + one, paid, "cost less profit is what was paid, to the last digit");
        }
        for wallet in (0..WALLETS).map(WalletNo) {
            self.check_wallet(wallet);
        }
        for market in (0..MARKETS).map(MarketNo) {
            assert_eq!(self.wallets.standings().volume(market), self.naive.traded_in(market));
            let trades: Vec<_> = self.wallets.activity().trades_of(market).map(|row| row.position).collect();
            let is_trade = |act: &Act| matches!(act, Act::Traded(trade) if trade.market == market);
            let naive = self.naive.entries.iter().filter(|entry| is_trade(&entry.act));
            assert_eq!(trades, naive.map(|entry| entry.position).collect::<Vec<_>>());
        }
    }

    fn check_wallet(&self, wallet: WalletNo) {
        let last = self.time / 1_000;
        for (start, end) in
            [(0, u64::MAX), (last / 2, last), (last, last), (last + 1, last), (last, last / 2)]
        {
            let activity = self.wallets.activity();
            let rows = activity.of_wallet_at(wallet, activity.places(start, end));
            let rows: Vec<_> = rows.map(|row| (row.position.0, row.kind)).collect();
            assert_eq!(rows, self.naive.activity(wallet, start, end), "{start}..={end}");
        }
        assert_eq!(self.wallets.standings().all(wallet).realized, self.realized(wallet));
    }
}

/// The act, cut to what the wallet holds; `None` if it holds nothing of what the act needs.
fn possible(drawn: &Drawn, market: MarketNo, held: [Shares; 2]) -> Option<Act> {
    let outcome = if drawn.outcome { Outcome::One } else { Outcome::Zero };
    let worth = |shares: u64| {
        let worth = u128::from(shares) * u128::from(drawn.price_millionths) / 1_000_000;
        Collateral(u64::try_from(worth).expect("a price is below one"))
    };
    let cut = |held: Shares| Some(Shares(drawn.amount.min(held.0))).filter(|shares| !shares.is_zero());
    let trade = |side, shares: Shares| {
        let leg = worth(shares.0);
        let fee = Collateral(drawn.fee.min(leg.0));
        let role = if drawn.taker { Role::Taker } else { Role::Maker };
        let price_millionths = drawn.price_millionths;
        Act::Traded(Trade { market, outcome, side, role, shares, leg, fee, price_millionths })
    };
    Some(match drawn.kind {
        0 | 1 => trade(Side::Buy, Shares(drawn.amount)),
        2 => trade(Side::Sell, cut(held[outcome.index()])?),
        3 => Act::Split { market, pairs: Shares(drawn.amount) },
        4 => Act::Merge { market, pairs: cut(held[0].min(held[1]))? },
        5 => {
            let payouts = [[0, 500_000], [333_333, 1_000_000]];
            let zero = payouts[usize::from(drawn.taker)][usize::from(drawn.amount.is_multiple_of(2))];
            let payout = Payout::new(zero).expect("at most one");
            Act::Redeem { market, shares: held, payout, paid: payout.of(held) }
        }
        _ if drawn.outcome => Act::Credit(Collateral(drawn.amount)),
        _ => Act::Debit(Collateral(drawn.amount)),
    })
}

fn each_pair() -> impl Iterator<Item = (WalletNo, MarketNo)> {
    (0..WALLETS).flat_map(|wallet| (0..MARKETS).map(move |market| (WalletNo(wallet), MarketNo(market))))
}

/// Compares an amount of atto with the twin's float, which is as exact as its largest summand, and off by at
/// most `lost_max` millionths.
#[track_caller]
#[allow(clippy::cast_precision_loss, reason = "the twin is compared with some room")]
fn near(atto: i128, float: f64, scale_millionths: i128, lost_max: usize) {
    let room = 1e-9 * (1.0 + scale_millionths as f64 / 1e6) + 1e-6 * lost_max as f64;
    assert!((atto as f64 / 1e18 - float).abs() <= room, "{atto} is not near {float}");
}

proptest! {
    #[test]
    fn any_history_comes_to_what_its_entries_say(drawn in proptest::collection::vec(drawn(), 1..60)) {
        let mut pair = Pair::default();
        for drawn in drawn {
            pair.follow(drawn);
        }
        pair.check();
    }

    #[test]
    fn a_model_that_is_kept_and_taken_goes_on_as_the_same(
        drawn in proptest::collection::vec(drawn(), 1..40), cut in 0..40_usize
    ) {
        let (mut whole, mut taken) = (Pair::default(), Pair::default());
        for (step, &drawn) in drawn.iter().enumerate() {
            whole.follow(drawn);
            taken.follow(drawn);
            if step == cut {
                let kept = sections(&taken.wallets);
                taken.wallets = Wallets::new();
                for (name, bytes) in &kept {
                    prop_assert_eq!(taken.wallets.take_section(*name, bytes), Ok(true));
                }
                taken.wallets.complete(WALLETS as usize, MARKETS as usize).expect("whole");
                taken.check_boards(taken.time + drawn.ahead_ms);
                prop_assert_eq!(sections(&taken.wallets), kept, "same state, same bytes");
            }
        }
        taken.check();
        prop_assert_eq!(sections(&taken.wallets), sections(&whole.wallets));
    }
}

fn sections(wallets: &Wallets) -> Vec<(Name, Vec<u8>)> {
    let mut sections = Vec::new();
    wallets.keep(&mut sections);
    sections
}

/// A section alone, as of a file that somebody forged, and the first numbers of wallets and markets that are too small.
#[test]
fn what_is_of_no_wallet_or_market_is_refused_in_every_part() {
    let mut wallets = Wallets::new();
    let (market, time, wallet) = (MarketNo(2), TimeMs(DAY_MS), WalletNo(2));
    let trade = Trade {
        market,
        outcome: Outcome::Zero,
        side: Side::Buy,
        role: Role::Taker,
        shares: Shares(SHARE),
        leg: Collateral(5),
        fee: Collateral::ZERO,
        price_millionths: 5,
    };
    for (step, act) in [Act::Traded(trade), Act::Credit(Collateral(1))].into_iter().enumerate() {
        wallets.follow(&Entry { position: Position(64 * step as u64), time, wallet, act });
    }
    let kept = sections(&wallets);
    let complete = |names: &[&Name], wallets, markets| {
        let mut taken = Wallets::new();
        for name in names {
            let (_, bytes) = kept.iter().find(|(kept, _)| kept == *name).expect("a section");
            assert_eq!(taken.take_section(**name, bytes), Ok(true));
        }
        taken.complete(wallets, markets).err().map(|damage| damage.field)
    };
    let [held, acts, stand, volume] = [b"w.held  ", b"w.acts  ", b"w.stand ", b"w.volume"];
    for (names, wallets, markets, refused) in [
        (&[held, acts, stand, volume][..], 3, 3, None),
        (&[held], 2, 3, Some("place of a holding")),
        (&[held], 3, 2, Some("place of a holding")),
        (&[held, held], 3, 3, Some("place of a holding")),
        (&[acts], 2, 3, Some("place of activity")),
        (&[acts], 3, 2, Some("place of activity")),
        (&[stand], 2, 3, Some("standing of a wallet")),
        (&[volume], 3, 2, Some("standing of a wallet")),
        (&[stand], 3, 3, Some("markets of a wallet")),
        (&[held], 3, 3, Some("markets of a wallet")),
    ] {
        assert_eq!(complete(names, wallets, markets), refused, "{names:?} of {wallets} and {markets}");
    }
}

#[test]
fn hours_that_do_not_come_to_their_sum_are_refused() {
    let one = Totals { volume: 4, shares: 3, trades: 2, realized: -1 };
    let two = Totals { volume: 8, shares: 6, trades: 4, realized: 1 };
    let far = Totals { realized: i128::MAX, ..one };
    for (all, hours, is_taken) in [
        (two, vec![], true),
        (two, vec![(6, one), (7, one)], true),
        (two, vec![(7, one), (6, one)], false),
        (two, vec![(7, one), (7, one)], false),
        (two, vec![(6, one), (7, one), (8, one)], false),
        (Totals { volume: 7, ..two }, vec![(6, one), (7, one)], false),
        (Totals { shares: 5, ..two }, vec![(6, one), (7, one)], false),
        (Totals { trades: 3, ..two }, vec![(6, one), (7, one)], false),
        (two, vec![(6, far)], true),
        (two, vec![(6, far), (7, one)], false),
        (two, vec![(u64::MAX / HOUR_MS, one)], true),
        (two, vec![(u64::MAX / HOUR_MS + 1, one)], false),
    ] {
        let mut bytes = Vec::new();
        (all, 0_u32, hours.clone()).put(&mut bytes);
        let taken = Wallets::new().take_section(*b"w.stand ", &bytes);
        assert_eq!(taken.is_ok(), is_taken, "{hours:?} of {all:?}");
    }
}

#[test]
fn an_hour_is_kept_as_long_as_it_is_promised() {
    let mut wallets = Wallets::new();
    for (hour, kept) in [(5, 1), (4 + HOURS_KEPT, 2), (5 + HOURS_KEPT, 2)] {
        let act = Act::Split { market: MarketNo(0), pairs: Shares(SHARE) };
        let (position, time, wallet) = (Position(0), TimeMs(hour * HOUR_MS), WalletNo(0));
        wallets.follow(&Entry { position, time, wallet, act });
        let act = Act::Merge { market: MarketNo(0), pairs: Shares(SHARE) };
        wallets.follow(&Entry { position, time, wallet, act });
        let hours: Vec<u64> = wallets.standings().hours_of(wallet).map(|(hour, _)| hour).collect();
        assert_eq!((hours.len(), hours.first()), (kept, Some(&hour)), "{hours:?}");
    }
}

/// Size and average, a price, and what follows from them: initial, current, profit, percentage.
/// `tests/wallet_rows.rs` does the same with a strict client's own rows.
#[test]
fn open_positions_show_what_they_cost_and_what_they_are_worth() {
    for (size, average, price, initial, current, profit, percent) in [
        ("120.5", "0.45", 600_000, 542_250, 723_000, 180_750, 333_333),
        ("0.005", "0.7", 800_000, 35, 40, 5, 142_857),
        ("100", "0.999", 0, 999_000, 0, -999_000, -1_000_000),
        ("1234.56", "0.41", 530_050, 5_061_696, 6_543_785, 1_482_089, 292_805),
        ("0.000001", "0.5", 999_950, 0, 0, 0, 999_900),
    ] {
        let (shares, price_of_one) = (millionths(size), millionths(average));
        let mut lot = Lot::default();
        let cost = Atto(u128::from(shares) * u128::from(price_of_one) * 1_000_000);
        lot.buy(Shares(shares), cost, TimeMs(1));
        let figures = lot.open_figures(price);
        assert_eq!(rounded(figures.average, 6), i128::from(price_of_one));
        let shown = [figures.initial, figures.current, figures.cash_pnl].map(|atto| rounded(atto, 4));
        assert_eq!(shown, [initial, current, profit], "{size} at {average}");
        assert_eq!(figures.percent_pnl(4), percent, "{size} at {average}");
    }
}

/// Millionths of a decimal text.
fn millionths(text: &str) -> u64 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{fraction:0<6}").parse().expect("digits")
}

#[test]
fn a_fee_above_what_a_sale_brings_leaves_nothing() {
    for (side, fee, cash) in
        [(Side::Buy, 3, 13), (Side::Sell, 3, 7), (Side::Sell, 10, 0), (Side::Sell, 11, 0)]
    {
        let (market, outcome, role) = (MarketNo(0), Outcome::Zero, Role::Taker);
        let (shares, leg, fee) = (Shares(20), Collateral(10), Collateral(fee));
        let trade = Trade { market, outcome, side, role, shares, leg, fee, price_millionths: 500_000 };
        assert_eq!(trade.cash(), Collateral(cash), "{side:?}");
    }
}

#[test]
fn boards_end_with_the_last_act_though_a_clock_is_behind_it() {
    let mut wallets = Wallets::new();
    let (time, amount, market) = (TimeMs(40 * DAY_MS), Shares(SHARE), MarketNo(0));
    let (shares, payout) = ([amount, Shares::ZERO], Payout::new(1_000_000).expect("at most one"));
    let paid = Collateral(SHARE);
    // What was gained two days before is on no board of the last day.
    for time in [TimeMs(time.0 - 2 * DAY_MS), time] {
        for act in [Act::Split { market, pairs: amount }, Act::Redeem { market, shares, payout, paid }] {
            wallets.follow(&Entry { position: Position(0), time, wallet: WalletNo(0), act });
        }
    }
    let gained = 500_000 * 1_000_000_000_000;
    wallets.turn(TimeMs(time.0 - 2 * HOUR_MS));
    wallets.turn(TimeMs(time.0 + DAY_MS - HOUR_MS));
    assert_eq!(wallets.standings().board(Period::Day)[0].realized, gained);
    wallets.turn(TimeMs(time.0 + DAY_MS));
    assert_eq!(wallets.standings().board(Period::Day)[0].realized, 0);
    wallets.turn(TimeMs(0));
    assert_eq!(wallets.standings().board(Period::Day)[0].realized, gained);
}

#[test]
fn a_booked_profit_is_measured_against_the_shares_ever_bought() {
    for (bought, realized, percent) in [(1_625, 212_480_000, 130_757), (1_300, 98_670_000, 75_900), (0, 0, 0)]
    {
        let lot = Lot {
            bought: bought * u128::from(SHARE),
            realized: realized * 1_000_000_000_000,
            ..Lot::default()
        };
        assert_eq!(lot.closed_figures().percent_realized(4), percent);
        assert_eq!(lot.closed_figures().percent_pnl(4), percent);
        let open = Lot { shares: Shares(1), cost: Atto(1), ..lot };
        assert_eq!(open.open_figures(0).percent_realized(4), percent, "whatever it holds now cost");
    }
}

#[test]
fn what_a_sale_leaves_keeps_its_average_and_what_closes_keeps_its_size() {
    let mut lot = Lot::default();
    lot.buy(Shares(3 * SHARE), Atto::of(Collateral(1_000_000)), TimeMs(1));
    assert_eq!(lot.sell(Shares(SHARE), Atto::of(Collateral(500_000)), TimeMs(2)), 166_666_666_666_666_667);
    assert_eq!(rounded(lot.open_figures(0).average, 6), 333_333);
    lot.buy(Shares(2 * SHARE), Atto::of(Collateral(1_000_000)), TimeMs(3));
    assert_eq!(lot.changed, TimeMs(3));
    assert_eq!(rounded(lot.open_figures(0).average, 6), 416_667);
    lot.sell(Shares(4 * SHARE), Atto::of(Collateral(4_000_000)), TimeMs(4));
    let figures = lot.closed_figures();
    assert!(lot.is_closed() && !lot.is_open());
    assert_eq!((figures.size, rounded(figures.average, 6)), (Shares(4 * SHARE), 416_667));
    assert_eq!((figures.bought, lot.realized), (5 * u128::from(SHARE), 2_500_000 * 1_000_000_000_000));
    lot.buy(Shares(SHARE), Atto::of(Collateral(900_000)), TimeMs(5));
    assert_eq!(rounded(lot.open_figures(0).average, 6), 900_000, "a new start, with the old profit");
    assert_eq!(rounded(lot.open_figures(0).realized, 6), 2_500_000);
}

#[test]
fn a_redeem_books_what_rounding_took_on_the_side_with_the_higher_payout() {
    for (shares, payout, received) in [
        ([5, 0], 1_000_000, [50, 0]),
        ([0, 5], 1_000_000, [0, 0]),
        ([1, 0], 500_000, [0, 0]),
        ([1, 0], 400_000, [0, 0]),
        ([3, 0], 500_000, [10, 0]),
        ([0, 3], 500_000, [0, 10]),
        ([1, 2], 400_000, [4, 6]),
        ([3, 1], 400_000, [4, 6]),
        ([3, 1], 600_000, [16, 4]),
    ] {
        let (shares, payout) = (shares.map(Shares), Payout::new(payout).expect("at most one"));
        let [zero, one] = redeemed(shares, payout, payout.of(shares));
        let tenths = [zero, one].map(|side| side.0 / 100_000_000_000);
        assert_eq!(zero.0 + one.0, u128::from(payout.of(shares).0) * 1_000_000_000_000);
        assert_eq!(tenths, received, "in tenths of a millionth");
    }
}

#[test]
fn amounts_round_half_away_from_zero() {
    for (atto, places, shown) in [
        (499_999_999_999, 6, 0),
        (500_000_000_000, 6, 1),
        (-500_000_000_000, 6, -1),
        (-499_999_999_999, 6, 0),
        (50_000_000_000_000, 4, 1),
        (i128::MAX, 4, i128::MAX / 100_000_000_000_000),
    ] {
        assert_eq!(rounded(atto, places), shown, "{atto}");
    }
    assert_eq!(ratio(1, 3, 1_000_000), 333_333);
    assert_eq!(ratio(-2, 3, 1_000_000), -666_667);
    assert_eq!((ratio(5, 0, 100), ratio(5, -1, 100)), (0, 0), "nothing to measure against");
    assert_eq!(ratio(i128::MAX, i128::MAX, 100_000_000), 100_000_000);
}

/// Amounts at all scales, and those at which the arithmetic takes another path.
fn amounts() -> impl Strategy<Value = i128> {
    let edge = (0..127_u32, 0..19_u32, -2..=2_i128).prop_map(|(shift, places, off)| {
        (1_i128 << shift).saturating_add(10_i128.pow(places) / 2).saturating_add(off)
    });
    let tie = (any::<u64>(), 0..19_u32).prop_map(|(value, places)| {
        i128::from(value).saturating_mul(10_i128.pow(places)).saturating_add(10_i128.pow(places) / 2)
    });
    let any_length = (any::<i128>(), 0..127_u32).prop_map(|(value, shift)| value >> shift);
    let amount = prop_oneof![edge, tie, any_length, Just(i128::MAX), Just(i128::MIN)];
    (amount, any::<bool>()).prop_map(|(value, turned)| if turned { value.saturating_neg() } else { value })
}

proptest! {
    #[test]
    fn rounding_and_ratios_are_those_of_plain_divisions(
        part in amounts(),
        whole in amounts(),
        places in 0..19_u32,
        scale in prop_oneof![Just(10_000), Just(1_000_000), Just(100_000_000)],
    ) {
        prop_assert_eq!(rounded(part, places), naive::rounded(part, places));
        prop_assert_eq!(ratio(part, whole, scale), naive::ratio(part, whole, scale));
    }
}
