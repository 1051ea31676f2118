//! `cargo xtask tui`: does the ten tasks of a person who is called at night in the terminal UI, by keys alone.
//!
//! A hub follows the fleet of `taffrail demo`; `taffrail tui` asks it on a terminal of 120 columns and 40 rows. What the
//! screen says is compared with what the hub's API says. `web/tests/tasks.test.mjs` does the same tasks on the page.

mod person;
mod truth;
mod work;

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use taffrail_testkit::binary::{self, Profile};
use taffrail_testkit::hub::Hub;
use taffrail_testkit::running::Running;

use person::{NotShown, Person};
use work::{Night, TASKS, Task};

/// Do the ten tasks of a person who is called at night in the terminal UI, by keys alone, on simulated fleets; print the
/// presses and milliseconds of each.
#[derive(Args)]
pub(crate) struct Tui {
    /// Number of fleets on which the tasks are done
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// Do each task once for each of its answers, with the lines of the screen blank that hold the answer: then it must
    /// fail
    #[arg(long, hide = true)]
    withhold: bool,

    /// Do only the tasks with these numbers
    #[arg(long, hide = true, value_delimiter = ',')]
    only: Vec<u32>,
}

/// The most key presses that a task may take.
const MOST: u32 = 20;

impl Tui {
    pub(crate) fn run(self) -> Result<()> {
        let program = binary::build(Profile::Dev)?;
        for seed in 1..=self.seeds {
            println!("seed {seed}");
            self.night(&program, seed).with_context(|| format!("seed {seed}"))?;
        }
        Ok(())
    }

    /// Does the tasks on the fleet of `seed`.
    fn night(&self, program: &Path, seed: u64) -> Result<()> {
        let folder = tempfile::tempdir().context("cannot create a folder")?;
        let kubeconfig = folder.path().join("kubeconfig");
        let of = |arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).env("XDG_CONFIG_HOME", folder.path());
            command
        };
        let mut demo = of(&["demo", "--skip", "20s", "--seed", &seed.to_string(), "--kubeconfig"]);
        demo.arg(&kubeconfig);
        let (_demo, ()) =
            Running::start(&mut demo, |line| line.starts_with("export KUBECONFIG=").then_some(()))?;
        let mut serve = of(&["hub", "serve", "--all-contexts", "--listen", "127.0.0.1:0"]);
        serve.arg("--kubeconfig").arg(&kubeconfig).arg("--data").arg(folder.path().join("data"));
        let hub = Hub::start(&mut serve)?;
        let (address, token) = hub.access();
        let mut tui = of(&["tui", "--hub", &format!("http://{address}")]);
        tui.env("TAFFRAIL_HUB_TOKEN", token);
        let person = Person::start(tui)?;
        let mut night = Night { person, hub };
        let mut passed = Vec::new();
        for task in TASKS.iter().filter(|task| self.only.is_empty() || self.only.contains(&task.number)) {
            match self.withhold {
                false => do_task(task, &mut night)?,
                true => withhold(task, &mut night, &mut passed)?,
            }
        }
        ensure!(passed.is_empty(), "passed without their answers: {}", passed.join(", "));
        Ok(())
    }
}

/// Does a task, and prints its cost.
fn do_task(task: &Task, night: &mut Night) -> Result<()> {
    let named = || format!("task {} ({})", task.number, task.name);
    let wanted = (task.prepare)(night).with_context(named)?;
    night.person.begin().with_context(named)?;
    let begun = Instant::now();
    (task.work)(night, &wanted).with_context(named)?;
    let (presses, millis) = (night.person.presses, begun.elapsed().as_millis());
    println!("  {:>2} {:58} {presses:>2} presses, {millis:>6} ms", task.number, task.name);
    ensure!(presses <= MOST, "{} took {presses} presses, more than {MOST}", named());
    Ok(())
}

/// Does a task with its first answer withheld, with its second one, and so on, until there are no more. Adds it to
/// `passed` if it does not fail each time, and for want of that answer.
fn withhold(task: &Task, night: &mut Night, passed: &mut Vec<String>) -> Result<()> {
    for number in 1.. {
        let wanted = (task.prepare)(night)?;
        night.person.withheld = None;
        night.person.begin()?;
        night.person.withheld = Some(number);
        let end = (task.work)(night, &wanted);
        let answers = night.person.answers;
        night.person.withheld = None;
        match end {
            Err(error) if answers == number && error.downcast_ref::<NotShown>().is_some() => {
                println!("  {:>2} {:58} fails without answer {number}", task.number, task.name);
            }
            Err(error) => return Err(error.context(format!("task {} fails for another reason", task.number))),
            Ok(()) if answers >= number => passed.push(format!("task {}, answer {number}", task.number)),
            Ok(()) => break,
        }
    }
    Ok(())
}
