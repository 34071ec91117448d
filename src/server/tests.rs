//! From a signed order on a socket to its answer, and over a restart.

mod snapshots;
mod write_errors;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::plan::options::Options;
use super::plan::{Start, plan_on};
use super::process::clock::{self, Clock};
use super::process::start::{End, Running, start};
use crate::auth::{Chain, Domains, MacKey, Signer, Venue, sign_order, text};
use crate::domain::{OrderFields, OrderId, Side, SignatureType, TokenId, Word};
use crate::json::{decimal, name};

/// How long a test waits for what must come. Generous: CI machines are slow.
const PATIENCE: Duration = Duration::from_mins(2);

/// Settings of a small server below `data`.
pub(super) fn options(data: &tempfile::TempDir, shards: u64) -> Options {
    Options {
        listen_http: "127.0.0.1:0".into(),
        listen_admin: "127.0.0.1:0".into(),
        data_dir: data.path().display().to_string(),
        journal_log_path: data.path().join("log").display().to_string(),
        journal_log_bytes: 16 << 20,
        journal_segment_bytes: 4 << 20,
        journal_durability: "committed".into(),
        journal_hash_every_frames: 64,
        cpu_policy: "unpinned".into(),
        cpu_shards: shards,
        sizes_wallets: 1_000,
        sizes_digests: 10_000,
        sizes_resting_orders: 1_000,
        ..Options::of_dev()
    }
}

fn serve(data: &tempfile::TempDir, cpus: usize, shards: u64) -> Running {
    let cpus: Vec<usize> = (0..cpus).collect();
    let dev = Start { dev: true, ..Start::default() };
    start(plan_on(&options(data, shards), dev, &cpus).expect("a plan"), Clock::real()).expect("starts")
}

/// Waits until `holds`, which is asked again and again.
#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

struct Client {
    socket: TcpStream,
    read: Vec<u8>,
}

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("connects");
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        Self { socket, read: Vec::new() }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("writes");
    }

    fn answer(&mut self) -> (u16, String) {
        self.answer_or_end().expect("the server closed the connection")
    }

    /// The next answer; none if the server closes the connection before it.
    fn answer_or_end(&mut self) -> Option<(u16, String)> {
        loop {
            if let Some(end) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.read[..end]).into_owned();
                let length = head.lines().find_map(|line| line.strip_prefix("Content-Length:"));
                let length: usize = length.expect("every answer has one").trim().parse().expect("a number");
                if self.read.len() >= end + 4 + length {
                    let body = self.read[end + 4..end + 4 + length].to_vec();
                    self.read.drain(..end + 4 + length);
                    let status = head[9..12].parse().expect("a status");
                    return Some((status, String::from_utf8(body).expect("JSON is UTF-8")));
                }
            }
            let mut chunk = [0; 4096];
            let count = match self.socket.read(&mut chunk) {
                // Another test of this process tries signals.
                Err(fault) if fault.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(fault) if fault.kind() == std::io::ErrorKind::ConnectionReset => return None,
                read => read.expect("reads"),
            };
            if count == 0 {
                return None;
            }
            self.read.extend_from_slice(&chunk[..count]);
        }
    }

    fn ask(&mut self, bytes: &[u8]) -> (u16, String) {
        self.send(bytes);
        self.answer()
    }
}

struct Trader {
    signer: Signer,
    domains: Domains,
    address: String,
    key: String,
    passphrase: String,
    mac: MacKey,
    salt: u64,
}

fn hex(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    name::push_hex(&mut out, bytes);
    String::from_utf8(out).expect("ASCII")
}

/// The text of a field in an answer.
fn text_field(json: &str, key: &str) -> String {
    let (_, rest) = json.split_once(&format!("\"{key}\":\"")).expect("the field is there");
    rest.split('"').next().expect("a text ends").to_owned()
}

impl Trader {
    fn new(seed: u8, client: &mut Client) -> Self {
        let signer = Signer::new([seed; 32]).expect("a key");
        let domains = Domains::new(Chain::Amoy);
        let address = String::from_utf8(text::checksummed(signer.address()).to_vec()).expect("ASCII");
        let timestamp = clock::wall().seconds().to_string();
        let digest = domains.clob_auth_digest(signer.address(), timestamp.as_bytes(), &Word::ZERO);
        let request = format!(
            "POST /auth/api-key HTTP/1.1\r\nHost: a\r\nPOLY_ADDRESS: {address}\r\nPOLY_SIGNATURE: {}\r\n\
             POLY_TIMESTAMP: {timestamp}\r\nPOLY_NONCE: 0\r\n\r\n",
            hex(&signer.sign(&digest))
        );
        let (status, trio) = client.ask(request.as_bytes());
        assert_eq!(status, 200, "{trio}");
        let text_of = |key: &str| text_field(&trio, key);
        let secret = text::base64_32(text_of("secret").as_bytes()).expect("base64");
        Self {
            signer,
            domains,
            address,
            key: text_of("apiKey"),
            passphrase: text_of("passphrase"),
            mac: MacKey::new(&secret),
            salt: clock::wall().0 << 12,
        }
    }

    fn request(&self, method: &str, path: &str, body: &str) -> Vec<u8> {
        let timestamp = clock::wall().seconds().to_string();
        let signed = path.split('?').next().expect("a path");
        let parts = [timestamp.as_bytes(), method.as_bytes(), signed.as_bytes(), body.as_bytes()];
        let code = text::base64_text(&self.mac.over(parts));
        format!(
            "{method} {path} HTTP/1.1\r\nHost: a\r\nPOLY_ADDRESS: {}\r\nPOLY_SIGNATURE: {}\r\n\
             POLY_TIMESTAMP: {timestamp}\r\nPOLY_API_KEY: {}\r\nPOLY_PASSPHRASE: {}\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            std::str::from_utf8(&code).expect("ASCII"),
            self.key,
            self.passphrase,
            body.len()
        )
        .into_bytes()
    }

    /// An order's id and body.
    fn order(&mut self, token: &TokenId, side: Side, cents: u64, shares: u64) -> (OrderId, String) {
        self.salt += 1;
        let mut salt = [0; 32];
        salt[24..].copy_from_slice(&self.salt.to_be_bytes());
        let collateral = shares * cents * 10_000;
        let (give, get) = if side == Side::Buy {
            (collateral, shares * 1_000_000)
        } else {
            (shares * 1_000_000, collateral)
        };
        let fields = OrderFields {
            salt: Word(salt),
            maker: *self.signer.address(),
            signer: *self.signer.address(),
            token: *token,
            maker_amount: give,
            taker_amount: get,
            side,
            signature_type: SignatureType::Eoa,
            timestamp_ms: clock::wall().0,
            metadata: Word::ZERO,
            builder: Word::ZERO,
        };
        let (signature, length) = sign_order(&self.signer, &self.domains, Venue::Polymarket, false, &fields);
        let separator = self.domains.orders(Venue::Polymarket, false);
        let id = Domains::order_id(separator, &self.domains.order_hash(&fields));
        let mut token_text = Vec::new();
        decimal::push_uint256(&mut token_text, &token.0);
        let zero = hex(&[0; 32]);
        let body = format!(
            "{{\"order\":{{\"salt\":{},\"maker\":\"{maker}\",\"signer\":\"{maker}\",\"tokenId\":\"{}\",\
             \"makerAmount\":\"{give}\",\"takerAmount\":\"{get}\",\"side\":\"{}\",\"signatureType\":0,\
             \"timestamp\":\"{}\",\"metadata\":\"{zero}\",\"builder\":\"{zero}\",\"expiration\":\"0\",\
             \"signature\":\"{}\"}},\"owner\":\"{}\",\"orderType\":\"GTC\"}}",
            self.salt,
            String::from_utf8(token_text).expect("ASCII"),
            side.text(),
            fields.timestamp_ms,
            hex(&signature[..usize::from(length)]),
            self.key,
            maker = self.address,
        );
        (id, body)
    }
}

/// Gives the traders money and makes `count` markets; returns their tokens.
fn seed(running: &Running, owners: &[&str], count: usize) -> Vec<[TokenId; 2]> {
    let mut operator = Client::connect(running.admin());
    let mut post = |path: &str, body: &str| {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = operator.ask(request.as_bytes());
        says(&answer, 200, "{");
        answer.1
    };
    for owner in owners {
        post(&format!("/accounts/{owner}/credit"), "{\"amount\":\"1000\"}");
    }
    let token = |text: Option<&str>| {
        let text = text.expect("two tokens");
        TokenId(decimal::parse_uint256(text.as_bytes()).expect("a token is a number"))
    };
    (0..count)
        .map(|number| {
            let market = post("/markets", &format!("{{\"question\":\"Number {number}?\"}}"));
            let (_, rest) = market.split_once("\"tokens\":[\"").expect("a market has tokens");
            let mut texts = rest.split('"');
            let first = token(texts.next());
            [first, token(texts.nth(1))]
        })
        .collect()
}

/// Asserts that an answer has this status and says this.
#[track_caller]
fn says((status, answer): &(u16, String), expected: u16, words: &str) {
    assert!(
        *status == expected && answer.contains(words),
        "expected {expected} {words}, got {status} {answer}"
    );
}

#[test]
fn a_signed_order_rests_trades_is_cancelled_and_is_there_after_a_restart() {
    for (cpus, shards) in [(1, 1), (2, 1), (2, 2), (2, 4)] {
        let data = tempfile::tempdir().expect("a directory");
        let mut running = serve(&data, cpus, shards);
        let mut client = Client::connect(running.http());
        let (mut maker, mut taker) = (Trader::new(1, &mut client), Trader::new(2, &mut client));
        let markets = seed(&running, &[&maker.address, &taker.address], 4);
        let mut resting = Vec::new();
        for tokens in &markets {
            let (id, body) = maker.order(&tokens[0], Side::Buy, 40, 10);
            let answer = client.ask(&maker.request("POST", "/order", &body));
            says(&answer, 200, "\"status\":\"live\"");
            says(&answer, 200, &format!("\"orderID\":\"{}\"", hex(&id.0)));
            let (_, body) = taker.order(&tokens[1], Side::Buy, 60, 10);
            says(&client.ask(&taker.request("POST", "/order", &body)), 200, "\"status\":\"matched\"");
            let (id, body) = maker.order(&tokens[0], Side::Buy, 30, 10);
            // The read is on its way before the write is answered, and must know of it.
            client.send(&maker.request("POST", "/order", &body));
            client.send(&maker.request("GET", "/data/orders", ""));
            says(&client.answer(), 200, "\"status\":\"live\"");
            says(&client.answer(), 200, &hex(&id.0));
            resting.push(hex(&id.0));
        }
        let cancel = format!("{{\"orderID\":\"{}\"}}", resting[1]);
        let answer = client.ask(&maker.request("DELETE", "/order", &cancel));
        says(&answer, 200, &format!("{{\"canceled\":[\"{}\"]", resting[1]));
        let answer = client.ask(&maker.request("DELETE", "/order", &cancel));
        says(&answer, 200, &format!("\"not_canceled\":{{\"{}\":", resting[1]));
        let answer = client.ask(&maker.request("DELETE", "/cancel-all", ""));
        for (index, id) in resting.iter().enumerate() {
            assert_eq!(answer.1.contains(id.as_str()), index != 1, "{answer:?}");
        }
        // A cancel of everything finds the orders sent just before it, on whatever shard they are.
        let mut pipelined = Vec::new();
        let mut sent = Vec::new();
        for tokens in &markets {
            let (id, body) = maker.order(&tokens[0], Side::Buy, 20, 10);
            pipelined.extend_from_slice(&maker.request("POST", "/order", &body));
            sent.push(hex(&id.0));
        }
        pipelined.extend_from_slice(&maker.request("DELETE", "/cancel-all", ""));
        client.send(&pipelined);
        for _ in &sent {
            says(&client.answer(), 200, "\"status\":\"live\"");
        }
        let answer = client.answer();
        for id in &sent {
            says(&answer, 200, id);
        }
        let unknown = format!("{{\"orderID\":\"{}\"}}", hex(&[7; 32]));
        says(&client.ask(&maker.request("DELETE", "/order", &unknown)), 200, "\"tombstone\":true");
        assert_eq!(running.stop(), End::Clean);

        let mut running = serve(&data, cpus, 1);
        let mut client = Client::connect(running.http());
        let maker = Trader::new(1, &mut client);
        says(&client.ask(&maker.request("GET", "/auth/api-keys", "")), 200, &maker.key);
        let (status, trades) = client.ask(&maker.request("GET", "/data/trades", ""));
        assert_eq!((status, trades.matches("\"taker_order_id\"").count()), (200, 4), "{trades}");
        assert_eq!(running.stop(), End::Clean);
    }
}
