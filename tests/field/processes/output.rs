//! How a program's result is found, and what its end means.

use std::time::Duration;

use engine::failure::FailureClass;
use engine::value::{Object, Value};
use runtime::runner::ProgressStream;
use runtime::runner::process::ProcessLimits;

use super::{Asked, World};

#[track_caller]
fn check(script: &str, output: &str, progress: &[&str]) {
    let ran = World::new().run(&Asked::sh(script));
    assert_eq!(ran.output(), output, "{script}");
    assert_eq!(ran.lines(ProgressStream::Stdout), progress, "{script}");
}

#[test]
fn the_result_is_all_of_the_output_or_its_last_json() {
    check("printf '{\\n \"a\": 1.0\\n}\\n'", r#"{"a":1.0}"#, &[]);
    check("echo one; echo '{\"n\":1}'; echo '{\"n\":2}'", r#"{"n":2}"#, &["one", r#"{"n":1}"#]);
    check("printf 'Done:\\n```json\\n[1,\\n 2]\\n```\\n'", "[1,2]", &["Done:"]);
    check("exit 0", "null", &[]);
    check("echo; echo ' '", "null", &[]);
}

#[test]
fn an_output_without_json_is_invalid_and_its_start_is_shown() {
    let ran = World::new().run(&Asked::sh("echo 'All is well.'; echo why >&2"));
    let failure = ran.failure();
    assert_eq!(failure.class, FailureClass::InvalidOutput);
    assert_eq!(failure.error_type, "invalidOutput");
    assert!(failure.message.contains("`All is well.`"), "{}", failure.message);
    assert_eq!(failure.stderr.as_deref(), Some("why\n"));
    assert_eq!(ran.lines(ProgressStream::Stdout), ["All is well."]);
}

#[test]
fn text_output_is_the_result_without_its_last_line_end() {
    let ran = World::new().run(&Asked::sh("echo '{\"a\":1}'; echo").text());
    assert_eq!(ran.output(), r#""{\"a\":1}\n""#);
}

#[test]
fn an_exit_code_is_a_failure_with_the_end_of_the_error_output() {
    let script = "i=0; while [ $i -lt 2000 ]; do echo line $i >&2; i=$((i+1)); done; exit 3";
    let ran = World::new().run(&Asked::sh(script));
    let failure = ran.failure();
    assert_eq!((failure.class, failure.error_type.as_str()), (FailureClass::AgentError, "exit:3"));
    assert_eq!(
        failure.message,
        "`/bin/sh` ended with exit code 3: line 1997 | line 1998 | line 1999"
    );
    let stderr = failure.stderr.as_deref().unwrap();
    assert!(stderr.len() <= 4096 && stderr.ends_with("line 1998\nline 1999\n"));
}

#[test]
fn a_signal_is_a_failure_with_its_name() {
    let ran = World::new().run(&Asked::sh("kill -SEGV $$"));
    assert_eq!(ran.failure().error_type, "signal:SIGSEGV");
    assert_eq!(ran.failure().message, "`/bin/sh` was killed by SIGSEGV and wrote no error output");
    assert_eq!(ran.failure().stderr, None);
}

#[test]
fn a_failing_agent_may_say_its_own_error() {
    let script = r#"echo trying; echo '{"errorType":"Quota","message":"Come back at 9","class":
        "rateLimited"}' | tr -d '\n'; exit 1"#;
    let ran = World::new().run(&Asked::sh(script));
    let failure = ran.failure();
    assert_eq!(failure.class, FailureClass::RateLimited);
    assert_eq!(failure.error_type, "Quota");
    assert_eq!(failure.message, "Come back at 9");
}

#[test]
fn the_same_words_of_a_succeeding_agent_are_its_result() {
    check(r#"echo '{"errorType":"Quota"}'"#, r#"{"errorType":"Quota"}"#, &[]);
}

#[test]
fn an_endless_output_is_cut_off() {
    let limits = ProcessLimits { output_bytes_max: 1024 * 1024, ..ProcessLimits::default() };
    let asked = Asked::sh("yes '{\"a\":1}'");
    let ran = World::with_limits(limits).run(&asked);
    let failure = ran.failure();
    assert_eq!(failure.class, FailureClass::InvalidOutput);
    assert_eq!(failure.error_type, "outputTooLong");
    assert!(failure.message.contains("more than 1 MiB"), "{}", failure.message);
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
    assert_eq!(asked.processes_left(), [""; 0]);
}

#[test]
fn an_agent_is_told_who_it_is_and_gets_little_else() {
    let environment = [
        ("PATH", "/usr/bin:/bin"),
        ("LC_ALL", "C.UTF-8"),
        ("SECRET_TOKEN", "t"),
        ("ALLOWED", "yes"),
    ];
    let own = environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let world = World::with(ProcessLimits::default(), own);
    let mut asked = Asked::program("env", &["-0"])
        .text()
        .set("envAllow", Value::from_iter([Value::from("ALLOWED")]))
        .set("env", Object::from_iter([("MINE", "a\nb")]));
    asked.params.insert("n", Value::parse("1.50").unwrap());
    let ran = world.run(&asked);
    let output = Value::parse(ran.output()).unwrap();
    let mut variables: Vec<&str> = output.as_str().unwrap().split_terminator('\0').collect();
    variables.sort_unstable();
    let request = asked.request();
    assert_eq!(
        variables,
        [
            "ALLOWED=yes",
            "CYANOTYPE_ATTEMPT=1",
            &format!("CYANOTYPE_EXECUTION_ID={}", asked.execution),
            &format!("CYANOTYPE_IDEMPOTENCY_KEY={}", request.start.idempotency_key),
            "CYANOTYPE_NODE_ID=a node",
            r#"CYANOTYPE_PARAMS={"n":1.50}"#,
            &format!("CYANOTYPE_WORKFLOW_ID={}", request.workflow.unwrap()),
            "LC_ALL=C.UTF-8",
            "MINE=a\nb",
            "PATH=/usr/bin:/bin",
        ]
    );
}

#[test]
fn the_working_folder_is_relative_to_that_of_cyanotype() {
    let world = World::new();
    let folder = world.home.path().join("sub folder");
    std::fs::create_dir(&folder).unwrap();
    let shown = |path: &std::path::Path| {
        Value::from(path.canonicalize().unwrap().to_str().unwrap()).to_json()
    };
    let ran = world.run(&Asked::program("pwd", &["-P"]).text());
    assert_eq!(ran.output(), shown(world.home.path()));
    let ran = world.run(&Asked::program("pwd", &["-P"]).text().set("cwd", "sub folder"));
    assert_eq!(ran.output(), shown(&folder));
    let ran = world.run(&Asked::program("pwd", &[]).set("cwd", "absent"));
    assert_eq!(ran.failure().error_type, "workingFolderNotFound");
}

#[test]
fn a_setting_that_needs_a_secret_is_refused_before_the_start() {
    let world = World::new();
    let marker = world.home.path().join("marker");
    let env = Object::from_iter([("KEY", "{{secret:API_KEY}}")]);
    let asked = Asked::program("touch", &[marker.to_str().unwrap()]).set("env", env);
    let ran = world.run(&asked);
    assert_eq!(ran.failure().class, FailureClass::PolicyDenied);
    assert_eq!(ran.failure().error_type, "secretsUnavailable");
    assert!(!marker.exists());
}
