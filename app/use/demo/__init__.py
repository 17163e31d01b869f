"""The demo: a local page on which trained networks classify a digit while it is drawn."""
