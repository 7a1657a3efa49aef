// What the Armada kinds have in common: their status, and enabling one thing after the other.
import { condition, event, patch } from "opdev";

type Armada = {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
  spec: { target_state?: string };
  status?: { actual_state?: string; satisfied?: boolean };
};

/** The status of a chart, a group or a manifest, with the condition that says it in Kubernetes' own words. */
export function observed(self: Armada, state: string, target: string, reason: string) {
  const satisfied = state === target;
  condition("Satisfied", satisfied ? "True" : "False", satisfied ? "TargetReached" : "InProgress", reason);
  return { actual_state: state, satisfied, ...(reason ? { reason } : {}) };
}

/** Whether it is where it was asked to be. A status that tells of an older target does not count. */
export function reached(member: Armada, target: string): boolean {
  return member.status?.satisfied === true && member.status.actual_state === target;
}

/**
 * Gives every member an owner and, one after the other, the target state; all at once where they are not sequenced.
 * A member that was enabled before stays enabled while one before it has trouble.
 */
export function enable(self: Armada, names: string[], find: (name: string) => Armada | undefined, sequenced: boolean) {
  const target = self.spec.target_state ?? "uninitialized";
  // Taking down goes from the last to the first.
  const order = target === "uninstalled" ? [...names].reverse() : names;
  const waiting: string[] = [];
  const patches = [];
  for (const name of order) {
    const member = find(name);
    if (!member) {
      waiting.push(`${name}, which does not exist`);
      if (sequenced) break;
      continue;
    }
    const blocked = sequenced && waiting.length > 0;
    const asked = target !== "uninitialized" && (!blocked || member.spec.target_state === target);
    patches.push(patch(member, asked ? { spec: { target_state: target } } : {}, { own: true }));
    if (target !== "uninitialized" && !reached(member, target)) waiting.push(name);
  }
  if (target === "uninitialized") return { patches, status: observed(self, target, target, "") };
  const before = self.status?.actual_state;
  if (waiting.length === 0 && before !== target) event("Normal", "Satisfied", `everything is ${target}`);
  const state = waiting.length === 0 ? target : target === "deployed" ? "deploying" : "uninstalling";
  const reason = waiting.length === 0 ? "" : `waiting for ${sequenced ? waiting[0] : waiting.join(", ")}`;
  return { patches, status: observed(self, state, target, reason) };
}
