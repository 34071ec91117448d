//! The values of a scenario file.
//!
//! Only [`KEYS`] knows the names; a name that is not in it is refused with the nearest one. Every number has a range,
//! and a refusal names the key, what was given and what is allowed.

use outcry::server::plan::options::placed;
use toml::{Table, Value};

/// Every key that a scenario may have, except those of `[server.set]` and `[server.set_on_fewer]`, which are the
/// server's own.
const KEYS: &[&str] = &[
    "purpose",
    "seed",
    "load.rate",
    "load.arrivals",
    "load.burst",
    "load.connections",
    "load.read_connections",
    "load.warm_up_s",
    "load.time_s",
    "load.late_us_max",
    "load.client",
    "mix.place",
    "mix.cancel",
    "mix.replace",
    "mix.batch",
    "mix.take",
    "mix.read",
    "books.markets",
    "books.resting",
    "books.wallets",
    "books.history",
    "server.data",
    "server.set",
    "server.cpus",
    "server.set_on_fewer",
    "sweep.first",
    "sweep.factor",
    "sweep.steps",
];

/// The known name that takes the fewest edits to reach.
pub(crate) fn nearest<'a>(got: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known.min_by_key(|name| strsim::damerau_levenshtein(got, name))
}

/// Whether a key of a scenario is in this table.
fn is_table(name: &str) -> bool {
    KEYS.iter().any(|key| key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

/// A file as written.
pub(crate) struct Written {
    table: Table,
}

impl Written {
    /// Reads a file's text, without checking which keys it has.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let table = text.parse().map_err(|fault: toml::de::Error| placed(text, &fault))?;
        Ok(Self { table })
    }

    /// Refuses a key that is not in [`KEYS`].
    pub(crate) fn only_known(&self) -> Result<(), String> {
        for (name, value) in &self.table {
            match value {
                // An empty table has no keys, so it is checked by its own name.
                Value::Table(inner) if inner.is_empty() && !is_table(name) => known(name)?,
                Value::Table(inner) => inner.keys().try_for_each(|key| known(&format!("{name}.{key}")))?,
                _ => known(name)?,
            }
        }
        Ok(())
    }

    fn value(&self, name: &str) -> Option<&Value> {
        match name.split_once('.') {
            Some((table, key)) => self.table.get(table)?.get(key),
            None => self.table.get(name),
        }
    }

    /// A text.
    pub(crate) fn text(&self, name: &str, default: Option<&str>) -> Result<String, String> {
        match (self.value(name), default) {
            (Some(Value::String(text)), _) => Ok(text.clone()),
            (Some(other), _) => Err(format!("{name}: got {other}; allowed: a text in quotes")),
            (None, Some(default)) => Ok(default.to_owned()),
            (None, None) => Err(format!("{name}: is missing")),
        }
    }

    /// A whole number.
    pub(crate) fn whole(&self, name: &str, min: i64, max: i64, default: Option<i64>) -> Result<i64, String> {
        match (self.value(name), default) {
            (Some(&Value::Integer(number)), _) if (min..=max).contains(&number) => Ok(number),
            (Some(other), _) => Err(format!("{name}: got {other}; allowed: a whole number, {min} to {max}")),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(format!("{name}: is missing; allowed: a whole number, {min} to {max}")),
        }
    }

    /// A whole number that fits into 32 bits.
    pub(crate) fn small(&self, name: &str, min: u32, max: u32, default: Option<u32>) -> Result<u32, String> {
        let number = self.whole(name, min.into(), max.into(), default.map(i64::from))?;
        Ok(u32::try_from(number).expect("it is at most max, which is a u32"))
    }

    /// A number.
    pub(crate) fn float(&self, name: &str, min: f64, max: f64, default: Option<f64>) -> Result<f64, String> {
        let got = match (self.value(name), default) {
            (Some(&Value::Float(number)), _) => number,
            #[allow(clippy::cast_precision_loss, reason = "what is too large is refused below")]
            (Some(&Value::Integer(number)), _) => number as f64,
            (Some(other), _) => return Err(format!("{name}: got {other}; allowed: {min} to {max}")),
            (None, Some(default)) => default,
            (None, None) => return Err(format!("{name}: is missing; allowed: {min} to {max}")),
        };
        if (min..=max).contains(&got) {
            Ok(got)
        } else {
            Err(format!("{name}: got {got}; allowed: {min} to {max}"))
        }
    }

    /// The settings in a table, if there is one; their names and values are for the server to judge.
    pub(crate) fn settings(&self, place: &str) -> Result<Option<Vec<String>>, String> {
        let table = match self.value(place) {
            None => return Ok(None),
            Some(Value::Table(table)) => table,
            Some(other) => {
                return Err(format!("{place}: got {other}; allowed: a table of the server's keys"));
            }
        };
        let setting = |(name, value): (&String, &Value)| match value {
            Value::String(text) => Ok(format!("{name}={text}")),
            Value::Integer(_) | Value::Boolean(_) => Ok(format!("{name}={value}")),
            other => Err(format!("{place}.\"{name}\": got {other}; allowed: a text, a number, true, false")),
        };
        table.iter().map(setting).collect::<Result<_, _>>().map(Some)
    }
}

fn known(name: &str) -> Result<(), String> {
    if KEYS.contains(&name) {
        return Ok(());
    }
    let near = nearest(name, KEYS.iter().copied()).expect("there are keys");
    Err(format!("{name}: unknown key; the nearest is {near}"))
}
