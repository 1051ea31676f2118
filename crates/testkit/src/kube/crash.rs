//! Failures of the processes of a control plane: killing, restarting, pausing, and restoring an older store.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use super::state::ProcessRecord;
use super::{ControlPlane, launch, process};

impl ControlPlane {
    fn record(&self, context: &str, program: &str) -> Result<&ProcessRecord> {
        // The store belongs to no context.
        let of_it =
            |it: &&ProcessRecord| it.program == program && (it.context == context || it.context.is_empty());
        self.processes().iter().find(of_it).with_context(|| format!("{} runs no {program}", self.name()))
    }

    fn signal(&self, context: &str, program: &str, signal: Signal) -> Result<()> {
        let record = self.record(context, program)?;
        if !process::signal(record.pid, &record.program, &self.state.folder, signal)? {
            bail!("the process {program} of {} is gone, so it cannot be signalled", self.name());
        }
        Ok(())
    }

    /// Pauses a program of a cluster (`etcd`: of all clusters) until [`release`](ControlPlane::release): its sockets
    /// stay open but do not respond.
    pub fn hold_still(&self, context: &str, program: &str) -> Result<()> {
        self.signal(context, program, Signal::STOP)
    }

    /// Resumes a program of a cluster (`etcd`: of all clusters) that was paused.
    pub fn release(&self, context: &str, program: &str) -> Result<()> {
        self.signal(context, program, Signal::CONT)
    }

    /// Kills a program of a cluster (`etcd`: of all clusters), as a crash does. It stays down until
    /// [`restart`](ControlPlane::restart).
    pub fn kill(&self, context: &str, program: &str) -> Result<()> {
        let record = self.record(context, program)?;
        process::end(record.pid, &record.program, &self.state.folder).map(drop)
    }

    /// Kills a program of a cluster (`etcd`: of all clusters), if it runs, and starts it again with the same arguments;
    /// returns when it serves, or, for kwok, which serves nothing, at once.
    pub fn restart(&mut self, context: &str, program: &str) -> Result<()> {
        let ProcessRecord { context, program, arguments, log, .. } = self.relaunch(context, program)?;
        let port = match &*program {
            "etcd" => {
                arguments.iter().find_map(|it| it.strip_prefix("--listen-client-urls=http://127.0.0.1:"))
            }
            _ => arguments.iter().find_map(|it| it.strip_prefix("--secure-port=")),
        };
        let Some(port) = port else { return Ok(()) };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse()?));
        let serves = || {
            TcpStream::connect(address).is_ok()
                && (program != "kube-apiserver"
                    || self.kubectl(&context, &["get", "--raw", "/readyz"]).is_ok())
        };
        if launch::until(serves).is_err() {
            bail!(
                "{program} does not serve requests after its restart. Its log ends with:\n{}",
                process::log_tail(&log)
            );
        }
        Ok(())
    }

    /// Kills a program of a cluster (`etcd`: of all clusters), if it runs, and starts it again with the same arguments;
    /// returns its new process at once, whether or not it serves.
    pub fn relaunch(&mut self, context: &str, program: &str) -> Result<ProcessRecord> {
        self.kill(context, program)?;
        let ProcessRecord { context, program, arguments, log, .. } = self.record(context, program)?.clone();
        let child = launch::start(&self.programs, &self.state.folder, &program, &arguments, &log)?;
        let pid = child.id();
        if let Some(owned) = &mut self.owned {
            process::watch_over(&mut owned.guard, pid)?;
            owned.children.push(child);
        }
        let of_it = |it: &&mut ProcessRecord| it.context == context && it.program == program;
        if let Some(record) = self.state.processes.iter_mut().find(of_it) {
            record.pid = pid;
        }
        self.state.save()?;
        Ok(ProcessRecord { context, program, pid, arguments, log })
    }

    /// Restores a store that [`save_store`](ControlPlane::save_store) wrote, like a backup: stops everything and starts
    /// it again with the older data.
    pub fn restore_store(&mut self, from: &Path) -> Result<()> {
        let all: Vec<(String, String)> =
            self.processes().iter().map(|it| (it.context.clone(), it.program.clone())).collect();
        for (context, program) in all.iter().rev() {
            self.kill(context, program)?;
        }
        let data = self.state.folder.join("etcd");
        fs::remove_dir_all(&data).with_context(|| format!("cannot remove {}", data.display()))?;
        launch::copy(from, &data)?;
        all.iter().try_for_each(|(context, program)| self.restart(context, program))
    }
}
