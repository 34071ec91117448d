//! What streams hold for clients that do not read.

use super::Site;
use crate::common::stream::Stream;
use crate::common::wire::Connection;
use outcry::domain::Side;
use serde_json::json;
use std::io::Write;
use std::time::{Duration, Instant};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(2);

impl Site {
    /// Polls until the number of bytes held for all clients satisfies `is_it`.
    fn until_held(&self, mut is_it: impl FnMut(u64) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = Connection::open(self.exchange.admin).request("GET", "/metrics", "", b"").unwrap();
            let text = String::from_utf8(answer.body).unwrap();
            let held = text.lines().find_map(|line| line.strip_prefix("outcry_held_bytes ")).unwrap();
            if is_it(held.parse().unwrap()) {
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
