//! A running exchange with something of everything that the interface can show: a catalog of
//! [`EVENTS`] events, and two traders whose orders, trades, splits, merges and redeems were really
//! signed and really happened.

use crate::common::exchange::{Exchange, Plan};
use crate::common::folder;
use crate::common::schema::Document;
use crate::common::trader::{KEYS, Trader, Wish, hex_text, token};
use crate::common::wire::Connection;
use outcry::domain::Side;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Events of the imported catalog, each with a market, a tag, a series and a creator of its own; more
/// than fit on the largest page of any list.
pub(crate) const EVENTS: usize = 120;

/// How long a search may take to be answered.
const PATIENCE: Duration = Duration::from_mins(2);

/// Markets whose pairs the first trader merges completely; more than fit on the default page.
const MERGED: usize = 12;

/// The sender of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Nobody: without credentials.
    Nobody,
    /// The first trader, under `SERVICE_`.
    First,
    /// The first trader, under another family.
    FirstAs(&'static str),
    /// The owner of the first trader's wallet.
    Owner,
}

/// The exchange, and those who trade on it.
pub(crate) struct Scene {
    pub(crate) exchange: Exchange,
    pub(crate) document: Document,
    connection: Connection,
    first: Trader,
    second: Trader,
    /// Condition ids of the imported markets.
    pub(crate) conditions: Vec<String>,
    /// Values for the placeholders of request lines: `{order}`, `{token}`, …
    names: Vec<(&'static str, String)>,
    /// The operations that have succeeded.
    pub(crate) succeeded: BTreeSet<String>,
    _folder: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let folder = folder();
        let exchange = Plan::dev(folder.path()).start();
        let file = folder.path().join("catalog.json");
        std::fs::write(&file, catalog().to_string()).unwrap();
        let output = exchange.operator_output(&["import", "gamma", file.to_str().unwrap()]);
        assert!(output.status.success(), "{output:?}");
        let mut connection = exchange.connect();
        let first = Trader::new(KEYS[3], &mut connection);
        let second = Trader::new(KEYS[4], &mut connection);
        let conditions = (0..EVENTS).map(condition).collect();
        let document = Document::of_library();
        let mut scene = Self {
            exchange,
            document,
            connection,
            first,
            second,
            conditions,
            names: Vec::new(),
            succeeded: BTreeSet::new(),
            _folder: folder,
        };
        scene.play();
        scene
    }

    /// Produces everything that is to be shown later.
    fn play(&mut self) {
        for condition in self.conditions.clone() {
            self.acts(0, &condition, 5_000_000);
        }
        for market in 1..=MERGED {
            let condition = self.conditions[market].clone();
            self.acts(1, &condition, 5_000_000);
        }
        let resolved = self.conditions[EVENTS - 1].clone();
        self.exchange.operator(&["market", "resolve", &resolved, "--payout", "1"]);
        self.acts(2, &resolved, 0);

        let cancelled = self.posts(Side::Buy, 1_000, 10_000_000);
        let sold = self.posts(Side::Sell, 6_000, 5_000_000);
        let bought = self.second_posts(Side::Buy, 6_000, 2_000_000);
        let resting = self.posts(Side::Buy, 2_000, 10_000_000);
        assert_eq!((&sold["status"], &bought["status"]), (&json!("live"), &json!("matched")), "{bought}");
        assert_eq!((&resting["status"], &cancelled["status"]), (&json!("live"), &json!("live")), "{resting}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let first = hex_text(&self.first.address.0);
        self.names = vec![
            ("{order}", text(&resting["orderID"])),
            ("{cancelled}", text(&cancelled["orderID"])),
            ("{trade}", text(&bought["tradeIDs"][0])),
            ("{condition}", self.conditions[0].clone()),
            ("{other condition}", self.conditions[1].clone()),
            ("{token}", token_of(0, 0)),
            ("{other token}", token_of(0, 1)),
            ("{first}", first),
            ("{second}", hex_text(&self.second.address.0)),
            ("{market}", market_of(0).to_string()),
            ("{nobody}", format!("0x{}", "99".repeat(20))),
        ];
    }

    fn acts(&mut self, act: u8, condition: &str, amount: u64) {
        let answer = self.first.act(&mut self.connection, act, condition, amount);
        assert!(answer.status == 200, "act {act} on {condition}: {}", answer.json());
        self.assert_described(
            "POST",
            ["/positions/split", "/positions/merge", "/positions/redeem"][usize::from(act)],
            200,
            &answer.json(),
        );
    }

    fn wish(side: Side, price: u64, shares: u64) -> Wish<'static> {
        Wish::of(side, token(&token_of(0, 0)), price, shares)
    }

    /// Posts an order of the first trader on the first market; returns the answer.
    pub(crate) fn posts(&mut self, side: Side, price: u64, shares: u64) -> Value {
        let order = self.first.sign(&Self::wish(side, price, shares));
        self.first.post(&mut self.connection, &order.body).json()
    }

    fn second_posts(&mut self, side: Side, price: u64, shares: u64) -> Value {
        let order = self.second.sign(&Self::wish(side, price, shares));
        self.second.post(&mut self.connection, &order.body).json()
    }

    /// A signed order of the first trader that was not posted, as JSON.
    pub(crate) fn submission(&mut self) -> Value {
        let order = self.first.sign(&Self::wish(Side::Buy, 1_000, 10_000_000));
        serde_json::from_str(&order.body).unwrap()
    }

    /// `line` with its placeholders `{…}` filled in.
    pub(crate) fn filled(&self, line: &str) -> String {
        let fill = |line: String, (name, text): &(&str, String)| line.replace(name, text);
        self.names.iter().fold(line.to_owned(), fill)
    }

    /// Sends `METHOD /path?query body`; the answer must fit the document. A search is asked again while it is
    /// answered 503, as its index is being built, or its low-priority thread gets no time on a busy machine.
    #[track_caller]
    pub(crate) fn ask(&mut self, who: Who, line: &str) -> (u16, Value) {
        let line = self.filled(line);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (status, body) = self.ask_once(who, &line);
            if status != 503 || !line.starts_with("GET /public-search") {
                return (status, body);
            }
            assert!(Instant::now() < deadline, "{line}: {body}");
        }
    }

    #[track_caller]
    fn ask_once(&mut self, who: Who, line: &str) -> (u16, Value) {
        let (method, rest) = line.split_once(' ').unwrap();
        let (target, body) = rest.split_once(' ').unwrap_or((rest, ""));
        let answer = match who {
            Who::Nobody => self.connection.request(method, target, "", body.as_bytes()),
            Who::Owner => {
                self.connection.request(method, target, &self.first.owner_headers(), body.as_bytes())
            }
            Who::First | Who::FirstAs(_) => {
                let family = if let Who::FirstAs(family) = who { family } else { "SERVICE" };
                let posting = std::mem::replace(&mut self.first.family, family);
                let answer = self.first.ask(&mut self.connection, method, target, body);
                self.first.family = posting;
                answer
            }
        };
        let answer = answer.unwrap();
        let body = answer.json();
        let path = target.split('?').next().unwrap();
        self.assert_described(method, path, answer.status, &body);
        (answer.status, body)
    }

    /// Sends a request that must succeed; returns the body.
    #[track_caller]
    pub(crate) fn read(&mut self, who: Who, line: &str) -> Value {
        let (status, body) = self.ask(who, line);
        assert!(status == 200, "{}: {status} {body}", self.filled(line));
        body
    }

    /// `GET /data/orders` of the first trader under `family`, stamped in units of `stamp_ms`, with its
    /// head changed before it is sent.
    pub(crate) fn orders(
        &mut self,
        family: &'static str,
        stamp_ms: u64,
        change: impl FnOnce(String) -> String,
    ) -> (u16, Value) {
        (self.first.family, self.first.stamp_ms) = (family, stamp_ms);
        let request = self.first.request("GET", "/data/orders?next_cursor=MA==", "");
        (self.first.family, self.first.stamp_ms) = ("POLY", 1_000);
        self.connection.send(change(String::from_utf8(request).unwrap()).as_bytes()).unwrap();
        let answer = self.connection.answer().unwrap();
        let body = answer.json();
        if answer.status != 400 {
            self.assert_described("GET", "/data/orders", answer.status, &body);
        }
        (answer.status, body)
    }

    #[track_caller]
    fn assert_described(&mut self, method: &str, path: &str, status: u16, body: &Value) {
        let operation = self.document.operation(method, path);
        let operation = operation.unwrap_or_else(|| panic!("{method} {path} is not in the document"));
        let schema = self.document.answer_schema(operation, status);
        let schema =
            schema.unwrap_or_else(|| panic!("{method} {path}: {status} is not in the document: {body}"));
        let complaints = self.document.complaints(schema, body);
        assert!(complaints.is_empty(), "{method} {path}: {status}\n{}\n{body}", complaints.join("\n"));
        if status == 200 {
            self.succeeded.insert(operation["operationId"].as_str().unwrap().to_owned());
        }
    }
}

fn condition(event: usize) -> String {
    format!("0x{:064x}", 0xc0_0000 + event)
}

/// The id of a token of an event's market.
fn token_of(event: usize, outcome: usize) -> String {
    (7_000_000 + 2 * event + outcome).to_string()
}

fn market_of(event: usize) -> usize {
    600_000 + event
}

const DATE: &str = "2026-11-01T00:00:00Z";

/// A catalog with every field that the interface names.
fn catalog() -> Value {
    (0..EVENTS).map(event).collect()
}

fn event(event: usize) -> Value {
    let slug = format!("event-{event}");
    let series = json!({ "seriesType": "single", "recurrence": "daily", "active": true, "closed": false });
    let creator = format!("creator-{event}");
    let creator = json!({ "creatorName": creator, "creatorHandle": creator, "creatorUrl": "u", "creatorImage": "i.png" });
    json!({
        "id": (500_000 + event).to_string(), "ticker": slug, "slug": slug,
        "title": format!("Contract event {event}"), "description": "d", "resolutionSource": "r",
        "image": "i.png", "icon": "i.png", "startDate": DATE, "creationDate": DATE, "endDate": DATE,
        "createdAt": DATE, "updatedAt": DATE, "active": true, "closed": false, "archived": false,
        "eventMetadata": { "context": "c" },
        "tags": [item("tag", event, json!({ "requiresTranslation": false }))],
        "series": [item("series", event, series)],
        "eventCreators": [item("creator", event, creator)],
        "markets": [market(event)],
    })
}

fn market(event: usize) -> Value {
    let tokens = [0, 1].map(|outcome| token_of(event, outcome));
    json!({
        "id": market_of(event).to_string(), "question": format!("Contract market {event}?"),
        "conditionId": condition(event), "questionID": format!("0x{event:064x}"),
        "slug": format!("market-{event}"), "resolutionSource": "r", "image": "i.png", "icon": "i.png",
        "description": "d", "startDate": DATE, "endDate": DATE, "createdAt": DATE, "updatedAt": DATE,
        "active": true, "closed": false, "archived": false, "outcomes": "[\"Yes\", \"No\"]",
        "clobTokenIds": json!(tokens).to_string(), "orderPriceMinTickSize": 0.01, "orderMinSize": 5,
        "rewardsMinSize": 20, "rewardsMaxSpread": 3.5, "clobRewards": [rewards()],
    })
}

fn rewards() -> Value {
    json!({ "assetAddress": "0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174", "rewardsDailyRate": 30 })
}

/// A tag, series or creator.
fn item(kind: &str, event: usize, more: Value) -> Value {
    let name = format!("{kind}-{event}");
    let mut item = json!({
        "id": (800_000 + event).to_string(), "slug": name, "title": name, "label": name, "ticker": name,
        "image": "i.png", "icon": "i.png", "createdAt": DATE, "updatedAt": DATE,
    });
    let Value::Object(more) = more else { unreachable!("an item's own fields are an object") };
    item.as_object_mut().unwrap().extend(more);
    item
}
