//! The operator's listener: who may talk to it, and the routes that ask nothing of other loops.
//!
//! It is bound to loopback, but a browser on this machine can reach loopback on behalf of any web
//! page, so: `Host` must be a loopback name (no rebound names), what browsers send is refused but
//! for the reads of the console's own page (`console` has the table), bodies must be
//! `application/json` (no form), and everything but `/health`, `/ready` and the files of the console
//! wants the token. `dev` has no token.
//!
//! What the operator does to markets, accounts and modes is in `act` and `market_acts`.

use super::act;
use super::console;
use super::metrics;
use super::request::Refusal;
use crate::auth::MacKey;
use crate::domain::Position;
use crate::http::respond::{ContentType, Extras, Response};
use crate::http::{Head, Method, Query};
use crate::json::Writer;
use crate::server::connections::Client;
use crate::server::core_loop::{CoreLoop, connection_word};
use crate::server::plan::Plan;
use crate::server::process::secret::TOKEN_CHARACTERS_MIN;
use crate::server::reading::Reading;
use crate::server::requests::request::Request;
use crate::server::requests::toll;
use crate::server::threads::message::Said;
use crate::server::threads::shared::Shared;
use crate::topology::machine::counted;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A request of the operator that is being answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    /// Who asked.
    pub(crate) client: Client,
    /// The request's number in its line.
    pub(crate) number: u32,
    /// Whether the connection stays open after the answer.
    pub(crate) keep_alive: bool,
}

/// What became of an operator's request.
pub(crate) enum Done {
    /// It is answered; the answer may leave when this position is acknowledged.
    Answered(Position),
    /// It is under way; [`finish`] will answer it.
    Later,
}

/// The operator's token as a MAC under a key of this process: how long comparing two MACs takes says nothing about the
/// token.
pub(crate) struct Token {
    key: MacKey,
    code: Option<[u8; 32]>,
}

/// What is said of a token, and where the good one is.
macro_rules! token_is {
    ($what:literal) => {
        concat!(
            "the operator's token is ",
            $what,
            "; it is in admin-token in data_dir, unless OUTCRY_ADMIN_TOKEN gave the exchange another; ",
            "commands take it from --token-file or OUTCRY_ADMIN_TOKEN"
        )
    };
}

const TOKEN_MISSING: &str = token_is!("missing");
const TOKEN_WRONG: &str = token_is!("wrong");

/// The operator's token from `OUTCRY_ADMIN_TOKEN`, without white space around it such as a line end; none if nothing is
/// left.
pub(crate) fn token_of_environment() -> Option<String> {
    token_in(&std::env::var_os("OUTCRY_ADMIN_TOKEN")?.to_string_lossy())
}

/// The operator's token that was chosen by `OUTCRY_ADMIN_TOKEN`, if one was; a start refuses one that can be guessed.
pub(crate) fn chosen_token() -> Result<Option<String>, String> {
    let Some(token) = token_of_environment() else { return Ok(None) };
    let mend = "give it another, or unset it and `serve` makes one";
    check_choice(&token).map_err(|fault| format!("OUTCRY_ADMIN_TOKEN: {fault}; {mend}"))?;
    Ok(Some(token))
}

fn check_choice(token: &str) -> Result<(), String> {
    check_token(token)?;
    if TOKEN_CHARACTERS_MIN <= token.len() {
        return Ok(());
    }
    let had = counted(token.len(), "character");
    Err(format!("got {had}; allowed: at least {TOKEN_CHARACTERS_MIN}"))
}

/// Refuses a token that no request's head can carry. What it is is not said: it is a secret.
pub(crate) fn check_token(token: &str) -> Result<(), String> {
    let lines = token.lines().count();
    if lines > 1 {
        return Err(format!("got {lines} lines; allowed: one"));
    }
    match token.chars().find(|character| !matches!(character, ' '..='~')) {
        Some(character) => {
            Err(format!("got the character U+{:04X}; allowed: visible ASCII", u32::from(character)))
        }
        None => Ok(()),
    }
}

fn token_in(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|token| !token.is_empty())
}

impl Token {
    /// The token of the environment, else of the data directory's file; none in `dev`.
    pub(crate) fn load(plan: &Plan) -> Result<Self, String> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|fault| format!("operator's token: no randomness: {fault}"))?;
        let key = MacKey::new(&secret);
        if plan.dev {
            return Ok(Self { key, code: None });
        }
        let token = match chosen_token()? {
            Some(token) => token,
            None => crate::server::process::secret::admin_token(&plan.data_dir)?,
        };
        let code = Some(key.over([token.as_bytes()]));
        Ok(Self { key, code })
    }

    /// Whether the request has the token, else what is said of it.
    fn check(&self, head: &Head<'_>) -> Result<(), &'static str> {
        let Some(code) = &self.code else { return Ok(()) };
        let given = head.authorization.and_then(|value| value.strip_prefix("Bearer ")).map(str::trim);
        match given.filter(|token| !token.is_empty()) {
            None => Err(TOKEN_MISSING),
            Some(token) if self.key.over([token.as_bytes()]) == *code => Ok(()),
            Some(_) => Err(TOKEN_WRONG),
        }
    }
}

/// Takes one request of the operator.
pub(crate) fn begin(
    core: &mut CoreLoop,
    client: Client,
    number: u32,
    request: &Request<'_>,
    answer: &mut Vec<u8>,
) -> Done {
    let head = &request.head;
    let pending = Pending { client, number, keep_alive: head.keep_alive };
    let extras = Extras { connection: connection_word(head.keep_alive), ..Extras::default() };
    if let Err(refusal) = admitted(core, head, request.body) {
        write_said(answer, pending, &refusal.said());
        return Done::Answered(Position(0));
    }
    let method = head.method.answered_as();
    if let (Method::Get, Some(file)) = (method, console::file(head.path)) {
        file.write(answer, &extras);
        return Done::Answered(Position(0));
    }
    match (method, head.path) {
        (Method::Get, "/health") => write_json(answer, 200, &extras, |json| {
            json.open_object().key("status").text("ok").close_object();
        }),
        (Method::Get, "/ready") => {
            let ready = core.is_ready();
            let durability = core.durability();
            let reading = core.follows.reading();
            let search = reading.is_some_and(Reading::search_is_complete);
            write_json(answer, if ready { 200 } else { 503 }, &extras, |json| {
                json.open_object().key("ready").boolean(ready).key("search").boolean(search);
                json.key("durability").text(durability.text());
                json.key("disk").text(if core.shared.disk_hangs() { "hangs" } else { "ok" });
                if let Some(reading) = reading {
                    reading.reader().write_modes(json);
                }
                json.close_object();
            });
        }
        (Method::Get, "/machine") => machine(answer, core, &extras),
        (Method::Get, "/limits") => limits(answer, &core.shared, &extras),
        (Method::Get, "/metrics") => metrics::write(answer, core, &extras),
        (Method::Get, "/debug/latency") => {
            metrics::latency(answer, core, Query::new(head.query), &extras);
        }
        (Method::Get, "/debug/latency.hgrm") => {
            metrics::hgrm(answer, core, Query::new(head.query), &extras);
        }
        _ => return act::begin(core, pending, request, answer),
    }
    Done::Answered(Position(0))
}

/// Writes an answer whose body is what `write` puts together.
pub(crate) fn write_json(
    out: &mut Vec<u8>,
    status: u16,
    extras: &Extras<'_>,
    write: impl FnOnce(&mut Writer<'_>),
) {
    let response = Response::begin(out, status, ContentType::Json, extras);
    write(&mut Writer::new(out));
    response.finish(out);
}

/// Answers a request that [`begin`] left for [`Done::Later`].
pub(crate) fn finish(core: &mut CoreLoop, pending: Pending, said: &Said, at: Position) {
    let mut answer = Vec::new();
    write_said(&mut answer, pending, said);
    core.answer(pending.client, pending.number, &answer, at);
}

/// Writes what a request is answered with.
pub(super) fn write_said(out: &mut Vec<u8>, pending: Pending, said: &Said) {
    let (connection, retry_after_s) = (connection_word(pending.keep_alive), said.retry_after_s);
    let extras = Extras { connection, retry_after_s, ..Extras::default() };
    write_json(out, said.status, &extras, |json| {
        json.raw(&said.body);
    });
}

/// Whether this request is admitted.
fn admitted(core: &CoreLoop, head: &Head<'_>, body: &[u8]) -> Result<(), Refusal> {
    let words = |status, code, words| Refusal::new(status, code, "", "", words);
    if !head.host.is_some_and(is_loopback_name) {
        let got = head.host.unwrap_or_default();
        return Err(Refusal::new(403, "host", "Host", got, "a loopback name"));
    }
    if !console::admits(head) {
        return Err(words(
            403,
            "origin",
            "requests of web pages are refused, but for what the console reads",
        ));
    }
    if !body.is_empty() && !head.content_type.is_some_and(is_json) {
        let got = head.content_type.unwrap_or_default();
        return Err(Refusal::new(415, "content_type", "Content-Type", got, "application/json"));
    }
    let open = matches!(head.path, "/health" | "/ready") || console::file(head.path).is_some();
    if open {
        return Ok(());
    }
    core.token.check(head).map_err(|text| words(401, "token", text))
}

/// Whether `Host` is a loopback name, with a port or without one, and nothing else.
fn is_loopback_name(host: &str) -> bool {
    let bracketed = host.strip_prefix('[').and_then(|host| host.split_once(']'));
    let (name, rest) = bracketed.unwrap_or_else(|| host.split_at(host.find(':').unwrap_or(host.len())));
    let is_loopback = if bracketed.is_some() {
        name.parse().is_ok_and(|ip: Ipv6Addr| ip.is_loopback())
    } else {
        name == "localhost" || name.parse().is_ok_and(|ip: Ipv4Addr| ip.is_loopback())
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    is_loopback && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port))
}

fn is_json(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or("");
    media.trim().eq_ignore_ascii_case("application/json")
}

/// What was seen of the machine; `null` until the first look has ended.
fn machine(out: &mut Vec<u8>, core: &CoreLoop, extras: &Extras<'_>) {
    let shared = &core.shared;
    let (now, elapsed_ms) = (shared.clock.now(), shared.clock.elapsed_ms());
    let seen = shared.machine.ask(&shared.plan, now, elapsed_ms);
    let response = Response::begin(out, 200, ContentType::Json, extras);
    out.extend_from_slice(seen.as_deref().unwrap_or(b"null"));
    response.finish(out);
}

fn limits(out: &mut Vec<u8>, shared: &Shared, extras: &Extras<'_>) {
    let limits = &shared.plan.limits;
    write_json(out, 200, extras, |json| {
        json.open_object();
        for (name, value) in [
            ("resting_orders_max", u64::from(limits.resting_orders_max)),
            ("open_per_owner_max", u64::from(limits.open_per_owner_max)),
            ("positions_max", u64::from(limits.positions_max)),
            ("positions_per_wallet_max", u64::from(limits.positions_per_wallet_max)),
            ("digests_max", u64::from(limits.digests_max)),
            ("wallets_max", u64::from(limits.wallets_max)),
            ("markets_max", u64::from(limits.markets_max)),
            ("connections_max", u64::from(limits.connections_max)),
            ("connections_per_address_max", u64::from(limits.connections_per_address_max)),
            ("books_bytes", limits.books_bytes),
            ("log_bytes", shared.plan.log_bytes),
        ] {
            json.key(name).number(value);
        }
        toll::write(json, &shared.limits);
        json.close_object();
    });
}

#[cfg(test)]
mod tests {
    use super::super::request::Refusal;
    use super::*;
    use crate::server::requests::refusal;

    #[test]
    fn a_token_has_no_line_end_and_no_token_is_none() {
        for text in ["0123456789abcdef", "0123456789abcdef\n", " 0123456789abcdef\r\n"] {
            assert_eq!(token_in(text).as_deref(), Some("0123456789abcdef"));
        }
        assert_eq!(token_in(" \n"), None);
    }

    #[test]
    fn a_token_that_can_be_guessed_is_refused_in_the_environment_as_in_a_file() {
        for (characters, had) in
            [(1, Some("1 character")), (15, Some("15 characters")), (16, None), (17, None)]
        {
            let said = had.map(|had| format!("got {had}; allowed: at least 16"));
            assert_eq!(check_choice(&"x".repeat(characters)).err(), said);
        }
    }

    #[test]
    fn only_loopback_names_are_hosts_of_the_operator() {
        for host in ["localhost", "localhost:8081", "127.0.0.1:8081", "127.9.9.9", "[::1]:8081", "[::1]"] {
            assert!(is_loopback_name(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]:1",
            "localhost.evil",
            "[::1].evil.example",
            "[::1]evil.example",
            "[::1]:8081.evil.example",
            "[::1",
            "[127.0.0.1]",
            "::1",
            "127.0.0.1:evil.example",
            "127.0.0.1:80@evil.example",
            "localhost:",
            "localhost:8081:8081",
        ] {
            assert!(!is_loopback_name(host), "{host}");
        }
    }

    #[test]
    fn an_answer_says_when_to_ask_again_if_waiting_helps() {
        let pending = Pending { client: Client { slot: 0, generation: 0 }, number: 0, keep_alive: true };
        let fields = r#""retry_after_seconds":1}"#;
        for (said, helps) in [
            (refusal::busy(), true),
            (Refusal::new(503, "busy", "", "", "enough imports wait for their turn; try again").said(), true),
            (Refusal::new(404, "market_unknown", "market", "7", "a market that is here").said(), false),
        ] {
            let mut answer = Vec::new();
            write_said(&mut answer, pending, &said);
            let answer = String::from_utf8(answer).expect("text");
            assert_eq!(answer.contains("\r\nRetry-After: 1\r\n"), helps, "{answer}");
            assert_eq!(answer.ends_with(fields), helps, "{answer}");
        }
    }

    #[test]
    fn only_json_is_a_body() {
        assert!(is_json("application/json") && is_json("Application/JSON; charset=utf-8"));
        assert!(!is_json("text/plain") && !is_json("application/x-www-form-urlencoded"));
    }
}
