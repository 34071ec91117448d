//! WebSocket frames (RFC 6455): read in place as they arrive, written into the caller's buffer.
//!
//! A frame on the wire (section 5.2); numbers are big-endian:
//!
//! | bytes | field | |
//! |------:|---|---|
//! | 1 | last (1 bit), reserved (3), opcode (4) | reserved bits are zero: no extension is spoken |
//! | 1 | masked (1 bit), length (7 bits) | 126 and 127 say that a longer length follows |
//! | 0, 2, 8 | longer length | only where the shorter form does not hold it |
//! | 0, 4 | mask | in every frame of a client, in none of the server's |
//! | length | payload | |
//!
//! [`Frames`] reads one client's side. Each byte of a header is judged when it arrives, so a frame
//! that will be refused is never waited for; a payload is unmasked and judged when it is whole. A
//! message in one frame is handed out in place; only a message in fragments is collected, and
//! [`Frames::free_message`] or the next call frees its memory.
//!
//! | limit | value | at it |
//! |---|---|---|
//! | message, in one frame or in fragments | [`MESSAGE_BYTES_MAX`] | taken; one above is 1009 |
//! | payload of a ping, pong or close | [`CONTROL_BYTES_MAX`] | taken; one above is 1002 |
//! | reason of a close that we send | `CLOSE_REASON_BYTES_MAX` | cut after a whole character |
//!
//! Absent: extensions (9), subprotocols (1.9), binary messages (1003), fragments from the server.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1_smol::Sha1;

/// Bytes of a message, whole or in fragments: a subscription to 500 tokens of 78 digits is 40 KB, and 78 KB with the
/// sequences from which their markets are told.
pub const MESSAGE_BYTES_MAX: usize = 128 << 10;

/// Bytes of a control frame's payload (section 5.5).
pub const CONTROL_BYTES_MAX: usize = 125;

/// Bytes of the reason in a close frame: its payload without the code.
const CLOSE_REASON_BYTES_MAX: usize = CONTROL_BYTES_MAX - 2;

/// Characters of a `Sec-WebSocket-Key`: 16 bytes in base64.
const KEY_TEXT_BYTES: usize = 24;

/// Characters of a `Sec-WebSocket-Accept`: a SHA-1 of 20 bytes in base64.
pub const ACCEPT_TEXT_BYTES: usize = 28;

/// What a server appends to the key to show that it speaks WebSocket (section 1.3).
const ACCEPT_SALT: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const MASK_BYTES: usize = 4;
const LAST: u8 = 0x80;
const RESERVED: u8 = 0x70;
const OPCODE: u8 = 0x0f;
const MASKED: u8 = 0x80;
const LENGTH: u8 = 0x7f;
/// The 7-bit length that says that 16 bits follow.
const LENGTH_16: u8 = 126;
/// The 7-bit length that says that 64 bits follow.
const LENGTH_64: u8 = 127;

const _: () = assert!(CONTROL_BYTES_MAX < LENGTH_16 as usize, "a control frame has the short length");
const _: () = assert!(KEY_TEXT_BYTES == 16_usize.div_ceil(3) * 4);
const _: () = assert!(ACCEPT_TEXT_BYTES == 20_usize.div_ceil(3) * 4);

macro_rules! faults {
    ($( $(#[doc = $doc:literal])* $variant:ident = $code:literal, $text:literal; )*) => {
        /// Why a client's bytes are refused. The close frame is sent and the connection closes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Fault { $( $(#[doc = $doc])* $variant, )* }

        impl Fault {
            /// Every reason.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )* ];

            /// The close code (section 7.4.1).
            #[must_use]
            pub const fn code(self) -> u16 {
                match self { $( Self::$variant => $code, )* }
            }

            /// The close reason.
            #[must_use]
            pub const fn reason(self) -> &'static str {
                match self { $( Self::$variant => $text, )* }
            }

            /// What it means: the doc comment of the variant.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $( Self::$variant => concat!($($doc),*).trim_ascii(), )* }
            }
        }
    };
}

faults! {
    /// A reserved bit is set, though no extension was agreed on (section 5.2).
    ReservedBits = 1002, "reserved bits are set";
    /// The opcode means nothing (section 5.2).
    OpcodeUnknown = 1002, "opcode is unknown";
    /// A control frame that is not the last of its message (section 5.5).
    ControlFragmented = 1002, "control frame is fragmented";
    /// A control frame above [`CONTROL_BYTES_MAX`] (section 5.5).
    ControlTooLong = 1002, "control frame is too long: allowed are 125 bytes";
    /// A continuation without a beginning (section 5.4).
    NothingToContinue = 1002, "there is no message to continue";
    /// A new message while the fragments of another are open (section 5.4).
    MessageUnfinished = 1002, "the last message is not finished";
    /// A client's frame without a mask (section 5.1).
    Unmasked = 1002, "frame is not masked";
    /// A longer form of the length than it needs (section 5.2).
    LengthNotMinimal = 1002, "length is not in its shortest form";
    /// The highest bit of a 64-bit length is set (section 5.2).
    LengthMalformed = 1002, "length is malformed";
    /// A close frame of one byte (section 5.5.1).
    CloseMalformed = 1002, "close frame is malformed";
    /// A close code that may not travel (section 7.4).
    CloseCodeInvalid = 1002, "close code is invalid";
    /// A binary message: all that we understand is text.
    Binary = 1003, "binary messages are not understood";
    /// A text or a close reason that is not UTF-8 (section 8.1).
    NotUtf8 = 1007, "text is not UTF-8";
    /// A message above [`MESSAGE_BYTES_MAX`].
    MessageTooLong = 1009, "message is too long: allowed are 131072 bytes, in one frame or in fragments";
}

/// What a client said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// A whole message.
    Text(&'a str),
    /// To be answered by a pong with the same bytes.
    Ping(&'a [u8]),
    /// The answer to a ping, or a sign of life that nobody asked for.
    Pong(&'a [u8]),
    /// Code and reason, if the frame has them. To be answered by a close frame with the same code,
    /// or 1000 if it has none, unless a close frame was sent before (section 5.5.1).
    Close(Option<(u16, &'a str)>),
}

/// One client's frames on their way in.
#[derive(Debug, Default)]
pub struct Frames {
    /// The fragments so far, or the message that the last call made of them.
    message: Vec<u8>,
    /// The length of the prefix of `message` that is known to be whole characters.
    judged: usize,
    /// True between the first fragment of a message and its last.
    collecting: bool,
    /// True after a close frame or a fault.
    over: bool,
    needs: usize,
}

impl Frames {
    /// A connection on which nothing has been said.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next thing that the client said, and returns how many bytes of `input` were used.
    ///
    /// `None`: read more and ask again. Fragments are used even then; a frame that is not whole
    /// stays, and [`Frames::needs`] says how long it is. A fault is final, as is a close: what
    /// follows counts as used and is ignored (section 1.4).
    pub fn next<'a>(&'a mut self, input: &'a mut [u8]) -> Result<(Option<Said<'a>>, usize), Fault> {
        if self.over {
            return Ok((None, input.len()));
        }
        self.free_message();
        // Every fault returns through a `?` below and leaves `over` set.
        self.over = true;
        let mut used = 0;
        let header = loop {
            let Some(header) = self.front(&input[used..])? else {
                self.over = false;
                return Ok((None, used));
            };
            used += header.frame_bytes;
            let payload = &mut input[used - header.payload_bytes..used];
            unmask(payload, header.mask);
            if header.last {
                break header;
            }
            self.collect(payload)?;
        };
        let payload = &input[used - header.payload_bytes..used];
        let said = match header.opcode {
            Opcode::Text => Said::Text(text(payload)?),
            Opcode::Continuation => {
                self.message.extend_from_slice(payload);
                self.collecting = false;
                Said::Text(text(&self.message)?)
            }
            Opcode::Ping => Said::Ping(payload),
            Opcode::Pong => Said::Pong(payload),
            Opcode::Close => Said::Close(close(payload)?),
        };
        self.over = matches!(said, Said::Close(_));
        Ok((Some(said), used))
    }

    /// Frees the memory of a message in fragments that was handed out.
    pub fn free_message(&mut self) {
        if !self.collecting {
            self.message = Vec::new();
            self.judged = 0;
        }
    }

    /// The memory of the fragments so far, or of the message that was made of them.
    #[must_use]
    pub const fn message_bytes(&self) -> usize {
        self.message.capacity()
    }

    /// Whether `input` holds what [`Frames::next`] would hand out as a message or a ping, unless it finds a fault.
    #[must_use]
    pub fn has_message(mut input: &[u8]) -> bool {
        while let [first, second, rest @ ..] = input
            && let Ok(Some(payload_bytes)) = payload_bytes(*second, rest)
            && let Some(behind) = input.get(header_bytes(*second) + payload_bytes..)
        {
            match first & OPCODE {
                opcode if opcode == Opcode::Ping as u8 => return true,
                opcode if opcode == Opcode::Pong as u8 || opcode == Opcode::Close as u8 => return false,
                _ if first & LAST != 0 => return true,
                _ => input = behind,
            }
        }
        false
    }

    /// The length of the frame that is not whole yet, as far as its header has arrived: at most the
    /// longest message behind its header. Valid after [`Frames::next`] gave `None`; counted from the
    /// first byte that was not used.
    #[must_use]
    pub const fn needs(&self) -> usize {
        self.needs
    }

    /// The header of the frame at the front of `input`; `None` if the frame is not whole.
    fn front(&mut self, input: &[u8]) -> Result<Option<Header>, Fault> {
        self.needs = 2;
        let Some(&first) = input.first() else {
            return Ok(None);
        };
        let (opcode, last) = self.opcode(first)?;
        let Some(&second) = input.get(1) else {
            return Ok(None);
        };
        if second & MASKED == 0 {
            return Err(Fault::Unmasked);
        }
        if opcode.is_control() && usize::from(second & LENGTH) > CONTROL_BYTES_MAX {
            return Err(Fault::ControlTooLong);
        }
        self.needs = header_bytes(second);
        let Some(payload_bytes) = payload_bytes(second, &input[2..])? else {
            return Ok(None);
        };
        if !opcode.is_control() && payload_bytes > MESSAGE_BYTES_MAX - self.message.len() {
            return Err(Fault::MessageTooLong);
        }
        self.needs += payload_bytes;
        if input.len() < self.needs {
            return Ok(None);
        }
        let frame_bytes = self.needs;
        let mask = *input[header_bytes(second) - MASK_BYTES..].first_chunk().expect("the frame is whole");
        Ok(Some(Header { opcode, last, mask, payload_bytes, frame_bytes }))
    }

    /// What the first byte of a frame says: its opcode, and whether it ends its message.
    fn opcode(&self, first: u8) -> Result<(Opcode, bool), Fault> {
        if first & RESERVED != 0 {
            return Err(Fault::ReservedBits);
        }
        let last = first & LAST != 0;
        let opcode = match first & OPCODE {
            0x0 if !self.collecting => return Err(Fault::NothingToContinue),
            0x1 | 0x2 if self.collecting => return Err(Fault::MessageUnfinished),
            0x0 => Opcode::Continuation,
            0x1 => Opcode::Text,
            0x2 => return Err(Fault::Binary),
            0x8 => Opcode::Close,
            0x9 => Opcode::Ping,
            0xa => Opcode::Pong,
            _ => return Err(Fault::OpcodeUnknown),
        };
        if opcode.is_control() && !last {
            return Err(Fault::ControlFragmented);
        }
        Ok((opcode, last))
    }

    /// Keeps a fragment that is not the last. It may end inside a character, but must otherwise be UTF-8.
    fn collect(&mut self, payload: &[u8]) -> Result<(), Fault> {
        self.collecting = true;
        self.message.extend_from_slice(payload);
        match std::str::from_utf8(&self.message[self.judged..]) {
            Ok(whole) => self.judged += whole.len(),
            Err(cut) if cut.error_len().is_none() => self.judged += cut.valid_up_to(),
            Err(_) => return Err(Fault::NotUtf8),
        }
        Ok(())
    }
}

/// The opcodes that are taken (section 5.2).
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Opcode {
    Continuation = 0x0,
    Text = 0x1,
    Close = 0x8,
    Ping = 0x9,
    Pong = 0xa,
}

impl Opcode {
    const fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

/// The header of a frame that is whole.
#[derive(Clone, Copy)]
struct Header {
    opcode: Opcode,
    last: bool,
    mask: [u8; MASK_BYTES],
    payload_bytes: usize,
    frame_bytes: usize,
}

/// Bytes of a masked frame's header whose second byte is `second`.
const fn header_bytes(second: u8) -> usize {
    let longer_bytes = match second & LENGTH {
        LENGTH_16 => 2,
        LENGTH_64 => 8,
        _ => 0,
    };
    2 + longer_bytes + MASK_BYTES
}

/// Bytes of the payload, by the second byte and what follows it; `None` if the length is not whole.
fn payload_bytes(second: u8, rest: &[u8]) -> Result<Option<usize>, Fault> {
    let (length, length_min) = match second & LENGTH {
        LENGTH_16 => (rest.first_chunk().map(|&bytes| u16::from_be_bytes(bytes).into()), LENGTH_16.into()),
        LENGTH_64 => (rest.first_chunk().map(|&bytes| u64::from_be_bytes(bytes)), 1 << 16),
        short => (Some(short.into()), 0),
    };
    match length {
        None => Ok(None),
        Some(length) if length < length_min => Err(Fault::LengthNotMinimal),
        Some(length) if length >> 63 != 0 => Err(Fault::LengthMalformed),
        Some(length) => usize::try_from(length).map(Some).map_err(|_| Fault::MessageTooLong),
    }
}

/// Removes the mask (section 5.3), eight bytes at a time.
fn unmask(payload: &mut [u8], mask: [u8; MASK_BYTES]) {
    let [a, b, c, d] = mask;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (words, rest) = payload.as_chunks_mut();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
}

fn text(payload: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(payload).map_err(|_| Fault::NotUtf8)
}

/// Reads the payload of a close frame (section 5.5.1).
fn close(payload: &[u8]) -> Result<Option<(u16, &str)>, Fault> {
    match *payload {
        [] => Ok(None),
        [_] => Err(Fault::CloseMalformed),
        [high, low, ref reason @ ..] => {
            let code = u16::from_be_bytes([high, low]);
            if !may_travel(code) {
                return Err(Fault::CloseCodeInvalid);
            }
            Ok(Some((code, text(reason)?)))
        }
    }
}

/// True if a close frame may carry `code` (section 7.4, and what IANA has registered since).
const fn may_travel(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

/// Appends the header of a text message; the caller appends the `payload_bytes` that follow it.
pub fn push_text_header(out: &mut Vec<u8>, payload_bytes: usize) {
    push_header(out, Opcode::Text, payload_bytes);
}

/// Appends a ping.
pub fn push_ping(out: &mut Vec<u8>) {
    push_header(out, Opcode::Ping, 0);
}

/// Appends a pong with `payload`, which is that of the ping it answers.
pub fn push_pong(out: &mut Vec<u8>, payload: &[u8]) {
    assert!(payload.len() <= CONTROL_BYTES_MAX, "a control frame is short");
    push_header(out, Opcode::Pong, payload.len());
    out.extend_from_slice(payload);
}

/// Appends a close frame with as many whole characters of `reason` as fit. `code` must be one that
/// may travel (section 7.4), as that of a [`Fault`] or of a client's close frame is.
pub fn push_close(out: &mut Vec<u8>, code: u16, reason: &str) {
    assert!(may_travel(code), "a close code that no peer would take");
    let reason = &reason[..reason.floor_char_boundary(CLOSE_REASON_BYTES_MAX)];
    push_header(out, Opcode::Close, 2 + reason.len());
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(reason.as_bytes());
}

fn push_header(out: &mut Vec<u8>, opcode: Opcode, payload_bytes: usize) {
    out.push(LAST | opcode as u8);
    match (u8::try_from(payload_bytes), u16::try_from(payload_bytes)) {
        (Ok(length), _) if length < LENGTH_16 => out.push(length),
        (_, Ok(length)) => {
            out.push(LENGTH_16);
            out.extend_from_slice(&length.to_be_bytes());
        }
        _ => {
            out.push(LENGTH_64);
            out.extend_from_slice(&(payload_bytes as u64).to_be_bytes());
        }
    }
}

/// True if `key` is what a client sends as `Sec-WebSocket-Key` (section 4.1): 16 bytes in base64.
/// The bytes mean nothing, so the four surplus bits of the last digit may be anything.
#[must_use]
pub fn is_key(key: &str) -> bool {
    let digit = |&byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    key.len() == KEY_TEXT_BYTES
        && key.strip_suffix("==").is_some_and(|digits| digits.as_bytes().iter().all(digit))
}

/// The `Sec-WebSocket-Accept` that answers `key` (section 4.2.2).
#[must_use]
pub fn accept_key(key: &str) -> [u8; ACCEPT_TEXT_BYTES] {
    let mut digest = Sha1::from(key);
    digest.update(ACCEPT_SALT);
    let mut accept = [0; ACCEPT_TEXT_BYTES];
    let written = STANDARD.encode_slice(digest.digest().bytes(), &mut accept);
    assert_eq!(written, Ok(ACCEPT_TEXT_BYTES));
    accept
}

#[cfg(test)]
mod tests;
