//! Another implementation as the client: each side understands what the other sends.

use super::*;
use std::io::{ErrorKind, Read, Write};
use tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tungstenite::protocol::{CloseFrame, Role, WebSocket};
use tungstenite::{Error, Message};

/// Both directions of a socket in memory.
#[derive(Default)]
struct Wire {
    to_client: Vec<u8>,
    from_client: Vec<u8>,
}

impl Read for Wire {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.to_client.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = out.len().min(self.to_client.len());
        out[..count].copy_from_slice(&self.to_client[..count]);
        self.to_client.drain(..count);
        Ok(count)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.from_client.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn client() -> WebSocket<Wire> {
    WebSocket::from_raw_socket(Wire::default(), Role::Client, None)
}

const LENGTHS: [usize; 8] = [0, 1, 125, 126, 127, 65_534, 65_535, 65_536];

#[test]
fn what_a_client_sends_is_heard() {
    let mut client = client();
    let mut expected = Vec::new();
    for bytes in LENGTHS {
        let text = "é".repeat(bytes / 2) + &"a".repeat(bytes % 2);
        client.send(Message::text(text.clone())).unwrap();
        expected.push(Heard::Text(text));
    }
    for payload in [vec![], vec![0xff; CONTROL_BYTES_MAX]] {
        client.send(Message::Ping(payload.clone().into())).unwrap();
        client.send(Message::Pong(payload.clone().into())).unwrap();
        expected.extend([Heard::Ping(payload.clone()), Heard::Pong(payload)]);
    }
    for (text, opcode, last) in
        [(&b"\xce"[..], Data::Text, false), (b"\xba", Data::Continue, false), (b"!", Data::Continue, true)]
    {
        let frame = tungstenite::protocol::frame::Frame::message(text, OpCode::Data(opcode), last);
        client.send(Message::Frame(frame)).unwrap();
    }
    expected.push(Heard::Text("κ!".into()));
    client.close(Some(CloseFrame { code: CloseCode::Away, reason: "bye".into() })).unwrap();
    expected.push(Heard::Close(Some((1001, "bye".into()))));

    let wire = &client.get_ref().from_client;
    for piece_bytes in [1, 7, 1400, ALL_AT_ONCE] {
        assert!(heard(wire, piece_bytes) == expected, "in pieces of {piece_bytes}");
    }
}

#[test]
fn what_we_send_is_heard_by_a_client() {
    let mut client = client();
    let out = &mut client.get_mut().to_client;
    for bytes in LENGTHS {
        push_text_header(out, bytes);
        out.resize(out.len() + bytes, b'a');
    }
    push_ping(out);
    push_pong(out, &[0xff; CONTROL_BYTES_MAX]);
    push_close(out, 1009, &"é".repeat(CLOSE_REASON_BYTES_MAX));

    for bytes in LENGTHS {
        assert!(client.read().unwrap() == Message::text("a".repeat(bytes)), "{bytes} bytes");
    }
    assert_eq!(client.read().unwrap(), Message::Ping("".into()));
    assert_eq!(client.read().unwrap(), Message::Pong(vec![0xff; CONTROL_BYTES_MAX].into()));
    let reason = "é".repeat(CLOSE_REASON_BYTES_MAX / 2).into();
    assert_eq!(client.read().unwrap(), Message::Close(Some(CloseFrame { code: CloseCode::Size, reason })));
    assert!(matches!(client.read(), Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock));

    let replies = heard(&client.get_ref().from_client, ALL_AT_ONCE);
    assert_eq!(replies.first(), Some(&Heard::Pong(b"".into())));
    assert!(matches!(replies.last(), Some(Heard::Close(Some((1009, _))))), "{replies:?}");
}

#[test]
fn a_client_takes_our_accept() {
    for _ in 0..100 {
        let key = tungstenite::handshake::client::generate_key();
        assert!(is_key(&key), "{key}");
        assert_eq!(
            accept_key(&key),
            tungstenite::handshake::derive_accept_key(key.as_bytes()).as_bytes(),
            "{key}"
        );
    }
}
