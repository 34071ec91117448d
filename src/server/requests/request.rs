//! The next request in a connection's buffer, if it is there whole.

use crate::http::{self, BadRequest, BodyFraming, Chunked, Head, Limits};
use crate::server::connections::connection::{Chunks, Connection, Input};

/// A whole request: borrowed from the buffer that it came into.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// Request line and headers.
    pub(crate) head: Head<'a>,
    /// The body, decoded if it came in chunks.
    pub(crate) body: &'a [u8],
    /// The bytes of the head and of the (decoded) body, which follow each other.
    pub(crate) bytes: &'a [u8],
}

/// What there is at the front of a buffer.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "looked at once and dropped, never stored")]
pub(crate) enum Found<'a> {
    /// Not a whole request; the buffer must be able to hold `needed` bytes.
    Partial {
        /// Bytes of the whole request, as far as they are known.
        needed: usize,
        /// The client waits for `100 Continue`.
        expects_continue: bool,
    },
    /// A head, after which chunks begin.
    ChunksBegin {
        /// Bytes of the head.
        head_bytes: usize,
        /// The client waits for `100 Continue`.
        expects_continue: bool,
    },
    /// A request.
    Whole(Request<'a>),
}

/// Finds what is at the front of `input`. `decoded` is the length of a chunked body that has come
/// whole.
pub(crate) fn find(input: &Input, decoded: Option<usize>) -> Result<Found<'_>, BadRequest> {
    let unread = input.unread();
    let Some(head) = http::parse(unread, &Limits::SERVED)? else {
        return Ok(Found::Partial { needed: Limits::SERVED.head_bytes, expects_continue: false });
    };
    let body_bytes = match (head.body, decoded) {
        (BodyFraming::Length(bytes), _) | (BodyFraming::Chunked, Some(bytes)) => bytes,
        (BodyFraming::Chunked, None) => {
            return Ok(Found::ChunksBegin { head_bytes: head.bytes, expects_continue: head.expect_continue });
        }
    };
    let needed = head.bytes + body_bytes;
    if unread.len() < needed {
        return Ok(Found::Partial { needed, expects_continue: head.expect_continue });
    }
    Ok(Found::Whole(Request { head, body: &unread[head.bytes..needed], bytes: &unread[..needed] }))
}

/// Decodes what came of a chunked body; `Some` with its length once it is whole.
pub(crate) fn decode_chunks(connection: &mut Connection) -> Result<Option<usize>, BadRequest> {
    let Some(Chunks { head_bytes, body, .. }) = connection.chunked.as_mut() else {
        return Ok(None);
    };
    let progress = body.decode(&mut connection.input.unread_mut()[*head_bytes..])?;
    let kept = *head_bytes + progress.held;
    let body_bytes = body.body_bytes();
    connection.input.keep(kept);
    if progress.whole {
        return Ok(Some(body_bytes));
    }
    Ok(None)
}

/// Notes that a chunked body begins after the head.
pub(crate) fn begin_chunks(connection: &mut Connection, head_bytes: usize, expects_continue: bool) {
    let body = Chunked::new(Limits::SERVED.body_bytes);
    connection.chunked = Some(Chunks { head_bytes, expects_continue, body });
}
