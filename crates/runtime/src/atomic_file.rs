//! Files that are replaced whole or not at all, and settings that are never thrown away because
//! they cannot be read.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use engine::time::Timestamp;

/// A file was not written. What was there before is unchanged.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot write {}; what was there before is unchanged: free some space, or choose another place",
    path.display()
)]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// Why not.
    #[source]
    pub source: io::Error,
}

/// What was found where settings should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundSettings<T> {
    /// No file: a first start.
    Absent,
    /// They could be read.
    Read(T),
    /// They could not, and now lie under another name. Tell the person, and go on with defaults.
    KeptAside {
        /// Where the damaged file is now.
        kept: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Writes a file so that a crash at any moment leaves either the old content or the new: into a
/// new file beside it, flushed to the disk, then renamed over it.
///
/// A link is followed; permissions of a file that was there are kept.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    replace(path, |file| file.write_all(bytes))
        .map_err(|source| WriteError { path: path.to_owned(), source })
}

/// Reads settings. A file that `parse` refuses is renamed to `<name>.corrupt-<time>`: unreadable is
/// not absent, and what a person wrote is not overwritten with defaults.
///
/// An error means that the file could not even be looked at, or not be renamed; it is where it was.
pub fn read_settings_or_keep_aside<T, E: Display>(
    path: &Path,
    now: Timestamp,
    parse: impl FnOnce(&[u8]) -> Result<T, E>,
) -> io::Result<FoundSettings<T>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(FoundSettings::Absent),
        Err(error) => return Err(error),
    };
    match parse(&bytes) {
        Ok(settings) => Ok(FoundSettings::Read(settings)),
        Err(reason) => {
            let kept = free_corrupt_name(path, now);
            fs::rename(path, &kept)?;
            sync_folder_of(path)?;
            Ok(FoundSettings::KeptAside { kept, reason: reason.to_string() })
        }
    }
}

/// Gives the bytes to `write`, with the new file to write them to.
fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    // A rename would put the file in the place of the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let new = new_name(&target);
    let written = write_new(&new, &target, write).and_then(|()| fs::rename(&new, &target));
    if written.is_err() {
        // The first error is the one to tell; the new file may not even exist.
        let _ = fs::remove_file(&new);
    }
    written?;
    sync_folder_of(&target)
}

fn write_new(
    new: &Path,
    target: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(new)?;
    write(&mut file)?;
    if let Ok(before) = fs::metadata(target) {
        file.set_permissions(before.permissions())?;
    }
    file.sync_all()
}

/// A name beside the target that no other write uses at the same time.
fn new_name(target: &Path) -> PathBuf {
    static N_WRITES: AtomicU64 = AtomicU64::new(0);
    let n = N_WRITES.fetch_add(1, Ordering::Relaxed);
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}-{n}.tmp", std::process::id()));
    folder_of(target).join(name)
}

/// Makes a rename in the folder of `path` survive a power cut.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    // Elsewhere a folder cannot be opened as a file, and need not be.
    #[cfg(unix)]
    File::open(folder_of(path))?.sync_all()?;
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    }
}

fn free_corrupt_name(path: &Path, now: Timestamp) -> PathBuf {
    // Colons are not allowed in file names everywhere.
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".corrupt-{}", now.to_rfc3339().replace(':', "-")));
    let mut free = PathBuf::from(&name);
    let mut n = 2;
    while free.exists() {
        let mut numbered = name.clone();
        numbered.push(format!("-{n}"));
        free = PathBuf::from(numbered);
        n += 1;
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &[u8] = b"{\"theme\": \"dark\"}";
    const NEW: &[u8] = b"{\"theme\": \"light\", \"zoom\": 1.25}";

    /// A full disk: takes so many bytes and no more.
    struct FullAfter<'a> {
        file: &'a mut File,
        bytes_left: usize,
    }

    impl Write for FullAfter<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n_bytes = bytes.len().min(self.bytes_left);
            if n_bytes == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            self.bytes_left -= n_bytes;
            self.file.write(&bytes[..n_bytes])
        }

        fn flush(&mut self) -> io::Result<()> {
            self.file.flush()
        }
    }

    fn names_in(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_created_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings é.json");
        write_atomically(&path, OLD).unwrap();
        assert_eq!(fs::read(&path).unwrap(), OLD);
        write_atomically(&path, NEW).unwrap();
        assert_eq!(fs::read(&path).unwrap(), NEW);
        assert_eq!(names_in(folder.path()), ["settings é.json"]);
    }

    #[test]
    fn o_d02_a_write_that_fails_at_any_byte_leaves_the_old_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        write_atomically(&path, OLD).unwrap();
        for bytes_left in 0..NEW.len() {
            let failed = replace(&path, |file| FullAfter { file, bytes_left }.write_all(NEW));
            assert_eq!(failed.unwrap_err().kind(), ErrorKind::StorageFull);
            assert_eq!(fs::read(&path).unwrap(), OLD, "after {bytes_left} bytes");
            assert_eq!(names_in(folder.path()), ["settings.json"], "nothing is left lying about");
        }
        replace(&path, |file| FullAfter { file, bytes_left: NEW.len() }.write_all(NEW)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), NEW);
    }

    #[test]
    fn o_d02_a_process_that_dies_at_any_byte_leaves_the_old_content_and_bars_no_later_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("export.json");
        write_atomically(&path, OLD).unwrap();
        for n_bytes in 0..=NEW.len() {
            // What is on disk when the process is killed before the rename.
            fs::write(new_name(&path), &NEW[..n_bytes]).unwrap();
            assert_eq!(fs::read(&path).unwrap(), OLD);
        }
        write_atomically(&path, NEW).unwrap();
        assert_eq!(fs::read(&path).unwrap(), NEW);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("absent").join("export.json");
        let error = write_atomically(&path, NEW).unwrap_err();
        assert!(error.to_string().contains("export.json"), "{error}");
        assert_eq!(error.source.kind(), ErrorKind::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_permissions_stay_as_they_were() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, OLD).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_atomically(&link, NEW).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), NEW);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn writes_at_the_same_time_leave_one_of_the_contents_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        let writes: Vec<_> = (0..8u8)
            .map(|n| {
                let path = path.clone();
                std::thread::spawn(move || {
                    for _ in 0..20 {
                        write_atomically(&path, &[n; 5_000]).unwrap();
                    }
                })
            })
            .collect();
        for write in writes {
            write.join().unwrap();
        }
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.len() == 5_000 && bytes.iter().all(|byte| *byte == bytes[0]));
    }

    fn read(path: &Path) -> FoundSettings<serde_json::Value> {
        read_settings_or_keep_aside(path, Timestamp(0), |bytes| serde_json::from_slice(bytes))
            .unwrap()
    }

    #[test]
    fn settings_that_are_absent_are_not_damaged() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(&folder.path().join("settings.json")), FoundSettings::Absent);
    }

    #[test]
    fn o_d02_damaged_settings_are_kept_under_another_name_and_new_ones_can_be_written() {
        for damaged in [&OLD[..OLD.len() - 3], b"", &[0; 512]] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("settings.json");
            fs::write(&path, damaged).unwrap();
            let FoundSettings::KeptAside { kept, reason } = read(&path) else {
                panic!("{damaged:?} was read");
            };
            assert!(!reason.is_empty());
            let name = "settings.json.corrupt-1970-01-01T00-00-00.000Z";
            assert_eq!(kept, folder.path().join(name));
            assert_eq!(fs::read(&kept).unwrap(), damaged);
            write_atomically(&path, NEW).unwrap();
            assert!(matches!(read(&path), FoundSettings::Read(_)));
            assert_eq!(fs::read(&kept).unwrap(), damaged);
        }
    }

    #[test]
    fn settings_damaged_twice_in_one_moment_are_both_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        let mut kept_files = Vec::new();
        for damaged in ["first", "second"] {
            fs::write(&path, damaged).unwrap();
            let FoundSettings::KeptAside { kept, .. } = read(&path) else {
                panic!("{damaged} was read");
            };
            kept_files.push(kept);
        }
        assert_eq!(fs::read(&kept_files[0]).unwrap(), b"first");
        assert_eq!(fs::read(&kept_files[1]).unwrap(), b"second");
    }

    #[test]
    fn settings_that_cannot_be_looked_at_are_an_error_and_stay_where_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        fs::create_dir(&path).unwrap();
        let found = read_settings_or_keep_aside(&path, Timestamp(0), |_| Ok::<_, String>(()));
        assert!(found.is_err());
        assert!(path.is_dir());
    }
}
