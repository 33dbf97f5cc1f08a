//! The JSON Schema of an execution's input: what is filled in, and what is refused (SPEC 4.1).
//!
//! `default`s fill what is missing; then the filled value is checked. The crate that checks sees
//! numbers beyond 64 bits as doubles, the filled value keeps every digit.

use std::fmt;

use engine::path::{Path, Step};
use engine::value::{DEPTH_MAX, Object, Value, to_serde_json};
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::LocationSegment;
use jsonschema::{JsonType, ReferencingError, ValidationError, Validator};

/// The most defaults that one value is given.
const DEFAULTS_MAX: usize = 10_000;

/// The longest chain of `$ref`s from one place of a schema.
const REFERENCES_MAX: usize = 32;

/// The most violations that are reported for one value.
const VIOLATIONS_MAX: usize = 100;

/// A schema that was understood.
#[derive(Debug)]
pub struct InputSchema {
    schema: Value,
    validator: Validator,
}

/// Why a value is not a schema that can be used here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The value is no JSON Schema.
    #[error("{}{message}", Place(path))]
    Malformed {
        /// Where in the schema.
        path: Path,
        /// What is wrong.
        message: String,
    },
    /// The schema refers to another document. Nothing is ever fetched.
    #[error(
        "`{uri}` is outside this schema and is not fetched; \
         copy it into `$defs` and refer to `#/$defs/…`"
    )]
    Remote {
        /// The document.
        uri: String,
    },
    /// The schema refers to a place of its own that is not there.
    #[error("the schema refers to something that is not in it: {message}")]
    Dangling {
        /// What is missing.
        message: String,
    },
}

/// Something in a value that its schema does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaViolation {
    /// Where in the value.
    pub path: Path,
    /// What must be otherwise, without the value itself.
    pub message: String,
}

impl InputSchema {
    /// Understands a schema.
    ///
    /// # Errors
    ///
    /// If it is no JSON Schema, or refers to another document or to nothing.
    pub fn compile(schema: &Value) -> Result<InputSchema, SchemaError> {
        if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
            let message = format!("a schema is an object, found {}", schema.kind());
            return Err(SchemaError::Malformed { path: Path::default(), message });
        }
        let validator = jsonschema::options()
            .offline()
            .build(&to_serde_json(schema))
            .map_err(|error| schema_error(&error))?;
        Ok(InputSchema { schema: schema.clone(), validator })
    }

    /// Fills in the defaults of missing properties, then checks the whole.
    ///
    /// Defaults are looked for in `properties`, `additionalProperties`, `items`, `prefixItems`,
    /// `allOf` and behind `$ref`, at every depth of the value; a property that is missing without
    /// a default stays missing, and null is not missing.
    ///
    /// # Errors
    ///
    /// Everything the schema does not allow, at most 100 of it.
    pub fn fill_and_check(&self, input: Value) -> Result<Value, Vec<SchemaViolation>> {
        let mut input = input;
        let mut filler = Filler { root: &self.schema, n_defaults: 0 };
        filler
            .fill(&self.schema, &mut input, &Path::default())
            .map_err(|violation| vec![violation])?;
        let plain = to_serde_json(&input);
        let mut violations: Vec<SchemaViolation> = self
            .validator
            .iter_errors(&plain)
            .flat_map(|error| violations(&error))
            .take(VIOLATIONS_MAX)
            .collect();
        if violations.is_empty() {
            return Ok(input);
        }
        violations.sort_by(|left, right| left.path.cmp(&right.path));
        violations.dedup();
        Err(violations)
    }
}

/// A place before a message; nothing for the whole.
struct Place<'p>(&'p Path);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_whole() { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
}

impl fmt::Display for SchemaViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Place(&self.path), self.message)
    }
}

/// Walks value and schema side by side.
struct Filler<'s> {
    root: &'s Value,
    n_defaults: usize,
}

impl<'s> Filler<'s> {
    fn fill(
        &mut self,
        schema: &'s Value,
        value: &mut Value,
        path: &Path,
    ) -> Result<(), SchemaViolation> {
        if path.steps().len() > DEPTH_MAX {
            return Err(endless(path));
        }
        for schema in self.applicable(schema) {
            match value {
                Value::Object(object) => self.fill_object(schema, object, path)?,
                Value::Array(items) => self.fill_array(schema, items, path)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn fill_object(
        &mut self,
        schema: &'s Object,
        object: &mut Object,
        path: &Path,
    ) -> Result<(), SchemaViolation> {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (key, property) in properties.into_iter().flatten() {
            if !object.contains_key(key) {
                let Some(default) = self.default(property) else { continue };
                self.n_defaults += 1;
                if self.n_defaults > DEFAULTS_MAX {
                    return Err(endless(path));
                }
                object.insert(key.as_str(), default.clone());
            }
            if let Some(value) = object.get_mut(key) {
                self.fill(property, value, &path.join(Step::Key(key.clone())))?;
            }
        }
        // Which keys a pattern takes only the checker knows, so that such schemas get no more.
        let Some(others) = schema.get("additionalProperties") else { return Ok(()) };
        if schema.contains_key("patternProperties") {
            return Ok(());
        }
        for (key, value) in object.iter_mut() {
            if !properties.is_some_and(|properties| properties.contains_key(key)) {
                self.fill(others, value, &path.join(Step::Key(key.clone())))?;
            }
        }
        Ok(())
    }

    fn fill_array(
        &mut self,
        schema: &'s Object,
        items: &mut [Value],
        path: &Path,
    ) -> Result<(), SchemaViolation> {
        let first = schema.get("prefixItems").and_then(Value::as_array).unwrap_or_default();
        let rest = schema.get("items");
        for (index, item) in items.iter_mut().enumerate() {
            if let Some(schema) = first.get(index).or(rest) {
                self.fill(schema, item, &path.join(Step::Index(index)))?;
            }
        }
        Ok(())
    }

    /// The default of a schema, its own or that behind a `$ref`.
    fn default(&self, schema: &'s Value) -> Option<&'s Value> {
        self.applicable(schema).into_iter().find_map(|schema| schema.get("default"))
    }

    /// The schema together with all that must hold beside it: `$ref` and `allOf`.
    fn applicable(&self, schema: &'s Value) -> Vec<&'s Object> {
        let mut applicable: Vec<&Object> = Vec::new();
        let mut pending = vec![schema];
        while let Some(schema) = pending.pop() {
            let Some(schema) = schema.as_object() else { continue };
            if applicable.len() == REFERENCES_MAX
                || applicable.iter().any(|known| std::ptr::eq(*known, schema))
            {
                continue;
            }
            applicable.push(schema);
            let all_of = schema.get("allOf").and_then(Value::as_array).unwrap_or_default();
            pending.extend(all_of.iter().rev());
            let reference = schema.get("$ref").and_then(Value::as_str);
            pending.extend(reference.and_then(|reference| self.at(reference)));
        }
        applicable
    }

    /// The place in this schema that a reference like `#/$defs/address` leads to.
    fn at(&self, reference: &str) -> Option<&'s Value> {
        let pointer = reference.strip_prefix('#')?;
        let mut place = self.root;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            place = match place {
                Value::Object(object) => object.get(&token)?,
                Value::Array(items) => items.get(token.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        Some(place)
    }
}

fn endless(path: &Path) -> SchemaViolation {
    let message = "the defaults of the schema lead to more and more defaults".to_owned();
    SchemaViolation { path: path.clone(), message }
}

fn schema_error(error: &ValidationError<'_>) -> SchemaError {
    match error.kind() {
        ValidationErrorKind::Referencing(ReferencingError::Unretrievable { uri, .. }) => {
            SchemaError::Remote { uri: uri.clone() }
        }
        ValidationErrorKind::Referencing(other) => {
            SchemaError::Dangling { message: other.to_string() }
        }
        _ => match violations(error).into_iter().next() {
            Some(SchemaViolation { path, message }) => SchemaError::Malformed { path, message },
            None => SchemaError::Malformed { path: Path::default(), message: error.to_string() },
        },
    }
}

/// What the checker found, one violation for each place a person has to look at.
fn violations(error: &ValidationError<'_>) -> Vec<SchemaViolation> {
    let place = path(error);
    let below = |keys: &[String], message: &str| {
        let violation = |key: &String| SchemaViolation {
            path: place.join(Step::Key(key.clone())),
            message: message.to_owned(),
        };
        keys.iter().map(violation).collect()
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let key = property.as_str().unwrap_or_default().to_owned();
            below(&[key], "is missing")
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            below(unexpected, "is not expected here; remove it, or check its spelling")
        }
        kind => vec![SchemaViolation { path: place.clone(), message: message(kind, error) }],
    }
}

fn path(error: &ValidationError<'_>) -> Path {
    error.instance_path().into_iter().fold(Path::default(), |path, segment| {
        path.join(match segment {
            LocationSegment::Property(key) => Step::Key(key.into_owned()),
            LocationSegment::Index(index) => Step::Index(index),
        })
    })
}

fn message(kind: &ValidationErrorKind, error: &ValidationError<'_>) -> String {
    match kind {
        ValidationErrorKind::Type { kind } => format!("must be {}", types(kind)),
        ValidationErrorKind::Enum { options } => {
            let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
            let options: Vec<String> = options.iter().map(ToString::to_string).collect();
            format!("must be one of {}", options.join(", "))
        }
        ValidationErrorKind::Constant { expected_value } => format!("must be {expected_value}"),
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        ValidationErrorKind::MultipleOf { multiple_of } => {
            format!("must be a multiple of {multiple_of}")
        }
        ValidationErrorKind::MinLength { limit: 1 } => "must not be empty".to_owned(),
        ValidationErrorKind::MinLength { limit } => at_least(*limit, "character"),
        ValidationErrorKind::MaxLength { limit } => at_most(*limit, "character"),
        ValidationErrorKind::MinItems { limit } => at_least(*limit, "element"),
        ValidationErrorKind::MaxItems { limit } => at_most(*limit, "element"),
        ValidationErrorKind::AdditionalItems { limit } => at_most(*limit as u64, "element"),
        ValidationErrorKind::MinProperties { limit } => at_least(*limit, "key"),
        ValidationErrorKind::MaxProperties { limit } => at_most(*limit, "key"),
        ValidationErrorKind::UniqueItems => "must not have the same element twice".to_owned(),
        ValidationErrorKind::Contains => "must have a certain element that it lacks".to_owned(),
        ValidationErrorKind::Pattern { pattern } => format!("must match the pattern {pattern}"),
        ValidationErrorKind::Format { format } => format!("must be written like a {format}"),
        ValidationErrorKind::PropertyNames { .. } => "has a key that is not allowed".to_owned(),
        ValidationErrorKind::FalseSchema => "is not allowed".to_owned(),
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
            "has none of the forms that are allowed here".to_owned()
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            "has several of the forms of which only one is allowed".to_owned()
        }
        ValidationErrorKind::Not { .. } => "has a form that is not allowed here".to_owned(),
        // Masked, because a value may be a secret.
        _ => error.masked_with("the value").to_string(),
    }
}

fn at_least(limit: u64, noun: &str) -> String {
    format!("must have at least {limit} {noun}{}", plural(limit))
}

fn at_most(limit: u64, noun: &str) -> String {
    format!("must have at most {limit} {noun}{}", plural(limit))
}

fn plural(n: u64) -> &'static str {
    if n == 1 { "" } else { "s" }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => type_name(*one).to_owned(),
        TypeKind::Multiple(several) => {
            let mut names: Vec<&str> = several.iter().map(type_name).collect();
            names.sort_by_key(|name| *name == "null");
            names.join(" or ")
        }
    }
}

fn type_name(json_type: JsonType) -> &'static str {
    match json_type {
        JsonType::Array => "a list",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Value {
        Value::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn compiled(schema: &str) -> InputSchema {
        InputSchema::compile(&json(schema)).unwrap_or_else(|error| panic!("{schema}: {error}"))
    }

    /// The filled value, or the violations, as text.
    fn check(schema: &str, input: &str) -> String {
        match compiled(schema).fill_and_check(json(input)) {
            Ok(filled) => filled.to_json(),
            Err(violations) => {
                let lines: Vec<_> = violations.iter().map(ToString::to_string).collect();
                lines.join("; ")
            }
        }
    }

    #[test]
    fn defaults_fill_missing_properties_only_and_keep_their_digits() {
        let schema = r##"{
            "properties": {
                "rate": {"type": "number", "default": 1.0},
                "id": {"default": 123456789012345678901234567890},
                "name": {"type": ["string", "null"], "default": "x"},
                "address": {
                    "properties": {"country": {"default": "CH"}, "zip": {"type": "string"}}
                },
                "options": {"default": {}, "properties": {"deep": {"default": [1.50]}}},
                "items": {"items": {"$ref": "#/$defs/item"}},
                "pair": {"prefixItems": [{"properties": {"a": {"default": 1}}}]},
                "shared": {"$ref": "#/$defs/item"},
                "map": {"additionalProperties": {"properties": {"on": {"default": true}}}}
            },
            "$defs": {"item": {"default": {"n": 2}, "properties": {"n": {"default": 7.0}}}}
        }"##;
        let full = r#"{"rate":0,"id":0,"name":"","options":{"deep":0},"shared":1"#;
        let table = [
            (
                "{}".to_owned(),
                r#"{"rate":1.0,"id":123456789012345678901234567890,"name":"x","#.to_owned()
                    + r#""options":{"deep":[1.50]},"shared":{"n":2}}"#,
            ),
            (
                r#"{"shared":{},"rate":2.50,"id":0,"name":null,"options":{"deep":null}}"#
                    .to_owned(),
                r#"{"shared":{"n":7.0},"rate":2.50,"id":0,"name":null,"options":{"deep":null}}"#
                    .to_owned(),
            ),
            (
                format!(r#"{full},"items":[{{}},{{"n":1}},5],"pair":[{{}},{{}}]}}"#),
                format!(r#"{full},"items":[{{"n":7.0}},{{"n":1}},5],"pair":[{{"a":1}},{{}}]}}"#),
            ),
            (
                format!(r#"{full},"map":{{"k":{{}}}},"address":{{}}}}"#),
                format!(r#"{full},"map":{{"k":{{"on":true}}}},"address":{{"country":"CH"}}}}"#),
            ),
            ("[{}]".to_owned(), "[{}]".to_owned()),
            ("null".to_owned(), "null".to_owned()),
        ];
        for (input, expected) in table {
            assert_eq!(check(schema, &input), expected, "{input}");
        }
    }

    #[test]
    fn defaults_are_found_in_all_of() {
        let schema = r#"{"allOf": [
            {"properties": {"a": {"default": 1}}},
            {"properties": {"a": {"default": 2}, "b": {"default": 3}}}
        ], "anyOf": [{"properties": {"c": {"default": 4}}}]}"#;
        assert_eq!(check(schema, "{}"), r#"{"a":1,"b":3}"#, "a choice fills nothing");
    }

    #[test]
    fn a_default_is_checked_like_any_value() {
        let schema = r#"{"properties": {"n": {"type": "number", "default": "many"}}}"#;
        assert_eq!(check(schema, "{}"), "n: must be a number");
    }

    #[test]
    fn defaults_without_end_are_refused() {
        for schema in [
            r##"{"properties": {"a": {"$ref": "#", "default": {}}}}"##,
            r##"{"properties": {
                "a": {"$ref": "#", "default": {}}, "b": {"$ref": "#", "default": {}}
            }}"##,
        ] {
            let message = check(schema, "{}");
            assert!(message.contains("more and more defaults"), "{message}");
        }
    }

    #[test]
    fn a_reference_to_itself_ends() {
        for schema in [
            r##"{"$ref": "#", "properties": {"a": {"default": 1}}}"##,
            r##"{"$ref": "#/$defs/a", "$defs": {
                "a": {"$ref": "#/$defs/b"},
                "b": {"allOf": [{"$ref": "#/$defs/a"}], "properties": {"a": {"default": 1}}}
            }}"##,
        ] {
            assert_eq!(check(schema, "{}"), r#"{"a":1}"#, "{schema}");
        }
    }

    #[test]
    fn violations_name_the_place_and_what_must_be_otherwise() {
        let table = [
            (r#"{"required": ["a", "b.c"]}"#, "{}", r#"a: is missing; ["b.c"]: is missing"#),
            (r#"{"type": "object"}"#, "[]", "must be an object"),
            (
                r#"{"properties": {"a": {"items": {"type": ["integer", "null"]}}}}"#,
                r#"{"a": [1, 2.5, null, "x"]}"#,
                "a[1]: must be a whole number or null; a[3]: must be a whole number or null",
            ),
            (
                r#"{"properties": {"a": {}}, "additionalProperties": false}"#,
                r#"{"a": 1, "B": 2}"#,
                "B: is not expected here; remove it, or check its spelling",
            ),
            (r#"{"enum": ["a", 1.0, null]}"#, r#""b""#, r#"must be one of "a", 1, null"#),
            (r#"{"const": true}"#, "false", "must be true"),
            (
                r#"{"minimum": 1, "multipleOf": 2}"#,
                "-1",
                "must be at least 1; must be a multiple of 2",
            ),
            (r#"{"exclusiveMaximum": 10}"#, "10", "must be less than 10"),
            (r#"{"minLength": 1}"#, r#""""#, "must not be empty"),
            (r#"{"maxLength": 2}"#, r#""äöü""#, "must have at most 2 characters"),
            (r#"{"pattern": "^[a-z]+$"}"#, r#""A""#, "must match the pattern ^[a-z]+$"),
            (r#"{"minItems": 1}"#, "[]", "must have at least 1 element"),
            (r#"{"uniqueItems": true}"#, "[1, 1.0]", "must not have the same element twice"),
            (r#"{"not": {"type": "null"}}"#, "null", "has a form that is not allowed here"),
            (
                r#"{"anyOf": [{"type": "null"}, {"type": "string"}]}"#,
                "1",
                "has none of the forms that are allowed here",
            ),
            ("false", "1", "is not allowed"),
            ("true", "1", "1"),
        ];
        for (schema, input, expected) in table {
            assert_eq!(check(schema, input), expected, "{schema} with {input}");
        }
    }

    #[test]
    fn a_message_never_repeats_the_value() {
        let schema = r#"{
            "type": "object", "propertyNames": {"pattern": "^[a-z]+$"},
            "properties": {
                "a": {"pattern": "^x$"}, "b": {"const": "y"}, "c": {"type": "number"},
                "d": {"not": {"type": "string"}}, "e": {"enum": ["z"]}, "f": {"maxLength": 1},
                "g": {"contains": {"const": 1}}, "h": {"unevaluatedProperties": false}
            }
        }"#;
        let secret = "s3cr3t-VALUE-9f";
        let input = format!(
            r#"{{"a":"{secret}","b":"{secret}","c":"{secret}","d":"{secret}","e":"{secret}",
                "f":"{secret}","g":["{secret}"],"h":{{"k":"{secret}"}},"A":1}}"#
        );
        let message = check(schema, &input);
        assert!(!message.contains(secret), "{message}");
        assert_eq!(message.matches("; ").count() + 1, 10, "{message}");
    }

    #[test]
    fn a_value_with_very_many_faults_gives_a_short_answer() {
        let input = format!("[{}]", vec!["1"; 5_000].join(","));
        let schema = compiled(r#"{"items": {"type": "string"}}"#);
        assert_eq!(schema.fill_and_check(json(&input)).unwrap_err().len(), VIOLATIONS_MAX);
    }

    #[test]
    fn what_is_no_schema_is_refused_with_its_place() {
        let refused = |schema: &str| InputSchema::compile(&json(schema)).unwrap_err().to_string();
        assert_eq!(refused("[]"), "a schema is an object, found list");
        let message = refused(r#"{"properties": {"a": {"type": "strng"}}}"#);
        assert!(message.starts_with("properties.a.type: "), "{message}");
        let message = refused(r#"{"properties": {"a": {"minLength": -1}}}"#);
        assert!(message.starts_with("properties.a.minLength: must be"), "{message}");
        let message = refused(r#"{"pattern": "("}"#);
        assert!(message.starts_with("pattern: "), "{message}");
    }

    #[test]
    fn nothing_is_fetched() {
        for uri in [
            "https://example.com/schema.json",
            "http://127.0.0.1:1/schema.json#/a",
            "file:///etc/hostname",
            "other.json",
        ] {
            let schema = format!(r#"{{"properties": {{"a": {{"$ref": "{uri}"}}}}}}"#);
            let error = InputSchema::compile(&json(&schema)).unwrap_err();
            assert!(matches!(error, SchemaError::Remote { .. }), "{uri}: {error}");
            assert!(error.to_string().contains("is not fetched"), "{error}");
        }
        let error = InputSchema::compile(&json(r##"{"$ref": "#/$defs/nope"}"##)).unwrap_err();
        assert!(matches!(error, SchemaError::Dangling { .. }), "{error}");
        compiled(r#"{"$ref": "https://json-schema.org/draft/2020-12/schema"}"#);
        compiled(r##"{"$defs": {"a": {"$id": "other.json"}}, "$ref": "other.json"}"##);
    }
}
