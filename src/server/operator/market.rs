//! `outcry market …`: what it sends, and how an answer reads.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::client::Client;
use super::request;
use super::terminal::{in_json, on_one_line};
use crate::catalog::{Fields, items, quoted};
use crate::server::plan::command::{AdminArgs, MarketCommand, MarketName};
use crate::server::process::run::say;

/// Does one `market` command.
pub(crate) fn run(command: &MarketCommand) -> Result<ExitCode, String> {
    match command {
        MarketCommand::Create { admin, question, outcomes, tick, min_size, event } => {
            let body = new_market(question, outcomes, tick, min_size.as_deref(), event.as_deref())?;
            shown(&Client::of(admin)?.post("/markets", &body)?.success()?)
        }
        MarketCommand::List { admin } => {
            let mut client = Client::of(admin)?;
            let (mut list, mut path) = (List::new(), "/markets".to_owned());
            while !path.is_empty() {
                let page = client.get(&path)?.success()?;
                path = list.add(&page).ok_or_else(|| not_the_operators(&admin.admin))?;
            }
            say(&list.ended())
        }
        MarketCommand::Show(name) => {
            let path = format!("/markets/{}", checked(&name.market)?);
            let body = Client::of(&name.admin)?.get(&path)?.success()?;
            let told = Fields::parse(&body).is_some_and(|fields| fields.raw("marketId").is_some());
            if told { shown(&body) } else { Err(not_the_operators(&name.admin.admin)) }
        }
        MarketCommand::Pause(name) => act(name, "pause", "{}"),
        MarketCommand::Resume(name) => act(name, "resume", "{}"),
        MarketCommand::Mode { market, mode } => {
            act(market, "mode", &format!("{{\"mode\":{}}}", quoted(mode)))
        }
        MarketCommand::Resolve { market, payout, redeem } => {
            act(market, "resolve", &format!("{{\"payout\":{},\"redeem\":{redeem}}}", quoted(payout)))
        }
        MarketCommand::Tick { market, tick } => {
            act(market, "tick", &format!("{{\"tick\":{}}}", quoted(tick)))
        }
    }
}

/// `outcry snapshot`: asks for one and waits until it is there.
pub(crate) fn snapshot(admin: &AdminArgs) -> Result<ExitCode, String> {
    shown(&Client::of(admin)?.post("/snapshot", "{}")?.success()?)
}

/// `outcry mode`: what the whole exchange takes.
pub(crate) fn exchange_mode(admin: &AdminArgs, mode: &str) -> Result<ExitCode, String> {
    shown(&Client::of(admin)?.post("/mode", &format!("{{\"mode\":{}}}", quoted(mode)))?.success()?)
}

fn act(name: &MarketName, act: &str, body: &str) -> Result<ExitCode, String> {
    let path = format!("/markets/{}/{act}", checked(&name.market)?);
    shown(&Client::of(&name.admin)?.post(&path, body)?.success()?)
}

/// A market's name for a path, checked as the listener checks it: what could mean another path is refused here.
fn checked(market: &str) -> Result<&str, String> {
    request::market_name(market).map(|_| market).map_err(|refusal| refusal.to_string())
}

fn new_market(
    question: &str,
    outcomes: &str,
    tick: &str,
    min_size: Option<&str>,
    event: Option<&str>,
) -> Result<String, String> {
    let labels = outcomes.split_once(',').map(|(zero, one)| (zero.trim(), one.trim()));
    let (zero, one) = labels
        .filter(|(zero, one)| zero != one && !one.contains(','))
        .ok_or_else(|| format!("--outcomes: got {outcomes}; allowed: A,B, two that differ"))?;
    let mut body = format!(
        "{{\"question\":{},\"outcomes\":[{},{}],\"tick\":{}",
        quoted(question),
        quoted(zero),
        quoted(one),
        quoted(tick)
    );
    for (name, value) in [("minSize", min_size), ("event", event)] {
        if let Some(value) = value {
            let _ = write!(body, ",{}:{}", quoted(name), quoted(value));
        }
    }
    body.push('}');
    Ok(body)
}

/// Prints an answer: JSON still, one field a line, in which nothing steers a terminal.
pub(super) fn shown(body: &str) -> Result<ExitCode, String> {
    say(&field_lines(body))
}

fn field_lines(body: &str) -> String {
    let Some(fields) = Fields::parse(body) else {
        return on_one_line(body) + "\n";
    };
    let line = |name: &str| format!("  {}: {}", quoted(name), fields.raw(name).unwrap_or("null"));
    let lines: Vec<String> = fields.names().map(line).collect();
    in_json(&format!("{{\n{}\n}}\n", lines.join(",\n"))).into_owned()
}

/// The public listener has markets too, and answers with other lists of them.
fn not_the_operators(admin: &str) -> String {
    format!("--admin: got {admin}, which tells markets as the public listener does; allowed: the operator's")
}

/// A line for each market: id, mode, tick, live orders, question.
struct List {
    text: String,
    markets: usize,
}

impl List {
    fn new() -> Self {
        let text = format!("{:>12}  {:11} {:>7} {:>7}  question\n", "id", "mode", "tick", "orders");
        Self { text, markets: 0 }
    }

    /// Adds a page; returns the path of the next one, which is empty behind the page without markets. None if this is no
    /// operator's page.
    fn add(&mut self, page: &str) -> Option<String> {
        let mut next = String::new();
        for row in items(page)? {
            let fields = Fields::parse(row).filter(|fields| fields.raw("marketId").is_some())?;
            let words = |name| on_one_line(&fields.words(name).unwrap_or_default());
            let _ = writeln!(
                self.text,
                "{:>12}  {:11} {:>7} {:>7}  {}",
                words("marketId"),
                words("mode"),
                words("tick"),
                words("liveOrders"),
                words("question")
            );
            self.markets += 1;
            next = format!("/markets?after={}", words("marketId"));
        }
        Some(next)
    }

    fn ended(mut self) -> String {
        let _ = writeln!(self.text, "{} markets", self.markets);
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Method, Query};

    #[test]
    fn a_new_market_is_sent_as_the_route_reads_it() {
        let body = new_market("Rain \"soon\"?", "Wet, Dry", "0.01", Some("5"), None).expect("a body");
        let asked = request::read(Method::Post, "/markets", Query::default(), body.as_bytes());
        let request::Asked::NewMarket(market) = asked.expect("understood") else {
            panic!("a market");
        };
        assert_eq!(market.question, "Rain \"soon\"?");
        assert_eq!(market.labels, ["Wet", "Dry"]);
        for outcomes in ["Wet", "Wet,Dry,Damp", "Wet, Wet", ""] {
            assert_eq!(
                new_market("?", outcomes, "0.01", None, None),
                Err(format!("--outcomes: got {outcomes}; allowed: A,B, two that differ"))
            );
        }
    }

    #[test]
    fn a_name_that_could_be_another_path_is_refused() {
        let condition = format!("0x{}", "1a".repeat(32));
        for name in ["7", &condition] {
            assert_eq!(checked(name), Ok(name));
        }
        for name in ["", "7/resolve", "../mode", "7?x", "0x12ab"] {
            let got = if name.is_empty() { "nothing" } else { name };
            let allowed = "a market's id, or 0x and the 64 hex digits of its condition";
            assert_eq!(checked(name), Err(format!("market: got {got}; allowed: {allowed}")));
        }
    }

    #[test]
    fn an_object_reads_one_field_a_line_and_a_list_one_market_a_line() {
        assert_eq!(
            field_lines("{\"id\":7,\"q\":null,\"r\":\"\\\"\u{9b}2J\"}"),
            "{\n  \"id\": 7,\n  \"q\": null,\n  \"r\": \"\\\"\\u009b2J\"\n}\n"
        );
        let row = r#"[{"marketId":7,"mode":"open","tick":"0.01","liveOrders":2,"question":"Q\u001b[2J\n8 \u00df?"}]"#;
        let mut list = List::new();
        assert_eq!(list.add(r#"{"data":[],"next_cursor":"LTE="}"#), None);
        assert_eq!(list.add(row).as_deref(), Some("/markets?after=7"));
        assert_eq!(list.add("[]").as_deref(), Some(""));
        let text = list.ended();
        let end = "           7  open           0.01       2  Q\\u{1b}[2J\\n8 ß?\n1 markets\n";
        assert!(text.ends_with(end), "{text}");
    }
}
