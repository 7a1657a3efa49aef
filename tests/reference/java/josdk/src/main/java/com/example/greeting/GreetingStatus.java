package com.example.greeting;

import io.fabric8.crd.generator.annotation.PrinterColumn;

public class GreetingStatus {
  @PrinterColumn private Boolean ready;
  private Integer readyReplicas;
  private Long observedGeneration;

  public Boolean getReady() {
    return ready;
  }

  public void setReady(Boolean ready) {
    this.ready = ready;
  }

  public Integer getReadyReplicas() {
    return readyReplicas;
  }

  public void setReadyReplicas(Integer readyReplicas) {
    this.readyReplicas = readyReplicas;
  }

  public Long getObservedGeneration() {
    return observedGeneration;
  }

  public void setObservedGeneration(Long observedGeneration) {
    this.observedGeneration = observedGeneration;
  }
}
