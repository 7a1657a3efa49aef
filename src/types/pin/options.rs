//! The flags of controller-gen: `crd:maxDescLen=0`, `rbac:roleName=manager-role`, `paths=./...`,
//! `output:crd:dir=config`. Flags of other generators are passed over; what is not known, or has no effect
//! here, is said.

use super::Invocation;
use super::makefile::Command;
use crate::diagnostic::Diagnostic;

/// The flags of `crd`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrdFlags {
    /// `maxDescLen`: longest description in characters; 0 leaves all out.
    pub max_description: Option<usize>,
    /// `allowDangerousTypes`: floats become numbers.
    pub allow_dangerous_types: bool,
    /// `ignoreUnexportedFields`.
    pub ignore_unexported_fields: bool,
    /// `generateEmbeddedObjectMeta`.
    pub generate_embedded_object_meta: bool,
    /// `deprecatedV1beta1CompatibilityPreserveUnknownFields`, written to the CRD's spec as it is.
    pub preserve_unknown_fields: Option<bool>,
    /// `omitToolVersion`: no annotation says which release made the CRD.
    pub omit_tool_version: bool,
    /// `headerFile`, relative to the folder of the call.
    pub header_file: Option<String>,
    /// `year`, for the header.
    pub year: String,
}

/// The flags of `rbac`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RbacFlags {
    /// `roleName`.
    pub role_name: String,
    /// `fileName`; `role.yaml` where not set.
    pub file_name: Option<String>,
    /// `headerFile`, relative to the folder of the call.
    pub header_file: Option<String>,
    /// `year`, for the header.
    pub year: String,
}

/// The flags of `object`, which writes copy methods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectFlags {
    /// `headerFile`, relative to the folder of the call.
    pub header_file: Option<String>,
    /// `year`, for the header.
    pub year: String,
}

/// The options of `webhook`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookFlags {
    /// `headerFile`, relative to the folder of the call.
    pub header_file: Option<String>,
    /// `year`, for the header.
    pub year: String,
}

/// Where files of a generator go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A folder, relative to that of the call.
    Folder(String),
    /// Standard output.
    Stdout,
    /// Nowhere.
    Nothing,
}

/// The settings in some flags; the others are `None` or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Package patterns.
    pub paths: Vec<String>,
    /// The flags of `crd`.
    pub crd: Option<CrdFlags>,
    /// The flags of `rbac`.
    pub rbac: Option<RbacFlags>,
    /// The flags of `object`.
    pub object: Option<ObjectFlags>,
    /// The flags of `webhook`.
    pub webhook: Option<WebhookFlags>,
    /// Where CRDs go.
    pub crd_output: Option<Output>,
    /// Where roles go.
    pub rbac_output: Option<Output>,
    /// Where webhook configurations go.
    pub webhook_output: Option<Output>,
    /// Where copy methods go; `Some(None)` is beside the types.
    pub object_output: Option<Option<Output>>,
}

/// Reads flags; `None` where the call only prints something.
pub(super) fn given(flags: &[String], warn: &mut impl FnMut(String)) -> Option<Given> {
    let mut given = Given::default();
    let mut default = None;
    for flag in flags {
        if flag.starts_with('>') {
            break;
        }
        if matches!(flag.as_str(), "--version" | "--help" | "-h" | "-w") {
            return None;
        }
        let flag = flag.trim_start_matches('+');
        if let Some(paths) = flag.strip_prefix("paths=") {
            given.paths.extend(list(paths));
        } else if let Some(rest) = flag.strip_prefix("output:") {
            if let Some(output) = code_output(rest) {
                given.object_output = Some(output);
            }
            match output(rest) {
                Some(("", output)) => default = Some(output),
                Some(("crd", output)) => given.crd_output = Some(output),
                Some(("rbac", output)) => given.rbac_output = Some(output),
                Some(("webhook", output)) => given.webhook_output = Some(output),
                Some(_) => {}
                None => warn(format!("controller-gen has no output rule {flag:?}")),
            }
        } else if let Some(arguments) = generator(flag, "crd") {
            given.crd = Some(crd_flags(arguments, warn));
        } else if let Some(arguments) = generator(flag, "rbac") {
            given.rbac = Some(rbac_flags(arguments, warn));
        } else if let Some(arguments) = generator(flag, "object") {
            let (header_file, year) = header_flags("object", arguments, warn);
            given.object = Some(ObjectFlags { header_file, year });
        } else if let Some(arguments) = generator(flag, "webhook") {
            let (header_file, year) = header_flags("webhook", arguments, warn);
            given.webhook = Some(WebhookFlags { header_file, year });
        }
    }
    given.crd_output = given.crd_output.or_else(|| default.clone());
    given.rbac_output = given.rbac_output.or_else(|| default.clone());
    given.webhook_output = given.webhook_output.or(default);
    Some(given)
}

/// The call that some flags make up; `None` where it only prints something.
pub(super) fn invocation(
    command: &Command,
    flags: &[String],
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Invocation> {
    let mut warn = |message: String| {
        diagnostics.push(Diagnostic::warning(message, Some(command.place.clone())));
    };
    let given = given(flags, &mut warn)?;
    let all = || vec!["./...".to_owned()];
    Some(Invocation {
        target: command.target.clone(),
        folder: command.folder.clone(),
        paths: if given.paths.is_empty() { all() } else { given.paths },
        crd: given.crd,
        rbac: given.rbac,
        object: given.object,
        webhook: given.webhook,
        crd_output: given.crd_output.unwrap_or_else(|| Output::Folder("config/crd".to_owned())),
        rbac_output: given.rbac_output.unwrap_or_else(|| Output::Folder("config/rbac".to_owned())),
        webhook_output: given.webhook_output.unwrap_or_else(|| Output::Folder("config/webhook".to_owned())),
        object_output: given.object_output.flatten(),
        place: Some(command.place.clone()),
    })
}

/// Where an output rule sends code: `Some(None)` is beside the packages it is made of; `None` where the rule
/// says nothing of it.
fn code_output(text: &str) -> Option<Option<Output>> {
    let text = text.strip_prefix("object:").unwrap_or(text);
    if let Some(folders) = text.strip_prefix("artifacts:") {
        let code = folders.split(',').find_map(|part| part.strip_prefix("code="));
        return Some(code.map(|code| Output::Folder(code.trim_matches(['"', '`']).to_owned())));
    }
    match output(text)? {
        ("", output) => Some(Some(output)),
        _ => None,
    }
}

/// The options of a generator that has none but those of the header: `headerFile` and `year`.
fn header_flags(generator: &str, arguments: &str, warn: &mut impl FnMut(String)) -> (Option<String>, String) {
    let (mut file, mut year) = (None, String::new());
    for (name, value) in pairs(arguments) {
        match name {
            "headerFile" => file = Some(value.to_owned()),
            "year" => value.clone_into(&mut year),
            _ => warn(format!(
                "{generator}:{name} is no option of controller-gen that is known here; it has no effect"
            )),
        }
    }
    (file, year)
}

/// The arguments of a generator where a flag names it.
fn generator<'a>(flag: &'a str, name: &str) -> Option<&'a str> {
    let rest = flag.strip_prefix(name)?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix(':') }
}

/// `crd:dir=x`, `crd:artifacts:config=x`, `dir=x`, `stdout`: whose output, and where it goes.
fn output(text: &str) -> Option<(&str, Output)> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let mut parts: Vec<&str> = name.split(':').collect();
    if parts.last() == Some(&"config") {
        parts.pop();
    }
    let rule = parts.pop()?;
    let whose = parts.pop().unwrap_or_default();
    let folder = || value.split(',').next().unwrap_or_default().trim_matches(['"', '`']).to_owned();
    match rule {
        "dir" | "artifacts" => Some((whose, Output::Folder(folder()))),
        "stdout" => Some((whose, Output::Stdout)),
        "none" => Some((whose, Output::Nothing)),
        _ => None,
    }
}

/// A warning about a flag.
fn odd(name: &str, value: &str, why: &str) -> String {
    let value = if value.is_empty() { String::new() } else { format!("={value}") };
    format!("{name}{value} {why}; it has no effect")
}

fn crd_flags(arguments: &str, warn: &mut impl FnMut(String)) -> CrdFlags {
    let mut flags = CrdFlags::default();
    for (name, value) in pairs(arguments) {
        match name {
            "maxDescLen" => match value.parse::<i64>() {
                // Less than nothing is no limit.
                Ok(length) => flags.max_description = usize::try_from(length).ok(),
                Err(_) => warn(odd("crd:maxDescLen", value, "is no number of characters")),
            },
            "allowDangerousTypes" => flags.allow_dangerous_types = truth(value),
            "ignoreUnexportedFields" => flags.ignore_unexported_fields = truth(value),
            "generateEmbeddedObjectMeta" => flags.generate_embedded_object_meta = truth(value),
            "deprecatedV1beta1CompatibilityPreserveUnknownFields" => {
                flags.preserve_unknown_fields = Some(truth(value));
            }
            "omitToolVersion" => flags.omit_tool_version = truth(value),
            "headerFile" => flags.header_file = Some(value.to_owned()),
            "year" => value.clone_into(&mut flags.year),
            "crdVersions" if list(value) == ["v1"] => {}
            "crdVersions" => {
                warn(odd("crd:crdVersions", value, "asks for more than v1, which is all that servers take"));
            }
            // These options belong to CRDs that no server accepts any more; they change nothing about v1.
            "trivialVersions" | "preserveUnknownFields" => {}
            _ => warn(format!(
                "crd:{name} is no option of controller-gen that is known here; it has no effect"
            )),
        }
    }
    flags
}

fn rbac_flags(arguments: &str, warn: &mut impl FnMut(String)) -> RbacFlags {
    let mut flags = RbacFlags::default();
    for (name, value) in pairs(arguments) {
        match name {
            "roleName" => value.clone_into(&mut flags.role_name),
            "fileName" => flags.file_name = Some(value.to_owned()),
            "headerFile" => flags.header_file = Some(value.to_owned()),
            "year" => value.clone_into(&mut flags.year),
            _ => warn(format!(
                "rbac:{name} is no option of controller-gen that is known here; it has no effect"
            )),
        }
    }
    flags
}

fn truth(value: &str) -> bool {
    value.is_empty() || value == "true"
}

/// `a=1,b={x,y}` as pairs; a name without a value is true.
fn pairs(text: &str) -> Vec<(&str, &str)> {
    let (mut depth, mut quoted) = (0_usize, false);
    text.split(|c| {
        match c {
            '"' | '`' => quoted = !quoted,
            '{' if !quoted => depth += 1,
            '}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && !quoted && depth == 0
    })
    .filter(|part| !part.trim().is_empty())
    .map(|part| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (name.trim(), value.trim().trim_matches(['"', '`']))
    })
    .collect()
}

/// `a;b` or `{a,b}`.
fn list(text: &str) -> Vec<String> {
    let text = text.trim();
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let parts: Vec<&str> = match inner {
        Some(inner) => inner.split(',').collect(),
        None => text.split(';').collect(),
    };
    parts
        .into_iter()
        .map(|part| part.trim().trim_matches(['"', '`']).to_owned())
        .filter(|part| !part.is_empty())
        .collect()
}
