//! Copies the sources of the suites into the cache, and builds them.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::binary::workspace;
use crate::kube::cache;

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
    kept(&format!("apply-{:016x}", hasher.finish()), |folder| {
        for file in files {
            let target = folder.join(file);
            create(target.parent().unwrap_or(folder))?;
            write(&target, &read(&peer.join(file))?)?;
        }
        let listed = go(folder, &["list", "-mod=readonly", "-m", "-json", "k8s.io/kubernetes"])?;
        let listed = match directory(&listed) {
            Ok(sources) => sources,
            // The module is not downloaded yet.
            Err(_) => directory(&go(folder, &["mod", "download", "-json", "k8s.io/kubernetes"])?)?,
        };
        let sources = listed.join(APPLY);
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
    let module = format!("{module}@{version}");
    kept(&module.replace('/', "_"), |folder| {
        // Outside of any module.
        let downloaded = go(folder, &["mod", "download", "-json", &module])?;
        copy(&directory(&downloaded)?, folder)?;
        // Flags as those of the peers, which share most packages.
        go(folder, &["test", "-c", "-trimpath", "-ldflags", "-s -w", "-o", PROGRAM, "."]).map(drop)
    })
}

/// Lists the tests of a program.
pub(super) fn tests(program: &Path, folder: &Path) -> Result<Vec<String>> {
    // Flux' tests start their cluster before they look at this flag, so the sources are read in its place.
    let _ = program;
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

/// Returns the built tests in a folder of the cache and the folder; `build` fills it if it is not there. A build that
/// fails leaves nothing that looks complete.
fn kept(name: &str, build: impl FnOnce(&Path) -> Result<()>) -> Result<(PathBuf, PathBuf)> {
    let parent = cache()?.join("suites");
    create(&parent)?;
    let folder = parent.join(name);
    let lock = parent.join(format!("{name}.lock"));
    let lock = File::create(&lock).with_context(|| format!("cannot create {}", lock.display()))?;
    lock.lock().context("cannot lock the cache of suites")?;
    if !folder.join(PROGRAM).is_file() {
        let unfinished = parent.join(format!("{name}.building"));
        let _ = fs::remove_dir_all(&unfinished);
        create(&unfinished)?;
        build(&unfinished)?;
        let _ = fs::remove_dir_all(&folder);
        fs::rename(&unfinished, &folder)
            .with_context(|| format!("cannot move {} to {}", unfinished.display(), folder.display()))?;
    }
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

/// Returns the folder of the module that Go describes in JSON.
fn directory(described: &[u8]) -> Result<PathBuf> {
    let described: Value =
        serde_json::from_slice(described).context("cannot read what Go says of a module")?;
    described["Dir"].as_str().map(PathBuf::from).context("Go names no folder of a module")
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    create(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let source = entry.with_context(|| format!("cannot read {}", from.display()))?.path();
        let target = to.join(source.file_name().unwrap_or_default());
        if source.is_dir() {
            copy(&source, &target)?;
        } else {
            // A new file, as those of the module cache are read-only.
            let content = fs::read(&source).with_context(|| format!("cannot read {}", source.display()))?;
            fs::write(&target, content).with_context(|| format!("cannot write {}", target.display()))?;
        }
    }
    Ok(())
}

fn create(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
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
