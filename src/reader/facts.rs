//! What an imported text says about a market or an event, read once when the record comes.
//!
//! A text that is no JSON object says nothing; a field of the wrong kind is as if absent. The
//! strict clients take no empty dates and no names that are not hex, so dates become instants and
//! such names are checked here.

use crate::catalog::Moment;
use crate::domain::TimeMs;
use crate::json::{decimal, name};
use serde_json::{Map, Value};

/// What the CLOB routes show of a market's text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MarketFacts {
    /// True if the text is a JSON object.
    pub(super) readable: bool,
    pub(super) question: String,
    pub(super) slug: String,
    pub(super) description: String,
    pub(super) icon: String,
    pub(super) image: String,
    pub(super) category: String,
    pub(super) creator: Option<String>,
    pub(super) end: Option<TimeMs>,
    pub(super) game_start: Option<TimeMs>,
    pub(super) accepting_since: Option<TimeMs>,
    pub(super) inactive: bool,
    pub(super) archived: bool,
    pub(super) seconds_delay: u64,
    /// An address in hex, or empty.
    pub(super) market_maker: String,
    /// 32 bytes in hex, or empty.
    pub(super) neg_risk_market: String,
    /// 32 bytes in hex, or empty.
    pub(super) neg_risk_request: String,
    pub(super) rewards: Rewards,
    pub(super) tags: Vec<String>,
    /// The prices of both outcomes where the text comes from, in millionths.
    pub(super) prices: Option<[u64; 2]>,
    /// An event that the text carries itself.
    pub(super) event: Option<EventFacts>,
}

/// What the CLOB routes show of an event's text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct EventFacts {
    pub(super) id: String,
    pub(super) slug: String,
    pub(super) title: String,
    pub(super) ticker: String,
    pub(super) description: String,
    pub(super) tags: Vec<String>,
}

/// A market's rewards. Numbers are kept as the text has them: nothing is counted with them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rewards {
    /// The asset's address and its daily rate.
    pub(super) rates: Vec<(String, Number)>,
    pub(super) min_size: Number,
    pub(super) max_spread: Number,
}

/// A JSON number as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Number(String);

impl Default for Number {
    fn default() -> Self {
        Self("0".to_owned())
    }
}

impl Number {
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl MarketFacts {
    pub(super) fn parse(text: &str) -> Self {
        let Ok(Value::Object(fields)) = serde_json::from_str(text) else {
            return Self::default();
        };
        Self {
            readable: true,
            question: words(&fields, "question"),
            slug: words(&fields, "slug"),
            description: words(&fields, "description"),
            icon: words(&fields, "icon"),
            image: words(&fields, "image"),
            category: words(&fields, "category"),
            creator: Some(words(&fields, "creator")).filter(|creator| !creator.is_empty()),
            end: instant(&fields, "endDate"),
            game_start: instant(&fields, "gameStartTime"),
            accepting_since: instant(&fields, "acceptingOrdersTimestamp"),
            inactive: fields.get("active") == Some(&Value::Bool(false)),
            archived: fields.get("archived") == Some(&Value::Bool(true)),
            seconds_delay: fields.get("secondsDelay").and_then(Value::as_u64).unwrap_or(0),
            market_maker: hex::<20>(&fields, "marketMakerAddress"),
            neg_risk_market: hex::<32>(&fields, "negRiskMarketID"),
            neg_risk_request: hex::<32>(&fields, "negRiskRequestID"),
            rewards: rewards(&fields),
            tags: tags(&fields),
            prices: prices(&fields),
            event: list(&fields, "events").first().and_then(Value::as_object).map(EventFacts::of),
        }
    }
}

impl EventFacts {
    pub(super) fn parse(text: &str) -> Self {
        match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => Self::of(&fields),
            _ => Self::default(),
        }
    }

    fn of(fields: &Map<String, Value>) -> Self {
        Self {
            id: words(fields, "id"),
            slug: words(fields, "slug"),
            title: words(fields, "title"),
            ticker: words(fields, "ticker"),
            description: words(fields, "description"),
            tags: tags(fields),
        }
    }
}

/// A text, or a number in words; else empty.
fn words(fields: &Map<String, Value>, name: &str) -> String {
    match fields.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn list<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    fields.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn number(fields: &Map<String, Value>, name: &str) -> Number {
    match fields.get(name) {
        Some(Value::Number(number)) => Number(number.to_string()),
        _ => Number::default(),
    }
}

fn instant(fields: &Map<String, Value>, name: &str) -> Option<TimeMs> {
    let moment = Moment::parse(fields.get(name)?.as_str()?)?;
    Some(TimeMs(moment.0 / 1_000))
}

fn hex<const BYTES: usize>(fields: &Map<String, Value>, name: &str) -> String {
    let text = words(fields, name);
    if name::parse_hex::<BYTES>(text.as_bytes()).is_some() { text } else { String::new() }
}

fn rewards(fields: &Map<String, Value>) -> Rewards {
    let rates = list(fields, "clobRewards").iter().filter_map(|reward| {
        let reward = reward.as_object()?;
        Some((hex::<20>(reward, "assetAddress"), number(reward, "rewardsDailyRate")))
    });
    Rewards {
        rates: rates.collect(),
        min_size: number(fields, "rewardsMinSize"),
        max_spread: number(fields, "rewardsMaxSpread"),
    }
}

/// The labels of tags, which are objects or plain texts.
fn tags(fields: &Map<String, Value>) -> Vec<String> {
    let label = |tag: &Value| match tag {
        Value::String(label) => Some(label.clone()),
        Value::Object(tag) => Some(words(tag, "label")).filter(|label| !label.is_empty()),
        _ => None,
    };
    list(fields, "tags").iter().filter_map(label).collect()
}

/// `outcomePrices`: an array of texts, itself in a text.
fn prices(fields: &Map<String, Value>) -> Option<[u64; 2]> {
    let texts: Vec<String> = serde_json::from_str(fields.get("outcomePrices")?.as_str()?).ok()?;
    let [zero, one] = texts.as_slice() else {
        return None;
    };
    Some([price(zero)?, price(one)?])
}

/// A price in millionths, at most one; what is below a millionth is cut.
fn price(text: &str) -> Option<u64> {
    let places = 1 + 6;
    let end = text.find('.').map_or(text.len(), |dot| text.len().min(dot + places));
    let price = decimal::parse_millionths(text.get(..end)?.as_bytes()).ok()?;
    (price <= crate::domain::amount::ONE).then_some(price)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_says_what_it_says_and_nothing_else() {
        let facts = MarketFacts::parse(
            r#"{"question":"Will it?","slug":"will-it","endDate":"2025-12-31T12:00:00Z","active":false,
                "gameStartTime":"2025-11-05 19:00:00+00","acceptingOrdersTimestamp":"",
                "marketMakerAddress":"0x5Ce0c9cd0f79b711Bdaa8287B0e8540C02D824c5","negRiskMarketID":"12",
                "outcomePrices":"[\"0.0451234567\", \"0.955\"]","rewardsMaxSpread":3.5,"secondsDelay":3,
                "clobRewards":[{"assetAddress":"0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174","rewardsDailyRate":30}],
                "tags":[{"label":"Politics"},"World",7],"events":[{"id":16282,"slug":"e","title":"E"}]}"#,
        );
        assert_eq!((facts.question.as_str(), facts.slug.as_str()), ("Will it?", "will-it"));
        assert_eq!(facts.end, Some(TimeMs(1_767_182_400_000)));
        assert_eq!(facts.game_start, Some(TimeMs(1_762_369_200_000)));
        assert_eq!(facts.accepting_since, None);
        assert!(facts.inactive && !facts.archived && facts.readable);
        assert_eq!(facts.market_maker, "0x5Ce0c9cd0f79b711Bdaa8287B0e8540C02D824c5");
        assert_eq!(facts.neg_risk_market, "", "a strict client takes hex or nothing");
        assert_eq!(facts.prices, Some([45_123, 955_000]));
        assert_eq!((facts.seconds_delay, facts.rewards.max_spread.as_bytes()), (3, &b"3.5"[..]));
        assert_eq!(facts.rewards.rates[0].1.as_bytes(), b"30");
        assert_eq!(facts.tags, ["Politics", "World"]);
        assert_eq!(facts.event.map(|event| (event.id, event.slug)), Some(("16282".into(), "e".into())));
    }

    #[test]
    fn a_text_that_is_no_object_says_nothing() {
        for text in ["", "[]", "7", "{", "null"] {
            assert_eq!(MarketFacts::parse(text), MarketFacts::default(), "{text}");
            assert_eq!(EventFacts::parse(text), EventFacts::default(), "{text}");
        }
    }
}
