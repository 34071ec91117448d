//! What a request pays before it is judged: which limits it is counted in, and what came of that.
//!
//! | who pays | when | why then |
//! |---|---|---|
//! | the address, more for a long body | before the signature is checked | checking costs more than refusing |
//! | the owner of the key | after it | names of keys are public, so anybody could pay with them |
//! | the address, for a wallet that gets its first key | after it | only then is the wallet known |
//! | both, for the orders of a batch but one | after the body is read | that says how many there are |
//!
//! A connection has one [`Toll`], that of the request at the front of its buffer. What is paid stays paid while that
//! request waits for its turn, for an answer in front of it, or for its bucket; it is over when the request is taken. A
//! request that a limit refuses at a later step gets back what it paid at the earlier ones, unless a curve operation was
//! done for it; one that is refused for anything else does not, as work was done on it.

use crate::domain::{Reject, WalletNo};
use crate::http::respond::RateLimit;
use crate::http::{Class, Endpoint};
use crate::json::answer::Refusal;
use crate::json::{ShortText, Writer};
use crate::limits::{
    Cost, Due, Limited, Mode, Moment, Party, Rate, RateLimits, Scope, Standing, Verdict, WAIT_US_MAX,
};

/// A body costs one more request for each time it has that many bytes; a batch of orders has fewer.
const BODY_BYTES_OF_COST: usize = 32 << 10;

/// The steps in which a request pays, each once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    #[default]
    Address,
    Owner,
    More,
    Nothing,
}

impl Step {
    const fn next(self) -> Self {
        match self {
            Self::Address => Self::Owner,
            Self::Owner => Self::More,
            Self::More | Self::Nothing => Self::Nothing,
        }
    }
}

/// What the request at the front of a connection's buffer has paid.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Toll {
    /// Where the request came from.
    address: Party,
    /// The step that is paid next.
    next: Step,
    standing: Option<Standing>,
    /// When it came, in steady microseconds.
    came_us: Option<u64>,
    /// The request is held until then, and was counted already.
    held: Option<Moment>,
    /// Nobody can hold it: it is refused instead.
    at_once: bool,
    /// What its body costs besides.
    body: u32,
    retry_after_s: Option<u32>,
}

impl Toll {
    /// The toll of a request from `address` that came at `came_us`, unless that was said before; what it has paid stays
    /// paid.
    pub(crate) fn of(self, address: Party, came_us: u64) -> Self {
        Self { address, came_us: self.came_us.or(Some(came_us)), ..self }
    }

    /// Where the request came from.
    pub(crate) fn address(&self) -> Party {
        self.address
    }

    /// From here on the request is refused where it would be held: there is no room to hold it.
    pub(crate) fn cannot_be_held(&mut self) {
        self.at_once = true;
    }

    /// Counts the request by its address. After an error it is held, or else refused; the same goes for the other
    /// steps. What a long body costs is owed: it is hashed before anything is known of who sent it.
    pub(crate) fn pay(
        &mut self,
        limits: &RateLimits,
        endpoint: Endpoint,
        body_bytes: usize,
        now: Moment,
    ) -> Result<(), Reject> {
        self.pay_in(scopes(endpoint), limits, body_bytes, now)
    }

    /// Counts a request that asks for nothing there is: an unknown path, a wrong method, a stream without an upgrade.
    pub(crate) fn pay_for_nothing(
        &mut self,
        limits: &RateLimits,
        body_bytes: usize,
        now: Moment,
    ) -> Result<(), Reject> {
        self.pay_in(&[Scope::Clob], limits, body_bytes, now)
    }

    fn pay_in(
        &mut self,
        scopes: &[Scope],
        limits: &RateLimits,
        body_bytes: usize,
        now: Moment,
    ) -> Result<(), Reject> {
        let (costs, before) = ([(self.address, Cost::ONE)], self.next);
        let settled = self.settle(Step::Address, limits, &costs, scopes, now);
        if before < self.next {
            self.body = u32::try_from(body_bytes / BODY_BYTES_OF_COST).unwrap_or(u32::MAX);
            let cost = Cost { now: self.body, ..Cost::NONE };
            let owed = |&scope| Due { party: self.address, scope, cost };
            scopes.iter().map(owed).for_each(|due| limits.owe(due, now));
        }
        settled
    }

    /// Counts the request by the owner of its key.
    pub(crate) fn pay_as(
        &mut self,
        limits: &RateLimits,
        endpoint: Endpoint,
        owner: WalletNo,
        now: Moment,
    ) -> Result<(), Reject> {
        let costs = [(self.address, Cost::PAID), (limits.owner(owner.0), Cost::ONE)];
        self.settle(Step::Owner, limits, &costs, scopes(endpoint), now)
    }

    /// Counts a wallet that gets its first key, by the address. Nobody holds the request: it is refused instead.
    pub(crate) fn pay_for_wallet(&mut self, limits: &RateLimits, now: Moment) -> Result<(), Reject> {
        self.cannot_be_held();
        self.settle(Step::Owner, limits, &[(self.address, Cost::ONE)], &[Scope::NewWallets], now)
    }

    /// Counts what the request costs beyond the one that address and owner have paid.
    pub(crate) fn pay_more(
        &mut self,
        limits: &RateLimits,
        endpoint: Endpoint,
        owner: WalletNo,
        more: u32,
        now: Moment,
    ) -> Result<(), Reject> {
        if more == 0 {
            return Ok(());
        }
        let cost = Cost { now: more, ..Cost::PAID };
        let costs = [(self.address, Cost { owed: self.body, ..cost }), (limits.owner(owner.0), cost)];
        self.settle(Step::More, limits, &costs, scopes(endpoint), now)
    }

    /// Charges a step that is not paid.
    fn settle(
        &mut self,
        step: Step,
        limits: &RateLimits,
        costs: &[(Party, Cost)],
        scopes: &[Scope],
        now: Moment,
    ) -> Result<(), Reject> {
        if step < self.next {
            return Ok(());
        }
        let due =
            |&(party, cost): &(Party, Cost)| scopes.iter().map(move |&scope| Due { party, scope, cost });
        let dues = costs.iter().flat_map(due);
        let (verdict, standing) =
            if self.at_once { limits.charge_at_once(dues, now) } else { limits.charge(dues, now) };
        let was_over = self.standing.is_some_and(|standing| standing.over);
        let is_over = standing.is_some_and(|standing| standing.over);
        let tightest = match (self.standing, standing) {
            (Some(one), Some(other)) if one.remaining < other.remaining && verdict == Verdict::Pass => {
                Some(one)
            }
            (one, other) => other.or(one),
        };
        self.standing = tightest.map(|stands| Standing { over: was_over || is_over, ..stands });
        self.held = None;
        match verdict {
            Verdict::Pass => {
                self.next = step.next();
                if is_over && !was_over {
                    limits.count(Limited::Warned);
                }
                return Ok(());
            }
            Verdict::Wait(until) => {
                self.next = step.next();
                self.held = Some(until);
                limits.count(Limited::Waited);
            }
            Verdict::Refuse { retry_after_s } => {
                self.retry_after_s = Some(retry_after_s);
                limits.count(Limited::Refused);
            }
        }
        Err(Reject::RateLimited)
    }

    /// Counts the next message of a stream. If there is no room for it, false, and it is counted again once the
    /// connection is held no longer.
    pub(crate) fn pay_message(&mut self, limits: &RateLimits, party: Party, now: Moment) -> bool {
        let due = Due { party, scope: Scope::StreamMessages, cost: Cost::ONE };
        let (verdict, standing) = limits.charge(std::iter::once(due), now);
        match verdict {
            Verdict::Pass => {
                if standing.is_some_and(|standing| standing.over) {
                    limits.count(Limited::Warned);
                }
                return true;
            }
            Verdict::Wait(until) => self.held = Some(until),
            Verdict::Refuse { retry_after_s } => self.held = Some(now.after_s(retry_after_s)),
        }
        limits.count(Limited::Waited);
        matches!(verdict, Verdict::Wait(_))
    }

    /// Until when the request is held.
    pub(crate) fn held(&self) -> Option<Moment> {
        self.held
    }

    /// True if the request is not held, or not any more: then the caller judges it again.
    pub(crate) fn release(&mut self, now: Moment) -> bool {
        let over = self.held.is_none_or(|until| until <= now);
        if over {
            self.held = None;
        }
        over
    }

    /// For how long the request has been here.
    pub(crate) fn waited_us(&self, now_us: u64) -> u64 {
        self.came_us.map_or(0, |came_us| now_us.saturating_sub(came_us))
    }

    /// What a request is answered that was refused so: of one that a limit refused, which limit that is, whose, and how
    /// much it takes.
    pub(crate) fn refusal(&self, reject: Reject) -> Refusal<'static> {
        let plain = Refusal { retry_after_s: self.retry_after_s, ..Refusal::plain(reject) };
        let Some(met) = self.standing.filter(|_| reject == Reject::RateLimited) else {
            return plain;
        };
        let got = if met.party == self.address { "more of this address" } else { "more of this owner" };
        let (got, allowed) = (ShortText::new(got), ShortText::shown(met.rate));
        Refusal { field: met.scope.setting(), got, allowed, ..plain }
    }

    /// In how many seconds a request that was refused would be taken.
    pub(crate) fn retry_after_s(&self) -> Option<u32> {
        self.retry_after_s
    }

    /// What the answer's head says about limits.
    pub(crate) fn head(&self) -> Option<RateLimit> {
        self.standing.map(|standing| RateLimit {
            limit: standing.rate.count,
            remaining: standing.remaining,
            reset_s: standing.reset_s,
            over: standing.over,
        })
    }
}

/// The scopes that a request is counted in. Placing and cancelling share none, so that neither takes what the other
/// needs; what guards a key's orders counts with the cancels.
const fn scopes(endpoint: Endpoint) -> &'static [Scope] {
    use Endpoint as E;
    match endpoint {
        E::CancelOrder
        | E::CancelOrders
        | E::CancelAll
        | E::CancelMarketOrders
        | E::Heartbeat
        | E::HeartbeatPlain
        | E::HeartbeatStop
        | E::Breaker
        | E::BreakerSet
        | E::BreakerClear
        | E::BreakerReset => &[Scope::Cancel],
        E::Root => &[Scope::Root, Scope::Clob],
        E::Book => &[Scope::Book, Scope::Clob],
        E::Books => &[Scope::Books, Scope::Clob],
        E::Price => &[Scope::Price, Scope::Clob],
        E::Prices => &[Scope::Prices, Scope::Clob],
        E::Midpoint => &[Scope::Midpoint, Scope::Clob],
        E::PricesHistory => &[Scope::PricesHistory, Scope::Clob],
        E::BatchPricesHistory => &[Scope::BatchPricesHistory, Scope::Clob],
        E::Trades => &[Scope::DataTrades, Scope::Clob],
        E::WholeAccount => &[Scope::Account, Scope::Clob],
        E::Events | E::EventsKeyset => &[Scope::Events, Scope::Listings, Scope::Catalog],
        E::CatalogMarkets | E::MarketsKeyset => &[Scope::Markets, Scope::Listings, Scope::Catalog],
        E::Tags => &[Scope::Tags, Scope::Catalog],
        E::Search => &[Scope::Search, Scope::Catalog],
        other => match other.class() {
            Class::Trading => &[Scope::Order],
            Class::Account | Class::PublicRead => &[Scope::Clob],
            Class::L1 => &[Scope::Keys, Scope::Clob],
            Class::Catalog => &[Scope::Catalog],
            Class::Wallet => &[Scope::Wallet],
            Class::Stream => &[Scope::Streams],
        },
    }
}

/// What a request costs where not all cost one.
const COSTS: [&str; 7] = [
    "a request costs 1",
    "POST /orders costs as many as it has orders, POST /replace as many as it places",
    "DELETE /orders costs 1 for each 16 orders begun",
    "what cancels by token or key costs 1 more afterwards for each 1,024 open orders that it looked at and left",
    "a message on a stream costs 1, and 1 more for each 4 KiB of it and each 16 KiB of its answer",
    "each 32 KiB of a body cost its address 1 more afterwards, whatever becomes of the request that its limit let in",
    "what costs more than a burst costs the burst",
];

/// Writes the limits as members of an object that is open.
pub(crate) fn write(json: &mut Writer<'_>, limits: &RateLimits) {
    json.key("mode").text(limits.mode().text());
    json.key("wait_ms_max").number(if limits.mode() == Mode::Enforce { WAIT_US_MAX / 1_000 } else { 0 });
    json.key("counted_by").open_array().text("address").text("owner of the API key").close_array();
    json.key("costs").open_array();
    for text in COSTS {
        json.text(text);
    }
    json.close_array().key("scopes").open_array();
    for scope in Scope::ALL {
        let rule = limits.rule(scope);
        json.open_object().key("scope").text(scope.name()).key("routes").text(scope.routes());
        json.key("unit").text(scope.unit().text());
        write_rate(json.key("burst"), rule.map(|rule| rule.burst));
        write_rate(json.key("sustained"), rule.and_then(|rule| rule.sustained));
        json.close_object();
    }
    json.close_array();
}

fn write_rate(json: &mut Writer<'_>, rate: Option<Rate>) {
    json.or_null(rate, |json, rate| {
        json.open_object().key("count").number(rate.count.into());
        json.key("window_s").number(rate.window_s.into()).close_object()
    });
}
