//! Numbers as Go writes them.

/// Go's `%v` for a float64.
pub fn float(float: f64) -> String {
    if float == 0.0 {
        return if float.is_sign_negative() { "-0".to_owned() } else { "0".to_owned() };
    }
    let scientific = format!("{float:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..21).contains(&exponent) {
        return format!("{float}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    #[test]
    fn floats_print_as_go_prints_them() {
        for (float, text) in [
            (0.1, "0.1"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (0.00001, "1e-05"),
            (-2.0, "-2"),
            (-0.0, "-0"),
            (1e-8, "1e-08"),
            (9.999999999999999e-6, "9.999999999999999e-06"),
            (10.0, "10"),
            (1.5e-7, "1.5e-07"),
        ] {
            assert_eq!(super::float(float), text);
        }
    }
}
