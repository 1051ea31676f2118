//! The reasons why a cluster that a Secret names is refused.

use super::AddressClass;
use crate::error::Reason;

/// The reason why Taffrail does not connect to a cluster that another cluster's Secret names. No message contains a
/// credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretClusterError {
    /// The kubeconfig or configuration is too long.
    #[error(
        "the cluster configuration in the Secret is {bytes} bytes long, more than {} KiB",
        super::MAX_SECRET_KUBECONFIG_BYTES >> 10
    )]
    TooLarge {
        /// The length of the kubeconfig or configuration, in bytes.
        bytes: usize,
    },
    /// The kubeconfig or configuration has not the expected form, or its certificates or keys cannot be used; the text
    /// is the message.
    #[error("{0}")]
    Unusable(String),
    /// A kubeconfig has no current context, and not exactly one context.
    #[error("the kubeconfig in the Secret has {contexts} contexts and no current-context")]
    Ambiguous {
        /// Number of contexts in the kubeconfig.
        contexts: usize,
    },
    /// The kubeconfig or configuration names a program that gives credentials; holds the name of the field.
    #[error("the field {0} runs a program for credentials, and a Secret must not run programs here")]
    Program(&'static str),
    /// The kubeconfig or configuration names a file; holds the name of the field.
    #[error("the field {0} names a file, and a Secret must not read files here")]
    File(&'static str),
    /// The kubeconfig or configuration names a proxy; holds the name of the field.
    #[error("the field {0} names a proxy, and credentials from a Secret go only to the server itself")]
    Proxy(&'static str),
    /// The server's URL is not an https URL.
    #[error("the server in the Secret is not an https URL")]
    NotHttps,
    /// The server's URL contains a user.
    #[error("the URL of the server in the Secret contains a user")]
    UserInUrl,
    /// The server's address is one that such a cluster must not have.
    #[error("the server in the Secret has {0}")]
    Address(AddressClass),
}

impl SecretClusterError {
    /// Returns the class of this failure.
    pub fn reason(&self) -> Reason {
        match self {
            SecretClusterError::TooLarge { .. } => Reason::OverLimit,
            _ => Reason::BadKubeconfig,
        }
    }

    /// Returns what the user can do about the error.
    pub fn hint(&self) -> &'static str {
        match self {
            SecretClusterError::TooLarge { .. } => {
                "leave only the entries of one cluster in the kubeconfig of the Secret"
            }
            SecretClusterError::Unusable(_) => {
                "correct the Secret, or add the cluster to your own kubeconfig"
            }
            SecretClusterError::Ambiguous { .. } => "set current-context in the kubeconfig of the Secret",
            SecretClusterError::Program(_) => {
                "put a token or a client certificate into the Secret, or add the cluster to your own kubeconfig"
            }
            SecretClusterError::File(_) => {
                "put the content into the Secret (the field that ends in -data), or add the cluster to your own kubeconfig"
            }
            SecretClusterError::Proxy(_) => "add the cluster to your own kubeconfig, with its proxy-url",
            SecretClusterError::NotHttps => "write the server in the Secret as https://HOST:PORT",
            SecretClusterError::UserInUrl => {
                "remove the user from the server's URL in the Secret, and put the credentials into their own fields"
            }
            SecretClusterError::Address(_) => {
                "name the server in the Secret by an address that other machines reach, or add the cluster to your own kubeconfig"
            }
        }
    }
}
