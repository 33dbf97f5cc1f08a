//! What an execution's journal folds to: memory only, never stored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::failure::Failure;
use crate::ids::Seq;
use crate::payload::Payload;
use crate::plan::{EdgeIdx, NodeIdx, Plan};
use crate::projection::{ExecutionStatus, NotRunReason};
use crate::scheduler::event::{EdgeState, ExecutionStarted, FailureEffect};
use crate::time::Timestamp;

/// The state of one execution. Its nodes and edges are those of the outermost graph; the rounds
/// of containers will have cells of their own beside them, which is why events name instances.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub nodes: Vec<NodeCell>,
    pub edges: Vec<Option<EdgeState>>,
    pub totals: Totals,
    /// Ready nodes that may start as soon as the execution has a free place.
    pub queue: BTreeSet<NodeIdx>,
    /// Ready nodes that also need a place under a machine-wide limit.
    pub slot_queue: BTreeSet<NodeIdx>,
    /// Decided nodes whose last attempt is still to be stopped.
    pub stopping: BTreeSet<NodeIdx>,
    pub started: Option<Arc<ExecutionStarted>>,
}

/// What is known about the execution as a whole. Small, so that a decision may copy it.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    pub seq: Seq,
    pub last_at: Timestamp,
    pub started_at: Timestamp,
    pub ended: Option<Ended>,
    pub unowned_ms: u64,
    pub running: u32,
    pub decided: u32,
    pub completed: u32,
    /// Nodes that wait for a person.
    pub waiting_human: u32,
    /// Nodes that wait for the due time of a retry.
    pub waiting_retry: u32,
    pub failed: u32,
    pub tolerated: u32,
    /// The first failure that decides the execution: the first unhandled one.
    pub first_unhandled: Option<NodeIdx>,
    /// The first failure of all.
    pub first_failed: Option<NodeIdx>,
}

/// How an execution ended.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub status: ExecutionStatus,
    pub at: Timestamp,
    pub seq: Seq,
    pub output: Option<Payload>,
    pub failure: Option<Arc<Failure>>,
    pub error: Option<Arc<str>>,
}

/// One node.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeCell {
    pub phase: Phase,
    /// Incoming edges that are not decided.
    pub edges_undecided: u32,
    /// Incoming edges that are live.
    pub edges_live: u32,
    /// Distinct predecessors none of whose edges is decided.
    pub predecessors_undecided: u32,
    /// Distinct predecessors with a live edge.
    pub predecessors_live: u32,
    pub has_failed_edge: bool,
    pub attempts: u32,
    pub attempts_lost: u32,
    pub retries: u32,
    /// The resolved input, where bindings made it.
    pub input: Option<Payload>,
    /// The agent's resolved settings, where templates made them.
    pub settings: Option<Payload>,
    /// Predecessors that were live at the start, where the join did not wait for all.
    pub live: Option<Arc<[NodeIdx]>>,
    pub output: Option<Payload>,
    pub failure: Option<Arc<Failure>>,
    pub effect: Option<FailureEffect>,
    pub reason: Option<NotRunReason>,
    pub origin: Option<NodeIdx>,
    pub due: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub decided_seq: Seq,
}

/// Where a node stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its edges have not made it ready.
    #[default]
    Pending,
    /// It is ready and waits for a free place.
    Queued,
    /// An attempt is under way.
    Running,
    /// Its attempt ended, and the next record of the same decision says what follows.
    Between,
    /// It waits for the due time of its next attempt.
    WaitingRetry,
    /// It waits for a person's word on a lost attempt.
    WaitingHuman,
    Completed,
    Failed,
    Skipped,
    Cancelled,
}

impl Phase {
    /// Whether the node is decided.
    pub fn is_decided(self) -> bool {
        matches!(self, Phase::Completed | Phase::Failed | Phase::Skipped | Phase::Cancelled)
    }
}

impl State {
    /// The state before the first record.
    pub fn new(plan: &Plan) -> State {
        let nodes = plan
            .nodes
            .iter()
            .map(|node| NodeCell {
                edges_undecided: node.incoming.len() as u32,
                predecessors_undecided: node.predecessors.len() as u32,
                ..NodeCell::default()
            })
            .collect();
        State {
            nodes,
            edges: vec![None; plan.edges.len()],
            totals: Totals::default(),
            queue: BTreeSet::new(),
            slot_queue: BTreeSet::new(),
            stopping: BTreeSet::new(),
            started: None,
        }
    }
}

/// Which of the sets of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeSet {
    Queue,
    SlotQueue,
    Stopping,
}

/// What folding an event needs of a state: the state itself, or a decision's overlay on it.
pub(super) trait Cells {
    fn node(&self, idx: NodeIdx) -> &NodeCell;
    fn node_mut(&mut self, idx: NodeIdx) -> &mut NodeCell;
    fn edge(&self, idx: EdgeIdx) -> Option<EdgeState>;
    fn set_edge(&mut self, idx: EdgeIdx, state: EdgeState);
    fn totals(&self) -> &Totals;
    fn totals_mut(&mut self) -> &mut Totals;
    fn insert(&mut self, set: NodeSet, idx: NodeIdx);
    fn remove(&mut self, set: NodeSet, idx: NodeIdx);
    fn set_started(&mut self, started: Arc<ExecutionStarted>);
}

impl Cells for State {
    fn node(&self, idx: NodeIdx) -> &NodeCell {
        &self.nodes[idx.0 as usize]
    }

    fn node_mut(&mut self, idx: NodeIdx) -> &mut NodeCell {
        &mut self.nodes[idx.0 as usize]
    }

    fn edge(&self, idx: EdgeIdx) -> Option<EdgeState> {
        self.edges[idx.0 as usize]
    }

    fn set_edge(&mut self, idx: EdgeIdx, state: EdgeState) {
        self.edges[idx.0 as usize] = Some(state);
    }

    fn totals(&self) -> &Totals {
        &self.totals
    }

    fn totals_mut(&mut self) -> &mut Totals {
        &mut self.totals
    }

    fn insert(&mut self, set: NodeSet, idx: NodeIdx) {
        self.set_mut(set).insert(idx);
    }

    fn remove(&mut self, set: NodeSet, idx: NodeIdx) {
        self.set_mut(set).remove(&idx);
    }

    fn set_started(&mut self, started: Arc<ExecutionStarted>) {
        self.started = Some(started);
    }
}

impl State {
    fn set_mut(&mut self, set: NodeSet) -> &mut BTreeSet<NodeIdx> {
        match set {
            NodeSet::Queue => &mut self.queue,
            NodeSet::SlotQueue => &mut self.slot_queue,
            NodeSet::Stopping => &mut self.stopping,
        }
    }

    fn set(&self, set: NodeSet) -> &BTreeSet<NodeIdx> {
        match set {
            NodeSet::Queue => &self.queue,
            NodeSet::SlotQueue => &self.slot_queue,
            NodeSet::Stopping => &self.stopping,
        }
    }
}

/// A state as a decision sees it while it decides: the state beneath, and on top of it the few
/// cells that the decision has touched. Costs what was touched, never the size of the graph.
pub(super) struct Overlay<'a> {
    base: &'a State,
    nodes: BTreeMap<NodeIdx, NodeCell>,
    edges: BTreeMap<EdgeIdx, EdgeState>,
    totals: Totals,
    /// Membership that differs from the base's: (in the queue, in the slot queue, stopping).
    sets: [BTreeMap<NodeIdx, bool>; 3],
    started: Option<Arc<ExecutionStarted>>,
}

impl<'a> Overlay<'a> {
    pub fn new(base: &'a State) -> Overlay<'a> {
        Overlay {
            base,
            nodes: BTreeMap::new(),
            edges: BTreeMap::new(),
            totals: base.totals.clone(),
            sets: Default::default(),
            started: base.started.clone(),
        }
    }

    pub fn started(&self) -> &ExecutionStarted {
        self.started.as_deref().expect("an execution is started before anything else is decided")
    }

    /// The first node of the queue in plan order.
    pub fn first_queued(&self) -> Option<NodeIdx> {
        let changed = &self.sets[NodeSet::Queue as usize];
        let kept = self
            .base
            .set(NodeSet::Queue)
            .iter()
            .copied()
            .find(|idx| changed.get(idx).copied().unwrap_or(true));
        let added = changed.iter().find(|(_, is_member)| **is_member).map(|(idx, _)| *idx);
        match (kept, added) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

impl Cells for Overlay<'_> {
    fn node(&self, idx: NodeIdx) -> &NodeCell {
        self.nodes.get(&idx).unwrap_or_else(|| self.base.node(idx))
    }

    fn node_mut(&mut self, idx: NodeIdx) -> &mut NodeCell {
        let base = self.base;
        self.nodes.entry(idx).or_insert_with(|| base.node(idx).clone())
    }

    fn edge(&self, idx: EdgeIdx) -> Option<EdgeState> {
        self.edges.get(&idx).copied().or_else(|| self.base.edge(idx))
    }

    fn set_edge(&mut self, idx: EdgeIdx, state: EdgeState) {
        self.edges.insert(idx, state);
    }

    fn totals(&self) -> &Totals {
        &self.totals
    }

    fn totals_mut(&mut self) -> &mut Totals {
        &mut self.totals
    }

    fn insert(&mut self, set: NodeSet, idx: NodeIdx) {
        self.sets[set as usize].insert(idx, true);
    }

    fn remove(&mut self, set: NodeSet, idx: NodeIdx) {
        self.sets[set as usize].insert(idx, false);
    }

    fn set_started(&mut self, started: Arc<ExecutionStarted>) {
        self.started = Some(started);
    }
}
