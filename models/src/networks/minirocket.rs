//! MiniRocket: thousands of fixed convolutional features and a linear classifier.
//!
//! Dempster, Schmidt and Webb, "MiniRocket: A Very Fast (Almost) Deterministic Transform for Time
//! Series Classification" (2021), in its form for several channels. The magnitude over all axes is
//! an additional channel, because it does not depend on the sensor's orientation. Only the
//! classifier is trained by gradient; `prepare` derives the rest from a few training samples, as
//! the paper does.
//!
//! `convolutions` lists the convolutions, `transform` computes the features.

mod convolutions;
mod network;
mod prepare;
mod spec;
mod transform;

pub use self::network::MiniRocket;
pub use self::prepare::prepare;
pub use self::spec::MiniRocketSpec;
