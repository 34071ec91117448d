//! A token's prices over time, in buckets of any length.
//!
//! A window is an `interval` up to now, or a start and perhaps an end, or `as_of`: the latest price at that second. A
//! bucket has the last price that was noted in it; without one it has no point, but for the first (`bars` has the
//! rules). Where prices of so short a step are not kept any more, a bucket is as long as the shortest step that is, and
//! `resolution_seconds` says so.

use super::super::super::Reader;
use super::super::super::ask::{Asked, Refused, TOKEN_RULE, token_id};
use super::super::super::bars::{STEPS_S, Window};
use super::super::params::{Bounds, Params, invalid, missing};
use super::paging::{Start, params};
use crate::json::{Writer, decimal};

const LIMIT: Bounds = Bounds { min: 1, default: 10_000, max: 10_000 };

const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 60 * MINUTE_S;
const DAY_S: u64 = 24 * HOUR_S;

/// The longest time between a start and an end.
const SPAN_MAX_S: u64 = 15 * DAY_S;

/// A named window, in seconds.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Interval {
    /// How far it reaches back; none is to the first price.
    back: Option<u64>,
    /// Its bucket, if the request names none.
    bucket: u64,
    /// Its shortest bucket.
    shortest: u64,
}

const fn interval(back: Option<u64>, bucket: u64, shortest: u64) -> Interval {
    Interval { back, bucket, shortest }
}

const INTERVALS: [(&str, Interval); 7] = [
    ("1h", interval(Some(HOUR_S), MINUTE_S, MINUTE_S)),
    ("6h", interval(Some(6 * HOUR_S), MINUTE_S, MINUTE_S)),
    ("1d", interval(Some(DAY_S), MINUTE_S, MINUTE_S)),
    ("1w", interval(Some(7 * DAY_S), 5 * MINUTE_S, 5 * MINUTE_S)),
    // A month, not a minute.
    ("1m", interval(Some(30 * DAY_S), 30 * MINUTE_S, 10 * MINUTE_S)),
    ("max", interval(None, 12 * HOUR_S, 10 * MINUTE_S)),
    ("all", interval(None, 12 * HOUR_S, 10 * MINUTE_S)),
];

const WINDOW_RULE: &str = "one of interval, start (with an end or without) and as_of";

/// What is asked for, in seconds.
enum Wanted {
    Interval(Interval),
    /// The end is not included.
    Span(u64, u64),
    AsOf(u64),
}

impl Wanted {
    fn of(params: &Params<'_>, now_s: u64) -> Result<Self, Refused> {
        let second = |field| {
            let second = params.second(field)?;
            let refused = || invalid(field, "0", "a second after 1970".into());
            second.map(|second| if second == 0 { Err(refused()) } else { Ok(second) }).transpose()
        };
        let (start, end, as_of) = (second("start")?, second("end")?, second("as_of")?);
        match (params.word("interval", &INTERVALS)?, start, end, as_of) {
            (Some(interval), None, None, None) => Ok(Self::Interval(interval)),
            (None, None, None, Some(as_of)) => Ok(Self::AsOf(as_of)),
            (None, Some(start), end, None) => {
                let end = end.unwrap_or(now_s.saturating_add(1));
                if end < start {
                    return Err(invalid("end", &end.to_string(), "a second from the start on".into()));
                }
                if SPAN_MAX_S < end - start {
                    return Err(invalid("end", &end.to_string(), "at most 15 days after the start".into()));
                }
                Ok(Self::Span(start, end))
            }
            (None, None, None, None) => Err(missing("interval", WINDOW_RULE)),
            _ => Err(invalid("interval", "several windows", WINDOW_RULE.into())),
        }
    }

    /// The length of a bucket, if the request does not say it, and of the shortest one.
    const fn buckets(&self) -> [u64; 2] {
        match self {
            Self::Interval(interval) => [interval.bucket, interval.shortest],
            Self::AsOf(_) => [MINUTE_S; 2],
            Self::Span(start, end) if *end - *start <= 12 * HOUR_S => [MINUTE_S; 2],
            Self::Span(start, end) if *end - *start <= 7 * DAY_S => [5 * MINUTE_S, MINUTE_S],
            Self::Span(..) => [30 * MINUTE_S, MINUTE_S],
        }
    }

    /// The window over a market whose first price was at `first_s` and whose last was at `last_s`.
    fn window(&self, [first_s, last_s]: [u64; 2], now_s: u64, step: u64) -> Window {
        match *self {
            Self::AsOf(second) => Window { start: second, end: second, step },
            Self::Span(start, end) => Window { start, end: end.saturating_sub(1), step },
            Self::Interval(Interval { back, .. }) => {
                let start = back.map_or(first_s, |back| now_s.saturating_sub(back));
                // The last price is later than now while the log is ahead of a clock that was set back.
                Window { start, end: now_s.max(last_s), step }
            }
        }
    }
}

/// The length of the buckets that are asked for.
fn bucket(params: &Params<'_>, wanted: &Wanted) -> Result<u64, Refused> {
    const RULE: &str = "whole minutes, in seconds: from 60 to 86400";
    let read = |text: &str| {
        let seconds = decimal::parse_integer(text.as_bytes()).ok()?;
        (seconds % MINUTE_S == 0 && (MINUTE_S..=DAY_S).contains(&seconds)).then_some(seconds)
    };
    let [default, shortest] = wanted.buckets();
    Ok(params.read("bucket_seconds", || RULE.into(), read)?.unwrap_or(default).max(shortest))
}

impl Reader {
    /// GET /v2/prices-history, oldest first.
    pub(super) fn prices_history_v2(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        const NAMES: [&str; 8] =
            ["token_id", "interval", "start", "end", "as_of", "bucket_seconds", "limit", "cursor"];
        let params = params(asked, &NAMES)?;
        let id = params.read("token_id", || TOKEN_RULE.into(), |text| token_id(text.as_bytes()))?;
        let id = id.ok_or(missing("token_id", TOKEN_RULE))?;
        let start = Start::of(&params, "prices-history", LIMIT)?;
        let now_s = asked.now().seconds();
        let wanted = Wanted::of(&params, now_s)?;
        let bucket_s = bucket(&params, &wanted)?;
        let after = start.after()?.map(|[second]: [i128; 1]| second);
        let token = self.index.token(&id);
        let known = token.and_then(|token| Some((token, self.history.known_s(token.market)?)));
        let mut points: Vec<(u64, u64)> = Vec::new();
        let mut width_s = bucket_s;
        if let Some((token, known_s)) = known {
            let shorter = STEPS_S.into_iter().rev().find(|step| bucket_s.is_multiple_of(*step));
            let step = shorter.expect("a bucket is whole minutes");
            let (step, prices) = self.history.prices(token.market, wanted.window(known_s, now_s, step));
            width_s = bucket_s.max(step);
            for (second, price) in prices {
                let point = (second - second % width_s, price.millionths(token.outcome));
                match points.last_mut() {
                    Some(last) if last.0 == point.0 => *last = point,
                    _ => points.push(point),
                }
            }
        }
        points.retain(|(second, _)| after.is_none_or(|after| after < i128::from(*second)));
        let page = &points[..points.len().min(start.limit)];
        let mark = |point: &(u64, u64)| vec![i128::from(point.0)];
        let behind = page.last().filter(|_| page.len() < points.len()).map(mark);
        start.write(json, page, behind, mark, |json, (second, price)| {
            json.open_object().key("timestamp").number(*second).key("price").millionths_number(*price);
            json.key("resolution_seconds").number(width_s).close_object();
            Ok(())
        })
    }
}
