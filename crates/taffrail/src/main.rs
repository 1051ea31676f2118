//! The Taffrail command line: what runs in your clusters, and why not where it does not.

mod cli;
mod commands;
mod complaint;
mod input;
mod output;
mod source;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};

/// Views of thousands of objects are made of small strings: with the allocator of glibc they take half as long again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::Explain(arguments) => commands::explain::run(&arguments),
        Command::Get(arguments) => commands::get::run(&arguments),
        Command::App(arguments) => commands::app::run(&arguments),
        Command::Tree(arguments) => commands::tree::run(&arguments),
        Command::Events(arguments) => commands::events::run(&arguments),
        Command::Trust(arguments) => commands::trust::run(&arguments),
        Command::Status(arguments) => commands::status::run(&arguments),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(complaint) => {
            complaint.print();
            complaint.exit.into()
        }
    }
}
