//! Texts may be other people's: whatever would steer a terminal is escaped before it is printed.

use std::borrow::Cow;

/// A text, its control characters as Rust escapes them.
pub(super) fn on_one_line(text: &str) -> String {
    let shown = |char: char| if char.is_control() { char.escape_default().to_string() } else { char.into() };
    text.chars().map(shown).collect()
}

/// JSON that means the same. Its texts have no character below U+0020 that is not escaped, and here none of the other
/// control characters, of which U+009B alone begins a terminal's commands.
pub(super) fn in_json(json: &str) -> Cow<'_, str> {
    let steers = |char: char| matches!(char, '\u{7f}'..='\u{9f}');
    if !json.contains(steers) {
        return json.into();
    }
    let shown = |char: char| {
        if steers(char) { format!("\\u{:04x}", u32::from(char)) } else { char.into() }
    };
    json.chars().map(shown).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{quoted, texts};

    #[test]
    fn every_control_character_is_escaped_and_json_means_the_same() {
        for char in (0..=0x2100).filter_map(char::from_u32) {
            let text = format!("a{char}b");
            let line = on_one_line(&text);
            assert_eq!(line == text, !char.is_control(), "{line}");
            let written = format!("[{}]", quoted(&text));
            for shown in [&line, &*in_json(&written)] {
                assert!(!shown.contains(char::is_control), "{shown:?}");
            }
            assert_eq!(texts(&in_json(&written)), Some(vec![text]));
        }
        assert_eq!(in_json("{\n\t\"a\": 1\r\n}"), "{\n\t\"a\": 1\r\n}", "not in texts");
    }
}
