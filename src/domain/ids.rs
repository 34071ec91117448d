//! Names: addresses, digests, token and condition ids, and the numbers the log knows things by.
//!
//! Frames name orders by the position of their placement and wallets and markets by their
//! registry number, so that the log means the same with any number of shards on any machine.

macro_rules! bytes_id {
    ($(#[$doc:meta])* $name:ident, $len:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub [u8; $len]);

        impl $name {
            /// All zero.
            pub const ZERO: Self = Self([0; $len]);

            /// The bytes, most significant first.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; $len] {
                &self.0
            }
        }
    };
}

bytes_id!(
    /// A 20-byte Ethereum address.
    Address, 20
);
bytes_id!(
    /// An order's EIP-712 digest, which is its id on the wire (`orderID` and `orderHash`).
    OrderId, 32
);
bytes_id!(
    /// An outcome token's uint256 id, big-endian; decimal text on the wire.
    TokenId, 32
);
bytes_id!(
    /// A market's condition id; `0x` and 64 hex digits on the wire.
    ConditionId, 32
);
bytes_id!(
    /// Any other uint256 or bytes32, big-endian.
    Word, 32
);
bytes_id!(
    /// An API key: 128 bits, shown as a UUID or (Kuest order records) as a ULID.
    ApiKey, 16
);

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $int);
    };
}

number!(
    /// A byte position in the log; positions only grow, through every epoch. Frames start at
    /// multiples of 64, and the orders of a replace are named from its frame's start on.
    Position, u64
);
number!(
    /// A wallet's registry number, dense from 0. A principal is named by its EOA's number.
    WalletNo, u32
);
number!(
    /// A market's registry number, dense from 0.
    MarketNo, u32
);
number!(
    /// A shard of this start, 0..N. Never stored.
    ShardNo, u16
);

impl ShardNo {
    /// The shard that trades the markets of this key, of as many as this start has.
    #[must_use]
    pub fn of_key(key: u32, shards: u16) -> Self {
        assert!(0 < shards, "an exchange has a shard");
        Self(u16::try_from(key % u32::from(shards)).expect("a remainder is below a u16"))
    }
}

impl WalletNo {
    /// The number as an index into tables.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl MarketNo {
    /// The number as an index into tables.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
