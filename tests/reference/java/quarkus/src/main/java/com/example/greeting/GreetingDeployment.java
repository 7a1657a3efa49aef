package com.example.greeting;

import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.processing.dependent.kubernetes.CRUDKubernetesDependentResource;
import io.javaoperatorsdk.operator.processing.dependent.kubernetes.KubernetesDependent;
import java.util.Map;

@KubernetesDependent
public class GreetingDeployment extends CRUDKubernetesDependentResource<Deployment, Greeting> {
  @Override
  protected Deployment desired(Greeting greeting, Context<Greeting> context) {
    var labels = Map.of("app", greeting.getMetadata().getName());
    return new DeploymentBuilder()
        .withNewMetadata()
        .withName(greeting.getMetadata().getName())
        .withNamespace(greeting.getMetadata().getNamespace())
        .endMetadata()
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
  }
}
