//! Numbers as exact decimal text: grammar, limits, comparison.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use super::{DIGITS_MAX, Number, NumberError};

/// Longest number text kept without an allocation; an i64 and a u64 always fit.
const INLINE_MAX: usize = 22;

/// Longest piece of a refused number that a message repeats, in characters.
const SHOWN_MAX: usize = 40;

/// Inside these magnitudes a double neither overflows nor becomes zero, so that nothing needs to
/// be converted to find out.
const SAFE_MAGNITUDE: i64 = 300;

/// Outside these magnitudes every double overflows or becomes zero.
const LAST_MAGNITUDE: i64 = 400;

/// The text of a number.
#[derive(Clone)]
pub(super) enum Text {
    Inline { len: u8, bytes: [u8; INLINE_MAX] },
    Heap(Box<str>),
}

impl Number {
    /// Reads a text that is exactly one JSON number: no white space, no plus sign, no other base.
    ///
    /// # Errors
    ///
    /// If it is not, has more than [`DIGITS_MAX`] digits, or is outside the range of a double.
    pub fn parse(text: &str) -> Result<Number, NumberError> {
        let len = scan(text.as_bytes())?;
        if len != text.len() {
            return Err(malformed(text, "it must be written like 12, -0.5 or 1e3"));
        }
        Ok(Number::from_scanned(text))
    }

    /// Returns the text as written.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Inline { len, bytes } => std::str::from_utf8(&bytes[..usize::from(*len)])
                .expect("the text of a number is ASCII"),
            Text::Heap(text) => text,
        }
    }

    /// Returns whether this is a whole number, however written: 5, 5.0 and 0.5e1 are.
    pub fn is_integer(&self) -> bool {
        let decimal = Decimal::of(self.as_str());
        decimal.n_digits() <= decimal.magnitude.max(0).unsigned_abs()
    }

    /// Returns the exact integer, if this is one and fits; 5.0 is 5, 1e2 is 100.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_i128().and_then(|integer| i64::try_from(integer).ok())
    }

    /// Returns the exact integer, if this is one and fits; 5.0 is 5, 1e2 is 100.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_i128().and_then(|integer| u64::try_from(integer).ok())
    }

    /// Returns the nearest double, which is finite.
    pub fn to_f64(&self) -> f64 {
        self.as_str().parse().expect("a JSON number is a Rust float literal")
    }

    /// Returns one text for all ways of writing this number: significant digits without
    /// leading or trailing zeros, then the power of ten unless it is 0.
    pub(super) fn to_canonical(&self) -> String {
        let decimal = Decimal::of(self.as_str());
        if decimal.is_zero() {
            return "0".to_owned();
        }
        let mut text = String::new();
        if decimal.negative {
            text.push('-');
        }
        text.extend(decimal.digits().map(char::from));
        let n_digits = i64::try_from(decimal.n_digits()).expect("digits are limited");
        let power = decimal.magnitude - n_digits;
        if power != 0 {
            text.push('e');
            text.push_str(&power.to_string());
        }
        text
    }

    /// Keeps a text that [`scan`] has accepted as a whole.
    pub(super) fn from_scanned(text: &str) -> Number {
        let mut bytes = [0; INLINE_MAX];
        match bytes.get_mut(..text.len()) {
            Some(inline) => {
                inline.copy_from_slice(text.as_bytes());
                Number(Text::Inline { len: text.len() as u8, bytes })
            }
            None => Number(Text::Heap(text.into())),
        }
    }

    /// Any integer of at most 38 digits.
    fn as_i128(&self) -> Option<i128> {
        let decimal = Decimal::of(self.as_str());
        if !(0..=38).contains(&decimal.magnitude) {
            return decimal.is_zero().then_some(0);
        }
        let magnitude = decimal.magnitude.unsigned_abs();
        if decimal.n_digits() > magnitude {
            return None;
        }
        let zeros = std::iter::repeat(b'0');
        let digits = decimal.digits().chain(zeros).take(usize::try_from(magnitude).ok()?);
        let integer = digits.fold(0, |sum, digit| sum * 10 + i128::from(digit - b'0'));
        Some(if decimal.negative { -integer } else { integer })
    }
}

/// Reads the longest JSON number at the start of `bytes` and returns its length.
///
/// # Errors
///
/// As [`Number::parse`]; also when letters, digits or points follow directly: `01`, `1.2.3`.
pub(super) fn scan(bytes: &[u8]) -> Result<usize, NumberError> {
    let refuse = |hint| Err(malformed(word(bytes), hint));
    let digits_at = |at: usize| bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    let n_integer = digits_at(at);
    if n_integer == 0 {
        return match bytes.get(at) {
            Some(b'.') => refuse("write a digit before the point, as in 0.5"),
            Some(b'+') => refuse("leave out the plus sign"),
            _ => refuse("it must be written like 12, -0.5 or 1e3"),
        };
    }
    if n_integer > 1 && bytes[at] == b'0' {
        return refuse("leave out the leading zeros, or quote it to keep it as text");
    }
    at += n_integer;
    let mut n_digits = n_integer;
    if bytes.get(at) == Some(&b'.') {
        let n_fraction = digits_at(at + 1);
        if n_fraction == 0 {
            return refuse("write a digit after the point, or leave the point out");
        }
        at += 1 + n_fraction;
        n_digits += n_fraction;
    }
    let mut has_exponent = false;
    if let Some(b'e' | b'E') = bytes.get(at) {
        has_exponent = true;
        at += 1;
        at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
        let n_exponent = digits_at(at);
        if n_exponent == 0 {
            return refuse("write digits after the e, as in 1e3");
        }
        at += n_exponent;
        n_digits += n_exponent;
    }
    match bytes.get(at) {
        Some(b'x' | b'X' | b'o' | b'b' | b'_' | b'n') => {
            return refuse("write it in decimal digits only, or quote it to keep it as text");
        }
        Some(b'.' | b'+' | b'-' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z') => {
            return refuse("it must be written like 12, -0.5 or 1e3; quote it to keep it as text");
        }
        _ => {}
    }
    if n_digits > DIGITS_MAX {
        return Err(NumberError::TooLong { digits: n_digits });
    }
    if has_exponent || n_digits > SAFE_MAGNITUDE as usize {
        check_range(std::str::from_utf8(&bytes[..at]).expect("scanned text is ASCII"))?;
    }
    Ok(at)
}

/// Refuses a number whose double would be infinite, or zero for a number that is not.
fn check_range(text: &str) -> Result<(), NumberError> {
    let decimal = Decimal::of(text);
    if decimal.is_zero() || decimal.magnitude.abs() <= SAFE_MAGNITUDE {
        return Ok(());
    }
    let shown = || shorten(text);
    let far = decimal.magnitude.abs() > LAST_MAGNITUDE;
    let double = if far { None } else { text.parse::<f64>().ok() };
    match double {
        Some(double) if double.is_finite() && double != 0.0 => Ok(()),
        _ if decimal.magnitude > 0 => Err(NumberError::TooLarge { text: shown() }),
        _ => Err(NumberError::TooSmall { text: shown() }),
    }
}

fn malformed(text: &str, hint: &'static str) -> NumberError {
    NumberError::Malformed { text: shorten(text), hint }
}

/// The run of letters, digits, signs and points at the start, which a person takes for the number.
fn word(bytes: &[u8]) -> &str {
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-._".contains(byte);
    let len = bytes.iter().take_while(is_part).count();
    std::str::from_utf8(&bytes[..len]).expect("letters, digits, signs and points are ASCII")
}

/// The text, or its beginning and an ellipsis.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A number taken apart: `0.d1 d2 d3 … × 10^magnitude`, where neither the first nor the last digit
/// is 0. Zero has no digits.
struct Decimal<'t> {
    negative: bool,
    integer: &'t [u8],
    fraction: &'t [u8],
    magnitude: i64,
}

impl<'t> Decimal<'t> {
    /// Takes apart a text that follows the grammar. Exponents too long for an i64 saturate.
    fn of(text: &'t str) -> Decimal<'t> {
        let bytes = text.as_bytes();
        let negative = bytes.first() == Some(&b'-');
        let bytes = &bytes[usize::from(negative)..];
        let end = bytes.iter().position(|byte| matches!(byte, b'e' | b'E'));
        let (mantissa, exponent) = match end {
            Some(end) => (&bytes[..end], exponent_of(&bytes[end + 1..])),
            None => (bytes, 0),
        };
        let (integer, fraction) = match mantissa.iter().position(|byte| *byte == b'.') {
            Some(point) => (&mantissa[..point], &mantissa[point + 1..]),
            None => (mantissa, &[][..]),
        };
        // Only a lone 0 can lead the integer part.
        let integer = if integer == b"0" { &[][..] } else { integer };
        let mut magnitude = integer.len() as i64;
        let mut fraction = fraction;
        if integer.is_empty() {
            let n_zeros = fraction.iter().take_while(|digit| **digit == b'0').count();
            magnitude -= n_zeros as i64;
            fraction = &fraction[n_zeros..];
        }
        fraction = without_trailing_zeros(fraction);
        let integer = if fraction.is_empty() { without_trailing_zeros(integer) } else { integer };
        let magnitude = exponent.saturating_add(magnitude);
        Decimal { negative, integer, fraction, magnitude }
    }

    fn is_zero(&self) -> bool {
        self.integer.is_empty() && self.fraction.is_empty()
    }

    fn n_digits(&self) -> u64 {
        (self.integer.len() + self.fraction.len()) as u64
    }

    fn digits(&self) -> impl Iterator<Item = u8> + use<'t> {
        self.integer.iter().chain(self.fraction).copied()
    }

    /// -1, 0 or 1.
    fn sign(&self) -> i8 {
        match (self.is_zero(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    fn compare(&self, other: &Decimal<'_>) -> Ordering {
        let by_sign = self.sign().cmp(&other.sign());
        if by_sign != Ordering::Equal || self.sign() == 0 {
            return by_sign;
        }
        // Without trailing zeros a digit sequence that continues is the larger one.
        let by_size =
            self.magnitude.cmp(&other.magnitude).then_with(|| self.digits().cmp(other.digits()));
        if self.negative { by_size.reverse() } else { by_size }
    }
}

fn exponent_of(text: &[u8]) -> i64 {
    let negative = text.first() == Some(&b'-');
    let digits = text.iter().filter(|byte| byte.is_ascii_digit());
    let size = digits
        .fold(0i64, |sum, digit| sum.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    if negative { -size } else { size }
}

fn without_trailing_zeros(digits: &[u8]) -> &[u8] {
    let n_zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
    &digits[..digits.len() - n_zeros]
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Number) -> Ordering {
        let (left, right) = (self.as_str(), other.as_str());
        if left == right {
            return Ordering::Equal;
        }
        Decimal::of(left).compare(&Decimal::of(right))
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Number({})", self.as_str())
    }
}

/// The text as written.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Number {
    type Err = NumberError;

    fn from_str(text: &str) -> Result<Number, NumberError> {
        Number::parse(text)
    }
}

impl From<i64> for Number {
    fn from(integer: i64) -> Number {
        Number::from_scanned(&integer.to_string())
    }
}

impl From<u64> for Number {
    fn from(integer: u64) -> Number {
        Number::from_scanned(&integer.to_string())
    }
}

impl From<i32> for Number {
    fn from(integer: i32) -> Number {
        i64::from(integer).into()
    }
}

impl From<u32> for Number {
    fn from(integer: u32) -> Number {
        u64::from(integer).into()
    }
}

impl From<usize> for Number {
    fn from(integer: usize) -> Number {
        (integer as u64).into()
    }
}

/// The shortest text that reads back as the same double; refused unless it is finite.
impl TryFrom<f64> for Number {
    type Error = NumberError;

    fn try_from(double: f64) -> Result<Number, NumberError> {
        Number::parse(&format!("{double:?}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::number_text;
    use super::*;

    fn number(text: &str) -> Number {
        Number::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn text_is_kept_as_written() {
        let long = "1234567890".repeat(30);
        for text in ["0", "-0", "1.0", "1e0", "1E+05", "-12.500", "18446744073709551615", &long] {
            assert_eq!(number(text).as_str(), text);
            assert_eq!(number(text).to_string(), text);
        }
    }

    #[test]
    fn only_the_grammar_of_json_is_a_number() {
        let refused = [
            "", " 5", "5 ", "+1", "01", "-01", "1.", ".5", "-", "1e", "1e+", "0x10", "1_000",
            "NaN", "Infinity", "1.2.3", "1,5", "١", "--1", "9a", "1n",
        ];
        for text in refused {
            assert!(
                matches!(Number::parse(text), Err(NumberError::Malformed { .. })),
                "{text:?} is no number"
            );
        }
    }

    #[test]
    fn numbers_outside_a_double_are_refused_and_zero_never_is() {
        for text in
            ["1e400", "-1e400", "1.8e308", "1e99999999999999999999999", "1797693134862315907e290"]
        {
            assert!(matches!(Number::parse(text), Err(NumberError::TooLarge { .. })), "{text}");
        }
        for text in ["1e-400", "-1e-400", "2e-324", "1e-99999999999999999999999"] {
            assert!(matches!(Number::parse(text), Err(NumberError::TooSmall { .. })), "{text}");
        }
        let zeros = "0".repeat(500);
        let small = format!("0.{zeros}1e500");
        let large = format!("1{zeros}e-500");
        for text in ["0e400", "0.0e-999", "-0e99999999999999999999", "1.7e308", "5e-324", "3e-324"]
        {
            number(text);
        }
        assert_eq!(number(&small), number("0.1"));
        assert_eq!(number(&large), number("1"));
        assert!(matches!(Number::parse(&format!("0.{zeros}1")), Err(NumberError::TooSmall { .. })));
    }

    #[test]
    fn a_thousand_digits_are_kept_and_one_more_is_refused() {
        let most = format!("0.{}", "3".repeat(DIGITS_MAX - 1));
        assert_eq!(number(&most).as_str(), most);
        let refused = Number::parse(&format!("{most}3"));
        assert_eq!(refused, Err(NumberError::TooLong { digits: DIGITS_MAX + 1 }));
    }

    #[test]
    fn order_is_numeric_and_exact() {
        let ascending = [
            "-1e300",
            "-17169973925117969",
            "-17169973925117968",
            "-1.5",
            "-1",
            "-0.1",
            "-1e-300",
            "0",
            "1e-300",
            "0.09",
            "0.1",
            "0.95",
            "1",
            "1.0000000000000000000000000000001",
            "9",
            "9.5",
            "10",
            "99",
            "1e2",
            "17169973925117968",
            "17169973925117969",
            "18446744073709551615",
            "123456789012345678901234567890",
            "1e300",
        ];
        for pair in ascending.windows(2) {
            assert!(number(pair[0]) < number(pair[1]), "{} < {}", pair[0], pair[1]);
            assert!(number(pair[1]) > number(pair[0]), "{} > {}", pair[1], pair[0]);
        }
        let equal = ["100", "1e2", "100.00", "0.1e3", "1E+2", "10000e-2", "1.00e02"];
        for text in equal {
            assert_eq!(number(text), number("100"), "{text}");
            assert_eq!(number(text).to_canonical(), "1e2", "{text}");
        }
        assert_eq!(number("-0"), number("0.00e7"));
    }

    #[test]
    fn integers_are_exact_or_absent() {
        assert_eq!(number("1e2").as_i64(), Some(100));
        assert_eq!(number("5.0").as_u64(), Some(5));
        assert_eq!(number("-0.0").as_i64(), Some(0));
        assert_eq!(number("-9223372036854775808").as_i64(), Some(i64::MIN));
        assert_eq!(number("9223372036854775808").as_i64(), None);
        assert_eq!(number("18446744073709551615").as_u64(), Some(u64::MAX));
        assert_eq!(number("18446744073709551616").as_u64(), None);
        assert_eq!(number("-1").as_u64(), None);
        assert_eq!(number("1.5").as_i64(), None);
        assert_eq!(number("1e300").as_i64(), None);
        assert_eq!(number("1e-300").as_i64(), None);
        for (text, is_integer) in [
            ("5.0", true),
            ("0.5e1", true),
            ("1e300", true),
            ("0.0", true),
            ("0.5", false),
            ("5.01", false),
            ("1e-2", false),
            ("100e-2", true),
        ] {
            assert_eq!(number(text).is_integer(), is_integer, "{text}");
        }
    }

    #[test]
    fn doubles_become_their_shortest_text() {
        for (double, text) in
            [(1.0, "1.0"), (0.1, "0.1"), (1e300, "1e300"), (5e-324, "5e-324"), (-2.5e-7, "-2.5e-7")]
        {
            assert_eq!(Number::try_from(double).unwrap().as_str(), text);
            assert_eq!(number(text).to_f64(), double);
        }
        assert!(Number::try_from(f64::NAN).is_err());
        assert!(Number::try_from(f64::INFINITY).is_err());
    }

    /// A number as digits on a common grid: sign, then digits with `10^-350` as the last place.
    fn aligned(text: &str) -> (bool, Vec<u8>) {
        const LAST_PLACE: i64 = 450;
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let negative = mantissa.starts_with('-');
        let mantissa = mantissa.trim_start_matches('-');
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let n_zeros = LAST_PLACE + exponent.parse::<i64>().unwrap() - fraction.len() as i64;
        let mut digits = format!("{integer}{fraction}").into_bytes();
        digits.resize(digits.len() + usize::try_from(n_zeros).unwrap(), b'0');
        let start = digits.iter().position(|digit| *digit != b'0').unwrap_or(digits.len());
        let digits = digits.split_off(start);
        (negative && !digits.is_empty(), digits)
    }

    fn compare_aligned(left: &str, right: &str) -> Ordering {
        let ((left_negative, left), (right_negative, right)) = (aligned(left), aligned(right));
        let by_size = left.len().cmp(&right.len()).then_with(|| left.cmp(&right));
        match (left_negative, right_negative) {
            (false, false) => by_size,
            (true, true) => by_size.reverse(),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }

    /// The same number written in another way.
    fn respelled(text: &str, shift: i64) -> String {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent = exponent.parse::<i64>().unwrap() - shift;
        let zeros = "0".repeat(usize::try_from(shift).unwrap());
        // Moving the point to the right makes the exponent smaller.
        let mut digits = format!("{fraction}{zeros}");
        let rest = digits.split_off(usize::try_from(shift).unwrap());
        let (sign, integer) = match integer.strip_prefix('-') {
            Some(integer) => ("-", integer),
            None => ("", integer),
        };
        let integer = format!("{integer}{digits}");
        let integer = integer.trim_start_matches('0');
        let integer = if integer.is_empty() { "0" } else { integer };
        format!("{sign}{integer}.{rest}0e{exponent}")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_024))]

        #[test]
        fn order_agrees_with_aligned_digit_strings(left in number_text(), right in number_text()) {
            prop_assert_eq!(number(&left).cmp(&number(&right)), compare_aligned(&left, &right));
            let same = number(&left).to_canonical() == number(&right).to_canonical();
            prop_assert_eq!(number(&left) == number(&right), same);
        }

        #[test]
        fn other_spellings_of_a_number_are_equal(text in number_text(), shift in 0..9i64) {
            let other = respelled(&text, shift);
            prop_assert_eq!(number(&text), number(&other), "{} and {}", text, other);
            prop_assert_eq!(number(&text).to_canonical(), number(&other).to_canonical());
            prop_assert_eq!(number(&text).as_i64(), number(&other).as_i64());
            prop_assert_eq!(number(&text).is_integer(), number(&other).is_integer());
            prop_assert_eq!(number(&number(&text).to_canonical()), number(&text));
        }

        #[test]
        fn integers_agree_with_those_of_the_machine(left in any::<i64>(), right in any::<u64>()) {
            prop_assert_eq!(Number::from(left).as_i64(), Some(left));
            prop_assert_eq!(Number::from(right).as_u64(), Some(right));
            let order = i128::from(left).cmp(&i128::from(right));
            prop_assert_eq!(Number::from(left).cmp(&Number::from(right)), order);
        }

        #[test]
        fn any_text_is_a_number_or_is_refused(text in "[-+.0-9eE]{0,12}") {
            let is_json = serde_json::from_str::<serde_json::Number>(&text).is_ok();
            let is_number = match Number::parse(&text) {
                Ok(number) => {
                    prop_assert_eq!(number.as_str(), text.as_str());
                    true
                }
                // serde_json takes what underflows for zero.
                Err(NumberError::TooSmall { .. }) => is_json,
                Err(_) => false,
            };
            prop_assert_eq!(is_number, is_json, "{}", text);
        }
    }
}
