//! Schedules of cron jobs: five fields or a name such as `@daily`. Only says what is wrong; nothing runs here.

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const NAMED: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// The least and the greatest value of a field, and the names of values.
type Bounds = (u64, u64, &'static [&'static str]);
const FIELDS: [Bounds; 5] = [(0, 59, &[]), (0, 23, &[]), (1, 31, &[]), (1, 12, &MONTHS), (0, 6, &DAYS)];

/// What is wrong with a schedule.
pub(super) fn check(text: &str) -> Result<(), String> {
    let mut text = text;
    if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
        let Some((zone, rest)) = text.split_once(' ') else {
            return Err("failed to parse schedule".to_owned());
        };
        let name = zone.split_once('=').map_or("", |(_, name)| name);
        if !name.eq_ignore_ascii_case("UTC") && !name.is_empty() && jiff::tz::db().get(name).is_err() {
            return Err(format!("provided bad location {name}: unknown time zone {name}"));
        }
        text = rest.trim();
    }
    if text.starts_with('@') {
        return descriptor(text);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    fields.iter().zip(FIELDS).try_for_each(|(field, bounds)| {
        field.split(',').filter(|part| !part.is_empty()).try_for_each(|part| range(part, bounds))
    })
}

fn descriptor(text: &str) -> Result<(), String> {
    if NAMED.contains(&text) {
        return Ok(());
    }
    match text.strip_prefix("@every ") {
        Some(duration) if go_duration(duration) => Ok(()),
        Some(duration) => {
            Err(format!("failed to parse duration {text}: time: invalid duration {duration:?}"))
        }
        None => Err(format!("unrecognized descriptor: {text}")),
    }
}

/// Whether a text is a duration such as `1h30m`.
fn go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        if !number.bytes().any(|byte| byte.is_ascii_digit()) || number.matches('.').count() > 1 {
            return false;
        }
        let Some(unit) = ["ns", "us", "µs", "ms", "s", "m", "h"].into_iter().find(|u| {
            let after = tail.strip_prefix(u);
            after.is_some_and(|after| {
                after.is_empty() || after.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            })
        }) else {
            return false;
        };
        rest = &tail[unit.len()..];
    }
    !text.is_empty()
}

/// One part of a field: `*`, `a`, `a-b`, each with a step.
fn range(part: &str, (least, most, names): Bounds) -> Result<(), String> {
    let pieces: Vec<&str> = part.split('/').collect();
    let ends: Vec<&str> = pieces[0].split('-').collect();
    let single = ends.len() == 1;
    let (mut start, mut end) = (least, most);
    if !matches!(ends[0], "*" | "?") {
        start = value(ends[0], names)?;
        match ends.as_slice() {
            [_] => end = start,
            [_, last] => end = value(last, names)?,
            _ => return Err(format!("too many hyphens: {part}")),
        }
    }
    let step = match pieces.as_slice() {
        [_] => 1,
        [_, step] => {
            if single {
                end = most;
            }
            number(step)?
        }
        _ => return Err(format!("too many slashes: {part}")),
    };
    if start < least {
        return Err(format!("beginning of range ({start}) below minimum ({least}): {part}"));
    }
    if end > most {
        return Err(format!("end of range ({end}) above maximum ({most}): {part}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {part}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {part}"));
    }
    Ok(())
}

fn value(text: &str, names: &[&str]) -> Result<u64, String> {
    let lower = text.to_lowercase();
    match names.iter().position(|name| *name == lower) {
        // Months begin with one, days of the week with zero.
        Some(at) => Ok(at as u64 + u64::from(names.len() == 12)),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    match text.parse::<i64>() {
        Ok(number) => {
            u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
        }
        Err(_) => {
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn schedules() {
        for good in [
            "* * * * *",
            "*/5 0 1 * *",
            "@daily",
            "@every 1h30m",
            "0 9-17/2 * JAN,FEB MON-FRI",
            "TZ=UTC 0 0 * * *",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, text) in [
            ("bad", "expected exactly 5 fields, found 1: [bad]"),
            ("61 * * * *", "end of range (61) above maximum (59): 61"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("@never", "unrecognized descriptor: @never"),
        ] {
            assert_eq!(check(bad), Err(text.to_owned()), "{bad}");
        }
    }
}
