//! What may be asked of `cargo xtask`.

/// The help text.
pub const USAGE: &str = "\
Usage: cargo xtask <TASK>

  start         install what is missing, build Cyanotype, run the Echo Demo with live progress
  test          formatting, lints and every test, with a summary at the end
  test --long   the same, and the campaigns that are too long for every run
  bench         measure, and rewrite the tables in crates/runtime/benches/README.md
  help          print this";

/// One thing to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Task {
    Start,
    Test(Length),
    Bench,
    Help,
}

/// How far the random campaigns go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Normal,
    Long,
}

/// Reads the arguments that follow `cargo xtask`; the error says what was not understood.
pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Task, String> {
    let words: Vec<String> = words.into_iter().collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] | ["help" | "--help" | "-h"] => Ok(Task::Help),
        ["start"] => Ok(Task::Start),
        ["test"] => Ok(Task::Test(Length::Normal)),
        ["test", "--long"] => Ok(Task::Test(Length::Long)),
        ["bench"] => Ok(Task::Bench),
        ["start" | "test" | "bench" | "help", rest @ ..] => {
            Err(format!("{:?} does not take {:?}", words[0], rest.join(" ")))
        }
        _ => Err(format!("there is no task {:?}", words[0])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Task, String> {
        parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn every_task_of_the_usage_text_is_understood() {
        assert_eq!(parsed("start"), Ok(Task::Start));
        assert_eq!(parsed("test"), Ok(Task::Test(Length::Normal)));
        assert_eq!(parsed("test --long"), Ok(Task::Test(Length::Long)));
        assert_eq!(parsed("bench"), Ok(Task::Bench));
        assert_eq!(parsed("help"), Ok(Task::Help));
        assert_eq!(parsed(""), Ok(Task::Help));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        assert_eq!(parsed("tset"), Err("there is no task \"tset\"".into()));
        assert_eq!(parsed("test --lnog"), Err("\"test\" does not take \"--lnog\"".into()));
    }
}
