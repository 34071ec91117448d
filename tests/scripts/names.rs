//! The meaning of the names in a script: wallets, markets, orders.

use super::language::{MarketLine, OrderLine, text};
use outcry::domain::amount::ONE;
use outcry::domain::order::SIGNATURE_BYTES_MAX;
use outcry::domain::{
    Address, ApiKey, MarketNo, OrderFields, OrderId, OrderType, Outcome, Price, Side, SignatureType,
    SignedOrder, TimeMs, TokenId, WalletNo, Word,
};
use outcry::shard::naive::{NaiveReplaced, Report};
use outcry::shard::{PlaceOrder, Placed, Refusal, Status};
use std::collections::BTreeMap;

/// Names by number, and orders by label.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub wallets: Vec<String>,
    pub principals: Vec<WalletNo>,
    pub markets: Vec<MarketLine>,
    pub orders: BTreeMap<String, PlaceOrder>,
    ids: BTreeMap<String, OrderId>,
}

impl Names {
    /// The wallet of a name; and if the name is new, the wallets that were just numbered, each with
    /// its principal.
    pub fn wallet(&mut self, name: &str) -> (WalletNo, Vec<(WalletNo, WalletNo)>) {
        let mut new = Vec::new();
        let (name, _) = name_and_key(name);
        let (owner, _) = name.split_once('.').unwrap_or((name, ""));
        let principal = self.known(owner).unwrap_or_else(|| {
            let number = self.next_wallet(owner);
            self.principals.push(number);
            new.push((number, number));
            number
        });
        let wallet = self.known(name).unwrap_or_else(|| {
            let number = self.next_wallet(name);
            self.principals.push(principal);
            new.push((number, principal));
            number
        });
        (wallet, new)
    }

    fn known(&self, name: &str) -> Option<WalletNo> {
        let index = self.wallets.iter().position(|other| other == name)?;
        Some(WalletNo(u32::try_from(index).unwrap()))
    }

    fn next_wallet(&mut self, name: &str) -> WalletNo {
        self.wallets.push(name.to_owned());
        WalletNo(u32::try_from(self.wallets.len() - 1).unwrap())
    }

    pub fn market(&self, name: &str) -> MarketNo {
        let index = self.markets.iter().position(|market| market.name == name);
        MarketNo(u32::try_from(index.unwrap_or_else(|| panic!("no market {name}"))).unwrap())
    }

    /// The digest of a label; it looks random, as digests do.
    pub fn id(&mut self, label: &str) -> OrderId {
        let next = self.ids.len() as u64 + 1;
        *self.ids.entry(label.to_owned()).or_insert_with(|| {
            let mut bytes = [0; 32];
            for (index, chunk) in bytes.chunks_mut(8).enumerate() {
                let word = (next * 4 + index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                chunk.copy_from_slice(&word.to_le_bytes());
            }
            OrderId(bytes)
        })
    }

    /// Records the real digest of a label's order.
    pub fn know(&mut self, label: &str, id: OrderId) {
        self.ids.insert(label.to_owned(), id);
    }

    pub fn label(&self, id: &OrderId) -> String {
        let found = self.ids.iter().find(|(_, other)| *other == id);
        found.map_or_else(|| "?".to_owned(), |(label, _)| label.clone())
    }

    pub fn labels(&self, ids: &[OrderId]) -> String {
        let labels: Vec<String> = ids.iter().map(|id| format!("#{}", self.label(id))).collect();
        if labels.is_empty() { "none".to_owned() } else { labels.join(" ") }
    }

    /// `-a -b`, or `ok` if nobody left.
    pub fn gone(&self, ids: &[OrderId]) -> String {
        let labels: Vec<String> = ids.iter().map(|id| format!("-{}", self.label(id))).collect();
        if labels.is_empty() { "ok".to_owned() } else { labels.join(" ") }
    }

    /// `, -a unfunded, -b unfunded`: the end of an act's result.
    pub fn unfunded(&self, ids: &[OrderId]) -> String {
        let mut labels: Vec<String> = ids.iter().map(|id| self.label(id)).collect();
        labels.sort_unstable();
        let parts: Vec<String> = labels.iter().map(|label| format!(", -{label} unfunded")).collect();
        parts.concat()
    }

    pub fn place(&mut self, line: &OrderLine, wallet: WalletNo, now: TimeMs) -> PlaceOrder {
        let (maker_amount, taker_amount) = match line.side {
            Side::Buy => (line.collateral, line.shares),
            Side::Sell => (line.shares, line.collateral),
        };
        let fields = OrderFields {
            salt: Word::ZERO,
            maker: Address::ZERO,
            signer: Address::ZERO,
            token: TokenId::ZERO,
            maker_amount,
            taker_amount,
            side: line.side,
            signature_type: SignatureType::Eoa,
            timestamp_ms: line.stamp_ms.unwrap_or(now.0),
            metadata: Word::ZERO,
            builder: Word::ZERO,
        };
        let order = SignedOrder {
            fields,
            signature: [7; SIGNATURE_BYTES_MAX],
            signature_len: 65,
            expiration_s: line.expires_in_s.map_or(0, |seconds| now.seconds() + seconds),
            deadline_ms: 0,
            order_type: line.order_type,
            post_only: line.post_only,
            self_trade: line.self_trade,
            owner: self.key(&line.who).1,
            condition: None,
        };
        let place = PlaceOrder {
            order,
            id: self.id(&line.label),
            principal: self.principals[wallet.index()],
            wallet,
            market: self.market(&line.market),
            outcome: line.outcome,
        };
        self.orders.insert(line.label.clone(), place);
        place
    }

    /// The principal of a known wallet's name, and the API key that is meant.
    pub fn key(&self, name: &str) -> (WalletNo, ApiKey) {
        let (name, key) = name_and_key(name);
        let principal = self.principals[self.known(name).expect("whoever acts was made").index()];
        let key = key.map_or(1, |key| key.parse().expect("a number"));
        (principal, ApiKey((u128::from(principal.0) << 64 | key).to_be_bytes()))
    }

    /// The result of a replace, in the words of scripts.
    pub fn replace_text(&self, replaced: &Result<NaiveReplaced, Refusal>) -> String {
        match replaced {
            Err(refusal) => format!("refused {}", refusal.reject.wire().code),
            Ok(NaiveReplaced { replayed: true, .. }) => "again".to_owned(),
            Ok(NaiveReplaced { left, came, .. }) => {
                let left = left.iter().map(|id| format!("#{}", self.label(id)));
                let came = came.iter().map(|(id, heir)| match heir {
                    Some(former) => format!("#{}=#{}", self.label(id), self.label(former)),
                    None => format!("#{}", self.label(id)),
                });
                left.chain(["by".to_owned()]).chain(came).collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// The result of an order, in the words of scripts.
    pub fn order_text(&self, report: &Report, order_type: OrderType) -> String {
        let mut parts: Vec<String> = report
            .fills
            .iter()
            .map(|(maker, shares, price)| {
                format!("{} {}@{}", self.label(maker), text(shares.0, ONE), cents(*price))
            })
            .collect();
        parts.extend(
            report.removed.iter().map(|(id, reason)| format!("-{} {}", self.label(id), reason.text())),
        );
        match report.placed {
            Placed::Refused(refusal) => parts.push(format!("refused {}", refusal.reject.wire().code)),
            Placed::Accepted { status, replayed: true, .. } => parts.push(match status {
                Status::Live => "again live".to_owned(),
                Status::Matched => "again matched".to_owned(),
                Status::Killed(reject) => format!("again killed {}", reject.wire().code),
            }),
            Placed::Accepted { status: Status::Killed(reject), .. } => {
                parts.push(format!("killed {}", reject.wire().code));
            }
            Placed::Accepted { .. } if !report.open.is_zero() => {
                assert!(order_type.rests(), "a market order never rests");
                parts.push(format!("rests {}", text(report.open.0, ONE)));
            }
            Placed::Accepted { .. } => parts.push("done".to_owned()),
        }
        parts.join(", ")
    }

    /// A market's book in the words of scripts: each order at its price of token 0, bids first.
    pub fn book_text(&self, orders: &[BookRow]) -> String {
        let side = |side| {
            let rows = orders.iter().filter(|row| row.face_side() == side);
            let rows = rows.map(|row| {
                format!("{} {}@{}", self.label(&row.id), text(row.open, ONE), cents(row.face_price()))
            });
            rows.collect::<Vec<_>>().join(", ")
        };
        format!("{} | {}", side(Side::Buy), side(Side::Sell)).trim().to_owned()
    }
}

/// A resting order as a book shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookRow {
    pub id: OrderId,
    pub side: Side,
    pub outcome: Outcome,
    pub price: Price,
    pub open: u64,
    pub reserved: u64,
}

impl BookRow {
    pub fn face_side(&self) -> Side {
        if self.outcome == Outcome::Zero { self.side } else { self.side.opposite() }
    }

    pub fn face_price(&self) -> Price {
        if self.outcome == Outcome::Zero { self.price } else { self.price.complement() }
    }
}

/// A name without its key, if one is named.
pub fn name_and_key(name: &str) -> (&str, Option<&str>) {
    name.split_once('/').map_or((name, None), |(name, key)| (name, Some(key)))
}

/// How a breaker stands, in the words of scripts: what counts, what trips it, and whether it has tripped.
pub fn breaker_text(breaker: Option<(u64, u64, bool)>) -> String {
    let Some((filled, quantity, tripped)) = breaker else {
        return "none".to_owned();
    };
    format!("{} of {}{}", text(filled, ONE), text(quantity, ONE), if tripped { " tripped" } else { "" })
}

fn cents(price: Price) -> String {
    text(u64::from(price.ten_thousandths()), 100)
}
