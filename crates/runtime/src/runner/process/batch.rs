//! The command line that passes arguments through the Windows command processor to a batch file.
//!
//! Many agents are installed on Windows as a `.cmd` shim. Such a file is run by `cmd.exe`, which
//! reads the line first by its own rules and hands the rest to a program that reads it by those of
//! the C runtime. An argument must come through both unchanged, or be refused:
//!
//! * Every argument stands in double quotes, so that `&`, `|`, `<`, `>`, `^` and spaces are text.
//! * A quote inside is doubled, which both readers take for one.
//! * Backslashes before a quote, also before the closing one, are doubled for the second reader.
//! * `!` is text because delayed expansion is off (`/v:off`).
//! * `%` cannot be quoted on a command line, and a line break ends it: both are refused.
//!
//! Pure, so that its tests run on every system.

use super::arguments::{ArgumentError, argument_place};

/// The longest line that the command processor reads, in UTF-16 units.
pub const LINE_UNITS_MAX: usize = 8_191;

/// What comes after the program's name `cmd.exe`.
const SWITCHES: &str = "/e:on /v:off /d /s /c ";

/// Whether a program must be run through the command processor.
pub fn is_batch(program: &str) -> bool {
    let extension = program.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|e| e.eq_ignore_ascii_case("bat") || e.eq_ignore_ascii_case("cmd"))
}

/// The arguments of `cmd.exe` that run a batch file.
///
/// # Errors
/// Names the first argument that would not arrive unchanged, or the longest if the line is longer
/// than [`LINE_UNITS_MAX`].
pub fn command_line(batch_file: &str, args: &[String]) -> Result<String, ArgumentError> {
    // With `/s` the outermost pair of quotes is dropped and the rest is taken as it stands.
    let mut line = format!("{SWITCHES}\"");
    push_quoted(&mut line, batch_file, || "the batch file's path".to_owned())?;
    for (index, argument) in args.iter().enumerate() {
        line.push(' ');
        push_quoted(&mut line, argument, || argument_place(index, argument))?;
    }
    line.push('"');
    if "cmd.exe ".len() + line.encode_utf16().count() > LINE_UNITS_MAX {
        let longest = args.iter().enumerate().max_by_key(|(_, argument)| argument.len());
        return Err(ArgumentError::TooLong {
            place: longest.map_or("the batch file's path".to_owned(), |(index, argument)| {
                argument_place(index, argument)
            }),
            bytes: longest.map_or(batch_file.len(), |(_, argument)| argument.len()),
            bytes_max: LINE_UNITS_MAX,
        });
    }
    Ok(line)
}

fn push_quoted(
    line: &mut String,
    text: &str,
    place: impl Fn() -> String,
) -> Result<(), ArgumentError> {
    line.push('"');
    let mut backslashes = 0;
    for character in text.chars() {
        match character {
            '\0' => return Err(ArgumentError::Nul { place: place() }),
            '\n' | '\r' => return Err(ArgumentError::LineBreak { place: place() }),
            '%' => return Err(ArgumentError::Percent { place: place() }),
            '"' => {
                line.extend(std::iter::repeat_n('\\', backslashes));
                line.push('"');
            }
            _ => {}
        }
        backslashes = if character == '\\' { backslashes + 1 } else { 0 };
        line.push(character);
    }
    line.extend(std::iter::repeat_n('\\', backslashes));
    line.push('"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHIM: &str = r"C:\My Agents & Co\tool.cmd";

    fn line(args: &[&str]) -> Result<String, ArgumentError> {
        let args: Vec<String> = args.iter().map(|text| (*text).to_owned()).collect();
        command_line(SHIM, &args)
    }

    /// Reads a line as the C runtime does (the rules of `CommandLineToArgvW` since 2008).
    fn arguments_of(line: &str) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut characters = line.chars().peekable();
        loop {
            while characters.next_if(|c| *c == ' ').is_some() {}
            if characters.peek().is_none() {
                return arguments;
            }
            let (mut argument, mut quoted) = (String::new(), false);
            loop {
                let mut backslashes = 0;
                while characters.next_if(|c| *c == '\\').is_some() {
                    backslashes += 1;
                }
                let before_quote = characters.peek() == Some(&'"');
                let kept = if before_quote { backslashes / 2 } else { backslashes };
                argument.extend(std::iter::repeat_n('\\', kept));
                if before_quote && backslashes % 2 == 1 {
                    argument.extend(characters.next());
                    continue;
                }
                match characters.next() {
                    None => break,
                    Some('"') if quoted && characters.peek() == Some(&'"') => {
                        argument.extend(characters.next());
                    }
                    Some('"') => quoted = !quoted,
                    Some(' ') if !quoted => break,
                    Some(other) => argument.push(other),
                }
            }
            arguments.push(argument);
        }
    }

    /// What the command processor hands on, and that nothing in it stands outside quotes that it
    /// would act on.
    fn through_the_command_processor(line: &str) -> String {
        let command = line.strip_prefix(SWITCHES).unwrap();
        let command = command.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
        let mut quoted = false;
        for character in command.chars() {
            match character {
                '"' => quoted = !quoted,
                '%' | '\n' | '\r' => panic!("{command} would be changed"),
                '&' | '|' | '<' | '>' | '^' | '(' | ')' | ',' | ';' | '=' => {
                    assert!(quoted, "{command} would start something else");
                }
                _ => {}
            }
        }
        command.to_owned()
    }

    #[test]
    fn batch_files_are_known_by_their_extension() {
        assert!(is_batch(SHIM) && is_batch("x.BAT"));
        assert!(!is_batch("cmd.exe") && !is_batch("bat") && !is_batch("x.cmd.exe"));
    }

    #[test]
    fn awkward_arguments_arrive_unchanged() {
        let args = [
            "",
            "a b",
            "a\"b",
            "a\\",
            "a\\\"b",
            "a&echo X",
            "!x!",
            "$(id)",
            "`id`",
            "*.txt",
            "ü😀",
            "^",
            "\"&calc&\"",
            "--x=\"y z\"",
            "\\\\server\\share\\",
        ];
        let passed = through_the_command_processor(&line(&args).unwrap());
        let mut expected = vec![SHIM];
        expected.extend(args);
        assert_eq!(arguments_of(&passed), expected);
    }

    #[test]
    fn the_line_reads_as_documented() {
        assert_eq!(
            line(&["a b", "c\\", "d\"e"]).unwrap(),
            r#"/e:on /v:off /d /s /c ""C:\My Agents & Co\tool.cmd" "a b" "c\\" "d""e"""#
        );
    }

    #[test]
    fn what_cannot_arrive_unchanged_is_refused_by_name() {
        assert_eq!(
            line(&["x", "%PATH%"]).unwrap_err().to_string(),
            "argument 2 (\"%PATH%\") contains a percent sign, which a batch file would take for \
             a variable; pass it in the node's input, or name the program behind the batch file"
        );
        assert!(matches!(line(&["a\nb"]), Err(ArgumentError::LineBreak { place })
            if place == "argument 1 (\"a\\nb\")"));
        assert!(matches!(line(&["a\rb"]), Err(ArgumentError::LineBreak { .. })));
        assert!(matches!(line(&["a\0b"]), Err(ArgumentError::Nul { .. })));
        let long = "x".repeat(40_000);
        assert!(
            matches!(line(&["short", &long]), Err(ArgumentError::TooLong { bytes: 40_000, place, .. })
            if place.starts_with("argument 2 (\"xxx"))
        );
    }

    proptest! {
        #[test]
        fn every_accepted_argument_arrives_unchanged(
            args in proptest::collection::vec(r#"[a-c"\\ &|<>^!()=;,'`$*?ü😀]{0,8}"#, 0..5)
        ) {
            let line = command_line(SHIM, &args).unwrap();
            let arrived = arguments_of(&through_the_command_processor(&line));
            prop_assert_eq!(&arrived[0], SHIM);
            prop_assert_eq!(&arrived[1..], &args[..]);
        }
    }
}
