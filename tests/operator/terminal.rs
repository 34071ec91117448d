//! What commands print of other people's texts.

use crate::common::exchange::{Plan, journal};
use crate::common::folder;
use serde_json::{Value, json};

/// Red, by the one character that begins a command of terminals, then a bell and a deletion.
const QUESTION: &str = "A\u{9b}31mB\u{7}\u{7f}";

#[test]
fn texts_of_other_people_do_not_steer_the_terminal_and_json_says_them_whole() {
    let folder = folder();
    let plan = Plan::dev(folder.path());
    let exchange = plan.start();
    let file = folder.path().join("steers.json");
    let row = json!([{
        "id": "777", "question": QUESTION, "outcomes": ["Y\u{9b}", "N"],
        "conditionId": format!("0x{}", "7".repeat(64)), "clobTokenIds": ["71", "72"],
    }]);
    std::fs::write(&file, row.to_string()).unwrap();
    let printed = |words: &[&str]| {
        let output = exchange.operator_output(words);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let imported = printed(&["import", "gamma", file.to_str().unwrap()]);
    let (list, show) = (printed(&["market", "list"]), printed(&["market", "show", "777"]));
    exchange.stop();
    let dump = journal("dump", &plan.data_dir());
    for text in [&imported, &list, &show, &dump] {
        assert!(!text.contains(|char: char| char.is_control() && char != '\n'), "{text:?}");
    }
    let shown: Value = serde_json::from_str(&show).unwrap();
    assert_eq!((&shown["question"], &shown["outcomes"][0]), (&json!(QUESTION), &json!("Y\u{9b}")));
    let frames = dump.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let added = frames.into_iter().find(|frame| frame["marketId"] == 777).expect("it was added");
    assert_eq!(added["outcomes"][0], "Y\u{9b}");
    assert!(added["text"].as_str().unwrap().contains("A\u{9b}31mB"), "{added}");
}
