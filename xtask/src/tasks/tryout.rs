//! `cargo xtask try`.

use anyhow::Result;
use clap::Args;

/// Start a control plane with example apps and show them with Taffrail.
#[derive(Args)]
pub(crate) struct Try {}

impl Try {
    pub(crate) fn run(self) -> Result<()> {
        Ok(())
    }
}
