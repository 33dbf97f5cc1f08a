//! JSON on its way through an execution: text that is parsed only where somebody looks inside.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::ids::Digest;
use crate::limits::INLINE_PAYLOAD_BYTES_MAX;
use crate::value::{SyntaxError, Value};

/// A JSON value that is passed on: an input, an output, a resolved setting. Cheap to clone.
///
/// Inside a record it is written in place up to [`INLINE_PAYLOAD_BYTES_MAX`] bytes; beyond that
/// the record holds its digest and length, and the text lives beside the journal as a blob.
#[derive(Clone)]
pub struct Payload(Arc<Inner>);

struct Inner {
    text: Text,
    value: OnceLock<Value>,
    digest: OnceLock<Digest>,
}

enum Text {
    Here(Box<str>),
    /// Read from a record whose blob has not been loaded yet.
    Elsewhere {
        digest: Digest,
        bytes: u64,
    },
}

/// A blob that a record refers to: what it must digest to, and its length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlobRef {
    /// The digest of the text.
    pub digest: Digest,
    /// The length of the text in bytes.
    pub bytes: u64,
}

impl Payload {
    /// Wraps a value.
    pub fn new(value: Value) -> Payload {
        let text = value.to_json().into_boxed_str();
        let payload = Payload::here(text);
        let _ = payload.0.value.set(value);
        payload
    }

    /// Wraps JSON text after reading it.
    pub fn parse(text: &str) -> Result<Payload, SyntaxError> {
        Value::parse(text).map(Payload::new)
    }

    /// The payload `null`.
    pub fn null() -> Payload {
        Payload::new(Value::Null)
    }

    /// An object of payloads, put together from their texts. Keys must be distinct.
    pub fn object<'a>(fields: impl Iterator<Item = (&'a str, Payload)>) -> Payload {
        let mut text = String::from("{");
        for (key, payload) in fields {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&Value::String(key.to_owned()).to_json());
            text.push(':');
            text.push_str(payload.text());
        }
        text.push('}');
        Payload::here(text.into_boxed_str())
    }

    fn here(text: Box<str>) -> Payload {
        Payload(Arc::new(Inner {
            text: Text::Here(text),
            value: OnceLock::new(),
            digest: OnceLock::new(),
        }))
    }

    /// The value as compact JSON text.
    ///
    /// # Panics
    /// If the blob was not loaded; whoever reads records loads their blobs first.
    pub fn text(&self) -> &str {
        match &self.0.text {
            Text::Here(text) => text,
            Text::Elsewhere { digest, .. } => panic!("blob {digest} was not loaded before use"),
        }
    }

    /// The value, read at the first call.
    ///
    /// # Panics
    /// If the blob was not loaded.
    pub fn value(&self) -> &Value {
        self.0.value.get_or_init(|| {
            Value::parse(self.text()).expect("a payload's text was written by our own writer")
        })
    }

    /// How deep lists and objects are nested: 0 for a text or a number. Looks at the text only, so
    /// it also measures what is too deep to be read.
    ///
    /// # Panics
    /// If the blob was not loaded.
    pub fn depth(&self) -> usize {
        let (mut depth, mut deepest) = (0usize, 0);
        let (mut is_in_string, mut is_escaped) = (false, false);
        for byte in self.text().bytes() {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if is_in_string => is_escaped = true,
                b'"' => is_in_string = !is_in_string,
                b'[' | b'{' if !is_in_string => {
                    depth += 1;
                    deepest = deepest.max(depth);
                }
                b']' | b'}' if !is_in_string => depth -= 1,
                _ => {}
            }
        }
        deepest
    }

    /// The length of the text in bytes.
    pub fn bytes(&self) -> u64 {
        match &self.0.text {
            Text::Here(text) => text.len() as u64,
            Text::Elsewhere { bytes, .. } => *bytes,
        }
    }

    /// The digest of the text.
    pub fn digest(&self) -> Digest {
        match &self.0.text {
            Text::Here(text) => *self.0.digest.get_or_init(|| Digest::of(text.as_bytes())),
            Text::Elsewhere { digest, .. } => *digest,
        }
    }

    /// The blob that a record refers to in place of the text, or `None` if the text is short
    /// enough to stand in the record itself.
    pub fn blob(&self) -> Option<BlobRef> {
        (self.bytes() > INLINE_PAYLOAD_BYTES_MAX as u64)
            .then(|| BlobRef { digest: self.digest(), bytes: self.bytes() })
    }

    /// Whether the text still has to be loaded.
    pub fn is_unloaded(&self) -> bool {
        matches!(self.0.text, Text::Elsewhere { .. })
    }

    /// Supplies the text of a blob. Gives `false` and changes nothing if it has another digest.
    pub fn load(&mut self, text: String) -> bool {
        if Digest::of(text.as_bytes()) != self.digest() {
            return false;
        }
        *self = Payload::here(text.into_boxed_str());
        true
    }
}

impl From<Value> for Payload {
    fn from(value: Value) -> Self {
        Payload::new(value)
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || self.bytes() == other.bytes() && self.digest() == other.digest()
    }
}

impl Eq for Payload {}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.text {
            Text::Here(text) => f.write_str(text),
            Text::Elsewhere { digest, bytes } => write!(f, "<blob {digest}, {bytes} bytes>"),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Written<R> {
    Json(R),
    Blob { digest: Digest, bytes: u64 },
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.blob() {
            Some(BlobRef { digest, bytes }) => {
                Written::<()>::Blob { digest, bytes }.serialize(serializer)
            }
            None => {
                let raw: &RawValue =
                    serde_json::from_str(self.text()).map_err(serde::ser::Error::custom)?;
                Written::Json(raw).serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Written::<Box<RawValue>>::deserialize(deserializer)? {
            Written::Json(raw) => Payload::here(Box::<str>::from(raw)),
            Written::Blob { digest, bytes } => Payload(Arc::new(Inner {
                text: Text::Elsewhere { digest, bytes },
                value: OnceLock::new(),
                digest: OnceLock::new(),
            })),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(payload: &Payload) -> Payload {
        serde_json::from_str(&serde_json::to_string(payload).unwrap()).unwrap()
    }

    #[test]
    fn short_payloads_keep_every_digit_through_a_record() {
        let payload = Payload::parse(r#"{"id": 18446744073709551615, "x": 1.0}"#).unwrap();
        let back = round_trip(&payload);
        assert_eq!(back.text(), r#"{"id":18446744073709551615,"x":1.0}"#);
        assert_eq!(back.value(), payload.value());
    }

    #[test]
    fn an_object_of_payloads_reads_like_one_that_was_parsed() {
        let parts = [("a\"b", Payload::parse("1.0").unwrap()), ("c", Payload::null())];
        let object = Payload::object(parts.into_iter());
        assert_eq!(object.text(), r#"{"a\"b":1.0,"c":null}"#);
        assert_eq!(Payload::object(std::iter::empty()).text(), "{}");
    }

    #[test]
    fn depth_counts_brackets_outside_of_texts() {
        for (text, depth) in [("1", 0), ("\"[[{\"", 0), ("[]", 1), (r#"{"a\"[":[1,{"b":"]"}]}"#, 3)]
        {
            assert_eq!(Payload::parse(text).unwrap().depth(), depth, "{text}");
        }
    }

    #[test]
    fn long_payloads_leave_their_digest_in_the_record() {
        let text = format!("\"{}\"", "x".repeat(INLINE_PAYLOAD_BYTES_MAX));
        let payload = Payload::parse(&text).unwrap();
        let mut back = round_trip(&payload);
        assert!(back.is_unloaded());
        assert_eq!(back.blob(), payload.blob());
        assert!(!back.load("\"other\"".to_owned()), "another text is refused");
        assert!(back.load(text));
        assert_eq!(back.value(), payload.value());
    }
}
