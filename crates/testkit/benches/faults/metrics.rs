//! The way by which a hub knows a cluster from metrics alone: an agent tells them, the real Prometheus scrapes it, and the
//! hub asks that.

use std::collections::HashMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::{Signal, kill_process};
use taffrail_testkit::exchange;
use taffrail_testkit::prometheus::Prometheus;
use taffrail_testkit::proxy::{Line, Proxy};
use tokio::runtime::Handle;

/// The time in which Prometheus answers the replayer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A trouble on the way of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricsTrouble {
    /// Prometheus is stopped.
    Stopped,
    /// Prometheus is killed, and started again later.
    Killed,
    /// All bytes between it and the hub are swallowed.
    Swallowed,
    /// The hub's connections to it are closed.
    Closed,
    /// Its answers are those of earlier, as a cache gives them.
    Old,
    /// All bytes between it and the agent are swallowed.
    Unscraped,
}

/// A Prometheus, with what stands before and behind it.
pub(crate) struct Metrics {
    prometheus: Prometheus,
    /// Between the hub and the replayer.
    line: Proxy,
    /// Between Prometheus and the agent.
    scraped: Proxy,
    replayer: Arc<Replayer>,
}

impl Metrics {
    /// Starts a Prometheus that scrapes the agent which tells its metrics at `agent`.
    pub(crate) fn start(runtime: &Handle, agent: SocketAddr) -> Result<Metrics> {
        let scraped = runtime.block_on(Proxy::open(agent))?;
        let prometheus = Prometheus::start(&format!(
            "global: {{scrape_interval: 5s, scrape_timeout: 4s}}\nscrape_configs:\n- job_name: agents\n  \
             static_configs: [{{targets: ['{}']}}]\n",
            scraped.address
        ))?;
        let replayer = Arc::new(Replayer::new(prometheus.address()));
        let line = runtime.block_on(Proxy::open(Arc::clone(&replayer).listen()?))?;
        Ok(Metrics { prometheus, line, scraped, replayer })
    }

    /// Writes the file for `hub serve --metrics-from`, and returns its path.
    pub(crate) fn write_config(&self, folder: &Path) -> Result<PathBuf> {
        let file = folder.join("metrics.yaml");
        let server = format!("{{name: prom, url: 'http://{}', families: [taffrail]}}", self.line.address);
        fs::write(&file, format!("servers:\n- {server}\n"))
            .with_context(|| format!("cannot write {}", file.display()))?;
        Ok(file)
    }

    pub(crate) fn trouble(&mut self, trouble: MetricsTrouble) -> Result<()> {
        match trouble {
            MetricsTrouble::Stopped => kill_process(self.prometheus.pid(), Signal::STOP)?,
            MetricsTrouble::Killed => self.prometheus.kill(),
            MetricsTrouble::Swallowed => self.line.set(Line::Dead),
            MetricsTrouble::Closed => self.line.set(Line::Closed),
            MetricsTrouble::Old => self.replayer.is_old.store(true, Ordering::Relaxed),
            MetricsTrouble::Unscraped => self.scraped.set(Line::Dead),
        }
        Ok(())
    }

    pub(crate) fn heal(&mut self, trouble: MetricsTrouble) -> Result<()> {
        match trouble {
            MetricsTrouble::Stopped => kill_process(self.prometheus.pid(), Signal::CONT)?,
            MetricsTrouble::Killed => self.prometheus.restart()?,
            MetricsTrouble::Swallowed | MetricsTrouble::Closed => self.line.set(Line::Open),
            MetricsTrouble::Old => self.replayer.is_old.store(false, Ordering::Relaxed),
            MetricsTrouble::Unscraped => self.scraped.set(Line::Open),
        }
        Ok(())
    }
}

/// Answers queries by Prometheus, or with the answer of earlier to the same query.
struct Replayer {
    prometheus: SocketAddr,
    is_old: AtomicBool,
    /// The last answers by path and query, without the time that the query is about.
    answers: Mutex<HashMap<String, String>>,
}

impl Replayer {
    fn new(prometheus: SocketAddr) -> Replayer {
        Replayer { prometheus, is_old: AtomicBool::new(false), answers: Mutex::default() }
    }

    /// Begins to answer at the address that is returned, until this process ends.
    fn listen(self: Arc<Self>) -> Result<SocketAddr> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let replayer = Arc::clone(&self);
                // Without an answer the hub says so.
                std::thread::spawn(move || drop(replayer.answer(stream)));
            }
        });
        Ok(address)
    }

    /// Answers one request, and closes the connection.
    fn answer(&self, mut stream: TcpStream) -> Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let (mut read, mut more) = (String::new(), [0; 4096]);
        let (request, body) = loop {
            let length = stream.read(&mut more)?;
            anyhow::ensure!(length > 0, "the hub closed its connection");
            read.push_str(std::str::from_utf8(&more[..length])?);
            let Some((head, body)) = read.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            });
            if body.len() >= length.unwrap_or(0) {
                let request = head.lines().next().context("no request")?;
                break (request.trim_end_matches(" HTTP/1.1").to_owned(), body.to_owned());
            }
        };
        let parts = body.split('&').filter(|part| !part.starts_with("time="));
        let key = format!("{request} {}", parts.collect::<Vec<_>>().join("&"));
        let answers = || self.answers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let earlier = answers().get(&key).cloned().filter(|_| self.is_old.load(Ordering::Relaxed));
        let (status, answer) = match earlier {
            Some(answer) => (200, answer),
            None => {
                let form = "Content-Type: application/x-www-form-urlencoded\r\n";
                exchange(self.prometheus, &request, form, &body, PATIENCE)?
            }
        };
        let head = format!("HTTP/1.1 {status} Told\r\nContent-Type: application/json\r\nConnection: close");
        write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{answer}", answer.len())?;
        if status == 200 {
            answers().insert(key, answer);
        }
        Ok(())
    }
}
