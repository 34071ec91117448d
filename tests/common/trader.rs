//! A trader: a key, its credentials, and requests signed as a client signs them.

use super::wire::{Answer, Connection, request};
use outcry::auth::{ActTerms, Chain, Domains, MacKey, Signer, Venue, sign_order, text};
use outcry::domain::text::{parse_hex, parse_uint256};
use outcry::domain::{Address, ConditionId, OrderFields, OrderId, Side, SignatureType, TokenId, Word};
use serde_json::Value;
use std::fmt::Write;
use std::io::Error;
use std::time::{SystemTime, UNIX_EPOCH};

/// The public test keys of Anvil, accounts 0 to 9: `outcry dev` funds each address.
pub const KEYS: [&str; 10] = [
    "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
    "5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
    "7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
    "47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
    "8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
    "92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
    "4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
    "dbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
    "2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
];

/// One order as a trader means it, unsigned. Price in ten-thousandths, size in millionths.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    pub token: TokenId,
    pub side: Side,
    pub price: u64,
    pub shares: u64,
    pub kind: &'a str,
    pub neg_risk: bool,
}

impl Wish<'_> {
    /// A GTC buy in a market without negative risk; what else a wish has, a test adds.
    pub const fn buy(token: TokenId, price: u64, shares: u64) -> Self {
        Self::of(Side::Buy, token, price, shares)
    }

    /// The same as a sell.
    pub const fn sell(token: TokenId, price: u64, shares: u64) -> Self {
        Self::of(Side::Sell, token, price, shares)
    }

    /// The same on either side.
    pub const fn of(side: Side, token: TokenId, price: u64, shares: u64) -> Self {
        Self { token, side, price, shares, kind: "GTC", neg_risk: false }
    }
}

/// An order before it is signed.
#[derive(Clone, Debug)]
pub struct Draft {
    pub fields: OrderFields,
    pub kind: String,
    pub neg_risk: bool,
    pub owner: String,
    pub expiration: u64,
    pub post_only: bool,
    /// The self-trade rule of the order; none: the exchange's default.
    pub self_trade: Option<&'static str>,
    /// More fields of the order that nobody signs: JSON that ends in a comma.
    pub unsigned: String,
}

impl Draft {
    pub fn kind(&mut self, kind: &str) {
        kind.clone_into(&mut self.kind);
    }
}

/// A signed order, ready to be sent any number of times.
#[derive(Clone)]
pub struct Signed {
    pub id: OrderId,
    pub id_text: String,
    pub body: String,
}

/// A principal that trades from its own address.
pub struct Trader {
    pub address: Address,
    address_text: String,
    signer: Signer,
    domains: Domains,
    key: String,
    passphrase: String,
    secret: MacKey,
    pub secret_text: String,
    /// The family of headers that its requests carry.
    pub family: &'static str,
    /// The unit of its timestamps, in milliseconds; most clients use seconds.
    pub stamp_ms: u64,
    /// The time, where the exchange's clock stands still; none: the machine's clock.
    pub clock_ms: Option<u64>,
    salt: u64,
}

impl Trader {
    /// The trader with this private key; asks the exchange for its credentials.
    pub fn new(key: &str, connection: &mut Connection) -> Self {
        Self::at(key, connection, None)
    }

    /// The trader of a private key, on an exchange whose clock stands at `clock_ms`.
    pub fn at(key: &str, connection: &mut Connection, clock_ms: Option<u64>) -> Self {
        Self::of_nonce(key, 0, connection, clock_ms)
    }

    /// The trader of a private key, with the API key of this nonce.
    pub fn of_nonce(key: &str, nonce: u64, connection: &mut Connection, clock_ms: Option<u64>) -> Self {
        let (signer, address_text) = signer(key);
        let (domains, address) = (Domains::new(Chain::Amoy), *signer.address());
        let now = clock_ms.unwrap_or_else(now_ms);
        let headers = owner_headers(&signer, &domains, &address_text, now / 1_000, nonce);
        let answer = connection.request("POST", "/auth/api-key", &headers, b"").unwrap();
        assert!(answer.status == 200, "{} {}", answer.status, answer.text());
        let trio = answer.json();
        let secret_text = trio["secret"].as_str().unwrap().to_owned();
        Self {
            address,
            address_text,
            signer,
            domains,
            key: trio["apiKey"].as_str().unwrap().to_owned(),
            passphrase: trio["passphrase"].as_str().unwrap().to_owned(),
            secret: MacKey::new(&text::base64_32(secret_text.as_bytes()).unwrap()),
            secret_text,
            family: "POLY",
            stamp_ms: 1_000,
            clock_ms,
            salt: (now << 20) + (nonce << 16),
        }
    }

    /// The credentials as a stream's first message carries them.
    pub fn stream_auth(&self) -> Value {
        serde_json::json!({ "apiKey": self.key, "secret": self.secret_text, "passphrase": self.passphrase })
    }

    /// The headers with which the wallet's owner asks for its credentials.
    pub fn owner_headers(&self) -> String {
        owner_headers(&self.signer, &self.domains, &self.address_text, self.now_ms() / 1_000, 0)
    }

    /// Signs a wish. The salt makes every order a different one.
    pub fn sign(&mut self, wish: &Wish<'_>) -> Signed {
        let draft = self.draft(wish);
        self.seal(&draft)
    }

    /// A wish as an unsigned order, for tests that change something about it.
    pub fn draft(&mut self, wish: &Wish<'_>) -> Draft {
        let collateral = u64::try_from(u128::from(wish.shares) * u128::from(wish.price) / 10_000).unwrap();
        let (maker_amount, taker_amount) = match wish.side {
            Side::Buy => (collateral, wish.shares),
            Side::Sell => (wish.shares, collateral),
        };
        let fields = OrderFields {
            salt: word(self.next_salt()),
            maker: self.address,
            signer: self.address,
            token: wish.token,
            maker_amount,
            taker_amount,
            side: wish.side,
            signature_type: SignatureType::Eoa,
            timestamp_ms: self.now_ms(),
            metadata: Word::ZERO,
            builder: Word::ZERO,
        };
        Draft {
            fields,
            kind: wish.kind.to_owned(),
            neg_risk: wish.neg_risk,
            owner: self.key.clone(),
            expiration: 0,
            post_only: false,
            self_trade: None,
            unsigned: String::new(),
        }
    }

    /// Signs a draft.
    pub fn seal(&self, draft: &Draft) -> Signed {
        let fields = &draft.fields;
        let (signature, bytes) =
            sign_order(&self.signer, &self.domains, Venue::Polymarket, draft.neg_risk, fields);
        let separator = self.domains.orders(Venue::Polymarket, draft.neg_risk);
        let id = Domains::order_id(separator, &self.domains.order_hash(fields));
        let zero = hex_text(&[0; 32]);
        let self_trade = draft.self_trade.map_or(String::new(), |rule| format!(",\"selfTrade\":\"{rule}\""));
        let body = format!(
            "{{\"order\":{{\"salt\":{salt},\"maker\":\"{}\",\"signer\":\"{}\",\"tokenId\":\"{token}\",\
             \"makerAmount\":\"{}\",\"takerAmount\":\"{}\",\"side\":\"{}\",\"signatureType\":{},\
             \"timestamp\":\"{}\",\"metadata\":\"{zero}\",\"builder\":\"{zero}\",{}\"expiration\":\"{}\",\
             \"signature\":\"{}\"}},\"owner\":\"{}\",\"orderType\":\"{}\",\"deferExec\":false,\"postOnly\":{}{self_trade}}}",
            hex_text(&fields.maker.0),
            hex_text(&fields.signer.0),
            fields.maker_amount,
            fields.taker_amount,
            fields.side.text(),
            fields.signature_type as u8,
            fields.timestamp_ms,
            draft.unsigned,
            draft.expiration,
            hex_text(&signature[..usize::from(bytes)]),
            draft.owner,
            draft.kind,
            draft.post_only,
            salt = u64::from_be_bytes(fields.salt.0[24..].try_into().unwrap()),
            token = token_text(&fields.token),
        );
        Signed { id, id_text: hex_text(&id.0), body }
    }

    fn next_salt(&mut self) -> u64 {
        self.salt += 1;
        self.salt % (1 << 53)
    }

    fn now_ms(&self) -> u64 {
        self.clock_ms.unwrap_or_else(now_ms)
    }

    /// Splits (0), merges (1) or redeems (2) `amount` millionths of a market's pairs.
    pub fn act(&mut self, connection: &mut Connection, act: u8, condition: &str, amount: u64) -> Answer {
        connection.send(&self.act_request(act, condition, amount)).unwrap();
        connection.answer().unwrap()
    }

    /// A split, merge or redeem as a whole request, in bytes.
    pub fn act_request(&mut self, act: u8, condition: &str, amount: u64) -> Vec<u8> {
        let (path, body) = self.sign_act(act, (self.address, SignatureType::Eoa), condition, amount);
        self.request("POST", path, &body)
    }

    /// The path and signed body of an act for any of the trader's wallets; not sent.
    pub fn sign_act(
        &mut self,
        act: u8,
        (wallet, signature_type): (Address, SignatureType),
        condition: &str,
        amount: u64,
    ) -> (&'static str, String) {
        let salt = self.next_salt();
        let terms = ActTerms {
            act,
            wallet,
            condition: ConditionId(parse_hex(condition.as_bytes()).unwrap()),
            amount,
            salt: word(salt),
            timestamp_ms: self.now_ms(),
            signature_type,
        };
        let signature = self.signer.sign(&Word(self.domains.act_digest(&terms).0));
        let body = format!(
            "{{\"wallet\":\"{}\",\"conditionId\":\"{condition}\",\"amount\":\"{amount}\",\"salt\":\"{salt}\",\
             \"timestamp\":\"{}\",\"signatureType\":{},\"signature\":\"{}\"}}",
            hex_text(&wallet.0),
            terms.timestamp_ms,
            signature_type as u8,
            hex_text(&signature),
        );
        (["/positions/split", "/positions/merge", "/positions/redeem"][usize::from(act)], body)
    }

    /// A whole request with L2 headers, as bytes.
    pub fn request(&self, method: &str, path: &str, body: &str) -> Vec<u8> {
        self.request_with("", method, path, body)
    }

    /// A whole request with L2 headers and more header lines.
    pub fn request_with(&self, lines: &str, method: &str, path: &str, body: &str) -> Vec<u8> {
        let timestamp = (self.now_ms() / self.stamp_ms).to_string();
        let signed_path = path.split('?').next().unwrap();
        let parts = [timestamp.as_bytes(), method.as_bytes(), signed_path.as_bytes(), body.as_bytes()];
        let code = text::base64_text(&self.secret.over(parts));
        let headers = format!(
            "{family}_ADDRESS: {}\r\n{family}_SIGNATURE: {}\r\n{family}_TIMESTAMP: {timestamp}\r\n\
             {family}_API_KEY: {}\r\n{family}_PASSPHRASE: {}\r\n{lines}",
            self.address_text,
            std::str::from_utf8(&code).unwrap(),
            self.key,
            self.passphrase,
            family = self.family,
        );
        request(method, path, &headers, body.as_bytes())
    }

    pub fn ask(
        &self,
        connection: &mut Connection,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<Answer, Error> {
        connection.send(&self.request(method, path, body))?;
        connection.answer()
    }

    /// Posts an order's signed body.
    #[track_caller]
    pub fn post(&self, connection: &mut Connection, body: &str) -> Answer {
        self.ask(connection, "POST", "/order", body).unwrap()
    }

    /// A private read, as JSON; any status but 200 fails the test.
    #[track_caller]
    pub fn read(&self, connection: &mut Connection, path: &str) -> Value {
        let answer = self.ask(connection, "GET", path, "").unwrap();
        assert!(answer.status == 200, "GET {path}: {} {}", answer.status, answer.text());
        answer.json()
    }

    /// All pages of a private list.
    #[track_caller]
    pub fn pages(&self, connection: &mut Connection, path: &str) -> Vec<Value> {
        let mut rows = Vec::new();
        let mut cursor = "MA==".to_owned();
        while cursor != "LTE=" {
            let page = self.read(connection, &format!("{path}?next_cursor={cursor}"));
            rows.extend(page["data"].as_array().unwrap().iter().cloned());
            page["next_cursor"].as_str().unwrap().clone_into(&mut cursor);
        }
        rows
    }
}

fn signer(key: &str) -> (Signer, String) {
    let signer = Signer::new(parse_hex(format!("0x{key}").as_bytes()).unwrap()).unwrap();
    let address = String::from_utf8(text::checksummed(signer.address()).to_vec()).unwrap();
    (signer, address)
}

/// The headers with which the owner of a private key asks for its first credentials.
pub fn first_key_headers(key: &str, clock_ms: u64) -> String {
    let (signer, address) = signer(key);
    owner_headers(&signer, &Domains::new(Chain::Amoy), &address, clock_ms / 1_000, 0)
}

fn owner_headers(signer: &Signer, domains: &Domains, address: &str, timestamp: u64, nonce: u64) -> String {
    let digest = domains.clob_auth_digest(signer.address(), timestamp.to_string().as_bytes(), &word(nonce));
    let signature = hex_text(&signer.sign(&digest));
    format!(
        "POLY_ADDRESS: {address}\r\nPOLY_SIGNATURE: {signature}\r\nPOLY_TIMESTAMP: {timestamp}\r\nPOLY_NONCE: {nonce}\r\n"
    )
}

/// Milliseconds since 1970, with which clients stamp their orders.
pub fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// A number as a uint256.
pub fn word(number: u64) -> Word {
    let mut word = [0; 32];
    word[24..].copy_from_slice(&number.to_be_bytes());
    Word(word)
}

/// `0x` and lower-case hex.
pub fn hex_text(bytes: &[u8]) -> String {
    let mut out = String::from("0x");
    for byte in bytes {
        write!(out, "{byte:02x}").unwrap();
    }
    out
}

/// The body of an order with another signature.
pub fn resigned(body: &str, signature: &[u8]) -> String {
    let (head, tail) = body.split_once("\"signature\":\"").unwrap();
    let (_, tail) = tail.split_once('"').unwrap();
    format!("{head}\"signature\":\"{}\"{tail}", hex_text(signature))
}

/// A token id from its decimal text.
pub fn token(decimal: &str) -> TokenId {
    TokenId(parse_uint256(decimal.as_bytes()).unwrap())
}

/// A token id as decimal text.
pub fn token_text(token: &TokenId) -> String {
    ruint::aliases::U256::from_be_bytes(token.0).to_string()
}

/// Decimal text in millionths.
#[track_caller]
pub fn micro(text: &str) -> u64 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    assert!(part.len() <= 6, "{text} is finer than a millionth");
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().unwrap() };
    whole * 1_000_000 + format!("{part:0<6}").parse::<u64>().unwrap()
}
