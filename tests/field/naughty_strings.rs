//! Texts that are known to break software, as text, as key and as step of a path.

use engine::path::{Path, Step};
use engine::value::{Object, Value};
use naughty_strings::BLNS;

#[test]
fn every_naughty_string_comes_back_as_text_and_as_key() {
    assert!(BLNS.len() > 400, "the list is complete");
    for naughty in BLNS.iter().copied() {
        let object = Object::from_iter([(naughty, naughty)]);
        let value = Value::Array(vec![naughty.into(), object.into()]);
        for text in [value.to_json(), value.to_json_pretty(), value.to_canonical()] {
            let back = Value::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(back, value, "{naughty:?}");
            assert_eq!(back.as_array().and_then(|items| items[0].as_str()), Some(naughty));
        }
    }
}

#[test]
fn every_naughty_string_comes_back_as_step_of_a_path() {
    for naughty in BLNS.iter().copied() {
        let inner = Object::from_iter([(naughty, 1u32)]);
        let value = Value::from(Object::from_iter([("outer", Value::Array(vec![inner.into()]))]));
        let steps = [Step::Key("outer".to_owned()), Step::Index(0), Step::Key(naughty.to_owned())];
        let path = Path::from_iter(steps);
        let quoted = format!("outer[0][{}]", Value::from(naughty).to_json());
        for text in [path.to_string(), quoted] {
            let back = Path::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(back, path, "{text}");
            assert_eq!(back.resolve(&value), Some(&Value::from(1u32)), "{text}");
        }
    }
}

#[test]
fn every_naughty_string_is_a_path_or_is_refused_with_its_place() {
    for naughty in BLNS.iter().copied() {
        match Path::parse(naughty) {
            Ok(path) => assert_eq!(Path::parse(&path.to_string()), Ok(path), "{naughty:?}"),
            Err(error) => {
                let n_characters = naughty.chars().count();
                assert!((1..=n_characters).contains(&error.column), "{naughty:?}: {error}");
            }
        }
    }
}
