//! First books that a client is owed, and of which tokens it is told.
//!
//! A message may ask for 500 books of hundreds of kilobytes. They are noted and written later, a market at a time, as its
//! two books have to be of the same change; the caller says when. A market that was followed anew begins with them:
//! changes, trades and ticks before them are not told, because a client judges their numbers by those of its books. A
//! market's mode and its payout are told at once, which no book has. Where a client is told of a token already, it
//! goes on being told, and another book comes in between.

use super::super::{Reader, Token};
use super::market::write_book;
use super::{Feed, Followers, Subscriber, checksum, tokens_of};
use crate::domain::{MarketNo, TimeMs};

impl Feed {
    /// Whether a client is owed books.
    #[must_use]
    pub fn owes_books(&self, client: u32) -> bool {
        matches!(self.subscribers.get(client as usize),
            Some(Some(Subscriber::Market { owed, .. })) if !owed.is_empty())
    }

    /// Writes the books of the next market of which a client is owed any, and tells it of that market from here on.
    /// Between a flush and the next note, as a book holds all that was noted.
    pub fn give_books(&mut self, client: u32, reader: &Reader, now: TimeMs) {
        debug_assert!(self.pending.is_empty() && self.changed.is_empty(), "a flush came before");
        let Some(Some(Subscriber::Market { owed, .. })) = self.subscribers.get_mut(client as usize) else {
            return;
        };
        let Some(market) = owed.first().map(|token| token.market) else {
            return;
        };
        for token in tokens_of(market) {
            if owed.remove(&token) {
                self.out.tell([client], |out| write_book(out, reader, token, &self.ids.now, now));
            }
        }
        self.follow(client, market, reader);
    }

    /// Registers a client for the messages of a market, if it follows any token of it: those of a token from its first
    /// book on, if that is owed.
    pub(super) fn follow(&mut self, client: u32, market: MarketNo, reader: &Reader) {
        let told_before = told_of(&self.followers, client, market);
        let Some(Some(Subscriber::Market { tokens, owed, .. })) = self.subscribers.get(client as usize)
        else {
            return;
        };
        let follows = |token: &Token| tokens.contains(token);
        if !tokens_of(market).iter().any(follows) {
            return self.unfollow(client, market);
        }
        let told = tokens_of(market)
            .map(|token| follows(&token) && (told_before[token.outcome.index()] || !owed.contains(&token)));
        self.followers.entry(market).or_default().insert(client, told);
        if told == [false; 2] {
            // Nor is its book looked at before it is given.
            return;
        }
        self.crcs.entry(market).or_insert_with(|| checksum::crcs(&reader.index.market(market).levels));
        for token in tokens_of(market) {
            self.best.entry(token).or_insert_with(|| reader.bests(token));
        }
    }

    /// Takes a client off those who follow a market.
    pub(super) fn unfollow(&mut self, client: u32, market: MarketNo) {
        if let Some(followers) = self.followers.get_mut(&market) {
            followers.remove(&client);
            if followers.is_empty() {
                self.followers.remove(&market);
                self.changed.remove(&market);
                self.crcs.remove(&market);
                for token in tokens_of(market) {
                    self.best.remove(&token);
                }
            }
        }
    }
}

/// Of which tokens of a market a client is told.
pub(super) fn told_of(followers: &Followers, client: u32, market: MarketNo) -> [bool; 2] {
    followers.get(&market).and_then(|followers| followers.get(&client)).copied().unwrap_or_default()
}
