//! When a failed attempt is tried again.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::failure::Failure;
use crate::ids::{Digest, ExecutionId, Instance};
use crate::time::Timestamp;

/// How the wait grows from retry to retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// `base * 2^(retry - 1)`.
    Exponential,
    /// `base * retry`.
    Linear,
    /// `base`.
    Fixed,
}

impl Backoff {
    /// The spelling in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Backoff::Exponential => "exponential",
            Backoff::Linear => "linear",
            Backoff::Fixed => "fixed",
        }
    }
}

/// The base wait in ms where a policy names none.
pub const BACKOFF_BASE_MS_DEFAULT: u64 = 1_000;
/// The longest wait in ms where a policy names none.
pub const BACKOFF_MS_MAX_DEFAULT: u64 = 60_000;

/// A retry policy with its defaults resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts allowed after the first; lost attempts are not counted.
    pub retries_max: u32,
    /// The wait that growth starts from, in ms.
    pub backoff_base_ms: u64,
    /// No wait is longer than this, in ms.
    pub backoff_ms_max: u64,
    /// How the wait grows.
    pub backoff: Backoff,
    /// Error types or class spellings that are retried. `None`: what the class says; empty: none.
    pub retryable_errors: Option<Vec<String>>,
}

impl RetryPolicy {
    /// Whether the policy retries this failure at all, however often it happened.
    pub fn covers(&self, failure: &Failure) -> bool {
        if failure.class.is_never_retried() {
            return false;
        }
        match &self.retryable_errors {
            None => failure.class.is_retryable(),
            Some(list) => list
                .iter()
                .any(|word| *word == failure.error_type || word == failure.class.as_str()),
        }
    }

    /// The longest wait before retry number `retry` in ms: what the jitter is a fraction of.
    ///
    /// `retry` counts from 1. A base above the cap is legal and means the cap; the cap is applied
    /// before multiplying, so no retry number overflows.
    pub fn ceiling_ms(&self, retry: u32) -> u64 {
        let (base, cap) = (self.backoff_base_ms, self.backoff_ms_max);
        let grown = match self.backoff {
            Backoff::Fixed => base,
            Backoff::Linear => base.saturating_mul(u64::from(retry)),
            Backoff::Exponential => {
                let doublings = retry.saturating_sub(1);
                if base == 0 {
                    0
                } else if doublings > base.leading_zeros() {
                    u64::MAX
                } else {
                    base << doublings
                }
            }
        };
        grown.min(cap)
    }
}

/// What the jitter of one retry is drawn from, so that a replay yields the same instant.
#[derive(Clone, Copy, Debug)]
pub struct JitterKey<'a> {
    /// The execution.
    pub execution: ExecutionId,
    /// The node instance.
    pub instance: &'a Instance,
}

/// Returns when retry number `retry` may start, or `None` once the policy's retries are used up.
///
/// Full jitter: a fraction in `[0, 1)`, drawn from (execution, node instance, retry), of
/// [`RetryPolicy::ceiling_ms`].
///
/// * `retry`: from 1 upwards; the first attempt never waits, lost attempts are not counted.
/// * `failed_at`, result: the result is never before `failed_at`.
///
/// Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
pub fn next_attempt_at(
    policy: &RetryPolicy,
    key: JitterKey<'_>,
    retry: u32,
    failed_at: Timestamp,
) -> Option<Timestamp> {
    if retry > policy.retries_max {
        return None;
    }
    let seed = Digest::of(
        format!("{}\n{}\n{}\n{retry}", key.execution, key.instance.path(), key.instance.epoch)
            .as_bytes(),
    );
    let fraction: f64 = ChaCha8Rng::from_seed(seed.0).random();
    // The ceiling fits a double to the millisecond for 285,000 years.
    let wait_ms = (fraction * policy.ceiling_ms(retry) as f64) as u64;
    Some(failed_at.plus_ms(wait_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::FailureClass;
    use uuid::Uuid;

    fn policy(base_ms: u64, max_ms: u64) -> RetryPolicy {
        RetryPolicy {
            retries_max: u32::MAX,
            backoff_base_ms: base_ms,
            backoff_ms_max: max_ms,
            backoff: Backoff::Exponential,
            retryable_errors: None,
        }
    }

    fn wait_ms(policy: &RetryPolicy, execution: u128, retry: u32) -> u64 {
        let instance = Instance::top("a".into());
        let key =
            JitterKey { execution: ExecutionId(Uuid::from_u128(execution)), instance: &instance };
        next_attempt_at(policy, key, retry, Timestamp(0)).unwrap().0 as u64
    }

    #[test]
    fn o_r04_backoff_never_overflows_and_stays_within_its_bounds() {
        for retry in [1, 2, 21, 22, 31, 32, 63, 64, 65, 1023, 1024, 5000, u32::MAX] {
            for base in [0u64, 1, 2_000, 3_600_000, u64::MAX] {
                for max in [0u64, 500, 120_000, 86_400_000, u64::MAX] {
                    for backoff in [Backoff::Exponential, Backoff::Linear, Backoff::Fixed] {
                        let policy = RetryPolicy { backoff, ..policy(base, max) };
                        let exact = match backoff {
                            Backoff::Exponential => (base as f64) * 2f64.powf(f64::from(retry - 1)),
                            Backoff::Linear => base as f64 * f64::from(retry),
                            Backoff::Fixed => base as f64,
                        };
                        let ceiling = policy.ceiling_ms(retry);
                        assert!(ceiling <= max);
                        assert!(ceiling as f64 <= exact.min(max as f64) * (1.0 + 1e-9));
                        assert!(wait_ms(&policy, 1, retry) <= ceiling);
                    }
                }
            }
        }
    }

    #[test]
    fn o_r04_draws_at_the_cap_have_the_mean_of_full_jitter() {
        let policy = policy(2_000, 120_000);
        let sum: u64 = (0..10_000).map(|n| wait_ms(&policy, n, 30)).sum();
        let mean = sum as f64 / 10_000.0;
        assert!((57_000.0..63_000.0).contains(&mean), "mean of 10,000 draws is {mean} ms");
    }

    #[test]
    fn the_same_retry_of_the_same_execution_always_waits_alike() {
        let policy = policy(10_000, 60_000);
        assert_eq!(wait_ms(&policy, 7, 2), wait_ms(&policy, 7, 2));
        assert_ne!(wait_ms(&policy, 7, 2), wait_ms(&policy, 7, 3));
        assert_ne!(wait_ms(&policy, 7, 2), wait_ms(&policy, 8, 2));
    }

    #[test]
    fn used_up_retries_give_no_instant() {
        let policy = RetryPolicy { retries_max: 2, ..policy(0, 0) };
        let a = Instance::top("a".into());
        let key = JitterKey { execution: ExecutionId(Uuid::nil()), instance: &a };
        assert_eq!(next_attempt_at(&policy, key, 2, Timestamp(5)), Some(Timestamp(5)));
        assert_eq!(next_attempt_at(&policy, key, 3, Timestamp(5)), None);
    }

    #[test]
    fn a_list_matches_error_type_or_class_exactly_and_never_the_hopeless_classes() {
        let listed = |words: &[&str]| RetryPolicy {
            retryable_errors: Some(words.iter().map(|w| (*w).to_owned()).collect()),
            ..policy(0, 0)
        };
        let oops = Failure::typed(FailureClass::AgentError, "Oops", "");
        assert!(policy(0, 0).covers(&oops));
        assert!(listed(&["Oops"]).covers(&oops));
        assert!(listed(&["agentError"]).covers(&oops));
        assert!(!listed(&["oops"]).covers(&oops));
        assert!(!listed(&[]).covers(&oops));
        let internal = Failure::new(FailureClass::Internal, "");
        assert!(!policy(0, 0).covers(&internal));
        assert!(listed(&["internal"]).covers(&internal));
        let binding = Failure::new(FailureClass::BindingError, "");
        assert!(!listed(&["bindingError"]).covers(&binding));
    }
}
