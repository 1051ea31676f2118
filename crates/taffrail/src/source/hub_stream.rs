//! Reads event streams of hubs.

use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use tokio::time::timeout;

use super::hub;
use super::hub_connector::{Connector, SendError};
use crate::cli::HubFiles;
use crate::hub_url::HubUrl;

/// The time without an event after which a stream counts as broken: a hub sends one every 15 s.
const SILENCE: Duration = Duration::from_secs(45);

/// Opens the event stream at `path` of the hub at `url`, and passes each piece of it to `take` until the stream ends or
/// is silent for [`SILENCE`]. Reads the token and the certificate authorities again for each stream.
///
/// # Errors
/// Fails if these cannot be read, the hub cannot be reached or refuses, and if the connection breaks.
pub(crate) async fn read_stream(
    url: &HubUrl,
    files: &HubFiles,
    path: &str,
    mut take: impl FnMut(&[u8]),
) -> Result<(), SendError> {
    let token = hub::token(url, files.hub_token_file.as_deref()).map_err(|error| error.to_string())?;
    let connector = Connector::of(url, files).map_err(|error| error.to_string())?;
    let mut connection = timeout(SILENCE, connector.connect(url)).await??;
    let request = hub::addressed(url, token.as_deref(), Request::get(path)).body(Full::default())?;
    let response = timeout(SILENCE, connection.send(request)).await??;
    match response.status() {
        StatusCode::OK => {}
        StatusCode::UNAUTHORIZED => return Err(SendError::from("the hub refuses the token")),
        status => return Err(format!("the hub tells of no changes (HTTP status {})", status.as_u16()).into()),
    }
    let mut body = response.into_body();
    while let Some(frame) = timeout(SILENCE, body.frame()).await? {
        if let Some(bytes) = frame?.data_ref() {
            take(bytes);
        }
    }
    Ok(())
}
