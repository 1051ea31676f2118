//! `taffrail hub token`: access tokens, which stay valid until they expire or are revoked.

use std::io::{self, Write};
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use taffrail_api::agent_protocol::EnrolmentToken;
use taffrail_hub::store::sqlite::SqliteStore;
use taffrail_hub::store::{
    ACT_RIGHT, EnrolmentRecord, LOGS_RIGHT, Store as _, StoreError, Token, TokenHash, TokenRecord,
};

use super::data::{DataArguments, retain};
use crate::command_error::{CommandError, Exit, written};
use crate::output::answer::Console;
use crate::output::table::{Cell, Table};
use crate::output::{printable, screen};
use crate::runtime::block_on;
use crate::{phrase, program, say};

/// Maximum length of the name of a token, in characters; a longer one is refused.
const MAX_NAME: usize = 64;

/// The time for which a token for an agent is good.
const ENROLMENT: Duration = Duration::from_secs(3600);

/// Create, list and revoke the access tokens of a hub, also while it runs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail hub token create ci > token           create a token that is valid until it is revoked
  taffrail hub token create ann --expires 90d    create a token for 90 days
  taffrail hub token create ops --logs --act     create a token that allows to read logs and to run operations, too
  taffrail hub token list                        list them, without the tokens themselves
  taffrail hub token revoke 1f0a93c2             revoke the token with this ID

Whoever has a token may read all that the hub shows, but the logs of containers only with a token that was created with
--logs, and may run operations only with one that was created with --act. The hub keeps only hashes of tokens; a hub that runs takes notice of new and revoked ones within five seconds.

Exit codes: 0 done; 2 wrong usage, such as an ID that no token has; 3 the store could not be read or written.")]
pub(super) struct TokenArguments {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Create a token, and print it: it is not shown again
    #[command(after_help = "\
Examples:
  taffrail hub token create ci > token           valid until it is revoked
  taffrail hub token create ann --expires 90d    valid for 90 days
  taffrail hub token create ops --logs           allows to read logs, too
  taffrail hub token create bot --act            allows to reconcile, suspend and resume apps, too
  taffrail hub token create --agent > token      one agent can enrol with it, within an hour

Exit codes: 0 created; 2 wrong usage; 3 the store could not be read or written.")]
    Create {
        /// Name of the token, such as that of its user: up to 64 characters
        #[arg(value_parser = name, required_unless_present = "agent")]
        name: Option<String>,

        /// Make a token with which one agent can enrol, within an hour; it reads nothing. It also names the issuers of the
        /// hub's certificate, by which the agent recognises the hub, as the hub knew them when it last served by TLS
        #[arg(long, conflicts_with_all = ["name", "expires", "logs", "act"])]
        agent: bool,

        /// With --agent: let the agent report this cluster, which the hub may know already; without, the agent chooses a
        /// name that is new to the hub
        #[arg(long, value_name = "NAME", value_parser = name, requires = "agent")]
        cluster: Option<String>,

        /// Make the token valid for this long, such as 90d or 48h, but at least 1d [default: until it is revoked]
        #[arg(long, value_name = "TIME", value_parser = retain)]
        expires: Option<Duration>,

        /// Allow to read the logs of containers (`taffrail logs --hub`, `explain --logs --hub`), which may contain
        /// secrets
        #[arg(long)]
        logs: bool,

        /// Allow to run operations (`taffrail reconcile`, `suspend` and `resume` with --hub) with the rights that the hub
        /// has in its clusters
        #[arg(long)]
        act: bool,

        #[command(flatten)]
        data: DataArguments,
    },
    /// List tokens: their IDs, names and rights, and when they were created and expire
    #[command(after_help = "\
Examples:
  taffrail hub token list                        those of the hub in the usual folder
  taffrail hub token list --data /srv/taffrail   those of a hub in another folder

Exit codes: 0 listed; 2 wrong usage; 3 the store could not be read.")]
    List {
        #[command(flatten)]
        data: DataArguments,
    },
    /// Revoke a token: a hub that runs refuses it within five seconds
    #[command(after_help = "\
Examples:
  taffrail hub token revoke 1f0a93c2             the ID is that of `taffrail hub token list`

Exit codes: 0 revoked; 2 wrong usage, such as an ID that no token has; 3 the store could not be read or written.")]
    Revoke {
        /// The ID of the token, as `taffrail hub token list` shows it
        id: String,

        #[command(flatten)]
        data: DataArguments,
    },
}

/// Parses the name of a token. The error is a message for the user.
fn name(text: &str) -> Result<String, String> {
    let is_fit = !text.trim().is_empty() && text.chars().count() <= MAX_NAME;
    match is_fit && !text.chars().any(char::is_control) {
        true => Ok(text.to_owned()),
        false => Err(format!("the name of a token must have 1 to {MAX_NAME} visible characters")),
    }
}

pub(super) fn run(arguments: &TokenArguments, console: &Console) -> Result<Exit, CommandError> {
    match &arguments.command {
        TokenCommand::Create { agent: true, cluster, data, .. } => {
            let create = async |store: &SqliteStore| enrolment(store, cluster.clone()).await;
            let token = with_store(data, "create a token for an agent", create)?;
            written(tell_enrolment(console, &token, cluster.as_deref()))?;
        }
        TokenCommand::Create { name, expires, logs, act, data, .. } => {
            let name = name.as_deref().unwrap_or_default();
            let (token, mut record) = create(name, *expires)?;
            record.rights.extend(logs.then(|| LOGS_RIGHT.to_owned()));
            record.rights.extend(act.then(|| ACT_RIGHT.to_owned()));
            let created = record.clone();
            with_store(data, "create a token", async |store| store.add_token(record).await)?;
            written(tell_created(console, &token, &created))?;
        }
        TokenCommand::List { data } => {
            let tokens = with_store(data, "list tokens", async |store| store.tokens().await)?;
            written(list(console, &tokens))?;
        }
        TokenCommand::Revoke { id, data } => {
            if !with_store(data, "revoke a token", async |store| store.revoke_token(id.clone()).await)? {
                let error = CommandError::usage(format_args!("no token has the ID '{id}'"));
                return Err(error.hint(format!(
                    "{} shows the IDs of all tokens",
                    program::hinted("taffrail hub token list")
                )));
            }
            console.tell(phrase!("The token {} is revoked.\n", printable(id)));
        }
    }
    Ok(Exit::Yes)
}

fn create(name: &str, expires: Option<Duration>) -> Result<(Token, TokenRecord), CommandError> {
    let cannot =
        |error: &dyn std::error::Error| CommandError::unreadable("cannot create a token").with_source(error);
    let token = Token::generate().map_err(|error| cannot(&error))?;
    let now = Timestamp::now();
    let mut record = token.record(name, now);
    if let Some(time) = expires {
        let end = now.checked_add(time).map_err(|error| cannot(&error))?;
        record.expires = Some(end);
    }
    Ok((token, record))
}

/// Makes a token with which an agent can enrol, for `cluster` if that is given, and saves it; it names the keys by which
/// agents recognise the hub.
pub(super) async fn enrolment(
    store: &SqliteStore,
    cluster: Option<String>,
) -> Result<EnrolmentToken, StoreError> {
    let token = Token::generate()?;
    let created = Timestamp::now();
    // A clock that is at the end of time makes a token that is good until then.
    let expires = created.checked_add(ENROLMENT).unwrap_or(Timestamp::MAX);
    let hash = TokenHash::of(token.as_str());
    store.add_enrolment(EnrolmentRecord { hash, cluster, created, expires, used: None }).await?;
    Ok(EnrolmentToken { token: token.as_str().to_owned(), pins: store.pins().await? })
}

/// Prints the token for an agent alone on stdout, and to stderr what it is for.
fn tell_enrolment(console: &Console, token: &EnrolmentToken, cluster: Option<&str>) -> io::Result<()> {
    let mut out = console.people();
    say!(out, "{}", printable(&token.to_string()))?;
    out.flush()?;
    let of = match cluster {
        Some(cluster) => format!(" of cluster {cluster}"),
        None => String::new(),
    };
    console.tell(phrase!(
        "One agent{} can enrol with it, within an hour. It is not shown again.\n",
        printable(&of)
    ));
    if token.pins.is_empty() {
        console.tell(phrase!(
            "It names no certificate of the hub: the agent must recognise the hub by the authorities that its machine\n\
             trusts, or by --hub-ca-file.\n"
        ));
    }
    Ok(())
}

/// Opens the store of a hub, which may run, and calls `work` with it; `what` names the work in errors.
pub(super) fn with_store<T>(
    data: &DataArguments,
    what: &str,
    work: impl AsyncFnOnce(&SqliteStore) -> Result<T, StoreError>,
) -> Result<T, CommandError> {
    block_on(async {
        let store = data.open_beside().await?;
        let done = work(&store).await.map_err(|error| {
            CommandError::unreadable(format_args!("cannot {what} in {}", store.path().display()))
                .with_source(&error)
        });
        store.close().await;
        done
    })?
}

/// Prints the token alone on stdout, so that it can be redirected to a file, and its ID, name and end to stderr.
fn tell_created(console: &Console, token: &Token, record: &TokenRecord) -> io::Result<()> {
    let mut out = console.people();
    say!(out, "{}", printable(token.as_str()))?;
    out.flush()?;
    let until = match record.expires {
        Some(end) => format!("until {}", minute(end)),
        None => "until it is revoked".to_owned(),
    };
    let name = printable(&record.name);
    let rights = match (record.reads_logs(), record.acts()) {
        (false, false) => "",
        (true, false) => ", and allows to read logs",
        (false, true) => ", and allows to run operations",
        (true, true) => ", and allows to read logs and to run operations",
    };
    console.tell(phrase!(
        "Token {} of {} is valid {}{}. It is not shown again.\n",
        printable(&record.id),
        name,
        printable(&until),
        rights
    ));
    Ok(())
}

/// Prints a row for each token.
fn list(console: &Console, tokens: &[TokenRecord]) -> io::Result<()> {
    if tokens.is_empty() {
        console.tell(phrase!("There are no tokens.\n"));
        return Ok(());
    }
    let mut out = console.people();
    let mut table = Table::new(&mut out, vec!["ID", "CREATED", "EXPIRES", "RIGHTS", "NAME"], screen());
    let now = Timestamp::now();
    for token in tokens {
        let expires = match token.expires {
            None => "-".to_owned(),
            Some(end) if token.is_valid(now) => minute(end),
            Some(_) => "expired".to_owned(),
        };
        // Each token reads status.
        let rights: Vec<&str> = ["read"].into_iter().chain(token.rights.iter().map(String::as_str)).collect();
        let cells = [&token.id, &minute(token.created), &expires, &rights.join(","), &token.name];
        table.row(cells.into_iter().map(Cell::new).collect())?;
    }
    table.finish()?;
    out.flush()
}

/// Formats a time to the minute, without spaces.
pub(super) fn minute(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%MZ").to_string()
}

/// Returns all tokens of the store, expired ones too, of a hub that begins to serve by TLS.
///
/// # Errors
/// If none is valid now: nobody could ask the hub.
pub(super) async fn valid(store: Option<&SqliteStore>) -> Result<Vec<TokenRecord>, CommandError> {
    let tokens = match store {
        Some(store) => store.tokens().await.map_err(|error| {
            CommandError::unreadable("cannot read the tokens of the hub").with_source(&error)
        })?,
        None => Vec::new(),
    };
    let now = Timestamp::now();
    if tokens.iter().any(|token| token.is_valid(now)) {
        return Ok(tokens);
    }
    let error = CommandError::usage("the hub has no valid token, so nobody could ask it");
    Err(error.hint(format!("create a token: {}", program::hinted("taffrail hub token create NAME"))))
}
