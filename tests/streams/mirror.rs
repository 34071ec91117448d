//! A client that keeps books by the documented rules alone: a `book` replaces what it has, a
//! `price_change` with the next number changes it, and anything else that it can notice is a gap.

#![allow(unreachable_pub, reason = "every test is a crate of its own")]

use crate::common::text;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a message did to the mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noted {
    /// The books are those of this message.
    Good,
    /// The message is not about books, or repeats what is known.
    Passed,
    /// Something was missed.
    Gap(String),
}

/// One token's levels, in the order of their prices; each with its texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Book {
    bids: BTreeMap<u64, (String, String)>,
    asks: BTreeMap<u64, (String, String)>,
}

impl Book {
    /// The levels of a `book` message or of GET /book.
    pub fn of(message: &Value) -> Self {
        let mut book = Self::default();
        for (side, levels) in [("BUY", &message["bids"]), ("SELL", &message["asks"])] {
            for level in levels.as_array().unwrap() {
                book.set(side, text(&level["price"]), text(&level["size"]));
            }
        }
        book
    }

    fn set(&mut self, side: &str, price: &str, size: &str) {
        let levels = if side == "BUY" { &mut self.bids } else { &mut self.asks };
        let key = crate::common::trader::micro(price);
        if size == "0" {
            levels.remove(&key);
        } else {
            levels.insert(key, (price.to_owned(), size.to_owned()));
        }
    }

    /// The documented checksum: the sum, modulo 2^32, of zlib's CRC-32 of `SIDE PRICE SIZE` of each level.
    pub fn crc(&self) -> u64 {
        let mut sum = 0_u32;
        for (side, levels) in [("BUY", &self.bids), ("SELL", &self.asks)] {
            for (price, size) in levels.values() {
                let mut crc = flate2::Crc::new();
                crc.update(format!("{side} {price} {size}").as_bytes());
                sum = sum.wrapping_add(crc.sum());
            }
        }
        u64::from(sum)
    }

    pub fn best(&self) -> (&str, &str) {
        let bid = self.bids.values().next_back().map_or("0", |level| &level.0);
        (bid, self.asks.values().next().map_or("1", |level| &level.0))
    }
}

/// The books of one market.
#[derive(Clone, Debug, Default)]
pub struct Mirror {
    pub books: BTreeMap<String, Book>,
    pub sequence: u64,
}

impl Mirror {
    /// Takes a message of this market, or a heartbeat.
    pub fn note(&mut self, message: &Value) -> Noted {
        if message["type"] == "heartbeat" {
            let told = message["markets"][0]["sequence"].as_u64().unwrap();
            return self.is_at(told);
        }
        match message["event_type"].as_str() {
            Some("book") => self.book(message),
            Some("price_change") => self.change(message),
            Some(_) => self.is_at(message["sequence"].as_u64().unwrap()),
            None => Noted::Passed,
        }
    }

    fn is_at(&self, told: u64) -> Noted {
        if self.sequence < told {
            Noted::Gap(format!("{} is behind {told}", self.sequence))
        } else {
            Noted::Passed
        }
    }

    fn book(&mut self, message: &Value) -> Noted {
        let (told, book) = (message["sequence"].as_u64().unwrap(), Book::of(message));
        if self.sequence != 0 && told != self.sequence {
            // It has another number than the other books, as a late or repeated message may.
            return if told < self.sequence { Noted::Passed } else { self.is_at(told) };
        }
        assert_eq!(book.crc(), message["crc"].as_u64().unwrap(), "{message}");
        self.books.insert(text(&message["asset_id"]).to_owned(), book);
        self.sequence = told;
        Noted::Good
    }

    fn change(&mut self, message: &Value) -> Noted {
        let told = message["sequence"].as_u64().unwrap();
        if told <= self.sequence {
            return Noted::Passed;
        }
        if told != self.sequence + 1 {
            return self.is_at(told);
        }
        for change in message["price_changes"].as_array().unwrap() {
            let book = self.books.entry(text(&change["asset_id"]).to_owned()).or_default();
            book.set(text(&change["side"]), text(&change["price"]), text(&change["size"]));
        }
        for change in message["price_changes"].as_array().unwrap() {
            let book = &self.books[text(&change["asset_id"])];
            if book.crc() != change["crc"].as_u64().unwrap() {
                return Noted::Gap(format!("the checksum of {told} is another"));
            }
            assert_eq!(book.best(), (text(&change["best_bid"]), text(&change["best_ask"])), "{message}");
        }
        self.sequence = told;
        Noted::Good
    }
}
