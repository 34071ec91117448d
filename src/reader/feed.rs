//! Streams: who follows what, and what each record sends them. No I/O, no clock.
//!
//! [`Feed::note`] is called after every [`Reader::apply`], [`Feed::flush`] after the last one of a turn, and
//! [`Feed::hear`] takes clients' messages between a flush and the next note. Each message is framed once, in one buffer, and
//! [`Feed::sends`] says which frames go to whom. A client is a number that the caller chooses.
//!
//! | file | what it knows |
//! |---|---|
//! | `ask` | what a client's message says |
//! | `market` | the messages of `/ws/market` |
//! | `owed` | first books that are still to be written, and of what a client is told meanwhile |
//! | `listing` | its messages about modes, listings and payouts |
//! | `user` | the messages of `/ws/user` |
//! | `makers` | a trade's makers, as its events show them |
//! | `outbox` | frames that wait to be sent |
//! | `recent` | the last changes and events, for clients that reconnect |
//! | `checksum` | the CRC over the levels of a book |
//!
//! - A market's `sequence` counts the records that changed its book; `price_change` carries each number once,
//!   in order, but those for which whole books stand. Every other message of the market carries the latest number.
//!   A principal's `sequence` counts its events. Both follow from the frames alone, so they are the same after every
//!   restart.
//! - `stream_id` is another one after every start ([`StreamIds`]). A client that comes back with an earlier one is told
//!   what it missed if all that it was told has happened; else its numbers may stand for something else.
//! - First books may be many megabytes, so the caller asks for them in pieces ([`Feed::give_books`]). A market of which
//!   nothing has a book yet begins with its books: what they hold already is not told before them.
//! - The `mode`, of a market or of all, says which requests are taken. It is sent when it changes, on
//!   subscription and with every heartbeat.
//! - A change of tick and a payout have no number. Followers are told when one comes; every acknowledgement
//!   of a subscription carries the current ones, so a client that was away compares, and nothing has to be
//!   kept for it.
//! - Messages that are not events of the venues have no `event_type`, and the venues' clients ignore them:
//!   `subscribed`, `unsubscribed`, `heartbeat`, `mode`, and errors.
//! - Messages of one market leave in the order of their records. Besides copies, a followed market costs two
//!   checksums over its levels for each record that changes them, and, while it has at most 1,000 levels, two hashes a
//!   flush.
//! - Replays reach back as far as `recent` does. Beyond that, a market gets a fresh book; an account is told
//!   that nothing was replayed, and has to read its orders and trades.

mod ask;
mod checksum;
mod listing;
mod makers;
mod market;
mod outbox;
mod owed;
mod recent;
mod user;

pub use ask::Credentials;
pub(super) use checksum::crc;
pub(super) use recent::{LevelChange, Recent};

use super::ask::{Asked, Refused, no_book};
use super::books::Bests;
use super::{Caller, ReadRequest, Reader, Token};
use crate::domain::nonce::is_of_readonly_key;
use crate::domain::{ApiKey, MarketNo, Outcome, TimeMs, WalletNo};
use crate::http::Endpoint;
use crate::http::respond::BookMark;
use crate::journal::layout::Record;
use crate::json::Writer;
use market::{Changed, Pending};
use outbox::Outbox;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// One of the two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// `/ws/market`.
    Market,
    /// `/ws/user`.
    User,
}

impl Channel {
    /// The name, as in messages.
    const fn word(self) -> &'static str {
        match self {
            Self::Market => "market",
            Self::User => "user",
        }
    }
}

/// What happens to a connection after its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It goes on.
    Stays,
    /// It did not show valid credentials.
    Unauthorized,
}

/// A connection that follows something.
#[derive(Debug)]
enum Subscriber {
    Market { tokens: BTreeSet<Token>, owed: BTreeSet<Token>, custom: bool },
    User(Option<Account>),
}

/// The markets of which an account's follower is told.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Markets {
    /// All, whatever it names later.
    All,
    /// All, since it left the last that it had named: so a client of the venue widens a stream, and naming some narrows
    /// it again.
    AllAgain,
    /// Those that it named; none if it named only what is unknown.
    Only(BTreeSet<MarketNo>),
}

impl Markets {
    fn have(&self, market: MarketNo) -> bool {
        self.only().is_none_or(|markets| markets.contains(&market))
    }

    /// None for all.
    const fn only(&self) -> Option<&BTreeSet<MarketNo>> {
        match self {
            Self::All | Self::AllAgain => None,
            Self::Only(markets) => Some(markets),
        }
    }
}

/// The account whose events a connection gets.
#[derive(Debug)]
struct Account {
    caller: Caller,
    /// The markets whose events it gets.
    markets: Markets,
    /// Whether its key's orders are cancelled when the connection is lost.
    cancel_on_disconnect: bool,
}

/// The ids under which events are numbered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamIds {
    /// That of this start.
    pub now: Box<str>,
    /// It, and those of earlier starts under which nothing was told that has not happened.
    pub known: Box<[Box<str>]>,
}

impl StreamIds {
    /// True if what was told under this id is what the numbers stand for now.
    #[must_use]
    pub fn know(&self, id: &str) -> bool {
        self.known.iter().any(|known| **known == *id)
    }
}

/// Who follows a market, and of which of its outcomes it is told: of none before its first book, if that is owed.
type Followers = HashMap<MarketNo, BTreeMap<u32, [bool; 2]>>;

/// Subscribers and what has to be sent to them.
#[derive(Debug)]
pub struct Feed {
    ids: StreamIds,
    subscribers: Vec<Option<Subscriber>>,
    followers: Followers,
    /// Who follows a principal.
    accounts: HashMap<WalletNo, BTreeSet<u32>>,
    /// How many changes and events were ever seen.
    seen: (u64, u64),
    pending: Vec<Pending>,
    /// Markets whose books changed since the last flush.
    changed: BTreeMap<MarketNo, Changed>,
    /// The best prices that were last sent, by token.
    best: HashMap<Token, Bests>,
    /// The checksums of both books of each market that is followed, once anybody was told of it.
    crcs: HashMap<MarketNo, [u32; 2]>,
    /// Clients of accounts of which a key was revoked.
    revoked: Vec<u32>,
    out: Outbox,
}

impl Feed {
    /// A feed that starts after what `reader` has followed so far.
    #[must_use]
    pub fn new(ids: StreamIds, reader: &Reader) -> Self {
        Self {
            ids,
            subscribers: Vec::new(),
            followers: HashMap::new(),
            accounts: HashMap::new(),
            seen: reader.recent.ever(),
            pending: Vec::new(),
            changed: BTreeMap::new(),
            best: HashMap::new(),
            crcs: HashMap::new(),
            revoked: Vec::new(),
            out: Outbox::default(),
        }
    }

    /// The place in its stream of the book that a request asks for; none if it does not ask for one book.
    #[must_use]
    pub fn book_mark<'a>(&'a self, reader: &Reader, request: &ReadRequest<'_>) -> Option<BookMark<'a>> {
        if request.endpoint != Endpoint::Book {
            return None;
        }
        let token = Asked::new(request, &reader.lists).token("token_id", no_book()).ok()?;
        let Token { market, outcome } = reader.book_of(&token)?;
        let index = reader.index.market(market);
        let crc = crc(&index.levels, outcome);
        Some(BookMark { stream_id: &self.ids.now, sequence: index.sequence, crc })
    }

    /// Adds a client, which follows nothing yet.
    pub fn join(&mut self, client: u32, channel: Channel) {
        let index = client as usize;
        if self.subscribers.len() <= index {
            self.subscribers.resize_with(index + 1, || None);
        }
        self.subscribers[index] = Some(match channel {
            Channel::Market => {
                Subscriber::Market { tokens: BTreeSet::new(), owed: BTreeSet::new(), custom: false }
            }
            Channel::User => Subscriber::User(None),
        });
    }

    /// Removes a client; nothing more is sent to it.
    pub fn leave(&mut self, client: u32) {
        match self.subscribers.get_mut(client as usize).and_then(Option::take) {
            Some(Subscriber::Market { tokens, .. }) => {
                for token in tokens {
                    self.unfollow(client, token.market);
                }
            }
            Some(Subscriber::User(Some(account))) => self.forget_account(client, account.caller.principal),
            Some(Subscriber::User(None)) | None => {}
        }
        self.out.forget(client);
    }

    /// True while a client has not said what it follows or who it is.
    #[must_use]
    pub fn is_silent(&self, client: u32) -> bool {
        match self.subscribers.get(client as usize) {
            Some(Some(Subscriber::Market { tokens, custom, .. })) => tokens.is_empty() && !custom,
            Some(Some(Subscriber::User(account))) => account.is_none(),
            Some(None) | None => false,
        }
    }

    /// Takes a client's message. `promised` is the key whose orders are cancelled when its connection is lost, as far
    /// as is known by now; `admit` returns the caller whose credentials the message shows.
    pub fn hear(
        &mut self,
        client: u32,
        text: &str,
        reader: &Reader,
        (now, promised): (TimeMs, Option<(WalletNo, ApiKey)>),
        admit: impl FnOnce(&Credentials<'_>) -> Option<Caller>,
    ) -> Heard {
        debug_assert!(self.pending.is_empty() && self.changed.is_empty(), "a flush came before");
        if text == "PING" {
            self.out.tell([client], |out| out.extend_from_slice(b"PONG"));
            return Heard::Stays;
        }
        let taken = match self.subscribers.get(client as usize) {
            Some(Some(Subscriber::Market { .. })) => ask::object(text).and_then(|value| {
                self.follow_markets(client, &ask::read(&value, Channel::Market)?, reader, now)
            }),
            Some(Some(Subscriber::User(_))) => ask::object(text).and_then(|value| {
                self.follow_account(
                    client,
                    &ask::read(&value, Channel::User)?,
                    reader,
                    (now, promised),
                    admit,
                )
            }),
            Some(None) | None => return Heard::Stays,
        };
        let Err(refused) = taken else {
            return Heard::Stays;
        };
        self.out.tell([client], |out| refused.write(&mut Writer::new(out)));
        if refused.status == 401 { Heard::Unauthorized } else { Heard::Stays }
    }

    /// Follows a record that `reader` has just applied.
    pub fn note(&mut self, reader: &Reader, record: &Record, now: TimeMs) {
        let seen = std::mem::replace(&mut self.seen, reader.recent.ever());
        if self.subscribers.is_empty() {
            return;
        }
        for change in reader.recent.changes_after(seen.0) {
            if self.crcs.contains_key(&change.market) {
                self.note_change(reader, change, now);
            }
        }
        self.tell_all(reader, reader.recent.events_after(seen.1), now);
        match record {
            Record::OrderPlaced(record) => self.push_trades(reader, record, now),
            Record::TickChanged(record) => self.push_tick(reader, record, now),
            Record::MarketMode(record) => self.push_mode(reader, Some(record.market), record.mode, now),
            Record::ExchangeMode(record) => self.push_mode(reader, None, record.mode, now),
            Record::MarketAdded(record) => self.push_new_market(reader, record.market, record.time, now),
            Record::KeyChanged(record) if !record.active && !is_of_readonly_key(&record.nonce) => {
                self.revoked.extend(self.accounts.get(&record.principal).into_iter().flatten());
            }
            Record::Resolved(record) => self.push_resolved(reader, record.market, record.time, now),
            _ => {}
        }
    }

    /// Frames what was noted since the last flush.
    pub fn flush(&mut self, reader: &Reader, now: TimeMs) {
        if self.pending.is_empty() && self.changed.is_empty() {
            return;
        }
        self.seal_pending(reader);
        let changed = std::mem::take(&mut self.changed);
        for (market, changed) in changed {
            self.push_books(reader, market, changed, now);
        }
    }

    /// Sends a client how far everything that it follows has come, from which it knows what it missed.
    pub fn beat(&mut self, client: u32, reader: &Reader, now: TimeMs) {
        let Some(Some(subscriber)) = self.subscribers.get(client as usize) else {
            return;
        };
        let (stream_id, followers) = (&self.ids.now, &self.followers);
        let is_told = |market: &MarketNo| owed::told_of(followers, client, *market) != [false; 2];
        self.out.tell([client], |out| {
            let json = &mut Writer::new(out);
            json.open_object().key("type").text("heartbeat");
            match subscriber {
                Subscriber::Market { tokens, .. } => {
                    json.key("channel").text("market").key("markets").open_array();
                    let markets: BTreeSet<MarketNo> = tokens.iter().map(|token| token.market).collect();
                    for market in markets.into_iter().filter(is_told) {
                        json.open_object().key("market").condition(&reader.market(market).condition);
                        json.key("sequence").number(reader.index.market(market).sequence).close_object();
                    }
                    json.close_array();
                }
                Subscriber::User(account) => {
                    json.key("channel").text("user").key("sequence");
                    json.number(account.as_ref().map_or(0, |account| reader.events_of(&account.caller)));
                }
            }
            json.key("mode").text(reader.ledger.exchange_mode().text());
            write_stamp(json, stream_id, now);
            json.close_object();
        });
    }

    /// Tells a client that the server is stopping.
    pub fn say_goodbye(&mut self, client: u32, now: TimeMs) {
        let stream_id = &self.ids.now;
        self.out.tell([client], |out| {
            let json = &mut Writer::new(out);
            json.open_object().key("type").text("mode").key("mode").text("ending");
            write_stamp(json, stream_id, now);
            json.close_object();
        });
    }

    /// The next client whose key does not live any more. `lives` says so of a key after its revocation was noted.
    pub fn next_revoked(&mut self, lives: impl Fn(&ApiKey) -> bool) -> Option<u32> {
        while let Some(client) = self.revoked.pop() {
            if self.key_of(client).is_some_and(|(_, key)| !lives(&key)) {
                return Some(client);
            }
        }
        None
    }

    /// The key that this client showed, with its principal.
    #[must_use]
    pub fn key_of(&self, client: u32) -> Option<(WalletNo, ApiKey)> {
        match self.subscribers.get(client as usize)? {
            Some(Subscriber::User(Some(account))) => Some((account.caller.principal, account.caller.key)),
            _ => None,
        }
    }

    /// The key whose orders are cancelled when this client is lost, with its principal.
    #[must_use]
    pub fn answers_for(&self, client: u32) -> Option<(WalletNo, ApiKey)> {
        match self.subscribers.get(client as usize)? {
            Some(Subscriber::User(Some(account))) if account.cancel_on_disconnect => self.key_of(client),
            _ => None,
        }
    }

    /// The frames to be sent, and to whom; each client's in their order.
    pub fn sends(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.out.sends()
    }

    /// How many frames wait for how many clients each, in all.
    #[must_use]
    pub fn waiting_sends(&self) -> usize {
        self.out.count()
    }

    /// Bytes of frames that wait to be sent.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.out.bytes()
    }

    /// Drops all frames: they are on their way.
    pub fn sent(&mut self) {
        self.out.clear();
    }

    fn forget_account(&mut self, client: u32, principal: WalletNo) {
        if let Some(clients) = self.accounts.get_mut(&principal) {
            clients.remove(&client);
            if clients.is_empty() {
                self.accounts.remove(&principal);
            }
        }
    }
}

/// The fields of every message that is an object, errors excepted.
fn write_stamp(json: &mut Writer<'_>, stream_id: &str, now: TimeMs) {
    json.key("stream_id").text(stream_id).key("server_ts_ms").number(now.0);
}

/// What a message named that is unknown here: the field and the text.
fn write_unknown(json: &mut Writer<'_>, unknown: &[(&str, &str)]) {
    for (field, got) in unknown {
        json.open_object().key("field").text(field).key("got").text(got);
        json.key("error").text("no such market").close_object();
    }
}

/// Both tokens of a market.
fn tokens_of(market: MarketNo) -> [Token; 2] {
    [Outcome::Zero, Outcome::One].map(|outcome| Token { market, outcome })
}

/// The refusal of a message without valid credentials.
fn unauthorized(got: &str, allowed: &'static str) -> Refused {
    Refused::new(401, "unauthorized", "Unauthorized/Invalid api key").about("auth", got, allowed)
}
