//! O-P05 on this system: arguments arrive as they are, or are refused by name.

use engine::value::Value;

use super::{Asked, World};

const PRINTS_ITS_ARGUMENTS: &str = "#!/bin/sh\nprintf '%s\\0' \"$@\"\n";

#[test]
fn op05_every_argument_arrives_as_one_element_and_nothing_else_is_started() {
    let world = World::new();
    let program = world.program("My Agents & Co/show me", PRINTS_ITS_ARGUMENTS);
    let long = "x".repeat(40_000);
    let args = [
        "",
        "a b",
        "a\"b",
        "a\\",
        "a&echo X",
        "%PATH%",
        "!x!",
        "$(id)",
        "`id`",
        "*.txt",
        "a\nb",
        "ü😀",
        "'",
        "-n",
        "; touch started",
        "| touch started",
        &long,
    ];
    let ran = world.run(&Asked::program(program, &args).text());
    let output = Value::parse(ran.output()).unwrap();
    let arrived: Vec<&str> = output.as_str().unwrap().split_terminator('\0').collect();
    assert_eq!(arrived, args);
    assert!(!world.home.path().join("started").exists());
}

#[test]
fn op05_an_argument_that_cannot_arrive_is_named_before_the_start() {
    let world = World::new();
    let program = world.program("show", PRINTS_ITS_ARGUMENTS);
    let ran = world.run(&Asked::program(&program, &["ok", "a\0b"]));
    assert_eq!(ran.failure().error_type, "argumentRefused");
    assert!(ran.failure().message.contains("argument 2 (\"a\\0b\")"), "{}", ran.failure().message);

    let ran = world.run(&Asked::program("sh\0", &[]));
    assert_eq!(ran.failure().error_type, "argumentRefused");

    // More than any Linux takes in total, and than one argument may be long there.
    let many: Vec<String> = (0..70).map(|_| "y".repeat(100_000)).collect();
    let mut many: Vec<&str> = many.iter().map(String::as_str).collect();
    let longest = format!("z{}", "y".repeat(100_000));
    many[7] = &longest;
    let ran = world.run(&Asked::program(&program, &many));
    assert_eq!(ran.failure().error_type, "argumentTooLong");
    let message = &ran.failure().message;
    assert!(message.contains("argument 8 (\"zyyy"), "{message}");
}

#[test]
fn op05_a_person_who_wants_a_shell_names_it_and_values_arrive_as_its_parameters() {
    let value = "{\"a\": \"it's \\\"$HOME\\\"\"}\n";
    let asked = Asked::program("sh", &["-c", "printf '%s' \"$1\"", "sh", value]);
    let ran = World::new().run(&asked);
    assert_eq!(ran.output(), r#"{"a":"it's \"$HOME\""}"#);
}
