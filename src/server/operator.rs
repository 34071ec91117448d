//! The operator's side: commands, what they say to the operator's listener, and what that does.
//!
//! | file | what it knows |
//! |---|---|
//! | `admin` | the operator's listener: who may talk to it, and what asks nothing of other loops |
//! | `console` | the page on it, and which requests of a browser are the page's own |
//! | `metrics` | what it reports of the process's work |
//! | `request` | routes and bodies: bytes in, an [`request::Asked`] or a refusal out |
//! | `desk` | markets, events and wallets as the operator names them |
//! | `books` | books as the console shows them |
//! | `act`, `market_acts`, `intake` | what requests do: in general, to a market, one after another what adds markets |
//! | `client` | a small HTTP client for loopback |
//! | `market`, `account`, `import` | the commands that talk to a running exchange |
//! | `terminal` | how other people's texts are printed |
//! | `journal` | the commands that read a data directory |
//! | `host`, `probes`, `speed` | the commands that look at the machine, and what only a try can tell |
//! | `dev` | an exchange to try things on |
//!
//! A refusal always says what was wrong, what it got and what is allowed. A command that was
//! refused, or whose exchange does not answer, ends with exit code 1.

pub(crate) mod account;
pub(crate) mod act;
pub(super) mod admin;
pub(crate) mod books;
pub(crate) mod client;
mod console;
pub(crate) mod desk;
pub(crate) mod dev;
pub(crate) mod host;
pub(crate) mod import;
pub(crate) mod intake;
pub(crate) mod journal;
pub(crate) mod market;
pub(crate) mod market_acts;
mod metrics;
pub(crate) mod probes;
pub(crate) mod request;
pub(crate) mod speed;
mod terminal;

use super::process::secret;

/// An unused reference for a movement of money: its direction and 64 random bits.
pub(crate) fn made_up_reference(direction: &str) -> Result<String, String> {
    let bits = secret::random_hex().map_err(|fault| format!("--ref: none can be made up: {fault}"))?;
    Ok(format!("{direction}-{bits}"))
}
