//! Every refusal, provoked on a running exchange: the answer has the right words, and nothing changes.
//!
//! `provoke` is a match over [`Reject`], so a new refusal without a row does not compile. Before and
//! after each row, `journal verify` reads the state hash from the journal on disk.
//!
//! Rows that need an exchange of another shape (tiny tables, a mode) say which. Those for which a part
//! of the server must stand still are in `held`; what must be said is in `said`.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;
#[path = "refusals/held.rs"]
mod held;
#[path = "refusals/said.rs"]
mod said;

use common::exchange::{Exchange, Plan, journal};
use common::folder;
use common::trader::{Draft, KEYS, Trader, Wish, hex_text, now_ms, token, word};
use common::wire::{Answer, Connection};
use outcry::domain::{Address, Reject, Side, TokenId};
use outcry::journal::layout::order::FILLS_MAX;
use std::path::Path;

/// More of the largest ladders than fit a mebibyte.
const LADDERS_MAX: usize = 20;

/// Other sizes are a tenth of the defaults, as in `dev`. These leave a little room for resting orders, and for positions,
/// beside `dev`'s own quotes.
const FEW_ORDERS: &str = "sizes.resting_orders=130";
const FEW_POSITIONS: &str = "sizes.positions=50";
const ROOM_MAX: usize = 130;

/// Orders in a batch, and batches sent before their answers are read.
const BATCH: usize = 15;
const BATCHES_PIPELINED: usize = 16;

/// A market that the scene made.
#[derive(Clone)]
struct Market {
    condition: String,
    tokens: [TokenId; 2],
}

/// An exchange with two traders and markets in every mode.
struct Scene {
    exchange: Exchange,
    plan: Plan,
    connection: Connection,
    first: Trader,
    second: Trader,
    open: Market,
    other: Market,
    paused: Market,
    closed: Market,
    resolved: Market,
    fine: Market,
    /// An order that was taken.
    known: String,
    _folder: tempfile::TempDir,
}

/// How a refusal is provoked.
enum Row {
    /// By one request on the common scene; the function returns the answer.
    Asked(fn(&mut Scene) -> Answer),
    /// On the common scene, with something changed by the operator: before, the request, after.
    While(fn(&mut Scene), fn(&mut Scene) -> Answer, fn(&mut Scene)),
    /// On an exchange started with these settings: before, the request.
    Shaped(&'static [&'static str], fn(&mut Scene), fn(&mut Scene) -> Answer),
    /// On a server of which a part stands still.
    Held(fn() -> Seen),
}

/// A refusal, with the state on disk before and after it.
struct Seen {
    before: String,
    answer: Answer,
    after: String,
}

#[allow(clippy::too_many_lines, reason = "a table, one row a refusal")]
fn provoke(reject: Reject) -> Row {
    use Row::{Asked, Held, Shaped, While};
    match reject {
        Reject::Recovering => Held(held::recovering),
        Reject::Busy => Held(held::busy),
        Reject::TradingDisabled => {
            While(|scene| scene.mode("closed"), Scene::plain, |scene| scene.mode("open"))
        }
        Reject::CancelOnly => {
            While(|scene| scene.mode("cancel-only"), Scene::plain, |scene| scene.mode("open"))
        }
        Reject::PostOnlyMode => {
            While(|scene| scene.mode("post-only"), Scene::plain, |scene| scene.mode("open"))
        }
        Reject::Unauthorized => Asked(|scene| {
            let request = scene.first.request("POST", "/order", "{}");
            let forged = String::from_utf8(request).unwrap().replace("POLY_SIGNATURE: ", "POLY_SIGNATURE: A");
            scene.send(forged.as_bytes())
        }),
        Reject::InvalidL1 => Asked(|scene| {
            let headers = format!(
                "POLY_ADDRESS: {}\r\nPOLY_SIGNATURE: 0x{}\r\nPOLY_TIMESTAMP: {}\r\nPOLY_NONCE: 0\r\n",
                hex_text(&scene.first.address.0),
                "11".repeat(65),
                now_ms() / 1_000
            );
            scene.connection.request("POST", "/auth/api-key", &headers, b"").unwrap()
        }),
        Reject::ReadonlyKey => While(
            |scene| assert_eq!(scene.ask("POST", "/auth/readonly-api-key", "").status, 200),
            |scene| {
                let keys = scene.ask("GET", "/auth/readonly-api-keys", "").json();
                let headers = format!(
                    "POLY_ADDRESS: {}\r\nPOLY_READONLY_API_KEY: {}\r\n",
                    hex_text(&scene.first.address.0),
                    keys["readonlyApiKeys"][0].as_str().unwrap()
                );
                let order = scene.draft().body;
                scene.connection.request("POST", "/order", &headers, order.as_bytes()).unwrap()
            },
            |_| {},
        ),
        Reject::InvalidPayload => Asked(|scene| scene.post("{\"order\":1}")),
        Reject::TooManyOrders => Asked(|scene| {
            let order = scene.draft().body;
            let body = format!("[{}]", vec![order; 16].join(","));
            scene.ask("POST", "/orders", &body)
        }),
        Reject::OrderVersionMismatch => Asked(|scene| {
            let body = scene.draft().body;
            let (head, tail) = body.split_once("\"timestamp\"").unwrap();
            let (_, tail) = tail.split_once("\"expiration\"").unwrap();
            scene.post(&format!(
                "{head}\"nonce\":\"0\",\"feeRateBps\":\"0\",\"taker\":\"0x{}\",\"expiration\"{tail}",
                "0".repeat(40)
            ))
        }),
        Reject::OwnerMismatch => Asked(|scene| {
            scene.changed(|draft| "00000000-0000-4000-8000-000000000000".clone_into(&mut draft.owner))
        }),
        Reject::SignerMismatch => Asked(|scene| {
            let other = scene.second.address;
            scene.changed(|draft| draft.fields.signer = other)
        }),
        Reject::TokenUnknown => {
            Asked(|scene| scene.changed(|draft| draft.fields.token = TokenId(word(12_345).0)))
        }
        Reject::ConditionUnknown => Asked(|scene| {
            scene.changed(|draft| draft.unsigned = format!("\"conditionId\":\"0x{}\",", "ab".repeat(32)))
        }),
        Reject::ConditionMismatch => Asked(|scene| {
            let other = scene.other.condition.clone();
            scene.changed(|draft| draft.unsigned = format!("\"conditionId\":\"{other}\","))
        }),
        Reject::MakerNotAuthorized => {
            Asked(|scene| scene.changed(|draft| draft.fields.maker = Address([7; 20])))
        }
        Reject::SignatureInvalid => Asked(|scene| {
            let mut body = scene.draft().body.into_bytes();
            let name = b"\"signature\":\"0x";
            let at = body.windows(name.len()).position(|window| window == name).unwrap() + name.len() + 9;
            body[at] = if body[at] == b'1' { b'2' } else { b'1' };
            scene.post(std::str::from_utf8(&body).unwrap())
        }),
        Reject::Frozen => While(|scene| scene.freeze(true), Scene::plain, |scene| scene.freeze(false)),
        Reject::TooOld => Asked(|scene| scene.changed(|draft| draft.fields.timestamp_ms = 0)),
        Reject::TooNew => {
            Asked(|scene| scene.changed(|draft| draft.fields.timestamp_ms = now_ms() + 6 * 60 * 1_000))
        }
        Reject::MarketPaused => Asked(|scene| {
            let market = scene.paused.clone();
            scene.on(&market)
        }),
        Reject::MarketClosed => Asked(|scene| {
            let market = scene.closed.clone();
            scene.on(&market)
        }),
        Reject::MarketResolved => Asked(|scene| {
            let market = scene.resolved.clone();
            scene.on(&market)
        }),
        Reject::AmountZero => Asked(|scene| scene.changed(|draft| draft.fields.maker_amount = 0)),
        Reject::AmountTooLarge => Asked(|scene| {
            scene.changed(|draft| {
                draft.fields.maker_amount = 500_000_000_000_000;
                draft.fields.taker_amount = 2_000_000_000_000_000;
            })
        }),
        Reject::PriceOutOfRange => {
            Asked(|scene| scene.changed(|draft| draft.fields.maker_amount = 10_000_000))
        }
        Reject::PriceOffTick => Asked(|scene| scene.changed(|draft| draft.fields.maker_amount = 1_000_001)),
        Reject::SizeTooSmall => Asked(|scene| {
            scene.changed(|draft| {
                draft.fields.maker_amount = 100_000;
                draft.fields.taker_amount = 1_000_000;
            })
        }),
        Reject::NotionalTooSmall => Asked(|scene| {
            scene.changed(|draft| {
                draft.kind("FAK");
                draft.fields.maker_amount = 500_000;
                draft.fields.taker_amount = 1_000_000;
            })
        }),
        Reject::PostOnlyType => Asked(|scene| {
            scene.changed(|draft| {
                draft.kind("FOK");
                draft.post_only = true;
            })
        }),
        Reject::ExpirationType => {
            Asked(|scene| scene.changed(|draft| draft.expiration = now_ms() / 1_000 + 600))
        }
        Reject::ExpirationTooLarge => Asked(|scene| {
            scene.changed(|draft| {
                draft.kind("GTD");
                draft.expiration = now_ms() + 600_000;
            })
        }),
        Reject::Expired => Asked(|scene| {
            scene.changed(|draft| {
                draft.kind("GTD");
                draft.expiration = now_ms() / 1_000 - 10;
            })
        }),
        Reject::DeadlinePassed => Asked(|scene| {
            let wish = scene.wish(Side::Buy, 1_000, "GTC");
            let order = scene.first.sign(&wish);
            let header = format!("X-Outcry-Deadline: {}\r\n", now_ms() * 1_000 - 1);
            scene.send(&scene.first.request_with(&header, "POST", "/order", &order.body))
        }),
        Reject::ReplaceMarkets => Asked(|scene| {
            let token = scene.other.tokens[0];
            scene.replace(&[], |draft| draft.fields.token = token, true)
        }),
        Reject::ReplaceType => Asked(|scene| scene.replace(&[], |draft| draft.kind("FAK"), false)),
        Reject::ReplaceCrosses => {
            Asked(|scene| scene.replace(&[], |draft| draft.fields.maker_amount = 9_000_000, false))
        }
        Reject::ReplaceGone => {
            Asked(|scene| scene.replace(&[&format!("0x{}", "ab".repeat(32))], |_| {}, false))
        }
        Reject::ReplaceKnown => While(
            |scene| {
                scene.known = scene.draft().body;
                let known = scene.known.clone();
                assert!(scene.post(&known).status == 200, "a plain order rests");
            },
            |scene| {
                let second = scene.draft().body;
                let body = format!("{{\"place\":[{},{second}]}}", scene.known);
                scene.ask("POST", "/replace", &body)
            },
            |scene| drop(scene.ask("DELETE", "/cancel-all", "")),
        ),
        Reject::FillRateTripped => While(
            |scene| {
                scene.ask("POST", "/breaker", "{\"quantity\":1,\"interval_ms\":60000}");
                // One share of the second trader's offer, which stays.
                let answer = scene.changed(|draft| {
                    draft.kind("FAK");
                    (draft.fields.maker_amount, draft.fields.taker_amount) = (1_000_000, 1_250_000);
                });
                assert!(answer.status == 200, "{}", answer.json());
            },
            Scene::plain,
            |scene| drop(scene.ask("DELETE", "/breaker", "")),
        ),
        // The scene has split and offered from the same address.
        Reject::RateLimited => Shaped(&["limits.mode=enforce", "limits.order=2/10m"], |_| (), Scene::plain),
        Reject::PostOnlyCrosses => Asked(|scene| {
            scene.changed(|draft| {
                draft.post_only = true;
                draft.fields.maker_amount = 9_000_000;
            })
        }),
        Reject::NotEnoughBalance => Asked(|scene| {
            scene.changed(|draft| {
                draft.fields.maker_amount = 400_000_000_000;
                draft.fields.taker_amount = 4_000_000_000_000;
            })
        }),
        Reject::FokNotFilled => Asked(|scene| scene.immediate("FOK")),
        Reject::FakNoMatch => Asked(|scene| scene.immediate("FAK")),
        Reject::SelfTradeStopped => Asked(|scene| {
            let wish = scene.wish(Side::Buy, 9_000, "FAK");
            let signed = scene.second.sign(&wish);
            let request = scene.second.request("POST", "/order", &signed.body);
            scene.send(&request)
        }),
        Reject::CancelledBeforeArrival => Asked(|scene| {
            let signed = scene.draft();
            let early =
                scene.ask("DELETE", "/order", &format!("{{\"orderID\":\"{}\"}}", signed.id_text)).json();
            assert!(early["tombstone"] == true || early.to_string().contains("tombstone"), "{early}");
            scene.post(&signed.body)
        }),
        Reject::FillsLimit => Shaped(
            &[],
            |scene| scene.rest(FILLS_MAX + 1),
            |scene| {
                let token = scene.other.tokens[1];
                scene.changed(|draft| {
                    draft.kind("FOK");
                    draft.fields.token = token;
                    draft.fields.taker_amount = 5_000_000 * (FILLS_MAX as u64 + 1);
                    draft.fields.maker_amount = draft.fields.taker_amount / 100 * 99;
                })
            },
        ),
        Reject::TooManyOpenOrders => Shaped(
            &["orders.open_per_owner_max=1"],
            |scene| assert!(scene.plain().status == 200, "the first is allowed"),
            Scene::plain,
        ),
        Reject::TooManyPositions => Shaped(
            &["sizes.positions_per_wallet=1", "cpu.shards=1"],
            |scene| assert!(scene.plain().status == 200, "the first is allowed"),
            |scene| {
                let market = scene.other.clone();
                scene.on(&market)
            },
        ),
        Reject::BookFull => Shaped(
            &[FEW_ORDERS, "cpu.shards=1"],
            |scene| {
                let full = (0..ROOM_MAX).any(|_| scene.plain().status != 200);
                assert!(full, "more orders rest than there is room for");
            },
            Scene::plain,
        ),
        // The largest ladders, until the smallest pool has no room for another.
        Reject::NoRoomForBook => Shaped(
            &["sizes.books_bytes=1048576", "cpu.shards=1"],
            |scene| {
                let full = (0..LADDERS_MAX).any(|_| scene.on_a_fine_market().status != 200);
                assert!(full, "the pool holds more ladders than it has bytes");
            },
            |scene| {
                let market = scene.fine.clone();
                scene.on(&market)
            },
        ),
        Reject::TableFull => Shaped(
            &[FEW_POSITIONS, "cpu.shards=1"],
            |scene| {
                let full = (0..ROOM_MAX).any(|_| scene.on_a_fine_market().status != 200);
                assert!(full, "more wallets are in markets than there is room for");
            },
            |scene| {
                let market = scene.fine.clone();
                scene.on(&market)
            },
        ),
        Reject::OrderIdInvalid => Asked(|scene| scene.ask("DELETE", "/order", "{\"orderID\":\"0x12\"}")),
        Reject::CancelScopeMissing => Asked(|scene| {
            scene.first.family = "SERVICE";
            let answer = scene.ask("DELETE", "/cancel-market-orders", "{}");
            scene.first.family = "POLY";
            answer
        }),
        Reject::NothingToMove => Asked(|scene| {
            let condition = scene.open.condition.clone();
            scene.first.act(&mut scene.connection, 1, &condition, 1_000_000)
        }),
        Reject::NotResolved => Asked(|scene| {
            let condition = scene.open.condition.clone();
            scene.first.act(&mut scene.connection, 2, &condition, 0)
        }),
    }
}

impl Scene {
    fn new(settings: &[&str]) -> Self {
        let folder = folder();
        let mut plan = Plan::dev(folder.path()).set("journal.durability=durable");
        for setting in settings {
            plan = plan.set(setting);
        }
        let exchange = plan.start();
        let mut connection = exchange.connect();
        let [open, other, paused, resolved] =
            ["open", "other", "paused", "resolved"].map(|name| new_market(&exchange, name, "0.01"));
        exchange.operator(&["market", "pause", &paused.condition]);
        exchange.operator(&["market", "resolve", &resolved.condition, "--payout", "1"]);
        let closed = closed_market(&exchange);
        let first = Trader::new(KEYS[6], &mut connection);
        let mut second = Trader::new(KEYS[7], &mut connection);
        // The only order on offer: the second trader sells ten at .80.
        let split = second.act(&mut connection, 0, &open.condition, 10_000_000);
        assert!(split.status == 200, "{}", split.json());
        let offer = second.sign(&Wish::sell(open.tokens[0], 8_000, 10_000_000));
        let answer = second.post(&mut connection, &offer.body);
        assert!(answer.status == 200, "{}", answer.json());
        Self {
            fine: other.clone(),
            exchange,
            plan,
            connection,
            first,
            second,
            open,
            other,
            paused,
            closed,
            resolved,
            known: String::new(),
            _folder: folder,
        }
    }

    fn wish(&self, side: Side, price: u64, kind: &'static str) -> Wish<'static> {
        Wish { kind, ..Wish::of(side, self.open.tokens[0], price, 10_000_000) }
    }

    /// A good order that would rest: ten at .10.
    fn draft(&mut self) -> common::trader::Signed {
        let wish = self.wish(Side::Buy, 1_000, "GTC");
        self.first.sign(&wish)
    }

    fn changed(&mut self, change: impl FnOnce(&mut Draft)) -> Answer {
        let wish = self.wish(Side::Buy, 1_000, "GTC");
        let mut draft = self.first.draft(&wish);
        change(&mut draft);
        let signed = self.first.seal(&draft);
        self.post(&signed.body)
    }

    fn plain(&mut self) -> Answer {
        self.changed(|_| ())
    }

    /// An order that cannot trade at its price.
    fn immediate(&mut self, kind: &str) -> Answer {
        self.changed(|draft| {
            draft.kind(kind);
            draft.fields.maker_amount = 5_000_000;
        })
    }

    /// Replaces the orders `cancel` by a changed one, which follows a plain one if `second`.
    fn replace(&mut self, cancel: &[&str], change: impl FnOnce(&mut Draft), second: bool) -> Answer {
        let wish = self.wish(Side::Buy, 1_000, "GTC");
        let mut draft = self.first.draft(&wish);
        change(&mut draft);
        let mut bodies = vec![self.first.seal(&draft).body];
        if second {
            bodies.insert(0, self.draft().body);
        }
        let body = format!("{{\"cancel\":{cancel:?},\"place\":[{}]}}", bodies.join(","));
        self.ask("POST", "/replace", &body)
    }

    fn on(&mut self, market: &Market) -> Answer {
        let token = market.tokens[0];
        self.changed(|draft| draft.fields.token = token)
    }

    /// The first order on a new market whose ladder is the largest there is.
    fn on_a_fine_market(&mut self) -> Answer {
        self.fine = new_market(&self.exchange, "fine", "0.0001");
        let market = self.fine.clone();
        self.on(&market)
    }

    /// The second trader bids five at .01 on the other market, `count` times.
    fn rest(&mut self, count: usize) {
        let token = self.other.tokens[0];
        let wish = Wish::buy(token, 100, 5_000_000);
        let bodies: Vec<String> = (0..count).map(|_| self.second.sign(&wish).body).collect();
        let mut taken = 0;
        for batches in bodies.chunks(BATCH * BATCHES_PIPELINED) {
            for batch in batches.chunks(BATCH) {
                let body = format!("[{}]", batch.join(","));
                self.connection.send(&self.second.request("POST", "/orders", &body)).unwrap();
            }
            for _ in batches.chunks(BATCH) {
                let answer = self.connection.answer().unwrap();
                taken += answer.text().matches("\"status\":\"live\"").count();
            }
        }
        assert_eq!(taken, count);
    }

    fn post(&mut self, body: &str) -> Answer {
        self.ask("POST", "/order", body)
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Answer {
        self.first.ask(&mut self.connection, method, path, body).unwrap()
    }

    fn send(&mut self, bytes: &[u8]) -> Answer {
        self.connection.send(bytes).unwrap();
        self.connection.answer().unwrap()
    }

    fn mode(&mut self, mode: &str) {
        let mut admin = Connection::open(self.exchange.admin);
        let body = format!("{{\"mode\":\"{mode}\"}}");
        let answer = admin.request("POST", "/mode", "", body.as_bytes()).unwrap();
        assert!(answer.status == 200, "{mode}: {}", answer.text());
    }

    fn freeze(&mut self, frozen: bool) {
        let wallet = hex_text(&self.first.address.0);
        let mut words = vec!["account", "freeze", &wallet];
        if !frozen {
            words.push("--undo");
        }
        self.exchange.operator(&words);
    }

    /// The answer to `act`, with the state before and after.
    fn see(&mut self, act: fn(&mut Self) -> Answer) -> Seen {
        let data_dir = self.plan.data_dir();
        let before = state_hash(&data_dir);
        let answer = act(self);
        Seen { before, answer, after: state_hash(&data_dir) }
    }
}

/// The state hash of what is on disk; under `durable` that is everything answered.
fn state_hash(data_dir: &Path) -> String {
    let verified = journal("verify", data_dir);
    let line = verified.lines().find(|line| line.starts_with("state hash "));
    line.unwrap_or_else(|| panic!("{verified}")).to_owned()
}

fn new_market(exchange: &Exchange, name: &str, tick: &str) -> Market {
    let made = exchange.operator(&["market", "create", name, "--tick", tick]);
    Market {
        condition: made["conditionId"].as_str().unwrap().to_owned(),
        tokens: [0, 1].map(|index| token(made["tokens"][index].as_str().unwrap())),
    }
}

/// A closed market can only be imported.
fn closed_market(exchange: &Exchange) -> Market {
    let condition = format!("0x{}", "cd".repeat(32));
    let row = format!(
        r#"[{{"id":"77","question":"Closed?","conditionId":"{condition}","clobTokenIds":"[\"771\",\"772\"]","outcomes":"[\"Yes\",\"No\"]","closed":true,"updatedAt":"2025-01-01T00:00:00Z"}}]"#
    );
    let mut admin = Connection::open(exchange.admin);
    let answer = admin.request("POST", "/import", "", row.as_bytes()).unwrap();
    assert!(answer.status == 200, "{}", answer.text());
    Market { condition, tokens: ["771", "772"].map(token) }
}

#[test]
fn every_refusal_says_its_name_and_changes_nothing() {
    let mut scene = Scene::new(&[]);
    let mut faults = Vec::new();
    for reject in Reject::ALL {
        let seen = match provoke(*reject) {
            Row::Asked(act) => scene.see(act),
            Row::While(before, act, after) => {
                before(&mut scene);
                let seen = scene.see(act);
                after(&mut scene);
                seen
            }
            Row::Shaped(settings, before, act) => {
                let mut scene = Scene::new(settings);
                before(&mut scene);
                scene.see(act)
            }
            Row::Held(act) => act(),
        };
        said::check(*reject, &seen, &mut faults);
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
    scene.exchange.stop();
}
