//! Packed segments: the same frames in less room, whoever looks, and whenever the machine stops.

mod around;

use crate::journal::checksum;
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use super::snapshots::{add, bench, keep, snapshots_on, started};
use super::*;
use crate::journal::frame::{FRAME_ALIGN, FRAME_BYTES_MAX, FRAME_HEADER_BYTES, Header, PADDING, frame_bytes};
use crate::journal::history::Entry;
use crate::journal::open::open_with;
use crate::journal::pack::{Packed, Packer, Step};
use crate::journal::scan::frames_of;
use crate::journal::segment::{
    BATCH_BYTES_MAX, BATCH_HEADER_BYTES, BatchHeader, FirstRow, Form, ROW, ROW_BYTES, rows,
};
use crate::journal::{History, survey};

const ENOSPC: i32 = 28;
/// Room for the largest batch, and for some of them.
const SEGMENT_BYTES: u64 = 2 * 1024 * 1024;

/// A small generator (splitmix64); the same numbers everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> usize {
        usize::try_from(self.next() % bound).unwrap()
    }
}

impl Bench {
    fn journal(&self) -> [u8; 16] {
        self.batches.shelf().journal
    }

    fn packer(&self, disk: Disk) -> Packer {
        let shelf = Shelf { disk, ..self.batches.shelf().clone() };
        Packer::new(shelf, self.batches.segments())
    }

    /// Adds a frame of `epoch` to the next batch; if there is no room, writes that batch first.
    fn frame(&mut self, epoch: u32, kind: u16, payload: &[u8], length: u64) {
        let length = usize::try_from(length).unwrap();
        if self.batches.free().len() < length {
            self.batches.write().unwrap();
        }
        let free = self.batches.free();
        let position = self.next_position;
        let header = Header {
            length: u32::try_from(length).unwrap(),
            position,
            epoch,
            kind,
            payload_bytes: u32::try_from(payload.len()).unwrap(),
        };
        free[..length].fill(0);
        for (word, into) in header.words(checksum::sum(payload)).iter().zip(free.chunks_mut(8)) {
            into.copy_from_slice(&word.to_le_bytes());
        }
        free[FRAME_HEADER_BYTES..][..payload.len()].copy_from_slice(payload);
        self.batches.take();
        self.next_position.0 += length as u64;
    }

    fn sealed(&self) -> Vec<PathBuf> {
        (1..self.batches.segments().newest()).map(|number| self.segment(number)).collect()
    }

    /// Unlocks the directory, for a start.
    fn leave(self) -> Home {
        let Self { home, batches, .. } = self;
        drop(batches);
        home
    }
}

/// Steps until nothing is left to pack, and returns what was packed.
pub(super) fn pack_all(packer: &mut Packer) -> Result<Vec<Packed>, Fault> {
    let mut packed = Vec::new();
    loop {
        match packer.step()? {
            Step::Idle => return Ok(packed),
            Step::Busy => {}
            Step::Packed(segment) => packed.push(segment),
        }
    }
}

/// Batches of every shape, in several segments and epochs, some without a frame.
fn any_shape(seed: u64) -> Bench {
    let mut random = Random(seed);
    let mut bench = Bench::in_memory(SEGMENT_BYTES);
    let mut epoch = 1;
    let batches = 1 + random.below(900);
    // Mostly small frames, as a quiet exchange has, or mostly large ones.
    let large = [0, 0, 1, 10, 60][random.below(5)];
    for _ in 0..batches {
        if random.below(40) == 0 {
            for _ in 0..=random.below(2) {
                epoch = bench.batches.raise_epoch();
                bench.batches.write().unwrap();
            }
        }
        let most = if random.below(8) == 0 { 60 } else { 3 };
        for _ in 0..random.below(most) {
            let most = if random.below(100) < large { 300_000 } else { 1_500 };
            if random.below(20) == 0 {
                let length = FRAME_ALIGN * (1 + random.below(80)) as u64;
                bench.frame(epoch, PADDING, &[], length);
            } else {
                let byte = u8::try_from(random.below(256)).unwrap();
                let payload = vec![byte; random.below(most)];
                let kind = KIND + u16::try_from(random.below(5)).unwrap();
                bench.frame(epoch, kind, &payload, frame_bytes(payload.len()));
            }
        }
        bench.batches.write().unwrap();
    }
    bench
}

/// Every frame by its position: its epoch and all of its bytes, as the files have them.
type Frames = BTreeMap<u64, (u32, Vec<u8>)>;

/// The frames and batches of a segment file.
fn frames_in(bench: &Bench, number: u64) -> (Form, Vec<BatchHeader>, Frames) {
    let bytes = std::fs::read(bench.segment(number)).unwrap();
    let first = FirstRow::decode(&bytes[..ROW], &bench.journal(), number).unwrap();
    assert_eq!(first.bytes, bytes.len() as u64);
    let (mut headers, mut frames, mut row) = (Vec::new(), Frames::new(), 1_u32);
    while let Some(rest) = bytes.get(row as usize * ROW..).filter(|rest| rest.iter().any(|&byte| byte != 0)) {
        let header = BatchHeader::decode(rest, &bench.journal(), number, row).unwrap();
        let of_batch = frames_of(&header, rest).unwrap();
        let mut at = 0;
        while at < of_batch.len() {
            let length = crate::journal::frame::u32_at(of_batch, at) as usize;
            let position = header.first.0 + at as u64;
            frames.insert(position, (header.epoch, of_batch[at..at + length].to_vec()));
            at += length;
        }
        row += header.rows();
        headers.push(header);
    }
    (first.form, headers, frames)
}

fn all_frames(bench: &Bench) -> Frames {
    (1..=bench.batches.segments().newest()).flat_map(|number| frames_in(bench, number).2).collect()
}

/// What does not depend on which batches frames are in.
fn summary(scan: &Scan) -> (Position, u64, u32, u64, u16, Option<crate::journal::Cut>) {
    (scan.end, scan.chain, scan.epoch, scan.frames, scan.last_kind, scan.cut.clone())
}

fn epochs(headers: &[BatchHeader]) -> Vec<u32> {
    let mut epochs: Vec<_> = headers.iter().map(|header| header.epoch).collect();
    epochs.dedup();
    epochs
}

#[test]
fn packing_keeps_every_frame_the_chain_and_the_epochs_in_the_fewest_batches() {
    let (mut packed_ever, mut left_ever) = (0, 0);
    for seed in 0..24 {
        let bench = any_shape(seed);
        let newest = bench.batches.segments().newest();
        let before = bench.home.scan().unwrap();
        let frames = all_frames(&bench);
        let was: Vec<_> = (1..=newest).map(|number| frames_in(&bench, number)).collect();
        let packed = pack_all(&mut bench.packer(Disk::default())).unwrap();

        let after = bench.home.scan().unwrap();
        assert_eq!(summary(&after), summary(&before), "seed {seed}");
        assert_eq!(after.durable, before.durable, "seed {seed}");
        assert!(all_frames(&bench) == frames, "seed {seed}");
        let mut history = History::of_segments(bench.batches.segments());
        for (&position, (_, bytes)) in &frames {
            assert!(history.bytes(Position(position)).unwrap() == bytes, "seed {seed}, position {position}");
        }
        for (number, (_, old, _)) in (1..=newest).zip(was) {
            let (form, headers, _) = frames_in(&bench, number);
            let is_packed = packed.iter().any(|packed| packed.segment == number);
            assert_eq!(form == Form::Packed, is_packed, "seed {seed}, segment {number}");
            assert_eq!(epochs(&headers), epochs(&old), "seed {seed}, segment {number}");
            if is_packed {
                check_density(&headers, &frames);
            } else {
                assert_eq!(headers, old, "seed {seed}, segment {number}");
            }
        }
        packed_ever += packed.len();
        left_ever += usize::try_from(newest).unwrap() - 1 - packed.len();

        // And a packed one is not packed again, neither by this packer nor after a start.
        assert_eq!(pack_all(&mut bench.packer(Disk::default())).unwrap(), [], "seed {seed}");
    }
    assert!(9 < packed_ever && 2 < left_ever, "{packed_ever} packed, {left_ever} left");
}

/// Checks that no batch has room for the first frame of the next one, and that none is empty except
/// for the mark of an epoch.
fn check_density(headers: &[BatchHeader], frames: &Frames) {
    for pair in headers.windows(2) {
        if pair[0].epoch == pair[1].epoch {
            let (_, next) = &frames[&pair[1].first.0];
            let bytes = BATCH_HEADER_BYTES + pair[0].bytes as usize + next.len();
            assert!(BATCH_BYTES_MAX < bytes, "{pair:?}");
            assert!(0 < pair[1].bytes, "{pair:?}");
        }
        assert!(pair[0].durable <= pair[0].first && pair[0].durable <= pair[1].durable, "{pair:?}");
    }
}

/// Batches of one small frame each in `count` segments of eight rows, and the newest after them.
fn singles(count: u64) -> Bench {
    let mut bench = Bench::new(8 * ROW_BYTES);
    for index in 0..=7 * usize::try_from(count).unwrap() {
        bench.batch(&[payload(index)]);
    }
    assert_eq!(bench.batches.segments().newest(), count + 1);
    bench
}

#[test]
fn a_segment_of_single_orders_shrinks_to_what_its_frames_take() {
    let bench = singles(2);
    let packed = pack_all(&mut bench.packer(Disk::default())).unwrap();
    let bytes_before = 8 * ROW_BYTES;
    let expected = [1, 2].map(|segment| Packed { segment, bytes_before, bytes: 2 * ROW_BYTES });
    assert_eq!(packed, expected);
    for path in bench.sealed() {
        assert_eq!(std::fs::metadata(path).unwrap().len(), 2 * ROW_BYTES);
    }
}

#[test]
fn a_segment_is_packed_if_that_gives_back_a_quarter_and_otherwise_left() {
    // Seven batches in eight rows; packed, they take one row and those of their frames.
    for (frame, expected) in [(45 * 64, true), (46 * 64, false)] {
        let mut bench = Bench::new(8 * ROW_BYTES);
        for _ in 0..8 {
            bench.batch(&[vec![1; frame - FRAME_HEADER_BYTES]]);
        }
        let bytes = (ROW + rows(7 * frame) as usize * ROW) as u64;
        assert_eq!(bytes <= 6 * ROW_BYTES, expected);
        let packed = pack_all(&mut bench.packer(Disk::default())).unwrap();
        assert_eq!(packed.len(), usize::from(expected), "frames of {frame} bytes");
    }
}

#[test]
fn only_what_is_sealed_is_packed() {
    let mut bench = Bench::new(8 * ROW_BYTES);
    let mut packer = bench.packer(Disk::default());
    assert_eq!(packer.step().unwrap(), Step::Idle, "there is nothing at all");
    for index in 0..7 {
        bench.batch(&[payload(index)]);
        assert_eq!(packer.step().unwrap(), Step::Idle, "segment 1 is being written");
    }
    bench.batch(&[payload(7)]);
    assert_eq!(pack_all(&mut packer).unwrap().len(), 1);
}

/// Two sealed segments that take several batches when they are packed, in two epochs.
fn to_be_packed() -> Bench {
    let mut bench = Bench::in_memory(SEGMENT_BYTES);
    let mut epoch = 1;
    for index in 0.. {
        if bench.batches.segments().newest() == 3 {
            break;
        }
        if index == 100 {
            epoch = bench.batches.raise_epoch();
            bench.batches.write().unwrap();
        }
        let payload = vec![7; 500 + index % 3_000];
        bench.frame(epoch, KIND, &payload, frame_bytes(payload.len()));
        bench.batches.write().unwrap();
    }
    bench
}

#[test]
fn a_death_at_any_operation_leaves_a_journal_that_starts_as_before() {
    let bench = to_be_packed();
    let frames = all_frames(&bench);
    let (journal, segments) = (bench.journal(), bench.batches.segments());
    let home = bench.leave();
    let before = summary(&home.scan().unwrap());
    let (mut deaths, mut unfinished) = (0, 0);
    for good in 0.. {
        let copied = Home { segment_bytes: SEGMENT_BYTES, ..Home::new() };
        copy(home.data.path(), copied.data.path());
        let directory = segment::directory(copied.data.path());
        let all = (1..=3).flat_map(|number| segments.entries_of(number)).collect();
        let table = Arc::new(Segments::new(&directory, journal, all));
        let disk = Disk::failing_after(good, ENOSPC);
        let shelf = Shelf { directory, journal, segment_bytes: SEGMENT_BYTES, disk };
        let mut packer = Packer::new(shelf, Arc::clone(&table));
        let packed = loop {
            match packer.step() {
                Ok(Step::Idle) => break true,
                Ok(_) => {}
                // A fault cleans up; a death does not: what was unfinished lies there again.
                Err(fault) => {
                    assert!(matches!(fault, Fault::Io { .. }), "{fault}");
                    let left = segment::directory(copied.data.path()).join("00000001.packing");
                    assert!(!left.exists(), "after {good} operations");
                    std::fs::write(left, vec![1; 10_000]).unwrap();
                    unfinished += 1;
                    break false;
                }
            }
        };
        // A reader that continues beside it finds every frame, whichever file has the name.
        let mut history = History::of_segments(table);
        for (&position, (_, bytes)) in frames.iter().step_by(17) {
            assert!(history.bytes(Position(position)).unwrap() == bytes, "after {good} operations");
        }
        assert_eq!(summary(&copied.scan().unwrap()), before, "after {good} operations");
        let opened = copied.open().unwrap();
        assert_eq!(opened.recovered().frames, before.3);
        let names = std::fs::read_dir(segment::directory(copied.data.path())).unwrap();
        let mut names = names.map(|entry| entry.unwrap().path());
        assert!(names.all(|path| path.extension().unwrap() == "segment"), "after {good} operations");
        if packed {
            break;
        }
        deaths += 1;
    }
    // Each of two: create, some batches, the first row, the rename, the directory.
    assert!(15 < deaths && unfinished == deaths, "{deaths}");
}

#[test]
fn a_full_disk_is_said_changes_nothing_and_the_next_try_succeeds() {
    let bench = singles(2);
    let before: Vec<_> = bench.sealed().iter().map(|path| std::fs::read(path).unwrap()).collect();
    let refused = pack_all(&mut bench.packer(Disk::default()).leaving_free(u64::MAX));
    let Err(Fault::NoRoomToPack { segment, bytes, .. }) = &refused else { panic!("{refused:?}") };
    assert_eq!((segment, *bytes), (&bench.segment(1), 2 * ROW_BYTES));
    let disk = Disk::failing_after(1, ENOSPC);
    let mut packer = bench.packer(disk.clone());
    for _ in 0..2 {
        let fault = pack_all(&mut packer).unwrap_err();
        assert!(
            fault.to_string().contains("00000001.packing: ") && fault.to_string().contains("No space left")
        );
    }
    let after: Vec<_> = bench.sealed().iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(before == after);
    disk.mend();
    assert_eq!(pack_all(&mut packer).unwrap().len(), 2);
}

#[test]
fn a_packer_that_goes_leaves_nothing_behind() {
    let bench = to_be_packed();
    // The next segment is made meanwhile, so only what is unfinished is counted.
    let files = || {
        let names = std::fs::read_dir(segment::directory(bench.home.data.path())).unwrap();
        names.filter(|name| name.as_ref().unwrap().path().extension().unwrap() == "packing").count()
    };
    let before = files();
    let mut packer = bench.packer(Disk::default());
    let mut seen = 0;
    while !matches!(packer.step().unwrap(), Step::Packed(_)) {
        seen = seen.max(files());
    }
    assert_eq!(seen, before + 1);
    packer.step().unwrap();
    while files() == before {
        assert_eq!(packer.step().unwrap(), Step::Busy);
    }
    drop(packer);
    assert_eq!(files(), before);
}

#[test]
fn every_single_damaged_byte_of_a_packed_segment_is_reported_and_refused() {
    let bench = singles(1);
    pack_all(&mut bench.packer(Disk::default())).unwrap();
    let path = bench.segment(1);
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    assert_eq!(whole.len(), 2 * ROW);
    // Even if the only batch after it is missing: what is packed was durable.
    for newest_is_there in [true, false] {
        if !newest_is_there {
            let newest = std::fs::OpenOptions::new().write(true).open(bench.segment(2)).unwrap();
            newest.write_all_at(&[0; ROW], ROW_BYTES).unwrap();
        }
        for (byte, good) in whole.iter().enumerate() {
            file.write_all_at(&[good ^ 1 << (byte % 8)], byte as u64).unwrap();
            let found = bench.home.scan();
            let Err(Fault::Damaged(place)) = found else { panic!("byte {byte}: {found:?}") };
            assert_eq!(place.file, path, "byte {byte}");
            assert!(place.offset <= byte.next_multiple_of(ROW) as u64, "byte {byte}: {place}");
            file.write_all_at(&[*good], byte as u64).unwrap();
        }
        for bytes in 0..whole.len() {
            file.set_len(bytes as u64).unwrap();
            assert!(matches!(bench.home.scan(), Err(Fault::Damaged(_))), "cut at {bytes}");
        }
        file.write_all_at(&whole, 0).unwrap();
        match bench.home.scan() {
            Ok(found) => assert!(newest_is_there && found.frames == 8),
            Err(Fault::Damaged(place)) => assert!(!newest_is_there && place.file == bench.segment(2)),
            Err(other) => panic!("{other}"),
        }
        file.set_len(whole.len() as u64 + 1).unwrap();
        assert!(matches!(bench.home.scan(), Err(Fault::Damaged(_))), "one byte longer");
        file.set_len(whole.len() as u64).unwrap();
    }
}

#[test]
fn a_damaged_segment_is_named_once_and_left_and_the_next_one_is_packed() {
    for byte in [3, 40, 100, ROW + 30, ROW + 80, 4 * ROW + 130, 8 * ROW - 1] {
        let bench = singles(2);
        let path = bench.segment(1);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[byte] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let mut packer = bench.packer(Disk::default());
        let fault = pack_all(&mut packer).unwrap_err();
        assert!(matches!(&fault, Fault::Damaged(place) if place.file == path), "byte {byte}: {fault}");
        let packed = pack_all(&mut packer).unwrap();
        assert_eq!(packed.iter().map(|packed| packed.segment).collect::<Vec<_>>(), [2], "byte {byte}");
        assert!(std::fs::read(&path).unwrap() == bytes, "byte {byte}");
    }
}
