//! Every cut and every damaged byte.

use std::os::unix::fs::FileExt;
use std::path::Path;

use super::super::identity::Identity;
use super::super::segment;
use super::super::segment::{BATCH_HEADER_BYTES, BatchHeader, ROW_BYTES};
use super::super::{Fault, Place};
use super::{Bench, payload};
use crate::domain::Position;

/// Three batches in one segment: of one row, of two rows, of one row.
fn three_batches() -> (Bench, Vec<Position>) {
    let mut bench = Bench::new(8 * ROW_BYTES);
    let mut ends = vec![bench.batches.end()];
    for payloads in [vec![payload(1), payload(2)], vec![vec![3; 5_000]], vec![payload(4), payload(5), vec![]]]
    {
        bench.batch(&payloads);
        ends.push(bench.batches.end());
    }
    (bench, ends)
}

/// The rows of `three_batches`: where each batch begins and ends.
const ROWS: [(usize, usize); 3] = [(1, 2), (2, 4), (4, 5)];

/// How many batches are whole, and whether something is left of the next one, if `file` keeps only
/// its first `kept` bytes.
fn left_of(file: &[u8], kept: usize) -> (usize, bool) {
    let row = usize::try_from(ROW_BYTES).unwrap();
    let nonzero = |bytes: &[u8]| bytes.iter().any(|&byte| byte != 0);
    for (index, (first, end)) in ROWS.into_iter().enumerate() {
        let (first, end) = (first * row, end * row);
        if kept < end && nonzero(&file[kept.max(first)..end]) {
            return (index, first < kept && nonzero(&file[first..kept]));
        }
    }
    (ROWS.len(), false)
}

/// A header whose checksum is right and which says what cannot be there.
#[test]
fn a_batch_that_does_not_follow_the_one_before_is_refused_by_the_field_that_says_so() {
    type Change = (&'static str, fn(&mut BatchHeader));
    let changes: [Change; 8] = [
        ("segment of the batch", |header| header.segment += 1),
        ("row of the batch", |header| header.row += 1),
        ("position of the batch", |header| header.first.0 += 64),
        ("durable mark of the batch", |header| header.durable.0 = 0),
        ("durable mark of the batch", |header| header.durable.0 = header.first.0 + 64),
        ("epoch of the batch", |header| header.epoch = 0),
        ("chain of the batch", |header| header.chain ^= 1),
        ("bytes of the batch", |header| header.bytes = 1 << 20),
    ];
    let (bench, _) = three_batches();
    let journal = Identity::load(bench.home.data.path()).unwrap().unwrap().journal();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(bench.segment(1)).unwrap();
    for (row, _) in ROWS {
        let start = row as u64 * ROW_BYTES;
        let mut good = [0; BATCH_HEADER_BYTES];
        file.read_exact_at(&mut good, start).unwrap();
        let header = BatchHeader::decode(&good, &journal, 1, u32::try_from(row).unwrap()).unwrap();
        for (field, change) in changes {
            let mut bad = header;
            change(&mut bad);
            file.write_all_at(&bad.encode(&journal), start).unwrap();
            let place = match bench.home.scan() {
                Ok(found) => found.cut.expect(field).place,
                Err(Fault::Damaged(place)) => place,
                Err(fault) => panic!("{field} in row {row}: {fault}"),
            };
            assert!(place.field == field && start <= place.offset, "{field} in row {row}: {place:?}");
        }
        file.write_all_at(&good, start).unwrap();
        assert_eq!(bench.home.scan().unwrap().cut, None);
    }
}

#[test]
fn a_tail_cut_at_any_byte_leaves_whole_batches_and_the_cut_is_named() {
    let (bench, ends) = three_batches();
    let path = bench.segment(1);
    let whole = std::fs::read(&path).unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    for kept in (4_096..whole.len()).rev() {
        file.write_all_at(&[0], kept as u64).unwrap();
        let found = bench.home.scan().unwrap();
        let (batches, torn) = left_of(&whole, kept);
        assert_eq!(found.end, ends[batches], "zero from byte {kept} on");
        assert_eq!(found.cut.is_some(), torn, "zero from byte {kept} on");
        if let Some(cut) = found.cut {
            assert_eq!(cut.place.position, ends[batches]);
            assert!(0 < cut.bytes);
            assert_eq!(cut.place.file, path);
        }
    }
}

#[test]
fn a_file_cut_at_any_byte_is_damage() {
    let (bench, _) = three_batches();
    let path = bench.segment(1);
    let bytes = std::fs::metadata(&path).unwrap().len();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    for kept in (0..bytes).rev() {
        file.set_len(kept).unwrap();
        let refused = bench.home.scan();
        let names_it =
            matches!(&refused, Err(Fault::Damaged(place)) if place.file == path && place.found == kept);
        assert!(names_it, "cut at byte {kept}: {refused:?}");
    }
}

/// Damages `byte` of `path` with `bit`, scans, and repairs it.
fn look_with_damage(bench: &Bench, path: &Path, byte: u64, bit: u8) -> Result<Option<Place>, Fault> {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut good = [0];
    file.read_exact_at(&mut good, byte).unwrap();
    file.write_all_at(&[good[0] ^ bit], byte).unwrap();
    let found = bench.home.scan();
    file.write_all_at(&good, byte).unwrap();
    found.map(|found| found.cut.map(|cut| cut.place))
}

fn a_sealed_segment_and_a_batch_after_it() -> Bench {
    let mut bench = Bench::new(4 * ROW_BYTES);
    bench.batch(&[payload(1), payload(2)]);
    bench.batch(&[payload(3)]);
    // Two rows do not fit after those: the first segment is sealed with a row of zeros.
    bench.batch(&[vec![4; 4_500]]);
    bench
}

#[test]
fn whatever_is_damaged_before_a_whole_batch_is_refused_though_no_mark_says_that_it_was_durable() {
    let bench = a_sealed_segment_and_a_batch_after_it();
    let clean = bench.home.scan().unwrap();
    assert_eq!((clean.cut, clean.segment, clean.row), (None, 2, 3));
    assert!(clean.durable < clean.end);
    let path = bench.segment(1);
    for byte in 0..4 * ROW_BYTES {
        let reported = look_with_damage(&bench, &path, byte, 1 << (byte % 8));
        assert!(matches!(reported, Err(Fault::Damaged(_))), "byte {byte}: {reported:?}");
    }
}

#[test]
fn every_single_damaged_byte_is_reported_and_refused_below_the_durable_mark() {
    let mut bench = a_sealed_segment_and_a_batch_after_it();
    bench.batch(&[]);
    let clean = bench.home.scan().unwrap();
    assert_eq!((clean.cut, clean.segment, clean.row), (None, 2, 4));
    assert_eq!(clean.durable, clean.end);
    for number in [1, 2] {
        let path = bench.segment(number);
        for byte in 0..4 * ROW_BYTES {
            let bit = 1 << (byte % 8);
            let reported = look_with_damage(&bench, &path, byte, bit);
            // The mark in the last row is what makes all before it durable.
            let last_row = number == 2 && 3 * ROW_BYTES <= byte;
            match reported {
                Err(Fault::Damaged(place)) => {
                    assert!(!last_row || byte < ROW_BYTES, "byte {byte}");
                    assert_eq!(place.file, path, "byte {byte} of segment {number}");
                    assert!(place.offset <= byte.next_multiple_of(ROW_BYTES) + ROW_BYTES);
                }
                Ok(Some(place)) => {
                    assert!(last_row, "byte {byte} of segment {number}: {place}");
                    assert_eq!((place.file, place.position), (path.clone(), clean.end));
                }
                other => panic!("byte {byte} of segment {number}: {other:?}"),
            }
        }
    }
}

#[test]
fn damage_below_the_durable_mark_refuses_to_start_and_names_the_place() {
    let (bench, ends) = three_batches();
    let path = bench.segment(1);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    // In the payload of the second batch's frame.
    file.write_all_at(&[9], 2 * ROW_BYTES + 64 + 32 + 100).unwrap();
    let before = std::fs::read(&path).unwrap();
    let Err(Fault::Damaged(place)) = bench.home.open() else {
        panic!("it must refuse");
    };
    assert_eq!(place.file, path.canonicalize().unwrap());
    assert_eq!(place.offset, 2 * ROW_BYTES + 64 + 4);
    assert_eq!(place.position, ends[1]);
    assert_eq!(place.field, "frame checksum");
    assert!(place.expected != place.found);
    let text = Fault::Damaged(place).to_string();
    assert!(text.contains("00000001.segment: byte 8260, position"), "{text}");
    assert_eq!(std::fs::read(&path).unwrap(), before, "a refusal changes nothing");
}

#[test]
fn a_segment_of_another_version_is_told_from_a_damaged_one() {
    let (bench, _) = three_batches();
    let path = bench.segment(1);
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut format = [0; 8];
    file.read_exact_at(&mut format, 0).unwrap();
    let ours = String::from_utf8(format.to_vec()).unwrap();
    let packed = "OUTCPAK3";
    for (magic, told, reads) in [
        (*b"OUTCSEG2", "its format is OUTCSEG2, of another version of Outcry", Some(ours.as_str())),
        (*b"OUTCPAK1", "its format is OUTCPAK1, of another version of Outcry", Some(packed)),
        (*b"OUTCPAKx", "magic of the segment", None),
        (*b"OUTCSEG\x80", "magic of the segment", None),
    ] {
        file.write_all_at(&magic, 0).unwrap();
        let text = bench.home.open().expect_err("it must refuse").to_string();
        assert!(text.contains("00000001.segment: ") && text.contains(told), "{text}");
        for format in [ours.as_str(), packed] {
            assert_eq!(text.contains(format), reads == Some(format), "what this version reads: {text}");
        }
    }
}

#[test]
fn damage_in_the_first_row_of_a_later_segment_names_the_position_before_it() {
    let bench = a_sealed_segment_and_a_batch_after_it();
    let first = bench.home.scan().unwrap().entries.iter().find(|entry| entry.segment == 2).unwrap().position;
    let path = bench.segment(2);
    let good = std::fs::read(&path).unwrap();
    for harm in [|bytes: &mut Vec<u8>| bytes[20] ^= 1, |bytes: &mut Vec<u8>| bytes.truncate(4_096)] {
        let mut bytes = good.clone();
        harm(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        let Err(Fault::Damaged(place)) = bench.home.scan() else { panic!("it must refuse") };
        assert_eq!((place.file, place.position), (path.clone(), first), "{}", place.field);
    }
}

#[test]
fn a_batch_that_vanished_is_damage_if_another_follows() {
    let (bench, ends) = three_batches();
    let path = bench.segment(1);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&[0; 8_192], 2 * ROW_BYTES).unwrap();
    let Err(Fault::Damaged(place)) = bench.home.scan() else {
        panic!("it must refuse");
    };
    assert_eq!((place.position, place.field), (ends[1], "zeros after the last batch"));
}

#[test]
fn a_missing_segment_is_named() {
    let mut bench = Bench::new(4 * ROW_BYTES);
    for index in 0..9 {
        bench.batch(&[payload(index)]);
    }
    std::fs::remove_file(bench.segment(2)).unwrap();
    assert!(matches!(bench.home.scan(), Err(Fault::SegmentMissing(path)) if path == bench.segment(2)));
    std::fs::remove_file(bench.segment(1)).unwrap();
    assert!(matches!(bench.home.scan(), Err(Fault::SegmentMissing(path)) if path == bench.segment(1)));
}

#[test]
fn a_segment_under_another_name_is_refused_in_that_name() {
    let mut bench = Bench::new(4 * ROW_BYTES);
    for index in 0..9 {
        bench.batch(&[payload(index)]);
    }
    let last = *segment::numbers(bench.segment(1).parent().unwrap()).unwrap().last().unwrap();
    for (from, to, is_copy) in [
        (3, "3.segment".to_owned(), true),
        (3, "+3.segment".to_owned(), true),
        (3, "000000003.segment".to_owned(), true),
        (3, "00000003-of-monday.segment".to_owned(), true),
        (last, format!("{last}.segment"), false),
    ] {
        let (from, to) = (bench.segment(from), bench.segment(1).with_file_name(to));
        std::fs::copy(&from, &to).unwrap();
        let bytes = std::fs::read(&from).unwrap();
        if !is_copy {
            std::fs::remove_file(&from).unwrap();
        }
        let refused = bench.home.open().unwrap_err().to_string();
        let says = format!("{}: not a segment's name", to.canonicalize().unwrap().display());
        assert!(refused.starts_with(&says) && refused.contains("move it away"), "{refused}");
        std::fs::write(from, bytes).unwrap();
        std::fs::remove_file(to).unwrap();
    }
    assert!(bench.home.open().is_ok());
}

#[test]
fn a_segment_of_another_journal_is_refused() {
    let mut bench = Bench::new(4 * ROW_BYTES);
    bench.batch(&[payload(1)]);
    let mut other = Bench::new(4 * ROW_BYTES);
    other.batch(&[payload(1)]);
    std::fs::copy(other.segment(1), bench.segment(1)).unwrap();
    let Err(Fault::Damaged(place)) = bench.home.scan() else {
        panic!("it must refuse");
    };
    assert_eq!(place.field, "uuid of the journal");
}
