//! The health of apps whose objects are in a cluster that is read lightly.
//!
//! Of such a cluster only what declares apps is read. So the objects of its apps are unobserved, and their health is
//! known only where a controller keeps writing it into an object that was read: Argo CD into its Applications, the
//! controller of ResourceGroups into these.

use std::borrow::Cow;

use jiff::Timestamp;
use taffrail_object::{ObjectKey, ObjectKeyRef};
use taffrail_status::{Presence, Status};

use crate::app::{Resource, UnreadObjects};
use crate::declaration::{Declaration, Destination, SaidHealth};
use crate::delivery::{argo, resource_group};
use crate::fleet::Fleet;
use crate::identity::Delivery;
use crate::objects::Objects;
use crate::problem::Problem;
use crate::problems::health_problem;

/// The message of an app whose objects are in a cluster that is read lightly, if no controller says how they are.
const UNOBSERVED: &str = "the cluster of the objects is read lightly, so they are not observed";

/// Returns the problem that objects that were not read are not well, or not observed. The latter names no object, so that
/// all such apps of a fleet have one cause.
pub fn unread_problem(unread: &UnreadObjects) -> Problem {
    let problem = health_problem(&unread.health);
    if unread.is_said { problem } else { Problem { object: None, ..problem } }
}

/// Returns what is known of the objects of an app if their cluster is read lightly; `None` if it is not, and for an app
/// without a declaring object.
pub(crate) fn unread_objects(fleet: &Fleet<'_>, app: &Declaration, now: Timestamp) -> Option<UnreadObjects> {
    let Destination::Cluster(target) = app.destination else { return None };
    let declaring = app.declaring.as_ref().filter(|_| fleet.objects(target).is_light())?;
    let Some((key, rule, said)) = said(fleet.objects(app.home), app, declaring, now) else {
        let key = declaring.clone().into();
        let health = Resource::unjudged(key, Status::Unknown, UNOBSERVED.to_owned());
        return Some(UnreadObjects { health, is_said: false });
    };
    let SaidHealth { status, message, since } = said;
    let own = Resource::unjudged(key.into(), status, message).because("Said");
    let chain = if status == Status::Current { Vec::new() } else { own.chain.clone() };
    Some(UnreadObjects { health: Resource { rule: Cow::Borrowed(rule), since, chain, ..own }, is_said: true })
}

/// Returns the object in which a controller says how the objects of an app are, the rule by which Taffrail takes that
/// over, and what it says; `None` if no controller does.
fn said(
    home: &dyn Objects,
    app: &Declaration,
    declaring: &ObjectKey,
    now: Timestamp,
) -> Option<(ObjectKey, &'static str, SaidHealth)> {
    let read = |key: &ObjectKey| match home.get(key.as_ref()) {
        Presence::Present(observed) => Some(observed),
        Presence::Absent | Presence::Unobserved(_) => None,
    };
    match app.delivery {
        Delivery::ArgoApplication => {
            let said = argo::said_health(home, &read(declaring)?.object, now)?;
            Some((declaring.clone(), "said/argo-cd", said))
        }
        Delivery::ConfigSync | Delivery::Kpt => {
            let ObjectKeyRef { namespace, name, .. } = declaring.as_ref();
            let group = ObjectKey::new(resource_group::GROUP, resource_group::KIND, namespace, name);
            let said = resource_group::said_health(&read(&group)?.object)?;
            Some((group, "said/resource-group", said))
        }
        _ => None,
    }
}
