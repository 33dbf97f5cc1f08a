//! Exact decimal arithmetic for the operators of templates.
//!
//! Sums, differences and products are exact or refused. A quotient that does not end within
//! [`QUOTIENT_DIGITS`] digits is rounded there; nothing else is rounded.

use std::cmp::Ordering;

use crate::value::Number;

/// The significant digits of a quotient that does not end.
const QUOTIENT_DIGITS: u32 = 28;

/// The largest power that a number is raised to.
const POWER_MAX: i128 = 1_000;

/// The most digits of a coefficient: those of any i128.
const COEFFICIENT_DIGITS_MAX: i32 = 38;

/// `coefficient * 10^exponent`. Zero has the exponent 0, other coefficients no trailing zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    coefficient: i128,
    exponent: i32,
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ArithmeticError {
    /// An operand or the result has more digits than fit.
    #[error("templates calculate with at most 38 digits; leave such numbers to an agent")]
    TooManyDigits,
    /// A division by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A power that is not a whole number, or too large.
    #[error("a power must be a whole number from -{POWER_MAX} to {POWER_MAX}")]
    Power,
    /// A double could not hold the result.
    #[error("the result is outside the range of numbers")]
    OutOfRange,
}

use ArithmeticError::{DivisionByZero, OutOfRange, Power, TooManyDigits};

/// How [`Decimal::round`] decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    /// To the nearest; a half away from zero.
    Nearest,
    /// Up.
    Ceiling,
    /// Down.
    Floor,
}

impl Decimal {
    /// Reads a number.
    pub(super) fn of(number: &Number) -> Result<Decimal, ArithmeticError> {
        let (mantissa, exponent) = match number.as_str().split_once(['e', 'E']) {
            Some((mantissa, exponent)) => {
                // An exponent that large belongs to a zero, or to digits that do not fit.
                (mantissa, exponent.parse::<i32>().unwrap_or(0))
            }
            None => (number.as_str(), 0),
        };
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_negative = integer.starts_with('-');
        let digits = integer.trim_start_matches('-').bytes().chain(fraction.bytes());
        let mut coefficient: i128 = 0;
        // Zeros count only once another digit follows, so that 1 with fifty zeros is short.
        let mut n_zeros = 0;
        for digit in digits {
            if digit == b'0' {
                n_zeros += 1;
                continue;
            }
            coefficient = scale(coefficient, n_zeros + 1)?
                .checked_add(i128::from(digit - b'0'))
                .ok_or(TooManyDigits)?;
            n_zeros = 0;
        }
        let places = i32::try_from(fraction.len()).map_err(|_| TooManyDigits)?;
        let exponent = exponent
            .checked_sub(places)
            .and_then(|exponent| exponent.checked_add(n_zeros))
            .ok_or(TooManyDigits)?;
        let coefficient = if is_negative { -coefficient } else { coefficient };
        Ok(Decimal::new(coefficient, exponent))
    }

    /// Writes it as short as possible: whole numbers without a point, others without trailing
    /// zeros, very large and very small ones with an exponent.
    pub(super) fn to_number(self) -> Result<Number, ArithmeticError> {
        let digits = self.coefficient.unsigned_abs().to_string();
        let n_digits = digits.len() as i32;
        let sign = if self.coefficient < 0 { "-" } else { "" };
        let point = n_digits + self.exponent;
        let text = if self.exponent >= 0 && point <= COEFFICIENT_DIGITS_MAX {
            format!("{sign}{digits}{}", "0".repeat(self.exponent as usize))
        } else if self.exponent < 0 && point > 0 {
            let (integer, fraction) = digits.split_at(point as usize);
            format!("{sign}{integer}.{fraction}")
        } else if self.exponent < 0 && point > -COEFFICIENT_DIGITS_MAX {
            format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize))
        } else {
            format!("{sign}{digits}e{}", self.exponent)
        };
        Number::parse(&text).map_err(|_| OutOfRange)
    }

    /// The whole number, if it is one.
    pub(super) fn to_integer(self) -> Option<i128> {
        let zeros = u32::try_from(self.exponent).ok()?;
        self.coefficient.checked_mul(10i128.checked_pow(zeros)?)
    }

    pub(super) fn add(self, other: Decimal) -> Result<Decimal, ArithmeticError> {
        let (left, right, exponent) = aligned(self, other)?;
        Ok(Decimal::new(left.checked_add(right).ok_or(TooManyDigits)?, exponent))
    }

    pub(super) fn sub(self, other: Decimal) -> Result<Decimal, ArithmeticError> {
        self.add(other.neg()?)
    }

    pub(super) fn neg(self) -> Result<Decimal, ArithmeticError> {
        let coefficient = self.coefficient.checked_neg().ok_or(TooManyDigits)?;
        Ok(Decimal { coefficient, ..self })
    }

    pub(super) fn abs(self) -> Result<Decimal, ArithmeticError> {
        if self.coefficient < 0 { self.neg() } else { Ok(self) }
    }

    pub(super) fn mul(self, other: Decimal) -> Result<Decimal, ArithmeticError> {
        let coefficient = self.coefficient.checked_mul(other.coefficient).ok_or(TooManyDigits)?;
        let exponent = self.exponent.checked_add(other.exponent).ok_or(TooManyDigits)?;
        Ok(Decimal::new(coefficient, exponent))
    }

    /// The quotient: exact if it ends within [`QUOTIENT_DIGITS`] digits, else rounded there.
    pub(super) fn div(self, other: Decimal) -> Result<Decimal, ArithmeticError> {
        if other.coefficient == 0 {
            return Err(DivisionByZero);
        }
        let divisor = other.coefficient.unsigned_abs();
        let mut rest = self.coefficient.unsigned_abs();
        let mut exponent = self.exponent.checked_sub(other.exponent).ok_or(TooManyDigits)?;
        let mut quotient = rest / divisor;
        rest %= divisor;
        while rest != 0 && quotient < 10u128.pow(QUOTIENT_DIGITS - 1) {
            rest = rest.checked_mul(10).ok_or(TooManyDigits)?;
            quotient = quotient * 10 + rest / divisor;
            rest %= divisor;
            exponent = exponent.checked_sub(1).ok_or(TooManyDigits)?;
        }
        if rest >= divisor - rest {
            quotient += 1;
        }
        let quotient = i128::try_from(quotient).map_err(|_| TooManyDigits)?;
        let is_negative = (self.coefficient < 0) != (other.coefficient < 0);
        Ok(Decimal::new(if is_negative { -quotient } else { quotient }, exponent))
    }

    /// The largest whole number that is not above the quotient.
    pub(super) fn floor_div(self, other: Decimal) -> Result<Decimal, ArithmeticError> {
        let (left, right, _) = aligned(self, other)?;
        if right == 0 {
            return Err(DivisionByZero);
        }
        let quotient = left.checked_div(right).ok_or(TooManyDigits)?;
        let is_above = left % right != 0 && (left < 0) != (right < 0);
        Ok(Decimal::new(quotient - i128::from(is_above), 0))
    }

    /// What [`Decimal::floor_div`] leaves; it has the sign of the divisor.
    pub(super) fn rem(self, other: Decimal) -> Result<Decimal, ArithmeticError> {
        self.sub(self.floor_div(other)?.mul(other)?)
    }

    pub(super) fn pow(self, power: Decimal) -> Result<Decimal, ArithmeticError> {
        let power = power.to_integer().filter(|power| power.abs() <= POWER_MAX).ok_or(Power)?;
        let mut result = Decimal::new(1, 0);
        for _ in 0..power.abs() {
            result = result.mul(self)?;
        }
        if power < 0 { Decimal::new(1, 0).div(result) } else { Ok(result) }
    }

    /// Rounds to so many digits after the point; a negative number of them means before it.
    pub(super) fn round(self, places: i32, rounding: Rounding) -> Result<Decimal, ArithmeticError> {
        let n_cut = (-self.exponent).saturating_sub(places);
        if n_cut <= 0 {
            return Ok(self);
        }
        let exponent = self.exponent.checked_add(n_cut).ok_or(TooManyDigits)?;
        let Some(unit) = 10i128.checked_pow(n_cut.unsigned_abs()) else {
            // All digits are cut, and less than half a unit is there.
            let is_up = rounding == Rounding::Ceiling && self.coefficient > 0;
            let is_down = rounding == Rounding::Floor && self.coefficient < 0;
            return Ok(Decimal::new(i128::from(is_up) - i128::from(is_down), exponent));
        };
        let (floor, rest) = (self.coefficient.div_euclid(unit), self.coefficient.rem_euclid(unit));
        let is_up = match rounding {
            Rounding::Floor => false,
            Rounding::Ceiling => rest > 0,
            Rounding::Nearest => match rest.cmp(&(unit - rest)) {
                Ordering::Less => false,
                Ordering::Equal => self.coefficient > 0,
                Ordering::Greater => true,
            },
        };
        Ok(Decimal::new(floor + i128::from(is_up), exponent))
    }

    /// Cuts off what stands behind the point.
    pub(super) fn truncate(self) -> Result<Decimal, ArithmeticError> {
        let is_negative = self.coefficient < 0;
        self.round(0, if is_negative { Rounding::Ceiling } else { Rounding::Floor })
    }

    fn new(mut coefficient: i128, mut exponent: i32) -> Decimal {
        if coefficient == 0 {
            return Decimal { coefficient, exponent: 0 };
        }
        while coefficient % 10 == 0 && exponent < i32::MAX {
            coefficient /= 10;
            exponent += 1;
        }
        Decimal { coefficient, exponent }
    }
}

/// Both coefficients for the smaller of the two exponents.
fn aligned(left: Decimal, right: Decimal) -> Result<(i128, i128, i32), ArithmeticError> {
    let exponent = match (left.coefficient, right.coefficient) {
        (0, _) => right.exponent,
        (_, 0) => left.exponent,
        _ => left.exponent.min(right.exponent),
    };
    let at = |decimal: Decimal| match decimal.coefficient {
        0 => Ok(0),
        coefficient => {
            scale(coefficient, decimal.exponent.checked_sub(exponent).ok_or(TooManyDigits)?)
        }
    };
    Ok((at(left)?, at(right)?, exponent))
}

/// `coefficient * 10^zeros`; zeros are not negative.
fn scale(coefficient: i128, zeros: i32) -> Result<i128, ArithmeticError> {
    if coefficient == 0 {
        return Ok(0);
    }
    let factor = 10i128.checked_pow(zeros.unsigned_abs()).ok_or(TooManyDigits)?;
    coefficient.checked_mul(factor).ok_or(TooManyDigits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::of(&Number::parse(text).unwrap()).unwrap()
    }

    fn text(result: Result<Decimal, ArithmeticError>) -> String {
        match result.and_then(Decimal::to_number) {
            Ok(number) => number.to_string(),
            Err(error) => error.to_string(),
        }
    }

    type Operation = fn(Decimal, Decimal) -> Result<Decimal, ArithmeticError>;

    #[test]
    fn results_are_exact_and_written_as_short_as_possible() {
        let table: &[(&str, Operation, &str, &str)] = &[
            ("0.1", Decimal::add, "0.2", "0.3"),
            ("17169973925117969", Decimal::add, "1", "17169973925117970"),
            ("1.50", Decimal::add, "1.50", "3"),
            ("1e3", Decimal::sub, "1", "999"),
            ("19.99", Decimal::mul, "3", "59.97"),
            ("1e200", Decimal::mul, "1e100", "1e300"),
            ("1e-40", Decimal::mul, "3", "3e-40"),
            ("10", Decimal::div, "2", "5"),
            ("1", Decimal::div, "8", "0.125"),
            ("1", Decimal::div, "3", "0.3333333333333333333333333333"),
            ("-2", Decimal::div, "3", "-0.6666666666666666666666666667"),
            ("17169973925117969", Decimal::div, "1", "17169973925117969"),
            ("7", Decimal::floor_div, "2", "3"),
            ("-7", Decimal::floor_div, "2", "-4"),
            ("7.5", Decimal::floor_div, "0.5", "15"),
            ("-7", Decimal::rem, "3", "2"),
            ("7", Decimal::rem, "-3", "-2"),
            ("5.5", Decimal::rem, "2", "1.5"),
            ("1.1", Decimal::pow, "3", "1.331"),
            ("2", Decimal::pow, "-2", "0.25"),
            ("0", Decimal::pow, "0", "1"),
            ("-0", Decimal::add, "0", "0"),
        ];
        for (left, operation, right, expected) in table {
            let found = text(operation(decimal(left), decimal(right)));
            assert_eq!(found, *expected, "{left} with {right}");
        }
    }

    #[test]
    fn what_cannot_be_exact_is_refused() {
        let long = Number::parse(&"7".repeat(60)).unwrap();
        assert_eq!(Decimal::of(&long), Err(TooManyDigits));
        let table: &[(&str, Operation, &str, ArithmeticError)] = &[
            ("1e300", Decimal::add, "1", TooManyDigits),
            ("1", Decimal::div, "0.0", DivisionByZero),
            ("1", Decimal::floor_div, "0", DivisionByZero),
            ("1", Decimal::rem, "0", DivisionByZero),
            ("0", Decimal::pow, "-1", DivisionByZero),
            ("2", Decimal::pow, "0.5", Power),
            ("2", Decimal::pow, "1001", Power),
            ("7", Decimal::pow, "999", TooManyDigits),
        ];
        for (left, operation, right, expected) in table {
            let found = operation(decimal(left), decimal(right)).unwrap_err();
            assert_eq!(found, *expected, "{left} with {right}");
        }
        let huge = decimal("1e300").mul(decimal("1e300")).unwrap();
        assert_eq!(huge.to_number(), Err(OutOfRange));
    }

    #[test]
    fn a_half_is_rounded_away_from_zero() {
        let table = [
            ("2.5", 0, Rounding::Nearest, "3"),
            ("-2.5", 0, Rounding::Nearest, "-3"),
            ("2.4", 0, Rounding::Nearest, "2"),
            ("42.55", 1, Rounding::Nearest, "42.6"),
            ("1250", -2, Rounding::Nearest, "1300"),
            ("2.1", 0, Rounding::Ceiling, "3"),
            ("-2.1", 0, Rounding::Floor, "-3"),
            ("1e-60", 0, Rounding::Ceiling, "1"),
            ("1e-60", 0, Rounding::Nearest, "0"),
            ("7", 3, Rounding::Floor, "7"),
        ];
        for (number, places, rounding, expected) in table {
            assert_eq!(text(decimal(number).round(places, rounding)), expected, "{number}");
        }
        assert_eq!(text(decimal("-2.9").truncate()), "-2");
        assert_eq!(text(decimal("2.9").truncate()), "2");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn whole_numbers_calculate_like_integers(a in any::<i64>(), b in any::<i64>()) {
            let (left, right) = (decimal(&a.to_string()), decimal(&b.to_string()));
            let (a, b) = (i128::from(a), i128::from(b));
            prop_assert_eq!(text(left.add(right)), (a + b).to_string());
            prop_assert_eq!(text(left.sub(right)), (a - b).to_string());
            prop_assert_eq!(text(left.mul(right)), (a * b).to_string());
            if b != 0 {
                let floor = a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0);
                prop_assert_eq!(text(left.floor_div(right)), floor.to_string());
                prop_assert_eq!(text(left.rem(right)), (a - floor * b).to_string());
            }
        }

        #[test]
        fn a_number_is_written_with_the_same_value(
            text in "-?(0|[1-9][0-9]{0,15})(\\.[0-9]{1,15})?(e-?[0-9]{1,2})?",
        ) {
            let number = Number::parse(&text).unwrap();
            let back = Decimal::of(&number).unwrap().to_number().unwrap();
            prop_assert_eq!(&back, &number, "{} as {}", text, back.as_str());
        }
    }
}
