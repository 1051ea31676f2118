//! The only task that writes to the database: it groups writes into commits.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use sqlx::{Connection as _, SqliteConnection};
use taffrail_api::agent_protocol::KeyHash;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::error::failed;
use super::files::Lock;
use super::save::MergedBatches;
use super::{agents, operations, retention, tokens};
use crate::store::{
    AgentRecord, AuthorityRecord, Batch, DroppedHistory, EnrolmentRecord, SavedOperation, StoreError,
    TokenHash, TokenRecord,
};

/// The capacity of the channel to the task; callers wait while it is full.
const MAX_WAITING: usize = 256;

/// The number of changes after which the task commits a group at once, to bound the size of a transaction.
const MAX_CHANGES: usize = 20_000;

/// The channel for the result of a command to the writer.
type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// A command to the task.
#[derive(Debug)]
pub(super) enum Command {
    /// Saves a batch.
    Write { batch: Box<Batch>, reply: Reply<()> },
    /// Drops the history of the days that ended at a time or before.
    DropHistory { since: Timestamp, reply: Reply<DroppedHistory> },
    /// Saves an operation.
    SaveOperation { operation: Box<SavedOperation>, reply: Reply<()> },
    /// Saves a token.
    AddToken { token: TokenRecord, reply: Reply<()> },
    /// Removes a token.
    RevokeToken { id: String, reply: Reply<bool> },
    /// Saves an agent.
    SaveAgent { agent: Box<AgentRecord>, reply: Reply<()> },
    /// Revokes the agents of a cluster.
    RevokeAgents { name: String, at: Timestamp, reply: Reply<u64> },
    /// Saves a token for enrolling an agent.
    AddEnrolment { token: EnrolmentRecord, reply: Reply<()> },
    /// Saves an agent in exchange for a token.
    Enrol { token: TokenHash, agent: Box<AgentRecord>, reply: Reply<bool> },
    /// Saves the authority of agents, unless there is one.
    Authority { new: AuthorityRecord, reply: Reply<AuthorityRecord> },
    /// Replaces the keys by which agents recognise the hub.
    SetPins { pins: Vec<KeyHash>, reply: Reply<()> },
    /// Tests that the database can be written.
    Probe { reply: Reply<()> },
    /// Ends the task and closes the file.
    Close { reply: Reply<()> },
}

/// The handle of the task that writes.
#[derive(Debug)]
pub(super) struct Writer {
    commands: mpsc::Sender<Command>,
    failure: Arc<Mutex<Option<StoreError>>>,
}

impl Writer {
    /// Starts the task. It ends, after the last write, when this is dropped.
    pub(super) fn start(connection: SqliteConnection, lock: Option<Lock>, group: Duration) -> Writer {
        let (commands, waiting) = mpsc::channel(MAX_WAITING);
        let failure = Arc::default();
        let task = WriterTask { connection, waiting, group, failure: Arc::clone(&failure), _lock: lock };
        tokio::spawn(task.run());
        Writer { commands, failure }
    }

    /// Sends a command and waits for its reply.
    pub(super) async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Returns the failure of the last write; `None` if it succeeded, or none was tried yet.
    pub(super) fn failure(&self) -> Option<StoreError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the task after the commands sent before, and waits until it has closed the file.
    pub(super) async fn close(&self) {
        // Closed already is as good.
        let _ = self.ask(|reply| Command::Close { reply }).await;
        self.commands.closed().await;
    }
}

/// The task that alone writes to the database, and the state that it owns.
struct WriterTask {
    connection: SqliteConnection,
    waiting: mpsc::Receiver<Command>,
    group: Duration,
    failure: Arc<Mutex<Option<StoreError>>>,
    _lock: Option<Lock>,
}

impl WriterTask {
    async fn run(mut self) {
        let mut next = self.waiting.recv().await;
        let mut closing = None;
        while let Some(command) = next.take() {
            next = match command {
                Command::Write { batch, reply } => self.write(*batch, reply).await,
                Command::Close { reply } => {
                    closing = Some(reply);
                    break;
                }
                other => {
                    self.other(other).await;
                    None
                }
            };
            if next.is_none() {
                next = self.waiting.recv().await;
            }
        }
        let WriterTask { connection, waiting, _lock: lock, .. } = self;
        // All that was acknowledged is in the file or its log, whether or not this succeeds.
        let _ = connection.close().await;
        drop(lock);
        drop(waiting);
        closing.into_iter().for_each(|reply| answer(reply, Ok(())));
    }

    /// Saves a batch and the further ones that come within the group time, until these are [`MAX_CHANGES`] changes, in
    /// one commit. Returns a command of another kind that ended the group early; `None` if there was none.
    async fn write(&mut self, batch: Batch, reply: Reply<()>) -> Option<Command> {
        let end = Instant::now() + self.group;
        let mut changes = batch.len();
        let mut batches = vec![(batch, reply)];
        let mut next = None;
        while changes < MAX_CHANGES {
            match tokio::time::timeout_at(end, self.waiting.recv()).await {
                Ok(Some(Command::Write { batch, reply })) => {
                    changes += batch.len();
                    batches.push((*batch, reply));
                }
                Ok(command) => {
                    next = command;
                    break;
                }
                Err(_) => break,
            }
        }
        self.commit(batches).await;
        next
    }

    async fn commit(&mut self, batches: Vec<(Batch, Reply<()>)>) {
        let mut group = MergedBatches::default();
        for (batch, _) in &batches {
            group.add(batch);
        }
        let outcome = self.save(&group).await;
        let is_own_fault = |error: &StoreError| !matches!(error, StoreError::DiskFull { .. });
        match outcome {
            // One batch must not fail the others.
            Err(error) if batches.len() > 1 && is_own_fault(&error) => {
                for (batch, reply) in batches {
                    let mut group = MergedBatches::default();
                    group.add(&batch);
                    answer(reply, self.save(&group).await);
                }
            }
            outcome => batches.into_iter().for_each(|(_, reply)| answer(reply, outcome.clone())),
        }
    }

    async fn save(&mut self, group: &MergedBatches<'_>) -> Result<(), StoreError> {
        self.transaction(async |connection| group.save(connection).await).await
    }

    async fn other(&mut self, command: Command) {
        match command {
            Command::DropHistory { since, reply } => answer(reply, self.drop_history(since).await),
            Command::SaveOperation { operation, reply } => {
                let save =
                    async |connection: &mut SqliteConnection| operations::save(connection, &operation).await;
                answer(reply, self.transaction(save).await);
            }
            Command::AddToken { token, reply } => {
                let done = self.transaction(async |connection| tokens::add(connection, &token).await).await;
                answer(reply, done);
            }
            Command::RevokeToken { id, reply } => {
                let done = self.transaction(async |connection| tokens::revoke(connection, &id).await).await;
                answer(reply, done);
            }
            Command::SaveAgent { agent, reply } => {
                let done = self.transaction(async |connection| agents::save(connection, &agent).await).await;
                answer(reply, done);
            }
            Command::RevokeAgents { name, at, reply } => {
                let revoke =
                    async |connection: &mut SqliteConnection| agents::revoke(connection, &name, at).await;
                answer(reply, self.transaction(revoke).await);
            }
            Command::AddEnrolment { token, reply } => {
                let add =
                    async |connection: &mut SqliteConnection| agents::add_enrolment(connection, &token).await;
                answer(reply, self.transaction(add).await);
            }
            Command::Enrol { token, agent, reply } => {
                let enrol =
                    async |connection: &mut SqliteConnection| agents::enrol(connection, token, &agent).await;
                answer(reply, self.transaction(enrol).await);
            }
            Command::Authority { new, reply } => {
                let done =
                    self.transaction(async |connection| agents::authority(connection, &new).await).await;
                answer(reply, done);
            }
            Command::SetPins { pins, reply } => {
                let done =
                    self.transaction(async |connection| agents::set_pins(connection, &pins).await).await;
                answer(reply, done);
            }
            Command::Probe { reply } => {
                let done = self.transaction(async |connection| probe(connection).await).await;
                answer(reply, done);
            }
            Command::Write { reply, .. } | Command::Close { reply } => answer(reply, Err(StoreError::Closed)),
        }
    }

    /// Drops the history of each day that ended at `since` or before, in one transaction for each day.
    async fn drop_history(&mut self, since: Timestamp) -> Result<DroppedHistory, StoreError> {
        let mut dropped = DroppedHistory::default();
        let days = retention::days_before(&mut self.connection, since).await?;
        for day in days {
            let one = self.transaction(async |connection| retention::drop_day(connection, day).await).await?;
            dropped.days += 1;
            dropped.transitions += one.transitions;
            dropped.syncs += one.syncs;
        }
        self.transaction(async |connection| retention::finish(connection, since).await).await?;
        Ok(dropped)
    }

    /// Runs `work` in a transaction, and commits it if it succeeds, else rolls it back. Records for `health` if it
    /// failed.
    async fn transaction<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut SqliteConnection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let connection = &mut self.connection;
        let outcome = async {
            run(connection, "BEGIN IMMEDIATE").await?;
            let result = work(connection).await?;
            run(connection, "COMMIT").await?;
            Ok(result)
        }
        .await;
        if outcome.is_err() {
            // SQLite may have ended the transaction itself; the first error is the one to tell.
            let _ = run(connection, "ROLLBACK").await;
        }
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = outcome.as_ref().err().cloned();
        outcome
    }
}

/// Tests that the database can be written: writes and removes 1 MiB, because a failed write may leave a few bytes free.
async fn probe(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    run(connection, "INSERT INTO probes (content) VALUES (zeroblob(1048576))").await?;
    run(connection, "DELETE FROM probes").await
}

async fn run(connection: &mut SqliteConnection, statement: &'static str) -> Result<(), StoreError> {
    sqlx::query(statement).execute(connection).await.map(drop).map_err(failed("write"))
}

/// Sends a reply; ignores that the caller may have been cancelled.
fn answer<T>(reply: Reply<T>, outcome: Result<T, StoreError>) {
    let _ = reply.send(outcome);
}
