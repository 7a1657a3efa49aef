// An ArmadaChart installs the chart that its spec names once its target state is `deployed`.
// A disabled chart stays out until somebody patches the target state: a group, a workflow, or you.
import type { ArmadaChart } from "opdev:types";
import { event, release } from "opdev";
import type { Context } from "opdev";
import { observed } from "./armada/state.ts";

export const kind = "armada.airshipit.org/v1alpha1/ArmadaChart";

export function reconcile(self: ArmadaChart, ctx: Context) {
  const name = self.spec.release ?? self.metadata.name;
  const installed = ctx.releases[name];
  const target = self.spec.target_state ?? "uninitialized";
  if (target !== "deployed") {
    // A release that is not asked for is uninstalled.
    const reason = installed ? `release ${name} is being uninstalled` : "";
    return { status: observed(self, installed ? "uninstalling" : target, target, reason) };
  }
  const { location, subpath } = self.spec.source;
  const inside = subpath && subpath !== "." ? `/${subpath}` : "";
  const children = [
    release({ name, namespace: self.spec.namespace, chart: location + inside, values: self.spec.values ?? {} }),
  ];
  const state = !installed ? "deploying" : installed.status === "failed" ? "failed" : installed.ready ? "deployed" : "deploying";
  if (state !== self.status?.actual_state && state !== "deploying") {
    if (state === "deployed") event("Normal", "Deployed", `release ${name} revision ${installed?.revision} is ready`);
    else event("Warning", "Failed", `release ${name}: ${installed?.message}`);
  }
  const status = observed(self, state, target, state === "deployed" ? "" : (installed?.message ?? "the release is being installed"));
  return { children, status: installed ? { ...status, revision: installed.revision } : status };
}
