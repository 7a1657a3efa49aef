// An ArmadaRestore applies what an ArmadaBackup kept: charts, groups and the manifest, with the values of then.
// It happens once for each generation; what it brought back belongs to the manifest, not to the restore.
import type { ArmadaRestore } from "opdev:types";
import { event, get, patch } from "opdev";
import { reached } from "./armada/state.ts";

export const kind = "armada.airshipit.org/v1alpha1/ArmadaRestore";

type Kept = { apiVersion: string; kind: string; metadata: { name: string; labels?: Record<string, string> }; spec: Record<string, unknown> };

export function reconcile(self: ArmadaRestore) {
  if (self.status?.phase === "Completed" && self.status.observedGeneration === self.metadata.generation) return {};
  const backup = get("v1/ConfigMap", self.spec.config_map);
  const text = (key: string) => (backup?.data as Record<string, string> | undefined)?.[key];
  const [manifests, groups, charts] = [text("manifest.json"), text("groups.json"), text("charts.json")];
  if (!backup || !manifests || !groups || !charts) {
    const what = backup ? "holds no backup" : "does not exist";
    return { status: { phase: "Pending", reason: `ConfigMap ${self.spec.config_map} ${what}` } };
  }
  const manifest: Kept = JSON.parse(manifests);
  const target = String(manifest.spec.target_state ?? "uninitialized");
  const members: Kept[] = JSON.parse(charts);
  // A manifest that is to be somewhere leads its groups and charts there: two writers of one target never end.
  const led = (object: Kept): Kept => {
    if (target === "uninitialized") return object;
    const { target_state: _, ...spec } = object.spec;
    return { ...object, spec };
  };
  // Charts first: the manifest enables what is there.
  const patches = [...members.map(led), ...(JSON.parse(groups) as Kept[]).map(led), manifest].map((object) =>
    patch(object, { metadata: { labels: object.metadata.labels ?? {} }, spec: object.spec }, { create: true }),
  );
  const live = get("armada.airshipit.org/v1alpha1/ArmadaManifest", manifest.metadata.name);
  const done = live !== undefined && reached(live, target);
  if (done) event("Normal", "Completed", `${members.length} charts of ${manifest.metadata.name} are ${target} again`);
  return {
    patches,
    status: {
      phase: done ? "Completed" : "Restoring",
      manifest: manifest.metadata.name,
      charts: members.length,
      ...(done ? { observedGeneration: self.metadata.generation } : { reason: `waiting for ${manifest.metadata.name}` }),
    },
  };
}
