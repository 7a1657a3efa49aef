package com.example.greeting;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.processing.dependent.kubernetes.CRUDKubernetesDependentResource;
import io.javaoperatorsdk.operator.processing.dependent.kubernetes.KubernetesDependent;

@KubernetesDependent
public class GreetingConfigMap extends CRUDKubernetesDependentResource<ConfigMap, Greeting> {
  @Override
  protected ConfigMap desired(Greeting greeting, Context<Greeting> context) {
    return new ConfigMapBuilder()
        .withNewMetadata()
        .withName(greeting.getMetadata().getName())
        .withNamespace(greeting.getMetadata().getNamespace())
        .endMetadata()
        .addToData("message", greeting.getSpec().getMessage())
        .build();
  }
}
