//! The floor: the least that a server must do for one POST /order, with libraries alone.
//!
//! It shares no code with Outcry. One thread polls epoll without ever sleeping, and does for each
//! request what cannot be left out: receive, split the head (httparse), HMAC over the raw bytes
//! (hmac, sha2), JSON (simd-json), the order's digest (alloy's keccak), its signer (libsecp256k1),
//! a copy with a checksum into a warm buffer (CRC-32C), and send. It has no book, no accounts, no
//! log to recover from, and only the one credential that it was started with.

use super::sign::{OrderWords, number as number_word, order_type_hash};
use alloy_primitives::{Address, B256, U256, keccak256};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use hmac::{Hmac, KeyInit, Mac};
use rustix::event::epoll;
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{All, Message, Secp256k1};
use serde::Deserialize;
use sha2::Sha256;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::str::FromStr;

/// As large as Outcry's log, so that both touch as many cache lines.
const JOURNAL_BYTES: usize = 32 * 1024 * 1024;

const REQUEST_BYTES_MAX: usize = 64 * 1024;

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    order: Order<'a>,
    owner: &'a str,
    #[serde(rename = "orderType")]
    order_type: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order<'a> {
    salt: u64,
    maker: &'a str,
    signer: &'a str,
    token_id: &'a str,
    maker_amount: &'a str,
    taker_amount: &'a str,
    side: &'a str,
    signature_type: u8,
    timestamp: &'a str,
    metadata: &'a str,
    builder: &'a str,
    signature: &'a str,
}

/// What stays the same from request to request.
struct Floor {
    curve: Secp256k1<All>,
    key: Hmac<Sha256>,
    type_hash: B256,
    domain: B256,
    buffers: simd_json::Buffers,
    journal: Vec<u8>,
    position: usize,
}

/// Serves for ever on a free port, which it prints.
///
/// `secret` is the base64url secret of the one credential, `domain` the separator in whose domain
/// orders are signed.
pub(crate) fn serve(secret: &str, domain: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
    let port = listener.local_addr().expect("a bound listener has an address").port();
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{port}").and_then(|()| stdout.flush()).expect("the parent reads the port");
    let (stream, _) = listener.accept().expect("the client connects");
    let secret = URL_SAFE.decode(secret).expect("the secret is base64url");
    let mut floor = Floor {
        curve: Secp256k1::new(),
        key: Hmac::new_from_slice(&secret).expect("any length is a key"),
        type_hash: order_type_hash(),
        domain: domain.parse().expect("the domain is 32 bytes"),
        buffers: simd_json::Buffers::new(4_096),
        journal: vec![1; JOURNAL_BYTES],
        position: 0,
    };
    floor.poll(stream);
}

impl Floor {
    /// Serves one connection until it closes.
    fn poll(&mut self, mut stream: TcpStream) {
        stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).expect("a fresh socket");
        let poller = epoll::create(epoll::CreateFlags::CLOEXEC).expect("epoll is there");
        epoll::add(&poller, &stream, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
            .expect("a fresh socket");
        let mut events = Vec::with_capacity(8);
        let mut buffer = vec![0u8; REQUEST_BYTES_MAX];
        let mut filled = 0;
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        loop {
            events.clear();
            epoll::wait(&poller, rustix::buffer::spare_capacity(&mut events), Some(&now))
                .expect("epoll works");
            if events.is_empty() {
                continue;
            }
            match stream.read(&mut buffer[filled..]) {
                Ok(0) | Err(_) => return,
                Ok(count) => filled += count,
            }
            if let Some((used, reply)) = self.answer(&mut buffer[..filled]) {
                stream.write_all(reply.as_bytes()).expect("replies are shorter than the socket's buffer");
                buffer.copy_within(used..filled, 0);
                filled -= used;
            }
        }
    }

    /// The reply to the request at the front of `bytes` and its length; `None` until it is whole.
    fn answer(&mut self, bytes: &mut [u8]) -> Option<(usize, String)> {
        let (head_bytes, body_bytes, signature, timestamp) = {
            let mut headers = [httparse::EMPTY_HEADER; 64];
            let mut request = httparse::Request::new(&mut headers);
            let httparse::Status::Complete(head_bytes) = request.parse(bytes).expect("our own client") else {
                return None;
            };
            let header = |name: &str| {
                let found = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
                std::str::from_utf8(found.expect("our own client sends it").value).expect("ASCII").to_owned()
            };
            let length: usize = header("content-length").parse().expect("a number");
            (head_bytes, length, header("poly_signature"), header("poly_timestamp"))
        };
        let used = head_bytes + body_bytes;
        let body = bytes.get_mut(head_bytes..used)?;
        let mut mac = self.key.clone();
        mac.update(timestamp.as_bytes());
        mac.update(b"POST/order");
        mac.update(body);
        let claimed = URL_SAFE.decode(signature).expect("base64url");
        mac.verify_slice(&claimed).expect("the client knows the secret");

        self.position = (self.position + 1_024) % (JOURNAL_BYTES - REQUEST_BYTES_MAX);
        self.journal[self.position + 8..self.position + 8 + body.len()].copy_from_slice(body);
        let sum = crc_fast::crc32_iscsi(body);
        self.journal[self.position..self.position + 4].copy_from_slice(&sum.to_le_bytes());

        let digest = self.judge(body);
        let reply = format!(
            "{{\"success\":true,\"errorMsg\":\"\",\"orderID\":\"{digest}\",\"orderHash\":\"{digest}\",\
             \"takingAmount\":\"\",\"makingAmount\":\"\",\"status\":\"live\",\"transactionsHashes\":[],\
             \"tradeIDs\":[]}}"
        );
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            reply.len()
        );
        Some((used, head + &reply))
    }

    /// The digest of the order in `body`, whose signature must be its signer's.
    fn judge(&mut self, body: &mut [u8]) -> B256 {
        let body: Body<'_> =
            simd_json::serde::from_slice_with_buffers(body, &mut self.buffers).expect("our own client");
        assert!(!body.owner.is_empty() && !body.order_type.is_empty());
        let order = body.order;
        let number = |text: &str| U256::from_str(text).expect("a number").to_be_bytes::<32>();
        let address = |text: &str| Address::from_str(text).expect("an address");
        let signer = address(order.signer);
        let words = OrderWords([
            number_word(order.salt),
            address(order.maker).into_word().0,
            signer.into_word().0,
            number(order.token_id),
            number(order.maker_amount),
            number(order.taker_amount),
            number_word(u64::from(order.side == "SELL")),
            number_word(u64::from(order.signature_type)),
            number(order.timestamp),
            B256::from_str(order.metadata).expect("32 bytes").0,
            B256::from_str(order.builder).expect("32 bytes").0,
        ]);
        let digest = words.digest(self.type_hash, self.domain);
        let signature = alloy_primitives::hex::decode(order.signature).expect("hex");
        let recovery = RecoveryId::try_from(i32::from(signature[64]) - 27).expect("27 or 28");
        let signature = RecoverableSignature::from_compact(&signature[..64], recovery).expect("r and s");
        let key = self.curve.recover_ecdsa(Message::from_digest(digest.0), &signature).expect("on the curve");
        let recovered = keccak256(&key.serialize_uncompressed()[1..]);
        assert_eq!(&recovered[12..], signer.as_slice(), "the signer signed");
        digest
    }
}
