//! Orders as clients sign them, and whole requests; every byte is made before the clock starts.
//!
//! The id of an order is its digest, so its cancel can be written before the order is sent.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alloy_primitives::{B256, U256, keccak256};

use crate::http::Http;
use crate::sign::{OrderWords, Signer, hmac, number, order_domain, order_type_hash};

/// Shares of every order, in millionths: five, the least that rests.
pub(crate) const SHARES: u64 = 5_000_000;

/// L2 credentials, as the server made them.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Credentials {
    api_key: String,
    secret: String,
    passphrase: String,
}

/// A trader: a key, and the credentials that the server gave it.
pub(crate) struct Account {
    signer: Signer,
    credentials: Credentials,
    salt: u64,
}

/// What an order asks for. All orders buy, as a bid for one outcome is an offer of the other; and all are `GTC`, those
/// that take too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    /// The index of the account whose order it is.
    pub(crate) account: usize,
    /// The outcome.
    pub(crate) token: U256,
    /// Price of a share, in hundredths.
    pub(crate) cents: u64,
    /// Shares in millionths.
    pub(crate) shares: u64,
    /// A number that no other order of the account has.
    pub(crate) salt: u64,
}

/// A signed order.
#[derive(Clone, Debug)]
pub(crate) struct Signed {
    /// The digest, in hex with `0x`.
    pub(crate) id: String,
    /// Its JSON with owner and type, as `POST /order` takes it.
    pub(crate) body: String,
}

impl Account {
    /// The account `index` of `seed`, with credentials from the server at `port`.
    pub(crate) fn open(port: u16, seed: u64, index: usize) -> Result<Self, String> {
        let key = keccak256(format!("outcry perf, seed {seed}, account {index}"));
        let signer = Signer::new(&key.to_string());
        let timestamp = since_1970().as_secs().to_string();
        let request = format!(
            "POST /auth/api-key HTTP/1.1\r\nHost: 127.0.0.1\r\nPOLY_ADDRESS: {}\r\nPOLY_SIGNATURE: {}\r\n\
             POLY_TIMESTAMP: {timestamp}\r\nPOLY_NONCE: 0\r\nContent-Length: 0\r\n\r\n",
            signer.address,
            signer.clob_auth(&timestamp)
        );
        let reply = Http::connect(port)?.ask(request.as_bytes())?;
        let credentials = serde_json::from_str(reply.body()?)
            .map_err(|fault| format!("the answer to POST /auth/api-key: {fault}"))?;
        Ok(Self { signer, credentials, salt: 0 })
    }

    /// The wallet's address.
    pub(crate) fn address(&self) -> String {
        self.signer.address.to_string()
    }

    /// A salt that was not used before.
    pub(crate) fn salt(&mut self) -> u64 {
        self.salt += 1;
        self.salt
    }

    /// Signs an order as wished.
    pub(crate) fn sign(&self, wish: &Wish) -> Signed {
        let timestamp = u64::try_from(since_1970().as_millis()).expect("this era");
        let collateral = wish.cents * wish.shares / 100;
        let words = OrderWords([
            number(wish.salt),
            self.signer.address.into_word().0,
            self.signer.address.into_word().0,
            wish.token.to_be_bytes(),
            number(collateral),
            number(wish.shares),
            number(0),
            number(0),
            number(timestamp),
            B256::ZERO.0,
            B256::ZERO.0,
        ]);
        let digest = words.digest(order_type_hash(), order_domain());
        let signature = self.signer.sign(digest);
        let body = format!(
            "{{\"order\":{{\"salt\":{salt},\"maker\":\"{address}\",\"signer\":\"{address}\",\
             \"tokenId\":\"{token}\",\"makerAmount\":\"{collateral}\",\"takerAmount\":\"{shares}\",\
             \"side\":\"BUY\",\"expiration\":\"0\",\"signatureType\":0,\"timestamp\":\"{timestamp}\",\
             \"metadata\":\"{zero}\",\"builder\":\"{zero}\",\"signature\":\"{signature}\"}},\
             \"owner\":\"{owner}\",\"orderType\":\"GTC\",\"deferExec\":false,\"postOnly\":false}}",
            salt = wish.salt,
            address = self.signer.address,
            token = wish.token,
            shares = wish.shares,
            zero = B256::ZERO,
            owner = self.credentials.api_key,
        );
        Signed { id: digest.to_string(), body }
    }

    /// A whole request with its HMAC.
    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> Vec<u8> {
        let seconds = since_1970().as_secs().to_string();
        let mac = hmac(&self.credentials.secret, &seconds, method, path, body);
        format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n\
             Connection: keep-alive\r\nUser-Agent: outcry-perf\r\nPOLY_ADDRESS: {}\r\nPOLY_SIGNATURE: {mac}\r\n\
             POLY_TIMESTAMP: {seconds}\r\nPOLY_API_KEY: {}\r\nPOLY_PASSPHRASE: {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.signer.address,
            self.credentials.api_key,
            self.credentials.passphrase,
            body.len()
        )
        .into_bytes()
    }

    /// The secret of the credentials, for checking an HMAC beside the server.
    pub(crate) fn secret(&self) -> &str {
        &self.credentials.secret
    }
}

/// The body of a batch.
pub(crate) fn batch(orders: &[&Signed]) -> String {
    let bodies: Vec<&str> = orders.iter().map(|order| order.body.as_str()).collect();
    format!("[{}]", bodies.join(","))
}

/// The body that replaces one order by another.
pub(crate) fn replace(gone: &Signed, comes: &Signed) -> String {
    let mut body = String::with_capacity(comes.body.len() + 128);
    write!(body, "{{\"cancel\":[\"{}\"],\"place\":[{}]}}", gone.id, comes.body).expect("a string takes all");
    body
}

/// The wall clock.
fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is behind 1970")
}
