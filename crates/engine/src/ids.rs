//! One newtype per identity, and the place a node event belongs to.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map($name)
            }
        }
    };
}

uuid_id! {
    /// Names one execution, for ever. A UUID v7, made by whoever starts it.
    ExecutionId
}
uuid_id! {
    /// Names one workflow or blueprint record. A UUID v7.
    WorkflowId
}
uuid_id! {
    /// Names one process start that may own executions. A UUID v7.
    OwnerId
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps a text; any text is a valid identity.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                $name(text.into())
            }
            /// Borrows the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                $name(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                $name(text.into())
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(|text| $name(text.into()))
            }
        }
    };
}

text_id! {
    /// Names a node within one definition. Any text that its author chose.
    NodeId
}
text_id! {
    /// Names an edge within one definition.
    EdgeId
}
text_id! {
    /// Names an agent record of this machine.
    AgentId
}

/// The position of a record in its execution's journal; the first is 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The position after this one.
    pub fn next(self) -> Seq {
        Seq(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A SHA-256 digest. Written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Digests bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text was not 64 hexadecimal digits.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a digest of 64 hexadecimal digits: {text:?}")]
pub struct DigestError {
    /// What was given.
    pub text: String,
}

impl FromStr for Digest {
    type Err = DigestError;
    fn from_str(text: &str) -> Result<Self, DigestError> {
        let bad = || DigestError { text: text.to_owned() };
        if text.len() != 64 || !text.is_ascii() {
            return Err(bad());
        }
        let mut bytes = [0; 32];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| bad())?;
        }
        Ok(Digest(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// One step into a container: which container, and its how-manieth round (from 0).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct IterationStep {
    /// The container node.
    pub container: NodeId,
    /// The round, from 0.
    pub round: u32,
}

/// Where an event of a node belongs: the node, the rounds of the containers around it (none at
/// the top level), and the epoch, which re-entry increments (0 until then).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Instance {
    /// The node.
    pub node: NodeId,
    /// From the outermost container inwards; empty at the top level.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub iteration: Vec<IterationStep>,
    /// How often the node's region has been entered again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epoch: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Instance {
    /// The instance of a node at the top level in the first epoch.
    pub fn top(node: NodeId) -> Instance {
        Instance { node, iteration: Vec::new(), epoch: 0 }
    }

    /// The instance path as text, with the parts escaped so that different paths never look alike:
    /// `node`, or `container[2]/node`.
    pub fn path(&self) -> String {
        let escape =
            |id: &NodeId| id.as_str().replace('%', "%25").replace('/', "%2F").replace('[', "%5B");
        let mut path = String::new();
        for step in &self.iteration {
            path.push_str(&format!("{}[{}]/", escape(&step.container), step.round));
        }
        path.push_str(&escape(&self.node));
        path
    }

    /// The idempotency key that all attempts of this instance share: the digest of execution,
    /// instance path and epoch.
    pub fn idempotency_key(&self, execution: ExecutionId) -> Digest {
        Digest::of(format!("{execution}\n{}\n{}", self.path(), self.epoch).as_bytes())
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_paths_of_odd_node_ids_never_look_alike() {
        let inside = Instance {
            node: "b".into(),
            iteration: vec![IterationStep { container: "a".into(), round: 0 }],
            epoch: 0,
        };
        assert_eq!(inside.path(), "a[0]/b");
        assert_ne!(Instance::top("a[0]/b".into()).path(), inside.path());
    }

    #[test]
    fn idempotency_key_differs_by_execution_path_and_epoch() {
        let first = ExecutionId(Uuid::from_u128(1));
        let a = Instance::top("a".into());
        let again = Instance { epoch: 1, ..a.clone() };
        assert_eq!(a.idempotency_key(first), a.clone().idempotency_key(first));
        assert_ne!(a.idempotency_key(first), again.idempotency_key(first));
        assert_ne!(a.idempotency_key(first), a.idempotency_key(ExecutionId(Uuid::from_u128(2))));
    }

    #[test]
    fn a_top_level_instance_is_written_compactly_and_read_back() {
        let a = Instance::top("a".into());
        let text = serde_json::to_string(&a).unwrap();
        assert_eq!(text, r#"{"node":"a"}"#);
        assert_eq!(serde_json::from_str::<Instance>(&text).unwrap(), a);
    }

    #[test]
    fn digests_read_back_and_refuse_other_text() {
        let digest = Digest::of(b"x");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert!("é".repeat(32).parse::<Digest>().is_err());
        assert!("12".parse::<Digest>().is_err());
    }
}
