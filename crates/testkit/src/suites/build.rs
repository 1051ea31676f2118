//! Copies the sources of the suites into the cache, and builds them.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::binary::workspace;
use crate::go_modules;
use crate::kube::kubernetes_version;

/// The package of Kubernetes with the tests of server-side apply.
const APPLY: &str = "test/integration/apiserver/apply";

/// The packages of Kubernetes that are replaced, by the folders in `bench/peers/apply`.
const REPLACED: [(&str, &str); 2] = [
    ("k8s.io/kubernetes/cmd/kube-apiserver/app/testing", "testing"),
    ("k8s.io/kubernetes/test/integration/framework", "framework"),
];

/// The module of `bench/peers/apply`.
const PEER: &str = "taffrail.dev/peers/apply";

/// Flux' module, and its version.
const FLUX: (&str, &str) = ("github.com/fluxcd/pkg/ssa", "v0.78.0");

/// The file of the built tests in the folder of a suite.
const PROGRAM: &str = "suite.test";

/// Builds the tests of server-side apply; returns the program, and the folder in which it runs.
pub(super) fn apply() -> Result<(PathBuf, PathBuf)> {
    let peer = workspace().join("bench/peers/apply");
    let files = ["go.mod", "go.sum", "testing/server.go", "framework/framework.go"];
    let mut hasher = DefaultHasher::new();
    for file in files {
        read(&peer.join(file))?.hash(&mut hasher);
    }
    built(&format!("apply-{:016x}", hasher.finish()), |folder| {
        for file in files {
            let target = folder.join(file);
            go_modules::create(target.parent().unwrap_or(folder))?;
            write(&target, &read(&peer.join(file))?)?;
        }
        let sources = go_modules::folder("k8s.io/kubernetes", &kubernetes_version()?)?.join(APPLY);
        let entries = fs::read_dir(&sources).with_context(|| format!("cannot read {}", sources.display()))?;
        for entry in entries {
            let file = entry.with_context(|| format!("cannot read {}", sources.display()))?.path();
            let Some(name) = file.file_name().filter(|name| name.to_string_lossy().ends_with("_test.go"))
            else {
                continue;
            };
            let mut text = read(&file)?;
            for (package, ours) in REPLACED {
                text = text.replace(&format!("\"{package}\""), &format!("\"{PEER}/{ours}\""));
            }
            write(&folder.join(name), &text)?;
        }
        // Flags as those of the control plane, so that Go compiles the packages of both once.
        go(folder, &["test", "-c", "-ldflags", "-s -w", "-o", PROGRAM, "."]).map(drop)
    })
}

/// Builds Flux' tests; returns the program, and the folder in which it runs.
pub(super) fn flux() -> Result<(PathBuf, PathBuf)> {
    let (module, version) = FLUX;
    built(&format!("{}@{version}", module.replace('/', "_")), |folder| {
        go_modules::copy_files(&go_modules::folder(module, version)?, folder)?;
        // Flags as those of the peers, which share most packages.
        go(folder, &["test", "-c", "-trimpath", "-ldflags", "-s -w", "-o", PROGRAM, "."]).map(drop)
    })
}

/// Lists the tests whose sources are in a folder. Flux' program starts a cluster before it would list them itself.
pub(super) fn tests(folder: &Path) -> Result<Vec<String>> {
    let mut tests = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let file = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
        if file.to_string_lossy().ends_with("_test.go") {
            tests.extend(read(&file)?.lines().filter_map(name).map(str::to_owned));
        }
    }
    tests.sort();
    Ok(tests)
}

/// Returns the name of the test whose function begins on this line; `None` for other lines.
fn name(line: &str) -> Option<&str> {
    let (name, parameters) = line.strip_prefix("func ")?.split_once('(')?;
    (name.starts_with("Test") && parameters.contains("*testing.T)")).then_some(name)
}

/// Returns the built tests in a folder of the cache, and the folder, which `build` fills if it is not there.
fn built(name: &str, build: impl FnOnce(&Path) -> Result<()>) -> Result<(PathBuf, PathBuf)> {
    let folder = go_modules::kept(name, build)?;
    Ok((folder.join(PROGRAM), folder))
}

/// Runs Go in a folder, and returns its output.
fn go(folder: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new("go")
        .args(arguments)
        .current_dir(folder)
        .env("GOWORK", "off")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run `go`, which builds the suite: install Go 1.26 or later from go.dev/dl")?;
    if !output.status.success() {
        bail!("`go {}` in {} failed ({})", arguments.join(" "), folder.display(), output.status);
    }
    Ok(output.stdout)
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suite_of_apply_has_the_version_of_the_control_planes() {
        let required = |file: &Path| {
            let text = read(file).expect("a go.mod");
            let line = text.lines().find_map(|line| {
                line.trim()
                    .trim_start_matches("require ")
                    .strip_prefix("k8s.io/kubernetes v")
                    .map(str::to_owned)
            });
            line.expect("it requires Kubernetes")
        };
        let ours = workspace().join("bench/peers/apply/go.mod");
        let planes = crate::kube::source_folder().join("kubernetes/go.mod");
        assert_eq!(required(&ours), required(&planes));
    }

    #[test]
    fn tests_are_functions_of_a_test() {
        assert_eq!(name("func TestApply(t *testing.T) {"), Some("TestApply"));
        assert_eq!(name("func TestMain(m *testing.M) {"), None);
        assert_eq!(name("func BenchmarkApply(b *testing.B) {"), None);
    }
}
