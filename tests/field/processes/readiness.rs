//! O-P04: what is missing is known before a run, and looking runs nothing (O-S03).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use engine::agent::{Agent, RunnerKind};
use engine::value::{Object, Value};
use runtime::preflight::{ProgramError, Readiness, ReadinessState, readiness};
use runtime::runner::process::ProcessLimits;

use super::{Asked, World, write_program};

const BARE_PATH: &str = "/usr/bin:/bin";

fn path(value: &str) -> BTreeMap<OsString, OsString> {
    BTreeMap::from([("PATH".into(), value.into())])
}

fn agent(settings: &[(&str, Value)]) -> Agent {
    let mut agent = Agent::new("mine", "Mine", RunnerKind::Process);
    agent.settings = settings.iter().map(|(key, value)| (*key, value.clone())).collect();
    agent
}

fn state(agent: &Agent, path_value: &str, folder: &Path) -> Readiness {
    let mut all = readiness([agent], &path(path_value), folder);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[test]
fn op04_a_command_outside_path_is_not_ready_until_its_folder_is_added() {
    let world = World::new();
    let tools = world.home.path().join("my tools");
    write_program(&tools.join("mytool"), "#!/bin/sh\ntouch marker; echo '\"ran\"'\n");
    let mine = agent(&[("program", "mytool".into())]);
    let ready = state(&mine, BARE_PATH, world.home.path());
    assert!(ready.is_blocked());
    assert_eq!(ready.to_string(), "agent `mine`: `mytool` was not found; searched: /usr/bin, /bin");
    let ran =
        World::with(ProcessLimits::default(), path(BARE_PATH)).run(&Asked::program("mytool", &[]));
    assert_eq!(ran.failure().error_type, "programNotFound");
    assert!(ran.failure().message.ends_with("searched: /usr/bin, /bin"));

    let longer = format!("{BARE_PATH}:{}", tools.display());
    let ready = state(&mine, &longer, world.home.path());
    let expected = ReadinessState::Found { program: "mytool".into(), path: tools.join("mytool") };
    assert_eq!(ready.state, expected);
    let with_path = agent(&[
        ("program", "mytool".into()),
        ("env", Object::from_iter([("PATH", longer.as_str())]).into()),
    ]);
    assert_eq!(state(&with_path, BARE_PATH, world.home.path()).state, expected);
    assert!(!world.home.path().join("marker").exists(), "looking has run something");

    let longer_world = World::with(ProcessLimits::default(), path(&longer));
    assert_eq!(longer_world.run(&Asked::program("mytool", &[])).output(), "\"ran\"");
    assert!(longer_world.home.path().join("marker").exists());
}

#[test]
fn op04_the_interpreter_that_a_script_asks_for_is_looked_up_too() {
    let world = World::new();
    let tools = world.home.path().join("tools");
    write_program(&tools.join("mytool"), "#!/bin/sh\necho '\"interpreted\"'\n");
    let script = world.program("script", "#!/usr/bin/env mytool\n");
    let mine = agent(&[("program", script.to_str().unwrap().into())]);
    let ready = state(&mine, BARE_PATH, world.home.path());
    assert_eq!(
        ready.state,
        ReadinessState::Missing(ProgramError::Interpreter {
            script: script.clone(),
            interpreter: "mytool".into(),
            because: Box::new(ProgramError::NotFound {
                program: "mytool".into(),
                searched: vec!["/usr/bin".into(), "/bin".into()],
            }),
        })
    );
    let bare = World::with(ProcessLimits::default(), path(BARE_PATH));
    let ran = bare.run(&Asked::program(&script, &[]));
    assert_eq!(ran.failure().error_type, "programNotFound");
    assert!(ran.failure().message.contains("asks for `mytool`"), "{}", ran.failure().message);

    let longer = format!("{BARE_PATH}:{}", tools.display());
    assert!(!state(&mine, &longer, world.home.path()).is_blocked());
    let ran =
        World::with(ProcessLimits::default(), path(&longer)).run(&Asked::program(&script, &[]));
    assert_eq!(ran.output(), "\"interpreted\"", "children get the same PATH");
}

#[test]
fn op04_a_script_saved_with_carriage_returns_is_told_so() {
    let world = World::new();
    let script = world.program("script", "#!/bin/sh\r\necho 1\r\n");
    let ready = state(
        &agent(&[("program", script.to_str().unwrap().into())]),
        BARE_PATH,
        world.home.path(),
    );
    assert!(ready.to_string().contains("save the file with LF"), "{ready}");
}

#[test]
fn op04_a_file_that_may_not_be_run_is_told_from_one_that_is_missing() {
    let world = World::new();
    std::fs::write(world.home.path().join("data"), "x").unwrap();
    let mine = agent(&[("program", "./data".into())]);
    let ready = state(&mine, BARE_PATH, world.home.path());
    assert!(matches!(ready.state, ReadinessState::Missing(ProgramError::NotExecutable { .. })));
    let ran = world.run(&Asked::program("./data", &[]));
    assert_eq!(ran.failure().error_type, "programNotExecutable");
    assert!(ran.failure().message.contains("make the file executable"));
    let ran = world.run(&Asked::program("./absent", &[]));
    assert_eq!(ran.failure().error_type, "programNotFound");
}

#[test]
fn op04_a_path_is_relative_to_the_working_folder_and_path_itself_is_not() {
    let world = World::new();
    write_program(&world.home.path().join("bin/tool"), "#!/bin/sh\necho 1\n");
    assert_eq!(world.run(&Asked::program("bin/tool", &[])).output(), "1");
    assert_eq!(world.run(&Asked::program("./tool", &[]).set("cwd", "bin")).output(), "1");
    let env = Object::from_iter([("PATH", "bin:.:")]);
    let ran = world.run(&Asked::program("tool", &[]).set("env", env));
    assert_eq!(ran.failure().error_type, "programNotFound");
    assert!(ran.failure().message.contains("PATH names no folder"), "{}", ran.failure().message);
}
