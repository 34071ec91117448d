//! Snapshots as files: whole or not used, never in the way of a start, never ahead of the log.
//!
//! The state here is the list of all payloads so far, so that a start can be held against it.

use std::path::Path;

use super::*;
use crate::journal::open::open_from;
use crate::journal::snapshot::{Base, SnapshotReader, Snapshots};
use crate::journal::{Archive, ArchiveRow, FIRST_POSITION, History, has_first_segment};
use crate::memory::sections::Sink;
use crate::memory::wire::Damage;

const PAYLOADS: [u8; 8] = *b"payloads";

pub(super) fn snapshots_on(bench: &Bench, disk: Disk) -> Snapshots {
    let identity = Identity::load(bench.home.data.path()).unwrap().unwrap();
    Snapshots::new(bench.home.data.path(), identity.journal(), disk)
}

fn load(reader: &mut SnapshotReader) -> Result<Vec<Vec<u8>>, Fault> {
    let mut payloads = Vec::new();
    while let Some((name, bytes)) = reader.next()? {
        assert_eq!(name, PAYLOADS);
        payloads.push(bytes.to_vec());
    }
    Ok(payloads)
}

/// A snapshot's place in the log, and the payloads that it keeps.
type Kept = (Base, Vec<Vec<u8>>);

/// The newest snapshot that can be loaded, and what was said of others.
fn newest(snapshots: &Snapshots) -> (Option<Kept>, Vec<String>) {
    let mut notes = Vec::new();
    (snapshots.newest(&mut notes, load).unwrap(), notes)
}

/// Makes a snapshot of the log so far, from the last one on.
pub(super) fn keep(snapshots: &Snapshots, until: Position) -> Result<Base, Fault> {
    let (base, mut payloads) =
        newest(snapshots).0.map_or((None, Vec::new()), |(base, kept)| (Some(base), kept));
    let mut base = snapshots.follow(base.as_ref(), until, |frame| {
        payloads.push(frame.payload.to_vec());
        Ok::<_, Fault>(())
    })?;
    snapshots.write(&mut base, 7, |out| payloads.iter().for_each(|bytes| out.section(PAYLOADS, bytes)))?;
    snapshots.forget_old()?;
    Ok(base)
}

/// A bench with batches of these sizes, in segments of the smallest size.
pub(super) fn bench(batches: &[usize]) -> (Bench, Vec<Vec<u8>>) {
    let mut bench = Bench::new(segment::SEGMENT_BYTES_MIN);
    let mut all = Vec::new();
    for &count in batches {
        add(&mut bench, &mut all, count);
    }
    (bench, all)
}

pub(super) fn add(bench: &mut Bench, all: &mut Vec<Vec<u8>>, count: usize) {
    let payloads: Vec<_> = (all.len()..all.len() + count).map(payload).collect();
    bench.batch(&payloads);
    all.extend(payloads);
}

/// What a start finds: the payloads of its snapshot and of the frames after it.
pub(super) fn started(home: &Home) -> Result<(Vec<Vec<u8>>, Opened), Fault> {
    let (opened, kept) = open_from(home.options(), Disk::default(), BOOT, load)?;
    let mut all = kept.unwrap_or_default();
    all.extend(payloads(&opened));
    Ok((all, opened))
}

fn only_file(directory: &Path) -> PathBuf {
    let mut files: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn any_damaged_byte_or_cut_of_a_snapshot_is_noticed_and_named() {
    let (bench, _) = bench(&[3, 1]);
    let snapshots = snapshots_on(&bench, Disk::default());
    keep(&snapshots, bench.batches.end()).unwrap();
    let file = only_file(&bench.home.data.path().join("snapshots"));
    let good = std::fs::read(&file).unwrap();
    assert!(newest(&snapshots).0.is_some());
    let noticed = |bytes: &[u8], what: &str| {
        std::fs::write(&file, bytes).unwrap();
        let (found, notes) = newest(&snapshots);
        assert!(found.is_none(), "{what}");
        assert!(notes[0].contains(&file.display().to_string()), "{what}: {notes:?}");
    };
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        noticed(&bad, &format!("byte {at}"));
        noticed(&good[..at], &format!("cut at {at}"));
    }
    let longer = [&good[..], &[0]].concat();
    noticed(&longer, "longer");
}

#[test]
fn a_start_goes_on_after_a_snapshot_at_any_batch_and_finds_what_all_segments_say() {
    for kept_at in 0..12 {
        let (mut bench, mut all) = bench(&[]);
        for index in 0..12 {
            add(&mut bench, &mut all, 1 + index * 5 % 7);
            if index == kept_at {
                keep(&snapshots_on(&bench, Disk::default()), bench.batches.end()).unwrap();
            }
        }
        // Nobody makes files any more when the next one takes the directory.
        let Bench { home, batches, .. } = bench;
        drop(batches);
        let whole = home.scan().unwrap();
        assert!(3 < whole.numbers.len(), "several segments");
        let (found, opened) = started(&home).unwrap();
        assert_eq!(found, all, "snapshot behind batch {kept_at}");
        let recovered = opened.recovered();
        let kept = recovered.snapshot.unwrap();
        assert!(kept.0 <= recovered.end && kept.1 <= recovered.frames);
        assert_eq!((recovered.end, recovered.frames), (whole.end, whole.frames));
        // Frames before the snapshot are still found by position.
        let running = start(opened);
        let mut history = History::of_segments(running.segments);
        let first = history.bytes(FIRST_POSITION).unwrap();
        assert_eq!(first.len() as u64, crate::journal::frame::frame_bytes(all[0].len()));
        // And the next start reads what this one writes.
        running.writer.stop(TimeMs(2)).unwrap();
        drop(running.log);
        assert_eq!(started(&home).unwrap().0, all);
    }
}

#[test]
fn a_damaged_snapshot_gives_way_to_the_older_one_and_then_to_all_segments() {
    let (mut bench, mut all) = bench(&[4, 4]);
    let snapshots = snapshots_on(&bench, Disk::default());
    keep(&snapshots, bench.batches.end()).unwrap();
    add(&mut bench, &mut all, 5);
    keep(&snapshots, bench.batches.end()).unwrap();
    add(&mut bench, &mut all, 2);
    let Bench { home, batches, .. } = bench;
    drop(batches);
    let frames_before = |home: &Home| {
        let (found, opened) = started(home).unwrap();
        assert_eq!(found, all);
        let named = opened.recovered().notes.iter().filter(|note| note.contains("it is not used")).count();
        (opened.recovered().snapshot.map(|(_, frames)| frames), named)
    };
    assert_eq!(frames_before(&home), (Some(13), 0));
    for (damaged, expected) in [(0, (Some(8), 1)), (1, (None, 2))] {
        harm(&snapshots.paths().unwrap()[damaged]);
        assert_eq!(frames_before(&home), expected);
    }
}

/// Flips a bit in the middle of a file.
fn harm(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_snapshot_is_none_of_the_two_that_stay_and_goes_when_it_is_older_than_they() {
    for harmed_is_run in [false, true] {
        let (mut bench, mut all) = bench(&[]);
        let snapshots = snapshots_on(&bench, Disk::default());
        let mut made = 0..;
        let mut make = |bench: &mut Bench| {
            add(bench, &mut all, 2);
            let mut base = snapshots.follow(None, bench.batches.end(), |_| Ok::<_, Fault>(())).unwrap();
            let number = made.next().unwrap();
            let rows = archive_rows(number..number + 1);
            snapshots.archive(&mut base, rows, |bytes| Ok(archive_row(bytes))).unwrap();
            let path = snapshots.write(&mut base, 7, |_| ()).unwrap().path;
            snapshots.forget_old().unwrap();
            let run = path.with_file_name(&base.runs[0]);
            (path, run)
        };
        let first = make(&mut bench).0;
        let (second, run) = make(&mut bench);
        harm(if harmed_is_run { &run } else { &second });
        let third = make(&mut bench).0;
        assert_eq!(snapshots.paths().unwrap(), [&third, &second, &first].map(PathBuf::clone));
        let segments = bench.batches.segments();
        bench.log.free(bench.batches.end());
        snapshots.give_back(&segments, &bench.log, bench.batches.end(), 0).unwrap();
        let fourth = make(&mut bench).0;
        assert_eq!(snapshots.paths().unwrap(), [fourth, third]);
        assert!(!run.exists());
    }
}

#[test]
fn the_two_newest_stay_and_a_disk_that_fails_takes_none_of_them() {
    let (mut bench, mut all) = bench(&[2]);
    for _ in 0..4 {
        keep(&snapshots_on(&bench, Disk::default()), bench.batches.end()).unwrap();
        add(&mut bench, &mut all, 2);
    }
    let good = snapshots_on(&bench, Disk::default());
    let before = good.paths().unwrap();
    assert_eq!(before.len(), 2);
    let (mut refusals, mut done) = (0, false);
    for errno in [rustix::io::Errno::IO, rustix::io::Errno::NOSPC].map(rustix::io::Errno::raw_os_error) {
        for operations in 0.. {
            let failing = snapshots_on(&bench, Disk::failing_after(operations, errno));
            match keep(&failing, bench.batches.end()) {
                Ok(_) => {
                    done = true;
                    break;
                }
                Err(fault) => {
                    refusals += 1;
                    assert!(matches!(fault, Fault::Io { .. }), "{fault}");
                    // The last one that stood stays whatever fails.
                    let (found, notes) = newest(&good);
                    assert!(notes.is_empty() && found.unwrap().1.len() >= 8, "{notes:?}");
                    assert!(good.paths().unwrap().contains(&before[0]));
                }
            }
        }
    }
    assert!(done && 4 < refusals, "{refusals}");
    let left = std::fs::read_dir(bench.home.data.path().join("snapshots")).unwrap();
    assert!(left.count() <= 3, "nothing half is left");
}

#[test]
fn a_snapshot_leaves_the_room_that_must_stay_free() {
    // More than any disk has; of the file it is a hole.
    const BYTES: u64 = 1 << 43;
    let (bench, _) = bench(&[2]);
    let refused = keep(&snapshots_on(&bench, Disk::default()).leaving_free(u64::MAX), bench.batches.end());
    assert!(matches!(refused, Err(Fault::NoRoomForSnapshot { .. })));
    assert!(newest(&snapshots_on(&bench, Disk::default())).0.is_none());
    // The next one is expected to be as large as the newest.
    let snapshots = snapshots_on(&bench, Disk::default());
    keep_at_end(&snapshots, &bench);
    let path = snapshots.paths().unwrap().remove(0);
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(BYTES).unwrap();
    let mut base = snapshots.follow(None, bench.batches.end(), |_| Ok::<_, Fault>(())).unwrap();
    let refused = snapshots.write(&mut base, 7, |_| ()).unwrap_err();
    assert!(matches!(refused, Fault::NoRoomForSnapshot { bytes: BYTES, .. }), "{refused}");
}

#[test]
fn a_snapshot_before_the_first_batch_is_refused() {
    let (bench, _) = bench(&[]);
    let refused = keep(&snapshots_on(&bench, Disk::default()), bench.batches.end());
    assert!(matches!(refused, Err(Fault::NothingToSnapshot)), "{refused:?}");
    bench.home.open().unwrap();
}

#[test]
fn segments_that_do_not_lead_to_a_snapshot_are_refused() {
    let (bench, _) = bench(&[3, 3, 3]);
    keep(&snapshots_on(&bench, Disk::default()), bench.batches.end()).unwrap();
    let Bench { home, batches, .. } = bench;
    drop(batches);
    // The last segment goes back to what a copy from yesterday has.
    let last = segment::numbers(&segment::directory(home.data.path())).unwrap().pop().unwrap();
    let path = segment::path(&segment::directory(home.data.path()), last);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let bytes = file.metadata().unwrap().len();
    segment::fill_zero(&file, &path, segment::ROW_BYTES..bytes, &Disk::default()).unwrap();
    let refused = started(&home).map(|_| ());
    assert!(matches!(refused, Err(Fault::SnapshotMisfit { .. })), "{refused:?}");
}

#[test]
fn what_is_missing_in_front_of_the_log_or_all_of_it_is_said_as_it_is() {
    let (mut bench, mut all) = bench(&[4, 3, 5, 4, 6, 2, 5, 6, 4, 7, 5, 5]);
    let snapshots = snapshots_on(&bench, Disk::default());
    for _ in 0..2 {
        keep_at_end(&snapshots, &bench);
        add(&mut bench, &mut all, 5);
    }
    let Bench { home, batches, .. } = bench;
    drop(batches);
    let directory = segment::directory(home.data.path());
    let numbers = segment::numbers(&directory).unwrap();
    let remove = |numbers: &[u64]| {
        for &number in numbers {
            std::fs::remove_file(segment::path(&directory, number)).unwrap();
        }
    };
    let refused = |words: &str| {
        let fault = started(&home).unwrap_err().to_string();
        assert!(fault.contains(words) && fault.ends_with("nothing was changed"), "{fault}");
        let other = "later segments are there";
        assert!(!fault.contains(other), "{fault}");
        assert!(!has_first_segment(home.data.path()).unwrap(), "{words}");
        assert!(std::fs::read_dir(&directory).unwrap().all(|entry| {
            entry.unwrap().path().extension().is_some_and(|extension| extension == "segment")
        }));
    };

    // Given back, and then the snapshots are lost.
    let kept = tempfile::tempdir().unwrap();
    copy(home.data.path(), kept.path());
    remove(&numbers[..2]);
    assert!(started(&home).is_ok());
    let shelf = home.data.path().join("snapshots");
    std::fs::remove_dir_all(&shelf).unwrap();
    refused("00000002.segment: missing, and no snapshot is there that stands for it and all before it");
    copy(&kept.path().join("snapshots"), &shelf);
    assert!(started(&home).is_ok());

    // Nothing is left to follow the newest snapshot into, then nothing at all.
    let newest = snapshots.paths().unwrap().remove(0);
    let of_newest = snapshots.newest(&mut Vec::new(), load).unwrap().unwrap().0.segment;
    remove(&numbers.iter().copied().filter(|&number| of_newest <= number).collect::<Vec<_>>());
    let gone = format!("{of_newest:08}.segment: missing, as is every one after it, and {}", newest.display());
    refused(&gone);
    remove(&segment::numbers(&directory).unwrap());
    refused(&gone);
    for path in snapshots.paths().unwrap() {
        harm(&path);
    }
    refused("00000001.segment: missing, and no snapshot is whole that stands for it");
}

#[test]
fn a_directory_of_segments_that_is_gone_is_named_by_starts_and_surveys() {
    for with_snapshot in [true, false] {
        let (bench, _) = bench(&[4, 3, 5]);
        if with_snapshot {
            keep_at_end(&snapshots_on(&bench, Disk::default()), &bench);
        }
        let Bench { home, batches, .. } = bench;
        drop(batches);
        let directory = segment::directory(home.data.path());
        std::fs::remove_dir_all(&directory).unwrap();
        let refused = started(&home).map(|_| ()).unwrap_err().to_string();
        assert!(
            refused.contains(".segment: missing, ") && refused.ends_with("nothing was changed"),
            "{refused}"
        );
        assert!(!has_first_segment(home.data.path()).unwrap());
        assert!(!directory.exists());
    }
}

#[test]
fn a_snapshot_of_another_version_is_told_from_a_damaged_one() {
    let (bench, _) = bench(&[4, 3, 5]);
    let snapshots = snapshots_on(&bench, Disk::default());
    keep_at_end(&snapshots, &bench);
    let path = snapshots.paths().unwrap().remove(0);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8] -= 1;
    let sum = crate::journal::checksum::sum(&bytes[..124]);
    bytes[124..128].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let (found, notes) = newest(&snapshots);
    let told = format!(
        "its version is {}, of another version of Outcry, and this one reads {}",
        bytes[8],
        bytes[8] + 1
    );
    assert!(found.is_none() && notes[0].contains(&told) && !notes[0].contains("damaged"), "{notes:?}");
}

#[test]
fn segments_go_only_after_two_whole_snapshots_and_the_rest_still_starts() {
    for keep in [0, 1, 100] {
        let (mut bench, mut all) = bench(&[4, 3, 5, 4, 6, 2, 5, 6, 4, 7, 5, 5]);
        let snapshots = snapshots_on(&bench, Disk::default());
        let segments = bench.batches.segments();
        let give_back = |bench: &Bench| snapshots.give_back(&segments, &bench.log, bench.batches.end(), keep);
        keep_at_end(&snapshots, &bench);
        assert_eq!(give_back(&bench).unwrap(), 0, "one snapshot is not two");
        add(&mut bench, &mut all, 5);
        keep_at_end(&snapshots, &bench);
        assert_eq!(give_back(&bench).unwrap(), 0, "the ring still has the first frame");
        bench.log.free(bench.batches.end());
        add(&mut bench, &mut all, 7);
        let before = segment::numbers(&segment::directory(bench.home.data.path())).unwrap();
        let followed_nothing = snapshots.give_back(&segments, &bench.log, FIRST_POSITION, keep).unwrap();
        assert_eq!(followed_nothing, 0, "somebody reads the first segment");
        let gone = give_back(&bench).unwrap();
        assert_eq!(gone == 0, keep == 100, "{gone} of {before:?}");
        let Bench { home, batches, .. } = bench;
        drop(batches);
        for damaged in 0..3 {
            for path in snapshots.paths().unwrap().iter().take(damaged) {
                std::fs::write(path, b"nothing").unwrap();
            }
            match started(&home) {
                Ok((found, opened)) => {
                    assert_eq!(found, all);
                    let running = start(opened);
                    let mut history = History::of_segments(running.segments);
                    let first = history.bytes(crate::journal::FIRST_POSITION);
                    assert_eq!(first.is_err(), 0 < gone, "what was given back is not found");
                    running.writer.stop(TimeMs(2)).unwrap();
                    drop(running.log);
                }
                Err(fault) => {
                    assert!(
                        damaged == 2 && 0 < gone && matches!(fault, Fault::NoBeginning { .. }),
                        "{damaged} damaged, keep {keep}: {fault}"
                    );
                    let directory = segment::directory(home.data.path());
                    let first = segment::numbers(&directory).unwrap()[0];
                    let file = std::fs::OpenOptions::new().write(true).open(segment::path(&directory, first));
                    std::os::unix::fs::FileExt::write_all_at(&file.unwrap(), b"2", 7).unwrap();
                    let refused = started(&home).map(|_| ()).expect_err("of another version").to_string();
                    assert!(refused.contains("its format is OUTCSEG2"), "{refused}");
                }
            }
        }
    }
}

#[test]
fn segments_stay_while_a_run_that_both_snapshots_name_is_damaged() {
    let (mut bench, mut all) = bench(&[4, 3, 5, 4, 6, 2, 5]);
    let snapshots = snapshots_on(&bench, Disk::default());
    let mut runs = Vec::new();
    for rows in [0..9, 9..18, 18..27] {
        let mut base = snapshots.follow(None, bench.batches.end(), |_| Ok::<_, Fault>(())).unwrap();
        // As if the runs before had no room for more.
        snapshots.archive(&mut base, archive_rows(rows), |bytes| Ok(archive_row(bytes))).unwrap();
        runs.append(&mut base.runs);
        base.runs.clone_from(&runs);
        snapshots.write(&mut base, 7, |_| ()).unwrap();
        add(&mut bench, &mut all, 5);
    }
    bench.log.free(bench.batches.end());
    let segments = bench.batches.segments();
    let give_back =
        |snapshots: &Snapshots| snapshots.give_back(&segments, &bench.log, bench.batches.end(), 0);
    let path = bench.home.data.path().join("snapshots").join(&runs[0]);
    let good = std::fs::read(&path).unwrap();
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bad).unwrap();
    let fault = give_back(&snapshots).unwrap_err().to_string();
    assert!(fault.contains(&runs[0]), "{fault}");
    assert_eq!(segment::numbers(&segment::directory(bench.home.data.path())).unwrap()[0], 1);
    // Without it no snapshot is whole.
    std::fs::remove_file(&path).unwrap();
    assert_eq!(give_back(&snapshots).unwrap(), 0);
    std::fs::write(&path, good).unwrap();
    assert!(0 < give_back(&snapshots).unwrap());
}

fn keep_at_end(snapshots: &Snapshots, bench: &Bench) {
    keep(snapshots, bench.batches.end()).unwrap();
}

/// Rows of an archive whose bytes say which they are.
pub(super) fn archive_rows(numbers: std::ops::Range<u64>) -> Vec<ArchiveRow> {
    numbers
        .rev()
        .map(|number| {
            let index = usize::try_from(number).unwrap();
            archive_row(&[&number.to_le_bytes()[..], &payload(index)].concat())
        })
        .collect()
}

#[allow(clippy::unnecessary_wraps, reason = "other rows can be without a meaning")]
fn bytes_of(bytes: &[u8]) -> Result<Vec<u8>, Damage> {
    Ok(bytes.to_vec())
}

pub(super) fn archive_row(bytes: &[u8]) -> ArchiveRow {
    let number = crate::journal::frame::u64_at(bytes, 0);
    ArchiveRow {
        position: Position(64 * number),
        id_prefix: number % 50,
        stamp_ms: 1_000 + number,
        stamp: number.to_le_bytes().to_vec(),
        row: bytes.to_vec(),
    }
}

#[test]
fn archived_rows_are_found_by_position_and_id_and_stay_while_a_snapshot_names_them() {
    const ROWS_MAX: u64 = crate::journal::archive::ROWS_MAX as u64;
    let (mut bench, mut all) = bench(&[3]);
    let snapshots = snapshots_on(&bench, Disk::default());
    let mut seen = 0;
    for round in 1..=4_u64 {
        let base = newest(&snapshots).0.map(|(base, _)| base);
        let mut base = snapshots.follow(base.as_ref(), bench.batches.end(), |_| Ok::<_, Fault>(())).unwrap();
        snapshots.archive(&mut base, archive_rows(seen..40 * round), |bytes| Ok(archive_row(bytes))).unwrap();
        seen = 40 * round;
        snapshots.write(&mut base, 7, |_| ()).unwrap();
        snapshots.forget_old().unwrap();
        let archive = snapshots.archive_of(&base, &Archive::default()).unwrap();
        assert_eq!(archive.rows() as u64, seen);
        for row in archive_rows(0..seen) {
            assert_eq!(archive.at(row.position, bytes_of).unwrap().as_ref(), Some(&row.row));
            let alike = archive.by_id_prefix(row.id_prefix, bytes_of).unwrap();
            assert!(alike.contains(&row.row) && alike.len() as u64 == (seen - row.id_prefix).div_ceil(50));
        }
        assert_eq!(archive.at(Position(64 * seen), bytes_of).unwrap(), None);
        let runs = seen.div_ceil(ROWS_MAX);
        for wanted in [1, runs] {
            let (mut stamps, mut highest) = (0, Vec::new());
            let taken = archive.stamps(
                |stamp| {
                    highest.push(stamp);
                    highest.len() as u64 <= wanted
                },
                |bytes| {
                    stamps += bytes.len() as u64 / 8;
                    Ok(())
                },
            );
            taken.unwrap();
            let asked = runs.min(wanted + 1);
            let of_runs = (0..asked).map(|run| 999 + seen.min((runs - run) * ROWS_MAX));
            assert!(highest.iter().copied().eq(of_runs), "{highest:?}");
            assert_eq!(stamps, seen - (runs - wanted) * ROWS_MAX);
        }
        add(&mut bench, &mut all, 3);
    }
    let files = std::fs::read_dir(bench.home.data.path().join("snapshots")).unwrap();
    let runs = files.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|end| end == "run"));
    assert_eq!(
        runs.count() as u64,
        seen.div_ceil(ROWS_MAX) + 1,
        "the older snapshot's last run was rewritten"
    );
}

#[test]
fn an_archive_forgets_the_runs_that_nobody_else_has() {
    let (bench, _) = bench(&[3]);
    let snapshots = snapshots_on(&bench, Disk::default());
    let mut base = snapshots.follow(None, bench.batches.end(), |_| Ok::<_, Fault>(())).unwrap();
    snapshots.archive(&mut base, archive_rows(0..9), |bytes| Ok(archive_row(bytes))).unwrap();
    snapshots.write(&mut base, 7, |_| ()).unwrap();
    let mut ours = snapshots.archive_of(&base, &Archive::default()).unwrap();
    let theirs = ours.clone();
    ours.forget_unshared();
    assert_eq!((ours.rows(), theirs.rows()), (9, 9));
    drop(theirs);
    ours.forget_unshared();
    assert_eq!(ours.rows(), 0);
}

#[test]
fn a_damaged_run_is_noticed_at_the_start_or_when_its_row_is_read() {
    let (bench, _) = bench(&[3]);
    let snapshots = snapshots_on(&bench, Disk::default());
    let mut base = snapshots.follow(None, bench.batches.end(), |_| Ok::<_, Fault>(())).unwrap();
    snapshots.archive(&mut base, archive_rows(0..9), |bytes| Ok(archive_row(bytes))).unwrap();
    snapshots.write(&mut base, 7, |_| ()).unwrap();
    let path = bench.home.data.path().join("snapshots").join(&base.runs[0]);
    let good = std::fs::read(&path).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        std::fs::write(&path, bad).unwrap();
        assert!(snapshots.check(|_| Ok(())).unwrap()[0].is_err(), "byte {at}");
        // A start without a check of all rows never gives other rows than were written.
        let opened = snapshots.newest(&mut Vec::new(), |reader| reader.archive(&Archive::default())).unwrap();
        let Some((_, archive)) = opened else { continue };
        for row in archive_rows(0..9) {
            assert!(
                archive.at(row.position, bytes_of).is_ok_and(|found| found == Some(row.row.clone()))
                    || archive.at(row.position, bytes_of).is_err()
            );
        }
    }
}
