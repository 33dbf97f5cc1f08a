//! The environment an agent's program gets: little by default, so that keys and tokens in
//! Cyanotype's own environment reach only those agents that name them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use engine::scheduler::action::StartAttempt;
use engine::value::Object;

use super::settings::ProcessSettings;
use crate::runner::AttemptRequest;

/// The parameters as a JSON object.
pub const PARAMS: &str = "CYANOTYPE_PARAMS";
/// The id of the execution.
pub const EXECUTION_ID: &str = "CYANOTYPE_EXECUTION_ID";
/// The id of the workflow; not set if a file is run.
pub const WORKFLOW_ID: &str = "CYANOTYPE_WORKFLOW_ID";
/// The id of the node.
pub const NODE_ID: &str = "CYANOTYPE_NODE_ID";
/// The attempt, from 1.
pub const ATTEMPT: &str = "CYANOTYPE_ATTEMPT";
/// The key that all attempts of the node instance share.
pub const IDEMPOTENCY_KEY: &str = "CYANOTYPE_IDEMPOTENCY_KEY";

const RESERVED: [&str; 6] = [PARAMS, EXECUTION_ID, WORKFLOW_ID, NODE_ID, ATTEMPT, IDEMPOTENCY_KEY];

/// Passed on to every agent on Unix, and all `LC_…` with them: who the user is, where programs and
/// their files are, which language and time zone.
const PASSED_ON_UNIX: [&str; 14] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
];

/// Passed on to every agent on Windows: the same, and what programs there need to start at all.
const PASSED_ON_WINDOWS: [&str; 23] = [
    "PATH",
    "PATHEXT",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERDOMAIN",
    "USERPROFILE",
    "HOMEDRIVE",
    "HOMEPATH",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "PROGRAMW6432",
    "COMMONPROGRAMFILES",
    "NUMBER_OF_PROCESSORS",
    "PROCESSOR_ARCHITECTURE",
    "OS",
];

/// How names of variables are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Upper and lower case differ (Unix).
    Exact,
    /// They do not (Windows).
    CaseInsensitive,
}

impl Names {
    /// As this system does.
    pub const HERE: Names = if cfg!(windows) { Names::CaseInsensitive } else { Names::Exact };

    fn same(self, one: &OsStr, other: &str) -> bool {
        match self {
            Names::Exact => one == other,
            Names::CaseInsensitive => one.eq_ignore_ascii_case(other),
        }
    }

    fn passes_on(self, name: &OsStr) -> bool {
        let is_in = |list: &[&str]| list.iter().any(|passed| self.same(name, passed));
        match self {
            Names::Exact => {
                is_in(&PASSED_ON_UNIX) || name.to_str().is_some_and(|name| name.starts_with("LC_"))
            }
            Names::CaseInsensitive => is_in(&PASSED_ON_WINDOWS),
        }
    }
}

/// A set of environment variables.
pub type Environment = BTreeMap<OsString, OsString>;

/// Whether Cyanotype sets this variable for every attempt.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|reserved| Names::HERE.same(OsStr::new(name), reserved))
}

/// The environment of one attempt: what is passed on from `own`, then the agent's `env`, then what
/// tells the attempt who it is.
pub fn of_attempt(
    own: &Environment,
    settings: &ProcessSettings,
    request: &AttemptRequest,
    params: &Object,
) -> Environment {
    let mut environment = of_agent(own, settings, Names::HERE);
    let StartAttempt { instance, attempt, idempotency_key, .. } = &request.start;
    let mut set = |name: &str, value: String| {
        environment.insert(name.into(), value.into());
    };
    set(PARAMS, engine::value::Value::Object(params.clone()).to_json());
    set(EXECUTION_ID, request.execution.to_string());
    set(NODE_ID, instance.node.to_string());
    set(ATTEMPT, attempt.to_string());
    set(IDEMPOTENCY_KEY, idempotency_key.to_string());
    if let Some(workflow) = &request.workflow {
        set(WORKFLOW_ID, workflow.to_string());
    }
    environment
}

/// The part of the environment that is the same for every attempt of an agent.
pub fn of_agent(own: &Environment, settings: &ProcessSettings, names: Names) -> Environment {
    let is_allowed = |name: &OsStr| {
        names.passes_on(name) || settings.env_allow.iter().any(|allowed| names.same(name, allowed))
    };
    let is_reserved = |name: &OsStr| RESERVED.iter().any(|reserved| names.same(name, reserved));
    let mut environment: Environment = own
        .iter()
        .filter(|(name, _)| is_allowed(name) && !is_reserved(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for (name, value) in &settings.env {
        environment.retain(|present, _| !names.same(present, name));
        environment.insert(name.into(), value.into());
    }
    environment
}

/// The value of a variable.
pub fn get<'a>(environment: &'a Environment, name: &str, names: Names) -> Option<&'a OsStr> {
    let found = environment.iter().find(|(present, _)| names.same(present, name));
    found.map(|(_, value)| value.as_os_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::testing::{agent, request};
    use engine::agent::RunnerKind;
    use engine::ids::WorkflowId;
    use engine::value::Value;

    fn own() -> Environment {
        [
            ("PATH", "/bin"),
            ("HOME", "/root"),
            ("LC_ALL", "C.UTF-8"),
            ("AWS_SECRET_ACCESS_KEY", "s3cret"),
            ("OPENAI_API_KEY", "k"),
            ("CYANOTYPE_ATTEMPT", "9"),
            ("Path", "other"),
        ]
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
    }

    fn settings(text: &str) -> ProcessSettings {
        ProcessSettings::read(&Value::parse(text).unwrap()).unwrap()
    }

    fn told(environment: &Environment) -> Vec<String> {
        let pair = |(name, value): (&OsString, &OsString)| {
            format!("{}={}", name.to_string_lossy(), value.to_string_lossy())
        };
        environment.iter().map(pair).collect()
    }

    #[test]
    fn only_named_and_harmless_variables_are_passed_on() {
        let settings = settings(
            r#"{"program": "p", "envAllow": ["OPENAI_API_KEY", "ABSENT", "CYANOTYPE_ATTEMPT"],
                "env": {"HOME": "/tmp", "X": "1"}}"#,
        );
        assert_eq!(
            told(&of_agent(&own(), &settings, Names::Exact)),
            ["HOME=/tmp", "LC_ALL=C.UTF-8", "OPENAI_API_KEY=k", "PATH=/bin", "X=1"]
        );
    }

    #[test]
    fn case_does_not_matter_where_the_system_says_so() {
        let own: Environment =
            [("Path", "C:\\x"), ("SystemRoot", "C:\\W"), ("Token", "t"), ("HOME", "h")]
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect();
        let settings =
            settings(r#"{"program": "p", "envAllow": ["TOKEN"], "env": {"PATH": "C:\\y"}}"#);
        let environment = of_agent(&own, &settings, Names::CaseInsensitive);
        assert_eq!(told(&environment), ["PATH=C:\\y", "SystemRoot=C:\\W", "Token=t"]);
        let path = get(&environment, "path", Names::CaseInsensitive);
        assert_eq!(path, Some(OsStr::new("C:\\y")));
    }

    #[test]
    fn an_attempt_is_told_who_it_is() {
        let mut request = request(agent(RunnerKind::Process), "{}", "1", 3);
        let params = Value::parse(r#"{"n": 1.50}"#).unwrap();
        let params = params.as_object().unwrap();
        let settings = settings(r#"{"program": "p"}"#);
        let environment = of_attempt(&Environment::new(), &settings, &request, params);
        let key = request.start.idempotency_key.to_string();
        assert_eq!(
            told(&environment),
            [
                "CYANOTYPE_ATTEMPT=3".to_owned(),
                format!("CYANOTYPE_EXECUTION_ID={}", request.execution),
                format!("CYANOTYPE_IDEMPOTENCY_KEY={key}"),
                "CYANOTYPE_NODE_ID=a".to_owned(),
                r#"CYANOTYPE_PARAMS={"n":1.50}"#.to_owned(),
            ]
        );
        let workflow = WorkflowId(uuid::Uuid::from_u128(5));
        request.workflow = Some(workflow);
        let environment = of_attempt(&Environment::new(), &settings, &request, params);
        let told = get(&environment, WORKFLOW_ID, Names::HERE).unwrap().to_owned();
        assert_eq!(told, OsString::from(workflow.to_string()));
    }
}
