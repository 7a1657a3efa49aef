//! Checks of the Pod Security Standards on a pod, with the reasons of the real server. Pure.
//! `minor` is the version of the standard: 34 is v1.34.

use serde_json::Value;
use std::collections::BTreeSet;

/// The newest version in which the standards changed.
pub const NEWEST: u32 = 35;

/// A pod, or the template of one.
pub struct Pod<'a> {
    pub meta: &'a Value,
    pub spec: &'a Value,
}

/// A refusal: the reason, and the fields.
pub struct Finding {
    pub reason: String,
    detail: String,
}

impl Finding {
    fn new(reason: &str, detail: String) -> Option<Self> {
        Some(Finding { reason: reason.to_owned(), detail })
    }
}

/// All findings in one text, with their details.
pub fn detailed(findings: &[Finding]) -> String {
    let one = |finding: &Finding| match finding.detail.as_str() {
        "" => finding.reason.clone(),
        detail => format!("{} ({detail})", finding.reason),
    };
    findings.iter().map(one).collect::<Vec<_>>().join(", ")
}

type Check = fn(&Pod<'_>, u32) -> Option<Finding>;

/// The checks of the level `baseline`, in the order in which their findings are reported.
const BASELINE: [Check; 12] = [
    app_armor,
    added_capabilities,
    host_namespaces,
    host_paths,
    host_ports,
    host_probes,
    privileged,
    proc_mount_baseline,
    se_linux,
    seccomp_baseline,
    sysctls,
    windows_host_process,
];

/// The checks of `baseline` that stay where the level is `restricted`, each with the version from which on a
/// stricter one of that level stands in for it.
const REPLACED: [(usize, u32); 4] = [(1, 22), (3, 0), (7, 35), (9, 19)];

/// The checks that only `restricted` has.
const RESTRICTED: [Check; 7] = [
    privilege_escalation,
    dropped_capabilities,
    proc_mount_restricted,
    volume_types,
    run_as_non_root,
    run_as_user,
    seccomp_restricted,
];

/// The violations of the level `baseline`, or `restricted`.
pub fn check(pod: &Pod<'_>, restricted: bool, minor: u32) -> Vec<Finding> {
    let minor = minor.min(NEWEST);
    let replaced =
        |at: usize| restricted && REPLACED.iter().any(|(place, from)| *place == at && minor >= *from);
    let base = BASELINE.iter().enumerate().filter(|(at, _)| !replaced(*at)).map(|(_, check)| check);
    let more = RESTRICTED.iter().filter(|_| restricted);
    base.chain(more).filter_map(|check| check(pod, minor)).collect()
}

impl<'a> Pod<'a> {
    /// Containers of all sorts, in the order in which the real server visits them.
    fn containers(&self) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
        let spec = self.spec;
        ["initContainers", "containers", "ephemeralContainers"]
            .into_iter()
            .flat_map(move |list| items(&spec[list]))
            .map(|container| (container["name"].as_str().unwrap_or_default(), container))
    }

    /// The names of containers whose security context is one of those.
    fn contexts(&self, bad: impl Fn(&Value) -> bool) -> Vec<&'a str> {
        let containers = self.containers().filter(|(_, container)| bad(&container["securityContext"]));
        containers.map(|(name, _)| name).collect()
    }

    fn is_windows(&self) -> bool {
        self.spec["os"]["name"] == "windows"
    }

    /// The pod has users of its own: its root is nobody on the node.
    fn own_users(&self) -> bool {
        self.spec["hostUsers"] == false
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn quoted<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("\"{}\"", name.as_ref())).collect();
    names.join(", ")
}

/// A word for one, another for several.
fn plural<'a>(one: &'a str, more: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { more }
}

/// `container "a"`, `containers "a", "b"`.
fn named(containers: &[&str]) -> String {
    format!("{} {}", plural("container", "containers", containers.len()), quoted(containers))
}

/// The pod itself, its containers, or both.
fn setters(pod: bool, containers: &[&str]) -> Vec<String> {
    let pod = pod.then(|| "pod".to_owned());
    pod.into_iter().chain((!containers.is_empty()).then(|| named(containers))).collect()
}

fn privilege_escalation(pod: &Pod<'_>, minor: u32) -> Option<Finding> {
    if minor < 8 || (minor >= 25 && pod.is_windows()) {
        return None;
    }
    let bad = pod.contexts(|context| context["allowPrivilegeEscalation"] != false);
    if bad.is_empty() {
        return None;
    }
    let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", named(&bad));
    Finding::new("allowPrivilegeEscalation != false", detail)
}

fn app_armor(pod: &Pod<'_>, _: u32) -> Option<Finding> {
    const KEY: &str = "container.apparmor.security.beta.kubernetes.io/";
    let bad = |context: &Value| {
        let profile = &context["appArmorProfile"];
        profile.is_object() && !["RuntimeDefault", "Localhost"].contains(&text(&profile["type"]))
    };
    let own = &pod.spec["securityContext"];
    let containers = pod.contexts(bad);
    let mut from = setters(bad(own), &containers);
    let contexts = pod.containers().map(|(_, container)| &container["securityContext"]);
    let bad_types: BTreeSet<&str> = contexts
        .chain([own])
        .filter(|context| bad(context))
        .map(|context| text(&context["appArmorProfile"]["type"]))
        .collect();
    let fine =
        |value: &str| value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
    let annotations = pod.meta["annotations"].as_object();
    let annotations: BTreeSet<String> = annotations
        .into_iter()
        .flatten()
        .filter(|(key, value)| key.starts_with(KEY) && !fine(text(value)))
        .map(|(key, value)| format!("{key}={:?}", text(value)))
        .collect();
    if !annotations.is_empty() {
        from.push(plural("annotation", "annotations", annotations.len()).to_owned());
    }
    if from.is_empty() {
        return None;
    }
    let values: Vec<String> = bad_types.into_iter().map(str::to_owned).chain(annotations).collect();
    let reason = plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values.len());
    Finding::new(
        reason,
        format!("{} must not set AppArmor profile type to {}", from.join(" and "), quoted(values)),
    )
}

fn added_capabilities(pod: &Pod<'_>, _: u32) -> Option<Finding> {
    const ALLOWED: [&str; 13] = [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ];
    let (containers, added) = adding(pod, &ALLOWED);
    if containers.is_empty() {
        return None;
    }
    let detail = format!(
        "{} must not include {} in securityContext.capabilities.add",
        named(&containers),
        quoted(added)
    );
    Finding::new("non-default capabilities", detail)
}

/// Containers that add capabilities other than these, and which.
fn adding<'a>(pod: &Pod<'a>, allowed: &[&str]) -> (Vec<&'a str>, BTreeSet<&'a str>) {
    let (mut containers, mut all) = (Vec::new(), BTreeSet::new());
    for (name, container) in pod.containers() {
        let added = items(&container["securityContext"]["capabilities"]["add"]).iter().map(text);
        let added: Vec<&str> = added.filter(|capability| !allowed.contains(capability)).collect();
        if !added.is_empty() {
            containers.push(name);
            all.extend(added);
        }
    }
    (containers, all)
}

fn dropped_capabilities(pod: &Pod<'_>, minor: u32) -> Option<Finding> {
    if minor < 22 || (minor >= 25 && pod.is_windows()) {
        return None;
    }
    let keeps =
        pod.contexts(|context| !items(&context["capabilities"]["drop"]).iter().any(|one| one == "ALL"));
    let (adds, added) = adding(pod, &["NET_BIND_SERVICE"]);
    let mut details = Vec::new();
    if !keeps.is_empty() {
        details.push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", named(&keeps)));
    }
    if !adds.is_empty() {
        let added = quoted(added);
        details
            .push(format!("{} must not include {added} in securityContext.capabilities.add", named(&adds)));
    }
    if details.is_empty() { None } else { Finding::new("unrestricted capabilities", details.join("; ")) }
}

fn host_namespaces(pod: &Pod<'_>, _: u32) -> Option<Finding> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|field| pod.spec[*field] == true);
    let shared: Vec<String> = shared.map(|field| format!("{field}=true")).collect();
    if shared.is_empty() { None } else { Finding::new("host namespaces", shared.join(", ")) }
}

fn host_paths(pod: &Pod<'_>, _: u32) -> Option<Finding> {
    let volumes = items(&pod.spec["volumes"]).iter().filter(|volume| !volume["hostPath"].is_null());
    let volumes: Vec<&str> = volumes.map(|volume| text(&volume["name"])).collect();
    if volumes.is_empty() {
        return None;
    }
    let detail = format!("{} {}", plural("volume", "volumes", volumes.len()), quoted(volumes));
    Finding::new("hostPath volumes", detail)
}

fn host_ports(pod: &Pod<'_>, _: u32) -> Option<Finding> {
    let (mut containers, mut all) = (Vec::new(), BTreeSet::new());
    for (name, container) in pod.containers() {
        let ports = items(&container["ports"]).iter().filter_map(|port| port["hostPort"].as_i64());
        let ports: Vec<String> = ports.filter(|port| *port != 0).map(|port| port.to_string()).collect();
        if !ports.is_empty() {
            containers.push(name);
            all.extend(ports);
        }
    }
    if containers.is_empty() {
        return None;
    }
    let (uses, ports) = (plural("uses", "use", containers.len()), plural("hostPort", "hostPorts", all.len()));
    let all = all.into_iter().collect::<Vec<_>>().join(", ");
    Finding::new("hostPort", format!("{} {uses} {ports} {all}", named(&containers)))
}

fn host_probes(pod: &Pod<'_>, minor: u32) -> Option<Finding> {
    const PLACES: [&str; 5] =
        ["/livenessProbe", "/readinessProbe", "/startupProbe", "/lifecycle/postStart", "/lifecycle/preStop"];
    if minor < 34 {
        return None;
    }
    let (mut containers, mut hosts) = (BTreeSet::new(), BTreeSet::new());
    for (name, container) in pod.containers() {
        let handlers = PLACES.iter().filter_map(|place| container.pointer(place));
        for handler in handlers {
            let found = ["httpGet", "tcpSocket"].into_iter().map(|kind| text(&handler[kind]["host"]));
            for host in found.filter(|host| !host.is_empty()) {
                containers.insert(name);
                hosts.insert(host);
            }
        }
    }
    if containers.is_empty() {
        return None;
    }
    let containers: Vec<&str> = containers.into_iter().collect();
    let uses = plural("uses", "use", containers.len());
    let what = plural("probe or lifecycle host", "probe or lifecycle hosts", hosts.len());
    Finding::new("probe or lifecycle host", format!("{} {uses} {what} {}", named(&containers), quoted(hosts)))
}

fn privileged(pod: &Pod<'_>, _: u32) -> Option<Finding> {
    let bad = pod.contexts(|context| context["privileged"] == true);
    if bad.is_empty() {
        return None;
    }
    Finding::new("privileged", format!("{} must not set securityContext.privileged=true", named(&bad)))
}

fn proc_mount_baseline(pod: &Pod<'_>, minor: u32) -> Option<Finding> {
    if minor >= 35 && pod.own_users() { None } else { proc_mount(pod) }
}

fn proc_mount_restricted(pod: &Pod<'_>, minor: u32) -> Option<Finding> {
    if minor < 35 { None } else { proc_mount(pod) }
}

fn proc_mount(pod: &Pod<'_>) -> Option<Finding> {
    let bad = |context: &Value| !matches!(context["procMount"].as_str(), None | Some("Default"));
    let containers = pod.contexts(bad);
    if containers.is_empty() {
        return None;
    }
    let contexts = pod.containers().map(|(_, container)| &container["securityContext"]);
    let types: BTreeSet<&str> =
        contexts.filter(|context| bad(context)).map(|context| text(&context["procMount"])).collect();
    let detail =
        format!("{} must not set securityContext.procMount to {}", named(&containers), quoted(types));
    Finding::new("procMount", detail)
}

fn volume_types(pod: &Pod<'_>, _: u32) -> Option<Finding> {
    const ALLOWED: [&str; 9] = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    let volumes = items(&pod.spec["volumes"]);
    let bad = volumes.iter().filter(|volume| ALLOWED.iter().all(|kind| volume[*kind].is_null()));
    let (mut names, mut types) = (Vec::new(), BTreeSet::new());
    for volume in bad {
        names.push(text(&volume["name"]));
        let source = volume
            .as_object()
            .into_iter()
            .flatten()
            .find(|(key, source)| *key != "name" && !source.is_null());
        types.insert(source.map_or("unknown", |(kind, _)| kind.as_str()));
    }
    if names.is_empty() {
        return None;
    }
    let (volume, uses) = (plural("volume", "volumes", names.len()), plural("uses", "use", names.len()));
    let what = plural("restricted volume type", "restricted volume types", types.len());
    Finding::new(
        "restricted volume types",
        format!("{volume} {} {uses} {what} {}", quoted(names), quoted(types)),
    )
}

fn run_as_non_root(pod: &Pod<'_>, minor: u32) -> Option<Finding> {
    const REASON: &str = "runAsNonRoot != true";
    if minor >= 35 && pod.own_users() {
        return None;
    }
    let own = &pod.spec["securityContext"]["runAsNonRoot"];
    let bad = pod.contexts(|context| context["runAsNonRoot"] == false);
    let from = setters(*own == false, &bad);
    if !from.is_empty() {
        let from = from.join(" and ");
        return Finding::new(REASON, format!("{from} must not set securityContext.runAsNonRoot=false"));
    }
    let silent = pod.contexts(|context| context["runAsNonRoot"].is_null() && *own != true);
    if silent.is_empty() {
        return None;
    }
    Finding::new(REASON, format!("pod or {} must set securityContext.runAsNonRoot=true", named(&silent)))
}

fn run_as_user(pod: &Pod<'_>, minor: u32) -> Option<Finding> {
    if minor < 23 || (minor >= 35 && pod.own_users()) {
        return None;
    }
    let root = |context: &Value| context["runAsUser"] == 0;
    let from = setters(root(&pod.spec["securityContext"]), &pod.contexts(root));
    if from.is_empty() {
        return None;
    }
    Finding::new("runAsUser=0", format!("{} must not set runAsUser=0", from.join(" and ")))
}

fn se_linux(pod: &Pod<'_>, minor: u32) -> Option<Finding> {
    let allowed: &[&str] = match minor {
        0..31 => &["", "container_t", "container_init_t", "container_kvm_t"],
        _ => &["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"],
    };
    let options = |context: &Value| {
        let options = &context["seLinuxOptions"];
        (
            text(&options["type"]).to_owned(),
            !text(&options["user"]).is_empty(),
            !text(&options["role"]).is_empty(),
        )
    };
    let bad = |context: &Value| {
        let (kind, user, role) = options(context);
        !allowed.contains(&kind.as_str()) || user || role
    };
    let own = &pod.spec["securityContext"];
    let from = setters(bad(own), &pod.contexts(bad));
    if from.is_empty() {
        return None;
    }
    let contexts = pod.containers().map(|(_, container)| &container["securityContext"]).chain([own]);
    let (mut types, mut user, mut role) = (BTreeSet::new(), false, false);
    for (kind, sets_user, sets_role) in contexts.map(options) {
        if !allowed.contains(&kind.as_str()) {
            types.insert(kind);
        }
        user |= sets_user;
        role |= sets_role;
    }
    let mut data = Vec::new();
    if !types.is_empty() {
        data.push(format!("{} {}", plural("type", "types", types.len()), quoted(types)));
    }
    data.extend(user.then(|| "user may not be set".to_owned()));
    data.extend(role.then(|| "role may not be set".to_owned()));
    let detail =
        format!("{} set forbidden securityContext.seLinuxOptions: {}", from.join(" and "), data.join("; "));
    Finding::new("seLinuxOptions", detail)
}

/// The places that set a seccomp profile without confinement, in upstream's words.
fn unconfined(pod: &Pod<'_>) -> Option<Finding> {
    let own = &pod.spec["securityContext"];
    let from = setters(bad_seccomp(own), &pod.contexts(bad_seccomp));
    if from.is_empty() {
        return None;
    }
    let contexts = pod.containers().map(|(_, container)| &container["securityContext"]).chain([own]);
    let bad = contexts.filter(|context| bad_seccomp(context));
    let types: BTreeSet<&str> = bad.map(|context| text(&context["seccompProfile"]["type"])).collect();
    let from = from.join(" and ");
    Finding::new(
        "seccompProfile",
        format!("{from} must not set securityContext.seccompProfile.type to {}", quoted(types)),
    )
}

fn bad_seccomp(context: &Value) -> bool {
    let profile = &context["seccompProfile"];
    profile.is_object() && !["Localhost", "RuntimeDefault"].contains(&text(&profile["type"]))
}

fn seccomp_baseline(pod: &Pod<'_>, minor: u32) -> Option<Finding> {
    const POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
    const CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
    if minor >= 19 {
        return unconfined(pod);
    }
    let fine = |value: &str| {
        value == "runtime/default" || value == "docker/default" || value.starts_with("localhost/")
    };
    let keys = pod.containers().map(|(name, _)| format!("{CONTAINER}{name}")).chain([POD.to_owned()]);
    let forbidden: BTreeSet<String> = keys
        .filter_map(|key| {
            let value = pod.meta["annotations"].get(&key)?.as_str()?;
            (!fine(value)).then(|| format!("{key}={value:?}"))
        })
        .collect();
    if forbidden.is_empty() {
        return None;
    }
    let what = plural("annotation", "annotations", forbidden.len());
    let all = forbidden.into_iter().collect::<Vec<_>>().join(", ");
    Finding::new("seccompProfile", format!("forbidden {what} {all}"))
}

fn seccomp_restricted(pod: &Pod<'_>, minor: u32) -> Option<Finding> {
    if minor < 19 || (minor >= 25 && pod.is_windows()) {
        return None;
    }
    if let Some(finding) = unconfined(pod) {
        return Some(finding);
    }
    if pod.spec["securityContext"]["seccompProfile"].is_object() {
        return None;
    }
    let silent = pod.contexts(|context| !context["seccompProfile"].is_object());
    if silent.is_empty() {
        return None;
    }
    let detail = format!(
        "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
        named(&silent)
    );
    Finding::new("seccompProfile", detail)
}

fn sysctls(pod: &Pod<'_>, minor: u32) -> Option<Finding> {
    /// Each with the version from which on it is allowed.
    const ALLOWED: [(&str, u32); 12] = [
        ("kernel.shm_rmid_forced", 0),
        ("net.ipv4.ip_local_port_range", 0),
        ("net.ipv4.tcp_syncookies", 0),
        ("net.ipv4.ping_group_range", 0),
        ("net.ipv4.ip_unprivileged_port_start", 0),
        ("net.ipv4.ip_local_reserved_ports", 27),
        ("net.ipv4.tcp_keepalive_time", 29),
        ("net.ipv4.tcp_fin_timeout", 29),
        ("net.ipv4.tcp_keepalive_intvl", 29),
        ("net.ipv4.tcp_keepalive_probes", 29),
        ("net.ipv4.tcp_rmem", 32),
        ("net.ipv4.tcp_wmem", 32),
    ];
    let named = items(&pod.spec["securityContext"]["sysctls"]).iter().map(|sysctl| text(&sysctl["name"]));
    let allowed = |name: &str| ALLOWED.iter().any(|(known, from)| *known == name && minor >= *from);
    let forbidden: Vec<&str> = named.filter(|name| !allowed(name)).collect();
    if forbidden.is_empty() { None } else { Finding::new("forbidden sysctls", forbidden.join(", ")) }
}

fn windows_host_process(pod: &Pod<'_>, _: u32) -> Option<Finding> {
    let bad = |context: &Value| context["windowsOptions"]["hostProcess"] == true;
    let from = setters(bad(&pod.spec["securityContext"]), &pod.contexts(bad));
    if from.is_empty() {
        return None;
    }
    let detail =
        format!("{} must not set securityContext.windowsOptions.hostProcess=true", from.join(" and "));
    Finding::new("hostProcess", detail)
}
