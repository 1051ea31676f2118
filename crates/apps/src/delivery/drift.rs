//! The time at which objects began to differ from the synced state, from their field managers.

use jiff::{SignedDuration, Timestamp};
use taffrail_object::{Object, ObjectKey};

use super::fields::foreign_writes;
use crate::memo::Memo;
use crate::noting::elapsed;
use crate::objects::Objects;
use crate::sync::ObjectSync;

/// The maximum number of objects of an app for which the time of their first difference is determined; for an app with
/// more, that time counts as unknown.
const MAX_DATED_OBJECTS: usize = 20;

/// A cache of the newest writes to each object, by index of the cluster and key.
///
/// Many small apps may list one object with many field managers, so these are searched once.
#[derive(Debug, Default)]
pub(crate) struct Writes(Memo<(usize, ObjectKey), NewestWrites>);

/// The newest writes to an object that may make it differ from its declaration.
#[derive(Debug, Clone, Default)]
struct NewestWrites {
    /// The times of the newest two writes with a recorded time, the newest first.
    times: [Option<Timestamp>; 2],
    /// True if a manager also wrote by the subresource `scale`, for which the API server records no time.
    has_scale: bool,
}

impl Writes {
    /// Returns the time at which the first of these objects began to differ from the state synced at `synced`: the
    /// earliest of their writes after that time, of those that [`foreign_writes`] lists.
    ///
    /// `None` unless each object has exactly one such write, at a time that is not after `now`, and no scale without a
    /// time; also if there are no objects, or more than [`MAX_DATED_OBJECTS`].
    pub(super) fn since(
        &self,
        unsynced: &[ObjectSync],
        objects: &dyn Objects,
        cluster: usize,
        synced: Timestamp,
        now: Timestamp,
    ) -> Option<Timestamp> {
        if unsynced.len() > MAX_DATED_OBJECTS {
            return None;
        }
        let after = |it: &ObjectSync| match self.newest(objects, cluster, &it.key) {
            // One of several writes may have changed nothing that is declared.
            NewestWrites { times: [Some(newest), before], has_scale: false }
                if newest > synced && before.is_none_or(|before| before <= synced) =>
            {
                // A client can write any time in the managed fields.
                let is_past = elapsed(objects, newest, SignedDuration::ZERO, now) >= SignedDuration::ZERO;
                is_past.then_some(newest)
            }
            _ => None,
        };
        unsynced.iter().map(after).collect::<Option<Vec<_>>>()?.into_iter().min()
    }

    fn newest(&self, objects: &dyn Objects, cluster: usize, key: &ObjectKey) -> NewestWrites {
        let found = || objects.get(key.as_ref()).present().map(|it| newest(&it.object)).unwrap_or_default();
        self.0.get(objects, (cluster, key.clone()), found)
    }
}

fn newest(object: &Object<'_>) -> NewestWrites {
    let mut found = NewestWrites::default();
    for write in foreign_writes(object) {
        let [newest, before] = found.times;
        found.times = match (write.at, newest) {
            (None, _) => {
                found.has_scale |= write.is_scale;
                continue;
            }
            (Some(at), Some(newest)) if newest >= at => [Some(newest), before.max(Some(at))],
            (at, newest) => [at, newest],
        };
    }
    found
}
