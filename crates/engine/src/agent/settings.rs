//! What each kind of runner needs to know.

use super::RunnerKind;
use crate::definition::{Problem, described};
use crate::value::{Object, Value};

/// The settings whose texts are templates, by key.
pub(super) fn template_fields(runner: RunnerKind) -> &'static [&'static str] {
    match runner {
        RunnerKind::Process => &["args", "env", "cwd"],
        RunnerKind::Echo | RunnerKind::Scripted => &[],
    }
}

/// Lists what is missing or has the wrong type. Keys that the kind does not know are left alone,
/// so that records of a later version can be kept.
pub(super) fn check(runner: RunnerKind, settings: &Object) -> Vec<Problem> {
    let mut check = Check { settings, problems: Vec::new() };
    match runner {
        RunnerKind::Echo => (),
        RunnerKind::Process => check.process(),
        RunnerKind::Scripted => check.scripted(),
    }
    check.problems
}

struct Check<'a> {
    settings: &'a Object,
    problems: Vec<Problem>,
}

impl Check<'_> {
    fn process(&mut self) {
        match self.settings.get("program") {
            Some(Value::String(program)) if !program.trim().is_empty() => (),
            Some(Value::String(_)) | None => {
                self.refuse("program", "there is no `program`", "name the program to run");
            }
            Some(other) => self.wrong_type("program", "a text", other),
        }
        self.texts("args");
        self.texts("envAllow");
        self.typed("env", "an object", |value| value.as_object().is_some());
        let env = self.settings.get("env").and_then(Value::as_object);
        for (name, value) in env.into_iter().flatten() {
            if value.as_str().is_none() {
                self.wrong_type(&format!("env.{name}"), "a text", value);
            }
        }
        self.typed("cwd", "a text", |value| value.as_str().is_some());
        self.typed("output", "\"json\" or \"text\"", |value| {
            matches!(value.as_str(), Some("json" | "text"))
        });
    }

    fn scripted(&mut self) {
        self.typed("fail", "a text", |value| value.as_str().is_some());
        self.typed("echo", "true or false", |value| value.as_bool().is_some());
        self.typed("sideEffecting", "true or false", |value| value.as_bool().is_some());
        for key in ["times", "takes"] {
            self.typed(key, "a whole number from 0 upwards", |value| value.as_u64().is_some());
        }
        let is_echo = self.settings.get("echo").and_then(Value::as_bool) == Some(true);
        let ends = [
            ("out", self.settings.contains_key("out")),
            ("fail", self.settings.contains_key("fail")),
            ("echo", is_echo),
        ];
        let given: Vec<&str> = ends.iter().filter(|(_, is)| *is).map(|(key, _)| *key).collect();
        match given[..] {
            [_] => (),
            [] => self.refuse(
                "out",
                "nothing says how an attempt ends",
                "add one of `out`, `fail` and `echo`",
            ),
            [first, second, ..] => self.refuse(
                second,
                &format!("`{first}` and `{second}` cannot both be set"),
                "remove one of them",
            ),
        }
        if self.settings.contains_key("then") && !self.settings.contains_key("times") {
            self.refuse(
                "times",
                "`then` is set without `times`",
                "add `times`, how many attempts fail first",
            );
        }
    }

    fn texts(&mut self, key: &str) {
        self.typed(key, "a list of texts", |value| value.as_array().is_some());
        let items = self.settings.get(key).and_then(Value::as_array).unwrap_or_default();
        for (n, item) in items.iter().enumerate() {
            if item.as_str().is_none() {
                self.wrong_type(&format!("{key}[{n}]"), "a text", item);
            }
        }
    }

    fn typed(&mut self, key: &str, expected: &str, fits: impl Fn(&Value) -> bool) {
        if let Some(value) = self.settings.get(key)
            && !fits(value)
        {
            self.wrong_type(key, expected, value);
        }
    }

    fn wrong_type(&mut self, key: &str, expected: &str, found: &Value) {
        let message = format!("`{key}` must be {expected}, but is {}", described(found));
        self.refuse(key, &message, &format!("write {expected}"));
    }

    fn refuse(&mut self, key: &str, message: &str, hint: &str) {
        self.problems.push(Problem {
            place: format!("settings.{key}"),
            message: message.to_owned(),
            hint: hint.to_owned(),
        });
    }
}
