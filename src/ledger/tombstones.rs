//! Cancels that wait for their orders, as the log says.
//!
//! A new one pushes out those that are over by then, or many of them. Whatever is over has the lowest or the highest
//! ends, so nothing else is looked at, however many wait.

use std::collections::{BTreeSet, HashMap};

use crate::domain::{OrderId, TimeMs, WalletNo};
use crate::journal::layout::Tombstone;

/// The most that a new one pushes out, as all may be over at once.
const PUSHED_OUT_MAX: usize = 4_096;

#[derive(Clone, Debug, Default)]
pub(super) struct Tombstones {
    pub(super) rows: HashMap<(OrderId, WalletNo), Tombstone>,
    ends: BTreeSet<(TimeMs, OrderId, WalletNo)>,
}

impl Tombstones {
    /// Adds one that was just left, and drops up to [`PUSHED_OUT_MAX`] that are over.
    pub(super) fn leave(&mut self, tombstone: &Tombstone) {
        let now = tombstone.left();
        let is_over = |end: &&(TimeMs, OrderId, WalletNo)| Tombstone::is_over(end.0, now);
        for _ in 0..PUSHED_OUT_MAX {
            let over = self.ends.first().filter(is_over).or(self.ends.last().filter(is_over));
            let Some(&(_, id, principal)) = over else { break };
            self.remove(&id, principal);
        }
        self.put(tombstone.clone());
    }

    /// Adds one and drops none.
    pub(super) fn put(&mut self, tombstone: Tombstone) {
        let Tombstone { id, principal, until, .. } = tombstone;
        self.remove(&id, principal);
        self.ends.insert((until, id, principal));
        self.rows.insert((id, principal), tombstone);
    }

    /// Its order came.
    pub(super) fn remove(&mut self, id: &OrderId, principal: WalletNo) {
        if let Some(old) = self.rows.remove(&(*id, principal)) {
            self.ends.remove(&(old.until, *id, principal));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: u64 = Tombstone::LIFE_MS;

    /// Leaves one for each id at its time; returns the ids that wait afterwards.
    fn waiting(left: &[(u8, u64)]) -> Vec<u8> {
        let mut tombstones = Tombstones::default();
        for &(id, time) in left {
            let id = OrderId([id; 32]);
            let until = TimeMs(time + LIFE);
            tombstones.leave(&Tombstone { id, principal: WalletNo(1), until, time: TimeMs(time) });
            assert_eq!(tombstones.rows.len(), tombstones.ends.len());
        }
        let mut ids: Vec<u8> = tombstones.rows.keys().map(|(id, _)| id.0[0]).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn a_new_one_pushes_out_those_that_are_over() {
        for (left, waits) in [
            (&[(1, 0), (2, 1)][..], &[1, 2][..]),
            (&[(1, 0), (2, LIFE - 1)], &[1, 2]),
            (&[(1, 0), (2, LIFE)], &[2]),
            (&[(2, 1), (1, 0), (3, LIFE)], &[2, 3]),
            // Left again, it waits from then on.
            (&[(1, 0), (1, 9), (2, LIFE)], &[1, 2]),
            // The clock was set back by more than anything waits.
            (&[(1, 9 * LIFE), (2, 0)], &[2]),
            (&[(1, 9 * LIFE), (2, 8 * LIFE)], &[1, 2]),
        ] {
            assert_eq!(waiting(left), waits, "{left:?}");
        }
    }
}
