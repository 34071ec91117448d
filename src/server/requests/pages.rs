//! Which web pages may read answers: those of `allowed_origins`, by the CORS protocol of the Fetch standard.
//!
//! A browser shows an answer to a page of another origin only if the answer allows that origin, and asks first
//! (`OPTIONS`) before it sends a request that a plain form could not send. This keeps nobody out: a browser adds no
//! credentials of its own to what it sends here, so a page can do what its user's keys can do, as any program can.

use std::net::Ipv6Addr;

/// The origins of `allowed_origins`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pages(Vec<Origin>);

#[derive(Clone, Debug)]
struct Origin {
    /// As browsers write it, or [`ANY`].
    name: String,
    /// The header lines of its answers.
    lines: String,
}

/// A page that may read the answer to its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page(u16);

/// Every origin, those without a name too.
const ANY: &str = "*";

impl Pages {
    /// Reads origins such as `https://app.example`, or `*` alone.
    pub(crate) fn parse(texts: &[String]) -> Result<Self, String> {
        if texts.len() > usize::from(u16::MAX) {
            return Err(format!("allowed_origins: {} of them, at most {}", texts.len(), u16::MAX));
        }
        let origin = |text: &String| {
            if text == ANY && texts.len() > 1 {
                return Err("allowed_origins: * allows all, so no other may stand beside it".to_owned());
            }
            if text != ANY {
                check(text).map_err(|fault| format!("allowed_origins: {text} {fault}"))?;
            }
            // The answer depends on who asks: a cache has to keep it apart for each origin.
            let lines = format!(
                "Access-Control-Allow-Origin: {text}\r\nAccess-Control-Expose-Headers: *\r\nVary: Origin\r\n"
            );
            Ok(Origin { name: text.clone(), lines })
        };
        texts.iter().map(origin).collect::<Result<_, _>>().map(Self)
    }

    /// The page that a request with this `Origin` comes from; `None` if it comes from no page, or from one that may
    /// not read the answer.
    pub(crate) fn page(&self, origin: Option<&str>) -> Option<Page> {
        let asking = origin?;
        let number = self.0.iter().position(|known| known.name == ANY || known.name == asking)?;
        Some(Page(u16::try_from(number).expect("counted when they were read")))
    }

    /// The header lines of an answer to `page`, each with its end.
    pub(crate) fn lines(&self, page: Page) -> &str {
        &self.0[usize::from(page.0)].lines
    }
}

/// Judges an origin by how browsers write it, since it is compared letter by letter.
fn check(text: &str) -> Result<(), String> {
    const FORM: &str =
        "is not * and no origin: https://app.example, with :8443 behind it or not, and no more";
    let written = as_browsers_write(&text.to_ascii_lowercase()).ok_or(FORM)?;
    if written == text { Ok(()) } else { Err(format!("never comes from a browser, which writes {written}")) }
}

/// An origin in small letters, with a port only where it is not the scheme's own; `None` if it is no origin.
fn as_browsers_write(text: &str) -> Option<String> {
    let in_scheme = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let (scheme, rest) = text.split_once("://")?;
    let bracketed = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (host, port) = if let Some((address, port)) = bracketed {
        (format!("[{}]", as_browsers_write_address(address.parse().ok()?)), port)
    } else {
        let (name, port) = rest.split_at(rest.find(':').unwrap_or(rest.len()));
        if name.is_empty() || !name.bytes().all(in_name) {
            return None;
        }
        (name.to_owned(), port)
    };
    if scheme.is_empty() || !scheme.bytes().all(in_scheme) {
        return None;
    }
    let without_port = format!("{scheme}://{host}");
    if port.is_empty() {
        return Some(without_port);
    }
    let digits = port.strip_prefix(':').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    Some(match (scheme, digits.parse::<u16>().ok()?) {
        ("https", 443) | ("http", 80) => without_port,
        (_, port) => format!("{without_port}:{port}"),
    })
}

/// The shortest form, in hexadecimal throughout (URL Standard, "IPv6 serializer").
fn as_browsers_write_address(address: Ipv6Addr) -> String {
    match (address.to_ipv4_mapped(), address.segments()) {
        (Some(_), [.., high, low]) => format!("::ffff:{high:x}:{low:x}"),
        (None, _) => address.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(texts: &str) -> Result<Pages, String> {
        let texts: Vec<_> = texts.split_whitespace().map(str::to_owned).collect();
        Pages::parse(&texts)
    }

    #[test]
    fn a_page_is_known_by_its_whole_origin() {
        const APP: &str = "https://app.example";
        let rows = [
            ("", Some(APP), None),
            ("*", None, None),
            ("*", Some(APP), Some("*")),
            ("*", Some("null"), Some("*")),
            (APP, None, None),
            (APP, Some(APP), Some(APP)),
            (APP, Some("null"), None),
            (APP, Some("http://app.example"), None),
            (APP, Some("https://app.example:8443"), None),
            (APP, Some("https://app.example.evil.example"), None),
            (APP, Some("https://evil.example"), None),
            ("https://app.example:80", Some("https://app.example:80"), Some("https://app.example:80")),
            ("http://[::1]:3000 https://app.example", Some(APP), Some(APP)),
            ("http://[::1]:3000 https://app.example", Some("http://[::1]:3000"), Some("http://[::1]:3000")),
            (
                "chrome-extension://abcdef",
                Some("chrome-extension://abcdef"),
                Some("chrome-extension://abcdef"),
            ),
        ];
        for (texts, asking, expected) in rows {
            let pages = pages(texts).expect("good");
            let lines = pages.page(asking).map(|page| pages.lines(page));
            let expected = expected.map(|origin| {
                format!(
                    "Access-Control-Allow-Origin: {origin}\r\nAccess-Control-Expose-Headers: *\r\nVary: Origin\r\n"
                )
            });
            assert_eq!(lines, expected.as_deref(), "{texts:?} asked by {asking:?}");
        }
    }

    #[test]
    fn what_no_browser_sends_is_refused_with_what_it_would_send() {
        let form = "is not * and no origin: https://app.example, ";
        let rows = [
            ("app.example", form),
            ("null", form),
            ("https://", form),
            ("://app.example", form),
            ("https://app.example/", form),
            ("https://*.example", form),
            ("https://a@app.example", form),
            ("https://app.example:8443:1", form),
            ("https://app.example:", form),
            ("https://app.example:port", form),
            ("https://app.example:+8443", form),
            ("https://app.example:65536", form),
            ("https://:8443", form),
            ("http://[::1", form),
            ("http://[::1]3000", form),
            ("http://[::1]]", form),
            ("http://[app.example]", form),
            ("http://::1", form),
            ("https://App.example", "which writes https://app.example"),
            ("https://app.example:443", "which writes https://app.example"),
            ("http://app.example:80", "which writes http://app.example"),
            ("https://app.example:0443", "which writes https://app.example"),
            ("https://app.example:08443", "which writes https://app.example:8443"),
            ("http://[::A]:3000", "which writes http://[::a]:3000"),
            ("http://[0:0:0:0:0:0:0:1]", "which writes http://[::1]"),
            ("http://[::ffff:127.0.0.1]:80", "which writes http://[::ffff:7f00:1]"),
            ("* https://app.example", "no other may stand beside it"),
        ];
        for (texts, words) in rows {
            let fault = pages(texts).expect_err("refused");
            assert!(fault.starts_with("allowed_origins: ") && fault.contains(words), "{texts}: {fault}");
        }
    }
}
