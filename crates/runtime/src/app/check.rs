//! `check`: is what is stored what was recorded? Looks only; changes nothing.

use engine::ids::{ExecutionId, Seq};
use engine::projection::{ExecutionSummary, NodeSummary};

use super::App;
use super::executions::ExecutionError;
use crate::store::execution_table::ExecutionFilter;

/// What looking at everything came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Executions looked at.
    pub executions: u64,
    /// Records folded.
    pub records: u64,
    /// What is not as it should be.
    pub findings: Vec<Finding>,
}

/// Something that is not as it should be. It was left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The execution it is about; `None`: the database as a whole.
    pub execution: Option<ExecutionId>,
    /// What is wrong, for people.
    pub message: String,
}

impl App {
    /// Looks at the database's integrity, and folds every execution's journal and compares it with
    /// its projection, row by row.
    pub fn check(&self) -> Result<CheckReport, ExecutionError> {
        let mut report = CheckReport::default();
        for message in self.store().integrity()? {
            report.findings.push(Finding { execution: None, message });
        }
        let mut after = None;
        loop {
            let page = self.executions(&ExecutionFilter::default(), after)?;
            for summary in page.executions {
                self.check_execution(&summary, &mut report);
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(report),
            }
        }
    }

    fn check_execution(&self, row: &ExecutionSummary, report: &mut CheckReport) {
        report.executions += 1;
        let mut find = |message: String| {
            report.findings.push(Finding { execution: Some(row.id), message });
        };
        let loaded = match self.journal(row.id) {
            Ok(loaded) => loaded,
            Err(error) => return find(error.to_string()),
        };
        let last = loaded.records.last().map_or(Seq(0), |record| record.seq);
        report.records += loaded.records.len() as u64;
        let mut find = |message: String| {
            report.findings.push(Finding { execution: Some(row.id), message });
        };
        if last < row.seq {
            let kept = if row.status.is_terminal() {
                "the execution stays what its row says"
            } else {
                "restore a backup"
            };
            return find(format!(
                "its journal ends at record {last}, but its row was folded up to {}: {kept}",
                row.seq
            ));
        }
        let execution = loaded.replay(self.driver().limits());
        match execution.summary() {
            Some(folded) if folded == *row => {}
            // Records may have been appended after the row was read.
            Some(folded) if folded.seq > row.seq => return,
            Some(folded) => find(format!(
                "its row differs from the fold of its journal: {row:?} instead of {folded:?}"
            )),
            None => find("it has no records".to_owned()),
        }
        let mut folded: Vec<NodeSummary> =
            execution.plan().node_indices().filter_map(|idx| execution.node_summary(idx)).collect();
        let mut rows = match self.store().node_results(row.id) {
            Ok(rows) => rows,
            Err(error) => return find(error.to_string()),
        };
        folded.sort_by(|a, b| a.instance.cmp(&b.instance));
        rows.sort_by(|a, b| a.instance.cmp(&b.instance));
        for (row, folded) in rows.iter().zip(&folded).filter(|(row, folded)| row != folded) {
            find(format!(
                "the row of node {} differs from the fold: {row:?} instead of {folded:?}",
                folded.instance
            ));
        }
        if rows.len() != folded.len() {
            find(format!("it has {} node rows instead of {}", rows.len(), folded.len()));
        }
    }
}
