//! Structured log entries of what happens to executions, in the fields that operators know.

use engine::ids::Instance;
use engine::journal::Record;
use engine::plan::Work;
use engine::scheduler::Execution;
use engine::scheduler::event::Event;

/// Logs a record that people who operate Cyanotype look for; most records are not among them.
pub(super) fn record(execution: &Execution, record: &Record) {
    let id = execution.id();
    match &record.event {
        Event::ExecutionStarted(e) => tracing::info!(
            component = "driver", action = "execution_started", executionId = %id,
            workflowId = e.workflow.map(|id| id.to_string()), plan = %e.plan
        ),
        Event::AttemptStarted(e) => tracing::debug!(
            component = "driver", action = "invoke_node", executionId = %id,
            nodeId = %e.instance, agentId = agent_of(execution, &e.instance), attempt = e.attempt
        ),
        Event::AttemptFailed(e) => tracing::warn!(
            component = "driver", action = "attempt_failed", executionId = %id,
            nodeId = %e.instance, agentId = agent_of(execution, &e.instance), attempt = e.attempt,
            error = %e.failure.message,
            class = e.failure.class.as_str()
        ),
        Event::RetryScheduled(e) => {
            let failure = execution
                .plan()
                .node_idx(&e.instance.node)
                .and_then(|idx| execution.node_failure(idx));
            tracing::warn!(
                component = "driver", action = "retry_node", executionId = %id,
                nodeId = %e.instance, agentId = agent_of(execution, &e.instance),
                retryCount = e.retry,
                error = failure.map(|failure| failure.message.as_str()),
                nextRetryDelay = e.due.ms_since(record.at) as f64 / 1000.0
            );
        }
        Event::AttemptLost(e) => tracing::warn!(
            component = "driver", action = "attempt_lost", executionId = %id,
            nodeId = %e.instance, attempt = e.attempt, error = %e.message
        ),
        Event::NodeFailed(e) => tracing::warn!(
            component = "driver", action = "node_failed", executionId = %id,
            nodeId = %e.instance, error = %e.failure.message
        ),
        Event::HostRestarted(e) => tracing::info!(
            component = "driver", action = "execution_resumed", executionId = %id,
            owner = %e.owner
        ),
        Event::CancelAsked(e) => tracing::info!(
            component = "driver", action = "cancel_asked", executionId = %id, by = %e.by
        ),
        Event::ExecutionCompleted(_) => tracing::info!(
            component = "driver", action = "execution_completed", executionId = %id
        ),
        Event::ExecutionFailed(e) => tracing::warn!(
            component = "driver", action = "execution_failed", executionId = %id, error = %e.error
        ),
        Event::ExecutionCancelled(_) => tracing::info!(
            component = "driver", action = "execution_cancelled", executionId = %id
        ),
        Event::NodesQueued(_)
        | Event::NodeSkipped(_)
        | Event::RetryDue(_)
        | Event::NodeWaiting(_)
        | Event::HumanAnswered(_)
        | Event::NodeCompleted(_)
        | Event::NodesCancelled(_)
        | Event::LateReport(_) => {}
    }
}

fn agent_of<'a>(execution: &'a Execution, instance: &Instance) -> Option<&'a str> {
    let plan = execution.plan();
    match &plan.node(plan.node_idx(&instance.node)?).work {
        Work::Agent(id) => Some(id.as_str()),
        Work::Transform => None,
    }
}
