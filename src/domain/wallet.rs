//! What a wallet is to its principal.

use super::byte::byte_enum;

byte_enum! {
    /// Which account of a principal a wallet is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
}

impl WalletKind {
    /// Its name in the operator's answers.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Eoa => "eoa",
            Self::Proxy => "proxy",
            Self::Safe => "safe",
            Self::Deposit => "deposit",
            Self::Fee => "fee",
        }
    }
}
