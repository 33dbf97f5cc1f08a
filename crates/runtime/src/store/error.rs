//! Why the store could not do what it was asked to.

use std::sync::Arc;

use engine::ids::ExecutionId;
use rusqlite::ErrorCode;

/// Why something could not be read or written. In every case nothing was changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// A row is not what was once written. It is left as it is.
    #[error("the database is damaged: {what}; restore a backup, or run `cyanotype check`")]
    Damaged {
        /// Which row, and what is wrong with it.
        what: String,
    },
    /// The execution was deleted, or never existed.
    #[error("execution {execution} is unknown")]
    UnknownExecution {
        /// Which.
        execution: ExecutionId,
    },
    /// The disk is full.
    #[error("the disk is full: free some space and try again; what was saved before is safe")]
    DiskFull,
    /// The app is closing; nothing more will be written.
    #[error("store is closed")]
    Closed,
    /// SQLite refused for another reason.
    #[error("cannot use the database")]
    Sqlite {
        /// What it said.
        #[source]
        source: Arc<rusqlite::Error>,
    },
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        StoreError::from(Arc::new(error))
    }
}

impl From<Arc<rusqlite::Error>> for StoreError {
    fn from(error: Arc<rusqlite::Error>) -> Self {
        use rusqlite::Error::{
            FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType,
        };
        match (&*error, error.sqlite_error_code()) {
            (FromSqlConversionFailure(_, _, reason), _) => {
                StoreError::Damaged { what: reason.to_string() }
            }
            (IntegralValueOutOfRange(..) | InvalidColumnType(..), _) => {
                StoreError::Damaged { what: error.to_string() }
            }
            (_, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)) => {
                StoreError::Damaged { what: error.to_string() }
            }
            (_, Some(ErrorCode::DiskFull)) => StoreError::DiskFull,
            _ => StoreError::Sqlite { source: error },
        }
    }
}
