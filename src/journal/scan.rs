//! Reading all segments from the first, trusting nothing.
//!
//! Every byte of every file is checked: headers and frames by checksum, batches by position, epoch
//! and chain, everything else for zero. The walk ends at the first thing that is wrong. As a batch
//! is written only when the one before it is durable, that is a torn tail if no batch behind it
//! says otherwise; one that does (its durable mark lies above) makes it damage.

use std::ops::ControlFlow;
use std::path::Path;

use super::Fault;
use super::fault::Place;
use super::frame::{FIRST_POSITION, Flaw, Frame, PADDING, read};
use super::history::Entry;
use super::segment::{
    self, BATCH_HEADER_BYTES, BatchHeader, JournalId, ROW, ROW_BYTES, chain_next, chain_start,
    read_first_row, u64_at, zeros,
};
use crate::domain::Position;

/// A torn tail: what was being written when the machine stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The first thing that is not right.
    pub place: Place,
    /// Bytes from the end of what is right to the last one that is not zero.
    pub bytes: u64,
}

/// What the segments hold, and where they go on.
#[derive(Debug)]
pub(crate) struct Scan {
    /// The end of the last whole frame.
    pub(crate) end: Position,
    /// The highest durable mark.
    pub(crate) durable: Position,
    pub(crate) chain: u64,
    /// Of the last batch; 0 if there is none.
    pub(crate) epoch: u32,
    pub(crate) frames: u64,
    /// The kind of the last frame; padding if there is none.
    pub(crate) last_kind: u16,
    /// The segment that the next batch goes to, if it fits; 0 if there is none.
    pub(crate) segment: u64,
    /// The first row that no batch has.
    pub(crate) row: u32,
    pub(crate) cut: Option<Cut>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) numbers: Vec<u64>,
}

/// What is called with each frame, in order; padding is left out.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&Frame<'_>) -> ControlFlow<()>;

/// Walks through all segments in `directory`.
pub(crate) fn scan(directory: &Path, journal: &JournalId, visit: Option<Visit<'_>>) -> Result<Scan, Fault> {
    let numbers = segment::numbers(directory)?;
    if numbers.first().is_some_and(|&first| first != 1) {
        return Err(Fault::SegmentMissing(segment::path(directory, 1)));
    }
    let mut walk = Walk {
        directory,
        journal,
        visit,
        scan: Scan {
            end: FIRST_POSITION,
            durable: FIRST_POSITION,
            chain: chain_start(journal),
            epoch: 0,
            frames: 0,
            last_kind: PADDING,
            segment: 0,
            row: 1,
            cut: None,
            entries: Vec::new(),
            numbers: Vec::new(),
        },
        stopped: false,
    };
    let mut bytes = Vec::new();
    for &number in &numbers {
        let short = load(directory, journal, number, &mut bytes)?;
        if walk.scan.cut.is_none() {
            walk.segment(number, &bytes, short)?;
        } else {
            walk.search(number, &bytes, 1)?;
        }
        if walk.stopped {
            break;
        }
    }
    walk.scan.numbers = numbers;
    Ok(walk.scan)
}

/// Reads segment `number` whole, checks its first row, and puts zeros where the file is short; says
/// how.
fn load(
    directory: &Path,
    journal: &JournalId,
    number: u64,
    bytes: &mut Vec<u8>,
) -> Result<Option<Flaw>, Fault> {
    let path = segment::path(directory, number);
    let mut file = std::fs::File::open(&path).map_err(Fault::io("open", &path))?;
    bytes.clear();
    std::io::Read::read_to_end(&mut file, bytes).map_err(Fault::io("read", &path))?;
    let found = bytes.len() as u64;
    let row = &bytes[..bytes.len().min(ROW)];
    let damaged = |flaw| Fault::Damaged(Place::of(flaw, &path, 0, FIRST_POSITION));
    let expected = read_first_row(row, journal, number).map_err(damaged)?;
    if expected == found {
        return Ok(None);
    }
    let flaw = Flaw { field: "bytes of the file", at: found.min(expected), expected, found };
    if expected < found || !expected.is_multiple_of(ROW_BYTES) {
        return Err(Fault::Damaged(Place::of(flaw, &path, 0, FIRST_POSITION)));
    }
    bytes.resize(usize::try_from(expected).expect("a file that was read fits memory"), 0);
    Ok(Some(flaw))
}

struct Walk<'a, 'v> {
    directory: &'a Path,
    journal: &'a JournalId,
    visit: Option<Visit<'v>>,
    scan: Scan,
    stopped: bool,
}

impl Walk<'_, '_> {
    fn segment(&mut self, number: u64, bytes: &[u8], short: Option<Flaw>) -> Result<(), Fault> {
        let mut row = 1;
        let flaw = loop {
            let rest = &bytes[offset(row)..];
            if rest.is_empty() || zeros(&rest[..ROW], 0, "").is_ok() {
                break zeros(rest, 0, "zeros after the last batch").err();
            }
            match self.batch(number, row, rest) {
                Ok(rows) => row += rows,
                Err(flaw) => break Some(flaw),
            }
            if self.stopped {
                return Ok(());
            }
        };
        // A segment without batches is a spare, unless nothing comes before it.
        if 1 < row || self.scan.segment == 0 {
            (self.scan.segment, self.scan.row) = (number, row);
        }
        let start = offset(row) as u64;
        let place = match (flaw, short) {
            (Some(flaw), _) => Place::of(flaw, &self.path(number), start, self.scan.end),
            (None, Some(flaw)) => Place::of(flaw, &self.path(number), 0, self.scan.end),
            (None, None) => return Ok(()),
        };
        self.scan.cut = Some(Cut { place, bytes: 0 });
        (self.scan.segment, self.scan.row) = (number, row);
        self.search(number, bytes, row)
    }

    /// Checks the batch at `row`, takes it in, and gives the rows that it has.
    fn batch(&mut self, number: u64, row: u32, rest: &[u8]) -> Result<u32, Flaw> {
        let header = BatchHeader::decode(rest, self.journal, number, row)?;
        let scan = &self.scan;
        let flaw = |field, at, expected, found| Err(Flaw { field, at, expected, found });
        if header.first != scan.end {
            return flaw("position of the batch", 8, scan.end.0, header.first.0);
        }
        if header.durable < scan.durable || header.first < header.durable {
            return flaw("durable mark of the batch", 16, scan.durable.0, header.durable.0);
        }
        if header.epoch < scan.epoch || header.epoch == 0 {
            return flaw("epoch of the batch", 44, u64::from(scan.epoch), u64::from(header.epoch));
        }
        let rows_bytes = offset(header.rows());
        if rest.len() < rows_bytes {
            return flaw("bytes of the batch", 48, rest.len() as u64, u64::from(header.bytes));
        }
        let frames_end = BATCH_HEADER_BYTES + header.bytes as usize;
        let frames = &rest[BATCH_HEADER_BYTES..frames_end];
        let (mut chain, mut count, mut last_kind) = (scan.chain, 0, scan.last_kind);
        let mut at = 0;
        while at < frames.len() {
            let frame = frame(frames, at, &header)?;
            chain = chain_next(chain, u64_at(frames, at));
            at += length(&frame);
            if frame.kind != PADDING {
                count += 1;
                last_kind = frame.kind;
            }
        }
        if header.chain != chain {
            return flaw("chain of the batch", 24, chain, header.chain);
        }
        zeros(&rest[frames_end..rows_bytes], frames_end as u64, "zeros of the batch")?;
        // Nothing of this batch was wrong: from here on it counts.
        self.scan.chain = chain;
        self.scan.end = header.end();
        self.scan.durable = header.durable;
        self.scan.epoch = header.epoch;
        self.scan.frames += count;
        self.scan.last_kind = last_kind;
        Entry { position: header.first, segment: number, row }.push_if_far(&mut self.scan.entries);
        self.hand_out(frames, &header)?;
        Ok(header.rows())
    }

    fn hand_out(&mut self, frames: &[u8], header: &BatchHeader) -> Result<(), Flaw> {
        let Some(visit) = &mut self.visit else {
            return Ok(());
        };
        let mut at = 0;
        while at < frames.len() {
            let frame = frame(frames, at, header)?;
            at += length(&frame);
            if frame.kind != PADDING && visit(&frame).is_break() {
                self.stopped = true;
                break;
            }
        }
        Ok(())
    }

    /// Looks behind the first flaw for a batch which says that the flaw is in what was durable, and
    /// counts what will be cut.
    fn search(&mut self, number: u64, bytes: &[u8], first: u32) -> Result<(), Fault> {
        let cut = self.scan.cut.as_mut().expect("a search follows a flaw");
        let mut last = None;
        for (row, bytes) in (first..).zip(bytes[offset(first)..].chunks(ROW)) {
            let header = BatchHeader::decode(bytes, self.journal, number, row);
            if header.is_ok_and(|header| self.scan.end < header.durable) {
                return Err(Fault::Damaged(cut.place.clone()));
            }
            let nonzero = bytes.iter().rposition(|&byte| byte != 0);
            last = nonzero.map(|index| offset(row) + index + 1).or(last);
        }
        cut.bytes += last.map_or(0, |last| last - offset(first)) as u64;
        Ok(())
    }

    fn path(&self, number: u64) -> std::path::PathBuf {
        segment::path(self.directory, number)
    }
}

fn frame<'a>(frames: &'a [u8], at: usize, header: &BatchHeader) -> Result<Frame<'a>, Flaw> {
    let position = Position(header.first.0 + at as u64);
    read(&frames[at..], position, header.epoch)
        .map_err(|flaw| Flaw { at: flaw.at + (BATCH_HEADER_BYTES + at) as u64, ..flaw })
}

fn length(frame: &Frame<'_>) -> usize {
    usize::try_from(frame.span.end.0 - frame.span.start.0).expect("a frame fits memory")
}

/// Where a row begins in its file.
fn offset(row: u32) -> usize {
    row as usize * ROW
}
