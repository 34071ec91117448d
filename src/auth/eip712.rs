//! What exactly is signed: EIP-712 digests of orders, of L1 requests and of position acts.
//!
//! digest = keccak(0x1901 | domain separator | struct hash). Separators depend only on the chain,
//! so they are made once; an order costs one struct hash and one digest.
//!
//! | signed thing | domain |
//! |---|---|
//! | `Order` | `CTF Exchange`/2 (Kuest) or `Polymarket CTF Exchange`/2, each with a normal and a neg-risk contract |
//! | `Order`, refused | `Polymarket CTF Exchange`/3, and the contracts that Kuest's older clients name |
//! | `ClobAuth` | `ClobAuthDomain`/1, no contract |
//! | `PositionSplit`, `PositionMerge`, `PositionRedeem` | `Outcry`/1, no contract |
//!
//! A deposit wallet signs an order through ERC-7739: its owner signs a `TypedDataSign` that wraps
//! the order's struct hash with the wallet's own domain, under the order's separator.
//!
//! The act types are our own, since no venue has them off chain:
//! `PositionSplit(address wallet,bytes32 conditionId,uint256 amount,uint256 salt,uint256 timestamp,uint8 signatureType)`
//! and the same fields for `PositionMerge` and `PositionRedeem`. Whatever kind of wallet it is, its
//! owner's key signs the digest, in 65 bytes.

use super::text;
use crate::domain::{Address, ConditionId, OrderFields, OrderId, SignatureType, Word};
use keccak_asm::{Digest, Keccak256};

/// The text whose hash is the order's type; ERC-7739 signatures carry it in full.
pub const ORDER_TYPE: &str = "Order(uint256 salt,address maker,address signer,uint256 tokenId,\
uint256 makerAmount,uint256 takerAmount,uint8 side,uint8 signatureType,uint256 timestamp,\
bytes32 metadata,bytes32 builder)";

const TYPED_DATA_SIGN_TYPE: &str = "TypedDataSign(Order contents,string name,string version,\
uint256 chainId,address verifyingContract,bytes32 salt)";

const CLOB_AUTH_TYPE: &str = "ClobAuth(address address,string timestamp,uint256 nonce,string message)";

const CLOB_AUTH_MESSAGE: &str = "This message attests that I control the given wallet";

const ACT_FIELDS: &str = "(address wallet,bytes32 conditionId,uint256 amount,uint256 salt,\
uint256 timestamp,uint8 signatureType)";

/// The struct names of a split, a merge and a redeem, by [`ActTerms::act`].
const ACT_NAMES: [&str; 3] = ["PositionSplit", "PositionMerge", "PositionRedeem"];

/// The chain that signatures name. Clients know only these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// Polygon's test net, the default: nothing signed for it is worth anything elsewhere.
    Amoy,
    /// Polygon itself. A `ClobAuth` signed for it is also good at the real venues.
    Polygon,
}

impl Chain {
    /// The chain of an id, 80002 or 137.
    #[must_use]
    pub const fn new(id: u64) -> Option<Self> {
        match id {
            80_002 => Some(Self::Amoy),
            137 => Some(Self::Polygon),
            _ => None,
        }
    }

    /// The id that is signed.
    #[must_use]
    pub const fn id(self) -> u64 {
        match self {
            Self::Amoy => 80_002,
            Self::Polygon => 137,
        }
    }
}

/// Whose contracts an order is signed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Venue {
    /// Kuest's exchanges: what `KUEST_` headers mean, and `SERVICE_` unless configured otherwise.
    Kuest,
    /// Polymarket's: what `POLY_` headers mean.
    Polymarket,
}

impl Venue {
    /// Both, in the order of their numbers.
    pub const ALL: [Self; 2] = [Self::Kuest, Self::Polymarket];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Kuest => "CTF Exchange",
            Self::Polymarket => "Polymarket CTF Exchange",
        }
    }

    /// The contract for normal markets, then the one for neg-risk markets; the same on both chains.
    #[must_use]
    pub const fn contracts(self) -> [Address; 2] {
        match self {
            Self::Kuest => [
                Address(text::literal("aa1b8dE834E16eC69C044F5300041673C968c9eF")),
                Address(text::literal("e7FA09cA716FDf498d74AFF618d32AFeacc310aB")),
            ],
            Self::Polymarket => [
                Address(text::literal("E111180000d2663C0091e4f400237545B87B996B")),
                Address(text::literal("e2222d279d744050d28e00520010520000310F59")),
            ],
        }
    }
}

/// Polymarket's version 3 exchange, whose orders name positions instead of tokens; not served.
pub(super) const fn version_3_contract(chain: Chain) -> Address {
    match chain {
        Chain::Polygon => Address(text::literal("e3333700cA9d93003F00f0F71f8515005F6c00Aa")),
        Chain::Amoy => Address(text::literal("9fE6e61422AdB6F610d8597F9684b16912D50C3D")),
    }
}

/// Contracts that Kuest's older clients sign for, normal and neg-risk, on both chains; not served.
pub(super) const KUEST_FORMER_CONTRACTS: [Address; 2] = [
    Address(text::literal("aCd95F4F42322c7bE215C170362EEc57Ef4E78c2")),
    Address(text::literal("961d3230B3BBdb2592D20fa34dBD12Fa19240603")),
];

/// What a split, merge or redeem says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActTerms {
    /// 0 split, 1 merge, 2 redeem.
    pub act: u8,
    /// The wallet whose shares and collateral move.
    pub wallet: Address,
    /// The market.
    pub condition: ConditionId,
    /// In millionths; 0 in a redeem means all.
    pub amount: u64,
    /// Makes the digest unique.
    pub salt: Word,
    /// When the client made it, milliseconds since 1970.
    pub timestamp_ms: u64,
    /// Which account of its owner the wallet is.
    pub signature_type: SignatureType,
}

/// The separators and type hashes of one chain.
#[derive(Clone, Debug)]
pub struct Domains {
    chain: Chain,
    orders: [[Word; 2]; 2],
    not_served: [Word; 3],
    clob_auth: Word,
    acts: Word,
    order_type: Word,
    typed_data_sign_type: Word,
    clob_auth_type: Word,
    clob_auth_message: Word,
    act_types: [Word; 3],
    deposit_wallet_name: Word,
    version_1: Word,
}

impl Domains {
    /// The domains of `chain`.
    #[must_use]
    pub fn new(chain: Chain) -> Self {
        let order = |venue: Venue| {
            venue.contracts().map(|contract| separator(venue.name(), "2", chain, Some(&contract)))
        };
        let act_type = |name: &str| keccak_parts(&[name.as_bytes(), ACT_FIELDS.as_bytes()]);
        Self {
            chain,
            orders: Venue::ALL.map(order),
            not_served: [
                separator(Venue::Polymarket.name(), "3", chain, Some(&version_3_contract(chain))),
                separator(Venue::Kuest.name(), "2", chain, Some(&KUEST_FORMER_CONTRACTS[0])),
                separator(Venue::Kuest.name(), "2", chain, Some(&KUEST_FORMER_CONTRACTS[1])),
            ],
            clob_auth: separator("ClobAuthDomain", "1", chain, None),
            acts: separator("Outcry", "1", chain, None),
            order_type: keccak(ORDER_TYPE.as_bytes()),
            typed_data_sign_type: keccak_parts(&[TYPED_DATA_SIGN_TYPE.as_bytes(), ORDER_TYPE.as_bytes()]),
            clob_auth_type: keccak(CLOB_AUTH_TYPE.as_bytes()),
            clob_auth_message: keccak(CLOB_AUTH_MESSAGE.as_bytes()),
            act_types: ACT_NAMES.map(act_type),
            deposit_wallet_name: keccak(b"DepositWallet"),
            version_1: keccak(b"1"),
        }
    }

    /// The chain.
    #[must_use]
    pub const fn chain(&self) -> Chain {
        self.chain
    }

    /// The separator under which orders of a market are signed.
    #[must_use]
    pub const fn orders(&self, venue: Venue, neg_risk: bool) -> &Word {
        &self.orders[venue as usize][neg_risk as usize]
    }

    /// The separator of version 3 orders, which are recognised and refused.
    #[must_use]
    pub const fn orders_version_3(&self) -> &Word {
        &self.not_served[0]
    }

    /// The separators of exchanges that clients sign for but that are refused as another version.
    #[must_use]
    pub const fn not_served(&self) -> &[Word] {
        &self.not_served
    }

    /// The struct hash of an order.
    #[must_use]
    pub fn order_hash(&self, fields: &OrderFields) -> Word {
        hash_slots(&[
            self.order_type.0,
            fields.salt.0,
            of_address(&fields.maker),
            of_address(&fields.signer),
            fields.token.0,
            of_number(fields.maker_amount),
            of_number(fields.taker_amount),
            of_number(fields.side as u64),
            of_number(fields.signature_type as u64),
            of_number(fields.timestamp_ms),
            fields.metadata.0,
            fields.builder.0,
        ])
    }

    /// An order's digest under a separator: its id and, except for deposit wallets, what is signed.
    #[must_use]
    pub fn order_id(separator: &Word, order_hash: &Word) -> OrderId {
        OrderId(digest(separator, order_hash).0)
    }

    /// What the owner of a deposit wallet signs for an order of that wallet.
    #[must_use]
    pub fn deposit_order_digest(&self, separator: &Word, order_hash: &Word, wallet: &Address) -> Word {
        let wrapped = hash_slots(&[
            self.typed_data_sign_type.0,
            order_hash.0,
            self.deposit_wallet_name.0,
            self.version_1.0,
            of_number(self.chain.id()),
            of_address(wallet),
            [0; 32],
        ]);
        digest(separator, &wrapped)
    }

    /// What an L1 request signs. `timestamp` is the header's text.
    #[must_use]
    pub fn clob_auth_digest(&self, address: &Address, timestamp: &[u8], nonce: &Word) -> Word {
        let hash = hash_slots(&[
            self.clob_auth_type.0,
            of_address(address),
            keccak(timestamp).0,
            nonce.0,
            self.clob_auth_message.0,
        ]);
        digest(&self.clob_auth, &hash)
    }

    /// What the owner of a wallet signs to split, merge or redeem. It is also the act's id.
    #[must_use]
    pub fn act_digest(&self, terms: &ActTerms) -> OrderId {
        let hash = hash_slots(&[
            self.act_types[usize::from(terms.act)].0,
            of_address(&terms.wallet),
            terms.condition.0,
            of_number(terms.amount),
            terms.salt.0,
            of_number(terms.timestamp_ms),
            of_number(terms.signature_type as u64),
        ]);
        OrderId(digest(&self.acts, &hash).0)
    }
}

/// The Keccak-256 hash of `bytes`.
#[must_use]
pub fn keccak(bytes: &[u8]) -> Word {
    keccak_parts(&[bytes])
}

/// The Keccak-256 hash of `parts`, one after the other.
pub(super) fn keccak_parts(parts: &[&[u8]]) -> Word {
    let mut hasher = Keccak256::new();
    for part in parts {
        hasher.update(part);
    }
    Word(hasher.finalize().into())
}

pub(super) fn separator(name: &str, version: &str, chain: Chain, contract: Option<&Address>) -> Word {
    let (name, version) = (keccak(name.as_bytes()).0, keccak(version.as_bytes()).0);
    let chain = of_number(chain.id());
    if let Some(contract) = contract {
        let kind =
            keccak(b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
        hash_slots(&[kind.0, name, version, chain, of_address(contract)])
    } else {
        let kind = keccak(b"EIP712Domain(string name,string version,uint256 chainId)");
        hash_slots(&[kind.0, name, version, chain])
    }
}

fn digest(separator: &Word, hash: &Word) -> Word {
    keccak_parts(&[&[0x19, 0x01], &separator.0, &hash.0])
}

fn hash_slots(slots: &[[u8; 32]]) -> Word {
    keccak(slots.as_flattened())
}

fn of_number(number: u64) -> [u8; 32] {
    let mut slot = [0; 32];
    slot[24..].copy_from_slice(&number.to_be_bytes());
    slot
}

fn of_address(address: &Address) -> [u8; 32] {
    let mut slot = [0; 32];
    slot[12..].copy_from_slice(address.as_bytes());
    slot
}
