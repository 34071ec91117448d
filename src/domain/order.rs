//! What a trader signs and sends: the eleven signed fields, and what rides along unsigned.
//!
//! The struct that is signed is the venues' V2 `Order`; its field order is the order of
//! [`OrderFields`]. Expiration, order type, post-only and the owner are not signed.

use super::amount::{Collateral, Shares};
use super::byte::byte_enum;
use super::ids::{Address, ApiKey, ConditionId, TokenId, Word};
use super::market::Outcome;
use super::price::{PRICE_ONE, Price, Tick, divided};

byte_enum! {
    /// Buy or sell, of the order's own token.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Side {
        /// Pays collateral, receives shares.
        Buy = 0,
        /// Gives shares, receives collateral.
        Sell = 1,
    }
}

impl Side {
    /// The other side.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Buy => Self::Sell,
            Self::Sell => Self::Buy,
        }
    }

    /// The side on which token 0 sees an order for `outcome` on this side, and the other way round: a bid for one
    /// token is an ask for the other.
    #[must_use]
    pub const fn seen_from(self, outcome: Outcome) -> Self {
        match outcome {
            Outcome::Zero => self,
            Outcome::One => self.opposite(),
        }
    }

    /// 0 or 1, as an index into pairs.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// `BUY` or `SELL`.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Buy => "BUY",
            Self::Sell => "SELL",
        }
    }
}

byte_enum! {
    /// How long an order lives.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum OrderType {
        /// Good till cancelled.
        Gtc = 0,
        /// Good till its expiration, a whole second.
        Gtd = 1,
        /// Filled whole at once, or killed.
        Fok = 2,
        /// Filled as far as possible at once; the rest is killed.
        Fak = 3,
    }
}

impl OrderType {
    /// True for the two types that can rest in the book.
    #[must_use]
    pub const fn rests(self) -> bool {
        matches!(self, Self::Gtc | Self::Gtd)
    }

    /// `GTC`, `GTD`, `FOK` or `FAK`.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Gtc => "GTC",
            Self::Gtd => "GTD",
            Self::Fok => "FOK",
            Self::Fak => "FAK",
        }
    }
}

byte_enum! {
    /// Who gives way when a principal would trade with itself.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum SelfTrade {
        /// The incoming order stops there; what was filled before stays filled.
        #[default]
        ExpireTaker = 0,
        /// The resting order is removed and the walk goes on.
        ExpireMaker = 1,
        /// Both.
        ExpireBoth = 2,
    }
}

byte_enum! {
    /// Which kind of account `maker` is and how the signature is checked.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum SignatureType {
        /// The signer itself.
        Eoa = 0,
        /// The signer's Polymarket proxy (CREATE2).
        Proxy = 1,
        /// The signer's Gnosis safe (CREATE2).
        Safe = 2,
        /// A linked deposit wallet, signed through ERC-7739.
        Deposit = 3,
    }
}

/// The eleven signed fields, in the order in which they are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderFields {
    /// Makes the digest unique; a uint256.
    pub salt: Word,
    /// The wallet that trades.
    pub maker: Address,
    /// Who signed: the EOA, or for [`SignatureType::Deposit`] the deposit wallet.
    pub signer: Address,
    /// The outcome token.
    pub token: TokenId,
    /// What the maker gives: collateral for a buy, shares for a sell, in millionths.
    pub maker_amount: u64,
    /// What the maker takes: shares for a buy, collateral for a sell, in millionths.
    pub taker_amount: u64,
    /// Buy or sell.
    pub side: Side,
    /// How to check the signature.
    pub signature_type: SignatureType,
    /// When the client made the order, milliseconds since 1970.
    pub timestamp_ms: u64,
    /// Free for the client.
    pub metadata: Word,
    /// The builder's code; zero for none.
    pub builder: Word,
}

impl OrderFields {
    /// The collateral side of the order as signed.
    #[must_use]
    pub const fn collateral(&self) -> Collateral {
        match self.side {
            Side::Buy => Collateral(self.maker_amount),
            Side::Sell => Collateral(self.taker_amount),
        }
    }

    /// The share side of the order as signed.
    #[must_use]
    pub const fn shares(&self) -> Shares {
        match self.side {
            Side::Buy => Shares(self.taker_amount),
            Side::Sell => Shares(self.maker_amount),
        }
    }

    /// Both sides.
    #[must_use]
    pub const fn signed(&self) -> Ratio {
        Ratio { collateral: self.collateral(), shares: self.shares() }
    }
}

/// The amounts that were signed: a taker pays at most, or receives at least, their ratio a share; see
/// [`Self::snapped_price`] for what a market buy may pay above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// The collateral side.
    pub collateral: Collateral,
    /// The share side.
    pub shares: Shares,
}

impl Ratio {
    /// The price signed, if collateral / shares is exactly a price on `tick`'s grid.
    #[must_use]
    pub fn exact_price(self, tick: Tick) -> Option<Price> {
        if self.shares.is_zero() {
            return None;
        }
        let (quotient, rest) = divided(self.scaled(), self.shares.0);
        if rest != 0 {
            return None;
        }
        let price = Price::new(u16::try_from(quotient).ok()?)?;
        tick.holds(price).then_some(price)
    }

    /// The highest grid price that is not above the ratio signed by more than a twentieth of a tick; `None` if there is
    /// none, or the ratio is not below one. Market buys need it: their share amount was floored, so the ratio lies a
    /// little above the tick that was meant, and one client's arithmetic leaves it .0001 below at a tick of .0025.
    #[must_use]
    pub fn snapped_price(self, tick: Tick) -> Option<Price> {
        const PARTS: u128 = 20;
        let step = u128::from(self.shares.0) * u128::from(tick.ten_thousandths());
        if self.shares.0 <= self.collateral.0 {
            return None;
        }
        let steps = (PARTS * self.scaled() + step) / (PARTS * step);
        let steps = u16::try_from(steps).ok()?.min(tick.levels());
        Price::new(steps * tick.ten_thousandths())
    }

    /// The collateral times `PRICE_ONE`: divided by the shares, the price in ten-thousandths.
    fn scaled(self) -> u128 {
        u128::from(self.collateral.0) * u128::from(PRICE_ONE)
    }
}

/// The longest signature: the ERC-7739 wrap of [`SignatureType::Deposit`].
pub const SIGNATURE_BYTES_MAX: usize = 317;

/// An order as it arrived: signed fields, signature, and what is not signed.
///
/// A plain value of about 660 bytes, so that it crosses rings without a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedOrder {
    /// What was signed.
    pub fields: OrderFields,
    /// The signature's bytes; only the first `signature_len` count.
    pub signature: [u8; SIGNATURE_BYTES_MAX],
    /// 65, or 317 for a deposit wallet.
    pub signature_len: u16,
    /// Unix seconds from which the order no longer trades; 0 for never.
    pub expiration_s: u64,
    /// Unix milliseconds from which its shard refuses it; 0 for never. What rests by then stays.
    pub deadline_ms: u64,
    /// GTC, GTD, FOK or FAK.
    pub order_type: OrderType,
    /// Refuse rather than trade on arrival.
    pub post_only: bool,
    /// Who gives way in a self-trade.
    pub self_trade: SelfTrade,
    /// The API key named as `owner`.
    pub owner: ApiKey,
    /// The market named beside the token, if any: checked, never signed.
    pub condition: Option<ConditionId>,
}

impl SignedOrder {
    /// The signature as it arrived.
    #[must_use]
    pub fn signature(&self) -> &[u8] {
        &self.signature[..usize::from(self.signature_len)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn buy(collateral: u64, shares: u64) -> Ratio {
        Ratio { collateral: Collateral(collateral), shares: Shares(shares) }
    }

    #[test]
    fn limit_prices_are_exact_and_market_buys_snap_to_the_tick_below() {
        let cent = Tick::new(100).expect("a tick");
        let exact = buy(5_100_000, 10_000_000);
        let floored = buy(10_000_000, 19_607_800);
        assert_eq!(exact.exact_price(cent), Price::new(5_100));
        assert_eq!(floored.exact_price(cent), None);
        assert_eq!(buy(5_150_000, 10_000_000).exact_price(cent), None);
        // Ten-thousandths of this collateral need more than 64 bits.
        let large = buy(u64::MAX / 100 * 51, u64::MAX / 100 * 100);
        assert_eq!(large.exact_price(cent), Price::new(5_100));
        assert_eq!(buy(1, 0).exact_price(cent), None);
        assert_eq!(floored.snapped_price(cent), Price::new(5_100));
        assert_eq!(buy(1, 0).snapped_price(cent), None);
        // A ratio between two ticks is a limit all the same.
        assert_eq!(buy(5_190_000, 10_000_000).snapped_price(cent), Price::new(5_100));
        assert_eq!(buy(5_194_999, 10_000_000).snapped_price(cent), Price::new(5_100));
        assert_eq!(buy(5_195_000, 10_000_000).snapped_price(cent), Price::new(5_200));
        let quarter = Tick::new(25).expect("a tick");
        assert_eq!(buy(5_124_000, 10_000_000).snapped_price(quarter), Price::new(5_125));
        assert_eq!(buy(9_400, 1_000_000).snapped_price(cent), None);
        assert_eq!(buy(9_500, 1_000_000).snapped_price(cent), Price::new(100));
        // Below one, the last tick has no next.
        for collateral in [990_000, 999_499, 999_500, 999_999] {
            assert_eq!(buy(collateral, 1_000_000).snapped_price(cent), Price::new(9_900), "{collateral}");
        }
        for collateral in [1_000_000, 1_000_001, u64::MAX] {
            assert_eq!(buy(collateral, 1_000_000).snapped_price(cent), None, "{collateral}");
        }
    }
}
