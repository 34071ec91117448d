//! Orders: signed, sent, sent again; and their answers in the words of scripts.

use super::words::{STRANGERS, STRANGERS_ORDER, stamp_ms};
use super::{Done, Run};
use crate::common::trader::{Draft, Signed, Wish, micro};
use crate::common::wire::Answer;
use crate::language::{Command, OrderLine, decimal};
use outcry::domain::{OrderId, Price, Reject, SelfTrade, Shares};
use outcry::journal::layout::RemovalReason;
use outcry::shard::naive::Report;
use outcry::shard::{PlaceOrder, Placed, Status};
use serde_json::Value;

/// An order in preparation, which can be named before it is sent, and sent again afterwards.
#[derive(Clone)]
pub struct Drafted {
    pub who: String,
    draft: Draft,
    pub signed: Signed,
    pub place: PlaceOrder,
}

impl Run {
    /// The order of a line, signed when it is first named. Unsigned fields may still change.
    pub fn drafted(&mut self, line: &OrderLine) -> Drafted {
        let wallet = self.wallet(&line.who);
        let now = self.twin.now;
        let mut place = self.names.place(line, wallet, now);
        let market = self.market(place.market);
        let signer = self.people.wallets[wallet.index()];
        let known = self.drafts.get(&line.label).map(|known| known.draft.clone());
        let trader = self.people.trader(&line.who);
        let mut draft = known.unwrap_or_else(|| {
            let token = market.tokens[line.outcome.index()];
            let wish = Wish { token, side: line.side, price: 0, shares: 0, kind: "", neg_risk: false };
            let mut draft = trader.draft(&wish);
            draft.fields.maker = signer.address;
            draft.fields.signature_type = signer.kind;
            draft.fields.maker_amount = place.order.fields.maker_amount;
            draft.fields.taker_amount = place.order.fields.taker_amount;
            draft.fields.timestamp_ms =
                line.stamp_ms.map_or(now.0, |script_ms| stamp_ms(script_ms, self.begin_ms));
            draft
        });
        draft.kind(line.order_type.text());
        draft.post_only = line.post_only;
        draft.expiration = place.order.expiration_s;
        draft.self_trade = match line.self_trade {
            SelfTrade::ExpireTaker => None,
            SelfTrade::ExpireMaker => Some("expire_maker"),
            SelfTrade::ExpireBoth => Some("expire_both"),
        };
        let signed = trader.seal(&draft);
        place.order.fields.timestamp_ms = draft.fields.timestamp_ms;
        place.id = signed.id;
        self.names.know(&line.label, signed.id);
        self.names.orders.insert(line.label.clone(), place);
        let drafted = Drafted { who: line.who.clone(), draft, signed, place };
        self.drafts.insert(line.label.clone(), drafted.clone());
        drafted
    }

    /// The digest of a label's order, which may come later in the script, or never.
    pub fn id_of(&mut self, label: &str) -> OrderId {
        if !self.drafts.contains_key(label) {
            let line = self.lines.iter().find_map(|line| match &line.command {
                Command::Order(order) if order.label == label => Some(order.clone()),
                Command::Replace { coming, .. } => coming.iter().find(|order| order.label == label).cloned(),
                _ => None,
            });
            if let Some(line) = line {
                self.drafted(&line);
            }
        }
        self.names.id(label)
    }

    pub fn order(&mut self, line: &OrderLine) -> Done {
        let drafted = self.drafted(line);
        let trader = self.people.trader(&line.who);
        let answer = trader.post(&mut self.site.public, &drafted.signed.body);
        self.placed(&line.label, &drafted, &answer)
    }

    /// Sends the same bytes once more, or with the credentials of another trader.
    pub fn again(&mut self, label: &str, stranger: Option<&str>) -> Done {
        let drafted = self.drafts[label].clone();
        let who = stranger.unwrap_or(&drafted.who).to_owned();
        self.wallet(&who);
        let trader = self.people.trader(&who);
        let answer = trader.post(&mut self.site.public, &drafted.signed.body);
        if stranger.is_none() {
            return self.placed(label, &drafted, &answer);
        }
        let http = format!("refused {}", answer.json()["code"].as_str().unwrap_or_default());
        assert_eq!(http, STRANGERS_ORDER, "{}", self.at);
        Done::same(STRANGERS)
    }

    /// What the answer and the records say, beside what the twin does.
    fn placed(&mut self, label: &str, drafted: &Drafted, answer: &Answer) -> Done {
        let kind = drafted.place.order.order_type;
        let http = self.report(label, drafted, answer);
        let twin = self.twin.place(&drafted.place);
        assert_eq!(amounts(&http), amounts(&twin), "what was given and taken at {}", self.at);
        if !twin.open.is_zero() {
            self.placed.push(drafted.place.id);
        }
        let left = twin.removed.iter().map(|(id, reason)| (*id, reason.text())).collect();
        let texts = Done::of(self.names.order_text(&http, kind), self.names.order_text(&twin, kind));
        Done { left, ..texts }
    }

    fn report(&mut self, label: &str, drafted: &Drafted, answer: &Answer) -> Report {
        let said = answer.json();
        let replayed = answer.header("Idempotent-Replayed") == Some("true");
        let record = self.record(label);
        let refused = |status, fills, open| Report { placed: status, fills, removed: Vec::new(), open };
        let accepted =
            |status, making, taking| Placed::Accepted { status, making, taking, trade: None, replayed };
        if answer.status != 200 {
            let reject = reject(&said, &self.at);
            // A killed order is remembered with its reason; a refused one left nothing.
            let killed = record.is_some_and(|record| record["reason"] == reject.wire().code);
            let placed = if killed || replayed {
                accepted(Status::Killed(reject), 0, 0)
            } else {
                Placed::Refused(reject.into())
            };
            return refused(placed, Vec::new(), Shares::ZERO);
        }
        assert_eq!(said["orderID"], drafted.signed.id_text, "{}", self.at);
        let status = match said["status"].as_str() {
            Some("live") => Status::Live,
            Some("matched") => Status::Matched,
            other => panic!("{other:?} is no status, at {}", self.at),
        };
        let [making, taking] = ["makingAmount", "takingAmount"].map(|name| match said[name].as_str() {
            Some("") => 0,
            text => micro(text.unwrap()),
        });
        let placed = accepted(status, making, taking);
        if replayed {
            return refused(placed, Vec::new(), Shares::ZERO);
        }
        let record = record.expect("an accepted order has a record");
        let of = |name: &str| micro(record[name].as_str().unwrap());
        // Its own breaker may have tripped, and what rested of it may have left by now.
        let rested = record["status"] == "LIVE" || record["reason"] == RemovalReason::FillRate.text();
        let open = if rested { of("original_size") - of("size_matched") } else { 0 };
        refused(placed, self.fills(&drafted.who, &said), Shares(open))
    }

    /// The fills of the trade that an answer names, from the taker's list of trades.
    fn fills(&mut self, who: &str, said: &Value) -> Vec<(OrderId, Shares, Price)> {
        let trades = said["tradeIDs"].as_array().unwrap();
        assert_eq!(trades.len(), said["transactionsHashes"].as_array().unwrap().len(), "{}", self.at);
        let mut fills = Vec::new();
        for trade in trades {
            let path = format!("/data/trades?id={}", trade.as_str().unwrap());
            let page = self.people.trader(who).read(&mut self.site.public, &path);
            assert_eq!(page["count"], 1, "{path}: {page}");
            for maker in page["data"][0]["maker_orders"].as_array().unwrap() {
                let id = outcry::domain::text::parse_hex(maker["order_id"].as_str().unwrap().as_bytes());
                let price = decimal(maker["price"].as_str().unwrap(), 10_000).unwrap();
                fills.push((
                    OrderId(id.unwrap()),
                    Shares(micro(maker["matched_amount"].as_str().unwrap())),
                    Price::new(u16::try_from(price).unwrap()).unwrap(),
                ));
            }
        }
        fills
    }

    /// The record of a label's order, as its owner sees it; none if the exchange has none.
    pub fn record(&mut self, label: &str) -> Option<Value> {
        let drafted = self.drafts.get(label)?;
        let (who, path) = (drafted.who.clone(), format!("/data/order/{}", drafted.signed.id_text));
        let answer = self.people.trader(&who).ask(&mut self.site.public, "GET", &path, "").unwrap();
        match answer.status {
            200 => Some(answer.json()),
            status => {
                assert_eq!(status, 404, "{path}: {}", answer.json());
                None
            }
        }
    }
}

/// The refusal that an answer names.
fn reject(said: &Value, at: &str) -> Reject {
    let code = said["code"].as_str().unwrap_or_default();
    let found = Reject::ALL.iter().find(|reject| reject.wire().code == code);
    *found.unwrap_or_else(|| panic!("{said} names no refusal, at {at}"))
}

/// What an order gave and took in its fills.
fn amounts(report: &Report) -> Option<(u64, u64)> {
    match report.placed {
        Placed::Accepted { making, taking, .. } => Some((making, taking)),
        Placed::Refused(_) => None,
    }
}
