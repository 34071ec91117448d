//! What is JSON and what is not, beside another strict parser.

use super::*;
use proptest::prelude::*;

/// What a strict general parser says of the same bytes; `None` if it stopped at a number too large for its
/// floats, since it then says nothing of the rest.
fn serde_takes(text: &[u8]) -> Option<bool> {
    match serde_json::from_slice::<serde_json::Value>(text) {
        Ok(_) => Some(true),
        Err(error) => (!error.to_string().starts_with("number out of range")).then_some(false),
    }
}

fn we_take(text: &[u8]) -> bool {
    parse(&mut text.to_vec(), &mut Vec::new()).is_ok()
}

#[test]
fn what_is_json_is_what_another_strict_parser_takes() {
    for text in [
        r#"{"a":{},"b":[],"c":[[]],"d":[{}],"":0}"#,
        r" [ 1 , -0 , 0.5 , 1e9 , 1E+9 , 1e-9 , -1.25e0 , 18446744073709551616 , 1e999 ] ",
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x1",
        "1 2",
        "12345678901234567890x",
        "1.5222222222222222222222@2",
        "-01",
        "tru",
        "truex",
        "nulll",
        "{\"a\":1 \"b\":2}",
        "{\"a\":}",
        "{\"a\"}",
        "{a:1}",
        "{1:2}",
        "{,}",
        "[,]",
        "[1 2]",
        "[1}",
        "{\"a\":1]",
        "[",
        "]",
        "\"",
        "\"\\\"",
        "\"\\x41\"",
        "\"\\u12\"",
        "\"\\u+123\"",
        "\"\t\"",
        "\"\u{7f}\u{2028}\"",
        "\r\n\t {}\r\n\t ",
        "{}\u{a0}",
        "{}\u{0}",
    ] {
        // Numbers that large are only in good texts.
        let expected = serde_takes(text.as_bytes()).unwrap_or(true);
        assert_eq!(we_take(text.as_bytes()), expected, "{text:?}");
    }
}

#[test]
fn what_is_no_json_is_so_from_a_byte_on() {
    let deep = "[".repeat(65);
    for (text, at) in [
        (&b""[..], 0),
        (b"garbage", 0),
        (b"{\"a\":1", 6),
        (b"{\"a\":nul}", 5),
        (b"{\"a\":01}", 7),
        (b"{\"a\":1.}", 7),
        (b"{\"a\" 1}", 5),
        (b"{\"a\":1,}", 7),
        (b"{\"a\":\"b", 7),
        (b"{\"a\":\"b\\x\"}", 7),
        (b"{\"a\":\"b\n\"}", 7),
        (b"{\"a\":\"\xff\"}", 6),
        (b"[1] 2", 4),
        (deep.as_bytes(), 64),
    ] {
        let read = parse(&mut text.to_vec(), &mut Vec::new()).expect_err("no JSON");
        assert_eq!(read, NotJson(at), "{}", String::from_utf8_lossy(text));
    }
}

#[test]
fn bodies_nest_so_deep_and_no_deeper() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(we_take(nested(64).as_bytes()));
    assert!(!we_take(nested(65).as_bytes()));
    let objects = |depth: usize| "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth);
    assert!(we_take(objects(64).as_bytes()));
    assert!(!we_take(objects(65).as_bytes()));
}

#[test]
fn texts_are_unescaped_in_place() {
    for (written, expected) in [
        (r#""""#, ""),
        (r#""a\"b\\c\/d""#, "a\"b\\c/d"),
        (r#""\b\f\n\r\t""#, "\u{8}\u{c}\n\r\t"),
        (r#""\u0041\u00e9\u20AC\ud83d\ude00 and more text""#, "Aé€😀 and more text"),
        (r#""plain text that is longer than a word\u0000é""#, "plain text that is longer than a word\0é"),
    ] {
        let (mut text, mut nodes) = (written.as_bytes().to_vec(), Vec::new());
        parse(&mut text, &mut nodes).expect("JSON");
        let [node] = nodes[..] else { panic!("one node: {nodes:?}") };
        let start = usize::try_from(node.value).expect("a place");
        assert_eq!(&text[start..start + node.count as usize], expected.as_bytes(), "{written}");
    }
}

#[test]
fn containers_know_their_items_and_their_nodes() {
    let mut nodes = Vec::new();
    parse(&mut br#"{"a":[1,[],{"b":2}],"c":{}}"#.to_vec(), &mut nodes).expect("JSON");
    let counts: Vec<(Kind, u32, u64)> = nodes
        .iter()
        .filter(|node| matches!(node.kind, Kind::Object | Kind::Array))
        .map(|node| (node.kind, node.count, node.value))
        .collect();
    let expected = [
        (Kind::Object, 2, 9),
        (Kind::Array, 3, 5),
        (Kind::Array, 0, 0),
        (Kind::Object, 1, 2),
        (Kind::Object, 0, 0),
    ];
    assert_eq!(counts, expected);
}

proptest! {
    #[test]
    fn a_body_with_bytes_changed_is_json_for_both_parsers_or_for_neither(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), change()), 1..4),
    ) {
        let mut text = NESTED.as_bytes().to_vec();
        for (at, change) in changes {
            let at = at.index(text.len());
            match change {
                Change::Set(byte) => text[at] = byte,
                Change::Insert(bytes) => drop(text.splice(at..at, bytes.iter().copied())),
                Change::Remove => drop(text.remove(at)),
            }
        }
        if let Some(expected) = serde_takes(&text) {
            prop_assert_eq!(we_take(&text), expected, "{:?}", String::from_utf8_lossy(&text));
        }
    }
}

/// A text with every form that JSON has.
const NESTED: &str = r#"{"a":[1,-2.5e+10,{"b":"x\u0041\\\"\n","é":null}],"c":{"d":[[],{}],"😀":true},"e":false,"f":"\ud83d\ude00","g":[0,0.0,1E1]}"#;

#[derive(Clone, Debug)]
enum Change {
    Set(u8),
    Insert(&'static [u8]),
    Remove,
}

fn change() -> impl Strategy<Value = Change> {
    const PIECES: [&[u8]; 16] = [
        b",", b":", b"\"", b"\\", b"[", b"]", b"{", b"}", b"0", b".", b"e", b"-", b" ", b"\\ud800", b"\xff",
        b"\0",
    ];
    prop_oneof![
        any::<u8>().prop_map(Change::Set),
        proptest::sample::select(&PIECES[..]).prop_map(Change::Insert),
        Just(Change::Remove),
    ]
}
