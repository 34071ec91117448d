//! One number for each address that clients come from, so that none of them alone takes what is for all.
//!
//! The number of an address is one of [`COUNTERS`] words, which a secret hash chooses. Whoever shares one with a greedy
//! stranger is treated as that is: at a quarter of the whole for each, that is four words of them. A trusted proxy's
//! clients are many, so it has no number.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::AtomicU32;

use crate::server::requests::proxies::{Customer, Proxies};

/// Several times as many as there are addresses at a time, in 256 KiB.
const COUNTERS: usize = 1 << 16;

/// A number for each address.
#[derive(Debug)]
pub(crate) struct Addresses {
    trusted: Proxies,
    secret: RandomState,
    counters: Box<[AtomicU32]>,
}

impl Addresses {
    /// All are 0; `trusted` ones have none.
    pub(crate) fn new(trusted: Proxies) -> Self {
        let counters = (0..COUNTERS).map(|_| AtomicU32::new(0)).collect();
        Self { trusted, secret: RandomState::new(), counters }
    }

    /// The number of an address, if it is one client's.
    pub(crate) fn counter(&self, peer: IpAddr) -> Option<&AtomicU32> {
        let peer = peer.to_canonical();
        let low = self.secret.hash_one(Customer::at(peer)) & (COUNTERS as u64 - 1);
        let counter = &self.counters[usize::try_from(low).expect("a few bits")];
        (!self.trusted.trust(peer)).then_some(counter)
    }
}
