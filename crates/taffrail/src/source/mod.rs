//! Where the objects come from: dumps, or live clusters.
//!
//! Every view works on either; both end as [`Snapshot`]s.

mod dump;
mod live;
mod requests;

use std::sync::Arc;

use jiff::Timestamp;
use taffrail_apps::{Asked, Objects, Snapshot};

use crate::cli::SourceArguments;
use crate::complaint::Complaint;

pub(crate) use live::{Failure, Live, Members, chain, each, members};
pub(crate) use requests::print_requests;

/// What was read.
pub(crate) struct Fleet {
    pub(crate) snapshots: Vec<Snapshot>,
    /// The time at which it is judged.
    pub(crate) now: Timestamp,
    /// What went wrong outside of any cluster, such as in one of several kubeconfigs.
    pub(crate) complaints: Vec<Complaint>,
}

impl Fleet {
    /// Reads what `asked` needs from where `arguments` say.
    pub(crate) fn read(arguments: &SourceArguments, asked: &Asked) -> Result<Fleet, Complaint> {
        if !arguments.from.is_empty() {
            return dumps(arguments);
        }
        let now = arguments.now.unwrap_or_else(Timestamp::now);
        let Members { members, complaints } = members(arguments)?;
        let asked = Arc::new(Asked { follow: members.len() > 1, ..asked.clone() });
        let timeout = arguments.timeout;
        let lives = each(members, timeout, move |live| {
            let asked = asked.clone();
            async move { live.snapshot(&asked, now).await }
        })?;
        print_requests(arguments.verbose, lives.iter().filter_map(|(_, cluster)| cluster.as_ref()));
        let snapshots = lives.into_iter().map(|(snapshot, _)| snapshot).collect();
        Ok(Fleet { snapshots, now, complaints })
    }

    /// The clusters, as views take them.
    pub(crate) fn clusters(&self) -> Vec<&dyn Objects> {
        self.snapshots.iter().map(|snapshot| snapshot as &dyn Objects).collect()
    }
}

/// Reads the dumps that the arguments name.
pub(crate) fn dumps(arguments: &SourceArguments) -> Result<Fleet, Complaint> {
    let now = arguments.now.unwrap_or_else(Timestamp::now);
    let (snapshots, complaints) = dump::read(&arguments.from, now)?;
    Ok(Fleet { snapshots, now, complaints })
}
