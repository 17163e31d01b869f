"""From a YAML file to a trained, compared network: configuration, the loop, the reports."""
