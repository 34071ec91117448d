//! What a run would leave behind if a signal ended it: a server that spins, its folder in shared memory, a benchmark.
//!
//! Destructors do not run then. So processes and folders are listed here while they exist, and a thread that sleeps
//! until a signal comes removes them before the process ends. That thread keeps the list locked, so nothing new
//! can be started meanwhile. A process stays listed until it has been waited for, so its pid never belongs to
//! another one. Each has a process group of its own, and whatever it starts goes with it.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, waitid, waitpid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The exit code of a process that a signal ended is this plus the signal's number, as in shells.
const SIGNALLED: i32 = 128;

#[derive(Default)]
struct Left {
    processes: Vec<Pid>,
    folders: Vec<PathBuf>,
}

static LEFT: Mutex<Left> = Mutex::new(Left { processes: Vec::new(), folders: Vec::new() });

fn left() -> MutexGuard<'static, Left> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on a signal removes everything on the list and ends the process.
pub(crate) fn go_with_a_signal() -> Result<(), String> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let fault = |fault: std::io::Error| format!("signals: {fault}");
        let (mut told, teller) = UnixStream::pair().map_err(fault)?;
        signal_hook::low_level::pipe::register(signal, teller).map_err(fault)?;
        let wait = move || {
            if told.read_exact(&mut [0]).is_ok() {
                let mut left = left();
                left.remove();
                std::process::exit(SIGNALLED + signal);
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(fault)?;
    }
    Ok(())
}

impl Left {
    /// Kills every process and removes every folder: nothing of an interrupted run is wanted.
    fn remove(&mut self) {
        for pid in self.processes.drain(..) {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
        for folder in self.folders.drain(..) {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// Starts a process and lists it.
pub(crate) fn spawn(command: &mut Command) -> std::io::Result<Child> {
    let mut left = left();
    let child = command.process_group(0).spawn()?;
    left.processes.push(Pid::from_child(&child));
    Ok(child)
}

/// How a listed process has ended, if it has.
pub(crate) fn try_wait(child: &mut Child) -> std::io::Result<Option<ExitStatus>> {
    let mut left = left();
    let ended = child.try_wait()?;
    if ended.is_some() {
        left.processes.retain(|pid| *pid != Pid::from_child(child));
    }
    Ok(ended)
}

/// Starts a process, lists it, and waits for its end.
pub(crate) fn run(command: &mut Command) -> std::io::Result<ExitStatus> {
    let mut child = spawn(command)?;
    // It stays a zombie, whose pid nobody else gets, until it has left the list.
    waitid(WaitId::Pid(Pid::from_child(&child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    try_wait(&mut child).map(|ended| ended.expect("it has ended"))
}

/// A folder that is removed when this value is dropped, or by a signal.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    /// Makes a new folder in `place`.
    pub(crate) fn new_in(place: &Path) -> Result<Self, String> {
        let mut left = left();
        let folder = tempfile::Builder::new().prefix("outcry-perf-").tempdir_in(place);
        let folder = folder.map_err(|fault| format!("{}: {fault}", place.display()))?;
        left.folders.push(folder.path().to_path_buf());
        Ok(Self(folder))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let mut left = left();
        // Ignored: somebody else may have removed the folder.
        let _ = std::fs::remove_dir_all(self.path());
        left.folders.retain(|path| path != self.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn what_is_left_ends_and_goes_whole() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("outcry-perf-x");
        std::fs::create_dir_all(folder.join("data/journal")).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo; wait"]).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap();
        let mut said = child.stdout.take().unwrap();
        said.read_exact(&mut [0]).unwrap();
        let pid = Pid::from_child(&child);
        Left { processes: vec![pid], folders: vec![folder.clone()] }.remove();
        assert!(!folder.exists());
        assert!(child.wait().is_err(), "it was waited for");
        assert_eq!(said.read_to_end(&mut Vec::new()).unwrap(), 0, "what it started has ended too");
    }

    #[test]
    fn what_ends_by_itself_is_not_left() {
        let place = tempfile::tempdir().unwrap();
        let path = {
            let folder = Folder::new_in(place.path()).unwrap();
            assert!(left().folders.contains(&folder.path().to_path_buf()));
            folder.path().to_path_buf()
        };
        assert!(!path.exists() && !left().folders.contains(&path));
        let mut child = spawn(&mut Command::new("true")).unwrap();
        let pid = Pid::from_child(&child);
        assert!(left().processes.contains(&pid));
        while try_wait(&mut child).unwrap().is_none() {
            std::thread::yield_now();
        }
        assert!(!left().processes.contains(&pid));
        assert_eq!(run(Command::new("sh").args(["-c", "exit 3"])).unwrap().code(), Some(3));
    }
}
