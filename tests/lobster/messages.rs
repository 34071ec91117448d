//! An hour of a stock's order book as orders for a prediction market.
//!
//! | type | message | becomes |
//! |---:|---|---|
//! | 1 | new limit order | GTC |
//! | 2 | part of an order is cancelled | a decrease in place, or a cancel and a new order |
//! | 3 | an order is deleted | a cancel |
//! | 4 | a visible order is executed | a FAK of the other side at that price |
//! | 5 | a hidden order is executed | nothing: there is no such order |
//!
//! Messages about orders from before the hour have no order to act on; they are counted and left
//! out. The price levels are mapped by rank onto the grid of thousandths.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::process::Command;

/// The number of messages in the file, so that a truncated one is noticed.
pub const MESSAGES: usize = 91_997;
pub const LEVELS: usize = 639;
pub const ABOUT_UNKNOWN_ORDERS: usize = 84;
pub const ABOUT_HIDDEN_ORDERS: usize = 2_201;

/// The price of the lowest level, in ten-thousandths; each rank is one thousandth more.
const LOWEST: u64 = 1_810;
const HIGHEST: u64 = 8_190;
const STEP: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Buy,
    Sell,
}

impl Side {
    pub fn other(self) -> Self {
        match self {
            Self::Buy => Self::Sell,
            Self::Sell => Self::Buy,
        }
    }
}

/// One act on the market. `order` is the file's id; prices are in ten-thousandths, shares in
/// millionths.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    Rest { order: u64, side: Side, price: u64, shares: u64 },
    Decrease { order: u64, shares: u64 },
    Cancel { order: u64 },
    Take { side: Side, price: u64, shares: u64 },
}

/// The file's acts, and how many messages were left out.
pub struct Hour {
    pub acts: Vec<Act>,
    pub hidden: usize,
    pub unknown: usize,
}

/// Reads the file, which the `xz` command unpacks: no crate for one test file.
pub fn read(file: &Path) -> Hour {
    let output = Command::new("xz").args(["--decompress", "--stdout"]).arg(file).output();
    let output = output.expect("xz is installed (package xz-utils)");
    assert!(output.status.success(), "xz: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<[u64; 4]> = text.lines().map(row).collect();
    assert_eq!(rows.len(), MESSAGES);
    let levels: BTreeSet<u64> = rows.iter().map(|row| row[3]).collect();
    assert_eq!(levels.len(), LEVELS);
    let levels: Vec<u64> = levels.into_iter().collect();
    let sides = text.lines().map(|line| if line.ends_with("-1") { Side::Sell } else { Side::Buy });
    hour(&rows, sides, &levels)
}

fn hour(rows: &[[u64; 4]], sides: impl Iterator<Item = Side>, levels: &[u64]) -> Hour {
    let mut hour = Hour { acts: Vec::new(), hidden: 0, unknown: 0 };
    let mut known = HashSet::new();
    for (&[kind, order, size, level], side) in rows.iter().zip(sides) {
        let rank = levels.binary_search(&level).unwrap() as u64;
        let price = LOWEST + STEP * rank;
        assert!(price <= HIGHEST);
        let shares = size * 1_000_000;
        match kind {
            1 => {
                known.insert(order);
                hour.acts.push(Act::Rest { order, side, price, shares });
            }
            5 => hour.hidden += 1,
            _ if !known.contains(&order) => hour.unknown += 1,
            2 => hour.acts.push(Act::Decrease { order, shares }),
            3 => hour.acts.push(Act::Cancel { order }),
            // The file has the side of the resting order; the order that executes it is on the other
            // side.
            4 => hour.acts.push(Act::Take { side: side.other(), price, shares }),
            _ => panic!("a message of type {kind}"),
        }
    }
    assert_eq!((hour.hidden, hour.unknown), (ABOUT_HIDDEN_ORDERS, ABOUT_UNKNOWN_ORDERS));
    hour
}

/// Type, id, size and price of a line.
fn row(line: &str) -> [u64; 4] {
    let mut words = line.split(',').skip(1).map(|word| word.parse().unwrap());
    [(); 4].map(|()| words.next().unwrap())
}
