//! A subscriber of a stream: `tungstenite`, which shares no code with the server.

use super::exchange::Exchange;
use super::schema::Document;
use serde_json::Value;
use std::net::TcpStream;
use std::sync::LazyLock;
use std::time::Duration;
use tungstenite::protocol::CloseFrame;
use tungstenite::{Message, WebSocket};

/// How long a message may take.
const PATIENCE: Duration = Duration::from_mins(2);
/// The same in heartbeats, of which one comes in five seconds.
const BEATS_MAX: usize = 24;

/// What the server said, which is one of the messages in its document.
#[track_caller]
pub fn read(text: &str) -> Value {
    static DOCUMENT: LazyLock<Document> = LazyLock::new(Document::of_streams);
    let told = serde_json::from_str(text).unwrap();
    let complaints = DOCUMENT.complaints_of_told(&told);
    assert!(complaints.is_empty(), "{complaints:#?}: {told}");
    told
}

/// One subscriber.
pub struct Stream(pub WebSocket<TcpStream>);

impl Stream {
    pub fn open(exchange: &Exchange, channel: &str) -> Self {
        Self::on(TcpStream::connect(("127.0.0.1", exchange.http)).unwrap(), channel)
    }

    /// Makes a stream of a connection whose requests are all answered.
    pub fn on(socket: TcpStream, channel: &str) -> Self {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let url = format!("ws://{}/ws/{channel}", socket.peer_addr().unwrap());
        Self(tungstenite::client(url, socket).unwrap().0)
    }

    pub fn say(&mut self, message: &Value) {
        self.0.send(Message::text(message.to_string())).unwrap();
    }

    /// The next message, as a text.
    #[track_caller]
    pub fn text(&mut self) -> String {
        loop {
            match self.0.read() {
                Ok(Message::Text(text)) => return text.to_string(),
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Err(tungstenite::Error::Io(fault)) if fault.kind() == std::io::ErrorKind::Interrupted => {}
                other => panic!("instead of a text: {other:?}"),
            }
        }
    }

    #[track_caller]
    pub fn next(&mut self) -> Value {
        read(&self.text())
    }

    /// The next message that is not a heartbeat.
    #[track_caller]
    pub fn event(&mut self) -> Value {
        for _ in 0..BEATS_MAX {
            let message = self.next();
            if message["type"] != "heartbeat" {
                return message;
            }
        }
        panic!("nothing but heartbeats");
    }

    /// The reason for which the server closes.
    #[track_caller]
    pub fn close(&mut self) -> CloseFrame {
        loop {
            match self.0.read() {
                Ok(Message::Close(frame)) => return frame.expect("a reason"),
                Ok(_) => {}
                Err(fault) => panic!("instead of a close: {fault}"),
            }
        }
    }
}
