//! The Go programs that answers and figures are compared with; see `bench/peers`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::binary::workspace;

/// Whether Go is there to build peers.
pub fn can_build() -> bool {
    Command::new("go")
        .arg("version")
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Builds the peer called `name` and says where it is.
///
/// # Errors
/// When Go is missing, or the program does not build.
pub fn build(name: &str) -> Result<PathBuf> {
    let source = workspace().join("bench/peers").join(name);
    let target = workspace().join("target/peers").join(name);
    let status = Command::new("go")
        .args(["build", "-trimpath", "-o"])
        .arg(&target)
        .arg(".")
        .current_dir(&source)
        .stdin(Stdio::null())
        .status()
        .context("cannot run `go`, which builds the peer: install Go 1.26 or later from go.dev/dl")?;
    if !status.success() {
        bail!("`go build` in {} failed ({status})", source.display());
    }
    Ok(target)
}
