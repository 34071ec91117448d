//! Frames that wait to be sent: each is written once, however many clients get it.

use crate::http::websocket;
use std::ops::Range;

/// One buffer of frames, and who gets which.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    sends: Vec<(u32, Range<usize>)>,
    payload: Vec<u8>,
}

impl Outbox {
    /// Writes a frame for some clients, if there are any.
    pub(super) fn tell(&mut self, clients: impl IntoIterator<Item = u32>, write: impl FnOnce(&mut Vec<u8>)) {
        let mut clients = clients.into_iter().peekable();
        if clients.peek().is_none() {
            return;
        }
        self.payload.clear();
        write(&mut self.payload);
        let from = self.bytes.len();
        websocket::push_text_header(&mut self.bytes, self.payload.len());
        self.bytes.extend_from_slice(&self.payload);
        let range = from..self.bytes.len();
        self.sends.extend(clients.map(|client| (client, range.clone())));
    }

    /// Frames and their clients, in the order in which they were written.
    pub(super) fn sends(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.sends.iter().map(|(client, range)| (*client, &self.bytes[range.clone()]))
    }

    /// How many frames wait for how many clients each, in all.
    pub(super) fn count(&self) -> usize {
        self.sends.len()
    }

    /// Bytes of frames that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Drops what is addressed to one client.
    pub(super) fn forget(&mut self, client: u32) {
        self.sends.retain(|(to, ..)| *to != client);
    }

    /// Drops all frames: they are on their way.
    pub(super) fn clear(&mut self) {
        /// A buffer that a large book, or many changes for many, have widened shrinks to this.
        const KEPT_BYTES_MAX: usize = 1 << 20;
        self.sends.clear();
        self.sends.shrink_to(KEPT_BYTES_MAX / size_of::<(u32, Range<usize>)>());
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES_MAX);
        self.payload.shrink_to(KEPT_BYTES_MAX);
    }
}
