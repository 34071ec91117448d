//! A token's prices over time, in buckets of any length.
//!
//! A window is an `interval` up to now, or a start and perhaps an end, or `as_of`: the latest price that is known to
//! have been noted by that second, which is that of the last bucket that was over or, from now on, the last of all.
//!
//! A bucket has the price of the last of its steps in which one was noted; without one it has no point, but for the
//! first (`bars` has the rules). Where prices of so short a step are not kept any more, a bucket is as long as whole
//! steps that are, and `resolution_seconds` says so. The first bucket and the last one are told as a whole too. From its
//! resolution on, a market has its payout, as a point of no length.

use super::super::super::ask::{Asked, Refused, TOKEN_RULE, token_id};
use super::super::super::bars::{DAY_S, HOUR_S, HalfSteps, MINUTE_S, STEPS_S, Window};
use super::super::super::{Reader, Token};
use super::super::params::{Bounds, Params, invalid, missing};
use super::paging::{Start, params};
use crate::json::{Writer, decimal};

const LIMIT: Bounds = Bounds { min: 1, default: 10_000, max: 10_000 };

/// The longest time between a start and an end.
const SPAN_MAX_S: u64 = 15 * DAY_S;

/// How long a request may have been on its way since its client worked out a start.
const ON_ITS_WAY_S: u64 = MINUTE_S;

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
            (None, Some(start), Some(end), None) if end < start => {
                Err(invalid("end", &end.to_string(), "a second from the start on".into()))
            }
            (None, Some(start), end, None) => {
                let until_now = (now_s.saturating_add(1).max(start), SPAN_MAX_S + ON_ITS_WAY_S);
                let (end, longest) = end.map_or(until_now, |end| (end, SPAN_MAX_S));
                if longest < end - start {
                    return Err(invalid(
                        "start",
                        &start.to_string(),
                        "at most 15 days before the end".into(),
                    ));
                }
                Ok(Self::Span(start, end))
            }
            (None, None, None, None) => Err(missing("interval", WINDOW_RULE)),
            _ => Err(invalid("interval", "several windows", WINDOW_RULE.into())),
        }
    }

    /// Where the payout of a market that was resolved by some second stands, if it stands in what is asked for.
    fn paid_at(&self, resolved_s: u64, now_s: u64) -> Option<u64> {
        match *self {
            Self::Interval(Interval { back, .. }) => {
                Some(resolved_s.max(back.map_or(0, |back| now_s.saturating_sub(back))))
            }
            Self::Span(start, end) => {
                let stands = resolved_s.max(start);
                (stands < end).then_some(stands)
            }
            Self::AsOf(second) => (resolved_s <= second).then_some(resolved_s),
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
}

/// The length of the buckets that are asked for.
fn bucket(params: &Params<'_>, wanted: &Wanted) -> Result<u64, Refused> {
    const RULE: &str = "a whole number of seconds from 60 to 86400";
    let read = |text: &str| {
        let seconds = decimal::parse_integer(text.as_bytes()).ok()?;
        (MINUTE_S..=DAY_S).contains(&seconds).then_some(seconds)
    };
    let [default, shortest] = wanted.buckets();
    let bucket = params.read("bucket_seconds", || RULE.into(), read)?;
    match bucket {
        Some(bucket) if matches!(wanted, Wanted::AsOf(_)) => {
            Err(invalid("bucket_seconds", &bucket.to_string(), "left out beside as_of".into()))
        }
        bucket => Ok(bucket.unwrap_or(default).next_multiple_of(MINUTE_S).max(shortest)),
    }
}

/// A point: when its bucket begins, how long that is, in seconds, and the price in millionths.
type Point = (u64, u64, u64);

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
        let mut points = token.map_or_else(Vec::new, |token| self.points(token, &wanted, bucket_s, now_s));
        if let Some((resolved_s, payout)) = token.and_then(|token| self.paid(token))
            && let Some(stands) = wanted.paid_at(resolved_s, now_s)
        {
            points.retain(|(begin, ..)| *begin < resolved_s && !matches!(wanted, Wanted::AsOf(_)));
            points.push((stands, 0, payout));
        }
        points.retain(|(second, ..)| after.is_none_or(|after| after < i128::from(*second)));
        let page = &points[..points.len().min(start.limit)];
        let mark = |point: &Point| vec![i128::from(point.0)];
        let behind = page.last().filter(|_| page.len() < points.len()).map(mark);
        start.write(json, page, behind, mark, |json, (second, width_s, price)| {
            json.open_object().key("timestamp").number(*second).key("price").millionths_number(*price);
            json.key("resolution_seconds").number(*width_s).close_object();
        });
        Ok(())
    }

    /// The second of a market's resolution, and what a share of the token pays.
    fn paid(&self, token: Token) -> Option<(u64, u64)> {
        let row = self.market(token.market);
        Some((row.resolved?.seconds(), row.payout?.per_share(token.outcome).into()))
    }

    fn points(&self, token: Token, wanted: &Wanted, bucket_s: u64, now_s: u64) -> Vec<Point> {
        let Some([first_s, last_s]) = self.history.known_s(token.market) else { return Vec::new() };
        // The last price is later than now while the log is ahead of a clock that was set back.
        let known_s = now_s.max(last_s);
        let (start, end) = match *wanted {
            Wanted::AsOf(second) => {
                // Of now, the minute that is not over counts too.
                let by = if now_s <= second { known_s - known_s % MINUTE_S + (MINUTE_S - 1) } else { second };
                let point = self.history.price_by(token.market, by);
                let seen = |(begin, step, price): (u64, u64, HalfSteps)| {
                    (begin, step, price.millionths(token.outcome))
                };
                return point.map(seen).into_iter().collect();
            }
            // Nothing is known from later than that.
            Wanted::Span(start, end) if end <= start || known_s < start => return Vec::new(),
            Wanted::Span(start, end) => (start, (end - 1).min(known_s)),
            Wanted::Interval(Interval { back, .. }) => {
                (back.map_or(first_s, |back| now_s.saturating_sub(back)), known_s)
            }
        };
        let shorter = STEPS_S.into_iter().rev().find(|step| bucket_s.is_multiple_of(*step));
        let (mut step, mut width_s) = (shorter.expect("a bucket is whole minutes"), bucket_s);
        // The first step that is kept as far back as the first bucket begins, which it makes longer.
        let prices = loop {
            let end = (end - end % width_s + (width_s - 1)).min(known_s);
            let start = start - start % width_s;
            let (found, prices) = self.history.prices(token.market, Window { start, end, step });
            if found == step {
                break prices;
            }
            (step, width_s) = (found, bucket_s.next_multiple_of(found));
        };
        buckets(prices.into_iter().map(|(second, price)| (second, price.millionths(token.outcome))), width_s)
    }
}

/// The last price of each bucket of so many seconds.
fn buckets(prices: impl Iterator<Item = (u64, u64)>, width_s: u64) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for (second, price) in prices {
        let point = (second - second % width_s, width_s, price);
        match points.last_mut() {
            Some(last) if last.0 == point.0 => *last = point,
            _ => points.push(point),
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_has_the_last_price_noted_in_it() {
        let prices = [(0, 1), (60, 2), (180, 3), (300, 4), (900, 5)];
        assert_eq!(buckets(prices.into_iter(), 60), prices.map(|(second, price)| (second, 60, price)));
        assert_eq!(buckets(prices.into_iter(), 300), [(0, 300, 3), (300, 300, 4), (900, 300, 5)]);
    }
}
