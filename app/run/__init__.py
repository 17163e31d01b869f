"""From a YAML file to a trained, compared network: configuration, learners, the training loop and its callbacks."""
