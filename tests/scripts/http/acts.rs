//! Everything but orders: cancels, splits, merges, redeems, and the operator's acts.

use super::words::{RESOLVED_SO, STRANGERS, STRANGERS_ACT};
use super::{Done, Run};
use crate::common::trader::{hex_text, token_text};
use crate::language::{BreakerAct, Command, TOMBSTONE_MS, text};
use crate::names::breaker_text;
use outcry::domain::amount::ONE;
use outcry::domain::order::SIGNATURE_BYTES_MAX;
use outcry::domain::{MarketNo, Mode, OrderId, Outcome, Payout, Shares, Tick, Word};
use outcry::shard::UserAct;
use serde_json::{Value, json};

/// A split, merge or redeem that was sent, kept to be sent again.
#[derive(Clone)]
pub struct Sent {
    path: &'static str,
    body: String,
    act: UserAct,
}

impl Run {
    fn ask(&mut self, who: &str, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let trader = self.people.trader(who);
        let answer = trader.ask(&mut self.site.public, method, path, &body).unwrap();
        assert_eq!(answer.status, 200, "{method} {path} {body}: {} at {}", answer.json(), self.at);
        answer.json()
    }

    fn delete(&mut self, who: &str, id: &OrderId) -> Value {
        self.ask(who, "DELETE", "/order", &json!({ "orderID": hex_text(&id.0) }))
    }

    pub fn cancel(&mut self, who: &str, label: &str) -> Done {
        let wallet = self.wallet(who);
        let principal = self.names.principals[wallet.index()];
        let id = self.id_of(label);
        let said = self.delete(who, &id);
        let text = hex_text(&id.0);
        let http = match () {
            () if said["canceled"] == json!([text]) => "ok",
            () if said["tombstone"] == true => "unknown",
            () if said["not_canceled"].get(&text).is_some() => "gone",
            () => panic!("{said} at {}", self.at),
        };
        let twin = match () {
            () if self.twin.cancel(principal, &id) => "ok",
            () if self.twin.decided(principal, &id) => "gone",
            () => {
                self.twin.tombstone(principal, &id, self.twin.now.0 + TOMBSTONE_MS);
                "unknown"
            }
        };
        let gone: &[OrderId] = if twin == "ok" { &[id] } else { &[] };
        Done::of(http.to_owned(), twin.to_owned()).removed(gone, "cancelled")
    }

    /// A cancel that comes before its order: it leaves a tombstone.
    pub fn tombstone(&mut self, who: &str, label: &str) -> Done {
        let wallet = self.wallet(who);
        let principal = self.names.principals[wallet.index()];
        let id = self.id_of(label);
        let said = self.delete(who, &id);
        let buried = said["tombstone"] == true && said["tombstones"] == json!([hex_text(&id.0)]);
        self.twin.tombstone(principal, &id, self.twin.now.0 + TOMBSTONE_MS);
        Done::of(if buried { "ok".to_owned() } else { said.to_string() }, "ok".to_owned())
    }

    pub fn cancel_scope(&mut self, who: &str, market: Option<&str>, outcome: Option<Outcome>) -> Done {
        let wallet = self.wallet(who);
        let principal = self.names.principals[wallet.index()];
        let market = market.map(|name| self.names.market(name));
        let said = match market {
            None => self.ask(who, "DELETE", "/cancel-all", &Value::Null),
            Some(number) => {
                let market = self.market(number);
                let token =
                    outcome.map_or(String::new(), |outcome| token_text(&market.tokens[outcome.index()]));
                let scope = json!({ "market": market.condition, "asset_id": token });
                self.ask(who, "DELETE", "/cancel-market-orders", &scope)
            }
        };
        assert_eq!(said["not_canceled"], json!({}), "{}", self.at);
        let mut ids: Vec<OrderId> = said["canceled"].as_array().unwrap().iter().map(order_id).collect();
        let mut gone = self.twin.remove_where(|order| {
            order.principal == principal
                && market.is_none_or(|market| market == order.market)
                && outcome.is_none_or(|outcome| outcome == order.outcome)
        });
        ids.sort_by_key(|id| self.names.label(id));
        gone.sort_by_key(|id| self.names.label(id));
        Done::of(self.names.labels(&ids), self.names.labels(&gone)).removed(&gone, "cancelled")
    }

    pub fn act(&mut self, command: &Command) -> Done {
        let Command::Act { who, act, amount, market, label } = command else {
            unreachable!("only acts come here");
        };
        let wallet = self.wallet(who);
        let market = self.names.market(market);
        let principal = self.names.principals[wallet.index()];
        let label = label.clone().unwrap_or_else(|| format!("act {}", self.acts.len()));
        let signer = self.people.wallets[wallet.index()];
        let condition = self.market(market).condition;
        let sent = self.acts.get(&label).cloned().unwrap_or_else(|| {
            let trader = self.people.trader(who);
            let signing = (signer.address, signer.kind);
            let (path, body) = trader.sign_act(*act as u8, signing, &condition, *amount);
            let act = UserAct {
                act: *act,
                principal,
                wallet,
                market,
                amount: Shares(*amount),
                id: self.names.id(&label),
                salt: Word::ZERO,
                timestamp_ms: self.twin.now.0,
                signature: [0; SIGNATURE_BYTES_MAX],
                signature_len: 65,
            };
            Sent { path, body, act }
        });
        self.acts.insert(label, sent.clone());
        let trader = self.people.trader(who);
        let answer = trader.ask(&mut self.site.public, "POST", sent.path, &sent.body).unwrap();
        let said = answer.json();
        let http = match answer.status {
            200 => said["collateral"].as_str().unwrap().to_owned(),
            _ => format!("refused {}", said["code"].as_str().unwrap_or_default()),
        };
        if sent.act.principal != principal {
            assert_eq!(http, STRANGERS_ACT, "{}", self.at);
            return Done::same(STRANGERS);
        }
        let (twin, gone) = match self.twin.act(&sent.act) {
            Ok((collateral, gone)) => (text(collateral, ONE), gone),
            Err(refusal) => (format!("refused {}", refusal.reject.wire().code), Vec::new()),
        };
        Done::of(http, twin + &self.names.unfunded(&gone)).removed(&gone, "unfunded")
    }

    pub fn breaker(&mut self, who: &str, act: BreakerAct) -> Done {
        let _ = self.wallet(who);
        let (_, key) = self.names.key(who);
        self.guarded.insert(who.to_owned());
        let (method, path, body) = match act {
            BreakerAct::Set { quantity, interval_ms } => {
                let body = json!({ "quantity": text(quantity, ONE), "interval_ms": interval_ms });
                self.twin.set_breaker(key, quantity, interval_ms);
                ("POST", "/breaker", body.to_string())
            }
            BreakerAct::Off => {
                self.twin.set_breaker(key, 0, 0);
                ("DELETE", "/breaker", String::new())
            }
            BreakerAct::Reset => ("POST", "/breaker/reset", String::new()),
            // It is compared after every line.
            BreakerAct::Show => return Done::same(&breaker_text(self.twin.breaker(key))),
        };
        let there = !matches!(act, BreakerAct::Reset) || self.twin.reset_breaker(key);
        let answer = self.people.trader(who).ask(&mut self.site.public, method, path, &body).unwrap();
        let http = match answer.status {
            200 => "ok".to_owned(),
            _ => format!("refused {}", answer.json()["code"].as_str().unwrap_or_default()),
        };
        Done::of(http, if there { "ok" } else { "refused breaker_not_set" }.to_owned())
    }

    pub fn tick(&mut self, market: &str, tick: u16) -> Done {
        let market = self.names.market(market);
        let path = format!("/markets/{}/tick", self.market(market).id);
        let said = self.site.operate(&path, &json!({ "tick": text(tick.into(), 10_000) }));
        let tick = Tick::new(tick).expect("a tick");
        if self.twin.markets[market.index()].mode == Mode::Resolved {
            return Done::of(done(said), "refused market_resolved".to_owned());
        }
        self.twin.markets[market.index()].tick = tick;
        let gone = self.twin.remove_where(|order| order.market == market && !tick.holds(order.price));
        self.removed_by_operator(said, &gone, "tick_changed")
    }

    pub fn resolve(&mut self, market: &str, payout: Payout) -> Done {
        let market = self.names.market(market);
        let path = format!("/markets/{}/resolve", self.market(market).id);
        let zero = payout.per_share(Outcome::Zero);
        let said = self.site.operate(&path, &json!({ "payout": text(zero.into(), ONE) }));
        let row = &mut self.twin.markets[market.index()];
        if row.mode == Mode::Resolved {
            let same = row.payout == Some(payout);
            let twin = if same { RESOLVED_SO } else { "refused market_resolved" };
            return Done::of(done(said), twin.to_owned());
        }
        row.mode = Mode::Resolved;
        row.payout = Some(payout);
        let gone = self.twin.remove_where(|order| order.market == market);
        self.removed_by_operator(said, &gone, "market_resolved")
    }

    /// The operator learns how many orders left; which ones, their owners learn.
    fn removed_by_operator(
        &self,
        said: Result<Value, String>,
        gone: &[OrderId],
        reason: &'static str,
    ) -> Done {
        let twin = self.names.gone(gone);
        let http = match said {
            Ok(said) => {
                assert_eq!(said["removed"], gone.len(), "orders that left at {}", self.at);
                twin.clone()
            }
            Err(code) => format!("refused {code}"),
        };
        Done::of(http, twin).removed(gone, reason)
    }

    pub fn mode(&mut self, market: &str, mode: Mode) -> Done {
        let market = self.names.market(market);
        if std::mem::take(&mut self.narrowed) {
            self.site.operate("/mode", &json!({ "mode": "open" })).unwrap();
        }
        let path = format!("/markets/{}", self.market(market).id);
        let act = if mode == Mode::CancelOnly { "pause" } else { "resume" };
        let http = done(self.site.operate(&format!("{path}/{act}"), &json!({})));
        let row = &mut self.twin.markets[market.index()];
        if row.mode == Mode::Resolved {
            return Done::of(http, "refused market_resolved".to_owned());
        }
        row.mode = mode;
        match mode {
            Mode::PostOnly => {
                assert_eq!(self.people.markets.len(), 1, "the other markets would be post-only too");
                self.site.operate("/mode", &json!({ "mode": "post-only" })).unwrap();
                self.narrowed = true;
            }
            Mode::Closed => self.close(market),
            Mode::Open | Mode::CancelOnly | Mode::Resolved => {}
        }
        Done::of(http, "ok".to_owned())
    }

    /// A market closes when a file says so.
    fn close(&mut self, number: MarketNo) {
        let market = self.market(number);
        let row = &self.twin.markets[number.index()];
        let (tick, min_size) = (row.tick.ten_thousandths(), row.min_size);
        self.import(&json!({
            "id": market.id,
            "question": "Closed?",
            "conditionId": market.condition,
            "clobTokenIds": market.tokens.map(|token| token_text(&token)),
            "orderPriceMinTickSize": text(tick.into(), 10_000),
            "orderMinSize": text(min_size, ONE),
            "closed": true,
            "updatedAt": "2999-01-01T00:00:00Z",
        }));
    }

    pub fn freeze(&mut self, who: &str, frozen: bool) -> Done {
        let wallet = self.wallet(who);
        let address = hex_text(&self.people.wallets[wallet.index()].address.0);
        let said = self.site.operate(&format!("/accounts/{address}/freeze"), &json!({ "frozen": frozen }));
        let gone = self.twin.freeze(wallet, frozen);
        Done::of(done(said), "ok".to_owned()).removed(&gone, "operator")
    }

    pub fn exchange(&mut self, mode: Mode) -> Done {
        let word = match mode {
            Mode::Open => "open",
            Mode::PostOnly => "post-only",
            Mode::CancelOnly => "cancel-only",
            Mode::Closed | Mode::Resolved => "closed",
        };
        let said = self.site.operate("/mode", &json!({ "mode": word }));
        self.twin.exchange = mode;
        Done::of(done(said), "ok".to_owned())
    }
}

fn done(said: Result<Value, String>) -> String {
    said.map_or_else(|code| format!("refused {code}"), |_| "ok".to_owned())
}

fn order_id(text: &Value) -> OrderId {
    OrderId(outcry::domain::text::parse_hex(text.as_str().unwrap().as_bytes()).unwrap())
}
