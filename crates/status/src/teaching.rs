//! Objects in clusters that define health rules for others: their trust and their time budgets.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use taffrail_object::Object;

use crate::verdict::Verdict;

/// Base budget for the objects of one kind in one namespace.
const KIND_BUDGET: Duration = Duration::from_millis(500);

/// Base budget for everything that one namespace defines.
const TEACHER_BUDGET: Duration = Duration::from_secs(2);

/// Budget added per object: many times what an honest script takes, so that many honest objects stay within it.
const PER_OBJECT: Duration = Duration::from_micros(500);

/// An object that defines health rules for other objects.
#[derive(Debug, Clone)]
pub struct Teacher<'t> {
    /// The object itself.
    pub object: Object<'t>,
    /// The name of its cluster.
    pub home: &'t str,
    /// The name of the cluster of the judged objects.
    pub target: &'t str,
    /// The weight of its verdicts.
    pub voice: Voice,
    /// The account that its time is charged to.
    pub payer: Payer,
    /// The namespace, in the home cluster, of the author who claims the judged objects.
    pub claimant: Cow<'t, str>,
}

impl<'t> Teacher<'t> {
    /// Creates a teacher with full weight for objects of its own cluster.
    pub fn of_cluster(cluster: &'t str, object: Object<'t>) -> Teacher<'t> {
        let claimant = object.namespace().into_owned().into();
        Teacher {
            object,
            home: cluster,
            target: cluster,
            voice: Voice::Full,
            payer: Payer::Teacher,
            claimant,
        }
    }
}

/// The weight of the verdicts of a teacher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Voice {
    /// Its verdicts can only worsen a status.
    OnlyWorse,
    /// Its verdicts decide.
    Full,
}

/// The account that is charged for slow rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Payer {
    /// The objects' namespace: the cluster's operators have written the rules.
    Object,
    /// The namespace in which the rules are written.
    Teacher,
    /// The namespace whose author claims the objects, where the objects do not confirm the claim.
    Claimant,
}

/// The namespaces and clusters that the user trusts beyond what clusters prove.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trust {
    /// Namespaces of Argo CDs: `NAMESPACE` in any cluster, or `CLUSTER/NAMESPACE`.
    pub argocd: Vec<String>,
    /// Names of clusters whose rules count in full for objects of other clusters.
    pub homes: Vec<String>,
}

impl Trust {
    /// The empty trust.
    pub const NONE: &'static Trust = &Trust { argocd: Vec::new(), homes: Vec::new() };

    /// Returns true if the user trusts an Argo CD in a namespace of a cluster.
    pub fn names_argocd(&self, cluster: &str, namespace: &str) -> bool {
        self.argocd.iter().any(|entry| match entry.rsplit_once('/') {
            // Context names may contain slashes, namespace names may not.
            Some((of, name)) => of == cluster && name == namespace,
            None => entry == namespace,
        })
    }

    /// Returns true if the rules of a cluster count in full for objects of other clusters.
    pub fn names_home(&self, cluster: &str) -> bool {
        self.homes.iter().any(|home| home == cluster)
    }
}

/// The key of a time account: home and namespace of the teacher; cluster, namespace, group and kind of the objects. A
/// part that does not matter is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Account {
    teacher: Option<(String, String)>,
    objects: Option<[String; 4]>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    time: Duration,
    objects: u32,
}

impl Spent {
    fn has_room(self, floor: Duration) -> bool {
        self.time < floor.saturating_add(PER_OBJECT.saturating_mul(self.objects))
    }
}

/// The time that judging has cost in one look, by account.
///
/// No account can use up another one's budget, and the costly kinds of a namespace do not affect its other kinds.
#[derive(Debug, Default)]
pub struct Look {
    spent: Mutex<HashMap<Account, Spent>>,
    /// Time spent parsing the rules of namespaces, by home and namespace.
    read: Mutex<HashMap<(String, String), Duration>>,
}

impl Look {
    /// Time limit per look for parsing the rules of one namespace: some thousand expressions. Objects do not add to it,
    /// because each expression is parsed once for all of them.
    pub const READING: Duration = Duration::from_millis(500);

    /// Returns true if there is time left to parse rules of a namespace.
    pub fn may_read(&self, home: &str, namespace: &str) -> bool {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let took = read.get(&(home.to_owned(), namespace.to_owned()));
        took.is_none_or(|took| *took < Look::READING)
    }

    /// Charges the time of parsing a rule of a namespace.
    pub fn charge_reading(&self, home: &str, namespace: &str, time: Duration) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let took = read.entry((home.to_owned(), namespace.to_owned())).or_default();
        *took = took.saturating_add(time);
    }

    fn accounts(teacher: &Teaching<'_>, object: &Object<'_>) -> Vec<(Account, Duration)> {
        let Teaching { home, namespace, target, payer } = teacher;
        let place = object.namespace();
        let objects = [*target, &*place, object.group(), object.kind()].map(str::to_owned);
        let of_teacher = Some(((*home).to_owned(), (*namespace).to_owned()));
        match payer {
            Payer::Object => vec![(Account { teacher: None, objects: Some(objects) }, KIND_BUDGET)],
            Payer::Teacher | Payer::Claimant => vec![
                (Account { teacher: of_teacher.clone(), objects: Some(objects) }, KIND_BUDGET),
                (Account { teacher: of_teacher, objects: None }, TEACHER_BUDGET),
            ],
        }
    }

    /// Returns true if there is time left to judge an object by this teacher's rules.
    pub fn has_room(&self, teacher: &Teaching<'_>, object: &Object<'_>) -> bool {
        let spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |account| spent.get(&account).copied().unwrap_or_default();
        Look::accounts(teacher, object).into_iter().all(|(account, floor)| of(account).has_room(floor))
    }

    /// Charges the time of judging an object.
    pub fn charge(&self, teacher: &Teaching<'_>, object: &Object<'_>, time: Duration) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        for (account, _) in Look::accounts(teacher, object) {
            let of = spent.entry(account).or_default();
            of.time = of.time.saturating_add(time);
            of.objects = of.objects.saturating_add(1);
        }
    }
}

/// Number of times that a script may be stopped before it is not run again.
const MAX_STRIKES: u8 = 2;

/// Maximum number of kinds and namespaces for which stopped scripts are counted.
const MAX_STRUCK: usize = 10_000;

/// Counts of stopped scripts, by the kind of the objects and the place that contains them.
#[derive(Debug, Default)]
pub struct Strikes(Mutex<HashMap<(String, String), Strike>>);

#[derive(Debug, Clone)]
struct Strike {
    times: u8,
    verdict: Verdict,
}

impl Strikes {
    /// Returns the verdict for an object in the place `inside` if the script is no longer run there; `None` if it is.
    pub fn verdict(&self, object: &Object<'_>, inside: &str) -> Option<Verdict> {
        let strikes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Strike { verdict, .. } = strikes
            .get(&Strikes::place(object, inside))
            .filter(|strike| strike.times >= MAX_STRIKES)?
            .clone();
        let message = format!("{}; after {MAX_STRIKES} such runs it is not run again", verdict.message);
        Some(Verdict { message: message.into(), ..verdict })
    }

    /// Counts that the script was stopped for an object in the place `inside`, and keeps the verdict.
    pub fn add(&self, object: &Object<'_>, inside: &str, verdict: &Verdict) {
        let mut strikes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if strikes.len() >= MAX_STRUCK {
            strikes.clear();
        }
        let place = Strikes::place(object, inside);
        let own = strikes.entry(place).or_insert_with(|| Strike { times: 0, verdict: verdict.clone() });
        own.times = own.times.saturating_add(1);
    }

    fn place(object: &Object<'_>, inside: &str) -> (String, String) {
        (format!("{}/{}", object.group(), object.kind()), inside.to_owned())
    }
}

/// The parties to a teacher's verdict, for the accounts of a [`Look`].
#[derive(Debug, Clone, Copy)]
pub struct Teaching<'t> {
    /// The name of the cluster of the rules.
    pub home: &'t str,
    /// The namespace of the rules, or of the claimant who pays for them.
    pub namespace: &'t str,
    /// The name of the cluster of the objects.
    pub target: &'t str,
    /// The account that the time is charged to.
    pub payer: Payer,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn teaching(namespace: &str, payer: Payer) -> Teaching<'_> {
        Teaching { home: "hub", namespace, target: "hub", payer }
    }

    #[test]
    fn an_excess_is_charged_to_its_own_namespace_and_kind() {
        let look = Look::default();
        let object = |namespace: &str, kind: &str| json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "a", "namespace": namespace}});
        let (heavy, other_kind, other) =
            (object("tenant", "Widget"), object("tenant", "Gadget"), object("shop", "Widget"));
        let [heavy, other_kind, other] =
            [&heavy, &other_kind, &other].map(|tree| Object::new(tree.into()).unwrap());
        let argo = teaching("argocd", Payer::Object);
        for _ in 0..11 {
            look.charge(&argo, &heavy, Duration::from_millis(50));
        }
        assert!(!look.has_room(&argo, &heavy));
        assert!(look.has_room(&argo, &other_kind));
        assert!(look.has_room(&argo, &other));

        // Who teaches by himself pays by himself, wherever the objects are.
        let tenant = teaching("tenant", Payer::Teacher);
        for number in 0..50 {
            let tree = object(&format!("n{number}"), "Widget");
            look.charge(&tenant, &Object::new((&tree).into()).unwrap(), Duration::from_millis(50));
        }
        assert!(!look.has_room(&tenant, &other));
        assert!(look.has_room(&teaching("flux-system", Payer::Teacher), &other));
        assert!(look.has_room(&argo, &other));
    }

    #[test]
    fn many_objects_stay_within_the_budget() {
        let look = Look::default();
        let tree = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
        let object = Object::new((&tree).into()).unwrap();
        for _ in 0..100_000 {
            assert!(look.has_room(&teaching("flux-system", Payer::Teacher), &object));
            look.charge(&teaching("flux-system", Payer::Teacher), &object, Duration::from_micros(200));
        }
    }

    #[test]
    fn trusted_argo_cd_may_be_limited_to_one_cluster() {
        let trust =
            Trust { argocd: vec!["argocd".into(), "arn:aws:eks/prod/gitops".into()], homes: Vec::new() };
        assert!(trust.names_argocd("dev", "argocd"));
        assert!(trust.names_argocd("arn:aws:eks/prod", "gitops"));
        assert!(!trust.names_argocd("dev", "gitops"));
    }
}
