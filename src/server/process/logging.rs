//! The log: what every thread has to say, on standard error.
//!
//! A thread that logs hands its line to a queue and goes on; one thread writes the lines. Whoever does not read standard
//! error, or has closed it, holds up nobody: while the queue is full, lines are dropped and counted, and the thread
//! says how many once it can write again.
//!
//! `OUTCRY_LOG` says how much is logged; `info` if it is not set.

use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Directive;

/// Lines that may wait: a start that warns of everything has some dozens. About 200 bytes each.
const LINES_MAX: usize = 1_024;
/// How long the end waits for what is queued; whoever has not read it by then does not read.
const END_WAIT: Duration = Duration::from_secs(1);
/// What `OUTCRY_LOG` may say.
const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// Where threads put their lines.
pub(crate) struct Log {
    lines: SyncSender<Vec<u8>>,
    queued: AtomicU64,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    written: AtomicU64,
    dropped: AtomicU64,
}

/// Begins to log to standard error, as `OUTCRY_LOG` says.
pub(crate) fn begin() -> Result<Arc<Log>, String> {
    let filter = filter(std::env::var_os("OUTCRY_LOG"))?;
    let log = Log::to(io::stderr()).map_err(|fault| format!("log: {fault}"))?;
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(Arc::clone(&log));
    // An internal error would be printed to standard error, and panic if that is closed.
    let _ = subscriber.log_internal_errors(false).try_init();
    Ok(log)
}

impl Log {
    fn to(out: impl Write + Send + 'static) -> io::Result<Arc<Self>> {
        let (lines, queue) = sync_channel(LINES_MAX);
        let counts = Arc::<Counts>::default();
        let log = Arc::new(Self { lines, queued: AtomicU64::new(0), counts: Arc::clone(&counts) });
        let thread = std::thread::Builder::new().name("outcry-log".to_owned());
        thread.spawn(move || write_lines(&queue, out, &counts))?;
        Ok(log)
    }

    /// Waits until what is queued is written, but not for long.
    pub(crate) fn flush(&self) {
        let by = Instant::now() + END_WAIT;
        while self.counts.written.load(Ordering::Acquire) < self.queued.load(Ordering::Acquire)
            && Instant::now() < by
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Takes one line. It is never an error: there is nobody who could do anything about it.
impl Write for &Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.lines.try_send(line.to_vec()) {
            Ok(()) => self.queued.fetch_add(1, Ordering::Release),
            Err(_) => self.counts.dropped.fetch_add(1, Ordering::Relaxed),
        };
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_lines(queue: &Receiver<Vec<u8>>, mut out: impl Write, counts: &Counts) {
    for line in queue {
        // A line that cannot be written is lost, as there is nowhere else to say so.
        let _ = out.write_all(&line);
        let dropped = counts.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let _ = writeln!(out, "outcry: {dropped} lines of the log were dropped, as nobody read it");
        }
        counts.written.fetch_add(1, Ordering::Release);
    }
}

/// What is logged; a word that would silence the log is refused.
fn filter(said: Option<OsString>) -> Result<EnvFilter, String> {
    let said = said.unwrap_or_default();
    let text = said.to_string_lossy();
    let mut filter = EnvFilter::new(if text.contains('=') { "off" } else { "info" });
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let is_whole = match word.split_once('=') {
            Some((target, level)) => !target.is_empty() && !level.is_empty(),
            None => LEVELS.contains(&word),
        };
        let directive = word.parse::<Directive>().ok().filter(|_| is_whole);
        filter = filter.add_directive(directive.ok_or_else(|| {
            let levels = LEVELS.join(", ");
            format!("OUTCRY_LOG: got {word}; allowed: {levels}, or TARGET=LEVEL; several with commas between")
        })?);
    }
    Ok(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_level_is_refused() {
        for (said, allowed) in [
            ("", true),
            ("error", true),
            ("warn", true),
            ("info", true),
            ("debug", true),
            ("trace", true),
            ("outcry=debug", true),
            ("warn, outcry::journal=trace", true),
            ("warning", false),
            ("off", false),
            ("2", false),
            ("outcry", false),
            ("info,verbose", false),
            ("outcry=warning", false),
            ("outcry=", false),
        ] {
            let refused = filter(Some(said.into())).err();
            assert_eq!(refused.is_none(), allowed, "{said}: {refused:?}");
            let word = said.rsplit(',').next().expect("a word");
            assert!(refused.is_none_or(|refused| refused.starts_with(&format!("OUTCRY_LOG: got {word}; "))));
        }
        assert_eq!(filter(None).expect("the default").to_string(), "info");
        assert_eq!(filter(Some("warn".into())).expect("a level").to_string(), "warn");
    }

    /// Takes lines only when the test lets it.
    struct Gate {
        open: Receiver<()>,
        lines: SyncSender<Vec<u8>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.open.recv();
            self.lines.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn whoever_logs_goes_on_though_nobody_reads_and_is_told_what_was_dropped() {
        let (opener, open) = sync_channel(0);
        let (lines, read) = sync_channel(2 * LINES_MAX);
        let log = Log::to(Gate { open, lines }).expect("a thread");
        // One line is with the thread, or the queue holds it; so of this many, two or three too many.
        for _ in 0..LINES_MAX + 3 {
            (&*log).write_all(b"line\n").expect("never an error");
        }
        let dropped = log.counts.dropped.load(Ordering::Relaxed);
        assert!((2..=3).contains(&dropped), "{dropped}");
        drop(opener);
        log.flush();
        let written: Vec<_> = read.try_iter().collect();
        assert_eq!(
            written.iter().filter(|line| *line == b"line\n").count() as u64,
            LINES_MAX as u64 + 3 - dropped
        );
        let told = written
            .iter()
            .any(|line| line.starts_with(b"outcry: ") || line == dropped.to_string().as_bytes());
        assert!(told, "{written:?}");
    }
}
