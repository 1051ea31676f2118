//! `taffrail demo`: simulates a fleet with faults that occur and heal, and shows it.

#[cfg(all(feature = "hub", feature = "agent"))]
mod agents;
#[cfg(feature = "hub")]
mod exporters;
#[cfg(feature = "hub")]
mod hub;
mod kubeconfig;
mod overview;
mod world;

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use futures::future::select_all;
use jiff::Timestamp;
use taffrail_api::question::{OverviewView, View as _};
use taffrail_apps::ReadQuery;
use taffrail_observe::{FleetWatcher, NO_EXTRA};
use taffrail_status::Trust;
use taffrail_status::assess::Budgets;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use super::overview::{Lines, News};
use crate::cli::{self, SourceArguments};
use crate::command_error::{CommandError, Exit};
use crate::output::answer::Console;
use crate::output::screen::Screen;
use crate::rule_source::RuleSource;
use crate::runtime::block_on;
use crate::source::{members, watch_request};
#[cfg(feature = "hub")]
use hub::DemoHub;
use kubeconfig::PrivateFile;
use overview::Overview;
use world::World;

/// Time limit for a response of a simulated cluster. A healthy one takes milliseconds, unless the machine is busy; an
/// unreachable one refuses at once.
const PATIENCE: Duration = Duration::from_secs(15);
/// Delay from the first change to the redraw, so that changes that come together are drawn together.
const SWARM: Duration = Duration::from_millis(150);
/// Minimum time between two redraws.
const PACE: Duration = Duration::from_millis(500);
/// Interval at which the view is computed again if nothing changed, because some verdicts change with time.
const JUDGE: Duration = Duration::from_secs(5);

/// Start a fleet of twelve simulated clusters in which things go wrong and heal, and watch it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail demo                                  run until Ctrl-C, which removes all of its files
  taffrail demo --kubeconfig demo.yaml           write the kubeconfig to a known place
  taffrail demo --skip 2m                        start two minutes into the round of faults
  taffrail demo | tee log                        print a line for each change instead of a screen

In another terminal, Taffrail and kubectl reach the same clusters with the kubeconfig that the demo names:
  export KUBECONFIG=…
  taffrail get apps --all-contexts
  taffrail explain shop --context eu-2
  kubectl --context eu-1 -n shop scale deployment web --replicas 5

The demo also runs a hub of these clusters, which keeps history while it runs, and prints the URL of its page, which
--hub takes, too:
  taffrail get apps --hub 'http://127.0.0.1:…/#…'
  taffrail history shop --hub 'http://127.0.0.1:…/#…'

The hub also has three clusters that the kubeconfig does not reach: agents report edge-1 and edge-2, and of vendor-1
only the metrics of its delivery tools are known:
  taffrail get clusters -o wide --hub 'http://127.0.0.1:…/#…'

Nothing leaves this machine: the API servers and the hub listen on 127.0.0.1, and no container runs: the API servers
only answer as if it did.

Exit codes: 0 it was ended; 2 wrong usage, such as --kubeconfig with a file that no demo wrote; 3 it could not be
started.")]
pub(crate) struct DemoArguments {
    /// Draw everything random, such as names and delays, from this seed; the same seed gives the same demo
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Write the kubeconfig of the simulated clusters to this new file, which is removed when the demo ends [default: a
    /// file in a private folder below $XDG_RUNTIME_DIR or the temporary folder]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Start as if the demo had run for this long already, such as 90s or 2m; one round of faults takes five minutes
    /// [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = cli::duration)]
    skip: Option<Duration>,

    /// Stop the simulated time at the start (see --skip): nothing happens, and no controller reacts
    #[arg(long, hide = true)]
    hold: bool,

    /// The Argo CDs and clusters whose own rules the user trusts, from the settings.
    #[arg(skip)]
    pub(crate) trust: Trust,
}

pub(crate) fn run(arguments: &DemoArguments, console: &Console) -> Result<Exit, CommandError> {
    block_on(show(arguments, console))??;
    // To be ended is how it ends well: an error would only worry whoever ran it through cargo.
    Ok(Exit::Yes)
}

/// The signals that end the demo, that the window was resized, and that the process is to stop (Ctrl-Z).
struct Signals {
    ends: [Signal; 3],
    resized: Signal,
    stopped: Signal,
}

/// A signal that the demo received: to end, that the window was resized, or to stop (Ctrl-Z).
enum Heard {
    End,
    Resized,
    Stopped,
}

impl Signals {
    fn listen() -> io::Result<Signals> {
        let stop = SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw());
        Ok(Signals {
            ends: [
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
            ],
            resized: signal(SignalKind::window_change())?,
            stopped: signal(stop)?,
        })
    }

    async fn next(&mut self) -> Heard {
        let ends = select_all(self.ends.iter_mut().map(|signal| Box::pin(signal.recv())));
        tokio::select! {
            _ = ends => Heard::End,
            _ = self.resized.recv() => Heard::Resized,
            _ = self.stopped.recv() => Heard::Stopped,
        }
    }

    /// Runs `work` to its end and returns its result; `None` if a signal that ends the demo comes before. Ignores other
    /// signals.
    async fn during<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Some(done),
                heard = self.next() => if matches!(heard, Heard::End) { return None },
            }
        }
    }
}

async fn show(arguments: &DemoArguments, console: &Console) -> Result<(), CommandError> {
    // From here on an end is heard, so that what is made is removed.
    let signals = Signals::listen().map_err(cannot_show)?;
    let file = PrivateFile::create(arguments.kubeconfig.as_deref())?;
    let mut running = Running::default();
    let shown = simulate(arguments, signals, &file, &mut running, console).await;
    // Before the files go in which the hub keeps what it knows.
    running.end().await;
    shown
}

/// The parts of the demo that write files, and so must end before these are removed.
#[derive(Default)]
struct Running {
    #[cfg(feature = "hub")]
    hub: Option<DemoHub>,
}

impl Running {
    async fn end(self) {
        #[cfg(feature = "hub")]
        if let Some(hub) = self.hub {
            hub.end().await;
        }
    }
}

/// Starts the simulated clusters and the hub, which is added to `running`, and shows them until a signal ends the demo.
async fn simulate(
    arguments: &DemoArguments,
    mut signals: Signals,
    file: &PrivateFile,
    running: &mut Running,
    console: &Console,
) -> Result<(), CommandError> {
    let mut view = View::open(file, console).map_err(cannot_show)?;
    view.begin().map_err(cannot_show)?;
    let world = World::start(arguments.seed, arguments.skip.unwrap_or_default(), arguments.hold).await;
    let world =
        world.map_err(|error| CommandError::unreadable("the demo cannot be started").with_source(&error))?;
    file.write(&world.kubeconfig())?;

    let source = SourceArguments::of_kubeconfig(file.path().to_owned(), PATIENCE);
    let source = SourceArguments { trust: arguments.trust.clone(), ..source };
    let mut follow = follow(&source).await?;
    if signals.during(follow.settle(NO_EXTRA)).await.is_none() {
        return Ok(());
    }
    #[cfg(feature = "hub")]
    if let Ok(hub) = DemoHub::start(&source, &world, file.hub_folder()).await {
        view.name_hub(&hub);
        running.hub = Some(hub);
    }
    #[cfg(not(feature = "hub"))]
    let Running {} = running;
    let mut news = News::new(&world.regions);
    look(&mut news, &mut follow);
    if let Err(error) = view.show(&news) {
        return ended(error);
    }

    let (mut judged, mut changed) = (Instant::now(), false);
    loop {
        // What is shown as seconds moves each second.
        let second = Instant::now() + Duration::from_secs(1);
        let due = if view.is_live() { second.min(judged + JUDGE) } else { judged + JUDGE };
        if !changed {
            tokio::select! {
                came = follow.next(due.saturating_duration_since(Instant::now())) => changed = came,
                heard = signals.next() => match heard {
                    Heard::End => return Ok(()),
                    Heard::Resized => {}
                    Heard::Stopped => view.stop().map_err(cannot_show)?,
                },
            }
        }
        let begun = Instant::now();
        if changed {
            let gathered = async {
                follow.rest(SWARM).await;
                follow.settle(NO_EXTRA).await;
            };
            if signals.during(gathered).await.is_none() {
                return Ok(());
            }
        }
        if changed || judged.elapsed() >= JUDGE {
            look(&mut news, &mut follow);
            judged = Instant::now();
        }
        if let Err(error) = view.show(&news) {
            return ended(error);
        }
        if std::mem::take(&mut changed) {
            match signals.during(follow.rest(PACE.saturating_sub(begun.elapsed()))).await {
                Some(more) => changed = more,
                None => return Ok(()),
            }
        }
    }
}

fn look(news: &mut News, follow: &mut FleetWatcher) {
    if let Ok(answer) = OverviewView::default().answer(follow.fleet()) {
        news.look(&answer);
    }
}

/// Converts an error of writing to stdout: returns `Ok` if stdout was closed, since that ends the demo without an
/// error.
fn ended(error: io::Error) -> Result<(), CommandError> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(cannot_show(error)),
    }
}

fn cannot_show(error: io::Error) -> CommandError {
    CommandError::unreadable("cannot print the demo to stdout").with_source(&error)
}

/// Starts to watch the simulated clusters through the kubeconfig, as any other command does.
async fn follow(source: &SourceArguments) -> Result<FleetWatcher, CommandError> {
    let rules = RuleSource::default().with_options(Budgets::default(), source.patience(), &source.trust);
    let request = watch_request(members(source)?, source, ReadQuery::default(), rules);
    Ok(FleetWatcher::start(request).await)
}

/// The output of the demo: a screen on a terminal, else lines.
enum View {
    Screen(Screen, Overview),
    /// One line per change, for an output that is not a terminal.
    Lines(Lines, Vec<String>, Console),
}

impl View {
    fn open(file: &PrivateFile, console: &Console) -> io::Result<View> {
        Ok(match Screen::open()? {
            Some(screen) => View::Screen(screen, Overview::new(file.path())),
            None => View::Lines(Lines::default(), overview::exports(file.path()), console.clone()),
        })
    }

    /// Adds the URL of the page, and the commands that ask the hub, to what the demo suggests to try.
    #[cfg(feature = "hub")]
    fn name_hub(&mut self, hub: &DemoHub) {
        match self {
            View::Screen(_, overview) => overview.name_hub(hub.page.clone(), hub.further.clone()),
            View::Lines(_, exports, _) => {
                let token = format!("export TAFFRAIL_HUB_TOKEN={}", hub.token);
                let command = format!("taffrail get apps --hub {}", hub.url);
                exports.extend([token, command, format!("# in a browser: {}", hub.page)]);
                exports.extend(overview::only_by_hub(&hub.further).map(|known| format!("# {known}")));
            }
        }
    }

    /// Shows on a screen that the fleet is starting; prints nothing in the form of lines.
    fn begin(&mut self) -> io::Result<()> {
        match self {
            View::Screen(screen, overview) => screen.draw(&overview.beginning()),
            View::Lines(..) => Ok(()),
        }
    }

    fn is_live(&self) -> bool {
        matches!(self, View::Screen(..))
    }

    fn show(&mut self, news: &News) -> io::Result<()> {
        match self {
            View::Screen(screen, overview) => {
                let (columns, rows) = screen.size();
                screen.draw(&overview.lines(news, Timestamp::now(), columns, rows))
            }
            View::Lines(lines, exports, console) => lines.show(overview::NAME, news, exports, console),
        }
    }

    fn stop(&mut self) -> io::Result<()> {
        match self {
            View::Screen(screen, _) => screen.stop(),
            View::Lines(..) => {
                Ok(rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?)
            }
        }
    }
}
