//! HTTP/1.1 as bytes: no sockets, no clock, and no allocation on the order path.
//!
//! A connection's buffer goes in, and borrowed pieces of it come out. Every parser here has three
//! outcomes: *whole*, *not whole yet* (read more and ask again), and *bad*. Bad is final: the
//! answer is sent and the connection closes, because past a request that two parsers may read
//! differently nobody knows where the next one begins.
//!
//! | file | what it knows |
//! |---|---|
//! | `scan` | finding the end of a line, eight bytes at a time |
//! | `head` | request line and headers; what is refused, and why |
//! | `auth_headers` | the three families of credential headers |
//! | `body` | chunked bodies, decoded in place |
//! | `query` | percent-encoding and the query's pairs |
//! | `route` | one table of method and path |
//! | `openapi` | that table and all of its shapes, as the document that clients read |
//! | `asyncapi` | what is said on the streams, likewise |
//! | `respond` | answers, written into the caller's buffer |
//! | `upgrade` | what a request for a stream lacks |
//! | `websocket` | frames of an upgraded connection, read in place |
//!
//! Invariants: a parser never consumes what it has not judged; nothing is decoded before it is
//! split; the path that was signed is kept as it was sent.

pub mod asyncapi;
pub mod auth_headers;
pub mod body;
pub mod head;
pub mod openapi;
pub mod query;
pub mod respond;
pub mod route;
pub(crate) mod scan;
pub mod upgrade;
pub mod websocket;

pub use auth_headers::AuthHeaders;
pub use body::Chunked;
pub use head::{BadRequest, BodyFraming, Head, Limits, Method, asks_head, header_at_fault, origin_of, parse};
pub use query::Query;
pub use respond::Response;
pub use route::{Class, Endpoint, Route, route};
