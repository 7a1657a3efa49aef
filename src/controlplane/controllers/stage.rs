//! A pod's life as data: when a stage applies, after which delay, and what it makes of the pod.
//! The shape of KWOK's Stage with `next.status` in place of a text template. Never applies anything;
//! `kubelet` does.

use super::fields::{self, count, list, map, text};
use super::selector::Selector;
use opdev_object::{meta, yaml};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

/// One stage.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Name, for logs and for the clock of its delay.
    pub name: String,
    weight: i64,
    delay: Duration,
    labels: Selector,
    annotations: Map<String, Value>,
    expressions: Vec<Expression>,
    /// The effect of the stage.
    pub(crate) next: Value,
}

#[derive(Clone, Debug)]
struct Expression {
    query: Query,
    operator: String,
    values: Vec<String>,
}

/// Why stages cannot be read.
#[derive(Clone, Debug)]
pub enum StageError {
    /// They are not YAML.
    Yaml(yaml::Error),
    /// A stage is wrong.
    Stage {
        /// The document of the stream, from 1.
        number: usize,
        /// Its name.
        name: String,
        /// Its error.
        problem: StageProblem,
    },
}

/// The error of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageProblem {
    /// The document is of another kind.
    Kind(String),
    /// It is about another kind than pods.
    ResourceKind(String),
    /// An expression of its selector has an unknown operator.
    Operator {
        /// The expression, from 0.
        at: usize,
        /// The operator.
        operator: String,
    },
    /// The key of an expression of its selector cannot be parsed.
    Query {
        /// The expression, from 0.
        at: usize,
        /// Why.
        error: QueryError,
    },
}

/// A path into an object that cannot be parsed. Each has the whole path as its `source`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryError {
    /// `select(…)` without `==`.
    Select {
        /// The whole path.
        source: String,
    },
    /// `["` without `"]`.
    Bracket {
        /// The whole path.
        source: String,
    },
    /// This part is none that is known.
    Rest {
        /// The part.
        rest: String,
        /// The whole path.
        source: String,
    },
}

impl std::error::Error for StageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StageError::Yaml(error) => Some(error),
            StageError::Stage { .. } => None,
        }
    }
}

impl fmt::Display for StageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StageError::Yaml(error) => error.fmt(f),
            StageError::Stage { number, name, problem } => write!(f, "stage {number} ({name}): {problem}"),
        }
    }
}

impl fmt::Display for StageProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StageProblem::Kind(kind) => write!(f, "kind is \"{kind}\", expected \"Stage\""),
            StageProblem::ResourceKind(kind) => {
                write!(f, "spec.resourceRef.kind is \"{kind}\", only \"Pod\" has stages")
            }
            StageProblem::Operator { at, operator } => {
                write!(f, "spec.selector.matchExpressions[{at}].operator \"{operator}\" is unknown")
            }
            StageProblem::Query { at, error } => {
                write!(f, "spec.selector.matchExpressions[{at}].key: {error}")
            }
        }
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryError::Select { source } => write!(f, "select without == in \"{source}\""),
            QueryError::Bracket { source } => write!(f, "[\" without \"] in \"{source}\""),
            QueryError::Rest { rest, source } => write!(f, "cannot read \"{rest}\" in \"{source}\""),
        }
    }
}

/// The stages this program brings along.
const BUILT_IN: [&str; 3] = [
    include_str!("assets/stages/pod-start.yaml"),
    include_str!("assets/stages/pod-end.yaml"),
    include_str!("assets/stages/pod-fail.yaml"),
];

/// The stages this program brings along, parsed once the first pod asks: a start need not wait for them.
pub fn built_in() -> &'static [Stage] {
    static PARSED: OnceLock<Vec<Stage>> = OnceLock::new();
    PARSED.get_or_init(|| {
        let parsed =
            BUILT_IN.iter().map(|text| parse(text).expect("the built-in stages are parsed by a test"));
        parsed.flatten().collect()
    })
}

/// The text of the stages this program brings along, for whoever adds one of their own.
pub fn built_in_text() -> String {
    BUILT_IN.join("\n---\n")
}

/// Reads the stages of a YAML stream; documents of other kinds are an error that says where.
pub fn parse(stream: &str) -> Result<Vec<Stage>, StageError> {
    let mut stages = Vec::new();
    let documents = yaml::documents(stream).map_err(StageError::Yaml)?;
    for (number, document) in documents.iter().enumerate() {
        let value = yaml::to_json(document).map_err(StageError::Yaml)?;
        if value.is_null() {
            continue;
        }
        let stage = Stage::read(&value).map_err(|problem| StageError::Stage {
            number: number + 1,
            name: fields::name(&value).to_owned(),
            problem,
        });
        stages.push(stage?);
    }
    Ok(stages)
}

impl Stage {
    fn read(value: &Value) -> Result<Self, StageProblem> {
        if text(value, "/kind") != "Stage" {
            return Err(StageProblem::Kind(text(value, "/kind").to_owned()));
        }
        let kind = text(value, "/spec/resourceRef/kind");
        if kind != "Pod" {
            return Err(StageProblem::ResourceKind(kind.to_owned()));
        }
        let mut expressions = Vec::new();
        for (at, expression) in list(value, "/spec/selector/matchExpressions").iter().enumerate() {
            let operator = text(expression, "/operator").to_owned();
            if !["In", "NotIn", "Exists", "DoesNotExist"].contains(&operator.as_str()) {
                return Err(StageProblem::Operator { at, operator });
            }
            let query =
                Query::parse(text(expression, "/key")).map_err(|error| StageProblem::Query { at, error })?;
            let values = list(expression, "/values").iter().map(plain).collect();
            expressions.push(Expression { query, operator, values });
        }
        let labels = fields::map_copy(value, "/spec/selector/matchLabels");
        Ok(Stage {
            name: fields::name(value).to_owned(),
            weight: count(value, "/spec/weight"),
            delay: Duration::from_millis(count(value, "/spec/delay/durationMilliseconds").max(0) as u64),
            labels: Selector::of_map(&labels),
            annotations: fields::map_copy(value, "/spec/selector/matchAnnotations"),
            expressions,
            next: value.pointer("/spec/next").cloned().unwrap_or_default(),
        })
    }

    /// How long the pod has to be in this state first.
    pub(crate) fn delay(&self) -> Duration {
        self.delay
    }

    fn matches(&self, pod: &Value) -> bool {
        self.labels.matches(pod)
            && self.annotations.iter().all(|(key, value)| meta::annotation(pod, key) == value.as_str())
            && self.expressions.iter().all(|expression| expression.holds(pod))
    }
}

/// The stage a pod is due for: of those that match the heaviest, of equals the first.
pub(crate) fn due<'a>(stages: &'a [Stage], pod: &Value) -> Option<&'a Stage> {
    let mut best: Option<&Stage> = None;
    for stage in stages.iter().filter(|stage| stage.matches(pod)) {
        if best.is_none_or(|best| stage.weight > best.weight) {
            best = Some(stage);
        }
    }
    best
}

impl Expression {
    fn holds(&self, object: &Value) -> bool {
        let found: Vec<_> = self.query.find(object).into_iter().filter(|value| !value.is_null()).collect();
        let listed = || found.iter().any(|value| self.values.contains(&plain(value)));
        match self.operator.as_str() {
            "In" => listed(),
            "NotIn" => !listed(),
            "Exists" => !found.is_empty(),
            _ => found.is_empty(),
        }
    }
}

/// A scalar as text.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A path into an object, in the part of jq that stages need: `.a.b`, `["key"]`, `[]`, `| select(.a == "b")
/// |`.
#[derive(Clone, Debug, PartialEq)]
struct Query(Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Each,
    Where(Query, String),
}

impl Query {
    fn parse(source: &str) -> Result<Self, QueryError> {
        let mut steps = Vec::new();
        for part in source.split('|').map(str::trim) {
            match part.strip_prefix("select(").and_then(|rest| rest.strip_suffix(')')) {
                Some(condition) => {
                    let (left, right) = condition
                        .split_once("==")
                        .ok_or_else(|| QueryError::Select { source: source.to_owned() })?;
                    let wanted = right.trim().trim_matches('"').to_owned();
                    steps.push(Step::Where(Query(path(left.trim(), source)?), wanted));
                }
                None => steps.extend(path(part, source)?),
            }
        }
        Ok(Query(steps))
    }

    fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![object];
        for step in &self.0 {
            found = match step {
                Step::Field(field) => found.into_iter().filter_map(|value| value.get(field)).collect(),
                Step::Each => {
                    found.into_iter().filter_map(Value::as_array).flat_map(|list| list.iter()).collect()
                }
                Step::Where(query, wanted) => found
                    .into_iter()
                    .filter(|value| query.find(value).iter().any(|have| &plain(have) == wanted))
                    .collect(),
            };
        }
        found
    }
}

fn path(part: &str, source: &str) -> Result<Vec<Step>, QueryError> {
    let mut steps = Vec::new();
    let mut rest = part;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("[]") {
            steps.push(Step::Each);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("[\"") {
            let (key, after) =
                after.split_once("\"]").ok_or_else(|| QueryError::Bracket { source: source.to_owned() })?;
            steps.push(Step::Field(key.to_owned()));
            rest = after;
        } else if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            if end > 0 {
                steps.push(Step::Field(after[..end].to_owned()));
            }
            rest = &after[end..];
        } else {
            return Err(QueryError::Rest { rest: rest.to_owned(), source: source.to_owned() });
        }
    }
    Ok(steps)
}

/// The status conditions a stage sets.
pub(crate) fn conditions(next: &Value) -> &[Value] {
    list(next, "/status/conditions")
}

/// The changes that a stage makes to a kind of containers.
pub(crate) fn containers<'a>(next: &'a Value, kind: &str) -> Option<&'a Map<String, Value>> {
    map(next, &format!("/status/{kind}"))
}

#[cfg(test)]
mod tests {
    use super::{Query, built_in, due, parse};
    use serde_json::json;

    #[test]
    fn the_built_in_stages_parse() {
        assert!(built_in().len() >= 10);
    }

    #[test]
    fn queries_walk_lists_and_select() {
        let pod = json!({
            "metadata": {"annotations": {"a/b": "c"}},
            "status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "False"}]},
        });
        let find =
            |source: &str| Query::parse(source).unwrap().find(&pod).into_iter().cloned().collect::<Vec<_>>();
        assert_eq!(find(r#".status.conditions[] | select(.type == "B") | .status"#), [json!("False")]);
        assert_eq!(find(r#".status.conditions.[].type"#), [json!("A"), json!("B")]);
        assert_eq!(find(r#".metadata.annotations["a/b"]"#), [json!("c")]);
        assert!(find(".nothing.there").is_empty());
        assert!(Query::parse("nonsense").is_err());
    }

    #[test]
    fn the_heavier_stage_wins() {
        let stages = built_in();
        let mut pod = json!({"spec": {"restartPolicy": "Always"}, "status": {"phase": "Pending"}});
        assert_eq!(due(stages, &pod).unwrap().name, "pod-seen");
        pod["status"]["startTime"] = json!("2026-01-01T00:00:00Z");
        pod["status"]["conditions"] = json!([{"type": "Initialized", "status": "True"}]);
        assert_eq!(due(stages, &pod).unwrap().name, "pod-running");
        pod["metadata"] = json!({"annotations": {"opdev.dev/fail": "pending"}});
        assert_eq!(due(stages, &pod).unwrap().name, "pod-stays-pending");
    }

    #[test]
    fn a_bad_stage_says_what_and_where() {
        let text = "kind: Stage\nmetadata: {name: x}\nspec:\n  resourceRef: {kind: Pod}\n  selector:\n    matchExpressions:\n    - {key: .a, operator: Like}\n";
        let error = parse(text).unwrap_err();
        assert_eq!(
            error.to_string(),
            "stage 1 (x): spec.selector.matchExpressions[0].operator \"Like\" is unknown"
        );
    }
}
