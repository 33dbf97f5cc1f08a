//! The tree itself: which crate may know which, and what must never be committed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// What the engine may use. Everything here is free of clocks, threads and input or output in the
/// way it is used; a new name needs the same.
const ENGINE_MAY_USE: [&str; 11] = [
    "indexmap",
    "minijinja",
    "petgraph",
    "rand",
    "rand_chacha",
    "schemars",
    "serde",
    "serde_json",
    "sha2",
    "thiserror",
    "uuid",
];

/// Which workspace crates each workspace crate may use.
const MAY_USE: [(&str, &[&str]); 5] = [
    ("cyanotype-engine", &[]),
    ("cyanotype-runtime", &["cyanotype-engine"]),
    ("cyanotype-cli", &["cyanotype-engine", "cyanotype-runtime"]),
    ("xtask", &[]),
    ("acceptance", &["cyanotype-engine", "cyanotype-runtime", "cyanotype-cli"]),
];

/// Licences under which a dependency may ship with ours.
const LICENCES: [&str; 12] = [
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "LLVM-exception",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "CC0-1.0",
    "Zlib",
];

/// One dependency as a crate's manifest names it.
struct Dependency {
    name: String,
    features: Vec<String>,
    uses_default_features: bool,
    is_dev: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is below the root").into()
}

/// What cargo knows about the workspace, without asking anybody.
fn metadata(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("metadata is JSON")
}

/// The platform these tests were built on.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").current_dir(root()).output().expect("rustc runs");
    let said = String::from_utf8(output.stdout).expect("rustc writes text");
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.expect("rustc names its host").to_string()
}

/// The direct dependencies of every workspace crate.
fn dependencies() -> BTreeMap<String, Vec<Dependency>> {
    let metadata = metadata(&["--no-deps"]);
    elements(&metadata["packages"])
        .map(|package| (text(&package["name"]), elements(&package["dependencies"]).map(dependency)))
        .map(|(name, dependencies)| (name, dependencies.collect()))
        .collect()
}

fn dependency(value: &Value) -> Dependency {
    Dependency {
        name: text(&value["name"]),
        features: elements(&value["features"]).map(text).collect(),
        uses_default_features: value["uses_default_features"] == true,
        is_dev: value["kind"] == "dev",
    }
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("an array").iter()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a string").to_string()
}

/// The paths of all files that belong to the repository, relative to its root, with `/`.
fn tracked_files() -> Vec<String> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git runs; these tests need a clone");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listing = String::from_utf8(output.stdout).expect("paths are UTF-8");
    let mut files: Vec<String> = listing.split_terminator('\0').map(String::from).collect();
    files.retain(|file| root().join(file).is_file());
    assert!(files.len() > 20, "the listing is too short to be the whole tree: {files:?}");
    files
}

/// The content of a tracked file, or `None` if it is not text.
fn content(file: &str) -> Option<String> {
    String::from_utf8(fs::read(root().join(file)).expect("a tracked file can be read")).ok()
}

fn rust_files(folder: &str) -> Vec<String> {
    tracked_files()
        .into_iter()
        .filter(|file| file.starts_with(folder) && file.ends_with(".rs"))
        .collect()
}

#[test]
fn the_engine_uses_nothing_but_its_allow_list() {
    let all = dependencies();
    let engine = &all["cyanotype-engine"];
    for dependency in engine.iter().filter(|dependency| !dependency.is_dev) {
        assert!(
            ENGINE_MAY_USE.contains(&dependency.name.as_str()),
            "crates/engine uses {}, which is not on the list in tests/tidy.rs",
            dependency.name
        );
    }
}

#[test]
fn the_engine_cannot_reach_an_unseeded_random_source() {
    let all = dependencies();
    for dependency in &all["cyanotype-engine"] {
        match dependency.name.as_str() {
            "rand" | "rand_chacha" => assert!(
                !dependency.uses_default_features && dependency.features.is_empty(),
                "{} must come without features: some of them read the system's randomness",
                dependency.name
            ),
            "uuid" => assert_eq!(
                dependency.features,
                ["serde"],
                "the other features of uuid make new ids, which the engine must be given"
            ),
            _ => (),
        }
    }
}

#[test]
fn crates_know_each_other_in_one_direction_only() {
    let all = dependencies();
    let ours: BTreeSet<&String> = all.keys().collect();
    let allowed: BTreeMap<&str, &[&str]> = MAY_USE.into_iter().collect();
    for (name, dependencies) in &all {
        let may_use = allowed.get(name.as_str()).unwrap_or_else(|| {
            panic!("{name} is new: say in tests/tidy.rs which workspace crates it may use")
        });
        for dependency in dependencies.iter().filter(|used| ours.contains(&used.name)) {
            assert!(
                may_use.contains(&dependency.name.as_str()),
                "{name} must not use {}",
                dependency.name
            );
        }
    }
}

#[test]
fn every_dependency_has_a_licence_that_may_ship_with_ours() {
    // Packages of other platforms were never fetched here, so their licences cannot be seen.
    let metadata = metadata(&["--filter-platform", &host()]);
    for package in elements(&metadata["packages"]) {
        let name = text(&package["name"]);
        let licence = package["license"].as_str().unwrap_or("");
        let words = licence.split(['(', ')', '/', ' ']).filter(|word| !word.is_empty());
        let names: Vec<&str> = words.filter(|word| !["AND", "OR", "WITH"].contains(word)).collect();
        let known = names.iter().all(|word| LICENCES.contains(word));
        assert!(known && !names.is_empty(), "{name} has the licence {licence:?}");
    }
}

#[test]
fn only_the_desktop_shell_knows_tauri() {
    for (name, dependencies) in dependencies() {
        let tauri = dependencies.iter().find(|dependency| dependency.name.contains("tauri"));
        if let Some(dependency) = tauri {
            assert_eq!(name, "cyanotype-desktop", "{name} must not use {}", dependency.name);
        }
    }
}

#[test]
fn petgraph_is_named_only_where_definitions_are_compiled() {
    for file in rust_files("crates/") {
        let is_home = file.starts_with("crates/engine/src/plan/compile");
        let names_it = content(&file).is_some_and(|text| text.contains("petgraph"));
        assert!(is_home || !names_it, "{file} names petgraph; only plan/compile may");
    }
}

/// rustc ignores a file that nothing declares, so its tests would pass by never running.
#[test]
fn every_rust_file_is_declared_by_its_parent() {
    let files: BTreeSet<String> = tracked_files().into_iter().collect();
    for file in files.iter().filter(|file| file.ends_with(".rs")) {
        let path = Path::new(file);
        let folder = path.parent().expect("a file lies in a folder");
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a UTF-8 name");
        let is_root = ["main", "lib", "build"].contains(&stem)
            || folder.ends_with("benches")
            || folder.ends_with("bin")
            || (file.starts_with("crates/") && folder.ends_with("tests"));
        if is_root {
            continue;
        }
        let parents = [folder.with_extension("rs"), folder.join("lib.rs"), folder.join("main.rs")];
        let declares = |parent: &PathBuf| {
            let text = fs::read_to_string(root().join(parent)).unwrap_or_default();
            text.lines().any(|line| {
                let line = line.trim();
                let line = line.strip_prefix("pub").unwrap_or(line);
                let line = line.strip_prefix("(crate)").unwrap_or(line);
                let line = line.strip_prefix("(super)").unwrap_or(line);
                line.trim_start() == format!("mod {stem};")
            })
        };
        assert!(parents.iter().any(declares), "{file} is not declared by any of {parents:?}");
    }
}

#[test]
fn a_module_lies_beside_its_folder() {
    for file in rust_files("") {
        let old_style = Path::new(&file).file_name().is_some_and(|name| name == "mod.rs");
        assert!(!old_style, "{file}: write foo.rs beside foo/ instead of foo/mod.rs");
    }
}

#[test]
fn no_test_is_switched_off() {
    let mark = concat!("#[", "ignore");
    for file in rust_files("") {
        let found = content(&file).is_some_and(|text| text.contains(mark));
        assert!(!found, "{file} switches a test off; assert the known behaviour with a note");
    }
}

#[test]
fn no_file_names_a_path_of_the_machine_it_was_written_on() {
    // A clone right below the root, such as /src, has a name that means other things in texts.
    let clone = root();
    let clone = if clone.components().count() > 2 { clone.to_str() } else { None };
    let mut marks = vec![concat!("/ho", "me/"), concat!("/Us", "ers/"), r"C:\Users"];
    marks.extend(clone);
    for file in tracked_files().iter().filter(|file| file.as_str() != "tests/tidy.rs") {
        let Some(text) = content(file) else { continue };
        for mark in &marks {
            assert!(!text.contains(mark), "{file} contains {mark}, a path of one machine");
        }
    }
}

#[test]
fn no_file_names_a_package_registry() {
    for file in tracked_files() {
        let name = file.rsplit('/').next().expect("a path has a last part");
        assert!(name != ".npmrc", "{file}: which registry is used is the machine's own matter");
        let text = content(&file).unwrap_or_default();
        match name {
            "Cargo.lock" => {
                let index = r#"source = "registry+https://github.com/rust-lang/crates.io-index""#;
                for line in text.lines().filter(|line| line.starts_with("source = ")) {
                    assert_eq!(line, index, "{file} names another source than crates.io");
                }
            }
            "package-lock.json" => {
                let resolved = text.contains(r#""resolved": "http"#);
                assert!(
                    !resolved,
                    "{file} names hosts; make it with npm's omit-lockfile-registry-resolved"
                );
            }
            "config.toml" => {
                let replaces = text.contains("[source") || text.contains("[registr");
                assert!(!replaces, "{file} replaces the registry");
            }
            _ => (),
        }
    }
}

#[test]
fn documents_name_files_that_are_there() {
    for file in tracked_files().iter().filter(|file| file.ends_with(".md")) {
        let text = content(file).expect("Markdown is text");
        let folder = root().join(file).parent().expect("a file lies in a folder").to_path_buf();
        for link in links(&text) {
            assert!(folder.join(link).exists(), "{file} links to {link}, which is not there");
        }
        for path in quoted_paths(&text) {
            assert!(root().join(path).exists(), "{file} names {path}, which is not there");
        }
    }
}

/// The targets of Markdown links that lead to other files of the tree.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let paths = targets.map(|target| target.split('#').next().unwrap_or_default());
    paths.filter(|path| !path.is_empty() && !path.contains("://"))
}

/// What stands between backquotes and looks like a path from the root of the tree.
fn quoted_paths(text: &str) -> impl Iterator<Item = &str> {
    let folders = ["crates/", "tests/", "blueprints/"];
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter(move |quoted| folders.iter().any(|folder| quoted.starts_with(folder)))
        .filter(|quoted| !quoted.contains(['<', '*', ' ', '\n']))
}
