//! The real binary, built once per test run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The `cyanotype` of this checkout, with the profile that these tests have; or the one that
/// `CYANOTYPE_BINARY` names, to test a binary that was built elsewhere.
pub fn path() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(named) = std::env::var_os("CYANOTYPE_BINARY") {
            return PathBuf::from(named);
        }
        // Beside this test: <target>/<profile>/deps/acceptance-….
        let tests = std::env::current_exe().expect("a test knows where it is");
        let profile = tests.ancestors().nth(2).expect("tests lie in <profile>/deps");
        let is_release = profile.ends_with("release");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "cyanotype-cli"]);
        build.args(is_release.then_some("--release"));
        build.current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(build.status().expect("cargo starts").success(), "the binary does not build");
        let name = format!("cyanotype{}", std::env::consts::EXE_SUFFIX);
        let built = profile.join(&name);
        assert!(built.is_file(), "{} is not there after it was built", built.display());
        built
    })
}

/// A call of the binary on a data folder of the test's own, apart from the person's settings.
pub fn cyanotype(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(path());
    command.args(arguments).env("CYANOTYPE_HOME", home);
    command.env_remove("CYANOTYPE_MAX_PROMPT_ADDITION_CHARS").env_remove("NO_COLOR");
    command
}
