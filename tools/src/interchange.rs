//! How does a line of `records.jsonl` become a record, and a record a line?
//!
//! Every refusal names the field. Keys that are none of ours are kept in `attributes`.

use std::fmt;

use chronolith::{Record, Scope, SourceClass, SpaceVector};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::times;

/// Why a line is no record.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct LineError {
    /// The line, counted from 1.
    pub(crate) line: u64,
    /// The field at fault; `json` where the line is no JSON object, `line` where it is no line.
    pub(crate) field: String,
    /// What is wrong with it.
    pub(crate) message: String,
}

/// A field and what is wrong with it.
pub(crate) type Fault = (&'static str, String);

/// Reads one line.
///
/// * `default_scope`: for lines without a scope; without it they are refused.
pub(crate) fn parse_line(line: &[u8], default_scope: Option<&Scope>) -> Result<Record, Fault> {
    if line.starts_with(b"\xef\xbb\xbf") {
        return Err(("json", "begins with a byte order mark".into()));
    }
    let text = std::str::from_utf8(line).map_err(|error| {
        (
            "json",
            format!("is not UTF-8 at byte {}", error.valid_up_to()),
        )
    })?;
    let Fields(mut fields) = serde_json::from_str(text)
        .map_err(|error| ("json", format!("is no JSON object: {}", reason(&error))))?;
    let scope = match take_text(&mut fields, "scope")? {
        Some(path) => Scope::parse(&path).map_err(|refused| (refused.field, refused.message))?,
        None => default_scope.cloned().ok_or_else(|| {
            (
                "scope",
                "is missing; add it, or pass --default-scope".to_owned(),
            )
        })?,
    };
    let id = required(&mut fields, "id")?;
    let event_time_us = take_time(&mut fields)?;
    let text = required(&mut fields, "text")?;
    let mut record = Record::new(scope, id, event_time_us, text);
    record.summary = take_text(&mut fields, "summary")?;
    record.speaker = take_text(&mut fields, "speaker")?;
    record.source = take_text(&mut fields, "source")?;
    record.source_id = take_text(&mut fields, "source_id")?;
    record.source_class = take_class(&mut fields)?;
    record.tags = take_tags(&mut fields)?;
    record.importance = take_importance(&mut fields)?;
    record.vector = take_vector(&mut fields)?;
    record.vectors = take_vectors(&mut fields)?;
    record.impacts = take_impacts(&mut fields)?;
    record.attributes = take_attributes(fields)?;
    record
        .check()
        .map_err(|refused| (refused.field, refused.message))?;
    Ok(record)
}

/// The parser's reason without its own line number, which is always 1.
fn reason(error: &serde_json::Error) -> String {
    error
        .to_string()
        .replace(" at line 1 column ", " at column ")
}

/// A JSON object whose keys are distinct: of two values of one key we would have to guess.
struct Fields(Map<String, Value>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with id, ts, scope and text")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Fields, A::Error> {
                let mut fields = Map::new();
                while let Some((key, value)) = entries.next_entry::<String, Value>()? {
                    if fields.contains_key(&key) {
                        let message = format!("the key {key:?} stands twice");
                        return Err(serde::de::Error::custom(message));
                    }
                    fields.insert(key, value);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn take_text(fields: &mut Map<String, Value>, key: &'static str) -> Result<Option<String>, Fault> {
    match fields.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err((key, format!("must be a string, not {}", kind(&other)))),
    }
}

fn required(fields: &mut Map<String, Value>, key: &'static str) -> Result<String, Fault> {
    take_text(fields, key)?.ok_or_else(|| (key, "is missing".to_owned()))
}

fn take_time(fields: &mut Map<String, Value>) -> Result<i64, Fault> {
    match fields.remove("ts") {
        None | Some(Value::Null) => Err(("ts", "is missing".into())),
        Some(Value::Number(number)) => number.as_i64().ok_or_else(|| {
            (
                "ts",
                format!("must be a whole number of µs in 64 bits, not {number}"),
            )
        }),
        Some(Value::String(text)) => times::parse_rfc3339(&text)
            .ok_or_else(|| ("ts", format!("is no RFC 3339 time: {text:?}"))),
        Some(other) => Err((
            "ts",
            format!("must be µs or RFC 3339, not {}", kind(&other)),
        )),
    }
}

fn take_class(fields: &mut Map<String, Value>) -> Result<Option<SourceClass>, Fault> {
    let Some(name) = take_text(fields, "source_class")? else {
        return Ok(None);
    };
    SourceClass::parse(&name).map(Some).ok_or_else(|| {
        let names = SourceClass::ALL.map(SourceClass::name).join(", ");
        (
            "source_class",
            format!("is {name:?}; it must be one of {names}"),
        )
    })
}

fn take_tags(fields: &mut Map<String, Value>) -> Result<Vec<String>, Fault> {
    let list = match fields.remove("tags") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(other) => {
            return Err((
                "tags",
                format!("must be a list of strings, not {}", kind(&other)),
            ));
        }
    };
    list.into_iter()
        .map(|tag| match tag {
            Value::String(tag) => Ok(tag),
            other => Err(("tags", format!("must hold strings, not {}", kind(&other)))),
        })
        .collect()
}

fn take_importance(fields: &mut Map<String, Value>) -> Result<Option<f32>, Fault> {
    match fields.remove("importance") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => Ok(number.as_f64().map(to_f32)),
        Some(other) => Err((
            "importance",
            format!("must be a number from 0 to 1, not {}", kind(&other)),
        )),
    }
}

fn take_vector(fields: &mut Map<String, Value>) -> Result<Option<Vec<f32>>, Fault> {
    match fields.remove("vector") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => vector_of(value).map(Some),
    }
}

/// Vectors by the names of their spaces.
fn take_vectors(fields: &mut Map<String, Value>) -> Result<Vec<SpaceVector>, Fault> {
    let named = match fields.remove("vectors") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(named)) => named,
        Some(other) => {
            let message = format!(
                "must be an object of spaces and lists, not {}",
                kind(&other)
            );
            return Err(("vectors", message));
        }
    };
    let each = named.into_iter().map(|(space, value)| {
        Ok(SpaceVector {
            space,
            model: None,
            vector: vector_of(value)?,
        })
    });
    each.collect()
}

fn vector_of(value: Value) -> Result<Vec<f32>, Fault> {
    let Value::Array(list) = value else {
        let message = format!("must be a list of numbers, not {}", kind(&value));
        return Err(("vector", message));
    };
    let component = |(i, value): (usize, &Value)| {
        let number = value.as_f64().ok_or_else(|| {
            (
                "vector",
                format!("must hold numbers; component {i} is {}", kind(value)),
            )
        })?;
        let narrow = to_f32(number);
        match narrow.is_finite() {
            true => Ok(narrow),
            false => Err((
                "vector",
                format!("has a component {i} that no f32 can hold"),
            )),
        }
    };
    list.iter().enumerate().map(component).collect()
}

/// An object of tokens and their weights.
fn take_impacts(fields: &mut Map<String, Value>) -> Result<Vec<(String, f32)>, Fault> {
    let impacts = match fields.remove("impacts") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(impacts)) => impacts,
        Some(other) => {
            return Err((
                "impacts",
                format!(
                    "must be an object of tokens and weights, not {}",
                    kind(&other)
                ),
            ));
        }
    };
    let impact = |(token, weight): (String, Value)| {
        let number = weight.as_f64().ok_or_else(|| {
            (
                "impacts",
                format!("must hold numbers; one weight is {}", kind(&weight)),
            )
        })?;
        Ok((token, to_f32(number)))
    };
    impacts.into_iter().map(impact).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "rounds to the nearest f32, or to infinity, which is refused"
)]
fn to_f32(number: f64) -> f32 {
    number as f32
}

/// The `attributes` object and every key that is none of ours, as one object.
fn take_attributes(mut fields: Map<String, Value>) -> Result<String, Fault> {
    let mut attributes = match fields.remove("attributes") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(attributes)) => attributes,
        Some(other) => {
            return Err((
                "attributes",
                format!("must be an object, not {}", kind(&other)),
            ));
        }
    };
    for (key, value) in fields {
        if attributes.contains_key(&key) {
            return Err((
                "attributes",
                format!("holds {key:?}, which stands beside them too"),
            ));
        }
        attributes.insert(key, value);
    }
    match attributes.is_empty() {
        true => Ok(String::new()),
        false => Ok(Value::Object(attributes).to_string()),
    }
}

/// A record as a line that reads back as the same record.
///
/// * `with_vector`: the vector of the default space stands in the line, as a list; those of
///   other spaces always do.
pub(crate) fn to_json(record: &Record, with_vector: bool) -> Map<String, Value> {
    let mut line = Map::new();
    let mut put = |key: &str, value: Value| line.insert(key.to_owned(), value);
    put("id", json!(record.id));
    put("ts", json!(record.event_time_us));
    put("scope", json!(record.scope.path()));
    put("text", json!(record.text));
    let texts = [
        ("summary", &record.summary),
        ("speaker", &record.speaker),
        ("source", &record.source),
        ("source_id", &record.source_id),
    ];
    for (key, value) in texts {
        if let Some(value) = value {
            put(key, json!(value));
        }
    }
    if let Some(class) = record.source_class {
        put("source_class", json!(class.name()));
    }
    if !record.tags.is_empty() {
        put("tags", json!(record.tags));
    }
    if let Some(importance) = record.importance {
        put("importance", json!(importance));
    }
    if let (true, Some(vector)) = (with_vector, &record.vector) {
        put("vector", json!(vector));
    }
    if !record.vectors.is_empty() {
        let vectors = record.vectors.iter();
        let vectors = vectors.map(|one| (one.space.clone(), json!(one.vector)));
        put("vectors", Value::Object(vectors.collect()));
    }
    if !record.impacts.is_empty() {
        let impacts = record.impacts.iter();
        let impacts = impacts.map(|(token, weight)| (token.clone(), json!(weight)));
        put("impacts", Value::Object(impacts.collect()));
    }
    // Stored attributes were an object when they came in; what is none goes out as it is.
    if !record.attributes.is_empty() {
        let attributes = serde_json::from_str(&record.attributes);
        put(
            "attributes",
            attributes.unwrap_or_else(|_| json!(record.attributes)),
        );
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> &'static str {
        parse_line(line.as_bytes(), None).expect_err(line).0
    }

    #[test]
    fn a_full_record_goes_out_and_comes_back_the_same() {
        let line = r#"{"id":"a","ts":"2025-03-03T09:02:00Z","scope":"u/x","text":"t\u0000","summary":"s",
            "tags":["b","a"],"speaker":"Ana","source":"chat","source_class":"web","importance":0.3,"source_id":"d",
            "vector":[0.5,-1],"impacts":{"-ing":0.5,"port":2},"attributes":{"k":[1,{"z":null}]},"ts_kind":"real"}"#;
        let record = parse_line(line.as_bytes(), None).expect("a record");
        assert_eq!(
            record.attributes,
            r#"{"k":[1,{"z":null}],"ts_kind":"real"}"#
        );
        let again = Value::Object(to_json(&record, true)).to_string();
        assert_eq!(parse_line(again.as_bytes(), None), Ok(record));
    }

    #[test]
    fn every_fault_names_its_field() {
        let with = |extra: &str| format!(r#"{{"id":"a","ts":1,"scope":"s","text":"t",{extra}}}"#);
        for (extra, field) in [
            (r#""tags":[5]"#, "tags"),
            (r#""tags":"a,b""#, "tags"),
            (r#""importance":"NaN""#, "importance"),
            (r#""importance":2"#, "importance"),
            (r#""vector":["NaN"]"#, "vector"),
            (r#""vector":[1e300]"#, "vector"),
            (r#""vector":[[1]]"#, "vector"),
            (r#""source_class":"me""#, "source_class"),
            (r#""impacts":[1]"#, "impacts"),
            (r#""impacts":{"a":"b"}"#, "impacts"),
            (r#""impacts":{"a":65}"#, "impacts"),
            (r#""impacts":{"":1}"#, "impacts"),
            (r#""attributes":[]"#, "attributes"),
            (r#""k":1,"attributes":{"k":2}"#, "attributes"),
            (r#""id":"b""#, "json"),
            (r#""x":NaN"#, "json"),
        ] {
            assert_eq!(refused(&with(extra)), field, "{extra}");
        }
        assert_eq!(refused("[]"), "json");
        assert_eq!(refused(r#"{"id":7,"ts":1,"scope":"s","text":"t"}"#), "id");
        assert_eq!(
            refused(r#"{"id":"a","ts":1.5,"scope":"s","text":"t"}"#),
            "ts"
        );
        assert_eq!(
            refused(r#"{"id":"a","ts":9223372036854775808,"scope":"s","text":"t"}"#),
            "ts"
        );
        assert_eq!(
            refused(r#"{"id":"a","ts":1,"scope":"s","text":null}"#),
            "text"
        );
        assert_eq!(refused(r#"{"id":"a","ts":1,"text":"t"}"#), "scope");
        assert_eq!(
            refused(r#"{"id":"a","ts":1,"scope":"s//t","text":"t"}"#),
            "scope"
        );
        assert!(parse_line(b"\xef\xbb\xbf{}", None).is_err());
        assert!(parse_line(b"{\"id\":\"\xff\"}", None).is_err());
        let nested = format!(r#"{{"id":"a","x":{}"#, "[".repeat(10_000));
        assert_eq!(refused(&nested), "json");
    }
}
