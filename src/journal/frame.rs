//! A frame in the log and in segments: 32 bytes of header, the payload, zeros.
//!
//! | offset | bytes | field         |                                                        |
//! |-------:|------:|---------------|--------------------------------------------------------|
//! |      0 |     4 | length        | of the whole frame; stored last, 0 means not committed |
//! |      4 |     4 | checksum      | CRC-32C: payload, then bytes 8..28, then the length    |
//! |      8 |     8 | position      | of this frame's first byte                             |
//! |     16 |     4 | epoch         | raised by every start                                  |
//! |     20 |     2 | kind          | what the payload is; 0 is padding                      |
//! |     22 |     2 | zero          | checked                                                |
//! |     24 |     4 | payload bytes |                                                        |
//! |     28 |     4 | zero          | checked                                                |
//! |     32 |       | payload       |                                                        |
//! |        |       | zeros         | to the next multiple of 64; checked                    |
//!
//! Little-endian. The checksum covers position and epoch, so a frame of another lap or another
//! start never passes for the one that is sought. Padding has no payload and fills the room that a
//! frame could not use: at the end of the ring, and at its start.

use super::checksum;
use crate::domain::Position;

/// Frames begin and end on multiples of this: a cache line, so that no two writers share one.
pub const FRAME_ALIGN: u64 = 64;

/// The largest frame. The largest order takes about 177 KiB, the largest removal of orders 256 KiB.
pub const FRAME_BYTES_MAX: usize = 320 * 1024;

/// The bytes in front of a payload.
pub const FRAME_HEADER_BYTES: usize = 32;

/// The largest payload.
pub const PAYLOAD_BYTES_MAX: usize = FRAME_BYTES_MAX - FRAME_HEADER_BYTES;

/// The position of the first frame ever: 0 stays free to mean no frame.
pub const FIRST_POSITION: Position = Position(64);

/// The kind of padding; no record has it.
pub const PADDING: u16 = 0;

/// Words of 8 bytes in a header.
pub(crate) const HEADER_WORDS: usize = FRAME_HEADER_BYTES / 8;

/// Bytes of a line, on which frames begin.
pub(crate) const LINE_BYTES: usize = 64;

/// A line, as words.
pub type Line = [[u8; 8]; 8];

/// Words of a payload's head behind which a line begins.
pub(crate) const HEAD_WORDS: usize = 8 - HEADER_WORDS;

/// Where the zeros of the header begin.
const ZEROS_AT: usize = 28;

const _: () = assert!(FRAME_ALIGN.is_power_of_two(), "`frame_bytes` masks");
const _: () = assert!(FRAME_ALIGN == LINE_BYTES as u64, "frames begin on lines");
const _: () = assert!((FRAME_BYTES_MAX as u64).is_multiple_of(FRAME_ALIGN), "the largest frame is aligned");
const _: () = assert!(FRAME_BYTES_MAX < u32::MAX as usize, "a length fits its field");

/// A half-open range of positions: one frame's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The frame's own position.
    pub start: Position,
    /// The position of the next frame; what an answer waits for.
    pub end: Position,
}

/// One committed frame, wherever it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Where it stands in the log.
    pub span: Span,
    /// The epoch of the start that wrote it.
    pub epoch: u32,
    /// What the payload is.
    pub kind: u16,
    /// The record.
    pub payload: &'a [u8],
}

/// Why bytes are not what should be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Which field is wrong.
    pub field: &'static str,
    /// Its offset from the first byte of what was read: a frame, a batch, a file.
    pub at: u64,
    /// What should be there.
    pub expected: u64,
    /// What is there.
    pub found: u64,
}

/// The length of a frame with `payload_bytes` of payload.
#[must_use]
pub fn frame_bytes(payload_bytes: usize) -> u64 {
    assert!(payload_bytes <= PAYLOAD_BYTES_MAX, "a payload is at most PAYLOAD_BYTES_MAX");
    // `next_multiple_of` would check for an overflow that cannot happen here.
    ((FRAME_HEADER_BYTES + payload_bytes) as u64 + (FRAME_ALIGN - 1)) & !(FRAME_ALIGN - 1)
}

/// A header without its checksum, which follows from the rest of the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) length: u32,
    pub(crate) position: Position,
    pub(crate) epoch: u32,
    pub(crate) kind: u16,
    pub(crate) payload_bytes: u32,
}

impl Header {
    /// The header as words; the first one commits the frame and is stored last.
    pub(crate) fn words(&self, payload_checksum: u32) -> [u64; HEADER_WORDS] {
        let checksum = self.checksum(payload_checksum);
        [
            u64::from(self.length) | u64::from(checksum) << 32,
            self.position.0,
            u64::from(self.epoch) | u64::from(self.kind) << 32,
            u64::from(self.payload_bytes),
        ]
    }

    #[inline]
    fn checksum(&self, payload_checksum: u32) -> u32 {
        let covered = [
            self.position.0,
            u64::from(self.epoch) | u64::from(self.kind) << 32,
            u64::from(self.payload_bytes) | u64::from(self.length) << 32,
        ];
        checksum::append_words(payload_checksum, covered)
    }
}

/// Whether a frame can have this `length`: a walk must know that before it trusts it.
pub(crate) fn length_is_possible(length: u32) -> bool {
    let length = u64::from(length);
    length >= FRAME_ALIGN && length.is_multiple_of(FRAME_ALIGN) && length <= FRAME_BYTES_MAX as u64
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Reads the frame of `position` and `epoch` at the front of `bytes`, checking every byte of it.
pub fn read(bytes: &[u8], position: Position, epoch: u32) -> Result<Frame<'_>, Flaw> {
    let flaw = |field, at, expected: u64, found: u64| Err(Flaw { field, at, expected, found });
    if (bytes.len() as u64) < FRAME_ALIGN {
        return flaw("frame bytes", 0, FRAME_ALIGN, bytes.len() as u64);
    }
    let length = u32_at(bytes, 0);
    if !length_is_possible(length) || length as usize > bytes.len() {
        return flaw("frame length", 0, bytes.len() as u64, u64::from(length));
    }
    let bytes = &bytes[..length as usize];
    let header = Header {
        length,
        position: Position(u64_at(bytes, 8)),
        epoch: u32_at(bytes, 16),
        kind: u16_at(bytes, 20),
        payload_bytes: u32_at(bytes, 24),
    };
    if header.position != position {
        return flaw("frame position", 8, position.0, header.position.0);
    }
    if header.epoch != epoch {
        return flaw("frame epoch", 16, u64::from(epoch), u64::from(header.epoch));
    }
    let payload_end = FRAME_HEADER_BYTES + header.payload_bytes as usize;
    let whole = if header.kind == PADDING {
        header.payload_bytes == 0
    } else {
        payload_end <= bytes.len() && frame_bytes(header.payload_bytes as usize) == u64::from(length)
    };
    if !whole {
        return flaw("payload bytes", 24, u64::from(length), u64::from(header.payload_bytes));
    }
    let payload = &bytes[FRAME_HEADER_BYTES..payload_end];
    let (expected, found) = (header.checksum(checksum::sum(payload)), u32_at(bytes, 4));
    if expected != found {
        return flaw("frame checksum", 4, u64::from(expected), u64::from(found));
    }
    for range in [22..24, ZEROS_AT..FRAME_HEADER_BYTES, payload_end..bytes.len()] {
        let start = range.start;
        if let Some(at) = bytes[range].iter().position(|&byte| byte != 0) {
            let at = start + at;
            return flaw("zeros of the frame", at as u64, 0, u64::from(bytes[at]));
        }
    }
    let span = Span { start: position, end: Position(position.0 + u64::from(length)) };
    Ok(Frame { span, epoch, kind: header.kind, payload })
}

#[cfg(test)]
mod tests {
    use super::{Header, PADDING, checksum, frame_bytes, read};
    use crate::domain::Position;

    fn frame(kind: u16, payload: &[u8], length: u64) -> Vec<u8> {
        let header = Header {
            length: u32::try_from(length).unwrap(),
            position: Position(640),
            epoch: 7,
            kind,
            payload_bytes: u32::try_from(payload.len()).unwrap(),
        };
        let mut bytes: Vec<u8> = Vec::new();
        for word in header.words(checksum::sum(payload)) {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(payload);
        bytes.resize(usize::try_from(length).unwrap(), 0);
        bytes
    }

    #[test]
    fn a_frame_reads_back_as_it_was_written() {
        for payload_bytes in [0, 1, 7, 8, 15, 16, 17, 80, 81, 1_000] {
            let payload: Vec<u8> = (0_u8..=255).cycle().take(payload_bytes).collect();
            let bytes = frame(9, &payload, frame_bytes(payload.len()));
            let frame = read(&bytes, Position(640), 7).unwrap();
            assert_eq!(frame.payload, payload);
            assert_eq!(frame.kind, 9);
            assert_eq!(frame.span.end.0 - 640, bytes.len() as u64);
        }
    }

    #[test]
    fn any_single_damaged_byte_is_noticed() {
        for whole in [frame(9, b"an order and what came of it", 128), frame(PADDING, b"", 256)] {
            for at in 0..whole.len() {
                for bit in 0..8 {
                    let mut bytes = whole.clone();
                    bytes[at] ^= 1 << bit;
                    assert!(read(&bytes, Position(640), 7).is_err(), "byte {at}, bit {bit}");
                }
            }
        }
    }

    #[test]
    fn a_frame_cut_anywhere_is_not_a_frame() {
        let whole = frame(9, b"an order and what came of it, and who it was", 128);
        for bytes in 0..whole.len() {
            assert!(read(&whole[..bytes], Position(640), 7).is_err(), "{bytes} bytes");
        }
    }

    #[test]
    fn a_frame_of_another_place_or_start_is_not_this_one() {
        let whole = frame(9, b"x", 64);
        assert_eq!(read(&whole, Position(704), 7).unwrap_err().field, "frame position");
        assert_eq!(read(&whole, Position(640), 8).unwrap_err().field, "frame epoch");
    }
}
