"""Use of trained networks: prediction, export and the demo."""
