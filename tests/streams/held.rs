//! What streams hold for clients that do not read.

use super::Site;
use crate::common::stream::{self, Stream};
use crate::common::trader::{Wish, token};
use outcry::domain::Side;
use serde_json::json;
use std::io::Write;
use std::time::{Duration, Instant};
use tungstenite::Message;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(2);

impl Site {
    /// Polls until the number of bytes held for all clients satisfies `is_it`.
    fn until_held(&self, mut is_it: impl FnMut(u64) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let held = self.exchange.metric("outcry_held_bytes");
            if is_it(held) {
                return;
            }
            assert!(Instant::now() < deadline, "{held} bytes are held");
        }
    }
}

pub(super) fn what_a_stream_holds_is_told_among_all_and_given_back_when_it_is_gone(feed: &str) {
    /// Some 200 bytes each, answered with two books of several KB: more than two sockets keep for a client.
    const ASKS_MAX: usize = 4_000;
    let mut site = Site::start(feed);
    for cents in 1..65 {
        site.order(0, 0, Side::Buy, cents, 5, "GTC");
    }
    let mut stream = Stream::open(&site.exchange, "market");
    rustix::net::sockopt::set_socket_recv_buffer_size(stream.0.get_ref(), 1 << 12).unwrap();
    stream.0.get_ref().set_nonblocking(true).unwrap();
    let message = json!({ "type": "market", "assets_ids": site.tokens }).to_string();
    let length = u16::try_from(message.len()).unwrap().to_be_bytes();
    // A text of which every byte is masked by 0.
    let frame = [&[0x81, 0xfe, length[0], length[1], 0, 0, 0, 0], message.as_bytes()].concat();
    let asks = frame.repeat(ASKS_MAX);
    let mut said = 0;
    site.until_held(|bytes| {
        // What the socket does not take now is said later, unless the server has stopped reading.
        while let Ok(count) = stream.0.get_mut().write(&asks[said..])
            && 0 < count
        {
            said += count;
        }
        0 < bytes
    });
    drop(stream);
    site.until_held(|bytes| bytes == 0);
}

/// A client that is slow.
struct Slow {
    stream: Stream,
    /// The newest number that it was told.
    sequence: u64,
    beats: usize,
}

impl Slow {
    /// Heartbeats that may be among the unread messages.
    const BEATS_MAX: usize = 30;

    /// Reads one message; returns the code of a close.
    fn read(&mut self) -> Option<u16> {
        match self.stream.0.read().unwrap() {
            Message::Close(frame) => {
                let frame = frame.expect("a reason");
                let reason = frame.reason.strip_prefix("too much is unread: got ").expect("what is unread");
                let (got, allowed) = reason.split_once(" bytes; ").expect("how much");
                assert!(1 << 20 < got.parse::<u64>().unwrap(), "{got}");
                assert_eq!(allowed, "allowed: 1048576 for 5 s, 1048576 at once");
                return Some(u16::from(frame.code));
            }
            Message::Text(text) => {
                let message = stream::read(&text);
                self.sequence = message["sequence"].as_u64().unwrap_or(self.sequence);
                self.beats += usize::from(message["type"] == "heartbeat");
                assert!(self.beats < Self::BEATS_MAX, "it goes on");
            }
            _ => {}
        }
        None
    }
}

pub(super) fn who_reads_too_slowly_is_cut_and_the_end_of_the_server_is_said(feed: &str) {
    /// Some ten KB each: more than two sockets and the server keep for a client.
    const TRADES: usize = 1_200;
    let mut site = Site::started(feed, |plan| plan.set("streams.unread_bytes_max=1048576"));
    for cents in 1..65 {
        site.order(0, 0, Side::Buy, cents, 5, "GTC");
    }
    let ((mut fast, ..), (stream, ..)) = (site.market(), site.market());
    rustix::net::sockopt::set_socket_recv_buffer_size(stream.0.get_ref(), 1 << 16).unwrap();
    let mut slow = Slow { stream, sequence: 0, beats: 0 };
    let mut end = None;
    // Each trade sends both books. It reads one message of them: who reads nothing at all is cut without a reason.
    for _ in 0..TRADES {
        let (_, answer) = site.order(0, 0, Side::Buy, 70, 5, "GTC");
        assert_eq!(answer["success"], true, "{answer}");
        let (_, answer) = site.order(1, 1, Side::Buy, 30, 5, "GTC");
        assert_eq!(answer["status"], "matched", "{answer}");
        // A feed that lags would send fewer books, so the next trade waits until a client that reads has both.
        let said = std::iter::repeat_with(|| fast.event());
        assert_eq!(said.filter(|message| message["event_type"] == "book").take(2).count(), 2);
        end = end.or_else(|| slow.read());
    }
    let end = end.unwrap_or_else(|| std::iter::repeat_with(|| slow.read()).find_map(|code| code).unwrap());
    assert_eq!(end, 4_000);
    let (mut reading, _, mirror) = site.market();
    assert!(slow.sequence < mirror.sequence, "it was cut before it was told of everything");
    let Site { exchange, .. } = site;
    exchange.stop();
    loop {
        match reading.event() {
            message if message["type"] == "mode" => {
                assert_eq!(message["mode"], "ending");
                break;
            }
            _ => {}
        }
    }
    assert_eq!(u16::from(reading.close().code), 1_001);
}

/// How far its client reads decides when the rest is written.
pub(super) fn the_rest_of_many_first_books_comes_behind_what_is_said_after_their_question(feed: &str) {
    /// Two books of 98 levels each, some 7 KB: more than is written before the next message is heard.
    const MARKETS: usize = 12;
    let mut site = Site::start(feed);
    let markets: Vec<_> = (0..MARKETS).map(|no| site.exchange.market(&format!("Market {no}?"))).collect();
    for market in &markets {
        for cents in 1..99 {
            let answer =
                site.place(0, &Wish::of(Side::Buy, token(&market.tokens[0]), cents * 100, 5_000_000)).1;
            assert_eq!(answer["success"], true, "{answer}");
        }
    }
    let mut stream = Stream::open(&site.exchange, "market");
    let conditions: Vec<_> = markets.iter().map(|market| &market.condition).collect();
    stream.0.write(Message::text(json!({ "type": "market", "markets": conditions }).to_string())).unwrap();
    stream.0.write(Message::text("PING")).unwrap();
    stream.0.flush().unwrap();
    let mut told = Vec::new();
    while told.iter().filter(|kind| *kind == "book").count() < 2 * MARKETS {
        let text = stream.text();
        let kind = if text == "PONG" { json!("PONG") } else { stream::read(&text)["event_type"].clone() };
        told.push(kind.as_str().unwrap_or_default().to_owned());
    }
    assert_eq!(told[..3], ["", "book", "book"], "the acknowledgement comes first, and what is short at once");
    assert!(told.iter().any(|kind| kind == "PONG"), "{told:?}");
}
