//! Quantities in their canonical form, as the server stores them: `1000m` is `1`, `0.5Gi` is `512Mi`.
//! Never computes with them.

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

enum Format {
    Decimal,
    Binary,
    Exponent,
}

/// The canonical text, or `None` where the text is no quantity.
pub fn canonical(text: &str) -> Option<String> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let digits: i128 = format!("{whole}{fraction}").parse().ok().filter(|n: &i128| *n < 1 << 80)?;
    let scale = -i32::try_from(fraction.len()).ok()?;
    let (format, digits, scale) = if let Some((_, bits)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        (Format::Binary, digits.checked_mul(1 << bits)?, scale)
    } else if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        (Format::Decimal, digits, scale + power)
    } else {
        let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
        (Format::Exponent, digits, scale + power)
    };
    // Nothing is finer than nano: what is, is rounded up.
    let (mut digits, mut scale) = (digits, scale);
    while scale < -9 {
        digits = (digits + 9) / 10;
        scale += 1;
    }
    if digits == 0 {
        return Some("0".to_owned());
    }
    while digits % 10 == 0 {
        digits /= 10;
        scale += 1;
    }
    let text = match format {
        Format::Binary => binary(digits, scale).or_else(|| decimal(digits, scale)),
        Format::Decimal => decimal(digits, scale),
        Format::Exponent => exponent(digits, scale),
    }?;
    Some(format!("{sign}{text}"))
}

/// A quantity in billionths, for comparing; `None` where it is none, or too great.
pub fn nano(text: &str) -> Option<i128> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = 9 - i32::try_from(fraction.len()).ok()?;
    let (digits, scale) = if let Some((_, bits)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        (digits.checked_mul(1 << bits)?, scale)
    } else if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        (digits, scale + power)
    } else {
        (digits, scale + suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?)
    };
    let value =
        if scale < 0 { digits / 10i128.checked_pow(scale.unsigned_abs())? } else { powered(digits, scale)? };
    Some(if negative { -value } else { value })
}

fn powered(digits: i128, by: i32) -> Option<i128> {
    digits.checked_mul(10i128.checked_pow(u32::try_from(by).ok()?)?)
}

fn binary(digits: i128, scale: i32) -> Option<String> {
    let value = powered(digits, scale)?;
    if value < 1024 {
        return None;
    }
    let fits = BINARY.iter().rev().find(|(_, bits)| value % (1i128 << bits) == 0);
    Some(fits.map_or_else(|| value.to_string(), |(name, bits)| format!("{}{name}", value >> bits)))
}

fn thousands(digits: i128, scale: i32) -> Option<(i128, i32)> {
    let power = scale.div_euclid(3) * 3;
    let power = power.min(18);
    Some((powered(digits, scale - power)?, power))
}

fn decimal(digits: i128, scale: i32) -> Option<String> {
    let (value, power) = thousands(digits, scale)?;
    let (name, _) = DECIMAL.iter().find(|(_, at)| *at == power)?;
    Some(format!("{value}{name}"))
}

fn exponent(digits: i128, scale: i32) -> Option<String> {
    let power = scale.div_euclid(3) * 3;
    let value = powered(digits, scale - power)?;
    Some(if power == 0 { value.to_string() } else { format!("{value}e{power}") })
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn amounts() {
        for (text, want) in [
            ("1", 1_000_000_000),
            ("100m", 100_000_000),
            ("1Ki", 1_024_000_000_000),
            ("-1", -1_000_000_000),
            ("1e3", 1_000_000_000_000),
        ] {
            assert_eq!(crate::resource::quantity::nano(text), Some(want), "{text}");
        }
        assert_eq!(crate::resource::quantity::nano("x"), None);
    }

    #[test]
    fn canonical_forms() {
        for (text, want) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1", "1"),
            ("100m", "100m"),
            ("0.5Gi", "512Mi"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("1e3", "1e3"),
            ("0", "0"),
            ("-1", "-1"),
            ("100Mi", "100Mi"),
            ("1000Ki", "1000Ki"),
            ("0.1", "100m"),
            ("2G", "2G"),
            ("1Ki", "1Ki"),
            ("0.5Ki", "512"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(want), "{text}");
        }
        assert_eq!(canonical("abc"), None);
        assert_eq!(canonical("1.2.3"), None);
        assert_eq!(canonical(""), None);
    }
}
