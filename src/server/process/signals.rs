//! SIGTERM, SIGINT, SIGHUP and what else ends the process, as one event that the main thread waits for.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

/// Why the process should end, as the byte that is written for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Ending {
    /// Somebody asked: flush, sync, exit 0. signal-hook writes this for a signal.
    Asked = b'X',
    /// The journal's disk is nearly full: flush, sync, and exit with failure, as nobody asked.
    DiskFull = 1,
    /// The journal cannot write: nothing more may be acknowledged.
    JournalFault = 2,
    /// A loop's thread died.
    LoopDied = 3,
}

impl Ending {
    const ALL: [Self; 4] = [Self::Asked, Self::DiskFull, Self::JournalFault, Self::LoopDied];
}

/// Where the main thread waits.
#[derive(Debug)]
pub(crate) struct Endings(UnixStream);

/// How any other thread asks for the end.
#[derive(Debug)]
pub(crate) struct EndingSender(UnixStream);

/// A pair of ends that knows nothing of signals yet.
pub(crate) fn endings() -> std::io::Result<(EndingSender, Endings)> {
    let (sender, receiver) = UnixStream::pair()?;
    sender.set_nonblocking(true)?;
    Ok((EndingSender(sender), Endings(receiver)))
}

/// Signals end the process at once.
#[derive(Debug)]
pub(crate) struct AtOnce(Arc<AtomicBool>);

/// The signals that end the process. SIGHUP is a terminal that was closed; under `nohup` it is nothing.
fn ends() -> impl Iterator<Item = i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    [SIGTERM, SIGINT, SIGHUP]
        .into_iter()
        .filter(move |signal| *signal != SIGHUP || !is_ignored(&status, SIGHUP))
}

/// Whether the process that `status`, of its folder below `/proc`, is about ignores `signal`.
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// Lets the signals of [`ends`] end the process at once, with success, until [`AtOnce::over`]. The first process of a
/// container would ignore them otherwise.
pub(crate) fn end_at_once() -> std::io::Result<AtOnce> {
    let holds = Arc::new(AtomicBool::new(true));
    for signal in ends() {
        signal_hook::flag::register_conditional_shutdown(signal, 0, Arc::clone(&holds))?;
    }
    Ok(AtOnce(holds))
}

/// Lets a write past the limit of `ulimit -f` fail like one to a full disk, which is reported. The signal would end the
/// process without a word otherwise. Nobody reads the flag that it sets.
pub(crate) fn fail_what_is_too_long() -> std::io::Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(|_| ())
}

impl AtOnce {
    /// From here on, signals do not end the process at once.
    pub(crate) fn over(self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl EndingSender {
    /// Lets the signals of [`ends`] end the process in good order.
    pub(crate) fn listen_to_signals(&self) -> std::io::Result<()> {
        for signal in ends() {
            signal_hook::low_level::pipe::register(signal, self.0.try_clone()?)?;
        }
        Ok(())
    }

    /// Asks for the end. A second request changes nothing.
    pub(crate) fn send(&self, ending: Ending) {
        // The stream holds thousands of bytes; when it is full, an ending is already waiting.
        let _ = (&self.0).write(&[ending as u8]);
    }
}

impl Endings {
    /// Blocks until the process should end.
    pub(crate) fn wait(&self) -> Ending {
        let mut byte = [0_u8];
        loop {
            match (&self.0).read(&mut byte) {
                Ok(1) => {
                    let ending = Ending::ALL.into_iter().find(|ending| *ending as u8 == byte[0]);
                    return ending.expect("only endings are written");
                }
                Err(fault) if fault.kind() == std::io::ErrorKind::Interrupted => {}
                _ => return Ending::LoopDied,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_ends_the_process_in_good_order() {
        let (sender, endings) = endings().expect("a pair");
        sender.listen_to_signals().expect("registered");
        for signal in ends() {
            signal_hook::low_level::raise(signal).expect("raised");
            assert_eq!(endings.wait(), Ending::Asked, "{signal}");
        }
        for ending in Ending::ALL {
            sender.send(ending);
            assert_eq!(endings.wait(), ending);
        }
    }

    #[test]
    fn a_signal_that_nohup_ignores_stays_ignored() {
        for (mask, ignored) in [
            ("SigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\n", true),
            ("SigBlk:\t0000000000000001\nSigIgn:\t0000000000001000\n", false),
            ("", false),
        ] {
            assert_eq!(is_ignored(mask, SIGHUP), ignored, "{mask}");
        }
    }

    #[test]
    fn a_file_that_grew_too_long_does_not_end_the_process() {
        fail_what_is_too_long().expect("registered");
        signal_hook::low_level::raise(SIGXFSZ).expect("raised");
    }
}
