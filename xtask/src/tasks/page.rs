//! `cargo xtask page`: runs the tests of the page.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use taffrail_testkit::binary::{self, Profile, workspace};

/// Run the tests of the page against a real hub of the simulated fleet, in Chromium: all views in each size and theme,
/// each state of an answer by a real fault, and the ten tasks by keys. Installs npm packages into web/, and Chromium where that is Debian's and the user is root.
#[derive(Args)]
pub(crate) struct Page {
    /// Look at each view in two of the six sizes and themes, and leave out the states and the ten tasks
    #[arg(long)]
    pub(crate) quick: bool,

    /// The number of fleets on which the ten tasks are done
    #[arg(long, default_value_t = 1)]
    pub(crate) seeds: u32,

    /// Do each of the ten tasks with views that hide its answer: then it must fail
    #[arg(long, hide = true)]
    pub(crate) withhold: bool,
}

/// The path at which Debian installs Chromium; the variable `CHROMIUM` names another one.
const CHROMIUM: &str = "/usr/bin/chromium";

impl Page {
    pub(crate) fn run(self) -> Result<()> {
        if let Some(why) = missing() {
            // Nobody reads there what was skipped.
            if std::env::var("CI").is_ok_and(|value| value == "true") {
                bail!("cannot test the page: {why}");
            }
            println!("skipped: the tests of the page, because {why}");
            return Ok(());
        }
        let web = workspace().join("web");
        install(&web)?;
        let binary = binary::build(Profile::Dev)?;
        npm(&web, &["run", "check"], &[])?;
        npm(&web, &["run", "unit"], &[])?;
        let binary = binary.display().to_string();
        let views = if self.quick { "few" } else { "all" };
        npm(&web, &["test"], &[("TAFFRAIL_BIN", &binary), ("VIEWS", views)])?;
        match self.quick {
            true => Ok(()),
            false => {
                npm(&web, &["run", "states"], &[("TAFFRAIL_BIN", &binary)])?;
                let (seeds, withhold) = (self.seeds.to_string(), u8::from(self.withhold).to_string());
                let variables = [("TAFFRAIL_BIN", &*binary), ("SEEDS", &seeds), ("WITHHOLD", &withhold)];
                npm(&web, &["run", "tasks"], &variables)
            }
        }
    }
}

/// Returns the reason why the page cannot be tested here, with the way to change that; `None` if it can be.
pub(super) fn missing() -> Option<String> {
    if !runs("node") || !runs("npm") {
        return Some("Node and npm are not installed (nodejs.org, version 20 or later)".to_owned());
    }
    let chromium = std::env::var_os("CHROMIUM").map_or_else(|| PathBuf::from(CHROMIUM), PathBuf::from);
    if chromium.exists() || install_chromium() && chromium.exists() {
        return None;
    }
    Some(format!(
        "there is no {} (apt-get install chromium, or set CHROMIUM to another one)",
        chromium.display()
    ))
}

fn runs(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Installs Debian's Chromium, if the user is root on a system with apt-get; returns true if that succeeded.
fn install_chromium() -> bool {
    if !rustix::process::geteuid().is_root() || !runs("apt-get") {
        return false;
    }
    println!("installing Debian's Chromium");
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command
            // Without a network it must not wait for long.
            .args(["-o", "Acquire::http::Timeout=30", "-o", "Acquire::Retries=1"])
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    // The lists of packages may be old, or missing.
    let install = ["install", "--yes", "--no-install-recommends", "chromium"];
    apt(&install) || apt(&["update"]) && apt(&install)
}

/// Installs the packages of the lock file into `web/`, unless they are there.
pub(super) fn install(web: &Path) -> Result<()> {
    let time = |path: &str| std::fs::metadata(web.join(path)).and_then(|file| file.modified()).ok();
    let (locked, installed) = (time("package-lock.json"), time("node_modules/.package-lock.json"));
    match installed.is_some() && installed >= locked {
        true => Ok(()),
        false => npm(web, &["ci", "--ignore-scripts", "--no-audit", "--no-fund"], &[]),
    }
}

fn npm(web: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let mut command = Command::new("npm");
    command.arg("--silent").args(arguments).envs(environment.iter().copied()).current_dir(web);
    let status = command.stdin(Stdio::null()).status().context("cannot run `npm`")?;
    if !status.success() {
        bail!("`npm {}` in web/ ended with {status}", arguments.join(" "));
    }
    Ok(())
}
