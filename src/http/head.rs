//! The head of a request: request line and headers, over bytes that may not all have arrived.
//!
//! [`parse`] walks the lines once, judges every byte and keeps the few headers that somebody needs.
//! Whatever two servers might read differently is refused, because behind a proxy that is how one
//! client's request is smuggled into another's:
//!
//! | form | answer |
//! |---|---|
//! | two `Content-Length`, even if equal; a list, sign, blank or letter in one | 400 |
//! | `Content-Length` together with `Transfer-Encoding` | 400 |
//! | a transfer coding other than `chunked`; `chunked` in HTTP/1.0 | 400 |
//! | CR without LF, LF without CR, any other control byte | 400 |
//! | a blank before the colon, a line that continues the one above | 400 |
//! | no `Host` in HTTP/1.1, two of them, one that is no host | 400 |
//! | a target that is not `/path?query` in visible ASCII (absolute form, `*`, a fragment) | 400 |
//! | a second copy of any header that we read, except lists and `Access-Control-Request-Method` | 400 |
//!
//! A compressed body is refused with 415, as it would be read as what it is not. Other words in `Content-Encoding` are
//! passed over: some clients name their charset there.
//!
//! One empty line before the request line is skipped, as RFC 9112 asks.

use super::auth_headers::{self, AuthHeaders};
use super::scan::first_control;
use super::upgrade::{NoUpgrade, Upgrade};
use crate::domain::Dialect;

/// The size limits of a request, each inclusive, with the status of a request above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the request line without its CR LF: 414. Long enough for a hundred condition ids.
    pub line_bytes: usize,
    /// Bytes of the whole head with its empty line: 431.
    pub head_bytes: usize,
    /// Header lines: 431.
    pub headers: usize,
    /// Bytes of the (decoded) body: 413.
    pub body_bytes: usize,
}

impl Limits {
    /// What the server holds every request to.
    pub const SERVED: Self =
        Self { line_bytes: 12 * 1024, head_bytes: 16 * 1024, headers: 64, body_bytes: 1024 * 1024 };
}

/// What the client wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `GET`.
    Get,
    /// `HEAD`: answered as `GET`, without the body.
    Head,
    /// `POST`.
    Post,
    /// `DELETE`.
    Delete,
    /// `OPTIONS`: asked by browsers, before a page of another origin may ask. No route takes it.
    Options,
    /// Any other; no route takes one.
    Other,
}

impl Method {
    /// The method of this name; `None` if it is no token.
    fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"GET" => Some(Self::Get),
            b"HEAD" => Some(Self::Head),
            b"POST" => Some(Self::Post),
            b"DELETE" => Some(Self::Delete),
            b"OPTIONS" => Some(Self::Options),
            [_, ..] if name.iter().all(|&byte| is_token(byte)) => Some(Self::Other),
            _ => None,
        }
    }

    /// The method's name in a request line; empty for [`Method::Other`].
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
            Self::Other => "",
        }
    }

    /// The method as which it is answered: `HEAD` as `GET`.
    #[must_use]
    pub const fn answered_as(self) -> Self {
        match self {
            Self::Head => Self::Get,
            other => other,
        }
    }
}

/// Where the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// After this many bytes; 0 also for a request that says nothing about a body.
    Length(usize),
    /// Where the chunks say: see [`super::body::Chunked`].
    Chunked,
}

/// Lines of `X-Forwarded-For` that are kept, the last ones: as many proxies may add a line of their own.
const FORWARDED_LINES: usize = 4;

/// A request's head. Texts are visible ASCII with blanks, borrowed from the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// What the client wants done.
    pub method: Method,
    /// The path as sent, percent-encoding and all: it is what the client signed.
    pub path: &'a str,
    /// What follows the `?`, as sent; `None` without one.
    pub query: Option<&'a str>,
    /// Where the body ends.
    pub body: BodyFraming,
    /// True if the connection stays open after the answer.
    pub keep_alive: bool,
    /// True if the client waits for `100 Continue` before it sends the body.
    pub expect_continue: bool,
    /// `Host`.
    pub host: Option<&'a str>,
    /// `Content-Type`.
    pub content_type: Option<&'a str>,
    /// `Origin`.
    pub origin: Option<&'a str>,
    /// `Access-Control-Request-Method`: what a page wants to send, for which its browser asks first.
    pub wanted_method: Option<Method>,
    /// `Sec-Fetch-Site`.
    pub sec_fetch_site: Option<&'a str>,
    /// `Authorization`.
    pub authorization: Option<&'a str>,
    /// `X-Outcry-Deadline`.
    pub deadline: Option<&'a str>,
    /// `X-Outcry-Cancel-On-Disconnect`.
    pub cancel_on_disconnect: Option<&'a str>,
    /// The last lines of `X-Forwarded-For`, in their order: one list, to which each proxy has added a word or a line.
    pub forwarded_for: [Option<&'a str>; FORWARDED_LINES],
    /// `X-Chain-Id`.
    pub chain_id: Option<&'a str>,
    /// `Sec-WebSocket-Key` of a request that asks for a WebSocket as RFC 6455, section 4.2.1
    /// requires: a GET of HTTP/1.1 with `Upgrade: websocket`, `Connection: Upgrade` and version 13.
    pub websocket_key: Option<&'a str>,
    /// The first other condition of these that the request does not keep, as of one that wants no WebSocket.
    pub no_upgrade: Option<NoUpgrade<'a>>,
    /// The credential headers, if there are any.
    pub auth: Option<AuthHeaders<'a>>,
    /// The length of the head in bytes: where the body begins.
    pub bytes: usize,
}

impl Head<'_> {
    /// Whose credential headers it has; without any, it asks as the contract does.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.auth.as_ref().map_or(Dialect::Service, |headers| headers.dialect)
    }
}

macro_rules! bad_requests {
    ($( $(#[doc = $doc:literal])* $variant:ident = $status:literal, $text:literal; )*) => {
        /// Why bytes are not a request. The answer is sent and the connection closes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum BadRequest { $( $(#[doc = $doc])* $variant, )* }

        impl BadRequest {
            /// Every reason.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )* ];

            /// The status and the `error` text.
            #[must_use]
            pub const fn wire(self) -> (u16, &'static str) {
                match self { $( Self::$variant => ($status, $text), )* }
            }

            /// What it means: the doc comment of the variant.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $( Self::$variant => concat!($($doc),*).trim_ascii(), )* }
            }
        }
    };
}

bad_requests! {
    /// The request line is longer than the limit.
    LineTooLong = 414, "request line is longer than 12288 bytes";
    /// The request line is not `METHOD /target HTTP/1.1`.
    LineMalformed = 400, "request line is malformed";
    /// The version is neither HTTP/1.1 nor HTTP/1.0.
    VersionUnsupported = 505, "only HTTP/1.1 and HTTP/1.0 are spoken here";
    /// The target is not `/path?query`.
    TargetMalformed = 400, "request target is malformed";
    /// The head is longer than the limit.
    HeadTooLong = 431, "request head is longer than 16384 bytes";
    /// There are more header lines than the limit.
    TooManyHeaders = 431, "more than 64 request headers";
    /// A header line is not `name: value`.
    HeaderMalformed = 400, "request header is malformed";
    /// A header line begins with a blank.
    HeaderFolded = 400, "folded request headers are refused";
    /// A header that is allowed once is sent twice.
    HeaderTwice = 400, "a request header stands twice";
    /// A CR without its LF.
    BareCr = 400, "CR without LF in the request head";
    /// A LF without its CR.
    BareLf = 400, "LF without CR in the request head";
    /// Another control byte.
    ControlByte = 400, "control byte in the request head";
    /// `Host` is missing, or not a host.
    HostMalformed = 400, "Host header is missing or malformed";
    /// `Content-Length` is not a plain number.
    LengthMalformed = 400, "Content-Length is malformed";
    /// The body's end is given twice.
    LengthConflict = 400, "Content-Length and Transfer-Encoding exclude each other";
    /// The transfer coding is not `chunked`.
    CodingUnknown = 400, "only the transfer coding chunked is understood";
    /// The chunks of the body are malformed.
    ChunkMalformed = 400, "chunked body is malformed";
    /// The body is longer than the limit.
    BodyTooLong = 413, "request body is longer than 1048576 bytes";
    /// The body is compressed.
    BodyCompressed = 415, "compressed request bodies are not understood";
    /// `Expect` is not `100-continue`.
    ExpectationUnknown = 417, "only the expectation 100-continue is understood";
    /// Credential headers of two families.
    FamiliesMixed = 400, "credential headers of two families in one request";
}

/// Reads the head at the front of `bytes`.
///
/// `Ok(None)`: the head is not whole yet; nothing is consumed, read more and ask again. Each call walks from the front,
/// at most [`Limits::head_bytes`] of it.
pub fn parse<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Option<Head<'a>>, BadRequest> {
    let window = &bytes[..bytes.len().min(limits.head_bytes)];
    match parse_window(window, limits)? {
        None if bytes.len() >= limits.head_bytes => Err(BadRequest::HeadTooLong),
        outcome => Ok(outcome),
    }
}

/// The name of the first header, of bytes that are no request, that makes them none; the whole line if it has no colon.
#[must_use]
pub fn header_at_fault(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = bytes.strip_prefix(b"\r\n").unwrap_or(bytes);
    let (mut head, _) = read_request_line(next_line(&mut rest, usize::MAX).ok()??).ok()?;
    let mut picked = Picked::default();
    loop {
        let line = next_line(&mut rest, usize::MAX).ok()??;
        if line.is_empty() {
            return None;
        }
        if picked.header(&mut head, line).is_err() {
            return line.split(|&byte| byte == b':').next();
        }
    }
}

/// The `Origin` of bytes that are no request, so that the page which they come from may be told why.
#[must_use]
pub fn origin_of(bytes: &[u8]) -> Option<&str> {
    const NAME: &[u8] = b"origin:";
    let bytes = bytes.strip_prefix(b"\r\n").unwrap_or(bytes);
    let mut lines = bytes.split(|&byte| byte == b'\n').take_while(|line| !line.trim_ascii().is_empty());
    let is_origin = |line: &&[u8]| line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME));
    text(lines.find(is_origin)?[NAME.len()..].trim_ascii()).ok()
}

/// True if bytes that are no request begin as a HEAD does, to which no answer has a body.
#[must_use]
pub fn asks_head(bytes: &[u8]) -> bool {
    bytes.strip_prefix(b"\r\n").unwrap_or(bytes).starts_with(b"HEAD ")
}

fn parse_window<'a>(window: &'a [u8], limits: &Limits) -> Result<Option<Head<'a>>, BadRequest> {
    let mut rest = window;
    if let Some(after) = rest.strip_prefix(b"\r\n") {
        rest = after;
    }
    let Some(request_line) = next_line(&mut rest, limits.line_bytes)? else {
        return Ok(None);
    };
    let (mut head, version) = read_request_line(request_line)?;
    let mut picked = Picked::default();
    for _ in 0..=limits.headers {
        let Some(line) = next_line(&mut rest, usize::MAX)? else {
            return Ok(None);
        };
        if line.is_empty() {
            head.bytes = window.len() - rest.len();
            return picked.settle(head, version, limits).map(Some);
        }
        if picked.lines == limits.headers {
            return Err(BadRequest::TooManyHeaders);
        }
        picked.lines += 1;
        picked.header(&mut head, line)?;
    }
    unreachable!("the line after the last allowed header is either empty or one too many")
}

/// Takes the next line off `rest` and returns it without its CR LF; `None` if it is not whole.
fn next_line<'a>(rest: &mut &'a [u8], bytes_max: usize) -> Result<Option<&'a [u8]>, BadRequest> {
    let Some(end) = first_control(rest) else {
        return if rest.len() > bytes_max { Err(BadRequest::LineTooLong) } else { Ok(None) };
    };
    if end > bytes_max {
        return Err(BadRequest::LineTooLong);
    }
    match (rest[end], rest.get(end + 1)) {
        (b'\r', Some(b'\n')) => {
            let line = &rest[..end];
            *rest = &rest[end + 2..];
            Ok(Some(line))
        }
        (b'\r', None) => Ok(None),
        (b'\r', Some(_)) => Err(BadRequest::BareCr),
        (b'\n', _) => Err(BadRequest::BareLf),
        _ => Err(BadRequest::ControlByte),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Http10,
    Http11,
}

fn read_request_line(line: &[u8]) -> Result<(Head<'_>, Version), BadRequest> {
    let mut words = line.split(|&byte| byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(BadRequest::LineMalformed);
    };
    let method = Method::named(method).ok_or(BadRequest::LineMalformed)?;
    let version = match version {
        b"HTTP/1.1" => Version::Http11,
        b"HTTP/1.0" => Version::Http10,
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            return Err(BadRequest::VersionUnsupported);
        }
        _ => return Err(BadRequest::LineMalformed),
    };
    let (path, query) = split_target(target)?;
    let head = Head {
        method,
        path,
        query,
        body: BodyFraming::Length(0),
        keep_alive: version == Version::Http11,
        expect_continue: false,
        host: None,
        content_type: None,
        origin: None,
        wanted_method: None,
        sec_fetch_site: None,
        authorization: None,
        forwarded_for: [None; FORWARDED_LINES],
        chain_id: None,
        deadline: None,
        cancel_on_disconnect: None,
        websocket_key: None,
        no_upgrade: None,
        auth: None,
        bytes: 0,
    };
    Ok((head, version))
}

fn split_target(target: &[u8]) -> Result<(&str, Option<&str>), BadRequest> {
    let plain = target.iter().all(|byte| matches!(byte, 0x21..=0x7e) && *byte != b'#');
    if !plain || target.first() != Some(&b'/') {
        return Err(BadRequest::TargetMalformed);
    }
    let target = std::str::from_utf8(target).map_err(|_| BadRequest::TargetMalformed)?;
    Ok(match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    })
}

/// What `Connection` asks for.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Wish {
    #[default]
    Nothing,
    KeepAlive,
    Close,
}

/// Headers that can only be judged together, once all have been read.
#[derive(Default)]
struct Picked<'a> {
    lines: usize,
    content_length: Option<&'a [u8]>,
    chunked: bool,
    /// By a `Content-Encoding`.
    is_compressed: bool,
    wish: Wish,
    upgrade: Upgrade<'a>,
}

impl<'a> Picked<'a> {
    fn header(&mut self, head: &mut Head<'a>, line: &'a [u8]) -> Result<(), BadRequest> {
        if matches!(line.first(), Some(b' ' | b'\t')) {
            return Err(BadRequest::HeaderFolded);
        }
        let colon = line.iter().position(|&byte| !is_token(byte)).ok_or(BadRequest::HeaderMalformed)?;
        if colon == 0 || line[colon] != b':' {
            return Err(BadRequest::HeaderMalformed);
        }
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match name[0] | 0x20 {
            b'c' if is("content-length") => once(&mut self.content_length, value),
            b'c' if is("content-type") => once(&mut head.content_type, text(value)?),
            b'c' if is("content-encoding") => {
                self.is_compressed |= is_compression(value);
                Ok(())
            }
            b'c' if is("connection") => {
                self.connection(value);
                Ok(())
            }
            b't' if is("transfer-encoding") => self.transfer_encoding(value),
            b'h' if is("host") => once(&mut head.host, host(value)?),
            b'e' if is("expect") => {
                head.expect_continue = value.eq_ignore_ascii_case(b"100-continue");
                if head.expect_continue { Ok(()) } else { Err(BadRequest::ExpectationUnknown) }
            }
            b'o' if is("origin") => once(&mut head.origin, text(value)?),
            b'a' if is("access-control-request-method") => {
                head.wanted_method = Method::named(value);
                Ok(())
            }
            b'a' if is("authorization") => once(&mut head.authorization, text(value)?),
            b'x' if is("x-outcry-deadline") => once(&mut head.deadline, text(value)?),
            b'x' if is("x-outcry-cancel-on-disconnect") => once(&mut head.cancel_on_disconnect, text(value)?),
            b'x' if is("x-chain-id") => once(&mut head.chain_id, text(value)?),
            b'x' if is("x-forwarded-for") => {
                head.forwarded_for.rotate_left(1);
                head.forwarded_for[FORWARDED_LINES - 1] = Some(text(value)?);
                Ok(())
            }
            b's' if is("sec-fetch-site") => once(&mut head.sec_fetch_site, text(value)?),
            b's' if is("sec-websocket-key") => once(&mut head.websocket_key, text(value)?),
            b's' if is("sec-websocket-version") => once(&mut self.upgrade.version, value),
            b'u' if is("upgrade") => {
                self.upgrade.protocols(value);
                Ok(())
            }
            b's' | b'k' | b'p' => match auth_headers::credential(name) {
                Some(credential) => auth_headers::note(&mut head.auth, name, credential, text(value)?),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn connection(&mut self, value: &'a [u8]) {
        self.upgrade.connection.0 = value;
        for option in value.split(|&byte| byte == b',') {
            let option = option.trim_ascii();
            if option.eq_ignore_ascii_case(b"close") {
                self.wish = Wish::Close;
            } else if option.eq_ignore_ascii_case(b"keep-alive") && self.wish != Wish::Close {
                self.wish = Wish::KeepAlive;
            } else if option.eq_ignore_ascii_case(b"upgrade") {
                self.upgrade.connection.1 = true;
            }
        }
    }

    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), BadRequest> {
        if self.chunked {
            return Err(BadRequest::HeaderTwice);
        }
        if !value.eq_ignore_ascii_case(b"chunked") {
            return Err(BadRequest::CodingUnknown);
        }
        self.chunked = true;
        Ok(())
    }

    fn settle(self, mut head: Head<'a>, version: Version, limits: &Limits) -> Result<Head<'a>, BadRequest> {
        if version == Version::Http11 && head.host.is_none() {
            return Err(BadRequest::HostMalformed);
        }
        head.body = match (self.content_length, self.chunked) {
            (Some(_), true) => return Err(BadRequest::LengthConflict),
            (None, true) if version == Version::Http10 => return Err(BadRequest::CodingUnknown),
            (None, true) => BodyFraming::Chunked,
            (Some(length), false) => BodyFraming::Length(content_length(length, limits)?),
            (None, false) => BodyFraming::Length(0),
        };
        if self.is_compressed && head.body != BodyFraming::Length(0) {
            return Err(BadRequest::BodyCompressed);
        }
        head.keep_alive = match self.wish {
            Wish::Nothing => version == Version::Http11,
            Wish::KeepAlive => true,
            Wish::Close => false,
        };
        head.expect_continue &= version == Version::Http11 && head.body != BodyFraming::Length(0);
        head.no_upgrade = self.upgrade.lacks(head.method, version);
        if head.no_upgrade.is_some() {
            head.websocket_key = None;
        }
        Ok(head)
    }
}

fn once<T>(slot: &mut Option<T>, value: T) -> Result<(), BadRequest> {
    if slot.is_some() {
        return Err(BadRequest::HeaderTwice);
    }
    *slot = Some(value);
    Ok(())
}

/// The value of a header that is read here: ASCII only, so that it has one meaning.
fn text(value: &[u8]) -> Result<&str, BadRequest> {
    if !value.is_ascii() {
        return Err(BadRequest::HeaderMalformed);
    }
    std::str::from_utf8(value).map_err(|_| BadRequest::HeaderMalformed)
}

/// Whether any of these content codings (RFC 9110, section 8.4.1, and RFC 8878) compresses.
fn is_compression(codings: &[u8]) -> bool {
    const COMPRESSIONS: [&str; 7] = ["gzip", "x-gzip", "deflate", "compress", "x-compress", "br", "zstd"];
    let compresses =
        |coding: &[u8]| COMPRESSIONS.iter().any(|name| coding.eq_ignore_ascii_case(name.as_bytes()));
    codings.split(|&byte| byte == b',').any(|coding| compresses(coding.trim_ascii()))
}

fn host(value: &[u8]) -> Result<&str, BadRequest> {
    let plain = value
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':' | b'[' | b']'));
    if !plain || value.is_empty() {
        return Err(BadRequest::HostMalformed);
    }
    std::str::from_utf8(value).map_err(|_| BadRequest::HostMalformed)
}

fn content_length(value: &[u8], limits: &Limits) -> Result<usize, BadRequest> {
    /// Digits of the longest length that is still read as a number.
    const DIGITS_MAX: usize = 19;
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(BadRequest::LengthMalformed);
    }
    if value.iter().skip_while(|digit| **digit == b'0').count() > DIGITS_MAX {
        return Err(BadRequest::BodyTooLong);
    }
    let length = value.iter().fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    match usize::try_from(length) {
        Ok(length) if length <= limits.body_bytes => Ok(length),
        _ => Err(BadRequest::BodyTooLong),
    }
}

/// The bytes that methods and header names are made of.
const fn is_token(byte: u8) -> bool {
    const TOKEN: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = 0_u8;
        while byte < 128 {
            table[byte as usize] = byte.is_ascii_alphanumeric();
            byte += 1;
        }
        let marks = b"!#$%&'*+-.^_`|~";
        let mut at = 0;
        while at < marks.len() {
            table[marks[at] as usize] = true;
            at += 1;
        }
        table
    };
    TOKEN[byte as usize]
}

#[cfg(test)]
mod tests;
