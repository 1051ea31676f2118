//! Messages on a socket: JSON after its length in bytes, a big-endian number of 32 bits.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::Failure;

/// The greatest length of a message in bytes; reading a longer one fails.
const MAX_LENGTH: usize = 16 << 20;

/// Appends a message to `buffer`.
pub(crate) fn append(buffer: &mut Vec<u8>, message: &impl Serialize) -> Result<(), Failure> {
    let start = buffer.len();
    buffer.extend([0; 4]);
    serde_json::to_writer(&mut *buffer, message)?;
    let length = u32::try_from(buffer.len() - start - 4)?;
    if let Some(head) = buffer.get_mut(start..start + 4) {
        head.copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// Reads the next message, using `buffer` for its text; `None` if the other side has closed the socket.
pub(crate) async fn read<T: DeserializeOwned>(
    socket: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> Result<Option<T>, Failure> {
    let mut head = [0; 4];
    if socket.read_exact(&mut head).await.is_err() {
        return Ok(None);
    }
    let length = usize::try_from(u32::from_be_bytes(head))?;
    if length > MAX_LENGTH {
        return Err(format!("a message of {length} bytes is too long").into());
    }
    buffer.resize(length, 0);
    socket.read_exact(buffer).await?;
    Ok(Some(serde_json::from_slice(buffer)?))
}
