//! What is on the disk when: a machine that stops loses what was not synced, which no test can wait for. So
//! the order of the operations is checked.

use std::fs::metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::super::disk::{Direct, Disk, Done};
use super::super::open::open_on;
use super::super::pack::Packer;
use super::super::segment::ROW_BYTES;
use super::pack::pack_all;
use super::snapshots::{add, bench, keep, snapshots_on};
use super::*;

/// A disk that never fails and remembers what was done.
fn watched() -> Disk {
    Disk::failing_after(u64::MAX, 0)
}

fn inode(path: &Path) -> u64 {
    metadata(path).unwrap().ino()
}

/// The place of the first operation of this kind.
#[track_caller]
fn first(done: &[Done], what: Done) -> usize {
    done.iter().position(|other| *other == what).unwrap_or_else(|| panic!("{what:?} is not among {done:?}"))
}

/// Asserts that every file was synced between its last write and its name; returns how many got one.
#[track_caller]
fn nothing_is_named_before_it_is_synced(done: &[Done]) -> usize {
    let mut count = 0;
    for (at, named) in done.iter().enumerate() {
        let Done::Named(file) = *named else { continue };
        let before = done[..at].iter().rev();
        let mut last = before.filter(|done| [Done::Wrote(file), Done::Synced(file)].contains(done));
        assert_eq!(last.next(), Some(&Done::Synced(file)), "file {file} got its name at {at} of {done:?}");
        count += 1;
    }
    count
}

/// Asserts that whoever writes to a file that got its name in one of these directories finds the name on the disk;
/// returns how many are written to.
#[track_caller]
fn every_name_is_synced_before_its_file_is_written(done: &[Done], directories: &[u64]) -> usize {
    let mut count = 0;
    for (at, named) in done.iter().enumerate() {
        let Done::Named(file) = *named else { continue };
        let behind = &done[at + 1..];
        let Some(until) = behind.iter().position(|done| *done == Done::Wrote(file)) else { continue };
        let is_synced =
            behind[..until].iter().any(|done| directories.iter().any(|of| *done == Done::Synced(*of)));
        assert!(is_synced, "file {file}, named at {at} of {done:?}");
        count += 1;
    }
    count
}

#[test]
fn what_is_written_to_a_segment_is_on_the_disk_when_the_write_returns() {
    let home = Home::new();
    let path = home.data.path().join("segment");
    std::fs::write(&path, [0; 4_096]).unwrap();
    for direct in [Direct::Yes, Direct::No] {
        let (file, opened) = Disk::open_synchronous(&path, direct).unwrap();
        let flags = rustix::fs::fcntl_getfl(&file).unwrap().bits().cast_signed();
        // `O_SYNC` has the bit of `O_DSYNC` and one more, by which a write also waits for the file's times.
        assert_eq!(flags & libc::O_SYNC, libc::O_DSYNC, "{direct:?}: {flags:#o}");
        assert_eq!(flags & libc::O_DIRECT != 0, opened == Direct::Yes);
    }
}

#[test]
fn a_new_directory_its_identity_and_its_segments_are_on_the_disk_before_their_names_count() {
    let home = Home { segment_bytes: 5 * ROW_BYTES, ..Home::new() };
    let disk = watched();
    let started = start(open_on(home.options(), disk.clone(), BOOT).unwrap());
    for index in 0..12 {
        let span = started.log.append(KIND, &payload(index));
        wait_durable(&started.log, span.end);
    }
    started.writer.stop(TimeMs(2)).unwrap();
    let done = disk.done();
    assert!(3 < nothing_is_named_before_it_is_synced(&done), "an identity and some segments");
    let segments = inode(&segment::directory(home.data.path()));
    assert!(2 < every_name_is_synced_before_its_file_is_written(&done, &[segments]), "some segments");
    let above = home.data.path().canonicalize().unwrap();
    first(&done, Done::Synced(inode(above.parent().unwrap())));
}

#[test]
fn a_start_syncs_what_it_read_and_the_names_of_its_segments_before_it_adds_to_them() {
    let (home, log) = Home::abandoned();
    drop(log);
    let disk = watched();
    let opened = open_on(home.options(), disk.clone(), BOOT).unwrap();
    start(opened).writer.stop(TimeMs(2)).unwrap();
    let directory = segment::directory(home.data.path());
    let last = inode(&segment::path(&directory, 1));
    let done = disk.done();
    let wrote = first(&done, Done::Wrote(last));
    assert!(first(&done, Done::Synced(last)) < wrote, "{done:?}");
    assert!(first(&done, Done::Synced(inode(&directory))) < wrote, "{done:?}");
}

#[test]
fn a_snapshot_is_on_the_disk_before_it_has_its_name() {
    let (mut bench, mut all) = bench(&[3]);
    let disk = watched();
    let snapshots = snapshots_on(&bench, disk.clone());
    for _ in 0..2 {
        keep(&snapshots, bench.batches.end()).unwrap();
        add(&mut bench, &mut all, 1);
    }
    assert_eq!(nothing_is_named_before_it_is_synced(&disk.done()), 2);
}

#[test]
fn a_packed_segment_is_on_the_disk_before_it_has_its_name() {
    let (bench, _) = bench(&[1; 12]);
    let disk = watched();
    let shelf = Shelf { disk: disk.clone(), ..bench.batches.shelf().clone() };
    let packed = pack_all(&mut Packer::new(shelf, bench.batches.segments())).unwrap();
    assert!(1 < packed.len());
    assert_eq!(nothing_is_named_before_it_is_synced(&disk.done()), packed.len());
}

/// Whenever the machine stops, what is left has no hole.
#[test]
fn what_is_removed_is_gone_from_the_disk_segment_by_segment() {
    let (mut bench, mut all) = bench(&[4, 3, 5, 4, 6, 2, 5, 6, 4, 7, 5, 5]);
    let disk = watched();
    let snapshots = snapshots_on(&bench, disk.clone());
    let data_dir = bench.home.data.path().to_path_buf();
    let synced = |directory: &str| {
        let directory = Done::Synced(inode(&data_dir.join(directory)));
        disk.done().into_iter().filter(|done| *done == directory).count()
    };
    for kept in 1..=3 {
        keep(&snapshots, bench.batches.end()).unwrap();
        // Once for its name, and for the third also once for the end of the first.
        assert_eq!(synced("snapshots"), kept + usize::from(kept == 3));
        add(&mut bench, &mut all, 5);
    }
    bench.log.free(bench.batches.end());
    let segments = bench.batches.segments();
    let gone = snapshots.give_back(&segments, &bench.log, bench.batches.end(), 0).unwrap();
    assert!(1 < gone);
    assert_eq!(synced("journal") as u64, gone);
}
