//! From the engine's values back to ours, and to text.

use minijinja::value::{ObjectRepr, ValueKind};
use minijinja::{Error, ErrorKind, State, Value as EngineValue};

use super::scope::{Exact, View};
use super::{OUTPUT_BYTES_MAX, too_large};
use crate::value::{DEPTH_MAX, Number, Object, Value};

/// Bytes of text that cost one unit of fuel; the engine charges its own work alike.
const BYTES_PER_FUEL: usize = 64;

/// What an element that a filter visits costs, in fuel: about as much as a round of a loop.
const FUEL_PER_ELEMENT: u64 = 8;

/// Bytes of JSON that cost one unit of fuel to write.
const JSON_BYTES_PER_FUEL: usize = 8;

/// What a value costs beside its text, in bytes: about its share of commas and brackets.
const ELEMENT_BYTES: usize = 2;

/// Charges for work on so many bytes of text.
pub(super) fn charge(state: &State, bytes: usize) -> Result<(), Error> {
    state.consume_fuel((bytes / BYTES_PER_FUEL) as u64 + 1)
}

/// Charges for visiting an element of a list or object.
pub(super) fn charge_element(state: &State) -> Result<(), Error> {
    state.consume_fuel(FUEL_PER_ELEMENT)
}

/// An error about what a template asks for.
pub(super) fn refuse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

/// What a person calls this kind of value.
pub(super) fn kind(value: &EngineValue) -> &'static str {
    match value.kind() {
        ValueKind::Undefined => "nothing",
        ValueKind::None => "null",
        ValueKind::Bool => "a boolean",
        ValueKind::Number => "a number",
        ValueKind::String => "a text",
        ValueKind::Seq | ValueKind::Iterable => "a list",
        ValueKind::Map => "an object",
        ValueKind::Plain if value.downcast_object_ref::<Exact>().is_some() => "a number",
        _ => "something else",
    }
}

/// Refuses a reference that did not resolve.
pub(super) fn resolved(value: &EngineValue) -> Result<&EngineValue, Error> {
    if value.is_undefined() {
        // The engine's own error knows which reference it was.
        value.get_attr("")?;
    }
    Ok(value)
}

/// The number, if it is one.
pub(super) fn number(value: &EngineValue) -> Option<Number> {
    if let Some(Exact(number)) = value.downcast_object_ref::<Exact>() {
        return Some(number.clone());
    }
    if value.kind() != ValueKind::Number {
        return None;
    }
    if value.is_integer() {
        return match value.as_i64() {
            Some(integer) => Some(Number::from(integer)),
            None => Number::parse(&value.to_string()).ok(),
        };
    }
    f64::try_from(value.clone()).ok().and_then(|double| Number::try_from(double).ok())
}

/// The value as it is written inside text (SPEC 8.2): texts as they are, containers as JSON.
pub(super) fn text(state: &State, value: &EngineValue) -> Result<String, Error> {
    match resolved(value)?.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => json(state, value, Value::to_json),
    }
}

/// The value as JSON.
pub(super) fn json(
    state: &State,
    value: &EngineValue,
    write: fn(&Value) -> String,
) -> Result<String, Error> {
    let json = match value.downcast_object_ref::<View>() {
        Some(view) => write(view.value()),
        None => write(&to_value(value)?),
    };
    state.consume_fuel((json.len() / JSON_BYTES_PER_FUEL) as u64)?;
    Ok(json)
}

/// The value as one of ours.
///
/// Fails for what JSON does not have, beyond [`DEPTH_MAX`] and beyond [`OUTPUT_BYTES_MAX`].
pub(super) fn to_value(value: &EngineValue) -> Result<Value, Error> {
    Converter { bytes_left: OUTPUT_BYTES_MAX }.convert(value, 0)
}

struct Converter {
    bytes_left: usize,
}

impl Converter {
    fn convert(&mut self, value: &EngineValue, depth: usize) -> Result<Value, Error> {
        self.spend(ELEMENT_BYTES)?;
        if let Some(view) = value.downcast_object_ref::<View>() {
            return self.copy(view.value(), depth);
        }
        if let Some(number) = number(value) {
            self.spend(number.as_str().len())?;
            return Ok(Value::Number(number));
        }
        match resolved(value)?.kind() {
            ValueKind::None => Ok(Value::Null),
            ValueKind::Bool => Ok(Value::Bool(value.is_true())),
            ValueKind::String => {
                let text = value.as_str().unwrap_or_default();
                self.spend(text.len())?;
                Ok(Value::from(text))
            }
            ValueKind::Seq | ValueKind::Iterable => self.convert_list(value, deeper(depth)?),
            ValueKind::Map => self.convert_object(value, deeper(depth)?),
            ValueKind::Number => Err(refuse(format!("{value} is not a number that JSON has"))),
            _ => Err(refuse("a function is not a value; call it")),
        }
    }

    fn convert_list(&mut self, list: &EngineValue, depth: usize) -> Result<Value, Error> {
        let mut items = Vec::new();
        for item in list.try_iter()?.checked() {
            items.push(self.convert(&item?, depth)?);
        }
        Ok(Value::Array(items))
    }

    fn convert_object(&mut self, map: &EngineValue, depth: usize) -> Result<Value, Error> {
        let pairs = map
            .as_object()
            .filter(|object| object.repr() == ObjectRepr::Map)
            .and_then(|object| object.try_iter_pairs())
            .ok_or_else(|| refuse("this object cannot be read"))?;
        let mut object = Object::new();
        for (key, value) in pairs {
            let Some(key) = key.as_str() else {
                let kind = kind(&key);
                return Err(refuse(format!("the keys of an object are texts, found {kind}")));
            };
            self.spend(key.len())?;
            object.insert(key, self.convert(&value, depth)?);
        }
        Ok(Value::Object(object))
    }

    /// Copies one of our values after counting what it takes.
    fn copy(&mut self, value: &Value, depth: usize) -> Result<Value, Error> {
        let mut pending = vec![(value, depth)];
        while let Some((value, depth)) = pending.pop() {
            match value {
                Value::Null | Value::Bool(_) => self.spend(ELEMENT_BYTES)?,
                Value::Number(number) => self.spend(ELEMENT_BYTES + number.as_str().len())?,
                Value::String(text) => self.spend(ELEMENT_BYTES + text.len())?,
                Value::Array(items) => {
                    self.spend(ELEMENT_BYTES)?;
                    let depth = deeper(depth)?;
                    pending.extend(items.iter().map(|item| (item, depth)));
                }
                Value::Object(object) => {
                    self.spend(ELEMENT_BYTES)?;
                    let depth = deeper(depth)?;
                    for (key, value) in object {
                        self.spend(key.len())?;
                        pending.push((value, depth));
                    }
                }
            }
        }
        Ok(value.clone())
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Error> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or_else(too_large)?;
        Ok(())
    }
}

fn deeper(depth: usize) -> Result<usize, Error> {
    if depth == DEPTH_MAX {
        return Err(refuse(format!("the result is nested deeper than {DEPTH_MAX} levels")));
    }
    Ok(depth + 1)
}
