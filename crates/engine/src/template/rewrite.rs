//! From what an author wrote to what the engine runs, checking every name on the way.
//!
//! The engine's parser reads the template; this walks its tree and writes an equal template in
//! which operators are our own filters, numbers keep their digits and text is text. The walk also
//! notes what is read from the scope. Its depth is bounded by [`super::tokens`].

use std::collections::BTreeSet;

use minijinja::Value as EngineValue;
use minijinja::machinery::{Span, ast};
use minijinja::value::ValueKind;

use super::checks::TESTS;
use super::filters::FILTERS;
use super::operators::name;
use super::secret::{Placeholder, written};
use super::{NODES, Reference, TemplateError};
use crate::ids::NodeId;
use crate::value::Number;

/// The one function that templates have.
const RANGE: &str = "range";

/// The result of the walk.
#[derive(Debug, Default)]
pub(super) struct Rewritten {
    /// The template, or the expression, for the engine.
    pub(super) source: String,
    /// The literal text alone.
    pub(super) text: String,
    /// Which part of the engine's source comes from where, ascending.
    pub(super) origins: Vec<Origin>,
    /// What is read from the scope, in the order it is written.
    pub(super) reads: Vec<Read>,
    /// Where in the engine's source a secret is written: offset and number of the placeholder.
    pub(super) secrets: Vec<(usize, usize)>,
    /// Placeholders that stand in raw text, where they are no placeholders.
    pub(super) raw_secrets: Vec<usize>,
}

/// Where a part of the engine's source comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// Offset in the engine's source.
    pub(super) at: usize,
    /// Offsets in the author's.
    pub(super) from: usize,
    pub(super) to: usize,
}

/// A reference with what is needed to try it.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) reference: Reference,
    /// The keys after the root, as far as they are known.
    pub(super) keys: Vec<EngineValue>,
    /// How the engine describes it in errors.
    pub(super) described: String,
    /// Whether it is read only in some cases: in a branch, a loop, or after `and`.
    pub(super) is_conditional: bool,
}

/// Walks a whole template.
pub(super) fn template(
    source: &str,
    masked: &str,
    placeholders: &[Placeholder],
    root: &ast::Stmt<'_>,
) -> Result<Rewritten> {
    let mut rewriter = Rewriter::new(source, masked, placeholders);
    rewriter.statement(root)?;
    Ok(rewriter.done)
}

/// Walks a single expression, which must have a value.
pub(super) fn expression(
    source: &str,
    masked: &str,
    emit: &ast::Spanned<ast::EmitExpr<'_>>,
) -> Result<Rewritten> {
    let mut rewriter = Rewriter::new(source, masked, &[]);
    rewriter.origin(emit.span());
    rewriter.filtered(&emit.expr, name::RESOLVED, &[])?;
    Ok(rewriter.done)
}

struct Rewriter<'s> {
    source: &'s str,
    masked: &'s str,
    placeholders: &'s [Placeholder],
    done: Rewritten,
    /// Names that belong to the template, innermost last.
    locals: Vec<BTreeSet<String>>,
    n_conditions: usize,
    n_captures: usize,
}

/// One step of a path.
enum Step<'t, 'a> {
    Attribute(&'a str),
    Item(&'t ast::Expr<'a>),
}

/// Whether a reference may be missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Fails,
    IsLegal,
}

type Result<T> = std::result::Result<T, TemplateError>;

impl<'s> Rewriter<'s> {
    fn new(source: &'s str, masked: &'s str, placeholders: &'s [Placeholder]) -> Self {
        Rewriter {
            source,
            masked,
            placeholders,
            done: Rewritten::default(),
            locals: vec![BTreeSet::new()],
            n_conditions: 0,
            n_captures: 0,
        }
    }

    // Statements.

    fn statements(&mut self, statements: &[ast::Stmt<'_>]) -> Result<()> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &ast::Stmt<'_>) -> Result<()> {
        match statement {
            ast::Stmt::Template(template) => self.statements(&template.children),
            ast::Stmt::EmitRaw(raw) => self.raw(raw.raw),
            ast::Stmt::EmitExpr(emit) => self.emit(&emit.expr, emit.span()),
            ast::Stmt::ForLoop(statement) => self.for_loop(statement, statement.span()),
            ast::Stmt::IfCond(statement) => self.if_cond(statement),
            ast::Stmt::WithBlock(statement) => self.with_block(statement),
            ast::Stmt::Set(statement) => {
                self.push("{%- set ");
                let mut names = Vec::new();
                self.target(&statement.target, &mut names, statement.span())?;
                self.push(" = ");
                self.origin(statement.expr.span());
                self.expr(&statement.expr)?;
                self.push(" -%}\n");
                self.assign(names);
                Ok(())
            }
            ast::Stmt::SetBlock(statement) => self.set_block(statement, statement.span()),
            ast::Stmt::FilterBlock(statement) => {
                self.origin(statement.filter_span);
                self.push("{%- filter ");
                self.filter_chain(&statement.filter)?;
                self.push(" -%}\n");
                self.captured(&statement.body)?;
                self.push("{%- endfilter -%}\n");
                Ok(())
            }
            ast::Stmt::AutoEscape(statement) => Err(self.refuse(
                statement.span(),
                "templates have no `autoescape`",
                "write `| xml_escape` where a value goes into XML or HTML",
            )),
            ast::Stmt::Do(statement) => Err(self.refuse(
                statement.span(),
                "templates have no `do`: they cannot change anything",
                "use `set` to name a result",
            )),
        }
    }

    /// Literal text.
    fn raw(&mut self, raw: &str) -> Result<()> {
        // `raw` is a part of the masked source, which has the author's offsets.
        let from = raw.as_ptr().addr() - self.masked.as_ptr().addr();
        let range = from..from + raw.len();
        for (number, placeholder) in self.placeholders.iter().enumerate() {
            if range.contains(&placeholder.range.start) {
                self.done.raw_secrets.push(number);
            }
        }
        let text = &self.source[range];
        self.done.text.push_str(text);
        self.push("{{- ");
        self.literal(text);
        self.push(" -}}\n");
        Ok(())
    }

    fn emit(&mut self, expr: &ast::Expr<'_>, span: Span) -> Result<()> {
        self.origin(span);
        self.push("{{- ");
        let offset = span.start_offset as usize;
        let placeholders = self.placeholders;
        match placeholders.iter().position(|placeholder| placeholder.range.contains(&offset)) {
            Some(number) => {
                if self.n_captures > 0 {
                    return Err(self.refuse(
                        span,
                        "a secret cannot stand inside `set` or `filter`",
                        "write it directly into the text",
                    ));
                }
                self.done.secrets.push((self.done.source.len(), number));
                self.literal(&written(&placeholders[number].key));
            }
            None => self.filtered(expr, name::TEXT, &[])?,
        }
        self.push(" -}}\n");
        Ok(())
    }

    fn for_loop(&mut self, statement: &ast::ForLoop<'_>, span: Span) -> Result<()> {
        if statement.recursive {
            return Err(self.refuse(
                span,
                "templates have no recursive loops",
                "write one loop inside the other, or leave the work to an agent",
            ));
        }
        let mut names = vec!["loop".to_owned()];
        self.push("{%- for ");
        self.target(&statement.target, &mut names, span)?;
        self.push(" in ");
        self.origin(statement.iter.span());
        self.filtered(&statement.iter, name::EACH, &[])?;
        self.locals.push(names.into_iter().collect());
        self.n_conditions += 1;
        if let Some(filter) = &statement.filter_expr {
            self.push(" if ");
            self.expr(filter)?;
        }
        self.push(" -%}\n");
        self.statements(&statement.body)?;
        self.locals.pop();
        self.locals.push(BTreeSet::new());
        if !statement.else_body.is_empty() {
            self.push("{%- else -%}\n");
            self.statements(&statement.else_body)?;
        }
        self.locals.pop();
        self.n_conditions -= 1;
        self.push("{%- endfor -%}\n");
        Ok(())
    }

    fn if_cond(&mut self, statement: &ast::IfCond<'_>) -> Result<()> {
        self.origin(statement.expr.span());
        self.push("{%- if ");
        self.expr(&statement.expr)?;
        self.push(" -%}\n");
        self.n_conditions += 1;
        self.statements(&statement.true_body)?;
        if !statement.false_body.is_empty() {
            self.push("{%- else -%}\n");
            self.statements(&statement.false_body)?;
        }
        self.n_conditions -= 1;
        self.push("{%- endif -%}\n");
        Ok(())
    }

    fn with_block(&mut self, statement: &ast::WithBlock<'_>) -> Result<()> {
        self.locals.push(BTreeSet::new());
        self.push("{%- with ");
        for (position, (target, expr)) in statement.assignments.iter().enumerate() {
            self.push(if position > 0 { ", " } else { "" });
            let mut names = Vec::new();
            let is_list = matches!(target, ast::Expr::List(_));
            self.push(if is_list { "(" } else { "" });
            self.target(target, &mut names, expr.span())?;
            self.push(if is_list { ") = " } else { " = " });
            self.origin(expr.span());
            self.expr(expr)?;
            self.assign(names);
        }
        self.push(" -%}\n");
        self.statements(&statement.body)?;
        self.locals.pop();
        self.push("{%- endwith -%}\n");
        Ok(())
    }

    fn set_block(&mut self, statement: &ast::SetBlock<'_>, span: Span) -> Result<()> {
        let mut names = Vec::new();
        self.origin(span);
        self.push("{%- set ");
        self.target(&statement.target, &mut names, span)?;
        if let Some(filter) = &statement.filter {
            self.push(" | ");
            self.filter_chain(filter)?;
        }
        self.push(" -%}\n");
        self.captured(&statement.body)?;
        self.push("{%- endset -%}\n");
        self.assign(names);
        Ok(())
    }

    /// Statements whose text goes to a name or a filter.
    fn captured(&mut self, body: &[ast::Stmt<'_>]) -> Result<()> {
        self.n_captures += 1;
        self.statements(body)?;
        self.n_captures -= 1;
        Ok(())
    }

    /// Writes the names that receive a value and collects them.
    fn target(
        &mut self,
        target: &ast::Expr<'_>,
        names: &mut Vec<String>,
        span: Span,
    ) -> Result<()> {
        match target {
            ast::Expr::Var(var) => {
                self.check_name(var.id, var.span())?;
                self.push(var.id);
                names.push(var.id.to_owned());
                Ok(())
            }
            ast::Expr::List(list) => {
                for (position, item) in list.items.iter().enumerate() {
                    self.push(if position > 0 { ", " } else { "" });
                    let is_list = matches!(item, ast::Expr::List(_));
                    self.push(if is_list { "(" } else { "" });
                    self.target(item, names, span)?;
                    self.push(if is_list { ")" } else { "" });
                }
                // A single name with a comma is a list of one.
                self.push(if list.items.len() == 1 { "," } else { "" });
                Ok(())
            }
            _ => Err(self.refuse(
                span,
                "a template cannot change a value",
                "use `set` with a plain name",
            )),
        }
    }

    // Expressions. Each is written so that a filter can follow directly, and a chain of filters
    // without brackets, which would make it deep.

    fn expr(&mut self, expr: &ast::Expr<'_>) -> Result<()> {
        match expr {
            ast::Expr::Var(_) | ast::Expr::GetAttr(_) | ast::Expr::GetItem(_) => {
                self.path(expr, Missing::Fails)
            }
            ast::Expr::Const(constant) => self.constant(&constant.value, constant.span()),
            ast::Expr::Slice(slice) => self.slice(slice),
            ast::Expr::UnaryOp(unary) => self.unary(unary),
            ast::Expr::BinOp(binary) => self.binary(binary),
            ast::Expr::Compare(compare) => Err(self.refuse(
                compare.span(),
                "comparisons cannot be chained",
                "write `a < b and b < c`",
            )),
            ast::Expr::IfExpr(condition) => self.if_expr(condition, condition.span()),
            ast::Expr::Filter(filter) => self.filter(filter, filter.span()),
            ast::Expr::Test(test) => self.test(test, test.span()),
            ast::Expr::Call(call) => self.call(call, call.span()),
            ast::Expr::List(list) => self.list(&list.items),
            ast::Expr::Tuple(tuple) => self.list(&tuple.items),
            ast::Expr::Map(map) => {
                self.push("{");
                for (key, value) in map.keys.iter().zip(&map.values) {
                    self.expr(key)?;
                    self.push(": ");
                    self.expr(value)?;
                    self.push(", ");
                }
                self.push("}");
                Ok(())
            }
        }
    }

    /// `expr|filter(args)`.
    fn filtered(
        &mut self,
        expr: &ast::Expr<'_>,
        filter: &str,
        args: &[&ast::Expr<'_>],
    ) -> Result<()> {
        self.expr(expr)?;
        self.push("|");
        self.push(filter);
        self.push("(");
        for arg in args {
            self.expr(arg)?;
        }
        self.push(")");
        Ok(())
    }

    fn list(&mut self, items: &[ast::Expr<'_>]) -> Result<()> {
        self.push("[");
        for item in items {
            self.expr(item)?;
            self.push(", ");
        }
        self.push("]");
        Ok(())
    }

    fn constant(&mut self, value: &EngineValue, span: Span) -> Result<()> {
        match value.kind() {
            ValueKind::None => self.push("none"),
            ValueKind::Bool => self.push(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.number("", value, span)?,
            _ => self.literal(value.as_str().unwrap_or_default()),
        }
        Ok(())
    }

    /// A number literal with the digits the author wrote.
    fn number(&mut self, sign: &str, value: &EngineValue, span: Span) -> Result<()> {
        let digits = if value.is_integer() {
            value.to_string()
        } else {
            self.source[span.start_offset as usize..span.end_offset as usize].replace('_', "")
        };
        let text = format!("{sign}{digits}");
        match text.parse::<i128>() {
            Ok(integer) if integer.to_string() == text => self.push(&format!("({text})")),
            _ => {
                if let Err(error) = Number::parse(&text) {
                    return Err(self.refuse(span, error.to_string(), ""));
                }
                self.push(&format!("\"{text}\"|{}()", name::NUMBER));
            }
        }
        Ok(())
    }

    fn slice(&mut self, slice: &ast::Slice<'_>) -> Result<()> {
        self.base(&slice.expr)?;
        self.push("[");
        for (position, part) in [&slice.start, &slice.stop, &slice.step].into_iter().enumerate() {
            self.push(if position > 0 { ":" } else { "" });
            if let Some(part) = part {
                self.expr(part)?;
            }
        }
        self.push("]");
        Ok(())
    }

    fn unary(&mut self, unary: &ast::UnaryOp<'_>) -> Result<()> {
        match (&unary.op, &unary.expr) {
            (ast::UnaryOpKind::Not, expr) => {
                self.push("(not ");
                self.expr(expr)?;
                self.push(")");
                Ok(())
            }
            (ast::UnaryOpKind::Neg, ast::Expr::Const(constant))
                if constant.value.kind() == ValueKind::Number =>
            {
                self.number("-", &constant.value, constant.span())
            }
            (ast::UnaryOpKind::Neg, expr) => self.filtered(expr, name::NEG, &[]),
        }
    }

    fn binary(&mut self, binary: &ast::BinOp<'_>) -> Result<()> {
        let (left, right) = (&binary.left, &binary.right);
        let filter = match binary.op {
            ast::BinOpKind::ScAnd => return self.short_circuit(left, "and", right),
            ast::BinOpKind::ScOr => return self.short_circuit(left, "or", right),
            ast::BinOpKind::Sub => {
                self.check_hyphen(left)?;
                name::SUB
            }
            ast::BinOpKind::Add => name::ADD,
            ast::BinOpKind::Mul => name::MUL,
            ast::BinOpKind::Div => name::DIV,
            ast::BinOpKind::FloorDiv => name::FLOOR_DIV,
            ast::BinOpKind::Rem => name::REM,
            ast::BinOpKind::Pow => name::POW,
            ast::BinOpKind::Concat => name::CONCAT,
            ast::BinOpKind::Eq => name::EQ,
            ast::BinOpKind::Ne => name::NE,
            ast::BinOpKind::Lt => name::LT,
            ast::BinOpKind::Lte => name::LE,
            ast::BinOpKind::Gt => name::GT,
            ast::BinOpKind::Gte => name::GE,
            ast::BinOpKind::In => name::IN,
        };
        self.filtered(left, filter, &[right])
    }

    fn short_circuit(
        &mut self,
        left: &ast::Expr<'_>,
        word: &str,
        right: &ast::Expr<'_>,
    ) -> Result<()> {
        self.push("(");
        self.expr(left)?;
        self.push(&format!(" {word} "));
        self.conditional(right)?;
        self.push(")");
        Ok(())
    }

    fn if_expr(&mut self, condition: &ast::IfExpr<'_>, span: Span) -> Result<()> {
        let Some(otherwise) = &condition.false_expr else {
            return Err(self.refuse(
                span,
                "`if` inside an expression needs an `else`",
                "write `a if b else \"\"`, or use `{% if b %}`",
            ));
        };
        self.push("(");
        self.conditional(&condition.true_expr)?;
        self.push(" if ");
        self.expr(&condition.test_expr)?;
        self.push(" else ");
        self.conditional(otherwise)?;
        self.push(")");
        Ok(())
    }

    fn conditional(&mut self, expr: &ast::Expr<'_>) -> Result<()> {
        self.n_conditions += 1;
        self.expr(expr)?;
        self.n_conditions -= 1;
        Ok(())
    }

    fn filter(&mut self, filter: &ast::Filter<'_>, span: Span) -> Result<()> {
        let Some(base) = &filter.expr else {
            return Err(self.refuse(span, "a filter needs something to work on", ""));
        };
        let is_default = matches!(filter.name, "d" | "default");
        match base {
            ast::Expr::Var(_) | ast::Expr::GetAttr(_) | ast::Expr::GetItem(_) if is_default => {
                self.path(base, Missing::IsLegal)?;
            }
            _ => self.expr(base)?,
        }
        self.push("|");
        self.applied(filter, span)
    }

    /// Filters after the word `filter` or `set`: the first works on the captured text.
    fn filter_chain(&mut self, expr: &ast::Expr<'_>) -> Result<()> {
        let ast::Expr::Filter(filter) = expr else {
            return Err(self.refuse(expr.span(), "expected a filter", ""));
        };
        if let Some(base) = &filter.expr {
            self.filter_chain(base)?;
            self.push(" | ");
        }
        self.applied(filter, filter.span())
    }

    /// `name(args)`.
    fn applied(&mut self, filter: &ast::Filter<'_>, span: Span) -> Result<()> {
        self.check_filter(filter.name, span)?;
        let named = |at: usize| match filter.args.get(at) {
            Some(ast::CallArg::Pos(ast::Expr::Const(constant))) => constant.value.as_str(),
            _ => None,
        };
        match filter.name {
            "map" => named(0).map_or(Ok(()), |name| self.check_filter(name, span))?,
            "select" | "reject" => named(0).map_or(Ok(()), |name| self.check_test(name, span))?,
            "selectattr" | "rejectattr" => {
                named(1).map_or(Ok(()), |name| self.check_test(name, span))?;
            }
            _ => {}
        }
        self.push(filter.name);
        // A default is only read if it is needed, and may then be missing itself.
        let is_default = matches!(filter.name, "d" | "default");
        self.n_conditions += usize::from(is_default);
        self.args(&filter.args, span)?;
        self.n_conditions -= usize::from(is_default);
        Ok(())
    }

    fn test(&mut self, test: &ast::Test<'_>, span: Span) -> Result<()> {
        self.check_test(test.name, span)?;
        let may_miss = matches!(test.name, "defined" | "undefined");
        match &test.expr {
            ast::Expr::Var(_) | ast::Expr::GetAttr(_) | ast::Expr::GetItem(_) if may_miss => {
                self.path(&test.expr, Missing::IsLegal)?;
            }
            expr => self.expr(expr)?,
        }
        self.push(" is ");
        self.push(test.name);
        self.args(&test.args, span)
    }

    fn args(&mut self, args: &[ast::CallArg<'_>], span: Span) -> Result<()> {
        self.push("(");
        for arg in args {
            match arg {
                ast::CallArg::Pos(expr) => self.expr(expr)?,
                ast::CallArg::Kwarg(name, expr) => {
                    self.push(name);
                    self.push("=");
                    self.expr(expr)?;
                }
                ast::CallArg::PosSplat(_) | ast::CallArg::KwargSplat(_) => {
                    let message = "arguments cannot be spread with `*`";
                    return Err(self.refuse(span, message, "write them one by one"));
                }
            }
            self.push(", ");
        }
        self.push(")");
        Ok(())
    }

    fn call(&mut self, call: &ast::Call<'_>, span: Span) -> Result<()> {
        match &call.expr {
            ast::Expr::Var(var) if var.id == RANGE && !self.is_local(RANGE) => {
                self.push(RANGE);
            }
            ast::Expr::GetAttr(method)
                if matches!(&method.expr, ast::Expr::Var(var) if var.id == "loop")
                    && self.is_local("loop")
                    && matches!(method.name, "cycle" | "changed") =>
            {
                self.push(&format!("loop.{}", method.name));
            }
            _ => {
                return Err(self.refuse(
                    span,
                    "templates can call nothing but `range`",
                    "filters are written with a bar, as in `{{ text | upper }}`",
                ));
            }
        }
        self.args(&call.args, span)
    }

    /// A name with the attributes and items read from it, or those of any other expression.
    fn path(&mut self, expr: &ast::Expr<'_>, missing: Missing) -> Result<()> {
        let mut steps = Vec::new();
        let mut base = expr;
        loop {
            let end = base.span().end_offset as usize;
            match base {
                ast::Expr::GetAttr(get) => {
                    steps.push((Step::Attribute(get.name), end));
                    base = &get.expr;
                }
                ast::Expr::GetItem(get) => {
                    steps.push((Step::Item(&get.subscript_expr), end));
                    base = &get.expr;
                }
                _ => break,
            }
        }
        steps.reverse();
        let is_long_way = missing == Missing::IsLegal && !steps.is_empty();
        match base {
            ast::Expr::Var(var) => self.root(var.id, var.span(), &steps, missing)?,
            _ => self.base(base)?,
        }
        if !is_long_way {
            return self.steps(&steps);
        }
        self.push(&format!("|{}(", name::PATH));
        for (step, _) in &steps {
            match step {
                Step::Attribute(name) => self.literal(name),
                Step::Item(expr) => self.expr(expr)?,
            }
            self.push(", ");
        }
        self.push(")");
        Ok(())
    }

    fn steps(&mut self, steps: &[(Step<'_, '_>, usize)]) -> Result<()> {
        for (step, _) in steps {
            match step {
                Step::Attribute(name) => {
                    self.push(".");
                    self.push(name);
                }
                Step::Item(expr) => {
                    self.push("[");
                    self.expr(expr)?;
                    self.push("]");
                }
            }
        }
        Ok(())
    }

    /// Writes the name that a path starts with; notes the reference if it is the scope's.
    fn root(
        &mut self,
        id: &str,
        span: Span,
        steps: &[(Step<'_, '_>, usize)],
        missing: Missing,
    ) -> Result<()> {
        self.check_name(id, span)?;
        if id == "null" && !self.is_local(id) {
            self.push("none");
            return Ok(());
        }
        self.push(id);
        if self.is_local(id) {
            return Ok(());
        }
        let mut keys = Vec::new();
        let mut described = id.to_owned();
        let mut end = span.end_offset as usize;
        for (step, step_end) in steps {
            let key = match step {
                Step::Attribute(name) => {
                    described.push_str(&format!(".{name}"));
                    EngineValue::from(*name)
                }
                Step::Item(ast::Expr::Const(constant)) => {
                    described.push_str(&format!("[{:?}]", constant.value));
                    constant.value.clone()
                }
                Step::Item(_) => break,
            };
            keys.push(key);
            end = *step_end;
        }
        let start = span.start_offset as usize;
        let node = if id == NODES { self.check_node(&keys, steps.len(), start)? } else { None };
        self.done.reads.push(Read {
            reference: Reference {
                root: id.to_owned(),
                node,
                text: self.source[start..end].to_owned(),
                guarded: missing == Missing::IsLegal,
                offset: start,
            },
            keys,
            described,
            is_conditional: self.n_conditions > 0,
        });
        Ok(())
    }

    /// What attributes, items and slices are read from, unless it is a path itself.
    fn base(&mut self, expr: &ast::Expr<'_>) -> Result<()> {
        self.push("(");
        self.expr(expr)?;
        self.push(")");
        Ok(())
    }

    // Checks.

    /// Checks that `nodes` is followed by an id and `output`; returns the id.
    fn check_node(
        &self,
        keys: &[EngineValue],
        n_steps: usize,
        start: usize,
    ) -> Result<Option<NodeId>> {
        let Some(first) = keys.first() else { return Ok(None) };
        let id = first.as_str().map_or_else(|| first.to_string(), str::to_owned);
        if n_steps == 1 || keys.get(1).and_then(EngineValue::as_str) == Some("output") {
            return Ok(Some(NodeId::from(id)));
        }
        let message = format!("after `nodes.{id}` must come `.output`");
        let dotted = dotted_id(&self.source[start..]).filter(|dotted| dotted.contains('.'));
        let hint = match dotted {
            Some(dotted) => format!("an id with a point is written nodes[\"{dotted}\"].output"),
            None => format!("write nodes[\"{id}\"].output"),
        };
        Err(TemplateError::at(self.source, start, message, hint))
    }

    /// Refuses `nodes.my-node`, which would be a subtraction.
    fn check_hyphen(&self, left: &ast::Expr<'_>) -> Result<()> {
        let mut expr = left;
        while let ast::Expr::BinOp(binary) = expr {
            expr = &binary.left;
        }
        let ast::Expr::GetAttr(get) = expr else { return Ok(()) };
        let ast::Expr::Var(var) = &get.expr else { return Ok(()) };
        if var.id != NODES || self.is_local(NODES) {
            return Ok(());
        }
        let start = var.span().start_offset as usize;
        match hyphenated_node(&self.source[start..]) {
            Some(id) => Err(hyphen_error(self.source, start, &id)),
            None => Ok(()),
        }
    }

    fn check_name(&self, name: &str, span: Span) -> Result<()> {
        if name.starts_with("__") {
            let message = format!("`{name}` is no name: names do not start with two underscores");
            return Err(self.refuse(span, message, ""));
        }
        Ok(())
    }

    fn check_filter(&self, name: &str, span: Span) -> Result<()> {
        if FILTERS.contains(&name) {
            return Ok(());
        }
        let hint = format!("the filters are {}", FILTERS.join(", "));
        Err(self.refuse(span, format!("there is no filter `{name}`"), hint))
    }

    fn check_test(&self, name: &str, span: Span) -> Result<()> {
        if TESTS.contains(&name) {
            return Ok(());
        }
        let words: Vec<_> =
            TESTS.iter().filter(|test| test.starts_with(char::is_alphabetic)).copied().collect();
        let hint = format!("after `is` may stand {}", words.join(", "));
        Err(self.refuse(span, format!("there is no test `{name}`"), hint))
    }

    fn is_local(&self, name: &str) -> bool {
        self.locals.iter().any(|names| names.contains(name))
    }

    fn assign(&mut self, names: Vec<String>) {
        self.locals.last_mut().expect("the outermost names are never removed").extend(names);
    }

    fn refuse(
        &self,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> TemplateError {
        TemplateError::at(self.source, span.start_offset as usize, message, hint)
    }

    // Writing.

    fn push(&mut self, text: &str) {
        self.done.source.push_str(text);
    }

    fn literal(&mut self, text: &str) {
        self.done.source.push('"');
        for c in text.chars() {
            if matches!(c, '"' | '\\') {
                self.done.source.push('\\');
            }
            self.done.source.push(c);
        }
        self.done.source.push('"');
    }

    fn origin(&mut self, span: Span) {
        let at = self.done.source.len();
        let (from, to) = (span.start_offset as usize, span.end_offset as usize);
        self.done.origins.push(Origin { at, from, to });
    }
}

/// The id in a text that starts like `nodes.my-node`, if it has a hyphen.
pub(super) fn hyphenated_node(text: &str) -> Option<String> {
    let rest = text.strip_prefix(NODES)?.strip_prefix('.')?;
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let id = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
    let id = id.trim_end_matches('-');
    id.contains('-').then(|| id.to_owned())
}

/// What to say about a hyphenated id.
pub(super) fn hyphen_error(source: &str, start: usize, id: &str) -> TemplateError {
    let message = format!("`nodes.{id}` reads as a subtraction because of the hyphen");
    TemplateError::at(source, start, message, format!("write nodes[\"{id}\"].output"))
}

/// The id in a text like `nodes.a.b.output`.
fn dotted_id(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(NODES)?.strip_prefix('.')?;
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let path = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
    path.find(".output").map(|end| &path[..end])
}
