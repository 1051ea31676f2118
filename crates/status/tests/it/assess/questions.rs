//! Tests of the lookups of an assessment: only kinds with few objects are listed as a whole.

use std::cell::RefCell;

use taffrail_object::{Object, ObjectKeyRef};
use taffrail_status::assess::{Dump, Event, assess};
use taffrail_status::{ClusterState, Listing, Observed, Presence};

use super::{all, event, now, pod, read};

/// A cluster state that notes the kinds whose objects are all listed.
struct Noted<'a> {
    dump: Dump<'a>,
    listed: RefCell<Vec<String>>,
}

impl ClusterState for Noted<'_> {
    fn get(&self, key: ObjectKeyRef<'_>) -> Presence<'_> {
        self.dump.get(key)
    }

    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.dump.owned(uid, namespace)
    }

    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.dump.dependents(uid, namespace)
    }

    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool {
        self.dump.tells_absence(group, kind, namespace)
    }

    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_> {
        self.listed.borrow_mut().push(kind.to_owned());
        self.dump.of_kind(group, kind, namespace)
    }

    fn users(&self, namespace: &str, claim: &str) -> Listing<'_> {
        self.dump.users(namespace, claim)
    }

    fn definition(&self, group: &str, kind: &str) -> Option<Observed<'_>> {
        self.dump.definition(group, kind)
    }

    fn in_namespace(&self, namespace: &str) -> Listing<'_> {
        self.listed.borrow_mut().push(format!("all in {namespace}"));
        self.dump.in_namespace(namespace)
    }

    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>> {
        self.dump.events(about)
    }

    fn is_observed(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool {
        self.dump.is_observed(group, kind, namespace)
    }
}

/// Assesses the first object of `yaml`; returns the kinds whose objects were all listed for that.
fn listed(yaml: &str) -> Vec<String> {
    let objects = read(yaml);
    let objects: Vec<_> = objects.iter().filter_map(|object| Object::new(object.into()).ok()).collect();
    let noted = Noted { dump: Dump::new(objects.iter().cloned()), listed: RefCell::default() };
    assess(&objects[0], &noted, &taffrail_status::ActiveRules::default(), now());
    noted.listed.into_inner()
}

const CLASS: &str = "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: lazy}, \
                     volumeBindingMode: WaitForFirstConsumer}";

const CLAIM: &str = "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop, uid: u-data, creationTimestamp: '2026-03-01T11:00:00Z'}
spec: {storageClassName: lazy}
status: {phase: Pending}
";

#[test]
fn claim_reads_only_its_own_users() {
    let user = pod("web", "spec: {volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}");
    assert_eq!(listed(&all(&[CLAIM, CLASS, &user])), Vec::<String>::new());
    let bound = CLAIM.replace("phase: Pending", "phase: Bound").replace(
        "uid: u-data",
        "deletionTimestamp: '2026-03-01T11:59:00Z', finalizers: [kubernetes.io/pvc-protection]",
    );
    assert_eq!(listed(&all(&[&bound, &user])), Vec::<String>::new());
}

#[test]
fn pod_with_volume_attached_elsewhere_reads_the_claims_users() {
    let volumes = "volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]";
    let waiting = pod("web", &format!("spec: {{nodeName: n1, {volumes}}}\nstatus: {{phase: Pending}}"));
    let other = pod("other", &format!("spec: {{nodeName: n2, {volumes}}}\nstatus: {{phase: Running}}"));
    let failing =
        event("Pod/web", "Warning", "FailedAttachVolume", 1, "11:59:00", "Multi-Attach error for volume d");
    assert_eq!(listed(&all(&[&waiting, &other, &failing])), Vec::<String>::new());
}

#[test]
fn custom_resource_reads_its_own_definition() {
    let definition = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.dev}
spec: {group: example.dev, names: {kind: Widget}, versions: [{name: v1, subresources: {status: {}}}]}
";
    let widget = "{apiVersion: example.dev/v1, kind: Widget, \
                  metadata: {name: w, namespace: shop, creationTimestamp: '2026-03-01T11:59:00Z'}}";
    assert_eq!(listed(&all(&[widget, definition])), Vec::<String>::new());
    super::check(&all(&[widget, definition]), "InProgress < example.dev/Widget/shop/w: no controller");
}
