//! The user channel: an account's orders and trades.
//!
//! | event | when | `status` |
//! |---|---|---|
//! | `order`, `PLACEMENT` | an order was taken | `LIVE`, or `MATCHED` if nothing of it is left to trade |
//! | `order`, `UPDATE` | it was filled while it rested | the same |
//! | `order`, `CANCELLATION` | it ended with a rest unfilled, unless it took what there was and did not rest | `CANCELED` |
//! | `trade`, `TRADE` | the account took part in a trade, on one side or on both | `MATCHED`, and at once `CONFIRMED` |
//!
//! - So exactly one event ends an order: `CANCELLATION`, or the one with `MATCHED`. Its `reason` is `filled`,
//!   `rest_not_filled` if the order ended with less than it asked for, the reason of a removal, or the code of a
//!   refusal. A FOK order that was killed was never placed: it only ends.
//! - A trade has two events for each account in it, one right after the other. It is final at once, because this ledger
//!   is the settlement, but some clients act on `MATCHED` and others wait for `CONFIRMED`.
//! - `owner`, `order_owner` and `trade_owner` are the key with which the caller authenticated.
//! - With `"cancel_on_disconnect": true` the orders placed with the shown key are cancelled when the stream ends,
//!   whoever ends it, except by the server's own stop; `false` revokes that.
//! - A client that named markets sees gaps in the numbers, which are events of other markets. One that subscribes to
//!   none with its credentials follows all, and naming some later changes nothing, whether it shows them again or not.
//!   One that leaves the last that it named follows all until it names some again.
//! - A maker is shown its own part of a trade, the taker every maker's part.

use super::super::ask::Refused;
use super::super::index::Trade;
use super::super::orders::{original_size, reason};
use super::super::page::{WORK_MAX, WORK_OF_ARCHIVED, WORK_OF_ORDER};
use super::super::trades::base_fee;
use super::super::{Caller, Reader};
use super::ask::{self, Ask, Credentials, Operation, SUBSCRIPTIONS_MAX, Since};
use super::makers::Makers;
use super::recent::{Event, Stand, Step, What};
use super::{Account, Channel, Feed, Markets, Subscriber, unauthorized, write_stamp, write_unknown};
use crate::domain::{ApiKey, Position, TimeMs, TradeId, WalletNo};
use crate::json::Writer;
use crate::ledger::{OrderRow, OrderState};
use std::collections::BTreeSet;

/// Trades that an order's event lists: the newest ones.
const ASSOCIATED_TRADES_MAX: usize = 100;

/// Streams of one account at a time: each gets every event.
const STREAMS_OF_ACCOUNT_MAX: usize = 32;

/// Whose credentials are taken. Which part is wrong is not said: whoever guesses would learn of it.
const LIVING: &str = "the id of a key that lives and is not read-only, with its own secret and passphrase";

/// Events that one message may have replayed.
const REPLAYED_MAX: u64 = 4_096;

/// Work that replaying them may be: few of those events may be of archived orders, or trades with thousands of makers.
const REPLAYED_WORK_MAX: u64 = 2 * WORK_MAX;

impl Reader {
    /// The number of the last event of an account.
    pub(super) fn events_of(&self, caller: &Caller) -> u64 {
        self.index.principal(caller.principal).map_or(0, |principal| principal.events)
    }

    /// The trade of a taker, which an event names.
    pub(super) fn trade_of(&self, taker: Position) -> Trade<'_> {
        let index = self.index.trade_at(taker).expect("an event names a trade that the index has");
        self.index.trade(index)
    }

    /// Whether telling these events, for which each order that they name is looked at, is work for one message.
    fn can_tell(&self, events: &[&Event]) -> bool {
        let mut left = REPLAYED_WORK_MAX;
        let mut takes = |order: Position| {
            let work = if self.ledger.order_at(order).is_some() { WORK_OF_ORDER } else { WORK_OF_ARCHIVED };
            left.checked_sub(work).map(|less| left = less).is_some()
        };
        events.iter().all(|event| match event.what {
            What::Order { order, .. } => takes(order),
            What::Trade { taker, .. } => {
                takes(taker) && self.trade_of(taker).legs.iter().all(|leg| takes(leg.maker))
            }
        })
    }
}

/// The key's id, unless something else stands in its place, which may be the secret.
fn shown<'a>(credentials: &Credentials<'a>) -> &'a str {
    const UUID_BYTES: usize = 36;
    if credentials.api_key.len() == UUID_BYTES { credentials.api_key } else { "no id of a key" }
}

/// What a message names that is not there, each with its field.
type Unknown<'a> = Vec<(&'static str, &'a str)>;

/// The markets that a follower is narrowed to by a message, and the names that mean none.
fn narrowed<'a>(
    account: Option<&Account>,
    caller: &Caller,
    ask: &Ask<'a>,
    reader: &Reader,
) -> Result<(Markets, Unknown<'a>), Refused> {
    let mut unknown = Vec::new();
    let mut named = BTreeSet::new();
    for (text, id) in &ask.markets {
        match id.and_then(|id| reader.index.condition(&id)) {
            Some(market) => drop(named.insert(market)),
            None => unknown.push(("markets", *text)),
        }
    }
    // Some clients show their credentials with every message: only those of another key begin anew.
    let same_key = |known: &Caller| (known.principal, known.key) == (caller.principal, caller.key);
    let names_none = ask.markets.is_empty();
    let widens = ask.credentials.is_some() && ask.operation == Operation::Subscribe && names_none;
    let goes_on = account.filter(|account| same_key(&account.caller) && !widens);
    let markets = match (goes_on.map(|account| account.markets.clone()), ask.operation) {
        (None | Some(Markets::AllAgain), Operation::Subscribe) if !names_none => Markets::Only(named),
        (None | Some(Markets::All), _) => Markets::All,
        (Some(Markets::AllAgain), _) => Markets::AllAgain,
        (Some(Markets::Only(mut markets)), Operation::Subscribe) => {
            markets.extend(&named);
            Markets::Only(markets)
        }
        (Some(Markets::Only(mut markets)), Operation::Unsubscribe) => {
            let had_some = !markets.is_empty();
            markets.retain(|market| !named.contains(market));
            if had_some && markets.is_empty() { Markets::AllAgain } else { Markets::Only(markets) }
        }
    };
    let count = markets.only().map_or(0, BTreeSet::len);
    if SUBSCRIPTIONS_MAX < count {
        return Err(ask::too_many(Channel::User, &ask.tokens, count));
    }
    Ok((markets, unknown))
}

impl Feed {
    /// Takes credentials, narrows an account to markets or widens it, and answers the message.
    pub(super) fn follow_account(
        &mut self,
        client: u32,
        ask: &Ask<'_>,
        reader: &Reader,
        (now, promised): (TimeMs, Option<(WalletNo, ApiKey)>),
        admit: impl FnOnce(&Credentials<'_>) -> Option<Caller>,
    ) -> Result<(), Refused> {
        let Some(Some(Subscriber::User(account))) = self.subscribers.get(client as usize) else {
            return Ok(());
        };
        let since = ask.from.as_ref().map(|since| match since {
            Since::Number(number) => *number,
            Since::Numbers(_) => {
                unreachable!("`ask::read` takes sequences by market on the other channel only")
            }
        });
        let known = account.as_ref().map(|account| account.caller);
        let caller = match (&ask.credentials, known) {
            (Some(credentials), _) => {
                admit(credentials).ok_or_else(|| unauthorized(shown(credentials), LIVING))?
            }
            (None, Some(caller)) => caller,
            (None, None) => return Err(unauthorized("", ask::CREDENTIALS)),
        };
        let (markets, unknown) = narrowed(account.as_ref(), &caller, ask, reader)?;
        let others = self.accounts.get(&caller.principal).map_or(0, BTreeSet::len);
        let is_counted = known.as_ref().is_some_and(|known| known.principal == caller.principal);
        if !is_counted && STREAMS_OF_ACCOUNT_MAX <= others {
            let refused = Refused::new(400, "too_many_streams", "too many streams of one account");
            let allowed = format!("at most {STREAMS_OF_ACCOUNT_MAX} streams of one account at a time");
            return Err(refused.about("auth", &(others + 1).to_string(), allowed));
        }
        // What a request promised before its connection became a stream holds until a message says otherwise.
        let key = (caller.principal, caller.key);
        let cancels = ask.cancel_on_disconnect.unwrap_or(promised == Some(key));
        if cancels && promised.is_some_and(|promised| promised != key) {
            return Err(ask::answers_for_another());
        }
        let account = Account { caller, markets, cancel_on_disconnect: cancels };
        self.subscribers[client as usize] = Some(Subscriber::User(Some(account)));
        if let Some(before) = known.filter(|before| before.principal != caller.principal) {
            self.forget_account(client, before.principal);
        }
        self.accounts.entry(caller.principal).or_default().insert(client);
        let same_stream = ask.stream_id.is_none_or(|id| self.ids.know(id));
        let sequence = reader.events_of(&caller);
        let events = since
            .filter(|since| same_stream && sequence.saturating_sub(*since) <= REPLAYED_MAX)
            .and_then(|since| reader.recent.events_from(caller.principal, since, sequence))
            .filter(|events| reader.can_tell(events));
        self.say_account(client, reader, ask.operation, &unknown, events.is_some(), now);
        let mut makers = Makers::default();
        for event in events.into_iter().flatten() {
            self.tell_some(&[client], reader, &caller, (event, &mut makers), now);
        }
        Ok(())
    }

    /// Sends events to all clients that follow their accounts.
    pub(super) fn tell_all<'a>(
        &mut self,
        reader: &'a Reader,
        events: impl Iterator<Item = &'a Event>,
        now: TimeMs,
    ) {
        let mut makers = Makers::default();
        events.for_each(|event| self.tell(reader, (event, &mut makers), now));
    }

    fn tell(&mut self, reader: &Reader, (event, makers): (&Event, &mut Makers), now: TimeMs) {
        let Some(clients) = self.accounts.get(&event.principal) else {
            return;
        };
        let mut by_key: Vec<(Caller, Vec<u32>)> = Vec::new();
        for &client in clients {
            let Some(Some(Subscriber::User(Some(account)))) = self.subscribers.get(client as usize) else {
                continue;
            };
            match by_key.iter_mut().find(|(caller, _)| caller.key == account.caller.key) {
                Some((_, clients)) => clients.push(client),
                None => by_key.push((account.caller, vec![client])),
            }
        }
        for (caller, clients) in by_key {
            self.tell_some(&clients, reader, &caller, (event, &mut *makers), now);
        }
    }

    /// Sends an event to those of some clients of one key that follow its market.
    fn tell_some(
        &mut self,
        clients: &[u32],
        reader: &Reader,
        caller: &Caller,
        (event, makers): (&Event, &mut Makers),
        now: TimeMs,
    ) {
        let order = match event.what {
            What::Order { order, .. } => order,
            What::Trade { taker, .. } => taker,
        };
        // An archived order that cannot be read is left out; the gap in the numbers shows that an event is missing.
        let Ok(Some(row)) = reader.ledger.find_at(order) else {
            return;
        };
        let (subscribers, stream_id) = (&self.subscribers, &self.ids.now);
        let follows = |client: &u32| match subscribers.get(*client as usize) {
            Some(Some(Subscriber::User(Some(account)))) => account.markets.have(row.market),
            _ => false,
        };
        self.out.tell(clients.iter().copied().filter(follows), |out| {
            let json = &mut Writer::new(out);
            json.open_object();
            match event.what {
                What::Order { stand, .. } => write_order(json, reader, caller, &row, stand, event.time),
                What::Trade { is_final, .. } => {
                    let status = if is_final { "CONFIRMED" } else { "MATCHED" };
                    let shown = makers.shown(reader, &row, caller.principal);
                    write_trade(json, reader, caller, &row, (status, shown), event.time);
                }
            }
            json.key("sequence").number(event.sequence);
            write_stamp(json, stream_id, now);
            json.close_object();
        });
    }

    fn say_account(
        &mut self,
        client: u32,
        reader: &Reader,
        operation: Operation,
        unknown: &[(&str, &str)],
        replayed: bool,
        now: TimeMs,
    ) {
        let Some(Some(Subscriber::User(Some(account)))) = self.subscribers.get(client as usize) else {
            return;
        };
        let stream_id = &self.ids.now;
        self.out.tell([client], |out| {
            let json = &mut Writer::new(out);
            let word = if operation == Operation::Subscribe { "subscribed" } else { "unsubscribed" };
            json.open_object().key("type").text(word).key("channel").text("user");
            json.key("markets").open_array();
            for market in account.markets.only().into_iter().flatten() {
                json.condition(&reader.market(*market).condition);
            }
            json.close_array().key("all_markets").boolean(account.markets.only().is_none());
            json.key("refused").open_array();
            write_unknown(json, unknown);
            json.close_array().key("sequence").number(reader.events_of(&account.caller));
            json.key("replayed").boolean(replayed);
            json.key("cancel_on_disconnect").boolean(account.cancel_on_disconnect);
            json.key("mode").text(reader.ledger.exchange_mode().text());
            write_stamp(json, stream_id, now);
            json.close_object();
        });
    }
}

impl Stand {
    fn kind(self) -> &'static str {
        match self.step {
            Step::Placed => "PLACEMENT",
            Step::Filled => "UPDATE",
            Step::Ended => "CANCELLATION",
        }
    }

    fn status(self, row: &OrderRow) -> &'static str {
        match (self.step, self.state) {
            (Step::Ended, _) => "CANCELED",
            // An order that stopped with a rest is ended by the next event.
            (Step::Placed, OrderState::Filled) if row.stopped.is_some() => "LIVE",
            (_, OrderState::Filled) => "MATCHED",
            _ => "LIVE",
        }
    }

    /// Why this event ends the order; empty if it does not.
    fn reason(self, row: &OrderRow) -> &'static str {
        match (self.step, self.status(row)) {
            (Step::Ended, _) | (_, "MATCHED") => reason(row),
            _ => "",
        }
    }
}

fn write_order(
    json: &mut Writer<'_>,
    reader: &Reader,
    caller: &Caller,
    row: &OrderRow,
    stand: Stand,
    time: TimeMs,
) {
    let market = reader.market(row.market);
    json.key("event_type").text("order").key("type").text(stand.kind());
    json.key("id").order_id(&row.id);
    json.key("owner").uuid(caller.key).key("order_owner").uuid(caller.key);
    json.key("market").condition(&market.condition);
    json.key("asset_id").token(&market.tokens[row.outcome.index()]);
    json.key("side").text(row.fields.side.text()).key("price").price_text(row.price);
    json.key("original_size").millionths_text(original_size(row).0);
    json.key("size_matched").millionths_text(stand.filled.0);
    json.key("associate_trades").open_array();
    let newest = stand.trades.saturating_sub(ASSOCIATED_TRADES_MAX);
    for &trade in row.trades.iter().take(stand.trades).skip(newest) {
        json.uuid(TradeId::new(trade).uuid());
    }
    json.close_array().key("outcome").text(reader.label(row.market, row.outcome));
    json.key("created_at").number_text(row.placed.seconds());
    json.key("expiration").number_text(row.expiration_s);
    json.key("order_type").text(row.order_type.text()).key("status").text(stand.status(row));
    json.key("maker_address").address(reader.address_of(row.wallet));
    json.key("reason").text(stand.reason(row));
    json.key("timestamp").number_text(time.0);
}

/// A trade, by its taker's order.
fn write_trade(
    json: &mut Writer<'_>,
    reader: &Reader,
    caller: &Caller,
    taker: &OrderRow,
    (status, makers): (&str, &[u8]),
    time: TimeMs,
) {
    let market = reader.market(taker.market);
    let trade = reader.trade_of(taker.position);
    let fee = base_fee(market.fee.rate);
    let role = if taker.principal == caller.principal { "TAKER" } else { "MAKER" };
    json.key("event_type").text("trade").key("type").text("TRADE");
    json.key("id").uuid(TradeId::new(trade.position).uuid());
    json.key("taker_order_id").order_id(&taker.id).key("market").condition(&market.condition);
    json.key("asset_id").token(&market.tokens[taker.outcome.index()]);
    json.key("side").text(taker.fields.side.text()).key("size").millionths_text(trade.shares.0);
    json.key("price").millionths_text(trade.price_millionths).key("fee_rate_bps").number_text(fee);
    json.key("status").text(status);
    json.key("match_time").number_text(time.seconds()).key("last_update").number_text(time.seconds());
    json.key("timestamp").number_text(time.0);
    json.key("outcome").text(reader.label(taker.market, taker.outcome));
    json.key("owner").uuid(caller.key).key("trade_owner").uuid(caller.key);
    json.key("maker_address").address(reader.address_of(taker.wallet));
    json.key("transaction_hash").hex(reader.settlement_hash(trade.position).as_bytes());
    json.key("bucket_index").number(0).key("maker_orders").raw(makers);
    json.key("trader_side").text(role);
}
