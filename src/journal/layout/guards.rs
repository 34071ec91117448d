//! What protects a maker that cannot be asked: a key's dead-man switch and its fill-rate breaker.

use super::record;
use crate::domain::{ApiKey, Shares, TimeMs, WalletNo};

record! {
    /// A key's dead-man switch is armed, or no longer armed. Heartbeats leave no frame.
    pub struct SwitchArmed {
        /// When.
        pub time: TimeMs,
        /// The principal whose key it is.
        pub principal: WalletNo,
        /// The key whose orders it cancels.
        pub key: ApiKey,
        /// False once it went off or was removed.
        pub armed: bool,
    }
}

record! {
    /// A key's fill-rate breaker is set, removed, tripped or reset.
    pub struct BreakerSet {
        /// When.
        pub time: TimeMs,
        /// The principal whose key it is.
        pub principal: WalletNo,
        /// The key whose fills it counts.
        pub key: ApiKey,
        /// It trips when this much was filled within the interval; zero removes it.
        pub quantity: Shares,
        /// The interval, in milliseconds.
        pub interval_ms: u64,
        /// True from when it trips until it is reset.
        pub tripped: bool,
    }
}
