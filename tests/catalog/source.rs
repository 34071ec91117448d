//! The real rows as in their files, and what a catalog of them must contain: of several rows about
//! one thing the newest wins, and what only an older one says stays.

use crate::common::unpacked;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Everything in the files, each thing once.
#[derive(Default)]
pub struct Source {
    /// By condition.
    pub markets: BTreeMap<String, Value>,
    /// The event of a market, by condition.
    pub event_of: BTreeMap<String, String>,
    /// By id.
    pub events: BTreeMap<String, Value>,
    /// By id.
    pub tags: BTreeMap<String, Value>,
    /// By id.
    pub series: BTreeMap<String, Value>,
    /// By id.
    pub creators: BTreeMap<String, Value>,
}

pub fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or("")
}

fn rows<'a>(row: &'a Value, name: &str) -> &'a [Value] {
    row[name].as_array().map_or(&[], Vec::as_slice)
}

impl Source {
    pub fn read(files: &[&Path]) -> Self {
        let mut source = Self::default();
        for file in files {
            for row in unpacked(file).as_array().unwrap() {
                if row["markets"].is_array() {
                    source.add_event(row);
                    for market in rows(row, "markets") {
                        source.add_market(market, text(row, "id"));
                    }
                } else {
                    for event in rows(row, "events") {
                        source.add_event(event);
                    }
                    source.add_market(row, text(&row["events"][0], "id"));
                }
            }
        }
        let events: Vec<Value> = source.events.values().cloned().collect();
        for event in &events {
            for (name, items) in [
                ("tags", &mut source.tags),
                ("series", &mut source.series),
                ("eventCreators", &mut source.creators),
            ] {
                for item in rows(event, name) {
                    newest(items, text(item, "id"), item);
                }
            }
        }
        source
    }

    fn add_market(&mut self, row: &Value, event: &str) {
        let condition = text(row, "conditionId");
        newest(&mut self.markets, condition, row);
        self.event_of.insert(condition.to_owned(), event.to_owned());
    }

    fn add_event(&mut self, row: &Value) {
        let mut row = row.clone();
        row.as_object_mut().unwrap().remove("markets");
        let Some(known) = self.events.remove(text(&row, "id")) else {
            self.events.insert(text(&row, "id").to_owned(), row);
            return;
        };
        let (newer, older) = if rank(&known) < rank(&row) { (row, known) } else { (known, row) };
        let mut merged: Map<String, Value> = older.as_object().unwrap().clone();
        merged.extend(newer.as_object().unwrap().clone());
        self.events.insert(text(&newer, "id").to_owned(), Value::Object(merged));
    }

    /// The conditions of an event's markets.
    pub fn markets_of(&self, event: &str) -> BTreeSet<&str> {
        let of = self.event_of.iter().filter(|(_, other)| *other == event);
        of.map(|(condition, _)| condition.as_str()).collect()
    }

    /// The ids of events that mention an item under `name`.
    pub fn events_with(&self, name: &str, id: &str) -> BTreeSet<&str> {
        let has = |event: &Value| rows(event, name).iter().any(|item| text(item, "id") == id);
        self.events.iter().filter(|(_, event)| has(event)).map(|(id, _)| id.as_str()).collect()
    }
}

fn rank(row: &Value) -> (&str, usize) {
    (text(row, "updatedAt"), row.to_string().len())
}

fn newest(rows: &mut BTreeMap<String, Value>, id: &str, row: &Value) {
    if rows.get(id).is_none_or(|known| rank(known) < rank(row)) {
        rows.insert(id.to_owned(), row.clone());
    }
}
