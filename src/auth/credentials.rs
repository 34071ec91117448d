//! An owner's credentials, recomputed whenever they are asked for.
//!
//! key, secret and passphrase = HMAC(master secret, chain | address | nonce | generation | label).
//! Nothing is stored: the holder of the master secret can compute anybody's credentials, and
//! creating them twice gives the same trio. Revoking raises the generation, so a secret that leaked
//! never comes back.
//!
//! | bytes | field |
//! |---:|---|
//! | 8 | chain id, big-endian |
//! | 20 | address |
//! | 32 | nonce |
//! | 4 | generation, big-endian |
//! | rest | `key`, `secret` or `passphrase` |

use super::eip712::Chain;
use super::mac::MacKey;
use super::text;
use crate::domain::{Address, ApiKey, Word};

/// What credentials are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyName {
    /// The server's chain.
    pub chain: Chain,
    /// The owner's EOA.
    pub address: Address,
    /// The nonce of the L1 request; 0 unless the client chose another.
    pub nonce: Word,
    /// How often this key was revoked.
    pub generation: u32,
}

/// What a client needs to sign its requests.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Names the key; public as `owner`.
    pub api_key: ApiKey,
    /// The HMAC key.
    pub secret: [u8; 32],
    /// Sent along with every request: 64 hex digits.
    pub passphrase: [u8; 64],
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Credentials").field("api_key", &self.api_key).finish_non_exhaustive()
    }
}

impl Credentials {
    /// The secret as clients get it: base64 in the URL alphabet, with padding.
    #[must_use]
    pub fn secret_text(&self) -> [u8; text::SECRET_TEXT_BYTES] {
        text::base64_text(&self.secret)
    }
}

/// The secret that all credentials come from.
#[derive(Clone, Debug)]
pub struct MasterSecret(MacKey);

impl MasterSecret {
    /// The master secret of a data directory.
    #[must_use]
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(MacKey::new(secret))
    }

    /// What tells it from every other one, and tells nobody more of it.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 8] {
        self.0.over([&b"fingerprint"[..]])[..8].try_into().expect("8 of 32 bytes")
    }

    /// The key's public name alone, for finding the owner of the key that a request names.
    #[must_use]
    pub fn api_key(&self, name: &KeyName) -> ApiKey {
        let code = self.derive(name, b"key");
        let mut key: [u8; 16] = code[..16].try_into().expect("16 of 32 bytes");
        // Version 4 and the RFC's variant, because clients parse it as a UUID and some check them.
        key[6] = key[6] & 0x0f | 0x40;
        key[8] = key[8] & 0x3f | 0x80;
        ApiKey(key)
    }

    /// Key, secret and passphrase.
    #[must_use]
    pub fn credentials(&self, name: &KeyName) -> Credentials {
        let mut passphrase = [0; 64];
        text::lower_hex(&self.derive(name, b"passphrase"), &mut passphrase);
        Credentials { api_key: self.api_key(name), secret: self.derive(name, b"secret"), passphrase }
    }

    fn derive(&self, name: &KeyName, label: &[u8]) -> [u8; 32] {
        let chain = name.chain.id().to_be_bytes();
        let generation = name.generation.to_be_bytes();
        self.0.over([&chain[..], &name.address.0[..], &name.nonce.0[..], &generation[..], label])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: KeyName =
        KeyName { chain: Chain::Amoy, address: Address([7; 20]), nonce: Word::ZERO, generation: 0 };

    #[test]
    fn the_same_name_always_gets_the_same_credentials() {
        let made = MasterSecret::new(&[1; 32]).credentials(&NAME);
        assert_eq!(MasterSecret::new(&[1; 32]).credentials(&NAME), made);
        assert_eq!(MasterSecret::new(&[1; 32]).api_key(&NAME), made.api_key);
    }

    /// Keys in use, and the folders of data that name a fingerprint, outlive any version of this program.
    #[test]
    fn a_master_secret_means_the_same_in_every_version() {
        let hex = |bytes: &[u8]| {
            let mut digits = vec![0; 2 * bytes.len()];
            text::lower_hex(bytes, &mut digits);
            String::from_utf8(digits).expect("ASCII")
        };
        let master = MasterSecret::new(&[1; 32]);
        let made = master.credentials(&KeyName { nonce: Word([3; 32]), generation: 5, ..NAME });
        assert_eq!(hex(&master.fingerprint()), "d0b2f868470e3a31");
        assert_eq!(hex(&made.api_key.0), "4ada2f48d128426c904a0e74245c8d6b");
        assert_eq!(hex(&made.secret), "0254a81dc0956d8cb3425f9ba3b5ad1b557b0ad60f0c56c690b6097b82a42238");
        assert_eq!(
            String::from_utf8_lossy(&made.passphrase),
            "f27bd2d3cb04bdc13c81c77d47eb6cda57cb94bb53aebfb829037d6dde87460c"
        );
    }

    #[test]
    fn whatever_differs_in_the_name_or_the_master_changes_all_three() {
        let master = MasterSecret::new(&[1; 32]);
        let made = master.credentials(&NAME);
        let others = [
            master.credentials(&KeyName { chain: Chain::Polygon, ..NAME }),
            master.credentials(&KeyName { address: Address([8; 20]), ..NAME }),
            master.credentials(&KeyName { nonce: Word([1; 32]), ..NAME }),
            master.credentials(&KeyName { generation: 1, ..NAME }),
            MasterSecret::new(&[2; 32]).credentials(&NAME),
        ];
        for other in others {
            assert_ne!(other.api_key, made.api_key);
            assert_ne!(other.secret, made.secret);
            assert_ne!(other.passphrase, made.passphrase);
        }
    }

    #[test]
    fn the_texts_have_the_forms_that_clients_parse() {
        let made = MasterSecret::new(&[1; 32]).credentials(&NAME);
        let uuid = text::uuid_text(&made.api_key);
        assert_eq!(uuid[14], b'4', "version 4");
        assert!(b"89ab".contains(&uuid[19]), "the RFC's variant");
        assert_eq!(made.secret_text()[43], b'=', "padded");
        assert_eq!(text::base64_32(&made.secret_text()), Some(made.secret));
        let hex = |character: &u8| matches!(character, b'0'..=b'9' | b'a'..=b'f');
        assert!(made.passphrase.iter().all(hex));
    }

    #[test]
    fn nothing_secret_is_printed() {
        let master = MasterSecret::new(&[1; 32]);
        let made = master.credentials(&NAME);
        let printed = format!("{master:?} {made:?}");
        let passphrase = String::from_utf8_lossy(&made.passphrase).into_owned();
        assert!(!printed.contains(&passphrase));
        assert!(!printed.contains(&format!("{:?}", made.secret)));
    }
}
