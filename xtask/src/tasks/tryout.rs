//! `cargo xtask try`: starts a control plane with example apps, and shows them with Taffrail.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use taffrail_testkit::binary::{self, Profile};
use taffrail_testkit::examples;
use taffrail_testkit::kube::{ControlPlane, Options};

/// Start a control plane with example apps and show them with Taffrail.
#[derive(Args)]
pub(crate) struct Try {
    /// Name of the control plane; one that runs already is used again.
    #[arg(long, default_value = "try")]
    name: String,
}

impl Try {
    pub(crate) fn run(self) -> Result<()> {
        println!("starting a Kubernetes control plane on this machine");
        let (plane, was_running) = ControlPlane::up(&Options { name: self.name, ..Options::default() })?;
        if was_running {
            println!("  {} runs already", plane.name());
        }
        let contexts = plane.contexts();
        let context = *contexts.first().context("the control plane has no cluster")?;
        println!("creating example apps");
        for example in examples::ALL {
            println!("  {:10} {}", example.name, example.shows);
            example.apply(&plane, context)?;
        }
        println!(
            "waiting until the examples have their expected states (a rollout has to miss its deadline)"
        );
        for example in examples::ALL {
            example.settle(&plane, context)?;
        }
        println!("building taffrail");
        let taffrail = binary::build(Profile::Release)?;
        println!("\n$ taffrail get apps -A");
        let status = Command::new(&taffrail)
            .args(["get", "apps", "-A"])
            .env("KUBECONFIG", plane.kubeconfig())
            .stdin(Stdio::null())
            .status()
            .with_context(|| format!("cannot run {}", taffrail.display()))?;
        println!("\nto examine the control plane yourself:");
        println!("  export KUBECONFIG={}", plane.kubeconfig().display());
        println!("  alias taffrail={}", taffrail.display());
        println!("  alias kubectl={}", plane.program("kubectl").display());
        println!("to end it:");
        println!("  cargo xtask kube down --name {}", plane.name());
        if !status.success() {
            bail!("`taffrail get apps -A` ended with {status}");
        }
        Ok(())
    }
}
