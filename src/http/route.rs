//! One table of method and path: what is asked for, and which loop answers it.
//!
//! A row is a method, a path with at most one captured segment (`{}`), an [`Endpoint`] and its
//! [`Class`]; requests that are answered alike share an endpoint. Connections are placed by class: one
//! that ever carries a trading request belongs to an ingress loop, any other to the reader's or the
//! feed's. The most frequent rows come first, and literal paths before captures of the same length.
//!
//! - The path is compared as sent: an encoded letter in a literal makes it another path. A captured
//!   segment is handed out still encoded.
//! - One slash at the end is ignored, except in `/` itself.
//! - A path that the table has only with other methods is 405, which names them; an unknown path is 404.
//! - With `host_prefixes` on, `/gamma`, `/clob` and `/data` are removed from the front of a path that
//!   the table does not hold, and the rest is looked up. `/data/orders` is in the table, so it keeps
//!   its meaning with any method; `/data/trades` does unless its query has a name that only the wallets'
//!   trades know. A service holds only its own rows: no order is placed under `/gamma`.
//! - `GET /markets` and `GET /markets/{x}` have two forms, CLOB and catalog. A service's name
//!   decides, in front of the path or as the first label of `Host` (`gamma.…`, `gamma-api.…`,
//!   `clob.…`). Without one, a 0x condition id without `creator` is the CLOB form, and a listing is
//!   the catalog form if its query has a name that only the catalog knows.

use super::head::Method;
use super::query::{Query, segment_text};

/// Where a request is answered, and so where its connection lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Orders, cancels, user acts: an ingress loop, with an API key.
    Trading,
    /// Reads and key acts of one account: the reader's loop, with an API key.
    Account,
    /// Creating and deriving keys: the reader's loop, with a wallet's signature.
    L1,
    /// Books, prices, CLOB markets, the time: the reader's loop, without credentials.
    PublicRead,
    /// Events, catalog markets, tags, search: the reader's loop.
    Catalog,
    /// Positions, activity, holders of any wallet: the reader's loop.
    Wallet,
    /// WebSocket upgrades: the feed's loop.
    Stream,
}

macro_rules! routes {
    ($( $class:ident { $( $( $method:ident $path:literal )|+ $endpoint:ident, $doc:literal; )* } )*) => {
        /// What is asked for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Endpoint { $( $( #[doc = $doc] $endpoint, )* )* }

        impl Endpoint {
            /// Where this is answered.
            #[must_use]
            pub const fn class(self) -> Class {
                match self { $( $( Self::$endpoint => Class::$class, )* )* }
            }
        }

        /// Rows with an empty path are reached only through another row's path and query.
        const TABLE: &[Row] = &[ $( $( $( row(Method::$method, $path, Endpoint::$endpoint), )+ )* )* ];
    };
}

routes! {
    Trading {
        Post "/order" PlaceOrder, "Place one order.";
        Delete "/order" CancelOrder, "Cancel one order.";
        Post "/orders" PlaceOrders, "Place 1 to 15 orders.";
        Delete "/orders" CancelOrders, "Cancel a list of orders.";
        Post "/replace" Replace, "Replace orders by others, all or none.";
        Delete "/cancel-all" CancelAll, "Cancel every order of the caller.";
        Delete "/cancel-market-orders" CancelMarketOrders, "Cancel by market or token.";
        Post "/v1/heartbeats" Heartbeat, "Arm the dead-man switch, or keep it from going off.";
        Post "/heartbeats" HeartbeatPlain, "The same under its documented path.";
        Delete "/heartbeats" HeartbeatStop, "Take the dead-man switch away.";
        Post "/breaker" BreakerSet, "Set the fill-rate breaker.";
        Get "/breaker" Breaker, "How the fill-rate breaker stands.";
        Delete "/breaker" BreakerClear, "Take the fill-rate breaker away.";
        Post "/breaker/reset" BreakerReset, "Reset the fill-rate breaker.";
        Post "/positions/split" Split, "Turn collateral into a pair of shares.";
        Post "/positions/merge" Merge, "Turn a pair of shares into collateral.";
        Post "/positions/redeem" Redeem, "Turn resolved shares into collateral.";
    }
    PublicRead {
        Get "/book" Book, "One token's book.";
        Get "/time" Time, "The server's clock, in seconds.";
        Get "/price" Price, "The best price of one side.";
        Get "/midpoint" Midpoint, "The middle of the book.";
        Get "/spread" Spread, "The spread of the book.";
        Get "/tick-size" TickSize, "The tick of a token's market.";
        Get "/neg-risk" NegRisk, "The neg-risk flag of a token's market.";
        Get "/fee-rate" FeeRate, "The fee schedule, by query.";
        Get "/fee-rate/{}" FeeRateOfToken, "The fee schedule, by path.";
        Get "/last-trade-price" LastTradePrice, "A token's last trade.";
        Get "/version" Version, "The order version that is spoken.";
        Get "/" Root, "A sign of life.";
        Get "/ok" Ok, "A sign of life.";
        Get "/limits" Limits, "How much one client may ask for.";
        Get "/ready" Ready, "What the exchange and its markets take.";
        Get "/errors" Errors, "Every error and what it means.";
        Get "/openapi.json" OpenApi, "This interface as a document.";
        Get "/asyncapi.json" AsyncApi, "The streams as a document.";
        Get "/markets" ClobMarkets, "CLOB markets by cursor.";
        Get "/markets/{}" ClobMarket, "One CLOB market by condition id.";
        Get "/simplified-markets" SimplifiedMarkets, "Simplified markets by cursor.";
        Get "/sampling-markets" SamplingMarkets, "CLOB markets with rewards.";
        Get "/sampling-simplified-markets" SamplingSimplifiedMarkets, "Simplified ones with rewards.";
        Get "/clob-markets/{}" ClobMarketInfo, "What the clients need to build an order.";
        Get "/markets-by-token/{}" MarketByToken, "The market of a token.";
        Post "/books" Books, "Several books.";
        Post "/prices" Prices, "Several prices.";
        Post "/midpoints" Midpoints, "Several middles.";
        Post "/spreads" Spreads, "Several spreads.";
        Post "/last-trades-prices" LastTradesPrices, "Several last trades.";
        Get "/last-trades-prices" LastTradesPricesByGet, "The same as a GET with a body.";
        Get "/prices-history" PricesHistory, "A token's prices over time.";
        Post "/batch-prices-history" BatchPricesHistory, "Several tokens' prices over time.";
        Get "/fees/builder-fees/{}" BuilderFees, "A builder's fees.";
        Get "/builder/trades" BuilderTrades, "Trades that builders brought: none.";
        Get "/markets/live-activity/{}" | Get "/live-activity/events/{}"
            LiveActivity, "A market's newest trades.";
        Post "/data/volumes" Volumes, "What was traded in markets, in all and in 24 hours.";
        Get "/rewards/markets/current" | Get "/rewards/markets/multi"
            RewardMarkets, "Markets that pay rewards: none.";
        Get "/rewards/markets/{}" RewardsOfMarket, "The rewards of a market: none.";
        Get "/rebates/current" Rebates, "Rebates of makers: none.";
        Post "/rfq/request" | Delete "/rfq/request" | Post "/rfq/request/accept"
            | Post "/rfq/quote" | Delete "/rfq/quote" | Post "/rfq/quote/approve"
            | Get "/rfq/data/requests" | Get "/rfq/data/quotes" | Get "/rfq/data/best-quote"
            | Get "/rfq/data/requester/quotes" | Get "/rfq/data/quoter/quotes" | Get "/rfq/config"
            Rfq, "Quotes on request, which nobody gives here.";
        Get "/auth/validate-readonly-api-key" ValidateReadonlyKey, "Whether a read-only key is good.";
    }
    Account {
        Get "/data/orders" Orders, "The caller's live orders.";
        Post "/data/orders" OrdersById, "A list of the caller's orders.";
        Get "/data/order/{}" Order, "One of the caller's orders.";
        Get "/data/trades" Trades, "The caller's trades.";
        Get "/data/pre-migration-orders" PreMigrationOrders, "Orders of an earlier exchange: none.";
        Get "/account" WholeAccount, "The caller's orders, balances and positions at one moment.";
        Get "/balance-allowance" BalanceAllowance, "What the caller can spend.";
        Get "/balance-allowance/update" BalanceAllowanceUpdate, "The same; there is no chain to ask.";
        Get "/order-scoring" OrderScoring, "Whether an order earns rewards.";
        Post "/orders-scoring" OrdersScoring, "The same of several.";
        Get "/rewards/user" | Get "/rewards/user/markets" RewardsOfUser, "The caller's rewards: none.";
        Get "/rewards/user/total" RewardsTotal, "The same in sum.";
        Get "/rewards/user/percentages" RewardPercentages, "The caller's shares in rewards: none.";
        Get "/notifications" Notifications, "The caller's notices.";
        Delete "/notifications" NotificationsDrop, "Drop notices.";
        Get "/auth/api-keys" ApiKeys, "The caller's keys.";
        Delete "/auth/api-key" ApiKeyRevoke, "Revoke a key.";
        Get "/auth/ban-status/closed-only" ClosedOnly, "Whether the caller may only close.";
        Post "/auth/readonly-api-key" ReadonlyKeyCreate, "Make a read-only key.";
        Delete "/auth/readonly-api-key" ReadonlyKeyRevoke, "Revoke a read-only key.";
        Get "/auth/readonly-api-keys" ReadonlyKeys, "The caller's read-only keys.";
        Post "/auth/builder-api-key" BuilderKeyCreate, "Make a builder key.";
        Get "/auth/builder-api-key" BuilderKeys, "The caller's builder keys.";
        Delete "/auth/builder-api-key" BuilderKeyRevoke, "Revoke a builder key.";
    }
    L1 {
        Post "/auth/api-key" ApiKeyCreate, "Make or derive the caller's key.";
        Get "/auth/derive-api-key" ApiKeyDerive, "Derive the caller's key.";
    }
    Catalog {
        Get "/events" Events, "Events.";
        Get "/events/keyset" EventsKeyset, "Events by cursor.";
        Get "/events/creators" Creators, "Creators of events.";
        Get "/events/{}" Event, "One event by id.";
        Get "/events/slug/{}" EventBySlug, "One event by slug.";
        Get "/events/creators/{}" Creator, "One creator.";
        Get "/events/{}/tags" EventTags, "The tags of an event.";
        Get "/markets/keyset" MarketsKeyset, "Catalog markets by cursor.";
        Get "/markets/slug/{}" CatalogMarketBySlug, "One catalog market by slug.";
        Get "/markets/{}/tags" MarketTags, "The tags of a market.";
        Get "/markets/{}/description" MarketDescription, "The description of a market.";
        Get "/tags" Tags, "Tags.";
        Get "/tags/{}" Tag, "One tag by id.";
        Get "/tags/slug/{}" TagBySlug, "One tag by slug.";
        Get "/series" SeriesList, "Series.";
        Get "/series/{}" Series, "One series.";
        Get "/public-search" Search, "Search.";
        Get "" CatalogMarkets, "Catalog markets.";
        Get "" CatalogMarket, "One catalog market by id or condition id.";
    }
    Wallet {
        Get "/positions" Positions, "A wallet's positions.";
        Get "/closed-positions" ClosedPositions, "A wallet's closed positions.";
        Get "/activity" Activity, "A wallet's activity.";
        Get "/holders" Holders, "The largest holders of markets.";
        Get "/trades" WalletTrades, "Trades of wallets and markets.";
        Get "/value" WalletValue, "What a wallet's positions are worth.";
        Get "/traded" WalletTraded, "How many markets a wallet traded in.";
        Get "/oi" OpenInterest, "The collateral behind markets' shares.";
        Get "/live-volume" LiveVolume, "What was traded in markets.";
        Get "/volume" WalletVolume, "What a wallet traded.";
        Get "/other" OtherSize, "A wallet's shares of an event's unnamed outcome.";
        Get "/v1/leaderboard" Leaderboard, "Wallets by profit or volume.";
        Get "/v2/positions" PositionsV2, "Positions of a wallet or a market.";
        Get "/v2/trades" TradesV2, "Trades of wallets and markets.";
        Get "/v2/activity" ActivityV2, "A wallet's activity.";
        Get "/v2/value" ValueV2, "What a wallet's positions are worth.";
        Get "/v2/prices-history" PricesHistoryV2, "A token's prices over time.";
        Get "/v2/holders" HoldersV2, "The largest holders of tokens.";
        Get "/v2/oi" OpenInterestV2, "The collateral behind markets' shares.";
        Get "/v2/live-volume" LiveVolumeV2, "Shares that were traded in events' markets.";
        Get "/v2/tokens" TokensV2, "What tokens are.";
        Get "/v2/resolutions" ResolutionsV2, "Whether markets are resolved, and how.";
        Get "/v2/leaderboard" LeaderboardV2, "Wallets by profit or volume.";
        Get "/v2/user-stats" UserStatsV2, "In how many markets a wallet traded, and its biggest gain.";
        Get "/v2/user-volume" UserVolumeV2, "What a wallet traded on some days.";
        Get "/v2/user-pnl" UserPnlV2, "A wallet's profit over time.";
        Get "/v2/positions/combos" | Get "/v2/activity/combos" CombosV2, "Combinations of markets: none.";
        Get "/v2/builders/leaderboard" BuildersV2, "Builders by volume: none.";
        Get "/v2/builders/volume" BuildersVolumeV2, "Builders by volume over time: none.";
    }
    Stream {
        Get "/ws/market" MarketStream, "Books and trades as they change.";
        Get "/ws/user" UserStream, "The caller's orders and trades as they change.";
    }
}

/// Every row that has a path: its method, the path before its capture, and the path after it
/// (`None` without a capture).
pub fn rows() -> impl Iterator<Item = (Method, &'static str, Option<&'static str>)> {
    TABLE.iter().filter(|row| !row.before.is_empty()).map(|row| (row.method, row.before, row.after))
}

/// A request's place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route<'a> {
    /// What is asked for.
    pub endpoint: Endpoint,
    /// The captured segment, still encoded; empty if the row has none.
    pub capture: &'a str,
    /// The path as sent, which the client may have signed.
    pub full_path: &'a str,
    /// The path without its host prefix, which the client may have signed instead; equal to
    /// `full_path` when there was no prefix.
    pub path: &'a str,
}

impl Route<'_> {
    /// Where the request is answered.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.endpoint.class()
    }
}

/// Why a request has no route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// 404: no row has this path.
    NotFound,
    /// 405: the path is known with these methods.
    WrongMethod(Allowed),
}

/// The methods that a path is known with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed(u8);

impl Allowed {
    /// The value of the `Allow` header.
    #[must_use]
    pub const fn text(self) -> &'static str {
        const TEXTS: [&str; 8] = [
            "",
            "GET, HEAD",
            "POST",
            "GET, HEAD, POST",
            "DELETE",
            "GET, HEAD, DELETE",
            "POST, DELETE",
            "GET, HEAD, POST, DELETE",
        ];
        TEXTS[(self.0 & 7) as usize]
    }

    const fn with(self, method: Method) -> Self {
        Self(
            self.0
                | match method {
                    Method::Get | Method::Head => 1,
                    Method::Post => 2,
                    Method::Delete => 4,
                    Method::Options | Method::Other => 0,
                },
        )
    }
}

/// Whether a service's name may stand in front of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostPrefixes {
    /// Paths begin at the root.
    #[default]
    Off,
    /// `/gamma`, `/clob` and `/data` are removed.
    On,
}

/// Finds what `method` and `path` ask for; `host` is the request's `Host`.
pub fn route<'a>(
    method: Method,
    host: Option<&str>,
    path: &'a str,
    query: Query<'_>,
    prefixes: HostPrefixes,
) -> Result<Route<'a>, NoRoute> {
    let found = look_up(method, path);
    if found == Err(NoRoute::NotFound)
        && prefixes == HostPrefixes::On
        && let Some((service, stripped)) = split_prefix(path)
    {
        let (endpoint, capture) = look_up(method, stripped)?;
        let endpoint = markets_form(endpoint, capture, query, || Some(service));
        if !service.holds(endpoint.class()) {
            return Err(NoRoute::NotFound);
        }
        return Ok(Route { endpoint, capture, full_path: path, path: stripped });
    }
    let (endpoint, capture) = found?;
    if endpoint == Endpoint::Trades && prefixes == HostPrefixes::On && asks_wallets_trades(query) {
        return Ok(Route { endpoint: Endpoint::WalletTrades, capture, full_path: path, path });
    }
    let endpoint = markets_form(endpoint, capture, query, || Service::of_host(host?));
    Ok(Route { endpoint, capture, full_path: path, path })
}

/// The three services that other venues serve on hosts of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Service {
    Gamma,
    Clob,
    Data,
}

impl Service {
    /// The services' names in paths and hosts; in a host a dash and more may follow, as in `gamma-api`.
    const NAMES: [(&'static str, Self); 3] =
        [("gamma", Self::Gamma), ("clob", Self::Clob), ("data", Self::Data)];

    /// The service that a host's first label names.
    fn of_host(host: &str) -> Option<Self> {
        let label = host.split(['.', ':']).next()?;
        let word = label.split('-').next()?;
        Self::NAMES.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, service)| service)
    }

    const fn holds(self, class: Class) -> bool {
        match self {
            Self::Gamma => matches!(class, Class::Catalog),
            Self::Data => matches!(class, Class::Wallet),
            Self::Clob => !matches!(class, Class::Catalog | Class::Wallet),
        }
    }
}

fn split_prefix(path: &str) -> Option<(Service, &str)> {
    let rest = path.strip_prefix('/')?;
    Service::NAMES.into_iter().find_map(|(name, service)| match rest.strip_prefix(name) {
        Some("") => Some((service, "/")),
        Some(stripped) if stripped.starts_with('/') => Some((service, stripped)),
        _ => None,
    })
}

/// Decides which of its two forms a `/markets` path means; `service` is called for these paths only.
fn markets_form(
    endpoint: Endpoint,
    capture: &str,
    query: Query<'_>,
    service: impl FnOnce() -> Option<Service>,
) -> Endpoint {
    let catalog = match endpoint {
        Endpoint::ClobMarkets => Endpoint::CatalogMarkets,
        Endpoint::ClobMarket => Endpoint::CatalogMarket,
        _ => return endpoint,
    };
    let asks_catalog = match service() {
        Some(service) => service == Service::Gamma,
        None if endpoint == Endpoint::ClobMarkets => has_name(query, only_catalog_knows),
        None => !is_condition(capture) || query.first("creator").is_some_and(|value| !value.raw().is_empty()),
    };
    if asks_catalog { catalog } else { endpoint }
}

/// True if the query of `/data/trades` asks for the trades of wallets, which are at `/trades`: the caller's own
/// trades take none of these names. `limit` and `offset` are not among them, because a client that sends them
/// with credentials must not get the trades of others.
fn asks_wallets_trades(query: Query<'_>) -> bool {
    const NAMES: [&str; 6] = ["user", "takerOnly", "side", "filterType", "filterAmount", "eventId"];
    has_name(query, |name| NAMES.contains(&name))
}

/// True if a name that `is_one` has a value.
fn has_name(query: Query<'_>, is_one: impl Fn(&str) -> bool) -> bool {
    query.pairs().any(|(name, value)| !value.raw().is_empty() && is_one(&name))
}

fn only_catalog_knows(name: &str) -> bool {
    const NAMES: [&str; 18] = [
        "limit",
        "offset",
        "active",
        "closed",
        "archived",
        "featured",
        "slug",
        "id",
        "mirror",
        "cyom",
        "include_tag",
        "related_tags",
        "order",
        "ascending",
        "creator",
        "game_id",
        "market_maker_address",
        "sports_market_types",
    ];
    const BEGINNINGS: [&str; 12] = [
        "tag",
        "event",
        "condition",
        "clob_token",
        "question_id",
        "exclude_tag",
        "volume",
        "liquidity",
        "start_date",
        "end_date",
        "rewards_",
        "uma_",
    ];
    NAMES.contains(&name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// True for `0x` and 64 hex digits, in any case and percent-encoded or not.
fn is_condition(capture: &str) -> bool {
    const HEX_DIGITS: usize = 64;
    let mut scratch = Vec::new();
    let text = segment_text(capture, &mut scratch).unwrap_or(capture);
    text.strip_prefix("0x").or(text.strip_prefix("0X")).is_some_and(|digits| {
        digits.len() == HEX_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

struct Row {
    method: Method,
    /// The path before the capture; the whole path if there is none.
    before: &'static str,
    /// The path after the capture; `None` without one.
    after: Option<&'static str>,
    endpoint: Endpoint,
}

const fn row(method: Method, path: &'static str, endpoint: Endpoint) -> Row {
    let bytes = path.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'{' {
            let (before, capture) = path.split_at(at);
            return Row { method, before, after: Some(capture.split_at(2).1), endpoint };
        }
        at += 1;
    }
    Row { method, before: path, after: None, endpoint }
}

impl Row {
    /// The captured segment if `path` is this row's; empty if the row captures nothing.
    fn captured<'a>(&self, path: &'a str) -> Option<&'a str> {
        let Some(after) = self.after else {
            return (path == self.before).then_some("");
        };
        let segment = path.strip_prefix(self.before)?.strip_suffix(after)?;
        (!segment.is_empty() && !segment.contains('/')).then_some(segment)
    }
}

fn look_up(method: Method, path: &str) -> Result<(Endpoint, &str), NoRoute> {
    let path = match path.strip_suffix('/') {
        Some(shorter) if !shorter.is_empty() && !shorter.ends_with('/') => shorter,
        _ => path,
    };
    let wanted = method.answered_as();
    let mut allowed = Allowed::default();
    let mut captured = None;
    for row in TABLE {
        if let Some(segment) = row.captured(path) {
            if row.method == wanted && segment.is_empty() {
                return Ok((row.endpoint, segment));
            }
            if row.method == wanted {
                // A later row may have this very path.
                captured = captured.or(Some((row.endpoint, segment)));
            }
            allowed = allowed.with(row.method);
        }
    }
    if let Some(found) = captured {
        return Ok(found);
    }
    Err(if allowed == Allowed::default() { NoRoute::NotFound } else { NoRoute::WrongMethod(allowed) })
}

#[cfg(test)]
mod tests;
