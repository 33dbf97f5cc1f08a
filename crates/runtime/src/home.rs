//! Where Cyanotype keeps its data unless it is told otherwise.

use std::path::PathBuf;

/// The data folder of the user who runs this process; `None` if the system names none.
pub fn default_home() -> Option<PathBuf> {
    let folders = directories::ProjectDirs::from("", "", "cyanotype")?;
    Some(folders.data_dir().to_owned())
}
