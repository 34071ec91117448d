//! A part of the run in which requests took longer than in the rest of it, as a process that comes and goes
//! causes.

use super::numbers::micros;
use super::taker;
use crate::summary::{Moment, Summary};

/// A moment is slow from this multiple of the run's usual p99 on.
const SLOW_TIMES_MIN: f64 = 3.0;
/// Fewer slow moments in a row than this, each a tenth of a second, may be a single stop.
const MOMENTS_MIN: usize = 10;
/// Slow moments further apart than this belong to different spells.
const BETWEEN_MAX: usize = 3;

/// The longest such spell: when it was, how long requests of its tenths of a second took beside those of the others,
/// and who had the CPU. Of all requests of the spell no quantile is known, only of those of each tenth.
pub(super) fn of(summary: &Summary) -> Option<String> {
    let moments = summary.time_line.as_slice();
    let usual_us = median(moments.iter().map(|moment| moment.p99_us))?;
    let is_slow = |moment: &Moment| SLOW_TIMES_MIN * usual_us <= moment.p99_us;
    let slow: Vec<usize> = (0..moments.len()).filter(|&index| is_slow(&moments[index])).collect();
    let apart = |one: &usize, next: &usize| next - one <= BETWEEN_MAX;
    let longest = slow.chunk_by(apart).max_by_key(|chunk| chunk.len())?;
    let (first, last) = (*longest.first()?, *longest.last()?);
    let (slow, rest) = (&moments[first..=last], [&moments[..first], &moments[last + 1..]].concat());
    if longest.len() < MOMENTS_MIN || rest.is_empty() {
        return None;
    }
    // A moment is a tenth of a second.
    let (from_s, to_s) = (slow[0].at_s, slow.last()?.at_s + 0.1);
    let of = |moments: &[Moment], us: fn(&Moment) -> f64| {
        median(moments.iter().map(us)).map_or_else(String::new, micros)
    };
    Some(format!(
        "From {from_s:.1} s to {to_s:.1} s of the run half of the tenths of a second had a p50 of {} or more instead of {}, \
         and half a p99 of {} or more instead of {}.{}",
        of(slow, |moment| moment.p50_us),
        of(&rest, |moment| moment.p50_us),
        of(slow, |moment| moment.p99_us),
        of(&rest, |moment| moment.p99_us),
        then(summary, to_s - from_s).unwrap_or_default()
    ))
}

/// Who had most of a CPU, and which part of it during the spell, if everything that they had was in the spell.
fn then(summary: &Summary, spell_s: f64) -> Option<String> {
    let taken = taker::of_cpu(summary, taker::most_taken(summary)?)?;
    let percent = taken.had_percent() * (summary.time_s + summary.warm_up_s) / spell_s;
    (percent <= 100.0).then(|| {
        let (who, cpu) = (taken.who(), taken.gaps.cpu);
        format!(" If all that others had of CPU {cpu} was then, it was {percent:.0} % of it: {who}; to change: {}.", taken.remedy())
    })
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::example;
    use crate::watch::Other;

    #[test]
    fn a_slow_part_of_a_run_is_told_with_who_had_the_cpu_then() {
        let moment = |index: u32, is_slow| {
            let times = if is_slow { 10.0 } else { 1.0 };
            Moment {
                at_s: f64::from(index) / 10.0,
                count: 200,
                p50_us: 40.0 * times,
                p99_us: 60.0 * times,
                max_us: 900.0,
            }
        };
        let line = |is_slow: fn(u32) -> bool| (0..60).map(|index| moment(index, is_slow(index))).collect();
        let sh = Other { who: "sh (7)".to_owned(), is_kernels: false, cpus: 0.125, may_have: None };
        let slow = "From 2.0 s to 3.5 s of the run half of the tenths of a second had a p50 of 400 µs or more instead \
                    of 40.0 µs, and half a p99 of 600 µs or more instead of 60.0 µs.";
        let who = " If all that others had of CPU 1 was then, it was 50 % of it: sh (7); to change: stop sh (7), or keep it off this CPU.";
        let all: [(Vec<Moment>, Option<f64>, Option<String>); 6] = [
            (line(|index| (20..35).contains(&index)), Some(12.5), Some(format!("{slow}{who}"))),
            (
                line(|index| (20..35).contains(&index) && index != 27),
                Some(12.5),
                Some(format!("{slow}{who}")),
            ),
            (line(|index| (20..35).contains(&index)), Some(1.0), Some(slow.to_owned())),
            (line(|index| (20..29).contains(&index)), Some(12.5), None),
            (line(|index| index % 7 == 0), None, None),
            (Vec::new(), None, None),
        ];
        for (time_line, client_lost_percent, expected) in all {
            let others_of_cpus = vec![(1, sh.clone())];
            let summary = Summary { time_line, others_of_cpus, client_lost_percent, ..example() };
            assert_eq!(of(&summary), expected);
        }
    }
}
