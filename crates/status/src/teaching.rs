//! Objects in clusters that define health rules for other objects: their trust and their time budgets.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use taffrail_object::Object;

use crate::verdict::Verdict;

/// The time that rules may always take per pass for the objects of one kind in one namespace, at the cost of one payer;
/// each judged object adds [`PER_OBJECT`].
const KIND_BUDGET: Duration = Duration::from_millis(500);

/// The time that all rules defined in one namespace may always take per pass; each judged object adds [`PER_OBJECT`].
const TEACHER_BUDGET: Duration = Duration::from_secs(2);

/// The time that each judged object adds to a time limit: many times the run of a usual script, so that many usual
/// objects stay within it.
const PER_OBJECT: Duration = Duration::from_micros(500);

/// An object that defines health rules for other objects.
#[derive(Debug, Clone)]
pub struct Teacher<'t> {
    /// The object itself.
    pub object: Object<'t>,
    /// The name of the home cluster, which contains the teacher.
    pub home: &'t str,
    /// The name of the target cluster, which contains the judged objects.
    pub target: &'t str,
    /// The effect of the teacher's verdicts.
    pub voice: Voice,
    /// The account to which the time of the teacher's rules is charged.
    pub payer: Payer,
    /// The namespace, in the home cluster, of the app that claims the judged objects.
    pub claimant: Cow<'t, str>,
}

impl<'t> Teacher<'t> {
    /// Creates a teacher for objects of its own cluster: its verdicts decide, and its own namespace pays.
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

/// The effect of the verdicts that a teacher's rules give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Voice {
    /// The teacher's verdicts can only worsen a status, and change none that the user's own rules give.
    OnlyWorse,
    /// The teacher's verdicts decide.
    Full,
}

/// The account to which the time of a teacher's rules is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Payer {
    /// The namespace of the judged objects, because the cluster's operators have written the rules.
    Object,
    /// The namespace that contains the rules.
    Teacher,
    /// The namespace whose app claims the objects, because the objects do not confirm the claim.
    Claimant,
}

/// The namespaces and clusters whose rules the user trusts explicitly.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trust {
    /// Trusted namespaces with an Argo CD: `NAMESPACE` in any cluster, or `CLUSTER/NAMESPACE`.
    pub argocd: Vec<String>,
    /// Names of home clusters whose rules decide the status of objects in other clusters too ([`Voice::Full`]).
    pub homes: Vec<String>,
}

impl Trust {
    /// Trust in no namespace and no cluster.
    pub const NONE: &'static Trust = &Trust { argocd: Vec::new(), homes: Vec::new() };

    /// Returns true if the user trusts an Argo CD in this namespace of this cluster.
    pub fn names_argocd(&self, cluster: &str, namespace: &str) -> bool {
        self.argocd.iter().any(|entry| match entry.rsplit_once('/') {
            // Context names may contain slashes, namespace names may not.
            Some((of, name)) => of == cluster && name == namespace,
            None => entry == namespace,
        })
    }

    /// Returns true if the user trusts the rules of this cluster to decide the status of objects in other clusters.
    pub fn names_home(&self, cluster: &str) -> bool {
        self.homes.iter().any(|home| home == cluster)
    }
}

/// The key of a time account. `teacher` is home cluster and namespace; `objects` is target cluster, namespace, group
/// and kind. `None` stands for a total over all teachers or objects.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Account {
    teacher: Option<(String, String)>,
    objects: Option<[String; 4]>,
}

/// The time that rules took, and the number of objects judged in it.
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

/// The time that scripts and expressions took in one pass over a cluster, by the namespace whose rules they are and by
/// the cluster, namespace, group and kind of the judged objects.
///
/// No account can use up another one's budget, and the costly kinds of a namespace do not affect its other kinds.
#[derive(Debug, Default)]
pub struct TeachingTime {
    spent: Mutex<HashMap<Account, Spent>>,
    /// Time spent on parsing the rules of a namespace, by home cluster and namespace.
    read: Mutex<HashMap<(String, String), Duration>>,
}

impl TeachingTime {
    /// Time limit per pass for parsing the rules of one namespace: enough for some thousand expressions. It does not
    /// grow with the objects, because each expression is parsed once for all of them.
    pub const READING: Duration = Duration::from_millis(500);

    /// Returns true if there is time left to parse rules of `namespace` in the cluster `home`.
    pub fn may_read(&self, home: &str, namespace: &str) -> bool {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let took = read.get(&(home.to_owned(), namespace.to_owned()));
        took.is_none_or(|took| *took < TeachingTime::READING)
    }

    /// Adds `time` to the time spent on parsing rules of `namespace` in the cluster `home`.
    pub fn charge_reading(&self, home: &str, namespace: &str, time: Duration) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let took = read.entry((home.to_owned(), namespace.to_owned())).or_default();
        *took = took.saturating_add(time);
    }

    /// Returns the accounts that pay for the rules of `teacher` on `object`, each with the time it has in any case:
    /// that of the object's kind and namespace; unless the object pays, of this teacher alone, and then also its total.
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

    /// Returns true if all accounts that pay for the rules of `teacher` on `object` have time left.
    pub fn has_room(&self, teacher: &Teaching<'_>, object: &Object<'_>) -> bool {
        let spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |account| spent.get(&account).copied().unwrap_or_default();
        TeachingTime::accounts(teacher, object)
            .into_iter()
            .all(|(account, floor)| of(account).has_room(floor))
    }

    /// Adds `time` and one judged object to the accounts that `teacher.payer` selects: the kind's in the object's
    /// namespace for [`Payer::Object`], else the teacher's for this kind and namespace and the teacher's total.
    pub fn charge(&self, teacher: &Teaching<'_>, object: &Object<'_>, time: Duration) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        for (account, _) in TeachingTime::accounts(teacher, object) {
            let of = spent.entry(account).or_default();
            of.time = of.time.saturating_add(time);
            of.objects = of.objects.saturating_add(1);
        }
    }
}

/// Number of times that a script is stopped for objects of one kind and namespace before it is no longer run on them.
const MAX_STRIKES: u8 = 2;

/// Maximum number of pairs of a kind and a namespace (`inside`) for which stopped scripts are counted; at this number
/// all counts are cleared.
const MAX_STRUCK: usize = 10_000;

/// The number of times that one script was stopped, by the objects' `group/Kind` and a text that the caller chooses,
/// such as the objects' namespace.
#[derive(Debug, Default)]
pub struct Strikes(Mutex<HashMap<(String, String), Strike>>);

/// The number of times that a script was stopped, and the verdict of the first time.
#[derive(Debug, Clone)]
struct Strike {
    times: u8,
    verdict: Verdict,
}

impl Strikes {
    /// Returns the stored verdict, its message extended by the reason, if the script was stopped at least two times for
    /// objects of the kind of `object` with the text `inside`, such as the namespace; `None` if it may run.
    pub fn verdict(&self, object: &Object<'_>, inside: &str) -> Option<Verdict> {
        let strikes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Strike { verdict, .. } = strikes
            .get(&Strikes::place(object, inside))
            .filter(|strike| strike.times >= MAX_STRIKES)?
            .clone();
        let message =
            format!("{}; after {MAX_STRIKES} such runs the script is not run again", verdict.message);
        Some(Verdict { message: message.into(), ..verdict })
    }

    /// Counts that the script was stopped for an object of this kind with the text `inside`, such as the namespace;
    /// stores `verdict` if it is the first time.
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

/// The namespace whose rules judge an object, and the object's cluster; they select the accounts of a
/// [`TeachingTime`] that pay.
#[derive(Debug, Clone, Copy)]
pub struct Teaching<'t> {
    /// The name of the home cluster, which contains the rules.
    pub home: &'t str,
    /// The namespace of the rules, or the one that claims the objects and pays.
    pub namespace: &'t str,
    /// The name of the target cluster, which contains the objects.
    pub target: &'t str,
    /// The account to which the time is charged.
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
        let spent = TeachingTime::default();
        let object = |namespace: &str, kind: &str| json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "a", "namespace": namespace}});
        let (heavy, other_kind, other) =
            (object("tenant", "Widget"), object("tenant", "Gadget"), object("shop", "Widget"));
        let [heavy, other_kind, other] =
            [&heavy, &other_kind, &other].map(|tree| Object::new(tree.into()).unwrap());
        let argo = teaching("argocd", Payer::Object);
        for _ in 0..11 {
            spent.charge(&argo, &heavy, Duration::from_millis(50));
        }
        assert!(!spent.has_room(&argo, &heavy));
        assert!(spent.has_room(&argo, &other_kind));
        assert!(spent.has_room(&argo, &other));

        // Who teaches by himself pays by himself, wherever the objects are.
        let tenant = teaching("tenant", Payer::Teacher);
        for number in 0..50 {
            let tree = object(&format!("n{number}"), "Widget");
            spent.charge(&tenant, &Object::new((&tree).into()).unwrap(), Duration::from_millis(50));
        }
        assert!(!spent.has_room(&tenant, &other));
        assert!(spent.has_room(&teaching("flux-system", Payer::Teacher), &other));
        assert!(spent.has_room(&argo, &other));
    }

    #[test]
    fn many_objects_stay_within_the_budget() {
        let spent = TeachingTime::default();
        let tree = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
        let object = Object::new((&tree).into()).unwrap();
        for _ in 0..100_000 {
            assert!(spent.has_room(&teaching("flux-system", Payer::Teacher), &object));
            spent.charge(&teaching("flux-system", Payer::Teacher), &object, Duration::from_micros(200));
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
