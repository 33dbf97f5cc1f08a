//! The runner that plays a script, for tests and demonstrations.
//!
//! | settings | what an attempt does |
//! | --- | --- |
//! | `{"out": X}` | completes with X |
//! | `{"echo": true}` | completes with its input |
//! | `{"fail": "T"}` | fails, always |
//! | `{"fail": "T", "times": n, "then": X}` | attempts 1 to n fail, later ones complete with X |
//!
//! Each may have `"takes": ms`. `"sideEffecting"` may stand there too; whoever makes an agent out
//! of a script moves it to the agent's record, the runner itself has no use for it.

use std::time::Duration;

use engine::failure::{Failure, FailureClass};
use engine::payload::Payload;
use engine::scheduler::action::Task;
use engine::value::Value;

use super::settings::{Settings, SettingsError};
use super::{AttemptFuture, AttemptOutcome, AttemptRequest, ProgressSink, Runner, StopSignal};

/// Plays the script that an agent's settings hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScriptedRunner;

/// What a script says.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// How an attempt ends.
    pub ending: Ending,
    /// How long an attempt takes, in ms.
    pub takes_ms: u64,
}

/// How the attempts of a script end.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// All complete with a value.
    Out(Value),
    /// All complete with their input.
    Echo,
    /// All fail.
    Fail {
        /// The error type; also the class, if it names one.
        error_type: String,
    },
    /// The first ones fail, the others complete.
    FailThen {
        /// The error type; also the class, if it names one.
        error_type: String,
        /// How many fail.
        times: u64,
        /// What the others complete with.
        then: Value,
    },
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// If it does not say, or says in two ways, how an attempt ends.
    pub fn read(settings: &Value) -> Result<Script, SettingsError> {
        let settings = Settings::new(settings)?;
        settings.flag("sideEffecting")?;
        let takes_ms = settings.whole_number("takes")?.unwrap_or(0);
        let echo = settings.flag("echo")? == Some(true);
        let ending = match (settings.any("out"), settings.text("fail")?, echo) {
            (Some(_), Some(_), _) => return Err(conflict("out", "fail")),
            (Some(_), _, true) => return Err(conflict("out", "echo")),
            (_, Some(_), true) => return Err(conflict("fail", "echo")),
            (Some(out), None, false) => Ending::Out(out.clone()),
            (None, None, true) => Ending::Echo,
            (None, Some(error_type), false) => failing(settings, error_type)?,
            (None, None, false) => {
                let hint = "say how an attempt ends with one of `out`, `fail` and `echo`";
                return Err(SettingsError::Missing { key: "out", hint });
            }
        };
        Ok(Script { ending, takes_ms })
    }

    /// How an attempt ends.
    ///
    /// * `attempt`: from 1.
    pub fn outcome(&self, attempt: u32, input: &Payload) -> AttemptOutcome {
        match &self.ending {
            Ending::Out(value) => completed(Payload::new(value.clone())),
            Ending::Echo => completed(input.clone()),
            Ending::Fail { error_type } => scripted_failure(error_type, attempt),
            Ending::FailThen { error_type, times, .. } if u64::from(attempt) <= *times => {
                scripted_failure(error_type, attempt)
            }
            Ending::FailThen { then, .. } => completed(Payload::new(then.clone())),
        }
    }
}

fn failing(settings: Settings<'_>, error_type: &str) -> Result<Ending, SettingsError> {
    let error_type = error_type.to_owned();
    let then = settings.any("then");
    Ok(match settings.whole_number("times")? {
        Some(times) => {
            Ending::FailThen { error_type, times, then: then.cloned().unwrap_or_default() }
        }
        None if then.is_some() => {
            let hint = "`then` needs to know how many attempts fail before it";
            return Err(SettingsError::Missing { key: "times", hint });
        }
        None => Ending::Fail { error_type },
    })
}

fn conflict(first: &'static str, second: &'static str) -> SettingsError {
    SettingsError::Conflict { first, second }
}

fn completed(output: Payload) -> AttemptOutcome {
    AttemptOutcome::Completed { output, warnings: Vec::new() }
}

fn scripted_failure(error_type: &str, attempt: u32) -> AttemptOutcome {
    let class = FailureClass::from_name(error_type).unwrap_or(FailureClass::AgentError);
    let message = format!("scripted failure `{error_type}` of attempt {attempt}");
    AttemptOutcome::Failed(Failure::typed(class, error_type, message))
}

impl Runner for ScriptedRunner {
    fn run<'a>(
        &'a self,
        request: AttemptRequest,
        _progress: ProgressSink,
        mut stop: StopSignal,
    ) -> AttemptFuture<'a> {
        Box::pin(async move {
            let start = request.start;
            let script = match &start.task {
                // A transform's output is its input, whoever is asked.
                Task::Transform => return completed(start.input),
                Task::Agent { agent, settings, .. } => match Script::read(settings.value()) {
                    Ok(script) => script,
                    Err(error) => {
                        return AttemptOutcome::Failed(error.into_failure(&agent.agent.id));
                    }
                },
            };
            if script.takes_ms > 0 {
                let work = tokio::time::sleep(Duration::from_millis(script.takes_ms));
                tokio::select! {
                    () = work => {}
                    () = stop.stopped() => return AttemptOutcome::Stopped,
                }
            }
            script.outcome(start.attempt, &start.input)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::StopHandle;
    use crate::runner::echo::EchoRunner;
    use crate::runner::testing::{block_on, request, scripted_agent};

    fn value(text: &str) -> Value {
        Value::parse(text).unwrap()
    }

    /// Plays attempts 1, 2, … and tells each as `output` or `class/errorType`.
    fn check(script: &str, attempts: u32, expected: &[&str]) {
        let runner = ScriptedRunner;
        let told: Vec<String> = (1..=attempts)
            .map(|attempt| {
                let request = request(scripted_agent(), script, r#"{"in":1.0}"#, attempt);
                let (_handle, stop) = StopHandle::new();
                let (progress, _lines) = ProgressSink::channel(1);
                match block_on(runner.run(request, progress, stop)) {
                    AttemptOutcome::Completed { output, .. } => output.text().to_owned(),
                    AttemptOutcome::Failed(f) => format!("{}/{}", f.class.as_str(), f.error_type),
                    AttemptOutcome::Stopped => "stopped".to_owned(),
                }
            })
            .collect();
        assert_eq!(told, expected, "{script}");
    }

    #[test]
    fn out_and_echo_complete_every_attempt() {
        check(r#"{"out": {"x": 1.50}}"#, 2, &[r#"{"x":1.50}"#, r#"{"x":1.50}"#]);
        check(r#"{"out": null}"#, 1, &["null"]);
        check(r#"{"echo": true}"#, 1, &[r#"{"in":1.0}"#]);
    }

    #[test]
    fn failures_end_after_the_given_number_of_attempts() {
        check(
            r#"{"fail": "Boom", "times": 2, "then": "ok"}"#,
            3,
            &["agentError/Boom", "agentError/Boom", "\"ok\""],
        );
        check(r#"{"fail": "Boom", "times": 0, "then": 1}"#, 1, &["1"]);
        check(r#"{"fail": "Boom"}"#, 2, &["agentError/Boom", "agentError/Boom"]);
    }

    #[test]
    fn a_failure_that_names_a_class_has_that_class() {
        check(r#"{"fail": "rateLimited"}"#, 1, &["rateLimited/rateLimited"]);
        check(r#"{"fail": "RateLimited"}"#, 1, &["agentError/RateLimited"]);
    }

    #[test]
    fn unclear_scripts_fail_as_invalid_settings() {
        for script in [
            r#"{}"#,
            r#"{"takes": 5}"#,
            r#"{"out": 1, "fail": "x"}"#,
            r#"{"out": 1, "echo": true}"#,
            r#"{"fail": "x", "echo": true}"#,
            r#"{"fail": 5}"#,
            r#"{"fail": "x", "then": 1}"#,
            r#"{"fail": "x", "times": -1}"#,
            r#"{"out": 1, "takes": "5"}"#,
            r#"{"out": 1, "sideEffecting": "yes"}"#,
            r#"[]"#,
        ] {
            check(script, 1, &["agentError/invalidSettings"]);
        }
        let error = Script::read(&value("{}")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`out` is missing; say how an attempt ends with one of `out`, `fail` and `echo`"
        );
    }

    #[test]
    fn an_attempt_takes_as_long_as_its_script_says() {
        let began = std::time::Instant::now();
        check(r#"{"out": 1, "takes": 30}"#, 1, &["1"]);
        assert!(began.elapsed() >= Duration::from_millis(30));
    }

    #[test]
    fn a_stop_ends_the_wait_of_a_script() {
        let request = request(scripted_agent(), r#"{"out": 1, "takes": 600000}"#, "1", 1);
        let (handle, stop) = StopHandle::new();
        let (progress, _lines) = ProgressSink::channel(1);
        handle.stop();
        let outcome = block_on(ScriptedRunner.run(request, progress, stop));
        assert_eq!(outcome, AttemptOutcome::Stopped);
    }

    #[test]
    fn echo_gives_back_every_digit_of_its_input() {
        let input = r#"{"id":18446744073709551616,"x":1.0}"#;
        let request = request(scripted_agent(), "{}", input, 1);
        let (_handle, stop) = StopHandle::new();
        let (progress, _lines) = ProgressSink::channel(1);
        match block_on(EchoRunner.run(request, progress, stop)) {
            AttemptOutcome::Completed { output, warnings } => {
                assert_eq!(output.text(), input);
                assert!(warnings.is_empty());
            }
            other => panic!("{other:?}"),
        }
    }
}
