//! Frames as tables (see `autobahn`), random conversations, and another implementation.

mod autobahn;
mod peer;

use super::*;
use proptest::prelude::*;

/// Bytes of the longest frame that is taken.
const FRAME_BYTES_MAX: usize = 2 + 8 + MASK_BYTES + MESSAGE_BYTES_MAX;

/// What was said, kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Heard {
    Text(String),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<(u16, String)>),
    Fault(Fault),
}

impl From<Said<'_>> for Heard {
    fn from(said: Said<'_>) -> Self {
        match said {
            Said::Text(text) => Self::Text(text.to_owned()),
            Said::Ping(payload) => Self::Ping(payload.to_owned()),
            Said::Pong(payload) => Self::Pong(payload.to_owned()),
            Said::Close(given) => Self::Close(given.map(|(code, reason)| (code, reason.to_owned()))),
        }
    }
}

/// Everything that is heard in `input`, which keeps the bytes that were not used.
fn drained(frames: &mut Frames, input: &mut Vec<u8>) -> Vec<Heard> {
    let mut heard = Vec::new();
    loop {
        let has_message = Frames::has_message(input) && !frames.over;
        match frames.next(input) {
            Ok((Some(said), used)) => {
                assert_eq!(has_message, matches!(said, Said::Text(_) | Said::Ping(_)), "{said:?}");
                heard.push(said.into());
                input.drain(..used);
            }
            Ok((None, used)) => {
                assert!(!has_message);
                input.drain(..used);
                assert!(input.is_empty() || input.len() < frames.needs(), "a whole frame is not left");
                assert!(frames.needs() <= FRAME_BYTES_MAX);
                return heard;
            }
            Err(fault) => {
                heard.push(Heard::Fault(fault));
                let bytes = input.len();
                assert_eq!(frames.next(input), Ok((None, bytes)), "a fault is final");
                input.clear();
                return heard;
            }
        }
    }
}

/// What is heard when `wire` arrives in pieces of `piece_bytes`.
fn heard(wire: &[u8], piece_bytes: usize) -> Vec<Heard> {
    let mut frames = Frames::new();
    let mut input = Vec::new();
    let mut hear = |piece: &[u8]| {
        input.extend_from_slice(piece);
        drained(&mut frames, &mut input)
    };
    wire.chunks(piece_bytes).flat_map(&mut hear).collect()
}

const ALL_AT_ONCE: usize = usize::MAX;
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// A client's frame with `first` as its first byte. A naive twin of the code under test.
fn masked(first: u8, payload: &[u8], mask: [u8; 4]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        bytes @ 0..126 => frame.push(0x80 | u8::try_from(bytes).unwrap()),
        bytes @ 126..65_536 => {
            frame.push(0xfe);
            frame.extend(u16::try_from(bytes).unwrap().to_be_bytes());
        }
        bytes => {
            frame.push(0xff);
            frame.extend((bytes as u64).to_be_bytes());
        }
    }
    frame.extend(mask);
    frame.extend(payload.iter().enumerate().map(|(index, byte)| byte ^ mask[index % 4]));
    frame
}

fn frame(first: u8, payload: impl AsRef<[u8]>) -> Vec<u8> {
    masked(first, payload.as_ref(), MASK)
}

/// The examples of section 5.7, as far as a client may send them.
#[test]
fn the_examples_of_the_rfc_are_understood() {
    let hello = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    assert_eq!(heard(&hello, ALL_AT_ONCE), [Heard::Text("Hello".into())]);
    let pong = [0x8a, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    assert_eq!(heard(&pong, ALL_AT_ONCE), [Heard::Pong(b"Hello".into())]);
}

#[test]
fn a_message_in_one_frame_is_handed_out_where_it_lies() {
    let mut input = frame(0x81, "x".repeat(MESSAGE_BYTES_MAX));
    let place = input.as_ptr_range();
    let mut frames = Frames::new();
    let (Ok((Some(Said::Text(text)), FRAME_BYTES_MAX)), bytes) = (frames.next(&mut input), MESSAGE_BYTES_MAX)
    else {
        panic!("a text in a frame of the largest size");
    };
    assert_eq!(text.len(), bytes);
    assert!(place.contains(&text.as_ptr()));
    assert_eq!(frames.message.capacity(), 0);
}

#[test]
fn the_memory_of_fragments_is_given_back_by_the_next_call() {
    let mut input = [frame(0x01, "a"), frame(0x80, "b")].concat();
    let mut frames = Frames::new();
    assert_eq!(frames.next(&mut input), Ok((Some(Said::Text("ab")), 14)));
    assert_ne!(frames.message.capacity(), 0);
    assert_eq!(frames.next(&mut []), Ok((None, 0)));
    assert_eq!(frames.message.capacity(), 0);
}

#[test]
fn a_frame_tells_how_long_it_is_as_soon_as_its_header_does() {
    for (payload_bytes, header_bytes) in [(0, 6), (125, 6), (126, 8), (65_535, 8), (65_536, 14)] {
        let mut wire = frame(0x81, vec![b'x'; payload_bytes]);
        let mut frames = Frames::new();
        let length_ends = header_bytes - MASK_BYTES;
        for end in 0..header_bytes {
            assert_eq!(frames.next(&mut wire[..end]), Ok((None, 0)));
            let needs = match end {
                0 | 1 => 2,
                _ if end < length_ends => header_bytes,
                _ => header_bytes + payload_bytes,
            };
            assert_eq!(frames.needs(), needs, "{end} bytes of a frame with {payload_bytes}");
        }
    }
}

/// `wire` is refused when its last byte arrives and not before, whatever would follow.
#[test]
fn what_a_header_alone_condemns_is_not_waited_for() {
    let open = frame(0x01, "a");
    for (before, wire, fault) in [
        (&[][..], &[0xc1][..], Fault::ReservedBits),
        (&[], &[0x83], Fault::OpcodeUnknown),
        (&[], &[0x09], Fault::ControlFragmented),
        (&[], &[0x80], Fault::NothingToContinue),
        (&open, &[0x81], Fault::MessageUnfinished),
        (&open, &[0x82], Fault::MessageUnfinished),
        (&[], &[0x02], Fault::Binary),
        (&[], &[0x81, 0x05], Fault::Unmasked),
        (&[], &[0x88, 0xfe], Fault::ControlTooLong),
        (&[], &[0x81, 0xfe, 0, 125], Fault::LengthNotMinimal),
        (&[], &[0x81, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff], Fault::LengthNotMinimal),
        (&[], &[0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 1], Fault::LengthMalformed),
        (&[], &[0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], Fault::MessageTooLong),
        (&[], &[0x81, 0xff, 0, 0, 0, 0, 0, 2, 0, 1], Fault::MessageTooLong),
        (&[], &[0x01, 0xff, 0, 0, 0, 0, 0, 2, 0, 1], Fault::MessageTooLong),
        (&open, &[0x00, 0xff, 0, 0, 0, 0, 0, 2, 0, 0], Fault::MessageTooLong),
    ] {
        let wire = [before, wire].concat();
        assert_eq!(heard(&wire[..wire.len() - 1], 1), [], "{wire:x?} without its last byte");
        assert_eq!(heard(&wire, 1), [Heard::Fault(fault)], "{wire:x?}");
        assert_eq!(heard(&[wire, frame(0x89, "")].concat(), ALL_AT_ONCE), [Heard::Fault(fault)]);
    }
}

#[test]
fn only_codes_that_may_travel_are_taken() {
    for code in 0..=u16::MAX {
        let taken = match code {
            0..=999 | 1004..=1006 | 1015..=2999 | 5000.. => Heard::Fault(Fault::CloseCodeInvalid),
            _ => Heard::Close(Some((code, String::new()))),
        };
        assert_eq!(heard(&frame(0x88, code.to_be_bytes()), ALL_AT_ONCE), [taken], "{code}");
    }
}

#[test]
fn a_client_can_tell_faults_apart() {
    for (index, fault) in Fault::ALL.iter().enumerate() {
        assert!(Fault::ALL[..index].iter().all(|other| other.reason() != fault.reason()), "{fault:?}");
        let mut out = Vec::new();
        push_close(&mut out, fault.code(), fault.reason());
        assert!(out.ends_with(fault.reason().as_bytes()), "{fault:?} is cut");
    }
    assert_eq!(size_of::<Option<Fault>>(), 1);
}

#[test]
fn what_the_server_sends_is_framed_without_a_mask() {
    let pushed = |push: &dyn Fn(&mut Vec<u8>)| {
        let mut out = b"before".to_vec();
        push(&mut out);
        out.split_off(6)
    };
    for (payload_bytes, header) in [
        (0, &[0x81, 0][..]),
        (125, &[0x81, 125]),
        (126, &[0x81, 126, 0, 126]),
        (255, &[0x81, 126, 0, 255]),
        (256, &[0x81, 126, 1, 0]),
        (65_535, &[0x81, 126, 0xff, 0xff]),
        (65_536, &[0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
    ] {
        assert_eq!(pushed(&|out| push_text_header(out, payload_bytes)), header);
    }
    assert_eq!(pushed(&push_ping), [0x89, 0]);
    assert_eq!(pushed(&|out| push_pong(out, b"ab")), [0x8a, 2, b'a', b'b']);
    assert_eq!(pushed(&|out| push_pong(out, &[7; 125]))[..3], [0x8a, 125, 7]);
    assert_eq!(pushed(&|out| push_close(out, 1001, "ab")), [0x88, 4, 3, 233, b'a', b'b']);
}

#[test]
fn a_close_reason_is_cut_after_a_whole_character() {
    for (before, character, kept) in [
        (122, "a", 123),
        (123, "a", 123),
        (121, "é", 123),
        (122, "é", 122),
        (120, "🦀", 120),
        (119, "🦀", 123),
    ] {
        let mut out = Vec::new();
        push_close(&mut out, 1000, &("a".repeat(before) + character));
        assert_eq!(usize::from(out[1]), 2 + kept, "{before} bytes and {character}");
        assert!(std::str::from_utf8(&out[4..]).is_ok());
    }
}

#[test]
#[should_panic(expected = "a close code that no peer would take")]
fn a_code_that_may_not_travel_is_never_sent() {
    push_close(&mut Vec::new(), 1006, "");
}

#[test]
fn a_key_is_sixteen_bytes_in_base64() {
    for (key, taken) in [
        ("dGhlIHNhbXBsZSBub25jZQ==", true),
        ("AQIDBAUGBwgJCgsMDQ4PEC==", true),
        ("++++++++++//////////09==", true),
        ("", false),
        ("==", false),
        ("dGhlIHNhbXBsZSBub25jZQ=", false),
        ("dGhlIHNhbXBsZSBub25jZQ", false),
        ("dGhlIHNhbXBsZSBub25jZQA=", false),
        ("dGhlIHNhbXBsZSBub25jZQAA", false),
        ("dGhlIHNhbXBsZSBub25jZ===", false),
        ("dGhlIHNhbXBsZSBub25jZQE==", false),
        ("dGhlIHNhbXBsZSBub25jZ-==", false),
        (" dGhlIHNhbXBsZSBub25jZ==", false),
        ("dGhlIHNhbXBsZSBub25jé==", false),
    ] {
        assert_eq!(is_key(key), taken, "{key:?}");
    }
}

#[test]
fn the_accept_of_the_rfc_is_ours() {
    assert_eq!(&accept_key("dGhlIHNhbXBsZSBub25jZQ=="), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

#[derive(Clone, Debug)]
enum Say {
    Message { text: String, cuts: Vec<prop::sample::Index> },
    Ping(Vec<u8>),
    Pong(Vec<u8>),
}

/// `text` in frames, cut at `cuts`, with `between` after each frame but the last.
fn fragments(text: &[u8], cuts: &[prop::sample::Index], mask: [u8; 4], between: &[u8]) -> Vec<u8> {
    let mut ends: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
    ends.sort_unstable();
    ends.push(text.len());
    let mut wire = Vec::new();
    let mut start = 0;
    for (index, &end) in ends.iter().enumerate() {
        let last = index + 1 == ends.len();
        let first = u8::from(last) << 7 | u8::from(index == 0);
        wire.extend(masked(first, &text[start..end], mask));
        wire.extend_from_slice(if last { &[] } else { between });
        start = end;
    }
    wire
}

fn say() -> impl Strategy<Value = Say> {
    let cuts = prop::collection::vec(any::<prop::sample::Index>(), 0..5);
    prop_oneof![
        4 => ("\\PC{0,200}", cuts).prop_map(|(text, cuts)| Say::Message { text, cuts }),
        1 => prop::collection::vec(any::<u8>(), 0..=CONTROL_BYTES_MAX).prop_map(Say::Ping),
        1 => prop::collection::vec(any::<u8>(), 0..=CONTROL_BYTES_MAX).prop_map(Say::Pong),
    ]
}

/// Bytes of which many are the beginnings of frames.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let first = prop::sample::select(vec![0x00, 0x01, 0x80, 0x81, 0x81, 0x88, 0x89, 0x8a]);
    let framed = (first, prop::collection::vec(any::<u8>(), 0..12), any::<[u8; 4]>())
        .prop_map(|(first, payload, mask)| masked(first, &payload, mask));
    let raw = prop::collection::vec(any::<u8>(), 0..8);
    prop::collection::vec(prop_oneof![6 => framed, 1 => raw], 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn what_is_said_is_heard_however_it_is_cut(
        said in prop::collection::vec((say(), any::<[u8; 4]>()), 0..8),
        piece_bytes in 1..400_usize,
    ) {
        let (mut wire, mut expected) = (Vec::new(), Vec::new());
        for (say, mask) in said {
            match say {
                Say::Message { text, cuts } => {
                    wire.extend(fragments(text.as_bytes(), &cuts, mask, &masked(0x89, b"between", mask)));
                    expected.extend(cuts.iter().map(|_| Heard::Ping(b"between".into())));
                    expected.push(Heard::Text(text));
                }
                Say::Ping(payload) => {
                    wire.extend(masked(0x89, &payload, mask));
                    expected.push(Heard::Ping(payload));
                }
                Say::Pong(payload) => {
                    wire.extend(masked(0x8a, &payload, mask));
                    expected.push(Heard::Pong(payload));
                }
            }
        }
        prop_assert_eq!(heard(&wire, piece_bytes), expected);
    }

    #[test]
    fn noise_is_heard_alike_however_it_is_cut(wire in noise(), piece_bytes in 1..64_usize) {
        let whole = heard(&wire, ALL_AT_ONCE);
        prop_assert_eq!(heard(&wire, piece_bytes), whole.clone());
        let end = whole.iter().position(|heard| matches!(heard, Heard::Fault(_) | Heard::Close(_)));
        prop_assert!(end.is_none_or(|end| end + 1 == whole.len()), "nothing follows an end");
    }

    #[test]
    fn random_bytes_never_panic(wire in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert_eq!(heard(&wire, 1), heard(&wire, ALL_AT_ONCE));
    }

    #[test]
    fn a_mask_comes_off_as_it_went_on(mut bytes in prop::collection::vec(any::<u8>(), 0..80), mask: [u8; 4]) {
        let naive: Vec<_> = bytes.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
        unmask(&mut bytes, mask);
        prop_assert_eq!(bytes, naive);
    }
}

#[test]
fn what_is_too_long_is_told_how_long_it_may_be() {
    for (fault, allowed) in
        [(Fault::ControlTooLong, CONTROL_BYTES_MAX), (Fault::MessageTooLong, MESSAGE_BYTES_MAX)]
    {
        assert!(fault.reason().contains(&format!("allowed are {allowed} bytes")), "{}", fault.reason());
    }
    for fault in Fault::ALL {
        assert!(fault.reason().len() <= CLOSE_REASON_BYTES_MAX, "{}", fault.reason());
    }
}
