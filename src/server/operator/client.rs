//! A small HTTP/1.1 client for loopback: one connection, one request at a time; or, in two halves
//! ([`Client::halves`]), requests ahead of their answers.
//!
//! It speaks what our own server speaks (`Content-Length`, no redirects, no TLS), so that the
//! commands need no HTTP library and an answer is read to its last byte or not at all.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use super::admin;
use super::terminal::on_one_line;
use crate::catalog::Fields;
use crate::http::respond::BODY_BYTES_MAX;
use crate::server::plan::command::AdminArgs;

/// How long an answer may take. Imports of many rows wait for the disk.
const ANSWER_TIME: Duration = Duration::from_mins(1);
/// The largest head of an answer.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// A connection to one server, opened when it is first needed.
#[derive(Debug)]
pub(crate) struct Client {
    /// All that its name stands for: the exchange listens on one of them.
    addresses: Vec<SocketAddr>,
    name: String,
    token: Option<String>,
    stream: Option<TcpStream>,
    /// Whether somebody named the address, who may have meant another one.
    is_named: bool,
}

/// An answer, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: u16,
    /// The body.
    pub(crate) body: String,
}

impl Answer {
    /// The body if the server did what it was asked; else its words, as one line.
    pub(crate) fn success(self) -> Result<String, String> {
        if (200..300).contains(&self.status) {
            return Ok(self.body);
        }
        let fields = Fields::parse(&self.body).unwrap_or_default();
        let words = fields.text("error");
        let words = words.unwrap_or_else(|| format!("answered {}: {}", self.status, self.body.trim()));
        Err(on_one_line(&words))
    }

    /// Whether another server answers that it has no such thing. Every command asks for what the operator's listener
    /// has, whose own words then name a field first, as in `market: got 7`.
    fn is_of_another_server(&self) -> bool {
        let words = Fields::parse(&self.body).unwrap_or_default().text("error");
        matches!(self.status, 404 | 405) && words.is_none_or(|words| !words.contains(": "))
    }
}

impl Client {
    /// A client of the exchange that the flags name.
    pub(crate) fn of(args: &AdminArgs) -> Result<Self, String> {
        let (source, token) = match &args.token_file {
            Some(path) => {
                let source = format!("--token-file: {}", path.display());
                let text = std::fs::read_to_string(path).map_err(|fault| format!("{source}: {fault}"))?;
                let token = text.trim().to_owned();
                if token.is_empty() {
                    return Err(format!(
                        "{source}: got nothing; allowed: a token, as in admin-token in data_dir"
                    ));
                }
                (source, Some(token))
            }
            None => ("OUTCRY_ADMIN_TOKEN".to_owned(), admin::token_of_environment()),
        };
        admin::check_token(token.as_deref().unwrap_or_default())
            .map_err(|fault| format!("{source}: {fault}"))?;
        let host = args.admin.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
        let got = if args.admin.is_empty() { "nothing" } else { &args.admin };
        let wrong = || format!("--admin, or OUTCRY_ADMIN: got {got}; allowed: http://HOST:PORT");
        let host = host.filter(|host| !host.contains('/')).ok_or_else(wrong)?;
        let addresses: Vec<SocketAddr> = match host.to_socket_addrs() {
            Ok(found) => found.collect(),
            Err(fault) if fault.kind() == std::io::ErrorKind::InvalidInput => return Err(wrong()),
            Err(fault) => return Err(format!("--admin: {host}: {fault}")),
        };
        if addresses.is_empty() {
            return Err(format!("--admin: {host}: no such host"));
        }
        Ok(Self { addresses, name: host.to_owned(), token, stream: None, is_named: true })
    }

    /// A client of a server in this process.
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self {
            addresses: vec![address],
            name: address.to_string(),
            token: None,
            stream: None,
            is_named: false,
        }
    }

    /// A connection of its own in two halves, for requests that do not wait for the answers to
    /// those before them. One half may be used while the other waits.
    pub(crate) fn halves(&self) -> Result<(Requests, Answers), String> {
        let open = || -> std::io::Result<(Requests, Answers)> {
            let stream = connect(&self.addresses)?;
            let (name, token) = (self.name.clone(), self.token.clone());
            let requests = Requests { stream: stream.try_clone()?, name: name.clone(), token };
            Ok((requests, Answers { stream, unread: Vec::new(), name, is_named: self.is_named }))
        };
        open().map_err(|fault| format!("http://{}: {fault}", self.name))
    }

    /// Asks without a body.
    pub(crate) fn get(&mut self, path: &str) -> Result<Answer, String> {
        self.ask("GET", path, &[], None)
    }

    /// Sends a JSON body.
    pub(crate) fn post(&mut self, path: &str, body: &str) -> Result<Answer, String> {
        self.ask("POST", path, &[], Some(body))
    }

    /// Sends one request and reads its answer. After a fault the outcome is unknown, and the next
    /// request opens a new connection.
    pub(crate) fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Result<Answer, String> {
        let answer = self.try_ask(method, path, headers, body);
        if answer.is_err() {
            self.stream = None;
        }
        told(answer, &self.name, self.is_named)
    }

    fn try_ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> std::io::Result<Answer> {
        let request = request(&self.name, self.token.as_deref(), (method, path), headers, body);
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(connect(&self.addresses)?),
        };
        stream.write_all(request.as_bytes())?;
        let mut unread = Vec::new();
        let (answer, stays) = read_answer(stream, &mut unread)?;
        if !stays || !unread.is_empty() {
            self.stream = None;
        }
        Ok(answer)
    }
}

/// A connection on which requests go out.
#[derive(Debug)]
pub(crate) struct Requests {
    stream: TcpStream,
    name: String,
    token: Option<String>,
}

impl Requests {
    /// Sends a JSON body. Its answer comes after those of the requests before it.
    pub(crate) fn post(&mut self, path: &str, body: &str) -> Result<(), String> {
        let request = request(&self.name, self.token.as_deref(), ("POST", path), &[], Some(body));
        let sent = self.stream.write_all(request.as_bytes());
        sent.map_err(|fault| format!("http://{}: {fault}", self.name))
    }
}

/// The same connection, on which answers come in, in the order of the requests.
#[derive(Debug)]
pub(crate) struct Answers {
    stream: TcpStream,
    unread: Vec<u8>,
    name: String,
    is_named: bool,
}

impl Answers {
    /// The answer to the oldest request that has none yet.
    pub(crate) fn next(&mut self) -> Result<Answer, String> {
        let read = read_answer(&mut self.stream, &mut self.unread);
        told(read.map(|(answer, _)| answer), &self.name, self.is_named)
    }
}

/// Whether a connection was lost on which a request may have gone out.
fn was_cut(fault: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(fault.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
}

/// An answer of the server called `name`, if it is that of the operator's listener where somebody named it.
fn told(answer: std::io::Result<Answer>, name: &str, is_named: bool) -> Result<Answer, String> {
    let answer = answer.map_err(|fault| match fault.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => format!(
            "http://{name}: no answer within {} s, so what was asked may be done or not; is that the address of \
             listen.admin?",
            ANSWER_TIME.as_secs()
        ),
        _ if was_cut(&fault) => format!("http://{name}: {fault}, so what was asked may be done or not"),
        _ => format!("http://{name}: {fault}"),
    })?;
    if is_named && answer.is_of_another_server() {
        return Err(format!(
            "--admin: got http://{name}, which answers {} and does not look like the operator's listener; allowed: the \
             address of listen.admin",
            answer.status
        ));
    }
    Ok(answer)
}

impl Drop for Answers {
    /// Whoever is still sending finds out now: nobody will read the answers.
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// A connection to the first of `addresses` that takes one.
fn connect(addresses: &[SocketAddr]) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(addresses)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_TIME))?;
    stream.set_write_timeout(Some(ANSWER_TIME))?;
    Ok(stream)
}

/// One whole request.
fn request(
    host: &str,
    token: Option<&str>,
    (method, path): (&str, &str),
    headers: &[(&str, &str)],
    body: Option<&str>,
) -> String {
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n");
    let token = token.map(|token| format!("Bearer {token}"));
    let token = token.iter().map(|token| ("Authorization", token.as_str()));
    for (name, value) in token.chain(headers.iter().copied()) {
        let _ = write!(request, "{name}: {value}\r\n");
    }
    if let Some(body) = body {
        let _ =
            write!(request, "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    } else {
        request.push_str("\r\n");
    }
    request
}

/// Reads one answer, of which `bytes` have come already; leaves in `bytes` what came after it. Also returns whether the
/// connection stays open.
fn read_answer(stream: &mut impl Read, bytes: &mut Vec<u8>) -> std::io::Result<(Answer, bool)> {
    let bad =
        |what: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, format!("not our HTTP: {what}"));
    let mut chunk = [0_u8; 16 << 10];
    let mut more = |bytes: &mut Vec<u8>| -> std::io::Result<()> {
        let read = loop {
            match stream.read(&mut chunk) {
                // In a server's own process signals come and go; a read with a timeout is not resumed.
                Err(fault) if fault.kind() == std::io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        match read? {
            0 => Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "closed before the answer came")),
            count => {
                bytes.extend_from_slice(&chunk[..count]);
                Ok(())
            }
        }
    };
    let body_at = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if HEAD_BYTES_MAX < bytes.len() {
            return Err(bad("a head without an end"));
        }
        more(bytes)?;
    };
    let head = String::from_utf8_lossy(&bytes[..body_at]).into_owned();
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let status: u16 = status.ok_or_else(|| bad("no status"))?;
    let header = |name: &str| {
        head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    let length = header("Content-Length").and_then(|text| text.parse().ok());
    let length: usize = length.ok_or_else(|| bad("no length"))?;
    if BODY_BYTES_MAX < length {
        return Err(bad(&format!("a body of {length} bytes; allowed: {BODY_BYTES_MAX}")));
    }
    while bytes.len() < body_at + length {
        more(bytes)?;
    }
    let body = String::from_utf8(bytes[body_at..body_at + length].to_vec())
        .map_err(|_| bad("a body that is no text"))?;
    let stays = !header("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    bytes.drain(..body_at + length);
    Ok((Answer { status, body }, stays))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_to_its_last_byte_or_not_at_all() {
        let whole: &[u8] =
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length:        5\r\n\r\n\"abc\"";
        for behind in [&b""[..], b"HTTP/1.1 200"] {
            let mut unread = Vec::new();
            let (answer, stays) =
                read_answer(&mut &[whole, behind].concat()[..], &mut unread).expect("whole");
            assert_eq!((answer.status, answer.body.as_str(), stays), (200, "\"abc\"", true));
            assert_eq!(unread, behind, "the next answer's bytes are kept");
        }
        for end in 0..whole.len() {
            assert!(read_answer(&mut &whole[..end], &mut Vec::new()).is_err(), "cut at {end}");
            let mut came = whole[..end].to_vec();
            assert!(read_answer(&mut &whole[end..], &mut came).is_ok_and(|(answer, _)| answer.status == 200));
        }
    }

    #[test]
    fn what_is_no_length_of_ours_is_told_apart() {
        for (line, said) in [
            ("", "not our HTTP: no length"),
            ("Content-Length: -1\r\n", "not our HTTP: no length"),
            ("Content-Length: 9999999999\r\n", "closed before the answer came"),
            (
                "Content-Length: 10000000000\r\n",
                "not our HTTP: a body of 10000000000 bytes; allowed: 9999999999",
            ),
        ] {
            let head = format!("HTTP/1.1 200 OK\r\n{line}\r\n");
            let fault = read_answer(&mut head.as_bytes(), &mut Vec::new()).expect_err("no body came");
            assert_eq!(fault.to_string(), said, "{line}");
        }
    }

    #[test]
    fn whoever_loses_the_connection_is_told_that_it_may_be_done() {
        use std::io::ErrorKind;
        for (kind, may_be_done) in [
            (ErrorKind::TimedOut, true),
            (ErrorKind::WouldBlock, true),
            (ErrorKind::UnexpectedEof, true),
            (ErrorKind::ConnectionReset, true),
            (ErrorKind::BrokenPipe, true),
            // Nothing was sent.
            (ErrorKind::ConnectionRefused, false),
            // Another program answered.
            (ErrorKind::InvalidData, false),
        ] {
            let said = told(Err(kind.into()), "127.0.0.1:8081", true).expect_err("a fault");
            assert!(said.starts_with("http://127.0.0.1:8081: "), "{said}");
            assert_eq!(said.contains("so what was asked may be done or not"), may_be_done, "{said}");
        }
    }

    #[test]
    fn a_name_is_reached_at_any_of_its_addresses() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let here = listener.local_addr().expect("bound");
        let elsewhere = SocketAddr::new(std::net::Ipv6Addr::LOCALHOST.into(), here.port());
        for addresses in [vec![here], vec![elsewhere, here], vec![here, elsewhere]] {
            let client = Client { addresses, ..Client::at(here) };
            assert!(client.halves().is_ok(), "{client:?}");
        }
        let name = format!("localhost:{}", here.port());
        let args = AdminArgs { admin: format!("http://{name}"), token_file: None };
        let found: Vec<_> = name.to_socket_addrs().expect("known everywhere").collect();
        assert_eq!(Client::of(&args).expect("a client").addresses, found);
    }

    #[test]
    fn a_refusal_becomes_one_line() {
        let body = r#"{"error":"market: got 7; allowed: 8","code":"market_unknown","field":"market"}"#;
        let answer = Answer { status: 404, body: body.to_owned() };
        assert_eq!(answer.success(), Err("market: got 7; allowed: 8".to_owned()));
        let answer = Answer { status: 502, body: "bad\ngateway\u{9b}2J\n".to_owned() };
        assert_eq!(answer.success(), Err("answered 502: bad\\ngateway\\u{9b}2J".to_owned()));
    }

    #[test]
    fn a_server_that_has_no_such_thing_is_not_taken_for_the_operators() {
        for (status, body, is_other) in [
            (404, r#"{"error":"not found","code":"not_found"}"#, true),
            (405, r#"{"error":"method not allowed","code":"method_not_allowed"}"#, true),
            (404, "<html>no such page</html>", true),
            (404, r#"{"type":"not found error","error":"id not found","code":"not_found"}"#, true),
            (404, r#"{"error":"market not found","code":"market_unknown"}"#, true),
            (404, r#"{"error":"wallet: 0x12 is not known here","code":"wallet_unknown"}"#, false),
            (404, r#"{"error":"market: got 7; allowed: 8","code":"market_unknown","field":"market"}"#, false),
            (401, r#"{"error":"the operator's token is missing","code":"token"}"#, false),
            (200, "{}", false),
        ] {
            let answer = || Ok(Answer { status, body: body.to_owned() });
            let fault = told(answer(), "127.0.0.1:8080", true).err();
            let said = "--admin: got http://127.0.0.1:8080, which answers ";
            assert_eq!(fault.is_some_and(|fault| fault.starts_with(said)), is_other, "{body}");
            assert_eq!(
                told(answer(), "127.0.0.1:8080", false),
                answer().map_err(|_: std::io::Error| String::new())
            );
        }
    }

    #[test]
    fn an_address_that_is_none_is_named() {
        let refused = |admin: &str| {
            Client::of(&AdminArgs { admin: admin.into(), token_file: None }).expect_err("refused")
        };
        for admin in
            ["", "ftp://x", "http://127.0.0.1", "http://127.0.0.1:x", "http://127.0.0.1:8081/console"]
        {
            let got = if admin.is_empty() { "nothing" } else { admin };
            assert_eq!(
                refused(admin),
                format!("--admin, or OUTCRY_ADMIN: got {got}; allowed: http://HOST:PORT")
            );
        }
        // A label of 64 bytes is in no name, so nobody is asked.
        let host = format!("{}:80", "x".repeat(64));
        let fault = refused(&format!("http://{host}"));
        assert!(fault.starts_with(&format!("--admin: {host}: ")) && !fault.contains("allowed"), "{fault}");
    }

    #[test]
    fn a_token_that_no_head_can_carry_is_refused_when_it_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("token");
        for (token, said) in [
            ("0123456789abcdef", None),
            (" 0123456789abcdef \n\n", None),
            (" \n", Some("got nothing; allowed: a token, as in admin-token in data_dir")),
            ("0123456789abcdef\nfedcba9876543210\n", Some("got 2 lines; allowed: one")),
            ("0123456789abcd\u{fc}", Some("got the character U+00FC; allowed: visible ASCII")),
            ("0123456789\tabcd", Some("got the character U+0009; allowed: visible ASCII")),
        ] {
            std::fs::write(&file, token).expect("written");
            let args = AdminArgs { admin: "http://127.0.0.1:1".into(), token_file: Some(file.clone()) };
            let expected = said.map(|said| format!("--token-file: {}: {said}", file.display()));
            assert_eq!(Client::of(&args).err(), expected, "{token:?}");
        }
    }
}
