//! A sheet of figures: what anything except a scenario's run measured, as kept in `perf/records/`.
//!
//! A benchmark writes its figures as lines ([`crate::figures`]), which are read here; `scale` and `durable` make theirs
//! themselves. A line that cannot be read is refused with its text, because nobody would notice that a figure is
//! missing from a record.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::figures::{Figure, Line, Unit};
use crate::machine::Environment;
use crate::report;
use crate::scale;
use crate::verdict::Verdict;
use crate::watch::Share;

/// Raised when a field changes its meaning.
const SCHEMA: u32 = 1;

/// Digits of a value that are kept; no measurement here is more exact.
const DIGITS: i32 = 6;

/// Figures of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sheet {
    /// [`SCHEMA`].
    pub(crate) schema: u32,
    /// What made them: `bench-` and a benchmark's name, or the rig's own command.
    #[serde(rename = "sheet")]
    pub(crate) name: String,
    /// Whether they may be believed.
    pub(crate) verdict: Verdict,
    /// Seconds that the measurement took.
    pub(crate) time_s: f64,
    /// Who had the CPUs meanwhile.
    pub(crate) share: Share,
    /// The measured server's options that differ from its defaults, and `journal.durability`; empty where no single
    /// server was measured, or where they were not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) settings: Vec<String>,
    /// The figures, in the order in which they were measured.
    pub(crate) figures: Vec<Figure>,
    /// The machine and the build.
    pub(crate) environment: Environment,
}

impl Sheet {
    /// A sheet of this schema.
    pub(crate) fn new(
        name: String,
        verdict: Verdict,
        (time_s, share): (f64, Share),
        figures: Vec<Figure>,
        environment: Environment,
    ) -> Self {
        Self { schema: SCHEMA, name, verdict, time_s, share, settings: Vec::new(), figures, environment }
    }

    /// The sheet with the options of the measured server.
    pub(crate) fn of_server(self, settings: Vec<String>) -> Self {
        Self { settings, ..self }
    }

    /// What a row says of the ratio of a figure to what is beside it; nothing where the clock is too coarse for one.
    pub(crate) fn ratio(&self, figure: &Figure) -> String {
        let beside = figure.beside.as_ref().map(|beside| beside.value);
        let is_coarse =
            |base: f64| self.name == scale::SHEET && figure.unit == Unit::Us && base < scale::RATIO_US_MIN;
        let beside = beside.filter(|base| !is_coarse(*base));
        beside.map_or_else(String::new, |base| format!("{:.2}", figure.value / base))
    }

    /// Reads a sheet that was written.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let sheet: Self = serde_json::from_str(text).map_err(|fault| fault.to_string())?;
        if sheet.schema != SCHEMA {
            return Err(format!("schema {}; this program reads {SCHEMA}", sheet.schema));
        }
        Ok(sheet)
    }

    /// The JSON.
    pub(crate) fn json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a sheet has no maps with odd keys");
        text.push('\n');
        text
    }

    /// Writes it into a new folder of `out`, as `NAME.json`; returns the path.
    pub(crate) fn write(&self, out: &Path) -> Result<String, String> {
        let folder = report::new_folder(out, &self.name, &self.environment.date)?;
        let path = folder.join(file_name(&self.name));
        report::save(&path, self.json().as_bytes())?;
        Ok(path.display().to_string())
    }
}

/// The file of a sheet in the folder of its run.
pub(crate) fn file_name(sheet: &str) -> String {
    let kind = sheet.split('-').next().expect("a text has a beginning");
    format!("{kind}.json")
}

/// All figures that a benchmark wrote, and its own reasons why they must not be kept.
pub(crate) fn read_lines(text: &str) -> Result<(Vec<Figure>, Vec<String>), String> {
    let (mut figures, mut reasons): (Vec<Figure>, Vec<String>) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let read: Line = serde_json::from_str(line).map_err(|_| {
            format!(
                "a figure: got {line}; allowed: {{\"what\":…,\"value\":…,\"unit\":…}} and beside, or invalid"
            )
        })?;
        match read {
            Line::Invalid { invalid } => reasons.push(invalid),
            Line::Figure(figure) => {
                let figure = checked(figure)?;
                if figures.iter().any(|other| other.what == figure.what) {
                    return Err(format!("a figure: {} was said twice", figure.what));
                }
                figures.push(figure);
            }
        }
    }
    if figures.is_empty() {
        return Err("no figure was written".to_owned());
    }
    Ok((figures, reasons))
}

fn checked(mut figure: Figure) -> Result<Figure, String> {
    if figure.what.trim().is_empty() {
        return Err("a figure: what: is empty; say what was measured".to_owned());
    }
    let Figure { what, value, beside, .. } = &mut figure;
    for value in std::iter::once(value).chain(beside.as_mut().map(|beside| &mut beside.value)) {
        if !(value.is_finite() && 0.0 <= *value) {
            return Err(format!("a figure: {what}: got {value}; allowed: a number from 0 on"));
        }
        *value = rounded(*value);
    }
    Ok(figure)
}

/// A value with as many digits as are kept.
pub(crate) fn rounded(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    #[allow(clippy::cast_possible_truncation, reason = "a float has at most 309 digits")]
    let before_point = value.abs().log10().floor() as i32 + 1;
    // Divided by a whole power of ten: multiplying by a fraction would bring back the digits that were cut.
    let places = DIGITS - before_point;
    if places < 0 {
        let scale = 10_f64.powi(-places);
        (value / scale).round() * scale
    } else {
        let scale = 10_f64.powi(places);
        (value * scale).round() / scale
    }
}

/// A value as people read it.
pub(crate) fn text_of(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Ns if value < 1_000.0 => format!("{value:.1} ns"),
        Unit::Ns => report::micros(value / 1e3),
        Unit::Us => report::micros(value),
        Unit::S => report::micros(value * 1e6),
        Unit::PerS => format!("{}/s", report::count(value)),
        Unit::Ratio => format!("{value:.2}"),
        Unit::Bytes => bytes(value),
        Unit::Count if value < 100.0 && value.fract() != 0.0 => format!("{value:.1}"),
        Unit::Count => report::count(value),
    }
}

fn bytes(bytes: f64) -> String {
    let mut value = bytes;
    for unit in ["bytes", "KiB", "MiB"] {
        if value < 1_024.0 {
            return if value < 10.0 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") };
        }
        value /= 1_024.0;
    }
    format!("{value:.1} GiB")
}

/// Figures that were never measured, for tests of what is written about figures.
#[cfg(test)]
pub(crate) fn example() -> Sheet {
    let environment = Environment {
        command: "scripts/perf bench roundtrip".to_owned(),
        ..crate::summary::example_environment()
    };
    let share = Share { stolen: 0.0, others: 0.001, server: 1.5, kernel: 0.0 };
    let figures = vec![
        Figure::new("signed POST /order, p50", 39.8, Unit::Us).beside("floor", 37.9),
        Figure::new("server's sign, p50", 27_900.0, Unit::Ns),
    ];
    Sheet::new(
        "bench-roundtrip".to_owned(),
        Verdict::because(Vec::new()),
        (12.0, share),
        figures,
        environment,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sheet_reads_back_as_it_was_written() {
        assert_eq!(Sheet::parse(&example().json()), Ok(example()));
        assert!(!example().json().contains("settings"), "nothing is said of no server");
        let set = example().of_server(vec!["limits.mode=off".to_owned()]);
        assert_eq!(Sheet::parse(&set.json()), Ok(set));
        let other = example().json().replacen("\"schema\": 1", "\"schema\": 7", 1);
        assert_eq!(Sheet::parse(&other).unwrap_err(), "schema 7; this program reads 1");
    }

    #[test]
    fn a_ratio_stands_only_where_the_clock_is_fine_enough() {
        for (name, value, base, ratio) in [
            ("scale", 0.6, Some(0.4), ""),
            ("scale", 4.4, Some(4.0), "1.10"),
            ("bench-matching", 0.6, Some(0.4), "1.50"),
            ("scale", 4.4, None, ""),
        ] {
            let sheet = Sheet { name: name.to_owned(), ..example() };
            let figure = Figure::new("x", value, Unit::Us);
            let figure = base.map_or(figure.clone(), |base| figure.beside("base", base));
            assert_eq!(sheet.ratio(&figure), ratio, "{name}, {value} beside {base:?}");
        }
    }

    #[test]
    fn lines_are_figures_and_reasons() {
        let text = "{\"what\":\"a\",\"value\":39.80000000001,\"unit\":\"us\",\"beside\":{\"what\":\"b\",\"value\":2}}\n\
                    {\"invalid\":\"others had the machine\"}\n{\"what\":\"c\",\"value\":3,\"unit\":\"per_s\"}\n";
        let (figures, reasons) = read_lines(text).unwrap();
        let wanted = [Figure::new("a", 39.8, Unit::Us).beside("b", 2.0), Figure::new("c", 3.0, Unit::PerS)];
        assert_eq!(
            (figures.as_slice(), reasons.as_slice()),
            (&wanted[..], &["others had the machine".to_owned()][..])
        );
    }

    #[test]
    fn what_is_no_figure_is_refused_with_what_it_was() {
        for (text, complaint) in [
            ("", "no figure was written"),
            ("{\"invalid\":\"x\"}", "no figure was written"),
            ("39.8", "a figure: got 39.8; allowed:"),
            ("{\"what\":\"a\",\"value\":1,\"unit\":\"furlongs\"}", "a figure: got {\"what\":\"a\""),
            ("{\"what\":\"a\",\"value\":1,\"unit\":\"us\",\"besides\":1}", "a figure: got {\"what\":\"a\""),
            ("{\"what\":\"a\",\"value\":null,\"unit\":\"us\"}", "a figure: got {\"what\":\"a\""),
            (
                "{\"what\":\"a\",\"value\":-1,\"unit\":\"us\"}",
                "a figure: a: got -1; allowed: a number from 0 on",
            ),
            ("{\"what\":\" \",\"value\":1,\"unit\":\"us\"}", "a figure: what: is empty"),
            (
                "{\"what\":\"a\",\"value\":1,\"unit\":\"us\"}\n{\"what\":\"a\",\"value\":2,\"unit\":\"us\"}",
                "a figure: a was said twice",
            ),
        ] {
            let got = read_lines(text).unwrap_err();
            assert!(got.starts_with(complaint), "{text}: {got}");
        }
    }

    #[test]
    fn values_are_kept_to_six_digits_and_read_with_their_unit() {
        for (value, kept) in [(0.0, 0.0), (1.0 / 3.0, 0.333_333), (1_234_567.8, 1_234_570.0), (1e-9, 1e-9)] {
            assert!((rounded(value) - kept).abs() <= f64::EPSILON * kept, "{value}: {}", rounded(value));
        }
        for (value, unit, text) in [
            (33.94, Unit::Ns, "33.9 ns"),
            (27_900.0, Unit::Ns, "27.9 µs"),
            (39.8, Unit::Us, "39.8 µs"),
            (3.8, Unit::S, "3.8 s"),
            (233_718.2, Unit::PerS, "233,718/s"),
            (1.049, Unit::Ratio, "1.05"),
            (3.0 * 1_073_741_824.0, Unit::Bytes, "3.0 GiB"),
            (166_723_584.0, Unit::Bytes, "159 MiB"),
            (4.25, Unit::Count, "4.2"),
            (4_000.0, Unit::Count, "4,000"),
        ] {
            assert_eq!(text_of(value, unit), text);
        }
    }
}
