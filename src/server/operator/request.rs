//! What the operator asks for: routes and bodies, judged before anything is touched.
//!
//! | route | body |
//! |---|---|
//! | `GET /markets`, `/markets/{market}`, `/accounts/{wallet}`, `/accounts/fees` | |
//! | `GET /books`, `/books/{market}` | |
//! | `POST /import` | Gamma JSON, at most a request's body |
//! | `POST /markets` | `{"question", "outcomes"?, "tick"?, "minSize"?, "event"?}` |
//! | `POST /markets/{market}/pause`, `/resume` | `{}` or none |
//! | `POST /markets/{market}/mode` | `{"mode"}` |
//! | `POST /markets/{market}/resolve` | `{"payout", "redeem"?}` |
//! | `POST /markets/{market}/tick` | `{"tick"}` |
//! | `POST /accounts/{wallet}/credit` | `{"amount", "ref"?, "kind"?}` |
//! | `POST /accounts/{wallet}/debit`, `/accounts/fees/debit` | `{"amount", "ref"?}`; of the fee wallet it pays out fees |
//! | `POST /accounts/{wallet}/link` | `{"owner"}` |
//! | `POST /accounts/{wallet}/freeze` | `{"frozen"?}` |
//! | `POST /mode` | `{"mode"}` |
//! | `POST /snapshot` | `{}` or none |
//! | `POST /clock` | `{"advance_ms"}` |
//!
//! A market is named by its id or its condition. A field that a route does not know is refused,
//! so that a typing error never does half of what was meant.

use crate::auth::text::checksummed;
use crate::catalog::{Fields, LABEL_BYTES_MAX, texts};
use crate::domain::amount::ORDER_AMOUNT_MAX;
use crate::domain::text::parse_hex;
use crate::domain::{Address, Collateral, ConditionId, Mode, Payout, Shares, Tick, WalletKind};
use crate::http::respond::retry_after_s;
use crate::http::{Method, Query};
use crate::journal::layout::MoneyDirection;
use crate::journal::layout::acts::REFERENCE_BYTES_MAX;
use crate::json::{ShortText, Writer, decimal};
use crate::registrar;
use crate::server::requests::refusal;
use crate::server::threads::message::Said;

/// The longest question of a market that the operator makes.
const QUESTION_BYTES_MAX: usize = 1_024;
/// The longest step of a manual clock, ahead or back: a year.
const ADVANCE_MS_MAX: u64 = 366 * 86_400_000;

/// A request, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A page of all markets, behind the one that is named.
    Markets {
        /// The last market of the page before, if there was one.
        after: Option<MarketName>,
    },
    /// One market.
    Market(MarketName),
    /// The markets with most resting orders.
    Books,
    /// The books of one market.
    Book(MarketName),
    /// One wallet.
    Account(Address),
    /// The wallet that fees are shown under.
    FeeAccount,
    /// Events and markets from a file's text.
    Import,
    /// A market of the operator's own.
    NewMarket(NewMarket),
    /// What a market takes.
    SetMarketMode(MarketName, Mode),
    /// A market's result.
    Resolve {
        /// The market.
        market: MarketName,
        /// What its shares pay.
        payout: Payout,
        /// Whether every holder is paid at once.
        redeem: bool,
    },
    /// Another price step.
    SetTick(MarketName, Tick),
    /// Collateral in or out.
    Money(Movement),
    /// A deposit wallet gets its owner.
    Link {
        /// The deposit wallet.
        wallet: Address,
        /// Its owner's EOA.
        owner: Address,
    },
    /// A wallet's principal may not trade, or may again.
    Freeze {
        /// The wallet.
        wallet: Address,
        /// True to freeze.
        frozen: bool,
    },
    /// What the whole exchange takes.
    SetMode(Mode),
    /// A manual clock moves on by as many milliseconds, or back.
    Advance(i64),
    /// A snapshot of the state is made.
    Snapshot,
}

/// A market as people name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarketName {
    /// By its number.
    Id(u64),
    /// By its condition.
    Condition(ConditionId),
}

/// A market that the operator makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewMarket {
    /// The question.
    pub(crate) question: String,
    /// The labels of its outcomes.
    pub(crate) labels: [String; 2],
    /// The price step.
    pub(crate) tick: Tick,
    /// The smallest resting order; the configuration's if none is given.
    pub(crate) min_size: Option<Shares>,
    /// The slug of the event that holds it.
    pub(crate) event: Option<String>,
}

/// A credit or debit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Movement {
    /// The wallet; `None` is that of the fees.
    pub(crate) wallet: Option<Address>,
    /// In or out.
    pub(crate) direction: MoneyDirection,
    /// How much.
    pub(crate) amount: Collateral,
    /// Its name; made up if none is given.
    pub(crate) reference: Option<String>,
    /// The kind of a credit's wallet, if one is given.
    pub(crate) kind: Option<WalletKind>,
}

/// Why a request was not done. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The HTTP status.
    pub(crate) status: u16,
    /// For programs.
    pub(crate) code: &'static str,
    /// The field at fault; `""` if it is no single one, and then `allowed` says it all.
    pub(crate) field: &'static str,
    /// What the field held.
    pub(crate) got: String,
    /// What it may hold.
    pub(crate) allowed: &'static str,
    /// The text of the catalogue of errors, if the code has one there; `{got}` stands for what the field held.
    words: Option<&'static str>,
}

impl Refusal {
    /// A refusal of one field.
    pub(crate) fn new(
        status: u16,
        code: &'static str,
        field: &'static str,
        got: &str,
        allowed: &'static str,
    ) -> Self {
        Self { status, code, field, got: ShortText::new(got).as_str().to_owned(), allowed, words: None }
    }

    /// The same of a market that the query names.
    pub(super) fn of_after(self) -> Self {
        Self { field: "after", words: None, ..self }
    }

    /// The registrar's refusal of one field, in its words.
    pub(crate) fn of(
        refusal: registrar::Refusal,
        field: &'static str,
        got: &str,
        allowed: &'static str,
    ) -> Self {
        let wire = refusal.wire();
        Self { words: Some(wire.error), ..Self::new(wire.status, wire.code, field, got, allowed) }
    }

    /// The answer.
    pub(crate) fn said(&self) -> Said {
        let mut body = Vec::new();
        let mut json = Writer::new(&mut body);
        refusal::write_words(json.open_object(), &self.to_string(), self.code);
        if !self.field.is_empty() {
            json.key("field").text(self.field).key("got").text(&self.got).key("allowed").text(self.allowed);
        }
        // Who is told what to send instead need not wait.
        let retry_after_s = retry_after_s(self.status).filter(|_| self.field.is_empty());
        refusal::write_retry(&mut json, retry_after_s);
        json.close_object();
        Said { status: self.status, retry_after_s, body }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.field.is_empty() {
            return out.write_str(self.allowed);
        }
        if let Some(words) = self.words {
            return out.write_str(&words.replace("{got}", &self.got));
        }
        let got = if self.got.is_empty() { "nothing" } else { &self.got };
        write!(out, "{}: got {got}; allowed: {}", self.field, self.allowed)
    }
}

pub(super) fn wrong(field: &'static str, got: &str, allowed: &'static str) -> Refusal {
    Refusal::new(400, "invalid_field", field, got, allowed)
}

/// Understands a request, or says what is wrong with it.
pub(crate) fn read(method: Method, path: &str, query: Query<'_>, body: &[u8]) -> Result<Asked, Refusal> {
    let path = if path.len() > 1 { path.strip_suffix('/').unwrap_or(path) } else { path };
    let words: Vec<&str> = path.split('/').skip(1).collect();
    let asked = route(method, path, &words, query, body)?;
    let named: Vec<_> = query.pairs().map(|(name, _)| name).collect();
    if named.is_empty() || (matches!(asked, Asked::Markets { .. }) && named == ["after"]) {
        return Ok(asked);
    }
    Err(wrong("query", &named.join(", "), "only the parameters that this route knows, each once"))
}

fn route(
    method: Method,
    path: &str,
    words: &[&str],
    query: Query<'_>,
    body: &[u8],
) -> Result<Asked, Refusal> {
    match (method, words) {
        (Method::Get, _) => read_get(path, words, query),
        (Method::Post, ["import"]) => Ok(Asked::Import),
        (Method::Post, ["markets"]) => {
            new_market(&object(body, &["question", "outcomes", "tick", "minSize", "event"])?)
        }
        (Method::Post, ["markets", market, act]) => market_act(market_name(market)?, act, path, body),
        (Method::Post, ["accounts", "fees", "debit"]) => movement(None, MoneyDirection::Debit, body),
        (Method::Post, ["accounts", wallet, act]) => account_act(address("wallet", wallet)?, act, path, body),
        (Method::Post, ["mode"]) => {
            let words = "open, post-only, cancel-only or closed";
            Ok(Asked::SetMode(mode(&object(body, &["mode"])?, &MODES, words)?))
        }
        (Method::Post, ["snapshot"]) => object(body, &[]).map(|_| Asked::Snapshot),
        (Method::Post, ["clock"]) => advance(&object(body, &["advance_ms"])?),
        _ => Err(no_route(path)),
    }
}

fn no_route(path: &str) -> Refusal {
    Refusal::new(404, "not_found", "path", path, "a route of the operator's listener with its method")
}

fn read_get(path: &str, words: &[&str], query: Query<'_>) -> Result<Asked, Refusal> {
    Ok(match words {
        ["markets"] => {
            let after = query.first("after").map(|value| market_name(value.raw())).transpose();
            Asked::Markets { after: after.map_err(Refusal::of_after)? }
        }
        ["markets", market] => Asked::Market(market_name(market)?),
        ["books"] => Asked::Books,
        ["books", market] => Asked::Book(market_name(market)?),
        ["accounts", "fees"] => Asked::FeeAccount,
        ["accounts", wallet] => Asked::Account(address("wallet", wallet)?),
        _ => return Err(no_route(path)),
    })
}

fn market_act(market: MarketName, act: &str, path: &str, body: &[u8]) -> Result<Asked, Refusal> {
    Ok(match act {
        "pause" => object(body, &[]).map(|_| Asked::SetMarketMode(market, Mode::CancelOnly))?,
        "resume" => object(body, &[]).map(|_| Asked::SetMarketMode(market, Mode::Open))?,
        // Orders rest in a market until it is resolved, so one that has some cannot be history.
        "mode" => {
            let words = "open, post-only or cancel-only; or resolve it";
            Asked::SetMarketMode(market, mode(&object(body, &["mode"])?, &MODES[..3], words)?)
        }
        "tick" => Asked::SetTick(market, tick(&object(body, &["tick"])?)?),
        "resolve" => {
            let fields = object(body, &["payout", "redeem"])?;
            let text = fields.words("payout").unwrap_or_default();
            let payout = decimal::parse_millionths_float(text.as_bytes())
                .ok()
                .and_then(|zero| u32::try_from(zero).ok());
            let payout = payout.and_then(Payout::new);
            let payout = payout.ok_or_else(|| {
                wrong("payout", &text, "what a share of the first outcome pays, 0 to 1, up to 6 decimals")
            })?;
            Asked::Resolve { market, payout, redeem: flag(&fields, "redeem", false)? }
        }
        _ => return Err(no_route(path)),
    })
}

fn account_act(wallet: Address, act: &str, path: &str, body: &[u8]) -> Result<Asked, Refusal> {
    match act {
        "credit" => movement(Some(wallet), MoneyDirection::Credit, body),
        "debit" => movement(Some(wallet), MoneyDirection::Debit, body),
        "link" => {
            let owner = object(body, &["owner"])?.words("owner").unwrap_or_default();
            Ok(Asked::Link { wallet, owner: address("owner", &owner)? })
        }
        "freeze" => Ok(Asked::Freeze { wallet, frozen: flag(&object(body, &["frozen"])?, "frozen", true)? }),
        _ => Err(no_route(path)),
    }
}

fn movement(wallet: Option<Address>, direction: MoneyDirection, body: &[u8]) -> Result<Asked, Refusal> {
    let is_credit = direction == MoneyDirection::Credit;
    let fields = object(body, if is_credit { &["amount", "ref", "kind"] } else { &["amount", "ref"] })?;
    let digits = fields.words("amount").unwrap_or_default();
    let amount = decimal::parse_millionths_float(digits.as_bytes())
        .ok()
        .filter(|amount| (1..=ORDER_AMOUNT_MAX).contains(amount));
    let amount = amount
        .ok_or_else(|| wrong("amount", &digits, "0.000001 to 1000000000 USDC, at most six decimals"))?;
    let allowed = "a text of 1 to 64 bytes";
    let reference = text(&fields, "ref", allowed)?;
    if let Some(reference) = &reference
        && !(1..=REFERENCE_BYTES_MAX).contains(&reference.len())
    {
        return Err(wrong("ref", reference, allowed));
    }
    let kind = match fields.words("kind").as_deref() {
        None => None,
        Some("owner") => Some(WalletKind::Eoa),
        Some("deposit") => Some(WalletKind::Deposit),
        Some(other) => return Err(wrong("kind", other, "owner or deposit")),
    };
    Ok(Asked::Money(Movement { wallet, direction, amount: Collateral(amount), reference, kind }))
}

fn new_market(fields: &Fields<'_>) -> Result<Asked, Refusal> {
    let allowed = "a text of 1 to 1024 bytes that is not blank";
    let question = text(fields, "question", allowed)?.unwrap_or_default();
    if question.trim().is_empty() || QUESTION_BYTES_MAX < question.len() {
        return Err(wrong("question", &question, allowed));
    }
    let raw = fields.raw("outcomes").unwrap_or(r#"["Yes","No"]"#);
    let labels = texts(raw).and_then(|labels| <[String; 2]>::try_from(labels).ok());
    let fits = |label: &String| (1..=LABEL_BYTES_MAX).contains(&label.len());
    let labels = labels.filter(|labels| labels.iter().all(fits) && labels[0] != labels[1]);
    let labels = labels.ok_or_else(|| wrong("outcomes", raw, "two labels that differ, of 1 to 128 bytes"))?;
    let min_size = match fields.words("minSize") {
        None => None,
        Some(text) => {
            let size = decimal::parse_millionths_float(text.as_bytes())
                .ok()
                .filter(|size| *size <= ORDER_AMOUNT_MAX);
            Some(Shares(
                size.ok_or_else(|| wrong("minSize", &text, "0 to 1000000000 shares, at most six decimals"))?,
            ))
        }
    };
    let tick =
        if fields.raw("tick").is_some() { tick(fields)? } else { Tick::new(100).expect("0.01 is a tick") };
    let event = text(fields, "event", "an event's slug, a text")?;
    Ok(Asked::NewMarket(NewMarket { question, labels, tick, min_size, event }))
}

fn tick(fields: &Fields<'_>) -> Result<Tick, Refusal> {
    let text = fields.words("tick").unwrap_or_default();
    let tick = decimal::parse_tick(text.as_bytes()).ok();
    tick.ok_or_else(|| wrong("tick", &text, "0.1, 0.01, 0.005, 0.0025, 0.001 or 0.0001"))
}

/// The modes that can be set; the last one only for the whole exchange.
const MODES: [Mode; 4] = [Mode::Open, Mode::PostOnly, Mode::CancelOnly, Mode::Closed];

fn mode(fields: &Fields<'_>, modes: &[Mode], allowed: &'static str) -> Result<Mode, Refusal> {
    let text = fields.words("mode").unwrap_or_default();
    let mode = modes.iter().find(|mode| mode.text() == text);
    mode.copied().ok_or_else(|| wrong("mode", &text, allowed))
}

fn advance(fields: &Fields<'_>) -> Result<Asked, Refusal> {
    let text = fields.words("advance_ms").unwrap_or_default();
    let ms = text.parse().ok().filter(|ms: &i64| ms.unsigned_abs() <= ADVANCE_MS_MAX);
    ms.map(Asked::Advance)
        .ok_or_else(|| wrong("advance_ms", &text, "-31622400000 to 31622400000 milliseconds"))
}

fn flag(fields: &Fields<'_>, name: &'static str, default: bool) -> Result<bool, Refusal> {
    match fields.raw(name) {
        None => Ok(default),
        Some(raw) => fields.flag(name).ok_or_else(|| wrong(name, raw, "true or false")),
    }
}

/// A field that is a text, if it is there.
fn text(fields: &Fields<'_>, name: &'static str, allowed: &'static str) -> Result<Option<String>, Refusal> {
    match (fields.text(name), fields.raw(name)) {
        (None, Some(raw)) => Err(wrong(name, raw, allowed)),
        (text, _) => Ok(text),
    }
}

/// The body's fields; every one of them is known to the route, and said once.
fn object<'a>(body: &'a [u8], known: &[&'static str]) -> Result<Fields<'a>, Refusal> {
    let text =
        std::str::from_utf8(body).map_err(|_| wrong("body", "bytes that are not UTF-8", "a JSON object"))?;
    let text = if text.trim().is_empty() { "{}" } else { text };
    let fields = Fields::parse(text).ok_or_else(|| wrong("body", text, "a JSON object"))?;
    if let Some(name) = fields.names().find(|name| !known.contains(name)) {
        return Err(wrong("body", name, "only the fields that this route knows"));
    }
    if let Some(name) = Fields::said_twice(text) {
        return Err(wrong("body", &name, "each field once"));
    }
    Ok(fields)
}

/// A market by its id or condition.
pub(crate) fn market_name(text: &str) -> Result<MarketName, Refusal> {
    if let Some(condition) = parse_hex::<32>(text.as_bytes()) {
        return Ok(MarketName::Condition(ConditionId(condition)));
    }
    let id = decimal::parse_integer(text.as_bytes());
    id.map(MarketName::Id)
        .map_err(|_| wrong("market", text, "a market's id, or 0x and the 64 hex digits of its condition"))
}

/// An address, in lower or upper case or with the right checksum.
pub(super) fn address(field: &'static str, text: &str) -> Result<Address, Refusal> {
    let address = parse_hex::<20>(text.as_bytes()).map(Address);
    let address = address.ok_or_else(|| wrong(field, text, "0x and 40 hex digits"))?;
    let digits = &text.as_bytes()[2..];
    let has_both = digits.iter().any(u8::is_ascii_lowercase) && digits.iter().any(u8::is_ascii_uppercase);
    // Whoever slips in a copied address would move money to nobody.
    if has_both && *digits != checksummed(&address)[2..] {
        return Err(wrong(
            field,
            text,
            "an address whose capital letters are as in EIP-55, or all in one case",
        ));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALLET: &str = "/accounts/0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

    #[track_caller]
    fn post(path: &str, body: &str) -> Asked {
        read(Method::Post, path, body.as_bytes()).expect("understood")
    }

    fn read(method: Method, path: &str, body: &[u8]) -> Result<Asked, Refusal> {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        super::read(method, path, Query::new(query), body)
    }

    #[track_caller]
    fn refused(path: &str, body: &str) -> String {
        let refusal = read(Method::Post, path, body.as_bytes()).expect_err("refused");
        format!("{} {}: {}", refusal.status, refusal.field, refusal.got)
    }

    #[test]
    fn every_route_is_understood() {
        let condition = format!("/markets/0x{}", "1".repeat(64));
        assert_eq!(read(Method::Get, "/markets/", b""), Ok(Asked::Markets { after: None }));
        let after = Some(MarketName::Id(7));
        assert_eq!(read(Method::Get, "/markets?after=7", b""), Ok(Asked::Markets { after }));
        assert_eq!(read(Method::Get, "/markets/7", b""), Ok(Asked::Market(MarketName::Id(7))));
        assert_eq!(read(Method::Get, "/books", b""), Ok(Asked::Books));
        assert_eq!(read(Method::Get, "/books/7", b""), Ok(Asked::Book(MarketName::Id(7))));
        let market = MarketName::Condition(ConditionId([0x11; 32]));
        assert_eq!(post(&format!("{condition}/pause"), ""), Asked::SetMarketMode(market, Mode::CancelOnly));
        assert_eq!(post(&format!("{condition}/resume"), "{}"), Asked::SetMarketMode(market, Mode::Open));
        let half = Payout::new(500_000).expect("half");
        let resolve = Asked::Resolve { market, payout: half, redeem: true };
        assert_eq!(post(&format!("{condition}/resolve"), r#"{"payout":0.5,"redeem":true}"#), resolve);
        assert_eq!(
            post("/markets/7/tick", r#"{"tick":"0.001"}"#),
            Asked::SetTick(MarketName::Id(7), Tick::new(10).expect("a tick"))
        );
        assert_eq!(post("/mode", r#"{"mode":"cancel-only"}"#), Asked::SetMode(Mode::CancelOnly));
        assert_eq!(post("/snapshot", "{}"), Asked::Snapshot);
        assert_eq!(post("/clock", r#"{"advance_ms":1000}"#), Asked::Advance(1_000));
        assert_eq!(post("/clock", r#"{"advance_ms":-31622400000}"#), Asked::Advance(-31_622_400_000));
        let Asked::Money(movement) = post(&format!("{WALLET}/credit"), r#"{"amount":"100.5","ref":"a"}"#)
        else {
            panic!("money");
        };
        assert_eq!((movement.amount, movement.reference.as_deref()), (Collateral(100_500_000), Some("a")));
        for (amount, millionths) in [("1e-05", 10), ("2.5E+3", 2_500_000_000), ("100.0000000", 100_000_000)] {
            let Asked::Money(movement) =
                post(&format!("{WALLET}/debit"), &format!(r#"{{"amount":{amount}}}"#))
            else {
                panic!("money");
            };
            assert_eq!(movement.amount, Collateral(millionths), "{amount}");
            assert!(movement.wallet.is_some());
        }
        let Asked::Money(movement) = post("/accounts/fees/debit", r#"{"amount":"1"}"#) else {
            panic!("money");
        };
        assert_eq!((movement.wallet, movement.direction), (None, MoneyDirection::Debit));
        let Asked::NewMarket(market) = post("/markets", r#"{"question":"Rain?","outcomes":["Wet","Dry"]}"#)
        else {
            panic!("a market");
        };
        assert_eq!(
            (market.labels[1].as_str(), market.min_size, market.tick.ten_thousandths()),
            ("Dry", None, 100)
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_what_it_got() {
        let bytes = read(Method::Post, "/mode", b"{\"mode\":\"\xff\"}").expect_err("refused");
        assert_eq!(bytes.to_string(), "body: got bytes that are not UTF-8; allowed: a JSON object");
        for (path, body, said) in [
            ("/nowhere", "", "404 path: /nowhere"),
            ("/markets/7/explode", "", "404 path: /markets/7/explode"),
            ("/markets/x/pause", "", "400 market: x"),
            ("/markets/7/pause", r#"{"why":1}"#, "400 body: why"),
            ("/markets/7/resolve", r#"{"payout":"1.5"}"#, "400 payout: 1.5"),
            ("/markets/7/resolve", "{}", "400 payout: "),
            ("/markets/7/tick", r#"{"tick":0.02}"#, "400 tick: 0.02"),
            ("/markets", "{}", "400 question: "),
            ("/markets", r#"{"question":" \t\u3000"}"#, "400 question:  \t\u{3000}"),
            ("/markets", r#"{"question":"?","outcomes":["a"]}"#, r#"400 outcomes: ["a"]"#),
            ("/markets", r#"{"question":"?","outcomes":["a","a"]}"#, r#"400 outcomes: ["a","a"]"#),
            ("/mode", r#"{"mode":"off"}"#, "400 mode: off"),
            ("/mode", r#"{"mode":"resolved"}"#, "400 mode: resolved"),
            ("/mode", "[", "400 body: ["),
            ("/mode", r#"{"mode":5}"#, "400 mode: 5"),
            ("/mode", r#"{"mode":"open","mode":"closed"}"#, "400 body: mode"),
            ("/mode", r#"{"mode":"open","\u006dode":"open"}"#, "400 body: mode"),
            ("/markets", r#"{"question":"\ud800"}"#, r#"400 question: "\ud800""#),
            ("/markets", r#"{"question":7}"#, "400 question: 7"),
            ("/markets", r#"{"question":"?","event":7}"#, "400 event: 7"),
            ("/clock", r#"{"advance_ms":31622400001}"#, "400 advance_ms: 31622400001"),
            ("/clock", r#"{"advance_ms":-31622400001}"#, "400 advance_ms: -31622400001"),
            ("/accounts/0x12/freeze", "", "400 wallet: 0x12"),
            ("/accounts/fees/freeze", "", "400 wallet: fees"),
            ("/accounts/fees/credit", r#"{"amount":"1"}"#, "400 wallet: fees"),
            (
                "/accounts/0xF39Fd6e51aad88F6F4ce6aB8827279cffFb92266/freeze",
                "",
                "400 wallet: 0xF39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
            ),
        ] {
            assert_eq!(refused(path, body), said, "{path} {body}");
        }
        assert_eq!(refused(&format!("{WALLET}/credit"), r#"{"amount":1,"kind":"safe"}"#), "400 kind: safe");
        assert_eq!(refused(&format!("{WALLET}/link"), r#"{"owner":[1]}"#), "400 owner: [1]");
        for (body, said) in [
            (r#"{"amount":1,"kind":"deposit"}"#, "400 body: kind"),
            (r#"{"amount":0}"#, "400 amount: 0"),
            (r#"{"amount":"0.0000001"}"#, "400 amount: 0.0000001"),
            (r#"{"amount":15e-7}"#, "400 amount: 15e-7"),
            (r#"{"amount":1,"ref":""}"#, "400 ref: "),
            (r#"{"amount":1,"ref":7}"#, "400 ref: 7"),
            (r#"{"amount":1,"reference":"a"}"#, "400 body: reference"),
        ] {
            assert_eq!(refused(&format!("{WALLET}/debit"), body), said, "{body}");
        }
    }

    #[test]
    fn texts_and_amounts_are_taken_up_to_their_limits() {
        let (credit, long) = (format!("{WALLET}/credit"), "x".repeat(129));
        let reference = |bytes| format!(r#"{{"amount":1,"ref":"{}"}}"#, &long[..bytes]);
        let labels = |bytes| format!(r#"{{"question":"?","outcomes":["{}","b"]}}"#, &long[..bytes]);
        let amount = |amount| format!(r#"{{"amount":{amount}}}"#);
        let min_size = |size| format!(r#"{{"question":"?","minSize":{size}}}"#);
        for (path, field, most, more) in [
            (&*credit, "ref", reference(64), reference(65)),
            (&credit, "amount", amount("1000000000"), amount("1000000000.000001")),
            ("/markets", "outcomes", labels(128), labels(129)),
            ("/markets", "minSize", min_size("1000000000"), min_size("1000000000.000001")),
        ] {
            post(path, &most);
            let said = refused(path, &more);
            assert!(said.starts_with(&format!("400 {field}: ")), "{said}");
        }
    }

    #[test]
    fn a_refusal_says_what_it_got_and_what_is_allowed() {
        let text = String::from_utf8(wrong("tick", "0.02\"", "0.01").said().body).expect("text");
        assert_eq!(
            text,
            r#"{"error":"tick: got 0.02\"; allowed: 0.01","code":"invalid_field","field":"tick","got":"0.02\"","allowed":"0.01"}"#
        );
    }
}
