//! `cargo xtask docs`: writes the parts of `docs/` that follow from the definitions of commands, errors and schemas.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use taffrail_testkit::binary::workspace;

use super::protocol;

/// Write the man pages, the reference of commands, the table of errors, the schemas of answers, the
/// OpenAPI document, the output of examples, and the code of the protocol of agents.
#[derive(Args)]
pub(crate) struct Docs {}

impl Docs {
    pub(crate) fn run(self) -> Result<()> {
        protocol::write()?;
        // What checks them writes them, so that there is one idea of what they should be.
        test("taffrail", &["--bin", "taffrail", "docs::"])?;
        test("taffrail", &["--test", "it", "examples::"])?;
        test("taffrail-hub", &["--lib", "http::openapi::"])?;
        println!(
            "docs/man, docs/schema, docs/cli.md, docs/errors.md, docs/openapi.json, the examples in README.md and docs/, and the code of the protocol of agents are up to date"
        );
        Ok(())
    }
}

fn test(package: &str, which: &[&str]) -> Result<()> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(program)
        .args(["test", "--quiet", "--package", package])
        .args(which)
        .env("WRITE_DOCS", "1")
        .current_dir(workspace())
        .status()
        .context("cannot run `cargo test`")?;
    ensure!(status.success(), "the documents could not be written: `cargo test` ended with {status}");
    Ok(())
}
