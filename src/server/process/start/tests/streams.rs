//! How long a stream stays of which nothing comes, or whose client does not go.

use super::*;
use crate::limits::Mode;

const ASKS: &[u8] = b"GET /ws/market HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";

/// The text `PING`, masked with zeros.
const PING: &[u8] = b"\x81\x84\0\0\0\0PING";

/// A stream, and what its client says at once.
fn stream(running: &Running, says: &[u8]) -> TcpStream {
    let mut client = TcpStream::connect(running.http()).expect("connects");
    client.write_all(&[ASKS, says].concat()).expect("writes");
    client
}

/// Reads until the server says this, and returns all that it said.
fn told_until(client: &mut TcpStream, word: &str) -> String {
    let (mut told, mut piece) = (String::new(), [0; 1 << 10]);
    while !told.contains(word) {
        let count = client.read(&mut piece).expect("it is told why it ends");
        told += &String::from_utf8_lossy(&piece[..count]);
        assert!(0 < count && told.matches("heartbeat").count() < 4, "no {word} in {told}");
    }
    told
}

/// What a stream is told every five seconds does not count as a word of its own.
#[test]
fn a_stream_that_breaks_off_within_a_frame_is_idle_too() {
    let mut running = serve(2, |plan| plan.limits.stream_idle_ms = 5_500);
    told_until(&mut stream(&running, b"\x81"), "nothing came for too long");
    assert_eq!(running.stop(), End::Clean);
}

#[test]
fn a_stream_whose_limit_held_it_may_be_as_silent_as_any_other() {
    let mut running = serve(2, |plan| {
        plan.rate_mode = Mode::Enforce;
        plan.limits.idle_ms = 50;
    });
    // More than a client may say in one second.
    let told = told_until(&mut stream(&running, &PING.repeat(520)), "heartbeat");
    assert_eq!(told.matches("PONG").count(), 520, "{told}");
    assert_eq!(running.stop(), End::Clean);
}

#[test]
fn a_stream_that_was_closed_goes_though_its_client_talks_on() {
    let mut running = serve(2, |_| ());
    // A binary message is not taken.
    let mut client = stream(&running, b"\x82\x81\0\0\0\0x");
    client.set_read_timeout(Some(Duration::from_millis(20))).expect("a setting");
    let deadline = Instant::now() + Duration::from_mins(1);
    while client.write_all(PING).is_ok() {
        assert!(Instant::now() < deadline, "it is still there");
        let _ = client.read(&mut [0; 1 << 10]);
    }
    assert_eq!(running.stop(), End::Clean);
}
