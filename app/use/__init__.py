"""A trained network put to use: as a saved model, as an ONNX file, as an answer to pictures."""
