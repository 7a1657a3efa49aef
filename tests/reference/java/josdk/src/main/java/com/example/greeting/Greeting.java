package com.example.greeting;

import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;

@Group("java.example.com")
@Version("v1")
public class Greeting extends CustomResource<GreetingSpec, GreetingStatus> implements Namespaced {}
