//! Limits that bound what one file, one plan or one execution may ask for.

/// The largest file that is read as a definition, in bytes.
pub const FILE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The most nodes one definition may hold.
pub const NODES_MAX: usize = 20_000;
/// Payloads longer than this, in bytes of JSON text, are kept outside the journal as blobs.
pub const INLINE_PAYLOAD_BYTES_MAX: usize = 16 * 1024;
/// Nodes of one execution that run at the same time, unless the workflow says otherwise.
pub const CONCURRENCY_DEFAULT: u32 = 16;
/// The most nodes of one execution that a workflow may ask to run at the same time.
pub const CONCURRENCY_MAX: u32 = 1_000;
/// How long one attempt may take unless node or agent say otherwise, in ms.
pub const ATTEMPT_TIMEOUT_MS_DEFAULT: u64 = 60_000;
/// How long an attempt may run without leaving a record before it is treated as lost, in ms.
pub const WATCHDOG_MS: u64 = 3_600_000;
/// The longest `modelOverride`, in characters.
pub const MODEL_OVERRIDE_CHARS_MAX: usize = 256;
/// The longest `systemPromptAddition` unless the environment says otherwise, in characters.
pub const PROMPT_ADDITION_CHARS_MAX_DEFAULT: usize = 4_000;
