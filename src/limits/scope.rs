//! Which requests are counted separately, and how many are taken.
//!
//! The numbers of catalog, CLOB reads and trading writes come from the interface, which calls them targets of
//! compatibility. Those of `account`, `wallet`, `keys`, `new_wallets`, `streams` and `stream_messages` are our own, since
//! it has none: an account's read lists whatever is open, wallet reads walk histories, a key costs a curve operation, a
//! wallet its row for good, a stream a snapshot of every book it follows, and a message bytes to read and to answer.

use super::rate::Rate;

/// The rates of one scope; a request must satisfy both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Over a short time: this many may come at once.
    pub burst: Rate,
    /// Over a long time, if that is counted too.
    pub sustained: Option<Rate>,
}

/// What is counted in a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Every request costs one.
    Requests,
    /// A request costs one for each of its orders.
    Orders,
    /// A message costs one, and one more for each 4 KiB of it and each 16 KiB of its answer.
    Messages,
}

impl Unit {
    /// The word for it.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Orders => "orders",
            Self::Messages => "messages",
        }
    }
}

macro_rules! scopes {
    ($( $variant:ident $name:literal $unit:ident $count:literal / $window_s:literal $(and $longer:literal / $longer_s:literal)?, $routes:literal; )*) => {
        /// What is counted separately.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Scope { $( #[doc = $routes] $variant, )* }

        impl Scope {
            /// Every scope.
            pub const ALL: [Self; [$( $name ),*].len()] = [ $( Self::$variant, )* ];

            /// Its name in the config and in answers.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )* }
            }

            /// Its setting.
            #[must_use]
            pub const fn setting(self) -> &'static str {
                match self { $( Self::$variant => concat!("limits.", $name), )* }
            }

            /// The routes that are counted in it.
            #[must_use]
            pub const fn routes(self) -> &'static str {
                match self { $( Self::$variant => $routes, )* }
            }

            /// What is counted.
            #[must_use]
            pub const fn unit(self) -> Unit {
                match self { $( Self::$variant => Unit::$unit, )* }
            }

            /// How many are taken unless the config says otherwise.
            #[must_use]
            pub const fn rule(self) -> Rule {
                match self {
                    $( Self::$variant => Rule {
                        burst: Rate::of($count, $window_s),
                        sustained: scopes!(@longer $($longer / $longer_s)?),
                    }, )*
                }
            }
        }
    };
    (@longer) => { None };
    (@longer $count:literal / $window_s:literal) => { Some(Rate::of($count, $window_s)) };
}

scopes! {
    Catalog "catalog" Requests 4_000 / 10, "every catalog route";
    Events "events" Requests 500 / 10, "GET /events and /events/keyset";
    Markets "markets" Requests 300 / 10, "GET /markets of the catalog and /markets/keyset";
    Listings "listings" Requests 900 / 10, "GET /events and GET /markets of the catalog together";
    Tags "tags" Requests 200 / 10, "GET /tags";
    Search "search" Requests 350 / 10, "GET /public-search";
    Clob "clob" Requests 5_000 / 10, "every route of the CLOB but trading writes, and whatever has no route";
    Root "root" Requests 50 / 10, "GET /";
    Book "book" Requests 200 / 10, "GET /book";
    Books "books" Requests 80 / 10, "POST /books";
    Price "price" Requests 200 / 10, "GET /price";
    Prices "prices" Requests 80 / 10, "POST /prices";
    Midpoint "midpoint" Requests 200 / 10, "GET /midpoint";
    PricesHistory "prices_history" Requests 100 / 10, "GET /prices-history";
    BatchPricesHistory "batch_prices_history" Requests 80 / 10, "POST /batch-prices-history";
    DataTrades "data_trades" Requests 150 / 10, "GET /data/trades";
    Account "account" Requests 100 / 10, "GET /account";
    Order "order" Orders 2_400 / 10 and 24_000 / 600, "POST /order, POST /orders, POST /replace, POST /positions/…";
    Cancel "cancel" Requests 2_400 / 10 and 24_000 / 600, "DELETE /order, /orders, /cancel-all, /cancel-market-orders, heartbeats and breakers";
    Wallet "wallet" Requests 1_000 / 10, "every route of wallets' data";
    Keys "keys" Requests 100 / 10, "POST /auth/api-key, GET /auth/derive-api-key";
    NewWallets "new_wallets" Requests 100 / 3_600, "POST /auth/api-key of a wallet that the exchange does not know yet";
    Streams "streams" Requests 100 / 10, "upgrades to /ws/market and /ws/user";
    StreamMessages "stream_messages" Messages 500 / 10, "messages on /ws/market and /ws/user";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_s_numbers_are_the_defaults() {
        for (name, text) in [
            ("catalog", "4000/10s"),
            ("events", "500/10s"),
            ("markets", "300/10s"),
            ("listings", "900/10s"),
            ("tags", "200/10s"),
            ("search", "350/10s"),
            ("clob", "5000/10s"),
            ("root", "50/10s"),
            ("book", "200/10s"),
            ("books", "80/10s"),
            ("price", "200/10s"),
            ("prices", "80/10s"),
            ("midpoint", "200/10s"),
            ("prices_history", "100/10s"),
            ("batch_prices_history", "80/10s"),
            ("data_trades", "150/10s"),
            ("order", "2400/10s, 24000/10m"),
            ("cancel", "2400/10s, 24000/10m"),
        ] {
            let scope = Scope::ALL.into_iter().find(|scope| scope.name() == name);
            assert_eq!(scope.map(|scope| scope.rule().to_string()).as_deref(), Some(text), "{name}");
        }
    }
}
