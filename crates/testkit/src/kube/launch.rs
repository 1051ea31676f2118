//! Starts a control plane: the order, the parts that start in parallel, and the conditions of readiness.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::clients::{client, run};
use super::cluster::{self, Tokens};
use super::process::{self, Guard};
use super::programs::Programs;
use super::state::{self, Member, ProcessRecord, RunState};
use super::{Options, certificates, ports};

/// The maximum time that one part of a control plane may take to start, on a slow and busy machine.
const MAX_START_TIME: Duration = Duration::from_secs(90);
/// The interval at which a condition is polled that cannot be awaited, such as that another process listens.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The maximum number of attempts, each with other ports, if another process took the ports first; then starting
/// fails.
const MAX_PORT_ATTEMPTS: usize = 5;

/// A control plane that is being started.
pub(super) struct Launcher<'a> {
    programs: &'a Programs,
    options: &'a Options,
    folder: PathBuf,
    shared: Mutex<Shared>,
}

struct Shared {
    state: RunState,
    children: Vec<Child>,
    guard: Option<Guard>,
}

impl<'a> Launcher<'a> {
    pub(super) fn new(programs: &'a Programs, options: &'a Options, guard: Option<Guard>) -> Result<Self> {
        let folder = state::folder(&options.name)?;
        let logs = folder.join("logs");
        fs::create_dir_all(&logs).with_context(|| format!("cannot create {}", logs.display()))?;
        let kubeconfig = match &options.kubeconfig {
            None => folder.join("kubeconfig"),
            Some(file) => std::path::absolute(file)
                .with_context(|| format!("cannot make {} an absolute path", file.display()))?,
        };
        let state = RunState {
            name: options.name.clone(),
            ready: false,
            bare: options.bare,
            nodes: options.nodes,
            flux_crds: options.flux_crds,
            kubeconfig,
            reader_kubeconfig: folder.join("reader.kubeconfig"),
            members: Vec::new(),
            processes: Vec::new(),
            folder: folder.clone(),
        };
        state.save()?;
        Ok(Self {
            programs,
            options,
            folder,
            shared: Mutex::new(Shared { state, children: Vec::new(), guard }),
        })
    }

    /// Starts everything, and returns when it is ready. As many clusters as the machine has processors, but at least 2,
    /// start in parallel: more would all become ready only at the end, some of them after [`MAX_START_TIME`].
    pub(super) fn run(&self) -> Result<()> {
        let etcd = self.etcd()?;
        let next = &AtomicUsize::new(0);
        let clusters: Vec<Result<(Member, Tokens)>> = std::thread::scope(|scope| {
            let side_by_side = std::thread::available_parallelism().map_or(2, usize::from).max(2);
            let started: Vec<_> =
                (0..side_by_side).map(|_| scope.spawn(move || self.clusters(next, etcd))).collect();
            let mut clusters: Vec<_> = started
                .into_iter()
                .flat_map(|some| {
                    some.join().unwrap_or_else(|_| vec![(0, Err(anyhow!("starting a cluster panicked")))])
                })
                .collect();
            clusters.sort_by_key(|(index, _)| *index);
            clusters.into_iter().map(|(_, cluster)| cluster).collect()
        });
        let clusters: Vec<(Member, Tokens)> = clusters.into_iter().collect::<Result<_>>()?;

        let mut shared = self.shared();
        let admins: Vec<_> =
            clusters.iter().map(|(member, tokens)| (member, tokens.admin.as_str())).collect();
        write(&shared.state.kubeconfig, &cluster::kubeconfig(&admins)?)?;
        let readers: Vec<_> =
            clusters.iter().map(|(member, tokens)| (member, tokens.reader.as_str())).collect();
        write(&shared.state.reader_kubeconfig, &cluster::kubeconfig(&readers)?)?;
        shared.state.members = clusters.into_iter().map(|(member, _)| member).collect();
        shared.state.ready = true;
        shared.state.save()
    }

    /// Returns the state, the started processes, and the guard's process; `None` in its place if there is no guard.
    pub(super) fn finish(self) -> Result<(RunState, Vec<Child>, Option<Child>)> {
        let shared = self.shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((shared.state, shared.children, shared.guard.map(Guard::into_child)))
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts etcd, the store of all clusters, with the data of [`Options::store`] if that is set; returns its client
    /// port.
    fn etcd(&self) -> Result<u16> {
        let data = self.folder.join("etcd");
        if let Some(store) = &self.options.store {
            copy(store, &data)?;
        }
        let ports = self.listen("", "etcd", 2, |ports| {
            let (client, peer) = (ports[0], ports[1]);
            cluster::etcd(&data, client, peer, self.options.durable)
        })?;
        Ok(ports[0])
    }

    /// Starts one cluster after the other that no other thread has taken, until none is left or one fails.
    fn clusters(&self, next: &AtomicUsize, etcd: u16) -> Vec<(usize, Result<(Member, Tokens)>)> {
        let mut clusters = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= self.options.clusters {
                return clusters;
            }
            let bare = index + self.options.bare >= self.options.clusters;
            let cluster = self.cluster(&format!("kube-{}", index + 1), etcd, bare);
            let failed = cluster.is_err();
            clusters.push((index, cluster));
            if failed {
                return clusters;
            }
        }
    }

    /// Starts a cluster, from its certificates to ready nodes; a bare one has neither controllers nor nodes.
    fn cluster(&self, context: &str, etcd: u16, bare: bool) -> Result<(Member, Tokens)> {
        let folder = self.folder.join(context);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        certificates::write(&folder, context)?;
        let tokens = Tokens::write(&folder.join("tokens.csv"))?;
        let audit = if self.options.audited { cluster::audit(&folder)? } else { Vec::new() };
        let ports = self.listen(context, "kube-apiserver", 1, |ports| {
            let arguments = cluster::apiserver(&folder, context, etcd, ports[0]);
            [arguments, audit.clone(), self.options.flags.clone()].concat()
        })?;
        let member = Member {
            context: context.to_owned(),
            server: format!("https://127.0.0.1:{}", ports[0]),
            folder: folder.clone(),
        };
        let kubeconfig = folder.join("kubeconfig");
        write(&kubeconfig, &cluster::kubeconfig(&[(&member, &tokens.admin)])?)?;

        let kubectl = |arguments: &[&str], input: &str| {
            run(client(self.programs, "kubectl", &folder, &kubeconfig).args(arguments), input)
                .with_context(|| format!("cannot set up cluster {context}"))
        };
        let ready = || kubectl(&["get", "--raw", "/readyz"], "");
        until(|| ready().is_ok()).or_else(|()| {
            ready()
                .map(drop)
                .with_context(|| format!("cluster {context}: kube-apiserver did not become ready"))
        })?;
        if !bare {
            self.listen(context, "kube-controller-manager", 1, |ports| {
                cluster::controller_manager(&folder, ports[0])
            })?;
            self.listen(context, "kube-scheduler", 1, |ports| cluster::scheduler(&folder, ports[0]))?;
            self.spawn(context, "kwok", &cluster::kwok(&folder))?;
        }

        let nodes = if bare { 0 } else { self.options.nodes };
        if nodes > 0 {
            kubectl(&["create", "-f", "-"], &cluster::nodes(nodes))?;
        }
        if self.options.flux_crds {
            let file = super::source_folder().join("crds/flux.yaml");
            let file = file.display().to_string();
            kubectl(&["create", "-f", &file], "")?;
            kubectl(&["wait", "--for=condition=Established", "-f", &file, "--timeout=60s"], "")?;
        }
        if bare {
            // The API server creates the first namespaces by itself, a moment after it is ready.
            kubectl(&["wait", "--for=create", "namespace/default", "--timeout=60s"], "")?;
            return Ok((member, tokens));
        }
        kubectl(&["wait", "--for=create", "serviceaccount/default", "-n", "default", "--timeout=60s"], "")?;
        if nodes > 0 {
            kubectl(&["wait", "--for=condition=Ready", "node", "--all", "--timeout=60s"], "").with_context(
                || format!("kwok's log ends with:\n{}", process::log_tail(&self.log(context, "kwok"))),
            )?;
        }
        Ok((member, tokens))
    }

    fn log(&self, context: &str, program: &str) -> PathBuf {
        let name =
            if context.is_empty() { format!("{program}.log") } else { format!("{context}-{program}.log") };
        self.folder.join("logs").join(name)
    }

    /// Starts a program that listens on `count` free ports, and returns these once it accepts connections on the first;
    /// if another process took one of them meanwhile, tries others.
    fn listen(
        &self,
        context: &str,
        program: &str,
        count: usize,
        arguments: impl Fn(&[u16]) -> Vec<String>,
    ) -> Result<Vec<u16>> {
        for _ in 0..MAX_PORT_ATTEMPTS {
            let ports = ports::free(count)?;
            let pid = self.spawn(context, program, &arguments(&ports))?;
            let ended = || !process::is_ours(pid, program, &self.folder);
            let listens = || TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, ports[0]))).is_ok();
            let mut alive = true;
            let outcome = until(|| {
                alive = !ended();
                !alive || listens()
            });
            match outcome {
                // The process that responds may be another that took the port, so this one must be alive after the
                // response.
                Ok(()) if alive && !ended() => return Ok(ports),
                Ok(()) => {
                    let log = process::log_tail(&self.log(context, program));
                    if !log.contains("address already in use") {
                        bail!("{program} of {} ended at once. Its log ends with:\n{log}", shown(context));
                    }
                }
                Err(()) => bail!(
                    "{program} of {} does not listen after {} s. Its log ends with:\n{}",
                    shown(context),
                    MAX_START_TIME.as_secs(),
                    process::log_tail(&self.log(context, program))
                ),
            }
        }
        bail!(
            "cannot start {program} of {}: {MAX_PORT_ATTEMPTS} times another process took its port first",
            shown(context)
        )
    }

    /// Starts a program, adds it to the guard and the state file, and returns its process id.
    fn spawn(&self, context: &str, program: &str, arguments: &[String]) -> Result<u32> {
        let log = self.log(context, program);
        let child = start(self.programs, &self.folder, program, arguments, &log)?;
        let pid = child.id();
        let mut shared = self.shared();
        shared.children.push(child);
        if let Some(guard) = &mut shared.guard {
            guard.add(pid)?;
        }
        let (context, program) = (context.to_owned(), program.to_owned());
        let record = ProcessRecord { context, program, pid, arguments: arguments.to_vec(), log };
        shared
            .state
            .processes
            .retain(|other| other.context != record.context || other.program != record.program);
        shared.state.processes.push(record);
        shared.state.save()?;
        Ok(pid)
    }
}

fn shown(context: &str) -> &str {
    if context.is_empty() { "the control plane" } else { context }
}

/// Starts a program of the control plane, with `folder` as its working folder and its output appended to the file
/// `log`.
pub(super) fn start(
    programs: &Programs,
    folder: &Path,
    program: &str,
    arguments: &[String],
    log: &Path,
) -> Result<Child> {
    let mut command = Command::new(programs.path(program));
    // kwok would read a configuration in the home folder, and write one there.
    command.args(arguments).env("KWOK_WORKDIR", folder).current_dir(folder);
    process::spawn(&mut command, log)
}

/// Calls `is_so` every [`POLL_INTERVAL`] until it returns true; fails if it does not within [`MAX_START_TIME`].
pub(super) fn until(mut is_so: impl FnMut() -> bool) -> Result<(), ()> {
    let started = Instant::now();
    while !is_so() {
        if started.elapsed() > MAX_START_TIME {
            return Err(());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Copies a folder with all that it contains, and all permissions.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    let cannot = || format!("cannot copy {} to {}", from.display(), to.display());
    fs::create_dir_all(to).with_context(cannot)?;
    for entry in fs::read_dir(from).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        let target = to.join(entry.file_name());
        if entry.file_type().with_context(cannot)?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).with_context(cannot)?;
        }
    }
    // etcd refuses a folder that other users may read.
    fs::set_permissions(to, fs::metadata(from).with_context(cannot)?.permissions()).with_context(cannot)
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
