//! The nouns of the exchange: money, prices, names, orders, markets, refusals.
//!
//! Everything here is a plain value: integers with a unit, byte strings with a meaning. Nothing
//! in this room does I/O, reads a clock, allocates on the order path or names another room.
//!
//! | unit | type | range |
//! |---|---|---|
//! | collateral | [`Collateral`], millionths of one USDC | 0..=`u64::MAX` |
//! | shares | [`Shares`], millionths of one outcome share | 0..=`u64::MAX` |
//! | price | [`Price`], ten-thousandths of one USDC a share | 1..=9,999 |
//! | time | [`TimeMs`], milliseconds since 1970 | |

pub mod amount;
pub mod breaker;
pub(crate) mod byte;
pub mod dialect;
pub mod fee;
pub mod ids;
pub mod item;
pub mod market;
pub mod nonce;
pub mod order;
pub mod price;
pub mod reject;
pub mod text;
pub mod time;
pub mod trade;
pub mod wallet;

pub use amount::{Collateral, Shares};
pub use breaker::BreakerState;
pub use dialect::Dialect;
pub use fee::FeeSchedule;
pub use ids::{Address, ApiKey, ConditionId, MarketNo, OrderId, Position, ShardNo, TokenId, WalletNo, Word};
pub use item::ItemKind;
pub use market::{Mode, Outcome, Payout};
pub use order::{OrderFields, OrderType, SelfTrade, Side, SignatureType, SignedOrder};
pub use price::{PRICE_ONE, Price, Tick};
pub use reject::Reject;
pub use time::TimeMs;
pub use trade::TradeId;
pub use wallet::WalletKind;
