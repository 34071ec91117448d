//! The rooms that parse untrusted bytes, and what must hold for any bytes.

#![allow(missing_docs, dead_code, reason = "the rooms are documented and used in their own crate")]

pub mod domain;
pub mod http;
pub mod json;

#[path = "../bodies.rs"]
pub mod bodies;
