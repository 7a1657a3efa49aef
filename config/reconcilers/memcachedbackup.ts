// A MemcachedBackup is a Deployment of `spec.size` memcached pods, named in its status.
import type { MemcachedBackup } from "opdev:types";
import { list } from "opdev";

export const kind = "cache.my.domain/v1/MemcachedBackup";
export const owns = ["apps/v1/Deployment"];

export function reconcile(self: MemcachedBackup) {
  const labels = { app: "memcached", memcached_cr: self.metadata.name };
  const pods = list("v1/Pod", labels).filter((pod) => !pod.metadata.deletionTimestamp);
  return {
    children: [
      {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name: self.metadata.name, labels },
        spec: {
          replicas: self.spec.size,
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: {
              containers: [
                {
                  name: "memcached",
                  image: "memcached:1.6-alpine",
                  command: ["memcached", "-m=64", "-o", "modern", "-v"],
                  ports: [{ name: "memcached", containerPort: 11211 }],
                },
              ],
            },
          },
        },
      },
    ],
    status: { nodes: pods.map((pod) => pod.metadata.name).sort() },
  };
}
