//! Reading segments, from the first or from a snapshot's position on, trusting nothing.
//!
//! Every byte of every file from there on is checked: headers and frames by checksum, batches by position, epoch
//! and chain, everything else for zero. The walk ends at the first flaw, which is a torn tail or damage. A batch is
//! written only when everything before it is durable, so the flaw is damage if a whole batch comes after it, or one
//! whose durable mark is past it.
//!
//! Three things no death leaves, so they are damage wherever they are:
//!
//! - A file of another length than its first row says: it got its name when all of it was on the disk.
//! - Any flaw in a packed segment, for the same reason.
//! - A packed segment with no batch after it: it was packed because the next one had its first batch on the disk. A
//!   segment that is only full proves nothing, as the next one is made when it is needed.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::Fault;
use super::fault::Place;
use super::frame::{FIRST_POSITION, Flaw, Frame, PADDING, read, u64_at};
use super::history::Entry;
use super::layout::Close;
use super::segment::{
    self, BATCH_HEADER_BYTES, BatchHeader, FirstRow, Form, JournalId, ROW, chain_before, chain_next,
    chain_start, zeros,
};
use super::snapshot::Base;
use crate::domain::Position;

/// A torn tail: what was being written when the machine stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The first flaw.
    pub place: Place,
    /// Bytes from the end of what is right to the last byte that is not zero.
    pub bytes: u64,
}

/// What the segments hold, and where the next batch goes.
#[derive(Debug)]
pub(crate) struct Scan {
    /// The end of the last whole frame.
    pub(crate) end: Position,
    /// The highest mark that a batch's header carries: what was durable when that batch was begun. It is the end after a
    /// clean stop, and else before the end of what was durable, which nothing in segments says.
    pub(crate) durable: Position,
    pub(crate) chain: u64,
    /// The epoch of the last batch; 0 if there is none.
    pub(crate) epoch: u32,
    /// The epoch of the last frame; 0 if there is none.
    pub(crate) frames_epoch: u32,
    pub(crate) frames: u64,
    /// The kind of the last frame; padding if there is none.
    pub(crate) last_kind: u16,
    /// The segment that the next batch goes to, if it fits; 0 if there is none.
    pub(crate) segment: u64,
    /// The first row after the last batch.
    pub(crate) row: u32,
    pub(crate) cut: Option<Cut>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) numbers: Vec<u64>,
}

/// Called with each frame, in order; padding is left out.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&Frame<'_>) -> ControlFlow<()>;

/// The part of the log that a walk covers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reach<'a> {
    /// Where it begins; none for the first frame.
    pub(crate) base: Option<&'a Base>,
    /// It ends with the batch that holds this position; none for the last frame.
    pub(crate) until: Option<Position>,
}

impl Scan {
    /// Whether the last process stopped in good order, or there was none. One that left no frame of its epoch was told
    /// nothing and told nobody anything: its first frame is durable before it begins.
    pub(crate) fn is_closed(&self) -> bool {
        self.last_kind == Close::KIND || self.never_went_on() || self.epoch == 0
    }

    /// Whether the last start raised the epoch and was refused, or died, before it had a frame.
    pub(crate) fn never_went_on(&self) -> bool {
        self.frames_epoch < self.epoch
    }

    /// A fault, which names the flaw if there was one, unless the walk came as far as `end`.
    pub(crate) fn reaches(&self, end: Position, directory: &Path) -> Result<(), Fault> {
        if end <= self.end {
            return Ok(());
        }
        let at_end = || Place {
            file: directory.to_path_buf(),
            offset: 0,
            position: self.end,
            field: "end of the segments",
            expected: end.0,
            found: self.end.0,
        };
        Err(Fault::Damaged(self.cut.as_ref().map_or_else(at_end, |cut| cut.place.clone())))
    }

    /// The state of a walk that begins after `base`, or at the first frame.
    fn at(journal: &JournalId, base: Option<&Base>) -> Self {
        let first = Self {
            end: FIRST_POSITION,
            durable: FIRST_POSITION,
            chain: chain_start(journal),
            epoch: 0,
            frames_epoch: 0,
            frames: 0,
            last_kind: PADDING,
            segment: 0,
            row: 1,
            cut: None,
            entries: Vec::new(),
            numbers: Vec::new(),
        };
        match base {
            None => first,
            Some(base) => Self {
                end: base.position,
                durable: base.durable,
                chain: base.chain,
                epoch: base.epoch,
                // Only a process that has gone on makes snapshots.
                frames_epoch: base.epoch,
                frames: base.frames,
                last_kind: base.last_kind,
                segment: base.segment,
                entries: base.entries.clone(),
                ..first
            },
        }
    }

    /// The state of a walk that begins with the batch at the front of `rest`, row 1 of segment `number`, and knows
    /// nothing of what comes before it.
    pub(crate) fn opening(journal: &JournalId, number: u64, rest: &[u8]) -> Result<Self, Flaw> {
        let header = BatchHeader::decode(rest, journal, number, 1)?;
        let frames = frames_of(&header, rest)?;
        let (mut words, mut at) = (Vec::new(), 0);
        while at < frames.len() {
            words.push(u64_at(frames, at));
            at += length(&frame(frames, at, &header)?);
        }
        let chain = words.iter().rev().fold(header.chain, |chain, &word| chain_before(chain, word));
        let (end, durable, epoch) = (header.first, header.durable, header.epoch);
        Ok(Self { end, durable, chain, epoch, ..Self::at(journal, None) })
    }

    /// Checks the batch at `row` of segment `number`, at the front of `rest`, and takes in its frames, except for
    /// the first `skip` bytes of them. After a flaw nothing was taken in.
    pub(crate) fn take(
        &mut self,
        journal: &JournalId,
        number: u64,
        row: u32,
        rest: &[u8],
        skip: usize,
    ) -> Result<BatchHeader, Flaw> {
        let header = BatchHeader::decode(rest, journal, number, row)?;
        let flaw = |field, at, expected, found| Err(Flaw { field, at, expected, found });
        if header.first.0 + skip as u64 != self.end.0 {
            return flaw("position of the batch", 8, self.end.0, header.first.0);
        }
        // A batch that is entered in the middle was begun before, and so may have an older mark.
        if (header.durable < self.durable && skip == 0) || header.first < header.durable {
            return flaw("durable mark of the batch", 16, self.durable.0, header.durable.0);
        }
        if header.epoch < self.epoch || header.epoch == 0 {
            return flaw("epoch of the batch", 44, u64::from(self.epoch), u64::from(header.epoch));
        }
        let frames = frames_of(&header, rest)?;
        let (mut chain, mut count, mut last_kind) = (self.chain, 0, self.last_kind);
        let mut at = skip;
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
        let frames_end = BATCH_HEADER_BYTES + frames.len();
        zeros(&rest[frames_end..offset(header.rows())], frames_end as u64, "zeros of the batch")?;
        // This batch has no flaw: from here on it counts.
        self.chain = chain;
        self.end = header.end();
        self.durable = self.durable.max(header.durable);
        self.epoch = header.epoch;
        if 0 < count {
            self.frames_epoch = header.epoch;
        }
        self.frames += count;
        self.last_kind = last_kind;
        Entry { position: header.first, segment: number, row }.push_if_far(&mut self.entries);
        Ok(header)
    }
}

/// The frames of the batch at the front of `rest`, which must have all of its rows.
pub(crate) fn frames_of<'a>(header: &BatchHeader, rest: &'a [u8]) -> Result<&'a [u8], Flaw> {
    if rest.len() < offset(header.rows()) {
        let (expected, found) = (rest.len() as u64, u64::from(header.bytes));
        return Err(Flaw { field: "bytes of the batch", at: 48, expected, found });
    }
    Ok(&rest[BATCH_HEADER_BYTES..BATCH_HEADER_BYTES + header.bytes as usize])
}

/// Walks through all segments in `directory`.
#[cfg(test)]
pub(crate) fn scan(directory: &Path, journal: &JournalId, visit: Option<Visit<'_>>) -> Result<Scan, Fault> {
    scan_between(directory, journal, Reach::default(), visit)
}

/// The segment from which on frames after `base` are read, which has to be among those that are there, `numbers`.
pub(crate) fn first_of(directory: &Path, numbers: &[u64], base: Option<&Base>) -> Result<u64, Fault> {
    let first = base.map_or(1, |base| base.segment);
    if numbers.contains(&first) || (base.is_none() && numbers.is_empty()) {
        return Ok(first);
    }
    let segment = segment::path(directory, first);
    Err(match base {
        Some(base) if numbers.last().is_none_or(|&last| last < first) => {
            Fault::SegmentsGone { segment, snapshot: base.file.clone() }
        }
        _ => Fault::SegmentMissing(segment),
    })
}

/// Walks through the part of the log that `reach` describes.
pub(crate) fn scan_between(
    directory: &Path,
    journal: &JournalId,
    reach: Reach<'_>,
    visit: Option<Visit<'_>>,
) -> Result<Scan, Fault> {
    let numbers = segment::numbers(directory)?;
    let first = first_of(directory, &numbers, reach.base)?;
    let mut scan = Scan::at(journal, reach.base);
    // Of the segments in a snapshot's table, the first may have been given back since, and the last is read again.
    let kept = numbers.first().copied().unwrap_or(first)..first;
    scan.entries.retain(|entry| kept.contains(&entry.segment));
    let stopped = reach.until.is_some_and(|until| until <= scan.end);
    let mut walk = Walk { directory, journal, visit, until: reach.until, scan, stopped, packed: None };
    let mut bytes = Vec::new();
    for &number in numbers.iter().filter(|&&number| first <= number) {
        if walk.stopped {
            break;
        }
        let form = load(directory, journal, number, walk.scan.end, &mut bytes)?;
        let begin = match reach.base {
            Some(base) if base.segment == number => {
                let sought = seek(base, journal, &bytes, form, &mut walk.scan.entries);
                sought.map_err(|lost| lost.fault(base, segment::path(directory, number)))?
            }
            _ => Begin { row: 1, skip: 0 },
        };
        if walk.scan.cut.is_none() {
            walk.segment(number, begin, &bytes, form)?;
        } else {
            walk.search(number, &bytes, 1)?;
        }
    }
    if let Some(packed) = walk.packed.filter(|_| !walk.stopped) {
        let (segment, packed) = (walk.path(packed + 1), walk.path(packed));
        return Err(Fault::NewestMissing { segment, packed });
    }
    walk.scan.numbers = numbers;
    Ok(walk.scan)
}

/// Checks the segments from the one that begins with `first` up to the frame at `at`, trusting nothing but where
/// that segment begins. All of it was durable: any flaw is damage.
pub(crate) fn check_at(
    directory: &Path,
    journal: &JournalId,
    first: Entry,
    at: Position,
) -> Result<(), Fault> {
    assert!(first.position <= at, "the frame is not in front of its segment");
    let numbers = segment::numbers(directory)?;
    if !numbers.contains(&first.segment) {
        return Err(Fault::SegmentMissing(segment::path(directory, first.segment)));
    }
    let begin = Scan { end: first.position, ..Scan::at(journal, None) };
    let until = Some(Position(at.0 + 1));
    let mut walk = Walk { directory, journal, visit: None, until, scan: begin, stopped: false, packed: None };
    let mut bytes = Vec::new();
    for number in numbers.into_iter().filter(|&number| first.segment <= number) {
        let form = load(directory, journal, number, walk.scan.end, &mut bytes)?;
        if number == first.segment
            && let Some(rest) = bytes.get(ROW + BATCH_HEADER_BYTES..).map(|_| &bytes[ROW..])
            // A flaw in its first batch is for the walk to name.
            && let Ok(opening) = Scan::opening(journal, number, rest)
        {
            walk.scan = opening;
        }
        walk.segment(number, Begin { row: 1, skip: 0 }, &bytes, form)?;
        if let Some(cut) = walk.scan.cut {
            return Err(Fault::Damaged(cut.place));
        }
        if walk.stopped {
            break;
        }
    }
    Ok(())
}

/// Reads segment `number` whole, and checks its first row and its length. All is well up to `position`.
fn load(
    directory: &Path,
    journal: &JournalId,
    number: u64,
    position: Position,
    bytes: &mut Vec<u8>,
) -> Result<Form, Fault> {
    let path = segment::path(directory, number);
    let mut file = std::fs::File::open(&path).map_err(Fault::io("open", &path))?;
    bytes.clear();
    std::io::Read::read_to_end(&mut file, bytes).map_err(Fault::io("read", &path))?;
    let row = &bytes[..bytes.len().min(ROW)];
    FirstRow::decode(row, journal, number)
        .and_then(|first| first.fits(bytes.len() as u64))
        .map_err(|flaw| Fault::Damaged(Place::of(flaw, &path, 0, position)))
}

/// Where a walk begins within a segment.
#[derive(Clone, Copy)]
struct Begin {
    row: u32,
    /// Bytes of the first batch's frames that were seen before.
    skip: usize,
}

struct Walk<'a, 'v> {
    directory: &'a Path,
    journal: &'a JournalId,
    visit: Option<Visit<'v>>,
    until: Option<Position>,
    scan: Scan,
    stopped: bool,
    /// The segment that was read last, if it is packed.
    packed: Option<u64>,
}

/// Why a segment does not lead to a snapshot's position.
enum Lost {
    /// A batch on the way, which begins at this byte behind this position, is not what was written.
    Damaged(Flaw, u64, Position),
    /// It ends before, or tells something else.
    Elsewhere,
}

impl Lost {
    fn fault(self, base: &Base, segment: PathBuf) -> Fault {
        match self {
            Self::Damaged(flaw, start, position) => {
                Fault::Damaged(Place::of(flaw, &segment, start, position))
            }
            Self::Elsewhere => {
                Fault::SnapshotMisfit { snapshot: base.file.clone(), position: base.position, segment }
            }
        }
    }
}

/// Finds where the frames after `base` begin, if the segment leads there; batches passed on the way go into the
/// table. In a packed segment that may be in the middle of a batch.
fn seek(
    base: &Base,
    journal: &JournalId,
    bytes: &[u8],
    form: Form,
    entries: &mut Vec<Entry>,
) -> Result<Begin, Lost> {
    let (mut row, mut position) = (1, Position(0));
    loop {
        let rest = bytes.get(offset(row)..).filter(|rest| BATCH_HEADER_BYTES <= rest.len());
        let rest = rest.ok_or(Lost::Elsewhere)?;
        let header = BatchHeader::decode(rest, journal, base.segment, row).map_err(|flaw| {
            let ends = zeros(rest, 0, "").is_ok();
            if ends { Lost::Elsewhere } else { Lost::Damaged(flaw, offset(row) as u64, position) }
        })?;
        Entry { position: header.first, segment: base.segment, row }.push_if_far(entries);
        if base.position <= header.end() {
            let behind = base.position.0.checked_sub(header.first.0).ok_or(Lost::Elsewhere)?;
            let skip = usize::try_from(behind).map_err(|_| Lost::Elsewhere)?;
            let ends_there = header.end() == base.position;
            let same = header.epoch == base.epoch
                && (ends_there || form == Form::Packed)
                && leads_on(base, &header, rest, skip);
            let begin =
                if ends_there { Begin { row: row + header.rows(), skip: 0 } } else { Begin { row, skip } };
            return if same { Ok(begin) } else { Err(Lost::Elsewhere) };
        }
        position = header.end();
        row += header.rows();
    }
}

/// Whether the chain leads from `base` through the frames after it to the end of their batch. A frame that is not
/// whole is for the walk to name.
fn leads_on(base: &Base, header: &BatchHeader, rest: &[u8], skip: usize) -> bool {
    let Ok(frames) = frames_of(header, rest) else { return true };
    let (mut chain, mut at) = (base.chain, skip);
    while at < frames.len() {
        let Ok(frame) = frame(frames, at, header) else { return true };
        chain = chain_next(chain, u64_at(frames, at));
        at += length(&frame);
    }
    chain == header.chain
}

impl Walk<'_, '_> {
    fn segment(&mut self, number: u64, begin: Begin, bytes: &[u8], form: Form) -> Result<(), Fault> {
        let Begin { mut row, mut skip } = begin;
        let flaw = loop {
            let rest = &bytes[offset(row)..];
            let ends = form == Form::Written && !rest.is_empty() && zeros(&rest[..ROW], 0, "").is_ok();
            if rest.is_empty() || ends {
                break zeros(rest, 0, "zeros after the last batch").err();
            }
            match self.batch(number, row, rest, skip) {
                Ok(rows) => row += rows,
                Err(flaw) => break Some(flaw),
            }
            skip = 0;
            if self.stopped {
                (self.scan.segment, self.scan.row) = (number, row);
                return Ok(());
            }
        };
        // Without a batch it is a spare, or torn, unless the one before proves that its first batch was durable.
        let has_lost = row == 1 && self.packed.is_some();
        let flaw = flaw.or_else(|| has_lost.then(|| BatchHeader::missing(&bytes[ROW..])));
        // A segment without batches is a spare, unless nothing comes before it.
        if 1 < row || self.scan.segment == 0 {
            (self.scan.segment, self.scan.row) = (number, row);
        }
        self.packed = (form == Form::Packed).then_some(number);
        let Some(flaw) = flaw else {
            return Ok(());
        };
        let place = Place::of(flaw, &self.path(number), offset(row) as u64, self.scan.end);
        if form == Form::Packed || has_lost {
            return Err(Fault::Damaged(place));
        }
        self.scan.cut = Some(Cut { place, bytes: 0 });
        (self.scan.segment, self.scan.row) = (number, row);
        self.search(number, bytes, row)
    }

    /// Checks the batch at `row`, takes it in, and returns how many rows it has.
    fn batch(&mut self, number: u64, row: u32, rest: &[u8], skip: usize) -> Result<u32, Flaw> {
        let header = self.scan.take(self.journal, number, row, rest, skip)?;
        let frames = frames_of(&header, rest)?;
        self.hand_out(frames, &header, skip)?;
        self.stopped |= self.until.is_some_and(|until| until <= self.scan.end);
        Ok(header.rows())
    }

    fn hand_out(&mut self, frames: &[u8], header: &BatchHeader, skip: usize) -> Result<(), Flaw> {
        let Some(visit) = &mut self.visit else {
            return Ok(());
        };
        let mut at = skip;
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

    /// Searches past the first flaw for a batch that says that the flaw is damage, by its durable mark or by being there:
    /// a batch is only begun once all before it is durable. Counts what will be cut.
    fn search(&mut self, number: u64, bytes: &[u8], first: u32) -> Result<(), Fault> {
        let cut = self.scan.cut.as_mut().expect("a search follows a flaw");
        let mut last = None;
        for (row, bytes) in (first..).zip(bytes[offset(first)..].chunks(ROW)) {
            let flawed = (number, row) == (self.scan.segment, self.scan.row);
            let header = BatchHeader::decode(bytes, self.journal, number, row);
            if header.is_ok_and(|header| {
                self.scan.end < header.durable || !flawed && self.scan.end <= header.first
            }) {
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

pub(crate) fn frame<'a>(frames: &'a [u8], at: usize, header: &BatchHeader) -> Result<Frame<'a>, Flaw> {
    let position = Position(header.first.0 + at as u64);
    read(&frames[at..], position, header.epoch)
        .map_err(|flaw| Flaw { at: flaw.at + (BATCH_HEADER_BYTES + at) as u64, ..flaw })
}

pub(crate) fn length(frame: &Frame<'_>) -> usize {
    usize::try_from(frame.span.end.0 - frame.span.start.0).expect("a frame fits memory")
}

/// Where a row begins in its file.
pub(crate) fn offset(row: u32) -> usize {
    row as usize * ROW
}
