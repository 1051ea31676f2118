//! `cargo xtask conformance apply`: Kubernetes' own tests of server-side apply.

use anyhow::Result;
use clap::Args;
use taffrail_testkit::suites::Suite;

use super::go_suite::GoSuite;

/// Run Kubernetes' own tests of server-side apply on a real API server, and on the simulated one.
#[derive(Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    suite: GoSuite,
}

impl Apply {
    pub(super) fn run(self) -> Result<()> {
        self.suite.run(Suite::Apply)
    }
}
