//! `taffrail actions` and `taffrail action`: what can be done with an object, and doing it.
//!
//! What an action changes is said by its script; here it is found, shown and written.

mod arguments;
mod doing;
mod list;
mod sites;
mod writing;

use std::path::Path;

use jiff::Timestamp;
use taffrail_rules::lua::{Action, Customizations, LuaError};
use taffrail_rules::{Origin, shipped_actions};
use taffrail_status::Object;

use crate::complaint::{Complaint, chain};
use crate::ruling;

pub(crate) use arguments::{ActionArguments, ActionsArguments};
pub(crate) use doing::run;
pub(crate) use list::list;

/// An action, and whose it is.
struct Offer {
    origin: Origin,
    action: Action,
}

/// The scripts that are the same for every cluster.
struct Scripts {
    own: Option<Customizations>,
    shipped: Customizations,
}

impl Scripts {
    /// With those below a folder before those that are shipped.
    fn read(folder: Option<&Path>) -> Result<Scripts, Complaint> {
        let own = folder.map(ruling::scripts_in_lua).transpose();
        let own = own.map_err(|error| Complaint::unreadable("cannot read actions").because(&error))?;
        Ok(Scripts { own, shipped: shipped_actions() })
    }

    /// All scripts in their order, where the cluster has these.
    fn in_order<'s>(
        &'s self,
        of_cluster: &'s [Customizations],
    ) -> impl Iterator<Item = (Origin, &'s Customizations)> {
        let own = self.own.iter().map(|scripts| (Origin::User, scripts));
        let of_cluster = of_cluster.iter().map(|scripts| (Origin::Cluster, scripts));
        own.chain(of_cluster).chain([(Origin::Shipped, &self.shipped)])
    }

    /// What can be done with an object, by name, and what goes wrong with scripts that should say so.
    fn offers(
        &self,
        of_cluster: &[Customizations],
        object: &Object<'_>,
        now: Timestamp,
    ) -> (Vec<Offer>, Vec<LuaError>) {
        let mut offers: Vec<Offer> = Vec::new();
        let mut errors = Vec::new();
        for (origin, scripts) in self.in_order(of_cluster) {
            match scripts.discover(object, now) {
                Ok(actions) => {
                    for action in actions {
                        if !offers.iter().any(|offer| offer.action.name == action.name) {
                            offers.push(Offer { origin, action });
                        }
                    }
                }
                Err(error) => errors.push(error),
            }
        }
        offers.sort_by(|one, other| one.action.name.cmp(&other.action.name));
        (offers, errors)
    }
}

/// That a script fails.
fn failing(cluster: &str, error: &LuaError) -> Complaint {
    Complaint::unreadable(format!("{cluster}: {}", chain(error)))
}
