//! Bars against a plain list of all prices.

use super::*;
use crate::domain::Shares;

const RAIN: MarketNo = MarketNo(3);
const MINUTE_MS: u64 = 60_000;
/// The last second of 2023, somewhere in the middle of every step.
const START_MS: u64 = 1_704_067_199_000;

/// All prices of a market: when, the price, and whether it was a trade. A middle is said after a trade and when it changes.
type Said = Vec<(TimeMs, HalfSteps, bool)>;

fn price(ten_thousandths: u16) -> Price {
    Price::new(ten_thousandths).expect("in range")
}

fn book(bid: u16, ask: u16) -> Levels {
    let mut levels = Levels::default();
    levels.add(Outcome::Zero, Side::Buy, price(bid), Shares(1));
    levels.add(Outcome::Zero, Side::Sell, price(ask), Shares(1));
    levels
}

/// The points of all steps that begin by `last_s`: each has its last trade or, without one, what was said last. A step
/// in which nothing was said has none if its price is that of the point before.
fn points_of(said: &Said, step_s: u64, last_s: u64) -> Vec<(u64, HalfSteps)> {
    let mut points: Vec<(u64, HalfSteps)> = Vec::new();
    let (first_s, mut stands) = (said[0].0.seconds(), said[0].1);
    let mut left = said.iter().peekable();
    let mut start_s = first_s - first_s % step_s;
    while start_s <= last_s {
        let (mut trade, mut is_said) = (None, false);
        while let Some((_, price, traded)) = left.next_if(|(time, ..)| time.seconds() < start_s + step_s) {
            (stands, is_said) = (*price, true);
            trade = if *traded { Some(*price) } else { trade };
        }
        let price = trade.unwrap_or(stands);
        if is_said || points.last().is_some_and(|(_, before)| *before != price) {
            points.push((start_s, price));
        }
        start_s += step_s;
    }
    points
}

/// What `History::prices` must return of these points if no bar was dropped.
fn plain(points: &[(u64, HalfSteps)], window: Window) -> Vec<(u64, HalfSteps)> {
    let first = window.start - window.start % window.step;
    let within = points.iter().filter(|(start, _)| (first..=window.end).contains(start));
    let stood = points.iter().rfind(|(start, _)| *start < first).filter(|_| window.start <= window.end);
    let opens = points.iter().any(|(start, _)| *start == first);
    let stood = stood.filter(|_| !opens).map(|(_, price)| (first, *price));
    stood.into_iter().chain(within.copied()).collect()
}

struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20) % bound
    }

    fn price(&mut self) -> u16 {
        u16::try_from(1 + self.below(9_998)).expect("in range")
    }
}

/// A random life of `count` trades and changes of the book, at most `gap_ms` apart.
fn life(seed: u64, count: u64, gap_ms: u64) -> (History, Said, u64) {
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (mut history, mut said) = (History::default(), Said::new());
    let (mut now, mut middle) = (START_MS, None);
    for _ in 0..count {
        now += draw.below(gap_ms);
        let time = TimeMs(now);
        match draw.below(5) {
            0 => {
                let price = price(draw.price());
                history.traded(RAIN, time, price);
                said.push((time, HalfSteps::of(price), true));
                middle = None;
            }
            1 => history.quoted(RAIN, time, &Levels::default()),
            _ => {
                let bid = draw.price().min(9_990);
                let levels = book(bid, bid + 1 + u16::try_from(draw.below(9)).expect("small"));
                history.quoted(RAIN, time, &levels);
                let now_middle = HalfSteps::middle(&levels);
                if now_middle != middle {
                    said.push((time, now_middle.expect("two sides"), false));
                }
                middle = now_middle;
            }
        }
    }
    (history, said, now)
}

#[test]
fn random_lives_are_told_as_a_list_of_everything_tells_them() {
    for seed in 1..=30 {
        let (history, said, end_ms) = life(seed, 400, 40 * MINUTE_MS);
        let mut draw = Draw(seed);
        let (start_s, end_s) = (START_MS / 1_000, end_ms / 1_000);
        let points = STEPS_S.map(|step_s| points_of(&said, step_s, 2 * end_s - start_s + 7_200));
        for _ in 0..60 {
            let start = start_s - 7_200 + draw.below(end_s - start_s + 14_400);
            let end = start + draw.below(end_s - start_s);
            let place = usize::try_from(draw.below(5)).expect("small");
            let window = Window { start, end, step: STEPS_S[place] };
            assert_eq!(
                history.prices(RAIN, window).1,
                plain(&points[place], window),
                "seed {seed}: {window:?}"
            );
            let over = points[0].iter().rfind(|(minute, _)| minute + MINUTE_S - 1 <= start);
            let by = over.map(|(minute, price)| (*minute, MINUTE_S, *price));
            assert_eq!(history.price_by(RAIN, start), by, "seed {seed}: by {start}");
        }
    }
}

#[test]
fn a_trade_is_the_price_of_its_step_and_the_middle_since_then_that_of_the_next() {
    let mut history = History::default();
    let at = |minute: u64| TimeMs(START_MS - START_MS % (720 * MINUTE_MS) + minute * MINUTE_MS);
    history.quoted(RAIN, at(0), &book(4_000, 4_001));
    history.traded(RAIN, at(0), price(5_000));
    history.quoted(RAIN, at(0), &book(6_000, 6_002));
    history.quoted(RAIN, at(1), &book(6_000, 6_002));
    history.quoted(RAIN, at(2), &Levels::default());
    history.quoted(RAIN, at(3), &book(6_000, 6_002));
    let first = at(0).seconds();
    let all =
        |history: &History, start, step| history.prices(RAIN, Window { start, end: first + 600, step }).1;
    let millionths = |history: &History, outcome| {
        all(history, first, 60)
            .into_iter()
            .map(|(t, p)| (t - first, p.millionths(outcome)))
            .collect::<Vec<_>>()
    };
    assert_eq!(millionths(&history, Outcome::Zero), [(0, 500_000), (60, 600_100)]);
    assert_eq!(millionths(&history, Outcome::One), [(0, 500_000), (60, 399_900)]);
    // A window that begins between two prices begins with the one that stood then.
    assert_eq!(all(&history, first + 120, 60), [(first + 120, HalfSteps(12_002))]);
    // A step of half a day keeps only its last trade.
    assert_eq!(all(&history, first, 43_200), [(first, HalfSteps(10_000))]);
    // After another trade the same middle is said again; a book with one side leaves the trade standing.
    history.traded(RAIN, at(4), price(7_000));
    history.quoted(RAIN, at(4), &book(6_000, 6_002));
    history.traded(RAIN, at(6), price(7_000));
    history.quoted(RAIN, at(6), &Levels::default());
    let since = [(240, 700_000), (300, 600_100), (360, 700_000)];
    assert_eq!(millionths(&history, Outcome::Zero)[2..], since);
    assert_eq!(history.known_s(RAIN).map(|[known, _]| known), Some(first));
    assert_eq!(history.known_s(MarketNo(0)), None);
    assert_eq!(history.known_s(MarketNo(99)), None);
}

#[test]
fn a_ring_keeps_its_bars_and_a_window_beyond_it_gets_the_next_longer_step() {
    let mut history = History::default();
    let minutes = BARS_MAX[0] as u64;
    let begin_s = (START_MS - START_MS % (720 * MINUTE_MS)) / 1_000;
    let mut minute = 0;
    let mut trade = |history: &mut History, until: u64| {
        while minute < until {
            let time = TimeMs((begin_s + minute * MINUTE_S) * 1_000);
            history.traded(RAIN, time, price(u16::try_from(1 + minute % 9_999).expect("in range")));
            minute += 1;
        }
    };
    let points = |history: &History| {
        let end = begin_s + 10_000 * MINUTE_S;
        history.prices(RAIN, Window { start: begin_s, end, step: MINUTE_S }).1.len() as u64
    };
    for (until, expected) in
        [(minutes - 1, minutes - 1), (minutes, minutes), (minutes + 1, (minutes + 1).div_ceil(5))]
    {
        trade(&mut history, until);
        assert_eq!(points(&history), expected, "after {until} minutes");
    }
    // The first minute has left its ring, which still says what stood then; before that, longer steps know more.
    let first = HalfSteps::of(price(1));
    assert_eq!(history.price_by(RAIN, begin_s + MINUTE_S - 1), Some((begin_s, MINUTE_S, first)));
    assert_eq!(history.price_by(RAIN, begin_s + MINUTE_S - 2), None);
    let fifth = HalfSteps::of(price(5));
    assert_eq!(
        history.price_by(RAIN, begin_s + 5 * MINUTE_S - 1),
        Some((begin_s + 4 * MINUTE_S, MINUTE_S, fifth))
    );
    // From one minute later on, the ring still reaches: its first point is the price that stood.
    let later = Window { start: begin_s + MINUTE_S, end: begin_s + 10_000 * MINUTE_S, step: MINUTE_S };
    assert_eq!(history.prices(RAIN, later).1.len() as u64, minutes);
    trade(&mut history, minutes + 20);
    let five = |count: u64| begin_s + 5 * count * MINUTE_S;
    assert_eq!(history.price_by(RAIN, five(1) - 2), None, "no five minutes were over");
    assert_eq!(history.price_by(RAIN, five(1) - 1), Some((begin_s, 5 * MINUTE_S, fifth)));
    assert_eq!(history.price_by(RAIN, u64::MAX).map(|(_, step, _)| step), Some(MINUTE_S));
}

#[test]
fn no_market_keeps_more_than_8192_bars() {
    let (history, _, end_ms) = life(1, 200_000, 30 * MINUTE_MS);
    let bars = history.markets[RAIN.index()].as_ref().expect("it has prices");
    for (ring, bars_max) in bars.rings.iter().zip(BARS_MAX) {
        assert!(ring.bars.len() <= bars_max);
    }
    let count: usize = bars.rings.iter().map(|ring| ring.bars.len()).sum();
    assert_eq!(count, BARS_OF_MARKET_MAX);
    // A window that not even the longest step reaches starts with the last bar that left it.
    let window = Window { start: 0, end: end_ms / 1_000, step: MINUTE_S };
    assert_eq!(history.prices(RAIN, window).1.len(), 1 + BARS_MAX[STEPS - 1]);
}

#[test]
fn time_that_goes_back_a_little_is_told_as_if_it_stood_still() {
    let mut history = History::default();
    history.traded(RAIN, TimeMs(START_MS), price(5_000));
    history.traded(RAIN, TimeMs(START_MS - MINUTE_MS), price(5_100));
    let window = Window { start: START_MS / 1_000, end: START_MS / 1_000, step: MINUTE_S };
    let minute = START_MS / 1_000 - START_MS / 1_000 % 60;
    assert_eq!(history.prices(RAIN, window).1, [(minute, HalfSteps(10_200))]);
}

#[test]
fn a_history_reads_back_from_its_bytes_and_from_no_part_of_them() {
    let (mut history, ..) = life(5, 3_000, 20 * MINUTE_MS);
    history.traded(MarketNo(1), TimeMs(START_MS), price(7));
    let mut taken = History::default();
    for market in history.markets() {
        let mut bytes = Vec::new();
        market.put(&mut bytes);
        let mut input = Input::new(&bytes);
        taken.take_market(Wire::take(&mut input).expect("what was put"));
        assert_eq!(input.finish(), Ok(()));
        for cut in (0..bytes.len()).step_by(7) {
            let cut_short = <Option<Box<Bars>> as Wire>::take(&mut Input::new(&bytes[..cut]));
            assert!(cut_short.is_err(), "cut at {cut}");
        }
    }
    assert_eq!(taken, history);
}

#[test]
fn bars_out_of_order_or_with_impossible_prices_are_damage() {
    let bar = |minute, price| Bar { minute, price: HalfSteps(price), traded: true };
    let bytes_of = |bars: &[Bar]| {
        let mut rings: [Ring; STEPS] = Default::default();
        rings[0].bars = bars.iter().copied().collect();
        let mut bytes = Vec::new();
        rings.put(&mut bytes);
        bytes
    };
    let taken = |bars: &[Bar]| <[Ring; STEPS]>::take(&mut Input::new(&bytes_of(bars))).is_ok();
    assert!(taken(&[bar(1, 1), bar(2, 19_999)]));
    assert!(!taken(&[bar(2, 1), bar(2, 1)]));
    assert!(!taken(&[bar(1, 0)]));
    assert!(!taken(&[bar(1, 20_000)]));
    let many: Vec<Bar> = (0..=1_500).map(|minute| bar(minute, 1)).collect();
    assert!(taken(&many[1..]));
    assert!(!taken(&many));
}
