//! Deposit wallets that nobody owns yet: `dev` links one to the signer of its first accepted order,
//! `serve` only when the operator says so.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

mod common;

use common::exchange::{Exchange, Plan, journal};
use common::folder;
use common::trader::{Draft, KEYS, Trader, Wish, first_key_headers, hex_text, now_ms, token};
use common::wire::{Answer, Connection};
use outcry::domain::{Address, SignatureType, TokenId};
use serde_json::Value;
use tempfile::TempDir;

/// Wallets without an owner until somebody signs for them.
const WALLETS: [Address; 3] = [Address([0xd1; 20]), Address([0xd2; 20]), Address([0xd3; 20])];

/// An exchange, and two principals who want the same wallets.
struct Scene {
    exchange: Exchange,
    connection: Connection,
    traders: [Trader; 2],
    _folder: TempDir,
    plan: Plan,
}

impl Scene {
    fn new(plan: impl Fn(&std::path::Path) -> Plan) -> Self {
        let folder = folder();
        let plan = plan(folder.path());
        let exchange = plan.start();
        let mut connection = exchange.connect();
        let traders = [0, 1].map(|account| Trader::new(KEYS[account], &mut connection));
        Self { exchange, connection, traders, _folder: folder, plan }
    }

    /// Runs a command of the operator, who needs a token unless the exchange is a `dev` one.
    #[track_caller]
    fn operator(&self, words: &[&str]) -> Value {
        let file = self.plan.data_dir().join("admin-token");
        let flags = if file.exists() { &["--token-file", file.to_str().unwrap()][..] } else { &[] };
        self.exchange.operator(&[words, flags].concat())
    }

    fn credit(&self, wallet: &Address) {
        self.operator(&["account", "credit", &hex_text(&wallet.0), "100", "--kind", "deposit"]);
    }

    /// The owner's address, in lower case; `""` if the wallet belongs to nobody.
    #[track_caller]
    fn owner(&self, wallet: &Address) -> String {
        let shown = self.operator(&["account", "show", &hex_text(&wallet.0)]);
        assert_eq!(shown["kind"], "deposit");
        shown["owner"].as_str().unwrap_or_default().to_lowercase()
    }

    /// Makes markets one after the other: with two shards, both have some.
    fn markets<const N: usize>(&self) -> [TokenId; N] {
        std::array::from_fn(|number| {
            let made = self.operator(&["market", "create", &format!("Number {number}?")]);
            token(made["tokens"][0].as_str().unwrap())
        })
    }

    /// An order of a wallet, as the trader with this number would sign it.
    fn draft(&mut self, who: usize, wallet: &Address, token: TokenId) -> Draft {
        let mut draft = self.traders[who].draft(&Wish::buy(token, 5_000, 10_000_000));
        draft.fields.maker = *wallet;
        draft.fields.signer = *wallet;
        draft.fields.signature_type = SignatureType::Deposit;
        draft
    }

    fn post(&mut self, who: usize, draft: &Draft) -> Answer {
        let body = self.traders[who].seal(draft).body;
        self.traders[who].post(&mut self.connection, &body)
    }

    #[track_caller]
    fn refused(&mut self, who: usize, draft: &Draft, code: &str) {
        let answer = self.post(who, draft);
        assert_eq!((answer.status, answer.json()["code"].as_str()), (400, Some(code)));
    }
}

fn in_dev(shards: u16) {
    let mut scene = Scene::new(|folder| Plan::dev(folder).set(&format!("cpu.shards={shards}")));
    let owner = hex_text(&scene.traders[0].address.0);
    let tokens: [TokenId; 2] = scene.markets();
    for wallet in &WALLETS[..2] {
        scene.credit(wallet);
        assert_eq!(scene.owner(wallet), "");
    }

    // An order that is not accepted links nobody.
    let good = scene.draft(0, &WALLETS[0], tokens[0]);
    let mut poor = good.clone();
    (poor.fields.maker_amount, poor.fields.taker_amount) = (500_000_000, 1_000_000_000);
    scene.refused(0, &poor, "not_enough_balance");
    let mut alone = good.clone();
    alone.kind("FOK");
    scene.refused(0, &alone, "fok_not_filled");
    let mut small = good.clone();
    (small.fields.maker_amount, small.fields.taker_amount) = (500_000, 1_000_000);
    scene.refused(0, &small, "size_too_small");
    let forged = scene.traders[1].seal(&good).body;
    let answer = scene.traders[0].post(&mut scene.connection, &forged);
    assert_eq!(answer.json()["code"], "invalid_signature");
    let unknown = scene.draft(0, &WALLETS[2], tokens[0]);
    scene.refused(0, &unknown, "not_enough_balance");
    assert_eq!(scene.owner(&WALLETS[0]), "");

    // One market is on the registrar's loop; with two shards the other is not.
    for (wallet, token) in WALLETS.iter().zip(tokens) {
        let order = scene.draft(0, wallet, token);
        let answer = scene.post(0, &order);
        assert_eq!((answer.status, answer.json()["status"].as_str()), (200, Some("live")));
        assert_eq!(scene.owner(wallet), owner);
        let again = scene.post(0, &order);
        assert_eq!((again.status, again.header("Idempotent-Replayed")), (200, Some("true")));
        let late = scene.draft(1, wallet, token);
        scene.refused(1, &late, "maker_not_authorized");
    }
    let open = scene.traders[0].pages(&mut scene.connection, "/data/orders");
    assert_eq!(open.len(), 2, "the wallets' orders are their principal's");

    // In the log a wallet is linked before its first order, and everything adds up.
    scene.exchange.stop();
    let data_dir = scene.plan.data_dir();
    assert!(journal("verify", &data_dir).ends_with("good\n"));
    let dump = journal("dump", &data_dir);
    let frames: Vec<Value> = dump.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let links: Vec<&Value> = frames.iter().filter(|frame| frame["record"] == "WalletLinked").collect();
    assert_eq!(links.len(), 2);
    for link in links {
        let of_wallet =
            |frame: &&Value| frame["record"] == "OrderPlaced" && frame["wallet"] == link["wallet"];
        let orders: Vec<&Value> = frames.iter().filter(of_wallet).collect();
        assert_eq!((orders.len(), &orders[0]["principal"]), (1, &link["principal"]));
        assert!(link["position"].as_u64() < orders[0]["position"].as_u64(), "{link} {}", orders[0]);
    }
}

#[test]
fn the_first_accepted_order_of_a_deposit_wallet_links_it_in_dev() {
    for shards in [1, 2] {
        in_dev(shards);
    }
}

#[test]
fn a_batch_of_first_orders_is_placed_whole() {
    let mut scene = Scene::new(Plan::dev);
    let [token] = scene.markets();
    scene.credit(&WALLETS[0]);
    let orders: Vec<Draft> = (0..15).map(|_| scene.draft(0, &WALLETS[0], token)).collect();
    let bodies: Vec<String> = orders.iter().map(|draft| scene.traders[0].seal(draft).body).collect();
    let body = format!("[{}]", bodies.join(","));
    let answer = scene.traders[0].ask(&mut scene.connection, "POST", "/orders", &body).unwrap();
    let results = answer.json();
    let live = results.as_array().unwrap().iter().filter(|result| result["status"] == "live").count();
    assert_eq!(live, 15, "{results}");
}

#[test]
fn no_replace_links_a_deposit_wallet() {
    let mut scene = Scene::new(Plan::dev);
    let [token] = scene.markets();
    scene.credit(&WALLETS[0]);
    let own = scene.traders[0].sign(&Wish::buy(token, 5_000, 10_000_000));
    assert_eq!(scene.traders[0].post(&mut scene.connection, &own.body).json()["status"], "live");
    let draft = scene.draft(0, &WALLETS[0], token);
    let place = scene.traders[0].seal(&draft).body;
    let body = format!("{{\"cancel\":[\"{}\"],\"place\":[{place}]}}", own.id_text);
    let answer = scene.traders[0].ask(&mut scene.connection, "POST", "/replace", &body).unwrap();
    let said = answer.json();
    assert_eq!((&said["code"], &said["part"]), (&"maker_not_authorized".into(), &"place".into()), "{said}");
    assert_eq!(scene.owner(&WALLETS[0]), "");
    let open = scene.traders[0].pages(&mut scene.connection, "/data/orders");
    assert_eq!((open.len(), &open[0]["id"]), (1, &own.id_text.into()), "and nothing has left");
}

#[test]
fn serve_links_a_deposit_wallet_only_when_the_operator_says_so() {
    let mut scene = Scene::new(Plan::serve);
    let [token] = scene.markets();
    scene.credit(&WALLETS[0]);
    let order = scene.draft(0, &WALLETS[0], token);
    scene.refused(0, &order, "maker_not_authorized");
    assert_eq!(scene.owner(&WALLETS[0]), "");
    let owner = hex_text(&scene.traders[0].address.0);
    scene.operator(&["account", "link", &hex_text(&WALLETS[0].0), &owner]);
    assert_eq!(scene.post(0, &order).status, 200);
    assert_eq!(scene.owner(&WALLETS[0]), owner);
}

#[test]
fn an_address_that_is_known_as_a_deposit_wallet_is_told_why_it_gets_no_key() {
    let mut scene = Scene::new(Plan::serve);
    let key = "11".repeat(32);
    let headers = first_key_headers(&key, now_ms());
    let address =
        headers.lines().find_map(|line| line.strip_prefix("POLY_ADDRESS: ")).unwrap().to_lowercase();
    let credited = scene.operator(&["account", "credit", &address, "100", "--kind", "deposit"]);
    assert_eq!(credited["kind"], "deposit");
    let refused = scene.connection.request("POST", "/auth/api-key", &headers, b"").unwrap();
    assert_eq!((refused.status, &refused.json()["code"]), (400, &"wallet_not_an_owner".into()));
    let said = refused.json()["error"].as_str().unwrap().to_owned();
    assert!(said.starts_with(&format!("owner: {address} is known here as a deposit")), "{said}");
}
