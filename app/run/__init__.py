"""From a YAML file to a trained, compared network: configuration, learners, the loop and who watches it."""
