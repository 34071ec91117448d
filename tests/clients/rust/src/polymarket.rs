//! `polymarket_client_sdk_v2`, here for traders from their own addresses.

use crate::Trader;
pub(crate) use polymarket_client_sdk_v2 as sdk;
use sdk::auth::{LocalSigner, Normal, Signer as _, state::Authenticated};
use sdk::clob::{Client, Config};

#[path = "session.rs"]
pub(crate) mod session;

/// It reads `tradeIDs` from the answer to an order.
const NAMES_TRADES: bool = true;

pub(crate) async fn sign_in(url: &str, trader: &Trader) -> sdk::Result<Client<Authenticated<Normal>>> {
    let signer = trader.key.parse::<LocalSigner<_>>().expect("a key").with_chain_id(Some(sdk::AMOY));
    Client::new(url, Config::default())?.authentication_builder(&signer).authenticate().await
}
