//! The log: one JSON object a line, in a file below the data folder that is rotated by size.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;

/// Below the data folder.
const FOLDER: &str = "logs";
/// The file that is written to; older ones are `cyanotype.log.1` to `.4`, the newest first.
const FILE: &str = "cyanotype.log";
/// A file that has grown beyond this, in bytes, is set aside.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// So many older files are kept.
const OLD_FILES_MAX: u32 = 4;

/// Starts logging for this process, into the data folder. Only the first call of a process has an
/// effect. Gives the file that is written to.
///
/// Fields: `timestamp`, `level`, `component`, `action`, and where they apply `executionId`,
/// `workflowId`, `nodeId`, `agentId`, `attempt`; on retries `retryCount`, `error`,
/// `nextRetryDelay` (seconds).
///
/// # Errors
/// If the file cannot be opened for writing. Nothing depends on the log: go on without it.
pub fn start(home: &Path) -> io::Result<PathBuf> {
    let path = home.join(FOLDER).join(FILE);
    let log = RotatingFile::open(path.clone(), FILE_BYTES_MAX)?;
    // An error means that this process logs already.
    let _ = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_target(false)
        .with_current_span(false)
        .with_span_list(false)
        .with_max_level(Level::INFO)
        .with_writer(log)
        .try_init();
    Ok(path)
}

/// A file that is set aside when it has grown too long. Several processes may write to it; each
/// appends whole lines.
struct RotatingFile {
    path: PathBuf,
    bytes_max: u64,
    file: Mutex<File>,
}

impl RotatingFile {
    fn open(path: PathBuf, bytes_max: u64) -> io::Result<RotatingFile> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = Mutex::new(append_to(&path)?);
        Ok(RotatingFile { path, bytes_max, file })
    }

    fn write_line(&self, line: &[u8]) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.metadata()?.len() > self.bytes_max {
            // Where another process has just done the same, this sets a short file aside: lines
            // stay in order within each file, and none is lost.
            set_aside(&self.path);
            *file = append_to(&self.path)?;
        }
        file.write_all(line)
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Makes room for a new file. What cannot be renamed stays where it is.
fn set_aside(path: &Path) {
    let old = |n: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{n}"));
        PathBuf::from(name)
    };
    for n in (1..OLD_FILES_MAX).rev() {
        let _ = fs::rename(old(n), old(n + 1));
    }
    let _ = fs::rename(path, old(1));
}

/// One entry being written.
struct Line<'a> {
    log: &'a RotatingFile,
    bytes: Vec<u8>,
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        // A log that cannot be written stops nothing.
        let _ = self.log.write_line(&self.bytes);
    }
}

impl<'a> MakeWriter<'a> for RotatingFile {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { log: self, bytes: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn a_long_log_is_set_aside_and_the_oldest_goes() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(FOLDER).join(FILE);
        let log = RotatingFile::open(path.clone(), 100).unwrap();
        for n in 0..200 {
            log.write_line(format!("{{\"line\":{n:06}}}\n").as_bytes()).unwrap();
        }
        let names: Vec<String> = fs::read_dir(path.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(names.len(), 1 + OLD_FILES_MAX as usize, "{names:?}");
        let newest = fs::read_to_string(&path).unwrap();
        assert!(newest.ends_with("{\"line\":000199}\n"), "{newest}");
        assert!(fs::metadata(&path).unwrap().len() <= 120);
    }

    #[test]
    fn entries_are_json_with_the_fields_that_operators_know() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(FILE);
        let log = RotatingFile::open(path.clone(), FILE_BYTES_MAX).unwrap();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_target(false)
            .with_writer(log)
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(
                component = "driver",
                action = "retry_node",
                nodeId = "a",
                retryCount = 2,
                nextRetryDelay = 4.7
            );
        });
        let text = fs::read_to_string(&path).unwrap();
        let entry: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
        assert_eq!(entry["level"], "WARN");
        assert_eq!(entry["component"], "driver");
        assert_eq!(entry["action"], "retry_node");
        assert_eq!(entry["nodeId"], "a");
        assert_eq!(entry["retryCount"], 2);
        assert_eq!(entry["nextRetryDelay"], 4.7);
        assert!(entry["timestamp"].is_string());
    }
}
