//! Developer tasks: `cargo xtask <task>`.
#![expect(clippy::print_stdout, reason = "tasks answer on standard output")]

mod tasks;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Developer tasks of Taffrail.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Real Kubernetes control planes on this machine.
    #[command(subcommand)]
    Kube(tasks::kube::Kube),
    /// Start a control plane with example apps and show them with Taffrail.
    Try(tasks::tryout::Try),
    #[command(subcommand)]
    Bench(tasks::bench::Bench),
    #[command(subcommand)]
    Conformance(tasks::conformance::Conformance),
    Docs(tasks::docs::Docs),
    Fuzz(tasks::fuzz::Fuzz),
    Page(tasks::page::Page),
    Requests(tasks::requests::Requests),
    Test(tasks::test::Test),
    Tidy(tasks::tidy::Tidy),
    Truth(tasks::truth::Truth),
    Tui(tasks::tui::Tui),
    #[command(hide = true)]
    Measure(tasks::bench::Measure),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Kube(task) => task.run(),
        Task::Try(task) => task.run(),
        Task::Bench(task) => task.run(),
        Task::Conformance(task) => task.run(),
        Task::Docs(task) => task.run(),
        Task::Fuzz(task) => task.run(),
        Task::Page(task) => task.run(),
        Task::Requests(task) => task.run(),
        Task::Test(task) => task.run(),
        Task::Tidy(task) => task.run(),
        Task::Truth(task) => task.run(),
        Task::Tui(task) => task.run(),
        Task::Measure(task) => task.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without anyhow's own form, which adds a backtrace wherever RUST_BACKTRACE is set.
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
