//! Series as a server answers with them, each with its value and the time of its sample.

use std::collections::HashSet;
use std::sync::Arc;

/// The label with the name of a metric.
pub(crate) const NAME: &str = "__name__";

/// The prefix with which Prometheus renames a label of a metric that its own label for the target has, too.
const EXPORTED: &str = "exported_";

/// The names of the labels that are kept of each series.
pub(crate) type KeptLabels = HashSet<Arc<str>>;

/// One series with its value.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// The kept labels.
    pub(crate) labels: Vec<(Arc<str>, Box<str>)>,
    /// The sum of the hashes of all labels but the name of the metric; equal for equal sets of labels.
    pub(crate) sum: u64,
    pub(crate) value: f64,
}

/// A series with its value and the time of its sample, in seconds by the server's clock.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) series: Series,
    pub(crate) at: f64,
}

/// The process from which a server scraped a sample: its job and address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Target {
    /// The cluster label; empty if there is none.
    pub(crate) cluster: Box<str>,
    pub(crate) job: Box<str>,
    pub(crate) instance: Box<str>,
}

/// The label by which series of Taffrail name the cluster that they are about.
pub(crate) const CLUSTER: &str = "cluster";

impl Series {
    /// Returns the value of a label; empty if the series does not have it, as Prometheus has it.
    pub(crate) fn label(&self, name: &str) -> &str {
        self.labels.iter().find(|(key, _)| **key == *name).map_or("", |(_, value)| value)
    }

    /// Returns the value of a label of the metric itself, which Prometheus renames where its own label for the target has
    /// that name.
    pub(crate) fn own(&self, name: &str) -> &str {
        let is_renamed = |key: &str| key.strip_prefix(EXPORTED) == Some(name);
        let renamed = self.labels.iter().find(|(key, _)| is_renamed(key)).map(|(_, value)| &**value);
        renamed.filter(|value| !value.is_empty()).unwrap_or_else(|| self.label(name))
    }

    /// Returns the target of the series; `cluster` is the name of the label with the cluster.
    pub(crate) fn target(&self, cluster: &str) -> Target {
        Target {
            cluster: self.label(cluster).into(),
            job: self.label("job").into(),
            instance: self.label("instance").into(),
        }
    }

    /// Returns the target of a series that has a label `cluster` of its own; the name of the label with the cluster is
    /// `cluster`, too, or another. If Prometheus did not rename the series' own, its target has none.
    pub(crate) fn target_of_named(&self, cluster: &str) -> Target {
        let is_renamed = self.labels.iter().any(|(key, _)| key.strip_prefix(EXPORTED) == Some(CLUSTER));
        let target = self.target(cluster);
        match cluster == CLUSTER && !is_renamed {
            true => Target { cluster: Box::default(), ..target },
            false => target,
        }
    }
}
