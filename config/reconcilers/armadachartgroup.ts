// An ArmadaChartGroup enables its charts, each after the one before it is satisfied where it is sequenced,
// and becomes their owner: when the group goes, its charts go.
import type { ArmadaChartGroup } from "opdev:types";
import { get } from "opdev";
import { enable } from "./armada/state.ts";

export const kind = "armada.airshipit.org/v1alpha1/ArmadaChartGroup";

export function reconcile(self: ArmadaChartGroup) {
  const find = (name: string) => get("armada.airshipit.org/v1alpha1/ArmadaChart", name);
  return enable(self, self.spec.chart_group, find, self.spec.sequenced ?? false);
}
