//! Digests of random orders, compared with those of an independent library that derives them from
//! the Solidity declarations.

use alloy_sol_types::private::{Address as SolAddress, FixedBytes, U256};
use alloy_sol_types::{Eip712Domain, SolStruct, eip712_domain, sol};
use outcry::auth::{ActTerms, Chain, Domains, Venue};
use outcry::domain::{Address, ConditionId, OrderFields, OrderId, Side, SignatureType, TokenId, Word};
use proptest::prelude::*;

sol! {
    struct Order {
        uint256 salt;
        address maker;
        address signer;
        uint256 tokenId;
        uint256 makerAmount;
        uint256 takerAmount;
        uint8 side;
        uint8 signatureType;
        uint256 timestamp;
        bytes32 metadata;
        bytes32 builder;
    }

    struct TypedDataSign {
        Order contents;
        string name;
        string version;
        uint256 chainId;
        address verifyingContract;
        bytes32 salt;
    }

    struct ClobAuth {
        address address;
        string timestamp;
        uint256 nonce;
        string message;
    }

    struct PositionSplit {
        address wallet;
        bytes32 conditionId;
        uint256 amount;
        uint256 salt;
        uint256 timestamp;
        uint8 signatureType;
    }

    struct PositionMerge {
        address wallet;
        bytes32 conditionId;
        uint256 amount;
        uint256 salt;
        uint256 timestamp;
        uint8 signatureType;
    }

    struct PositionRedeem {
        address wallet;
        bytes32 conditionId;
        uint256 amount;
        uint256 salt;
        uint256 timestamp;
        uint8 signatureType;
    }
}

fn sol_address(address: Address) -> SolAddress {
    SolAddress::from(address.0)
}

fn exchange(venue: Venue, neg_risk: bool, chain_id: u64) -> Eip712Domain {
    let (name, contract) = match (venue, neg_risk) {
        (Venue::Kuest, false) => ("CTF Exchange", "aa1b8dE834E16eC69C044F5300041673C968c9eF"),
        (Venue::Kuest, true) => ("CTF Exchange", "e7FA09cA716FDf498d74AFF618d32AFeacc310aB"),
        (Venue::Polymarket, false) => ("Polymarket CTF Exchange", "E111180000d2663C0091e4f400237545B87B996B"),
        (Venue::Polymarket, true) => ("Polymarket CTF Exchange", "e2222d279d744050d28e00520010520000310F59"),
    };
    let contract: SolAddress = contract.parse().expect("an address");
    eip712_domain! { name: name, version: "2", chain_id: chain_id, verifying_contract: contract, }
}

fn sol_order(fields: &OrderFields) -> Order {
    Order {
        salt: U256::from_be_bytes(fields.salt.0),
        maker: sol_address(fields.maker),
        signer: sol_address(fields.signer),
        tokenId: U256::from_be_bytes(fields.token.0),
        makerAmount: U256::from(fields.maker_amount),
        takerAmount: U256::from(fields.taker_amount),
        side: fields.side as u8,
        signatureType: fields.signature_type as u8,
        timestamp: U256::from(fields.timestamp_ms),
        metadata: FixedBytes(fields.metadata.0),
        builder: FixedBytes(fields.builder.0),
    }
}

prop_compose! {
    fn any_fields()(
        salt: [u8; 32], maker: [u8; 20], signer: [u8; 20], token: [u8; 32], amounts: [u64; 2],
        side in 0_u8..2, kind in 0_u8..4, timestamp_ms: u64, metadata: [u8; 32], builder: [u8; 32],
    ) -> OrderFields {
        OrderFields {
            salt: Word(salt),
            maker: Address(maker),
            signer: Address(signer),
            token: TokenId(token),
            maker_amount: amounts[0],
            taker_amount: amounts[1],
            side: Side::from_byte(side).expect("0 or 1"),
            signature_type: SignatureType::from_byte(kind).expect("0 to 3"),
            timestamp_ms,
            metadata: Word(metadata),
            builder: Word(builder),
        }
    }
}

fn any_chain() -> impl Strategy<Value = Chain> {
    prop_oneof![Just(Chain::Amoy), Just(Chain::Polygon)]
}

proptest! {
    #[test]
    fn orders_have_the_digest_that_the_declaration_gives(
        fields in any_fields(), chain in any_chain(), polymarket: bool, neg_risk: bool,
    ) {
        let venue = if polymarket { Venue::Polymarket } else { Venue::Kuest };
        let domains = Domains::new(chain);
        let exchange = exchange(venue, neg_risk, chain.id());
        let separator = domains.orders(venue, neg_risk);
        let hash = domains.order_hash(&fields);
        let order = sol_order(&fields);
        prop_assert_eq!(separator.0, exchange.separator().0);
        prop_assert_eq!(hash.0, order.eip712_hash_struct().0);
        let id = Domains::order_id(separator, &hash);
        prop_assert_eq!(id, OrderId(order.eip712_signing_hash(&exchange).0));

        let wrapped = TypedDataSign {
            contents: order,
            name: "DepositWallet".into(),
            version: "1".into(),
            chainId: U256::from(chain.id()),
            verifyingContract: sol_address(fields.maker),
            salt: FixedBytes::ZERO,
        };
        let digest = domains.deposit_order_digest(separator, &hash, &fields.maker);
        prop_assert_eq!(digest.0, wrapped.eip712_signing_hash(&exchange).0);
    }

    #[test]
    fn l1_requests_have_the_digest_that_the_declaration_gives(
        owner: [u8; 20], timestamp in "[0-9]{1,13}", nonce: [u8; 32], chain in any_chain(),
    ) {
        let claim = ClobAuth {
            address: SolAddress::from(owner),
            timestamp: timestamp.clone(),
            nonce: U256::from_be_bytes(nonce),
            message: "This message attests that I control the given wallet".into(),
        };
        let domain = eip712_domain! { name: "ClobAuthDomain", version: "1", chain_id: chain.id(), };
        let digest = Domains::new(chain).clob_auth_digest(&Address(owner), timestamp.as_bytes(), &Word(nonce));
        prop_assert_eq!(digest.0, claim.eip712_signing_hash(&domain).0);
    }

    #[test]
    fn position_acts_have_the_digest_that_the_declaration_gives(
        act in 0_u8..3, owner: [u8; 20], condition: [u8; 32], amount: u64, salt: [u8; 32],
        timestamp_ms: u64, kind in 0_u8..4, chain in any_chain(),
    ) {
        let terms = ActTerms {
            act,
            wallet: Address(owner),
            condition: ConditionId(condition),
            amount,
            salt: Word(salt),
            timestamp_ms,
            signature_type: SignatureType::from_byte(kind).expect("0 to 3"),
        };
        let domain = eip712_domain! { name: "Outcry", version: "1", chain_id: chain.id(), };
        let split = PositionSplit {
            wallet: SolAddress::from(owner),
            conditionId: FixedBytes(condition),
            amount: U256::from(amount),
            salt: U256::from_be_bytes(salt),
            timestamp: U256::from(timestamp_ms),
            signatureType: kind,
        };
        let PositionSplit { wallet, conditionId, amount, salt, timestamp, signatureType } = split.clone();
        let merge = PositionMerge { wallet, conditionId, amount, salt, timestamp, signatureType };
        let redeem = PositionRedeem { wallet, conditionId, amount, salt, timestamp, signatureType };
        let expected = match act {
            0 => split.eip712_signing_hash(&domain),
            1 => merge.eip712_signing_hash(&domain),
            _ => redeem.eip712_signing_hash(&domain),
        };
        prop_assert_eq!(Domains::new(chain).act_digest(&terms), OrderId(expected.0));
    }
}
