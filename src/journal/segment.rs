//! Segments: files that hold the log in batches, on rows of 4 KiB.
//!
//! The first row of a file says whose it is, the others hold batches back to back. A batch is what
//! one synchronous write makes durable: a header, frames, zeros to the end of its last row. It is
//! written once, into rows that were zero, and the next one is written only when it is durable: so
//! only the last batch of all can be torn. A batch without frames is a mark: each start and each
//! stop in good order writes one.
//!
//! A segment after which another one was begun is **sealed**: nothing is added to it, and all of it
//! is durable. Then it may be packed (`pack`): the same frames in as few batches as hold them, back
//! to back, in a shorter file. Its magic says so, and from then on nothing in it can be torn.
//!
//! | first row | bytes | field                                    |
//! |----------:|------:|------------------------------------------|
//! |         0 |     8 | magic: as it was written, or packed      |
//! |         8 |    16 | the journal's uuid                       |
//! |        24 |     8 | number of the segment, from 1            |
//! |        32 |     8 | bytes of the whole file                  |
//! |        40 |     4 | CRC-32C of the 40 bytes before           |
//! |        44 |  4052 | zero                                     |
//!
//! | batch     | bytes | field                                                            |
//! |----------:|------:|------------------------------------------------------------------|
//! |         0 |     8 | magic                                                            |
//! |         8 |     8 | position of the first frame                                      |
//! |        16 |     8 | durable mark: everything before it was durable when this was written |
//! |        24 |     8 | chain: hash of the first words of all frames up to the batch's end |
//! |        32 |     8 | number of the segment                                            |
//! |        40 |     4 | row of the segment                                               |
//! |        44 |     4 | epoch                                                            |
//! |        48 |     4 | bytes of frames                                                  |
//! |        52 |     8 | zero                                                             |
//! |        60 |     4 | CRC-32C of the journal's uuid and the 60 bytes before            |
//!
//! A frame's first word holds its checksum, so the chain covers every byte of the log; it is over
//! frames and not over batches, so it stays the same when sealed segments are packed. A position is
//! never a file offset, and a row is only a hint: the bytes found there identify themselves.
//!
//! Every segment is a new file. Reusing one that was given back would save the file system's work
//! but not the writing of zeros. Most would be packed, so of another size, and without
//! `history_keep` none is given back at all.

use super::checksum;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::Fault;
use super::disk::{Disk, files_with};
use super::fault::Place;
use super::frame::{FRAME_BYTES_MAX, Flaw, u32_at, u64_at};
use crate::domain::Position;

/// Batches begin on multiples of this: what `O_DIRECT` wants, and what a disk writes at once.
pub(crate) const ROW: usize = 4_096;
/// [`ROW`] as a size in files.
pub(crate) const ROW_BYTES: u64 = ROW as u64;
/// The bytes in front of a batch's frames.
pub(crate) const BATCH_HEADER_BYTES: usize = 64;
/// The largest batch. One sync costs about the same up to 64 KiB; above, only room counts.
pub(crate) const BATCH_BYTES_MAX: usize = 512 * 1024;
/// The smallest segment: one that holds the largest batch. Tests go lower with small frames.
pub(crate) const SEGMENT_BYTES_MIN: u64 = if cfg!(test) { 4 * ROW_BYTES } else { 1024 * 1024 };

const SEGMENT_MAGIC: u64 = u64::from_le_bytes(*b"OUTCSEG5");
const PACKED_MAGIC: u64 = u64::from_le_bytes(*b"OUTCPAK3");
/// The field of a file whose length is not what its first row says.
pub(crate) const LENGTH_FIELD: &str = "bytes of the file";
/// The field of a file that ends in its first row.
pub(crate) const FIRST_ROW_FIELD: &str = "bytes of the first row";
const BATCH_MAGIC: u64 = u64::from_le_bytes(*b"OUTCBAT1");

/// Any odd number whose bits are well mixed: 2^64 over the golden ratio.
const CHAIN_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const CHAIN_FACTOR_INVERSE: u64 = 0xf1de_83e1_9937_733d;

const _: () = assert!(CHAIN_FACTOR.wrapping_mul(CHAIN_FACTOR_INVERSE) == 1, "the one undoes the other");
const _: () = assert!(BATCH_HEADER_BYTES + FRAME_BYTES_MAX <= BATCH_BYTES_MAX, "a batch holds any frame");
const _: () = assert!((BATCH_BYTES_MAX as u64).is_multiple_of(ROW_BYTES), "a batch is whole rows");

/// The 128 bits by which the files of one journal know each other.
pub(crate) type JournalId = [u8; 16];

/// The directory of the segments in a data directory.
pub(crate) fn directory(data_dir: &Path) -> PathBuf {
    data_dir.join("journal")
}

/// The file of segment `number`.
pub(crate) fn path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:08}.segment"))
}

/// The numbers of the segments in `directory`, rising; none if it is not there.
pub(crate) fn numbers(directory: &Path) -> Result<Vec<u64>, Fault> {
    let files = files_with(directory, "segment")?;
    let number = |file: PathBuf| {
        let number = file.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
        // One that is not read may be the newest, with what was acknowledged last.
        let what = "a segment's name, which is its number in eight digits; rename it, or move it away";
        number.filter(|&number| path(directory, number) == file).ok_or(Fault::Foreign { path: file, what })
    };
    let mut numbers: Vec<u64> = files.into_iter().map(number).collect::<Result<_, _>>()?;
    numbers.sort_unstable();
    for pair in numbers.windows(2) {
        if pair[0] + 1 != pair[1] {
            return Err(Fault::SegmentMissing(path(directory, pair[0] + 1)));
        }
    }
    Ok(numbers)
}

/// The first row of segment `number`, which says whose it is and in which form.
pub(crate) fn first_row(directory: &Path, journal: &JournalId, number: u64) -> Result<FirstRow, Fault> {
    let path = path(directory, number);
    let mut row = Vec::with_capacity(ROW);
    let file = File::open(&path).map_err(Fault::io("open", &path))?;
    file.take(ROW as u64).read_to_end(&mut row).map_err(Fault::io("read", &path))?;
    let row = FirstRow::decode(&row, journal, number);
    row.map_err(|flaw| Fault::Damaged(Place::of(flaw, &path, 0, Position(0))))
}

/// Checks the first row of segment `number` and the length that it gives, and reads nothing else.
pub(crate) fn check_length(directory: &Path, journal: &JournalId, number: u64) -> Result<(), Fault> {
    let first = first_row(directory, journal, number)?;
    let path = path(directory, number);
    let bytes = std::fs::metadata(&path).map_err(Fault::io("look at", &path))?.len();
    first.fits(bytes).map(drop).map_err(|flaw| Fault::Damaged(Place::of(flaw, &path, 0, Position(0))))
}

/// The chain's value before the first frame.
pub(crate) fn chain_start(journal: &JournalId) -> u64 {
    u64_at(journal, 0) ^ u64_at(journal, 8)
}

/// The chain's value after a frame whose first word (length and checksum) is `word`.
pub(crate) fn chain_next(chain: u64, word: u64) -> u64 {
    // An odd multiplier keeps every bit of what came before; the rotation brings high bits down.
    (chain.rotate_left(23) ^ word).wrapping_mul(CHAIN_FACTOR)
}

/// The chain's value before a frame whose first word is `word`, from its value after the frame.
pub(crate) fn chain_before(chain: u64, word: u64) -> u64 {
    (chain.wrapping_mul(CHAIN_FACTOR_INVERSE) ^ word).rotate_right(23)
}

/// Checks that all `bytes` are zero; the first that is not is the flaw.
pub(crate) fn zeros(bytes: &[u8], at: u64, field: &'static str) -> Result<(), Flaw> {
    // Every start checks whole segments: a chunk at once, not byte by byte.
    let (chunks, rest) = bytes.as_chunks::<256>();
    let all_zero = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum | byte) == 0;
    if chunks.iter().all(|chunk| all_zero(chunk)) && all_zero(rest) {
        return Ok(());
    }
    let index = bytes.iter().position(|&byte| byte != 0).expect("some byte is not zero");
    Err(Flaw { field, at: at + index as u64, expected: 0, found: u64::from(bytes[index]) })
}

fn equal(field: &'static str, at: u64, expected: u64, found: u64) -> Result<(), Flaw> {
    if expected == found { Ok(()) } else { Err(Flaw { field, at, expected, found }) }
}

/// How a segment was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Zeros first, then one batch after another.
    Written,
    /// Made in one piece from a sealed one: batches to its end, all of it durable.
    Packed,
}

/// What the first row of a segment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FirstRow {
    pub(crate) form: Form,
    /// Bytes of the whole file.
    pub(crate) bytes: u64,
}

impl FirstRow {
    pub(crate) fn encode(self, journal: &JournalId, number: u64) -> Vec<u8> {
        let magic = match self.form {
            Form::Written => SEGMENT_MAGIC,
            Form::Packed => PACKED_MAGIC,
        };
        let mut row = Vec::with_capacity(ROW);
        row.extend_from_slice(&magic.to_le_bytes());
        row.extend_from_slice(journal);
        row.extend_from_slice(&number.to_le_bytes());
        row.extend_from_slice(&self.bytes.to_le_bytes());
        row.extend_from_slice(&checksum::sum(&row).to_le_bytes());
        row.resize(ROW, 0);
        row
    }

    /// Checks the first row of segment `number`.
    pub(crate) fn decode(row: &[u8], journal: &JournalId, number: u64) -> Result<Self, Flaw> {
        equal(FIRST_ROW_FIELD, row.len() as u64, ROW_BYTES, row.len() as u64)?;
        let form = match u64_at(row, 0) {
            SEGMENT_MAGIC => Form::Written,
            PACKED_MAGIC => Form::Packed,
            found => {
                // The one that it was, so that another number at its end is told from damage.
                let is_packed = found.to_le_bytes()[..7] == PACKED_MAGIC.to_le_bytes()[..7];
                let expected = if is_packed { PACKED_MAGIC } else { SEGMENT_MAGIC };
                return Err(Flaw { field: "magic of the segment", at: 0, expected, found });
            }
        };
        equal(
            "checksum of the segment",
            40,
            u64::from(checksum::sum(&row[..40])),
            u64::from(u32_at(row, 40)),
        )?;
        equal("uuid of the journal", 8, u64_at(journal, 0), u64_at(row, 8))?;
        equal("uuid of the journal", 16, u64_at(journal, 8), u64_at(row, 16))?;
        equal("number of the segment", 24, number, u64_at(row, 24))?;
        zeros(&row[44..], 44, "zeros of the first row")?;
        Ok(Self { form, bytes: u64_at(row, 32) })
    }

    /// Checks the length of the file; returns the form.
    pub(crate) fn fits(self, file_bytes: u64) -> Result<Form, Flaw> {
        equal(LENGTH_FIELD, file_bytes.min(self.bytes), self.bytes, file_bytes)?;
        equal("bytes of the segment", 32, self.bytes / ROW_BYTES * ROW_BYTES, self.bytes)?;
        Ok(self.form)
    }
}

/// Makes segment `number`: zero but for its first row, and on the disk before it gets its name.
pub(crate) fn prepare(
    directory: &Path,
    journal: &JournalId,
    number: u64,
    bytes: u64,
    disk: &Disk,
) -> Result<(), Fault> {
    assert!(SEGMENT_BYTES_MIN <= bytes, "the options were checked");
    assert!(bytes.is_multiple_of(ROW_BYTES), "a segment is whole rows");
    let named = path(directory, number);
    let unnamed = named.with_extension("new");
    let file = disk.create(&unnamed)?;
    let first = FirstRow { form: Form::Written, bytes }.encode(journal, number);
    let made = fill_zero(&file, &unnamed, 0..bytes, disk)
        .and_then(|()| disk.write_at(&file, &first, 0).map_err(Fault::io("write", &unnamed)))
        .and_then(|()| disk.sync(&file, &unnamed))
        .and_then(|()| disk.rename(&unnamed, &named));
    made.inspect_err(|_| {
        // Half a segment is of no use, and its room may be what was missing.
        let _ = std::fs::remove_file(&unnamed);
    })
}

/// Writes zeros into a range of a file. Written zeros are cheaper to overwrite than a hole or a
/// reservation: the file system has no metadata left to update.
pub(crate) fn fill_zero(
    file: &File,
    path: &Path,
    range: std::ops::Range<u64>,
    disk: &Disk,
) -> Result<(), Fault> {
    let zeros = vec![0; 1024 * 1024];
    let mut at = range.start;
    while at < range.end {
        let bytes = (range.end - at).min(zeros.len() as u64);
        let part = &zeros[..usize::try_from(bytes).expect("at most a MiB")];
        disk.write_at(file, part, at).map_err(Fault::io("write", path))?;
        at += bytes;
    }
    Ok(())
}

/// The header in front of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchHeader {
    pub(crate) first: Position,
    pub(crate) durable: Position,
    pub(crate) chain: u64,
    pub(crate) segment: u64,
    pub(crate) row: u32,
    pub(crate) epoch: u32,
    pub(crate) bytes: u32,
}

impl BatchHeader {
    pub(crate) fn encode(&self, journal: &JournalId) -> [u8; BATCH_HEADER_BYTES] {
        let mut out = [0; BATCH_HEADER_BYTES];
        out[0..8].copy_from_slice(&BATCH_MAGIC.to_le_bytes());
        out[8..16].copy_from_slice(&self.first.0.to_le_bytes());
        out[16..24].copy_from_slice(&self.durable.0.to_le_bytes());
        out[24..32].copy_from_slice(&self.chain.to_le_bytes());
        out[32..40].copy_from_slice(&self.segment.to_le_bytes());
        out[40..44].copy_from_slice(&self.row.to_le_bytes());
        out[44..48].copy_from_slice(&self.epoch.to_le_bytes());
        out[48..52].copy_from_slice(&self.bytes.to_le_bytes());
        let checksum = checksum::append(checksum::sum(journal), &out[..60]);
        out[60..64].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Decodes the header at `row` of segment `segment`. Whether its fields fit their neighbours is
    /// for the caller to check.
    pub(crate) fn decode(bytes: &[u8], journal: &JournalId, segment: u64, row: u32) -> Result<Self, Flaw> {
        equal("magic of the batch", 0, BATCH_MAGIC, u64_at(bytes, 0))?;
        let checksum = checksum::append(checksum::sum(journal), &bytes[..60]);
        equal("checksum of the batch", 60, u64::from(checksum), u64::from(u32_at(bytes, 60)))?;
        equal("segment of the batch", 32, segment, u64_at(bytes, 32))?;
        equal("row of the batch", 40, u64::from(row), u64::from(u32_at(bytes, 40)))?;
        zeros(&bytes[52..60], 52, "zeros of the batch")?;
        Ok(Self {
            first: Position(u64_at(bytes, 8)),
            durable: Position(u64_at(bytes, 16)),
            chain: u64_at(bytes, 24),
            segment,
            row,
            epoch: u32_at(bytes, 44),
            bytes: u32_at(bytes, 48),
        })
    }

    /// The flaw of `bytes` that should begin a batch and do not.
    pub(crate) fn missing(bytes: &[u8]) -> Flaw {
        let found = if bytes.is_empty() { 0 } else { u64_at(bytes, 0) };
        Flaw { field: "magic of the batch", at: 0, expected: BATCH_MAGIC, found }
    }

    /// The rows that the batch takes.
    pub(crate) fn rows(&self) -> u32 {
        rows(self.bytes as usize)
    }

    /// The position after its last frame.
    pub(crate) fn end(&self) -> Position {
        Position(self.first.0 + u64::from(self.bytes))
    }
}

/// The rows of a batch with `bytes` of frames.
pub(crate) fn rows(bytes: usize) -> u32 {
    let rows = (BATCH_HEADER_BYTES + bytes).div_ceil(ROW);
    u32::try_from(rows).expect("a batch is at most 128 rows")
}

/// Memory for one batch, aligned as `O_DIRECT` wants; taken once.
#[derive(Debug)]
pub(crate) struct BatchBuffer {
    memory: Box<[u8]>,
    skip: usize,
}

impl BatchBuffer {
    pub(crate) fn new() -> Self {
        let memory = vec![0_u8; BATCH_BYTES_MAX + ROW].into_boxed_slice();
        let skip = memory.as_ptr().align_offset(ROW);
        assert!(skip < ROW, "some byte of a row begins one");
        Self { memory, skip }
    }

    /// The whole batch: header, frames, zeros.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.skip..self.skip + BATCH_BYTES_MAX]
    }

    /// Where frames go.
    pub(crate) fn frames(&mut self) -> &mut [u8] {
        &mut self.bytes()[BATCH_HEADER_BYTES..]
    }
}
