//! Objects that say what health means for others: how far they are heard, and what that may cost.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use taffrail_object::Object;

use crate::verdict::Verdict;

/// Time that the objects of one kind in one namespace may cost whatever they are.
const OF_KIND: Duration = Duration::from_millis(500);

/// Time that all that one namespace teaches may cost whatever it is for.
const OF_TEACHER: Duration = Duration::from_secs(2);

/// Time that each object adds to what may be used: many times what an honest script takes, so that many honest objects stay
/// below.
const EACH: Duration = Duration::from_micros(500);

/// An object that says what health means for others.
#[derive(Debug, Clone)]
pub struct Teacher<'t> {
    /// It itself.
    pub object: Object<'t>,
    /// The name of the cluster that it is in.
    pub home: &'t str,
    /// The name of the cluster of the objects that it speaks of.
    pub target: &'t str,
    /// How far it is heard.
    pub voice: Voice,
    /// Whose budget the time is taken from.
    pub payer: Payer,
    /// The namespace, in the home, of who says which objects are meant.
    pub claimant: Cow<'t, str>,
}

impl<'t> Teacher<'t> {
    /// One that is heard in full, for objects of its own cluster.
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

/// How far one is heard who says what health means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Voice {
    /// It makes objects worse, and never better.
    OnlyWorse,
    /// It decides.
    Full,
}

/// Whose excess it is when what somebody says takes long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Payer {
    /// That of the namespace of the objects: the people of the cluster have written what is asked.
    Object,
    /// That of the namespace in which it is written.
    Teacher,
    /// That of the namespace whose author says that the objects are meant, and of that they do not say so.
    Claimant,
}

/// Namespaces and clusters whose word the user trusts beyond what clusters prove.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trust {
    /// Namespaces of Argo CDs: `NAMESPACE` in any cluster, or `CLUSTER/NAMESPACE`.
    pub argocd: Vec<String>,
    /// Names of clusters whose rules count for objects of other clusters too.
    pub homes: Vec<String>,
}

impl Trust {
    /// Nothing.
    pub const NONE: &'static Trust = &Trust { argocd: Vec::new(), homes: Vec::new() };

    /// Whether the user says that an Argo CD runs in a namespace of a cluster.
    pub fn names_argocd(&self, cluster: &str, namespace: &str) -> bool {
        self.argocd.iter().any(|entry| match entry.rsplit_once('/') {
            // Names of contexts may have slashes, those of namespaces have none.
            Some((of, name)) => of == cluster && name == namespace,
            None => entry == namespace,
        })
    }

    /// Whether the rules of a cluster count in full for objects of others.
    pub fn names_home(&self, cluster: &str) -> bool {
        self.homes.iter().any(|home| home == cluster)
    }
}

/// What an account is of: home and namespace of who teaches; cluster, namespace, group and kind of the objects. Of nothing of
/// the one or the other where that does not matter.
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
        self.time < floor.saturating_add(EACH.saturating_mul(self.objects))
    }
}

/// What the judging of one look has cost, by who is to blame for it.
///
/// No account is so large that one of them can use up another's, and the costly kinds of a namespace leave the others of it as
/// they are.
#[derive(Debug, Default)]
pub struct Look {
    spent: Mutex<HashMap<Account, Spent>>,
    /// The time that it took to read what namespaces have written, by home and namespace.
    read: Mutex<HashMap<(String, String), Duration>>,
}

impl Look {
    /// Time that it may take in one look to read what is written in one namespace: some thousand expressions. No object adds to
    /// it, as each expression is read once however many objects it is asked of.
    pub const READING: Duration = Duration::from_millis(500);

    /// Whether there is time left to read what is written in a namespace of a cluster.
    pub fn may_read(&self, home: &str, namespace: &str) -> bool {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let took = read.get(&(home.to_owned(), namespace.to_owned()));
        took.is_none_or(|took| *took < Look::READING)
    }

    /// Takes down what it has cost to read something of a namespace.
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
            Payer::Object => vec![(Account { teacher: None, objects: Some(objects) }, OF_KIND)],
            Payer::Teacher | Payer::Claimant => vec![
                (Account { teacher: of_teacher.clone(), objects: Some(objects) }, OF_KIND),
                (Account { teacher: of_teacher, objects: None }, OF_TEACHER),
            ],
        }
    }

    /// Whether there is time left to ask what is taught of an object.
    pub fn has_room(&self, teacher: &Teaching<'_>, object: &Object<'_>) -> bool {
        let spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |account| spent.get(&account).copied().unwrap_or_default();
        Look::accounts(teacher, object).into_iter().all(|(account, floor)| of(account).has_room(floor))
    }

    /// Takes down what it has cost to ask.
    pub fn charge(&self, teacher: &Teaching<'_>, object: &Object<'_>, time: Duration) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        for (account, _) in Look::accounts(teacher, object) {
            let of = spent.entry(account).or_default();
            of.time = of.time.saturating_add(time);
            of.objects = of.objects.saturating_add(1);
        }
    }
}

/// How often a script may be stopped before it is not run again.
const STRIKES: u8 = 2;

/// Of so many kinds and namespaces it is known how often a script was stopped.
const STRUCK: usize = 10_000;

/// How often a script was stopped, by the kind of the objects and the place in which they are.
#[derive(Debug, Default)]
pub struct Strikes(Mutex<HashMap<(String, String), Strike>>);

#[derive(Debug, Clone)]
struct Strike {
    times: u8,
    verdict: Verdict,
}

impl Strikes {
    /// What is said of an object `inside` of a place where the script is not run again; nothing where it is.
    pub fn verdict(&self, object: &Object<'_>, inside: &str) -> Option<Verdict> {
        let strikes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Strike { verdict, .. } =
            strikes.get(&Strikes::place(object, inside)).filter(|strike| strike.times >= STRIKES)?.clone();
        let message = format!("{}; after {STRIKES} such runs it is not run again", verdict.message);
        Some(Verdict { message: message.into(), ..verdict })
    }

    /// Takes down that the script was stopped for an object `inside` of a place, and what was said of that.
    pub fn add(&self, object: &Object<'_>, inside: &str, verdict: &Verdict) {
        let mut strikes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if strikes.len() >= STRUCK {
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

/// Who teaches, for the accounts of a [`Look`].
#[derive(Debug, Clone, Copy)]
pub struct Teaching<'t> {
    /// The name of the cluster in which it is written.
    pub home: &'t str,
    /// The namespace in which it is written, or that of the claimant who pays for it.
    pub namespace: &'t str,
    /// The name of the cluster of the objects.
    pub target: &'t str,
    /// Whose budget the time is taken from.
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
    fn many_honest_objects_stay_below() {
        let look = Look::default();
        let tree = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
        let object = Object::new((&tree).into()).unwrap();
        for _ in 0..100_000 {
            assert!(look.has_room(&teaching("flux-system", Payer::Teacher), &object));
            look.charge(&teaching("flux-system", Payer::Teacher), &object, Duration::from_micros(200));
        }
    }

    #[test]
    fn an_argo_cd_is_named_in_all_clusters_or_in_one() {
        let trust =
            Trust { argocd: vec!["argocd".into(), "arn:aws:eks/prod/gitops".into()], homes: Vec::new() };
        assert!(trust.names_argocd("dev", "argocd"));
        assert!(trust.names_argocd("arn:aws:eks/prod", "gitops"));
        assert!(!trust.names_argocd("dev", "gitops"));
    }
}
