//! The least that an answer waits for the disk: bare writes of a block past the page cache, each durable when it returns.
//! The round trip compares itself with them, and so does the rig.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// A block: the least that a disk writes, and what one order takes.
const BLOCK: usize = 4_096;

/// Blocks of the file, which are written one after another and then anew.
const BLOCKS: u64 = 4_096;

/// A file of written blocks: writing one anew changes nothing else.
pub(crate) struct Bare {
    file: File,
    /// Two blocks, of which an aligned one is written, as `O_DIRECT` wants it.
    memory: Vec<u8>,
    written: u64,
}

impl Bare {
    /// Makes the file in `folder`.
    pub(crate) fn make(folder: &Path) -> io::Result<Self> {
        let path = folder.join("blocks");
        std::fs::write(&path, vec![0; BLOCK * usize::try_from(BLOCKS).expect("few")])?;
        File::open(&path)?.sync_all()?;
        let flags = libc::O_DIRECT | libc::O_DSYNC;
        let file = OpenOptions::new().write(true).custom_flags(flags).open(&path)?;
        Ok(Self { file, memory: vec![7; 2 * BLOCK], written: 0 })
    }

    /// Writes a block and returns how long that took.
    pub(crate) fn write(&mut self) -> io::Result<Duration> {
        let block = &self.memory[self.memory.as_ptr().align_offset(BLOCK)..][..BLOCK];
        let at = self.written % BLOCKS * BLOCK as u64;
        self.written += 1;
        let start = Instant::now();
        self.file.write_all_at(block, at)?;
        Ok(start.elapsed())
    }
}
