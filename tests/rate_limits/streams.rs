//! What clients say on streams.

use super::Site;
use super::common::stream::Stream;
use tungstenite::Message;

#[test]
fn a_stream_pays_for_its_pings() {
    const PINGS: usize = 8;
    let site = Site::start(&["limits.mode=enforce", "limits.stream_messages=4/1s"]);
    let mut stream = Stream::open(&site.exchange, "market");
    for _ in 0..PINGS {
        stream.0.send(Message::Ping("".into())).unwrap();
    }
    site.until_held(1);
    for _ in 0..PINGS {
        site.exchange.advance(1_000);
    }
    let mut pongs = 0;
    while pongs < PINGS {
        pongs += usize::from(matches!(stream.0.read().unwrap(), Message::Pong(_)));
    }
}

#[test]
fn a_stream_that_closed_has_not_paid_for_the_next_one() {
    let site = Site::start(&["limits.mode=enforce", "limits.stream_messages=4/1s"]);
    for expected in 1..=4 {
        let mut stream = Stream::open(&site.exchange, "market");
        stream.0.send(Message::Ping("".into())).unwrap();
        assert!(matches!(stream.0.read().unwrap(), Message::Pong(_)), "ping {expected}");
    }
    let mut stream = Stream::open(&site.exchange, "market");
    stream.0.send(Message::Ping("".into())).unwrap();
    site.until_held(1);
    site.exchange.advance(1_000);
    assert!(matches!(stream.0.read().unwrap(), Message::Pong(_)));
}

#[test]
fn a_message_for_which_there_is_no_room_for_long_is_held() {
    let site = Site::start(&["limits.mode=enforce", "limits.stream_messages=1/10m"]);
    let mut stream = Stream::open(&site.exchange, "market");
    let mut pings = |count: u64| {
        stream.0.send(Message::Ping("".into())).unwrap();
        if 0 < count {
            site.until_held(count);
            site.exchange.advance(600_000);
        }
        assert!(matches!(stream.0.read().unwrap(), Message::Pong(_)));
    };
    (0..3).for_each(&mut pings);
}
