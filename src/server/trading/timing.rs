//! `Server-Timing`: what the time of a trading request went to, told in its answer.
//!
//! `recv;dur=0.0021, parse;dur=0.0004, …, journal;dur=    0.0009, total;dur=    0.0412`: milliseconds with four
//! decimals. The answer is written before its frame is acknowledged, so the last two are blanks until it
//! leaves; the standard allows blanks before a value. The time of the `send` itself cannot be in it.

use crate::stats::{Laps, Stage};

/// Bytes of the longest value: eight stages of at most 8 letters, `;dur=` and 10 digits, and what is between.
const VALUE_BYTES_MAX: usize = 8 * (8 + 5 + 11 + 2);

/// Bytes of a number that is filled in later: 99,999.9999 ms.
const LATER_BYTES: usize = 10;

const JOURNAL: &[u8] = b", journal;dur=";
const TOTAL: &[u8] = b", total;dur=";

/// The bytes of a value that are filled in later, its last ones.
const TAIL_BYTES: usize = JOURNAL.len() + LATER_BYTES + TOTAL.len() + LATER_BYTES;

/// The header's value while it is put together.
pub(crate) struct Value {
    bytes: [u8; VALUE_BYTES_MAX],
    len: usize,
}

impl Value {
    /// What is known when the answer is written.
    pub(crate) fn new(laps: &Laps) -> Self {
        let mut value = Self { bytes: [0; VALUE_BYTES_MAX], len: 0 };
        for stage in Stage::ALL.into_iter().filter(|&stage| stage != Stage::Journal) {
            value.push(if value.len == 0 { b"" } else { b", " });
            value.push(stage.name().as_bytes());
            value.push(b";dur=");
            let mut digits = [b' '; LATER_BYTES];
            let digits = write(laps.spent_ns(stage), &mut digits);
            value.push(digits);
        }
        for name in [JOURNAL, TOTAL] {
            value.push(name);
            value.push(&[b' '; LATER_BYTES]);
        }
        value
    }

    /// The value.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).expect("names and digits")
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

/// Fills in what was not known when the answer was written: `end` is where the header's value ends.
pub(crate) fn fill_in(answer: &mut [u8], end: usize, laps: &Laps) {
    let tail = &mut answer[end - TAIL_BYTES..end];
    debug_assert!(tail.starts_with(JOURNAL), "the value ends with what comes later");
    write(laps.spent_ns(Stage::Journal), &mut tail[JOURNAL.len()..][..LATER_BYTES]);
    write(laps.total_ns(), &mut tail[TAIL_BYTES - LATER_BYTES..]);
}

/// Writes milliseconds with four decimals to the end of `out`, and returns what it wrote; what does not fit is written
/// as the most that does.
fn write(ns: u64, out: &mut [u8]) -> &[u8] {
    let mut left = (ns / 100).min(999_999_999);
    let mut at = out.len();
    let mut put = |digit: u8| {
        at -= 1;
        out[at] = digit;
    };
    for place in 0.. {
        if place == 4 {
            put(b'.');
        }
        if 4 < place && left == 0 {
            break;
        }
        put(b'0' + u8::try_from(left % 10).expect("a digit"));
        left /= 10;
    }
    &out[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_have_four_decimals_and_stand_to_the_right() {
        for (ns, text) in [
            (0, "    0.0000"),
            (99, "    0.0000"),
            (41_250, "    0.0412"),
            (1_000_000, "    1.0000"),
            (12_345_678_900, "12345.6789"),
            (u64::MAX, "99999.9999"),
        ] {
            let mut out = [b' '; LATER_BYTES];
            assert_eq!(write(ns, &mut out), text.trim().as_bytes());
            assert_eq!(std::str::from_utf8(&out), Ok(text));
        }
    }

    #[test]
    fn a_value_is_written_in_two_parts() {
        let mut laps = Laps::begin(1);
        laps.lap(Stage::Recv, 2_101);
        laps.lap(Stage::Sign, 28_101);
        let value = Value::new(&laps);
        let mut answer = format!("Server-Timing: {}\r\n", value.text()).into_bytes();
        laps.lap(Stage::Journal, 1_028_101);
        let end = answer.len() - 2;
        fill_in(&mut answer, end, &laps);
        assert_eq!(
            String::from_utf8(answer).expect("text"),
            "Server-Timing: recv;dur=0.0021, parse;dur=0.0000, auth;dur=0.0000, sign;dur=0.0260, queue;dur=0.0000, \
             match;dur=0.0000, journal;dur=    1.0000, total;dur=    1.0281\r\n"
        );
    }

    #[test]
    fn the_longest_value_has_room() {
        let mut laps = Laps::begin(1);
        for (at, stage) in (1..).zip(Stage::ALL) {
            laps.lap(stage, at * 99_999_999_999);
        }
        assert!(Value::new(&laps).len <= VALUE_BYTES_MAX);
    }
}
