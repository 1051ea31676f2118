//! The time at which objects began to differ from the synced state, from their field managers.

use jiff::Timestamp;
use taffrail_object::{Object, ObjectKey};

use super::{text, time};
use crate::memo::Memo;
use crate::objects::Objects;
use crate::sync::ObjectSync;

/// The maximum number of objects of an app for which the time of their first difference is determined; for more objects
/// the time counts as unknown.
const MAX_DATED_OBJECTS: usize = 20;

/// A cache of the newest two writes to each object (without those by Argo CD), by index of the cluster and key.
///
/// Many small apps may list one object with many field managers, so these are searched once.
#[derive(Debug, Default)]
pub(crate) struct Writes(Memo<(usize, ObjectKey), Newest>);

type Newest = [Option<Timestamp>; 2];

impl Writes {
    /// Returns the time at which the first of these objects began to differ from the state synced at `synced`: the
    /// earliest of their writes after that time, except those by Argo CD.
    ///
    /// `None` unless each object has exactly one such write, or if there are more than [`MAX_DATED_OBJECTS`] objects.
    pub(super) fn since(
        &self,
        unsynced: &[ObjectSync],
        objects: &dyn Objects,
        cluster: usize,
        synced: Timestamp,
    ) -> Option<Timestamp> {
        if unsynced.len() > MAX_DATED_OBJECTS {
            return None;
        }
        let after = |it: &ObjectSync| match self.newest(objects, cluster, &it.key) {
            // One of several writes may have changed nothing that is declared.
            [Some(newest), before] if newest > synced => {
                Some(newest).filter(|_| before.is_none_or(|before| before <= synced))
            }
            _ => None,
        };
        unsynced.iter().map(after).collect::<Option<Vec<_>>>()?.into_iter().min()
    }

    fn newest(&self, objects: &dyn Objects, cluster: usize, key: &ObjectKey) -> Newest {
        let found = || objects.get(key.as_ref()).present().map(|it| newest(&it.object)).unwrap_or_default();
        self.0.get(objects, (cluster, key.clone()), found)
    }
}

/// Returns the times of the newest two writes to an object, the newest first, without those by Argo CD or to
/// its status.
fn newest(object: &Object<'_>) -> Newest {
    let mut found = Newest::default();
    for entry in object.managed_fields() {
        let is_of_status = entry.get("subresource").is_some_and(|it| it.is_str("status"));
        let is_argo = text(entry, &["manager"]).is_some_and(|manager| manager.starts_with("argocd"));
        let Some(at) = time(entry.get("time")).filter(|_| !is_of_status && !is_argo) else { continue };
        let [newest, before] = found;
        found = match newest {
            Some(newest) if newest >= at => [Some(newest), before.max(Some(at))],
            newest => [Some(at), newest],
        };
    }
    found
}
