//! The operator's token: who has to have one, and what is said of one that is not good.

use crate::common::exchange::{Plan, binary, outcry, said};
use crate::common::folder;

#[test]
fn an_exchange_that_is_no_dev_asks_for_its_token() {
    let folder = folder();
    let plan = Plan::serve(folder.path());
    let exchange = plan.start();
    let list = |more: &[&str]| exchange.operator_output(&[&["market", "list"], more].concat());
    let said = |more: &[&str]| String::from_utf8(list(more).stderr).unwrap();
    let (wrong, empty) = (folder.path().join("wrong"), folder.path().join("empty"));
    std::fs::write(&wrong, "0123456789abcdef").unwrap();
    std::fs::write(&empty, "\n").unwrap();
    let place = "; it is in admin-token in data_dir, unless OUTCRY_ADMIN_TOKEN gave the exchange another";
    for (more, expected) in [
        (&[][..], format!("the operator's token is missing{place}")),
        (&["--token-file", wrong.to_str().unwrap()], format!("the operator's token is wrong{place}")),
        (
            &["--token-file", empty.to_str().unwrap()],
            "empty: got nothing; allowed: a token, as in".to_owned(),
        ),
    ] {
        assert!(said(more).contains(&expected), "{}", said(more));
    }
    let token = plan.data_dir().join("admin-token");
    let token = token.to_str().unwrap();
    let with = list(&["--token-file", token]);
    assert!(with.status.success() && with.stdout.ends_with(b"0 markets\n"), "{with:?}");
    // The public listener is another one.
    let public = format!("http://127.0.0.1:{}", exchange.http);
    let other = format!("--admin: got {public}, which answers 40");
    let condition = format!("0x{}", "1".repeat(64));
    for words in [
        &["account", "show", "fees"][..],
        &["snapshot"],
        &["mode", "open"],
        &["market", "create", "?"],
        &["market", "show", "777"],
        &["market", "show", &condition],
    ] {
        let refused = outcry(&[words, &["--admin", &public]].concat());
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && text.contains(&other), "{words:?} {text}");
    }
    exchange.stop();
}

#[test]
fn a_chosen_token_that_can_be_guessed_is_refused_by_the_name_of_its_variable() {
    let folder = folder();
    let data_dir = folder.path().join("data");
    let words = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data-dir"];
    for (command, token) in [("serve", "x"), ("serve", "0123456789abcde"), ("check", "x")] {
        let refused = binary()
            .arg(command)
            .args(words)
            .arg(&data_dir)
            .env("OUTCRY_ADMIN_TOKEN", token)
            .output()
            .unwrap();
        let text = said(&refused);
        assert!(!refused.status.success() && text.contains("OUTCRY_ADMIN_TOKEN: got "), "{command} {text}");
        assert!(!data_dir.exists(), "{command}");
    }
}
