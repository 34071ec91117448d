//! What a request goes through whoever answers it: where it ends, where it is from, what it pays, who asks.
//!
//! | file | what it knows |
//! |---|---|
//! | `request` | the next request in a connection's buffer, if it is there whole |
//! | `proxies` | which proxies are believed, and so which address it is from |
//! | `toll` | the limits that it is counted in |
//! | `caller` | who asks, by an API key |
//! | `pages` | which web pages may read its answer |
//! | `refusal` | what a refused act is answered with |
//! | `explain` | in `dev`, what a refusal of a signature or of credentials says in addition |

pub(super) mod caller;
pub(super) mod explain;
pub(super) mod pages;
pub(super) mod proxies;
pub(super) mod refusal;
pub(super) mod request;
pub(super) mod toll;
