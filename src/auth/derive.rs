//! The accounts that Polymarket's contracts would create for an owner (CREATE2).
//!
//! address = last 20 bytes of keccak(0xff | factory | salt | hash of the init code). Both are
//! derived on both chains, so that one owner has the same wallets everywhere.

use super::eip712::{keccak, keccak_parts};
use super::text;
use crate::domain::Address;

const PROXY_FACTORY: [u8; 20] = text::literal("aB45c5A4B0c941a2F231C04C3f49182e1A254052");
const PROXY_INIT_HASH: [u8; 32] =
    text::literal("d21df8dc65880a8606f09fe0ce3df9b8869287ab0b058be05aa9e8af6330a00b");
const SAFE_FACTORY: [u8; 20] = text::literal("aacFeEa03eb1561C4e67d661e40682Bd20E3541b");
const SAFE_INIT_HASH: [u8; 32] =
    text::literal("2bce2127ff07fb632d16c8347c4ebf501f4841168bed00d9e6ef715ddb6fcecf");

/// The owner's proxy.
#[must_use]
pub fn proxy(owner: &Address) -> Address {
    let salt = keccak(owner.as_bytes());
    create2(&PROXY_FACTORY, &salt.0, &PROXY_INIT_HASH)
}

/// The owner's safe.
#[must_use]
pub fn safe(owner: &Address) -> Address {
    let salt = keccak_parts(&[&[0; 12], owner.as_bytes()]);
    create2(&SAFE_FACTORY, &salt.0, &SAFE_INIT_HASH)
}

fn create2(factory: &[u8; 20], salt: &[u8; 32], init_hash: &[u8; 32]) -> Address {
    let hash = keccak_parts(&[&[0xff], factory, salt, init_hash]);
    Address(hash.0[12..].try_into().expect("20 of 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_test_account_has_the_wallets_that_clients_derive_for_it() {
        let address = |text: &str| text::address(text.as_bytes()).expect("an address");
        let owner = address("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
        assert_eq!(proxy(&owner), address("0x365f0CA36Ae1f641E02fE3B7743673da42A13A70"));
        assert_eq!(safe(&owner), address("0xd93B25cb943D14d0d34FBaF01Fc93a0f8b5F6E47"));
    }
}
