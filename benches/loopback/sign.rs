//! Signing as a client does it, with libraries alone: `ClobAuth`, orders and the HMAC.

use alloy_primitives::{Address, B256, U256, keccak256};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use hmac::{Hmac, KeyInit, Mac};
use secp256k1::{All, Message, Secp256k1, SecretKey};
use sha2::Sha256;

/// The chain that Outcry serves by default.
pub(crate) const CHAIN: u64 = 80_002;

/// Polymarket's exchange contract, in whose domain the orders are signed.
const EXCHANGE: &str = "0xE111180000d2663C0091e4f400237545B87B996B";

/// A key and its address.
pub(crate) struct Signer {
    curve: Secp256k1<All>,
    key: SecretKey,
    pub(crate) address: Address,
}

impl Signer {
    /// The signer of a 32-byte key in hex.
    pub(crate) fn new(hex: &str) -> Self {
        let key: B256 = hex.parse().expect("32 bytes of hex");
        let key = SecretKey::from_byte_array(key.0).expect("a valid key");
        let curve = Secp256k1::new();
        let public = key.public_key(&curve).serialize_uncompressed();
        Self { curve, key, address: Address::from_slice(&keccak256(&public[1..])[12..]) }
    }

    /// 65 bytes r, s, v in hex with `0x`.
    pub(crate) fn sign(&self, digest: B256) -> String {
        let signature = self.curve.sign_ecdsa_recoverable(Message::from_digest(digest.0), &self.key);
        let (recovery, compact) = signature.serialize_compact();
        let mut bytes = compact.to_vec();
        bytes.push(27 + u8::try_from(i32::from(recovery)).expect("0 or 1"));
        alloy_primitives::hex::encode_prefixed(bytes)
    }

    /// The L1 signature for credentials with nonce 0.
    pub(crate) fn clob_auth(&self, timestamp: &str) -> String {
        let domain = words(&[
            keccak256("EIP712Domain(string name,string version,uint256 chainId)").0,
            keccak256("ClobAuthDomain").0,
            keccak256("1").0,
            number(CHAIN),
        ]);
        let message = words(&[
            keccak256("ClobAuth(address address,string timestamp,uint256 nonce,string message)").0,
            self.address.into_word().0,
            keccak256(timestamp).0,
            number(0),
            keccak256("This message attests that I control the given wallet").0,
        ]);
        self.sign(typed(domain, message))
    }
}

/// The separator of the domain in which orders are signed.
pub(crate) fn order_domain() -> B256 {
    let exchange: Address = EXCHANGE.parse().expect("an address");
    words(&[
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)").0,
        keccak256("Polymarket CTF Exchange").0,
        keccak256("2").0,
        number(CHAIN),
        exchange.into_word().0,
    ])
}

/// The eleven signed fields as words, in their order.
pub(crate) struct OrderWords(pub(crate) [[u8; 32]; 11]);

impl OrderWords {
    /// The digest in the domain with separator `domain`.
    pub(crate) fn digest(&self, type_hash: B256, domain: B256) -> B256 {
        let mut all = [[0u8; 32]; 12];
        all[0] = type_hash.0;
        all[1..].copy_from_slice(&self.0);
        typed(domain, words(&all))
    }
}

/// The hash of the order's type text.
pub(crate) fn order_type_hash() -> B256 {
    keccak256(
        "Order(uint256 salt,address maker,address signer,uint256 tokenId,uint256 makerAmount,\
         uint256 takerAmount,uint8 side,uint8 signatureType,uint256 timestamp,bytes32 metadata,\
         bytes32 builder)",
    )
}

/// An integer as a big-endian word.
pub(crate) fn number(value: u64) -> [u8; 32] {
    U256::from(value).to_be_bytes()
}

/// The base64url HMAC of one request.
pub(crate) fn hmac(secret: &str, timestamp: &str, method: &str, path: &str, body: &str) -> String {
    let secret = URL_SAFE.decode(secret).expect("the secret is base64url");
    let mut mac = Hmac::<Sha256>::new_from_slice(&secret).expect("any length is a key");
    for part in [timestamp, method, path, body] {
        mac.update(part.as_bytes());
    }
    URL_SAFE.encode(mac.finalize().into_bytes())
}

fn words(words: &[[u8; 32]]) -> B256 {
    keccak256(words.as_flattened())
}

fn typed(domain: B256, message: B256) -> B256 {
    let mut bytes = [0u8; 66];
    bytes[..2].copy_from_slice(&[0x19, 0x01]);
    bytes[2..34].copy_from_slice(domain.as_slice());
    bytes[34..].copy_from_slice(message.as_slice());
    keccak256(bytes)
}
