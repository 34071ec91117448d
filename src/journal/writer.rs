//! The journal thread: carries what is committed to the segments and gives room back to the ring.
//!
//! It writes back to back: a batch is what was committed while the one before was being written.
//! With nothing to write it polls for a while if it was told to, then sleeps until a loop wakes it. It also
//! wakes by itself now and then, since loops do not wake it under `committed`. Durable frames stay in
//! the ring while there is room, so that followers find them there.
//!
//! A write error ends it: `durable` stays where it is, nothing waits for an answer that will not
//! come, and the log file stays as it is for the next start.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Fault;
use super::batches::Batches;
use super::frame::FRAME_ALIGN;
use super::log::{Log, Look};
use super::mark::CommittedMark;
use crate::domain::{Position, TimeMs};
use crate::journal::layout::Close;

/// How long the thread sleeps unless it is woken: short compared with the time in which 32 MiB fill.
const NAP: Duration = Duration::from_millis(10);

/// Receives reports of writes, on the journal thread. A closure receives what is durable.
pub trait Listener: Send {
    /// A batch goes to the disk now.
    fn writing(&mut self) {}

    /// Everything up to here is durable: called after each write.
    fn durable(&mut self, upto: Position);

    /// Writing failed, and nothing more becomes durable.
    fn failed(&mut self) {}

    /// The next segment could not be made ahead. It is tried again, at the latest when it is needed.
    fn not_ahead(&mut self, _why: &Fault) {}
}

impl<F: FnMut(Position) + Send> Listener for F {
    fn durable(&mut self, upto: Position) {
        self(upto);
    }
}

/// The journal thread, as its owner sees it.
#[derive(Debug)]
pub struct WriterHandle {
    log: Arc<Log>,
    log_path: PathBuf,
    stopping: Arc<AtomicBool>,
    thread: JoinHandle<Result<(), Fault>>,
}

impl WriterHandle {
    /// Starts the thread, and waits until it has made the first frame durable: before that, an end loses nothing.
    pub(crate) fn spawn(
        log: &Arc<Log>,
        log_path: PathBuf,
        batches: Batches,
        keep_bytes: u64,
        looks_max: u32,
        listener: Box<dyn Listener>,
    ) -> Result<Self, Fault> {
        assert!(batches.end() < log.claimed(), "the first frame is there");
        let stopping = Arc::new(AtomicBool::new(false));
        let (begun, has_begun) = mpsc::channel();
        let writer = Writer {
            mark: CommittedMark::new(log),
            log: Arc::clone(log),
            batches,
            keep_bytes,
            looks_max,
            looks: 0,
            listener,
            begun: Some(begun),
            stopping: Arc::clone(&stopping),
        };
        let thread = std::thread::Builder::new().name("journal".to_owned()).spawn(move || writer.run());
        let thread = thread.map_err(Fault::io("start the journal thread of", &log_path))?;
        if has_begun.recv().is_err() {
            let ended = thread.join().expect("the journal thread does not panic");
            return Err(ended.expect_err("without a write it ends only where that failed"));
        }
        log.set_writer(thread.thread().clone());
        Ok(Self { log: Arc::clone(log), log_path, stopping, thread })
    }

    /// Makes all that is committed durable, records in the log and in the segments that the process stopped
    /// in good order, and ends the thread. Nobody may append any more.
    ///
    /// The log file is removed: segments hold all of it, and logs that nobody needs must not fill shared
    /// memory. It stays if it alone has anything.
    pub fn stop(self, time: TimeMs) -> Result<(), Fault> {
        // Without room there is a hole that no mark passes, and a `Close` after it would say nothing.
        let whole = !self.log.failed() && self.log.room_for_cancel(0);
        if whole {
            let mut payload = Vec::new();
            Close { time }.encode(&mut payload);
            self.log.append(Close::KIND, &payload);
        }
        let (log, log_path) = (Arc::clone(&self.log), self.log_path.clone());
        self.end()?;
        log.look_for_file();
        // At its path may be another's by now.
        if whole && log.durable() == log.claimed() && !log.is_lost() {
            match std::fs::remove_file(&log_path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Fault::io("remove", &log_path)(error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Ends the thread as a crash would: what it has not written stays in the log file only, and the next
    /// start takes it from there. Returns the fault that had ended the thread, if one did.
    pub fn abandon(self) -> Result<(), Fault> {
        self.log.fail();
        self.end()
    }

    fn end(self) -> Result<(), Fault> {
        // Release pairs with the Acquire in `write_until_stopped`: what was appended before is seen after.
        self.stopping.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let died =
            |_| Fault::io("write the journal of", &self.log_path)(std::io::Error::other("its thread died"));
        self.thread.join().map_err(died)?
    }
}

struct Writer {
    log: Arc<Log>,
    batches: Batches,
    mark: CommittedMark,
    keep_bytes: u64,
    /// How often it polls for more before it sleeps.
    looks_max: u32,
    /// How often it has polled since there was something to write.
    looks: u32,
    listener: Box<dyn Listener>,
    /// Told of the first write.
    begun: Option<Sender<()>>,
    stopping: Arc<AtomicBool>,
}

impl Drop for Writer {
    /// Nobody is acknowledged any more once this thread has panicked, so the loops must end.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.log.fail();
        }
    }
}

impl Writer {
    fn run(mut self) -> Result<(), Fault> {
        let result = self.write_until_stopped();
        if result.is_err() {
            self.log.fail();
            self.listener.failed();
        }
        result
    }

    fn write_until_stopped(&mut self) -> Result<(), Fault> {
        loop {
            // Read before the mark is advanced: what came before the stop must be written.
            let stopping = self.stopping.load(Ordering::Acquire);
            let committed = self.mark.advance(&self.log);
            if self.log.failed() {
                return Ok(());
            }
            if self.batches.end() < committed {
                self.write(committed)?;
                self.looks = 0;
            } else if stopping {
                return self.batches.write();
            } else {
                self.rest();
            }
            self.free();
        }
    }

    /// Polls, or sleeps until a loop wakes it.
    fn rest(&mut self) {
        if self.looks < self.looks_max {
            // `u32::MAX` is never reached.
            self.looks += u32::from(self.looks_max < u32::MAX);
            std::hint::spin_loop();
        } else {
            std::thread::park_timeout(NAP);
        }
    }

    /// Writes one batch of what is committed, and reports that it is durable.
    fn write(&mut self, committed: Position) -> Result<(), Fault> {
        let mut at = self.batches.end();
        while at < committed {
            let into = self.batches.free();
            match self.log.look(at) {
                Look::Bytes(bytes) if into.len() < bytes => break,
                Look::Bytes(_) => {}
                Look::Lapped | Look::NotYet => unreachable!("only this thread frees, and only what it wrote"),
            }
            let Look::Bytes(bytes) = self.log.copy(at, into) else {
                unreachable!("it was committed a moment ago");
            };
            self.batches.take();
            at.0 += bytes as u64;
        }
        assert!(self.batches.end() < at, "a segment holds at least one frame of any size");
        self.listener.writing();
        self.batches.write()?;
        self.log.set_durable(at);
        self.listener.durable(at);
        if let Some(begun) = self.begun.take() {
            // Who waits for it is there.
            let _ = begun.send(());
        }
        if let Err(fault) = self.batches.tend_spare() {
            self.listener.not_ahead(&fault);
        }
        Ok(())
    }

    /// Gives back the oldest frames if the ring keeps more than it should.
    fn free(&mut self) {
        let durable = self.batches.end();
        let target = self.log.claimed().0.saturating_sub(self.keep_bytes);
        let freed = self.log.oldest();
        let mut upto = freed;
        while upto < durable && upto.0 + FRAME_ALIGN <= target {
            let Look::Bytes(bytes) = self.log.look(upto) else {
                unreachable!("only this thread frees");
            };
            upto.0 += bytes as u64;
        }
        if freed < upto {
            self.log.free(upto);
        }
    }
}
