//! Are the programs there that agents need? Looks at files only; nothing is run.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use engine::agent::{Agent, RunnerKind};
use engine::ids::AgentId;
use engine::value::Value;

use crate::runner::process::environment::{self, Environment, Names};
use crate::runner::process::settings::ProcessSettings;

/// How much of a file's first line the system reads to find its interpreter, in bytes.
const FIRST_LINE_BYTES_MAX: u64 = 256;
/// Where Windows looks if `PATHEXT` is not set.
const PATH_EXT_DEFAULT: &str = ".COM;.EXE;.BAT;.CMD";

/// Where a program is looked up.
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'a> {
    /// The value of `PATH`. Relative folders in it are skipped: what they mean would depend on the
    /// working folder.
    pub path: Option<&'a OsStr>,
    /// The value of `PATHEXT`; used on Windows only.
    pub path_ext: Option<&'a OsStr>,
    /// What a program written as a relative path is relative to.
    pub working_folder: &'a Path,
}

impl<'a> Lookup<'a> {
    /// Looks programs up as a process with this environment and working folder would.
    pub fn new(environment: &'a Environment, working_folder: &'a Path) -> Lookup<'a> {
        Lookup {
            path: environment::get(environment, "PATH", Names::HERE),
            path_ext: environment::get(environment, "PATHEXT", Names::HERE),
            working_folder,
        }
    }
}

/// Why a program cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramError {
    /// No file of this name was found.
    NotFound {
        /// The program, as written.
        program: String,
        /// The folders that were searched, in order; for a path, the one folder it names.
        searched: Vec<PathBuf>,
    },
    /// There is such a file, but it may not be run.
    NotExecutable {
        /// The program, as written.
        program: String,
        /// The file.
        path: PathBuf,
    },
    /// The first line of the file asks for another program that cannot be run.
    Interpreter {
        /// The script.
        script: PathBuf,
        /// The program that its first line names, as far as it could be read.
        interpreter: String,
        /// Why that cannot be run.
        because: Box<ProgramError>,
    },
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramError::NotFound { program, searched } if has_folder(program) => {
                let folder = searched.first().map(|folder| folder.display().to_string());
                write!(f, "`{program}` was not found in {}", folder.unwrap_or_default())
            }
            ProgramError::NotFound { program, searched } if searched.is_empty() => {
                write!(f, "`{program}` was not found: PATH names no folder to search")
            }
            ProgramError::NotFound { program, searched } => {
                let folders: Vec<_> = searched.iter().map(|p| p.display().to_string()).collect();
                write!(f, "`{program}` was not found; searched: {}", folders.join(", "))
            }
            ProgramError::NotExecutable { path, .. } => {
                write!(f, "{} may not be run; make the file executable", path.display())
            }
            ProgramError::Interpreter { script, interpreter, because } => {
                write!(
                    f,
                    "the first line of {} asks for `{}`, which cannot be run: {because}",
                    script.display(),
                    interpreter.escape_debug()
                )?;
                if interpreter.ends_with('\r') {
                    write!(f, " (the line ends with a carriage return; save the file with LF)")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for ProgramError {}

/// Finds the file that a program's name or path means.
///
/// A name without a folder is looked up in `PATH`; anything else is a path, relative to the working
/// folder. The result is absolute if the working folder is.
pub fn find_program(program: &str, lookup: &Lookup<'_>) -> Result<PathBuf, ProgramError> {
    if has_folder(program) {
        let path = lookup.working_folder.join(program);
        let folder = path.parent().unwrap_or(lookup.working_folder).to_owned();
        let name = path.file_name().unwrap_or_default();
        return find_in(program, name, vec![folder], lookup.path_ext);
    }
    let folders = lookup.path.map(std::env::split_paths).into_iter().flatten();
    let folders = folders.filter(|folder| folder.is_absolute()).collect();
    find_in(program, OsStr::new(program), folders, lookup.path_ext)
}

fn find_in(
    program: &str,
    name: &OsStr,
    folders: Vec<PathBuf>,
    path_ext: Option<&OsStr>,
) -> Result<PathBuf, ProgramError> {
    let names = if cfg!(windows) { with_extensions(name, path_ext) } else { vec![name.to_owned()] };
    let mut not_executable = None;
    for path in folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))) {
        match kind_of(&path) {
            FileKind::Executable => return Ok(path),
            FileKind::Other => not_executable = not_executable.or(Some(path)),
            FileKind::Absent => {}
        }
    }
    let program = program.to_owned();
    Err(match not_executable {
        Some(path) => ProgramError::NotExecutable { program, path },
        None => ProgramError::NotFound { program, searched: folders },
    })
}

fn has_folder(program: &str) -> bool {
    program.contains('/') || (cfg!(windows) && program.contains(['\\', ':']))
}

/// The file names that a program's name may mean on Windows: as written if it has one of the
/// extensions of `PATHEXT`, else with each of them.
fn with_extensions(name: &OsStr, path_ext: Option<&OsStr>) -> Vec<OsString> {
    let list = path_ext.map(OsStr::to_string_lossy);
    let list = list.as_deref().filter(|list| !list.is_empty()).unwrap_or(PATH_EXT_DEFAULT);
    let extensions: Vec<&str> = list.split(';').filter(|e| e.starts_with('.')).collect();
    let lower = name.to_string_lossy().to_lowercase();
    if extensions.iter().any(|extension| lower.ends_with(&extension.to_lowercase())) {
        return vec![name.to_owned()];
    }
    let with = |extension: &&str| {
        let mut name = name.to_owned();
        name.push(extension.to_lowercase());
        name
    };
    extensions.iter().map(with).collect()
}

enum FileKind {
    Executable,
    Other,
    Absent,
}

fn kind_of(path: &Path) -> FileKind {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() && is_executable(path, &metadata) => {
            FileKind::Executable
        }
        Ok(metadata) if metadata.is_file() => FileKind::Other,
        _ => FileKind::Absent,
    }
}

#[cfg(unix)]
fn is_executable(path: &Path, _metadata: &std::fs::Metadata) -> bool {
    use rustix::fs::{Access, access};
    access(path, Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn is_executable(_path: &Path, _metadata: &std::fs::Metadata) -> bool {
    true
}

/// Checks that the program which a script's first line asks for can be run. Files that are no
/// scripts, or that may be run but not read, pass.
pub fn check_interpreter(script: &Path, lookup: &Lookup<'_>) -> Result<(), ProgramError> {
    if cfg!(windows) {
        return Ok(());
    }
    let Some(first_line) = first_line_of_script(script) else { return Ok(()) };
    let (interpreter, rest) = split_word(&first_line);
    if interpreter.is_empty() {
        return Ok(());
    }
    let failed = |name: &str, because: ProgramError| ProgramError::Interpreter {
        script: script.to_owned(),
        interpreter: name.to_owned(),
        because: Box::new(because),
    };
    find_program(interpreter, lookup).map_err(|error| failed(interpreter, error))?;
    if Path::new(interpreter.trim_end_matches('\r')).file_name() == Some(OsStr::new("env"))
        && let Some(name) = program_of_env(rest)
    {
        find_program(name, lookup).map_err(|error| failed(name, error))?;
    }
    Ok(())
}

fn first_line_of_script(path: &Path) -> Option<String> {
    let mut start = Vec::new();
    std::fs::File::open(path).ok()?.take(FIRST_LINE_BYTES_MAX).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?;
    let line = line.split(|&b| b == b'\n').next()?;
    Some(String::from_utf8_lossy(line).trim_matches([' ', '\t']).to_owned())
}

fn split_word(text: &str) -> (&str, &str) {
    text.split_once([' ', '\t']).unwrap_or((text, ""))
}

/// The program that the arguments of `env` name: the first that is neither an option nor a
/// variable.
fn program_of_env(arguments: &str) -> Option<&str> {
    arguments
        .split([' ', '\t'])
        .map(|word| word.strip_prefix("-S").unwrap_or(word))
        .find(|word| !word.is_empty() && !word.starts_with('-') && !word.contains('='))
}

/// Whether what an agent needs is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// The agent.
    pub agent: AgentId,
    /// What was found.
    pub state: ReadinessState,
}

/// See [`Readiness`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadinessState {
    /// The agent's kind of runner needs nothing.
    NothingNeeded,
    /// Its program is there.
    Found {
        /// The program, as written.
        program: String,
        /// The file.
        path: PathBuf,
    },
    /// Its program is missing or may not be run.
    Missing(ProgramError),
    /// It depends on a template, which only an execution resolves.
    Undecided {
        /// Which setting.
        setting: &'static str,
    },
    /// Its settings cannot be used.
    InvalidSettings {
        /// Why.
        message: String,
    },
}

impl Readiness {
    /// Whether an attempt would fail for want of what is missing.
    pub fn is_blocked(&self) -> bool {
        use ReadinessState::*;
        matches!(self.state, Missing(_) | InvalidSettings { .. })
    }
}

impl fmt::Display for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agent = &self.agent;
        match &self.state {
            ReadinessState::NothingNeeded => write!(f, "agent `{agent}` needs no program"),
            ReadinessState::Found { program, path } => {
                write!(f, "agent `{agent}`: `{program}` is {}", path.display())
            }
            ReadinessState::Missing(error) => write!(f, "agent `{agent}`: {error}"),
            ReadinessState::Undecided { setting } => {
                write!(f, "agent `{agent}`: only a run can tell, `{setting}` is a template")
            }
            ReadinessState::InvalidSettings { message } => {
                write!(f, "agent `{agent}` has settings that cannot be used: {message}")
            }
        }
    }
}

/// Looks for what agents need, as an attempt would, without running anything.
///
/// * `own`: the environment that Cyanotype runs in.
/// * `working_folder`: the folder it runs in, absolute.
pub fn readiness<'a>(
    agents: impl IntoIterator<Item = &'a Agent>,
    own: &Environment,
    working_folder: &Path,
) -> Vec<Readiness> {
    let of = |agent: &Agent| {
        let state = match agent.runner {
            RunnerKind::Process => process_state(agent, own, working_folder),
            RunnerKind::Echo | RunnerKind::Scripted => ReadinessState::NothingNeeded,
        };
        Readiness { agent: agent.id.clone(), state }
    };
    agents.into_iter().map(of).collect()
}

fn process_state(agent: &Agent, own: &Environment, working_folder: &Path) -> ReadinessState {
    let settings = match ProcessSettings::read(&Value::Object(agent.settings.clone())) {
        Ok(settings) => settings,
        Err(error) => return ReadinessState::InvalidSettings { message: error.to_string() },
    };
    let is_template = |text: &str| text.contains("{{") || text.contains("{%");
    if settings.cwd.as_deref().is_some_and(is_template) && has_folder(&settings.program) {
        return ReadinessState::Undecided { setting: "cwd" };
    }
    let sets_path =
        |(name, value): (&String, &String)| name.eq_ignore_ascii_case("PATH") && is_template(value);
    if settings.env.iter().any(sets_path) {
        return ReadinessState::Undecided { setting: "env.PATH" };
    }
    let environment = environment::of_agent(own, &settings, Names::HERE);
    let working_folder = settings.working_folder(working_folder);
    let lookup = Lookup::new(&environment, &working_folder);
    match find_program(&settings.program, &lookup) {
        Ok(path) => match check_interpreter(&path, &lookup) {
            Ok(()) => ReadinessState::Found { program: settings.program, path },
            Err(error) => ReadinessState::Missing(error),
        },
        Err(error) => ReadinessState::Missing(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_env_is_found_behind_options_and_variables() {
        for (arguments, program) in [
            ("node", Some("node")),
            ("-S node --flag", Some("node")),
            ("-Snode --flag", Some("node")),
            ("-i A=b python3 -u", Some("python3")),
            ("", None),
        ] {
            assert_eq!(program_of_env(arguments), program, "{arguments}");
        }
    }

    #[test]
    fn names_get_the_extensions_of_pathext_unless_they_have_one() {
        let names = |name: &str, ext: Option<&str>| {
            let names = with_extensions(OsStr::new(name), ext.map(OsStr::new));
            names.into_iter().map(|n| n.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(names("tool", Some(".EXE;.CMD")), ["tool.exe", "tool.cmd"]);
        assert_eq!(names("Tool.Cmd", Some(".EXE;.CMD")), ["Tool.Cmd"]);
        assert_eq!(names("tool.v2", Some(".EXE;;x")), ["tool.v2.exe"]);
        assert_eq!(names("t", None), ["t.com", "t.exe", "t.bat", "t.cmd"]);
    }

    #[test]
    fn messages_say_where_was_searched() {
        let error = ProgramError::NotFound {
            program: "mytool".to_owned(),
            searched: vec!["/usr/bin".into(), "/bin".into()],
        };
        assert_eq!(error.to_string(), "`mytool` was not found; searched: /usr/bin, /bin");
        let interpreter = ProgramError::Interpreter {
            script: "/x/run".into(),
            interpreter: "mytool".to_owned(),
            because: Box::new(error),
        };
        assert_eq!(
            interpreter.to_string(),
            "the first line of /x/run asks for `mytool`, which cannot be run: `mytool` was not \
             found; searched: /usr/bin, /bin"
        );
    }

    #[test]
    fn agents_without_a_program_are_ready() {
        let agents = [Agent::built_in_echo()];
        let ready = readiness(&agents, &Environment::new(), Path::new("/"));
        assert_eq!(ready[0].state, ReadinessState::NothingNeeded);
        assert!(!ready[0].is_blocked());
    }

    #[test]
    fn a_template_leaves_the_answer_to_the_run() {
        let mut agent = Agent::new("a", "A", RunnerKind::Process);
        agent.settings.insert("program", "./tool");
        agent.settings.insert("cwd", "{{ params.folder }}");
        let ready = readiness([&agent], &Environment::new(), Path::new("/"));
        assert_eq!(ready[0].state, ReadinessState::Undecided { setting: "cwd" });
    }
}
