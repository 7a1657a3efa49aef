//! `string.format`: clauses such as `%s` and `%.2f`, with the texts a server's locale gives them.

use super::convert;
use super::kind::Kind;
use super::runtime::Runtime;
use super::value::{Evaluated, Key, Stop, Val, failed, type_name};
use opdev_object::go::quote::quote;

/// More digits than this nobody can mean.
const MOST_DIGITS: usize = 1000;
/// Deepest list of lists that is written.
const DEEPEST: usize = 64;

/// Checks a format against the kinds of its arguments: how many it takes, or what is wrong and where.
pub(super) fn check(text: &str, kinds: &[(usize, Kind)]) -> Result<usize, (Option<usize>, String)> {
    let mut chars = text.chars().peekable();
    let mut next = 0;
    while let Some(c) = chars.next() {
        if c != '%' || chars.next_if_eq(&'%').is_some() {
            continue;
        }
        while chars.next_if(|c| *c == '.' || c.is_ascii_digit()).is_some() {}
        let Some(clause) = chars.next() else { return Err((None, "unexpected end of string".to_owned())) };
        let Some(words) = words(clause) else {
            let text =
                format!("could not parse formatting clause: unrecognized formatting clause \"{clause}\"");
            return Err((None, text));
        };
        let Some((at, kind)) = kinds.get(next) else {
            return Err((None, format!("index {next} out of range")));
        };
        next += 1;
        let fits = match clause {
            'd' | 'o' => matches!(kind, Kind::Int | Kind::Uint),
            'f' | 'e' => matches!(kind, Kind::Double),
            'b' => matches!(kind, Kind::Int | Kind::Uint | Kind::Bool),
            'x' | 'X' => matches!(kind, Kind::Int | Kind::Uint | Kind::Text | Kind::Bytes),
            _ => !matches!(kind, Kind::Optional(_) | Kind::Opaque(_) | Kind::Object(_)),
        };
        if !fits && !kind.is_dyn() {
            let text = format!("error during formatting: {words}, was given {}", type_name(kind));
            return Err((Some(*at), text));
        }
    }
    Ok(next)
}

/// The type that a clause takes, in words; `None` where there is no such clause.
fn words(clause: char) -> Option<&'static str> {
    Some(match clause {
        's' => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
        }
        'd' => "decimal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'x' | 'X' => "only integers, byte buffers, and strings can be formatted as hex",
        'o' => "octal clause can only be used on integers",
        _ => return None,
    })
}

/// Writes `args` into the places of `text`.
pub(super) fn format(runtime: &mut Runtime<'_>, text: &str, args: &[Val]) -> Evaluated {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    let mut next = 0;
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let mut digits = None;
        if chars.next_if_eq(&'.').is_some() {
            let mut number = String::new();
            while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                number.push(digit);
            }
            let count = number.parse().ok().filter(|count| *count <= MOST_DIGITS);
            match count {
                Some(count) => digits = Some(count),
                None => return failed(format!("error while parsing precision: {number:?} is out of range")),
            }
        }
        let Some(clause) = chars.next() else { return failed("unexpected end of string") };
        let Some(arg) = args.get(next) else { return failed(format!("index {next} out of range")) };
        next += 1;
        let written = written(clause, digits, arg)?;
        runtime.charge(written.len() as u64 / 10 + 1)?;
        out.push_str(&written);
    }
    Ok(Val::text(out))
}

fn wrong(clause: char, arg: &Val) -> Result<String, Stop> {
    failed(format!(
        "error during formatting: {}, was given {}",
        words(clause).unwrap_or_default(),
        arg.type_name()
    ))
}

fn written(clause: char, digits: Option<usize>, arg: &Val) -> Result<String, Stop> {
    match clause {
        's' => shown(arg, 0),
        'd' => match arg {
            Val::Int(number) => Ok(number.to_string()),
            Val::Uint(number) => Ok(number.to_string()),
            _ => wrong(clause, arg),
        },
        'f' | 'e' => {
            let float = match arg {
                Val::Double(float) => *float,
                Val::Text(text) if matches!(&**text, "NaN" | "Infinity" | "-Infinity") => {
                    return Ok(text.replace("Infinity", "∞"));
                }
                _ => return wrong(clause, arg),
            };
            Ok(if clause == 'f' {
                fixed(float, digits.unwrap_or(6))
            } else {
                scientific(float, digits.unwrap_or(6))
            })
        }
        'b' => match arg {
            Val::Int(number) if *number < 0 => Ok(format!("-{:b}", number.unsigned_abs())),
            Val::Int(number) => Ok(format!("{number:b}")),
            Val::Uint(number) => Ok(format!("{number:b}")),
            Val::Bool(truth) => Ok(i32::from(*truth).to_string()),
            _ => wrong(clause, arg),
        },
        'x' | 'X' => {
            let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
            let text = match arg {
                Val::Int(number) if *number < 0 => format!("-{:x}", number.unsigned_abs()),
                Val::Int(number) => format!("{number:x}"),
                Val::Uint(number) => format!("{number:x}"),
                Val::Text(text) => hex(text.as_bytes()),
                Val::Bytes(bytes) => hex(bytes),
                _ => {
                    return wrong(clause, arg);
                }
            };
            Ok(if clause == 'X' { text.to_uppercase() } else { text })
        }
        'o' => match arg {
            Val::Int(number) if *number < 0 => Ok(format!("-{:o}", number.unsigned_abs())),
            Val::Int(number) => Ok(format!("{number:o}")),
            Val::Uint(number) => Ok(format!("{number:o}")),
            _ => wrong(clause, arg),
        },
        other => {
            failed(format!("could not parse formatting clause: unrecognized formatting clause \"{other}\""))
        }
    }
}

fn shown(value: &Val, depth: usize) -> Result<String, Stop> {
    if depth > DEEPEST {
        return failed("error during formatting: the value is nested too deep");
    }
    match value {
        Val::Null => Ok("null".to_owned()),
        Val::List(items, _) => {
            let items = items.iter().map(|item| literal(item, depth + 1)).collect::<Result<Vec<_>, _>>()?;
            Ok(format!("[{}]", items.join(", ")))
        }
        Val::Map(map) => {
            let mut entries = Vec::new();
            for (key, value) in map.iter() {
                let key = match key {
                    Key::Text(text) => quote(text),
                    other => other.to_string(),
                };
                entries.push((key, literal(value, depth + 1)?));
            }
            entries.sort();
            let entries: Vec<String> =
                entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            Ok(format!("{{{}}}", entries.join(", ")))
        }
        Val::Optional(_) | Val::Library(..) | Val::Check(_) | Val::Unknown(_) => wrong('s', value),
        other => convert::text(other),
    }
}

/// A value inside a list or map, as CEL would write it.
fn literal(value: &Val, depth: usize) -> Result<String, Stop> {
    let text = match value {
        Val::Double(float) => return Ok(format!("{float:.6}")),
        other => shown(other, depth)?,
    };
    Ok(match value {
        Val::Text(_) => quote(&text),
        Val::Bytes(_) => format!("b{}", quote(&text)),
        Val::Timestamp(_) => format!("timestamp({})", quote(&text)),
        Val::Duration(_) => format!("duration({})", quote(&text)),
        _ => text,
    })
}

/// With commas between thousands.
fn fixed(float: f64, digits: usize) -> String {
    if float.is_nan() {
        return "NaN".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { "∞" } else { "-∞" }.to_owned();
    }
    let text = format!("{float:.digits$}");
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match fraction {
        Some(fraction) => format!("{sign}{grouped}.{fraction}"),
        None => format!("{sign}{grouped}"),
    }
}

fn scientific(float: f64, digits: usize) -> String {
    if !float.is_finite() {
        return fixed(float, digits);
    }
    let text = format!("{float:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let raised: String = format!("{:02}", exponent.trim_start_matches('-').parse::<u32>().unwrap_or(0))
        .chars()
        .map(|c| match c {
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            '4' => '⁴',
            '5' => '⁵',
            '6' => '⁶',
            '7' => '⁷',
            '8' => '⁸',
            '9' => '⁹',
            _ => '⁰',
        })
        .collect();
    let sign = if exponent.starts_with('-') { "⁻" } else { "" };
    format!("{mantissa}\u{202f}×\u{202f}10{sign}{raised}")
}
