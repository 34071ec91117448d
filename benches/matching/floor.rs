//! The floor: a plain book with price-time priority and 32-byte ids. It has no owners, no money, no expiry, no ladder
//! from a pool, no second market.

use super::workload::Side;
use outcry::memory::ahead;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node {
    next: u32,
    previous: u32,
    shares: u32,
    order: u32,
    price: u16,
    side: Side,
}

#[derive(Clone, Copy)]
struct Level {
    first: u32,
    last: u32,
}

/// One book.
pub(crate) struct Floor {
    nodes: Vec<Node>,
    digests: Vec<[u8; 32]>,
    free: Vec<u32>,
    levels: [Vec<Level>; 2],
    occupied: [Vec<u64>; 2],
    table: Vec<u64>,
    mask: usize,
}

impl Floor {
    pub(crate) fn new(ticks: u16, orders_max: usize) -> Self {
        let places = (orders_max * 2).next_power_of_two();
        let levels = || vec![Level { first: NONE, last: NONE }; usize::from(ticks) + 1];
        let words = || vec![0; usize::from(ticks) / 64 + 1];
        Self {
            nodes: Vec::with_capacity(orders_max),
            digests: Vec::with_capacity(orders_max),
            free: Vec::with_capacity(orders_max),
            levels: [levels(), levels()],
            occupied: [words(), words()],
            table: vec![0; places],
            mask: places - 1,
        }
    }

    fn key(digest: &[u8; 32]) -> u64 {
        u64::from_le_bytes(*digest.first_chunk().expect("eight of 32 bytes"))
    }

    fn home(&self, key: u64) -> usize {
        usize::try_from(key >> 32).expect("32 bits") & self.mask
    }

    pub(crate) fn add(&mut self, digest: &[u8; 32], order: u32, side: Side, price: u16, shares: u32) {
        let level = &mut self.levels[side as usize][usize::from(price)];
        let node = Node { next: NONE, previous: level.last, shares, order, price, side };
        let slot = if let Some(slot) = self.free.pop() {
            self.nodes[slot as usize] = node;
            self.digests[slot as usize] = *digest;
            slot
        } else {
            self.nodes.push(node);
            self.digests.push(*digest);
            u32::try_from(self.nodes.len() - 1).expect("slots are 32 bits")
        };
        if level.last == NONE {
            level.first = slot;
            self.occupied[side as usize][usize::from(price) / 64] |= 1 << (price % 64);
        } else {
            self.nodes[level.last as usize].next = slot;
        }
        level.last = slot;
        let key = Self::key(digest);
        let mut place = self.home(key);
        while self.table[place] != 0 {
            place = (place + 1) & self.mask;
        }
        self.table[place] = key << 32 | u64::from(slot + 1);
    }

    fn place_of(&self, digest: &[u8; 32]) -> Option<(usize, u32)> {
        let key = Self::key(digest);
        let mut place = self.home(key);
        while self.table[place] != 0 {
            let slot = u32::try_from(self.table[place] & 0xffff_ffff).expect("32 bits") - 1;
            if self.table[place] >> 32 == key & 0xffff_ffff && self.digests[slot as usize] == *digest {
                return Some((place, slot));
            }
            place = (place + 1) & self.mask;
        }
        None
    }

    pub(crate) fn cancel(&mut self, digest: &[u8; 32]) -> bool {
        let Some((place, slot)) = self.place_of(digest) else {
            return false;
        };
        self.close_gap(place);
        self.unlink(slot);
        true
    }

    /// Prefetches the place in the table at which the search for this digest begins.
    pub(crate) fn prefetch_bucket(&self, digest: &[u8; 32]) {
        ahead::prefetch(&self.table[self.home(Self::key(digest))]);
    }

    /// The order that probably has this digest.
    pub(crate) fn guess(&self, digest: &[u8; 32]) -> Option<u32> {
        let key = Self::key(digest);
        let mut place = self.home(key);
        while self.table[place] != 0 {
            if self.table[place] >> 32 == key & 0xffff_ffff {
                return Some(u32::try_from(self.table[place] & 0xffff_ffff).expect("32 bits") - 1);
            }
            place = (place + 1) & self.mask;
        }
        None
    }

    /// The order that trades first.
    pub(crate) fn first(&self, side: Side) -> Option<u32> {
        self.best(side).map(|price| self.levels[side as usize][price].first)
    }

    /// Prefetches an order.
    pub(crate) fn prefetch(&self, slot: u32) {
        ahead::prefetch(&self.nodes[slot as usize]);
        ahead::prefetch(&self.digests[slot as usize]);
    }

    /// An order's digest.
    pub(crate) fn digest(&self, slot: u32) -> &[u8; 32] {
        &self.digests[slot as usize]
    }

    /// Moves later entries up, so that a search may stop at an empty place.
    fn close_gap(&mut self, mut hole: usize) {
        let mut place = hole;
        loop {
            place = (place + 1) & self.mask;
            if self.table[place] == 0 {
                self.table[hole] = 0;
                return;
            }
            let slot = usize::try_from((self.table[place] & 0xffff_ffff) - 1).expect("32 bits");
            let home = self.home(Self::key(&self.digests[slot]));
            if (place.wrapping_sub(home) & self.mask) >= (place.wrapping_sub(hole) & self.mask) {
                self.table[hole] = self.table[place];
                hole = place;
            }
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Node { next, previous, price, side, .. } = self.nodes[slot as usize];
        let level = &mut self.levels[side as usize][usize::from(price)];
        if previous == NONE {
            level.first = next;
        } else {
            self.nodes[previous as usize].next = next;
        }
        if next == NONE {
            level.last = previous;
        } else {
            self.nodes[next as usize].previous = previous;
        }
        if level.first == NONE {
            self.occupied[side as usize][usize::from(price) / 64] &= !(1 << (price % 64));
        }
        self.free.push(slot);
    }

    fn best(&self, side: Side) -> Option<usize> {
        let words = &self.occupied[side as usize];
        let found = match side {
            Side::Bid => words.iter().rposition(|word| *word != 0),
            Side::Ask => words.iter().position(|word| *word != 0),
        };
        found.map(|index| {
            let bit = match side {
                Side::Bid => words[index].ilog2(),
                Side::Ask => words[index].trailing_zeros(),
            };
            index * 64 + bit as usize
        })
    }

    pub(crate) fn take(&mut self, side: Side, mut shares: u32, mut fill: impl FnMut(u32, u32, u16)) {
        while shares > 0 {
            let Some(price) = self.best(side) else {
                return;
            };
            let slot = self.levels[side as usize][price].first;
            let next = self.nodes[slot as usize].next;
            if next != NONE {
                self.prefetch(next);
            }
            let node = &mut self.nodes[slot as usize];
            let traded = node.shares.min(shares);
            shares -= traded;
            node.shares -= traded;
            fill(node.order, traded, node.price);
            if node.shares == 0 {
                let digest = self.digests[slot as usize];
                let (place, _) = self.place_of(&digest).expect("what rests is in the table");
                self.close_gap(place);
                self.unlink(slot);
            }
        }
    }
}
