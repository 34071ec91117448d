//! Requests that would become a stream if they lacked nothing.

use crate::common::exchange::Exchange;

pub(crate) fn each_that_lacks_something_is_refused_by_its_name(exchange: &Exchange) {
    let asks = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
    for (lines, about) in [
        (String::new(), ["Upgrade", "", "websocket"]),
        ("Upgrade: \"h2c\\\r\n".to_owned(), ["Upgrade", "?h2c?", "websocket"]),
        (format!("{asks}Sec-WebSocket-Version: 12\r\n"), ["Sec-WebSocket-Version", "12", "13"]),
        (format!("{asks}Sec-WebSocket-Version: 13\r\n"), ["Sec-WebSocket-Key", "", "16 bytes in base64"]),
        (
            format!("{asks}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: abc\r\n"),
            ["Sec-WebSocket-Key", "abc", "16 bytes in base64"],
        ),
    ] {
        let answer = exchange.connect().request("GET", "/ws/market", &lines, b"").unwrap();
        assert_eq!((answer.status, answer.header("Upgrade")), (426, Some("websocket")));
        let refused = answer.json();
        assert_eq!(refused["code"], "upgrade_required");
        assert_eq!(["field", "got", "allowed"].map(|name| refused[name].as_str().unwrap()), about, "{lines}");
    }
}
