package com.example.greeting;

import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.javaoperatorsdk.operator.api.reconciler.Cleaner;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.DeleteControl;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import io.javaoperatorsdk.operator.api.reconciler.Workflow;
import io.javaoperatorsdk.operator.api.reconciler.dependent.Dependent;
import org.jboss.logging.Logger;

/** Leaves its children to dependent resources of the SDK, which match and apply them. */
@Workflow(
    dependents = {
      @Dependent(type = GreetingConfigMap.class),
      @Dependent(type = GreetingDeployment.class)
    })
@ControllerConfiguration(name = "greeting")
public class GreetingReconciler implements Reconciler<Greeting>, Cleaner<Greeting> {
  private static final Logger LOG = Logger.getLogger(GreetingReconciler.class);

  @Override
  public UpdateControl<Greeting> reconcile(Greeting greeting, Context<Greeting> context) {
    int wanted = greeting.getSpec().getReplicas();
    int ready =
        context
            .getSecondaryResource(Deployment.class)
            .map(Deployment::getStatus)
            .map(status -> status.getReadyReplicas())
            .orElse(0);
    LOG.infof("%d of %d replicas are ready", ready, wanted);

    var status = new GreetingStatus();
    status.setReady(ready == wanted);
    status.setReadyReplicas(ready);
    status.setObservedGeneration(greeting.getMetadata().getGeneration());
    // A resourceVersion in the patch would be a conflict where the cache is behind.
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
    LOG.infof("the cleanup of %s ends", greeting.getMetadata().getName());
    return DeleteControl.defaultDelete();
  }
}
