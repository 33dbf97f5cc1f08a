//! Cases from the field and from public collections of difficult input.

mod joins;
mod json_test_suite;
mod naughty_strings;
mod processes;
pub mod real_files;
mod recovery;
mod retry_cancel;
