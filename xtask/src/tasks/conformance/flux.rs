//! `cargo xtask conformance flux`: the tests of Flux' library of server-side apply.

use anyhow::Result;
use clap::Args;
use taffrail_testkit::suites::Suite;

use super::go_suite::GoSuite;

/// Run the tests of Flux' library of server-side apply on a real API server, and on the simulated one.
#[derive(Args)]
pub(crate) struct Flux {
    #[command(flatten)]
    suite: GoSuite,
}

impl Flux {
    pub(super) fn run(self) -> Result<()> {
        self.suite.run(Suite::Flux)
    }
}
