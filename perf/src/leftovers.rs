//! What a run would leave behind if a signal ended it: a server that spins, its folder in shared memory, a benchmark.
//!
//! Destructors do not run then. So processes and folders are listed here while they exist, and a thread that sleeps
//! until a signal comes removes them before the process ends. That thread keeps the list locked, so nothing new
//! can be started meanwhile. A process stays listed until it has been waited for, so its pid never belongs to
//! another one. Each has a process group of its own, and whatever it starts goes with it.
//!
//! Nothing can be done while the rig is killed. So the kernel kills a server with it ([`held`]), and the next run removes
//! folders that nobody holds: each is locked (`flock`) as long as the process that made it lives.

use std::fs::File;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getppid, kill_process_group,
    set_parent_process_death_signal, waitid, waitpid,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The exit code of a process that a signal ended is this plus the signal's number, as in shells.
const SIGNALLED: i32 = 128;

/// How the names of folders begin that the next run removes if nobody holds them.
const FOLDERS: &str = "outcry-perf-held-";

/// How those of others begin.
const LASTING_FOLDERS: &str = "outcry-perf-";

/// A folder that nobody holds is not removed before it has been left alone so long: it may be new, and not yet locked.
const LEFT_ALONE: Duration = Duration::from_mins(1);

/// The word with which the rig starts itself to become another program, which dies with the rig.
const HELD: &str = "held";

/// A command for `program` that the kernel kills when this process ends, however it does.
///
/// That can only be asked for by the process itself, before it becomes the program; and safe code cannot run between
/// a fork and its exec. So the rig starts itself, which asks and then becomes the program: [`become_held`].
pub(crate) fn held(program: &Path) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg(HELD).arg(std::process::id().to_string()).arg(program);
    command
}

/// Becomes the program of [`held`] if this process was started so; returns only if it was not, or could not.
pub(crate) fn become_held() -> Option<String> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != HELD {
        return None;
    }
    let (parent, program) = words.next().zip(words.next())?;
    if let Err(fault) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return Some(format!("prctl: {fault}"));
    }
    let is_orphan = getppid().is_none_or(|pid| parent.to_str() != Some(&pid.as_raw_nonzero().to_string()));
    if is_orphan {
        return Some("the rig has ended meanwhile".to_owned());
    }
    let fault = Command::new(&program).args(words).exec();
    Some(format!("{}: {fault}", program.display()))
}

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
pub(crate) struct Folder {
    folder: tempfile::TempDir,
    /// Locked while this process lives.
    _lock: File,
}

impl Folder {
    /// Makes a new folder in `place`, and removes those there that runs left which were killed.
    pub(crate) fn new_in(place: &Path) -> Result<Self, String> {
        Self::named_in(place, FOLDERS)
    }

    /// Makes a new folder in `place` for a process that goes on if this one is killed: no run removes it.
    pub(crate) fn lasting_in(place: &Path) -> Result<Self, String> {
        Self::named_in(place, LASTING_FOLDERS)
    }

    fn named_in(place: &Path, prefix: &str) -> Result<Self, String> {
        let mut left = left();
        remove_unheld(place);
        let fault = |fault: std::io::Error| format!("{}: {fault}", place.display());
        let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(place).map_err(fault)?;
        left.folders.push(folder.path().to_path_buf());
        let lock = File::open(folder.path()).map_err(fault)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| fault(error.into()))?;
        Ok(Self { folder, _lock: lock })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of runs in `place` whose processes have ended without removing them.
fn remove_unheld(place: &Path) {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(FOLDERS)) {
        let Ok(folder) = File::open(entry.path()) else { continue };
        let modified = folder.metadata().and_then(|metadata| metadata.modified());
        let is_old = modified.is_ok_and(|at| at.elapsed().is_ok_and(|passed| LEFT_ALONE <= passed));
        if is_old && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // Ignored: another run may remove it at the same time.
            let _ = std::fs::remove_dir_all(entry.path());
        }
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
    fn a_folder_goes_if_nobody_holds_it_and_it_was_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let held = Folder::new_in(place.path()).unwrap();
        for (name, is_old, stays) in [
            ("outcry-perf-held-a", true, false),
            ("outcry-perf-held-b", false, true),
            // Of a benchmark, and of somebody else.
            ("outcry-perf-c", true, true),
            ("d", true, true),
        ] {
            let folder = place.path().join(name);
            std::fs::create_dir_all(folder.join("data")).unwrap();
            for (folder, is_old) in [(folder.as_path(), is_old), (held.path(), true)] {
                let at = std::time::SystemTime::now() - if is_old { LEFT_ALONE } else { Duration::ZERO };
                File::open(folder).unwrap().set_modified(at).unwrap();
            }
            let next = Folder::new_in(place.path()).unwrap();
            assert_eq!(folder.exists(), stays, "{name}");
            assert!(held.path().exists() && next.path().exists());
        }
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
