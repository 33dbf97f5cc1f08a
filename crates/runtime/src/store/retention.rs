//! Letting old executions go, and giving their room back to the disk.

use engine::ids::ExecutionId;
use engine::time::Timestamp;
use rusqlite::{Connection, OptionalExtension};

use crate::store::error::StoreError;
use crate::store::{Store, blob_table, execution_table, plan_table};

/// How many expired executions are looked up at a time.
const BATCH: i64 = 100;
/// How many pages one transaction gives back, so that appends wait a few milliseconds at most.
const PAGES_PER_VACUUM: u32 = 500;

/// Which settled executions are kept. What is not settled always is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// So many of those that ended last.
    pub n_max: u32,
    /// Those that ended within so many ms.
    pub age_ms_max: u64,
}

impl Store {
    /// Removes every settled execution that is beyond one of the limits, and gives how many there
    /// were. Each goes in a transaction of its own, between the appends of others.
    pub async fn remove_expired(
        &self,
        retention: Retention,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let mut n_removed = 0;
        loop {
            let expired = self
                .off_thread(move |store| store.read(|conn| Ok(expired(conn, retention, now)?)))
                .await?;
            if expired.is_empty() {
                return Ok(n_removed);
            }
            for key in expired {
                self.write(move |conn| remove(conn, key)).await?;
                n_removed += 1;
            }
        }
    }

    /// Removes a settled execution with everything that only it needs. Gives whether there was
    /// one.
    pub async fn remove_execution(&self, execution: ExecutionId) -> Result<bool, StoreError> {
        self.write(move |conn| {
            let Some(key) = execution_table::settled_key(conn, execution)? else {
                return Ok(false);
            };
            remove(conn, key)?;
            Ok(true)
        })
        .await
    }

    /// Gives the room of what was removed back to the disk, a little at a time.
    pub async fn free_space(&self) -> Result<(), StoreError> {
        while self.write(free_some_pages).await? {}
        Ok(())
    }
}

fn expired(conn: &Connection, retention: Retention, now: Timestamp) -> rusqlite::Result<Vec<i64>> {
    let age_ms_max = i64::try_from(retention.age_ms_max).unwrap_or(i64::MAX);
    let ended_before = now.0.saturating_sub(age_ms_max);
    let mut statement = conn.prepare_cached(
        "SELECT key FROM execution WHERE is_settled AND ended_ms < ?1
         UNION
         SELECT key FROM (SELECT key FROM execution WHERE is_settled
                          ORDER BY ended_ms DESC, key DESC LIMIT ?3 OFFSET ?2)
         LIMIT ?3",
    )?;
    statement
        .query_map([ended_before, i64::from(retention.n_max), BATCH], |row| row.get(0))?
        .collect()
}

fn remove(conn: &Connection, key: i64) -> Result<(), StoreError> {
    let Some((plan, document)) = conn
        .prepare_cached("SELECT plan, document FROM execution WHERE key = ?1")?
        .query_row([key], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))
        .optional()?
    else {
        return Ok(());
    };
    let mut blobs = blob_table::used_by(conn, key)?;
    blobs.push(document);
    conn.prepare_cached("DELETE FROM execution WHERE key = ?1")?.execute([key])?;
    blobs.extend(plan_table::remove_if_unused(conn, &plan)?);
    for blob in blobs {
        blob_table::remove_if_unused(conn, blob)?;
    }
    Ok(())
}

/// Whether there is more to be had: some pages were given back, and some are left.
fn free_some_pages(conn: &Connection) -> Result<bool, StoreError> {
    let n_free = || conn.pragma_query_value(None, "freelist_count", |row| row.get::<_, i64>(0));
    let before = n_free()?;
    conn.execute_batch(&format!("PRAGMA incremental_vacuum({PAGES_PER_VACUUM})"))?;
    let after = n_free()?;
    Ok(after > 0 && after < before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixture::{
        append, create, execution_id, new_store, settling, started, started_with,
    };
    use engine::limits::INLINE_PAYLOAD_BYTES_MAX;
    use engine::payload::Payload;

    const KEEP_ALL: Retention = Retention { n_max: u32::MAX, age_ms_max: u64::MAX };

    fn long_payload(letter: &str) -> Payload {
        Payload::parse(&format!("\"{}\"", letter.repeat(INLINE_PAYLOAD_BYTES_MAX))).unwrap()
    }

    async fn settle(store: &Store, n: u128, ended_ms: i64) {
        let mut last = settling(append(n, 1, 1));
        last.summary.ended_at = Some(Timestamp(ended_ms));
        store.append(last).await.durable().await.unwrap();
    }

    fn left(store: &Store) -> Vec<u128> {
        let page = store.executions(&Default::default(), None).unwrap();
        page.executions.iter().map(|summary| summary.id.0.as_u128()).collect()
    }

    #[tokio::test]
    async fn settled_executions_go_by_age_and_by_number_and_unsettled_ones_stay() {
        let (_folder, store) = new_store();
        for n in 1..=6 {
            create(&store, started(n)).await;
            if n != 2 {
                settle(&store, n, 1_000 * n as i64).await;
            }
        }
        assert_eq!(store.remove_expired(KEEP_ALL, Timestamp(i64::MAX)).await.unwrap(), 0);
        let young = Retention { age_ms_max: 6_500, ..KEEP_ALL };
        assert_eq!(store.remove_expired(young, Timestamp(10_000)).await.unwrap(), 2);
        assert_eq!(left(&store), [6, 5, 4, 2], "2 has not ended");
        let few = Retention { n_max: 1, ..KEEP_ALL };
        assert_eq!(store.remove_expired(few, Timestamp(10_000)).await.unwrap(), 2);
        assert_eq!(left(&store), [6, 2]);
        assert!(matches!(store.journal(execution_id(4)), Err(StoreError::UnknownExecution { .. })));
    }

    #[tokio::test]
    async fn texts_that_others_need_stay_and_the_rest_goes() {
        let (_folder, store) = new_store();
        let (shared, own) = (long_payload("s"), long_payload("o"));
        create(&store, started_with(1, &shared)).await;
        create(&store, started_with(2, &shared)).await;
        create(&store, started_with(3, &own)).await;
        for n in 1..=3 {
            settle(&store, n, 1_000).await;
        }
        for n in [1, 3] {
            assert!(store.remove_execution(execution_id(n)).await.unwrap());
        }
        assert_eq!(store.journal(execution_id(2)).unwrap().len(), 2);
        assert!(store.text(own.digest()).is_err());
        let document = store.execution(execution_id(2)).unwrap().unwrap().document;
        store.text(document).unwrap();
        assert!(store.remove_execution(execution_id(2)).await.unwrap());
        for digest in [shared.digest(), document] {
            assert!(store.text(digest).is_err(), "nobody needs it any more");
        }
        let n_rows: i64 = store
            .read(|conn| {
                Ok(conn.query_row(
                    "SELECT (SELECT count(*) FROM blob) + (SELECT count(*) FROM plan)
                         + (SELECT count(*) FROM record) + (SELECT count(*) FROM node_result)
                         + (SELECT count(*) FROM blob_use)",
                    [],
                    |row| row.get(0),
                )?)
            })
            .unwrap();
        assert_eq!(n_rows, 0);
    }

    #[tokio::test]
    async fn an_execution_that_is_not_settled_cannot_be_removed() {
        let (_folder, store) = new_store();
        create(&store, started(1)).await.durable().await.unwrap();
        assert!(!store.remove_execution(execution_id(1)).await.unwrap());
        assert!(!store.remove_execution(execution_id(9)).await.unwrap());
        assert_eq!(left(&store), [1]);
    }

    #[tokio::test]
    async fn the_room_of_what_was_removed_goes_back_to_the_disk() {
        let (folder, store) = new_store();
        for n in 1..=40 {
            let payload = long_payload(&char::from_u32(0x100 + n as u32).unwrap().to_string());
            create(&store, started_with(n, &payload)).await;
            settle(&store, n, 1_000).await;
        }
        let database = folder.path().join("cyanotype.db");
        let bytes = || std::fs::metadata(&database).unwrap().len();
        store.close();
        let before = bytes();
        let store = crate::store::fixture::reopen(&folder);
        let none = Retention { n_max: 0, ..KEEP_ALL };
        assert_eq!(store.remove_expired(none, Timestamp(2_000)).await.unwrap(), 40);
        store.free_space().await.unwrap();
        store.close();
        assert!(bytes() < before / 4, "{before} bytes became {}", bytes());
    }
}
