//! `cargo xtask requests`: sends a hub the requests that [schemathesis](https://schemathesis.io) makes of
//! `docs/openapi.json`, valid and damaged ones, and checks each answer.
//!
//! An answer must have a status, headers and a body that the document allows, none may be an error of the server, and a
//! damaged request must be refused. The hub follows the clusters of `taffrail demo`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;
use jiff::Timestamp;
use taffrail_testkit::binary::{self, Profile};
use taffrail_testkit::kube::cache;
use taffrail_testkit::running::{HubAccess, Running};

/// The version of schemathesis.
const VERSION: &str = "4.32.5";

/// The paths whose answers end only when the client closes the connection: schemathesis waits for the end of each.
const ENDLESS: [&str; 1] = ["/api/v1/stream"];

/// The checks that the document does not suffice for: whether a valid request succeeds. A schema cannot tell which
/// clusters and apps there are, how far history reaches back, and which texts are label selectors, cursors of this run
/// or lists of statuses; the hub rightly refuses others with 400 or 422.
const UNDECIDED: [&str; 1] = ["positive_data_acceptance"];

/// Send a hub requests that schemathesis makes of its OpenAPI document, valid and damaged ones, and check the answers.
#[derive(Args)]
pub(crate) struct Requests {
    /// Number of requests of each kind to each operation.
    #[arg(long, default_value_t = 300, value_name = "N")]
    examples: u32,
    /// Seed of the requests.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Use the unoptimised binary, which exists after a test run.
    #[arg(long)]
    dev: bool,
}

impl Requests {
    pub(crate) fn run(self) -> Result<()> {
        let schemathesis = install()?;
        let taffrail = binary::build(if self.dev { Profile::Dev } else { Profile::Release })?;
        let folder = tempfile::tempdir().context("cannot create a folder")?;
        let kubeconfig = folder.path().join("kubeconfig");
        let data = folder.path().join("data");
        let not_text = "the path of the temporary folder is not valid UTF-8";
        let (kubeconfig, data) = (kubeconfig.to_str().context(not_text)?, data.to_str().context(not_text)?);
        let mut demo = Command::new(&taffrail);
        demo.args(["demo", "--kubeconfig", kubeconfig]);
        let (_demo, ()) =
            Running::start(&mut demo, |line| line.starts_with("export KUBECONFIG=").then_some(()))?;
        let mut serve = Command::new(&taffrail);
        serve.args(["hub", "serve", "--all-contexts", "--kubeconfig", kubeconfig, "--data", data]);
        let (mut hub, HubAccess { url, token }) =
            Running::start(serve.args(["--listen", "127.0.0.1:0"]), HubAccess::find)?;
        let mut faults = Vec::new();
        for aim in [Aim::Anything, Aim::Present] {
            println!("{}", aim.about());
            let settings = folder.path().join("schemathesis.toml");
            fs::write(&settings, aim.settings()).context("cannot write the settings of schemathesis")?;
            let mut command = Command::new(&schemathesis);
            command
                .arg("--config-file")
                .arg(&settings)
                .arg("run")
                .arg(binary::workspace().join("docs/openapi.json"))
                .args(["--url", &url])
                .args(["--header", &format!("Authorization: Bearer {token}")])
                // As a client that has a time of its own. Without it the hub waits for a cluster of the demo that fell
                // silent almost until its own limit, after which it answers with 503.
                .args(["--header", "Prefer: wait=5"])
                .args(["--max-examples", &self.examples.to_string(), "--seed", &self.seed.to_string()])
                .args(["--generation-database", "none", "--continue-on-failure"])
                // More than the ten seconds after which the hub refuses.
                .args(["--request-timeout", "30"])
                .args(["--exclude-checks", &UNDECIDED.join(",")])
                .args(aim.arguments())
                .stdin(Stdio::null())
                // It keeps what it learns of requests in the working directory.
                .current_dir(folder.path());
            for path in ENDLESS {
                command.args(["--exclude-path", path]);
            }
            let status = command.status().context("cannot run schemathesis")?;
            ensure!(hub.is_running()?, "the hub ended");
            if !status.success() {
                faults.push(format!("{} ({status})", aim.about()));
            }
        }
        ensure!(faults.is_empty(), "schemathesis found faults: {}", faults.join("; "));
        Ok(())
    }
}

/// The names and times in requests.
#[derive(Clone, Copy)]
enum Aim {
    /// Any text, valid or damaged.
    Anything,
    /// An app, a cluster and a past time that the hub knows: what any text never names.
    Present,
}

impl Aim {
    fn about(self) -> &'static str {
        match self {
            Aim::Anything => "requests that name anything",
            Aim::Present => "requests that name what is there",
        }
    }

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Aim::Anything => &[],
            Aim::Present => &["--mode", "positive", "--phases", "fuzzing"],
        }
    }

    /// Returns the settings of schemathesis, as TOML.
    fn settings(self) -> String {
        match self {
            Aim::Anything => String::new(),
            // A warning says that an operation never answered for what is there.
            Aim::Present => format!(
                "[warnings]\nfail-on = [\"missing_test_data\"]\n\n[parameters]\n\"path.cluster\" = \"eu-1\"\n\
                 \"path.delivery\" = \"ks\"\n\"path.namespace\" = \"flux-system\"\n\"path.name\" = \"shop\"\n\
                 \"query.home\" = \"eu-1\"\n\"query.at\" = \"{now}\"\n\"query.to\" = \"{now}\"\n\
                 \"query.from\" = \"2026-01-01T00:00:00Z\"\n\"query.status\" = \"!Unknown\"\n\
                 \"query.sync\" = \"!Failed\"\n\"query.selector\" = \"!none\"\n\"query.delivery\" = [\"ks\"]\n",
                now = Timestamp::now(),
            ),
        }
    }
}

/// Installs schemathesis in the user's cache, unless it is there, and returns its path.
fn install() -> Result<PathBuf> {
    let folder = cache()?.join(format!("schemathesis-{VERSION}"));
    let program = folder.join("bin/st");
    if program.is_file() {
        return Ok(program);
    }
    let missing = "install Python 3 with venv and pip (python.org), by which schemathesis is installed";
    let run = |command: &mut Command| -> Result<()> {
        let status = command.stdin(Stdio::null()).status().context(missing)?;
        ensure!(status.success(), "{command:?} ended with {status}: {missing}");
        Ok(())
    };
    let _ = fs::remove_dir_all(&folder);
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let package = format!("schemathesis=={VERSION}");
    run(Command::new(folder.join("bin/pip")).args(["install", "--quiet", &package]))?;
    Ok(program)
}
