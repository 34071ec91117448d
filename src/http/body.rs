//! Chunked bodies, decoded in place as they arrive.
//!
//! The caller keeps the bytes that follow the head in a buffer and calls [`Chunked::decode`]
//! whenever more arrives. After every call the buffer holds the decoded body so far, directly
//! followed by what is not yet decoded; the bytes of the framing are removed:
//!
//! ```text
//! | 0 .. body_bytes | body_bytes .. held               |
//! | decoded body    | not decoded, or the next request |
//! ```
//!
//! A decoded body thus lies in the buffer exactly as one with a `Content-Length` does. Extensions
//! and trailers are skipped, within limits; nothing in them is believed.

use super::head::BadRequest;
use super::scan::first_control;

/// Bytes of one size line with its extensions, or of one trailer line.
const CHUNK_LINE_BYTES_MAX: usize = 256;

/// Trailer lines of one body.
const TRAILERS_MAX: u8 = 8;

/// What the sizes and ends of chunks may take, beside as much again as the body: of chunks with a byte each, most of what
/// arrives is neither kept nor paid for.
const FRAMING_BYTES_MAX: usize = 16 << 10;

/// Hex digits of a chunk's size. Eight reach 2^32 - 1, far above any limit, so a longer one is malformed.
const SIZE_DIGITS_MAX: usize = 8;

/// The result of one call to [`Chunked::decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// True if the last chunk and its trailers have arrived.
    pub whole: bool,
    /// How many bytes of the buffer to keep.
    pub held: usize,
}

/// A chunked body on its way in.
#[derive(Clone, Copy, Debug)]
pub struct Chunked {
    expect: Expect,
    body_bytes: usize,
    body_bytes_max: usize,
    /// What was decoded to nothing: sizes, line ends, trailers.
    framing_bytes: usize,
    trailers: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Size,
    Data(usize),
    DataEnd,
    Trailer,
    Nothing,
}

impl Chunked {
    /// A body of which nothing has arrived, refused above `body_bytes_max` decoded bytes.
    #[must_use]
    pub const fn new(body_bytes_max: usize) -> Self {
        Self { expect: Expect::Size, body_bytes: 0, body_bytes_max, framing_bytes: 0, trailers: 0 }
    }

    /// How much of the body is decoded.
    #[must_use]
    pub const fn body_bytes(&self) -> usize {
        self.body_bytes
    }

    /// Decodes what has arrived. `buffer` begins where the body begins: the `held` bytes that the
    /// last call left, then what has arrived since.
    pub fn decode(&mut self, buffer: &mut [u8]) -> Result<Progress, BadRequest> {
        assert!(self.body_bytes <= buffer.len(), "the decoded part of the buffer was cut off");
        let mut at = self.body_bytes;
        while self.step(buffer, &mut at)? {}
        self.framing_bytes += at - self.body_bytes;
        if FRAMING_BYTES_MAX + self.body_bytes < self.framing_bytes {
            return Err(BadRequest::ChunkMalformed);
        }
        buffer.copy_within(at.., self.body_bytes);
        let held = self.body_bytes + (buffer.len() - at);
        Ok(Progress { whole: self.expect == Expect::Nothing, held })
    }

    /// Decodes one piece at `at` and moves past it; false when more must arrive first.
    fn step(&mut self, buffer: &mut [u8], at: &mut usize) -> Result<bool, BadRequest> {
        match self.expect {
            Expect::Nothing => return Ok(false),
            Expect::Data(left) => {
                let taken = left.min(buffer.len() - *at);
                buffer.copy_within(*at..*at + taken, self.body_bytes);
                self.body_bytes += taken;
                *at += taken;
                if taken < left {
                    self.expect = Expect::Data(left - taken);
                    return Ok(false);
                }
                self.expect = Expect::DataEnd;
            }
            Expect::DataEnd => match &buffer[*at..] {
                [] | [b'\r'] => return Ok(false),
                [b'\r', b'\n', ..] => {
                    self.expect = Expect::Size;
                    *at += 2;
                }
                _ => return Err(BadRequest::ChunkMalformed),
            },
            Expect::Size | Expect::Trailer => {
                let Some(line) = chunk_line(&buffer[*at..])? else {
                    return Ok(false);
                };
                if self.expect == Expect::Size {
                    self.size(line)?;
                } else {
                    self.trailer(line)?;
                }
                *at += line.len() + 2;
            }
        }
        Ok(true)
    }

    fn size(&mut self, line: &[u8]) -> Result<(), BadRequest> {
        let size = chunk_size(line)?;
        if size > self.body_bytes_max - self.body_bytes {
            return Err(BadRequest::BodyTooLong);
        }
        self.expect = if size == 0 { Expect::Trailer } else { Expect::Data(size) };
        Ok(())
    }

    fn trailer(&mut self, line: &[u8]) -> Result<(), BadRequest> {
        if line.is_empty() {
            self.expect = Expect::Nothing;
            return Ok(());
        }
        let named = line.iter().position(|&byte| byte == b':').is_some_and(|colon| colon > 0);
        if self.trailers == TRAILERS_MAX || !named || matches!(line[0], b' ' | b'\t') {
            return Err(BadRequest::ChunkMalformed);
        }
        self.trailers += 1;
        Ok(())
    }
}

/// The line at the front of `bytes` without its CR LF; `None` if it is not whole.
fn chunk_line(bytes: &[u8]) -> Result<Option<&[u8]>, BadRequest> {
    let end = first_control(bytes);
    if end.unwrap_or(bytes.len()) > CHUNK_LINE_BYTES_MAX {
        return Err(BadRequest::ChunkMalformed);
    }
    let Some(end) = end else {
        return Ok(None);
    };
    match (bytes[end], bytes.get(end + 1)) {
        (b'\r', None) => Ok(None),
        (b'\r', Some(b'\n')) => Ok(Some(&bytes[..end])),
        _ => Err(BadRequest::ChunkMalformed),
    }
}

fn chunk_size(line: &[u8]) -> Result<usize, BadRequest> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let after = &line[digits..];
    let extended = after.trim_ascii_start().first() == Some(&b';');
    if digits == 0 || digits > SIZE_DIGITS_MAX || !(after.is_empty() || extended) {
        return Err(BadRequest::ChunkMalformed);
    }
    let value = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0) as usize;
    Ok(line[..digits].iter().fold(0, |sum, byte| sum * 16 + value(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY_BYTES_MAX: usize = 64;

    #[test]
    fn chunks_that_are_mostly_framing_are_refused() {
        for (chunks, is_taken) in [(4_000, true), (4_200, false)] {
            let mut wire = ("1\r\nx\r\n".repeat(chunks) + "0\r\n\r\n").into_bytes();
            let mut in_pieces = (Chunked::new(1 << 20), Vec::new());
            let piece_by_piece = wire.chunks(600).try_for_each(|piece| {
                let (chunked, buffer) = &mut in_pieces;
                buffer.extend_from_slice(piece);
                chunked.decode(buffer).map(|progress| buffer.truncate(progress.held))
            });
            assert_eq!(piece_by_piece.is_ok(), is_taken, "{chunks}, in pieces");
            let decoded = Chunked::new(1 << 20).decode(&mut wire);
            assert_eq!(decoded.is_ok(), is_taken, "{chunks}: {decoded:?}");
        }
    }

    fn decode_whole(wire: &[u8]) -> Result<(Vec<u8>, Vec<u8>), BadRequest> {
        let mut buffer = wire.to_vec();
        let mut chunked = Chunked::new(BODY_BYTES_MAX);
        let progress = chunked.decode(&mut buffer)?;
        assert!(progress.whole, "{:?}", String::from_utf8_lossy(wire));
        buffer.truncate(progress.held);
        let rest = buffer.split_off(chunked.body_bytes());
        Ok((buffer, rest))
    }

    #[test]
    fn chunks_become_one_body_and_the_next_request_follows_it() {
        let (body, rest) =
            decode_whole(b"4\r\nWiki\r\n5;name=value\r\npedia\r\n0\r\nDigest: x\r\n\r\nGET /").expect("good");
        assert_eq!(body, b"Wikipedia");
        assert_eq!(rest, b"GET /");
        assert_eq!(decode_whole(b"0\r\n\r\n").expect("good"), (vec![], vec![]));
        assert_eq!(decode_whole(b"00A\r\n0123456789\r\n0 ;x\r\n\r\n").expect("good").0, b"0123456789");
    }

    #[test]
    fn a_body_cut_anywhere_is_incomplete_and_then_whole() {
        let wire = b"4\r\nWiki\r\n5;a\r\npedia\r\n0\r\nT: x\r\n\r\nnext";
        for first in 0..wire.len() {
            for second in first..wire.len() {
                let mut chunked = Chunked::new(BODY_BYTES_MAX);
                let mut buffer = wire[..first].to_vec();
                let mut whole = false;
                for more in [&wire[first..second], &wire[second..]] {
                    let progress = chunked.decode(&mut buffer).expect("good");
                    buffer.truncate(progress.held);
                    whole = progress.whole;
                    buffer.extend_from_slice(more);
                }
                let progress = chunked.decode(&mut buffer).expect("good");
                assert!(progress.whole && (!whole || second >= wire.len() - 4));
                buffer.truncate(progress.held);
                assert_eq!(buffer, b"Wikipedianext", "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn what_is_not_a_chunk_is_refused() {
        for wire in [
            "\r\n",
            "x\r\n",
            " 4\r\nWiki\r\n",
            "4 \r\nWiki\r\n",
            "-4\r\nWiki\r\n",
            "+4\r\nWiki\r\n",
            "0x4\r\nWiki\r\n",
            "4\nWiki\r\n",
            "4\rWiki",
            "4\r\nWikiX\r\n",
            "4\r\nWiki\n0\r\n\r\n",
            "100000000\r\n",
            "000000001\r\nx\r\n0\r\n\r\n",
            "0\r\nno colon\r\n\r\n",
            "0\r\n: nameless\r\n\r\n",
            "0\r\nA: b\r\n folded: x\r\n\r\n",
            "0\r\nA: b\r\n\tfolded: x\r\n\r\n",
            "4;\0\r\nWiki\r\n",
        ] {
            let mut buffer = wire.as_bytes().to_vec();
            let outcome = Chunked::new(BODY_BYTES_MAX).decode(&mut buffer);
            assert_eq!(outcome, Err(BadRequest::ChunkMalformed), "{wire:?}");
        }
    }

    #[test]
    fn limits_hold_at_their_value_and_break_one_above() {
        let body = |bytes: usize| format!("{bytes:x}\r\n{}\r\n0\r\n\r\n", "b".repeat(bytes)).into_bytes();
        assert_eq!(decode_whole(&body(63)).expect("below").0.len(), 63);
        assert_eq!(decode_whole(&body(64)).expect("at").0.len(), 64);
        assert_eq!(decode_whole(&body(65)), Err(BadRequest::BodyTooLong));
        let split = format!("40\r\n{}\r\n1\r\nb\r\n0\r\n\r\n", "b".repeat(64));
        assert_eq!(decode_whole(split.as_bytes()), Err(BadRequest::BodyTooLong));

        let extended = |bytes: usize| format!("1;{}\r\nb\r\n0\r\n\r\n", "e".repeat(bytes - 2)).into_bytes();
        assert!(decode_whole(&extended(CHUNK_LINE_BYTES_MAX - 1)).is_ok());
        assert!(decode_whole(&extended(CHUNK_LINE_BYTES_MAX)).is_ok());
        assert_eq!(decode_whole(&extended(CHUNK_LINE_BYTES_MAX + 1)), Err(BadRequest::ChunkMalformed));

        let trailed = |count: u8| format!("0\r\n{}\r\n", "T: x\r\n".repeat(count.into())).into_bytes();
        assert!(decode_whole(&trailed(TRAILERS_MAX - 1)).is_ok());
        assert!(decode_whole(&trailed(TRAILERS_MAX)).is_ok());
        assert_eq!(decode_whole(&trailed(TRAILERS_MAX + 1)), Err(BadRequest::ChunkMalformed));
    }

    #[test]
    fn a_size_line_that_never_ends_is_refused_before_it_fills_the_buffer() {
        let mut buffer = vec![b'0'; CHUNK_LINE_BYTES_MAX + 1];
        assert_eq!(Chunked::new(BODY_BYTES_MAX).decode(&mut buffer), Err(BadRequest::ChunkMalformed));
    }
}
