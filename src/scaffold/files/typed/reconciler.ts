// Reconciles @KIND@: says what there should be for one object. opdev applies it, prunes, and writes the status.
import type { @KIND@ } from "opdev:types";
import { condition, owned } from "opdev";

export const kind = "@GROUP@/@VERSION@/@KIND@";
export const owns = ["v1/ConfigMap"];

export function reconcile(self: @KIND@) {
  const name = `${self.metadata.name}-message`;
  const ready = owned("v1/ConfigMap").some((map) => map.metadata.name === name);
  condition("Ready", ready, ready ? "Written" : "Writing", `ConfigMap ${name}`);
  return {
    children: [
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name@NAMESPACE_TS@ },
        data: { message: self.spec?.message ?? "hello" },
      },
    ],
    status: { observedGeneration: self.metadata.generation },
  };
}
