//! A catalog of any size, made from the real rows that lie beside the repository, or from the sample catalog where those
//! are absent.

use serde_json::Value;
use std::io::{BufWriter, Read as _, Write as _};
use std::ops::Range;
use std::path::Path;

/// The id of the row with number 0.
pub(crate) const FIRST_ID: u64 = 10_000_000;

/// The real rows.
pub(crate) const REAL: &str = "../shared/data/gamma-markets-500/polymarket_markets.json.gz";

/// Writes the rows with these numbers: the real ones again and again, each copy with its own id, condition, tokens, slug
/// and title, which `seed` decides; markets of one event stay together. Returns the file's length.
pub(crate) fn write(file: &Path, numbers: Range<u64>, seed: u64) -> u64 {
    let real: Vec<Value> = if let Ok(bytes) = std::fs::read(REAL) {
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text).expect("gzip");
        serde_json::from_str(&text).expect("JSON")
    } else {
        let events: Vec<Value> = serde_json::from_str(outcry::catalog::DEV).expect("JSON");
        events.iter().flat_map(|event| event["markets"].as_array().cloned().unwrap_or_default()).collect()
    };
    let mut out = BufWriter::new(std::fs::File::create(file).expect("a place for the file"));
    let own = |row: &mut Value, name: &str, copy: u64| {
        let text = row[name].as_str().unwrap_or_default();
        row[name] = format!("{text}{}{seed}-{copy}", if name == "slug" { "-" } else { " " }).into();
    };
    let first = numbers.start;
    for number in numbers {
        let (copy, at) = (number / real.len() as u64, number % real.len() as u64);
        let mut row = real[usize::try_from(at).expect("64 bits")].clone();
        let id = FIRST_ID + number;
        let [one, two, three, four] = [0, 1, 2, 3].map(|part| mixed(seed ^ mixed(4 * id + part)));
        row["id"] = id.to_string().into();
        row["conditionId"] = format!("0x{one:016x}{two:016x}{three:016x}{four:016x}").into();
        row["clobTokenIds"] = format!("[\"{one}{two}{three}1\", \"{one}{two}{three}2\"]").into();
        own(&mut row, "slug", copy);
        own(&mut row, "question", copy);
        for event in row["events"].as_array_mut().into_iter().flatten() {
            event["id"] = format!("{}{copy:04}", event["id"].as_str().unwrap_or_default()).into();
            own(event, "slug", copy);
            own(event, "title", copy);
        }
        write!(out, "{}{row}", if number == first { "[" } else { ",\n" }).expect("room for the file");
    }
    writeln!(out, "]").expect("room for the file");
    let file = out.into_inner().expect("room for the file");
    file.metadata().expect("just written").len()
}

/// A number without a visible pattern (the finaliser of splitmix64).
const fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
