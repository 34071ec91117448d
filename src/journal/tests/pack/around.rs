//! Reading, starting and giving back segments around one that is packed.

use super::*;

#[test]
fn readers_find_every_frame_whatever_they_had_open_or_knew_when_it_was_packed() {
    let bench = to_be_packed();
    let frames = all_frames(&bench);
    let table = bench.batches.segments();
    let old: Vec<Entry> = (1..=3).flat_map(|number| table.entries_of(number)).collect();
    let directory = segment::directory(bench.home.data.path());
    let knows_old = || Arc::new(Segments::new(&directory, bench.journal(), old.clone()));
    // One reader for each frame that it has open when the files change.
    let every = frames.len() / 12;
    let mut open: Vec<_> =
        frames.keys().step_by(every).map(|&at| (at, History::of_segments(table.clone()))).collect();
    for (at, history) in &mut open {
        assert!(history.bytes(Position(*at)).unwrap() == frames[at].1);
    }
    let mut open_and_old: Vec<_> =
        frames.keys().step_by(every).map(|&at| (at, History::of_segments(knows_old()))).collect();
    for (at, history) in &mut open_and_old {
        history.bytes(Position(*at)).unwrap();
    }
    assert_eq!(pack_all(&mut bench.packer(Disk::default())).unwrap().len(), 2);
    let fresh = vec![(0, History::of_segments(knows_old())), (0, History::of_segments(table.clone()))];
    for (number, (at, mut history)) in open.into_iter().chain(open_and_old).chain(fresh).enumerate() {
        // On from where it stood, then back to the beginning, then here and there.
        let mut random = Random(number as u64);
        let keys: Vec<_> = frames.keys().copied().collect();
        let jumps: Vec<_> = (0..40).map(|_| keys[random.below(keys.len() as u64)]).collect();
        let on = frames.range(at..).map(|(&at, _)| at).take(400);
        for at in on.chain(frames.keys().copied().take(200)).chain(jumps) {
            assert!(history.bytes(Position(at)).unwrap() == frames[&at].1, "reader {number}, position {at}");
        }
    }
    // A table of old rows learns the new ones, and what is right already stays.
    let known = knows_old();
    let mut packer = Packer::new(bench.batches.shelf().clone(), known.clone());
    assert_eq!(pack_all(&mut packer).unwrap(), []);
    for number in 1..=3 {
        assert_eq!(known.entries_of(number), table.entries_of(number), "segment {number}");
    }
}

#[test]
fn readers_beside_a_packer_find_every_frame() {
    let bench = to_be_packed();
    let frames = all_frames(&bench);
    let table = bench.batches.segments();
    let packed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (frames, packed, table) = (&frames, &packed, table.clone());
            scope.spawn(move || {
                let mut random = Random(seed);
                let mut history = History::of_segments(table);
                let keys: Vec<_> = frames.keys().copied().collect();
                let mut last_round = false;
                while !last_round {
                    last_round = packed.load(Ordering::Acquire);
                    let first = random.below(keys.len() as u64);
                    for at in keys[first..].iter().take(50) {
                        assert!(history.bytes(Position(*at)).unwrap() == frames[at].1, "position {at}");
                    }
                }
            });
        }
        let segments = pack_all(&mut bench.packer(Disk::default()));
        packed.store(true, Ordering::Release);
        assert_eq!(segments.unwrap().len(), 2);
    });
}

#[test]
fn a_start_goes_on_after_a_snapshot_at_any_batch_of_what_is_packed() {
    let sizes: Vec<usize> = (0..12).map(|index| 1 + index * 5 % 3).collect();
    for kept_at in 0..sizes.len() {
        // Packed before the start, before another snapshot, or between two starts.
        for pack_at in kept_at..sizes.len() {
            let mut bench = Bench::new(8 * ROW_BYTES);
            let mut all = Vec::new();
            let good = snapshots_on(&bench, Disk::default());
            for (index, &count) in sizes.iter().enumerate() {
                add(&mut bench, &mut all, count);
                if index == kept_at {
                    keep(&good, bench.batches.end()).unwrap();
                }
                if index == pack_at {
                    pack_all(&mut bench.packer(Disk::default())).unwrap();
                }
            }
            let table = bench.batches.segments();
            let home = bench.leave();
            let whole = home.scan().unwrap();
            let (found, opened) = started(&home).unwrap();
            assert_eq!(found, all, "snapshot behind batch {kept_at}, packed behind {pack_at}");
            let recovered = opened.recovered();
            assert!(recovered.snapshot.is_some());
            assert_eq!((recovered.end, recovered.frames), (whole.end, whole.frames));
            // The next snapshot follows from the one that knew other rows, and knows the new ones.
            let (base, ()) = good.newest(&mut Vec::new(), |_| Ok(())).unwrap().unwrap();
            let mut base = good.follow(Some(&base), whole.end, |_| Ok::<_, Fault>(())).unwrap();
            assert_eq!((base.position, base.chain, base.frames), (whole.end, whole.chain, whole.frames));
            table.correct(&mut base);
            let before_it: Vec<_> = (1..=base.segment).flat_map(|number| table.entries_of(number)).collect();
            assert_eq!(base.entries, before_it);
            drop(opened);
        }
    }
}

#[test]
fn a_snapshot_of_another_history_does_not_fit_a_packed_segment() {
    let (one, other) = (singles(1), {
        let mut bench = Bench::new(8 * ROW_BYTES);
        (0..8).for_each(|index| bench.batch(&[payload(40 - index)]));
        bench
    });
    let snapshots = snapshots_on(&one, Disk::default());
    // After the third batch: in the middle of what will be packed.
    let third = frames_in(&one, 1).1[2].end();
    let base = snapshots.follow(None, third, |_| Ok::<_, Fault>(())).unwrap();
    assert_eq!((base.position, base.segment), (third, 1));
    pack_all(&mut one.packer(Disk::default())).unwrap();
    let follow =
        |base: &crate::journal::Base| snapshots.follow(Some(base), one.batches.end(), |_| Ok::<_, Fault>(()));
    assert_eq!(follow(&base).unwrap().chain, one.home.scan().unwrap().chain);
    let misfit = |base| matches!(follow(&base), Err(Fault::SnapshotMisfit { .. }));
    assert!(misfit(crate::journal::Base { chain: base.chain ^ 1, ..base.clone() }));
    assert!(misfit(crate::journal::Base { epoch: base.epoch + 1, ..base.clone() }));
    // No frame begins there, so nothing leads on from there.
    let within = crate::journal::Base { position: Position(base.position.0 + 64), ..base.clone() };
    assert!(matches!(follow(&within), Err(Fault::Damaged(_) | Fault::SnapshotMisfit { .. })));
    // In what was never packed, the middle of a batch is no place to begin.
    let end = frames_in(&other, 1).1[2].end();
    let snapshots = snapshots_on(&other, Disk::default());
    let base = snapshots.follow(None, end, |_| Ok::<_, Fault>(())).unwrap();
    let within = crate::journal::Base { position: Position(end.0 - 64), ..base };
    let found = snapshots.follow(Some(&within), other.batches.end(), |_| Ok::<_, Fault>(()));
    assert!(matches!(found, Err(Fault::SnapshotMisfit { .. })), "{found:?}");
}

#[test]
fn packed_segments_are_given_back_like_others_and_never_come_back() {
    for steps in 0..12 {
        let (mut bench, mut all) = bench(&[4, 3, 5, 4, 6, 2, 5, 6, 4, 7, 5, 5]);
        let snapshots = snapshots_on(&bench, Disk::default());
        let segments = bench.batches.segments();
        let mut packer = bench.packer(Disk::default());
        for _ in 0..2 {
            keep(&snapshots, bench.batches.end()).unwrap();
            add(&mut bench, &mut all, 5);
        }
        bench.log.free(bench.batches.end());
        // They go while one of them is being packed.
        for _ in 0..steps {
            packer.step().unwrap();
        }
        let gone = snapshots.give_back(&segments, &bench.log, bench.batches.end(), 0).unwrap();
        assert!(0 < gone);
        pack_all(&mut packer).unwrap();
        let directory = segment::directory(bench.home.data.path());
        assert_eq!(segment::numbers(&directory).unwrap()[0], gone + 1, "after {steps} steps");
        assert_eq!(segments.first(), gone + 1);
        let home = bench.leave();
        assert_eq!(started(&home).unwrap().0, all, "after {steps} steps");
        let left = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
        assert!(left.into_iter().all(|path| path.extension().unwrap() == "segment"));
    }
}

#[test]
fn a_torn_tail_after_a_packed_segment_is_cut_and_the_log_goes_on() {
    let mut bench = singles(1);
    let end = bench.batches.end();
    bench.batch(&[vec![2; 9_000]]);
    pack_all(&mut bench.packer(Disk::default())).unwrap();
    let newest = std::fs::OpenOptions::new().write(true).open(bench.segment(2)).unwrap();
    newest.write_all_at(&[0; ROW], 3 * ROW_BYTES).unwrap();
    let home = bench.leave();
    let opened = home.open().unwrap();
    let cut = opened.recovered().cut.clone().unwrap();
    assert_eq!((cut.place.position, opened.recovered().end), (end, end));
    let started = start(opened);
    started.log.append(KIND, &payload(99));
    started.writer.stop(TimeMs(2)).unwrap();
    drop(started.log);
    let expected: Vec<_> = (0..8).chain([99]).map(payload).collect();
    assert_eq!(home.payloads(), expected);
}

#[test]
fn a_packed_segment_that_nothing_follows_is_refused_and_nothing_changes() {
    type Harm = fn(&Path);
    let remove: Harm = |path| std::fs::remove_file(path).unwrap();
    let empty: Harm = |path| {
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        let bytes = file.metadata().unwrap().len();
        file.write_all_at(&vec![0; usize::try_from(bytes - ROW_BYTES).unwrap()], ROW_BYTES).unwrap();
    };
    let tear: Harm = |path| {
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(&[0; 8], ROW_BYTES).unwrap();
    };
    for (what, harm, told) in [
        ("removed", remove, "00000002.segment: missing, and "),
        ("without batches", empty, "00000002.segment: byte 4096, position "),
        ("its first batch torn", tear, "00000002.segment: byte 4096, position "),
    ] {
        let bench = singles(1);
        pack_all(&mut bench.packer(Disk::default())).unwrap();
        let (first, newest) = (bench.segment(1), bench.segment(2));
        let end = frames_in(&bench, 1).1.last().unwrap().end();
        let home = bench.leave();
        let _ = std::fs::remove_file(first.with_file_name("00000003.segment"));
        harm(&newest);
        let before = std::fs::read_dir(first.parent().unwrap()).unwrap().count();
        let text = home.open().unwrap_err().to_string();
        assert!(text.contains(told) && text.ends_with("nothing was changed"), "{what}: {text}");
        let names = if newest.exists() {
            format!("position {}: magic of the batch", end.0)
        } else {
            "00000001.segment was packed".to_owned()
        };
        assert!(text.contains(&names), "{what}: {text}");
        assert_eq!(std::fs::read_dir(first.parent().unwrap()).unwrap().count(), before, "{what}");
        let survey = survey(home.data.path(), None, None, |_| Ok::<(), Fault>(()));
        assert!(
            survey.unwrap_err().to_string().contains(told),
            "{what}: what a start refuses, a survey does"
        );
    }
}

#[test]
fn a_full_segment_that_nothing_follows_is_the_end() {
    // A death between the last batch that fits and the making of the next segment leaves this.
    let mut bench = Bench::new(4 * ROW_BYTES);
    for index in 0..3 {
        bench.batch(&[payload(index)]);
    }
    let (end, home) = (bench.batches.end(), bench.leave());
    assert_eq!(home.open().unwrap().recovered().end, end);
}

#[test]
fn a_running_journal_is_packed_under_its_followers_and_surveyed_the_same() {
    let home = Home { segment_bytes: 8 * ROW_BYTES, ..Home::new() };
    let (opened, _) = open_with(home.options(), Disk::default(), |_| Ok(())).unwrap();
    let mut packer = opened.packer();
    let started = start(opened);
    let (mut expected, mut packed) = (Vec::new(), 0);
    for index in 0..60 {
        expected.push(payload(index));
        let span = started.log.append(KIND, &payload(index));
        wait_durable(&started.log, span.end);
        packed += usize::from(matches!(packer.step().unwrap(), Step::Packed(_)));
    }
    packed += pack_all(&mut packer).unwrap().len();
    assert!(6 < packed, "{packed}");
    let look = || {
        let mut payloads = Vec::new();
        let survey = survey(home.data.path(), None, None, |frame| {
            if frame.kind == KIND {
                payloads.push(frame.payload.to_vec());
            }
            Ok::<(), Fault>(())
        });
        survey.unwrap();
        payloads
    };
    assert_eq!(look(), expected);
    started.writer.stop(TimeMs(2)).unwrap();
    drop(started.log);
    assert_eq!(look(), expected);
    assert_eq!(home.payloads(), expected);
}

#[test]
fn the_largest_frames_are_packed_as_they_are() {
    let mut bench = Bench::in_memory(SEGMENT_BYTES);
    let largest = vec![3; FRAME_BYTES_MAX - 48];
    for index in 0.. {
        if bench.batches.segments().newest() == 2 {
            break;
        }
        if index % 200 == 100 {
            bench.frame(1, KIND, &largest, FRAME_BYTES_MAX as u64);
        } else {
            bench.frame(1, KIND, b"one order", 64);
        }
        bench.batches.write().unwrap();
    }
    let frames = all_frames(&bench);
    assert_eq!(pack_all(&mut bench.packer(Disk::default())).unwrap().len(), 1);
    assert!(all_frames(&bench) == frames);
    check_density(&frames_in(&bench, 1).1, &frames);
}
