//! Every operation that changes files, and what the system says about them: the seam at which tests make a
//! disk fail.
//!
//! A [`Disk`] counts the operations that can fail. A failing one writes half of what it was given and reports
//! the error. So does every later one, as a disk that failed once is not used again, unless a test mends it.
//! A test can also hold operations up, as a busy disk does.

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

// Not rustix's `DSYNC`: on Linux that is `O_SYNC`, which waits for the file's times too, a second write to the disk.
use libc::{O_DIRECT, O_DSYNC};
use rustix::fs::FallocateFlags;

use super::Fault;

/// Only the owner may read what people traded.
const FILE_MODE: u32 = 0o600;
/// Only the owner may look into the directory.
const DIRECTORY_MODE: u32 = 0o700;

/// How often a lock is tried before it counts as another process's.
const LOCK_TRIES: u32 = 20;
/// The pause between two tries: enough for whoever only looks.
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// The real disk, or one that fails at its n-th operation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    failing: Option<Arc<Failing>>,
}

#[derive(Debug)]
struct Failing {
    left: AtomicU64,
    errno: i32,
    gate: Gate,
    /// What was done to files, by their inodes.
    done: Mutex<Vec<Done>>,
}

/// An operation that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Wrote(u64),
    Synced(u64),
    /// The file got a name that others look for.
    Named(u64),
}

/// Where operations wait while a test holds them.
#[derive(Debug)]
struct Gate {
    /// Operations that may pass before the next ones wait.
    passes: Mutex<u64>,
    changed: Condvar,
    /// True while an operation waits.
    waits: AtomicBool,
}

impl Gate {
    fn pass(&self) {
        let mut passes = self.passes.lock().expect("nobody panics at the gate");
        while *passes == 0 {
            self.waits.store(true, Ordering::Relaxed);
            passes = self.changed.wait(passes).expect("nobody panics at the gate");
        }
        self.waits.store(false, Ordering::Relaxed);
        *passes = passes.saturating_sub(u64::from(*passes != u64::MAX));
    }
}

impl Disk {
    /// A disk whose first `good` operations succeed and whose others fail with `errno`.
    #[cfg(test)]
    pub(crate) fn failing_after(good: u64, errno: i32) -> Self {
        let gate =
            Gate { passes: Mutex::new(u64::MAX), changed: Condvar::new(), waits: AtomicBool::new(false) };
        let (left, done) = (AtomicU64::new(good), Mutex::default());
        Self { failing: Some(Arc::new(Failing { left, errno, gate, done })) }
    }

    /// What succeeded so far, in order.
    #[cfg(test)]
    pub(crate) fn done(&self) -> Vec<Done> {
        self.seam().done.lock().expect("nobody panics while noting").clone()
    }

    /// Makes every operation after the next `good` ones fail.
    #[cfg(test)]
    pub(crate) fn fail_after(&self, good: u64) {
        self.seam().left.store(good, Ordering::Relaxed);
    }

    /// Makes every operation from now on succeed.
    #[cfg(test)]
    pub(crate) fn mend(&self) {
        self.fail_after(u64::MAX);
    }

    /// Lets `passes` more operations through; the others wait for the next call.
    #[cfg(test)]
    pub(crate) fn let_through(&self, passes: u64) {
        let gate = &self.seam().gate;
        let mut left = gate.passes.lock().expect("nobody panics at the gate");
        *left = passes;
        gate.waits.store(false, Ordering::Relaxed);
        gate.changed.notify_all();
    }

    /// True if an operation waits.
    #[cfg(test)]
    pub(crate) fn is_held(&self) -> bool {
        self.seam().gate.waits.load(Ordering::Relaxed)
    }

    /// Makes every operation from now on fail.
    #[cfg(test)]
    pub(crate) fn fail(&self) {
        self.fail_after(0);
    }

    #[cfg(test)]
    fn seam(&self) -> &Failing {
        self.failing.as_ref().expect("only a disk that can fail is told to")
    }

    fn admit(&self) -> io::Result<()> {
        let Some(failing) = &self.failing else {
            return Ok(());
        };
        failing.gate.pass();
        let took =
            failing.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        took.map(|_| ()).map_err(|_| io::Error::from_raw_os_error(failing.errno))
    }

    fn note(&self, done: impl FnOnce() -> io::Result<Done>) {
        if let Some(failing) = &self.failing
            && let Ok(done) = done()
        {
            failing.done.lock().expect("nobody panics while noting").push(done);
        }
    }

    pub(crate) fn create_dir(&self, path: &Path) -> Result<(), Fault> {
        if path.is_dir() {
            return Ok(());
        }
        self.admit().and_then(|()| std::fs::create_dir_all(path)).map_err(Fault::io("create", path))?;
        std::fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE))
            .map_err(Fault::io("set permissions", path))?;
        // What is in the directory survives only if its name does. A parent that may not be read was there
        // before us.
        match path.parent().map(File::open) {
            Some(Ok(parent)) => self.sync(&parent, path),
            _ => Ok(()),
        }
    }

    pub(crate) fn create(&self, path: &Path) -> Result<File, Fault> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(FILE_MODE);
        self.admit().and_then(|()| options.open(path)).map_err(Fault::io("create", path))
    }

    /// Puts a file in the place of what is there, durable, whole or not at all.
    pub(crate) fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), Fault> {
        let unnamed = path.with_extension("new");
        let file = self.create(&unnamed)?;
        self.write_at(&file, bytes, 0).map_err(Fault::io("write", &unnamed))?;
        self.sync(&file, &unnamed)?;
        self.rename(&unnamed, path)
    }

    /// Opens a file for batches: a write returns once its data is on the disk, and bypasses the page cache if the file
    /// system can.
    pub(crate) fn open_synchronous(path: &Path, direct: Direct) -> Result<(File, Direct), Fault> {
        let open = |flags| OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
        if direct == Direct::Yes {
            match open(O_DSYNC | O_DIRECT) {
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                opened => return opened.map(|file| (file, Direct::Yes)).map_err(Fault::io("open", path)),
            }
        }
        let file = open(O_DSYNC).map_err(Fault::io("open", path))?;
        Ok((file, Direct::No))
    }

    pub(crate) fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        if let Err(error) = self.admit() {
            // A torn write, as a power cut leaves it. Whole blocks satisfy `O_DIRECT`.
            let torn = bytes.len() / 2 / 4_096 * 4_096;
            let _ = file.write_all_at(&bytes[..torn], offset);
            return Err(error);
        }
        file.write_all_at(bytes, offset)?;
        self.note(|| Ok(Done::Wrote(file.metadata()?.ino())));
        Ok(())
    }

    pub(crate) fn sync(&self, file: &File, path: &Path) -> Result<(), Fault> {
        self.admit().and_then(|()| file.sync_all()).map_err(Fault::io("sync", path))?;
        self.note(|| Ok(Done::Synced(file.metadata()?.ino())));
        Ok(())
    }

    /// Asks that the next reading of the file comes from the disk: after a write that failed, the page cache may hold
    /// what the disk does not, as if it had been written.
    pub(crate) fn forget_cached(path: &Path) -> Result<(), Fault> {
        let file = File::open(path).map_err(Fault::io("open", path))?;
        // Advice: file systems that take none have no cache of their own, or keep all they have in it.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        Ok(())
    }

    pub(crate) fn sync_dir(&self, path: &Path) -> Result<(), Fault> {
        let directory = File::open(path).map_err(Fault::io("open", path))?;
        self.sync(&directory, path)
    }

    /// Removes a file; that lasts once the directory is synced.
    pub(crate) fn remove(&self, path: &Path) -> Result<(), Fault> {
        self.admit().and_then(|()| std::fs::remove_file(path)).map_err(Fault::io("remove", path))
    }

    /// Renames `from` to `to`, replacing it, and syncs the directory.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<(), Fault> {
        self.admit().and_then(|()| std::fs::rename(from, to)).map_err(Fault::io("rename", from))?;
        self.note(|| Ok(Done::Named(std::fs::metadata(to)?.ino())));
        self.sync_dir(to.parent().expect("a file has a directory"))
    }
}

/// The files in `directory` whose names end so, in no order; none if it is not there.
pub(crate) fn files_with(directory: &Path, extension: &str) -> Result<Vec<PathBuf>, Fault> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(Fault::io("list", directory))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(Fault::io("list", directory))?.path();
        if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
    Ok(found)
}

/// Whether writes bypass the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direct {
    Yes,
    No,
}

/// The unit in which the system counts a file's room, whatever its file system uses.
const BLOCK_BYTES: u64 = 512;

/// Reserves `bytes` of `file` from `at` on, so that no store into its mapping finds the file system full.
pub(crate) fn reserve(file: &File, at: u64, bytes: u64) -> io::Result<()> {
    Ok(rustix::fs::fallocate(file, FallocateFlags::empty(), at, bytes)?)
}

/// Reserves what `file` lacks to hold `bytes`; its length and content stay as they are. A file system that
/// cannot do that reports no error here: `reserve` will.
pub(crate) fn reserve_keeping_length(file: &File, bytes: u64) -> io::Result<()> {
    let disk = rustix::fs::fstatvfs(file)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    // Some file systems take all that is free, from everybody, before they fail. One in memory may have no
    // bound.
    if disk.f_blocks != 0 && free.saturating_add(file.metadata()?.blocks() * BLOCK_BYTES) < bytes {
        return Err(rustix::io::Errno::NOSPC.into());
    }
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
        reserved => Ok(reserved?),
    }
}

/// Opens a file for a shared mapping, and makes it if need be.
pub(crate) fn open_shared(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(FILE_MODE).open(path)
}

/// Locks `file` for this process alone; false if another one has it.
///
/// Whoever only looks (`outcry journal`, a neighbour that starts) holds the lock for an instant, so several
/// tries are made before it counts as another process's.
pub(crate) fn lock(file: &File) -> io::Result<bool> {
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(false)
}

/// Whether some process has locked `file`.
pub(crate) fn is_locked(file: &File) -> io::Result<bool> {
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map(|()| false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The bytes that a process may still take on the disk of `path`.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(path)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// The name of the file system under `file` if that is in memory: what is written there ends with the
/// machine, whatever syncing says.
pub(crate) fn in_memory(file: &File) -> io::Result<Option<&'static str>> {
    const TMPFS: u32 = 0x0102_1994;
    const RAMFS: u32 = 0x8584_58f6;
    let kind = rustix::fs::fstatfs(file)?.f_type;
    Ok(match u32::try_from(kind & i64::from(u32::MAX)) {
        Ok(TMPFS) => Some("tmpfs"),
        Ok(RAMFS) => Some("ramfs"),
        _ => None,
    })
}
