//! `cargo xtask conformance yaml`: manifests as Taffrail and as Kubernetes' API machinery read them.

use anyhow::Result;
use clap::Args;

/// Read the manifests of Kubernetes' sources, and mutations of them, beside Kubernetes' own decoder.
#[derive(Args)]
pub(crate) struct Yaml {
    /// Number of mutations that both sides read.
    #[arg(long, default_value_t = 100_000)]
    mutations: usize,
    /// Seed of the mutations; the same seed makes the same ones [default: a random one, which is printed]
    #[arg(long)]
    seed: Option<u64>,
}

impl Yaml {
    pub(crate) fn run(self) -> Result<()> {
        let mut environment = vec![("TAFFRAIL_YAML_MUTATIONS", self.mutations.to_string())];
        environment.extend(self.seed.map(|seed| ("TAFFRAIL_YAML_SEED", seed.to_string())));
        super::test("taffrail-plan", &["--lib"], &["beside_go::"], &environment)
    }
}
