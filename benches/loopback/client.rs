//! One client on one connection, which polls and never sleeps, as a market maker would run it.

use super::sign::{OrderWords, Signer, hmac, number, order_domain, order_type_hash};
use alloy_primitives::{B256, U256};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const REPLY_BYTES_MAX: usize = 64 * 1024;

/// L2 credentials.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Credentials {
    pub(crate) api_key: String,
    pub(crate) secret: String,
    pub(crate) passphrase: String,
}

/// A connection with at most one request under way.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).expect("a fresh socket");
        Self { stream, buffer: vec![0; REPLY_BYTES_MAX] }
    }

    /// Sends `request`, polls until the whole reply is there, and returns it with the time between. What a
    /// client does with a reply, which depends on its length, is not timed.
    pub(crate) fn round_trip(&mut self, request: &[u8]) -> (Duration, &str) {
        let start = Instant::now();
        self.stream.write_all(request).expect("requests are shorter than the socket's buffer");
        let mut filled = 0;
        loop {
            match self.stream.read(&mut self.buffer[filled..]) {
                Ok(0) => panic!("the server closed the connection"),
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) => panic!("the connection broke: {error}"),
            }
            let took = start.elapsed();
            if reply_is_whole(&self.buffer[..filled]) {
                return (took, std::str::from_utf8(&self.buffer[..filled]).expect("replies are UTF-8"));
            }
        }
    }
}

fn reply_is_whole(bytes: &[u8]) -> bool {
    reply_bytes(bytes).is_some_and(|length| bytes.len() >= length)
}

/// The length of the reply at the front of `bytes`, head and body; `None` until its head is whole.
pub(crate) fn reply_bytes(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&bytes[..head]).expect("heads are ASCII").to_ascii_lowercase();
    let length = text.split("content-length:").nth(1).expect("replies have a length");
    let length: usize =
        length.split("\r\n").next().expect("split gives one").trim().parse().expect("a number");
    Some(head + 4 + length)
}

/// Makes the credentials of `signer` on the server at `port`.
pub(crate) fn credentials(port: u16, signer: &Signer) -> Credentials {
    let timestamp = now_ms().as_secs().to_string();
    let request = format!(
        "POST /auth/api-key HTTP/1.1\r\nHost: 127.0.0.1\r\nPOLY_ADDRESS: {}\r\nPOLY_SIGNATURE: {}\r\n\
         POLY_TIMESTAMP: {timestamp}\r\nPOLY_NONCE: 0\r\nContent-Length: 0\r\n\r\n",
        signer.address,
        signer.clob_auth(&timestamp)
    );
    let mut client = Client::connect(port);
    let (_, reply) = client.round_trip(request.as_bytes());
    let (head, body) = reply.split_once("\r\n\r\n").expect("a whole reply");
    assert!(head.starts_with("HTTP/1.1 200"), "{reply}");
    serde_json::from_str(body).expect("an api key")
}

/// A signed bid of `collateral` millionths for 5 shares of `token`, as one whole request.
pub(crate) fn bid(
    signer: &Signer,
    credentials: &Credentials,
    token: U256,
    collateral: u64,
    salt: u64,
) -> Vec<u8> {
    let timestamp = now_ms();
    let words = OrderWords([
        number(salt),
        signer.address.into_word().0,
        signer.address.into_word().0,
        token.to_be_bytes(),
        number(collateral),
        number(5_000_000),
        number(0),
        number(0),
        number(u64::try_from(timestamp.as_millis()).expect("this era")),
        B256::ZERO.0,
        B256::ZERO.0,
    ]);
    let signature = signer.sign(words.digest(order_type_hash(), order_domain()));
    let body = format!(
        "{{\"order\":{{\"salt\":{salt},\"maker\":\"{address}\",\"signer\":\"{address}\",\
         \"tokenId\":\"{token}\",\"makerAmount\":\"{collateral}\",\"takerAmount\":\"5000000\",\"side\":\"BUY\",\
         \"expiration\":\"0\",\"signatureType\":0,\"timestamp\":\"{milliseconds}\",\"metadata\":\"{zero}\",\
         \"builder\":\"{zero}\",\"signature\":\"{signature}\"}},\"owner\":\"{owner}\",\"orderType\":\"GTC\",\
         \"deferExec\":false,\"postOnly\":false}}",
        address = signer.address,
        milliseconds = timestamp.as_millis(),
        zero = B256::ZERO,
        owner = credentials.api_key,
    );
    let seconds = timestamp.as_secs().to_string();
    let mac = hmac(&credentials.secret, &seconds, "POST", "/order", &body);
    format!(
        "POST /order HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n\
         Connection: keep-alive\r\nUser-Agent: roundtrip\r\nPOLY_ADDRESS: {}\r\nPOLY_SIGNATURE: {mac}\r\n\
         POLY_TIMESTAMP: {seconds}\r\nPOLY_API_KEY: {}\r\nPOLY_PASSPHRASE: {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        signer.address,
        credentials.api_key,
        credentials.passphrase,
        body.len()
    )
    .into_bytes()
}

/// The wall clock, since 1970.
fn now_ms() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970")
}
