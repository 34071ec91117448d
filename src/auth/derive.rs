//! The accounts that Polymarket's contracts would create for an owner (CREATE2).
//!
//! address = last 20 bytes of keccak(0xff | factory | salt | hash of the init code). Both are
//! derived on both chains, so that one owner has the same wallets everywhere.

use super::eip712::{bytes20, keccak, keccak_parts};
use crate::domain::Address;

const PROXY_FACTORY: [u8; 20] = bytes20(0xaB45_c5A4_B0c9_41a2_F231_C04C_3f49_182e, 0x1A25_4052);
const PROXY_INIT_HASH: [u8; 32] =
    bytes32(0xd21d_f8dc_6588_0a86_06f0_9fe0_ce3d_f9b8, 0x8692_87ab_0b05_8be0_5aa9_e8af_6330_a00b);
const SAFE_FACTORY: [u8; 20] = bytes20(0xaacF_eEa0_3eb1_561C_4e67_d661_e406_82Bd, 0x20E3_541b);
const SAFE_INIT_HASH: [u8; 32] =
    bytes32(0x2bce_2127_ff07_fb63_2d16_c834_7c4e_bf50, 0x1f48_4116_8bed_00d9_e6ef_715d_db6f_cecf);

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

const fn bytes32(head: u128, tail: u128) -> [u8; 32] {
    let mut bytes = [0; 32];
    let (first, last) = bytes.split_at_mut(16);
    first.copy_from_slice(&head.to_be_bytes());
    last.copy_from_slice(&tail.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::text;
    use super::*;

    #[test]
    fn the_first_test_account_has_the_wallets_that_clients_derive_for_it() {
        let address = |text: &str| text::address(text.as_bytes()).expect("an address");
        let owner = address("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
        assert_eq!(proxy(&owner), address("0x365f0cA36ae1F641E02Fe3b7743673DA42A13a70"));
        assert_eq!(safe(&owner), address("0xd93B25cb943D14d0d34FBaF01Fc93a0f8b5F6E47"));
    }
}
