//! Retry policies, timeouts, join rules and failure policies, from what a file says about them.

use super::{RETRIES_MAX, SECONDS_MAX};
use crate::definition::{Problem, described};
use crate::plan::{FailurePolicy, JoinRule};
use crate::retry::{BACKOFF_BASE_MS_DEFAULT, BACKOFF_MS_MAX_DEFAULT, Backoff, RetryPolicy};
use crate::value::{Number, Object, Value};

const RETRY_KEYS: [&str; 5] =
    ["maxRetries", "backoffBase", "backoffMax", "retryableErrors", "strategy"];

/// See [`super::parse_retry_policy`].
pub(super) fn retry(value: &Value) -> Result<RetryPolicy, Vec<Problem>> {
    let Value::Object(policy) = value else {
        let message = format!("a retry policy must be an object, but is {}", described(value));
        return Err(vec![problem("", message, "write for example {\"maxRetries\": 2}")]);
    };
    let mut reader = RetryReader { policy, problems: Vec::new() };
    let parsed = RetryPolicy {
        retries_max: reader.retries_max(),
        backoff_base_ms: reader.backoff_ms("backoffBase", BACKOFF_BASE_MS_DEFAULT),
        backoff_ms_max: reader.backoff_ms("backoffMax", BACKOFF_MS_MAX_DEFAULT),
        backoff: reader.backoff(),
        retryable_errors: reader.retryable_errors(),
    };
    if reader.problems.is_empty() { Ok(parsed) } else { Err(reader.problems) }
}

/// Keys of a retry policy that have no meaning.
pub(super) fn unknown_retry_keys(value: &Value) -> impl Iterator<Item = &str> {
    let keys = value.as_object().into_iter().flat_map(Object::keys).map(String::as_str);
    keys.filter(|key| !RETRY_KEYS.contains(key))
}

/// See [`super::parse_timeout`].
pub(super) fn timeout(value: &Value) -> Result<u64, Problem> {
    let refuse = |why: String| {
        let hint = "write a number of seconds, such as 300 for five minutes, or remove it";
        Err(problem("", format!("a timeout must be {why}"), hint))
    };
    match value {
        Value::Number(seconds) if seconds.to_f64() > SECONDS_MAX as f64 => refuse(format!(
            "at most {SECONDS_MAX} seconds (ten years), but is {}",
            seconds.as_str()
        )),
        Value::Number(seconds) if seconds.to_f64() > 0.0 => {
            Ok((milliseconds(seconds).ceil() as u64).max(1))
        }
        other => refuse(format!("a number of seconds greater than 0, but is {}", described(other))),
    }
}

/// Reads a join rule.
pub(super) fn join(value: &Value) -> Result<JoinRule, Problem> {
    let hint = "write \"all\", \"any\", or {\"min\": n} for n of the predecessors";
    match value {
        Value::String(word) if word == "all" => Ok(JoinRule::All),
        Value::String(word) if word == "any" => Ok(JoinRule::AtLeast(1)),
        Value::Object(object) => match object.get("min") {
            Some(min) => match min.as_u64().and_then(|min| u32::try_from(min).ok()) {
                Some(min) if min >= 1 => Ok(JoinRule::AtLeast(min)),
                _ => {
                    let message = format!(
                        "`min` must be a whole number from 1 upwards, but is {}",
                        described(min)
                    );
                    Err(problem("min", message, hint))
                }
            },
            None => Err(problem("", "a join rule that is an object needs `min`", hint)),
        },
        other => {
            let message = format!("there is no join rule like {}", described(other));
            Err(problem("", message, hint))
        }
    }
}

/// Reads a failure policy.
pub(super) fn on_failure(value: &Value) -> Result<FailurePolicy, Problem> {
    const POLICIES: [FailurePolicy; 4] = [
        FailurePolicy::FailDependents,
        FailurePolicy::SkipDependents,
        FailurePolicy::Continue,
        FailurePolicy::Stop,
    ];
    let named = |word: &str| POLICIES.into_iter().find(|policy| policy.as_str() == word);
    value.as_str().and_then(named).ok_or_else(|| {
        let words = POLICIES.map(|policy| format!("{:?}", policy.as_str())).join(", ");
        let message = format!("there is no failure policy like {}", described(value));
        problem("", message, &format!("choose one of {words}"))
    })
}

struct RetryReader<'a> {
    policy: &'a Object,
    problems: Vec<Problem>,
}

impl<'a> RetryReader<'a> {
    fn retries_max(&mut self) -> u32 {
        let hint = format!("write a whole number from 0 to {RETRIES_MAX}");
        let Some(value) = self.get("maxRetries") else {
            let message = "a retry policy needs `maxRetries`";
            self.problems.push(problem("maxRetries", message, &hint));
            return 0;
        };
        match value.as_u64().and_then(|retries| u32::try_from(retries).ok()) {
            Some(retries) if retries <= RETRIES_MAX => retries,
            _ => {
                let message = format!(
                    "`maxRetries` must be a whole number from 0 to {RETRIES_MAX}, but is {}",
                    described(value)
                );
                self.problems.push(problem("maxRetries", message, &hint));
                0
            }
        }
    }

    /// Rounds down, so that no wait is longer than the file allows.
    fn backoff_ms(&mut self, key: &str, default_ms: u64) -> u64 {
        match self.get(key) {
            None => default_ms,
            Some(Value::Number(seconds))
                if (0.0..=SECONDS_MAX as f64).contains(&seconds.to_f64()) =>
            {
                milliseconds(seconds).floor() as u64
            }
            Some(other) => {
                let message = format!(
                    "`{key}` must be a number of seconds from 0 to {SECONDS_MAX} (ten years), but \
                     is {}",
                    described(other)
                );
                let hint = "write a number of seconds, or remove it";
                self.problems.push(problem(key, message, hint));
                default_ms
            }
        }
    }

    fn backoff(&mut self) -> Backoff {
        const ALL: [Backoff; 3] = [Backoff::Exponential, Backoff::Linear, Backoff::Fixed];
        let Some(value) = self.get("strategy") else { return Backoff::Exponential };
        let named = |word: &str| ALL.into_iter().find(|backoff| backoff.as_str() == word);
        value.as_str().and_then(named).unwrap_or_else(|| {
            let message = format!("there is no strategy like {}", described(value));
            let hint = "choose one of \"exponential\", \"linear\", \"fixed\"";
            self.problems.push(problem("strategy", message, hint));
            Backoff::Exponential
        })
    }

    fn retryable_errors(&mut self) -> Option<Vec<String>> {
        let value = self.get("retryableErrors")?;
        let words = value.as_array().map(|items| {
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        let words = words.flatten();
        if words.is_none() {
            let message =
                format!("`retryableErrors` must be a list of texts, but is {}", described(value));
            let hint = "list error types or classes, such as [\"timeout\", \"network\"]";
            self.problems.push(problem("retryableErrors", message, hint));
        }
        words
    }

    /// A field that is `null` counts as absent.
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.policy.get(key).filter(|value| !value.is_null())
    }
}

/// Seconds as milliseconds, rounded once: the decimal point is moved in the text, because
/// multiplying the nearest double by 1,000 would round a second time.
fn milliseconds(seconds: &Number) -> f64 {
    let text = seconds.as_str();
    let shifted = match text.split_once(['e', 'E']) {
        None => format!("{text}e3"),
        Some((digits, exponent)) => match exponent.parse::<i64>() {
            Ok(exponent) => format!("{digits}e{}", exponent + 3),
            // Only an endless exponent of zero digits cannot be parsed, and zero stays zero.
            Err(_) => text.to_owned(),
        },
    };
    shifted.parse().expect("a shifted JSON number is a Rust float literal")
}

fn problem(place: &str, message: impl Into<String>, hint: &str) -> Problem {
    Problem { place: place.to_owned(), message: message.into(), hint: hint.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        Value::parse(text).unwrap()
    }

    fn retry_problem(text: &str) -> Vec<String> {
        retry(&value(text)).unwrap_err().iter().map(|problem| problem.place.clone()).collect()
    }

    #[test]
    fn a_policy_has_defaults_for_all_but_max_retries() {
        let policy = retry(&value(r#"{"maxRetries":3}"#)).unwrap();
        let expected = RetryPolicy {
            retries_max: 3,
            backoff_base_ms: 1_000,
            backoff_ms_max: 60_000,
            backoff: Backoff::Exponential,
            retryable_errors: None,
        };
        assert_eq!(policy, expected);
        assert_eq!(retry_problem("{}"), ["maxRetries"]);
    }

    #[test]
    fn a_policy_is_read_in_full() {
        let policy = retry(&value(
            r#"{"maxRetries":1000000,"backoffBase":0.001,"backoffMax":2.5,"strategy":"linear",
                "retryableErrors":["Oops"],"x":1}"#,
        ))
        .unwrap();
        let expected = RetryPolicy {
            retries_max: 1_000_000,
            backoff_base_ms: 1,
            backoff_ms_max: 2_500,
            backoff: Backoff::Linear,
            retryable_errors: Some(vec!["Oops".to_owned()]),
        };
        assert_eq!(policy, expected);
        let text = value(r#"{"maxRetries":1,"x":1}"#);
        assert_eq!(unknown_retry_keys(&text).collect::<Vec<_>>(), ["x"]);
    }

    #[test]
    fn o_r04_a_base_or_max_that_is_no_time_is_refused() {
        for bad in ["-1", "-0.001", "\"2\"", "true", "[]", "315576001"] {
            for key in ["backoffBase", "backoffMax"] {
                assert_eq!(retry_problem(&format!(r#"{{"maxRetries":1,"{key}":{bad}}}"#)), [key]);
            }
        }
        for good in ["0", "0.0", "-0", "1e3", "315576000"] {
            assert!(retry(&value(&format!(r#"{{"maxRetries":1,"backoffMax":{good}}}"#))).is_ok());
        }
    }

    #[test]
    fn other_mistakes_in_a_policy_are_all_listed() {
        let problems =
            retry_problem(r#"{"maxRetries":1.5,"strategy":"random","retryableErrors":["a",1]}"#);
        assert_eq!(problems, ["maxRetries", "strategy", "retryableErrors"]);
        for bad in ["-1", "1000001", "\"1\"", "null"] {
            assert_eq!(retry_problem(&format!(r#"{{"maxRetries":{bad}}}"#)), ["maxRetries"]);
        }
        assert_eq!(retry_problem("3"), [""]);
    }

    #[test]
    fn timeouts_are_rounded_up_to_whole_milliseconds() {
        let cases = [("1", 1_000), ("4.35", 4_350), ("0.0001", 1), ("1.0005", 1_001), ("1e-9", 1)];
        for (seconds, ms) in [cases.as_slice(), &[("2.5E0", 2_500), ("3e2", 300_000)]].concat() {
            assert_eq!(timeout(&value(seconds)), Ok(ms), "{seconds}");
        }
    }

    #[test]
    fn timeouts_that_are_no_time_are_refused() {
        for bad in ["0", "-1", "\"60\"", "null", "true", "315576001", "1e300"] {
            assert!(timeout(&value(bad)).is_err(), "{bad}");
        }
        let message = timeout(&value("\"5m\"")).unwrap_err().message;
        assert_eq!(
            message,
            "a timeout must be a number of seconds greater than 0, but is the text \"5m\""
        );
    }

    #[test]
    fn join_rules_are_read_or_refused() {
        assert_eq!(join(&value("\"all\"")), Ok(JoinRule::All));
        assert_eq!(join(&value("\"any\"")), Ok(JoinRule::AtLeast(1)));
        assert_eq!(join(&value("{\"min\": 2.0}")), Ok(JoinRule::AtLeast(2)));
        for bad in ["\"some\"", "1", "{}", "{\"min\":0}", "{\"min\":1.5}", "{\"min\":1e10}", "[]"] {
            assert!(join(&value(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn failure_policies_are_read_or_refused_with_the_ones_there_are() {
        assert_eq!(on_failure(&value("\"stop\"")), Ok(FailurePolicy::Stop));
        let problem = on_failure(&value("\"ignore\"")).unwrap_err();
        assert_eq!(problem.message, "there is no failure policy like the text \"ignore\"");
        assert!(problem.hint.contains("\"skipDependents\", \"continue\""));
        assert!(on_failure(&value("1")).is_err());
    }
}
