//! Whether the trading loops have room, at which rate they would be full, and where their time went.
//!
//! A loop's time is measured twice. Its turns say how long it worked, on anything; the stages of each request say
//! what that request alone took. The calls that read and write sockets are in no stage, nor is the work done once
//! per turn. So the rate worked out from the stages alone cannot be reached: both are reported, with the
//! difference explained.

use super::numbers::{about, count, micros};
use super::words::Told;
use super::{taker, writes};
use crate::away::Away;
use crate::parts::{self, Parts};
use crate::summary::{LoopBusy, Summary};
use crate::verdict::LOST_PERCENT_MAX;

/// A loop that works more of the time than this has no room for a burst.
const FULL: f64 = 0.9;

/// A loop that works less of the time than this does not show when it is full.
pub(super) const BUSY_TELLING: f64 = 0.05;

/// Whether the trading loops are full, and what would make room.
pub(super) fn of(summary: &Summary) -> Option<Told> {
    let trading = summary.threads.iter().filter(|thread| thread.is_trading()).count().max(1);
    let busiest = busiest(summary);
    let needed = summary.loops_needed / summary.achieved_per_s.max(1.0) * summary.offered_per_s;
    #[allow(clippy::cast_precision_loss, reason = "loops are few")]
    let room = trading as f64;
    let is_full = busiest.is_some_and(|share| FULL < share.busy) || FULL * room < needed;
    let sum = busiest.map_or_else(
        || by_stages(summary, needed, trading),
        |share| format!("{}{}", by_turns(summary, share), between(summary)),
    );
    let text = if let Some(taken) = taken(summary).filter(|_| is_full) {
        format!("By the clock the trading loop is full, but {taken}. {sum}.")
    } else if is_full {
        format!(
            "The trading loop is full. {sum}. More is carried by signers that are known \
             (auth.known_signers_bytes), loops for sockets and signatures alone (cpu.ingress), or more shards \
             (cpu.shards)."
        )
    } else {
        format!("{sum}. There is room.{}", full_at(summary, busiest))
    };
    let is_told = busiest.is_some() || needed > 0.0;
    is_told.then_some(Told { is_limit: is_full, text })
}

/// That others had the busiest loop's CPU, and what gives it back. By the clock a loop works while it is stopped, so
/// nothing that it worked says then that it needs help.
fn taken(summary: &Summary) -> Option<String> {
    let waited = busiest(summary).and_then(taken_percent).map(|percent| {
        let ask = "`outcry check --jitter` while it lasts says who";
        (format!("it had no CPU for at least {percent:.0} % of all time"), ask.to_owned())
    });
    // The little time without work of a loop that is full says nothing of all time.
    let is_telling = waited.is_some() || away(summary).is_none();
    let known = taker::beside(summary).filter(|_| is_telling).map(|taken| (taken.by(), taken.remedy()));
    let (taken, remedy) = known.or(waited)?;
    Some(format!("{taken}, and the stops count as work; to change first: {remedy}"))
}

fn trading(summary: &Summary) -> impl Iterator<Item = &LoopBusy> {
    let starts = ["outcry-shard", "outcry-ingress"];
    summary.loops.iter().filter(move |share| starts.iter().any(|start| share.name.starts_with(start)))
}

/// What limited a run that could not answer everything: its busiest loop, or something else; not known if the loop's
/// CPU was taken.
pub(crate) fn at_the_end(busiest: &LoopBusy) -> String {
    let LoopBusy { name, busy, .. } = busiest;
    let worked = format!("{name} worked {:.0} % of the time", 100.0 * busy);
    if let Some(percent) = taken_percent(busiest) {
        return format!(
            " There {worked} by the clock, stops included, and had no CPU for at least {percent:.0} % of all time: what \
             it can do with all of its CPU is not known."
        );
    }
    if FULL < *busy {
        return format!(" There {worked}: its CPU is what was full.");
    }
    format!(
        " No trading loop was full there: the busiest, {worked}. What ended first is the rig's: the client's CPU, or \
         what shares it."
    )
}

/// That the busiest loop's CPU was taken while the load was on, or that stops of a CPU explain at least half of what no
/// stage saw of these requests.
pub(super) fn taken_meanwhile(summary: &Summary, parts: &Parts) -> Option<String> {
    let explains = |wait_us: f64| writes::CAUSE_MIN * parts.unseen_us() <= wait_us;
    let met = taker::met(summary, &parts.of).filter(|(wait_us, _)| explains(*wait_us));
    let of_loop = || {
        let share = busiest(summary)?;
        let percent = taken_percent(share)?;
        Some(format!("{} had no CPU for at least {percent:.0} % of all time", share.name))
    };
    met.map(|(_, taken)| taken.by()).or_else(of_loop)
}

/// Percent of all time, at least, for which others had a loop's CPU while the load was on, if it was more than a VALID
/// run may lose: threads of this machine by its run delay, or anybody while it spun.
fn taken_percent(share: &LoopBusy) -> Option<f64> {
    let idle = (1.0 - share.busy).max(0.0);
    let noticed = share.away.as_ref().map_or(0.0, |away| idle * away.lost_percent);
    Some(noticed.max(share.waited_percent.unwrap_or(0.0))).filter(|percent| LOST_PERCENT_MAX < *percent)
}

/// The trading loop that worked most.
pub(crate) fn busiest(summary: &Summary) -> Option<&LoopBusy> {
    trading(summary).max_by(|one, other| one.busy.total_cmp(&other.busy))
}

/// The moments in which the busiest loop had no CPU while the load was on, if it only spun and so noticed them.
pub(super) fn away(summary: &Summary) -> Option<&Away> {
    let busiest = busiest(summary)?;
    let spins = summary.threads.iter().any(|thread| thread.name == busiest.name && thread.never_sleeps());
    busiest.away.as_ref().filter(|_| spins)
}

/// Whether anything was answered, without which no time is of each.
fn has_answers(summary: &Summary) -> bool {
    1.0 <= summary.achieved_per_s
}

/// A part of the time, divided among the answered requests, in microseconds.
fn each_us(summary: &Summary, part: f64) -> f64 {
    part * 1e6 / summary.achieved_per_s.max(1.0)
}

/// How long the busiest loop worked for each request, and all trading loops together.
fn by_turns(summary: &Summary, busiest: &LoopBusy) -> String {
    let (LoopBusy { name, busy, .. }, rate) = (busiest, count(summary.achieved_per_s));
    if !has_answers(summary) {
        return format!("{name} worked {:.0} % of the time, and no answer came", 100.0 * busy);
    }
    let own = micros(each_us(summary, *busy));
    let others = match trading(summary).count() {
        1 => String::new(),
        loops => {
            let all = micros(each_us(summary, trading(summary).map(|share| share.busy).sum()));
            format!("; all {loops} trading loops together, {all}")
        }
    };
    format!(
        "{name} worked {:.0} % of the time, {own} for each of {rate} requests a second{others}",
        100.0 * busy
    )
}

/// What the loops took for each request beyond its stages; none if the stages are larger.
pub(super) fn in_no_stage_us(summary: &Summary) -> Option<f64> {
    let all_us = each_us(summary, trading(summary).map(|share| share.busy).sum());
    let stages_us = each_us(summary, summary.loops_needed);
    Some(all_us - stages_us).filter(|us| 0.0 <= *us && stages_us > 0.0)
}

/// What is between turns and stages, as a sentence.
fn between(summary: &Summary) -> String {
    let Some(unseen_us) = in_no_stage_us(summary) else { return String::new() };
    let sending: Option<f64> = trading(summary).map(|share| share.sending).sum();
    let sent = sending.map(|part| {
        format!("{} of that writes answers to sockets, the rest", micros(each_us(summary, part)))
    });
    format!(
        ". Of that the stages {} have {}; the other {} are in no stage: {} reads sockets, passes on what was \
         decided, is what each turn costs, and what others had of its CPU meanwhile",
        parts::BUSY.join(", "),
        micros(each_us(summary, summary.loops_needed)),
        micros(unseen_us),
        sent.as_deref().unwrap_or("it writes answers,")
    )
}

/// What the stages alone say, if the server does not report its loops' turns.
fn by_stages(summary: &Summary, needed: f64, trading: usize) -> String {
    format!(
        "{} requests a second, {} each in {}, need {needed:.2} of {trading} trading loop{}",
        count(summary.offered_per_s),
        micros(needed * 1e6 / summary.offered_per_s.max(1.0)),
        parts::BUSY.join(", "),
        if trading == 1 { "" } else { "s" }
    )
}

/// The rate at which the busiest loop would be full, from the time it worked.
pub(super) fn full_at_per_s(summary: &Summary) -> Option<f64> {
    // A loop that hardly works says nothing about one that is full.
    let telling = busiest(summary).filter(|share| has_answers(summary) && BUSY_TELLING <= share.busy);
    telling.map(|share| summary.achieved_per_s / share.busy)
}

fn full_at(summary: &Summary, busiest: Option<&LoopBusy>) -> String {
    let Some((rate, share)) = full_at_per_s(summary).zip(busiest) else { return String::new() };
    let each = micros(each_us(summary, share.busy));
    if let Some(taken) = taker::beside(summary) {
        return format!(
            " With requests of this mix it would be full at about {} a second (1 s / {each}) beside others, who had {:.0} % of its CPU \
             {}, and at more without them; from 80 % of that on they wait in line.",
            about(rate),
            taken.had_percent(),
            taker::when(summary, taken.gaps.cpu)
        );
    }
    format!(
        " With requests of this mix it would be full at about {} a second (1 s / {each}) or above, for a turn with more of \
         them costs less for each; from 80 % of that on they wait in line.",
        about(rate)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::went;
    use crate::summary::example;

    fn share(name: &str, busy: f64, sending: Option<f64>) -> LoopBusy {
        LoopBusy { name: name.to_owned(), busy, sending, waited_percent: None, away: None }
    }

    #[test]
    fn a_loop_is_full_by_what_it_worked_or_by_what_was_offered() {
        let example = example();
        let busy = |busy| vec![share("outcry-shard0", busy, None)];
        for (busy, needed, offered, full) in [
            (busy(0.9), 0.5, 2_000.0, false),
            (busy(0.91), 0.5, 2_000.0, true),
            (busy(0.5), 0.5, 4_000.0, true),
            (Vec::new(), 0.89, 2_000.0, false),
        ] {
            let summary =
                Summary { loops: busy, loops_needed: needed, offered_per_s: offered, ..example.clone() };
            let Told { is_limit, text: said } = of(&summary).unwrap();
            assert_eq!((is_limit, said.starts_with("The trading loop is full.")), (full, full), "{said}");
            assert_eq!(said.contains("cpu.ingress"), full, "{said}");
        }
        let silent = Summary { loops: Vec::new(), loops_needed: 0.0, ..example };
        assert_eq!(of(&silent), None);
    }

    #[test]
    fn a_loop_that_is_full_beside_others_needs_them_gone_and_no_help() {
        let spun =
            |lost_percent| Away { lost_percent, threads_percent: Some(lost_percent), ..Away::default() };
        let waited = "By the clock the trading loop is full, but it had no CPU for at least 40 % of all time, and the \
                      stops count as work; to change first: `outcry check --jitter`";
        for (away, waited_percent, around_percent, expected) in [
            (None, None, 0.1, "The trading loop is full. outcry-shard0 worked 95 %"),
            (None, Some(2.0), 0.1, "The trading loop is full. outcry-shard0 worked 95 %"),
            (None, Some(40.0), 0.1, waited),
            (Some(spun(30.0)), Some(0.1), 0.1, "The trading loop is full. outcry-shard0 worked 95 %"),
            (
                Some(spun(40.0)),
                Some(40.0),
                0.1,
                "By the clock the trading loop is full, but CPU 0 was taken: ",
            ),
            (None, None, 40.0, "By the clock the trading loop is full, but CPU 0 was taken: "),
        ] {
            let mut summary = example();
            summary.loops = vec![LoopBusy { waited_percent, away, ..share("outcry-shard0", 0.95, None) }];
            summary.jitter_after[0].lost_percent = around_percent;
            let Told { is_limit, text } = of(&summary).expect("a loop tells");
            assert!(is_limit && text.starts_with(expected), "{text}");
            assert_eq!(text.contains("more shards"), expected.starts_with("The"), "{text}");
        }
    }

    #[test]
    fn what_no_stage_saw_is_unexplained_only_where_no_cpu_was_taken() {
        let unexplained = "during the run); 3.7 ms of it nothing here explains.";
        let waited =
            "but outcry-shard0 had no CPU for at least 40 % of all time, so several stops may be in it.";
        let taken = "but CPU 0 was taken: ";
        for (waited_percent, around_percent, expected) in [
            (None, 0.1, unexplained),
            (Some(2.0), 0.1, unexplained),
            (Some(40.0), 0.1, waited),
            (None, 40.0, taken),
            (Some(40.0), 40.0, taken),
        ] {
            let mut summary = example();
            summary.loops[0].waited_percent = waited_percent;
            summary.jitter_after[0].lost_percent = around_percent;
            summary.jitter_after[0].max_us = 193.0;
            summary.parts[1].stages[1].1 = 100.0;
            summary.parts[1].outside_us = 3_874.0;
            let said = went::of(&summary).remove(1);
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn at_the_end_of_a_sweep_a_loop_was_full_or_the_rig_was_unless_its_cpu_was_taken() {
        let full =
            |busy| format!(" There outcry-shard0 worked {busy} % of the time: its CPU is what was full.");
        let rigs = |busy| {
            format!(
                " No trading loop was full there: the busiest, outcry-shard0 worked {busy} % of the time. What ended \
                 first is the rig's: the client's CPU, or what shares it."
            )
        };
        let taken = |busy, percent| {
            format!(
                " There outcry-shard0 worked {busy} % of the time by the clock, stops included, and had no CPU for at \
                 least {percent} % of all time: what it can do with all of its CPU is not known."
            )
        };
        // How much of its time without work it noticed to be lost, and how long it was ready while others ran.
        for (busy, lost_percent, waited_percent, expected) in [
            (0.97, None, None, full(97)),
            (0.97, None, Some(2.0), full(97)),
            (0.97, Some(60.0), None, full(97)),
            (0.97, None, Some(40.0), taken(97, 40)),
            (0.6, None, None, rigs(60)),
            (0.6, Some(5.0), Some(2.0), rigs(60)),
            (0.6, Some(5.5), Some(0.0), taken(60, 2)),
            (0.6, None, Some(2.1), taken(60, 2)),
            (0.61, Some(95.0), Some(35.0), taken(61, 37)),
        ] {
            let away = lost_percent.map(|lost_percent| Away { lost_percent, ..Away::default() });
            let share = LoopBusy { waited_percent, away, ..share("outcry-shard0", busy, None) };
            assert_eq!(at_the_end(&share), expected);
        }
    }

    #[test]
    fn the_time_of_a_loop_and_that_of_its_requests_are_told_with_what_is_between_them() {
        let shard = |sending| vec![share("outcry-shard0", 0.075, sending), share("outcry-reader", 0.5, None)];
        let two = vec![share("outcry-shard0", 0.075, None), share("outcry-shard1", 0.025, None)];
        let head = "outcry-shard0 worked 8 % of the time, 37.5 µs for each of 2,000 requests a second";
        let stages = "Of that the stages parse, auth, sign, match have 30.0 µs; the other";
        let full = "full at about 27,000 a second (1 s / 37.5 µs)";
        for (loops, needed, parts) in [
            (
                shard(Some(0.01)),
                0.06,
                vec![
                    head,
                    stages,
                    "other 7.5 µs are in no stage: 5.0 µs of that writes answers to sockets, the rest reads",
                    full,
                ],
            ),
            (
                shard(None),
                0.06,
                vec![head, stages, "other 7.5 µs are in no stage: it writes answers, reads sockets", full],
            ),
            (
                two,
                0.06,
                vec![head, "; all 2 trading loops together, 50.0 µs. Of that", "the other 20.0 µs", full],
            ),
            // Stages that exceed the loop's time say nothing about it.
            (shard(None), 0.08, vec!["requests a second. There is room. With requests of this mix", full]),
            // A loop that hardly worked does not show when it is full.
            (
                vec![share("outcry-shard0", 0.04, None)],
                0.03,
                vec!["the other 5.0 µs", "its CPU meanwhile. There is room."],
            ),
        ] {
            let Told { is_limit, text } =
                of(&Summary { loops, loops_needed: needed, ..example() }).expect("a loop tells");
            assert!(!is_limit);
            for part in &parts {
                assert!(text.contains(part), "{part}\n{text}");
            }
            assert_eq!(text.contains("full at about"), parts.contains(&full), "{text}");
        }
    }
}
