//! Bindings: templates over the values an execution knows (SPEC 8).
//!
//! minijinja reads and runs them, in strict mode, with fuel, and with nothing but a [`Scope`].
//! Three things are ours, because a template must pass data on unchanged:
//!
//! * `{{ expr }}` alone keeps the JSON value; inside text it is written as text: `null`, `true`,
//!   numbers with the digits they have (1.0 stays `1.0`), containers as compact JSON.
//! * Operators compare like JSON and calculate in exact decimals; see `template/operators.rs`.
//! * `{{secret:KEY}}` is recognised before the engine and stays a placeholder. Because a
//!   substituted value may contain the same characters, [`Rendered::secrets`] says which
//!   placeholders are real.
//!
//! One pass: marks inside substituted values are inert.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use minijinja::machinery::{ast, parse};
use minijinja::{Environment, Error, ErrorKind, Expression, Value as EngineValue};

use self::convert::refuse;
use self::rewrite::{Origin, Read, Rewritten};
pub use self::scope::{Scope, ScopeValue};
use self::secret::Placeholder;
use crate::failure::{Failure, FailureClass};
use crate::ids::NodeId;
use crate::limits::FILE_BYTES_MAX;
use crate::value::Value;

mod checks;
mod convert;
mod decimal;
mod environment;
mod filters;
mod operators;
mod rewrite;
mod scope;
mod secret;
mod tokens;

/// The most a template may produce, in bytes of text or JSON: four outputs of the largest size.
pub const OUTPUT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The work one rendering may do: about one unit for each step and for each 64 bytes produced.
pub const FUEL: u64 = 4_000_000;

/// The name under which node outputs stand.
const NODES: &str = "nodes";

/// A template that was parsed. Cheap to clone; equal if the source is.
#[derive(Clone)]
pub struct Template(Arc<Inner>);

struct Inner {
    source: String,
    references: Vec<Reference>,
    reads: Vec<Read>,
    secrets: Vec<String>,
    placeholders: Vec<Placeholder>,
    origins: Vec<Origin>,
    body: Body,
}

enum Body {
    /// Text without any mark.
    Constant(String),
    /// A single expression, whose value is the result.
    Value(Box<Expression<'static, 'static>>),
    /// Anything else, whose text is the result.
    Text {
        env: Box<Environment<'static>>,
        /// Offset of each secret in the engine's source, and the number of its placeholder.
        secrets: Vec<(usize, usize)>,
    },
}

/// Something a template reads from its scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The name in the scope.
    pub root: String,
    /// The node, for `nodes["id"].output` and what is below it.
    pub node: Option<NodeId>,
    /// The path as written, as far as it is fixed: `nodes.A.output.items` for
    /// `nodes.A.output.items[i].name`.
    pub text: String,
    /// Whether it may be missing: it stands directly before `default` or `is defined`.
    pub guarded: bool,
    /// Where it stands in the source, in bytes.
    pub offset: usize,
}

/// Why a text is not a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}{}", Hint(hint))]
pub struct TemplateError {
    /// Line, from 1.
    pub line: usize,
    /// Column in code points, from 1.
    pub column: usize,
    /// Offset in bytes.
    pub offset: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it, where there is something.
    pub hint: Option<String>,
}

/// What a template produced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The result. If it has secrets, it is a text.
    pub value: Value,
    /// The placeholders that the template wrote, ascending.
    pub secrets: Vec<SecretSpot>,
}

/// A `{{secret:KEY}}` that comes from the template, not from a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretSpot {
    /// Where it stands in the text, braces included, in bytes.
    pub range: Range<usize>,
    /// The key.
    pub key: String,
}

/// Why a template has no result. Trying again with the same scope changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// References that lead to nothing.
    #[error("unresolved: {}{}", names.join(", "), Hint(hint))]
    Unresolved {
        /// As written, in the order they are written.
        names: Vec<String>,
        /// What there is instead, where that is known.
        hint: Option<String>,
    },
    /// A value of the wrong kind, or too much work or output.
    #[error("line {line}: {message}")]
    Failed {
        /// Line in the template, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
}

/// A hint after a message.
struct Hint<'h>(&'h Option<String>);

impl Template {
    /// Returns whether a text has any mark of a template: `{{`, `{%` or `{#`.
    pub fn is_template(text: &str) -> bool {
        ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
    }

    /// Reads a template. Any text without marks is one, too.
    ///
    /// # Errors
    ///
    /// Malformed marks, unknown filters and tests, calls, and everything else that would reach
    /// outside the scope.
    pub fn parse(source: &str) -> Result<Template, TemplateError> {
        if source.len() > FILE_BYTES_MAX {
            return Err(TemplateError::at(source, 0, "the template is too large", ""));
        }
        let placeholders = secret::find(source);
        let masked = secret::mask(source, &placeholders);
        let tags = tokens::check(source, &masked)?;
        let tree = parse(&masked, "template", environment::syntax())
            .map_err(|error| syntax_error(source, &error))?;
        let whole = rewrite::template(source, &masked, &placeholders, &tree)?;
        check_placeholders(source, &placeholders, &whole, &tags)?;
        let secrets = distinct(whole.secrets.iter().map(|&(_, number)| &placeholders[number].key));
        let is_constant = whole.origins.is_empty();
        let (body, rewritten) = match single_expression(&tree).filter(|_| secrets.is_empty()) {
            Some(emit) => {
                let alone = rewrite::expression(source, &masked, emit)?;
                let expression = environment::shared()
                    .compile_expression_owned(alone.source.clone())
                    .map_err(|error| compile_error(source, &error))?;
                (Body::Value(Box::new(expression)), alone)
            }
            None if is_constant => (Body::Constant(whole.text.clone()), whole),
            None => {
                let mut env = environment::shared().clone();
                env.add_template_owned("template", whole.source.clone())
                    .map_err(|error| compile_error(source, &error))?;
                (Body::Text { env: Box::new(env), secrets: whole.secrets.clone() }, whole)
            }
        };
        let references = rewritten.reads.iter().map(|read| read.reference.clone()).collect();
        Ok(Template(Arc::new(Inner {
            source: source.to_owned(),
            references,
            reads: rewritten.reads,
            secrets,
            placeholders,
            origins: rewritten.origins,
            body,
        })))
    }

    /// Returns the text as written.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Returns everything the template reads from its scope, in the order it is written.
    pub fn references(&self) -> &[Reference] {
        &self.0.references
    }

    /// Returns the keys of the secrets it writes, each once, in the order they are written.
    pub fn secrets(&self) -> &[String] {
        &self.0.secrets
    }

    /// Fills in the values of a scope.
    ///
    /// # Errors
    ///
    /// If a reference leads to nothing, a value is of the wrong kind, [`FUEL`] runs out, or the
    /// result exceeds [`OUTPUT_BYTES_MAX`] or the depth of JSON.
    pub fn render(&self, scope: &Scope) -> Result<Rendered, RenderError> {
        let context = scope.context();
        self.run(&context).map_err(|error| self.explain(&error, &context))
    }

    fn run(&self, context: &EngineValue) -> Result<Rendered, Error> {
        let without_secrets = |value| Rendered { value, secrets: Vec::new() };
        match &self.0.body {
            Body::Constant(text) => Ok(without_secrets(Value::from(text.as_str()))),
            Body::Value(expression) => {
                convert::to_value(&expression.eval(context.clone())?).map(without_secrets)
            }
            Body::Text { env, secrets } if secrets.is_empty() => {
                let text = env.get_template("template")?.render(context.clone())?;
                Ok(without_secrets(Value::from(text)))
            }
            Body::Text { env, secrets } => {
                let template = env.get_template("template")?;
                let (text, spans) = template.render_with_spans(context.clone())?;
                let spots = spans.iter().filter_map(|span| {
                    let number = secret_within(secrets, &span.source_range())?;
                    let key = self.0.placeholders[number].key.clone();
                    Some(SecretSpot { range: span.output_range(), key })
                });
                let secrets = spots.collect();
                Ok(Rendered { value: Value::from(text), secrets })
            }
        }
    }

    /// Says in the author's words why the engine stopped.
    fn explain(&self, error: &Error, context: &EngineValue) -> RenderError {
        let origin = self.origin(error);
        let (line, _) = position(&self.0.source, origin.map_or(0, |origin| origin.from));
        let message = match error.kind() {
            ErrorKind::UndefinedError => return self.unresolved(error, origin, context),
            ErrorKind::OutOfFuel => {
                "the template does too much work; shorten its loops or the values they run over"
                    .to_owned()
            }
            _ => error.detail().map_or_else(|| error.kind().to_string(), str::to_owned),
        };
        RenderError::Failed { line, message }
    }

    fn unresolved(
        &self,
        error: &Error,
        origin: Option<Origin>,
        context: &EngineValue,
    ) -> RenderError {
        let failed = undefined_name(error);
        let missing = |read: &&Read| {
            let is_certain = !read.is_conditional
                || failed.is_some_and(|failed| read.described.starts_with(failed));
            !read.reference.guarded && is_certain && available(read, context).is_err()
        };
        let reads: Vec<&Read> = self.0.reads.iter().filter(missing).collect();
        let mut names = distinct(reads.iter().map(|read| &read.reference.text));
        if names.is_empty() {
            // The scope lacks nothing: it is a name of the template, or the first of no element.
            let written = origin.map(|origin| self.0.source[origin.from..origin.to].to_owned());
            names.extend(failed.map(str::to_owned).or(written));
        }
        let hint = reads.first().and_then(|read| available(read, context).err().flatten());
        RenderError::Unresolved { names, hint }
    }

    /// Where in the source the engine stopped.
    fn origin(&self, error: &Error) -> Option<Origin> {
        let at = error.range()?.start;
        let n_before = self.0.origins.partition_point(|origin| origin.at <= at);
        self.0.origins.get(n_before.saturating_sub(1)).copied()
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Template) -> bool {
        self.0.source == other.0.source
    }
}

impl Eq for Template {}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.0.source).finish()
    }
}

impl TemplateError {
    fn at(
        source: &str,
        offset: usize,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> TemplateError {
        let (line, column) = position(source, offset);
        let hint = Some(hint.into()).filter(|hint| !hint.is_empty());
        TemplateError { line, column, offset, message: message.into(), hint }
    }
}

impl RenderError {
    /// Returns the failure of the node whose template this is.
    pub fn to_failure(&self) -> Failure {
        let mut failure = Failure::new(FailureClass::BindingError, self.to_string());
        if let RenderError::Unresolved { names, .. } = self {
            failure.unresolved.clone_from(names);
        }
        failure
    }
}

impl fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// The error for results beyond [`OUTPUT_BYTES_MAX`].
fn too_large() -> Error {
    let mebibytes = OUTPUT_BYTES_MAX / (1024 * 1024);
    refuse(format!("the result is larger than {mebibytes} MiB"))
}

/// What the engine's parser says, with a hint where the reason is a well-known one.
fn syntax_error(source: &str, error: &Error) -> TemplateError {
    let offset = error.range().map_or(0, |range| range.start.min(source.len()));
    let offset = (0..=offset).rev().find(|&at| source.is_char_boundary(at)).unwrap_or(0);
    for (start, _) in source.match_indices(NODES) {
        if let Some(id) = rewrite::hyphenated_node(&source[start..]) {
            return rewrite::hyphen_error(source, start, &id);
        }
    }
    let message = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    let hint = if source.contains("secret:") && message.contains('`') {
        "a secret is written {{secret:KEY}}, with letters, digits, `_`, `-` and `.` in the key"
    } else if ["include", "import", "extends", "from", "block", "macro", "call"]
        .iter()
        .any(|word| message.ends_with(&format!("unknown statement {word}")))
    {
        "a template sees nothing but its scope"
    } else {
        "to write such marks as text, put them between {% raw %} and {% endraw %}"
    };
    TemplateError::at(source, offset, message, hint)
}

/// What the engine says about our own writing, which is correct but can be too deep.
fn compile_error(source: &str, error: &Error) -> TemplateError {
    let message = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    TemplateError::at(source, 0, message, "split the template into several bindings")
}

/// Refuses placeholders inside tags. Those in comments are gone, those in raw text are text.
fn check_placeholders(
    source: &str,
    placeholders: &[Placeholder],
    rewritten: &Rewritten,
    tags: &[Range<usize>],
) -> Result<(), TemplateError> {
    for (number, Placeholder { range, .. }) in placeholders.iter().enumerate() {
        let is_placed = rewritten.secrets.iter().any(|&(_, placed)| placed == number)
            || rewritten.raw_secrets.contains(&number);
        if !is_placed && tags.iter().any(|tag| tag.contains(&range.start)) {
            let message = "a secret cannot stand inside an expression";
            let hint = "write it directly into the text, outside other braces";
            return Err(TemplateError::at(source, range.start, message, hint));
        }
    }
    Ok(())
}

/// The expression, if there is nothing else but white space.
fn single_expression<'t, 'a>(
    tree: &'t ast::Stmt<'a>,
) -> Option<&'t ast::Spanned<ast::EmitExpr<'a>>> {
    let ast::Stmt::Template(template) = tree else { return None };
    let mut single = None;
    for statement in &template.children {
        match statement {
            ast::Stmt::EmitRaw(raw) if raw.raw.trim().is_empty() => {}
            ast::Stmt::EmitExpr(emit) if single.is_none() => single = Some(emit),
            _ => return None,
        }
    }
    single
}

/// Follows a reference into the scope.
///
/// Where it ends early, what there is instead, if that can be said.
fn available(read: &Read, context: &EngineValue) -> Result<(), Option<String>> {
    let mut value = context.clone();
    let mut so_far = String::new();
    let root = EngineValue::from(read.reference.root.as_str());
    for key in std::iter::once(&root).chain(&read.keys) {
        let next = value.get_item(key).unwrap_or_default();
        if next.is_undefined() {
            return Err(whats_there(&so_far, &value));
        }
        if !so_far.is_empty() {
            so_far.push('.');
        }
        so_far.push_str(&key.to_string());
        value = next;
    }
    Ok(())
}

/// Names the keys of an object, or the kind of another value.
fn whats_there(path: &str, value: &EngineValue) -> Option<String> {
    const NAMED_MAX: usize = 8;
    if value.kind() != minijinja::value::ValueKind::Map {
        return Some(format!("`{path}` is {}", convert::kind(value)));
    }
    let mut keys: Vec<String> =
        value.try_iter().ok()?.take(NAMED_MAX + 1).map(|key| key.to_string()).collect();
    if keys.len() > NAMED_MAX {
        keys[NAMED_MAX] = "…".to_owned();
    }
    let keys = if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") };
    let place =
        if path.is_empty() { "the template sees".to_owned() } else { format!("`{path}` has") };
    Some(format!("{place} {keys}"))
}

/// The reference the engine could not resolve, in its own spelling.
fn undefined_name(error: &Error) -> Option<&str> {
    let detail = error.detail()?;
    let end = detail.find("` is undefined")?;
    detail[..end].rfind('`').map(|start| &detail[start + 1..end])
}

/// The number of the placeholder that was written at a place of the engine's source.
fn secret_within(secrets: &[(usize, usize)], range: &Range<usize>) -> Option<usize> {
    secrets.iter().find(|(at, _)| range.contains(at)).map(|&(_, number)| number)
}

/// Each text once, in order.
fn distinct<'t>(texts: impl Iterator<Item = &'t String>) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    for text in texts {
        if !distinct.contains(text) {
            distinct.push(text.clone());
        }
    }
    distinct
}

/// Line and column in code points of an offset, both from 1.
fn position(source: &str, offset: usize) -> (usize, usize) {
    let before = &source[..offset];
    let line_ends = before.match_indices(['\n', '\r']).filter(|&(at, end)| {
        // CRLF is one end; it is counted at the LF.
        end == "\n" || !source[at + 1..].starts_with('\n')
    });
    let (n_ends, line_start) = line_ends.fold((0, 0), |(n, _), (at, _)| (n + 1, at + 1));
    (n_ends + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn json(text: &str) -> Value {
        Value::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn parsed(source: &str) -> Template {
        Template::parse(source).unwrap_or_else(|error| panic!("{source}: {error}"))
    }

    /// A scope where `v` is a value and nodes `A` and `my-node` have it as output.
    fn scope(value: &str) -> Scope {
        let value = json(value);
        Scope::new()
            .with("v", value.clone())
            .with_node_output("A".into(), value.clone())
            .with_node_output("my-node".into(), value.clone())
            .with_node_output("a.b".into(), value.clone())
            .with_node_output("7".into(), value)
    }

    /// The result as JSON, so that digits and key order count.
    fn rendered(source: &str, scope: &Scope) -> String {
        match parsed(source).render(scope) {
            Ok(rendered) => rendered.value.to_json(),
            Err(error) => panic!("{source}: {error}"),
        }
    }

    fn failed(source: &str, scope: &Scope) -> RenderError {
        parsed(source).render(scope).expect_err(source)
    }

    fn unresolved(source: &str, scope: &Scope) -> Vec<String> {
        match failed(source, scope) {
            RenderError::Unresolved { names, .. } => names,
            other => panic!("{source}: {other}"),
        }
    }

    fn refused(source: &str) -> TemplateError {
        Template::parse(source).expect_err(source)
    }

    // O-E01

    #[test]
    fn marks_inside_substituted_values_are_inert() {
        let output = r#"{"t": "hi {{secret:KEY}} {{nodes.A.output.t}} ${output.t} {{"}"#;
        let template = parsed("Sum up: {{nodes.A.output.t}}");
        let rendered = template.render(&scope(output)).unwrap();
        let expected = "Sum up: hi {{secret:KEY}} {{nodes.A.output.t}} ${output.t} {{";
        assert_eq!(rendered.value.as_str(), Some(expected));
        assert_eq!(rendered.secrets, [], "KEY is not read");
        assert_eq!(template.secrets(), [""; 0]);
        let alone = parsed("{{nodes.A.output.t}}").render(&scope(output)).unwrap();
        assert_eq!(alone.value.as_str(), Some(&expected["Sum up: ".len()..]));
        assert_eq!(alone.secrets, []);
    }

    // O-E02

    #[test]
    fn a_value_alone_keeps_its_type_and_in_text_is_written_as_text() {
        let table = [
            ("null", "null", "xnully"),
            ("0", "0", "x0y"),
            ("false", "false", "xfalsey"),
            ("true", "true", "xtruey"),
            (r#""""#, r#""""#, "xy"),
            (r#""7""#, r#""7""#, "x7y"),
            ("[]", "[]", "x[]y"),
            (r#"{"a":[1,null]}"#, r#"{"a":[1,null]}"#, r#"x{"a":[1,null]}y"#),
            ("17169973925117969", "17169973925117969", "x17169973925117969y"),
            ("1.0", "1.0", "x1.0y"),
            ("1e5", "1e5", "x1e5y"),
            ("-0", "-0", "x-0y"),
            ("0.10", "0.10", "x0.10y"),
            ("18446744073709551615", "18446744073709551615", "x18446744073709551615y"),
            (
                "123456789012345678901234567890123456789012345",
                "123456789012345678901234567890123456789012345",
                "x123456789012345678901234567890123456789012345y",
            ),
        ];
        for (value, alone, inside) in table {
            let scope = scope(value);
            assert_eq!(rendered("{{v}}", &scope), alone, "{value} alone");
            assert_eq!(rendered(" \n{{ v }}\n", &scope), alone, "{value} with white space");
            assert_eq!(rendered("{{nodes.A.output}}", &scope), alone, "{value} as an output");
            assert_eq!(
                rendered("x{{v}}y", &scope),
                Value::from(inside).to_json(),
                "{value} inside"
            );
            let kept = format!("[{alone},{{\"k\":{alone}}}]");
            assert_eq!(rendered("{{ [v, {'k': v}] }}", &scope), kept, "{value} in a container");
        }
    }

    #[test]
    fn text_is_kept_to_the_last_line_end() {
        for text in ["", "a\n", "  a \r\n\r\n", "\"\\\n{ % }} #}", "ä \u{0} \u{2028} 𝄞"] {
            let template = parsed(text);
            assert_eq!(template.render(&Scope::new()).unwrap().value.as_str(), Some(text));
            let with_value = format!("{text}{{{{ 1 }}}}{text}|");
            let expected = format!("{text}1{text}|");
            assert_eq!(rendered(&with_value, &Scope::new()), Value::from(expected).to_json());
        }
    }

    // O-E03

    #[test]
    fn an_unresolved_reference_is_a_failure_that_lists_what_is_missing() {
        let source = "{{nodes.A.output.titel}} and {{nodes.Zed.output.x}}";
        let template = parsed(source);
        let nodes: Vec<_> = template.references().iter().map(|r| r.node.clone()).collect();
        assert_eq!(nodes, [Some("A".into()), Some("Zed".into())], "Zed is seen without running");
        let scope = scope(r#"{"title":"t"}"#);
        assert_eq!(unresolved("{{nodes.A.output.titel}}", &scope), ["nodes.A.output.titel"]);
        assert_eq!(unresolved(source, &scope), ["nodes.A.output.titel", "nodes.Zed.output.x"]);
        let failure = failed(source, &scope).to_failure();
        assert_eq!(failure.class, FailureClass::BindingError);
        assert_eq!(failure.unresolved, ["nodes.A.output.titel", "nodes.Zed.output.x"]);
        assert_eq!(
            failure.message,
            "unresolved: nodes.A.output.titel, nodes.Zed.output.x; `nodes.A.output` has title"
        );
    }

    #[test]
    fn a_present_null_is_not_unresolved() {
        let scope = scope(r#"{"titel": null}"#);
        assert_eq!(rendered("{{nodes.A.output.titel}}", &scope), "null");
        assert_eq!(rendered("({{nodes.A.output.titel}})", &scope), r#""(null)""#);
        assert_eq!(unresolved("{{nodes.A.output.titel.x}}", &scope), ["nodes.A.output.titel.x"]);
    }

    #[test]
    fn only_default_and_defined_may_miss() {
        let scope = scope(r#"{"a":{"b":1}}"#);
        let table = [
            ("{{ v.x.y | default('d') }}", r#""d""#),
            ("{{ v.x.y | d(0) }}", "0"),
            ("{{ nope | default([]) }}", "[]"),
            ("{{ nodes.Zed.output.x | default(null) }}", "null"),
            ("{{ v.a.b | default(0) }}", "1"),
            ("{{ v['x'].y is defined }}", "false"),
            ("{{ v.a.b is defined }}", "true"),
            ("{{ v.x is undefined }}", "true"),
            ("{{ 'y' if v.x is defined else 'n' }}", r#""n""#),
            ("{{ v.x is defined and v.x.y }}", "false"),
            ("{{ v.x | default(v.a.b) }}", "1"),
            ("-{% if v.x is defined %}{{ v.x.y }}{% else %}none{% endif %}", r#""-none""#),
        ];
        for (source, expected) in table {
            assert_eq!(rendered(source, &scope), expected, "{source}");
        }
        let missing = [
            ("{{ v.x }}", vec!["v.x"]),
            ("{{ v.x.y }}", vec!["v.x.y"]),
            ("{{ v.x + 1 }}", vec!["v.x"]),
            ("{{ v.x == 1 }}", vec!["v.x"]),
            ("{{ v.x ~ 'a' }}", vec!["v.x"]),
            ("{{ v.x is none }}", vec!["v.x"]),
            ("{{ v.x | upper }}", vec!["v.x"]),
            ("{{ v.x | tojson }}", vec!["v.x"]),
            ("{{ v.x | length }}", vec!["v.x"]),
            ("{{ v.x | bool }}", vec!["v.x"]),
            ("{{ not v.x }}", vec!["v.x"]),
            ("{{ [v.x] }}", vec!["v.x"]),
            ("{{ {'k': v.x} }}", vec!["v.x"]),
            ("{{ v.a in v.x }}", vec!["v.x"]),
            ("{{ v[v.k] }}", vec!["v.k"]),
            ("{{ v[\"x\"] }}", vec!["v[\"x\"]"]),
            ("{{ v.x | default(v.y) }}", vec!["v.y"]),
            ("{% for i in v.x %}{% endfor %}", vec!["v.x"]),
            ("{% if v.x %}{% endif %}", vec!["v.x"]),
            ("{% set y = v.x %}{{ y }}", vec!["v.x"]),
            ("{% if true %}{{ v.x }}{% else %}{{ v.y }}{% endif %}", vec!["v.x"]),
            ("{{ v.x }}{{ v.a }}{{ y }}{{ v.x }}", vec!["v.x", "y"]),
            ("{% for i in [1] %}{{ i.x }}{% endfor %}", vec!["i.x"]),
            ("{{ [] | first }}", vec!["[] | first"]),
            ("a {{ [] | min }}", vec!["[] | min"]),
        ];
        for (source, expected) in missing {
            assert_eq!(unresolved(source, &scope), expected, "{source}");
        }
    }

    #[test]
    fn nodes_are_read_by_id_in_every_spelling() {
        let scope = scope(r#"{"x":[10,20]}"#);
        let table = [
            ("{{ nodes.A.output.x }}", "[10,20]"),
            ("{{ nodes['A'].output.x[1] }}", "20"),
            ("{{ nodes[\"my-node\"].output['x'][0] }}", "10"),
            ("{{ nodes['a.b'].output.x[-1] }}", "20"),
            ("{{ nodes.7.output.x.0 }}", "10"),
            ("{{ nodes['A']['output'].x | last }}", "20"),
        ];
        for (source, expected) in table {
            assert_eq!(rendered(source, &scope), expected, "{source}");
        }
        let reference = &parsed("x {{ nodes['my-node'].output.x[v.i].y }}").references()[0].clone();
        assert_eq!(reference.root, "nodes");
        assert_eq!(reference.node, Some("my-node".into()));
        assert_eq!(reference.text, "nodes['my-node'].output.x");
        assert!(!reference.guarded);
        assert_eq!(reference.offset, 5);
    }

    #[test]
    fn references_are_what_is_read_from_the_scope() {
        let source = "{% for item in v.items if item.ok %}{{ item.x }}{{ loop.index }}{% endfor %}\
            {% set total = v.items | length %}{{ total }}{{ w.y | default(z) }}{{ null }}\
            {% with a = b %}{{ a }}{% endwith %}{{ a }}{{ range(3) }}";
        let references: Vec<_> = parsed(source)
            .references()
            .iter()
            .map(|reference| (reference.text.clone(), reference.guarded))
            .collect();
        let expected = [
            ("v.items", false),
            ("v.items", false),
            ("w.y", true),
            ("z", false),
            ("b", false),
            ("a", false),
        ];
        let expected: Vec<_> = expected.map(|(text, guarded)| (text.to_owned(), guarded)).into();
        assert_eq!(references, expected);
    }

    #[test]
    fn a_hyphenated_node_id_is_explained() {
        for source in [
            "{{ nodes.my-node.output.x }}",
            "a {{ nodes.my-node.output.x | upper }}",
            "{{ nodes.my-node-2.output }}",
            "{{ nodes.my-node }}",
            "{{ nodes.3f2b-77.output }}",
        ] {
            let error = refused(source);
            assert!(
                error.hint.unwrap().starts_with("write nodes[\""),
                "{source}: {}",
                error.message
            );
        }
        let error = refused("{{ nodes.my-node.output.x }}");
        assert_eq!(error.hint.as_deref(), Some("write nodes[\"my-node\"].output"));
        assert_eq!((error.line, error.column), (1, 4));
        let error = refused("{{ nodes.a.b.output.x }}");
        let hint = "an id with a point is written nodes[\"a.b\"].output";
        assert_eq!(error.hint.as_deref(), Some(hint));
        assert!(refused("{{ nodes.A.titel }}").message.contains(".output"));
    }

    // Secrets.

    #[test]
    fn secrets_stay_placeholders_and_only_those_of_the_template_are_reported() {
        let source =
            "Bearer {{ secret:API.key-1 }} {{v}}{% for i in [1, 2] %} {{secret:B}}{% endfor %}";
        let template = parsed(source);
        assert_eq!(template.secrets(), ["API.key-1", "B"]);
        let scope = Scope::new().with("v", "ä {{secret:B}}");
        let rendered = template.render(&scope).unwrap();
        let text = rendered.value.as_str().unwrap();
        assert_eq!(text, "Bearer {{secret:API.key-1}} ä {{secret:B}} {{secret:B}} {{secret:B}}");
        let spots: Vec<_> = rendered
            .secrets
            .iter()
            .map(|spot| (spot.key.as_str(), spot.range.start, &text[spot.range.clone()]))
            .collect();
        assert_eq!(
            spots,
            [
                ("API.key-1", 7, "{{secret:API.key-1}}"),
                ("B", 44, "{{secret:B}}"),
                ("B", 57, "{{secret:B}}"),
            ]
        );
    }

    #[test]
    fn a_secret_alone_is_a_text_with_one_spot() {
        let rendered = parsed("{{secret:KEY}}").render(&Scope::new()).unwrap();
        assert_eq!(rendered.value.as_str(), Some("{{secret:KEY}}"));
        assert_eq!(rendered.secrets, [SecretSpot { range: 0..14, key: "KEY".into() }]);
    }

    #[test]
    fn secrets_in_comments_are_gone_and_in_raw_text_are_text() {
        let template = parsed("a{# {{secret:K}} #}b{% raw %}{{secret:K}}{% endraw %}{{ 1 }}");
        assert_eq!(template.secrets(), [""; 0]);
        let rendered = template.render(&Scope::new()).unwrap();
        assert_eq!(rendered.value.as_str(), Some("ab{{secret:K}}1"));
        assert_eq!(rendered.secrets, []);
    }

    #[test]
    fn secrets_never_reach_an_expression() {
        for source in [
            "{{ 'Bearer {{secret:K}}' | upper }}",
            "{% set x %}{{secret:K}}{% endset %}",
            "{% filter upper %}a {{secret:K}}{% endfilter %}",
            "{% if '{{secret:K}}' %}{% endif %}",
            "{{ secret:K | upper }}",
        ] {
            refused(source);
        }
    }

    // Default deny.

    #[test]
    fn nothing_but_the_scope_can_be_reached() {
        for source in [
            "{% include 'x' %}",
            "{% import 'x' as y %}",
            "{% from 'x' import y %}",
            "{% extends 'x' %}",
            "{% block a %}{% endblock %}",
            "{% macro a() %}{% endmacro %}",
            "{% call a() %}{% endcall %}",
            "{% autoescape true %}{% endautoescape %}",
            "{% do v.x() %}",
            "{{ debug() }}",
            "{{ now() }}",
            "{{ dict(a=1) }}",
            "{{ namespace(a=1) }}",
            "{{ v.items() }}",
            "{{ 'a'.upper() }}",
            "{{ loop.cycle(1) }}",
            "{{ range(*[1]) }}",
            "{{ __add }}",
            "{{ 1 | __add(2) }}",
            "{{ v | safe }}",
            "{{ v | pprint }}",
            "{{ v | uper }}",
            "{{ v | map('uper') }}",
            "{{ v | select('odder') }}",
            "{{ v | selectattr('a', 'odder') }}",
            "{{ v is odder }}",
            "{% set v.x = 1 %}",
            "{% for x in v recursive %}{% endfor %}",
            "{{ 1 < 2 < 3 }}",
            "{{ 'a' if v }}",
            "{{ 1e400 }}",
        ] {
            let error = refused(source);
            assert_eq!(error.line, 1, "{source}: {error}");
        }
        let missing = ["{{ self }}", "{{ loop }}", "{{ nodes }}", "{{ input }}"];
        for source in missing {
            assert_eq!(unresolved(source, &Scope::new()).len(), 1, "{source}");
        }
    }

    #[test]
    fn syntax_errors_say_where() {
        let error = refused("äö\r\n  {{ v | }}");
        assert_eq!((error.line, error.column), (2, 10), "{error}");
        let error = refused("a\n\n{{ v | nope }}");
        assert_eq!((error.line, error.column), (3, 8));
        assert!(error.to_string().starts_with("line 3, column 8: there is no filter `nope`; the "));
        for source in ["{{", "{{ v", "{% if v %}", "{% endif %}", "{#", "{{ v }", "{{ secret:ä }}"]
        {
            assert!(!refused(source).message.is_empty(), "{source}");
        }
    }

    #[test]
    fn failures_say_the_line_in_the_template() {
        let error = failed("a\n{{ 1 }}\n{{ v + 1 }}", &scope("\"x\""));
        let expected = "line 3: `+` cannot add a text and a number; \
            to put texts together write them side by side, or use `~`";
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.to_failure().class, FailureClass::BindingError);
    }

    // Bounds.

    #[test]
    fn bombs_run_out_of_fuel() {
        let list = format!("[{}]", vec!["0"; 1000].join(","));
        let scope = scope(&list);
        for source in [
            "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
            "{% for a in v %}{% for b in v %}{{ v }}{% endfor %}{% endfor %}",
            "{% for a in v %}{% for b in v %}{% if v == v %}{% endif %}{% endfor %}{% endfor %}",
            "{% for a in v %}{% for b in v %}{% set x = v | sort %}{% endfor %}{% endfor %}",
            "{% for a in v %}{% for b in v %}{% set x = v | tojson %}{% endfor %}{% endfor %}",
            "{% for a in v %}{% for b in v %}{% set x = v | join(',') %}{% endfor %}{% endfor %}",
            "{% for a in v %}{% for b in v %}{% set x = v | sum %}{% endfor %}{% endfor %}",
            "{% for a in v %}{% for b in v %}{% set x = 7 in v %}{% endfor %}{% endfor %}",
        ] {
            match failed(source, &scope) {
                RenderError::Failed { message, .. } => {
                    assert!(message.contains("work"), "{message}")
                }
                other => panic!("{source}: {other}"),
            }
        }
    }

    #[test]
    fn a_result_that_is_too_large_is_refused() {
        let text = "x".repeat(1024 * 1024);
        let scope = Scope::new().with("t", text.as_str());
        for source in [
            "{% for i in range(40) %}{{ t }}{% endfor %}",
            &format!("{{{{ [{}] }}}}", vec!["t"; 40].join(", ")),
            &"{{ t ~ t ~ t ~ t }}".repeat(10),
        ] {
            let error = failed(source, &scope);
            assert!(error.to_string().contains("larger than 32 MiB"), "{error}");
        }
        let eight = Scope::new().with("t", "x".repeat(8 * 1024 * 1024).as_str());
        let four = parsed("{{ t }}{{ t }}{{ t }}{{ t }}").render(&eight).unwrap();
        assert_eq!(four.value.as_str().unwrap().len(), OUTPUT_BYTES_MAX);
    }

    #[test]
    fn a_result_that_is_too_deep_is_refused() {
        let source = format!("{{{{ {}v{} }}}}", "[".repeat(50), "]".repeat(50));
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(rendered(&source, &scope(&deep(78))), deep(128));
        assert!(failed(&source, &scope(&deep(79))).to_string().contains("deeper than 128"));
        let mut nesting = String::new();
        for _ in 0..400 {
            nesting.push_str("{% set v = [[v]] %}");
        }
        let error = failed(&format!("{nesting}{{{{ v }}}}"), &scope("0"));
        assert!(error.to_string().contains("deeper than 128"), "{error}");
    }

    #[test]
    fn templates_that_would_exhaust_the_stack_are_refused() {
        let sources = [
            format!("{{{{ {}1 }}}}", "1 + ".repeat(100_000)),
            format!("{{{{ v{} }}}}", ".a".repeat(100_000)),
            format!("{{{{ v{} }}}}", "|upper".repeat(100_000)),
            format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000)),
            format!("{{{{ {}1 }}}}", "not ".repeat(100_000)),
            format!("{{{{ {}1 }}}}", "-".repeat(100_000)),
            format!("{{{{ {}1 }}}}", "1 if 1 else ".repeat(100_000)),
            format!("{{% if 1 %}}{}{{% endif %}}", "{% elif 1 %}".repeat(100_000)),
            format!("{}{}", "{% if 1 %}".repeat(100_000), "{% endif %}".repeat(100_000)),
            format!("{{% for {}a{} in v %}}{{% endfor %}}", "(".repeat(9_000), ")".repeat(9_000)),
            "{% set v = [v] %}".repeat(100_000),
        ];
        for source in sources {
            refused(&source);
        }
    }

    #[test]
    fn templates_at_the_bounds_fit_a_small_stack() {
        let sources = [
            format!("{{{{ {}1 }}}}", "1 + ".repeat(190)),
            format!("{{{{ {}1{} }}}}", "(".repeat(70), ")".repeat(70)),
            format!("{}x{}", "{% if 1 %}".repeat(140), "{% endif %}".repeat(140)),
            format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(50)),
            format!("{}{{{{ v | length }}}}", "{% set v = [v] %}".repeat(600)),
        ];
        let run = move || {
            for source in sources {
                parsed(&source).render(&scope("[1]")).unwrap();
            }
        };
        std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(run).unwrap().join().unwrap();
    }

    #[test]
    fn long_texts_are_lent_and_not_copied_at_each_reading() {
        let text = "x".repeat(8 * 1024 * 1024);
        let scope = Scope::new()
            .with("v", [("t", text.as_str())].into_iter().collect::<crate::value::Object>());
        let source = "{% for i in range(20000) %}{% set x = v.t %}{% endfor %}done";
        assert_eq!(rendered(source, &scope), r#""done""#);
    }

    // Properties.

    fn any_json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            any::<bool>().prop_map(|flag| flag.to_string()),
            "-?(0|[1-9][0-9]{0,45})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?",
            any::<String>().prop_map(|text| Value::from(text).to_json()),
            "[{}%#a-z:\"' .|]{0,12}".prop_map(|text| Value::from(text).to_json()),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6)
                    .prop_map(|items| format!("[{}]", items.join(","))),
                prop::collection::btree_map("[a-z{}\" ]{0,4}", inner, 0..6).prop_map(|map| {
                    let pairs: Vec<_> = map
                        .iter()
                        .map(|(key, value)| format!("{}:{value}", Value::from(key.as_str())))
                        .collect();
                    format!("{{{}}}", pairs.join(","))
                }),
            ]
        })
    }

    fn as_text(value: &Value) -> String {
        value.as_str().map_or_else(|| value.to_json(), str::to_owned)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn any_value_alone_is_unchanged_and_inside_is_its_text(text in any_json()) {
            let value = json(&text);
            let scope = scope(&text);
            for source in ["{{ v }}", "{{ nodes['my-node'].output }}", "{{ v | default(0) }}"] {
                prop_assert_eq!(rendered(source, &scope), value.to_json());
            }
            let inside = Value::from(format!("a{}b{}", as_text(&value), as_text(&value)));
            prop_assert_eq!(rendered("a{{ v }}b{{ v ~ '' }}", &scope), inside.to_json());
            prop_assert_eq!(rendered("{{ v == v }}", &scope), "true");
            let quoted = Value::from(value.to_json()).to_json();
            prop_assert_eq!(rendered("{{ v | tojson }}", &scope), quoted);
        }

        #[test]
        fn every_part_of_a_value_can_be_read(text in any_json()) {
            let scope = scope(&text);
            let (mut value, mut path) = (json(&text), "v".to_owned());
            loop {
                prop_assert_eq!(rendered(&format!("{{{{ {path} }}}}"), &scope), value.to_json());
                value = match value {
                    Value::Array(mut items) if !items.is_empty() => {
                        path.push_str(&format!("[{}]", items.len() - 1));
                        items.remove(items.len() - 1)
                    }
                    Value::Object(object) if !object.is_empty() => {
                        let (key, value) = object.into_iter().next().unwrap();
                        path.push_str(&format!("[{}]", Value::from(key)));
                        value
                    }
                    _ => break,
                };
            }
        }

        #[test]
        fn no_text_makes_the_parser_panic(
            parts in prop::collection::vec(
                prop_oneof![
                    "[{}%#a-z0-9 .|~+*/()\\[\\]:,\"'=<>!_-]",
                    prop::sample::select(vec![
                        "{{", "}}", "{%", "%}", " if ", " for ", " in ", "secret:", "nodes.", "v",
                        "\n", "é", "{{secret:K}}", "{% raw %}", "{% endraw %}", "{#", "#}",
                    ])
                    .prop_map(str::to_owned),
                ],
                0..40,
            ),
        ) {
            let source = parts.concat();
            if let Ok(template) = Template::parse(&source) {
                let _ = template.render(&scope("[1,{\"a\":\"b\"}]"));
            }
        }

        #[test]
        fn no_expression_makes_the_engine_panic(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "v", "1", "2.50", "'a'", "null", "true", "[", "]", "(", ")", "{", "}", ":", ",",
                    " + ", " - ", " * ", " / ", " // ", " % ", " ** ", " ~ ", " == ", " < ", " in ",
                    " and ", " or ", "not ", " if ", " else ", "|", "upper", "sort", "round", "int",
                    "truncate(3)", "join", "map('int')", "select('odd')", " is ", "odd", "defined",
                    ".a", "[0]", "[1:]", "range(3)", "first", "sum", "slice(2)", "batch(2)",
                ]),
                1..12,
            ),
            value in any_json(),
        ) {
            let expression = parts.concat();
            for source in [format!("{{{{ {expression} }}}}"), format!("x{{{{ {expression} }}}}")] {
                if let Ok(template) = Template::parse(&source) {
                    let _ = template.render(&scope(&value));
                }
            }
        }
    }

    #[test]
    fn templates_can_be_shared_between_threads() {
        fn check<T: Send + Sync + Clone>(_: &T) {}
        check(&parsed("{{ v }}"));
        check(&Scope::new());
    }
}
