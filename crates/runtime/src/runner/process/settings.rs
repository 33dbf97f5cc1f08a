//! The settings of a process agent.
//!
//! | key | meaning |
//! | --- | --- |
//! | `program` | the program: a name that is looked up in `PATH`, or a path; never a shell line |
//! | `args` | list of arguments, each passed on as one |
//! | `env` | object of environment variables |
//! | `envAllow` | list of names of variables that are passed on from Cyanotype's own environment |
//! | `cwd` | the working folder; relative to, and by default, the one Cyanotype runs in |
//! | `output` | `"json"` (default) or `"text"` |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine::failure::{Failure, FailureClass};
use engine::ids::AgentId;
use engine::value::{Object, Value};

use super::environment;
use crate::runner::settings::{Settings, SettingsError};

/// The `errorType` of an attempt whose settings name a secret.
pub const SECRETS_UNAVAILABLE: &str = "secretsUnavailable";

/// What a process agent's settings say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSettings {
    /// The program, as written.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables it gets.
    pub env: BTreeMap<String, String>,
    /// Names of variables that are passed on.
    pub env_allow: Vec<String>,
    /// The working folder, as written.
    pub cwd: Option<String>,
    /// How its output is read.
    pub output: OutputKind,
}

/// How an output is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// Its result is a JSON value.
    Json,
    /// All of it is the result, as text.
    Text,
}

impl ProcessSettings {
    /// Reads settings whose templates are resolved.
    ///
    /// # Errors
    /// If the program is missing, a value has the wrong type, or `env` sets what Cyanotype sets.
    pub fn read(settings: &Value) -> Result<ProcessSettings, SettingsError> {
        let settings = Settings::new(settings)?;
        let program = match settings.text("program")? {
            Some(program) if !program.trim().is_empty() => program.to_owned(),
            _ => {
                let hint = "name the program to run";
                return Err(SettingsError::Missing { key: "program", hint });
            }
        };
        let output = match settings.text("output")? {
            None | Some("json") => OutputKind::Json,
            Some("text") => OutputKind::Text,
            Some(other) => {
                return Err(SettingsError::WrongType {
                    place: "output".to_owned(),
                    expected: "`json` or `text`",
                    found: format!("`{other}`"),
                });
            }
        };
        let env = settings.text_map("env")?;
        env.keys().try_for_each(|name| check_name("env", name))?;
        let env_allow = settings.texts("envAllow")?;
        let cwd = settings.text("cwd")?.filter(|cwd| !cwd.is_empty()).map(str::to_owned);
        Ok(ProcessSettings { program, args: settings.texts("args")?, env, env_allow, cwd, output })
    }

    /// The working folder.
    ///
    /// * `own`: the one Cyanotype runs in, absolute.
    pub fn working_folder(&self, own: &Path) -> PathBuf {
        self.cwd.as_ref().map_or_else(|| own.to_owned(), |cwd| own.join(cwd))
    }
}

fn check_name(key: &str, name: &str) -> Result<(), SettingsError> {
    let reason = if name.is_empty() || name.contains(['=', '\0']) {
        "this is no name of an environment variable"
    } else if environment::is_reserved(name) {
        "Cyanotype sets this variable itself; choose another name"
    } else {
        return Ok(());
    };
    Err(SettingsError::Unusable { place: format!("{key}.{name}"), reason: reason.to_owned() })
}

/// Refuses settings and parameters that name a secret: this version has no store for them, and a
/// placeholder in place of a password would only fail later and less clearly.
pub fn refuse_secrets(agent: &AgentId, settings: &Value, params: &Object) -> Result<(), Failure> {
    let mut pending = vec![settings];
    pending.extend(params.values());
    while let Some(value) = pending.pop() {
        match value {
            Value::String(text) if text.contains("{{secret:") => {
                let name: String = text
                    .split_once("{{secret:")
                    .map(|(_, rest)| rest.chars().take_while(|c| *c != '}').take(64).collect())
                    .unwrap_or_default();
                let message = format!(
                    "agent `{agent}` needs the secret `{name}`, but this version of Cyanotype \
                     keeps no secrets; name the variable in `envAllow` and set it in the \
                     environment that Cyanotype is started from"
                );
                return Err(Failure::typed(
                    FailureClass::PolicyDenied,
                    SECRETS_UNAVAILABLE,
                    message,
                ));
            }
            Value::Array(items) => pending.extend(items),
            Value::Object(object) => pending.extend(object.values()),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ProcessSettings, String> {
        ProcessSettings::read(&Value::parse(text).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn everything_but_the_program_has_a_default() {
        let settings = read(r#"{"program": "sh", "later": {}}"#).unwrap();
        assert_eq!(settings.program, "sh");
        assert_eq!(settings.output, OutputKind::Json);
        assert!(settings.args.is_empty() && settings.env.is_empty() && settings.cwd.is_none());
    }

    #[test]
    fn values_of_templates_become_text() {
        let settings = read(
            r#"{"program": "p", "args": [1.50, null, {"a": [1]}, "x"], "env": {"N": 007}}"#
                .replace("007", "7")
                .as_str(),
        )
        .unwrap();
        assert_eq!(settings.args, ["1.50", "null", r#"{"a":[1]}"#, "x"]);
        assert_eq!(settings.env["N"], "7");
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (text, message) in [
            ("{}", "`program` is missing; name the program to run"),
            (r#"{"program": " "}"#, "`program` is missing; name the program to run"),
            (
                r#"{"program": "p", "output": "xml"}"#,
                "`output` must be `json` or `text`, not `xml`",
            ),
            (r#"{"program": "p", "args": "x"}"#, "`args` must be a list of texts, not a text"),
            (
                r#"{"program": "p", "env": {"CYANOTYPE_PARAMS": "x"}}"#,
                "`env.CYANOTYPE_PARAMS` cannot be used: Cyanotype sets this variable itself; \
                 choose another name",
            ),
            (
                r#"{"program": "p", "env": {"A=B": "x"}}"#,
                "`env.A=B` cannot be used: this is no name of an environment variable",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), message);
        }
    }

    #[test]
    fn a_secret_anywhere_in_settings_or_parameters_is_refused() {
        let agent = AgentId::from("a");
        let refused = |settings: &str, params: &str| {
            let params = Value::parse(params).unwrap();
            let settings = Value::parse(settings).unwrap();
            refuse_secrets(&agent, &settings, params.as_object().unwrap())
        };
        let failure = refused(r#"{"env": {"K": "Bearer {{secret:API_KEY}}"}}"#, "{}").unwrap_err();
        assert_eq!(failure.class, FailureClass::PolicyDenied);
        assert_eq!(failure.error_type, SECRETS_UNAVAILABLE);
        assert!(failure.message.contains("`API_KEY`"), "{}", failure.message);
        assert!(refused("{}", r#"{"deep": [{"x": "{{secret:K}}"}]}"#).is_err());
        assert!(refused(r#"{"args": ["secret: {{x}}"]}"#, r#"{"n": 1}"#).is_ok());
    }
}
