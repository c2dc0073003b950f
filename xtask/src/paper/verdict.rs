//! Whether a claim holds here.

use anyhow::{Context, Result};

use super::claim::Claim;
use super::results::Results;
use super::sample::Sample;

/// A claim and its measured value. It holds if the 95 % interval of the value does.
#[derive(Debug)]
pub(crate) struct Verdict<'a> {
    pub(crate) claim: &'a Claim,
    /// At the point at which it is farthest from holding.
    pub(crate) measured: Sample,
    pub(crate) holds: bool,
}

// === impl Verdict ===

impl<'a> Verdict<'a> {
    /// Measures a claim.
    ///
    /// # Errors
    /// The results lack a value of the claim.
    pub(crate) fn of(claim: &'a Claim, results: &Results) -> Result<Self> {
        let context = || format!("claim `{}`", claim.says);
        let values = claim.measure.values(results);
        let values = values.map_err(anyhow::Error::msg).with_context(context)?;
        let measured = claim.bound.worst(values.into_iter());
        let measured = measured.context("no value").with_context(context)?;
        Ok(Self {
            claim,
            holds: claim.bound.holds(&measured),
            measured,
        })
    }

    /// Whether the outcome differs from the claim's file.
    pub(crate) fn is_surprise(&self) -> bool {
        self.holds == self.claim.departs.is_some()
    }
}
