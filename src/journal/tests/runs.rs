//! What a snapshot that could not be made leaves of its archive: nothing, and never less than others name.

use super::snapshots::{add, archive_row, archive_rows, bench, snapshots_on};
use super::*;
use crate::journal::archive::{ROWS_MAX, bytes, sections};
use crate::journal::disk::files_with;
use crate::journal::snapshot::{Base, Snapshots};
use crate::journal::{Archive, ArchiveRow};

/// Follows the log to its end and archives rows of these numbers, as if no run before had room for more.
fn archive(snapshots: &Snapshots, bench: &Bench, numbers: std::ops::Range<u64>) -> Result<Base, Fault> {
    let mut base = snapshots.follow(None, bench.batches.end(), |_| Ok::<_, Fault>(()))?;
    snapshots.archive(&mut base, archive_rows(numbers), |bytes| Ok(archive_row(bytes)))?;
    Ok(base)
}

/// The names of all runs.
fn runs(bench: &Bench) -> Vec<String> {
    let files = files_with(&bench.home.data.path().join("snapshots"), "run").unwrap();
    let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    files.into_iter().map(name).collect()
}

#[test]
fn runs_go_that_no_snapshot_came_to_name_and_no_others() {
    let (mut bench, mut all) = bench(&[3]);
    let snapshots = snapshots_on(&bench, Disk::default());
    let mut base = archive(&snapshots, &bench, 0..9).unwrap();
    let snapshot = snapshots.write(&mut base, 7, |_| ()).unwrap().path;
    for _ in 0..3 {
        add(&mut bench, &mut all, 2);
        assert_eq!(archive(&snapshots, &bench, 9..40).unwrap().runs.len(), 2);
        assert_eq!(snapshots.forget_unfinished().unwrap(), 2);
        assert_eq!(runs(&bench), base.runs);
    }
    // What a snapshot names that cannot be read is not known.
    std::fs::write(snapshot, b"nothing").unwrap();
    archive(&snapshots, &bench, 9..40).unwrap();
    assert_eq!(snapshots.forget_unfinished().unwrap(), 0);
    assert_eq!(runs(&bench).len(), 3);
}

#[test]
fn a_run_is_begun_only_where_its_snapshot_has_room_too() {
    // More than any disk has; of the file it is a hole.
    const BYTES: u64 = 1 << 43;
    let (bench, _) = bench(&[3]);
    let snapshots = snapshots_on(&bench, Disk::default());
    let mut base = snapshots.follow(None, bench.batches.end(), |_| Ok::<_, Fault>(())).unwrap();
    let newest = snapshots.write(&mut base, 7, |_| ()).unwrap().path;
    std::fs::OpenOptions::new().write(true).open(newest).unwrap().set_len(BYTES).unwrap();
    let refused = archive(&snapshots, &bench, 0..9).unwrap_err();
    let rows = bytes(&archive_rows(0..9));
    assert!(matches!(refused, Fault::NoRoomForSnapshot { bytes, .. } if bytes == rows + BYTES), "{refused}");
    assert!(runs(&bench).is_empty());
}

#[test]
fn the_room_of_rows_is_known_before_they_are_written() {
    let taken = |rows: &[ArchiveRow]| sections(rows).iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
    for count in [0, 1, 16] {
        let rows = archive_rows(0..count);
        assert_eq!(bytes(&rows), taken(&rows) - taken(&[]), "{count} rows");
    }
}

#[test]
fn a_run_that_cannot_be_written_leaves_nothing() {
    let (bench, _) = bench(&[3]);
    let directory = bench.home.data.path().join("snapshots");
    // Each needs some operations of the disk; the last of these disks has enough.
    for operations in 0.. {
        let done = archive(&snapshots_on(&bench, Disk::failing_after(operations, 28)), &bench, 0..9);
        assert!(files_with(&directory, "new").unwrap().is_empty(), "after {operations}");
        if done.is_ok() {
            break;
        }
    }
    assert_eq!(runs(&bench).len(), 1);
}

#[test]
fn a_run_that_was_made_anew_under_its_name_is_read_again() {
    let (bench, _) = bench(&[3]);
    let snapshots = snapshots_on(&bench, Disk::default());
    let base = archive(&snapshots, &bench, 0..9).unwrap();
    let old = snapshots.archive_of(&base, &Archive::default()).unwrap();
    std::fs::remove_file(bench.home.data.path().join("snapshots").join(&base.runs[0])).unwrap();
    let again = archive(&snapshots, &bench, 9..12).unwrap();
    assert_eq!(base.runs, again.runs);
    assert_eq!((old.rows(), snapshots.archive_of(&again, &old).unwrap().rows()), (9, 3));
}

/// Memories drop what was signed first, whichever run it is in.
#[test]
fn stamps_are_asked_for_with_the_highest_of_all_runs_that_are_left() {
    let (bench, _) = bench(&[3]);
    let snapshots = snapshots_on(&bench, Disk::default());
    let mut base = snapshots.follow(None, bench.batches.end(), |_| Ok::<_, Fault>(())).unwrap();
    let mut rows = archive_rows(0..ROWS_MAX as u64 + 1);
    for row in &mut rows {
        row.stamp_ms = 9_000 - row.position.0;
    }
    snapshots.archive(&mut base, rows, |bytes| Ok(archive_row(bytes))).unwrap();
    let archive = snapshots.archive_of(&base, &Archive::default()).unwrap();
    let mut asked = Vec::new();
    let wants = |stamp| {
        asked.push(stamp);
        true
    };
    archive.stamps(wants, |_| Ok(())).unwrap();
    assert_eq!(asked, [9_000, 9_000]);
}
