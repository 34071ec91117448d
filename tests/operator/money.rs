//! The operator's money, and whom it lets trade.

use super::*;

const SECOND: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

#[test]
fn collected_fees_are_paid_out_once_and_never_more_than_there_are() {
    let folder = folder();
    // A tenth, so that 100 shares at .60 cost 100 x 0.1 x 0.6 x 0.4 = 2.4.
    let plan = Plan::dev(folder.path()).set("fees.rate=100000").set("cpu.shards=2");
    let mut exchange = plan.start();
    let mut connection = exchange.connect();
    for question in ["Does it rain?", "Does it snow?"] {
        let tokens = exchange.market(question).tokens;
        for (key, index, price) in [(KEYS[1], 0, 40), (KEYS[2], 1, 60)] {
            let mut trader = Trader::new(key, &mut connection);
            let order = trader.sign(&Wish::buy(token(&tokens[index]), price * 100, 100_000_000));
            let answer = trader.post(&mut connection, &order.body);
            assert_eq!(answer.status, 200, "{}", answer.json());
        }
    }
    let shown = exchange.operator(&["account", "show", "fees"]);
    assert_eq!((shown["kind"].as_str(), shown["balance"].as_str()), (Some("fee"), Some("4.8")));
    let wallet = shown["wallet"].as_str().unwrap();
    let debit = |amount: &'static str, reference: &'static str| {
        ["account", "debit", wallet, amount, "--ref", reference]
    };
    let more = |got, has| format!("amount: got {got}; allowed: at most {has}, which the wallet has");
    assert!(refused(&exchange, &debit("4.800001", "all and more")).contains(&more("4.800001", "4.8")));
    assert!(refused(&exchange, &["account", "credit", wallet, "1"]).contains("fee wallet"));
    assert_eq!(exchange.operator(&debit("3", "march"))["repeated"], false);
    assert_eq!(balance(&exchange, "fees"), "1.8");
    assert!(refused(&exchange, &debit("2", "march")).contains("march"), "another amount under a reference");
    assert!(refused(&exchange, &debit("1.800001", "april")).contains(&more("1.800001", "1.8")));
    exchange.stop();
    assert!(journal("verify", &plan.data_dir()).contains(" + fees 1.800000 + "));

    exchange = plan.start();
    assert_eq!(exchange.operator(&debit("3", "march"))["repeated"], true);
    assert_eq!(balance(&exchange, wallet), "1.8");
    let rest = exchange.operator(&["account", "debit", "fees", "1.8", "--ref", "april"]);
    assert_eq!((rest["repeated"].as_bool(), rest["wallet"].as_str()), (Some(false), Some(wallet)));
    assert_eq!(exchange.operator(&debit("1.8", "april"))["repeated"], true, "by its address");
    assert_eq!(balance(&exchange, "fees"), "0");
    exchange.stop();
    let verified = journal("verify", &plan.data_dir());
    assert!(verified.contains(" + fees 0.000000 + ") && verified.ends_with("good\n"), "{verified}");
}

#[test]
fn a_reference_moves_money_once_and_a_restart_doubles_nothing() {
    let folder = folder();
    let plan = Plan::dev(folder.path());
    let exchange = plan.start();
    let credit = |amount: &'static str| ["account", "credit", FIRST, amount, "--ref", "salary"];
    assert_eq!(exchange.operator(&credit("500"))["repeated"], false);
    assert_eq!(exchange.operator(&credit("500"))["repeated"], true);
    assert!(refused(&exchange, &credit("501")).contains("ref: salary stands for another"));
    exchange.operator(&["account", "debit", FIRST, "0.000001"]);
    assert_eq!(balance(&exchange, FIRST), "100499.999999");
    assert_eq!(balance(&exchange, DEPOSIT), "100000");
    let frozen = exchange.operator(&["account", "freeze", DEPOSIT]);
    let named = |answer: &Value| ["wallet", "owner"].map(|name| answer[name].as_str().unwrap().to_owned());
    assert_eq!(
        (&frozen["frozen"], named(&frozen)),
        (&Value::Bool(true), [DEPOSIT, FIRST].map(str::to_owned))
    );
    assert_eq!(exchange.operator(&["account", "show", FIRST])["frozen"], true);
    let freed = exchange.operator(&["account", "freeze", "--undo", DEPOSIT]);
    assert_eq!((&freed["frozen"], named(&freed)), (&Value::Bool(false), [DEPOSIT, FIRST].map(str::to_owned)));
    exchange.stop();
    let before = journal("replay", &plan.data_dir());

    let exchange = plan.start();
    assert_eq!(exchange.operator(&credit("500"))["repeated"], true);
    assert_eq!(balance(&exchange, FIRST), "100499.999999");
    exchange.stop();
    let line = |text: &str, name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    let after = journal("replay", &plan.data_dir());
    for name in ["state hash", "live orders", "orders", "credited", "markets", "events"] {
        assert_eq!(line(&before, name), line(&after, name));
    }
}

#[test]
fn a_frozen_owner_has_no_open_order_and_gets_none_until_it_is_let_go() {
    let folder = folder();
    let exchange = Plan::dev(folder.path()).set("cpu.shards=2").start();
    let mut connection = exchange.connect();
    let mut trader = Trader::new(KEYS[1], &mut connection);
    let mut place = |question: &str| {
        let token = token(&exchange.market(question).tokens[0]);
        let order = trader.sign(&Wish::buy(token, 4_000, 10_000_000));
        let answer = trader.post(&mut connection, &order.body);
        (answer.json(), order.id_text, trader.ask(&mut connection, "GET", "/data/orders", "").unwrap().json())
    };
    let (_, first, _) = place("Does it rain?");
    let (_, second, open) = place("Does it snow?");
    assert_eq!(open["data"].as_array().map(Vec::len), Some(2), "{open}");

    let frozen = exchange.operator(&["account", "freeze", SECOND]);
    assert_eq!((&frozen["frozen"], &frozen["ordersRemoved"]), (&Value::Bool(true), &Value::from(2)));
    let (refused, _, open) = place("Does it hail?");
    assert_eq!(
        (&refused["code"], &open["data"]),
        (&Value::from("address_banned"), &Value::from(Vec::<u8>::new()))
    );
    assert_eq!(exchange.operator(&["account", "freeze", SECOND])["ordersRemoved"], 0);

    exchange.operator(&["account", "freeze", "--undo", SECOND]);
    let (placed, _, open) = place("Does it thaw?");
    assert_eq!((&placed["status"], open["data"].as_array().map(Vec::len)), (&Value::from("live"), Some(1)));
    for id in [first, second] {
        let order = trader.ask(&mut connection, "GET", &format!("/data/order/{id}"), "").unwrap().json();
        assert_eq!(order["status"], "CANCELED", "{order}");
        assert_eq!(order["reason"], "operator", "{order}");
    }
}
