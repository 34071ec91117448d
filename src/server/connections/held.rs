//! What clients hold up, over all connections: the bytes of answers and stream messages that they have not read, and of
//! requests that come or wait. A client that asks for much and reads nothing, or begins much and ends nothing, must not
//! take the memory that others trade with.
//!
//! A connection's answers count while they are more than [`KEPT_BYTES_MAX`], and so does its buffer of requests with
//! the fragments of a stream's message. When the sum is at [`HELD_BYTES_MAX`], a read whose answer is larger than
//! [`SMALL_BYTES_MAX`] is answered 503, and a stream ends if a message would leave it with more than that, unless it
//! has read everything before and the sum is below one and a half of that; smaller ones go on, as each connection's
//! share is bounded. From [`REQUESTS_BYTES_MAX`] on, a request that grows above [`SMALL_BYTES_MAX`] is refused, unless
//! it is an operator's, so that requests leave room for answers. A buffer of answers is counted after it has grown, so
//! the sum may be above the limit by as much as the last one grew.
//!
//! One address may have a quarter of each limit ([`Addresses`] says who is one), and meets it as if it were all.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::addresses::Addresses;
use super::connection::{Door, KEPT_BYTES_MAX};
use crate::server::requests::proxies::Proxies;

/// What all together may take for an answer to be kept: some 250 lists of wallets' data, which end at 1 MiB, or 16 of the
/// largest answers of other reads.
pub(crate) const HELD_BYTES_MAX: usize = 256 << 20;

/// What all together may take for a request to get more than [`SMALL_BYTES_MAX`]: some 125 of the largest.
pub(crate) const REQUESTS_BYTES_MAX: usize = HELD_BYTES_MAX / 2;

/// What an answer, a request or what a stream's client has not read may take whatever all together do.
pub(crate) const SMALL_BYTES_MAX: usize = 64 << 10;

/// One address has this part of each.
const PART_OF_ADDRESS: usize = 4;

/// The sums over all loops' connections.
#[derive(Debug)]
pub(crate) struct Held {
    all: AtomicUsize,
    addresses: Addresses,
}

impl Held {
    /// Nobody holds anything; `trusted` proxies are not counted by address.
    pub(crate) fn new(trusted: Proxies) -> Self {
        Self { all: AtomicUsize::new(0), addresses: Addresses::new(trusted) }
    }

    /// What a client holds that came through `door` from `peer`.
    pub(crate) fn of(&self, door: Door, peer: IpAddr) -> Share<'_> {
        Share { held: self, peer: (door == Door::Public).then_some(peer) }
    }

    /// The sum of all.
    pub(crate) fn bytes(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }
}

/// One client's part of [`Held`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share<'a> {
    held: &'a Held,
    /// None of an operator's, which is counted among all only.
    peer: Option<IpAddr>,
}

impl Share<'_> {
    /// Counts `bytes` for a connection that counted for `counted` before. Returns what it counts for now.
    pub(crate) fn count(self, counted: usize, bytes: usize) -> usize {
        let counts = if KEPT_BYTES_MAX < bytes { bytes } else { 0 };
        if counted == counts {
            return counts;
        }
        // Relaxed: sums that order nothing. Those of addresses are below 4 GiB, as that of all is.
        let of_address = self.of_address();
        if counted < counts {
            let more = counts - counted;
            self.held.all.fetch_add(more, Ordering::Relaxed);
            of_address.map(|sum| sum.fetch_add(one_buffer(more), Ordering::Relaxed));
        } else {
            let less = counted - counts;
            self.held.all.fetch_sub(less, Ordering::Relaxed);
            of_address.map(|sum| sum.fetch_sub(one_buffer(less), Ordering::Relaxed));
        }
        counts
    }

    /// Whether one more answer of `bytes` may be kept for its client. Loops that ask at the same moment may all get a
    /// yes.
    pub(crate) fn takes(self, bytes: usize) -> bool {
        bytes <= SMALL_BYTES_MAX || self.takes_more(bytes)
    }

    /// Whether `bytes` more fit for a stream that then holds more than [`SMALL_BYTES_MAX`].
    pub(crate) fn takes_more(self, bytes: usize) -> bool {
        self.has_room(bytes, HELD_BYTES_MAX)
    }

    /// Whether `bytes` more fit for a stream whose client has read all that came before: half as much again.
    pub(crate) fn takes_more_of_reader(self, bytes: usize) -> bool {
        self.has_room(bytes, HELD_BYTES_MAX / 2 * 3)
    }

    /// Whether the buffer of a request may count for `bytes` more; an operator's always may. Loops that ask at the same
    /// moment may all get a yes.
    pub(crate) fn takes_request(self, bytes: usize) -> bool {
        self.peer.is_none() || self.has_room(bytes, REQUESTS_BYTES_MAX)
    }

    fn has_room(self, bytes: usize, max: usize) -> bool {
        let fits = |sum: &AtomicU32| sum.load(Ordering::Relaxed) as usize + bytes <= max / PART_OF_ADDRESS;
        self.held.bytes() + bytes <= max && self.of_address().is_none_or(fits)
    }

    fn of_address(&self) -> Option<&AtomicU32> {
        self.peer.and_then(|peer| self.held.addresses.counter(peer))
    }
}

fn one_buffer(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("the buffers of one connection are below 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: [u8; 4] = [9, 9, 9, 9];
    const OTHER: [u8; 4] = [1, 1, 1, 1];
    const PROXY: [u8; 4] = [10, 0, 0, 1];

    fn held() -> Held {
        Held::new(Proxies::parse(&["10.0.0.0/8".to_owned()]).expect("networks"))
    }

    fn of(held: &Held, peer: [u8; 4]) -> Share<'_> {
        held.of(Door::Public, peer.into())
    }

    #[test]
    fn large_answers_are_taken_until_all_together_are_too_much_and_small_ones_always() {
        let held = held();
        let (others, one) = (of(&held, PROXY), of(&held, ONE));
        let first = others.count(0, KEPT_BYTES_MAX);
        assert_eq!((first, held.bytes()), (0, 0), "what every connection may keep is not counted");
        let first = others.count(first, HELD_BYTES_MAX - (1 << 20));
        assert!(one.takes(1 << 20));
        assert!(!one.takes((1 << 20) + 1));
        let second = one.count(0, 1 << 20);
        assert!(!one.takes(SMALL_BYTES_MAX + 1));
        assert!(one.takes(SMALL_BYTES_MAX));
        assert_eq!(others.count(first, 0), 0);
        assert_eq!(held.bytes(), second);
        assert_eq!(one.count(second, 7), 0);
        assert_eq!(held.bytes(), 0);
    }

    #[test]
    fn requests_grow_until_half_of_it_is_taken_and_an_operators_always() {
        let held = held();
        of(&held, PROXY).count(0, REQUESTS_BYTES_MAX - (1 << 20));
        let one = of(&held, ONE);
        assert!(one.takes_request(1 << 20));
        assert!(!one.takes_request((1 << 20) + 1));
        assert!(one.takes(HELD_BYTES_MAX / PART_OF_ADDRESS), "answers still have the other half");
        assert!(held.of(Door::Admin, ONE.into()).takes_request(HELD_BYTES_MAX));
    }

    #[test]
    fn an_address_has_a_quarter_and_leaves_the_rest_to_others() {
        let held = held();
        let [one, other, proxy] = [ONE, OTHER, PROXY].map(|peer| of(&held, peer));
        let (requests, answers) = (REQUESTS_BYTES_MAX / PART_OF_ADDRESS, HELD_BYTES_MAX / PART_OF_ADDRESS);
        for (share, most) in [(one, [requests, answers]), (proxy, [REQUESTS_BYTES_MAX, HELD_BYTES_MAX])] {
            assert!(share.takes_request(most[0]) && !share.takes_request(most[0] + 1), "{most:?}");
            assert!(share.takes(most[1]) && !share.takes(most[1] + 1), "{most:?}");
        }
        let first = one.count(0, requests);
        assert!(!one.takes_request(SMALL_BYTES_MAX) && one.takes(SMALL_BYTES_MAX));
        assert!(other.takes_request(requests));
        let operators = held.of(Door::Admin, ONE.into()).count(0, requests);
        assert_eq!(one.count(first, requests / 2), requests / 2);
        assert!(one.takes_request(requests / 2), "the operator's do not count for the address");
        assert_eq!((one.count(requests / 2, 0), held.bytes()), (0, operators));
        assert!(one.takes_request(requests));
    }
}
