//! The words that ladders are made of: a buddy allocator over one slice taken at the start.
//!
//! The six ladder sizes (11, 102, 204, 407, 1,016 and 10,159 words) fill 62 to 99 % of the next
//! power of two, so blocks of a power of two waste little, and a block that is given back joins its
//! free buddy: once every book is empty, the pool is as it was at the start.
//!
//! - POOL-1: a free block of order `k` starts at a multiple of 2^k words and is in list `k`; no two
//!   free blocks of one order are buddies.
//! - POOL-2: what a block held before is not cleared; its next user writes before it reads.
//!
//! Free blocks are linked through their own first two words (next and previous, plus one).

/// The smallest block is 2^4 words, the largest 2^14: a ladder of the finest tick.
const ORDER_MIN: u32 = 4;
const ORDER_MAX: u32 = 14;
const ORDERS: usize = (ORDER_MAX - ORDER_MIN + 1) as usize;

/// A block in use. Giving it back twice is a bug that POOL-1 notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    start: usize,
    order: u32,
}

/// One slice, divided into blocks.
#[derive(Debug)]
pub struct Pool {
    words: Box<[u64]>,
    /// For each block order the start of the first free block plus one, 0 for none.
    heads: [u64; ORDERS],
    /// One byte per smallest block: the order of the free block that starts there, 0 for none.
    free: Box<[u8]>,
    /// Words of the blocks in use.
    taken: usize,
}

impl Pool {
    /// A pool of at most `bytes`, all free.
    #[must_use]
    pub fn with_bytes(bytes: u64) -> Self {
        let grain = 1 << ORDER_MIN;
        let words = usize::try_from(bytes / 8).expect("a pool fits memory") / grain * grain;
        let mut pool = Self {
            words: vec![0; words].into_boxed_slice(),
            heads: [0; ORDERS],
            free: vec![0; words / grain].into_boxed_slice(),
            taken: 0,
        };
        let mut start = 0;
        while start < words {
            let fits = (words - start).ilog2().min(ORDER_MAX);
            let aligned = if start == 0 { ORDER_MAX } else { start.trailing_zeros().min(ORDER_MAX) };
            let order = fits.min(aligned);
            pool.link(Block { start, order });
            start += 1 << order;
        }
        pool
    }

    /// Bytes of the blocks in use.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.taken as u64 * 8
    }

    /// Whether [`Pool::take`] of this many words would succeed.
    #[must_use]
    pub fn has(&self, words: usize) -> bool {
        (order_of(words)..=ORDER_MAX).any(|order| self.heads[list(order)] != 0)
    }

    /// Takes a block of at least `words` words.
    pub fn take(&mut self, words: usize) -> Option<Block> {
        let wanted = order_of(words);
        let order = (wanted..=ORDER_MAX).find(|order| self.heads[list(*order)] != 0)?;
        let start = usize::try_from(self.heads[list(order)] - 1).expect("a start is an index");
        self.unlink(Block { start, order });
        for half in (wanted..order).rev() {
            self.link(Block { start: start + (1 << half), order: half });
        }
        self.taken += 1 << wanted;
        Some(Block { start, order: wanted })
    }

    /// Gives a block back; its free buddies join it.
    pub fn give(&mut self, block: Block) {
        assert!(self.free[block.start >> ORDER_MIN] == 0, "POOL-1: a block is given back once");
        let Block { mut start, mut order } = block;
        self.taken -= 1 << order;
        while order < ORDER_MAX {
            let buddy = Block { start: start ^ (1 << order), order };
            if self.order_free_at(buddy.start) != Some(order) {
                break;
            }
            self.unlink(buddy);
            start = start.min(buddy.start);
            order += 1;
        }
        self.link(Block { start, order });
    }

    /// The words of a block in use.
    #[must_use]
    pub fn words(&self, block: Block) -> &[u64] {
        &self.words[block.start..block.start + (1 << block.order)]
    }

    /// One word of a block in use: without a slice of the block, a level is found by one comparison.
    #[must_use]
    pub fn word(&self, block: Block, at: usize) -> u64 {
        debug_assert!(at < 1 << block.order, "words of the block");
        self.words[block.start + at]
    }

    /// One word of a block in use, to change.
    pub fn word_mut(&mut self, block: Block, at: usize) -> &mut u64 {
        debug_assert!(at < 1 << block.order, "words of the block");
        &mut self.words[block.start + at]
    }

    /// The words of a block in use, to change.
    pub fn words_mut(&mut self, block: Block) -> &mut [u64] {
        &mut self.words[block.start..block.start + (1 << block.order)]
    }

    fn order_free_at(&self, start: usize) -> Option<u32> {
        self.free.get(start >> ORDER_MIN).filter(|order| **order != 0).map(|order| u32::from(*order))
    }

    fn link(&mut self, block: Block) {
        let name = block.start as u64 + 1;
        let next = std::mem::replace(&mut self.heads[list(block.order)], name);
        self.words[block.start] = next;
        self.words[block.start + 1] = 0;
        if let Some(next) = index(next) {
            self.words[next + 1] = name;
        }
        self.free[block.start >> ORDER_MIN] = u8::try_from(block.order).expect("orders are small");
    }

    fn unlink(&mut self, block: Block) {
        let (next, previous) = (self.words[block.start], self.words[block.start + 1]);
        match index(previous) {
            Some(previous) => self.words[previous] = next,
            None => self.heads[list(block.order)] = next,
        }
        if let Some(next) = index(next) {
            self.words[next + 1] = previous;
        }
        self.free[block.start >> ORDER_MIN] = 0;
    }
}

/// The order of the smallest block that holds `words`.
fn order_of(words: usize) -> u32 {
    let order = words.next_power_of_two().trailing_zeros().max(ORDER_MIN);
    assert!(order <= ORDER_MAX, "no ladder is larger than the finest tick's");
    order
}

const fn list(order: u32) -> usize {
    (order - ORDER_MIN) as usize
}

fn index(name: u64) -> Option<usize> {
    name.checked_sub(1).map(|start| usize::try_from(start).expect("a start is an index"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::ladder::Ladder;
    use crate::domain::Tick;
    use proptest::prelude::*;

    #[test]
    fn a_pool_gives_what_it_has_and_then_nothing() {
        let finest = Ladder::words(Tick::ALL[5]);
        let mut pool = Pool::with_bytes(2 * 8 * (1 << ORDER_MAX));
        let blocks = [pool.take(finest).unwrap(), pool.take(finest).unwrap()];
        assert!(!pool.has(1));
        assert_eq!(pool.take(1), None);
        pool.give(blocks[0]);
        assert_eq!(pool.take(finest), Some(blocks[0]));
        assert!(!pool.has(1));
    }

    proptest! {
        #[test]
        fn blocks_never_overlap_and_all_join_again(
            acts in proptest::collection::vec((any::<bool>(), 0_usize..6, 0_usize..64), 1..200),
        ) {
            let mut pool = Pool::with_bytes(8 * (1 << ORDER_MAX) + 8 * 48);
            let free = pool.free.clone();
            let mut taken: Vec<Block> = Vec::new();
            for (take, tick, which) in acts {
                if take {
                    let words = Ladder::words(Tick::ALL[tick]);
                    let had = pool.has(words);
                    let block = pool.take(words);
                    prop_assert_eq!(had, block.is_some());
                    if let Some(block) = block {
                        prop_assert!(words <= pool.words(block).len());
                        pool.words_mut(block).fill(u64::MAX);
                        let end = block.start + (1 << block.order);
                        let apart = |other: &Block| {
                            end <= other.start || other.start + (1 << other.order) <= block.start
                        };
                        prop_assert!(taken.iter().all(apart));
                        taken.push(block);
                    }
                } else if !taken.is_empty() {
                    pool.give(taken.swap_remove(which % taken.len()));
                }
            }
            let words: usize = taken.iter().map(|block| pool.words(*block).len()).sum();
            prop_assert_eq!(pool.bytes(), 8 * words as u64);
            for block in taken {
                pool.give(block);
            }
            prop_assert_eq!(pool.bytes(), 0);
            prop_assert_eq!(&pool.free, &free);
            prop_assert!(pool.has(Ladder::words(Tick::ALL[5])));
        }
    }
}
