//! The credential headers of the three families: `SERVICE_`, `KUEST_`, `POLY_`.
//!
//! All three mean the same on every route; the family only chooses the dialect of the answer. Names
//! arrive with underscores and in any case. Other names of a family (`KUEST_REFERRAL`,
//! `POLY_BUILDER_API_KEY`) are somebody else's and are passed over. Two families in one request are
//! refused: proxies that add headers must not be able to change who is asking.

use super::head::BadRequest;
use crate::domain::Dialect;

/// The credential headers of one request, as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthHeaders<'a> {
    /// The family of the headers.
    pub dialect: Dialect,
    /// Whether their names came in lower case, as Rust clients write them.
    pub in_lower_case: bool,
    /// `…_ADDRESS`: the wallet that signs.
    pub address: Option<&'a str>,
    /// `…_SIGNATURE`: EIP-712 for L1, HMAC for L2.
    pub signature: Option<&'a str>,
    /// `…_TIMESTAMP`: seconds or milliseconds, verbatim, because it is signed.
    pub timestamp: Option<&'a str>,
    /// `…_NONCE`: L1 only, a uint256.
    pub nonce: Option<&'a str>,
    /// `…_API_KEY`: L2 only.
    pub api_key: Option<&'a str>,
    /// `…_PASSPHRASE`: L2 only.
    pub passphrase: Option<&'a str>,
    /// `…_READONLY_API_KEY`: sent beside the address, with nothing signed.
    pub readonly_api_key: Option<&'a str>,
}

/// Which of the seven credential headers a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credential {
    Address,
    Signature,
    Timestamp,
    Nonce,
    ApiKey,
    Passphrase,
    ReadonlyApiKey,
}

impl<'a> AuthHeaders<'a> {
    /// Headers that are all missing.
    #[must_use]
    pub const fn none(dialect: Dialect) -> Self {
        Self {
            dialect,
            in_lower_case: false,
            address: None,
            signature: None,
            timestamp: None,
            nonce: None,
            api_key: None,
            passphrase: None,
            readonly_api_key: None,
        }
    }

    fn slot(&mut self, credential: Credential) -> &mut Option<&'a str> {
        match credential {
            Credential::Address => &mut self.address,
            Credential::Signature => &mut self.signature,
            Credential::Timestamp => &mut self.timestamp,
            Credential::Nonce => &mut self.nonce,
            Credential::ApiKey => &mut self.api_key,
            Credential::Passphrase => &mut self.passphrase,
            Credential::ReadonlyApiKey => &mut self.readonly_api_key,
        }
    }
}

/// The family and meaning of a header name, if it is one of the twenty-one.
pub(crate) fn credential(name: &[u8]) -> Option<(Dialect, Credential)> {
    const FAMILIES: [(Dialect, &[u8]); 3] =
        [(Dialect::Poly, b"POLY_"), (Dialect::Kuest, b"KUEST_"), (Dialect::Service, b"SERVICE_")];
    const CREDENTIALS: [(Credential, &[u8]); 7] = [
        (Credential::Address, b"ADDRESS"),
        (Credential::Signature, b"SIGNATURE"),
        (Credential::Timestamp, b"TIMESTAMP"),
        (Credential::ApiKey, b"API_KEY"),
        (Credential::Passphrase, b"PASSPHRASE"),
        (Credential::Nonce, b"NONCE"),
        (Credential::ReadonlyApiKey, b"READONLY_API_KEY"),
    ];
    for (dialect, prefix) in FAMILIES {
        let Some((start, rest)) = name.split_at_checked(prefix.len()) else {
            continue;
        };
        if start.eq_ignore_ascii_case(prefix) {
            let found = CREDENTIALS.into_iter().find(|(_, text)| rest.eq_ignore_ascii_case(text));
            return found.map(|(credential, _)| (dialect, credential));
        }
    }
    None
}

/// Puts one credential header into `headers`.
pub(crate) fn note<'a>(
    headers: &mut Option<AuthHeaders<'a>>,
    name: &[u8],
    (dialect, credential): (Dialect, Credential),
    value: &'a str,
) -> Result<(), BadRequest> {
    let in_lower_case = name.first().is_some_and(u8::is_ascii_lowercase);
    let headers = headers.get_or_insert(AuthHeaders { in_lower_case, ..AuthHeaders::none(dialect) });
    if headers.dialect != dialect {
        return Err(BadRequest::FamiliesMixed);
    }
    let slot = headers.slot(credential);
    if slot.is_some() {
        return Err(BadRequest::HeaderTwice);
    }
    *slot = Some(value);
    Ok(())
}
