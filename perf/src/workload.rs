//! What a scenario sends, request by request, signed and complete, with what each answer must say.
//!
//! Three passes: *draw* decides from the seed what each request is, and which order a cancel cancels; *sign*
//! makes the orders, in threads; *write* makes the requests, in threads. Makers bid for both outcomes at prices
//! that never meet. Orders for takers rest above those prices, and nobody cancels them. An order and its cancel
//! go out on the same connection, in this order.

use std::collections::VecDeque;

use alloy_primitives::U256;

use crate::orders::{self, Account, SHARES, Signed, Wish};
use crate::scenario::{Class, Plan};
use crate::schedule::{Random, Schedule};

/// Orders in a batch: the most that the server takes.
pub(crate) const BATCH: usize = 15;

/// Makers' prices in hundredths: two bids for opposite outcomes never add up to a whole.
const QUOTES: std::ops::Range<u64> = 30..45;

/// The price of orders that rest for takers, in hundredths, above all quotes.
const DEPTH: u64 = 49;

/// The most that a taker pays; the best price that it meets is [`DEPTH`].
const TAKES: u64 = 55;

const _: () = assert!(QUOTES.end + QUOTES.end < 100, "quotes never trade with each other");
const _: () = assert!(QUOTES.end <= DEPTH && 100 <= TAKES + DEPTH, "takers meet depth, and meet it first");

/// Each order that rests for takers is large enough for this many of them.
const TAKES_PER_DEPTH: u64 = 4;

/// What an answer must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    /// An order that rests.
    Rests,
    /// An order that was matched.
    Matched,
    /// All orders of the batch rest.
    AllRest,
    /// An answer that contains both texts.
    SaysBoth(String, String),
    /// An answer that contains this text.
    Says(String),
}

impl Expect {
    /// True if this status and body are as expected.
    pub(crate) fn is(&self, status: u16, body: &[u8]) -> bool {
        let says = |words: &[u8]| memchr::memmem::find(body, words).is_some();
        status == 200
            && match self {
                Self::Rests => says(b"\"status\":\"live\""),
                Self::Matched => says(b"\"status\":\"matched\""),
                Self::AllRest => memchr::memmem::find_iter(body, b"\"status\":\"live\"").count() == BATCH,
                Self::SaysBoth(one, other) => says(one.as_bytes()) && says(other.as_bytes()),
                Self::Says(words) => says(words.as_bytes()),
            }
    }
}

/// One request, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Its class.
    pub(crate) class: Class,
    /// The connection it goes out on.
    pub(crate) connection: usize,
    /// Head and body.
    pub(crate) bytes: Vec<u8>,
    /// The answer that must come back.
    pub(crate) expect: Expect,
}

/// Everything that a run sends.
pub(crate) struct Workload {
    /// The orders that must rest before the clock starts.
    pub(crate) before: Vec<Request>,
    /// One for each moment of the schedule.
    pub(crate) requests: Vec<Request>,
}

/// A request before anything is signed; numbers are indexes of orders.
enum Draft {
    Place(usize),
    Take(usize),
    Cancel(usize),
    Replace { gone: usize, comes: usize },
    Batch(Vec<usize>),
    Read(U256, &'static str),
}

/// What has been decided so far.
struct Drawing<'a> {
    plan: &'a Plan,
    tokens: &'a [[U256; 2]],
    accounts: &'a mut [Account],
    random: Random,
    wishes: Vec<Wish>,
    /// Orders that rest before the start.
    before: Vec<usize>,
    /// The resting orders of each wallet, oldest first.
    resting: Vec<VecDeque<usize>>,
    /// How many takers each market has.
    takes: Vec<u64>,
}

impl Workload {
    /// Everything that a plan sends by this schedule. There is an account for each wallet and one more, which
    /// places the orders that rest for takers. All orders of a wallet go out on the same connection.
    pub(crate) fn make(
        plan: &Plan,
        schedule: &Schedule,
        tokens: &[[U256; 2]],
        accounts: &mut [Account],
    ) -> Self {
        assert_eq!(accounts.len(), plan.wallets as usize + 1);
        let makers = plan.wallets as usize;
        let mut drawing = Drawing {
            plan,
            tokens,
            accounts,
            random: Random::new(plan.seed),
            wishes: Vec::new(),
            before: Vec::new(),
            resting: vec![VecDeque::new(); makers],
            takes: vec![0; tokens.len()],
        };
        for number in 0..plan.resting as usize {
            drawing.rest_before(number % makers);
        }
        let drafts: Vec<Draft> =
            (0..schedule.due_ns.len()).map(|number| drawing.draw(number % makers)).collect();
        drawing.rest_depth();
        let Drawing { wishes, before, accounts, .. } = drawing;
        let accounts = &*accounts;
        let signed = in_threads(&wishes, |_, wish| accounts[wish.account].sign(wish));
        let by = |account: usize, draft: &Draft| {
            write(&accounts[account], draft, &signed, of(plan, account, draft))
        };
        Self {
            before: in_threads(&before, |_, &order| by(wishes[order].account, &Draft::Place(order))),
            requests: in_threads(&drafts, |number, draft| by(number % makers, draft)),
        }
    }

    /// A part of the history: `count` orders that rest, and the cancel of each.
    pub(crate) fn past(
        plan: &Plan,
        tokens: &[[U256; 2]],
        accounts: &mut [Account],
        count: usize,
    ) -> [Vec<Request>; 2] {
        let makers = plan.wallets as usize;
        let wishes: Vec<Wish> = (0..count)
            .map(|number| {
                let account = number % makers;
                let [token, cents] = [number / 2 % tokens.len(), number % width()];
                let (token, cents) = (tokens[token][number % 2], QUOTES.start + cents as u64);
                Wish { account, token, cents, shares: SHARES, salt: accounts[account].salt() }
            })
            .collect();
        let accounts = &*accounts;
        let signed = in_threads(&wishes, |_, wish| accounts[wish.account].sign(wish));
        [Draft::Place as fn(usize) -> Draft, Draft::Cancel].map(|draft| {
            in_threads(&wishes, |order, wish| {
                let draft = draft(order);
                write(&accounts[wish.account], &draft, &signed, of(plan, wish.account, &draft))
            })
        })
    }
}

impl Drawing<'_> {
    fn draw(&mut self, maker: usize) -> Draft {
        match self.class() {
            Class::Place => Draft::Place(self.quote(maker)),
            Class::Cancel => Draft::Cancel(self.oldest(maker)),
            Class::Replace => {
                let gone = self.oldest(maker);
                // All orders of a replace must be of one market.
                let token = self.wishes[gone].token;
                let comes = self.quote(maker);
                self.wishes[comes].token = token;
                Draft::Replace { gone, comes }
            }
            Class::Batch => Draft::Batch((0..BATCH).map(|_| self.quote(maker)).collect()),
            Class::Take => Draft::Take(self.take(maker)),
            Class::Read => {
                let token = self.tokens[self.random.below(self.tokens.len())][self.random.below(2)];
                let route = ["/book?", "/book?", "/midpoint?", "/price?side=BUY&"][self.random.below(4)];
                Draft::Read(token, route)
            }
        }
    }

    fn class(&mut self) -> Class {
        let parts = self.plan.mix;
        let mut at = self.random.below(parts.iter().sum::<u32>() as usize);
        for (class, part) in Class::ALL.into_iter().zip(parts) {
            match at.checked_sub(part as usize) {
                Some(rest) => at = rest,
                None => return class,
            }
        }
        unreachable!("a number below the sum of all parts is in one of them")
    }

    fn wish(&mut self, account: usize, token: U256, cents: u64, shares: u64) -> usize {
        let salt = self.accounts[account].salt();
        self.wishes.push(Wish { account, token, cents, shares, salt });
        self.wishes.len() - 1
    }

    /// A bid that rests, for either outcome of any market.
    fn quote(&mut self, maker: usize) -> usize {
        let token = self.tokens[self.random.below(self.tokens.len())][self.random.below(2)];
        let cents = QUOTES.start + self.random.below(width()) as u64;
        let order = self.wish(maker, token, cents, SHARES);
        self.resting[maker].push_back(order);
        order
    }

    fn rest_before(&mut self, maker: usize) {
        let order = self.quote(maker);
        self.before.push(order);
    }

    /// The oldest resting order of the maker; if there is none, one more that has to rest before the start.
    fn oldest(&mut self, maker: usize) -> usize {
        if self.resting[maker].is_empty() {
            self.rest_before(maker);
        }
        self.resting[maker].pop_front().expect("one was made if there was none")
    }

    fn take(&mut self, maker: usize) -> usize {
        let market = self.random.below(self.tokens.len());
        self.takes[market] += 1;
        self.wish(maker, self.tokens[market][0], TAKES, SHARES)
    }

    /// Bids for the second outcome, enough for all takers of the first.
    fn rest_depth(&mut self) {
        let offers = self.accounts.len() - 1;
        for market in 0..self.tokens.len() {
            for _ in 0..self.takes[market].div_ceil(TAKES_PER_DEPTH) {
                let shares = SHARES * TAKES_PER_DEPTH;
                let order = self.wish(offers, self.tokens[market][1], DEPTH, shares);
                self.before.push(order);
            }
        }
    }
}

/// The connection that a request goes out on: connections for reads follow those for orders. The account that
/// places orders for takers shares the connections of the others.
fn of(plan: &Plan, account: usize, draft: &Draft) -> usize {
    let orders = plan.connections as usize;
    match (draft, plan.read_connections as usize) {
        (Draft::Read(..), reads @ 1..) => orders + account % reads,
        _ => account % orders,
    }
}

/// The number of prices at which makers quote.
fn width() -> usize {
    usize::try_from(QUOTES.end - QUOTES.start).expect("few")
}

fn write(account: &Account, draft: &Draft, signed: &[Signed], connection: usize) -> Request {
    let (class, bytes, expect) = match draft {
        Draft::Place(order) => {
            (Class::Place, account.request("POST", "/order", &signed[*order].body), Expect::Rests)
        }
        Draft::Take(order) => {
            (Class::Take, account.request("POST", "/order", &signed[*order].body), Expect::Matched)
        }
        Draft::Cancel(order) => {
            let id = &signed[*order].id;
            let bytes = account.request("DELETE", "/order", &format!("{{\"orderID\":\"{id}\"}}"));
            (Class::Cancel, bytes, Expect::Says(format!("\"canceled\":[\"{id}\"]")))
        }
        Draft::Replace { gone, comes } => {
            let (gone, comes) = (&signed[*gone], &signed[*comes]);
            let bytes = account.request("POST", "/replace", &orders::replace(gone, comes));
            (Class::Replace, bytes, replaced(&gone.id, &comes.id))
        }
        Draft::Batch(orders) => {
            let orders: Vec<&Signed> = orders.iter().map(|&order| &signed[order]).collect();
            (Class::Batch, account.request("POST", "/orders", &orders::batch(&orders)), Expect::AllRest)
        }
        Draft::Read(token, route) => {
            let bytes =
                format!("GET {route}token_id={token} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").into_bytes();
            let expect = match *route {
                "/book?" => format!("\"asset_id\":\"{token}\""),
                "/midpoint?" => "\"mid\":\"0.".to_owned(),
                _ => "\"price\":\"0.".to_owned(),
            };
            (Class::Read, bytes, Expect::Says(expect))
        }
    };
    Request { class, connection, bytes, expect }
}

/// The answer to a replace: one order was cancelled, and the other is named.
fn replaced(gone: &str, comes: &str) -> Expect {
    Expect::SaysBoth(format!("\"canceled\":[\"{gone}\"]"), format!("\"{comes}\""))
}

/// Applies `each` to all items, in as many threads as there are CPUs; results are in the items' order.
fn in_threads<T: Sync, R: Send>(items: &[T], each: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let part = items.len().div_ceil(threads).max(1);
    let each = &each;
    std::thread::scope(|scope| {
        let works: Vec<_> = items
            .chunks(part)
            .enumerate()
            .map(|(number, chunk)| {
                scope.spawn(move || {
                    let numbered = chunk.iter().enumerate();
                    numbered.map(|(index, item)| each(number * part + index, item)).collect::<Vec<R>>()
                })
            })
            .collect();
        works.into_iter().flat_map(|work| work.join().expect("signing does not panic")).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_right_only_if_status_and_words_are() {
        assert!(Expect::Rests.is(200, b"{\"status\":\"live\"}"));
        assert!(!Expect::Rests.is(200, b"{\"status\":\"matched\"}"));
        assert!(!Expect::Rests.is(400, b"{\"status\":\"live\"}"));
        assert!(!Expect::AllRest.is(200, b"{\"status\":\"live\"}"));
        assert!(Expect::AllRest.is(200, &b"{\"status\":\"live\"}".repeat(BATCH)));
        let replaced = replaced("0x1", "0x2");
        assert!(replaced.is(200, b"{\"canceled\":[\"0x1\"],\"orderIDs\":[\"0x2\"]}"));
        assert!(!replaced.is(200, b"{\"canceled\":[],\"orderIDs\":[\"0x2\"]}"));
        assert!(!replaced.is(200, b"{\"canceled\":[\"0x1\"],\"orderIDs\":[]}"));
        assert!(
            !replaced
                .is(200, b"{\"canceled\":[],\"not_canceled\":{\"0x1\":\"gone\"},\"orderIDs\":[\"0x2\"]}")
        );
        assert!(!Expect::Says("\"canceled\":[\"0x1\"]".to_owned()).is(200, b"{\"canceled\":[]}"));
    }

    #[test]
    fn reads_have_connections_of_their_own_unless_the_scenario_gives_them_none() {
        let read = Draft::Read(U256::ZERO, "/book?");
        for (load, of_read, of_order) in [
            ("connections = 4", 4 + 6 % 4, 6 % 4),
            ("connections = 4\nread_connections = 5", 4 + 6 % 5, 6 % 4),
            ("connections = 4\nread_connections = 0", 6 % 4, 6 % 4),
        ] {
            let text = format!("purpose = \"x\"\n[load]\nrate = 1\n{load}\n[mix]\nplace = 1\nread = 1");
            let plan = Plan::parse("t", &text).unwrap();
            assert_eq!(of(&plan, 6, &read), of_read, "{load}");
            assert_eq!(of(&plan, 6, &Draft::Place(0)), of_order, "{load}");
        }
        let plan = Plan::parse("t", "purpose = \"x\"\n[load]\nrate = 1\n[mix]\nplace = 1").unwrap();
        assert_eq!(plan.read_connections, 0);
    }

    #[test]
    fn work_in_threads_keeps_its_order() {
        let items: Vec<usize> = (0..1_001).collect();
        assert!(in_threads(&items, |number, item| number == *item).into_iter().all(|same| same));
        assert!(in_threads(&[] as &[u8], |_, item| *item).is_empty());
    }
}
