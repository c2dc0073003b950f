//! The way out for networks that are unknown here: an ONNX graph.

/// For a folder of Hugging Face.
pub(super) const FOLDER: &str = "Export it to ONNX: `optimum-cli export onnx --model NAME DIR`, \
                                 then `switchyard add DIR/model.onnx`";

/// For a file of weights, whose network is in its author's code.
pub(super) const WEIGHTS: &str = "Export the network to ONNX, for example with \
                                  `torch.onnx.export`, then `switchyard add model.onnx`";
