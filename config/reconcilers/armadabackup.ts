// An ArmadaBackup keeps a manifest, its groups, its charts with their values, and what is known of their releases
// in a ConfigMap. It is taken once for each generation: a backup that follows what it backs up is none. It waits until
// the manifest is where it was asked to be: half a deployment is nothing to come back to.
// Release manifests are not kept, for they may hold Secrets; a restore renders them again.
import type { ArmadaBackup, ArmadaChart, ArmadaChartGroup } from "opdev:types";
import { event, get } from "opdev";
import type { Context } from "opdev";
import { reached } from "./armada/state.ts";

export const kind = "armada.airshipit.org/v1alpha1/ArmadaBackup";
export const owns = ["v1/ConfigMap"];

type Member = { apiVersion?: string; kind?: string; metadata: { name: string; labels?: Record<string, string> }; spec: unknown };

/** The object as somebody would apply it. */
function essence(object: Member) {
  const { name, labels } = object.metadata;
  return { apiVersion: object.apiVersion, kind: object.kind, metadata: { name, ...(labels ? { labels } : {}) }, spec: object.spec };
}

function configMap(name: string, data: Record<string, string>) {
  const labels = { "armada.airshipit.org/backup": "true" };
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, labels }, data };
}

export function reconcile(self: ArmadaBackup, ctx: Context) {
  const name = self.spec.config_map ?? self.metadata.name;
  const found = ctx.children["ConfigMap.v1"]?.[name];
  const stored = found && ((found.data ?? {}) as Record<string, string>);
  if (stored && self.status?.phase === "Completed" && self.status.observedGeneration === self.metadata.generation) {
    return { children: [configMap(name, stored)] };
  }
  const missing = (what: string) => ({
    children: stored ? [configMap(name, stored)] : [],
    status: { phase: "Pending", reason: `waiting for ${what}` },
  });
  const manifest = get("armada.airshipit.org/v1alpha1/ArmadaManifest", self.spec.manifest);
  if (!manifest) return missing(`ArmadaManifest ${self.spec.manifest}, which does not exist`);
  const groups: ArmadaChartGroup[] = [];
  const charts: ArmadaChart[] = [];
  for (const each of manifest.spec.chart_groups) {
    const found = get("armada.airshipit.org/v1alpha1/ArmadaChartGroup", each);
    if (!found) return missing(`ArmadaChartGroup ${each}, which does not exist`);
    groups.push(found);
    for (const chart of found.spec.chart_group) {
      const one = get("armada.airshipit.org/v1alpha1/ArmadaChart", chart);
      if (!one) return missing(`ArmadaChart ${chart}, which does not exist`);
      charts.push(one);
    }
  }
  const target = manifest.spec.target_state ?? "uninitialized";
  if (!reached(manifest, target)) {
    const state = manifest.status?.actual_state ?? "not looked at yet";
    return missing(`ArmadaManifest ${self.spec.manifest} to be ${target}; it is ${state}`);
  }
  const releases = charts.map((chart) => ({
    release: chart.spec.release ?? chart.metadata.name,
    state: chart.status?.actual_state ?? "unknown",
    revision: chart.status?.revision ?? 0,
  }));
  event("Normal", "Completed", `${charts.length} charts of ${self.spec.manifest} are kept in ConfigMap ${name}`);
  return {
    children: [
      configMap(name, {
        "manifest.json": JSON.stringify(essence(manifest)),
        "groups.json": JSON.stringify(groups.map(essence)),
        "charts.json": JSON.stringify(charts.map(essence)),
        "releases.json": JSON.stringify(releases),
      }),
    ],
    status: {
      phase: "Completed",
      config_map: name,
      charts: charts.length,
      completed_at: ctx.now,
      observedGeneration: self.metadata.generation,
    },
  };
}
