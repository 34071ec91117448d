//! Signers whose keys are known from an earlier recovery, so that their signatures cost less to check.
//!
//! After a maker's first order, a recovery only finds the key that it found before. For a known key Q the
//! question "would a recovery give Q?" is an [`equation`] with multiples of Q, and with tables of them it
//! takes a quarter of the recovery's time. Off unless it is given memory: libsecp256k1, which does everything
//! else here, has been read by many people; this has not.
//!
//! | module | holds |
//! |---|---|
//! | [`equation`] | the question, from bytes to yes or no |
//! | [`table`] | multiples of one point, and how they are made step by step |
//! | [`point`] | points of the curve and their sums |
//! | [`scalar`] | numbers modulo the group's order, cut in halves |
//! | [`field`] | numbers modulo the field's p |
//!
//! Invariants:
//! - KNOWN-1: a table belongs to a key that libsecp256k1 has recovered and whose address was the signer's.
//! - KNOWN-2: the answer is yes only if a recovery would find that key. No proves nothing: the caller then
//!   recovers, so every refusal is that of a recovery.
//! - KNOWN-3: no order waits for a table. The orders of a signer whose table is not whole are recovered like
//!   any other, and each does at most [`STEPS_PER_ORDER`] steps of the table.
//! - KNOWN-4: nothing is allocated after the start.
//!
//! A signer takes a place with its order, and keeps it as long as it goes on signing: those who sign often
//! stay, however many sign once, and more busy signers than places do not push each other out.

mod equation;
mod field;
mod point;
mod scalar;
mod table;

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use super::curve::{Key, SIGNATURE_BYTES};
use crate::domain::{Address, Word};
use crate::memory::table::Index;
use equation::{OF_GENERATOR, OF_SIGNER, Scratch, Tables};
use point::Point;
use ruint::aliases::U256;
use table::Growth;

/// Steps of a table that one order does: 7 µs at most, and the table is whole after 65 orders.
const STEPS_PER_ORDER: usize = 2;

/// Places that are examined for a newcomer, going round.
const PLACES_LOOKED_AT: usize = 4;

/// A growing table is given up once its signer has been silent for this many orders per place.
const PATIENCE_WHILE_GROWING: u64 = 2;

/// A whole table, which cost as much as ten signatures, is given up once its signer has been silent for this
/// many orders per place.
const PATIENCE_WHEN_WHOLE: u64 = 256;

/// The generator's table, made at first use, before orders come.
static GENERATOR: LazyLock<Box<[Point]>> =
    LazyLock::new(|| table::whole_table(OF_GENERATOR, Point::GENERATOR));

/// Points of a signer's table.
const TABLE_POINTS: usize = OF_SIGNER.points();

/// The outcomes of the questions so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Answered with yes.
    pub hits: u64,
    /// Answered with no although the signer's table was whole: somebody else's signature, or none.
    pub fallbacks: u64,
    /// Answered with no because the signer had no whole table.
    pub misses: u64,
    /// Tables that became whole.
    pub tables: u64,
}

/// A signer that has a table.
#[derive(Clone, Copy, Debug)]
struct Place {
    signer: Address,
    growth: Growth,
    /// The number of the question at which the signer was last found to have signed.
    heard_at: u64,
}

/// The known signers of one loop.
#[derive(Debug)]
pub struct KnownSigners {
    generator: &'static [Point],
    index: Index,
    secret: RandomState,
    places: Box<[Option<Place>]>,
    /// One table for each place.
    points: Box<[Point]>,
    scratch: Box<Scratch>,
    next_place: usize,
    questions: u64,
    tally: Tally,
}

impl KnownSigners {
    /// Bytes of one signer's table.
    pub const TABLE_BYTES: u64 = (TABLE_POINTS * size_of::<Point>()) as u64;

    /// Room for as many signers as there are tables in `bytes`. The first call takes 2 ms, for
    /// a table of 1.3 MB that all share.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let places = u32::try_from(bytes / Self::TABLE_BYTES).expect("tables are large");
        Self {
            generator: &GENERATOR,
            index: Index::with_capacity(places),
            secret: RandomState::new(),
            places: vec![None; places as usize].into_boxed_slice(),
            points: vec![Point::NONE; places as usize * TABLE_POINTS].into_boxed_slice(),
            scratch: Box::default(),
            next_place: 0,
            questions: 0,
            tally: Tally::default(),
        }
    }

    /// True if `signer`'s key is known and has signed `digest`: 7 µs. False proves nothing.
    pub fn vouches(&mut self, signer: &Address, digest: &Word, signature: &[u8]) -> bool {
        self.questions += 1;
        let number = self.find(signer);
        let place = number.and_then(|number| self.places[number].as_mut());
        let (Some(number), Some(place)) = (number, place.filter(|place| place.growth.is_whole())) else {
            self.tally.misses += 1;
            return false;
        };
        let tables = Tables { generator: self.generator, signer: &self.points[table_of(number)] };
        let yes = <&[u8; SIGNATURE_BYTES]>::try_from(signature)
            .is_ok_and(|signature| equation::holds(tables, &digest.0, signature, &mut self.scratch));
        if yes {
            place.heard_at = self.questions;
            self.tally.hits += 1;
        } else {
            self.tally.fallbacks += 1;
        }
        yes
    }

    /// Learns from a recovery that `key` is `signer`'s.
    pub fn learn(&mut self, signer: &Address, key: &Key) {
        debug_assert_eq!(key.address(), *signer);
        let Some(number) = self.find(signer).or_else(|| self.take_place(signer, key)) else {
            return;
        };
        let place = self.places[number].as_mut().expect("the index names places that are taken");
        place.heard_at = self.questions;
        for _ in 0..STEPS_PER_ORDER {
            if place.growth.is_whole() {
                return;
            }
            let points = &mut self.points[table_of(number)];
            place.growth.step(OF_SIGNER, points, &mut self.scratch.partial);
            self.tally.tables += u64::from(place.growth.is_whole());
        }
    }

    /// The outcomes of the questions so far.
    #[must_use]
    pub const fn tally(&self) -> Tally {
        self.tally
    }

    fn find(&self, signer: &Address) -> Option<usize> {
        let holds = |number: u32| {
            let place = self.places[number as usize].as_ref();
            place.is_some_and(|place| place.signer == *signer)
        };
        self.index.find(self.secret.hash_one(signer), holds).map(|number| number as usize)
    }

    /// Takes a place for a signer that has none, if one of the next few is free or given up.
    fn take_place(&mut self, signer: &Address, key: &Key) -> Option<usize> {
        let number = (0..PLACES_LOOKED_AT.min(self.places.len())).find_map(|_| {
            let number = self.next_place;
            self.next_place = (number + 1) % self.places.len();
            self.is_given_up(number).then_some(number)
        })?;
        let entry = u32::try_from(number).expect("places are numbered with 32 bits");
        if let Some(place) = self.places[number] {
            self.index.remove(self.secret.hash_one(place.signer), entry);
        }
        let (x, y) = key.coordinates();
        let point = Point::new(U256::from_be_bytes(x), U256::from_be_bytes(y));
        let growth = Growth::begin(&mut self.points[table_of(number)], point);
        self.places[number] = Some(Place { signer: *signer, growth, heard_at: self.questions });
        assert!(self.index.insert(self.secret.hash_one(signer), entry), "there is an entry for each place");
        Some(number)
    }

    fn is_given_up(&self, number: usize) -> bool {
        self.places[number].is_none_or(|place| {
            let patience = if place.growth.is_whole() { PATIENCE_WHEN_WHOLE } else { PATIENCE_WHILE_GROWING };
            patience * (self.places.len() as u64) < self.questions - place.heard_at
        })
    }
}

fn table_of(number: usize) -> std::ops::Range<usize> {
    number * TABLE_POINTS..(number + 1) * TABLE_POINTS
}

#[cfg(test)]
mod tests;
