//! The read core: frames in, answers out. No I/O, no clock.
//!
//! A [`Reader`] is a [`Ledger`] with indices. [`Reader::apply`] feeds it the log, frame by frame: first
//! the ledger, then the indices that the routes search. [`Reader::answer`] writes the JSON body of one
//! answer and changes nothing, so all answers at one position agree.
//!
//! | file | what it knows |
//! |---|---|
//! | `levels` | the price levels of one market |
//! | `index` | rows by principal, market, token and time; how a record changes them |
//! | `catalog` | events, catalog markets, tags, series and creators |
//! | `keep` | which parts of the state are in a snapshot |
//! | `ask` | parameters and bodies, and what is wrong with them |
//! | `page` | cursors, page sizes, the end of a list |
//! | `orders`, `trades`, `account` | what an API key sees of its principal |
//! | `programmes` | rewards, rebates, builders and quotes on request, which are not run here |
//! | `volumes` | what was traded in markets |
//! | `account/whole` | the whole account in one answer, at one number of its stream |
//! | `books`, `history` | books, prices and prices over time |
//! | `bars` | one market's prices over time, in bounded memory |
//! | `modes` | what the exchange and its markets take |
//! | `terms`, `markets` | what a market charges and allows; lists of markets |
//! | `errors` | what the codes of its errors mean |
//! | `feed` | streams: who follows what, and what each record sends them |
//! | `search` | what a search asks for, and how its answer is written |
//! | `wallet` | what anybody may know of a wallet: positions, activity, holders |
//!
//! - The server names the caller after it has checked the credentials. A caller sees its principal: all
//!   its wallets, all its keys, and nothing of anybody else's orders.
//! - One book a market, kept in terms of token 0; token 1 is shown its mirror image.
//! - Prices and sizes are texts as short as possible, or numbers where the venues have numbers.
//! - Whatever a request can make long has a limit: rows and bytes of a page, rows looked at, items of a
//!   batch, bytes of an answer.

mod account;
mod ask;
mod bars;
mod books;
mod catalog;
pub mod errors;
mod feed;
mod history;
mod index;
mod keep;
mod levels;
mod markets;
mod modes;
mod orders;
mod page;
mod programmes;
mod search;
mod terms;
mod trades;
mod volumes;
mod wallet;

use crate::catalog::Catalog;
use crate::domain::{Address, ApiKey, Dialect, MarketNo, Outcome, Position, Tick, TimeMs, WalletNo, Word};
use crate::http::{Class, Endpoint, Query, asyncapi, openapi};
use crate::journal::layout::Record;
use crate::json::{BodyReader, Writer};
use crate::ledger::{Contradiction, Ledger, MarketRow, OrderRow};
use ask::{Asked, Lists, Refused};
use bars::History;
use feed::Recent;
use index::{Index, Leaving};
use std::borrow::Cow;
use std::collections::BTreeSet;
use wallet::WalletView;

pub use ask::{read_revoked_key, read_shown_key, write_behind};
pub use feed::{Channel, Credentials, Feed, Heard, StreamIds};
pub use wallet::{AssetFormat, EndDateFormat, WalletSettings};

/// The most bytes of one answer. Lists end their pages far below; a batch of books that would be longer
/// is refused.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// What `GET /price?side=BUY` means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PriceSide {
    /// The price at which one can buy: the best ask.
    #[default]
    Taker,
    /// The best price among the buyers: the best bid.
    Book,
}

/// What the operator decides about answers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The keccak-256 of some bytes, for settlement hashes.
    pub keccak: fn(&[u8]) -> [u8; 32],
    /// What a side means when a price is asked for.
    pub price_side: PriceSide,
    /// The exchange contracts that balances name allowances for.
    pub exchanges: Vec<Address>,
    /// The builder's share of a taker's fee, in basis points.
    pub builder_share_bps: u16,
    /// How wallet data is shown.
    pub wallet: WalletSettings,
}

/// Who asks, as the credentials proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The principal of the API key.
    pub principal: WalletNo,
    /// The API key.
    pub key: ApiKey,
    /// The family of the credential headers.
    pub dialect: Dialect,
}

/// One request, taken apart.
#[derive(Clone, Copy, Debug)]
pub struct ReadRequest<'a> {
    /// What is asked for.
    pub endpoint: Endpoint,
    /// The captured path segment, still encoded.
    pub capture: &'a str,
    /// The query.
    pub query: Query<'a>,
    /// The body; empty if there was none.
    pub body: &'a [u8],
    /// Who asks; none on public routes.
    pub caller: Option<Caller>,
    /// The time of the answer.
    pub now: TimeMs,
}

/// The state of the exchange, indexed for reading.
pub struct Reader {
    ledger: Ledger,
    index: Index,
    history: History,
    wallets: WalletView,
    settings: Settings,
    bodies: BodyReader,
    lists: Lists,
    unreadable: Option<Box<str>>,
    recent: Recent,
    /// The tick that the last record replaced, if it replaced one.
    former_tick: Option<Tick>,
    stream_id: Box<str>,
    /// Only streams are made from it; see [`Reader::for_streams`].
    is_for_streams: bool,
}

impl Reader {
    /// The reader of an exchange before its first frame.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            ledger: Ledger::new(),
            index: Index::default(),
            history: History::default(),
            wallets: WalletView::default(),
            settings,
            bodies: BodyReader::new(),
            lists: Lists::default(),
            unreadable: None,
            recent: Recent::default(),
            former_tick: None,
            stream_id: "".into(),
            is_for_streams: false,
        }
    }

    /// A second reader, for a [`Feed`] alone, to be fed the same frames from here on. It has what streams tell: the
    /// state, books, the catalog and the last changes, but neither prices over time nor the rows of wallets, so no
    /// request may be answered from it.
    #[must_use]
    pub fn for_streams(&self) -> Self {
        Self {
            ledger: self.ledger.clone(),
            index: self.index.clone(),
            recent: self.recent.clone(),
            is_for_streams: true,
            ..Self::new(self.settings.clone())
        }
    }

    /// Sets the `stream_id` of the streams whose numbers answers name.
    pub fn name_streams(&mut self, stream_id: &str) {
        self.stream_id = stream_id.into();
    }

    /// Applies the record of the frame at `start..end`; see [`Ledger::apply`].
    pub fn apply(&mut self, start: Position, end: Position, record: &Record) -> Result<(), Contradiction> {
        let leaving = index::leaving(&self.ledger, record);
        self.former_tick = match record {
            Record::TickChanged(record) => self.ledger.market(record.market).map(|row| row.tick),
            _ => None,
        };
        self.ledger.apply(start, end, record)?;
        self.index.follow(&self.ledger, start, record, &leaving);
        self.recent.follow(&self.ledger, &mut self.index, start, record, &leaving);
        if !self.is_for_streams {
            self.note_prices(record, &leaving);
            self.wallets.follow(&self.ledger, &self.index, start, record);
        }
        Ok(())
    }

    /// Notes what `record` did to prices, by a trade or by changing books. `leaving` are the orders
    /// that left.
    fn note_prices(&mut self, record: &Record, leaving: &[Leaving]) {
        let time = record.time();
        let placed = match record {
            Record::OrderPlaced(record) => {
                let last = self.index.market(record.market).last_trade;
                if let Some(last) = last.filter(|_| !record.fills.is_empty()) {
                    self.history.traded(record.market, time, last.price);
                }
                Some(record.market)
            }
            Record::OrdersReplaced(record) => Some(record.market),
            _ => None,
        };
        let market_of = |gone: &Leaving| self.ledger.order_at(gone.order).expect("it has just left").market;
        let left = leaving.iter().map(market_of).collect::<BTreeSet<_>>();
        for market in left.into_iter().chain(placed) {
            self.history.quoted(market, time, &self.index.market(market).levels);
        }
    }

    /// The state that this reader follows.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The catalog as it stands.
    #[must_use]
    pub const fn catalog(&self) -> &Catalog {
        self.index.catalog()
    }

    /// Writes the body of the answer to the end of `out` and returns its HTTP status.
    ///
    /// The reader is borrowed mutably only for its buffers and for the hours that leave the leaderboard: the
    /// state stays as it is. An answer that needs a row of the archive which cannot be read is a 500;
    /// [`Self::take_unreadable`] says why.
    pub fn answer(&mut self, request: &ReadRequest<'_>, out: &mut Vec<u8>) -> u16 {
        debug_assert!(!self.is_for_streams, "its lists are not whole");
        if matches!(request.endpoint, Endpoint::Leaderboard | Endpoint::LeaderboardV2) {
            self.wallets.turn(request.now);
        }
        let start = out.len();
        let mut lists = std::mem::take(&mut self.lists);
        let answered = lists
            .read(request, &mut self.bodies)
            .and_then(|()| self.write(&Asked::new(request, &lists), &mut Writer::new(out)));
        self.lists = lists;
        match answered {
            Ok(()) => 200,
            Err(mut refused) => {
                out.truncate(start);
                refused.write(&mut Writer::new(out));
                self.unreadable = refused.unreadable.take();
                refused.status
            }
        }
    }

    /// Why something could not be read for the last answer; file and place are for the operator.
    pub fn take_unreadable(&mut self) -> Option<Box<str>> {
        self.unreadable.take()
    }

    fn write(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        use Endpoint as E;
        match asked.endpoint() {
            E::Root | E::Ok => drop(json.text("OK")),
            E::Ready => self.ready(json),
            E::OpenApi => drop(json.raw(openapi::TEXT.as_bytes())),
            E::AsyncApi => drop(json.raw(asyncapi::TEXT.as_bytes())),
            E::Time => drop(json.number(asked.now().seconds())),
            E::Version => drop(json.open_object().key("version").number(2).close_object()),
            E::Book => return self.book(asked, json),
            E::Books => return self.books(asked, json),
            E::Price => return self.price(asked, json),
            E::Prices => self.prices(asked, json),
            E::Midpoint => return self.midpoint(asked, json),
            E::Midpoints => self.midpoints(asked, json),
            E::Spread => return self.spread(asked, json),
            E::Spreads => self.spreads(asked, json),
            E::LastTradePrice => return self.last_trade_price(asked, json),
            E::LastTradesPrices | E::LastTradesPricesByGet => self.last_trades_prices(asked, json),
            E::PricesHistory => return self.prices_history(asked, json),
            E::BatchPricesHistory => return self.batch_prices_history(asked, json),
            E::TickSize => return self.tick_size(asked, json),
            E::NegRisk => return self.neg_risk(asked, json),
            E::FeeRate | E::FeeRateOfToken => return self.fee_rate(asked, json),
            E::MarketByToken => return self.market_by_token(asked, json),
            E::ClobMarketInfo => return self.clob_market_info(asked, json),
            E::BuilderFees => self.builder_fees(json),
            E::ClobMarkets | E::SimplifiedMarkets | E::SamplingMarkets | E::SamplingSimplifiedMarkets => {
                return self.market_list(asked, json);
            }
            E::ClobMarket => return self.clob_market(asked, json),
            E::LiveActivity => return self.live_activity(asked, json),
            E::Volumes => return self.volumes(asked, json),
            E::BuilderTrades | E::RewardMarkets | E::RewardsOfMarket | E::Rebates | E::Rfq => {
                return programmes::write(asked, json);
            }
            _ => match asked.endpoint().class() {
                Class::Catalog => return self.write_catalog(asked, json),
                Class::Wallet => return self.write_wallet(asked, json),
                _ => return self.write_account(asked, json),
            },
        }
        Ok(())
    }

    /// Writes the routes that need a caller. The routes of keys are not here: the server, which makes
    /// credentials, also lists them.
    fn write_account(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        use Endpoint as E;
        let caller = match asked.endpoint().class() {
            Class::Account => asked.caller()?,
            _ => return Err(ask::no_route()),
        };
        match asked.endpoint() {
            E::Order => return self.order(caller, asked, json),
            E::WholeAccount => return self.whole_account(caller, asked, json),
            E::Orders => return self.orders(caller, asked, json),
            E::OrdersById => return self.orders_by_id(caller, asked, json),
            E::Trades => return self.trades(caller, asked, json),
            E::PreMigrationOrders => page::empty(json, page::ROWS_OF_ACCOUNT, page::END),
            E::BalanceAllowance | E::BalanceAllowanceUpdate => return self.balance(caller, asked, json),
            E::OrderScoring => return account::order_scoring(asked, json),
            E::OrdersScoring => account::orders_scoring(asked, json),
            E::Notifications => drop(json.open_array().close_array()),
            E::NotificationsDrop => account::no_notifications_dropped(json),
            E::ClosedOnly => self.closed_only(caller, json),
            E::RewardsOfUser
            | E::RewardsTotal
            | E::RewardPercentages
            | E::BuilderKeyCreate
            | E::BuilderKeys
            | E::BuilderKeyRevoke => return programmes::write(asked, json),
            _ => return Err(ask::no_route()),
        }
        Ok(())
    }

    /// The market row of a number from the ledger or its index.
    fn market(&self, market: MarketNo) -> &MarketRow {
        self.ledger.market(market).expect("indices name markets that the ledger holds")
    }

    /// The order row of a position from the ledger or its index.
    fn order_at(&self, position: Position) -> Result<Cow<'_, OrderRow>, Refused> {
        Ok(self.ledger.find_at(position)?.expect("indices name orders that the ledger holds"))
    }

    fn address_of(&self, wallet: WalletNo) -> &Address {
        &self.ledger.wallet(wallet).expect("orders name wallets that the ledger holds").address
    }

    /// The hash that stands for the settlement of what the frame at `position` did.
    fn settlement_hash(&self, position: Position) -> Word {
        crate::domain::trade::settlement_hash(position, self.settings.keccak)
    }
}

/// A token, by its market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Token {
    market: MarketNo,
    outcome: Outcome,
}

/// Writes a key in an order, in the form of the caller's family of headers.
fn write_owner(json: &mut Writer<'_>, key: ApiKey, dialect: Dialect) {
    match dialect {
        Dialect::Kuest => json.ulid(key),
        Dialect::Service | Dialect::Poly => json.uuid(key),
    };
}

#[cfg(test)]
mod tests;
