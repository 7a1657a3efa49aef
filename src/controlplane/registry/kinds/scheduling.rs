//! Where and how pods run: priorities, runtimes, devices; and Leases, by which parts of a cluster find their leader.

use crate::error::Cause;
use crate::registry::defaults::put;
use crate::registry::part::Part;
use crate::registry::strategy::Strategy;
use crate::registry::validate::scaling;
use crate::resource::ResourceRules;
use crate::table::{Printer, cluster};

pub(super) static ALL: &[Strategy] = &[
    Strategy {
        id: "scheduling.k8s.io/priorityclasses",
        rules: ResourceRules { generation: true, ..ResourceRules::COMMON },
        printer: Some(Printer::new(cluster::PRIORITY_CLASS, cluster::priority_class)),
        set_defaults: |_, object| put(object, "preemptionPolicy", "PreemptLowerPriority"),
        unchanging: &["preemptionPolicy"],
        validate_change: |object, current, causes| {
            if object["value"] != current["value"] {
                causes.push(Cause::forbidden("value", "may not be changed in an update."));
            }
        },
        admit: |registry, _, (resource, part), object, old| match part {
            Part::Main => registry.check_default_priority(resource, object, old.is_some()),
            _ => Ok(()),
        },
        ..Strategy::COMMON
    },
    Strategy {
        id: "node.k8s.io/runtimeclasses",
        rules: ResourceRules { unconditional_update: false, any_finalizer: true, ..ResourceRules::COMMON },
        printer: Some(Printer::new(cluster::RUNTIME_CLASS, cluster::runtime_class)),
        unchanging: &["handler"],
        ..Strategy::COMMON
    },
    Strategy {
        id: "coordination.k8s.io/leases",
        rules: ResourceRules {
            unconditional_update: false,
            create_on_update: true,
            any_finalizer: true,
            ..ResourceRules::COMMON
        },
        printer: Some(Printer::new(cluster::LEASE, cluster::lease)),
        validate: |_, object, _, causes| scaling::lease(&object["spec"], causes),
        ..Strategy::COMMON
    },
    Strategy {
        id: "resource.k8s.io/resourceslices",
        rules: ResourceRules { generation: true, ..ResourceRules::COMMON },
        unchanging: &["spec.driver", "spec.nodeName", "spec.pool.name"],
        ..Strategy::COMMON
    },
    Strategy { id: "resource.k8s.io/resourceclaims", unchanging: &["spec"], ..Strategy::COMMON },
    Strategy { id: "resource.k8s.io/resourceclaimtemplates", unchanging: &["spec"], ..Strategy::COMMON },
    Strategy {
        id: "resource.k8s.io/deviceclasses",
        rules: ResourceRules { generation: true, ..ResourceRules::COMMON },
        ..Strategy::COMMON
    },
];
