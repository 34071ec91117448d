//! What an imported text says about a market or an event, read once when the text comes.
//!
//! A text that is not a JSON object says nothing; a field of the wrong kind counts as absent. The
//! strict clients take no empty dates, and no addresses or hashes that are not hex, so dates become
//! instants and hex is checked here. What is long and only ever shown stays in the text, as a [`Span`].

use super::Moment;
use super::fields::{Fields, Part, as_text, items, parts, texts};
use super::number::{cut_millionths, hex_digits};
use super::sheet::{self, Sheet, Span};
use crate::domain::amount::ONE;
use crate::domain::{ItemKind, TimeMs};

/// What is shown of a market's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the text")]
pub struct MarketFacts {
    /// True if the text is a JSON object.
    pub readable: bool,
    /// What the catalog repeats of it.
    pub sheet: Sheet,
    /// The question.
    pub question: String,
    /// Its name in paths.
    pub slug: String,
    /// The address of its small picture.
    pub icon: String,
    /// The description, as a JSON string.
    pub description: Span,
    /// The address of its picture, as a JSON string.
    pub image: Span,
    /// Its category.
    pub category: String,
    /// The site or wallet that it is from.
    pub creator: Option<String>,
    /// The wallet that submitted it.
    pub submitted_by: Option<String>,
    /// When it starts.
    pub start: Option<Moment>,
    /// When it ends.
    pub end: Option<Moment>,
    /// When it was made.
    pub created: Option<Moment>,
    /// When its text last changed.
    pub updated: Option<Moment>,
    /// When it closed.
    pub closed_at: Option<Moment>,
    /// `closedTime` as written in the text; empty if it is not a date.
    pub closed_time: Span,
    /// When its game starts.
    pub game_start: Option<TimeMs>,
    /// Since when it takes orders.
    pub accepting_since: Option<TimeMs>,
    /// True if it says that it is not active.
    pub inactive: bool,
    /// True if it says that it is closed.
    pub closed: bool,
    /// True if it says that it is archived.
    pub archived: bool,
    /// True if it says that it is featured.
    pub featured: bool,
    /// True if it says that anybody may make such a market (`cyom`).
    pub cyom: bool,
    /// True if it mirrors another venue's market.
    pub mirror: bool,
    /// How long orders wait.
    pub seconds_delay: u64,
    /// An address in hex, or empty.
    pub market_maker: String,
    /// 32 bytes in hex, or empty.
    pub neg_risk_market: String,
    /// 32 bytes in hex, or empty.
    pub neg_risk_request: String,
    /// What quoting earns.
    pub rewards: Rewards,
    /// The market's own tags, each as written.
    pub tag_spans: Box<[Span]>,
    /// True if it stands for every outcome of its event that has no market yet.
    pub neg_risk_other: bool,
    /// The prices of both outcomes at the venue that the text comes from, in millionths.
    pub prices: Option<[u64; 2]>,
    /// The last trade's price at the venue that the text comes from, in millionths.
    pub last_price: Option<u64>,
    /// What was traded where the text comes from, in millionths.
    pub volume: u64,
    /// How close to even its prices are, in millionths.
    pub competitive: Option<u64>,
}

/// What is shown of an event's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the text")]
pub struct EventFacts {
    /// What the catalog repeats of it.
    pub sheet: Sheet,
    /// Its id.
    pub id: String,
    /// Its name in paths.
    pub slug: String,
    /// Its title.
    pub title: String,
    /// Its short name.
    pub ticker: String,
    /// The description, as a JSON string.
    pub description: Span,
    /// `creationDate`, as a JSON string.
    pub creation_date: Span,
    /// `eventMetadata`, as an object.
    pub metadata: Span,
    /// The site or wallet that it is from.
    pub creator: Option<String>,
    /// When it starts.
    pub start: Option<Moment>,
    /// When it ends.
    pub end: Option<Moment>,
    /// When its text was first made.
    pub creation: Option<Moment>,
    /// When it was made.
    pub created: Option<Moment>,
    /// When its text last changed.
    pub updated: Option<Moment>,
    /// When it closed.
    pub closed_at: Option<Moment>,
    /// `closedTime` as written in the text; empty if it is not a date.
    pub closed_time: Span,
    /// True if it says that it is not active.
    pub inactive: bool,
    /// True if it says that it is closed.
    pub closed: bool,
    /// True if it says that it is archived.
    pub archived: bool,
    /// True if it says that it is featured.
    pub featured: bool,
    /// True if it says that anybody may make such an event (`cyom`).
    pub cyom: bool,
    /// What was traded where the text comes from, in millionths.
    pub volume: Option<u64>,
    /// How close to even its prices are, in millionths.
    pub competitive: Option<u64>,
    /// Its items of each kind, each as written.
    pub spans: [Box<[Span]>; ItemKind::ALL.len()],
}

/// A market's rewards. Numbers are kept as the text has them: nothing is computed from them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewards {
    /// The asset's address and its daily rate.
    pub rates: Vec<(String, Number)>,
    /// The smallest order that earns.
    pub min_size: Number,
    /// The largest distance from the middle that earns.
    pub max_spread: Number,
}

/// A JSON number as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number(Box<str>);

impl Default for Number {
    fn default() -> Self {
        Self("0".into())
    }
}

impl Number {
    fn of(raw: &str) -> Self {
        let is_number = raw.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        if is_number { Self(raw.into()) } else { Self::default() }
    }

    /// Its text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl MarketFacts {
    /// Reads a market's text.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let Some(parts) = parts(text) else {
            return Self { sheet: Sheet::missing_all(&sheet::MARKET), ..Self::default() };
        };
        let sheet = Sheet::of(&sheet::MARKET, text, text, &parts);
        let mut facts = Self { readable: true, sheet, ..Self::default() };
        let (mut volume, mut volume_number) = (None, None);
        for Part { name, raw } in &parts {
            match name.as_ref() {
                "question" => facts.question = words(raw),
                "slug" => facts.slug = words(raw),
                "icon" => facts.icon = words(raw),
                "description" => facts.description = string_span(text, raw),
                "image" => facts.image = string_span(text, raw),
                "category" => facts.category = words(raw),
                "creator" => facts.creator = named(raw),
                "submitted_by" => facts.submitted_by = named(raw),
                "startDate" => facts.start = moment(raw),
                "endDate" => facts.end = moment(raw),
                "createdAt" => facts.created = moment(raw),
                "updatedAt" => facts.updated = moment(raw),
                "closedTime" => (facts.closed_at, facts.closed_time) = moment_as_said(text, raw),
                "gameStartTime" => facts.game_start = moment(raw).map(Moment::in_ms),
                "acceptingOrdersTimestamp" => facts.accepting_since = moment(raw).map(Moment::in_ms),
                "active" => facts.inactive = *raw == "false",
                "closed" => facts.closed = *raw == "true",
                "archived" => facts.archived = *raw == "true",
                "featured" => facts.featured = *raw == "true",
                "cyom" => facts.cyom = *raw == "true",
                "mirrorConditionId" => facts.mirror = named(raw).is_some(),
                "negRiskOther" => facts.neg_risk_other = *raw == "true",
                "secondsDelay" => facts.seconds_delay = raw.parse().unwrap_or(0),
                "marketMakerAddress" => facts.market_maker = hex(raw, ADDRESS_BYTES),
                "negRiskMarketID" => facts.neg_risk_market = hex(raw, WORD_BYTES),
                "negRiskRequestID" => facts.neg_risk_request = hex(raw, WORD_BYTES),
                "clobRewards" => facts.rewards.rates = rates(raw),
                "rewardsMinSize" => facts.rewards.min_size = Number::of(raw),
                "rewardsMaxSpread" => facts.rewards.max_spread = Number::of(raw),
                "tags" => facts.tag_spans = item_spans(text, raw),
                "outcomePrices" => facts.prices = prices(raw),
                "lastTradePrice" => facts.last_price = price(&words(raw)),
                "volume" => volume = cut_millionths(&words(raw)),
                "volumeNum" => volume_number = cut_millionths(&words(raw)),
                "competitive" => facts.competitive = cut_millionths(raw),
                _ => {}
            }
        }
        // The text is exact, where the number was rounded for showing.
        facts.volume = volume.or(volume_number).unwrap_or(0);
        facts
    }
}

impl EventFacts {
    /// Reads an event's text.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let Some(parts) = parts(text) else {
            return Self { sheet: Sheet::missing_all(&sheet::EVENT), ..Self::default() };
        };
        let sheet = Sheet::of(&sheet::EVENT, text, text, &parts);
        let mut facts = Self { sheet, ..Self::default() };
        for Part { name, raw } in &parts {
            match name.as_ref() {
                "id" => facts.id = words(raw),
                "slug" => facts.slug = words(raw),
                "title" => facts.title = words(raw),
                "ticker" => facts.ticker = words(raw),
                "description" => facts.description = string_span(text, raw),
                "creationDate" => (facts.creation, facts.creation_date) = moment_as_said(text, raw),
                "eventMetadata" if raw.starts_with('{') => facts.metadata = Span::within(text, raw),
                "creator" => facts.creator = named(raw),
                "startDate" => facts.start = moment(raw),
                "endDate" => facts.end = moment(raw),
                "createdAt" => facts.created = moment(raw),
                "updatedAt" => facts.updated = moment(raw),
                "closedTime" => (facts.closed_at, facts.closed_time) = moment_as_said(text, raw),
                "active" => facts.inactive = *raw == "false",
                "closed" => facts.closed = *raw == "true",
                "archived" => facts.archived = *raw == "true",
                "featured" => facts.featured = *raw == "true",
                "cyom" => facts.cyom = *raw == "true",
                "volume" => facts.volume = cut_millionths(&words(raw)),
                "competitive" => facts.competitive = cut_millionths(raw),
                "tags" => facts.spans[ItemKind::Tag as usize] = item_spans(text, raw),
                "series" => facts.spans[ItemKind::Series as usize] = item_spans(text, raw),
                "eventCreators" => facts.spans[ItemKind::Creator as usize] = item_spans(text, raw),
                _ => {}
            }
        }
        facts
    }
}

const ADDRESS_BYTES: usize = 20;
const WORD_BYTES: usize = 32;

/// The content of a string, or a number as written; else empty.
pub(super) fn words(raw: &str) -> String {
    match raw.as_bytes().first() {
        Some(b'"') => as_text(raw).unwrap_or_default(),
        Some(b'-' | b'0'..=b'9') => raw.to_owned(),
        _ => String::new(),
    }
}

/// As [`words`]; `None` if that is empty.
fn named(raw: &str) -> Option<String> {
    Some(words(raw)).filter(|name| !name.is_empty())
}

fn moment(raw: &str) -> Option<Moment> {
    Moment::parse(&as_text(raw)?)
}

/// A moment, and its place in the text; an empty place if it is not one.
fn moment_as_said(text: &str, raw: &str) -> (Option<Moment>, Span) {
    moment(raw).map_or_else(Default::default, |moment| (Some(moment), string_span(text, raw)))
}

/// The place of a string in the text; empty if `raw` is not a string.
fn string_span(text: &str, raw: &str) -> Span {
    if raw.starts_with('"') { Span::within(text, raw) } else { Span::default() }
}

fn item_spans(text: &str, raw: &str) -> Box<[Span]> {
    items(raw).unwrap_or_default().into_iter().map(|item| Span::within(text, item)).collect()
}

fn hex(raw: &str, bytes: usize) -> String {
    let text = words(raw);
    if hex_digits(&text) == Some(2 * bytes) { text } else { String::new() }
}

fn rates(raw: &str) -> Vec<(String, Number)> {
    let rate = |reward: &str| {
        let fields = Fields::parse(reward)?;
        let asset = fields.raw("assetAddress").map_or_else(String::new, |raw| hex(raw, ADDRESS_BYTES));
        Some((asset, fields.raw("rewardsDailyRate").map(Number::of).unwrap_or_default()))
    };
    items(raw).unwrap_or_default().into_iter().filter_map(rate).collect()
}

/// `outcomePrices`: an array of strings, itself within a string.
fn prices(raw: &str) -> Option<[u64; 2]> {
    let texts = texts(raw)?;
    let [zero, one] = texts.as_slice() else {
        return None;
    };
    Some([price(zero)?, price(one)?])
}

/// A price in millionths, at most one; digits below a millionth are cut.
fn price(text: &str) -> Option<u64> {
    cut_millionths(text).filter(|price| *price <= ONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_says_what_it_says_and_nothing_else() {
        let text = r#"{"question":"Will it?","slug":"will-it","endDate":"2025-12-31T12:00:00Z","active":false,
                "gameStartTime":"2025-11-05 19:00:00+00","acceptingOrdersTimestamp":"",
                "marketMakerAddress":"0x5Ce0c9cd0f79b711Bdaa8287B0e8540C02D824c5","negRiskMarketID":"12",
                "outcomePrices":"[\"0.0451234567\", \"0.955\"]","rewardsMaxSpread":3.5,"secondsDelay":3,
                "clobRewards":[{"assetAddress":"0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174","rewardsDailyRate":30}],
                "volume":"1.5","volumeNum":1.25,"description":"\"So\"",
                "tags":[{"label":"Politics"},"World",7]}"#;
        let facts = MarketFacts::parse(text);
        assert_eq!((facts.question.as_str(), facts.slug.as_str()), ("Will it?", "will-it"));
        assert_eq!(facts.end.map(Moment::in_ms), Some(TimeMs(1_767_182_400_000)));
        assert_eq!(facts.game_start, Some(TimeMs(1_762_369_200_000)));
        assert_eq!(facts.accepting_since, None);
        assert!(facts.inactive && !facts.archived && facts.readable);
        assert_eq!(facts.market_maker, "0x5Ce0c9cd0f79b711Bdaa8287B0e8540C02D824c5");
        assert_eq!(facts.neg_risk_market, "", "a strict client takes hex or nothing");
        assert_eq!(facts.prices, Some([45_123, 955_000]));
        assert_eq!((facts.seconds_delay, facts.rewards.max_spread.as_bytes()), (3, &b"3.5"[..]));
        assert_eq!(facts.rewards.rates[0].1.as_bytes(), b"30");
        assert_eq!(facts.volume, 1_500_000);
        assert_eq!(facts.description.of(text), r#""\"So\"""#);
        let tags: Vec<&str> = facts.tag_spans.iter().map(|span| span.of(text)).collect();
        assert_eq!(tags, [r#"{"label":"Politics"}"#, r#""World""#, "7"]);
    }

    #[test]
    fn a_text_that_is_no_object_says_nothing() {
        for text in ["", "[]", "7", "{", "null"] {
            let silent = MarketFacts::parse(text);
            assert!(!silent.readable && silent.sheet.kept().is_empty(), "{text}");
            assert_eq!(EventFacts::parse(text).id, "", "{text}");
        }
    }
}
