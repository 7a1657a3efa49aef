package com.example.greeting;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.HasMetadata;
import io.fabric8.kubernetes.api.model.ObjectMeta;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.javaoperatorsdk.operator.api.config.informer.InformerEventSourceConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.Cleaner;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.DeleteControl;
import io.javaoperatorsdk.operator.api.reconciler.EventSourceContext;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import io.javaoperatorsdk.operator.processing.event.source.EventSource;
import io.javaoperatorsdk.operator.processing.event.source.informer.InformerEventSource;
import java.util.List;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Applies a ConfigMap and a Deployment by hand. Its cleanup waits until the Deployment is gone. */
@ControllerConfiguration(name = "greeting")
public class GreetingReconciler implements Reconciler<Greeting>, Cleaner<Greeting> {
  private static final Logger LOG = LoggerFactory.getLogger(GreetingReconciler.class);
  private static final Map<String, String> MANAGED = Map.of("app.kubernetes.io/managed-by", "greeting-josdk");

  @Override
  public List<EventSource<?, Greeting>> prepareEventSources(EventSourceContext<Greeting> context) {
    return List.of(watch(ConfigMap.class, context), watch(Deployment.class, context));
  }

  private static <R extends HasMetadata> InformerEventSource<R, Greeting> watch(
      Class<R> kind, EventSourceContext<Greeting> context) {
    var configuration =
        InformerEventSourceConfiguration.from(kind, Greeting.class)
            .withLabelSelector("app.kubernetes.io/managed-by=greeting-josdk")
            .build();
    return new InformerEventSource<>(configuration, context);
  }

  @Override
  public UpdateControl<Greeting> reconcile(Greeting greeting, Context<Greeting> context) {
    int wanted = greeting.getSpec().getReplicas();
    apply(configMap(greeting), context);
    apply(deployment(greeting), context);

    int ready =
        context
            .getSecondaryResource(Deployment.class)
            .map(Deployment::getStatus)
            .map(status -> status.getReadyReplicas())
            .orElse(0);
    LOG.info("{} of {} replicas are ready", ready, wanted);

    var status = new GreetingStatus();
    status.setReady(ready == wanted);
    status.setReadyReplicas(ready);
    status.setObservedGeneration(greeting.getMetadata().getGeneration());
    var patch = new Greeting();
    patch.setMetadata(
        new ObjectMetaBuilder()
            .withName(greeting.getMetadata().getName())
            .withNamespace(greeting.getMetadata().getNamespace())
            .build());
    patch.setStatus(status);
    return UpdateControl.patchStatus(patch);
  }

  @Override
  public DeleteControl cleanup(Greeting greeting, Context<Greeting> context) {
    var deployment = context.getSecondaryResource(Deployment.class);
    if (deployment.isEmpty()) {
      LOG.info("the Deployment is gone, the cleanup ends");
      return DeleteControl.defaultDelete();
    }
    if (!deployment.get().isMarkedForDeletion()) {
      LOG.info("the cleanup deletes the Deployment");
      context.getClient().resource(deployment.get()).delete();
    }
    return DeleteControl.noFinalizerRemoval();
  }

  private static void apply(HasMetadata child, Context<Greeting> context) {
    var how =
        new PatchContext.Builder()
            .withPatchType(PatchType.SERVER_SIDE_APPLY)
            .withFieldManager("greeting-josdk")
            .withForce(true)
            .build();
    context.getClient().resource(child).patch(how);
  }

  private static ConfigMap configMap(Greeting greeting) {
    var child = new ConfigMapBuilder().withMetadata(metadata(greeting)).build();
    child.setData(Map.of("message", greeting.getSpec().getMessage()));
    child.addOwnerReference(greeting);
    return child;
  }

  private static Deployment deployment(Greeting greeting) {
    var labels = Map.of("app", greeting.getMetadata().getName());
    var child =
        new DeploymentBuilder()
            .withMetadata(metadata(greeting))
            .withNewSpec()
            .withReplicas(greeting.getSpec().getReplicas())
            .withNewSelector()
            .withMatchLabels(labels)
            .endSelector()
            .withNewTemplate()
            .withNewMetadata()
            .withLabels(labels)
            .endMetadata()
            .withNewSpec()
            .addNewContainer()
            .withName("greeting")
            .withImage("registry.k8s.io/pause:3.10")
            .addNewEnv()
            .withName("MESSAGE")
            .withValue(greeting.getSpec().getMessage())
            .endEnv()
            .endContainer()
            .endSpec()
            .endTemplate()
            .endSpec()
            .build();
    child.addOwnerReference(greeting);
    return child;
  }

  private static ObjectMeta metadata(Greeting greeting) {
    return new ObjectMetaBuilder()
        .withName(greeting.getMetadata().getName())
        .withNamespace(greeting.getMetadata().getNamespace())
        .withLabels(MANAGED)
        .build();
  }
}
