//! Who is let in: how many clients are inside, by the door that they came through, and whom a full house turned away.
//!
//! | door | room | so |
//! |---|---|---|
//! | public | `sizes.connections` | anybody can fill it, with connections that say nothing |
//! | the operator's | [`OPERATORS_MAX`], of its own | whatever clients do, a market can be closed and metrics be read |
//!
//! A client that finds no room is disconnected at once. `/metrics` counts that; a warning reports it once a minute for
//! each door, with the count so far: filling a house should not fill the disk as well.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::connection::Door;

/// Connections of the operator at once: commands, scrapers and some windows of the console, each of which has a few.
pub(crate) const OPERATORS_MAX: u32 = 64;

/// Time between two lines about one door, or about both.
pub(crate) const SAY_EVERY_MS: u64 = 60_000;

/// The clients of all loops together.
#[derive(Debug)]
pub(crate) struct House {
    public: Room,
    operators: Room,
}

impl House {
    /// An empty house with room for `connections_max` public connections.
    pub(crate) fn new(connections_max: u32) -> Self {
        Self { public: Room::new(connections_max), operators: Room::new(OPERATORS_MAX) }
    }

    /// Lets a client in; false if there is no room.
    pub(crate) fn enter(&self, door: Door) -> bool {
        let room = self.behind(door);
        // Relaxed: each is a number of its own and orders nothing else.
        let found = room.inside.fetch_add(1, Ordering::Relaxed);
        let enters = found < room.max;
        if !enters {
            room.inside.fetch_sub(1, Ordering::Relaxed);
            room.turned_away.fetch_add(1, Ordering::Relaxed);
        }
        enters
    }

    /// A client that was let in has left.
    pub(crate) fn leave(&self, door: Door) {
        self.behind(door).inside.fetch_sub(1, Ordering::Relaxed);
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
    pub(crate) fn complaint(&self, door: Door, elapsed_ms: u64) -> Option<String> {
        let room = self.behind(door);
        if elapsed_ms < room.silent_until_ms.load(Ordering::Relaxed) {
            return None;
        }
        room.silent_until_ms.store(elapsed_ms + SAY_EVERY_MS, Ordering::Relaxed);
        let (max, turned_away) = (room.max, self.turned_away(door));
        Some(match door {
            Door::Public => format!(
                "sizes.connections: all {max} are taken; clients turned away so far: {turned_away}; the operator's \
                 listener has room of its own"
            ),
            Door::Admin => format!(
                "listen.admin: all {max} connections are taken; turned away so far: {turned_away}; \
                 see who on this machine has them (ss -tp)"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_door_has_room_of_its_own_and_counts_whom_it_turned_away() {
        let house = House::new(2);
        assert_eq!([(); 4].map(|()| house.enter(Door::Public)), [true, true, false, false]);
        let operators = (0..OPERATORS_MAX).filter(|_| house.enter(Door::Admin)).count();
        assert_eq!(operators, OPERATORS_MAX as usize);
        assert!(!house.enter(Door::Admin));
        assert_eq!([Door::Public, Door::Admin].map(|door| house.turned_away(door)), [2, 1]);
        assert_eq!(house.inside(), 2 + OPERATORS_MAX);
        house.leave(Door::Public);
        assert_eq!([(); 2].map(|()| house.enter(Door::Public)), [true, false]);
    }

    #[test]
    fn a_full_house_is_said_once_a_minute_for_each_door() {
        let house = House::new(0);
        let turn_away = |elapsed_ms| {
            assert!(!house.enter(Door::Public));
            house.complaint(Door::Public, elapsed_ms)
        };
        let first = turn_away(5).expect("said");
        assert!(
            first.starts_with("sizes.connections: all 0 are taken; clients turned away so far: 1;"),
            "{first}"
        );
        assert_eq!(turn_away(5), None);
        assert_eq!(turn_away(5 + SAY_EVERY_MS - 1), None);
        assert!(turn_away(5 + SAY_EVERY_MS).expect("said again").contains("away so far: 4;"));
        assert!(house.complaint(Door::Admin, 6).is_some_and(|said| said.starts_with("listen.admin: ")));
    }
}
