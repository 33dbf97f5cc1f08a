//! Retry, timeout and cancel.

use std::rc::Rc;

use engine::failure::{Failure, FailureClass};
use engine::payload::Payload;
use engine::projection::{ExecutionStatus, NodeStatus};
use engine::scheduler::event::{Event, Usage};
use engine::scheduler::input::{Input, Report, Timer};

use crate::sim::case::Case;
use crate::sim::chaos::Chaos;
use crate::sim::invariants::same;
use crate::sim::world::World;

const HOUR_MS: u64 = 3_600_000;

fn start(case: &str) -> World {
    let case = Rc::new(Case::field(case));
    let setup = Rc::new(case.setup(7).expect("the case compiles"));
    World::start(&case, &setup, Chaos::none(), 7).expect("it starts")
}

#[test]
fn o_r01_a_cancel_ends_the_wait_for_a_retry_for_ever() {
    let mut world = start(
        r#"{"nodes":{"A":{"fail":"Transient"}},"edges":[],
            "retry":{"A":{"maxRetries":5,"backoffBase":10,"backoffMax":60,
                          "retryableErrors":["Transient"]}}}"#,
    );
    world.step().unwrap();
    assert_eq!(world.node_status("A"), NodeStatus::Waiting);
    world.cancel().unwrap();
    let n_records = world.records().count();

    world.pass(HOUR_MS).unwrap();
    assert_eq!(world.execution().status(), ExecutionStatus::Cancelled);
    world.crash().unwrap();
    world.pass(HOUR_MS).unwrap();

    assert_eq!(world.calls("A"), 1);
    assert_eq!(world.execution().status(), ExecutionStatus::Cancelled);
    assert_eq!(world.records().count(), n_records, "nothing follows a cancel");
}

/// What may happen to a running node, and the status it leads to if it is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blow {
    Cancel,
    Completes,
    Fails,
    NodeTimeout,
    ExecutionTimeout,
}

impl Blow {
    const ALL: [Blow; 5] =
        [Blow::Cancel, Blow::Completes, Blow::Fails, Blow::NodeTimeout, Blow::ExecutionTimeout];

    fn strike(self, world: &mut World) {
        let failed = |class| Report::Failed {
            failure: Failure::new(class, "it went wrong"),
            usage: Usage::default(),
        };
        match self {
            Blow::Cancel => world.cancel(),
            Blow::Completes => world.report(
                "A",
                Report::Completed {
                    output: Payload::null(),
                    warnings: Vec::new(),
                    usage: Usage::default(),
                },
            ),
            Blow::Fails => world.report("A", failed(FailureClass::AgentError)),
            Blow::NodeTimeout => world.report("A", failed(FailureClass::Timeout)),
            Blow::ExecutionTimeout => {
                world.give(Input::TimerDue { timer: Timer::ExecutionTimeout })
            }
        }
        .unwrap();
    }

    fn leads_to(self) -> ExecutionStatus {
        match self {
            Blow::Cancel => ExecutionStatus::Cancelled,
            Blow::Completes => ExecutionStatus::Completed,
            Blow::Fails | Blow::NodeTimeout | Blow::ExecutionTimeout => ExecutionStatus::Failed,
        }
    }
}

fn terminal_records(world: &World) -> usize {
    let is_terminal = |event: &Event| {
        matches!(
            event,
            Event::ExecutionCompleted(_) | Event::ExecutionFailed(_) | Event::ExecutionCancelled(_)
        )
    };
    world.records().filter(|record| is_terminal(&record.event)).count()
}

#[test]
fn o_r02_of_two_ends_in_the_same_millisecond_the_first_stands() {
    for first in Blow::ALL {
        for second in Blow::ALL {
            let mut world = start(
                r#"{"nodes":{"A":{"out":1,"takes":1000}},"edges":[],"workflow":{"timeout":30}}"#,
            );
            first.strike(&mut world);
            second.strike(&mut world);
            assert_eq!(world.execution().status(), first.leads_to(), "{first:?}, {second:?}");
            world.drive().unwrap();
            assert_eq!(world.execution().status(), first.leads_to(), "{first:?}, {second:?}");
            assert_eq!(terminal_records(&world), 1, "{first:?}, {second:?}");
            assert_eq!(world.calls("A"), 1);

            let before = world.setup().replay(world.records());
            world.crash().unwrap();
            same(&before, world.execution()).unwrap();
        }
    }
}

#[test]
fn o_r02_nothing_behind_a_node_starts_once_a_cancel_has_committed() {
    for second in Blow::ALL {
        let mut world = start(
            r#"{"nodes":{"A":{"out":1,"takes":1000},"B":{"out":2}},"edges":[["A","B"]],
                "workflow":{"timeout":30}}"#,
        );
        world.cancel().unwrap();
        second.strike(&mut world);
        world.drive().unwrap();
        world.crash().unwrap();
        world.pass(HOUR_MS).unwrap();
        assert_eq!(world.execution().status(), ExecutionStatus::Cancelled, "{second:?}");
        assert_eq!(world.calls("B"), 0, "{second:?}");
        assert_eq!(terminal_records(&world), 1, "{second:?}");
    }
}

#[test]
fn o_r02_a_result_after_the_cancel_is_kept_as_late() {
    let mut world = start(r#"{"nodes":{"A":{"out":1,"takes":1000}},"edges":[]}"#);
    world.cancel().unwrap();
    assert!(!world.execution().is_settled(), "the attempt is still to be stopped");
    Blow::Completes.strike(&mut world);
    assert!(world.execution().is_settled());
    let last = world.records().last().expect("there are records");
    assert!(matches!(last.event, Event::LateReport(_)), "{last:?}");
    assert_eq!(world.node_status("A"), NodeStatus::Cancelled);
}

#[test]
fn a_cancel_of_an_execution_that_has_ended_returns_it_unchanged() {
    let mut world = start(r#"{"nodes":{"A":{"out":1}},"edges":[]}"#);
    world.drive().unwrap();
    let n_records = world.records().count();
    world.cancel().unwrap();
    assert_eq!(world.records().count(), n_records);
    assert_eq!(world.execution().status(), ExecutionStatus::Completed);
}
