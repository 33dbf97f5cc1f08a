//! Times as people read them.

/// How long something took or takes, in at most eight characters: `0.3 s`, `12.4 s`, `3:07`,
/// `1:02:45`.
pub fn duration(ms: u64) -> String {
    match ms {
        0..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{}:{:02}", ms / 60_000, ms / 1_000 % 60),
        _ => format!("{}:{:02}:{:02}", ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60),
    }
}

/// Time since the start as a clock: `00:12`, `1:00:03`.
pub fn clock(ms: u64) -> String {
    match ms {
        0..3_600_000 => format!("{:02}:{:02}", ms / 60_000, ms / 1_000 % 60),
        _ => duration(ms),
    }
}

/// How long is left, in whole seconds, rounded up so that `0 s` means now.
pub fn countdown(ms: u64) -> String {
    match ms {
        0..=59_000 => format!("{} s", ms.div_ceil(1_000)),
        _ => duration(ms.div_ceil(1_000) * 1_000),
    }
}

/// A number of bytes.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_as_exact_as_they_are_short() {
        let cases = [(0, "0.0 s"), (349, "0.3 s"), (59_999, "59.9 s"), (60_000, "1:00")];
        for (ms, expected) in cases {
            assert_eq!(duration(ms), expected);
        }
        assert_eq!(duration(3_765_000), "1:02:45");
        assert_eq!(clock(12_900), "00:12");
        assert_eq!(clock(3_603_000), "1:00:03");
    }

    #[test]
    fn a_countdown_reaches_zero_only_when_it_is_over() {
        assert_eq!(countdown(1), "1 s");
        assert_eq!(countdown(0), "0 s");
        assert_eq!(countdown(59_000), "59 s");
        assert_eq!(countdown(59_001), "1:00");
        assert_eq!(size(9_999), "9999 bytes");
        assert_eq!(size(3_250_000), "3.2 MB");
    }
}
