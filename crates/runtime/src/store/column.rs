//! Columns that hold more than SQLite's own types: spellings, identities, JSON.

use std::error::Error;
use std::str::FromStr;

use engine::time::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Error as SqliteError, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A column's text is not what the column is for.
#[derive(Debug, thiserror::Error)]
#[error("column {column} holds {text:?}")]
struct ColumnError {
    column: &'static str,
    text: String,
    #[source]
    source: Option<Box<dyn Error + Send + Sync>>,
}

fn unfit(
    column: &'static str,
    text: String,
    source: Option<Box<dyn Error + Send + Sync>>,
) -> SqliteError {
    let error = ColumnError { column, text, source };
    SqliteError::FromSqlConversionFailure(0, Type::Text, Box::new(error))
}

/// Reads a column whose text `T` can be parsed from.
pub(super) fn parsed<T>(row: &Row<'_>, column: &'static str) -> rusqlite::Result<T>
where
    T: FromStr,
    T::Err: Error + Send + Sync + 'static,
{
    let text: String = row.get(column)?;
    text.parse().map_err(|source: T::Err| unfit(column, text, Some(Box::new(source))))
}

/// Like `parsed`, for a column that may be null.
pub(super) fn parsed_if_any<T>(row: &Row<'_>, column: &'static str) -> rusqlite::Result<Option<T>>
where
    T: FromStr,
    T::Err: Error + Send + Sync + 'static,
{
    match row.get_ref(column)? {
        rusqlite::types::ValueRef::Null => Ok(None),
        _ => parsed(row, column).map(Some),
    }
}

/// Reads a column that holds one of the spellings that `from_name` knows.
pub(super) fn named<T>(
    row: &Row<'_>,
    column: &'static str,
    from_name: fn(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    from_name(&text).ok_or_else(|| unfit(column, text, None))
}

/// Like `named`, for a column that may be null.
pub(super) fn named_if_any<T>(
    row: &Row<'_>,
    column: &'static str,
    from_name: fn(&str) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    match row.get_ref(column)? {
        rusqlite::types::ValueRef::Null => Ok(None),
        _ => named(row, column, from_name).map(Some),
    }
}

/// Reads a column that holds JSON.
pub(super) fn json<T: DeserializeOwned>(
    row: &Row<'_>,
    column: &'static str,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|source| unfit(column, text, Some(Box::new(source))))
}

/// Like `json`, for a column that may be null.
pub(super) fn json_if_any<T: DeserializeOwned>(
    row: &Row<'_>,
    column: &'static str,
) -> rusqlite::Result<Option<T>> {
    match row.get_ref(column)? {
        rusqlite::types::ValueRef::Null => Ok(None),
        _ => json(row, column).map(Some),
    }
}

/// Writes plain data as JSON.
pub(super) fn to_json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("plain data always serialises")
}

/// Reads a column of ms since the Unix epoch that may be null.
pub(super) fn instant_if_any(
    row: &Row<'_>,
    column: &'static str,
) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp))
}
