//! The least that an answer waits for the disk: bare writes of a block, each durable when it returns.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// A block: the least that a disk writes, and what one order takes.
const BLOCK: usize = 4096;

/// Blocks of the file, which are written one after another and then anew.
const BLOCKS: u64 = 4096;

/// A file of written blocks: writing one anew changes nothing else.
pub(crate) struct Bare {
    file: File,
    /// Two blocks, of which an aligned one is written, as `O_DIRECT` wants it.
    memory: Vec<u8>,
    written: u64,
}

impl Bare {
    /// Makes the file in `folder`.
    pub(crate) fn make(folder: &Path) -> Self {
        let path = folder.join("blocks");
        std::fs::write(&path, vec![0; BLOCK * usize::try_from(BLOCKS).expect("few")]).expect("there is room");
        File::open(&path).and_then(|file| file.sync_all()).expect("it can be synced");
        let flags = libc::O_DIRECT | libc::O_DSYNC;
        let file = OpenOptions::new()
            .write(true)
            .custom_flags(flags)
            .open(&path)
            .expect("a disk that takes O_DIRECT");
        Self { file, memory: vec![7; 2 * BLOCK], written: 0 }
    }

    /// Writes `count` blocks and returns how long each took.
    pub(crate) fn write(&mut self, count: usize) -> Vec<Duration> {
        let aligned = self.memory.as_ptr().align_offset(BLOCK);
        let block = &self.memory[aligned..][..BLOCK];
        let mut one = || {
            let at = self.written % BLOCKS * BLOCK as u64;
            self.written += 1;
            let start = Instant::now();
            self.file.write_all_at(block, at).expect("the disk takes it");
            start.elapsed()
        };
        (0..count).map(|_| one()).collect()
    }
}
