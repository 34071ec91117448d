//! Who is let in: how many clients are inside, by the door that they came through, and whom a full house turned away.
//!
//! | door | room | so |
//! |---|---|---|
//! | public | `sizes.connections` | many addresses together can fill it, with connections that say nothing |
//! | public | `sizes.connections_per_address` | one address alone cannot |
//! | the operator's | [`OPERATORS_MAX`], of its own | whatever clients do, a market can be closed and metrics be read |
//!
//! A trusted proxy's connections are counted together only ([`Addresses`]).
//!
//! A client that finds no room is disconnected at once. `/metrics` counts that; a warning reports it once a minute for
//! each reason, with the count so far: filling a house should not fill the disk as well.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::addresses::Addresses;
use super::connection::Door;
use crate::server::plan::Plan;

/// Connections of the operator at once: commands, scrapers and some windows of the console, each of which has a few.
pub(crate) const OPERATORS_MAX: u32 = 64;

/// Time between two lines about one door, or about both.
pub(crate) const SAY_EVERY_MS: u64 = 60_000;

/// The clients of all loops together.
#[derive(Debug)]
pub(crate) struct House {
    public: Room,
    operators: Room,
    /// Of the public ones, how many each address has.
    addresses: Addresses,
    per_address_max: u32,
    /// Until when nothing more is said of addresses.
    addresses_silent_until_ms: AtomicU64,
}

/// What there is no room in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// All that is behind the door.
    Door,
    /// What one address may have of it.
    Address,
}

impl House {
    /// An empty house with the room that `plan` gives it.
    pub(crate) fn new(plan: &Plan) -> Self {
        let limits = &plan.limits;
        Self {
            public: Room::new(limits.connections_max),
            operators: Room::new(OPERATORS_MAX),
            addresses: Addresses::new(plan.proxies.clone()),
            per_address_max: limits.connections_per_address_max,
            addresses_silent_until_ms: AtomicU64::new(0),
        }
    }

    /// Lets a client in that comes from `peer`, if there is room.
    pub(crate) fn enter(&self, door: Door, peer: IpAddr) -> Result<(), Full> {
        let room = self.behind(door);
        let counter = self.counter(door, peer);
        let full = if !add_below(&room.inside, room.max) {
            Full::Door
        } else if counter.is_some_and(|counter| !add_below(counter, self.per_address_max)) {
            room.inside.fetch_sub(1, Ordering::Relaxed);
            Full::Address
        } else {
            return Ok(());
        };
        room.turned_away.fetch_add(1, Ordering::Relaxed);
        Err(full)
    }

    /// A client that was let in has left.
    pub(crate) fn leave(&self, door: Door, peer: IpAddr) {
        self.behind(door).inside.fetch_sub(1, Ordering::Relaxed);
        if let Some(counter) = self.counter(door, peer) {
            counter.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The word that counts the public connections of an address, if that has only so many.
    fn counter(&self, door: Door, peer: IpAddr) -> Option<&AtomicU32> {
        (door == Door::Public).then(|| self.addresses.counter(peer)).flatten()
    }

    /// How many are inside, whichever way they came.
    pub(crate) fn inside(&self) -> u32 {
        [&self.public, &self.operators].map(|room| room.inside.load(Ordering::Relaxed)).iter().sum()
    }

    /// How many were turned away at a door since the start.
    pub(crate) fn turned_away(&self, door: Door) -> u64 {
        self.behind(door).turned_away.load(Ordering::Relaxed)
    }

    /// The warning about a client that was turned away just now, if one is due. Only the loop that has the doors asks.
    pub(crate) fn complaint(&self, full: Full, door: Door, peer: IpAddr, elapsed_ms: u64) -> Option<String> {
        let room = self.behind(door);
        let silent_until_ms = match full {
            Full::Door => &room.silent_until_ms,
            Full::Address => &self.addresses_silent_until_ms,
        };
        if elapsed_ms < silent_until_ms.load(Ordering::Relaxed) {
            return None;
        }
        silent_until_ms.store(elapsed_ms + SAY_EVERY_MS, Ordering::Relaxed);
        let (max, turned_away) = (room.max, self.turned_away(door));
        Some(match (full, door) {
            (Full::Door, Door::Public) => format!(
                "sizes.connections: all {max} are taken; clients turned away so far: {turned_away}; the operator's \
                 listener has room of its own"
            ),
            (Full::Door, Door::Admin) => format!(
                "listen.admin: all {max} connections are taken; turned away so far: {turned_away}; \
                 see who on this machine has them (ss -tp)"
            ),
            (Full::Address, _) => format!(
                "sizes.connections_per_address: {peer} has all {} that one address may have; clients turned away so \
                 far: {turned_away}; a proxy of yours belongs into trusted_proxies",
                self.per_address_max
            ),
        })
    }

    const fn behind(&self, door: Door) -> &Room {
        match door {
            Door::Public => &self.public,
            Door::Admin => &self.operators,
        }
    }
}

/// What is behind one door.
#[derive(Debug)]
struct Room {
    max: u32,
    inside: AtomicU32,
    turned_away: AtomicU64,
    silent_until_ms: AtomicU64,
}

impl Room {
    fn new(max: u32) -> Self {
        Self {
            max,
            inside: AtomicU32::new(0),
            turned_away: AtomicU64::new(0),
            silent_until_ms: AtomicU64::new(0),
        }
    }
}

/// Adds one to a count that is below `max`.
fn add_below(count: &AtomicU32, max: u32) -> bool {
    // Relaxed: each is a number of its own and orders nothing else.
    let fits = count.fetch_add(1, Ordering::Relaxed) < max;
    if !fits {
        count.fetch_sub(1, Ordering::Relaxed);
    }
    fits
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::server::plan::options::Options;
    use crate::server::plan::{Start, plan_on};

    const ONE: IpAddr = IpAddr::V4(Ipv4Addr::new(9, 9, 9, 9));
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(1, 1, 1, 1));

    fn house(connections: u64, per_address: u64) -> House {
        let options = Options {
            sizes_connections: connections,
            sizes_connections_per_address: per_address,
            trusted_proxies: vec!["10.0.0.0/8".into()],
            ..Options::default()
        };
        House::new(&plan_on(&options, Start::default(), &[0]).expect("allowed"))
    }

    #[test]
    fn each_door_has_room_of_its_own_and_counts_whom_it_turned_away() {
        let house = house(2, 0);
        let full = Err(Full::Door);
        let found = [(); 4].map(|()| house.enter(Door::Public, ONE));
        assert_eq!(found, [Ok(()), Ok(()), full, full]);
        let operators = (0..OPERATORS_MAX).filter(|_| house.enter(Door::Admin, ONE).is_ok()).count();
        assert_eq!(operators, OPERATORS_MAX as usize);
        assert_eq!(house.enter(Door::Admin, ONE), full);
        assert_eq!([Door::Public, Door::Admin].map(|door| house.turned_away(door)), [2, 1]);
        assert_eq!(house.inside(), 2 + OPERATORS_MAX);
        house.leave(Door::Public, ONE);
        assert_eq!([(); 2].map(|()| house.enter(Door::Public, ONE)), [Ok(()), full]);
    }

    #[test]
    fn an_address_has_its_part_and_leaves_the_rest_to_others() {
        let house = house(10, 2);
        let peers = ["2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:3::1", "::ffff:9.9.9.9", "10.0.0.1"];
        let [six, same_customer, neighbour, mapped, proxy] =
            peers.map(|peer| peer.parse().expect("an address"));
        for (peer, expected) in [
            (ONE, Ok(())),
            (mapped, Ok(())),
            (ONE, Err(Full::Address)),
            (mapped, Err(Full::Address)),
            (six, Ok(())),
            (same_customer, Ok(())),
            (six, Err(Full::Address)),
            (neighbour, Ok(())),
            (proxy, Ok(())),
            (proxy, Ok(())),
            (proxy, Ok(())),
        ] {
            assert_eq!(house.enter(Door::Public, peer), expected, "{peer}");
        }
        assert_eq!((house.inside(), house.turned_away(Door::Public)), (8, 3));
        for _ in 0..3 {
            assert_eq!(house.enter(Door::Admin, ONE), Ok(()), "the operator's are not counted by address");
            house.leave(Door::Admin, ONE);
        }
        assert_eq!(house.enter(Door::Public, ONE), Err(Full::Address));
        house.leave(Door::Public, mapped);
        assert_eq!(house.enter(Door::Public, ONE), Ok(()));
        for peer in [ONE, ONE, six, six, neighbour, proxy, proxy, proxy] {
            house.leave(Door::Public, peer);
        }
        assert_eq!(house.inside(), 0);
        assert_eq!([(); 3].map(|()| house.enter(Door::Public, ONE).is_ok()), [true, true, false]);
    }

    #[test]
    fn a_full_house_is_said_once_a_minute_for_each_reason() {
        let house = house(2, 1);
        let turn_away = |peer, elapsed_ms| {
            let full = house.enter(Door::Public, peer).expect_err("it is full");
            house.complaint(full, Door::Public, peer, elapsed_ms)
        };
        assert_eq!(house.enter(Door::Public, ONE), Ok(()));
        let said = turn_away(ONE, 5).expect("said");
        let begins = "sizes.connections_per_address: 9.9.9.9 has all 1 that one address may have; clients turned away \
             so far: 1;";
        assert!(said.starts_with(begins), "{said}");
        assert_eq!(house.enter(Door::Public, OTHER), Ok(()));
        let said = turn_away(OTHER, 5).expect("said");
        let begins = "sizes.connections: all 2 are taken; clients turned away so far: 2;";
        assert!(said.starts_with(begins), "{said}");
        assert_eq!(turn_away(ONE, 5), None);
        assert_eq!(turn_away(ONE, 5 + SAY_EVERY_MS - 1), None);
        assert!(turn_away(ONE, 5 + SAY_EVERY_MS).expect("said again").contains("so far: 5;"));
        let said = house.complaint(Full::Door, Door::Admin, ONE, 6).expect("said");
        assert!(said.starts_with("listen.admin: "), "{said}");
    }
}
