//! The `taffrail` binary, built from this checkout.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The build profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The fast build, for tests.
    Dev,
    /// The release build, for benchmarks and for people.
    Release,
}

/// Builds the binary if anything has changed, and returns its path.
pub fn build(profile: Profile) -> Result<PathBuf> {
    let more: &[&str] = if profile == Profile::Release { &["--release"] } else { &[] };
    build_target("taffrail", "taffrail", more)
}

/// Builds a bench of a package in release mode if anything has changed, and returns its path.
pub fn build_bench(package: &str, bench: &str) -> Result<PathBuf> {
    build_target(package, bench, &["--bench", bench, "--release"])
}

/// Builds an example of a package, without optimisation, if anything has changed, and returns its path.
pub fn build_example(package: &str, example: &str) -> Result<PathBuf> {
    build_target(package, example, &["--example", example])
}

/// Builds a bench that judges another program, so that its own speed does not count, without optimisation if anything
/// has changed, and returns its path; `features` are those of the package that it needs.
pub fn build_judge(package: &str, bench: &str, features: &str) -> Result<PathBuf> {
    build_target(package, bench, &["--bench", bench, "--features", features])
}

/// Builds a package with these arguments of `cargo build`, and returns the path of its binary or bench `name`.
fn build_target(package: &str, name: &str, more: &[&str]) -> Result<PathBuf> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--package", package])
        .args(more)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(workspace())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run `cargo build --package {package}`"))?;
    if !output.status.success() {
        bail!("`cargo build --package {package}` of {name} failed ({})", output.status);
    }
    // The path comes from Cargo's messages, as the target folder may be anywhere.
    executable(&output.stdout, name).with_context(|| format!("`cargo build` built nothing called {name}"))
}

/// Returns the folder of the workspace that this was built from.
pub fn workspace() -> &'static Path {
    let testkit = Path::new(env!("CARGO_MANIFEST_DIR"));
    testkit.ancestors().nth(2).unwrap_or(testkit)
}

/// Finds the path of the binary `name` in Cargo's messages; `None` if Cargo built no such binary.
fn executable(messages: &[u8], name: &str) -> Option<PathBuf> {
    messages
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact" && message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_is_the_artifact_with_an_executable() {
        let messages = br#"{"reason":"compiler-artifact","target":{"name":"taffrail"},"executable":null}
not JSON
{"reason":"compiler-artifact","target":{"name":"other"},"executable":"/t/other"}
{"reason":"compiler-artifact","target":{"name":"taffrail"},"executable":"/t/debug/taffrail"}
"#;
        assert_eq!(executable(messages, "taffrail"), Some(PathBuf::from("/t/debug/taffrail")));
        assert_eq!(executable(b"", "taffrail"), None);
    }
}
