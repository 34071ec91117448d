//! Turns that are fair by address: who asks for much waits for itself, and an address that comes new stands behind what
//! is being done and not behind all that came before it.
//!
//! The idea is start-time fair queuing (Goyal, Vin and Cheng, 1996). Work has a **virtual time**, in units of what it
//! costs. A request may begin at the later of now and the end of its address's last one, and that end then moves on by
//! its cost. The earliest beginning is next, and is now. Whoever was idle begins now, so nobody saves up.
//!
//! Addresses that share a row of the table share its turns.

use super::Party;

/// Rows of the table: 8 KiB, and few addresses that are busy at once share one.
const ROWS: usize = 1 << 10;

const _: () = assert!(ROWS.is_power_of_two(), "a party's row is a part of its bits");

/// The virtual time of one queue. What a unit is, is up to the queue.
#[derive(Debug)]
pub(crate) struct VirtualTime {
    now: u64,
    /// The end of the last request of each row's addresses.
    ends: Box<[u64; ROWS]>,
}

impl VirtualTime {
    pub(crate) fn new() -> Self {
        Self { now: 0, ends: Box::new([0; ROWS]) }
    }

    /// When the next request of `address` may begin.
    pub(crate) fn beginning(&self, address: Party) -> u64 {
        self.now.max(self.ends[address.row(ROWS)])
    }

    /// Charges `address` for a request that begins when its next one may, and returns that beginning.
    pub(crate) fn charge(&mut self, address: Party, cost: u64) -> u64 {
        let beginning = self.beginning(address);
        self.ends[address.row(ROWS)] = beginning.saturating_add(cost);
        beginning
    }

    /// The request that began then has its turn. Time does not go back.
    pub(crate) fn turn_to(&mut self, beginning: u64) {
        self.now = self.now.max(beginning);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_begins_behind_its_address_s_last_one_and_never_before_now() {
        let (mut time, [one, new]) = (VirtualTime::new(), [1, 2].map(Party::of_row));
        assert_eq!([5, 3].map(|cost| time.charge(one, cost)), [0, 5]);
        assert_eq!([one, new].map(|address| time.beginning(address)), [8, 0]);
        for (beginning, expected) in [(5, [8, 5]), (0, [8, 5]), (9, [9, 9])] {
            time.turn_to(beginning);
            assert_eq!([one, new].map(|address| time.beginning(address)), expected, "turned to {beginning}");
        }
        assert_eq!([time.charge(new, u64::MAX), time.beginning(new)], [9, u64::MAX]);
    }
}
