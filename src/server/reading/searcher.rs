//! The thread that searches: it owns the index, takes news and queries in the order in which the
//! reader's loop sends them, and answers.
//!
//! It has the lowest priority and keeps off the CPUs that loops are pinned to; if there are no
//! others, off those of shards. The library's own threads are made by it and inherit both. A query
//! finds every text that was sent before it: before it is answered, everything that has come is
//! made visible. That costs some milliseconds, so it is done once for all texts since the last
//! query, and ahead of the next one when nothing has come for a while.
//!
//! The loop never waits. What it has sent and the thread has not taken is counted on both sides
//! (`Progress`), so that a letter is only sent if there is room, and answers are counted so that
//! a loop about to sleep sees them: WAKE-1.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::catalog::search::{EventText, Fault, Found, Hit, MarketText, Query, Search, TagText, Weight};
use crate::server::plan::topology;
use crate::server::threads::shared::Shared;
use crate::server::threads::thread;

/// Letters on their way to the thread. Each has at most [`BYTES_PER_LETTER`] and one text more:
/// with the longest texts there are, 8 MiB.
pub(super) const LETTERS_MAX: usize = 16;

/// A letter with this much text in it is closed.
pub(super) const BYTES_PER_LETTER: usize = 256 << 10;

/// The most news in a letter: a wake-up for each would cost more than taking it in.
pub(super) const NEWS_PER_LETTER: usize = 256;

/// The most threads that take texts into the index, besides the one that reads them: beyond that
/// reading is what takes time.
const WRITERS_MAX: usize = 4;

/// This long after the last letter, what came is made visible without a query.
const QUIET: Duration = Duration::from_millis(500);

/// The thread's name.
const NAME: &str = "outcry-search";

/// Something that is new, or has changed.
pub(super) enum News {
    /// An event.
    Event {
        /// Its number.
        event: u32,
        /// Its JSON.
        text: String,
        /// The numbers of its tags.
        tags: Box<[u32]>,
        /// What it is ranked by.
        weight: Weight,
    },
    /// A market.
    Market {
        /// Its number.
        market: u32,
        /// The number of its event.
        event: Option<u32>,
        /// The numeric id that people use.
        market_id: u64,
        /// Its JSON.
        text: String,
        /// The numbers of its own tags.
        tags: Box<[u32]>,
        /// What it is ranked by, if it is in no event.
        weight: Weight,
    },
    /// A tag.
    Tag {
        /// Its number.
        tag: u32,
        /// Its id, label and slug; none if it is not shown any more.
        names: Option<[String; 3]>,
    },
    /// What a hit is ranked by.
    Weight {
        /// The hit.
        hit: Hit,
        /// Its weight.
        weight: Weight,
    },
}

/// What the thread is told.
pub(super) enum Letter {
    /// What is new.
    News(Vec<News>),
    /// All that there was at the start has been sent.
    Complete,
    /// Somebody searches.
    Query {
        /// Names the answer.
        number: u64,
        /// The query.
        query: Query,
    },
    /// The process ends.
    Stop,
}

/// What was found for the query of this number.
pub(super) type Answer = (u64, Found);

/// How far the thread is, for the loop.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Letters that were taken.
    pub(super) taken: AtomicU64,
    /// Answers that were given.
    pub(super) answered: AtomicU64,
    /// Whether all that there was at the start can be found.
    pub(super) complete: AtomicBool,
    stopped: AtomicBool,
}

/// The loop's ends of both queues.
pub(in crate::server) struct Ends {
    /// To the thread.
    pub(super) letters: SyncSender<Letter>,
    /// From the thread.
    pub(super) answers: Receiver<Answer>,
    /// How far it is.
    pub(super) progress: Arc<Progress>,
}

/// The thread's handle, to end it.
pub(crate) struct Searcher {
    letters: SyncSender<Letter>,
    progress: Arc<Progress>,
    thread: JoinHandle<()>,
}

impl Searcher {
    /// Starts the thread.
    pub(in crate::server) fn start(shared: &Arc<Shared>) -> Result<(Self, Ends), String> {
        let (letters, inbox) = sync_channel(LETTERS_MAX);
        let (outbox, answers) = sync_channel(LETTERS_MAX);
        let progress = Arc::new(Progress::default());
        let work = Work { inbox, outbox, progress: Arc::clone(&progress), shared: Arc::clone(shared) };
        let thread = std::thread::Builder::new()
            .name(NAME.to_owned())
            .spawn(move || work.run())
            .map_err(|fault| format!("{NAME}: no thread: {fault}"))?;
        let ends = Ends { letters: letters.clone(), answers, progress: Arc::clone(&progress) };
        Ok((Self { letters, progress, thread }, ends))
    }

    /// Ends the thread after the letter that it reads now.
    pub(in crate::server) fn stop(self) {
        self.progress.stopped.store(true, Ordering::Release);
        // A full queue needs no letter: the thread is awake and looks at the flag.
        let _ = self.letters.try_send(Letter::Stop);
        if self.thread.join().is_err() {
            tracing::error!("{NAME}: the thread panicked");
        }
    }
}

/// The thread's own side.
struct Work {
    inbox: Receiver<Letter>,
    outbox: SyncSender<Answer>,
    progress: Arc<Progress>,
    shared: Arc<Shared>,
}

impl Work {
    fn run(self) {
        let cpus = self.shared.plan.topology.cpus_for_waiting(&topology::allowed_cpus());
        thread::stand_back(&cpus);
        let anywhere = topology::allowed_cpus().len();
        let writers = if cpus.is_empty() { anywhere } else { cpus.len() };
        if let Err(fault) = self.serve(writers.clamp(1, WRITERS_MAX)) {
            // Trading goes on; searches are answered 503 from here on.
            tracing::error!("{fault}; nothing is searched until the next start");
        }
    }

    fn serve(&self, writers: usize) -> Result<(), Fault> {
        let bell = &self.shared.wakers[self.shared.plan.topology.reader_loop()];
        let mut search = Search::new(writers)?;
        loop {
            let letter = match self.inbox.recv_timeout(QUIET) {
                Ok(letter) => letter,
                Err(RecvTimeoutError::Timeout) => {
                    search.refresh()?;
                    match self.inbox.recv() {
                        Ok(letter) => letter,
                        Err(_) => return Ok(()),
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            // Release pairs with the Acquire in the loop's `has_room`.
            self.progress.taken.fetch_add(1, Ordering::Release);
            match letter {
                Letter::News(all) => all.iter().try_for_each(|news| take(&mut search, news))?,
                Letter::Complete => {
                    search.refresh()?;
                    self.progress.complete.store(true, Ordering::Release);
                    tracing::info!("{NAME}: everything can be found");
                }
                Letter::Query { number, query } => {
                    search.refresh()?;
                    let found = search.find(&query)?;
                    if self.outbox.send((number, found)).is_err() {
                        return Ok(());
                    }
                    self.progress.answered.fetch_add(1, Ordering::Release);
                }
                Letter::Stop => return Ok(()),
            }
            bell.wake();
            if self.progress.stopped.load(Ordering::Acquire) {
                return Ok(());
            }
        }
    }
}

fn take(search: &mut Search, news: &News) -> Result<(), Fault> {
    match news {
        News::Event { event, text, tags, weight } => {
            search.put_event(&EventText { event: *event, text, tags, weight: *weight })
        }
        News::Market { market, event, market_id, text, tags, weight } => search.put_market(&MarketText {
            market: *market,
            event: *event,
            market_id: *market_id,
            text,
            tags,
            weight: *weight,
        }),
        News::Tag { tag, names } => {
            let text = names.as_ref().map(|[id, label, slug]| TagText { id, label, slug });
            search.put_tag(*tag, text.as_ref());
            Ok(())
        }
        News::Weight { hit, weight } => {
            search.weigh(*hit, *weight);
            Ok(())
        }
    }
}
