//! Access tokens in the file.

use sqlx::SqliteConnection;

use super::codes::{micros, time};
use super::error::failed;
use super::texts::{encode, saved_form};
use crate::store::{StoreError, TokenHash, TokenRecord};

/// The columns of a token.
type Columns = (String, String, Vec<u8>, String, i64, Option<i64>);

pub(super) async fn add(connection: &mut SqliteConnection, token: &TokenRecord) -> Result<(), StoreError> {
    let TokenRecord { id, name, hash, rights, created, expires } = token;
    sqlx::query(
        "INSERT OR REPLACE INTO tokens (id, name, hash, rights, created, expires) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )
    .bind(id)
    .bind(saved_form(name).into_owned())
    .bind(hash.0.as_slice())
    .bind(encode(rights)?)
    .bind(micros(*created))
    .bind(expires.map(micros))
    .execute(connection)
    .await
    .map(drop)
    .map_err(failed("save a token"))
}

pub(super) async fn revoke(connection: &mut SqliteConnection, id: &str) -> Result<bool, StoreError> {
    let done = sqlx::query("DELETE FROM tokens WHERE id = ?1").bind(id).execute(connection).await;
    Ok(done.map_err(failed("revoke a token"))?.rows_affected() > 0)
}

pub(super) async fn list(connection: &mut SqliteConnection) -> Result<Vec<TokenRecord>, StoreError> {
    let rows: Vec<Columns> =
        sqlx::query_as("SELECT id, name, hash, rights, created, expires FROM tokens ORDER BY created, id")
            .fetch_all(connection)
            .await
            .map_err(failed("read tokens"))?;
    let record = |(id, name, hash, rights, created, expires): Columns| {
        let damage = |what: &str| StoreError::damaged(format!("{what} of token {id} cannot be read"));
        let hash = TokenHash(hash.try_into().map_err(|_| damage("the hash"))?);
        let rights = serde_json::from_str(&rights).map_err(|_| damage("the rights"))?;
        let expires = expires.map(time).transpose()?;
        Ok(TokenRecord { created: time(created)?, id, name, hash, rights, expires })
    };
    rows.into_iter().map(record).collect()
}
