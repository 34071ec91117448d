//! `kuest-client-sdk`, which trades from deposit wallets only.

use crate::Trader;
pub(crate) use kuest_client_sdk as sdk;
use sdk::auth::{LocalSigner, Normal, Signer as _, state::Authenticated};
use sdk::clob::{Client, Config, types::SignatureType};

#[path = "session.rs"]
pub(crate) mod session;

/// It reads `tradeIds` from the answer to an order, a name that no server gives.
const NAMES_TRADES: bool = false;

pub(crate) async fn sign_in(url: &str, trader: &Trader) -> sdk::Result<Client<Authenticated<Normal>>> {
    let signer = trader.key.parse::<LocalSigner<_>>().expect("a key").with_chain_id(Some(sdk::AMOY));
    Client::new(url, Config::default())?
        .authentication_builder(&signer)
        .signature_type(SignatureType::DepositWallet)
        .funder(trader.wallet.parse().expect("an address"))
        .authenticate()
        .await
}
