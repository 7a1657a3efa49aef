//! Errors that are the right answer to a change of one field: the operator says that it refuses the value, or
//! the value names something that nobody has made. Pure.

use super::mutation::Mutation;
use super::run::here;
use crate::judge::FAIL;
use serde_json::Value;

/// Why an error accuses nobody, in words; nothing where it may be the operator's fault.
pub(super) fn excuse(
    status: Option<&Value>,
    mutation: Option<&Mutation>,
    trouble: &str,
) -> Option<&'static str> {
    if status.is_some_and(|status| says(status, trouble)) {
        return Some("and its status says so");
    }
    let value = mutation.filter(|mutation| mutation.of.is_none())?.value.as_ref();
    names_nothing(value, error_of(trouble)?).then_some("and it names what is not there")
}

/// The error that reconciles end with; nothing where the trouble is another one, or a panic.
fn error_of(trouble: &str) -> Option<&str> {
    let (_, error) = trouble.split_once(&format!("{FAIL}: "))?;
    (!error.contains("panic") && !error.contains("runtime error")).then_some(error)
}

/// Returns true if an error is about something that is not there, and the new value of a field names it. An
/// empty value names something without a name.
fn names_nothing(value: Option<&Value>, error: &str) -> bool {
    let is_named = |name: &str| {
        let quoted = format!("\"{name}\"");
        let after = format!("{quoted} not found");
        let before = format!("Not found: {quoted}");
        error.contains(&after) || error.contains(&before)
    };
    fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::String(text) => found.push(text),
            Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
            Value::Object(fields) => fields.values().for_each(|field| texts(field, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut named = Vec::new();
    value.into_iter().for_each(|value| texts(value, &mut named));
    let nameless = value.is_none_or(|value| match value {
        Value::Object(fields) => fields.values().all(|field| field == ""),
        Value::Array(items) => items.is_empty(),
        other => other == "",
    });
    named.into_iter().chain(nameless.then_some("")).any(is_named)
}

/// Returns true if a text of a status has the innermost cause of an error that reconciles end with.
fn says(status: &Value, trouble: &str) -> bool {
    /// Shorter causes stand in any text.
    const TELLING: usize = 10;
    let Some(error) = error_of(trouble) else { return false };
    // The place in the code comes last.
    let is_place = |text: &str| {
        text.rsplit_once(':').is_some_and(|(_, line)| line.trim_end_matches(')').parse::<u32>().is_ok())
    };
    let error =
        error.rsplit_once(" (").filter(|(_, place)| is_place(place)).map_or(error, |(error, _)| error);
    let cause = error.rsplit(": ").next().unwrap_or(error).trim();
    cause.len() >= TELLING && has_text(status, cause)
}

/// Returns true if a text of a value has these words.
fn has_text(value: &Value, words: &str) -> bool {
    match value {
        Value::String(text) => here(text).contains(words),
        Value::Array(items) => items.iter().any(|item| has_text(item, words)),
        Value::Object(fields) => fields.values().any(|field| has_text(field, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_status_that_has_the_cause_of_an_error_says_it() {
        let status = serde_json::json!({"conditions": [{"type": "Ready", "status": "False",
            "message": "not valid: hosts is required, but not set"}]});
        let of = |error: &str| format!("reconciles of Db NAMESPACE/a {FAIL}: {error}");
        assert!(says(&status, &of("ingress: hosts is required, but not set (controllers/a.go:12)")));
        assert!(says(&status, &of("hosts is required, but not set")));
        assert!(!says(&status, &of("ports are required, but not set")));
        assert!(!says(&status, &of("not set")), "such a short text stands anywhere");
        assert!(!says(&status, &of("runtime error: hosts is required, but not set")), "a panic is none");
    }

    #[test]
    fn an_error_about_what_the_new_value_names_accuses_nobody() {
        let set = |value: Value| Mutation::new(vec!["spec".to_owned(), "ref".to_owned()], Some(value));
        let of = |error: &str| format!("reconciles of Db NAMESPACE/a {FAIL}: {error}");
        let why = |mutation: &Mutation, error: &str| excuse(None, Some(mutation), &of(error));
        let named = set(json!({"name": "opdev"}));
        assert!(why(&named, "Secret \"opdev\" not found").is_some());
        assert!(why(&named, "secrets \"a-opdev\" not found").is_none(), "its own object");
        assert!(why(&set(json!({})), "Secret \"\" not found").is_some());
        let mount = set(json!([{"name": "opdev", "mountPath": "/a"}]));
        assert!(why(&mount, "spec.volumeMounts[0].name: Not found: \"opdev\"").is_some());
        assert!(why(&set(json!(0)), "Secret \"\" not found").is_none(), "no name was changed");
        assert!(why(&named, "panic: secrets \"opdev\" not found").is_none());
        assert!(excuse(None, Some(&named), "the program has ended: secrets \"opdev\" not found").is_none());
        let beside = Mutation { of: Some("Secret a".to_owned()), ..named };
        assert!(why(&beside, "Secret \"opdev\" not found").is_none(), "no reference was changed");
    }
}
