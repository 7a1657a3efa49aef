//! Arithmetic with the conversions of spf13/cast, and decimal arithmetic for the `…f` functions.

use super::super::error::FuncError;
use super::super::float;
use super::super::host::Ty;
use super::super::number::{parse_float, parse_int};
use super::super::print::sprint;
use super::super::value::{Elem, List, Value};
use super::{Call, Function, Outcome, bytes, fixed, int, string, variadic};

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("atoi", &[Ty::Str], |_, args| Ok(Value::Int(atoi(&string(args, 0))))),
    fixed("int", &[Ty::Any], |_, args| Ok(Value::Int(to_int(&args[0])))),
    fixed("int64", &[Ty::Any], |_, args| Ok(Value::Int64(to_int(&args[0])))),
    fixed("float64", &[Ty::Any], |_, args| Ok(Value::Float(to_float(&args[0])))),
    fixed("toDecimal", &[Ty::Any], |call, args| {
        call.writes(&args[0])?;
        let text = String::from_utf8_lossy(&sprint(&args[0])).into_owned();
        Ok(Value::Int64(i64::from_str_radix(&text, 8).unwrap_or(0)))
    }),
    fixed("add1", &[Ty::Any], |_, args| Ok(Value::Int64(to_int(&args[0]).wrapping_add(1)))),
    variadic("add", &[], Ty::Any, |_, args| {
        Ok(Value::Int64(args.iter().fold(0, |sum, v| sum.wrapping_add(to_int(v)))))
    }),
    fixed("sub", &[Ty::Any, Ty::Any], |_, args| {
        Ok(Value::Int64(to_int(&args[0]).wrapping_sub(to_int(&args[1]))))
    }),
    variadic("mul", &[Ty::Any], Ty::Any, |_, args| {
        Ok(Value::Int64(args.iter().fold(1, |product, v| product.wrapping_mul(to_int(v)))))
    }),
    fixed("div", &[Ty::Any, Ty::Any], |_, args| divide(args, i64::wrapping_div)),
    fixed("mod", &[Ty::Any, Ty::Any], |_, args| divide(args, i64::wrapping_rem)),
    variadic("max", &[Ty::Any], Ty::Any, |_, args| Ok(largest(args))),
    variadic("biggest", &[Ty::Any], Ty::Any, |_, args| Ok(largest(args))),
    variadic("min", &[Ty::Any], Ty::Any, |_, args| {
        Ok(Value::Int64(args.iter().map(to_int).min().unwrap_or(0)))
    }),
    variadic("maxf", &[Ty::Any], Ty::Any, |_, args| {
        Ok(extreme(args, |a, b| a > b || (a == b && b.is_sign_negative())))
    }),
    variadic("minf", &[Ty::Any], Ty::Any, |_, args| {
        Ok(extreme(args, |a, b| a < b || (a == b && a.is_sign_negative())))
    }),
    fixed("ceil", &[Ty::Any], |_, args| Ok(Value::Float(to_float(&args[0]).ceil()))),
    fixed("floor", &[Ty::Any], |_, args| Ok(Value::Float(to_float(&args[0]).floor()))),
    variadic("round", &[Ty::Any, Ty::Int], Ty::Float, |_, args| Ok(round(args))),
    fixed("add1f", &[Ty::Any], |_, args| {
        decimals(to_float(&args[0]), &[Value::Int(1)], Decimal::add, |a, b| a + b)
    }),
    variadic("addf", &[], Ty::Any, |_, args| decimals(0.0, args, Decimal::add, |a, b| a + b)),
    variadic("subf", &[Ty::Any], Ty::Any, |_, args| {
        decimals(to_float(&args[0]), &args[1..], Decimal::sub, |a, b| a - b)
    }),
    variadic("mulf", &[Ty::Any], Ty::Any, |_, args| {
        decimals(to_float(&args[0]), &args[1..], Decimal::mul, |a, b| a * b)
    }),
    variadic("divf", &[Ty::Any], Ty::Any, |_, args| {
        if args[1..].iter().any(|v| to_float(v) == 0.0) {
            return Err("decimal division by 0".into());
        }
        decimals(to_float(&args[0]), &args[1..], Decimal::div, |a, b| a / b)
    }),
    fixed("until", &[Ty::Int], |call, args| {
        let count = int(args, 0);
        Ok(ints(&steps(call, 0, count, if count < 0 { -1 } else { 1 })?))
    }),
    fixed("untilStep", &[Ty::Int, Ty::Int, Ty::Int], |call, args| {
        Ok(ints(&steps(call, int(args, 0), int(args, 1), int(args, 2))?))
    }),
    variadic("seq", &[], Ty::Int, seq),
    fixed("randInt", &[Ty::Int, Ty::Int], |call, args| {
        let (low, high) = (int(args, 0), int(args, 1));
        match u64::try_from(high.wrapping_sub(low)) {
            Ok(span) if span > 0 => {
                let offset = super::random::below(call, span);
                Ok(Value::Int(low.wrapping_add(i64::try_from(offset).unwrap_or(0))))
            }
            _ => Err("invalid argument to Intn".into()),
        }
    }),
];

/// cast.ToInt64.
pub(super) fn to_int(value: &Value) -> i64 {
    match value {
        Value::Int(n) | Value::Int64(n) => *n,
        Value::Uint(_, n) => n.cast_signed(),
        Value::Float(f) => go_int(*f),
        Value::Str(_) => {
            let text = string(std::slice::from_ref(value), 0);
            parse_int(trim_zero_decimal(&text)).unwrap_or(0)
        }
        Value::Bool(b) => i64::from(*b),
        Value::Host(host) => match host.underlying() {
            // Months and weekdays.
            Some(Value::Int(n)) => n,
            _ => 0,
        },
        Value::Nil | Value::List(_) | Value::Map(_) => 0,
    }
}

/// Go's conversion on amd64: what does not fit becomes the smallest number.
fn go_int(f: f64) -> i64 {
    if f.is_nan() || !(-9.223_372_036_854_776e18..9.223_372_036_854_775e18).contains(&f) {
        return i64::MIN;
    }
    f as i64
}

fn trim_zero_decimal(text: &str) -> &str {
    let cut = text.trim_end_matches('0');
    match cut.strip_suffix('.') {
        Some(whole) if cut.len() < text.len() => whole,
        _ => text,
    }
}

/// cast.ToFloat64.
pub(super) fn to_float(value: &Value) -> f64 {
    match value {
        Value::Int(n) | Value::Int64(n) => *n as f64,
        Value::Uint(_, n) => *n as f64,
        Value::Float(f) => *f,
        Value::Str(_) => {
            parse_float(&String::from_utf8_lossy(bytes(std::slice::from_ref(value), 0))).unwrap_or(0.0)
        }
        Value::Bool(b) => f64::from(u8::from(*b)),
        Value::Nil | Value::List(_) | Value::Map(_) | Value::Host(_) => 0.0,
    }
}

/// Go's strconv.Atoi without its error: out of range gives the nearest number.
fn atoi(text: &str) -> i64 {
    if let Ok(n) = text.parse::<i64>() {
        return n;
    }
    let digits = text.trim_start_matches(['+', '-']);
    let number =
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) && text.len() - digits.len() <= 1;
    match number {
        true if text.starts_with('-') => i64::MIN,
        true => i64::MAX,
        false => 0,
    }
}

fn divide(args: &[Value], how: fn(i64, i64) -> i64) -> Outcome {
    match to_int(&args[1]) {
        0 => Err("runtime error: integer divide by zero".into()),
        by => Ok(Value::Int64(how(to_int(&args[0]), by))),
    }
}

fn largest(args: &[Value]) -> Value {
    Value::Int64(args.iter().map(to_int).max().unwrap_or(0))
}

fn extreme(args: &[Value], better: fn(f64, f64) -> bool) -> Value {
    let mut best = args.first().map_or(0.0, to_float);
    for value in args.iter().skip(1).map(to_float) {
        if value.is_nan() || better(value, best) {
            best = value;
        }
    }
    Value::Float(best)
}

fn round(args: &[Value]) -> Value {
    let on = args.get(2).map_or(0.5, to_float);
    let places = int(args, 1).clamp(i64::from(i32::MIN), i64::from(i32::MAX));
    let scale = 10f64.powi(i32::try_from(places).unwrap_or(0));
    let digit = scale * to_float(&args[0]);
    let rounded = if digit.fract() >= on { digit.ceil() } else { digit.floor() };
    Value::Float(rounded / scale)
}

fn ints(numbers: &[i64]) -> Value {
    Value::List(List::typed(Elem::Int, numbers.iter().map(|n| Value::Int(*n)).collect()))
}

fn steps(call: &mut Call<'_, '_>, start: i64, stop: i64, step: i64) -> Result<Vec<i64>, FuncError> {
    /// Bytes of a number here, in the list that is made of them, or in the text of `seq`.
    const NUMBER: usize = 32;
    let mut numbers = Vec::new();
    let mut n = start;
    while if stop < start { step < 0 && n > stop } else { step > 0 && n < stop } {
        numbers.push(n);
        if numbers.len() > 10_000_000 {
            return Err("list too long".into());
        }
        call.makes(NUMBER * numbers.len())?;
        n = n.saturating_add(step);
    }
    Ok(numbers)
}

fn seq(call: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    let (start, stop, step) = match args.len() {
        1 => (1, int(args, 0), None),
        2 => (int(args, 0), int(args, 1), None),
        3 => (int(args, 0), int(args, 2), Some(int(args, 1))),
        _ => return Ok("".into()),
    };
    let towards = if stop < start { -1 } else { 1 };
    if towards < 0 && step.is_some_and(|s| s > 0) {
        return Ok("".into());
    }
    let numbers = steps(call, start, stop.saturating_add(towards), step.unwrap_or(towards))?;
    let shown: Vec<String> = numbers.iter().map(i64::to_string).collect();
    Ok(shown.join(" ").into())
}

/// A decimal number: `coefficient * 10^exponent`.
#[derive(Clone, Copy)]
struct Decimal {
    coefficient: i128,
    exponent: i32,
}

impl Decimal {
    /// The decimal with the fewest digits that reads back as the float.
    fn from_float(f: f64) -> Option<Decimal> {
        let text = float::format(f, b'e', None);
        let (mantissa, exponent) = text.split_once('e')?;
        let fraction = mantissa.split_once('.').map_or(0, |(_, digits)| digits.len());
        let coefficient = mantissa.replace('.', "").parse().ok()?;
        Some(Decimal { coefficient, exponent: exponent.parse::<i32>().ok()? - i32::try_from(fraction).ok()? })
    }

    fn to_float(self) -> Option<f64> {
        format!("{}e{}", self.coefficient, self.exponent).parse().ok()
    }

    fn at(self, exponent: i32) -> Option<i128> {
        let shift = u32::try_from(self.exponent - exponent).ok()?;
        self.coefficient.checked_mul(10i128.checked_pow(shift)?)
    }

    fn add(self, other: Decimal) -> Option<Decimal> {
        let exponent = self.exponent.min(other.exponent);
        Some(Decimal { coefficient: self.at(exponent)?.checked_add(other.at(exponent)?)?, exponent })
    }

    fn sub(self, other: Decimal) -> Option<Decimal> {
        self.add(Decimal { coefficient: -other.coefficient, ..other })
    }

    fn mul(self, other: Decimal) -> Option<Decimal> {
        let coefficient = self.coefficient.checked_mul(other.coefficient)?;
        Some(Decimal { coefficient, exponent: self.exponent + other.exponent })
    }

    /// To 16 digits after the point, halves away from zero.
    fn div(self, other: Decimal) -> Option<Decimal> {
        const DIGITS: i32 = 16;
        let shift = self.exponent - other.exponent + DIGITS;
        let (mut top, mut bottom) = (self.coefficient, other.coefficient);
        if shift < -38 {
            // Below half of the last digit, whatever the coefficients.
            return Some(Decimal { coefficient: 0, exponent: -DIGITS });
        }
        let scale = 10i128.checked_pow(shift.unsigned_abs())?;
        if shift >= 0 {
            top = top.checked_mul(scale)?;
        } else {
            bottom = bottom.checked_mul(scale)?;
        }
        let (mut quotient, rest) = (top / bottom, top % bottom);
        if rest.unsigned_abs().checked_mul(2)? >= bottom.unsigned_abs() {
            quotient += if (top < 0) == (bottom < 0) { 1 } else { -1 };
        }
        Some(Decimal { coefficient: quotient, exponent: -DIGITS })
    }
}

/// Folds numbers as decimals; where they leave 38 digits, as floats.
fn decimals(
    first: f64,
    rest: &[Value],
    op: fn(Decimal, Decimal) -> Option<Decimal>,
    plain: fn(f64, f64) -> f64,
) -> Outcome {
    let exact = rest.iter().try_fold(Decimal::from_float(first), |sum, value| {
        let next = Decimal::from_float(to_float(value))?;
        op(sum?, next).map(Some)
    });
    if let Some(result) = exact.flatten().and_then(Decimal::to_float) {
        return Ok(Value::Float(result));
    }
    Ok(Value::Float(rest.iter().map(to_float).fold(first, plain)))
}
