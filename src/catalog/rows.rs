//! The rows of a file one at a time, so that a file of any length needs the memory of its longest
//! row.
//!
//! A file is an array of rows, or one row by itself. [`Rows`] only finds where a row ends (by
//! brackets and quotes); whether it is JSON is for its reader to judge. [`Rows::cut`] goes through
//! the same bytes again and returns the parts whose places a first reading has kept.

use std::io::{BufRead, Read};

use super::fields;
use super::file::{FileFault, UNPACKED_BYTES_MAX, unpacked};

/// How much is read from a file at once.
const BUFFER_BYTES: usize = 256 << 10;

/// The longest row: an event with thousands of markets in it.
pub(super) const ROW_BYTES_MAX: usize = 64 << 20;

/// A file on its way through.
pub struct Rows<'a> {
    source: Box<dyn Read + 'a>,
    /// How long the unpacked file may be; `None` if it is not packed.
    unpacked_bytes_max: Option<u64>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// How many bytes of the unpacked file precede `start`.
    offset: u64,
    number: u32,
    place: Place,
}

/// What comes next in the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    FirstOfArray,
    NextOfArray,
    OnlyRow,
    End,
}

/// One row as written.
pub(super) struct Row<'a> {
    /// Its bytes.
    pub(super) text: &'a str,
    /// How many bytes of the unpacked file precede it.
    pub(super) offset: u64,
    /// Its number, from 1.
    pub(super) number: u32,
}

impl<'a> Rows<'a> {
    /// A file from its first byte, packed or not.
    pub fn new(source: impl BufRead + 'a) -> Result<Self, FileFault> {
        let (source, is_packed) = unpacked(source)?;
        Ok(Self { unpacked_bytes_max: is_packed.then_some(UNPACKED_BYTES_MAX), ..Self::of(source) })
    }

    /// A text that is never packed, as it comes.
    pub(super) fn plain(text: &'a [u8]) -> Self {
        Self::of(Box::new(text))
    }

    fn of(source: Box<dyn Read + 'a>) -> Self {
        Self {
            source,
            unpacked_bytes_max: None,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
            number: 0,
            place: Place::Start,
        }
    }

    /// The next row; `None` after the last one.
    pub(super) fn next_row(&mut self) -> Result<Option<Row<'_>>, FileFault> {
        if self.place == Place::Start {
            self.begin()?;
        }
        match (self.place, self.look()?) {
            (Place::FirstOfArray | Place::NextOfArray, Some(b']')) => {
                self.step(1);
                self.place = Place::End;
            }
            (Place::NextOfArray, Some(b',')) => {
                self.step(1);
                self.look()?;
            }
            (Place::NextOfArray, _) => return Err(self.broken("expected `,` or `]`")),
            _ => {}
        }
        if self.place == Place::End {
            return match self.look()? {
                None => Ok(None),
                Some(_) => Err(self.broken("trailing characters")),
            };
        }
        let bytes = self.value_bytes()?;
        self.place = if self.place == Place::OnlyRow { Place::End } else { Place::NextOfArray };
        self.number += 1;
        let (from, offset, number) = (self.start, self.offset, self.number);
        self.step(bytes);
        let text = std::str::from_utf8(&self.buffer[from..from + bytes]).map_err(|_| FileFault::NotText)?;
        Ok(Some(Row { text, offset, number }))
    }

    /// The `bytes` bytes at `offset`: an object that a first reading of the same file has found.
    /// Calls must go forward through the file.
    pub fn cut(&mut self, offset: u64, bytes: u32) -> Result<&str, FileFault> {
        let wanted = bytes as usize;
        while self.offset < offset {
            if self.start == self.end && !self.fill()? {
                return Err(FileFault::Changed);
            }
            let ahead = usize::try_from(offset - self.offset).unwrap_or(usize::MAX);
            self.step(ahead.min(self.end - self.start));
        }
        while self.end - self.start < wanted {
            if !self.fill()? {
                return Err(FileFault::Changed);
            }
        }
        let from = self.start;
        self.step(wanted);
        let text = std::str::from_utf8(&self.buffer[from..from + wanted]).ok();
        text.filter(|text| text.starts_with('{') && text.ends_with('}')).ok_or(FileFault::Changed)
    }

    fn begin(&mut self) -> Result<(), FileFault> {
        match self.look()? {
            Some(b'[') => {
                self.step(1);
                self.place = Place::FirstOfArray;
            }
            Some(b'{') => self.place = Place::OnlyRow,
            _ => {
                let bytes = self.value_bytes()?;
                let text = std::str::from_utf8(&self.buffer[self.start..self.start + bytes]);
                let fault = fields::fault(text.map_err(|_| FileFault::NotText)?);
                return Err(fault.map_or(FileFault::NotRows, FileFault::NotJson));
            }
        }
        Ok(())
    }

    fn broken(&self, what: &str) -> FileFault {
        FileFault::NotJson(format!("{what} after row {}, at byte {}", self.number, self.offset))
    }

    /// Skips blanks and returns the byte after them without consuming it; `None` at the end of the file.
    fn look(&mut self) -> Result<Option<u8>, FileFault> {
        loop {
            let ahead = &self.buffer[self.start..self.end];
            let blanks = ahead.iter().position(|byte| !is_blank(*byte));
            match blanks {
                Some(blanks) => {
                    self.step(blanks);
                    return Ok(Some(self.buffer[self.start]));
                }
                None => self.step(self.end - self.start),
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// The length of the value at `start`: up to and including the bracket or quote that closes it,
    /// else up to what may follow a value, else up to the end of the file.
    fn value_bytes(&mut self) -> Result<usize, FileFault> {
        let (mut at, mut depth) = (0, 0_u32);
        let (mut quoted, mut escaped) = (false, false);
        loop {
            if self.start + at == self.end && !self.fill()? {
                return Ok(at);
            }
            for byte in &self.buffer[self.start + at..self.end] {
                if escaped {
                    escaped = false;
                } else if quoted {
                    match byte {
                        b'\\' => escaped = true,
                        b'"' => quoted = false,
                        _ => {}
                    }
                    if !quoted && depth == 0 {
                        return Ok(at + 1);
                    }
                } else {
                    match byte {
                        b'"' => quoted = true,
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' if 1 < depth => depth -= 1,
                        b'}' | b']' if depth == 1 => return Ok(at + 1),
                        b'}' | b']' | b',' if depth == 0 => return Ok(at),
                        blank if depth == 0 && is_blank(*blank) => return Ok(at),
                        _ => {}
                    }
                }
                at += 1;
            }
        }
    }

    fn step(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
        debug_assert!(self.start <= self.end, "only what was read is gone through");
    }

    /// Reads more after what is not consumed yet; false at the end of the file.
    fn fill(&mut self) -> Result<bool, FileFault> {
        if self.end == self.buffer.len() && 0 < self.start {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            if ROW_BYTES_MAX <= self.buffer.len() {
                return Err(FileFault::RowTooLong(self.number + 1));
            }
            self.buffer.resize((2 * self.buffer.len()).max(BUFFER_BYTES), 0);
        }
        let room = &mut self.buffer[self.end..];
        let count = loop {
            match self.source.read(room) {
                Err(fault) if fault.kind() == std::io::ErrorKind::Interrupted => {}
                Err(fault) if self.unpacked_bytes_max.is_some() => {
                    return Err(FileFault::Unpack(fault.to_string()));
                }
                Err(fault) => return Err(FileFault::Read(fault.to_string())),
                Ok(count) => break count,
            }
        };
        self.end += count;
        let unpacked = self.offset + (self.end - self.start) as u64;
        if self.unpacked_bytes_max.is_some_and(|bytes_max| bytes_max < unpacked) {
            return Err(FileFault::TooLong);
        }
        Ok(0 < count)
    }
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Write};

    /// Returns what it holds in pieces of a few bytes.
    struct Drops<'a>(&'a [u8], usize);

    impl Read for Drops<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(self.0.len()).min(out.len());
            out[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    /// Every row with its offset, or the fault.
    fn rows(text: &str, bytes_at_once: usize) -> Result<Vec<(u64, String)>, String> {
        let drops = BufReader::with_capacity(bytes_at_once, Drops(text.as_bytes(), bytes_at_once));
        let mut rows = Rows::new(drops).map_err(|fault| fault.to_string())?;
        let mut all = Vec::new();
        while let Some(row) = rows.next_row().map_err(|fault| fault.to_string())? {
            assert_eq!(row.number as usize, all.len() + 1);
            all.push((row.offset, row.text.to_owned()));
        }
        Ok(all)
    }

    #[test]
    fn rows_come_one_by_one_however_the_bytes_come() {
        for (text, found) in [
            ("[]", vec![]),
            (" [ ] \n", vec![]),
            ("{}", vec![(0, "{}")]),
            (" {\"a\":[1,{}]} ", vec![(1, "{\"a\":[1,{}]}")]),
            (r#"[{"a":"}]\"\\"},{"b":[[]]}]"#, vec![(1, r#"{"a":"}]\"\\"}"#), (16, r#"{"b":[[]]}"#)]),
            ("[1 , \"x,]\\\"\",null\n,{ }]", vec![(1, "1"), (5, "\"x,]\\\"\""), (13, "null"), (19, "{ }")]),
        ] {
            for bytes_at_once in [1, 2, 3, 7, 1_000] {
                let rows = rows(text, bytes_at_once).expect(text);
                let rows: Vec<_> = rows.iter().map(|(offset, text)| (*offset, text.as_str())).collect();
                assert_eq!(rows, found, "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_array_of_rows_is_refused() {
        for (text, fault) in [
            ("", "not JSON: EOF while parsing a value at line 1 column 0"),
            ("7", "neither an array nor an object of events or markets"),
            ("seven", "not JSON: expected value at line 1 column 1"),
            ("[{} {}]", "not JSON: expected `,` or `]` after row 1, at byte 4"),
            ("[{}", "not JSON: expected `,` or `]` after row 1, at byte 3"),
            ("[{}] x", "not JSON: trailing characters after row 1, at byte 5"),
            ("{} {}", "not JSON: trailing characters after row 1, at byte 3"),
        ] {
            for bytes_at_once in [1, 1_000] {
                assert_eq!(rows(text, bytes_at_once).expect_err(text), fault, "{text}");
            }
        }
    }

    fn packed(text: &str) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(text.as_bytes()).expect("memory");
        packer.finish().expect("memory")
    }

    #[test]
    fn a_packed_file_reads_as_the_plain_one_up_to_its_longest() {
        let whole = packed("[1, 2, 3]");
        for (file, bytes_max, fault) in [
            (&whole[..], 9, None),
            (&whole, 8, Some("unpacks to more than ")),
            (&whole[..whole.len() - 9], 9, Some("gzip: ")),
        ] {
            let mut rows = Rows::new(file).expect("a file");
            rows.unpacked_bytes_max = rows.unpacked_bytes_max.map(|_| bytes_max);
            let mut next =
                || rows.next_row().map(|row| row.map(|row| row.number)).map_err(|it| it.to_string());
            let read: Result<Vec<u32>, String> = std::iter::from_fn(|| next().transpose()).collect();
            match fault {
                None => assert_eq!(read, Ok(vec![1, 2, 3])),
                Some(fault) => assert!(read.expect_err("refused").starts_with(fault), "{bytes_max}"),
            }
        }
    }

    #[test]
    fn a_text_that_may_not_be_packed_is_not_unpacked() {
        assert_eq!(Rows::plain(&packed("[1]")).next_row().err(), Some(FileFault::NotText));
        assert_eq!(
            Rows::plain(b"[1]").next_row().map(|row| row.map(|row| row.text.to_owned())),
            Ok(Some("1".to_owned()))
        );
    }

    #[test]
    fn parts_are_cut_out_where_they_were_found() {
        let text = r#"[{"a":1}, {"b":{"c":[2]}}]"#;
        for bytes_at_once in [1, 5, 1_000] {
            let again = || Rows::new(BufReader::with_capacity(8, Drops(text.as_bytes(), bytes_at_once)));
            let mut rows = again().expect("a file");
            assert_eq!(rows.cut(1, 7).map(str::to_owned), Ok(r#"{"a":1}"#.to_owned()));
            assert_eq!(rows.cut(15, 9).map(str::to_owned), Ok(r#"{"c":[2]}"#.to_owned()));
            for (offset, bytes) in [(1, 6), (2, 7), (15, 90), (99, 1)] {
                assert_eq!(again().expect("a file").cut(offset, bytes), Err(FileFault::Changed));
            }
        }
    }
}
