//! Prices of one market over time, in bounded memory.
//!
//! A price is the last trade within a step of time or, where nothing was traded, the last middle of
//! the book. So from the step after a trade on, the middle stands that the book has had since, if it
//! has had one: it is noted with that step. There are five steps ([`STEPS_S`]); each has a ring of
//! **bars**, one for every step in which a price was noted, oldest first:
//!
//! | step | bars kept | reach if a price is noted in every step |
//! |---|---:|---|
//! | 1 minute | 1,500 | 25 hours |
//! | 5 minutes | 2,100 | 7 days |
//! | 30 minutes | 1,500 | 31 days |
//! | 3 hours | 1,500 | 187 days |
//! | 12 hours | 1,592 | 2 years and 2 months |
//!
//! A step in which no price is noted costs nothing, so a quiet market reaches back further; no
//! market takes more than 8,192 bars of 8 bytes. The last bar to leave a ring is remembered: it is
//! the price that stood when the ring begins. A window that a ring no longer reaches is answered
//! from the next longer step that does.
//!
//! Everything is in terms of token 0, in half steps of price: a middle may lie between two prices.

use super::levels::Levels;
use crate::domain::price::PRICE_ONE;
use crate::domain::{MarketNo, Outcome, Price, Side, TimeMs};
use crate::memory::wire::{Damage, Input, Out, Wire, structs};
use std::collections::VecDeque;

pub(super) const MINUTE_S: u64 = 60;
pub(super) const HOUR_S: u64 = 60 * MINUTE_S;
pub(super) const DAY_S: u64 = 24 * HOUR_S;

/// The steps there are, in seconds.
pub(super) const STEPS_S: [u64; STEPS] = [MINUTE_S, 5 * MINUTE_S, 30 * MINUTE_S, 3 * HOUR_S, 12 * HOUR_S];

const STEPS: usize = 5;

/// Bars of each step.
const BARS_MAX: [usize; STEPS] = [1_500, 2_100, 1_500, 1_500, 1_592];

const BARS_OF_MARKET_MAX: usize = 8_192;
const _: () = assert!(
    BARS_MAX[0] + BARS_MAX[1] + BARS_MAX[2] + BARS_MAX[3] + BARS_MAX[4] == BARS_OF_MARKET_MAX,
    "the table above is the limit"
);
const _: () = assert!(size_of::<Bar>() == 8, "64 KiB hold what a market keeps");

/// A price in half ten-thousandths: 1..20,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HalfSteps(u16);

impl HalfSteps {
    const ONE: u16 = 2 * PRICE_ONE;

    /// A trade's price.
    pub(super) const fn of(price: Price) -> Self {
        Self(2 * price.ten_thousandths())
    }

    /// The middle of a book that has two sides.
    pub(super) fn middle(levels: &Levels) -> Option<Self> {
        let [bid, ask] = [Side::Buy, Side::Sell].map(|side| levels.best(Outcome::Zero, side));
        Some(Self(bid?.ten_thousandths() + ask?.ten_thousandths()))
    }

    /// The price in millionths, as a token sees it.
    pub(super) fn millionths(self, outcome: Outcome) -> u64 {
        const MILLIONTHS: u64 = 50;
        let seen = match outcome {
            Outcome::Zero => self.0,
            Outcome::One => Self::ONE - self.0,
        };
        u64::from(seen) * MILLIONTHS
    }
}

/// The price of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bar {
    /// The minute since 1970 with which the step begins.
    minute: u32,
    pub(super) price: HalfSteps,
    /// Whether the price is of a trade, which a middle does not replace.
    traded: bool,
}

impl Bar {
    /// The second with which the step begins.
    pub(super) fn start_s(self) -> u64 {
        u64::from(self.minute) * MINUTE_S
    }
}

/// The bars of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ring {
    bars: VecDeque<Bar>,
    /// The last bar that had to make room.
    gone: Option<Bar>,
}

impl Ring {
    fn note(&mut self, bar: Bar, bars_max: usize) {
        match self.bars.back_mut() {
            Some(last) if last.minute == bar.minute => {
                if bar.traded || !last.traded {
                    *last = bar;
                }
            }
            last => {
                debug_assert!(last.is_none_or(|last| last.minute < bar.minute), "time went back");
                if self.bars.len() == bars_max {
                    self.gone = self.bars.pop_front();
                }
                self.bars.push_back(bar);
            }
        }
    }

    /// The bar of the step after the last one, if its trade's price does not stand any more.
    fn standing(&self, middle: Option<HalfSteps>, step_s: u64) -> Option<Bar> {
        let (last, price) = (self.bars.back()?, middle?);
        let minute = last.minute.saturating_add(minutes_of(step_s));
        (last.price != price).then_some(Bar { minute, price, traded: false })
    }

    /// True if no bar from `start_s` on has left the ring.
    fn reaches(&self, start_s: u64) -> bool {
        self.gone.is_none_or(|gone| gone.start_s() < start_s)
    }
}

/// The prices of one market.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bars {
    rings: [Ring; STEPS],
    /// The first minute in which there was a price, and the last one.
    first_minute: u32,
    last_minute: u32,
    /// The last middle since the last trade; a middle is noted only when it changes.
    middle: Option<HalfSteps>,
}

impl Bars {
    /// The bars of a step, oldest first, with the last one that left and the one that now stands.
    fn known(&self, place: usize) -> impl DoubleEndedIterator<Item = Bar> {
        let ring = &self.rings[place];
        let standing = ring.standing(self.middle, STEPS_S[place]);
        ring.gone.into_iter().chain(ring.bars.iter().copied()).chain(standing)
    }

    fn note(&mut self, time: TimeMs, price: HalfSteps, traded: bool) {
        let minute = u32::try_from(time.seconds() / MINUTE_S).unwrap_or(u32::MAX);
        // Shards stamp their frames themselves, and one may be a moment late against another.
        let minute = minute.max(self.last_minute);
        if self.last_minute == 0 {
            self.first_minute = minute;
        }
        self.last_minute = minute;
        for ((ring, step_s), bars_max) in self.rings.iter_mut().zip(STEPS_S).zip(BARS_MAX) {
            let bar = Bar { minute: minute - minute % minutes_of(step_s), price, traded };
            let standing = ring.standing(self.middle, step_s).filter(|standing| standing.minute < bar.minute);
            for bar in standing.into_iter().chain([bar]) {
                ring.note(bar, bars_max);
            }
        }
        self.middle = (!traded).then_some(price);
    }
}

fn minutes_of(step_s: u64) -> u32 {
    u32::try_from(step_s / MINUTE_S).expect("half a day")
}

/// Which prices are asked for, in seconds, the end included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The shortest step that will do.
    pub(super) step: u64,
}

/// The prices of all markets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    /// By number, up to the last market that ever had a price.
    markets: Vec<Option<Box<Bars>>>,
}

impl History {
    /// Notes a trade at this price, in terms of token 0.
    pub(super) fn traded(&mut self, market: MarketNo, time: TimeMs, price: Price) {
        self.bars(market).note(time, HalfSteps::of(price), true);
    }

    /// Notes the middle of `market`'s book, which may have changed.
    pub(super) fn quoted(&mut self, market: MarketNo, time: TimeMs, levels: &Levels) {
        let known = self.markets.get(market.index()).and_then(Option::as_ref);
        let known = known.and_then(|bars| bars.middle);
        if let Some(middle) = HalfSteps::middle(levels).filter(|middle| known != Some(*middle)) {
            self.bars(market).note(time, middle, false);
        }
    }

    /// The first second of the minute of the first price, and of that of the last price.
    pub(super) fn known_s(&self, market: MarketNo) -> Option<[u64; 2]> {
        let bars = self.markets.get(market.index())?.as_ref()?;
        let second = |minute| u64::from(minute) * MINUTE_S;
        (0 < bars.last_minute).then(|| [bars.first_minute, bars.last_minute].map(second))
    }

    /// The prices of a window, oldest first, and the step that they have, in seconds. The first is that of the step in
    /// which the window begins: if no price was noted in it, the price that stood then, if there was any.
    pub(super) fn prices(&self, market: MarketNo, window: Window) -> (u64, Vec<(u64, HalfSteps)>) {
        let Some(bars) = self.markets.get(market.index()).and_then(Option::as_ref) else {
            return (window.step, Vec::new());
        };
        let wanted = STEPS_S.iter().position(|step| window.step <= *step).unwrap_or(STEPS - 1);
        let reaches = |place: &usize| {
            let step = STEPS_S[*place];
            bars.rings[*place].reaches(window.start - window.start % step)
        };
        let place = (wanted..STEPS).find(reaches).unwrap_or(STEPS - 1);
        let step = STEPS_S[place];
        let start_s = window.start - window.start % step;
        let is_before = |bar: &Bar| bar.start_s() < start_s;
        let said = bars.known(place).skip_while(is_before).take_while(|bar| bar.start_s() <= window.end);
        let mut said = said.map(|bar| (bar.start_s(), bar.price)).peekable();
        let opens = said.peek().is_some_and(|(second, _)| *second == start_s);
        let stood = bars.known(place).rev().find(is_before).filter(|_| !opens && window.start <= window.end);
        (step, stood.map(|bar| (start_s, bar.price)).into_iter().chain(said).collect())
    }

    /// The last price that is known to have been noted by second `by`: when its step begins, how long that is, in
    /// seconds, and the price. A step is known to be over with its last second.
    pub(super) fn price_by(&self, market: MarketNo, by: u64) -> Option<(u64, u64, HalfSteps)> {
        let bars = self.markets.get(market.index()).and_then(Option::as_ref)?;
        for (place, step) in STEPS_S.into_iter().enumerate() {
            let is_over = |bar: &Bar| bar.start_s() + step - 1 <= by;
            if let Some(bar) = bars.known(place).rev().find(is_over) {
                return Some((bar.start_s(), step, bar.price));
            }
            // Only where a bar is gone do longer steps know more.
            bars.rings[place].gone?;
        }
        None
    }

    /// What a snapshot keeps, market by market.
    pub(super) fn markets(&self) -> &[Option<Box<Bars>>] {
        &self.markets
    }

    /// Takes the next market of a snapshot.
    pub(super) fn take_market(&mut self, bars: Option<Box<Bars>>) {
        self.markets.push(bars);
    }

    fn bars(&mut self, market: MarketNo) -> &mut Bars {
        if self.markets.len() <= market.index() {
            self.markets.resize_with(market.index() + 1, || None);
        }
        self.markets[market.index()].get_or_insert_default()
    }
}

impl Wire for HalfSteps {
    fn put(&self, out: &mut impl Out) {
        self.0.put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        let damage = input.damage("price");
        let price = u16::take(input)?;
        if (1..Self::ONE).contains(&price) { Ok(Self(price)) } else { Err(damage) }
    }
}

structs! {
    Bar { minute, price, traded }
}

/// The rings, the first and the last minute, the middle.
impl Wire for Bars {
    fn put(&self, out: &mut impl Out) {
        self.rings.put(out);
        (self.first_minute, self.last_minute).put(out);
        self.middle.put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        let damage = input.damage("minutes");
        let rings: [Ring; STEPS] = Wire::take(input)?;
        let (first_minute, last_minute) = Wire::take(input)?;
        let mut newest =
            rings.iter().zip(STEPS_S).filter_map(|(ring, step_s)| Some((ring.bars.back()?, step_s)));
        // The last price is in every ring.
        let agree = newest.all(|(bar, step_s)| {
            let step = step_s / MINUTE_S;
            u64::from(bar.minute) == u64::from(last_minute) / step * step
        });
        if last_minute < first_minute || !agree {
            return Err(damage);
        }
        Ok(Self { rings, first_minute, last_minute, middle: Wire::take(input)? })
    }
}

/// The bars, then the last one that left.
impl Wire for [Ring; STEPS] {
    fn put(&self, out: &mut impl Out) {
        for ring in self {
            ring.bars.iter().copied().collect::<Vec<Bar>>().put(out);
            ring.gone.put(out);
        }
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        let mut rings = Self::default();
        for (ring, bars_max) in rings.iter_mut().zip(BARS_MAX) {
            let damage = input.damage("bars");
            let bars = Vec::<Bar>::take(input)?;
            let gone = <Option<Bar> as Wire>::take(input)?;
            let in_order = gone.iter().chain(&bars).is_sorted_by(|one, next| one.minute < next.minute);
            if bars_max < bars.len() || !in_order {
                return Err(damage);
            }
            *ring = Ring { bars: bars.into(), gone };
        }
        Ok(rings)
    }
}

impl Wire for Box<Bars> {
    fn put(&self, out: &mut impl Out) {
        (**self).put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, Damage> {
        Bars::take(input).map(Self::new)
    }
}

#[cfg(test)]
mod tests;
