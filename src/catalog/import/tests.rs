//! What stands within rows: every part of a file is taken or named, wherever it stands.

use super::*;

#[test]
fn a_row_is_sent_without_the_blanks_between_its_tokens() {
    for (object, event, sent) in [
        ("{ }", None, r#"{"events":[]}"#),
        ("{ \"a\" : [ 1 ] }", Some("5\""), r#"{"a":[1],"events":[{"id":"5\""}]}"#),
        (r#"{"events":[ {"id":"5","x":1}],"a":"b  c"}"#, Some("5"), r#"{"events":[{"id":"5"}],"a":"b  c"}"#),
    ] {
        assert_eq!(market_row(object, event).as_deref(), Some(sent));
    }
    assert_eq!(market_row("{]", None), None);
}
