//! Whether a market is over, which is not whether it takes orders here.
//!
//! `closed` and `archived` are independent flags. The exchange takes no orders in a market that is archived or came
//! without tokens, so its mode is closed as well; but neither of them is an end.
//!
//! | mode | text | over since |
//! |---|---|---|
//! | resolved | any | it was over, else its result |
//! | closed | [`Closing::OnlyListed`] | not over |
//! | closed | [`Closing::Ended`] | it was over, else it was closed, else this text |
//! | closed | [`Closing::Unsaid`] | it was over, else it was closed while such a text was here |
//!
//! So a market that was only listed is not over because its next text names its tokens: a file opens no market, but
//! nobody has ended it. Closing what is closed already changes nothing, so such a market ends by a text or a result.

use super::fields::Fields;
use super::market::names_tokens;

/// What a text says about why its market takes no orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// It gives a reason other than an end: archived, or without tokens and not closed.
    OnlyListed,
    /// It says that the market is closed.
    Ended,
    /// It gives no reason.
    Unsaid,
}

impl Closing {
    /// What `text` says. A shortened row without tokens that does not speak of an end gives no reason.
    #[must_use]
    pub(crate) fn of(text: &str) -> Self {
        let fields = Fields::parse(text).unwrap_or_default();
        let says = |name| fields.flag(name) == Some(true);
        let is_put_away = says("archived") && !says("acceptingOrders");
        let has_tokens = fields.raw("clobTokenIds").is_some_and(names_tokens);
        match fields.flag("closed") {
            Some(true) => Self::Ended,
            Some(false) if is_put_away || !has_tokens => Self::OnlyListed,
            None if is_put_away => Self::OnlyListed,
            _ => Self::Unsaid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_gives_a_reason_for_taking_no_orders_or_says_that_its_market_is_closed() {
        const TOKENS: &str = r#""clobTokenIds":"[\"1\", \"2\"]""#;
        for (text, closing) in [
            (TOKENS, Closing::Unsaid),
            (r#""closed":false"#, Closing::OnlyListed),
            (r#""closed":true"#, Closing::Ended),
            (r#""closed":false,"clobTokenIds":null"#, Closing::OnlyListed),
            (r#""closed":false,"clobTokenIds":"[]""#, Closing::OnlyListed),
            ("", Closing::Unsaid),
            (&format!(r#"{TOKENS},"archived":true"#), Closing::OnlyListed),
            (&format!(r#"{TOKENS},"archived":true,"closed":false"#), Closing::OnlyListed),
            (&format!(r#"{TOKENS},"closed":false"#), Closing::Unsaid),
            (&format!(r#"{TOKENS},"archived":true,"acceptingOrders":true"#), Closing::Unsaid),
            (&format!(r#"{TOKENS},"archived":true,"closed":true"#), Closing::Ended),
        ] {
            assert_eq!(Closing::of(&format!("{{{text}}}")), closing, "{text}");
        }
    }
}
