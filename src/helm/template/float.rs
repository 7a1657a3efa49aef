//! Floats as Go writes them: shortest digits or a precision, in `e`, `f` and `g` form.

/// Go's strconv.FormatFloat(value, form, precision, 64); no precision means the shortest digits that read
/// back.
pub(super) fn format(value: f64, form: u8, precision: Option<usize>) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    // Rust's own formatting stops at 65,535 digits.
    let precision = precision.map(|p| p.min(60_000));
    match form {
        b'e' | b'E' => exponent(value, form, precision),
        b'x' | b'X' => hexadecimal(value, form == b'X', precision),
        b'b' => {
            let (mantissa, exponent) = parts(value);
            let sign = if value.is_sign_negative() { "-" } else { "" };
            format!("{sign}{mantissa}p{:+}", exponent - 52)
        }
        b'f' | b'F' => match precision {
            Some(p) => format!("{value:.p$}"),
            None => format!("{value}"),
        },
        _ => general(value, form - 2, precision),
    }
}

/// Mantissa with its implicit bit, and the exponent of that bit.
fn parts(value: f64) -> (u64, i64) {
    let bits = value.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    match i64::try_from((bits >> 52) & 0x7ff).unwrap_or(0) {
        0 => (fraction, -1022),
        exponent => (fraction | 1 << 52, exponent - 1023),
    }
}

/// `0x1.8p+00`.
fn hexadecimal(value: f64, upper: bool, precision: Option<usize>) -> String {
    let (mut mantissa, mut exponent) = parts(value);
    if mantissa == 0 {
        exponent = 0;
    }
    while mantissa != 0 && mantissa < 1 << 52 {
        mantissa <<= 1;
        exponent -= 1;
    }
    if let Some(cut) = precision.and_then(|p| 13_usize.checked_sub(p)).filter(|n| *n > 0).map(|n| 4 * n) {
        let (rest, half) = (mantissa & ((1 << cut) - 1), 1 << (cut - 1));
        mantissa >>= cut;
        mantissa += u64::from(rest > half || (rest == half && mantissa & 1 == 1));
        mantissa <<= cut;
        if mantissa >= 1 << 53 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let digits = format!("{:013x}", mantissa & ((1 << 52) - 1));
    let fraction = match precision {
        None => digits.trim_end_matches('0').to_owned(),
        Some(p) => format!("{digits:0<p$}")[..p].to_owned(),
    };
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    let (minus, exponent) = if exponent < 0 { ('-', -exponent) } else { ('+', exponent) };
    let text = format!("{sign}0x{}{point}{fraction}p{minus}{exponent:02}", mantissa >> 52);
    if upper { text.to_ascii_uppercase() } else { text }
}

/// The digits Go's `#` asks for: a point, and in the general form no zero left out.
pub(super) fn sharp(number: &str, verb: char, precision: Option<usize>) -> String {
    let mut missing = match verb {
        'v' | 'g' | 'G' | 'x' => i64::try_from(precision.unwrap_or(6)).unwrap_or(6),
        _ => 0,
    };
    let ends: &[char] = if matches!(verb, 'x' | 'X') { &['p', 'P'] } else { &['e', 'E', 'p', 'P'] };
    let (body, tail) = number.split_at(number.find(ends).unwrap_or(number.len()));
    let digits = body.trim_start_matches(['+', '-']);
    let significant = digits.chars().filter(|c| *c != '.').skip_while(|c| *c == '0').count();
    missing -= i64::try_from(significant).unwrap_or(0);
    let mut text = body.to_owned();
    if !digits.contains('.') {
        missing -= i64::from(digits == "0");
        text.push('.');
    }
    text.extend(std::iter::repeat_n('0', usize::try_from(missing).unwrap_or(0)));
    text + tail
}

/// The shortest form, `%v`.
pub(super) fn shortest(value: f64) -> String {
    format(value, b'g', None)
}

fn exponent(value: f64, form: u8, precision: Option<usize>) -> String {
    let text = match precision {
        Some(p) => format!("{value:.p$e}"),
        None => format!("{value:e}"),
    };
    let (mantissa, exp) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exp.strip_prefix('-').map_or(('+', exp), |d| ('-', d));
    format!("{mantissa}{}{sign}{digits:0>2}", char::from(form))
}

/// `g`: the exponent decides between the other two. `form` is the letter of the exponent.
fn general(value: f64, form: u8, precision: Option<usize>) -> String {
    let precision = precision.map(|p| p.max(1));
    let text = match precision {
        Some(p) => format!("{value:.*e}", p - 1),
        None => format!("{value:e}"),
    };
    let (mantissa, exp) = text.split_once('e').unwrap_or((&text, "0"));
    let exp: i32 = exp.parse().unwrap_or(0);
    let trimmed =
        if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    let digits = trimmed.bytes().filter(u8::is_ascii_digit).count();
    let limit = match precision {
        None => 6,
        Some(p) => {
            let digits_before = usize::try_from(exp + 1).unwrap_or(0);
            i32::try_from(if p > digits && digits >= digits_before { digits } else { p }).unwrap_or(i32::MAX)
        }
    };
    if exp < -4 || exp >= limit {
        return exponent(value, form, Some(digits.saturating_sub(1)));
    }
    let decimals = i32::try_from(digits).unwrap_or(i32::MAX) - 1 - exp;
    format!("{value:.*}", usize::try_from(decimals.max(0)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_form_switches_to_exponents_where_go_does() {
        for (value, want) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (0.1, "0.1"),
            (100_000.0, "100000"),
            (1_000_000.0, "1e+06"),
            (1_000_650_000.0, "1.00065e+09"),
            (123_456.789, "123456.789"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e100, "1e+100"),
        ] {
            assert_eq!(shortest(value), want);
        }
    }

    #[test]
    fn precision_counts_significant_digits_in_g() {
        assert_eq!(format(1234.5678, b'g', Some(3)), "1.23e+03");
        assert_eq!(format(0.5, b'g', Some(3)), "0.5");
        assert_eq!(format(100.0, b'g', Some(3)), "100");
        assert_eq!(format(1e6, b'e', Some(2)), "1.00e+06");
        assert_eq!(format(2.5, b'f', Some(0)), "2");
    }
}
