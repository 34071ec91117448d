//! The exchange's documents, and whether a value fits one of their schemas.
//!
//! Stricter than JSON Schema in one point: an object may only have the names in its schema, unless
//! the schema has `additionalProperties`. So a field that the document lacks is found. `pattern` is
//! left to `tests/clients/contract.py`, which runs a real validator; a keyword that neither knows
//! is a complaint.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Keywords that do not decide what fits.
const PASSED_OVER: [&str; 5] = ["description", "default", "example", "pattern", "propertyNames"];

/// What tells one message of the streams from another.
const KINDS: [&str; 3] = ["event_type", "type", "channel"];

/// An OpenAPI or AsyncAPI document.
pub struct Document(pub Value);

impl Document {
    /// The library's document.
    pub fn of_library() -> Self {
        Self(serde_json::from_str(&outcry::http::openapi::TEXT).unwrap())
    }

    /// The library's document of its streams.
    pub fn of_streams() -> Self {
        Self(serde_json::from_str(&outcry::http::asyncapi::TEXT).unwrap())
    }

    /// The messages that the server sends, or hears, on any channel: their names and payloads.
    pub fn messages(&self, action: &str) -> BTreeMap<&str, &Value> {
        let operations = self.0["operations"].as_object().unwrap().values();
        let of_action = operations.filter(|operation| operation["action"] == action);
        let references = of_action.flat_map(|operation| operation["messages"].as_array().unwrap());
        let message = |reference| {
            let of_channel = self.0.pointer(pointer_of(reference)).unwrap();
            let name = pointer_of(of_channel).rsplit('/').next().unwrap();
            (name, self.resolve(&self.resolve(of_channel)["payload"]))
        };
        references.map(message).collect()
    }

    /// What does not fit in an object that the server said on a stream.
    pub fn complaints_of_told(&self, told: &Value) -> Vec<String> {
        let is_its_kind = |schema: &Value| {
            KINDS.iter().all(|kind| match (schema["properties"].get(kind), told.get(kind)) {
                (Some(rule), Some(said)) => rule["enum"].as_array().is_none_or(|kinds| kinds.contains(said)),
                (rule, said) => rule.is_none() && said.is_none(),
            })
        };
        let messages = self.messages("send").into_values();
        let objects = messages.filter(|schema| schema["type"] == "object");
        match objects.filter(|schema| is_its_kind(schema)).collect::<Vec<_>>()[..] {
            [schema] => self.complaints(schema, told),
            ref found => vec![format!("{} messages are of its kind", found.len())],
        }
    }

    /// Every reference in it, each of which leads somewhere.
    pub fn references(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        walk(&self.0, "", &mut |_, value| {
            if let Some(reference) = value.get("$ref") {
                self.resolve(value);
                found.insert(reference.as_str().unwrap().to_owned());
            }
        });
        found
    }

    /// The target of a reference; any other value is returned as it is.
    #[track_caller]
    pub fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        if value.get("$ref").is_none() {
            return value;
        }
        let pointer = pointer_of(value);
        let found = self.0.pointer(pointer).unwrap_or_else(|| panic!("{pointer} leads nowhere"));
        self.resolve(found)
    }

    /// Every operation: its path, its method and itself.
    pub fn operations(&self) -> impl Iterator<Item = (&str, &str, &Value)> {
        let paths = self.0["paths"].as_object().unwrap().iter();
        paths.flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().iter();
            methods.map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
        })
    }

    /// The operation of a request line such as `GET /data/order/0x12`, literal paths first.
    pub fn operation(&self, method: &str, path: &str) -> Option<&Value> {
        let segments = |path: &'_ str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
        let asked = segments(path);
        let captures = |template: &str| template.matches('{').count();
        let mut fitting: Vec<_> = self
            .operations()
            .filter(|(template, of, _)| {
                let template = segments(template);
                let same = |(one, other): (&String, &String)| one.starts_with('{') || one == other;
                of.eq_ignore_ascii_case(method)
                    && template.len() == asked.len()
                    && template.iter().zip(&asked).all(same)
            })
            .collect();
        fitting.sort_by_key(|(template, _, _)| captures(template));
        fitting.first().map(|(_, _, operation)| *operation)
    }

    /// The schema of an operation's JSON answer with this status; none if the document does not
    /// have it.
    pub fn answer_schema<'a>(&'a self, operation: &'a Value, status: u16) -> Option<&'a Value> {
        let response = operation["responses"].get(status.to_string())?;
        self.resolve(response).pointer("/content/application~1json/schema")
    }

    /// What does not fit, a line each: the place and the rule.
    pub fn complaints(&self, schema: &Value, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.check(schema, value, "", &mut found);
        found
    }

    fn check(&self, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
        let schema = self.resolve(schema).as_object().unwrap();
        let mut complain = |rule: String| found.push(format!("{at}: {rule}, is {}", shortened(value)));
        for (keyword, rule) in schema {
            let fits = match keyword.as_str() {
                "type" => kinds(rule).iter().any(|kind| is_of(value, kind)),
                "enum" => rule.as_array().unwrap().contains(value),
                "format" => is_formatted(value, rule.as_str().unwrap()),
                "minimum" => value.as_f64().is_none_or(|number| rule.as_f64().unwrap() <= number),
                "maximum" => value.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()),
                "minLength" => value.as_str().is_none_or(|text| count(rule) <= text.chars().count()),
                "maxLength" => value.as_str().is_none_or(|text| text.chars().count() <= count(rule)),
                "minItems" => value.as_array().is_none_or(|items| count(rule) <= items.len()),
                "maxItems" => value.as_array().is_none_or(|items| items.len() <= count(rule)),
                "oneOf" => self.fitting(rule, value) == 1,
                "anyOf" => 0 < self.fitting(rule, value),
                "required" | "properties" | "additionalProperties" | "items" => true,
                other => PASSED_OVER.contains(&other),
            };
            if !fits {
                complain(format!("{keyword} {}", shortened(rule)));
            }
        }
        match value {
            Value::Object(fields) => self.check_fields(schema, fields, at, found),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    if let Some(rule) = schema.get("items") {
                        self.check(rule, item, &format!("{at}/{index}"), found);
                    }
                }
            }
            _ => {}
        }
    }

    fn check_fields(
        &self,
        schema: &Map<String, Value>,
        fields: &Map<String, Value>,
        at: &str,
        found: &mut Vec<String>,
    ) {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            let name = name.as_str().unwrap();
            if !fields.contains_key(name) {
                found.push(format!("{at}/{name}: is missing"));
            }
        }
        let known = schema.get("properties").and_then(Value::as_object);
        let more = schema.get("additionalProperties");
        for (name, value) in fields {
            let at = format!("{at}/{name}");
            match (known.and_then(|known| known.get(name)), more) {
                (Some(rule), _) | (None, Some(rule @ Value::Object(_))) => {
                    self.check(rule, value, &at, found);
                }
                (None, Some(Value::Bool(true))) => {}
                (None, None) if known.is_none() => {}
                (None, _) => found.push(format!("{at}: is not in the document, is {}", shortened(value))),
            }
        }
    }

    fn fitting(&self, schemas: &Value, value: &Value) -> usize {
        let schemas = schemas.as_array().unwrap().iter();
        schemas.filter(|schema| self.complaints(schema, value).is_empty()).count()
    }
}

/// Where a reference leads in its document.
#[track_caller]
fn pointer_of(reference: &Value) -> &str {
    let text = reference["$ref"].as_str().unwrap();
    text.strip_prefix('#').unwrap_or_else(|| panic!("{text} leads elsewhere"))
}

/// Looks at a value and everything in it, each with its place.
pub fn walk(value: &Value, at: &str, look: &mut impl FnMut(&str, &Value)) {
    look(at, value);
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                walk(value, &format!("{at}/{name}"), look);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                walk(value, &format!("{at}/{index}"), look);
            }
        }
        _ => {}
    }
}

fn kinds(rule: &Value) -> Vec<&str> {
    match rule {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => vec![kind.as_str().unwrap()],
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

/// Whether a text has this format; true for anything that is not a text.
pub fn is_formatted(value: &Value, format: &str) -> bool {
    let Some(text) = value.as_str() else {
        return true;
    };
    match format {
        // Offsets other than Z are never written here.
        "date-time" => {
            has_form(
                text.split_once('.').map_or(text.trim_end_matches('Z'), |(head, _)| head),
                "dddd-dd-ddTdd:dd:dd",
            ) && text.ends_with('Z')
        }
        "uuid" => has_form(text, "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh"),
        _ => false,
    }
}

/// `d` stands for a digit, `h` for a hex digit, everything else for itself.
fn has_form(text: &str, form: &str) -> bool {
    text.len() == form.len()
        && text.bytes().zip(form.bytes()).all(|(byte, form)| match form {
            b'd' => byte.is_ascii_digit(),
            b'h' => byte.is_ascii_hexdigit(),
            _ => byte == form,
        })
}

fn count(rule: &Value) -> usize {
    usize::try_from(rule.as_u64().unwrap()).unwrap()
}

fn shortened(value: &Value) -> String {
    const CHARS_MAX: usize = 120;
    let text = value.to_string();
    if text.chars().count() <= CHARS_MAX {
        text
    } else {
        text.chars().take(CHARS_MAX).chain("…".chars()).collect()
    }
}
