//! The operator's commands against a running exchange, and against the data that it leaves behind.

#![allow(clippy::unwrap_used, reason = "a test that cannot talk to its server has to stop")]

#[path = "operator/backup.rs"]
mod backup;
mod common;
#[path = "operator/contradiction.rs"]
mod contradiction;
#[path = "operator/in_turn.rs"]
mod in_turn;
#[path = "operator/init.rs"]
mod init;
#[path = "operator/late.rs"]
mod late;
#[path = "operator/many.rs"]
mod many;
#[path = "operator/money.rs"]
mod money;
#[path = "operator/terminal.rs"]
mod terminal;
#[path = "operator/token.rs"]
mod token_of_the_operator;

use common::exchange::{Exchange, Plan, journal, journal_output, outcry, said};
use common::folder;
use common::trader::{KEYS, Trader, Wish, token};
use serde_json::Value;
use std::path::{Path, PathBuf};

const FIRST: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const DEPOSIT: &str = "0x365f0ca36ae1f641e02fe3b7743673da42a13a70";

/// Runs a command that must be refused; returns its message.
#[track_caller]
fn refused(exchange: &Exchange, words: &[&str]) -> String {
    let output = exchange.operator_output(words);
    assert_eq!(output.status.code(), Some(1), "outcry {words:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn balance(exchange: &Exchange, wallet: &str) -> String {
    exchange.operator(&["account", "show", wallet])["balance"].as_str().unwrap().to_owned()
}

#[test]
fn a_market_lives_from_its_making_to_its_payout_on_any_number_of_shards() {
    for shards in [1, 2, 4] {
        market_life(shards);
    }
}

fn market_life(shards: u16) {
    let folder = folder();
    let plan = Plan::dev(folder.path()).set(&format!("cpu.shards={shards}"));
    let exchange = plan.start();
    let made = exchange.operator(&["market", "create", "Does it rain?", "--outcomes", "Wet,Dry"]);
    let condition = made["conditionId"].as_str().unwrap();
    assert_eq!((made["marketId"].as_u64(), made["mode"].as_str()), (Some(1_000_000_000), Some("open")));
    assert_eq!(exchange.operator(&["market", "pause", condition])["mode"], "cancel-only");
    assert_eq!(exchange.operator(&["market", "resume", "1000000000"])["mode"], "open");
    assert_eq!(exchange.operator(&["market", "tick", condition, "0.001"])["tick"], "0.001");

    let mut connection = exchange.connect();
    for (key, index, price) in [(KEYS[1], 0, 600), (KEYS[2], 1, 400)] {
        let mut trader = Trader::new(key, &mut connection);
        let wish = Wish::buy(token(made["tokens"][index].as_str().unwrap()), price * 10, 10_000_000);
        let order = trader.sign(&wish);
        let answer = trader.post(&mut connection, &order.body);
        assert_eq!(answer.status, 200, "{}", answer.json());
    }
    let shown = exchange.operator(&["market", "show", condition]);
    assert_eq!((shown["pairs"].as_str(), shown["tick"].as_str()), (Some("10"), Some("0.001")));

    let resolved = exchange.operator(&["market", "resolve", condition, "--payout", "1", "--redeem"]);
    assert_eq!((resolved["redeemed"].as_u64(), resolved["paid"].as_str()), (Some(2), Some("10")));
    let again = exchange.operator(&["market", "resolve", condition, "--payout", "1", "--redeem"]);
    assert_eq!((again["redeemed"].as_u64(), again["paid"].as_str()), (Some(0), Some("0")));
    let otherwise = refused(&exchange, &["market", "resolve", condition, "--payout", "0"]);
    assert!(otherwise.contains("payout: got 0; allowed: 1, as the market is resolved"), "{otherwise}");
    assert_eq!(balance(&exchange, "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"), "100004");
    assert_eq!(balance(&exchange, "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc"), "99996");
    exchange.stop();
    assert!(journal("verify", &plan.data_dir()).ends_with("good\n"));
}

#[test]
fn a_market_that_is_made_in_a_neg_risk_event_is_a_neg_risk_market() {
    const GROUP: &str = "0x22711a5951588f0035c153eed0eb9746b378c2ae277077086881eb7107972ac4";
    let folder = folder();
    let exchange = Plan::dev(folder.path()).set("cpu.policy=unpinned").start();
    let mut connection = exchange.connect();
    let mut trader = Trader::new(KEYS[1], &mut connection);
    for (event, neg_risk, group) in
        [("warmest-capital-of-july-2027", true, GROUP), ("marathon-records", false, "")]
    {
        let made = exchange.operator(&["market", "create", "Another?", "--event", event]);
        assert_eq!(made["negRisk"], neg_risk, "{event}");
        let market = exchange.read(&format!("/markets/{}", made["conditionId"].as_str().unwrap()));
        assert_eq!((&market["neg_risk"], &market["neg_risk_market_id"]), (&neg_risk.into(), &group.into()));
        assert_eq!(market["event"]["slug"], event);
        let yes = token(made["tokens"][0].as_str().unwrap());
        for (signed_for, status) in [(neg_risk, 200), (!neg_risk, 400)] {
            let wish = Wish { neg_risk: signed_for, ..Wish::buy(yes, 1_000, 10_000_000) };
            let order = trader.sign(&wish);
            let answer = trader.post(&mut connection, &order.body);
            assert_eq!(answer.status, status, "{event} {signed_for} {}", answer.json());
        }
    }
    exchange.stop();
}

#[test]
fn what_is_wrong_is_named_with_what_is_allowed() {
    let folder = folder();
    let exchange = Plan::dev(folder.path()).start();
    for (words, said) in [
        (&["market", "pause", "77"][..], "market: 77 is not known here"),
        (&["market", "pause", "../mode"], "market: got ../mode; allowed: a market's id, or 0x and"),
        (&["market", "tick", "900000001", "0.02"], "tick: got 0.02; allowed: 0.1, 0.01,"),
        (&["market", "resolve", "900000001", "--payout", "2"], "payout: got 2; allowed: what a share"),
        // What is here has the id 9001.
        (&["market", "create", "?", "--event", "9001"], "event: 9001 is no slug of an event that is here"),
        (
            &["market", "create", "?", "--event", "nowhere"],
            "event: nowhere is no slug of an event that is here",
        ),
        (&["account", "credit", FIRST, "-5"], "amount: got -5; allowed:"),
        (&["account", "debit", FIRST, "-0.5"], "amount: got -0.5; allowed:"),
        (&["market", "resolve", "900000001", "--payout", "-1"], "payout: got -1; allowed: what a share"),
        (&["market", "create", "?", "--min-size", "-1"], "minSize: got -1; allowed:"),
        (&["market", "tick", "900000001", "-0.01"], "tick: got -0.01; allowed: 0.1, 0.01,"),
        (&["account", "credit", FIRST, "0.0000001"], "amount: got 0.0000001; allowed:"),
        (&["account", "debit", FIRST, "1000000"], "amount: got 1000000; allowed: at most 100000, which"),
        (&["account", "debit", "0x0000000000000000000000000000000000000001", "1"], "is not known here"),
        (
            &["account", "link", FIRST, DEPOSIT],
            "owner: 0x365f0ca36ae1f641e02fe3b7743673da42a13a70 is known here as a deposit",
        ),
        (
            &["account", "show", "0x0000000000000000000000000000000000000001"],
            "wallet: 0x0000000000000000000000000000000000000001 is not known here; credit or link it first",
        ),
        (&["account", "show", "0x12"], "wallet: got 0x12; allowed: 0x and 40 hex digits"),
    ] {
        let output = exchange.operator_output(words);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains(said), "outcry {words:?}\n{text}");
    }
    let unreachable = outcry(&["market", "list", "--admin", "http://127.0.0.1:1"]);
    assert_eq!(unreachable.status.code(), Some(1));
}

#[test]
fn a_snapshot_shortens_the_next_start_and_changes_no_answer() {
    let folder = folder();
    let plan = Plan::dev(folder.path());
    let mut exchange = plan.start();
    exchange.operator(&["market", "create", "Kept?", "--outcomes", "Yes,No"]);
    let taken = exchange.operator(&["snapshot"]);
    let (position, frames) = (taken["position"].as_u64().unwrap(), taken["frames"].as_u64().unwrap());
    assert!(0 < position && 0 < frames && 0 < taken["bytes"].as_u64().unwrap(), "{taken}");
    exchange.operator(&["account", "credit", FIRST, "7", "--ref", "behind the snapshot"]);
    let shown = |exchange: &Exchange| {
        let market = exchange.operator(&["market", "show", "1000000000"]);
        (market, balance(exchange, FIRST))
    };
    let before = shown(&exchange);
    let data_dir = plan.data_dir();
    let snapshots = || {
        let entries = std::fs::read_dir(data_dir.join("snapshots")).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    for damaged in [false, true] {
        exchange.stop();
        if damaged {
            let path = snapshots().pop().unwrap();
            let mut bytes = std::fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&path, bytes).unwrap();
        }
        exchange = plan.start();
        assert_eq!(shown(&exchange), before, "damaged: {damaged}");
    }
    for _ in 0..3 {
        exchange.operator(&["account", "credit", FIRST, "1"]);
        assert!(exchange.operator(&["snapshot"])["frames"].as_u64().unwrap() > frames);
    }
    assert_eq!(snapshots().len(), 2);
    exchange.stop();
    assert!(journal("verify", &data_dir).ends_with("good\n"));
}

/// A file of one market row.
fn file(folder: &Path, name: &str, more: &str) -> PathBuf {
    let path = folder.join(name);
    let row = format!(
        r#"[{{{more}"id":"7","question":"Q?","conditionId":"0x{}","clobTokenIds":"[\"71\",\"72\"]",
            "events":[{{"id":"e7","title":"T","slug":"t"}}]}}]"#,
        "7".repeat(64)
    );
    std::fs::write(&path, row).unwrap();
    path
}

fn import(exchange: &Exchange, files: &[&Path]) -> (bool, String) {
    let mut words = vec!["import", "gamma"];
    words.extend(files.iter().map(|file| file.to_str().unwrap()));
    let output = exchange.operator_output(&words);
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn an_import_adds_once_updates_what_changed_and_names_what_it_cannot_take() {
    let folder = folder();
    let exchange = Plan::dev(folder.path()).start();
    let first = file(folder.path(), "first.json", r#""updatedAt":"2026-01-02T00:00:00Z","#);
    let (done, text) = import(&exchange, &[&first]);
    assert!(done && text.contains("markets: 1 added, 0 updated, 0 unchanged, 0 older"), "{text}");
    assert!(import(&exchange, &[&first]).1.contains("markets: 0 added, 0 updated, 1 unchanged, 0 older"));

    let older = file(folder.path(), "older.json", r#""updatedAt":"2026-01-01T00:00:00Z","closed":true,"#);
    assert!(import(&exchange, &[&older]).1.contains("markets: 0 added, 0 updated, 0 unchanged, 1 older"));
    assert_eq!(exchange.operator(&["market", "show", "7"])["mode"], "open");

    // While an order rests, its tick stays; once none does, the file's tick is taken.
    let mut connection = exchange.connect();
    let mut trader = Trader::new(KEYS[1], &mut connection);
    let order = trader.sign(&Wish::buy(token("71"), 100, 5_000_000));
    assert_eq!(trader.post(&mut connection, &order.body).status, 200);
    let finer = r#""updatedAt":"2026-01-03T00:00:00Z","orderPriceMinTickSize":0.001,"#;
    let finer = file(folder.path(), "finer.json", finer);
    let (_, text) = import(&exchange, &[&finer]);
    assert!(text.contains("markets: 0 added, 1 updated"), "{text}");
    assert!(
        text.contains(
            "not taken: market 7: orderPriceMinTickSize: got 0.001; allowed: the tick of the live market"
        ),
        "{text}"
    );
    assert_eq!(exchange.operator(&["market", "show", "7"])["tick"], "0.01");
    let cancel = format!("{{\"orderID\":\"{}\"}}", order.id_text);
    assert_eq!(trader.ask(&mut connection, "DELETE", "/order", &cancel).unwrap().status, 200);

    let changed = r#""updatedAt":"2026-01-04T00:00:00Z","closed":true,"orderPriceMinTickSize":0.001,"#;
    let changed = file(folder.path(), "changed.json", changed);
    let (_, text) = import(&exchange, &[&changed]);
    assert!(text.contains("markets: 0 added, 1 updated"), "{text}");
    let shown = exchange.operator(&["market", "show", "7"]);
    assert_eq!((shown["mode"].as_str(), shown["tick"].as_str()), (Some("closed"), Some("0.001")));

    let bad = file(folder.path(), "bad.json", r#""orderPriceMinTickSize":0.02,"#);
    let (done, text) = import(&exchange, &[&bad]);
    assert!(
        !done && text.contains("refused: market 7: orderPriceMinTickSize: got 0.02; allowed: 0.1"),
        "{text}"
    );
    let clash = folder.path().join("clash.json");
    std::fs::write(&clash, format!(r#"{{"id":"7","conditionId":"0x{}","question":"?"}}"#, "8".repeat(64)))
        .unwrap();
    let (_, text) = import(&exchange, &[&clash]);
    assert!(
        text.contains("catalog only: market 7")
            && text.contains("not taken: market 7: id: market 7 is a market already"),
        "{text}"
    );
    std::fs::write(&clash, "[").unwrap();
    assert!(!import(&exchange, &[&clash]).0);
}

/// A process may die between any two frames. The text comes after everything that it changes, so
/// until all of that is done the exchange takes the text for new, and the next import does the
/// rest.
#[test]
fn what_a_row_does_to_its_market_is_in_the_log_before_its_text() {
    let folder = folder();
    let plan = Plan::dev(folder.path());
    let exchange = plan.start();
    let first = file(folder.path(), "first.json", r#""updatedAt":"2026-01-01T00:00:00Z","#);
    let finer = file(
        folder.path(),
        "finer.json",
        r#""updatedAt":"2026-01-02T00:00:00Z","closed":true,"orderPriceMinTickSize":0.001,"#,
    );
    let over = file(
        folder.path(),
        "over.json",
        r#""updatedAt":"2026-01-03T00:00:00Z","closed":true,"orderPriceMinTickSize":0.001,"outcomePrices":["0","1"],"#,
    );
    for file in [&first, &finer, &over] {
        assert!(import(&exchange, &[file]).0);
    }
    exchange.stop();
    let dump = journal("dump", &plan.data_dir());
    let frames: Vec<Value> = dump.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let added = frames.iter().find(|frame| frame["marketId"] == 7).expect("it was added");
    let of_market = frames.iter().filter(|frame| frame["market"] == added["market"]);
    let records: Vec<&str> = of_market.map(|frame| frame["record"].as_str().unwrap()).collect();
    assert_eq!(records, ["MarketAdded", "TickChanged", "MarketMode", "MarketText", "Resolved", "MarketText"]);
}

#[test]
fn what_an_exchange_leaves_behind_is_proved_dumped_and_replayed_offline() {
    let folder = folder();
    let plan = Plan::dev(folder.path()).set("journal.hash_every_frames=64");
    plan.start().stop();
    let data_dir = plan.data_dir();
    let verified = journal("verify", &data_dir);
    assert!(verified.contains("stopped in good order") && verified.contains("conserved: "), "{verified}");
    let met: u64 =
        verified.lines().find_map(|line| line.strip_suffix(" state hashes met")).unwrap().parse().unwrap();
    assert!(0 < met, "{verified}");
    let hash = verified.lines().find_map(|line| line.strip_prefix("state hash ")).unwrap();
    assert!(journal("replay", &data_dir).contains(hash));
    let dump = journal("dump", &data_dir);
    let frames: Vec<Value> = dump.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(verified.starts_with(&format!("{} frames", frames.len())), "{verified}");
    assert_eq!(
        (frames[0]["record"].as_str(), frames.last().unwrap()["record"].as_str()),
        (Some("Start"), Some("Close"))
    );

    // The one behind it is a spare, in which a byte more or less says nothing.
    let segment = data_dir.join("journal/00000001.segment");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[3 * 4096 + 100] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let output = journal_output("verify", &data_dir);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && text.contains("position"), "{text}");
}

#[test]
fn fresh_begins_anew_and_a_manual_clock_moves_when_told() {
    let folder = folder();
    let plan = Plan::dev(folder.path());
    let exchange = plan.start();
    exchange.operator(&["account", "credit", FIRST, "1"]);
    let refused = plan.clone().words(["--fresh"]).run();
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && text.contains("in use by a running exchange"), "{text}");
    exchange.stop();

    let exchange = plan.words(["--fresh", "--clock", "manual"]).start();
    assert_eq!(balance(&exchange, FIRST), "100000");
    let time = || exchange.read("/time").as_u64().unwrap();
    let before = time();
    exchange.advance(86_400_000);
    assert_eq!(time() - before, 86_400);
}

#[test]
fn dev_and_serve_refuse_each_other_s_directories_and_change_nothing_there() {
    let (served, tried) = (folder(), folder());
    let serve = Plan::serve(served.path());
    let exchange = serve.start();
    let token = serve.data_dir().join("admin-token");
    exchange.operator(&["account", "credit", FIRST, "7", "--token-file", token.to_str().unwrap()]);
    exchange.stop();
    let verified = journal("verify", &serve.data_dir());

    // As an operator has it whose shell names the configuration of the real one.
    let config = served.path().join("outcry.toml");
    std::fs::write(&config, format!("data_dir = {:?}\n", serve.data_dir())).unwrap();
    let config =
        ["--config", config.to_str().unwrap(), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    for more in [&[][..], &["--fresh"][..]] {
        let refused = outcry(&[&["dev"], &config[..], more].concat());
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && text.contains("was not made by `outcry dev`"), "{text}");
    }
    assert_eq!(journal("verify", &serve.data_dir()), verified);

    let dev = Plan::dev(tried.path());
    dev.start().stop();
    let data_dir = dev.data_dir();
    let here = ["--data-dir", data_dir.to_str().unwrap()];
    let listen = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    let new = tried.path().join("outcry.toml");
    for command in [&["serve"][..], &["check"], &["init", "--config", new.to_str().unwrap()]] {
        let listen = if command[0] == "init" { &[][..] } else { &listen[..] };
        let refused = outcry(&[command, &here[..], listen].concat());
        let text = said(&refused);
        assert!(!refused.status.success() && text.contains("was made by `outcry dev`"), "{command:?} {text}");
    }
    assert!(!new.exists());
    dev.words(["--fresh"]).start().stop();
    serve.start().stop();
}

#[test]
fn a_lost_master_secret_is_not_replaced_behind_the_operators_back() {
    let folder = folder();
    let plan = Plan::serve(folder.path());
    plan.start().stop();
    let (secret, mut words) = (plan.data_dir().join("master-secret"), vec!["check"]);
    let data_dir = plan.data_dir();
    let data_dir = data_dir.to_str().unwrap();
    words.extend(["--data-dir", data_dir, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
    let checked = || String::from_utf8(outcry(&words).stdout).unwrap();
    assert!(!checked().contains("data.secret:"));

    std::fs::remove_file(&secret).unwrap();
    let refused = plan.run();
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(
        !refused.status.success() && text.contains("but a journal is; restore it from the backup"),
        "{text}"
    );
    assert!(!secret.exists(), "a start that was refused has made none");
    let (told, text) = (outcry(&words), checked());
    assert!(!told.status.success() && text.contains("mend: restore it from the backup"), "{text}");
    let verified = journal_output("verify", &plan.data_dir());
    let text = String::from_utf8(verified.stderr).unwrap();
    assert!(
        !verified.status.success() && text.contains("but the next start is refused: master secret"),
        "{text}"
    );

    let config = folder.path().join("new.toml");
    let made = outcry(&["init", "--config", config.to_str().unwrap(), "--data-dir", data_dir]);
    let text = String::from_utf8(made.stderr).unwrap();
    assert!(made.status.success() && text.contains("each has to make its keys again"), "{text}");
    plan.start().stop();
}

#[test]
fn a_secret_or_chain_that_clients_keys_were_not_made_with_is_refused() {
    let folder = folder();
    let plan = Plan::serve(folder.path());
    plan.start().stop();
    let data_dir = plan.data_dir();
    let secret = data_dir.join("master-secret");
    let whole = std::fs::read(&secret).unwrap();
    let here = [
        "--data-dir",
        data_dir.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
    ];
    let other_chain = ["--set", "chain_id=137"];
    let another = "it is another than the one that clients' API keys were made with";
    let other = "chain_id: got 137, and clients' API keys were made for 80002";

    for (bytes, more, told) in [(&[7; 32][..], &[][..], another), (&whole, &other_chain, other)] {
        std::fs::write(&secret, bytes).unwrap();
        for command in ["serve", "check"] {
            let refused = outcry(&[&[command], &here[..], more].concat());
            let text = said(&refused);
            assert!(!refused.status.success() && text.contains(told), "{command} {more:?} {text}");
        }
    }
    std::fs::write(&secret, [7; 32]).unwrap();
    let verified = journal_output("verify", &data_dir);
    assert!(String::from_utf8(verified.stderr).unwrap().contains(another));
    std::fs::write(&secret, whole).unwrap();
    plan.start().stop();
    std::fs::remove_file(data_dir.join("keys-made-with")).unwrap();
    plan.words(other_chain).start().stop();
}
