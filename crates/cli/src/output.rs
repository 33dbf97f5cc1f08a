//! Where a command's output goes, in the form that was asked for.

use std::io::{self, Write};

use engine::value::Value;

use crate::args::ColorChoice;
use crate::terminal::Terminal;

/// The standard output, which may go away at any time: a run never fails because nobody reads.
#[derive(Debug)]
pub struct Stdout {
    is_gone: bool,
}

impl Stdout {
    /// The standard output.
    pub fn new() -> Stdout {
        Stdout { is_gone: false }
    }

    /// Prints a line.
    pub fn line(&mut self, text: &str) {
        let _ = writeln!(self, "{text}");
    }

    /// Prints an object as one line of JSON.
    pub fn json(&mut self, value: &Value) {
        self.line(&value.to_json());
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_gone {
            let mut stdout = io::stdout().lock();
            let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
            self.is_gone = written.is_err();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One JSON object a line, and nothing else.
    Json,
    /// Text for people.
    Text(Terminal),
}

impl Form {
    /// JSON if that was asked for, else text as the standard output can show it.
    pub fn chosen(json: &crate::args::JsonArg, color: ColorChoice) -> Form {
        if json.json { Form::Json } else { Form::Text(Terminal::detect(color)) }
    }
}

/// Says something that is not the command's output.
pub fn notice(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
