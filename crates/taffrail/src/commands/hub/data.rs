//! The data folder of a hub: where it is, and its backup and restore.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueHint};
use taffrail_hub::store::Store as _;
use taffrail_hub::store::sqlite::{self, OpenError, Opened, SqliteStore};
use taffrail_object::duration;

use crate::command_error::{CommandError, Exit, written};
use crate::output::answer::Console;
use crate::output::printable;
use crate::runtime::block_on;
use crate::{data_folder, say};

/// The name of the store in the folder.
const STORE: &str = "hub.db";

/// The shortest time for which history is kept, since whole days are dropped, or a token is valid; a shorter one is
/// refused.
const MIN_RETAIN: Duration = Duration::from_secs(86_400);

/// The data folder of a hub.
#[derive(Debug, Args)]
pub(super) struct DataArguments {
    /// Folder in which the hub stores the fleet, its history and the tokens [default: taffrail/hub in $XDG_DATA_HOME,
    /// else in ~/.local/share; if `hub serve` cannot use that, it warns and keeps nothing]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    data: Option<PathBuf>,
}

/// Write a copy of the store of a hub, also while it runs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail hub backup /backups/hub-$(date +%F).db     copy the store in the usual folder
  taffrail hub backup hub.db --data /srv/taffrail     copy the store in another folder

The copy holds all that was saved before: the rows of apps, their history, tokens. Only its owner can read it.
A file that exists is not overwritten.

Exit codes: 0 written; 2 wrong usage; 3 it could not be read or written.")]
pub(super) struct BackupArguments {
    /// File to which the copy is written, which must not exist
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    #[command(flatten)]
    data: DataArguments,
}

/// Replace the store of a hub by a copy that `taffrail hub backup` wrote.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail hub restore /backups/hub-2026-03-01.db     restore into the usual folder
  taffrail hub restore hub.db --data /srv/taffrail    restore into another folder

No hub may use the folder meanwhile. The store that was there is renamed, not deleted, and the new name is printed.
A copy that is damaged, or that a newer version of Taffrail wrote, is refused; then nothing changes.

Exit codes: 0 restored; 2 wrong usage; 3 it could not be read or written.")]
pub(super) struct RestoreArguments {
    /// Copy to restore, a file that `taffrail hub backup` wrote
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    #[command(flatten)]
    data: DataArguments,
}

impl DataArguments {
    /// Returns the folder; `None` if it is not given and this user has no home.
    fn folder(&self) -> Option<PathBuf> {
        self.data.clone().or_else(|| data_folder::usual("hub"))
    }

    fn named_folder(&self) -> Result<PathBuf, CommandError> {
        let unknown = || {
            let error = CommandError::usage(
                "the data folder of the hub is not known: --data is not given, and this user has no home",
            );
            error.hint("name a folder for the hub's data with --data DIR")
        };
        self.folder().ok_or_else(unknown)
    }

    /// Opens the store of a hub that may run meanwhile; creates it if there is none.
    pub(super) async fn open_beside(&self) -> Result<SqliteStore, CommandError> {
        let folder = self.named_folder()?;
        create_folder(&folder)?;
        let opened = SqliteStore::open_beside(&folder.join(STORE)).await;
        opened.map_err(|error| cannot_open(&folder, &error))
    }

    /// Opens the store of a hub that begins to run. A damaged store is set aside for a new one, with a warning. `None`,
    /// with a warning, if no folder is given and the usual one cannot be used: then the hub keeps nothing.
    ///
    /// # Errors
    /// If the folder that is given cannot be used.
    pub(super) async fn open(&self, console: &Console) -> Result<Option<SqliteStore>, CommandError> {
        let opened = match self.named_folder() {
            Ok(folder) => open(&folder).await,
            Err(error) => Err(error),
        };
        let Opened { store, set_aside } = match opened {
            Ok(opened) => opened,
            Err(error) if self.data.is_some() => return Err(error),
            Err(error) => {
                let warning =
                    CommandError::unreadable(format_args!("the hub keeps nothing on disk: {error}"));
                warning.hint("name a folder for the hub's data with --data DIR").harmless().print(console);
                return Ok(None);
            }
        };
        if let Some(damaged) = set_aside {
            let (path, damage) = (damaged.path.display(), damaged.damage);
            let what = format_args!("the store of the hub was damaged, and a new one is begun: {damage}");
            let warning = CommandError::unreadable(what).harmless();
            warning.hint(format!("the damaged store is kept in the file {path}")).print(console);
        }
        Ok(Some(store))
    }
}

/// Opens the store of a hub that begins to run in a folder; creates both if they do not exist. A damaged store is set
/// aside for a new one.
pub(super) async fn open(folder: &Path) -> Result<Opened, CommandError> {
    create_folder(folder)?;
    let path = folder.join(STORE);
    SqliteStore::open(&path).await.map_err(|error| cannot_open(folder, &error))
}

fn cannot_open(folder: &Path, error: &OpenError) -> CommandError {
    CommandError::unreadable(format_args!("cannot open the hub's store in {}", folder.display()))
        .with_source(error)
}

/// Creates a folder that only its owner can read, unless it exists.
pub(crate) fn create_folder(folder: &Path) -> Result<(), CommandError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| {
        CommandError::unreadable(format_args!(
            "cannot create the data folder {} of the hub",
            folder.display()
        ))
        .with_source(&error)
    })
}

/// Parses the time for which history is kept or a token is valid: a number of days (`30d`), or a duration (`48h`).
/// Fails for less than [`MIN_RETAIN`]; the error is a message for the user.
pub(super) fn retain(text: &str) -> Result<Duration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    let time = match days {
        Some(days) => Some(MIN_RETAIN * days),
        None => duration::parse(text).and_then(|time| Duration::try_from(time).ok()),
    };
    let time = time.ok_or("the time must be a number of days or hours, such as 30d or 48h")?;
    if time < MIN_RETAIN {
        Err("the time must be at least one day: write 1d or more".to_owned())
    } else {
        Ok(time)
    }
}

pub(super) fn backup(arguments: &BackupArguments, console: &Console) -> Result<Exit, CommandError> {
    let BackupArguments { file, data } = arguments;
    let folder = data.named_folder()?;
    let path = folder.join(STORE);
    if !path.exists() {
        let error =
            CommandError::unreadable(format_args!("no hub has kept anything in {}", folder.display()));
        return Err(error.hint("name the folder of the hub with --data DIR"));
    }
    let cannot = |error: &dyn std::error::Error| {
        CommandError::unreadable(format_args!("cannot back up the hub's store {}", path.display()))
            .with_source(error)
    };
    let copied = block_on(async {
        let store = SqliteStore::open_beside(&path).await.map_err(|error| cannot(&error))?;
        let copied = store.backup(file).await.map_err(|error| cannot(&error));
        store.close().await;
        copied
    })?;
    copied?;
    let tell = |out: &mut dyn Write| -> io::Result<()> {
        let (from, to) = (path.display().to_string(), file.display().to_string());
        say!(out, "copied {} to {}", printable(&from), printable(&to))?;
        out.flush()
    };
    written(tell(&mut console.people()))?;
    Ok(Exit::Yes)
}

pub(super) fn restore(arguments: &RestoreArguments, console: &Console) -> Result<Exit, CommandError> {
    let RestoreArguments { file, data } = arguments;
    let folder = data.named_folder()?;
    create_folder(&folder)?;
    let path = folder.join(STORE);
    let former = block_on(sqlite::restore(file, &path))?.map_err(|error| {
        CommandError::unreadable(format_args!("cannot restore the hub's store from {}", file.display()))
            .with_source(&error)
    })?;
    let tell = |out: &mut dyn Write| -> io::Result<()> {
        let (from, to) = (file.display().to_string(), path.display().to_string());
        say!(out, "restored {} as {}", printable(&from), printable(&to))?;
        if let Some(former) = &former {
            let former = former.display().to_string();
            say!(out, "the former store of the hub is kept in {}", printable(&former))?;
        }
        out.flush()
    };
    written(tell(&mut console.people()))?;
    Ok(Exit::Yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_is_kept_for_days() {
        assert_eq!(retain("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(retain("48h"), Ok(Duration::from_secs(2 * 86_400)));
        for wrong in ["", "d", "-1d", "0d", "5m", "30", "99999999999d"] {
            assert!(retain(wrong).is_err(), "{wrong}");
        }
    }
}
