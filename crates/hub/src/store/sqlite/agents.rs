//! Agents, their enrolment and their authority in the file.

use jiff::Timestamp;
use sqlx::SqliteConnection;
use taffrail_api::agent_protocol::KeyHash;
use taffrail_apps::ClusterId;

use super::codes::{micros, time};
use super::error::failed;
use super::texts::saved_form;
use crate::store::{AgentRecord, AuthorityRecord, EnrolmentRecord, SpoolRecord, StoreError, TokenHash};

/// The time after the end of an enrolment token's validity for which its record is kept, in microseconds.
const KEPT_ENROLMENTS: i64 = 30 * 86_400 * 1_000_000;

/// The columns of an agent.
type AgentColumns = (Vec<u8>, String, String, String, i64, i64, i64, bool, Option<i64>);

/// The columns of an enrolment token.
type EnrolmentColumns = (Vec<u8>, Option<String>, i64, i64, Option<i64>);

/// Saves an agent, or replaces the one with its key. A revocation in the file stays.
pub(super) async fn save(connection: &mut SqliteConnection, agent: &AgentRecord) -> Result<(), StoreError> {
    let AgentRecord { public_key, cluster, name, version, enrolled, seen, expires, is_proxied, revoked } =
        agent;
    sqlx::query(
        "INSERT INTO agents (key, public_key, cluster, name, version, enrolled, seen, expires, proxied, revoked)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT (key) DO UPDATE SET cluster = excluded.cluster, name = excluded.name, version = excluded.version,
         enrolled = excluded.enrolled, seen = excluded.seen, expires = excluded.expires, proxied = excluded.proxied,
         revoked = coalesce(agents.revoked, excluded.revoked)",
    )
    .bind(agent.key().0.as_slice())
    .bind(public_key)
    .bind(saved_form(&cluster.0).into_owned())
    .bind(saved_form(name).into_owned())
    .bind(saved_form(version).into_owned())
    .bind(micros(*enrolled))
    .bind(micros(*seen))
    .bind(micros(*expires))
    .bind(is_proxied)
    .bind(revoked.map(micros))
    .execute(connection)
    .await
    .map(drop)
    .map_err(failed("save an agent"))
}

pub(super) async fn list(connection: &mut SqliteConnection) -> Result<Vec<AgentRecord>, StoreError> {
    let rows: Vec<AgentColumns> = sqlx::query_as(
        "SELECT public_key, cluster, name, version, enrolled, seen, expires, proxied, revoked FROM agents
         ORDER BY name, enrolled, key",
    )
    .fetch_all(connection)
    .await
    .map_err(failed("read agents"))?;
    let record = |columns: AgentColumns| {
        let (public_key, cluster, name, version, enrolled, seen, expires, is_proxied, revoked) = columns;
        let (enrolled, seen, expires) = (time(enrolled)?, time(seen)?, time(expires)?);
        let revoked = revoked.map(time).transpose()?;
        let cluster = ClusterId(cluster);
        Ok(AgentRecord { public_key, cluster, name, version, enrolled, seen, expires, is_proxied, revoked })
    };
    rows.into_iter().map(record).collect()
}

/// Revokes the agents of the cluster called `name` that are not revoked; returns their number.
pub(super) async fn revoke(
    connection: &mut SqliteConnection,
    name: &str,
    at: Timestamp,
) -> Result<u64, StoreError> {
    let done = sqlx::query("UPDATE agents SET revoked = ?2 WHERE name = ?1 AND revoked IS NULL")
        .bind(saved_form(name).into_owned())
        .bind(micros(at))
        .execute(connection)
        .await;
    Ok(done.map_err(failed("revoke an agent"))?.rows_affected())
}

/// Saves what history has of spools.
pub(super) async fn save_spools(
    connection: &mut SqliteConnection,
    spools: &[&SpoolRecord],
) -> Result<(), StoreError> {
    for SpoolRecord { cluster, spool, last, gap } in spools {
        sqlx::query(
            "INSERT INTO spools (cluster, spool, last, gap_from, gap_until) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (cluster) DO UPDATE SET spool = excluded.spool, last = excluded.last,
             gap_from = coalesce(excluded.gap_from, gap_from), gap_until = coalesce(excluded.gap_until, gap_until)",
        )
        .bind(saved_form(&cluster.0).into_owned())
        .bind(spool.cast_signed())
        .bind(last.cast_signed())
        .bind(gap.as_ref().map(|gap| micros(gap.start)))
        .bind(gap.as_ref().map(|gap| micros(gap.end)))
        .execute(&mut *connection)
        .await
        .map_err(failed("save the spool of an agent"))?;
    }
    Ok(())
}

pub(super) async fn spools(connection: &mut SqliteConnection) -> Result<Vec<SpoolRecord>, StoreError> {
    /// Cluster, spool, last entry, begin and end of the gap.
    type Row = (String, i64, i64, Option<i64>, Option<i64>);
    let rows: Vec<Row> =
        sqlx::query_as("SELECT cluster, spool, last, gap_from, gap_until FROM spools ORDER BY cluster")
            .fetch_all(connection)
            .await
            .map_err(failed("read the spools of agents"))?;
    let record = |(cluster, spool, last, from, until): Row| {
        let gap = from.zip(until).map(|(from, until)| Ok(time(from)?..time(until)?)).transpose()?;
        let (spool, last) = (spool.cast_unsigned(), last.cast_unsigned());
        Ok(SpoolRecord { cluster: ClusterId(cluster), spool, last, gap })
    };
    rows.into_iter().map(record).collect()
}

/// Saves an enrolment token, and removes those that have been invalid for 30 days.
pub(super) async fn add_enrolment(
    connection: &mut SqliteConnection,
    token: &EnrolmentRecord,
) -> Result<(), StoreError> {
    let EnrolmentRecord { hash, cluster, created, expires, used } = token;
    sqlx::query("DELETE FROM enrolments WHERE expires < ?1")
        .bind(micros(*created).saturating_sub(KEPT_ENROLMENTS))
        .execute(&mut *connection)
        .await
        .map_err(failed("save a token"))?;
    sqlx::query("INSERT INTO enrolments (hash, cluster, created, expires, used) VALUES (?1, ?2, ?3, ?4, ?5)")
        .bind(hash.0.as_slice())
        .bind(cluster.as_deref().map(|cluster| saved_form(cluster).into_owned()))
        .bind(micros(*created))
        .bind(micros(*expires))
        .bind(used.map(micros))
        .execute(connection)
        .await
        .map(drop)
        .map_err(failed("save a token"))
}

/// Reads the enrolment token with this hash.
pub(super) async fn enrolment(
    connection: &mut SqliteConnection,
    hash: TokenHash,
) -> Result<Option<EnrolmentRecord>, StoreError> {
    let row: Option<EnrolmentColumns> =
        sqlx::query_as("SELECT hash, cluster, created, expires, used FROM enrolments WHERE hash = ?1")
            .bind(hash.0.as_slice())
            .fetch_optional(connection)
            .await
            .map_err(failed("read a token"))?;
    let record = |(found, cluster, created, expires, used): EnrolmentColumns| {
        let found =
            found.try_into().map_err(|_| StoreError::damaged("the hash of a token cannot be read"))?;
        Ok(EnrolmentRecord {
            hash: TokenHash(found),
            cluster,
            created: time(created)?,
            expires: time(expires)?,
            used: used.map(time).transpose()?,
        })
    };
    row.map(record).transpose()
}

/// Saves `agent` and marks the token with this hash as used at the time of its enrolment; false, and nothing is saved,
/// if the token is unknown, used or expired.
pub(super) async fn enrol(
    connection: &mut SqliteConnection,
    hash: TokenHash,
    agent: &AgentRecord,
) -> Result<bool, StoreError> {
    let now = micros(agent.enrolled);
    let done =
        sqlx::query("UPDATE enrolments SET used = ?2 WHERE hash = ?1 AND used IS NULL AND expires > ?2")
            .bind(hash.0.as_slice())
            .bind(now)
            .execute(&mut *connection)
            .await
            .map_err(failed("enrol an agent"))?;
    if done.rows_affected() == 0 {
        return Ok(false);
    }
    save(connection, agent).await?;
    Ok(true)
}

/// Saves the authority unless there is one, and returns the one that is saved then.
pub(super) async fn authority(
    connection: &mut SqliteConnection,
    new: &AuthorityRecord,
) -> Result<AuthorityRecord, StoreError> {
    sqlx::query("INSERT OR IGNORE INTO authority (id, key, certificate) VALUES (1, ?1, ?2)")
        .bind(&new.key)
        .bind(&new.certificate)
        .execute(&mut *connection)
        .await
        .map_err(failed("save the authority of agents"))?;
    let (key, certificate) = sqlx::query_as("SELECT key, certificate FROM authority")
        .fetch_one(connection)
        .await
        .map_err(failed("read the authority of agents"))?;
    Ok(AuthorityRecord { key, certificate })
}

/// Replaces the keys by which agents recognise the hub.
pub(super) async fn set_pins(connection: &mut SqliteConnection, pins: &[KeyHash]) -> Result<(), StoreError> {
    let failed = || failed("save the keys of the hub");
    sqlx::query("DELETE FROM hub_pins").execute(&mut *connection).await.map_err(failed())?;
    for pin in pins {
        let insert = sqlx::query("INSERT INTO hub_pins (pin) VALUES (?1)").bind(pin.to_string());
        insert.execute(&mut *connection).await.map_err(failed())?;
    }
    Ok(())
}

/// Reads the keys by which agents recognise the hub.
pub(super) async fn pins(connection: &mut SqliteConnection) -> Result<Vec<KeyHash>, StoreError> {
    let rows: Vec<String> = sqlx::query_scalar("SELECT pin FROM hub_pins ORDER BY place")
        .fetch_all(connection)
        .await
        .map_err(failed("read the keys of the hub"))?;
    let pin = |text: &String| {
        KeyHash::parse(text).ok_or_else(|| StoreError::damaged("a key of the hub cannot be read"))
    };
    rows.iter().map(pin).collect()
}
