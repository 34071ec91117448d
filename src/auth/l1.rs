//! L1: an owner asks for credentials and proves with a wallet signature that it is the owner.

use super::curve::Curve;
use super::eip712::Domains;
use super::{l2, text};
use crate::domain::text::{parse_hex, parse_uint256};
use crate::domain::{Address, Reject, TimeMs, Word};

/// The headers of an L1 request, as they came.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// `…_ADDRESS`.
    pub address: &'a [u8],
    /// `…_SIGNATURE`, `0x` and 130 hex digits.
    pub signature: &'a [u8],
    /// `…_TIMESTAMP`, signed as text.
    pub timestamp: &'a [u8],
    /// `…_NONCE`, a uint256 in decimal; absent means 0.
    pub nonce: Option<&'a [u8]>,
    /// `X-Chain-Id`, which no SDK sends; if it is there it must name the server's chain.
    pub chain_id: Option<&'a [u8]>,
}

/// Who made an L1 request, and which of the owner's keys it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The EOA that signed.
    pub address: Address,
    /// The nonce of the key.
    pub nonce: Word,
}

/// Checks a claim at `now`: the texts and the clock first, then one curve operation.
pub fn check(
    claim: &Claim<'_>,
    domains: &Domains,
    curve: &Curve,
    now: TimeMs,
    window_s: u64,
) -> Result<Proof, Reject> {
    let proof = read(claim, domains.chain().id(), now, window_s).ok_or(Reject::InvalidL1)?;
    let signature: [u8; 65] = parse_hex(claim.signature).ok_or(Reject::InvalidL1)?;
    let digest = domains.clob_auth_digest(&proof.address, claim.timestamp, &proof.nonce);
    if curve.recover(&digest, &signature) == Some(proof.address) { Ok(proof) } else { Err(Reject::InvalidL1) }
}

fn read(claim: &Claim<'_>, chain_id: u64, now: TimeMs, window_s: u64) -> Option<Proof> {
    let chain_matches = claim.chain_id.is_none_or(|id| text::decimal_u64(id) == Some(chain_id));
    if !chain_matches || !l2::is_fresh(claim.timestamp, now, window_s) {
        return None;
    }
    let nonce = match claim.nonce {
        Some(nonce) => Word(parse_uint256(nonce)?),
        None => Word::ZERO,
    };
    Some(Proof { address: text::address(claim.address)?, nonce })
}

#[cfg(test)]
mod tests {
    use super::super::{Chain, Signer};
    use super::*;

    struct Headers {
        address: String,
        signature: String,
    }

    fn signed(timestamp: &str, nonce: &str) -> Headers {
        let signer = Signer::new([3; 32]).expect("a key");
        let nonce = Word(parse_uint256(nonce.as_bytes()).expect("a number"));
        let digest =
            Domains::new(Chain::Amoy).clob_auth_digest(signer.address(), timestamp.as_bytes(), &nonce);
        let mut hex = [0; 130];
        text::lower_hex(&signer.sign(&digest), &mut hex);
        Headers {
            address: String::from_utf8_lossy(&text::checksummed(signer.address())).into_owned(),
            signature: format!("0x{}", String::from_utf8_lossy(&hex)),
        }
    }

    /// Checks the claim at second 1,700,000,000 with a window of 60 s.
    fn judge(claim: &Claim<'_>) -> Result<Proof, Reject> {
        let now = TimeMs::from_seconds(1_700_000_000);
        check(claim, &Domains::new(Chain::Amoy), &Curve::default(), now, 60)
    }

    #[test]
    fn an_owner_proves_itself_whatever_the_case_of_its_address() {
        let headers = signed("1700000000", "23");
        let lower = headers.address.to_lowercase();
        for address in [&headers.address, &lower] {
            let claim = Claim {
                address: address.as_bytes(),
                signature: headers.signature.as_bytes(),
                timestamp: b"1700000000",
                nonce: Some(b"23"),
                chain_id: Some(b"80002"),
            };
            let proof = judge(&claim).expect("a good claim");
            assert_eq!(Some(proof.address), text::address(lower.as_bytes()));
            assert_eq!(Some(proof.nonce), parse_uint256(b"23").map(Word));
        }
    }

    #[test]
    fn whatever_does_not_fit_is_refused() {
        let headers = signed("1700000000", "0");
        let good = Claim {
            address: headers.address.as_bytes(),
            signature: headers.signature.as_bytes(),
            timestamp: b"1700000000",
            nonce: None,
            chain_id: None,
        };
        assert!(judge(&good).is_ok());
        let old = signed("1699999939", "0");
        let cases = [
            ("another address", Claim { address: b"0x00000000000000000000000000000000000000aa", ..good }),
            ("no address", Claim { address: b"", ..good }),
            ("a signature without 0x", Claim { signature: &good.signature[2..], ..good }),
            ("a short signature", Claim { signature: &good.signature[..130], ..good }),
            ("another time than was signed", Claim { timestamp: b"1700000001", ..good }),
            (
                "an old signature",
                Claim { signature: old.signature.as_bytes(), timestamp: b"1699999939", ..good },
            ),
            ("another nonce", Claim { nonce: Some(b"1"), ..good }),
            ("an empty nonce", Claim { nonce: Some(b""), ..good }),
            ("a nonce that is no number", Claim { nonce: Some(b"0x1"), ..good }),
            ("another chain", Claim { chain_id: Some(b"137"), ..good }),
        ];
        for (case, claim) in cases {
            assert_eq!(judge(&claim), Err(Reject::InvalidL1), "{case}");
        }
    }
}
