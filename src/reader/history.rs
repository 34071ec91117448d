//! Prices over time: GET /prices-history and POST /batch-prices-history.
//!
//! A window is an `interval` up to now, or a start and perhaps an end, never both. Its step is the
//! shortest of five that is not below `fidelity` (in minutes), or without one the shortest that makes
//! at most [`POINTS_AIMED_AT`] points from the first price on. "Up to now" means up to the last price,
//! which is later than now while the log is ahead of a clock that was set back.
//!
//! | interval | reaches back |
//! |---|---|
//! | `5m`, `15m`, `1h`, `6h`, `1d`, `1w` | as far as its name says |
//! | `1m` | a month of thirty days, not a minute, as at the venues |
//! | `max`, `all` | to the first price |
//!
//! A point is the second at which its step began, `t`, and the price of that step as the token sees
//! it, `p`: the last trade, or the last middle of the book where nothing was traded (`bars` has the
//! rules, and how far back each step reaches). A step in which neither came has no point, except the
//! window's first step, if there was a price before it, and the step after a trade, if the book has
//! had another middle since.

use super::ask::{Asked, Refused, bad_parameter, invalid, no_book, spelt, time_of, token_id, too_long};
use super::bars::{DAY_S, HOUR_S, MINUTE_S, STEPS_S, Window};
use super::books::write_name;
use super::{Reader, Token};
use crate::domain::{TimeMs, TokenId};
use crate::json::Writer;
use serde_json::Value;

/// Tokens in one batch.
const TOKENS_MAX: usize = 20;

/// The most points aimed at where the request leaves the step to the exchange.
const POINTS_AIMED_AT: u64 = 1_000;

/// How far the named intervals reach back, in seconds; none is to the first price.
const INTERVALS: [(&str, Option<u64>); 9] = [
    ("5m", Some(5 * MINUTE_S)),
    ("15m", Some(15 * MINUTE_S)),
    ("1h", Some(HOUR_S)),
    ("6h", Some(6 * HOUR_S)),
    ("1d", Some(DAY_S)),
    ("1w", Some(7 * DAY_S)),
    ("1m", Some(30 * DAY_S)),
    ("max", None),
    ("all", None),
];

const INTERVAL_RULE: &str = "5m, 15m, 1h, 6h, 1d, 1w, 1m (a month), max or all, or a start instead";

/// A window as asked for, with the route's names of its start and end.
#[derive(Clone, Copy, Debug, Default)]
struct Wanted<'a> {
    names: [&'static str; 2],
    interval: Option<&'a str>,
    start_s: Option<u64>,
    end_s: Option<u64>,
    fidelity_minutes: Option<u64>,
}

/// A window that is valid, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    /// None is the first price.
    start: Option<u64>,
    /// None is now.
    end: Option<u64>,
    now_s: u64,
    /// None leaves it to the exchange.
    step_min: Option<u64>,
}

impl Wanted<'_> {
    fn span(&self, now: TimeMs) -> Result<Span, Refused> {
        let [start_name, end_name] = self.names;
        let step_min = match self.fidelity_minutes {
            Some(0) => return Err(bad_parameter().about("fidelity", "0", "minutes from 1")),
            minutes => minutes.map(|minutes| minutes.saturating_mul(MINUTE_S)),
        };
        let now_s = now.seconds();
        match (self.interval, self.start_s, self.end_s) {
            (Some(interval), None, None) => {
                let known = INTERVALS.iter().find(|(name, _)| *name == interval);
                let refused = || bad_parameter().about("interval", interval, INTERVAL_RULE);
                let (_, seconds) = known.ok_or_else(refused)?;
                let start = seconds.map(|seconds| now_s.saturating_sub(seconds));
                Ok(Span { start, end: None, now_s, step_min })
            }
            (Some(interval), _, _) => {
                let allowed = format!("nothing beside {start_name} or {end_name}");
                Err(bad_parameter().about("interval", interval, allowed))
            }
            (None, None, None) => Err(bad_parameter().about("interval", "", INTERVAL_RULE)),
            (None, None, Some(_)) => {
                Err(bad_parameter().about(start_name, "", "a start beside an end, in seconds"))
            }
            (None, Some(start_s), Some(end_s)) if end_s < start_s => {
                Err(bad_parameter().about(end_name, &end_s.to_string(), "a time from the start on"))
            }
            (None, Some(start_s), end_s) => Ok(Span { start: Some(start_s), end: end_s, now_s, step_min }),
        }
    }
}

impl Span {
    /// The window over a market whose first price was at `first_s` and whose last was at `last_s`.
    fn window(&self, [first_s, last_s]: [u64; 2]) -> Window {
        // Nothing is known from before or from later, so a window that is wider has no longer steps.
        let start = self.start.unwrap_or(0).max(first_s);
        let end = self.end.unwrap_or(u64::MAX).min(self.now_s.max(last_s));
        let will_do = |step: &u64| match self.step_min {
            Some(shortest) => shortest <= *step,
            None => (end / step).saturating_sub(start / step) < POINTS_AIMED_AT,
        };
        let longest = STEPS_S[STEPS_S.len() - 1];
        let step = STEPS_S.into_iter().find(will_do).unwrap_or(longest);
        Window { start, end, step }
    }
}

impl Reader {
    /// GET /prices-history.
    pub(super) fn prices_history(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let token = self.token_of(asked, "market", no_book())?;
        let interval = asked.text("interval")?;
        let seconds = |name| asked.time(name, bad_parameter()).map(|time| time.map(TimeMs::seconds));
        let wanted = Wanted {
            names: ["startTs", "endTs"],
            interval: interval.as_deref(),
            start_s: seconds("startTs")?,
            end_s: seconds("endTs")?,
            fidelity_minutes: asked.integer("fidelity", bad_parameter())?,
        };
        let span = wanted.span(asked.now())?;
        json.open_object().key("history");
        self.write_points(json, token, &span);
        json.close_object();
        Ok(())
    }

    /// POST /batch-prices-history: `{"markets":[token, …], "start_ts", "end_ts", "interval",
    /// "fidelity"}`; Kuest's site writes `startTs` and `endTs`. Tokens that are unknown here are left out.
    pub(super) fn batch_prices_history(
        &self,
        asked: &Asked<'_>,
        json: &mut Writer<'_>,
    ) -> Result<(), Refused> {
        const START: [&str; 2] = ["start_ts", "startTs"];
        const END: [&str; 2] = ["end_ts", "endTs"];
        let body = asked.object(&[START.as_slice(), &END, &["markets", "interval", "fidelity"]].concat())?;
        let (start, end) = (whole(&body, &START)?, whole(&body, &END)?);
        let seconds = |said: Option<(_, u64)>| said.map(|(_, number)| time_of(number).seconds());
        let interval = match body.get("interval") {
            None | Some(Value::Null) => None,
            Some(Value::String(interval)) => Some(interval.as_str()),
            Some(other) => return Err(invalid().about("interval", &other.to_string(), INTERVAL_RULE)),
        };
        let wanted = Wanted {
            names: [start.map_or(START[0], |(name, _)| name), end.map_or(END[0], |(name, _)| name)],
            interval,
            start_s: seconds(start),
            end_s: seconds(end),
            fidelity_minutes: whole(&body, &["fidelity"])?.map(|(_, minutes)| minutes),
        };
        let ids = tokens_of(&body)?;
        let span = wanted.span(asked.now())?;
        json.open_object().key("history").open_object();
        for id in ids {
            if let Some(token) = self.index.token(&id) {
                write_name(json, &id);
                self.write_points(json, token, &span);
            }
        }
        json.close_object().close_object();
        Ok(())
    }

    fn write_points(&self, json: &mut Writer<'_>, token: Token, span: &Span) {
        json.open_array();
        if let Some(known_s) = self.history.known_s(token.market) {
            for (start_s, price) in self.history.prices(token.market, span.window(known_s)).1 {
                json.open_object().key("t").number(start_s);
                json.key("p").millionths_number(price.millionths(token.outcome)).close_object();
            }
        }
        json.close_array();
    }
}

/// A whole number of a body, under any of its names, with its name there.
fn whole(body: &Value, names: &[&'static str]) -> Result<Option<(&'static str, u64)>, Refused> {
    let Some((name, value)) = spelt(body, names)? else { return Ok(None) };
    let refused = || invalid().about(name, &value.to_string(), "a whole number");
    value.as_u64().map(|number| Some((name, number))).ok_or_else(refused)
}

/// The tokens of a body, each once, in order.
fn tokens_of(body: &Value) -> Result<Vec<TokenId>, Refused> {
    const RULE: &str = "1 to 20 token ids in decimal, as strings";
    let markets = match body.get("markets") {
        Some(Value::Array(markets)) => markets,
        other => {
            let got = other.map(Value::to_string).unwrap_or_default();
            return Err(invalid().about("markets", &got, RULE));
        }
    };
    if markets.is_empty() {
        return Err(invalid().about("markets", "[]", RULE));
    }
    if markets.len() > TOKENS_MAX {
        return Err(too_long().about("markets", &markets.len().to_string(), RULE));
    }
    let id = |value: &Value| {
        let id = value.as_str().and_then(|text| token_id(text.as_bytes()));
        id.ok_or_else(|| invalid().about("markets", &value.to_string(), RULE))
    };
    let mut ids: Vec<TokenId> = markets.iter().map(id).collect::<Result<_, _>>()?;
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_an_interval_or_a_start_and_its_step_is_one_of_five() {
        let now = TimeMs::from_seconds(10 * DAY_S);
        let first_s = 10 * DAY_S - 400 * MINUTE_S;
        let known_s = [first_s, 10 * DAY_S - MINUTE_S];
        let names = ["startTs", "endTs"];
        let interval = |interval| Wanted { names, interval: Some(interval), ..Wanted::default() };
        let minutes = |wanted: Wanted<'_>, known_s| {
            wanted.span(now).map(|span| span.window(known_s).step / MINUTE_S).ok()
        };
        for (name, of_old, of_new) in [
            ("5m", 1, 1),
            ("15m", 1, 1),
            ("1h", 1, 1),
            ("6h", 1, 1),
            ("1d", 5, 1),
            ("1w", 30, 1),
            ("1m", 30, 1),
            ("max", 30, 1),
            ("all", 30, 1),
        ] {
            assert_eq!(minutes(interval(name), [MINUTE_S, known_s[1]]), Some(of_old), "{name}");
            assert_eq!(minutes(interval(name), known_s), Some(of_new), "{name}, no older than 400 minutes");
        }
        // The start's own step counts: the thousandth minute after it is one too many.
        let from = |start_s| Wanted { names, start_s: Some(start_s), ..Wanted::default() };
        for (ago, step) in [(999 * MINUTE_S, 1), (999 * MINUTE_S + 1, 5), (1_000 * MINUTE_S, 5)] {
            assert_eq!(minutes(from(10 * DAY_S - ago), [MINUTE_S, known_s[1]]), Some(step), "{ago} s ago");
        }
        for (fidelity, step) in [
            (1, 1),
            (2, 5),
            (5, 5),
            (6, 30),
            (30, 30),
            (31, 180),
            (180, 180),
            (181, 720),
            (721, 720),
            (u64::MAX, 720),
        ] {
            let wanted =
                Wanted { names, start_s: Some(0), fidelity_minutes: Some(fidelity), ..Wanted::default() };
            assert_eq!(minutes(wanted, known_s), Some(step), "{fidelity}");
        }
        let window = |wanted: Wanted<'_>| wanted.span(now).map(|span| span.window(known_s)).ok();
        let bounded = Wanted { names, start_s: Some(5), end_s: Some(9), ..Wanted::default() };
        assert_eq!(window(bounded), Some(Window { start: first_s, end: 9, step: 60 }), "nothing");
        let whole = Window { start: first_s, end: 10 * DAY_S, step: MINUTE_S };
        assert_eq!(window(from(5)), Some(whole));
        let far = Wanted { names, start_s: Some(5), end_s: Some(400 * DAY_S), ..Wanted::default() };
        assert_eq!(window(far), Some(whole));
        let ahead = Wanted { names, start_s: Some(11 * DAY_S), end_s: Some(12 * DAY_S), ..Wanted::default() };
        assert_eq!(window(ahead), Some(Window { start: 11 * DAY_S, end: 10 * DAY_S, step: 60 }), "nothing");
        assert_eq!(window(interval("max")), Some(whole));
        let refused = [
            Wanted { names, ..Wanted::default() },
            interval("2h"),
            Wanted { start_s: Some(0), ..interval("1h") },
            Wanted { end_s: Some(0), ..interval("1h") },
            Wanted { names, end_s: Some(0), ..Wanted::default() },
            Wanted { names, start_s: Some(2), end_s: Some(1), ..Wanted::default() },
            Wanted { names, start_s: Some(0), fidelity_minutes: Some(0), ..Wanted::default() },
        ];
        for wanted in refused {
            assert_eq!(wanted.span(now).map_err(|refused| refused.status), Err(400), "{wanted:?}");
        }
    }
}
