//! The engine's settings: strict, bounded, and without anything but the scope.

use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, Output, State, UndefinedBehavior, Value as EngineValue};

use super::convert::text;
use super::{FUEL, OUTPUT_BYTES_MAX, checks, filters, operators, too_large};

/// Nested blocks while rendering. Templates have no recursion, so that this bounds nothing more.
const RECURSION_MAX: usize = 200;

/// The one environment. A template that needs its own clones it, which copies no filter.
pub(super) fn shared() -> &'static Environment<'static> {
    static SHARED: LazyLock<Environment<'static>> = LazyLock::new(build);
    &SHARED
}

/// How templates are written: as in Jinja, and the last line end belongs to the text.
pub(super) fn syntax() -> SyntaxConfig {
    SyntaxConfig::builder()
        .keep_trailing_newline(true)
        .build()
        .expect("the default marks are distinct")
}

/// Bytes written so far.
struct Written(usize);

fn build() -> Environment<'static> {
    let mut env = Environment::new();
    for name in ["debug", "dict", "namespace"] {
        env.remove_global(name);
    }
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_fuel(Some(FUEL));
    env.set_recursion_limit(RECURSION_MAX);
    env.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    env.set_formatter(write);
    // Only so do errors know which reference did not resolve, and where.
    env.set_debug(true);
    env.set_syntax(syntax());
    filters::install(&mut env);
    checks::install(&mut env);
    operators::install(&mut env);
    env
}

/// Writes a value into text.
fn write(out: &mut Output, state: &mut State, value: &EngineValue) -> Result<(), Error> {
    let converted;
    let text = match value.as_str() {
        Some(text) => text,
        None => {
            converted = text(state, value)?;
            &converted
        }
    };
    let written = state.get_or_insert_extension(Written(0));
    written.0 += text.len();
    if written.0 > OUTPUT_BYTES_MAX {
        return Err(too_large());
    }
    out.write_str(text)?;
    Ok(())
}
