//! Go test suites of other projects, which test an API server from outside: they run from copies in the user's cache,
//! against a real server and against the simulation.
//!
//! The suite of server-side apply is a package of Kubernetes whose server starter is replaced; see `bench/peers/apply`.
//! The suite of Flux is the module `ssa`, which reads a kubeconfig by itself.

mod build;
mod report;

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::kube::Options;
pub use report::{Outcome, Report, Verdict};

/// A suite of Go tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// `test/integration/apiserver/apply` of Kubernetes, in the version of the control planes.
    Apply,
    /// `github.com/fluxcd/pkg/ssa`.
    Flux,
}

/// A kind of API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// kube-apiserver with etcd and without controllers.
    Real,
    /// A simulated cluster without controllers of workloads.
    Sim,
}

impl Server {
    /// Returns the word for the server in lists of expected failures and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Server::Real => "real",
            Server::Sim => "sim",
        }
    }
}

/// A test that is known not to pass, by a line of a list beside this module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The name of the Go function.
    pub test: &'static str,
    /// False if the test fails; true if it is left out, since it cannot run.
    pub left_out: bool,
    /// The reason, with the proof.
    pub reason: &'static str,
}

/// A suite that is built.
#[derive(Debug)]
pub struct Built {
    suite: Suite,
    program: PathBuf,
    folder: PathBuf,
    tests: Vec<String>,
}

impl Suite {
    /// Returns the name of the suite, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Suite::Apply => "apply",
            Suite::Flux => "flux",
        }
    }

    fn list(self) -> &'static str {
        match self {
            Suite::Apply => include_str!("apply.tsv"),
            Suite::Flux => include_str!("flux.tsv"),
        }
    }

    /// Lists the tests that do not pass on a server, with the reasons.
    ///
    /// # Errors
    /// If a line of the list is malformed.
    pub fn known(self, server: Server) -> Result<Vec<Known>> {
        let mut known = Vec::new();
        for line in self.list().lines().filter(|line| !line.starts_with('#')) {
            let malformed = || format!("the list of {} has a malformed line: {line}", self.name());
            let mut parts = line.splitn(4, '\t');
            let mut part = || parts.next().with_context(malformed);
            let (test, on, verdict, reason) = (part()?, part()?, part()?, part()?);
            if on == "both" || on == server.word() {
                known.push(Known { test, left_out: verdict == "left-out", reason });
            }
        }
        Ok(known)
    }

    /// Returns the options of a real control plane for the suites, with this name: an API server alone, with the
    /// arguments of Kubernetes' own tests, which have no controller that creates ServiceAccounts.
    pub fn control_plane(name: String) -> Options {
        Options {
            name,
            bare: 1,
            nodes: 0,
            flux_crds: false,
            flags: vec!["--disable-admission-plugins=ServiceAccount,TaintNodesByCondition".to_owned()],
            ..Options::default()
        }
    }

    /// Builds the suite, unless it is cached.
    ///
    /// # Errors
    /// If Go is missing, a module cannot be downloaded, or the tests do not compile.
    pub fn build(self) -> Result<Built> {
        let (program, folder) = match self {
            Suite::Apply => build::apply()?,
            Suite::Flux => build::flux()?,
        };
        let tests = build::tests(&folder)?;
        Ok(Built { suite: self, program, folder, tests })
    }
}

impl Built {
    /// Lists the names of the tests.
    pub fn tests(&self) -> &[String] {
        &self.tests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_failure_has_a_reason() {
        for suite in [Suite::Apply, Suite::Flux] {
            for server in [Server::Real, Server::Sim] {
                let known = suite.known(server).expect("the list is well formed");
                for known in known {
                    assert!(known.test.starts_with("Test") && known.reason.len() > 20, "{known:?}");
                }
            }
            let verdicts = suite.list().lines().filter(|line| !line.starts_with('#'));
            for line in verdicts {
                let parts: Vec<&str> = line.split('\t').collect();
                assert!(matches!(parts[1], "real" | "sim" | "both"), "{line}");
                assert!(matches!(parts[2], "fails" | "left-out"), "{line}");
            }
        }
    }
}
