//! An API that a chart reconciles: the chart's files, its entry in `watches.yaml`, an open CRD, a sample with
//! the chart's values, and the rules that the chart needs.

use super::api::{CRDS, NewApi, RULES, SAMPLES, WATCHES, insert};
use super::draft::Draft;
use super::options::{ChartSource, CrdSchema, OPERATOR_SDK, fill};
use super::{names, roles, values_schema};
use anyhow::Result;
use opdev_helm::chart::{Chart, Dependency, FileSet};
use opdev_helm::dependencies;
use opdev_object::yaml;
use opdev_sources::created::CreatedKinds;
use opdev_types::{crd, emit};
use serde_json::{Value, json};

/// The files of a new small chart. Its `Chart.yaml` ends in `.in` here: with its placeholders it is no YAML,
/// and opdev takes every folder with a `Chart.yaml` for a chart of the project that it runs in, which may be
/// this repository.
const STARTER: [(&str, &str); 6] = [
    ("Chart.yaml", include_str!("files/chart/starter/Chart.yaml.in")),
    ("values.yaml", include_str!("files/chart/starter/values.yaml")),
    (".helmignore", include_str!("files/chart/starter/helmignore")),
    ("templates/_helpers.tpl", include_str!("files/chart/starter/templates/_helpers.tpl")),
    ("templates/deployment.yaml", include_str!("files/chart/starter/templates/deployment.yaml")),
    ("templates/service.yaml", include_str!("files/chart/starter/templates/service.yaml")),
];

pub(super) fn add(
    api: &NewApi,
    source: Option<&ChartSource>,
    schema: CrdSchema,
    draft: &mut Draft<'_>,
) -> Result<()> {
    let starter;
    let source = match source {
        Some(source) => source,
        None => {
            starter = new_chart(api)?;
            &starter
        }
    };
    let chart = &source.chart;
    names::check_chart(chart.name())?;
    let folder = format!("helm-charts/{}", chart.name());
    for (link, target) in &source.links_out {
        draft.warn(format!(
            "{link} is a link out of the chart, to {target}: {folder} gets a copy of what is there. Look at what it is"
        ));
    }
    for (path, content) in source.files.iter() {
        draft.create(format!("{folder}/{path}"), content.to_vec());
    }
    let missing = dependencies::missing(chart);
    if !missing.is_empty() {
        let near = |dependency: &&Dependency| {
            dependency.repository.starts_with("file://") && missing.contains(&dependency.name)
        };
        let cure = match chart.metadata.dependencies.iter().find(near) {
            // The path begins at the chart that was copied, not at the copy.
            Some(dependency) => format!(
                "{} is at {}, beside the chart that was copied: run `opdev dependency build` there, then begin again",
                dependency.name, dependency.repository
            ),
            None => format!("`opdev dependency build {folder}` downloads them"),
        };
        draft.warn(format!("{folder}/charts lacks the dependencies {}; {cure}", missing.join(", ")));
    }
    ensure_chart_files(api, draft);
    let entry = format!(
        "- group: {}\n  version: {}\n  kind: {}\n  chart: {folder}\n",
        api.gvk.group, api.gvk.version, api.gvk.kind
    );
    insert(WATCHES, &entry, draft);
    add_crd(api, chart, schema, draft)?;
    add_sample(api, chart, &folder, draft);
    add_rules(api, source, draft);
    Ok(())
}

/// A chart with a Deployment and a Service, named after the kind.
fn new_chart(api: &NewApi) -> Result<ChartSource> {
    let name = api.lower();
    let mut files = FileSet::new();
    for (path, text) in STARTER {
        let text = fill(text, &[("CHART", &name), ("KIND", &api.gvk.kind)]);
        files.insert(path, text.into_bytes());
    }
    ChartSource::load(&name, files, Vec::new())
}

/// Creates the files that a project of types lacks before it gets its first chart.
fn ensure_chart_files(api: &NewApi, draft: &mut Draft<'_>) {
    draft.create_missing("watches.yaml", include_str!("files/chart/watches.yaml"));
    let values = [
        ("PROJECT", api.project.project_name.as_str()),
        ("DOMAIN", api.project.domain.as_str()),
        ("SDK", OPERATOR_SDK),
    ];
    if api.is_typed() {
        draft.create_missing("Dockerfile", include_str!("files/typed/Dockerfile"));
    }
    draft.create_missing("Dockerfile", fill(include_str!("files/chart/Dockerfile"), &values));
}

fn add_crd(api: &NewApi, chart: &Chart, schema: CrdSchema, draft: &mut Draft<'_>) -> Result<()> {
    let mut object = crd::scaffold(&api.gvk);
    object["spec"]["scope"] = json!(if api.namespaced { "Namespaced" } else { "Cluster" });
    object["spec"]["names"]["plural"] = json!(api.plural);
    object["metadata"]["name"] = json!(format!("{}.{}", api.plural, api.gvk.group));
    let root = &mut object["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    root["description"] = json!(format!("{} is the schema of the {} API.", api.gvk.kind, api.plural));
    root["properties"]["spec"]["description"] = json!(format!("The values of the chart {}.", chart.name()));
    root["properties"]["status"]["description"] =
        json!(format!("The release that the chart {} has made, and its conditions.", chart.name()));
    if schema == CrdSchema::Values {
        let made = values_schema::spec(chart)?;
        for loss in made.losses {
            draft.warn(format!("the schema of {}: {loss}", api.gvk.kind));
        }
        root["properties"]["spec"] = made.schema;
    }
    let artifact = emit::crd(&object, "")?;
    let entry = format!("- bases/{}\n", artifact.name);
    draft.create(format!("config/crd/bases/{}", artifact.name), artifact.text);
    insert(CRDS, &entry, draft);
    Ok(())
}

/// A longer name of a sample leaves a chart no room in labels of 63 characters.
const LONGEST_SAMPLE: usize = 40;

fn add_sample(api: &NewApi, chart: &Chart, folder: &str, draft: &mut Draft<'_>) {
    // Charts put the release's name into names and labels, and often their own name and a word behind it.
    let own = format!("{}-sample", api.lower());
    let name = if own.len() <= LONGEST_SAMPLE { own.as_str() } else { "sample" };
    let mut text = format!(
        "apiVersion: {}/{}\nkind: {}\nmetadata:\n  name: {name}\n",
        api.gvk.group, api.gvk.version, api.gvk.kind
    );
    match chart.values.as_object().filter(|values| !values.is_empty()) {
        None => text.push_str("spec: {}\n"),
        Some(values) => {
            text.push_str("spec:\n");
            text.push_str(&format!("  # The default values of {folder}/values.yaml.\n"));
            for line in yaml::to_string(&Value::Object(values.clone())).lines() {
                text.push_str(if line.is_empty() { "" } else { "  " });
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    let name = format!("{}_{}_{}.yaml", api.group, api.gvk.version, api.lower());
    draft.create(format!("config/samples/{name}"), text);
    insert(SAMPLES, &format!("- {name}\n"), draft);
}

fn add_rules(api: &NewApi, source: &ChartSource, draft: &mut Draft<'_>) {
    let created = CreatedKinds::of_chart(&source.chart, &source.limit);
    if let Some(failure) = &created.failure {
        draft.warn(format!(
            "the chart {} does not render with its default values, so config/rbac/role.yaml may lack rules: {}",
            source.reference, failure.message
        ));
    }
    if created.untried > 0 {
        draft.warn(format!(
            "{} boolean values were not flipped to find out what else the chart creates; look config/rbac/role.yaml over",
            created.untried
        ));
    }
    let (fragment, unknown) = roles::of_chart(&api.gvk, &api.plural, &created);
    if !unknown.is_empty() {
        draft.warn(format!(
            "the chart creates kinds that are not built into Kubernetes: {}. config/rbac/role.yaml has a comment where \
             their rules belong",
            unknown.join(", ")
        ));
    }
    // Helm itself needs these rules; the Operator SDK's file has them under the same heading.
    if draft.read("config/rbac/role.yaml").is_some_and(|text| !text.contains("## Base operator rules")) {
        insert(RULES, include_str!("files/chart/base_rules.yaml"), draft);
    }
    insert(RULES, &fragment, draft);
}
