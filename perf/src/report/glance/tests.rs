use super::writes::{BOTH, SOONER};
use super::*;
use crate::away::Away;
use crate::placement::Thread;
use crate::stats::Quantiles;
use crate::summary::{AsServe, Journal, Spans, example};
use crate::verdict::Verdict;
use crate::watch::Other;

/// Nobody is charged with what the example's CPUs lost, and it was never for long.
const QUIETER: &str = "interrupts moved away by `outcry tune`, if irq.affinity names any; the rest is the host's: one that sells whole cores, or wait and try again";

/// A row's cells after its name.
fn told(summary: &Summary, what: &str) -> [String; 4] {
    let rows = rows(summary);
    let row = rows.iter().find(|row| row[0] == what).unwrap_or_else(|| panic!("{what}: {rows:?}"));
    [1, 2, 3, 4].map(|column: usize| row[column].clone())
}

#[test]
fn a_figure_stands_beside_what_it_went_to_what_changes_it_and_the_plan() {
    let [shown, by, first, plan] = told(&example(), "orders that rest, p50");
    assert_eq!(
        [shown.as_str(), by.as_str()],
        ["40.0 µs, 30.0 µs in the server", "the signature check, 65 %"]
    );
    assert_eq!([first.as_str(), plan.as_str()], [KNOWN, "35.0 µs in the server"]);
    let mut both = example();
    both.as_serve = Some(AsServe::of(example()));
    assert_eq!(told(&both, "orders that rest, p50")[0], "40.0 µs (as serve: 40.0 µs), 30.0 µs in the server");
    let own = both.as_serve.as_mut().expect("set just above");
    own.verdict = Verdict::because(vec!["steal: 3 %".to_owned()]);
    assert_eq!(told(&both, "orders that rest, p50")[0], "40.0 µs, 30.0 µs in the server");
    let mut known = example();
    known.settings = vec!["auth.known_signers_bytes=16777216".to_owned()];
    assert_eq!(told(&known, "orders that rest, p50")[2], "a faster core");
    let [shown, by, ..] = told(&example(), "orders a second");
    assert_eq!(
        [shown.as_str(), by.as_str()],
        ["33,000 or more would fill it (33,000 requests of this mix)", "the CPU of outcry-shard0, 6 % busy"]
    );
}

#[test]
fn a_loop_whose_cpu_others_have_is_full_at_what_they_leave() {
    let sh = Other { who: "sh (7)".to_owned(), is_kernels: false, cpus: 0.5, may_have: None };
    let busy = "the CPU of outcry-shard0, 6 % busy";
    let all = "33,000 or more would fill it (33,000 requests of this mix)";
    let left = "33,000 (33,000 requests of this mix) by what each took at this load and beside others, who had 50 % of CPU 0 while \
                the load was on; more without them";
    for (lost_percent, expected) in [
        (2.0, [all.to_owned(), busy.to_owned(), "a core and a shard more (cpu.shards)".to_owned()]),
        (
            50.0,
            [
                left.to_owned(),
                format!("{busy}, which others had too"),
                "stop sh (7), or keep it off this CPU".to_owned(),
            ],
        ),
    ] {
        let mut summary = Summary { largest_other: Some(sh.clone()), ..example() };
        summary.loops[0].away = Some(Away {
            // The part lost of the time without work is larger.
            lost_percent: 1.2 * lost_percent,
            max_us: 4_000.0,
            threads_percent: Some(lost_percent),
            ..Away::default()
        });
        let [shown, by, first, _] = told(&summary, "orders a second");
        assert_eq!([shown, by, first], expected);
    }
}

#[test]
fn each_place_has_a_word_and_a_remedy() {
    let thread = |name: &str, cpu| Thread { name: name.to_owned(), cpu, ..example().threads[0].clone() };
    let spans = |us| Spans { wait_p999_us: us, ..Spans::default() };
    let journal = |write, run_delay| Some(Journal { write: spans(write), run_delay: spans(run_delay) });
    let committed = vec!["journal.durability=committed".to_owned()];
    let durable = vec!["journal.durability=durable".to_owned()];
    for (stage, settings, journal, expected, first) in [
        (
            "queue",
            &committed,
            None,
            "CPU 0 was taken: interrupts or the host (nobody is charged), which shows in queue, 98 % of that",
            QUIETER,
        ),
        (
            "sign",
            &committed,
            None,
            "CPU 0 was taken: interrupts or the host (nobody is charged), which shows in sign, 98 % of that",
            QUIETER,
        ),
        ("send", &committed, None, "stage send, 98 % of that", "a faster core"),
        (
            "journal",
            &committed,
            None,
            "behind answers before it, 98 % of that",
            "reads on connections of their own",
        ),
        ("journal", &durable, None, "the journal, 98 % of that", SOONER),
        ("journal", &durable, journal(3_000.0, 1.0), "a write of the disk, 98 % of that", SOONER),
        (
            "journal",
            &durable,
            journal(3_000.0, 2_000.0),
            "the journal's thread without a CPU, 98 % of that",
            "a core for it",
        ),
        ("journal", &durable, journal(1_000.0, 1.0), "two writes of the disk, 98 % of that", SOONER),
        (
            "journal",
            &durable,
            journal(900.0, 1.0),
            "the journal, neither disk nor CPU alone, 98 % of that",
            BOTH,
        ),
    ] {
        let mut summary = Summary { settings: settings.clone(), journal, ..example() };
        summary.parts[1].stages[1].0 = stage.to_owned();
        let [_, by, told_first, _] = told(&summary, "orders that rest, p99.9");
        assert_eq!([by.as_str(), told_first.as_str()], [expected, first], "{stage}");
    }
    for (others, us, first) in
        [("batch", 980.0, "smaller batches; more shards"), ("cancel", 70.0, "more shards")]
    {
        let mut in_line = example();
        in_line.classes.push(ClassTimes { class: others.to_owned(), ..in_line.classes[0].clone() });
        (in_line.parts[1].latency_us, in_line.parts[1].outside_us) = (us / 0.98, 0.0);
        in_line.parts[1].stages = vec![("queue".to_owned(), us)];
        let [_, by, told_first, _] = told(&in_line, "orders that rest, p99.9");
        assert_eq!(
            [by.as_str(), told_first.as_str()],
            ["in line behind others on its loop, 100 % of that", first]
        );
    }
    // Reads have no stages.
    for (client_cpu, client_us, in_server_us, expected) in [
        (0, 120.0, None, "the server and the kernel, not told apart, 97 %"),
        (0, 120.0, Some(3_000.0), "in the server: its reader, 97 %"),
        (1, 120.0, Some(3_000.0), "in the server: its reader shares a CPU with the client, 97 %"),
        (0, 120.0, Some(30.0), "no stage (stops of CPU 0 explain 4.0 µs), 97 %"),
        (0, 3_880.0, None, "the client's own time, 97 %"),
        (1, 3_880.0, None, "the reader and the client, in turn on one CPU, 97 %"),
    ] {
        let mut summary = Summary { client_cpu, ..example() };
        summary.threads = vec![thread("outcry-reader", Some(1))];
        summary.reads_in_server = in_server_us.map(|p999_us| Quantiles { p999_us, ..Quantiles::default() });
        "read".clone_into(&mut summary.classes[0].class);
        let tail = summary.parts[1].clone();
        summary.parts = vec![Parts {
            class: "read".to_owned(),
            late_us: 0.0,
            outside_us: 4_000.0,
            client_us: Some(client_us),
            stages: Vec::new(),
            ..tail
        }];
        let [shown, by, ..] = told(&summary, "reads, p99.9");
        assert_eq!(by, expected);
        let in_server = in_server_us.map_or_else(String::new, |us| format!(", {} in the server", micros(us)));
        assert_eq!(shown, format!("90.0 µs{in_server}"));
    }
}

#[test]
fn in_the_middle_the_way_through_the_kernel_has_the_wake_up_in_it() {
    for (wait, expected) in [
        ("spin", "the way through the kernel, 98 %"),
        ("park", "waking the loop, and the way through the kernel, 98 %"),
    ] {
        let mut summary = example();
        wait.clone_into(&mut summary.threads[0].wait);
        summary.parts[0].stages = vec![("sign".to_owned(), 1.0)];
        summary.parts[0].outside_us = 39.0;
        let [_, by, told_first, _] = told(&summary, "orders that rest, p50");
        assert_eq!((by.as_str(), told_first == SPIN), (expected, wait == "park"));
    }
}

#[test]
fn a_reader_that_worked_says_when_it_would_be_full() {
    let mut summary = example();
    "read".clone_into(&mut summary.classes[0].class);
    summary.parts.iter_mut().for_each(|parts| "read".clone_into(&mut parts.class));
    READER.clone_into(&mut summary.loops[0].name);
    // 10,000 reads in 5 s.
    for (busy, expected) in [(0.1, Some("20,000 or more would fill it")), (0.04, None)] {
        summary.loops[0].busy = busy;
        let rows = rows(&summary);
        let row = rows.iter().find(|row| row[0] == "reads a second");
        assert_eq!(row.map(|row| row[1].as_str()), expected, "{busy}");
    }
}

#[test]
fn the_journals_writes_have_a_row_where_answers_wait_for_them() {
    let spans = |p50_us, max_us, wait_p99_us| Spans {
        each: Quantiles { count: 9, p50_us, max_us, ..Quantiles::default() },
        wait_p99_us,
        ..Spans::default()
    };
    let mut summary = example();
    summary.settings = vec!["journal.durability=durable".to_owned()];
    // 2,000 a second for 6 s, and 5,000 writes.
    summary.planned.as_mut().expect("there was a plan").durable_us = Some([80.0, 95.0]);
    for (run_delay, by, first) in [
        (spans(0.0, 70.0, 10.0), "the disk; its thread had no CPU for 70.0 µs at most", SOONER),
        (
            spans(0.0, 900.0, 150.0),
            "the CPU; its thread had no CPU for 900 µs at most",
            "a core for the journal's thread",
        ),
    ] {
        summary.journal = Some(Journal { write: spans(60.0, 15_000.0, 200.0), run_delay });
        let expected = ["60.0 µs for 2.4 requests, longest 15.0 ms; 1 in 100 meets 200 µs", by, first, ""];
        assert_eq!(told(&summary, "the journal's writes"), expected);
    }
    assert_eq!(told(&summary, "orders that rest, p50")[3], "80.0 µs to 95.0 µs from arrival to answer");
    summary.settings = vec!["journal.durability=committed".to_owned()];
    assert!(rows(&summary).iter().all(|row| row[0] != "the journal's writes"));
}

#[test]
fn a_percentile_whose_slowest_met_stops_is_told_with_who_had_the_cpu() {
    for (around_p99_us, expected) in [
        (1_000.0, "CPU 0 was taken: sh (7), some 51 % of that"),
        (500.0, "no stage (stops of CPU 0 explain 500 µs), 100 % of that"),
    ] {
        let sh = Other { who: "sh (7)".to_owned(), is_kernels: false, cpus: 0.013, may_have: Some(vec![0]) };
        let mut summary = Summary { others_of_cpus: vec![(0, sh)], ..example() };
        summary.loops[0].away = Some(Away {
            lost_percent: 1.33,
            max_us: 6_500.0,
            around_p99_us,
            threads_percent: Some(1.3),
            ..Away::default()
        });
        let tail = &mut summary.parts[1];
        "p99".clone_into(&mut tail.of);
        (tail.latency_us, tail.outside_us) = (2_000.0, 1_973.0);
        tail.stages[1].1 = 1.0;
        assert_eq!(told(&summary, "orders that rest, p99")[1], expected);
    }
}

#[test]
fn slow_orders_that_lay_behind_others_are_told_behind_whom() {
    let mut summary = example();
    let batch = ClassTimes { class: "batch".to_owned(), ..summary.classes[0].clone() };
    summary.classes.push(batch);
    (summary.classes[0].latency.p99_us, summary.loops[0].away) = (85.0, None);
    let slow = &mut summary.parts[1];
    "p99".clone_into(&mut slow.of);
    (slow.latency_us, slow.outside_us) = (90.0, 63.0);
    (slow.line_us, slow.behind) = (Some(48.0), Some("batch".to_owned()));
    slow.stages = vec![("sign".to_owned(), 26.0), ("journal".to_owned(), 1.0)];
    let [shown, by, first, _] = told(&summary, "orders that rest, p99");
    assert_eq!(shown, "85.0 µs, 45.0 µs above the median");
    assert_eq!(by, "in line before the loop, behind batches of 15 orders, 96 % of that");
    assert_eq!(first, "smaller batches; more shards");
    let said = &words::limits(&summary)[1];
    assert!(
        said.contains("in line before their loop, behind batches of 15 orders, 96 % (48.0 µs)"),
        "{said}"
    );
    assert!(said.contains("mostly at batches of 15 orders: smaller batches, more shards"), "{said}");
    // If they are hardly slower than the median, their time went where the median's did.
    summary.parts[1].latency_us = 49.0;
    let [shown, by, ..] = told(&summary, "orders that rest, p99");
    assert_eq!((shown.as_str(), by.contains("of that")), ("85.0 µs", false));
}

#[test]
fn a_client_that_lost_its_cpu_to_others_is_not_to_blame() {
    let sh = Other { who: "sh (7)".to_owned(), is_kernels: false, cpus: 0.5, may_have: Some(vec![1]) };
    let taken = (
        "the rig's client, whose CPU 1 was taken: sh (7), 96 % of that",
        "stop sh (7), or keep it off this CPU",
    );
    for (late_us, client_us, lost_percent, (by, first)) in [
        (3_800.0, 10.0, Some(50.0), taken),
        (10.0, 3_800.0, Some(50.0), taken),
        (3_800.0, 10.0, Some(0.04), ("sent late, 96 % of that", NOT_THE_SERVERS)),
        (10.0, 3_800.0, Some(0.04), ("the client's own time, 96 % of that", NOT_THE_SERVERS)),
        (3_800.0, 10.0, None, ("sent late, 96 % of that", NOT_THE_SERVERS)),
    ] {
        let mut summary = Summary { client_lost_percent: lost_percent, ..example() };
        summary.others_of_cpus = vec![(1, sh.clone())];
        let tail = &mut summary.parts[1];
        tail.stages[1].1 = 0.0;
        (tail.late_us, tail.client_us) = (late_us, Some(client_us));
        tail.outside_us = tail.latency_us - tail.stages[0].1 - late_us;
        let [_, told_by, told_first, _] = told(&summary, "orders that rest, p99.9");
        assert_eq!((told_by.as_str(), told_first.as_str()), (by, first));
        let said = &words::limits(&summary)[1];
        assert_eq!(said.contains("That is the rig's"), by.starts_with("the client's"), "{said}");
        assert_eq!(said.contains("The client had no CPU: while"), by == taken.0, "{said}");
    }
}

#[test]
fn a_write_beside_those_of_others_is_told_as_such() {
    let spans = |us| Spans {
        wait_p999_us: us,
        wait_p99_us: us,
        each: Quantiles { count: 9, ..Quantiles::default() },
    };
    let theirs = "the disk, to which others write too, 22,000 times a second";
    // The journal wrote 5,000 times in 6 s.
    let by_one = format!("{theirs}, most of it dd (7)");
    let dd = Some("dd (7)".to_owned());
    let (stop_one, stop_who) =
        ("stop dd (7), which writes there, or ", "stop who writes there (`iotop -o` says who), or ");
    for (others, who, by, first) in [
        (Some(22_000.0), None, theirs, stop_who),
        (Some(22_000.0), dd.clone(), by_one.as_str(), stop_one),
        (Some(1_600.0), dd, "the disk", SOONER),
        (None, None, "the disk", SOONER),
    ] {
        let mut summary = Summary { others_writes_per_s: others, others_writer: who, ..example() };
        summary.settings = vec!["journal.durability=durable".to_owned()];
        summary.journal = Some(Journal { write: spans(3_000.0), run_delay: spans(1.0) });
        let [_, told_by, told_first, _] = told(&summary, "orders that rest, p99.9");
        assert_eq!(told_by, format!("a write of {by}, 98 % of that"));
        assert!(told_first.starts_with(first), "{told_first}");
        let [_, told_by, told_first, _] = told(&summary, "the journal's writes");
        assert!(told_by.starts_with(&format!("{by}; its thread")), "{told_by}");
        assert!(told_first.starts_with(first), "{told_first}");
    }
}

#[test]
fn a_cpu_that_stood_still_is_told_before_the_stage_in_which_that_shows() {
    let mut summary = example();
    summary.loops[0].away =
        Some(Away { lost_percent: 1.0, max_us: 9_000.0, slowest_us: 3_000.0, ..Away::default() });
    let by = "CPU 0 was taken: interrupts or the host (nobody is charged), some 76 % of that";
    assert_eq!(told(&summary, "orders that rest, p99.9")[1], by);
    // With no stage to show it, the same CPU's stop and the same taker are named, if the stop was as long.
    summary.parts[1].stages[1].1 = 10.0;
    summary.parts[1].outside_us = 3_964.0;
    summary.threads[0].wait = "park".to_owned();
    for (wait_p999_us, expected) in [
        (2_000.0, "CPU 1 was taken: interrupts or the host (nobody is charged), 100 % of that"),
        (1_000.0, "no stage (stops of CPU 1 explain 1.0 ms), 100 % of that"),
    ] {
        summary.jitter_after[1].wait_p999_us = Some(wait_p999_us);
        assert_eq!(told(&summary, "orders that rest, p99.9")[1], expected);
    }
}
