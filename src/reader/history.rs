//! Prices over time: the last trade of each step in which there was one.
//!
//! A window is an `interval` up to now, or a start and an end; a step is one of five, from a
//! minute to half a day. `t` is the second at which the step began, `p` the price of the last
//! fill in it, as the token sees it.

use super::ask::{Asked, Refused, bad_parameter, no_book, token_id, too_long};
use super::books::write_name;
use super::levels::seen_from;
use super::{Reader, Token};
use crate::domain::TimeMs;
use crate::json::Writer;
use serde_json::Value;

/// Tokens in one batch.
const TOKENS_MAX: usize = 20;

/// Points of one token; a window with more wants a longer step.
const POINTS_MAX: usize = 10_000;

/// Points that a step chosen by us aims to stay below.
const POINTS_AIMED_AT: u64 = 1_000;

const MINUTE_S: u64 = 60;
const DAY_S: u64 = 24 * 60 * MINUTE_S;

/// The steps there are, in seconds.
const STEPS_S: [u64; 5] = [MINUTE_S, 5 * MINUTE_S, 30 * MINUTE_S, 180 * MINUTE_S, 720 * MINUTE_S];

/// The named intervals in seconds; `max` and `all` go back to the first trade.
const INTERVALS: [(&str, u64); 9] = [
    ("1m", MINUTE_S),
    ("5m", 5 * MINUTE_S),
    ("15m", 15 * MINUTE_S),
    ("1h", 60 * MINUTE_S),
    ("6h", 360 * MINUTE_S),
    ("1d", DAY_S),
    ("1w", 7 * DAY_S),
    ("max", u64::MAX),
    ("all", u64::MAX),
];

/// Which prices are asked for, in seconds; the end belongs to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    start: u64,
    end: u64,
    step: u64,
}

/// A window as asked for.
#[derive(Debug, Default)]
struct Wanted<'a> {
    interval: Option<&'a str>,
    start_s: Option<u64>,
    end_s: Option<u64>,
    fidelity_minutes: Option<u64>,
}

impl Wanted<'_> {
    fn window(&self, now: TimeMs) -> Result<Window, Refused> {
        const RULE: &str = "1m, 5m, 15m, 1h, 6h, 1d, 1w, max or all, or a start instead";
        let end_s = self.end_s.unwrap_or(now.seconds());
        let (start_s, whole) = match (self.interval, self.start_s) {
            (Some(interval), None) if self.end_s.is_none() => {
                let known = INTERVALS.iter().find(|(name, _)| *name == interval);
                let (_, seconds) = known.ok_or(bad_parameter().about("interval", interval, RULE))?;
                (end_s.saturating_sub(*seconds), *seconds == u64::MAX)
            }
            (None, Some(start_s)) => (start_s, false),
            (interval, _) => {
                return Err(bad_parameter().about("interval", interval.unwrap_or_default(), RULE));
            }
        };
        let longest = STEPS_S[STEPS_S.len() - 1];
        let at_least_s = match self.fidelity_minutes {
            Some(0) => return Err(bad_parameter().about("fidelity", "0", "minutes from 1")),
            Some(minutes) => minutes.saturating_mul(MINUTE_S),
            None if whole => longest,
            None => end_s.saturating_sub(start_s) / POINTS_AIMED_AT,
        };
        let step_s = STEPS_S.into_iter().find(|step| *step >= at_least_s).unwrap_or(longest);
        Ok(Window { start: start_s, end: end_s, step: step_s })
    }
}

impl Reader {
    /// GET /prices-history.
    pub(super) fn prices_history(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let token = self.index.token(&asked.token("market")?).ok_or(no_book())?;
        let interval = asked.text("interval")?;
        let seconds = |name| asked.time(name, bad_parameter()).map(|time| time.map(TimeMs::seconds));
        let wanted = Wanted {
            interval: interval.as_deref(),
            start_s: seconds("startTs")?,
            end_s: seconds("endTs")?,
            fidelity_minutes: asked.integer("fidelity", bad_parameter())?,
        };
        let window = wanted.window(asked.now())?;
        json.open_object().key("history");
        self.write_points(json, token, window)?;
        json.close_object();
        Ok(())
    }

    /// POST /batch-prices-history: `{"markets":[token, …], "start_ts", "end_ts", "interval",
    /// "fidelity"}`.
    pub(super) fn batch_prices_history(
        &self,
        asked: &Asked<'_>,
        json: &mut Writer<'_>,
    ) -> Result<(), Refused> {
        let invalid = || Refused::new(400, "invalid_payload", "Invalid payload");
        let body: Value =
            serde_json::from_slice(asked.body()).map_err(|_| invalid().about("body", "", "JSON"))?;
        let number = |name| body.get(name).and_then(Value::as_u64);
        let wanted = Wanted {
            interval: body.get("interval").and_then(Value::as_str),
            start_s: number("start_ts"),
            end_s: number("end_ts"),
            fidelity_minutes: number("fidelity"),
        };
        let window = wanted.window(asked.now())?;
        let markets = body.get("markets").and_then(Value::as_array);
        let markets = markets.ok_or(invalid().about("markets", "", "1 to 20 token ids"))?;
        if markets.is_empty() || markets.len() > TOKENS_MAX {
            return Err(too_long().about("markets", &markets.len().to_string(), "1 to 20 token ids"));
        }
        let mut ids: Vec<_> = markets.iter().filter_map(|id| token_id(id.as_str()?.as_bytes())).collect();
        ids.sort_unstable();
        ids.dedup();
        json.open_object().key("history").open_object();
        for id in ids {
            if let Some(token) = self.index.token(&id) {
                write_name(json, &id);
                self.write_points(json, token, window)?;
            }
        }
        json.close_object().close_object();
        Ok(())
    }

    fn write_points(&self, json: &mut Writer<'_>, token: Token, window: Window) -> Result<(), Refused> {
        let trades = &self.index.market(token.market).trades[..];
        let made_before = |second: u64| {
            let time = TimeMs::from_seconds(second);
            trades.partition_point(|&index| self.index.trade(index).time < time)
        };
        let end = made_before(window.end.saturating_add(1));
        let mut next = made_before(window.start);
        let mut points = 0;
        json.open_array();
        while next < end {
            let first = self.index.trade(trades[next]).time.seconds();
            let step_start = first - first % window.step;
            next = made_before(step_start + window.step).min(end);
            let last = self.index.trade(trades[next - 1]);
            let price = seen_from(token.outcome, last.last_price).ten_thousandths();
            json.open_object().key("t").number(step_start).key("p").ten_thousandths_number(price);
            json.close_object();
            points += 1;
            if points > POINTS_MAX {
                return Err(too_long().about("fidelity", "", "at most 10000 points; ask for a longer step"));
            }
        }
        json.close_array();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_an_interval_or_a_start_and_its_step_is_one_of_five() {
        let now = TimeMs::from_seconds(10 * DAY_S);
        let interval = |interval| Wanted { interval: Some(interval), ..Wanted::default() };
        let minutes = |wanted: Wanted<'_>| wanted.window(now).map(|window| window.step / MINUTE_S).ok();
        for (name, step) in
            [("1m", 1), ("1h", 1), ("6h", 1), ("1d", 5), ("1w", 30), ("max", 720), ("all", 720)]
        {
            assert_eq!(minutes(interval(name)), Some(step), "{name}");
        }
        for (fidelity, step) in [(1, 1), (2, 5), (30, 30), (31, 180), (721, 720), (u64::MAX, 720)] {
            let wanted = Wanted { start_s: Some(0), fidelity_minutes: Some(fidelity), ..Wanted::default() };
            assert_eq!(minutes(wanted), Some(step), "{fidelity}");
        }
        let window = Wanted { start_s: Some(5), end_s: Some(9), ..Wanted::default() }.window(now);
        assert_eq!(window.ok(), Some(Window { start: 5, end: 9, step: 60 }));
        let refused = [
            Wanted::default(),
            interval("2h"),
            Wanted { start_s: Some(0), ..interval("1h") },
            Wanted { end_s: Some(0), ..interval("1h") },
            Wanted { end_s: Some(0), ..Wanted::default() },
            Wanted { start_s: Some(0), fidelity_minutes: Some(0), ..Wanted::default() },
        ];
        for wanted in refused {
            assert_eq!(wanted.window(now).map_err(|refused| refused.status), Err(400), "{wanted:?}");
        }
    }
}
