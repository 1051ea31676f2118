//! `cargo xtask tidy`: checks of the architecture that the compiler does not make.

mod behaviours;
mod page;
mod shape;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::Value;
use taffrail_testkit::binary::workspace;

use shape::Measures;

use super::protocol;

/// Check the dependencies between crates, the purity of the pure ones, and the size and names of files.
#[derive(Args)]
pub(crate) struct Tidy {}

/// The allowed dependencies of a crate of this workspace: `uses` are the other crates that it may use, `never` are
/// packages that it must not depend on at any depth.
struct Border {
    name: &'static str,
    uses: &'static [&'static str],
    never: &'static [&'static str],
    /// True if the crate does no I/O and reads no clock, so that it compiles for a target with neither.
    pure: bool,
}

const RUNTIMES: [&str; 7] = ["tokio", "kube", "kube-client", "hyper", "rustls", "axum", "sqlx"];

const BORDERS: [Border; 17] = [
    Border { name: "taffrail-object", uses: &[], never: &RUNTIMES, pure: true },
    Border { name: "taffrail-status", uses: &["taffrail-object"], never: &RUNTIMES, pure: true },
    Border { name: "taffrail-merge", uses: &[], never: &RUNTIMES, pure: true },
    Border {
        name: "taffrail-rules",
        uses: &["taffrail-object", "taffrail-status"],
        never: &RUNTIMES,
        pure: true,
    },
    Border {
        name: "taffrail-index",
        uses: &["taffrail-object", "taffrail-status"],
        never: &RUNTIMES,
        pure: true,
    },
    Border {
        name: "taffrail-apps",
        uses: &["taffrail-index", "taffrail-object", "taffrail-status"],
        never: &RUNTIMES,
        pure: true,
    },
    Border {
        name: "taffrail-api",
        uses: &["taffrail-apps", "taffrail-object", "taffrail-status"],
        never: &RUNTIMES,
        pure: true,
    },
    Border {
        name: "taffrail-plan",
        uses: &["taffrail-object", "taffrail-apps", "taffrail-merge"],
        never: &RUNTIMES,
        pure: true,
    },
    Border {
        name: "taffrail-cluster",
        uses: &["taffrail-object", "taffrail-status"],
        never: &["taffrail-apps", "axum", "sqlx", "clap"],
        pure: false,
    },
    Border {
        name: "taffrail-observe",
        uses: &[
            "taffrail-object",
            "taffrail-status",
            "taffrail-rules",
            "taffrail-index",
            "taffrail-apps",
            "taffrail-api",
            "taffrail-cluster",
        ],
        never: &["clap", "axum", "sqlx", "anstream", "openssl-sys", "ring"],
        pure: false,
    },
    Border {
        name: "taffrail-agent",
        uses: &["taffrail-api", "taffrail-apps", "taffrail-cluster", "taffrail-observe"],
        never: &["taffrail-hub", "clap", "axum", "sqlx", "anstream", "openssl-sys", "ring"],
        pure: false,
    },
    Border {
        name: "taffrail-engine",
        uses: &[
            "taffrail-object",
            "taffrail-status",
            "taffrail-apps",
            "taffrail-cluster",
            "taffrail-merge",
            "taffrail-observe",
            "taffrail-plan",
        ],
        never: &["taffrail-hub", "clap", "axum", "sqlx", "anstream", "openssl-sys", "ring"],
        pure: false,
    },
    Border {
        name: "taffrail-metrics",
        uses: &["taffrail-object", "taffrail-status", "taffrail-apps", "taffrail-api"],
        never: &[
            "taffrail-hub",
            "taffrail-cluster",
            "kube",
            "kube-client",
            "clap",
            "axum",
            "sqlx",
            "anstream",
            "openssl-sys",
            "ring",
        ],
        pure: false,
    },
    Border {
        name: "taffrail-hub",
        uses: &["taffrail-object", "taffrail-status", "taffrail-apps", "taffrail-api"],
        never: &["kube", "kube-client", "clap", "anstream", "openssl-sys", "ring"],
        pure: false,
    },
    Border {
        name: "taffrail",
        uses: &[
            "taffrail-agent",
            "taffrail-object",
            "taffrail-api",
            "taffrail-apps",
            "taffrail-cluster",
            "taffrail-engine",
            "taffrail-hub",
            "taffrail-merge",
            "taffrail-metrics",
            "taffrail-observe",
            "taffrail-plan",
            "taffrail-rules",
            "taffrail-sim",
            "taffrail-status",
        ],
        never: &["openssl-sys", "ring"],
        pure: false,
    },
    Border {
        name: "taffrail-sim",
        uses: &["taffrail-merge", "taffrail-object"],
        never: &["kube", "kube-client", "k8s-openapi", "axum", "sqlx", "clap", "openssl-sys", "ring"],
        pure: false,
    },
    Border {
        name: TESTKIT,
        uses: &["taffrail-object", "taffrail-sim"],
        never: &["kube", "kube-client", "k8s-openapi", "axum", "sqlx", "clap", "openssl-sys", "ring"],
        pure: false,
    },
];

/// The crate that only tests, benches and developer tasks may use.
const TESTKIT: &str = "taffrail-testkit";

/// The packages that may have [`TESTKIT`] among their normal dependencies, because they are not delivered.
const BUILT_WITH_TESTKIT: [&str; 2] = ["taffrail-e2e", "xtask"];

/// The maximum number of lines of a source file; a longer one is a fault.
const LONGEST: usize = 800;

/// Names of files and folders that are refused because they do not tell the content.
const EMPTY_NAMES: [&str; 8] = ["utils", "util", "common", "types", "helpers", "helper", "misc", "shared"];

impl Tidy {
    pub(crate) fn run(self) -> Result<()> {
        let mut faults = Vec::new();
        borders(&mut faults)?;
        files(&mut faults)?;
        printing(&mut faults)?;
        pure_crates(&mut faults)?;
        without_features(&mut faults);
        shape(&mut faults)?;
        behaviours::check(&mut faults)?;
        page::check(&mut faults)?;
        protocol::check(&mut faults)?;
        for fault in &faults {
            println!("  {fault}");
        }
        ensure!(
            faults.is_empty(),
            "tidy: {} faults in the dependencies, pure crates or files (listed above)",
            faults.len()
        );
        println!("tidy: dependencies, pure crates and files are as ARCHITECTURE.md says");
        Ok(())
    }
}

/// The maximum number of pairs of files that use each other; one more is a fault.
const MOST_CIRCLES: usize = 0;

/// The maximum number of doc comments that open with a question or a relative word; one more is a fault.
const MOST_QUESTIONS: usize = 26;

/// The public types that may share their name with another public type; any further one is a fault.
const DOUBLES: [&str; 19] = [
    "Answer", "Batch", "Change", "Cluster", "Costs", "Document", "Fault", "Items", "Kind", "Listing",
    "Options", "Problem", "Refusal", "Relation", "Scope", "Seen", "Snapshot", "Subject", "Target",
];

/// Measures the code and prints the figures; adds a fault for each that exceeds its maximum.
fn shape(faults: &mut Vec<String>) -> Result<()> {
    let (crates, doubles) = shape::measure()?;
    let sum = |of: fn(&Measures) -> usize| crates.values().map(of).sum::<usize>();
    let (circles, questions) = (sum(|it| it.circles.len()), sum(|it| it.questions));
    for (name, measures) in &crates {
        println!("  {name}: {} lines of code", measures.lines);
    }
    println!(
        "  {} lines of code, {circles} pairs of files in a circle, {questions} of {} doc comments open with a question",
        sum(|it| it.lines),
        sum(|it| it.docs)
    );
    if circles > MOST_CIRCLES {
        let pairs = crates.values().flat_map(|measures| &measures.circles);
        faults.extend(pairs.map(|(one, other)| format!("{one} and {other} use each other")));
        faults.push(format!("{circles} pairs of files use each other; there were {MOST_CIRCLES}"));
    }
    if questions > MOST_QUESTIONS {
        faults.push(format!(
            "{questions} doc comments open with a question or a relative word; there were {MOST_QUESTIONS}"
        ));
    }
    for double in doubles.iter().filter(|double| !DOUBLES.contains(&&*double.name)) {
        faults.push(format!("`{}` stands for several things: {}", double.name, double.files.join(", ")));
    }
    let is_double = |name: &&&str| doubles.iter().any(|double| double.name == ***name);
    for single in DOUBLES.iter().filter(|name| !is_double(name)) {
        faults.push(format!(
            "`{single}` stands for one thing now; take it out of DOUBLES in xtask/src/tasks/tidy"
        ));
    }
    Ok(())
}

/// Adds a fault for each dependency between crates that [`BORDERS`] does not allow, and for each forbidden package.
fn borders(faults: &mut Vec<String>) -> Result<()> {
    for border in &BORDERS {
        for name in dependencies(border.name, Some(1))? {
            if name.starts_with("taffrail") && name != border.name && !border.uses.contains(&&*name) {
                faults.push(format!(
                    "the crate {} uses {name}, which BORDERS in xtask/src/tasks/tidy/mod.rs does not allow",
                    border.name
                ));
            }
        }
        let reached = dependencies(border.name, None)?;
        for never in border.never.iter().filter(|never| reached.contains(**never)) {
            faults.push(format!(
                "the crate {} depends on {never}, which BORDERS in xtask/src/tasks/tidy/mod.rs forbids",
                border.name
            ));
        }
    }
    let packages = packages()?;
    let folder = workspace().join("crates");
    for package in &packages {
        let name = package["name"].as_str().unwrap_or_default();
        let inside =
            package["manifest_path"].as_str().is_some_and(|path| Path::new(path).starts_with(&folder));
        if inside && !BORDERS.iter().any(|border| border.name == name) {
            faults.push(format!("the crate {name} is missing in BORDERS in xtask/src/tasks/tidy/mod.rs"));
        }
    }
    faults.extend(
        built_with_testkit(&packages).map(|name| {
            format!("{name} is built with {TESTKIT}, which may only be among the dev-dependencies")
        }),
    );
    Ok(())
}

/// Returns the names of the packages that have [`TESTKIT`] among their dependencies outside of tests, and may not.
fn built_with_testkit(packages: &[Value]) -> impl Iterator<Item = &str> {
    let takes = |package: &&Value| {
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        dependencies.filter(|it| it["kind"] != "dev").any(|it| it["name"] == TESTKIT)
    };
    let names = packages.iter().filter(takes).filter_map(|package| package["name"].as_str());
    names.filter(|name| !BUILT_WITH_TESTKIT.contains(name))
}

/// Returns the names of all packages that a crate is built with when all its features are on, itself included; only
/// down to `depth` levels of dependencies, if given.
fn dependencies(name: &str, depth: Option<u32>) -> Result<BTreeSet<String>> {
    let arguments = [
        "tree",
        "--locked",
        "--all-features",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--format",
        "{p}",
        "--package",
        name,
    ];
    let depth = depth.map(|depth| depth.to_string());
    let limit = depth.as_deref().map_or(Vec::new(), |depth| vec!["--depth", depth]);
    let output = cargo(&[&arguments[..], &limit].concat())?;
    let first_word = |line: &str| line.split_whitespace().next().map(str::to_owned);
    Ok(String::from_utf8_lossy(&output).lines().filter_map(first_word).collect())
}

/// Returns the packages of the workspace, as `cargo metadata` describes them.
fn packages() -> Result<Vec<Value>> {
    let output = cargo(&["metadata", "--format-version", "1", "--locked", "--no-deps"])?;
    let metadata: Value = serde_json::from_slice(&output).context("`cargo metadata` printed no JSON")?;
    metadata["packages"].as_array().cloned().context("`cargo metadata` names no packages")
}

/// Adds a fault for each file in git that is too long, has a name of [`EMPTY_NAMES`], or contains a path of the machine
/// it was written on.
fn files(faults: &mut Vec<String>) -> Result<()> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(workspace())
        .stdin(Stdio::null())
        .output()
        .context("cannot run `git`")?;
    ensure!(output.status.success(), "`git ls-files` failed: {}", String::from_utf8_lossy(&output.stderr));
    for file in String::from_utf8_lossy(&output.stdout).lines() {
        let path = Path::new(file);
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let folder =
            path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
        if path.extension().is_some_and(|extension| extension == "rs")
            && let Some(name) = EMPTY_NAMES.iter().find(|name| **name == stem || **name == folder)
        {
            faults.push(format!("{file}: \"{name}\" says nothing about what is inside"));
        }
        let Ok(text) = fs::read_to_string(workspace().join(path)) else { continue };
        let lines = text.lines().count();
        let is_source =
            path.extension().is_some_and(|extension| extension == "rs") && !shape::is_generated(path);
        if is_source && lines > LONGEST {
            faults.push(format!("{file}: {lines} lines; more than {LONGEST} should be two files"));
        }
        if !file.ends_with("tidy/mod.rs")
            && ["/root/", "/work/", "/home/"].iter().any(|place| text.contains(place))
        {
            faults.push(format!("{file}: names a folder of somebody's machine"));
        }
    }
    Ok(())
}

/// Macros and methods that print text without escaping it for the terminal.
const PRINTING: [&str; 9] = [
    "print!(",
    "println!(",
    "eprint!(",
    "eprintln!(",
    "dbg!(",
    "write!(",
    "writeln!(",
    "io::stdout().write",
    "io::stderr().write",
];

/// Files of the command line in which [`PRINTING`] is allowed: types that format themselves, pages for files, quotes.
const NOT_FOR_TERMINALS: [&str; 5] = [
    "crates/taffrail/src/docs.rs",
    "crates/taffrail/src/completion/mod.rs",
    "crates/taffrail/src/commands/status/print.rs",
    "crates/taffrail/src/commands/wait/junit.rs",
    "crates/taffrail/src/commands/demo/world/template.rs",
];

/// Adds a fault for each line of the command line that prints by itself: text must go through the macros of
/// `output::text`, which escape what comes from outside.
fn printing(faults: &mut Vec<String>) -> Result<()> {
    let folder = workspace().join("crates/taffrail/src");
    let mut folders = vec![folder.clone()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("cannot read {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.extend(Some(path).filter(|path| *path != folder.join("output")));
                continue;
            }
            let file = path.strip_prefix(workspace()).unwrap_or(&path).display().to_string();
            if NOT_FOR_TERMINALS.contains(&file.as_str()) {
                continue;
            }
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {file}"))?;
            faults.extend(raw(&text).map(|(line, what)| {
                format!("{file}:{line}: `{what}` prints text as it is; `say!`, `phrase!` and `emit!` of output::text ask for it")
            }));
        }
    }
    Ok(())
}

/// Returns the lines of a file, by number from 1, that use [`PRINTING`], up to the file's tests.
fn raw(text: &str) -> impl Iterator<Item = (usize, &'static str)> + '_ {
    let code = text.lines().enumerate().take_while(|(_, line)| *line != "mod tests {");
    code.filter_map(|(at, line)| {
        let line = line.trim_start();
        let found = PRINTING.iter().find(|what| {
            line.match_indices(**what).any(|(place, _)| {
                let before = line[..place].chars().next_back();
                let own_text = ["write!(f,", "writeln!(f,"].iter().any(|it| line[place..].starts_with(it));
                !own_text && !before.is_some_and(|it| it.is_alphanumeric() || it == '_')
            })
        });
        found.filter(|_| !line.starts_with("//")).map(|what| (at + 1, what.trim_end_matches('(')))
    })
}

/// Adds a fault for each pure crate that does not compile for a target without files and clocks. Prints that it is
/// skipped if the target is not installed.
fn pure_crates(faults: &mut Vec<String>) -> Result<()> {
    const TARGET: &str = "wasm32-unknown-unknown";

    let sysroot =
        Command::new("rustc").args(["--print", "sysroot"]).output().context("cannot run `rustc`")?;
    let sysroot = String::from_utf8_lossy(&sysroot.stdout).trim().to_owned();
    if !Path::new(&sysroot).join("lib/rustlib").join(TARGET).is_dir() {
        println!(
            "skipped: the check that pure crates compile for {TARGET}, because the target is missing (rustup target add {TARGET})"
        );
        return Ok(());
    }
    for border in BORDERS.iter().filter(|border| border.pure) {
        let arguments = [
            "check",
            "--quiet",
            "--locked",
            "--target",
            TARGET,
            "--no-default-features",
            "--package",
            border.name,
        ];
        if let Err(error) = cargo(&arguments) {
            faults.push(format!("{} does not compile for {TARGET}: {error:#}", border.name));
        }
    }
    Ok(())
}

/// Adds a fault for each crate with features that has errors or warnings without them.
fn without_features(faults: &mut Vec<String>) {
    for name in ["taffrail-rules", "taffrail"] {
        let arguments = ["clippy", "--quiet", "--locked", "--no-default-features", "--package", name];
        if let Err(error) = cargo(&[&arguments[..], &["--", "--deny", "warnings"]].concat()) {
            faults.push(format!("{name} does not compile without its features: {error:#}"));
        }
    }
}

/// Returns the standard output of a cargo command; an error if it fails.
fn cargo(arguments: &[&str]) -> Result<Vec<u8>> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program)
        .args(arguments)
        .current_dir(workspace())
        .stdin(Stdio::null())
        .output()
        .context("cannot run `cargo`")?;
    if !output.status.success() {
        bail!("`cargo {}` failed:\n{}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{built_with_testkit, raw};

    #[test]
    fn only_tests_and_tasks_are_built_with_testkit() {
        let package = |name: &str, kind: Option<&str>| json!({"name": name, "dependencies": [{"name": "taffrail-testkit", "kind": kind}]});
        let packages = [
            package("taffrail-apps", Some("dev")),
            package("taffrail-cluster", None),
            package("taffrail-rules", Some("build")),
            package("xtask", None),
            json!({"name": "taffrail-object", "dependencies": [{"name": "serde_json", "kind": null}]}),
        ];
        assert_eq!(built_with_testkit(&packages).collect::<Vec<_>>(), ["taffrail-cluster", "taffrail-rules"]);
    }

    #[test]
    fn raw_printing_is_found_and_formatting_is_not() {
        let text = "fn a() {\n    writeln!(out, \"{name}\")?;\n    write!(f, \"a\")\n    // println!(\n    let x = say!(out);\n\
                    println!(\"a\");\n    std::io::stdout().write_all(a)\n}\n#[cfg(test)]\nmod tests {\n print!();\n}\n";
        assert_eq!(
            raw(text).collect::<Vec<_>>(),
            [(2, "writeln!"), (6, "println!"), (7, "io::stdout().write")]
        );
    }
}
