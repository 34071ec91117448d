//! The state of the exchange as far as a loop has followed the log, and the streams that are told of it.
//!
//! The reader's loop has one, and its streams; with `cpu.feed` the feed's loop has another with all streams, made from
//! the same frames.

use crate::domain::{Position, TimeMs};
use crate::http::respond::BookMark;
use crate::journal::layout::Record;
use crate::journal::{Archive, Follower};
use crate::reader::{Feed, Heard, ReadRequest, Reader, StreamIds};
use crate::registrar::KeyOfOwner;
use crate::server::requests::caller::Callers;

/// Frames applied at once; twice as many in a turn in which a stream's client is heard.
const FRAMES_AT_ONCE: usize = 256;
/// Orders compared with a new archive in one turn: some tens of microseconds.
const SHED_PER_TURN: usize = 256;

/// The state at a position of the log, and whom streams tell of it.
pub(crate) struct Followed {
    /// Checks credentials.
    pub(in crate::server) callers: Callers,
    /// The state.
    pub(in crate::server) reader: Reader,
    feed: Feed,
    follower: Follower,
    /// Whether frames up to the last mark were left for the next time.
    leaves_frames: bool,
}

impl Followed {
    /// The state that `reader` has, where `follower` goes on.
    pub(crate) fn new(mut reader: Reader, follower: Follower, callers: Callers, ids: StreamIds) -> Self {
        reader.name_streams(&ids.now);
        Self { feed: Feed::new(ids, &reader), callers, reader, follower, leaves_frames: false }
    }

    /// Streams and what they have to send.
    pub(crate) fn feed(&mut self) -> &mut Feed {
        &mut self.feed
    }

    /// The place in its stream of the book that a request asks for; none if it does not ask for one book.
    pub(crate) fn book_mark(&self, request: &ReadRequest<'_>) -> Option<BookMark<'_>> {
        self.feed.book_mark(&self.reader, request)
    }

    /// Takes what a stream's client says.
    pub(crate) fn hear(
        &mut self,
        client: u32,
        text: &str,
        now: TimeMs,
        promised: Option<KeyOfOwner>,
    ) -> Heard {
        let callers = &mut self.callers;
        self.feed.hear(client, text, &self.reader, (now, promised), |shown| callers.check_plain(shown))
    }

    /// Writes the books of the next market of which a stream's client is owed any; after [`Self::flush`].
    pub(crate) fn give_books(&mut self, client: u32, now: TimeMs) {
        self.feed.give_books(client, &self.reader, now);
    }

    /// The next stream whose key was revoked.
    pub(crate) fn next_revoked(&mut self) -> Option<u32> {
        self.feed.next_revoked(|key| self.callers.knows(key))
    }

    /// Writes what streams are told of the frames that were followed; before a beat, which says how far they are.
    pub(crate) fn flush(&mut self, now: TimeMs) {
        self.feed.flush(&self.reader, now);
    }

    /// Tells a stream's client how far the state is.
    pub(crate) fn beat(&mut self, client: u32, now: TimeMs) {
        self.feed.beat(client, &self.reader, now);
    }

    /// The position that gives work when it is acknowledged.
    pub(crate) fn awaits(&self) -> Position {
        Position(self.follower.position().0 + 1)
    }

    /// How far frames are applied.
    pub(crate) fn applied(&self) -> Position {
        self.follower.position()
    }

    /// Applies frames up to `mark`, notes them for streams, and passes each with the state after it to `seen`. Returns
    /// whether there were any. A frame that contradicts the state is a bug of ours: nothing more may be served from this
    /// state.
    pub(crate) fn follow(
        &mut self,
        mark: Position,
        now: TimeMs,
        mut seen: impl FnMut(&Record, &Reader),
    ) -> bool {
        self.leaves_frames = false;
        for count in 0..FRAMES_AT_ONCE {
            let frame = match self.follower.next(mark) {
                Ok(Some(frame)) => frame,
                Ok(None) => return count > 0,
                Err(fault) => panic!("the log cannot be followed: {fault:?}"),
            };
            let record =
                Record::decode(frame.kind, frame.payload).expect("frames are checked when they are read");
            let applied = self.reader.apply(frame.span.start, frame.span.end, &record);
            applied.unwrap_or_else(|contradiction| panic!("{contradiction}"));
            self.feed.note(&self.reader, &record, now);
            if let Record::KeyChanged(key) = &record {
                self.callers.note_key(key);
            }
            seen(&record, &self.reader);
        }
        self.leaves_frames = true;
        true
    }

    /// Whether everything up to the mark that was followed last is applied.
    pub(crate) fn is_at_mark(&self) -> bool {
        !self.leaves_frames
    }

    /// Once the snapshot's `position` is reached, what is over is also looked for in its `archive`, and leaves
    /// memory as it has it.
    pub(crate) fn set_archive_at(&mut self, position: Position, archive: Archive) {
        self.reader.set_archive_at(position, archive);
    }

    /// Whether anything can leave memory.
    pub(crate) fn can_shed(&self) -> bool {
        self.reader.can_shed()
    }

    /// Lets some of what the archive has leave memory. Returns whether there was anything to do.
    pub(crate) fn shed(&mut self) -> bool {
        let can_shed = self.reader.can_shed();
        if can_shed {
            self.reader.shed(SHED_PER_TURN);
        }
        can_shed
    }
}
