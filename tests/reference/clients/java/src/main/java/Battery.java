import io.kubernetes.client.custom.V1Patch;
import io.kubernetes.client.informer.ResourceEventHandler;
import io.kubernetes.client.informer.SharedInformerFactory;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.openapi.apis.ApiextensionsV1Api;
import io.kubernetes.client.openapi.apis.AppsV1Api;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.apis.CustomObjectsApi;
import io.kubernetes.client.openapi.apis.VersionApi;
import io.kubernetes.client.openapi.models.*;
import io.kubernetes.client.util.CallGeneratorParams;
import io.kubernetes.client.util.ClientBuilder;
import io.kubernetes.client.util.KubeConfig;
import io.kubernetes.client.util.PatchUtils;
import io.kubernetes.client.util.Watch;
import io.kubernetes.client.util.Yaml;
import io.kubernetes.client.util.generic.GenericKubernetesApi;
import io.kubernetes.client.util.generic.dynamic.DynamicKubernetesApi;
import io.kubernetes.client.extended.leaderelection.LeaderElectionConfig;
import io.kubernetes.client.extended.leaderelection.LeaderElector;
import io.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import java.io.FileReader;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;

/** Each step of a client's life against one API server; prints a line a step, and ends with the number that failed. */
public class Battery {
    static int failed = 0, done = 0;

    interface Step { String run() throws Exception; }

    static void step(String name, Step step) {
        done++;
        try {
            String wrong = step.run();
            if (wrong != null) failed++;
            System.out.println((wrong == null ? "ok    " : "FAIL  ") + name + (wrong == null ? "" : ": " + wrong));
        } catch (ApiException e) {
            failed++;
            System.out.println("FAIL  " + name + ": " + e.getCode() + " " + e.getResponseBody());
        } catch (Throwable e) {
            failed++;
            System.out.println("FAIL  " + name + ": " + e);
        }
    }

    static String expect(Object found, Object wanted) {
        return Objects.equals(found, wanted) ? null : "found " + found + ", wanted " + wanted;
    }

    public static void main(String[] args) throws Exception {
        ApiClient client = ClientBuilder.kubeconfig(KubeConfig.loadKubeConfig(new FileReader(args[0]))).build();
        client.setReadTimeout(0);
        io.kubernetes.client.openapi.Configuration.setDefaultApiClient(client);
        CoreV1Api core = new CoreV1Api(client);
        AppsV1Api apps = new AppsV1Api(client);
        String ns = "java";
        step("version", () -> new VersionApi(client).getCode().execute().getGitVersion().startsWith("v1.") ? null : "no version");
        step("create a namespace", () -> {
            core.createNamespace(new V1Namespace().metadata(new V1ObjectMeta().name(ns))).execute();
            return null;
        });
        step("create", () -> expect(core.createNamespacedConfigMap(ns, map("one", "1")).execute().getData().get("key"), "1"));
        step("create again: 409", () -> {
            try {
                core.createNamespacedConfigMap(ns, map("one", "1")).execute();
                return "no conflict";
            } catch (ApiException e) {
                return e.getCode() == 409 && e.getResponseBody().contains("AlreadyExists") ? null : e.getResponseBody();
            }
        });
        step("list", () -> expect(core.listNamespacedConfigMap(ns).labelSelector("made=here").execute().getItems().size(), 1));
        step("list in pieces", () -> {
            for (int i = 0; i < 5; i++) core.createNamespacedConfigMap(ns, map("piece-" + i, "" + i)).execute();
            int found = 0;
            String next = null;
            do {
                V1ConfigMapList list = core.listNamespacedConfigMap(ns).labelSelector("made=here").limit(2)._continue(next).execute();
                found += list.getItems().size();
                next = list.getMetadata().getContinue();
            } while (next != null && !next.isEmpty());
            return expect(found, 6);
        });
        step("watch", () -> {
            String version = core.listNamespacedConfigMap(ns).execute().getMetadata().getResourceVersion();
            List<String> seen = new ArrayList<>();
            try (Watch<V1ConfigMap> watch = Watch.createWatch(client,
                    core.listNamespacedConfigMap(ns).resourceVersion(version).watch(true).timeoutSeconds(20).buildCall(null),
                    new com.google.gson.reflect.TypeToken<Watch.Response<V1ConfigMap>>() {}.getType())) {
                core.createNamespacedConfigMap(ns, map("watched", "1")).execute();
                core.replaceNamespacedConfigMap("watched", ns, map("watched", "2")).execute();
                core.deleteNamespacedConfigMap("watched", ns).execute();
                for (Watch.Response<V1ConfigMap> event : watch) {
                    seen.add(event.type);
                    if (event.type.equals("DELETED")) break;
                }
            }
            return expect(seen, List.of("ADDED", "MODIFIED", "DELETED"));
        });
        for (String[] one : new String[][] {
                {V1Patch.PATCH_FORMAT_JSON_PATCH, "[{\"op\":\"replace\",\"path\":\"/data/key\",\"value\":\"json\"}]", "json"},
                {V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH, "{\"data\":{\"key\":\"merge\"}}", "merge"},
                {V1Patch.PATCH_FORMAT_STRATEGIC_MERGE_PATCH, "{\"data\":{\"key\":\"strategic\"}}", "strategic"},
                {V1Patch.PATCH_FORMAT_APPLY_YAML,
                    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"one\"},\"data\":{\"key\":\"apply\"}}", "apply"}}) {
            step("patch " + one[0], () -> {
                boolean apply = one[0].equals(V1Patch.PATCH_FORMAT_APPLY_YAML);
                V1ConfigMap made = PatchUtils.patch(V1ConfigMap.class,
                    () -> apply
                        ? core.patchNamespacedConfigMap("one", ns, new V1Patch(one[1])).fieldManager("java").force(true).buildCall(null)
                        : core.patchNamespacedConfigMap("one", ns, new V1Patch(one[1])).buildCall(null),
                    one[0], client);
                return expect(made.getData().get("key"), one[2]);
            });
        }
        step("a workload gets ready", () -> {
            V1Deployment web = Yaml.loadAs("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 2\n"
                + "  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n"
                + "    spec: {containers: [{name: web, image: nginx}]}\n", V1Deployment.class);
            apps.createNamespacedDeployment(ns, web).execute();
            for (int i = 0; i < 200; i++) {
                V1Deployment now = apps.readNamespacedDeployment("web", ns).execute();
                if (Objects.equals(now.getStatus().getReadyReplicas(), 2)) return null;
                Thread.sleep(50);
            }
            return "never";
        });
        step("scale", () -> {
            V1Scale scale = apps.readNamespacedDeploymentScale("web", ns).execute();
            scale.getSpec().setReplicas(3);
            return expect(apps.replaceNamespacedDeploymentScale("web", ns, scale).execute().getSpec().getReplicas(), 3);
        });
        step("informer", () -> {
            SharedInformerFactory factory = new SharedInformerFactory(client);
            BlockingQueue<String> events = new LinkedBlockingQueue<>();
            var informer = factory.sharedIndexInformerFor((CallGeneratorParams p) -> core.listNamespacedConfigMap(ns)
                    .resourceVersion(p.resourceVersion).timeoutSeconds(p.timeoutSeconds).watch(p.watch).buildCall(null),
                V1ConfigMap.class, V1ConfigMapList.class);
            informer.addEventHandler(new ResourceEventHandler<V1ConfigMap>() {
                public void onAdd(V1ConfigMap it) { events.add("add " + it.getMetadata().getName()); }
                public void onUpdate(V1ConfigMap old, V1ConfigMap it) { events.add("update " + it.getMetadata().getName()); }
                public void onDelete(V1ConfigMap it, boolean unknown) { events.add("delete " + it.getMetadata().getName()); }
            });
            factory.startAllRegisteredInformers();
            for (int i = 0; i < 200 && !informer.hasSynced(); i++) Thread.sleep(50);
            if (!informer.hasSynced()) return "not synced in 10 s";
            core.createNamespacedConfigMap(ns, map("informed", "1")).execute();
            core.replaceNamespacedConfigMap("informed", ns, map("informed", "2")).execute();
            core.deleteNamespacedConfigMap("informed", ns).execute();
            for (String wanted : List.of("add informed", "update informed", "delete informed")) {
                String found;
                do {
                    found = events.poll(10, TimeUnit.SECONDS);
                    if (found == null) return wanted + " did not come";
                } while (!found.equals(wanted));
            }
            factory.stopAllRegisteredInformers();
            return null;
        });
        step("a CRD, its objects and their status", () -> {
            V1CustomResourceDefinition crd = Yaml.loadAs("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
                + "metadata: {name: things.example.com}\nspec:\n  group: example.com\n  scope: Namespaced\n"
                + "  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}\n  versions:\n  - name: v1\n    served: true\n"
                + "    storage: true\n    subresources: {status: {}}\n    schema:\n      openAPIV3Schema:\n        type: object\n"
                + "        properties:\n          spec: {type: object, properties: {size: {type: integer, minimum: 1}}}\n"
                + "          status: {type: object, x-kubernetes-preserve-unknown-fields: true}\n", V1CustomResourceDefinition.class);
            new ApiextensionsV1Api(client).createCustomResourceDefinition(crd).execute();
            CustomObjectsApi custom = new CustomObjectsApi(client);
            Map<String, Object> thing = new HashMap<>(Map.of("apiVersion", "example.com/v1", "kind", "Thing",
                "metadata", Map.of("name", "a"), "spec", Map.of("size", 1)));
            Object made = null;
            for (int i = 0; i < 100 && made == null; i++) {
                try {
                    made = custom.createNamespacedCustomObject("example.com", "v1", ns, "things", thing).execute();
                } catch (ApiException e) {
                    if (e.getCode() != 404) throw e;
                    Thread.sleep(50);
                }
            }
            DynamicKubernetesApi dynamic = new DynamicKubernetesApi("example.com", "v1", "things", client);
            var got = dynamic.get(ns, "a");
            if (!got.isSuccess()) return "" + got.getStatus();
            // `updateStatus` sends its JSON patch as application/json, which every API server refuses.
            Map<?, ?> written = PatchUtils.patch(Map.class,
                () -> custom.patchNamespacedCustomObjectStatus("example.com", "v1", ns, "things", "a",
                    new V1Patch("{\"status\":{\"phase\":\"Ready\"}}")).buildCall(null),
                V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH, client);
            if (!written.get("status").equals(Map.of("phase", "Ready"))) return "status: " + written.get("status");
            thing.put("metadata", Map.of("name", "b"));
            thing.put("spec", Map.of("size", 0));
            try {
                custom.createNamespacedCustomObject("example.com", "v1", ns, "things", thing).execute();
                return "size 0 was taken";
            } catch (ApiException e) {
                if (e.getCode() != 422) return e.getResponseBody();
            }
            return dynamic.delete(ns, "a").isSuccess() ? null : "delete";
        });
        step("leader election", () -> {
            var lock = new LeaseLock(ns, "leader", "me", client);
            var elector = new LeaderElector(new LeaderElectionConfig(lock, Duration.ofSeconds(15), Duration.ofSeconds(10), Duration.ofSeconds(1)));
            CountDownLatch leads = new CountDownLatch(1);
            Thread thread = new Thread(() -> elector.run(leads::countDown, () -> {}));
            thread.setDaemon(true);
            thread.start();
            return leads.await(10, TimeUnit.SECONDS) ? null : "not in 10 s";
        });
        step("generic client and dry run", () -> {
            var api = new GenericKubernetesApi<>(V1ConfigMap.class, V1ConfigMapList.class, "", "v1", "configmaps", client);
            if (!api.get(ns, "one").isSuccess()) return "get";
            core.createNamespacedConfigMap(ns, map("dry", "1")).dryRun("All").execute();
            return expect(api.get(ns, "dry").getHttpStatusCode(), 404);
        });
        step("delete", () -> expect(core.deleteNamespacedConfigMap("one", ns).execute().getStatus(), "Success"));
        step("delete a collection", () -> {
            core.deleteCollectionNamespacedConfigMap(ns).labelSelector("made=here").execute();
            return expect(core.listNamespacedConfigMap(ns).labelSelector("made=here").execute().getItems().size(), 0);
        });
        step("a pod is deleted (an answer that is the pod)", () -> {
            core.createNamespacedPod(ns, Yaml.loadAs("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n", V1Pod.class)).execute();
            core.deleteNamespacedPod("p", ns).execute();
            return null;
        });
        step("delete the namespace", () -> {
            core.deleteNamespace(ns).execute();
            for (int i = 0; i < 400; i++) {
                try {
                    core.readNamespace(ns).execute();
                    Thread.sleep(50);
                } catch (ApiException e) {
                    return expect(e.getCode(), 404);
                }
            }
            return "still there after 20 s";
        });
        System.out.println((done - failed) + " passed, " + failed + " failed");
        System.exit(failed > 0 ? 1 : 0);
    }

    static V1ConfigMap map(String name, String value) {
        return new V1ConfigMap().metadata(new V1ObjectMeta().name(name).labels(Map.of("made", "here"))).data(Map.of("key", value));
    }
}
