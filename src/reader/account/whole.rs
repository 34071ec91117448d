//! GET /account: everything of a principal at one position of the log.
//!
//! Whoever reads pages of orders, then balances, then positions, sees three moments and has to guess what
//! happened between them. Here everything is of one moment, and `sequence` is the number of the last
//! event of the account's stream that it includes: a client that follows `/ws/user` from that number
//! misses nothing and gets nothing twice.
//!
//! What a wallet may still spend follows the funding rule: its open buys in one market must be covered
//! together, but those in different markets may count on the same money.
//!
//! | field of a balance | |
//! |---|---|
//! | `balance` | the wallet's collateral, as `/balance-allowance` has it |
//! | `reserved` | what is set aside for open buys on top of that; only with `funding = "reserved"` |
//! | `open_buys` | what its open buys without a reserve may cost, fees included |
//! | `available` | what another buy may cost, whichever market it is in |
//!
//! A position is a token of which the wallet has shares or open orders. Its `open_buys` give what is left
//! in its own market: `balance` less those of the market's two tokens.

use super::super::ask::{Asked, BEHIND, Narrowed, Refused, bad_parameter};
use super::super::index::PrincipalIndex;
use super::super::{ANSWER_BYTES_MAX, Caller, Reader};
use crate::domain::fee::cost_of_buy;
use crate::domain::{Collateral, MarketNo, Outcome, Shares, Side, SignatureType, WalletKind, WalletNo};
use crate::json::Writer;
use crate::ledger::OrderRow;
use std::collections::BTreeMap;

/// Orders and positions in one answer: 1.3 MB and three milliseconds of the reader's loop, as much as the
/// largest page of a list. A larger account has to be read market by market.
pub(in crate::reader) const ROWS_MAX: usize = if cfg!(test) { 40 } else { 2_000 };

/// Live orders of an account that one answer looks at, as many as a page of a list does. A larger account
/// gets no answer here, because what it may spend depends on each of them.
const ORDERS_LOOKED_AT_MAX: usize = 20_000;

const TOO_LARGE: Refused =
    Refused::new(400, "account_too_large", "the account has more than one answer holds");

/// A token in a wallet, ordered as in the answer.
type Place = (WalletNo, MarketNo, Outcome);

/// What a wallet has of a token, and what its open orders for that token may use.
#[derive(Clone, Copy, Debug, Default)]
struct Holding {
    shares: Shares,
    selling: Shares,
    buying: Collateral,
}

/// The account, gathered before anything is written.
#[derive(Debug, Default)]
struct Account<'a> {
    /// Live orders that are listed, newest first.
    orders: Vec<&'a OrderRow>,
    /// All with open orders, and the listed ones with shares; of more than [`ROWS_MAX`] with shares only so many.
    places: BTreeMap<Place, Holding>,
    /// How many listed ones have shares.
    held: usize,
    /// What is set aside for open buys, by wallet.
    reserved: BTreeMap<WalletNo, Collateral>,
}

impl Reader {
    /// GET /account. With `market`, orders and positions are those of that market only; balances still
    /// count all markets.
    pub(in crate::reader) fn whole_account(
        &self,
        caller: Caller,
        asked: &Asked<'_>,
        json: &mut Writer<'_>,
    ) -> Result<(), Refused> {
        let market = Narrowed::by(asked.condition_filter(bad_parameter())?, |id| self.index.condition(id));
        // The frame that made the caller's key may not be applied yet.
        let own = self.index.principal(caller.principal).ok_or(BEHIND)?;
        let owner = self.ledger.wallet(caller.principal).ok_or(BEHIND)?;
        if ORDERS_LOOKED_AT_MAX < own.live.len() {
            let allowed = format!("at most {ORDERS_LOOKED_AT_MAX} live orders");
            return Err(TOO_LARGE.about("orders", &own.live.len().to_string(), allowed));
        }
        let account = self.gather(own, market);
        let listed = account.places.iter().filter(|((_, of, _), _)| market.passes(of));
        let rows = account.orders.len() + listed.clone().count().max(account.held);
        if ROWS_MAX < rows {
            return Err(too_many_rows(rows));
        }
        json.open_object().key("seq").number_text(self.ledger.end().0);
        json.key("sequence").number(own.events).key("stream_id").text(&self.stream_id);
        json.key("server_ts_ms").number(asked.now().0).key("address").address(&owner.address);
        json.key("mode").text(self.ledger.exchange_mode().text()).key("closed_only").boolean(owner.frozen);
        json.key("orders").open_array();
        for row in &account.orders {
            json.open_object();
            self.write_order(json, row, caller.dialect);
            json.close_object();
            if ANSWER_BYTES_MAX < json.bytes() {
                return Err(too_many_rows(rows));
            }
        }
        json.close_array().key("balances").open_array();
        for wallet in &own.wallets {
            self.write_balance(json, *wallet, &account);
        }
        json.close_array().key("positions").open_array();
        for (place, holding) in listed {
            self.write_held(json, *place, holding);
        }
        json.close_array().close_object();
        Ok(())
    }

    /// Reads every live order once, and what the wallets hold and held of what is listed.
    fn gather(&self, own: &PrincipalIndex, market: Narrowed<MarketNo>) -> Account<'_> {
        let mut account = Account::default();
        for &position in own.live.iter().rev() {
            let row = self.live_order(position);
            if market.passes(&row.market) {
                account.orders.push(row);
            }
            *account.reserved.entry(row.wallet).or_default() += row.reserved;
            let place = account.places.entry((row.wallet, row.market, row.outcome)).or_default();
            match row.fields.side {
                Side::Sell => place.selling += row.open,
                Side::Buy if row.reserved.is_zero() => {
                    place.buying += cost_of_buy(row.price, row.open, &self.market(row.market).fee);
                }
                Side::Buy => {}
            }
        }
        let holdings = self.model().holdings();
        for &wallet in &own.wallets {
            let (all, one) = match market {
                Narrowed::No => (Some(holdings.of_wallet(wallet)), None),
                Narrowed::To(market) => (None, holdings.of(wallet, market)),
                Narrowed::ToNothing => (None, None),
            };
            for holding in all.into_iter().flatten().chain(one) {
                for outcome in [Outcome::Zero, Outcome::One] {
                    let shares = holding.lot(outcome).shares;
                    if shares.is_zero() {
                        continue;
                    }
                    account.held += 1;
                    if account.held <= ROWS_MAX {
                        account.places.entry((wallet, holding.market, outcome)).or_default().shares = shares;
                    }
                }
            }
        }
        account
    }

    fn write_balance(&self, json: &mut Writer<'_>, wallet: WalletNo, account: &Account<'_>) {
        let row = self.ledger.wallet(wallet).expect("indices name wallets that the ledger holds");
        let mut by_market: BTreeMap<MarketNo, Collateral> = BTreeMap::new();
        for ((_, market, _), holding) in account.places.range(places_of(wallet)) {
            *by_market.entry(*market).or_default() += holding.buying;
        }
        let all = sum_of(by_market.values());
        let largest = by_market.values().copied().max().unwrap_or_default();
        json.open_object().key("wallet").address(&row.address);
        json.key("signature_type").number(signature_type(row.kind) as u64);
        json.key("balance").millionths_text(row.cell.0);
        let reserved = account.reserved.get(&wallet).copied().unwrap_or_default();
        json.key("reserved").millionths_text(reserved.0).key("open_buys").millionths_text(all);
        // A cell that has just fallen may not cover orders that are about to be removed.
        json.key("available").millionths_text(row.cell.saturating_sub(largest).0).close_object();
    }

    fn write_held(&self, json: &mut Writer<'_>, (wallet, market, outcome): Place, holding: &Holding) {
        let row = self.market(market);
        json.open_object().key("wallet").address(self.address_of(wallet));
        json.key("condition_id").condition(&row.condition);
        json.key("token_id").token(&row.tokens[outcome.index()]);
        json.key("outcome").text(self.label(market, outcome));
        json.key("outcome_index").number(outcome.index() as u64);
        json.key("mode").text(row.mode.text());
        json.key("size").millionths_text(holding.shares.0);
        json.key("open_sells").millionths_text(holding.selling.0);
        json.key("available").millionths_text(holding.shares.saturating_sub(holding.selling).0);
        json.key("open_buys").millionths_text(holding.buying.0).close_object();
    }
}

/// The sum, or the most that can be said: buys of different markets may count on the same money, so that all of them
/// may be for more than there ever is.
fn sum_of<'a>(amounts: impl Iterator<Item = &'a Collateral>) -> u64 {
    let sum: u128 = amounts.map(|amount| u128::from(amount.0)).sum();
    u64::try_from(sum).unwrap_or(u64::MAX)
}

/// All places of a wallet.
fn places_of(wallet: WalletNo) -> std::ops::RangeInclusive<Place> {
    (wallet, MarketNo(0), Outcome::Zero)..=(wallet, MarketNo(u32::MAX), Outcome::One)
}

fn too_many_rows(rows: usize) -> Refused {
    let allowed = format!("at most {ROWS_MAX} orders and positions and 16 MiB; name one market");
    TOO_LARGE.about("market", &rows.to_string(), allowed)
}

/// The signature type of the orders of a wallet of this kind.
const fn signature_type(kind: WalletKind) -> SignatureType {
    match kind {
        WalletKind::Proxy => SignatureType::Proxy,
        WalletKind::Safe => SignatureType::Safe,
        WalletKind::Deposit => SignatureType::Deposit,
        WalletKind::Eoa | WalletKind::Fee => SignatureType::Eoa,
    }
}

#[cfg(test)]
mod tests {
    use super::sum_of;
    use crate::domain::Collateral;

    #[test]
    fn buys_of_many_markets_that_count_on_the_same_money_have_a_sum() {
        assert_eq!(sum_of([Collateral(5), Collateral(7)].iter()), 12);
        assert_eq!(sum_of([Collateral(u64::MAX), Collateral(u64::MAX)].iter()), u64::MAX);
    }
}
