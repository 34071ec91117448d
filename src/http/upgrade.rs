//! What a request for a stream lacks, of what RFC 6455, section 4.2.1 wants.

use super::head::{Method, Version};

/// What the headers of a request say of that.
#[derive(Default)]
pub(super) struct Upgrade<'a> {
    /// The last line of `Upgrade`, and whether one says `websocket`.
    protocols: (&'a [u8], bool),
    /// The last line of `Connection`, and whether one says `Upgrade`.
    pub(super) connection: (&'a [u8], bool),
    /// `Sec-WebSocket-Version`.
    pub(super) version: Option<&'a [u8]>,
}

impl<'a> Upgrade<'a> {
    /// Takes a line of `Upgrade`.
    pub(super) fn protocols(&mut self, value: &'a [u8]) {
        let mut protocols = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        let has_ours = protocols.any(|name| name.eq_ignore_ascii_case(b"websocket"));
        self.protocols = (value, self.protocols.1 | has_ours);
    }

    /// The first condition but the key that a request does not keep. Those that want no stream fail at the first.
    pub(super) fn lacks(&self, method: Method, version: Version) -> Option<NoUpgrade<'a>> {
        let lacks = |field, got, allowed| Some(NoUpgrade { field, got, allowed });
        if !self.protocols.1 {
            return lacks("Upgrade", self.protocols.0, "websocket");
        }
        if method != Method::Get {
            return lacks("method", method.text().as_bytes(), "GET");
        }
        if version != Version::Http11 {
            return lacks("version", b"HTTP/1.0", "HTTP/1.1");
        }
        if !self.connection.1 {
            return lacks("Connection", self.connection.0, "Upgrade");
        }
        if self.version != Some(b"13") {
            return lacks("Sec-WebSocket-Version", self.version.unwrap_or_default(), "13");
        }
        None
    }
}

/// A condition that a request does not keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoUpgrade<'a> {
    /// The header, or the part of the request line.
    pub field: &'static str,
    /// What it says; empty if it is not there.
    pub got: &'a [u8],
    /// What it has to say.
    pub allowed: &'static str,
}

impl<'a> NoUpgrade<'a> {
    /// A `Sec-WebSocket-Key` that is none.
    #[must_use]
    pub fn key(got: Option<&'a str>) -> Self {
        let got = got.unwrap_or_default().as_bytes();
        Self { field: "Sec-WebSocket-Key", got, allowed: "16 bytes in base64" }
    }
}
