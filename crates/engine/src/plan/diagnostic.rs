//! What `compile` has to say about a definition, for the person who edits it.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::definition::Definition;
use crate::ids::{EdgeId, NodeId};

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// What kind of finding it is. Programs act on this, never on the text.
    pub code: Code,
    /// How much it matters. An error prevents publishing and running.
    pub severity: Severity,
    /// What it is about.
    pub place: Place,
    /// What is wrong, in plain words.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// The definition cannot become a plan.
    Error,
    /// It runs, but probably not as its author meant.
    Warning,
    /// Worth knowing.
    Information,
}

/// What a finding is about. Without node and edge: the workflow as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The edge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge: Option<EdgeId>,
    /// The field of the node, edge or workflow, as a path: `inputs.prompt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

macro_rules! codes {
    ($($severity:ident { $($(#[doc = $doc:literal])* $code:ident = $text:literal,)* })*) => {
        /// The kinds of findings. Each has one severity and one spelling, which never changes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $($($(#[doc = $doc])* $code,)*)*
        }

        impl Code {
            /// Every kind, errors first.
            pub const ALL: &'static [Code] = &[$($(Code::$code,)*)*];

            /// The stable spelling.
            pub fn as_str(self) -> &'static str {
                match self { $($(Code::$code => $text,)*)* }
            }

            /// How much findings of this kind matter.
            pub fn severity(self) -> Severity {
                match self { $($(Code::$code => Severity::$severity,)*)* }
            }
        }
    };
}

codes! {
    Error {
        /// There is nothing to run.
        NoNodes = "noNodes",
        /// Several nodes have the same id.
        DuplicateNode = "duplicateNode",
        /// Several edges have the same id.
        DuplicateEdge = "duplicateEdge",
        /// There is no node type of this name.
        UnknownType = "unknownType",
        /// The node type has no version of this number.
        BadTypeVersion = "badTypeVersion",
        /// The node names no agent.
        MissingAgent = "missingAgent",
        /// The node names an agent that this machine does not have.
        UnknownAgent = "unknownAgent",
        /// The node still has the placeholder of a blueprint.
        PlaceholderAgent = "placeholderAgent",
        /// The agent's own record is at fault, or does not fit the node.
        BadAgent = "badAgent",
        /// The agent requires a parameter that nobody sets.
        MissingParameter = "missingParameter",
        /// The node type needs `inputs`.
        MissingInputs = "missingInputs",
        /// The configuration does not have the shape it must have.
        BadConfiguration = "badConfiguration",
        /// The input schema is not a JSON Schema.
        BadInputSchema = "badInputSchema",
        /// The retry policy cannot be used.
        BadRetryPolicy = "badRetryPolicy",
        /// The timeout is not a time.
        BadTimeout = "badTimeout",
        /// There is no failure policy of this name.
        BadFailurePolicy = "badFailurePolicy",
        /// The join rule cannot be understood.
        BadJoin = "badJoin",
        /// The join rule needs more predecessors than there are.
        JoinOutOfReach = "joinOutOfReach",
        /// The compensation cannot be used.
        BadCompensation = "badCompensation",
        /// `finalOutput` names no node.
        UnknownFinalOutput = "unknownFinalOutput",
        /// An edge starts or ends at a node that does not exist.
        EdgeToMissingNode = "edgeToMissingNode",
        /// An edge starts or ends at a note.
        EdgeAtNote = "edgeAtNote",
        /// There are too many edges between the same two nodes.
        TooManyParallelEdges = "tooManyParallelEdges",
        /// An edge leads from a node to itself.
        SelfLoop = "selfLoop",
        /// The node has no port of this name.
        UnknownPort = "unknownPort",
        /// The condition cannot be understood.
        BadCondition = "badCondition",
        /// Nodes wait for each other.
        Cycle = "cycle",
        /// The node has no edge although there are several nodes.
        DisconnectedNode = "disconnectedNode",
        /// The template cannot be understood.
        BadTemplate = "badTemplate",
        /// The template refers to something that is not there.
        UnresolvedReference = "unresolvedReference",
        /// A key of `inputs` has a name that templates use for something else.
        ReservedName = "reservedName",
        /// The template asks for a secret.
        SecretsUnavailable = "secretsUnavailable",
    }
    Warning {
        /// A model or prompt override is too long and will be left out.
        OverCap = "overCap",
        /// A field has no effect on nodes of this type.
        UnusedField = "unusedField",
        /// The node can never run, because the conditions on the way exclude each other.
        NeverReached = "neverReached",
        /// Nothing uses the node's output.
        UnusedOutput = "unusedOutput",
        /// The source promises another type than the target expects.
        PortTypeMismatch = "portTypeMismatch",
        /// The template refers to a parameter that nobody sets.
        UnknownParameter = "unknownParameter",
        /// The template refers to a node that is disabled.
        DisabledReference = "disabledReference",
        /// The longest chain of nodes is very long.
        DeepGraph = "deepGraph",
        /// Very many nodes may run at the same time.
        WideGraph = "wideGraph",
    }
    Information {
        /// A field that this version does not know; it is kept.
        UnknownField = "unknownField",
        /// Two edges say the same.
        IdenticalEdges = "identicalEdges",
    }
}

impl Code {
    /// Whether a definition may have findings of this kind now that it had not when it was
    /// published, because agents were changed or deleted since.
    pub fn follows_agents(self) -> bool {
        use Code::{
            BadAgent, MissingParameter, PlaceholderAgent, SecretsUnavailable, UnknownAgent,
        };
        matches!(
            self,
            UnknownAgent | PlaceholderAgent | BadAgent | MissingParameter | SecretsUnavailable
        )
    }
}

impl Severity {
    /// The spelling in files and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Information => "information",
        }
    }
}

impl Place {
    /// The workflow as a whole.
    pub fn workflow() -> Place {
        Place::default()
    }

    /// A node.
    pub fn node(id: &NodeId) -> Place {
        Place { node: Some(id.clone()), ..Place::default() }
    }

    /// An edge.
    pub fn edge(id: &EdgeId) -> Place {
        Place { edge: Some(id.clone()), ..Place::default() }
    }

    /// A field of this node, edge or workflow.
    #[must_use]
    pub fn field(self, path: impl Into<String>) -> Place {
        Place { field: Some(path.into()), ..self }
    }
}

impl Diagnostic {
    /// A finding; its severity follows from its code.
    pub fn new(
        code: Code,
        place: Place,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Diagnostic {
        let severity = code.severity();
        Diagnostic { code, severity, place, message: message.into(), hint: hint.into() }
    }

    /// Whether it prevents publishing and running.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Sorts findings as a reader of the file meets them: the workflow, then its nodes and then its
/// edges in file order; of one place, errors before warnings before information, else as found.
pub fn sort(diagnostics: &mut [Diagnostic], definition: &Definition) {
    let mut node_positions = BTreeMap::new();
    for (n, node) in definition.nodes.iter().enumerate() {
        node_positions.entry(&node.id).or_insert(n);
    }
    let mut edge_positions = BTreeMap::new();
    for (n, edge) in definition.edges.iter().enumerate() {
        edge_positions.entry(&edge.id).or_insert(n);
    }
    diagnostics.sort_by_cached_key(|diagnostic| {
        let place = &diagnostic.place;
        let at = match (&place.edge, &place.node) {
            (Some(edge), _) => (2, edge_positions.get(edge).copied()),
            (None, Some(node)) => (1, node_positions.get(node).copied()),
            (None, None) => (0, None),
        };
        (at, diagnostic.severity)
    });
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.node, &self.edge) {
            (_, Some(edge)) => write!(f, "edge {edge:?}")?,
            (Some(node), None) => write!(f, "node {node:?}")?,
            (None, None) => f.write_str("workflow")?,
        }
        match &self.field {
            Some(field) => write!(f, ", {field}"),
            None => Ok(()),
        }
    }
}

/// One block of three lines: what, where, what to do.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}[{}]: {}", self.severity, self.code, self.message)?;
        writeln!(f, "  at: {}", self.place)?;
        write!(f, "  do: {}", self.hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Edge, Node};
    use std::collections::BTreeSet;

    #[test]
    fn every_code_has_a_spelling_of_its_own_in_camel_case() {
        let spellings: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(spellings.len(), Code::ALL.len());
        for code in Code::ALL {
            let name = format!("{code:?}");
            let camel = format!("{}{}", name[..1].to_lowercase(), &name[1..]);
            assert_eq!(code.as_str(), camel);
        }
    }

    #[test]
    fn a_finding_reads_as_one_block() {
        let place = Place::edge(&"e1".into()).field("target");
        let finding = Diagnostic::new(
            Code::EdgeToMissingNode,
            place,
            "the edge ends at node \"ghost\", which does not exist",
            "correct the id, or remove the edge",
        );
        assert_eq!(
            finding.to_string(),
            "error[edgeToMissingNode]: the edge ends at node \"ghost\", which does not exist\n  \
             at: edge \"e1\", target\n  do: correct the id, or remove the edge"
        );
        assert_eq!(
            serde_json::to_string(&finding).unwrap(),
            r#"{"code":"edgeToMissingNode","severity":"error","place":{"edge":"e1","field":"target"},"message":"the edge ends at node \"ghost\", which does not exist","hint":"correct the id, or remove the edge"}"#
        );
    }

    #[test]
    fn findings_are_sorted_as_a_reader_of_the_file_meets_them() {
        let definition = Definition {
            nodes: vec![Node::new("b"), Node::new("a")],
            edges: vec![Edge::new("e", "b", "a")],
            ..Definition::default()
        };
        let finding = |code: Code, place: Place| Diagnostic::new(code, place, "", "");
        let mut found = vec![
            finding(Code::UnknownField, Place::edge(&"e".into())),
            finding(Code::UnknownField, Place::node(&"b".into())),
            finding(Code::Cycle, Place::node(&"a".into())),
            finding(Code::MissingAgent, Place::node(&"b".into())),
            finding(Code::WideGraph, Place::workflow()),
        ];
        sort(&mut found, &definition);
        let order: Vec<String> =
            found.iter().map(|finding| format!("{} {}", finding.place, finding.code)).collect();
        assert_eq!(
            order,
            [
                "workflow wideGraph",
                "node \"b\" missingAgent",
                "node \"b\" unknownField",
                "node \"a\" cycle",
                "edge \"e\" unknownField",
            ]
        );
    }
}
