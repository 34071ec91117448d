//! The log: a ring of frames in memory that outlives the process.
//!
//! The idea: claiming a position is one `fetch_add`, committing is one store of the frame's first
//! word; nobody waits for anybody. The memory is a mapped file in tmpfs (or plain memory in
//! tests), so what is committed survives `kill -9`; the journal thread carries it to segments.
//! Position `p` is at byte `p % ring bytes` of the ring.
//!
//! ```text
//!     freed <= reclaimed      durable          committed      claimed (tail)      freed + ring
//!  ─────┴──────────┴─────────────┴─────────────────┴────────────────┴───────────────────┴────
//!   zero,  being      still here,   on its way        being            zero, claimable
//!   free   zeroed     for followers to segments       written
//! ```
//!
//! - LOG-1: a word of the ring is written by its claimer between claim and commit, and by the
//!   journal thread while it zeroes it; never by two at once: what can be claimed ends 64 bytes
//!   before `freed + ring bytes`, and `freed` is stored after the zeroing.
//! - LOG-2: everything that can be claimed is zero, so neither an old lap nor client bytes can look committed. As the
//!   ring is never quite full, a walk always ends at a zero word.
//! - LOG-3: a frame's first word is stored last, with release; whoever reads it with acquire and
//!   finds it non-zero sees the whole frame.
//! - LOG-4: whoever reads without holding the tail may be overtaken by zeroing. It reads with
//!   atomic loads, so that there is no undefined behaviour, and then checks `reclaimed`, which was
//!   stored before the zeroing began: what it read is used only if it was not overtaken.
//! - A frame that would straddle the end of the ring becomes padding and is claimed anew.
//! - A claimer that never commits leaves a hole: no mark ever passes it.
#![allow(unsafe_code, reason = "words are stored in pairs")]

#[cfg(not(loom))]
use std::arch::asm;
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::thread::Thread;

use super::checksum;
use super::frame::{
    FIRST_POSITION, FRAME_ALIGN, HEAD_WORDS, HEADER_WORDS, Header, LINE_BYTES, Line, PADDING, Span,
    frame_bytes, length_is_possible,
};
use crate::domain::Position;
use crate::memory::ahead;
#[cfg(not(loom))]
use crate::memory::mapping::Mapping;
use crate::memory::padded::Padded;
use crate::memory::sync::{AtomicBool, AtomicU64, Ordering, fence};

/// How far past a line one is prefetched when it is written: a few frames.
const AHEAD_WORDS: usize = 1024 / 8;

/// The file's first page: identity in its first half, the marks below in its second.
pub(crate) const LOG_HEADER_BYTES: u64 = if cfg!(loom) { 256 } else { 4_096 };
/// The word of the header that holds the durable position: alone on its pair of lines.
pub(crate) const DURABLE_WORD: usize = if cfg!(loom) { 0 } else { 256 };
/// The word of the header that holds the position at which the ring's content starts.
pub(crate) const RECLAIMED_WORD: usize = if cfg!(loom) { 8 } else { 288 };
/// The word of the header that holds the position up to which the ring is zeroed and free.
pub(crate) const FREED_WORD: usize = if cfg!(loom) { 16 } else { 320 };

/// Loom's atomics are larger than words, and have to be made one by one.
#[cfg(loom)]
#[derive(Debug)]
pub(crate) struct Mapping(Box<[AtomicU64]>);

#[cfg(loom)]
impl Mapping {
    pub(crate) fn anonymous(bytes: u64) -> std::io::Result<Self> {
        Ok(Self((0..bytes / 8).map(|_| AtomicU64::new(0)).collect()))
    }

    pub(crate) fn words(&self) -> &[AtomicU64] {
        &self.0
    }
}

/// A claimed range of the log that nobody else may write. Dropping it uncommitted stops the log
/// for good at this position.
#[derive(Debug)]
#[must_use = "a claim that is never committed is a hole that nothing passes"]
pub struct Claim {
    start: u64,
    bytes: u64,
    /// The index of its first word in the ring.
    word: usize,
}

/// A payload in three pieces.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a, const HEAD: usize> {
    /// Its first words; [`HEAD_WORDS`] of them, if lines follow.
    pub(super) head: [u64; HEAD],
    /// What follows them.
    pub(super) lines: &'a [Line],
    /// The end.
    pub(super) tail: &'a [[u8; 8]],
    /// The checksum of the whole payload.
    pub(super) checksum: u32,
}

impl<const HEAD: usize> Parts<'_, HEAD> {
    /// The length of the payload.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        8 * HEAD + LINE_BYTES * self.lines.len() + 8 * self.tail.len()
    }
}

/// What is found at a position of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Zeroed already; the segments have it.
    Lapped,
    /// Not committed yet.
    NotYet,
    /// A committed frame of this many bytes.
    Bytes(usize),
}

/// The log that all loops append to. Shared by `Arc`.
#[derive(Debug)]
pub struct Log {
    mapping: Mapping,
    ring_bytes: u64,
    epoch: u32,
    tail: Padded<AtomicU64>,
    failed: AtomicBool,
    lost: AtomicBool,
    writer: OnceLock<Thread>,
    /// None in plain memory.
    files: Option<Files>,
}

/// What a log keeps open, as the locks on both last as long, and where its file is.
#[derive(Debug)]
pub(crate) struct Files {
    log: File,
    path: PathBuf,
    _data_dir: File,
}

impl Files {
    pub(crate) const fn new(log: File, path: PathBuf, data_dir: File) -> Self {
        Self { log, path, _data_dir: data_dir }
    }

    /// Whether the path leads to another file than ours, or to none.
    fn are_parted(&self) -> bool {
        let place = |about: Metadata| (about.dev(), about.ino());
        match (self.log.metadata().map(place), std::fs::metadata(&self.path).map(place)) {
            (Ok(ours), Ok(there)) => ours != there,
            (_, Err(error)) => error.kind() == ErrorKind::NotFound,
            (Err(_), Ok(_)) => false,
        }
    }
}

impl Log {
    /// A log of `ring_bytes` in plain memory, empty, epoch 1: for tests and tools.
    #[must_use]
    pub fn anonymous(ring_bytes: u64) -> Self {
        let mapping = Mapping::anonymous(LOG_HEADER_BYTES + ring_bytes);
        Self::over(mapping.expect("there is memory for a log"), None, 1, FIRST_POSITION)
    }

    /// The log in `mapping`, whose ring is all zero, with everything before `start` durable.
    pub(crate) fn over(mapping: Mapping, files: Option<Files>, epoch: u32, start: Position) -> Self {
        let ring_bytes = mapping.words().len() as u64 * 8 - LOG_HEADER_BYTES;
        assert!(ring_bytes.is_multiple_of(FRAME_ALIGN), "a ring consists of whole lines");
        assert!(4 * FRAME_ALIGN <= ring_bytes, "a ring holds more than its gap");
        assert!(start.0.is_multiple_of(FRAME_ALIGN), "frames begin on lines");
        assert!(FIRST_POSITION <= start, "position 0 names no frame");
        let log = Self {
            mapping,
            ring_bytes,
            epoch,
            tail: Padded(AtomicU64::new(start.0)),
            failed: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            writer: OnceLock::new(),
            files,
        };
        log.freed().store(start.0, Ordering::Relaxed);
        log.reclaimed().store(start.0, Ordering::Relaxed);
        log.durable_word().store(start.0, Ordering::Release);
        log
    }

    /// Writes one frame and commits it. Never fails: the caller checked the room before it decided.
    pub fn append(&self, kind: u16, payload: &[u8]) -> Span {
        // Summed from the source, as reading back what was just stored stalls; and before the claim, as between claim
        // and commit everybody's answers wait.
        let checksum = checksum::sum(payload);
        let claim = self.claim(payload.len());
        self.write(claim, kind, payload, checksum)
    }

    /// Writes one frame with a payload in parts and commits it, like [`Log::append`].
    #[allow(clippy::inline_always, reason = "see `commit_parts`")]
    #[inline(always)]
    pub fn append_parts<const HEAD: usize>(&self, kind: u16, parts: &Parts<'_, HEAD>) -> Span {
        self.commit_parts(self.claim(parts.bytes()), kind, parts)
    }

    /// Takes the next position for a frame with `payload_bytes` of payload.
    #[allow(clippy::inline_always, reason = "otherwise the claim is returned in memory, once per command")]
    #[inline(always)]
    pub fn claim(&self, payload_bytes: usize) -> Claim {
        let bytes = frame_bytes(payload_bytes);
        loop {
            // Release pairs with the Acquire in `claimed`: who reads that far finds the words zeroed. Positions only
            // need to be distinct: that a spender's is above the credit's follows from coherence, as the credit was
            // published after its claim.
            let start = self.tail.fetch_add(bytes, Ordering::Release);
            // Acquire pairs with the Release in `free`: the zeroing is over (LOG-1).
            let freed = self.freed().load(Ordering::Acquire);
            assert!(start + bytes + FRAME_ALIGN <= freed + self.ring_bytes, "the caller saw the room");
            let offset = start % self.ring_bytes;
            let before_end = self.ring_bytes - offset;
            if bytes <= before_end {
                return Claim { start, bytes, word: words_in(offset) };
            }
            self.pad_around(start, bytes, before_end);
        }
    }

    /// Pads a claim that crosses the ring's end: `before_end` bytes up to the end, the rest from the ring's start.
    #[cold]
    fn pad_around(&self, start: u64, bytes: u64, before_end: u64) {
        self.pad(Claim { start, bytes: before_end, word: words_in(self.ring_bytes - before_end) });
        self.pad(Claim { start: start + before_end, bytes: bytes - before_end, word: 0 });
    }

    /// Fills a claim made for this payload's length, and commits it.
    pub fn commit(&self, claim: Claim, kind: u16, payload: &[u8]) -> Span {
        self.write(claim, kind, payload, checksum::sum(payload))
    }

    /// Fills a claim made for this payload's length with a payload in parts, and commits it.
    // Inlined with what it calls, so that it is compiled for the parts of each of the shards' two kinds of frame.
    #[allow(clippy::inline_always, reason = "once per command, see above")]
    #[inline(always)]
    #[allow(clippy::needless_pass_by_value, reason = "a claim is used up")]
    pub fn commit_parts<const HEAD: usize>(&self, claim: Claim, kind: u16, parts: &Parts<'_, HEAD>) -> Span {
        assert!(HEAD == HEAD_WORDS || parts.lines.is_empty(), "lines begin on lines");
        let words = self.open(&claim, kind, parts.bytes());
        let (head, rest) = words[HEADER_WORDS..].split_at(HEAD);
        for (word, value) in head.iter().zip(parts.head) {
            word.store(value, Ordering::Relaxed);
        }
        let (lines, tail) = rest.split_at(8 * parts.lines.len());
        prefetch_ahead(words);
        for (line, chunks) in lines.as_chunks().0.iter().zip(parts.lines) {
            put_line(line, chunks);
            prefetch_ahead(line);
        }
        words[8 * (1 + parts.lines.len())..].chunks(8).for_each(prefetch_ahead);
        put_each(&tail[..parts.tail.len()], parts.tail);
        self.close(&claim, words, kind, parts.bytes(), parts.checksum)
    }

    #[allow(clippy::needless_pass_by_value, reason = "a claim is used up")]
    fn pad(&self, claim: Claim) {
        self.close(&claim, self.reach(&claim), PADDING, 0, 0);
    }

    #[allow(clippy::needless_pass_by_value, reason = "a claim is used up")]
    fn write(&self, claim: Claim, kind: u16, payload: &[u8], checksum: u32) -> Span {
        let words = self.open(&claim, kind, payload.len());
        words.chunks(8).for_each(prefetch_ahead);
        put_bytes(&words[HEADER_WORDS..], payload);
        self.close(&claim, words, kind, payload.len(), checksum)
    }

    /// The words of a claim for a record.
    #[allow(clippy::inline_always, reason = "see `commit_parts`")]
    #[inline(always)]
    fn open(&self, claim: &Claim, kind: u16, payload_bytes: usize) -> &[AtomicU64] {
        assert!(kind != PADDING, "records have kinds of their own");
        assert!(frame_bytes(payload_bytes) == claim.bytes, "a claim is filled by what it was made for");
        self.reach(claim)
    }

    /// The words of a claim, to be stored into.
    fn reach(&self, claim: &Claim) -> &[AtomicU64] {
        let words = &self.ring()[claim.word..claim.word + words_in(claim.bytes)];
        debug_assert!(words[0].load(Ordering::Relaxed) == 0, "LOG-2: what can be claimed is zero");
        // Pairs with the Acquire fence in `overtook`: whoever reads one of these words without having seen the commit
        // sees `reclaimed` at least as it was when this range was freed (LOG-4).
        fence(Ordering::Release);
        words
    }

    /// Writes the header in front of the payload that is in `words`, and commits the claim.
    #[allow(clippy::inline_always, reason = "see `commit_parts`")]
    #[inline(always)]
    fn close(
        &self,
        claim: &Claim,
        words: &[AtomicU64],
        kind: u16,
        payload_bytes: usize,
        checksum: u32,
    ) -> Span {
        let header = Header {
            length: u32::try_from(claim.bytes).expect("a claim is at most FRAME_BYTES_MAX"),
            position: Position(claim.start),
            epoch: self.epoch,
            kind,
            payload_bytes: u32::try_from(payload_bytes).expect("a payload is below FRAME_BYTES_MAX"),
        };
        let header = header.words(checksum);
        for (word, value) in words[1..HEADER_WORDS].iter().zip(&header[1..]) {
            word.store(*value, Ordering::Relaxed);
        }
        // Release pairs with the Acquire loads of first words: the frame is whole (LOG-3).
        words[0].store(header[0], Ordering::Release);
        Span { start: Position(claim.start), end: Position(claim.start + claim.bytes) }
    }

    /// How many bytes can be claimed now.
    #[must_use]
    pub fn room(&self) -> u64 {
        // Acquire pairs with the Release in `free`.
        let freed = self.freed().load(Ordering::Acquire);
        (freed + self.ring_bytes - FRAME_ALIGN).saturating_sub(self.tail.load(Ordering::Relaxed))
    }

    /// The next position to be claimed.
    #[must_use]
    pub fn claimed(&self) -> Position {
        // Acquire pairs with the Release in `claim`.
        Position(self.tail.load(Ordering::Acquire))
    }

    /// The end of what segments hold durably; one load.
    #[must_use]
    pub fn durable(&self) -> Position {
        // Acquire pairs with the Release in `set_durable`.
        Position(self.durable_word().load(Ordering::Acquire))
    }

    /// Where the ring's content starts; before it, segments have the frames.
    #[must_use]
    pub fn oldest(&self) -> Position {
        // Acquire pairs with the Release in `free`: whoever finds the ring lapped finds the segments ready.
        Position(self.reclaimed().load(Ordering::Acquire))
    }

    /// The start that this log belongs to.
    #[must_use]
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The bytes of the ring: 64 more than it can hold of frames.
    #[must_use]
    pub const fn ring_bytes(&self) -> u64 {
        self.ring_bytes
    }

    /// Whether the journal has given up writing: what is not durable yet will not become so in this process.
    #[must_use]
    pub fn failed(&self) -> bool {
        // Acquire pairs with the Release in `fail`.
        self.failed.load(Ordering::Acquire)
    }

    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
    }

    /// Whether the next start was found not to find the log's file: then what only the log has does not outlive the
    /// process.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        // Relaxed: nothing else is learned from it.
        self.lost.load(Ordering::Relaxed)
    }

    /// Looks whether somebody removed or renamed the log's file; true the first time that it is not where it was.
    pub(crate) fn look_for_file(&self) -> bool {
        self.files.as_ref().is_some_and(Files::are_parted) && !self.lost.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn set_durable(&self, upto: Position) {
        assert!(self.durable() <= upto, "durable positions only grow");
        assert!(upto <= self.claimed(), "only what was claimed is durable");
        // Release pairs with the Acquire in `durable`.
        self.durable_word().store(upto.0, Ordering::Release);
    }

    /// Zeroes everything before `upto`, a frame's end, so that it can be claimed again.
    ///
    /// Called by one thread only: the journal thread, or a test in its place.
    pub fn free(&self, upto: Position) {
        let from = self.reclaimed().load(Ordering::Relaxed);
        assert!(from <= upto.0, "freed positions only grow");
        assert!(upto <= self.claimed(), "only what was claimed can be freed");
        assert!(upto.0.is_multiple_of(FRAME_ALIGN), "frames end on lines");
        // Release pairs with the Acquire in `oldest`.
        self.reclaimed().store(upto.0, Ordering::Release);
        // Pairs with the Acquire fence in `overtook`: who reads a zero of the loop below sees the store above (LOG-4).
        fence(Ordering::Release);
        let words = self.ring();
        for at in (from..upto.0).step_by(8) {
            words[self.word_index(at)].store(0, Ordering::Relaxed);
        }
        // Release pairs with the Acquire in `claim` and `room` (LOG-1).
        self.freed().store(upto.0, Ordering::Release);
    }

    /// The first word of the frame at `at`: whether it is committed, and how long it is.
    pub(crate) fn look(&self, at: Position) -> Look {
        if at < self.oldest() {
            return Look::Lapped;
        }
        if self.claimed() <= at {
            return Look::NotYet;
        }
        // Acquire pairs with the Release in `close` (LOG-3).
        let first = self.ring()[self.word_index(at.0)].load(Ordering::Acquire);
        if self.overtook(at) {
            return Look::Lapped;
        }
        let length = u32::try_from(first & u64::from(u32::MAX)).expect("masked to 32 bits");
        if length == 0 {
            return Look::NotYet;
        }
        assert!(length_is_possible(length), "LOG-3: a committed length is a frame's");
        Look::Bytes(length as usize)
    }

    /// Copies the frame at `at` to the front of `into`, whole and as it was committed.
    pub(crate) fn copy(&self, at: Position, into: &mut [u8]) -> Look {
        let looked = self.look(at);
        let Look::Bytes(bytes) = looked else {
            return looked;
        };
        let words = self.frame_words(at.0, bytes as u64);
        let (chunks, _) = into[..bytes].as_chunks_mut::<8>();
        for (chunk, word) in chunks.iter_mut().zip(words) {
            *chunk = word.load(Ordering::Relaxed).to_le_bytes();
        }
        if self.overtook(at) { Look::Lapped } else { looked }
    }

    /// Whether zeroing may have reached `at` before the loads that came before this call.
    fn overtook(&self, at: Position) -> bool {
        // Pairs with the Release fences in `free` and `reach` (LOG-4).
        fence(Ordering::Acquire);
        at.0 < self.reclaimed().load(Ordering::Relaxed)
    }

    /// Wakes the journal thread if it sleeps, as there is something to write: once per turn of a loop, not per frame.
    ///
    /// One atomic swap, and a system call only if the thread sleeps.
    pub fn wake_writer(&self) {
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    pub(crate) fn set_writer(&self, writer: Thread) {
        self.writer.set(writer).expect("a log has one journal thread");
    }

    /// How many bytes of its file are in huge pages.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn huge_bytes(&self) -> usize {
        self.mapping.huge_bytes()
    }

    /// A word of the file's header.
    #[cfg(not(loom))]
    pub(crate) fn header_word(&self, index: usize) -> &AtomicU64 {
        &self.mapping.words()[index]
    }

    fn durable_word(&self) -> &AtomicU64 {
        &self.mapping.words()[DURABLE_WORD]
    }

    fn reclaimed(&self) -> &AtomicU64 {
        &self.mapping.words()[RECLAIMED_WORD]
    }

    fn freed(&self) -> &AtomicU64 {
        &self.mapping.words()[FREED_WORD]
    }

    fn ring(&self) -> &[AtomicU64] {
        &self.mapping.words()[words_in(LOG_HEADER_BYTES)..]
    }

    fn word_index(&self, at: u64) -> usize {
        words_in(at % self.ring_bytes)
    }

    fn frame_words(&self, start: u64, bytes: u64) -> &[AtomicU64] {
        let first = self.word_index(start);
        &self.ring()[first..first + words_in(bytes)]
    }
}

/// Prefetches for writing the line [`AHEAD_WORDS`] past this one, for frames to come: another core wrote or zeroed it
/// last, or it has long left every cache. If another loop claims it, that waits no longer than without this. It may be
/// past the ring's end.
#[inline]
fn prefetch_ahead(line: &[AtomicU64]) {
    ahead::prefetch_to_write(line.as_ptr().wrapping_add(AHEAD_WORDS));
}

/// Stores bytes as words; the last word is padded with zeros.
fn put_bytes(words: &[AtomicU64], bytes: &[u8]) {
    let (whole, rest) = bytes.as_chunks::<8>();
    put_each(words, whole);
    if !rest.is_empty() {
        // Assembled in a register: loading a word that was stored byte by byte defeats store forwarding and stalls.
        let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        words[whole.len()].store(last, Ordering::Relaxed);
    }
}

#[inline]
fn put_each(words: &[AtomicU64], chunks: &[[u8; 8]]) {
    for (word, chunk) in words.iter().zip(chunks) {
        word.store(u64::from_le_bytes(*chunk), Ordering::Relaxed);
    }
}

/// Stores a line, two words at a time.
#[cfg(not(loom))]
#[inline]
fn put_line(line: &[AtomicU64; 8], chunks: &Line) {
    // SAFETY: it stores the line's words and nothing else, as `put_each` would, and before the commit, as stores keep
    // their order. Nothing needs these stores to be atomic: whoever reads a word before the commit has been overtaken,
    // and drops it, torn or not (LOG-4). On processors with AVX they are (Intel SDM 3A, 9.1.1; AMD APM 2, 7.3.2), as
    // a line begins on a multiple of 16; x86-64 alone does not say so.
    unsafe {
        asm!(
            "movups {a}, [{from}]",
            "movups {b}, [{from} + 16]",
            "movups {c}, [{from} + 32]",
            "movups {d}, [{from} + 48]",
            "movups [{to}], {a}",
            "movups [{to} + 16], {b}",
            "movups [{to} + 32], {c}",
            "movups [{to} + 48], {d}",
            from = in(reg) chunks,
            to = in(reg) line,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(loom)]
fn put_line(line: &[AtomicU64; 8], chunks: &Line) {
    put_each(line, chunks);
}

pub(crate) fn words_in(bytes: u64) -> usize {
    usize::try_from(bytes / 8).expect("a mapped length fits usize")
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests;
