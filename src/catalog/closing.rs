//! Whether a market is over, which is not whether it takes orders here.
//!
//! `closed` and `archived` are independent flags. The exchange takes no orders in a market that is archived or came
//! without tokens, so its mode is closed as well; but neither of them is an end.
//!
//! | mode | text | over |
//! |---|---|---|
//! | resolved | any | yes |
//! | closed | archived and not closed; without tokens and `closed` is false | no |
//! | closed | any other | yes |

use super::facts::MarketFacts;
use crate::domain::TimeMs;

/// Since when a market takes no orders, by its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// A row closed it, or it came so.
    Closed(TimeMs),
    /// Its result is known.
    Resolved(TimeMs),
}

impl Closing {
    /// Since when a market with these facts is over; `None` if it is only not traded.
    #[must_use]
    pub const fn over_since(self, facts: &MarketFacts) -> Option<TimeMs> {
        match self {
            Self::Closed(_) if facts.is_only_listed() => None,
            Self::Closed(since) | Self::Resolved(since) => Some(since),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_market_that_is_only_listed_is_over_if_its_text_says_so_or_its_result_is_known() {
        const TOKENS: &str = r#""clobTokenIds":"[\"1\", \"2\"]""#;
        for (text, over) in [
            (TOKENS, true),
            (r#""closed":false"#, false),
            (r#""closed":true"#, true),
            (r#""closed":false,"clobTokenIds":null"#, false),
            (r#""closed":false,"clobTokenIds":"[]""#, false),
            ("", true),
            (&format!(r#"{TOKENS},"archived":true"#), false),
            (&format!(r#"{TOKENS},"archived":true,"closed":false"#), false),
            (&format!(r#"{TOKENS},"closed":false"#), true),
            (&format!(r#"{TOKENS},"archived":true,"acceptingOrders":true"#), true),
            (&format!(r#"{TOKENS},"archived":true,"closed":true"#), true),
        ] {
            let facts = MarketFacts::parse(&format!("{{{text}}}"));
            let at = TimeMs(7);
            assert_eq!(Closing::Closed(at).over_since(&facts), over.then_some(at), "{text}");
            assert_eq!(Closing::Resolved(at).over_since(&facts), Some(at), "{text}");
        }
    }
}
