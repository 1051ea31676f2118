//! Finds the candidates for shell completion, and makes the completion scripts.
//!
//! Errors are never printed, because a half-typed line is on the screen; the shell gets fewer candidates.

mod words;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use clap::Command;
use clap_complete::engine::complete;
use clap_complete::env::Shells;

use crate::command_error::CommandError;
use crate::output::progress;

/// The environment variable by which the completion scripts ask for candidates; its value is the name of the shell.
const VARIABLE: &str = "_TAFFRAIL_COMPLETE";
/// The file name under which kubectl calls the program for the completion of the plugin.
const FOR_KUBECTL: &str = "kubectl_complete-taffrail";

/// Maximum time for finding candidates, after which there are none.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Stack size of the thread that computes candidates, in bytes; as large as that of a main thread.
const STACK: usize = 8 << 20;

/// Prints candidates and returns true if a shell or kubectl called the program for completion; else returns false.
pub(crate) fn answer(root: impl Fn() -> Command + Send + 'static) -> bool {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let shell = std::env::var(VARIABLE).ok().filter(|shell| !shell.is_empty());
    let own = arguments.first().and_then(|own| Path::new(own).file_stem());
    let for_kubectl = own.is_some_and(|own| own == FOR_KUBECTL);
    if shell.is_none() && !for_kubectl {
        return false;
    }
    progress::silence();
    std::panic::set_hook(Box::new(|_| {}));
    let (sender, answered) = mpsc::channel();
    let shell = shell.filter(|_| !for_kubectl);
    let find = move || drop(sender.send(words_for(shell, arguments, &root)));
    if std::thread::Builder::new().stack_size(STACK).spawn(find).is_err() {
        return true;
    }
    // The thread ends with the process.
    let answer = answered.recv_timeout(MAX_WAIT).ok().flatten().unwrap_or_default();
    // A shell that has gone needs no answer.
    let _ = std::io::stdout().write_all(&answer);
    true
}

/// Returns the candidates for the last word of `arguments` in the form that `shell` reads, or kubectl if it is `None`.
/// Returns `None` for an unknown shell.
fn words_for(
    shell: Option<String>,
    mut arguments: Vec<OsString>,
    root: &dyn Fn() -> Command,
) -> Option<Vec<u8>> {
    let mut answer = Vec::new();
    let folder = std::env::current_dir().ok();
    match shell {
        Some(shell) => {
            let begin =
                arguments.iter().position(|argument| argument == "--").map_or(arguments.len(), |at| at + 1);
            let asked = arguments.split_off(begin);
            let mut command = attached(root(), &asked);
            let shells = Shells::builtins();
            let shell = shells.completer(&shell)?;
            shell.write_complete(&mut command, asked, folder.as_deref(), &mut answer).ok()?;
        }
        None => {
            let mut command = attached(root(), &arguments);
            let last = arguments.len().saturating_sub(1);
            let found = complete(&mut command, arguments, last, folder.as_deref()).unwrap_or_default();
            for candidate in found {
                let value = candidate.get_value().to_string_lossy();
                let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
                let help = help.lines().next().unwrap_or_default();
                let tab = if help.is_empty() { "" } else { "\t" };
                answer.extend_from_slice(format!("{value}{tab}{help}\n").as_bytes());
            }
            // kubectl's own completion expects this last line: no file names.
            answer.extend_from_slice(b":4\n");
        }
    }
    Some(answer)
}

/// Returns `root` with functions that find candidates at the arguments of its subcommands; `line` is the command line
/// with the word being typed.
fn attached(root: Command, line: &[OsString]) -> Command {
    let place = std::env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|index| index.parse().ok());
    let place: usize = place.unwrap_or(line.len().saturating_sub(1)).min(line.len());
    let current = line.get(place).cloned().unwrap_or_default();
    words::attach(root, &line[..place], &current)
}

/// Returns the completion script of a shell, which calls this program by the path or name under which it runs. Fails
/// for an unknown shell.
pub(crate) fn script(shell: &str) -> Result<String, CommandError> {
    let unknown = || CommandError::usage(format!("there is no completion script for the shell '{shell}'"));
    let shells = Shells::builtins();
    let completer = shells.completer(shell).ok_or_else(unknown)?;
    let own = std::env::args_os().next().unwrap_or_default();
    let own = Path::new(&own);
    // A plain name is found on any PATH; a path only where it is now.
    let program = if own.components().count() > 1 {
        std::path::absolute(own).unwrap_or_else(|_| own.to_owned()).to_string_lossy().into_owned()
    } else {
        own.to_string_lossy().into_owned()
    };
    let mut text = Vec::new();
    let written = completer.write_registration(VARIABLE, "taffrail", "taffrail", &program, &mut text);
    written
        .map_err(|error| CommandError::unreadable("cannot make the completion script").with_source(&error))?;
    String::from_utf8(text).map_err(|_| unknown())
}

/// Returns a script for `sh` that makes the `taffrail` on the `PATH` a kubectl plugin with completion, by two links
/// beside it.
pub(crate) fn for_kubectl() -> String {
    "\
# Makes `kubectl taffrail` work, and its completion: two links in a folder of your PATH. Run it with
#   taffrail completion kubectl | sh
# kubectl completes its plugins since 1.26, where its own completion is set up: source <(kubectl completion bash)
folder=$(dirname \"$(command -v taffrail)\")
ln -sf taffrail \"$folder/kubectl-taffrail\"
ln -sf taffrail \"$folder/kubectl_complete-taffrail\"
"
    .to_owned()
}
