//! Pods against the standards, with the texts of the real server (pod-security-admission 0.36).

use super::{Level, Policy, Standard, version};
use opdev_apis::pod_security::{Pod, check, detailed};
use serde_json::{Value, json};

fn said(spec: &Value, restricted: bool, minor: u32) -> String {
    let meta = json!({"annotations": {"container.apparmor.security.beta.kubernetes.io/a": "unconfined"}});
    let meta = if spec["annotated"] == true { meta } else { json!({}) };
    detailed(&check(&Pod { meta: &meta, spec }, restricted, minor))
}

fn with(context: &Value) -> Value {
    json!({"containers": [{"name": "a", "securityContext": context}]})
}

#[test]
fn a_plain_pod_is_no_restricted_one() {
    let plain = json!({"containers": [{"name": "a"}, {"name": "b"}]});
    assert_eq!(said(&plain, false, 35), "");
    assert_eq!(
        said(&plain, true, 35),
        "allowPrivilegeEscalation != false (containers \"a\", \"b\" must set securityContext.allowPrivilegeEscalation=false), \
         unrestricted capabilities (containers \"a\", \"b\" must set securityContext.capabilities.drop=[\"ALL\"]), \
         runAsNonRoot != true (pod or containers \"a\", \"b\" must set securityContext.runAsNonRoot=true), \
         seccompProfile (pod or containers \"a\", \"b\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" \
         or \"Localhost\")"
    );
    let mut windows = plain;
    windows["os"] = json!({"name": "windows"});
    assert_eq!(
        said(&windows, true, 35),
        "runAsNonRoot != true (pod or containers \"a\", \"b\" must set securityContext.runAsNonRoot=true)"
    );
    let safe = json!({"securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "a", "securityContext": {"allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}}]});
    assert_eq!(said(&safe, true, 35), "");
}

#[test]
fn each_check_has_its_words() {
    let pod = |more: Value| {
        let mut spec = json!({"containers": [{"name": "a"}]});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    for (spec, expected) in [
        (
            pod(json!({"hostNetwork": true, "hostIPC": true})),
            "host namespaces (hostNetwork=true, hostIPC=true)",
        ),
        (
            pod(json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]})),
            "hostPath volumes (volume \"v\")",
        ),
        (
            json!({"containers": [{"name": "a", "ports": [{"hostPort": 80}, {"hostPort": 443}, {"containerPort": 1}]}]}),
            "hostPort (container \"a\" uses hostPorts 443, 80)",
        ),
        (
            json!({"initContainers": [{"name": "i", "livenessProbe": {"httpGet": {"host": "1.2.3.4"}}}]}),
            "probe or lifecycle host (container \"i\" uses probe or lifecycle host \"1.2.3.4\")",
        ),
        (
            with(&json!({"privileged": true})),
            "privileged (container \"a\" must not set securityContext.privileged=true)",
        ),
        (
            with(&json!({"capabilities": {"add": ["SYS_ADMIN", "CHOWN", "NET_RAW"]}})),
            "non-default capabilities (container \"a\" must not include \"NET_RAW\", \"SYS_ADMIN\" in \
             securityContext.capabilities.add)",
        ),
        (
            with(&json!({"procMount": "Unmasked"})),
            "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")",
        ),
        (
            with(&json!({"seLinuxOptions": {"type": "spc_t", "user": "u"}})),
            "seLinuxOptions (container \"a\" set forbidden securityContext.seLinuxOptions: type \"spc_t\"; user may not be \
             set)",
        ),
        (
            pod(json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}})),
            "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")",
        ),
        (
            pod(
                json!({"securityContext": {"sysctls": [{"name": "kernel.msgmax"}, {"name": "net.ipv4.tcp_rmem"}]}}),
            ),
            "forbidden sysctls (kernel.msgmax)",
        ),
        (
            pod(json!({"securityContext": {"windowsOptions": {"hostProcess": true}}})),
            "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
        ),
        (
            pod(json!({"annotated": true, "securityContext": {"appArmorProfile": {"type": "Unconfined"}}})),
            "forbidden AppArmor profiles (pod and annotation must not set AppArmor profile type to \"Unconfined\", \
             \"container.apparmor.security.beta.kubernetes.io/a=\"unconfined\"\")",
        ),
    ] {
        assert_eq!(said(&spec, false, 35), expected);
    }
}

#[test]
fn versions_of_the_standards_differ() {
    let sysctl = json!({"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}});
    assert_eq!(said(&sysctl, false, 31), "forbidden sysctls (net.ipv4.tcp_rmem)");
    assert_eq!(said(&sysctl, false, 32), "");
    let mut unmasked =
        with(&json!({"procMount": "Unmasked", "allowPrivilegeEscalation": false, "runAsUser": 0,
        "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}));
    unmasked["hostUsers"] = json!(false);
    assert_eq!(said(&unmasked, false, 35), "");
    let text = "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")";
    assert_eq!(said(&unmasked, false, 34), text);
    assert_eq!(said(&unmasked, true, 35), text);
    let volume = json!({"volumes": [{"name": "n", "nfs": {"server": "x"}}, {"name": "h", "hostPath": {}}]});
    assert_eq!(
        said(&volume, true, 0),
        "restricted volume types (volumes \"n\", \"h\" use restricted volume types \"hostPath\", \"nfs\")"
    );
}

#[test]
fn labels_say_how_strict_a_namespace_is() {
    let of = |labels: Value| Policy::from_labels(&json!({"metadata": {"labels": labels}}));
    let standard = |level, minor| Standard { level, minor };
    let one = of(json!({"pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/enforce-version": "v1.20"}));
    assert_eq!(one.enforce, standard(Level::Baseline, Some(20)));
    assert_eq!((one.warn, one.wrong.len()), (one.enforce, 0), "who is enforced is warned of templates");
    assert_eq!(one.enforce.to_string(), "baseline:v1.20");
    let two =
        of(json!({"pod-security.kubernetes.io/enforce": "strict", "pod-security.kubernetes.io/warn": "no",
        "pod-security.kubernetes.io/audit-version": "1.20"}));
    assert_eq!(
        two.enforce,
        standard(Level::Restricted, None),
        "what cannot be read is enforced at its strictest"
    );
    assert_eq!(two.warn, standard(Level::Privileged, None));
    let said: Vec<String> = two.wrong.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"strict\": must be one of privileged, \
             baseline, restricted",
            "metadata.labels[pod-security.kubernetes.io/audit-version]: Invalid value: \"1.20\": must be \"latest\" or \
             \"v1.x\"",
            "metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: \"no\": must be one of privileged, baseline, \
             restricted",
        ]
    );
    assert_eq!((version("v1.0"), version("v1.07"), version("v2.1")), (Some(Some(0)), None, None));
}
