// A PodSet keeps `spec.replicas` equal pods and names them in its status.
import type { PodSet } from "opdev:types";
import { owned, replicas } from "opdev";

export const kind = "app.example.com/v1alpha1/PodSet";
export const owns = ["v1/Pod"];

export function reconcile(self: PodSet) {
  const app = self.metadata.name;
  const pods = owned("v1/Pod").filter(
    (pod) => !pod.metadata.deletionTimestamp && ["Pending", "Running"].includes(pod.status?.phase ?? "Pending"),
  );
  return {
    children: replicas(pods, self.spec.replicas ?? 1, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { generateName: `${app}-pod`, labels: { app, version: "v0.1" } },
      spec: {
        containers: [
          {
            name: "fancy-alpine",
            image: "quay.io/amacdona/strauss",
            command: ["sleep", "3600"],
            securityContext: {
              allowPrivilegeEscalation: false,
              capabilities: { drop: ["ALL"] },
              runAsNonRoot: true,
              seccompProfile: { type: "RuntimeDefault" },
            },
          },
        ],
      },
    }),
    status: {
      podNames: pods.map((pod) => pod.metadata.name).sort(),
      availableReplicas: pods.length,
    },
  };
}
