//! The cases of the Autobahn test suite as tables, with sizes that fit our limit. Every row gives
//! the same when it arrives at once, byte by byte, or cut in two at any byte.
//!
//! Where the suite sends binary messages, 1003 is expected: they are refused by their first byte.

use super::*;
use std::collections::HashSet;

/// Name, what the client sends, what is heard.
type Row = (&'static str, Vec<u8>, Vec<Heard>);

/// Up to here a row is also cut in two at every byte.
const CUT_BYTES_MAX: usize = 512;

fn check(rows: Vec<Row>) {
    for (name, wire, expected) in rows {
        assert!(heard(&wire, ALL_AT_ONCE) == expected, "{name}: {:x?}", heard(&wire, ALL_AT_ONCE));
        assert!(heard(&wire, 1) == expected, "{name}, byte by byte");
        for cut in 1..wire.len().min(CUT_BYTES_MAX) {
            let mut frames = Frames::new();
            let mut input = wire[..cut].to_vec();
            let mut parts = drained(&mut frames, &mut input);
            input.extend_from_slice(&wire[cut..]);
            parts.extend(drained(&mut frames, &mut input));
            assert!(parts == expected, "{name}, cut at {cut}: {parts:x?}");
        }
    }
}

fn text(text: impl AsRef<[u8]>) -> Vec<u8> {
    frame(0x81, text)
}

/// The first fragment of a text.
fn begin(text: impl AsRef<[u8]>) -> Vec<u8> {
    frame(0x01, text)
}

/// A fragment that is neither the first nor the last.
fn more(text: impl AsRef<[u8]>) -> Vec<u8> {
    frame(0x00, text)
}

/// The last fragment of several.
fn end(text: impl AsRef<[u8]>) -> Vec<u8> {
    frame(0x80, text)
}

fn ping(payload: impl AsRef<[u8]>) -> Vec<u8> {
    frame(0x89, payload)
}

fn pong(payload: impl AsRef<[u8]>) -> Vec<u8> {
    frame(0x8a, payload)
}

fn closing(code: u16, reason: impl AsRef<[u8]>) -> Vec<u8> {
    frame(0x88, [&code.to_be_bytes(), reason.as_ref()].concat())
}

/// `text` in fragments of `bytes` each.
fn fragmented(text: &str, bytes: usize) -> Vec<u8> {
    let mut wire: Vec<_> = text.as_bytes().chunks(bytes).flat_map(more).collect();
    wire[0] = 0x01;
    wire.extend(end(""));
    wire
}

fn said(text: impl Into<String>) -> Heard {
    Heard::Text(text.into())
}

fn pinged(payload: impl Into<Vec<u8>>) -> Heard {
    Heard::Ping(payload.into())
}

fn ponged(payload: impl Into<Vec<u8>>) -> Heard {
    Heard::Pong(payload.into())
}

fn closed(code: u16, reason: impl Into<String>) -> Heard {
    Heard::Close(Some((code, reason.into())))
}

fn framing() -> Vec<Row> {
    let sizes = [
        ("1.1.1", 0),
        ("1.1.2", 125),
        ("1.1.3", 126),
        ("1.1.4", 127),
        ("1.1.5", 128),
        ("1.1.6", 65_535),
        ("1.1.7", 65_536),
    ];
    let mut rows: Vec<Row> = sizes
        .iter()
        .map(|&(name, bytes)| (name, text("*".repeat(bytes)), vec![said("*".repeat(bytes))]))
        .collect();
    rows.extend([
        ("1.2.1", frame(0x82, ""), vec![Heard::Fault(Fault::Binary)]),
        ("1.2.2", frame(0x82, [0xfe; 125]), vec![Heard::Fault(Fault::Binary)]),
        ("1.2.*, fragmented", frame(0x02, [0xfe; 125]), vec![Heard::Fault(Fault::Binary)]),
    ]);
    rows
}

fn pings_and_pongs() -> Vec<Row> {
    let ten = |at: u8| format!("payload-{at}");
    vec![
        ("2.1", ping(""), vec![pinged("")]),
        ("2.2", ping("Hello, world!"), vec![pinged("Hello, world!")]),
        ("2.3", ping(b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff"), vec![pinged(b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff")]),
        ("2.4", ping([0xfe; 125]), vec![pinged([0xfe; 125])]),
        ("2.5", ping([0xfe; 126]), vec![Heard::Fault(Fault::ControlTooLong)]),
        ("2.7", pong(""), vec![ponged("")]),
        ("2.8", pong("unsolicited"), vec![ponged("unsolicited")]),
        ("2.9", [pong("a"), ping("b")].concat(), vec![ponged("a"), pinged("b")]),
        ("2.10", (0..10).flat_map(|at| ping(ten(at))).collect(), (0..10).map(|at| pinged(ten(at))).collect()),
        ("pong, 126 bytes", pong([0xfe; 126]), vec![Heard::Fault(Fault::ControlTooLong)]),
    ]
}

fn reserved_bits() -> Vec<Row> {
    let fault = Heard::Fault(Fault::ReservedBits);
    let hello = || text("Hello, world!");
    let heard = || said("Hello, world!");
    vec![
        ("3.1", frame(0x91, "Hello, world!"), vec![fault.clone()]),
        ("3.2", [hello(), frame(0xa1, "Hello"), ping("")].concat(), vec![heard(), fault.clone()]),
        ("3.3", [hello(), frame(0xb1, "Hello"), ping("")].concat(), vec![heard(), fault.clone()]),
        ("3.4", [hello(), frame(0xc1, "Hello"), ping("")].concat(), vec![heard(), fault.clone()]),
        ("3.5", frame(0xd2, [0xff]), vec![fault.clone()]),
        ("3.6", frame(0xe9, "Hello, world!"), vec![fault.clone()]),
        ("3.7", frame(0xf8, ""), vec![fault]),
    ]
}

fn opcodes() -> Vec<Row> {
    let unknown = [
        ("4.1.1", 3),
        ("4.1.2", 4),
        ("4.1.3", 5),
        ("4.1.4", 6),
        ("4.1.5", 7),
        ("4.2.1", 11),
        ("4.2.2", 12),
        ("4.2.3", 13),
        ("4.2.4", 14),
        ("4.2.5", 15),
    ];
    let row = |&(name, opcode): &(&'static str, u8)| {
        let wire = [text("Hello, world!"), frame(0x80 | opcode, "reserved"), ping("")].concat();
        (name, wire, vec![said("Hello, world!"), Heard::Fault(Fault::OpcodeUnknown)])
    };
    unknown.iter().map(row).collect()
}

fn fragments() -> Vec<Row> {
    let nothing = || vec![Heard::Fault(Fault::NothingToContinue)];
    let stray = |wire| [wire, text("Hello, world!")].concat();
    let (one, two) = (|| begin("fragment1"), || end("fragment2"));
    let both = || said("fragment1fragment2");
    let split_ping = [frame(0x09, "fragment1"), two()].concat();
    let split_pong = [frame(0x0a, "fragment1"), two()].concat();
    let with_pings = [
        [begin("1"), more("2"), ping("pongme 1!")].concat(),
        [more("3"), more("4"), ping("pongme 2!"), end("5")].concat(),
    ];
    vec![
        ("5.1", split_ping, vec![Heard::Fault(Fault::ControlFragmented)]),
        ("5.2", split_pong, vec![Heard::Fault(Fault::ControlFragmented)]),
        ("5.3", [one(), two()].concat(), vec![both()]),
        ("5.6", [one(), ping("ping"), two()].concat(), vec![pinged("ping"), both()]),
        ("5.6, pong", [one(), pong("pong"), two()].concat(), vec![ponged("pong"), both()]),
        ("5.9", stray(end("non-continuation payload")), nothing()),
        ("5.10", stray(end("")), nothing()),
        ("5.12", stray(more("non-continuation payload")), nothing()),
        ("5.13", stray(more("")), nothing()),
        (
            "5.15",
            [one(), two(), more("fragment3"), text("fragment4")].concat(),
            vec![both(), Heard::Fault(Fault::NothingToContinue)],
        ),
        ("5.16", [more("fragment1"), begin("fragment2"), end("fragment3")].concat(), nothing()),
        ("5.17", [end("fragment1"), begin("fragment2"), end("fragment3")].concat(), nothing()),
        ("5.18", [one(), text("fragment2")].concat(), vec![Heard::Fault(Fault::MessageUnfinished)]),
        ("5.18, begun twice", [one(), one()].concat(), vec![Heard::Fault(Fault::MessageUnfinished)]),
        ("5.18, binary", [one(), frame(0x82, "")].concat(), vec![Heard::Fault(Fault::MessageUnfinished)]),
        ("5.19", with_pings.concat(), vec![pinged("pongme 1!"), pinged("pongme 2!"), said("12345")]),
        ("two messages", [one(), two(), one(), two(), text("a")].concat(), vec![both(), both(), said("a")]),
    ]
}

const KOSME: &str = "κόσμε";

fn utf8_in_fragments() -> Vec<Row> {
    let not_utf8 = || vec![Heard::Fault(Fault::NotUtf8)];
    let bad = [KOSME.as_bytes(), b"\xed\xa0\x80edited"].concat();
    let bytewise = |text: &[u8]| [begin(""), text.chunks(1).flat_map(more).collect(), end("")].concat();
    vec![
        ("6.1.1", text(""), vec![said("")]),
        ("6.1.2", [begin(""), more(""), end("")].concat(), vec![said("")]),
        (
            "6.1.3",
            [begin(""), more("middle frame payload"), end("")].concat(),
            vec![said("middle frame payload")],
        ),
        ("6.2.1", text("Hello-µ@ßöäüàá-UTF-8!!"), vec![said("Hello-µ@ßöäüàá-UTF-8!!")]),
        ("6.2.3", bytewise("Hello-µ@ßöäüàá-UTF-8!!".as_bytes()), vec![said("Hello-µ@ßöäüàá-UTF-8!!")]),
        ("6.2.4", bytewise(KOSME.as_bytes()), vec![said(KOSME)]),
        ("6.3.1", text(&bad), not_utf8()),
        ("6.3.2", bytewise(&bad), not_utf8()),
        ("6.4.1", [begin(KOSME), more(b"\xf4\x90\x80\x80")].concat(), not_utf8()),
        ("6.4.2", [begin([KOSME.as_bytes(), b"\xf4"].concat()), more(b"\x90")].concat(), not_utf8()),
        ("6.4.3, in one frame", text(b"\xce\xba\xf4\x90\x80\x80edited"), not_utf8()),
        ("cut at the end", [begin(b"\xce"), end("")].concat(), not_utf8()),
        ("cut before the end", [begin(b"\xf0\x9f"), more(""), end(b"\xa6")].concat(), not_utf8()),
        (
            "cut, then a ping",
            [begin(b"\xf0\x9f"), ping(b"\xff"), end(b"\xa6\x80")].concat(),
            vec![pinged(b"\xff"), said("🦀")],
        ),
        ("not cut but wrong", [begin("a"), more(b"\xc3"), more("(")].concat(), not_utf8()),
    ]
}

/// 6.5 to 6.23: texts in one frame. Each is sent in one-byte fragments too.
#[test]
fn only_utf8_is_text() {
    let (yes, no) = (true, false);
    for (name, bytes, taken) in [
        ("6.5.1", "κόσμε".as_bytes(), yes),
        ("6.6.1", b"\xce", no),
        ("6.6.2", b"\xce\xba", yes),
        ("6.6.3", b"\xce\xba\xe1", no),
        ("6.6.4", b"\xce\xba\xe1\xbd", no),
        ("6.6.5", b"\xce\xba\xe1\xbd\xb9", yes),
        ("6.6.6", b"\xce\xba\xe1\xbd\xb9\xcf", no),
        ("6.7.1", b"\x00", yes),
        ("6.7.2", b"\xc2\x80", yes),
        ("6.7.3", b"\xe0\xa0\x80", yes),
        ("6.7.4", b"\xf0\x90\x80\x80", yes),
        ("6.8.1", b"\xf8\x88\x80\x80\x80", no),
        ("6.8.2", b"\xfc\x84\x80\x80\x80\x80", no),
        ("6.9.1", b"\x7f", yes),
        ("6.9.2", b"\xdf\xbf", yes),
        ("6.9.3", b"\xef\xbf\xbf", yes),
        ("6.9.4", b"\xf4\x8f\xbf\xbf", yes),
        ("6.10.1", b"\xf7\xbf\xbf\xbf", no),
        ("6.10.2", b"\xfb\xbf\xbf\xbf\xbf", no),
        ("6.10.3", b"\xfd\xbf\xbf\xbf\xbf\xbf", no),
        ("6.11.1", b"\xed\x9f\xbf", yes),
        ("6.11.2", b"\xee\x80\x80", yes),
        ("6.11.3", b"\xef\xbf\xbd", yes),
        ("6.11.4", b"\xf4\x8f\xbf\xbf", yes),
        ("6.11.5", b"\xf4\x90\x80\x80", no),
        ("6.12.1", b"\x80", no),
        ("6.12.2", b"\xbf", no),
        ("6.12.3", b"\x80\xbf", no),
        ("6.12.8", b"\x80\xbf\x80\xbf\x80\xbf\xbe", no),
        ("6.13.1", b"\xc0 \xc1 \xc2 ", no),
        ("6.13.2", b"\xe0 \xe1 \xef ", no),
        ("6.13.3", b"\xf0 \xf1 \xf7 ", no),
        ("6.14.1", b"\xc0", no),
        ("6.14.2", b"\xe0\x80", no),
        ("6.14.3", b"\xf0\x80\x80", no),
        ("6.14.6", b"\xdf", no),
        ("6.14.7", b"\xef\xbf", no),
        ("6.14.8", b"\xf7\xbf\xbf", no),
        ("6.15.1", b"\xc0\xe0\x80\xf0\x80\x80\xf8\x80\x80\x80", no),
        ("6.16.1", b"\xfe", no),
        ("6.16.2", b"\xff", no),
        ("6.16.3", b"\xfe\xfe\xff\xff", no),
        ("6.17.1", b"\xc0\xaf", no),
        ("6.17.2", b"\xe0\x80\xaf", no),
        ("6.17.3", b"\xf0\x80\x80\xaf", no),
        ("6.18.1", b"\xc1\xbf", no),
        ("6.18.2", b"\xe0\x9f\xbf", no),
        ("6.18.3", b"\xf0\x8f\xbf\xbf", no),
        ("6.19.1", b"\xc0\x80", no),
        ("6.19.2", b"\xe0\x80\x80", no),
        ("6.19.3", b"\xf0\x80\x80\x80", no),
        ("6.20.1", b"\xed\xa0\x80", no),
        ("6.20.4", b"\xed\xaf\xbf", no),
        ("6.20.5", b"\xed\xb0\x80", no),
        ("6.20.7", b"\xed\xbf\xbf", no),
        ("6.21.1", b"\xed\xa0\x80\xed\xb0\x80", no),
        ("6.21.8", b"\xed\xaf\xbf\xed\xbf\xbf", no),
        ("6.22.1", b"\xef\xbf\xbe", yes),
        ("6.22.2", b"\xef\xbf\xbf", yes),
        ("6.22.3", b"\xf0\x9f\xbf\xbe", yes),
        ("6.22.34", b"\xf4\x8f\xbf\xbf", yes),
        ("6.23.1", "\u{fff9}\u{fffa}\u{fffb}\u{fffc}\u{fffd}".as_bytes(), yes),
    ] {
        let expected = match String::from_utf8(bytes.to_vec()) {
            Ok(text) if taken => vec![said(text)],
            _ => vec![Heard::Fault(Fault::NotUtf8)],
        };
        let bytewise = [begin(""), bytes.chunks(1).flat_map(more).collect(), end("")].concat();
        check(vec![(name, text(bytes), expected.clone()), (name, bytewise, expected)]);
    }
}

fn closes() -> Vec<Row> {
    let bye = || closing(1000, "");
    let byed = || closed(1000, "");
    let largest = "*".repeat(MESSAGE_BYTES_MAX);
    let fault = |fault| vec![Heard::Fault(fault)];
    vec![
        ("7.1.1", [text("Hello World!"), bye()].concat(), vec![said("Hello World!"), byed()]),
        ("7.1.2", [bye(), bye()].concat(), vec![byed()]),
        ("7.1.3", [bye(), ping("")].concat(), vec![byed()]),
        ("7.1.4", [bye(), text("Hello World!")].concat(), vec![byed()]),
        ("7.1.5", [begin("fragment1"), bye(), end("fragment2")].concat(), vec![byed()]),
        (
            "7.1.6",
            [text(&largest), text("Hello World!"), bye(), ping("")].concat(),
            vec![said(&largest), said("Hello World!"), byed()],
        ),
        ("7.3.1", frame(0x88, ""), vec![Heard::Close(None)]),
        ("7.3.2", frame(0x88, "a"), fault(Fault::CloseMalformed)),
        ("7.3.3", bye(), vec![byed()]),
        ("7.3.4", closing(1000, "Hello World!"), vec![closed(1000, "Hello World!")]),
        ("7.3.5", closing(1000, "*".repeat(123)), vec![closed(1000, "*".repeat(123))]),
        ("7.3.6", closing(1000, "*".repeat(124)), fault(Fault::ControlTooLong)),
        ("7.5.1", closing(1000, b"\xce\xba\xed\xa0\x80edited"), fault(Fault::NotUtf8)),
        ("7.5.1, cut", closing(1000, b"\xce"), fault(Fault::NotUtf8)),
        ("7.7.1", closing(1000, ""), vec![byed()]),
        ("7.7.13", closing(4999, ""), vec![closed(4999, "")]),
        ("7.9.1", closing(0, ""), fault(Fault::CloseCodeInvalid)),
        ("7.9.2", closing(999, b"\xff"), fault(Fault::CloseCodeInvalid)),
        ("7.13.1", closing(5000, ""), fault(Fault::CloseCodeInvalid)),
        ("7.13.2", frame(0x88, b"\xff\xff"), fault(Fault::CloseCodeInvalid)),
        ("a fault ends it too", [frame(0x88, "a"), text("a"), bye()].concat(), fault(Fault::CloseMalformed)),
    ]
}

fn limits() -> Vec<Row> {
    let (below, at, above) =
        ("*".repeat(MESSAGE_BYTES_MAX - 1), "*".repeat(MESSAGE_BYTES_MAX), "*".repeat(MESSAGE_BYTES_MAX + 1));
    let too_long = || vec![Heard::Fault(Fault::MessageTooLong)];
    let full = || [begin(&at), ping([0xfe; 125]), more(""), end("")].concat();
    vec![
        ("9.1.1, below", text(&below), vec![said(&below)]),
        ("9.1.1, at", text(&at), vec![said(&at)]),
        ("9.1.1, above", text(&above), too_long()),
        ("9.2.1, binary", frame(0x82, &at), vec![Heard::Fault(Fault::Binary)]),
        ("9.3.1, 64", fragmented(&at, 64), vec![said(&at)]),
        ("9.3.2, 256", fragmented(&below, 256), vec![said(&below)]),
        ("9.3.3, 1 KiB", fragmented(&at, 1 << 10), vec![said(&at)]),
        ("9.3.4, 4 KiB", fragmented(&at, 4 << 10), vec![said(&at)]),
        ("9.3.5, 16 KiB", fragmented(&at, 16 << 10), vec![said(&at)]),
        ("9.3.6, 64 KiB", fragmented(&at, 64 << 10), vec![said(&at)]),
        ("9.3.*, above", fragmented(&above, 1 << 10), too_long()),
        ("9.3.*, above by the last", [begin(&at), end("*")].concat(), too_long()),
        ("full, then a ping", full(), vec![pinged([0xfe; 125]), said(&at)]),
        ("twice full", [full(), text(&at)].concat(), vec![pinged([0xfe; 125]), said(&at), said(&at)]),
    ]
}

/// What the suite, itself a client, never sends: a frame without its mask, a length in a wrong form.
fn malformed() -> Vec<Row> {
    let fault = |fault| vec![Heard::Fault(fault)];
    vec![
        ("no mask", b"\x81\x05Hello".to_vec(), fault(Fault::Unmasked)),
        ("no mask, empty ping", b"\x89\x00".to_vec(), fault(Fault::Unmasked)),
        ("125 in 16 bits", b"\x81\xfe\x00\x7d".to_vec(), fault(Fault::LengthNotMinimal)),
        ("65535 in 64 bits", b"\x81\xff\0\0\0\0\0\0\xff\xff".to_vec(), fault(Fault::LengthNotMinimal)),
        ("0 in 64 bits", b"\x81\xff\0\0\0\0\0\0\0\0".to_vec(), fault(Fault::LengthNotMinimal)),
        ("2^63", b"\x81\xff\x80\0\0\0\0\0\0\0".to_vec(), fault(Fault::LengthMalformed)),
        ("2^62", b"\x81\xff\x40\0\0\0\0\0\0\0".to_vec(), fault(Fault::MessageTooLong)),
        ("a request", b"GET / HTTP/1.1\r\n\r\n".to_vec(), fault(Fault::ReservedBits)),
    ]
}

fn all() -> Vec<Row> {
    let tables = [framing, pings_and_pongs, reserved_bits, opcodes, fragments];
    let more_tables = [utf8_in_fragments, closes, limits, malformed];
    tables.iter().chain(&more_tables).flat_map(|table| table()).collect()
}

#[test]
fn every_row_is_heard_alike_however_it_is_cut() {
    check(all());
}

#[test]
fn every_fault_is_provoked() {
    let provoked: HashSet<_> = all().into_iter().flat_map(|(_, _, heard)| heard).collect();
    for &fault in Fault::ALL {
        assert!(provoked.contains(&Heard::Fault(fault)), "{fault:?}");
    }
}
