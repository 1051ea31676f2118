//! The gRPC service of agents.

use std::pin::Pin;
use std::sync::Arc;

use futures::Stream;
use taffrail_api::agent_protocol::{
    AgentMessage, EnrolReply, EnrolRequest, HubMessage, KeyHash, MAX_ACCEPTED, REFUSED,
};
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status, Streaming};

use super::generated::agents_server::{Agents as Service, AgentsServer};
use super::{Admission, Agents};

/// The key that the client certificate of a connection proves; `None` without one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProvedKey(pub(crate) Option<KeyHash>);

/// The service that answers agents.
#[derive(Debug, Clone)]
pub(crate) struct AgentService(Arc<Agents>);

impl AgentService {
    /// Makes the service for connections of agents.
    pub(crate) fn server(agents: Arc<Agents>) -> AgentsServer<AgentService> {
        AgentsServer::new(AgentService(agents)).max_decoding_message_size(MAX_ACCEPTED)
    }
}

#[tonic::async_trait]
impl Service for AgentService {
    type SessionStream = Pin<Box<dyn Stream<Item = Result<HubMessage, Status>> + Send>>;

    async fn enrol(&self, request: Request<EnrolRequest>) -> Result<Response<EnrolReply>, Status> {
        self.0.enrol(request.into_inner()).await.map(Response::new).map_err(|mut status| {
            status.metadata_mut().insert(REFUSED, MetadataValue::from_static("1"));
            status
        })
    }

    async fn session(
        &self,
        request: Request<Streaming<AgentMessage>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let proved = request.extensions().get::<ProvedKey>().and_then(|proved| proved.0);
        let admission = request.extensions().get::<Arc<Admission>>().cloned();
        let admission = admission.ok_or_else(|| Status::internal("the connection has no admission"))?;
        let answers = Arc::clone(&self.0).session(proved, request.into_inner(), admission);
        Ok(Response::new(Box::pin(answers)))
    }
}
