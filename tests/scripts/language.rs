//! Book scripts: tables that a trader can read, and that run on the fast book, on its naive twin and over HTTP.
//!
//! One command per line, then `->` and the expected result. `//` begins a comment. Prices are cents of the order's own
//! token, sizes are shares, money is USDC; all may have decimals.
//!
//! | line | does | result |
//! |---|---|---|
//! | `shards 2 4` | the script needs so many shards (first line; else it runs with 1, 2 and 4) | |
//! | `funding reserved` | collateral is set aside for resting buys | |
//! | `market n tick 0.1 fee 0.04 exponent 2 builder 3000 makers-pay min 5` | another market; `m` is there from the start: tick 1, free, min 0 | |
//! | `notional 1` | the smallest marketable buy (0 unless said) | |
//! | `limits orders 4 open 2 digests 8 accounts 3 each 2 ladders 1` | sizes of the shards, `open` of each owner, accounts `each` wallet may have (first lines) | |
//! | `credit alice 100`, `debit alice 5` | operator money | `ok`, `short` |
//! | `alice buy yes 52 x10 gtc #a` | an order; also `sell`, `no`, `gtd`, `fok`, `fak` | below |
//! | `alice buy yes 50 $60 fok #a` | the money is given instead of the size (floored to 0.0001) | |
//! | `alice buy yes $60 x100 fok #a` | both amounts are signed as they stand | |
//! | … `in n` `post` `maker` `both` `expires 60` `stamp 5` | other market; post-only; self-trade rule; seconds from now; the order's own time in ms | |
//! | … `hold look` (`take`, `claim`) | stops after that stage | `held` |
//! | `go #a`, `go #a hold take` | goes on, if it is still held | as the order |
//! | `again #a`, `again #a bob` | the same order once more, or by another principal | `again …` |
//! | `alice cancel #a` | | `ok`, `gone`, `unknown` |
//! | `alice cancel all`, `alice cancel in n`, `alice cancel yes in n` | | `#a #b`, `none` |
//! | `alice tombstone #a` | a cancel that came first | `ok` |
//! | `alice replace #a #b by buy yes 49 x10 gtc #c, sell yes 52 x5 gtc #d in n` | all leave and all come, or none; `anyway` before `by`: whoever is gone is not waited for | `#a #b by #c #d=#b` (d has b's place), `refused code`, `again` |
//! | `alice split 10`, `merge`, `redeem` (`in n`, `#s`) | user acts; `redeem 0` takes all | `10`, `10, -a unfunded` |
//! | `alice breaker 20 within 8`, `alice breaker off`, `alice breaker reset` | the breaker of her key: shares, and seconds | `ok`, `refused code` |
//! | `alice breaker` | | `15 of 20`, `20 of 20 tripped`, `none` |
//! | `tick 0.1`, `pause`, `resume`, `postonly`, `close`, `resolve 0.5` (`in n`) | the operator | `ok`, `-a -b` |
//! | `freeze alice`, `unfreeze alice`, `exchange open` (`postonly`, `cancelonly`, `closed`) | the operator | `ok` |
//! | `wait 60`, `wait -5` | time passes, in seconds, or the clock is set back | |
//! | `sweep` | fallen cells and expiries are dealt with, everywhere or with `in n` on its shard | |
//! | `restart` | every shard is made anew from the log | |
//! | `book` (`in n`) | | `a 10@50, b 5@49 \| c 7@52`, as token 0, best first |
//! | `alice has` (`in n`) | | `90 yes 10 no 0` |
//! | `fees` | | `0.5` |
//!
//! An order's result lists its fills `maker size@price` (the maker's own price), who left on the
//! way `-maker reason`, and then `rests 3`, `done`, `killed code` or `refused code`. A name with a
//! dot (`alice.safe`) is another wallet of the principal before the dot; one with a stroke (`alice/2`) is the same
//! wallet by another API key of its owner.

use outcry::domain::amount::ONE;
use outcry::domain::{FeeSchedule, Mode, OrderType, Outcome, Payout, SelfTrade, Side};
use outcry::journal::layout::ActKind;
use outcry::shard::Stage;

/// Midnight of some day, in milliseconds: when every script begins.
pub const START_MS: u64 = 1_700_000_000_000;
/// A tombstone's life.
pub const TOMBSTONE_MS: u64 = 10_000;

/// A script line by line.
#[derive(Clone, Debug)]
pub struct Line {
    pub number: usize,
    pub text: String,
    pub command: Command,
    pub expected: Option<String>,
}

/// The setup of a script.
#[derive(Clone, Debug)]
pub struct Setup {
    pub shards: Vec<u16>,
    pub reserved: bool,
    /// The smallest marketable buy.
    pub notional: u64,
    pub orders: u32,
    /// Open orders that one owner may have.
    pub open: u32,
    pub digests: u32,
    pub accounts: u32,
    pub each: u32,
    /// How many ladders of the finest tick the pool holds.
    pub ladders: u64,
}

#[derive(Clone, Debug)]
pub struct MarketLine {
    pub name: String,
    pub tick: u16,
    pub fee_rate: u32,
    pub exponent: u8,
    pub builder_bps: u16,
    pub makers_pay: bool,
    pub min_size: u64,
}

impl MarketLine {
    /// The market that is there from the start.
    pub fn first() -> Self {
        Self {
            name: "m".to_owned(),
            tick: 100,
            fee_rate: 0,
            exponent: 1,
            builder_bps: 0,
            makers_pay: false,
            min_size: 0,
        }
    }

    /// What the market charges.
    pub fn fee(&self) -> FeeSchedule {
        FeeSchedule {
            rate: self.fee_rate,
            exponent: self.exponent,
            taker_only: !self.makers_pay,
            builder_share_bps: self.builder_bps,
            ..FeeSchedule::FREE
        }
    }
}

#[derive(Clone, Debug)]
pub struct OrderLine {
    pub who: String,
    pub label: String,
    pub market: String,
    pub side: Side,
    pub outcome: Outcome,
    pub collateral: u64,
    pub shares: u64,
    pub order_type: OrderType,
    pub post_only: bool,
    pub self_trade: SelfTrade,
    pub expires_in_s: Option<u64>,
    pub stamp_ms: Option<u64>,
    pub hold: Option<Stage>,
}

/// What is done with the fill-rate breaker of a trader's key.
#[derive(Clone, Copy, Debug)]
pub enum BreakerAct {
    Set { quantity: u64, interval_ms: u64 },
    Off,
    Reset,
    Show,
}

#[derive(Clone, Debug)]
pub enum Command {
    Setup,
    Market(MarketLine),
    Credit { who: String, amount: u64 },
    Debit { who: String, amount: u64 },
    Order(OrderLine),
    Go { label: String, hold: Option<Stage> },
    Again { label: String, who: Option<String> },
    Cancel { who: String, label: String },
    CancelScope { who: String, market: Option<String>, outcome: Option<Outcome> },
    Tombstone { who: String, label: String },
    Replace { who: String, leaving: Vec<String>, anyway: bool, coming: Vec<OrderLine> },
    Breaker { who: String, act: BreakerAct },
    Act { who: String, act: ActKind, amount: u64, market: String, label: Option<String> },
    Tick { market: String, tick: u16 },
    Mode { market: String, mode: Mode },
    Resolve { market: String, payout: Payout },
    Freeze { who: String, frozen: bool },
    Exchange(Mode),
    Wait { seconds: i64 },
    Sweep { market: Option<String> },
    Restart,
    Book { market: String },
    Has { who: String, market: String },
    Fees,
}

/// The scripts of a file: each begins with `== ` and the fact that it holds.
#[track_caller]
pub fn scripts(file: &str) -> Vec<(&str, &str)> {
    let scripts: Vec<(&str, &str)> =
        file.split("\n== ").skip(1).filter_map(|part| part.split_once('\n')).collect();
    assert!(!scripts.is_empty(), "a file of scripts has some");
    scripts
}

/// Reads a script; panics with the line that it cannot read.
pub fn parse(script: &str) -> (Setup, Vec<Line>) {
    let mut setup = Setup {
        shards: vec![1, 2, 4],
        reserved: false,
        notional: 0,
        orders: 256,
        open: 256,
        digests: 4_096,
        accounts: 256,
        each: 256,
        ladders: 4,
    };
    let mut lines = Vec::new();
    for (index, raw) in script.lines().enumerate() {
        let text = raw.split("//").next().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        let (words, expected) = match text.split_once("->") {
            Some((words, expected)) => {
                (words, Some(expected.split_whitespace().collect::<Vec<_>>().join(" ")))
            }
            None => (text, None),
        };
        let words: Vec<&str> = words.split_whitespace().collect();
        let command =
            read(&words, &mut setup).unwrap_or_else(|| panic!("line {}: cannot read {text:?}", index + 1));
        lines.push(Line { number: index + 1, text: text.to_owned(), command, expected });
    }
    (setup, lines)
}

fn read(words: &[&str], setup: &mut Setup) -> Option<Command> {
    let market = || after(words, "in").unwrap_or("m").to_owned();
    Some(match *words.first()? {
        "shards" => {
            setup.shards = words[1..].iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
            Command::Setup
        }
        "funding" => {
            setup.reserved = *words.get(1)? == "reserved";
            Command::Setup
        }
        "limits" => {
            let number = |name| after(words, name).map_or(Some(None), |word| word.parse().ok().map(Some));
            setup.orders = number("orders")?.unwrap_or(setup.orders);
            setup.open = number("open")?.unwrap_or(setup.open);
            setup.digests = number("digests")?.unwrap_or(setup.digests);
            setup.accounts = number("accounts")?.unwrap_or(setup.accounts);
            setup.each = number("each")?.unwrap_or(setup.each);
            setup.ladders = number("ladders")?.map_or(setup.ladders, u64::from);
            Command::Setup
        }
        "notional" => {
            setup.notional = decimal(words.get(1)?, ONE)?;
            Command::Setup
        }
        "market" => Command::Market(market_line(words)?),
        "credit" => Command::Credit { who: word(words, 1)?, amount: decimal(words.get(2)?, ONE)? },
        "debit" => Command::Debit { who: word(words, 1)?, amount: decimal(words.get(2)?, ONE)? },
        "go" => Command::Go { label: label(words)?, hold: hold(words) },
        "again" => Command::Again { label: label(words)?, who: words.get(2).map(|who| (*who).to_owned()) },
        "tick" => Command::Tick { market: market(), tick: cents(words.get(1)?)? },
        "pause" => Command::Mode { market: market(), mode: Mode::CancelOnly },
        "resume" => Command::Mode { market: market(), mode: Mode::Open },
        "postonly" => Command::Mode { market: market(), mode: Mode::PostOnly },
        "close" => Command::Mode { market: market(), mode: Mode::Closed },
        "resolve" => Command::Resolve {
            market: market(),
            payout: Payout::new(u32::try_from(decimal(words.get(1)?, ONE)?).ok()?)?,
        },
        "freeze" => Command::Freeze { who: word(words, 1)?, frozen: true },
        "unfreeze" => Command::Freeze { who: word(words, 1)?, frozen: false },
        "exchange" => Command::Exchange(match *words.get(1)? {
            "open" => Mode::Open,
            "postonly" => Mode::PostOnly,
            "cancelonly" => Mode::CancelOnly,
            "closed" => Mode::Closed,
            _ => return None,
        }),
        "wait" => Command::Wait { seconds: words.get(1)?.parse().ok()? },
        "sweep" => Command::Sweep { market: after(words, "in").map(str::to_owned) },
        "restart" => Command::Restart,
        "book" => Command::Book { market: market() },
        "fees" => Command::Fees,
        who => trader(who, words)?,
    })
}

fn trader(who: &str, words: &[&str]) -> Option<Command> {
    let who = who.to_owned();
    let market = after(words, "in").unwrap_or("m").to_owned();
    let act = |act| {
        let amount = decimal(words.get(2)?, ONE)?;
        Some(Command::Act { who: who.clone(), act, amount, market: market.clone(), label: label(words) })
    };
    Some(match *words.get(1)? {
        "buy" | "sell" => Command::Order(order_line(&who, words)?),
        "cancel" if label(words).is_some() => Command::Cancel { who, label: label(words)? },
        "cancel" => {
            let outcome = match *words.get(2)? {
                "yes" => Some(Outcome::Zero),
                "no" => Some(Outcome::One),
                _ => None,
            };
            Command::CancelScope { who, market: after(words, "in").map(str::to_owned), outcome }
        }
        "tombstone" => Command::Tombstone { who, label: label(words)? },
        "replace" => replace(who, words)?,
        "split" => act(ActKind::Split)?,
        "merge" => act(ActKind::Merge)?,
        "redeem" => act(ActKind::Redeem)?,
        "breaker" => Command::Breaker { who, act: breaker(words)? },
        "has" => Command::Has { who, market },
        _ => return None,
    })
}

fn breaker(words: &[&str]) -> Option<BreakerAct> {
    Some(match words.get(2).copied() {
        None => BreakerAct::Show,
        Some("off") => BreakerAct::Off,
        Some("reset") => BreakerAct::Reset,
        Some(quantity) => BreakerAct::Set {
            quantity: decimal(quantity, ONE)?,
            interval_ms: decimal(after(words, "within")?, 1_000)?,
        },
    })
}

fn replace(who: String, words: &[&str]) -> Option<Command> {
    let by = words.iter().position(|word| *word == "by")?;
    let leaving = words[2..by].iter().filter_map(|word| word.strip_prefix('#')).map(str::to_owned).collect();
    let text = words[by + 1..].join(" ");
    let lines = text.split(',').map(|line| {
        let words: Vec<&str> = std::iter::once("").chain(line.split_whitespace()).collect();
        order_line(&who, &words)
    });
    let coming = lines.collect::<Option<Vec<_>>>()?;
    Some(Command::Replace { leaving, anyway: words[..by].contains(&"anyway"), coming, who })
}

fn order_line(who: &str, words: &[&str]) -> Option<OrderLine> {
    let price = words.get(3).and_then(|word| cents(word)).map(u64::from);
    let money = marked(words, '$').and_then(|word| decimal(word, ONE));
    let size = marked(words, 'x').and_then(|word| decimal(word, ONE));
    let scaled = |amount: u64, by: u64, per: u64| {
        u64::try_from(u128::from(amount) * u128::from(by) / u128::from(per)).ok()
    };
    let (collateral, shares) = match (price, money, size) {
        (None, Some(money), Some(size)) => (money, size),
        (Some(price), Some(money), None) => (money, scaled(money, 10_000, price)? / 100 * 100),
        (Some(price), None, Some(size)) => (scaled(size, price, 10_000)?, size),
        _ => return None,
    };
    let has = |word: &str| words.contains(&word);
    Some(OrderLine {
        who: who.to_owned(),
        label: label(words)?,
        market: after(words, "in").unwrap_or("m").to_owned(),
        side: if words[1] == "buy" { Side::Buy } else { Side::Sell },
        outcome: if *words.get(2)? == "yes" { Outcome::Zero } else { Outcome::One },
        collateral,
        shares,
        order_type: match () {
            () if has("gtd") => OrderType::Gtd,
            () if has("fok") => OrderType::Fok,
            () if has("fak") => OrderType::Fak,
            () => OrderType::Gtc,
        },
        post_only: has("post"),
        self_trade: match () {
            () if has("maker") => SelfTrade::ExpireMaker,
            () if has("both") => SelfTrade::ExpireBoth,
            () => SelfTrade::ExpireTaker,
        },
        expires_in_s: after(words, "expires").and_then(|word| word.parse().ok()),
        stamp_ms: after(words, "stamp").and_then(|word| word.parse().ok()),
        hold: hold(words),
    })
}

fn market_line(words: &[&str]) -> Option<MarketLine> {
    let value = |name, scale| after(words, name).map_or(Some(0), |word| decimal(word, scale));
    Some(MarketLine {
        name: word(words, 1)?,
        tick: after(words, "tick").map_or(Some(100), cents)?,
        fee_rate: u32::try_from(value("fee", ONE)?).ok()?,
        exponent: after(words, "exponent").map_or(Some(1), |word| word.parse().ok())?,
        builder_bps: after(words, "builder").map_or(Some(0), |word| word.parse().ok())?,
        makers_pay: words.contains(&"makers-pay"),
        min_size: value("min", ONE)?,
    })
}

fn word(words: &[&str], index: usize) -> Option<String> {
    words.get(index).map(|word| (*word).to_owned())
}

fn after<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    let at = words.iter().position(|word| *word == name)?;
    words.get(at + 1).copied()
}

fn marked<'a>(words: &[&'a str], mark: char) -> Option<&'a str> {
    words.iter().skip(3).find_map(|word| word.strip_prefix(mark))
}

fn label(words: &[&str]) -> Option<String> {
    words.iter().find_map(|word| word.strip_prefix('#')).map(str::to_owned)
}

fn hold(words: &[&str]) -> Option<Stage> {
    match after(words, "hold")? {
        "look" => Some(Stage::Look),
        "take" => Some(Stage::Take),
        "claim" => Some(Stage::Claim),
        _ => None,
    }
}

/// Cents with decimals as ten-thousandths of a USDC.
fn cents(word: &str) -> Option<u16> {
    u16::try_from(decimal(word, 100)?).ok()
}

/// A decimal number in units of 1 / `scale`; more decimals than that are not read.
pub fn decimal(word: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, ""));
    let places = scale.ilog10() as usize;
    if fraction.len() > places {
        return None;
    }
    let mut digits = fraction.to_owned();
    while digits.len() < places {
        digits.push('0');
    }
    let fraction: u64 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    Some(whole.parse::<u64>().ok()? * scale + fraction)
}

/// The shortest decimal text of `value` / `scale`.
pub fn text(value: u64, scale: u64) -> String {
    let places = scale.ilog10() as usize;
    let fraction = format!("{:0places$}", value % scale);
    match fraction.trim_end_matches('0') {
        "" => (value / scale).to_string(),
        rest => format!("{}.{rest}", value / scale),
    }
}
