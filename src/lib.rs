//! Outcry: an open, self-hosted exchange for prediction markets in one binary.
//!
//! A market has two outcome tokens and one book. Every decision (an order with all its fills, a
//! cancel, a credit) is one **frame** in a log, and nobody hears of it before the frame is
//! written. The whole state follows from the frames, and one room, [`ledger`], derives it:
//! recovery, `journal verify`, `journal replay` and every read use a ledger that has followed the
//! log. The trade path keeps the same state in another form (flat ladders, one cache line per
//! order) and makes the frames; tests run scripts and compare both forms after every line.
//!
//! # Life of an order
//!
//! 1. [`server`]: a core loop receives bytes into the connection's buffer.
//! 2. [`http`]: a hand-written parser finds the head and the body in the buffer, without a copy.
//! 3. [`limits`] counts the request by its address; [`auth`] checks the HMAC over the raw bytes
//!    in constant time; [`limits`] then counts the request by the owner of the key.
//! 4. [`json`]: the body becomes a [`domain::SignedOrder`], a plain value.
//! 5. [`auth`], [`registry`]: one digest, one curve operation; maker, signer and token become
//!    registry numbers, and the order becomes the bytes that its frame will contain.
//! 6. [`shard`]: *look*, which judges the order and only loads the cells it may debit; *take*,
//!    which debits those shared cells ([`memory`]) by compare-and-swap; *claim* a position in the
//!    log ([`journal`]); *apply* to the book ([`book`]) and the shares ([`account`]). Nothing can
//!    fail after the claim.
//! 7. [`server`]: the answer leaves when its frame has reached the configured durability.
//! 8. [`reader`]: follows the log, answers every read and feeds the streams; it never touches a shard.
//!
//! # Rooms: each may use only those above it that `tests/tidy.rs` names
//!
//! | room | the question it answers |
//! |---|---|
//! | [`domain`] | what are the nouns, their units, and the refusals? |
//! | [`memory`] | how do fixed arenas, rings between cores and shared money cells work? |
//! | [`book`] | what rests in one market, and whom does an order meet? |
//! | [`account`] | does a wallet cover its orders, and what do fees, splits and merges do? |
//! | [`registry`] | which numbers do wallets, keys, markets and tokens have? |
//! | [`journal`] | how does a decision become bytes that survive? |
//! | [`http`] | what do the bytes of a request say, and how is an answer written? |
//! | [`json`] | how do orders and amounts read and write as text? |
//! | [`auth`] | who signed this? |
//! | [`limits`] | how much may one client ask for? |
//! | [`stats`] | where does the time go? |
//! | [`catalog`] | what does a Gamma file say about events and markets, and how are they listed and found? |
//! | [`topology`] | what machine is this, where do the roles belong on it, and what is wrong with it? |
//! | [`wallet`] | what does a wallet hold, what did it cost, what did it do? |
//! | [`ledger`] | what is the state after these frames? |
//! | [`shard`] | what does a trading command do? |
//! | [`registrar`] | what do the operator's and key-holders' acts do? |
//! | [`reader`] | what is the answer to this query, and whom does this record concern? |
//! | [`server`] | which thread, socket, clock, signal and file does it all run on? |
//!
//! # What is absent
//!
//! - No room below [`server`] reads a clock or touches a socket; time and bytes are arguments.
//! - No book is touched by two threads; a shard shares only cells, the log and append-only tables.
//! - No lock is on the order path, and no allocation after start-up (`tests/allocations.rs`).
//! - No answer leaves before its frame is as durable as the configuration says.
//! - No shard formats anything but trading answers; reads are the reader's.
//! - No float holds money, shares or a price.
//! - No frame names a slot, a shard or a pointer.
//! - `unsafe` is in [`memory`], two files of [`journal`] and one of [`server`] (`tests/tidy.rs`).
//!
//! # Glossary
//!
//! **core** a pinned thread · **shard** the trade role that owns some markets · **market** two
//! tokens and one book · **token** one outcome · **book**, **level**, **resting order** · **maker**
//! rests, **taker** arrives · **fill** one maker's part · **trade** one taker's fills · **wallet**
//! an address with collateral and shares · **principal** the owner key of wallets · **cell** a
//! wallet's collateral · **frame** one decision in the log · **segment** a file of frames ·
//! **position** a byte position in the log · **feed** what streams are told of the frames.

pub mod domain;

pub mod memory;

pub mod account;
pub mod auth;
pub mod book;
pub mod catalog;
pub mod http;
pub mod journal;
pub mod json;
pub mod ledger;
pub mod limits;
pub mod registry;
pub mod stats;
pub mod topology;
pub mod wallet;

pub mod reader;
pub mod registrar;
pub mod shard;

pub mod server;
