//! What a request asks, and what is wrong with it: field, value and rule.

use super::{Caller, ReadRequest, Reader, Token};
use crate::domain::text::{parse_hex, parse_uuid};
use crate::domain::time::MILLISECONDS_FROM;
use crate::domain::{Address, ApiKey, ConditionId, MarketNo, OrderId, Reject, Side, TimeMs, TokenId};
use crate::http::respond::retry_after_s;
use crate::http::{Endpoint, query};
use crate::journal::Fault;
use crate::json::read::{ReadError, TokenAsk, misspelt};
use crate::json::{BodyReader, ShortText, Writer, decimal};
use serde_json::{Map, Value};
use std::borrow::Cow;

pub(super) const TOKEN_RULE: &str = "a token id in decimal";
/// What conditions, orders and other words of 32 bytes are.
pub(super) const WORD_RULE: &str = "0x and 64 hex digits";
/// What names a market of this exchange, and what a token of one.
const CONDITION_HERE: &str = "the condition of a market that is here";
const TOKEN_HERE: &str = "a token of a market that is here";
pub(super) const ADDRESS_RULE: &str = "0x and 40 hex digits";
const KEY_RULE: &str = "a UUID";

/// How the body of a refusal begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// With its error.
    Plain,
    /// With the type of a catalog request that cannot be understood.
    BadRequest,
    /// With the type of something that is not in the catalog.
    NotFound,
}

/// Why a request is not answered.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub(super) status: u16,
    form: Form,
    pub(super) code: &'static str,
    error: Cow<'static, str>,
    about: Option<Box<About>>,
    /// What of the server's own state could not be read; the request cannot change that.
    pub(super) unreadable: Option<Box<str>>,
}

/// The field at fault, its value and the rule.
#[derive(Clone, Debug)]
struct About {
    field: Cow<'static, str>,
    got: ShortText,
    allowed: Cow<'static, str>,
}

/// A damaged row of the history on the disk. Its place is for the operator's log, not for clients.
impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        let refused = Self::new(500, "history_unreadable", "part of the history cannot be read");
        Self { unreadable: Some(fault.to_string().into()), ..refused }
    }
}

impl Refused {
    /// A refusal that is not about one field.
    pub(super) const fn new(status: u16, code: &'static str, error: &'static str) -> Self {
        Self::of_form(Form::Plain, status, code, error)
    }

    /// A refusal in the form of the wallet routes, whose error text holds its code and its detail.
    pub(super) fn wallet(code: &'static str, detail: &str) -> Self {
        Self { error: format!("{code}: {detail}").into(), ..Self::new(400, code, "") }
    }

    /// A catalog request that cannot be understood; without an error text the field is named instead.
    pub(super) const fn bad_request(code: &'static str, error: &'static str) -> Self {
        Self::of_form(Form::BadRequest, 400, code, error)
    }

    /// Something that is not in the catalog: `id not found`, `slug not found`.
    pub(super) const fn not_found(error: &'static str) -> Self {
        Self::of_form(Form::NotFound, 404, "not_found", error)
    }

    const fn of_form(form: Form, status: u16, code: &'static str, error: &'static str) -> Self {
        Self { status, form, code, error: Cow::Borrowed(error), about: None, unreadable: None }
    }

    /// Names the field at fault, its value and the rule.
    pub(super) fn about(
        self,
        field: impl Into<Cow<'static, str>>,
        got: &str,
        allowed: impl Into<Cow<'static, str>>,
    ) -> Self {
        let about = About { field: field.into(), got: ShortText::new(got), allowed: allowed.into() };
        Self { about: Some(Box::new(about)), ..self }
    }

    /// Writes the body of the refusal.
    pub(super) fn write(&self, json: &mut Writer<'_>) {
        json.open_object();
        match self.form {
            Form::Plain => {}
            Form::BadRequest => {
                json.key("type").text("bad request");
            }
            Form::NotFound => {
                json.key("type").text("not found error");
            }
        }
        json.key("error");
        if self.error.is_empty() {
            json.text(&format!("{} is invalid", self.about.as_ref().map_or("", |about| &about.field)));
        } else {
            json.text(&self.error);
        }
        json.key("code").text(self.code);
        if let Some(about) = &self.about {
            json.key("field").text(&about.field).key("got").text(about.got.as_str());
            json.key("allowed").text(&about.allowed);
        }
        if let Some(seconds) = retry_after_s(self.status) {
            json.key("retry_after_seconds").number(seconds.into());
        }
        json.close_object();
    }

    /// Writes the body to the end of `out` and returns the status.
    pub(super) fn tell(&self, out: &mut Vec<u8>) -> u16 {
        self.write(&mut Writer::new(out));
        self.status
    }

    const fn of(reject: Reject) -> Self {
        let wire = reject.wire();
        Self::new(wire.status, wire.code, wire.error)
    }

    fn body(error: &ReadError) -> Self {
        let refused = match error.reject {
            Reject::TooManyOrders => too_long(),
            Reject::OrderIdInvalid => Self::of(Reject::OrderIdInvalid),
            _ => invalid(),
        };
        let field = if error.field.is_empty() { "body" } else { error.field };
        refused.about(field, error.got.as_str(), error.allowed)
    }
}

/// Refuses an object that has one of `names` in another spelling.
pub(super) fn refuse_misspelt(
    object: &Map<String, Value>,
    names: &[&'static str],
    refused: impl Fn() -> Refused,
) -> Result<(), Refused> {
    let mut others = object.keys().filter(|name| !names.contains(&name.as_str()));
    match others.find_map(|name| Some((name, misspelt(name, names)?))) {
        Some((name, meant)) => Err(refused().about(meant, name, meant)),
        None => Ok(()),
    }
}

/// A field that has several spellings, of which an object may have one, and its name there; `null` counts as absent.
pub(super) fn spelt<'a>(
    object: &'a Value,
    names: &[&'static str],
) -> Result<Option<(&'static str, &'a Value)>, Refused> {
    let mut said =
        names.iter().filter_map(|&name| Some((name, object.get(name).filter(|value| !value.is_null())?)));
    let first = said.next();
    match said.next() {
        Some((name, value)) => {
            Err(invalid().about(name, &value.to_string(), format!("one of {}", names.join(", "))))
        }
        None => Ok(first),
    }
}

/// The refusal of a body.
pub(super) const fn invalid() -> Refused {
    Refused::new(400, "invalid_payload", "Invalid payload")
}

/// More is asked for than one answer holds.
pub(super) const fn too_long() -> Refused {
    Refused::new(400, "payload_exceeds_limit", "Payload exceeds the limit")
}

/// The reader has not applied yet what some client was told.
pub(super) const BEHIND: Refused = Refused::new(503, "behind", "the read model is behind, try again");

/// Writes the refusal of a request that waited for a record which the reader has not applied yet; returns its status.
pub fn write_behind(out: &mut Vec<u8>) -> u16 {
    BEHIND.tell(out)
}

/// A route that this room does not answer, or that does not exist.
pub(super) const fn no_route() -> Refused {
    Refused::new(404, "not_found", "not found")
}

/// The token has no book here, as it is unknown or its market is closed.
pub(super) const fn no_book() -> Refused {
    Refused::new(404, "orderbook_unknown", "No orderbook exists for the requested token id")
}

/// The market is unknown here.
pub(super) const fn no_market() -> Refused {
    Refused::new(404, "market_unknown", "market not found")
}

/// The lists of a body, in buffers that are reused.
#[derive(Default)]
pub(super) struct Lists {
    body: Vec<u8>,
    tokens: Vec<TokenAsk>,
    orders: Vec<OrderId>,
}

impl Lists {
    /// The lists of a request that has none.
    const fn empty() -> Self {
        Self { body: Vec::new(), tokens: Vec::new(), orders: Vec::new() }
    }

    /// Reads the list that the request's endpoint takes, if it takes one.
    pub(super) fn read(&mut self, request: &ReadRequest<'_>, reader: &mut BodyReader) -> Result<(), Refused> {
        use Endpoint as E;
        // The parser rewrites its input, and the request's bytes belong to the caller.
        self.body.clear();
        self.body.extend_from_slice(request.body);
        match request.endpoint {
            E::Books
            | E::Prices
            | E::Midpoints
            | E::Spreads
            | E::LastTradesPrices
            | E::LastTradesPricesByGet => reader.tokens(&mut self.body, &mut self.tokens),
            E::OrdersById => reader.order_ids(&mut self.body, &mut self.orders),
            E::OrdersScoring => reader.cancels(&mut self.body, &mut self.orders),
            _ => Ok(()),
        }
        .map_err(|error| Refused::body(&error))
    }
}

impl std::fmt::Debug for Lists {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Lists({} tokens, {} orders)", self.tokens.len(), self.orders.len())
    }
}

/// A request whose body has been read.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) request: &'a ReadRequest<'a>,
    lists: &'a Lists,
}

impl<'a> Asked<'a> {
    pub(super) const fn new(request: &'a ReadRequest<'a>, lists: &'a Lists) -> Self {
        Self { request, lists }
    }

    pub(super) const fn endpoint(&self) -> Endpoint {
        self.request.endpoint
    }

    /// The first pair of the query whose name is not one of `names`, its value undecoded.
    fn pair_but(&self, names: &[&str]) -> Option<(Cow<'a, str>, &'a str)> {
        let mut pairs = self.request.query.pairs();
        pairs.find(|(name, _)| !names.contains(&&**name)).map(|(name, value)| (name, value.raw()))
    }

    /// The body as an object that has none of `names` in another spelling.
    pub(super) fn object(&self, names: &[&'static str]) -> Result<Value, Refused> {
        let body: Value =
            serde_json::from_slice(self.request.body).map_err(|_| invalid().about("body", "", "JSON"))?;
        let Some(object) = body.as_object() else {
            return Err(invalid().about("body", &body.to_string(), "an object"));
        };
        refuse_misspelt(object, names, invalid)?;
        Ok(body)
    }

    pub(super) const fn now(&self) -> TimeMs {
        self.request.now
    }

    /// The tokens of the body.
    pub(super) fn tokens(&self) -> &'a [TokenAsk] {
        &self.lists.tokens
    }

    /// The order ids of the body.
    pub(super) fn order_ids(&self) -> &'a [OrderId] {
        &self.lists.orders
    }

    /// Who asks; a route of an account refuses a request without a caller.
    pub(super) fn caller(&self) -> Result<Caller, Refused> {
        self.request.caller.ok_or(Refused::of(Reject::Unauthorized))
    }

    /// The text of a parameter; absent and empty are the same.
    pub(super) fn text(&self, name: &'static str) -> Result<Option<String>, Refused> {
        let Some(value) = self.request.query.first(name) else {
            return Ok(None);
        };
        let mut scratch = Vec::new();
        match value.text(&mut scratch) {
            Ok("") => Ok(None),
            Ok(text) => Ok(Some(text.to_owned())),
            Err(query::BadEscape) => Err(bad_parameter().about(name, value.raw(), "percent-encoded UTF-8")),
        }
    }

    /// A parameter as `read` parses it; `rule` goes into the refusal.
    fn parsed<T>(
        &self,
        name: &'static str,
        refused: Refused,
        rule: &'static str,
        read: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, Refused> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        read(text.as_bytes()).map(Some).ok_or(refused.about(name, &text, rule))
    }

    /// A token that must be named: absent is 400. As at the venues, a malformed one is refused like one that is not
    /// known, with `unknown`.
    pub(super) fn token(&self, name: &'static str, unknown: Refused) -> Result<TokenId, Refused> {
        let absent = Refused::new(400, "invalid_token_id", "Invalid token id");
        let text = self.text(name)?.ok_or(absent.about(name, "", TOKEN_RULE))?;
        token_id(text.as_bytes()).ok_or_else(|| unknown.about(name, &text, TOKEN_RULE))
    }

    /// A refusal of what a parameter says, which repeats it.
    fn refused_by(&self, refused: Refused, name: &'static str, allowed: &'static str) -> Refused {
        let text = self.text(name).ok().flatten().unwrap_or_default();
        refused.about(name, &text, allowed)
    }

    /// The token in the path.
    fn captured_token(&self) -> Result<TokenId, Refused> {
        let text = self.captured()?;
        token_id(text.as_bytes()).ok_or(no_market().about("token_id", &text, TOKEN_RULE))
    }

    /// The condition in the path.
    pub(super) fn captured_condition(&self) -> Result<ConditionId, Refused> {
        let text = self.captured()?;
        let refused = Refused::new(400, "invalid_market", "Invalid market");
        condition_id(text.as_bytes()).ok_or(refused.about("condition_id", &text, WORD_RULE))
    }

    /// The order in the path.
    pub(super) fn captured_order(&self) -> Result<OrderId, Refused> {
        let text = self.captured()?;
        let refused = Refused::of(Reject::OrderIdInvalid);
        order_id(text.as_bytes()).ok_or(refused.about("id", &text, WORD_RULE))
    }

    pub(super) fn captured(&self) -> Result<String, Refused> {
        let mut scratch = Vec::new();
        let text = query::segment_text(self.request.capture, &mut scratch);
        let refused = || bad_parameter().about("path", self.request.capture, "percent-encoded UTF-8");
        text.map(str::to_owned).map_err(|_| refused())
    }

    /// A side that must be named, in either case.
    pub(super) fn side(&self) -> Result<Side, Refused> {
        const RULE: &str = "BUY or SELL";
        let refused = Refused::new(400, "invalid_side", "Invalid side");
        let side = self.parsed("side", refused.clone(), RULE, |text| {
            let is = |side: &Side| text.eq_ignore_ascii_case(side.text().as_bytes());
            [Side::Buy, Side::Sell].into_iter().find(is)
        })?;
        side.ok_or(refused.about("side", "", RULE))
    }

    /// A token to filter by.
    pub(super) fn token_filter(
        &self,
        name: &'static str,
        refused: Refused,
    ) -> Result<Option<TokenId>, Refused> {
        self.parsed(name, refused, TOKEN_RULE, token_id)
    }

    /// A condition to filter by.
    pub(super) fn condition_filter(&self, refused: Refused) -> Result<Option<ConditionId>, Refused> {
        self.parsed("market", refused, WORD_RULE, condition_id)
    }

    /// An order to filter by.
    pub(super) fn order_filter(
        &self,
        name: &'static str,
        refused: Refused,
    ) -> Result<Option<OrderId>, Refused> {
        self.parsed(name, refused, WORD_RULE, order_id)
    }

    /// A trade id to filter by.
    pub(super) fn uuid_filter(&self, refused: Refused) -> Result<Option<ApiKey>, Refused> {
        self.parsed("id", refused, KEY_RULE, parse_uuid)
    }

    /// An address to filter by.
    pub(super) fn address_filter(
        &self,
        name: &'static str,
        refused: Refused,
    ) -> Result<Option<[u8; 20]>, Refused> {
        self.parsed(name, refused, ADDRESS_RULE, parse_hex)
    }

    /// A whole number.
    pub(super) fn integer(&self, name: &'static str, refused: Refused) -> Result<Option<u64>, Refused> {
        self.parsed(name, refused, "a whole number", |text| decimal::parse_integer(text).ok())
    }

    /// A time since 1970 in seconds, or in milliseconds if it is that large.
    pub(super) fn time(&self, name: &'static str, refused: Refused) -> Result<Option<TimeMs>, Refused> {
        let number = self.integer(name, refused)?;
        Ok(number.map(time_of))
    }

    /// The last millisecond of a time in seconds: only what is after the whole second is after it.
    pub(super) fn end_of_time(
        &self,
        name: &'static str,
        refused: Refused,
    ) -> Result<Option<TimeMs>, Refused> {
        let number = self.integer(name, refused)?;
        let rest_ms = |number| if number < MILLISECONDS_FROM { 999 } else { 0 };
        Ok(number.map(|number| time_of(number).plus_ms(rest_ms(number))))
    }
}

/// The time that a number means: seconds, or milliseconds if it is that large.
pub(super) const fn time_of(number: u64) -> TimeMs {
    if number < MILLISECONDS_FROM { TimeMs::from_seconds(number) } else { TimeMs(number) }
}

/// What a list is narrowed to by a name that may be unknown here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Narrowed<T> {
    /// Nothing was named.
    No,
    /// To what belongs to this value.
    To(T),
    /// To nothing: the name is unknown.
    ToNothing,
}

impl<T: PartialEq> Narrowed<T> {
    /// Looks up what was named, if anything was.
    pub(super) fn by<N>(named: Option<N>, look_up: impl FnOnce(&N) -> Option<T>) -> Self {
        named.map_or(Self::No, |named| look_up(&named).map_or(Self::ToNothing, Self::To))
    }

    /// True if what belongs to `value` is listed.
    pub(super) fn passes(&self, value: &T) -> bool {
        match self {
            Self::No => true,
            Self::To(only) => only == value,
            Self::ToNothing => false,
        }
    }
}

/// A parameter that has no refusal of its own.
pub(super) const fn bad_parameter() -> Refused {
    Refused::new(400, "invalid_parameter", "Invalid parameter")
}

/// Reads a token id.
pub(super) fn token_id(text: &[u8]) -> Option<TokenId> {
    decimal::parse_uint256(text).ok().map(TokenId)
}

/// Reads a condition id.
pub(super) fn condition_id(text: &[u8]) -> Option<ConditionId> {
    parse_hex(text).map(ConditionId)
}

fn order_id(text: &[u8]) -> Option<OrderId> {
    parse_hex(text).map(OrderId)
}

/// Reads the query of GET /auth/validate-readonly-api-key: whose key, and which. Writes a refusal to
/// the end of `out` and returns its HTTP status.
pub fn read_shown_key(request: &ReadRequest<'_>, out: &mut Vec<u8>) -> Result<(Address, ApiKey), u16> {
    let asked = Asked::new(request, const { &Lists::empty() });
    let shown = || {
        let key = asked.parsed("key", bad_parameter(), KEY_RULE, parse_uuid)?;
        let address = asked.address_filter("address", bad_parameter())?;
        let address = address.ok_or(bad_parameter().about("address", "", ADDRESS_RULE))?;
        Ok((Address(address), key.ok_or(bad_parameter().about("key", "", KEY_RULE))?))
    };
    shown().map_err(|refused: Refused| refused.tell(out))
}

/// Reads the query of DELETE /auth/api-key: the key that is meant, or nothing for the caller's own, for which no parameter
/// may stand there at all. A refusal is as of [`read_shown_key`].
pub fn read_revoked_key(request: &ReadRequest<'_>, out: &mut Vec<u8>) -> Result<Option<ApiKey>, u16> {
    let asked = Asked::new(request, const { &Lists::empty() });
    let meant = || {
        if let Some((unknown, value)) = asked.pair_but(&["apiKey"]) {
            return Err(bad_parameter().about(unknown.into_owned(), value, "apiKey, or no parameter"));
        }
        let key = asked.parsed("apiKey", bad_parameter(), KEY_RULE, parse_uuid)?;
        match key {
            None if asked.pair_but(&[]).is_some() => Err(bad_parameter().about("apiKey", "", KEY_RULE)),
            key => Ok(key),
        }
    };
    meant().map_err(|refused: Refused| refused.tell(out))
}

impl Reader {
    /// Reads the body of DELETE /auth/readonly-api-key; a refusal is as of [`read_shown_key`].
    pub fn read_key(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<ApiKey, u16> {
        let key = self.bodies.key(&mut body.to_vec());
        key.map_err(|error| Refused::body(&error).tell(out))
    }

    /// The market and outcome of the token that a parameter names; one that is not known is refused with `unknown`.
    pub(super) fn token_of(
        &self,
        asked: &Asked<'_>,
        name: &'static str,
        unknown: Refused,
    ) -> Result<Token, Refused> {
        let id = asked.token(name, unknown.clone())?;
        self.index.token(&id).ok_or_else(|| asked.refused_by(unknown, name, TOKEN_HERE))
    }

    /// The market and outcome of the token in the path.
    pub(super) fn token_of_path(&self, asked: &Asked<'_>) -> Result<Token, Refused> {
        let token = self.index.token(&asked.captured_token()?);
        token.ok_or_else(|| no_market().about("token_id", asked.request.capture, TOKEN_HERE))
    }

    /// The market of the condition in the path.
    pub(super) fn market_of_path(&self, asked: &Asked<'_>) -> Result<MarketNo, Refused> {
        let market = self.index.condition(&asked.captured_condition()?);
        market.ok_or_else(|| no_market().about("condition_id", asked.request.capture, CONDITION_HERE))
    }

    /// The market and outcome of the token that `token_id` names, if it has a book.
    pub(super) fn token_with_book(&self, asked: &Asked<'_>) -> Result<Token, Refused> {
        const NAME: &str = "token_id";
        let id = asked.token(NAME, no_book())?;
        self.book_of(&id).ok_or_else(|| asked.refused_by(no_book(), NAME, "a token of an open market"))
    }
}
