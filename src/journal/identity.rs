//! The identity of a data directory, and the lock that keeps other processes out of it.
//!
//! The file `identity` in the data directory names two uuids: the exchange's, which names its log
//! file, and the journal's, which its segments carry. They are the same until a copied directory
//! is given an identity of its own; then the first changes and the second stays.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
use uuid::Uuid;

use super::Fault;
use super::disk::{Disk, is_locked, lock};
use super::open::Claimed;
use super::segment::{self, JournalId};

/// The two uuids of a data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) exchange: Uuid,
    pub(crate) journal: Uuid,
}

impl Identity {
    /// Where it is stored.
    pub(crate) fn path(data_dir: &Path) -> PathBuf {
        data_dir.join("identity")
    }

    /// The identity of `data_dir`; none in a new one.
    pub(crate) fn load(data_dir: &Path) -> Result<Option<Self>, Fault> {
        let path = Self::path(data_dir);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Fault::io("read", &path)(error)),
        };
        let uuid = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|uuid| Uuid::parse_str(uuid.trim()).ok())
        };
        match (uuid("exchange"), uuid("journal")) {
            (Some(exchange), Some(journal)) => Ok(Some(Self { exchange, journal })),
            _ => {
                Err(Fault::Foreign { path, what: "two lines `exchange UUID` and `journal UUID`; restore it" })
            }
        }
    }

    /// A new identity, for a journal that begins now.
    pub(crate) fn new() -> Self {
        let uuid = Uuid::new_v4();
        Self { exchange: uuid, journal: uuid }
    }

    /// A new exchange, for the segments that are there.
    pub(crate) fn renewed(self) -> Self {
        Self { exchange: Uuid::new_v4(), ..self }
    }

    pub(crate) fn store(&self, data_dir: &Path, disk: &Disk) -> Result<(), Fault> {
        let path = Self::path(data_dir);
        let text = format!(
            "# Which exchange this is. A copy of this directory needs --new-identity.\nexchange {}\njournal {}\n",
            self.exchange, self.journal
        );
        disk.replace(&path, text.as_bytes())
    }

    /// The uuid that segments carry.
    pub(crate) fn journal(&self) -> JournalId {
        *self.journal.as_bytes()
    }
}

/// The identity of the directory, as stored or to be stored, and whether it is new.
pub(crate) fn identify(data_dir: &Path, claimed: Claimed) -> Result<(Identity, bool), Fault> {
    Ok(match (Identity::load(data_dir)?, claimed) {
        (Some(identity), Claimed::AsItIs | Claimed::AdoptLog) => (identity, false),
        (Some(identity), Claimed::NewIdentity) => (identity.renewed(), true),
        (None, _) => {
            refuse_orphans(data_dir)?;
            (Identity::new(), true)
        }
    })
}

/// Refuses segments without an identity: a new one would make them another journal's.
fn refuse_orphans(data_dir: &Path) -> Result<(), Fault> {
    let directory = segment::directory(data_dir);
    if !directory.is_dir() {
        return Ok(());
    }
    match segment::numbers(&directory) {
        Ok(numbers) if numbers.is_empty() => Ok(()),
        Ok(_) | Err(Fault::SegmentMissing(_)) => {
            Err(Fault::IdentityMissing { identity: Identity::path(data_dir), segments: directory })
        }
        Err(fault) => Err(fault),
    }
}

/// The name of an exchange's log file, if no path is given for it.
pub(crate) fn log_name(exchange: Uuid) -> String {
    format!("outcry-{exchange}")
}

/// A data directory that this process has locked.
#[derive(Debug)]
pub(crate) struct DataDir {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    /// Its device and inode, from [`place`].
    pub(crate) place: [u64; 2],
}

impl DataDir {
    /// Makes the directory if need be, and locks it.
    pub(crate) fn lock(path: &Path, disk: &Disk) -> Result<Self, Fault> {
        disk.create_dir(path)?;
        let path = path.canonicalize().map_err(Fault::io("resolve", path))?;
        let file = File::open(&path).map_err(Fault::io("open", &path))?;
        if !lock(&file).map_err(Fault::io("lock", &path))? {
            return Err(Fault::DataDirInUse(path));
        }
        let about = file.metadata().map_err(Fault::io("look at", &path))?;
        Ok(Self { place: place(&about), path, file })
    }

    /// Makes the directory's name durable, whoever made it and however many folders above it: what is in it survives
    /// only with its name. A folder above that may not be read was there before.
    pub(crate) fn keep_name(&self, disk: &Disk) -> Result<(), Fault> {
        let [device, _] = self.place;
        for folder in self.path.ancestors().skip(1) {
            match File::open(folder).and_then(|file| Ok((file.metadata()?.dev(), file))) {
                Ok((its, file)) if its == device => disk.sync(&file, folder)?,
                _ => break,
            }
        }
        Ok(())
    }
}

/// Device and inode of a file or a directory: a copy has others.
pub(crate) fn place(about: &Metadata) -> [u64; 2] {
    [about.dev(), about.ino()]
}

/// What [`place`] is of the file that a path leads to, without a look at its times.
///
/// Since Linux 6.13 a file system notes that somebody was told of a file's times, and gives it new ones at its next
/// write. The file's inode is then to be written with each batch, and ext4 without a journal waits for that even with
/// `O_DSYNC`: a second write of the disk, where the times of a file that nobody looks at change every 4 ms at most.
pub(crate) fn place_at(path: &Path) -> io::Result<[u64; 2]> {
    let about = statx(CWD, path, AtFlags::empty(), StatxFlags::INO)?;
    Ok([makedev(about.stx_dev_major, about.stx_dev_minor), about.stx_ino])
}

/// Whether some process has locked `data_dir`; for tools that only read.
pub(crate) fn is_in_use(data_dir: &Path) -> Result<bool, Fault> {
    let file = File::open(data_dir).map_err(Fault::io("open", data_dir))?;
    is_locked(&file).map_err(Fault::io("lock", data_dir))
}

/// The id of this boot of this machine: what is in memory does not outlive it.
pub(crate) fn boot_id() -> Result<[u8; 16], Fault> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let text = std::fs::read_to_string(path).map_err(Fault::io("read", path))?;
    let uuid = Uuid::parse_str(text.trim());
    uuid.map(Uuid::into_bytes)
        .map_err(|_| Fault::Foreign { path: path.to_path_buf(), what: "the uuid of this boot; mount /proc" })
}
