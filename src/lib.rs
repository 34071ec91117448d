//! Outcry: an open, self-hosted exchange for prediction markets.
//!
//! (The map is written when the rooms stand.)

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
pub mod registry;

pub mod reader;
pub mod registrar;
pub mod shard;

pub mod server;
