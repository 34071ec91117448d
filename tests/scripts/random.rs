//! Random scripts: the same commands that people write, drawn from a seed.
//!
//! A script that fails is printed in full, together with its seed, so that it can be kept in one of
//! the files. Prices, sizes and money are few and small, so orders meet often, cells run short, and
//! what remains has odd millionths.

use std::fmt::Write;

/// Draws numbers from a seed: the same seed, the same script.
pub struct Draw(u64);

impl Draw {
    pub fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        let index = usize::try_from(self.below(choices.len() as u64)).expect("an index");
        choices[index]
    }
}

pub const TRADERS: [&str; 5] = ["alice", "bob", "carol", "dave", "alice.safe"];
/// Traders, one of them by a second key too.
const KEYS: [&str; 6] = ["alice", "bob", "carol", "dave", "alice.safe", "alice/2"];
const MARKETS: [&str; 3] = ["m", "n", "o"];
const TICKS: [&str; 6] = ["10", "1", "0.5", "0.25", "0.1", "0.01"];

/// A script of `lines` commands for one or more shards, one command at a time.
pub fn script(draw: &mut Draw, lines: usize) -> String {
    let mut script = head(draw);
    let mut labels = dust(draw, &mut script);
    for _ in 0..lines {
        if draw.one_in(12) {
            breaker(draw, &mut script);
        } else {
            line(draw, &mut script, &mut labels, &MARKETS);
        }
    }
    script
}

/// A script in which many orders are cancelled before they come, and the clock is set back now and then.
pub fn set_back(draw: &mut Draw, lines: usize) -> String {
    let mut script = head(draw);
    let mut labels = 0;
    for _ in 0..lines {
        if draw.one_in(6) {
            let _ = writeln!(script, "wait {}", draw.pick(&["-1", "-4", "-7", "-13", "2", "6", "11", "25"]));
        } else if draw.one_in(8) {
            breaker(draw, &mut script);
        } else if draw.one_in(3) {
            let _ = writeln!(script, "{} tombstone #{}", draw.pick(&TRADERS), labels + 1 + draw.below(4));
        } else {
            line(draw, &mut script, &mut labels, &MARKETS);
        }
    }
    script
}

/// An order and two buys for whole amounts, thirds of shares, which leave a millionth of a share of it unless they are
/// refused or stopped. Returns how many labels it took.
fn dust(draw: &mut Draw, script: &mut String) -> u64 {
    let (maker, market) = (draw.pick(&TRADERS), draw.pick(&MARKETS));
    let (rests, token) = draw.pick(&[("sell yes 60", "yes"), ("sell no 60", "no"), ("buy yes 40", "no")]);
    let _ = writeln!(script, "{maker} {rests} x5 gtc #1 in {market}");
    for (label, amount) in [(2, "$1"), (3, "$2")] {
        let (taker, kind) = (draw.pick(&TRADERS), draw.pick(&["fok", "fak"]));
        let _ = writeln!(script, "{taker} buy {token} 60 {amount} {kind} #{label} in {market}");
    }
    3
}

/// Quantities that few fills reach, within times of which some are over when the next fill comes.
fn breaker(draw: &mut Draw, script: &mut String) {
    let who = draw.pick(&KEYS);
    let act = match draw.below(6) {
        0 => "off".to_owned(),
        1 | 2 => "reset".to_owned(),
        _ => format!("{} within {}", amount(draw), draw.pick(&["0.001", "9.5", "60", "60"])),
    };
    let _ = writeln!(script, "{who} breaker {act}");
}

/// A script for two shards whose orders stop between their stages while the other shard goes on.
pub fn interleaved(draw: &mut Draw, lines: usize) -> String {
    let mut script = "shards 2\n".to_owned() + &head(draw);
    let mut labels = dust(draw, &mut script);
    // `m` and `o` are on the first shard, `n` is on the second.
    let mut held: [Option<(String, &str)>; 2] = [None, None];
    for _ in 0..lines {
        let shard = usize::from(draw.one_in(2));
        let markets: &[&str] = if shard == 0 { &["m", "o"] } else { &["n"] };
        if let Some((label, _)) = held[shard].take() {
            let stage = draw.pick(&["", "", "take", "claim"]);
            let _ = writeln!(script, "go #{label} hold {stage}");
            if !stage.is_empty() {
                held[shard] = Some((label, stage));
            }
        } else if draw.one_in(2) {
            labels += 1;
            let order = order(draw, labels, markets);
            let stage = draw.pick(&["look", "take", "take", "claim"]);
            let _ = writeln!(script, "{order} hold {stage}");
            held[shard] = Some((labels.to_string(), stage));
        } else if held.iter().all(Option::is_none) && draw.one_in(4) {
            breaker(draw, &mut script);
        } else if held.iter().all(Option::is_none) {
            line(draw, &mut script, &mut labels, &MARKETS);
        } else if draw.one_in(4) {
            // Between claim and commit a cell has fallen and its flag is not yet up. The twin, which
            // has no flags, would be ahead.
            if held.iter().flatten().all(|(_, stage)| *stage != "claim") {
                let _ = writeln!(script, "sweep in {}", markets[0]);
            }
        } else if draw.one_in(3) {
            money(draw, &mut script);
        } else {
            labels += 1;
            let order = order(draw, labels, markets);
            let _ = writeln!(script, "{order}");
        }
    }
    for (label, _) in held.into_iter().flatten() {
        let _ = writeln!(script, "go #{label}");
    }
    script.push_str("sweep\n");
    script
}

fn head(draw: &mut Draw) -> String {
    let mut head = String::new();
    if draw.one_in(3) {
        head.push_str("funding reserved\n");
    }
    if draw.one_in(3) {
        head.push_str("notional 1\n");
    }
    if draw.one_in(3) {
        head.push_str(draw.pick(&["limits orders 7 digests 20 accounts 9\n", "limits open 2 each 2\n"]));
    }
    for market in &MARKETS[1..] {
        let (tick, fee) = (draw.pick(&TICKS[1..]), draw.pick(&["0", "0.0441", "0.072", "1"]));
        let pays = draw.pick(&["", " makers-pay", " exponent 2", " builder 3000"]);
        let min = draw.pick(&["0", "0", "2"]);
        let _ = writeln!(head, "market {market} tick {tick} fee {fee} min {min}{pays}");
    }
    for trader in TRADERS {
        let _ = writeln!(head, "credit {trader} {}", 3 + draw.below(24));
        for market in MARKETS {
            let _ = writeln!(head, "{trader} split {} in {market}", 1 + draw.below(8));
        }
    }
    head
}

fn line(draw: &mut Draw, script: &mut String, labels: &mut u64, markets: &[&str]) {
    let (who, market) = (draw.pick(&TRADERS), draw.pick(markets));
    let known = 1 + draw.below((*labels).max(1));
    let line = match draw.below(60) {
        0..=5 => format!("{who} cancel #{known}"),
        32..=35 => return replace(draw, script, labels, market),
        6 => format!("{who} cancel all"),
        7 => format!("{who} cancel {} in {market}", draw.pick(&["yes", "no"])),
        8..=9 => format!("{who} split {} in {market}", amount(draw)),
        10..=12 => format!("{who} merge {} in {market}", amount(draw)),
        13 => format!("tick {} in {market}", draw.pick(&TICKS)),
        14 if draw.one_in(3) => format!("resolve {} in {market}", draw.pick(&["0", "0.5", "1", "0.333333"])),
        15 => format!("{who} redeem {} in {market}", draw.pick(&["0", "1"])),
        16 => format!("{} in {market}", draw.pick(&["pause", "postonly", "resume"])),
        17 | 18 => format!("resume in {market}"),
        19 | 20 => format!("wait {}", draw.below(20)),
        21..=24 => "sweep".to_owned(),
        25 => "restart".to_owned(),
        26 | 27 => format!("again #{known}"),
        28 => format!("{who} tombstone #{}", *labels + 1),
        29..=31 => return money(draw, script),
        _ => {
            *labels += 1;
            order(draw, *labels, markets)
        }
    };
    if line.starts_with("again") && *labels == 0 {
        return;
    }
    let _ = writeln!(script, "{line}");
}

/// Replaces orders of one trader, mostly in the same market and at prices that rest.
fn replace(draw: &mut Draw, script: &mut String, labels: &mut u64, market: &str) {
    let who = draw.pick(&TRADERS);
    let mut line = format!("{who} replace");
    for _ in 0..draw.below(4) {
        // The newest orders are likely to rest still.
        let back = draw.below(10).min(labels.saturating_sub(1));
        let _ = write!(line, " #{}", (*labels - back).max(1));
    }
    line.push_str(draw.pick(&["", " anyway", " anyway", " anyway"]));
    for count in 0..=draw.below(3) {
        *labels += 1;
        line.push_str(if count == 0 { " by " } else { ", " });
        let (side, price) = match draw.pick(&["buy", "sell"]) {
            "buy" => ("buy", 44 + draw.below(5)),
            side => (side, 50 + draw.below(5)),
        };
        let (token, size) = (draw.pick(&["yes", "yes", "no"]), amount(draw));
        let kind = draw.pick(&["gtc", "gtc", "gtc", "gtc", "fak"]);
        let _ = write!(line, "{side} {token} {price} x{size} {kind} #{labels} in {market}");
    }
    let _ = writeln!(script, "{line}");
}

fn money(draw: &mut Draw, script: &mut String) {
    let (who, act) = (draw.pick(&TRADERS), draw.pick(&["credit", "debit"]));
    let _ = writeln!(script, "{act} {who} {}", amount(draw));
}

/// One order line.
pub fn order(draw: &mut Draw, label: u64, markets: &[&str]) -> String {
    let who = draw.pick(&KEYS);
    let (side, token) = (draw.pick(&["buy", "sell"]), draw.pick(&["yes", "no"]));
    let kind = draw.pick(&["gtc", "gtc", "gtc", "gtd", "fok", "fak"]);
    let price = match draw.below(8) {
        0 => format!("{}.{}", 30 + draw.below(40), draw.pick(&["5", "25", "1", "33"])),
        1 => draw.pick(&["1", "99", "0.01", "99.99", "10", "90"]).to_owned(),
        _ => (44 + draw.below(12)).to_string(),
    };
    let size = if kind == "fok" || kind == "fak" {
        match side {
            "buy" => format!("${}", amount(draw)),
            _ => format!("x{}", amount(draw)),
        }
    } else {
        format!("x{}", amount(draw))
    };
    let mut line = format!("{who} {side} {token} {price} {size} {kind} #{label} in {}", draw.pick(markets));
    if kind == "gtd" {
        let _ = write!(line, " expires {}", draw.below(30));
    }
    if draw.one_in(10) {
        line.push_str(" post");
    }
    line + draw.pick(&["", "", " maker", " both"])
}

/// Mostly round, sometimes odd to the millionth.
fn amount(draw: &mut Draw) -> String {
    match draw.below(6) {
        0 => format!("{}.{:06}", draw.below(4), 1 + draw.below(999_999)),
        1 => format!("{}.{:02}", draw.below(6), 1 + draw.below(99)),
        _ => (1 + draw.below(9)).to_string(),
    }
}
