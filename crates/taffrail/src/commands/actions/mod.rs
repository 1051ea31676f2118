//! `taffrail actions` and `taffrail action`: what can be done with an object, and doing it.
//!
//! What an action changes is said by its script; here it is found, shown and written.

mod arguments;
mod creating;
mod doing;
mod list;
mod sites;
mod writing;

use std::path::Path;

use jiff::Timestamp;
use taffrail_object::Object;
use taffrail_rules::lua::{Action, Customizations, LuaError};
use taffrail_rules::{Origin, shipped_actions};

use crate::complaint::{Complaint, chain};
use crate::rule_source;

pub(crate) use arguments::{ActionArguments, ActionsArguments};
pub(crate) use doing::run;
pub(crate) use list::list;

/// An action, and whose it is.
struct Offer {
    origin: Origin,
    /// Which of the scripts of this origin offer it.
    place: usize,
    action: Action,
}

impl Offer {
    /// How it is asked for: what a cluster offers is chosen as such, so it never takes the place of another.
    fn called(&self) -> String {
        match self.origin {
            Origin::Cluster => format!("{OF_CLUSTER}{}", self.action.name),
            Origin::User | Origin::Shipped => self.action.name.clone(),
        }
    }
}

/// Before the name of an action that a cluster offers.
const OF_CLUSTER: &str = "cluster/";

/// So many actions of one object are offered by the scripts of one origin.
const OFFERED: usize = 100;

/// The scripts of a known Argo CD, and what people call the object that has them.
struct OfCluster {
    scripts: Customizations,
    called: String,
}

/// The scripts that are the same for every cluster.
struct Scripts {
    own: Option<Customizations>,
    shipped: Customizations,
}

impl Scripts {
    /// With those below a folder before those that are shipped.
    fn read(folder: Option<&Path>) -> Result<Scripts, Complaint> {
        let own = folder.map(rule_source::scripts_in_lua).transpose();
        let own = own.map_err(|error| Complaint::unreadable("cannot read actions").because(&error))?;
        Ok(Scripts { own, shipped: shipped_actions() })
    }

    /// All scripts of an origin in their order, where the cluster has these.
    fn of<'s>(&'s self, origin: Origin, of_cluster: &'s [OfCluster]) -> Vec<&'s Customizations> {
        match origin {
            Origin::User => self.own.iter().collect(),
            Origin::Shipped => vec![&self.shipped],
            Origin::Cluster => of_cluster.iter().map(|it| &it.scripts).collect(),
        }
    }

    /// What can be done with an object, by name, and what goes wrong with scripts that should say so.
    fn offers(
        &self,
        of_cluster: &[OfCluster],
        object: &Object<'_>,
        now: Timestamp,
    ) -> (Vec<Offer>, Vec<(Origin, LuaError)>) {
        let mut offers: Vec<Offer> = Vec::new();
        let mut errors = Vec::new();
        for origin in [Origin::User, Origin::Shipped, Origin::Cluster] {
            for (place, scripts) in self.of(origin, of_cluster).into_iter().enumerate() {
                match scripts.discover(object, now) {
                    Ok(actions) => {
                        for action in actions.into_iter().take(OFFERED) {
                            let offer = Offer { origin, place, action };
                            if !offers.iter().any(|other| other.called() == offer.called()) {
                                offers.push(offer);
                            }
                        }
                    }
                    Err(error) => errors.push((origin, error)),
                }
            }
        }
        offers.sort_by_key(|offer| (offer.origin == Origin::Cluster, offer.action.name.clone()));
        (offers, errors)
    }
}

/// That a script fails.
fn failing(cluster: &str, error: &LuaError) -> Complaint {
    Complaint::unreadable(format!("{cluster}: {}", chain(error)))
}
