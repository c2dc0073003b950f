//! The architectures, each cut into stages with exits.
//!
//! - [`staged`] is the interface of every network, [`architecture`] the closed set of their
//!   hyper-parameters, `spec` the contract between the two
//! - [`cnn1d`], [`fusion`], [`lstm`], [`minirocket`], [`mlp`], [`mobilenet`], [`resnet1d`],
//!   [`resnet2d`] and [`x3d`] can be trained; [`bert`], [`efficientnet`], [`efficientnet_v2`],
//!   [`mobilenet_v3`] (all three `inverted`), [`vit`] and again [`resnet2d`] take public weights in
//!   the naming of their publishers (`published`); [`onnx`] takes any other network as a graph
//! - [`graph`] is the interface of networks of named tensors, [`task`] names the kinds of answers
//! - [`conv_chain`] is a chain of 1-D convolutions, which several of them have; [`tokens`] makes
//!   the input of networks that read text; [`datatype`] names the element types of inputs
//! - `stages` cuts blocks into stages of similar cost, `slices` a batch into parts that fit a
//!   cache, `standing_in` computes as a GPU would

pub mod architecture;
pub mod bert;
pub mod cnn1d;
pub mod conv_chain;
pub mod datatype;
pub mod efficientnet;
pub mod efficientnet_v2;
pub mod fusion;
pub mod graph;
pub mod inverted;
pub mod lstm;
pub mod minirocket;
pub mod mlp;
pub mod mobilenet;
pub mod mobilenet_v3;
pub mod onnx;
mod published;
pub mod resnet1d;
pub mod resnet2d;
mod slices;
mod spec;
pub mod staged;
mod stages;
pub(crate) mod standing_in;
pub mod task;
pub mod tokens;
pub mod vit;
pub mod x3d;
