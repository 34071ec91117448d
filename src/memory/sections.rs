//! A state as named sections of bytes, so that it can be stored and restored.
//!
//! A room lists its state as [`Part`]s; each part is a run of values ([`wire`](super::wire)) that is
//! cut into sections between two values. So a part may be of any length, each section is checked and
//! decoded alone, and whoever stores sections need not know what is in them.
//!
//! The same state always gives the same sections: a part puts its values in an order that depends
//! on the state alone.

use super::wire::{Damage, Input, Wire};

/// The name of a part: up to eight letters, then spaces. Files contain it, so it is never reused.
pub type Name = [u8; 8];

/// A section is closed by the first value with which it reaches this size: large compared with the
/// framing of a section, small compared with memory.
const SECTION_BYTES: usize = 1 << 20;

/// Where sections go, in order.
pub trait Sink {
    /// Takes one section. A sink that can fail remembers its error and reports it at the end.
    fn section(&mut self, name: Name, bytes: &[u8]);
}

impl Sink for Vec<(Name, Vec<u8>)> {
    fn section(&mut self, name: Name, bytes: &[u8]) {
        self.push((name, bytes.to_vec()));
    }
}

/// One part of a state of type `S`.
#[derive(Debug)]
pub struct Part<S: 'static> {
    /// Its name.
    pub name: Name,
    /// Puts all its values, in an order that depends on the state alone.
    pub put: fn(&S, &mut Section<'_>),
    /// Takes one value into a state that began empty.
    pub take: fn(&mut S, &mut Input<'_>) -> Result<(), Damage>,
}

/// Collects the values of one part and cuts them into sections.
pub struct Section<'a> {
    name: Name,
    bytes: Vec<u8>,
    sink: &'a mut dyn Sink,
}

impl Section<'_> {
    /// Puts one value.
    pub fn value<T: Wire>(&mut self, value: &T) {
        value.put(&mut self.bytes);
        if self.bytes.len() >= SECTION_BYTES {
            self.close();
        }
    }

    fn close(&mut self) {
        if !self.bytes.is_empty() {
            self.sink.section(self.name, &self.bytes);
            self.bytes.clear();
        }
    }
}

/// Puts all parts of `state` into `sink`.
pub fn put_all<S>(state: &S, parts: &[Part<S>], sink: &mut dyn Sink) {
    for part in parts {
        let mut section = Section { name: part.name, bytes: Vec::new(), sink: &mut *sink };
        (part.put)(state, &mut section);
        section.close();
    }
}

/// Takes one section into `state`; false if no part has that name.
pub fn take<S>(state: &mut S, parts: &[Part<S>], name: Name, bytes: &[u8]) -> Result<bool, Damage> {
    let Some(part) = parts.iter().find(|part| part.name == name) else {
        return Ok(false);
    };
    let mut input = Input::new(bytes);
    while input.finish().is_err() {
        (part.take)(state, &mut input)?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: &[Part<Vec<String>>] = &[Part {
        name: *b"words   ",
        put: |words, section| words.iter().for_each(|word| section.value(word)),
        take: |words, input| Wire::take(input).map(|word| words.push(word)),
    }];

    #[test]
    fn a_long_part_is_cut_between_values_and_read_back() {
        let words: Vec<String> = (0..1_000).map(|index| "w".repeat(index * 7)).collect();
        let mut sections = Vec::new();
        put_all(&words, PARTS, &mut sections);
        assert!(sections.len() > 2);
        let mut back = Vec::new();
        for (name, bytes) in &sections {
            assert_eq!(take(&mut back, PARTS, *name, bytes), Ok(true));
        }
        assert_eq!(back, words);
        assert_eq!(take(&mut back, PARTS, *b"unknown ", b""), Ok(false));
        assert!(take(&mut back, PARTS, *b"words   ", &[1]).is_err());
    }
}
