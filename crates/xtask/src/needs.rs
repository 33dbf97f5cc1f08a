//! What has to be on the machine before anything is built, and how it gets there.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::workspace::{cargo, succeeds};

/// A program that has to be there.
struct Need {
    /// What it is, for messages.
    name: &'static str,
    /// What it is needed for.
    purpose: &'static str,
    /// Any one of these answering is enough.
    probes: &'static [&'static [&'static str]],
    /// The Debian package that brings it.
    debian: &'static str,
    /// What a person does on a system where we do not install it ourselves.
    elsewhere: &'static str,
}

const C_COMPILER: Need = Need {
    name: "a C compiler",
    purpose: "to build the bundled SQLite",
    probes: &[&["cc", "--version"], &["gcc", "--version"], &["clang", "--version"]],
    debian: "build-essential",
    elsewhere: if cfg!(target_os = "macos") {
        "xcode-select --install"
    } else {
        "install gcc or clang with your system's package manager"
    },
};

const GIT: Need = Need {
    name: "git",
    purpose: "for the blueprint that reports on a repository",
    probes: &[&["git", "--version"]],
    debian: "git",
    elsewhere: if cfg!(target_os = "macos") {
        "xcode-select --install"
    } else if cfg!(windows) {
        "install Git for Windows from https://git-scm.com"
    } else {
        "install git with your system's package manager"
    },
};

/// Makes sure that the product can be built.
pub fn provide_build_tools() -> Result<(), String> {
    // On Windows the compiler comes with the linker that Rust itself already needed, outside PATH.
    if cfg!(windows) { Ok(()) } else { provide(&[C_COMPILER]) }
}

/// Makes sure that every test can run.
pub fn provide_test_tools() -> Result<(), String> {
    if cfg!(windows) { provide(&[GIT]) } else { provide(&[C_COMPILER, GIT]) }?;
    provide_rust_component("rustfmt", &["fmt", "--version"])?;
    provide_rust_component("clippy", &["clippy", "--version"])
}

fn provide(needs: &[Need]) -> Result<(), String> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !is_present(need)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if can_install_debian_packages() {
        install_debian_packages(&missing)?;
        if missing.iter().all(|need| is_present(need)) {
            return Ok(());
        }
    }
    Err(missing.iter().map(|need| complaint(need)).collect::<Vec<_>>().join("\n"))
}

fn is_present(need: &Need) -> bool {
    need.probes.iter().any(|probe| succeeds(Command::new(probe[0]).args(&probe[1..])))
}

fn complaint(need: &Need) -> String {
    let how = if Path::new("/etc/debian_version").exists() {
        format!("sudo apt-get install --no-install-recommends {}", need.debian)
    } else {
        need.elsewhere.to_string()
    };
    format!("{} is missing; it is needed {}. To get it: {how}", need.name, need.purpose)
}

/// Only on Debian and its relatives, and only as root: nobody is asked for a password.
fn can_install_debian_packages() -> bool {
    let is_root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    is_root && Path::new("/etc/debian_version").exists()
}

fn install_debian_packages(missing: &[&Need]) -> Result<(), String> {
    let packages: Vec<&str> = missing.iter().map(|need| need.debian).collect();
    println!("Installing {} ({})", packages.join(", "), reasons(missing));
    apt_get(&["update", "--quiet"])?;
    let mut install = vec!["install", "--quiet", "--yes", "--no-install-recommends"];
    install.extend(&packages);
    apt_get(&install)
}

fn reasons(missing: &[&Need]) -> String {
    missing.iter().map(|need| need.purpose).collect::<Vec<_>>().join(", ")
}

fn apt_get(args: &[&str]) -> Result<(), String> {
    let status = Command::new("apt-get")
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot start apt-get: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("apt-get {} failed", args.join(" "))) }
}

fn provide_rust_component(name: &str, probe: &[&str]) -> Result<(), String> {
    if succeeds(&mut cargo(probe)) {
        return Ok(());
    }
    println!("Installing the Rust component {name}");
    let installed = succeeds(Command::new("rustup").args(["component", "add", name]));
    if installed && succeeds(&mut cargo(probe)) {
        return Ok(());
    }
    Err(format!("{name} is missing. To get it: rustup component add {name}"))
}
