"""`opsmith learn`: exercises on operators and gradients, examined by the checks of `opsmith check`."""
