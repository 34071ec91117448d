//! The value of a `Server-Timing` header: stages with their times in milliseconds.

/// Stages and nanoseconds of a value such as `recv;dur=0.001, parse;dur=0.0005`. Parts of another
/// form are left out, because a header that only explains must not end a run.
pub(crate) fn parse(value: &str) -> impl Iterator<Item = (&str, u64)> {
    value.split(',').filter_map(|part| {
        let mut words = part.split(';').map(str::trim);
        let name = words.next().filter(|name| !name.is_empty())?;
        let millis = words.find_map(|word| word.strip_prefix("dur="))?;
        // The header's grammar allows blanks here, and this server writes them.
        let millis: f64 = millis.trim().trim_matches('"').parse().ok()?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
        let nanos = (millis * 1e6).round() as u64;
        Some((name, nanos))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_read_in_their_order() {
        let all: Vec<_> =
            parse("recv;dur=0.0012, parse;dur=0.4, sign;desc=\"curve\";dur=26, total;dur=    0.5").collect();
        let expected = [("recv", 1_200), ("parse", 400_000), ("sign", 26_000_000), ("total", 500_000)];
        assert_eq!(all, expected);
    }

    #[test]
    fn what_is_of_another_form_is_left_out() {
        assert_eq!(parse("").count() + parse("miss").count() + parse(";dur=1").count(), 0);
        assert_eq!(parse("a;dur=x, b;dur=1").collect::<Vec<_>>(), [("b", 1_000_000)]);
    }
}
