//! `taffrail actions` and `taffrail action`: lists the actions of an object, and runs one.
//!
//! The script of an action decides what changes; this module finds the script, shows the changes and writes them.

mod arguments;
mod creating;
mod list;
mod run;
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
pub(crate) use list::list;
pub(crate) use run::run;

/// An action and the origin of its script.
struct Offer {
    origin: Origin,
    /// Index of its script among those of the origin.
    place: usize,
    action: Action,
}

impl Offer {
    /// Returns the name on the command line: an action of a cluster has a prefix, so that it cannot replace another.
    fn called(&self) -> String {
        match self.origin {
            Origin::Cluster => format!("{OF_CLUSTER}{}", self.action.name),
            Origin::User | Origin::Shipped => self.action.name.clone(),
        }
    }
}

/// Prefix of the names of a cluster's actions.
const OF_CLUSTER: &str = "cluster/";

/// Maximum number of actions that one origin's scripts may offer for an object.
const MAX_OFFERS: usize = 100;

/// The scripts of a trusted Argo CD, and the name of the ConfigMap that holds them.
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
    /// Loads the scripts in `folder`, if given, and the built-in ones.
    fn read(folder: Option<&Path>) -> Result<Scripts, Complaint> {
        let own = folder.map(rule_source::scripts_in_lua).transpose();
        let own = own.map_err(|error| Complaint::unreadable("cannot read actions").because(&error))?;
        Ok(Scripts { own, shipped: shipped_actions() })
    }

    /// Returns all scripts of an origin in their order; `of_cluster` are those of the cluster.
    fn of<'s>(&'s self, origin: Origin, of_cluster: &'s [OfCluster]) -> Vec<&'s Customizations> {
        match origin {
            Origin::User => self.own.iter().collect(),
            Origin::Shipped => vec![&self.shipped],
            Origin::Cluster => of_cluster.iter().map(|it| &it.scripts).collect(),
        }
    }

    /// Returns the actions of an object, sorted by name with the cluster's last, and the errors of scripts that failed.
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
                        for action in actions.into_iter().take(MAX_OFFERS) {
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

/// Describes the failure of a script.
fn failing(cluster: &str, error: &LuaError) -> Complaint {
    Complaint::unreadable(format!("{cluster}: {}", chain(error)))
}
