//! The apps of a run, their objects, and the changes that make them well and unwell.

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use taffrail_testkit::objects::namespace;

use crate::ground::Ground;
use crate::hub::{Source, Way};

/// The namespace of all objects.
pub(crate) const NAMESPACE: &str = "apps";

const REVISION: &str = "main@sha1:3f1c9a7be1d84a0c5e7d2b96f80a41c2d7e5b613";

/// A custom resource in [`NAMESPACE`].
#[derive(Clone, Debug)]
pub(crate) struct Place {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    name: String,
}

impl Place {
    fn source() -> Place {
        Place {
            group: "source.toolkit.fluxcd.io",
            version: "v1",
            kind: "GitRepository",
            plural: "gitrepositories",
            name: "fleet".to_owned(),
        }
    }

    fn kustomization(name: &str) -> Place {
        Place {
            group: "kustomize.toolkit.fluxcd.io",
            version: "v1",
            kind: "Kustomization",
            plural: "kustomizations",
            name: name.to_owned(),
        }
    }

    fn widget(name: &str) -> Place {
        Place {
            group: "example.com",
            version: "v1",
            kind: "Widget",
            plural: "widgets",
            name: name.to_owned(),
        }
    }

    /// Returns `GROUP/PLURAL/NAMESPACE/NAME`.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}/{NAMESPACE}/{}", self.group, self.plural, self.name)
    }

    pub(crate) fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn object(&self, spec: Value) -> Value {
        json!({"apiVersion": self.api_version(), "kind": self.kind,
            "metadata": {"namespace": NAMESPACE, "name": self.name}, "spec": spec})
    }
}

/// The two halves of an app in a cluster, each of which can be wrongly green.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The object in the cluster that the app lands in, and the health of the row.
    Observed,
    /// The declaring object in its home, and the sync state of the row.
    Declared,
}

pub(crate) const SIDES: [Side; 2] = [Side::Observed, Side::Declared];

/// An app in a cluster.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) name: String,
    /// The number of the cluster that declares it.
    pub(crate) home: usize,
    /// The number of the cluster that it lands in.
    pub(crate) target: usize,
    /// True if the source of the cluster tells of the declaring object, too.
    is_declared_told: bool,
}

impl Pair {
    /// Returns true if the hub can know one side of it.
    pub(crate) fn is_told(&self, side: Side) -> bool {
        side == Side::Observed || self.is_declared_told
    }

    /// Returns the number of the cluster that holds one side.
    pub(crate) fn cluster(&self, side: Side) -> usize {
        match side {
            Side::Observed => self.target,
            Side::Declared => self.home,
        }
    }

    fn place(&self, side: Side) -> Place {
        match side {
            Side::Observed => Place::widget(&self.name),
            Side::Declared => Place::kustomization(&self.name),
        }
    }
}

/// A way in which a side is not well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// Its condition Ready is False.
    NotReady,
    /// It does not exist.
    Gone,
}

/// All pairs, and their objects as they are when they are well, a [`Side::Observed`] and a [`Side::Declared`] for each.
pub(crate) struct World {
    pub(crate) pairs: Vec<Pair>,
    well: Vec<[Value; 2]>,
}

impl World {
    /// Creates the apps `local` for each cluster that it declares itself, of the same names in each, and the apps of
    /// `far`, each with its home and its target.
    pub(crate) fn furnish(ground: &Ground, way: Way, local: usize, far: &[(usize, usize)]) -> Result<World> {
        let clusters = ground.names().len();
        let own = (0..clusters).flat_map(|cluster| (0..local).map(move |number| (number, cluster, cluster)));
        let far = (local..).zip(far).map(|(number, (home, target))| (number, *home, *target));
        let pairs: Vec<Pair> = own
            .chain(far)
            .map(|(number, home, target)| {
                let is_declared_told = way.source(home) != Source::Metrics;
                Pair { name: format!("app-{number}"), home, target, is_declared_told }
            })
            .collect();
        for cluster in 0..clusters {
            let mut objects = vec![
                namespace(NAMESPACE),
                Place::source().object(json!({"interval": "1m",
                "url": "https://git.example/fleet", "ref": {"branch": "main"}})),
            ];
            for other in (0..clusters).filter(|other| *other != cluster) {
                let value = STANDARD.encode(ground.kubeconfig(&[other]));
                objects.push(json!({"apiVersion": "v1", "kind": "Secret", "data": {"value": value},
                    "metadata": {"namespace": NAMESPACE, "name": format!("cluster-{other}")}}));
            }
            for pair in &pairs {
                if pair.home == cluster {
                    objects.push(declaring(pair));
                }
                if pair.target == cluster {
                    objects.push(declared(pair));
                }
            }
            ground.create(cluster, &objects)?;
            let mut source = ground.read(cluster, &Place::source())?.context("no source")?;
            source["status"] = json!({"observedGeneration": 1, "conditions": [ready(true)],
                "artifact": {"revision": REVISION, "digest": "sha256:5d0c8e7b3f6a91d24c7e8b05a1f3d6927e4b80c15fa6392d7be041c8f95a3e60",
                    "path": "fleet.tar.gz", "url": "http://source/fleet.tar.gz", "lastUpdateTime": "2026-03-01T12:00:00Z", "size": 18230}});
            ground.write(cluster, &Place::source(), &source)?;
        }
        let mut well = Vec::new();
        for pair in &pairs {
            let mut objects = [Value::Null, Value::Null];
            for (object, side) in objects.iter_mut().zip(SIDES) {
                let (cluster, place) = (pair.cluster(side), pair.place(side));
                *object = ground.read(cluster, &place)?.with_context(|| format!("no {}", place.path()))?;
                object["status"] = match side {
                    Side::Observed => json!({"conditions": [ready(true)]}),
                    Side::Declared => {
                        let id = format!("{NAMESPACE}_{}_example.com_Widget", pair.name);
                        json!({"observedGeneration": 1, "conditions": [ready(true)],
                            "lastAppliedRevision": REVISION, "lastAttemptedRevision": REVISION,
                            "inventory": {"entries": [{"id": id, "v": "v1"}]}})
                    }
                };
                ground.write(cluster, &place, object)?;
            }
            well.push(objects);
        }
        Ok(World { pairs, well })
    }

    /// Returns the numbers of the pairs in clusters that the hub knows by a source.
    pub(crate) fn known_by(&self, way: Way, source: Source) -> Vec<usize> {
        (0..self.pairs.len()).filter(|pair| way.source(self.pairs[*pair].target) == source).collect()
    }

    /// Makes one side of a pair well, or unwell by `harm`, behind the back of everybody who follows its cluster.
    pub(crate) fn set(&self, ground: &Ground, pair: usize, side: Side, harm: Option<Harm>) -> Result<()> {
        let (at, it) = (if side == Side::Observed { 0 } else { 1 }, &self.pairs[pair]);
        let (cluster, place, mut object) = (it.cluster(side), it.place(side), self.well[pair][at].clone());
        match harm {
            Some(Harm::Gone) => return ground.remove(cluster, &place),
            Some(Harm::NotReady) => object["status"]["conditions"] = json!([ready(false)]),
            None => {}
        }
        ground.write(cluster, &place, &object)
    }

    /// Reads from the store of its cluster if one side of a pair is well.
    pub(crate) fn is_well(&self, ground: &Ground, pair: usize, side: Side) -> Result<bool> {
        let it = &self.pairs[pair];
        let object = ground.read(it.cluster(side), &it.place(side))?;
        Ok(object.is_some_and(|object| object["status"]["conditions"][0]["status"] == "True"))
    }
}

fn ready(is_ready: bool) -> Value {
    let (status, reason, message) = if is_ready {
        ("True", "Succeeded", format!("Applied revision: {REVISION}"))
    } else {
        ("False", "BuildFailed", "it fails behind the back of all".to_owned())
    };
    json!({"type": "Ready", "status": status, "reason": reason, "message": message, "observedGeneration": 1,
        "lastTransitionTime": "2026-03-01T12:00:00Z"})
}

fn declaring(pair: &Pair) -> Value {
    let mut spec = json!({"interval": "10m", "prune": true, "path": "./",
        "sourceRef": {"kind": "GitRepository", "name": "fleet"}});
    if pair.home != pair.target {
        spec["kubeConfig"] = json!({"secretRef": {"name": format!("cluster-{}", pair.target)}});
    }
    Place::kustomization(&pair.name).object(spec)
}

fn declared(pair: &Pair) -> Value {
    let mut object = Place::widget(&pair.name).object(json!({}));
    object["metadata"]["labels"] = json!({"kustomize.toolkit.fluxcd.io/name": pair.name,
        "kustomize.toolkit.fluxcd.io/namespace": NAMESPACE});
    object
}
