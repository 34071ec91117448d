//! Trading sessions of the unmodified Rust clients: `real-clients CLIENT SCENE`.
//!
//! Both clients have one ancestor and the same names, so one source, `session.rs`, is compiled against
//! each. The file of each client has what differs: how a trader signs in, and with which wallet it
//! trades. SCENE comes from `session.py`.

#![allow(clippy::duplicate_mod, reason = "one session for both clients is what this package is for")]

use anyhow::{Result, bail};
use serde_json::Value;
use std::time::Instant;

mod kuest;
mod polymarket;

/// An owner's key, and the address of its deposit wallet.
struct Trader {
    key: String,
    wallet: String,
}

/// Everything that a session needs to know.
struct Scene {
    url: String,
    condition: String,
    tokens: [String; 2],
    traders: [Trader; 2],
}

impl Scene {
    fn read(told: &str) -> Result<Self> {
        let told: Value = serde_json::from_str(told)?;
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let trader = |at: usize| Trader {
            key: text(&told["traders"][at]["key"]),
            wallet: text(&told["traders"][at]["wallet"]),
        };
        Ok(Self {
            url: text(&told["url"]),
            condition: text(&told["condition"]),
            tokens: [0, 1].map(|at| text(&told["tokens"][at])),
            traders: [trader(0), trader(1)],
        })
    }
}

/// Prints that a step is done, and how long it took.
fn done(step: &str, started: Instant) {
    println!("ok: {step} ({:.1} s)", started.elapsed().as_secs_f64());
}

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["kuest", told] => kuest::session::run(&Scene::read(told)?).await,
        ["polymarket", told] => polymarket::session::run(&Scene::read(told)?).await,
        _ => bail!("usage: real-clients kuest|polymarket SCENE"),
    }
}
