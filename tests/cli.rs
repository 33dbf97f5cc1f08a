//! The command line as a person or a script meets it: the real binary, its output and exit codes.

mod agreement;
mod digits;
mod endings;
mod exchange;
mod golden;
mod interrupts;
mod real_files;
mod seeds;
mod streams;
mod terminal;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use engine::value::Value;
use tempfile::TempDir;

use crate::binary::cyanotype;

/// A data folder and a folder to work in, both of the test's own.
pub struct Desk {
    folder: TempDir,
}

/// What a command came to.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Desk {
    pub fn new() -> Desk {
        Desk { folder: TempDir::new().expect("a folder for the test") }
    }

    /// The data folder. Made by the first command that needs it.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// A file in the folder to work in.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into the folder to work in.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("the folder can be written");
        path
    }

    /// A command that runs in the folder to work in, with nothing on its standard input.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = cyanotype(&self.home(), arguments);
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("LC_ALL", "C.UTF-8").env_remove("TERM");
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> Done {
        Done::from(self.command(arguments).output().expect("the binary starts"))
    }

    /// Runs a command that has to end with 0, and gives what it printed.
    pub fn prints(&self, arguments: &[&str]) -> String {
        let done = self.run(arguments);
        assert_eq!(done.code, 0, "{arguments:?}: {done:?}");
        done.stdout
    }
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the binary prints UTF-8");
        Done {
            code: output.status.code().expect("the binary ends by itself"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Done {
    /// What it printed, as JSON lines.
    pub fn lines(&self) -> Vec<Value> {
        let read = |line: &str| {
            Value::parse(line).unwrap_or_else(|error| panic!("{error} in {line:?} of {self:?}"))
        };
        self.stdout.lines().map(read).collect()
    }

    /// The last line, which is the result.
    pub fn result(&self) -> Value {
        let last = self.lines().pop().unwrap_or_else(|| panic!("no line in {self:?}"));
        assert_eq!(text(&last, "type"), "result", "{self:?}");
        last
    }
}

/// The value at a path of keys.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// The text of a key.
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_else(|| panic!("no text {key} in {value:?}"))
}

/// A workflow of nodes that each name the agent of their own id, joined by edges `a>b`.
pub fn flow(name: &str, nodes: &[&str], edges: &[&str]) -> String {
    let nodes: Vec<String> =
        nodes.iter().map(|id| format!(r#"{{"id":"{id}","agentId":"{id}"}}"#)).collect();
    let edges: Vec<String> = edges
        .iter()
        .map(|edge| {
            let (source, target) = edge.split_once('>').expect("an edge is a>b");
            format!(r#"{{"id":"{edge}","source":"{source}","target":"{target}"}}"#)
        })
        .collect();
    format!(
        r#"{{"version":"1.0.0","name":"{name}","nodes":[{}],"edges":[{}]}}"#,
        nodes.join(","),
        edges.join(",")
    )
}

/// A file of agents, each with its kind of runner and its settings.
pub fn agents(agents: &[(&str, &str, &str)]) -> String {
    let agents: Vec<String> = agents
        .iter()
        .map(|(id, runner, settings)| {
            format!(r#"{{"id":"{id}","name":"{id}","runner":"{runner}","settings":{settings}}}"#)
        })
        .collect();
    format!(r#"{{"agents":[{}]}}"#, agents.join(","))
}

/// The settings of a process agent that runs a shell script.
pub fn script(script: &str) -> String {
    let script = Value::from(script).to_json();
    format!(r#"{{"program":"sh","args":["-c",{script}]}}"#)
}

/// Waits until a file is there, and gives what is in it.
pub fn wait_for_file(path: &Path) -> String {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if !text.is_empty() => return text,
            _ => assert!(std::time::Instant::now() < deadline, "{} never came", path.display()),
        }
        std::thread::yield_now();
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
}
