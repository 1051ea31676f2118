//! The container images that the specs of objects name and that their Pods run.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use taffrail_apps::{AppList, Objects, Ownerships, controllers, declared, members};
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey};
use taffrail_status::Presence;

use crate::question::AskedFleet;

/// Maximum length of an image's name in bytes; images with longer names are ignored. No valid name is as long.
const MAX_NAME: usize = 1024;

/// Maximum number of images of one object; of more, the first by name are kept.
const MAX_IMAGES: usize = 8;

/// A container image of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageUse {
    /// The image as the containers name it: `ghcr.io/acme/web:1.5.0`.
    pub image: String,
    /// True if the spec of the object names the image: in its Pod template, or as a Pod. A spec that somebody changed
    /// by hand names another image than Git declares.
    pub in_spec: bool,
    /// Number of Pods that have a container of this image and that the object controls or is, without Pods that ended;
    /// left out if none was seen and the Pods of the namespace were not all read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<usize>,
}

/// The images of one object, shared by its rows.
type ObjectImages = Rc<[ImageUse]>;

/// The objects of a fleet whose specs name, or whose Pods run, images with a given part in their names.
pub struct ImageUses<'f> {
    /// Parts of image names, of which an image must contain one.
    parts: &'f [String],
    clusters: BTreeMap<&'f str, ClusterImages<'f>>,
    /// A cache of the results of [`ImageUses::get`], by cluster and object: any number of apps may list one object.
    known: RefCell<HashMap<(String, ObjectKey), ObjectImages>>,
}

/// The wanted images that run in one cluster.
struct ClusterImages<'f> {
    objects: &'f dyn Objects,
    /// The wanted images of Pods and the number of Pods with each, by each object that is or controls these Pods.
    running: HashMap<ObjectKey, BTreeMap<String, usize>>,
    /// The Pods that run a wanted image, each with the objects that control it, the nearest first.
    pods: Vec<(ObjectKey, Vec<ObjectKey>)>,
}

impl<'f> ImageUses<'f> {
    /// Finds the Pods in `clusters` that have not ended and have an image whose name contains one of `parts`.
    pub fn of(parts: &'f [String], clusters: &[&'f dyn Objects]) -> ImageUses<'f> {
        let of_cluster = |objects: &'f dyn Objects| {
            let mut found = ClusterImages { objects, running: HashMap::new(), pods: Vec::new() };
            for pod in objects.of_kind("", "Pod", None) {
                let phase = pod.object.text(&["status", "phase"]);
                let images = wanted(parts, &pod.object);
                if images.is_empty() || ["Succeeded", "Failed"].contains(&&*phase) {
                    continue;
                }
                let key = pod.key.to_owned();
                let owners = controllers(objects, &key);
                for object in std::iter::once(&key).chain(&owners) {
                    let counts = found.running.entry(object.clone()).or_default();
                    images.iter().for_each(|image| *counts.entry(image.clone()).or_default() += 1);
                }
                found.pods.push((key, owners));
            }
            (objects.name(), found)
        };
        let clusters = members(clusters).into_iter().map(|member| of_cluster(member.objects)).collect();
        ImageUses { parts, clusters, known: RefCell::default() }
    }

    /// Returns the wanted images that the spec of an object names or that Pods of it run, sorted by name, at most 8;
    /// none if the object was not read.
    pub fn get(&self, cluster: &str, key: &ObjectKey) -> ObjectImages {
        let mut known = self.known.borrow_mut();
        let place = (cluster.to_owned(), key.clone());
        known.entry(place).or_insert_with(|| self.find(cluster, key).into()).clone()
    }

    fn find(&self, cluster: &str, key: &ObjectKey) -> Vec<ImageUse> {
        let Some(ClusterImages { objects, running, .. }) = self.clusters.get(cluster) else {
            return Vec::new();
        };
        let Presence::Present(observed) = objects.get(key.as_ref()) else { return Vec::new() };
        let named = wanted(self.parts, &observed.object);
        let none = BTreeMap::new();
        let running = running.get(key).unwrap_or(&none);
        let all: BTreeSet<&String> = named.iter().chain(running.keys()).collect();
        let none_seen = objects.knows_users(&key.namespace).then_some(0);
        let of_image = |image: &String| ImageUse {
            image: image.clone(),
            in_spec: named.contains(image),
            pods: running.get(image).copied().or(none_seen),
        };
        all.into_iter().take(MAX_IMAGES).map(of_image).collect()
    }

    /// Returns objects that run a wanted image, judged as one app in each cluster: of each Pod with one that no app
    /// declares, even unconfirmed, the topmost of its controllers that was read, or else the Pod. With `pods` returns
    /// instead all Pods with a wanted image. `belongings` are those of all apps of `fleet`.
    pub(crate) fn beside(&self, fleet: &dyn AskedFleet, belongings: &Ownerships<'_>, pods: bool) -> AppList {
        let of_cluster = |ClusterImages { objects, pods: running, .. }: &ClusterImages<'_>| {
            let is_read = |key: &&ObjectKey| matches!(objects.get(key.as_ref()), Presence::Present(_));
            let is_unclaimed = |pod: &ObjectKey| {
                let own = belongings.of(*objects, pod);
                own.apps.is_empty() && own.listed.is_empty()
            };
            let told: BTreeSet<&ObjectKey> = match pods {
                true => running.iter().map(|(pod, _)| pod).collect(),
                false => {
                    let unclaimed = running.iter().filter(|(pod, _)| is_unclaimed(pod));
                    unclaimed.map(|(pod, owners)| owners.iter().rev().find(is_read).unwrap_or(pod)).collect()
                }
            };
            let keys: Vec<ObjectKey> = told.into_iter().cloned().collect();
            let app = (!keys.is_empty())
                .then(|| declared(&[*objects], &keys, &fleet.rules(), fleet.now()).apps.pop());
            app.flatten()
        };
        AppList { apps: self.clusters.values().filter_map(of_cluster).collect(), ..AppList::default() }
    }
}

/// Returns those images of an object whose names contain one of `parts`, sorted.
fn wanted(parts: &[String], object: &Object<'_>) -> BTreeSet<String> {
    let is_wanted =
        |image: &String| image.len() <= MAX_NAME && parts.iter().any(|part| image.contains(part.as_str()));
    images(object).into_iter().filter(is_wanted).collect()
}

/// Returns the images of the containers and init containers of an object: of a Pod, or of the Pod template that it
/// contains.
fn images(object: &Object<'_>) -> Vec<String> {
    let specs: [&[&str]; 3] =
        [&["spec"], &["spec", "template", "spec"], &["spec", "jobTemplate", "spec", "template", "spec"]];
    let mut images = Vec::new();
    for spec in specs.iter().filter_map(|path| object.at(path)) {
        for list in ["initContainers", "containers"] {
            let containers = spec.get(list).and_then(Value::items).into_iter().flatten();
            let image = |container: Value<'_>| Some(container.get("image")?.as_str()?.into_owned());
            images.extend(containers.filter_map(image));
        }
    }
    images
}
