//! The control plane, the binary, and the rows that it prints.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use taffrail_testkit::binary::{self, Profile};
use taffrail_testkit::kube::{ControlPlane, Options, Programs};

/// The first of the two clusters, on which tests work unless they name another.
pub(crate) const CLUSTER: &str = "kube-1";

/// An environment variable that names a running control plane (`cargo xtask kube up --clusters 2`). Tests use it in
/// place of one of their own, and leave their objects there for inspection.
const KEEP: &str = "TAFFRAIL_E2E_KEEP";

/// Returns the control plane of all scenarios; `None`, after a message, if it cannot be started.
pub(crate) fn plane() -> Option<Arc<ControlPlane>> {
    static PLANE: OnceLock<Arc<ControlPlane>> = OnceLock::new();
    if unavailable() {
        return None;
    }
    let plane = PLANE.get_or_init(|| {
        if let Ok(name) = std::env::var(KEEP) {
            let found = ControlPlane::find(&name).unwrap_or_else(|error| panic!("{error:#}"));
            let found = found.unwrap_or_else(|| panic!("{KEEP}: no control plane {name} runs"));
            return Arc::new(found);
        }
        let name = format!("e2e-{}", std::process::id());
        let options = Options { name, clusters: 2, nodes: 3, ..Options::default() };
        Arc::new(ControlPlane::start(&options).unwrap_or_else(|error| panic!("{error:#}")))
    });
    Some(Arc::clone(plane))
}

/// Returns true, after a message, if no control plane can be started here.
pub(crate) fn unavailable() -> bool {
    let Some(why) = Programs::unavailable().expect("the cache can be looked at") else { return false };
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // Written past the test runner's capture: a skipped test must not look as if it had passed.
    let _ = io::stderr().write_all(format!("{test}: skipped: {why}\n").as_bytes());
    true
}

/// The result of a run of the binary.
pub(crate) struct Answer {
    command: String,
    /// The exit code.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "$ {}\n{}{}(exit code {})", self.command, self.stdout, self.stderr, self.code)
    }
}

/// Returns the binary of this checkout, built once.
pub(crate) fn built() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| binary::build(Profile::Dev).unwrap_or_else(|error| panic!("{error:#}")))
}

/// Runs the binary with this kubeconfig and these arguments, without colour and with a timeout of 60 s, and returns its
/// exit code and output.
pub(crate) fn run(kubeconfig: &OsStr, arguments: &[&str]) -> Answer {
    let binary = built();
    let output = Command::new(binary)
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .env("NO_COLOR", "1")
        // Correctness is asserted here, not speed: a busy machine may take its time.
        .env("TAFFRAIL_TIMEOUT", "60s")
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{} cannot be run: {error}", binary.display()));
    Answer {
        command: format!("taffrail {}", arguments.join(" ")),
        code: output.status.code().expect("it ended by itself"),
        stdout: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
    }
}

/// A list of apps as JSON, with the run that printed it.
pub(crate) struct Apps {
    answer: Answer,
    list: Value,
}

impl Apps {
    /// Parses the output of `get apps -o json`.
    pub(crate) fn read(answer: Answer) -> Apps {
        let list: Value =
            serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error} in\n{answer}"));
        assert_eq!(list["apiVersion"], "cli.taffrail.dev/v1alpha1", "{answer}");
        assert_eq!(list["kind"], "AppList", "{answer}");
        Apps { answer, list }
    }

    /// Returns the exit code.
    pub(crate) fn code(&self) -> i32 {
        self.answer.code
    }

    /// Returns the rows of all apps.
    pub(crate) fn rows(&self) -> &[Value] {
        self.list["items"].as_array().unwrap_or_else(|| panic!("no items in\n{self}"))
    }

    /// Returns the entries of `errors`: the scopes that could not be read.
    pub(crate) fn errors(&self) -> &[Value] {
        self.list["errors"].as_array().unwrap_or_else(|| panic!("no errors in\n{self}"))
    }

    /// Returns the row of this app on this cluster; fails unless there is exactly one.
    pub(crate) fn row(&self, cluster: &str, delivery: &str, namespace: &str, name: &str) -> Row<'_> {
        let found: Vec<&Value> = self
            .rows()
            .iter()
            .filter(|row| {
                row["cluster"] == cluster
                    && row["delivery"] == delivery
                    && row["namespace"] == namespace
                    && row["name"] == name
            })
            .collect();
        assert_eq!(
            found.len(),
            1,
            "{found:?}: want one row {cluster} {delivery} {namespace}/{name} in\n{self}"
        );
        Row { apps: self, row: found[0] }
    }
}

impl fmt::Display for Apps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.answer.fmt(f)
    }
}

/// A row, with its list for the message of a failed assertion.
pub(crate) struct Row<'a> {
    apps: &'a Apps,
    row: &'a Value,
}

impl Row<'_> {
    /// Asserts the value of the field at this JSON pointer.
    #[track_caller]
    pub(crate) fn is(&self, pointer: &str, want: impl Into<Value>) -> &Self {
        let found = self.row.pointer(pointer).unwrap_or(&Value::Null);
        assert_eq!(*found, want.into(), "{pointer} of {} in\n{}", self.row, self.apps);
        self
    }

    /// Asserts that the field at this JSON pointer is a text that contains `part`.
    #[track_caller]
    pub(crate) fn has(&self, pointer: &str, part: &str) -> &Self {
        let found = self.row.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        assert!(found.contains(part), "{pointer} of {} has no {part:?} in\n{}", self.row, self.apps);
        self
    }

    /// Asserts that this object is the `worst` of the row.
    #[track_caller]
    pub(crate) fn speaks(&self, group: &str, kind: &str, namespace: &str, name: &str) -> &Self {
        self.is("/worst/group", group)
            .is("/worst/kind", kind)
            .is("/worst/namespace", namespace)
            .is("/worst/name", name)
    }

    /// Returns the text at this JSON pointer of the row; empty if there is none.
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.row.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
}
