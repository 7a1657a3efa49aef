package com.example.greeting;

import io.javaoperatorsdk.operator.Operator;
import java.time.Duration;

public class Main {
  public static void main(String[] arguments) {
    var operator = new Operator();
    operator.register(new GreetingReconciler());
    operator.installShutdownHook(Duration.ofSeconds(5));
    operator.start();
  }
}
