//! The rooms that read what strangers send, and what must hold of them for any bytes at all.

#![allow(missing_docs, dead_code, reason = "the rooms are documented and used in their own crate")]

pub mod domain;
pub mod http;
pub mod json;

#[path = "../bodies.rs"]
pub mod bodies;
