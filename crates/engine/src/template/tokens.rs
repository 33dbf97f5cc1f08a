//! Bounds on what an author may write, checked before the engine's parser sees it.
//!
//! The parser builds chains such as `a + a + …` in a loop, but everything that walks the tree
//! afterwards recurses; a chain without end would exhaust the stack.

use std::ops::Range;

use minijinja::machinery::{Token, tokenize};

use super::TemplateError;
use super::environment::syntax;

/// The most tokens in the tags of one template.
const TOKENS_MAX: usize = 5_000;
/// The most operators, points, brackets and bars in one tag.
const CHAIN_MAX: usize = 200;
/// The most `elif` in one template.
const ELIF_MAX: usize = 50;

/// Checks the bounds and returns where the tags are, in bytes.
///
/// A template that is not even made of tokens passes; the parser says what is wrong with it.
pub(super) fn check(source: &str, masked: &str) -> Result<Vec<Range<usize>>, TemplateError> {
    let mut tags = Vec::new();
    let (mut n_tokens, mut n_chain, mut n_elif) = (0, 0, 0);
    let mut start = 0;
    for token in tokenize(masked, false, syntax()) {
        let Ok((token, span)) = token else { break };
        match token {
            Token::TemplateData(_) => continue,
            Token::VariableStart | Token::BlockStart => {
                start = span.start_offset as usize;
                n_chain = 0;
            }
            Token::VariableEnd | Token::BlockEnd => tags.push(start..span.end_offset as usize),
            Token::Ident("elif") => n_elif += 1,
            _ => n_chain += usize::from(is_link(&token)),
        }
        n_tokens += 1;
        let complaint = if n_tokens > TOKENS_MAX {
            Some("the template is too long to follow")
        } else if n_chain > CHAIN_MAX {
            Some("the expression is too long to follow")
        } else if n_elif > ELIF_MAX {
            Some("there are too many `elif`")
        } else {
            None
        };
        if let Some(message) = complaint {
            let hint = "split it into several bindings";
            return Err(TemplateError::at(source, span.start_offset as usize, message, hint));
        }
    }
    Ok(tags)
}

/// Whether a token can make a tree one level deeper.
fn is_link(token: &Token<'_>) -> bool {
    match token {
        Token::Ident(word) => matches!(*word, "and" | "or" | "not" | "in" | "is" | "if" | "else"),
        Token::Plus
        | Token::Minus
        | Token::Mul
        | Token::Div
        | Token::FloorDiv
        | Token::Pow
        | Token::Mod
        | Token::Dot
        | Token::Tilde
        | Token::Pipe
        | Token::Eq
        | Token::Ne
        | Token::Gt
        | Token::Gte
        | Token::Lt
        | Token::Lte
        | Token::BracketOpen
        | Token::ParenOpen
        | Token::BraceOpen => true,
        _ => false,
    }
}
