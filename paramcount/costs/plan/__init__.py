"""From a need to deployments: which GPUs, how they share the model, how fast at most, and the command to start it."""
