// An ArmadaManifest enables its groups in order and becomes their owner.
import type { ArmadaManifest } from "opdev:types";
import { get } from "opdev";
import { enable } from "./armada/state.ts";

export const kind = "armada.airshipit.org/v1alpha1/ArmadaManifest";

export function reconcile(self: ArmadaManifest) {
  const find = (name: string) => get("armada.airshipit.org/v1alpha1/ArmadaChartGroup", name);
  return enable(self, self.spec.chart_groups, find, true);
}
