//! `cargo xtask conformance merge`: `taffrail-merge` in the tests of structured-merge-diff, and beside it.

use anyhow::Result;
use clap::Args;

/// Run structured-merge-diff's own tests with Taffrail's updater in place of the library's, and compare both on random
/// steps.
#[derive(Args)]
pub(crate) struct Merge {
    /// Number of random steps that both sides take.
    #[arg(long, default_value_t = 1_000_000)]
    steps: usize,
    /// Seed of the steps; the same seed makes the same steps [default: a random one, which is printed]
    #[arg(long)]
    seed: Option<u64>,
}

impl Merge {
    pub(crate) fn run(self) -> Result<()> {
        let mut environment = vec![("TAFFRAIL_MERGE_STEPS", self.steps.to_string())];
        environment.extend(self.seed.map(|seed| ("TAFFRAIL_MERGE_SEED", seed.to_string())));
        super::test("taffrail-merge", &["--test", "it"], &["own_suite::", "beside_go::"], &environment)
    }
}
