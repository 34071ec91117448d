//! The operator's console: a page in six files on the operator's listener, and which requests of
//! a browser are the page's own.
//!
//! A browser on this machine reaches loopback on behalf of any web page. It says for whom in
//! `Sec-Fetch-Site`, which no script can set, and in `Origin`:
//!
//! | `Sec-Fetch-Site` | `Origin` | who asks | what it gets |
//! |---|---|---|---|
//! | absent | absent | no browser | all that its token opens |
//! | `none` | absent | a person, who typed the address | `GET` of the page itself |
//! | `same-origin` | absent, or `http://` and `Host` | the console | `GET` of its files and of [`READS`] |
//! | anything else | any | another page, or a link on one | nothing |
//!
//! `Host` is known to be a loopback name before any of this is checked, so a page with a rebound name is no console;
//! another port of this machine is another origin, and `same-site`. Nothing that changes the exchange is open to any
//! page, and neither are accounts. The page holds no data: what it shows it asks for as everybody does, in `serve` with
//! the token, which it keeps as long as its tab.

use crate::http::respond::{ContentType, Extras, Response};
use crate::http::{Head, Method};

/// What the page may read; and `/books/{market}`.
const READS: [&str; 6] = ["/ready", "/metrics", "/debug/latency", "/machine", "/limits", "/books"];

/// What the browser must not do with the page: take anything from elsewhere, run anything that is
/// not in its files, make HTML of data, show it in a frame, or tell others of it.
const GUARDS: [(&str, &str); 6] = [
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    ),
    ("X-Frame-Options", "DENY"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
];

/// One file of the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct File {
    content_type: ContentType,
    text: &'static str,
}

/// The file at a path. All of them are open: they are in every copy of the program.
pub(crate) fn file(path: &str) -> Option<File> {
    let (content_type, text) = match path {
        "/" | "/console" => (ContentType::Html, include_str!("console/page.html")),
        "/machine.js" => (ContentType::Script, include_str!("console/machine.js")),
        "/charts.js" => (ContentType::Script, include_str!("console/charts.js")),
        "/words.js" => (ContentType::Script, include_str!("console/words.js")),
        "/console.js" => (ContentType::Script, include_str!("console/page.js")),
        "/console.css" => (ContentType::Style, include_str!("console/page.css")),
        _ => return None,
    };
    Some(File { content_type, text })
}

impl File {
    /// Answers with it.
    pub(crate) fn write(self, out: &mut Vec<u8>, extras: &Extras<'_>) {
        let extras = Extras { others: &GUARDS, ..*extras };
        let response = Response::begin(out, 200, self.content_type, &extras);
        out.extend_from_slice(self.text.as_bytes());
        response.finish(out);
    }

    const fn is_page(self) -> bool {
        matches!(self.content_type, ContentType::Html)
    }
}

/// True for a request that no browser sent, or that one sent for the console or for a person. `Host`
/// must have been found to be a loopback name.
pub(crate) fn admits(head: &Head<'_>) -> bool {
    let Some(site) = head.sec_fetch_site else {
        return head.origin.is_none();
    };
    let file = file(head.path);
    head.method == Method::Get
        && match site {
            "none" => head.origin.is_none() && file.is_some_and(File::is_page),
            "same-origin" => is_own(head) && (file.is_some() || is_read(head.path)),
            _ => false,
        }
}

fn is_own(head: &Head<'_>) -> bool {
    let Some(origin) = head.origin else {
        return true;
    };
    origin.strip_prefix("http://").is_some_and(|from| head.host.is_some_and(|host| host == from))
}

fn is_read(path: &str) -> bool {
    READS.contains(&path) || path.starts_with("/books/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::head::{self, Limits};

    fn admitted(method: &str, path: &str, lines: &str) -> bool {
        let text = format!("{method} {path} HTTP/1.1\r\nHost: localhost:8081\r\n{lines}\r\n");
        let head = head::parse(text.as_bytes(), &Limits::SERVED).expect("a head").expect("whole");
        admits(&head)
    }

    /// What a browser says, and whether the page, its files, its reads and other routes are given then.
    const TABLE: &[(&str, &str, [bool; 4])] = &[
        ("", "", [true, true, true, true]),
        ("none", "", [true, false, false, false]),
        ("none", "http://localhost:8081", [false; 4]),
        ("same-origin", "", [true, true, true, false]),
        ("same-origin", "http://localhost:8081", [true, true, true, false]),
        ("same-origin", "http://localhost:8080", [false; 4]),
        ("same-origin", "https://localhost:8081", [false; 4]),
        ("same-origin", "http://localhost:8081.evil.example", [false; 4]),
        ("same-origin", "null", [false; 4]),
        ("same-site", "", [false; 4]),
        ("same-site", "http://localhost:8081", [false; 4]),
        ("cross-site", "", [false; 4]),
        ("cross-site", "http://localhost:8081", [false; 4]),
        ("Same-Origin", "", [false; 4]),
        ("same-origin, same-origin", "", [false; 4]),
        ("", "http://localhost:8081", [false; 4]),
        ("", "https://evil.example", [false; 4]),
    ];

    const ROUTES: [&[&str]; 4] = [
        &["/", "/console"],
        &["/console.js", "/machine.js", "/charts.js", "/words.js", "/console.css"],
        &["/ready", "/metrics", "/debug/latency", "/machine", "/limits", "/books", "/books/7"],
        &["/health", "/markets", "/markets/7", "/accounts/fees", "/debug/latency.hgrm", "/bookshop", "/x"],
    ];

    #[test]
    fn a_browser_gets_what_the_console_needs_and_other_pages_get_nothing() {
        for (site, origin, allowed) in TABLE {
            let line = |name: &str, value: &str| match value {
                "" => String::new(),
                value => format!("{name}: {value}\r\n"),
            };
            let lines = line("Sec-Fetch-Site", site) + &line("Origin", origin);
            for (paths, allowed) in ROUTES.iter().zip(allowed) {
                for path in *paths {
                    let what = format!("{path} site {site:?} origin {origin:?}");
                    assert_eq!(admitted("GET", path, &lines), *allowed, "GET {what}");
                    let by_hand = lines.is_empty();
                    for method in ["POST", "DELETE", "HEAD", "OPTIONS"] {
                        assert_eq!(admitted(method, path, &lines), by_hand, "{method} {what}");
                    }
                }
            }
        }
    }
}
