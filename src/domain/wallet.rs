//! What a wallet is to its principal.

/// Which account of a principal a wallet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WalletKind {
    /// The owner's own address. Its number names the principal.
    Eoa = 0,
    /// The owner's Polymarket proxy, derived by CREATE2.
    Proxy = 1,
    /// The owner's Gnosis safe, derived by CREATE2.
    Safe = 2,
    /// A deposit wallet, linked to its owner.
    Deposit = 3,
    /// The exchange's fee wallet.
    Fee = 4,
}

impl WalletKind {
    /// The kind of a stored byte.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Eoa),
            1 => Some(Self::Proxy),
            2 => Some(Self::Safe),
            3 => Some(Self::Deposit),
            4 => Some(Self::Fee),
            _ => None,
        }
    }
}
