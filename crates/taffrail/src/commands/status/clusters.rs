//! Objects of clusters, named as kubectl names them.

use std::sync::Arc;

use futures::future::join_all;
use taffrail_apps::{Observed, Snapshot};
use taffrail_cluster::{ApiResource, Cluster, Discovery, Form, ListRequest, ReadError};
use taffrail_status::json::OwnedDocument;
use taffrail_status::{Object, Status, Verdict};

use super::arguments::StatusArguments;
use super::judge::{Answers, Judge, Row};
use super::print::Printer;
use crate::complaint::{Complaint, Exit, chain};
use crate::reasons;
use crate::source::{self, Failure, Live, Members};

/// A kind, and the name of one object of it or of none: all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) kind: String,
    pub(super) name: Option<String>,
}

/// What was asked for, for every cluster the same.
pub(super) struct Asked {
    pub(super) wanted: Vec<Wanted>,
    namespace: Option<String>,
    all_namespaces: bool,
    pub(super) selector: Option<String>,
}

/// What one cluster answered.
#[derive(Default)]
struct Found {
    objects: Vec<OwnedDocument>,
    absent: Vec<Row>,
    failures: Vec<Failure>,
}

impl Asked {
    pub(super) fn read(arguments: &StatusArguments) -> Result<Asked, Complaint> {
        let wanted = wanted(&arguments.objects)?;
        if arguments.selector.is_some() && wanted.iter().any(|wanted| wanted.name.is_some()) {
            return Err(Complaint::usage(
                "-l chooses among all objects of a kind, so names make no sense beside it",
            ));
        }
        Ok(Asked {
            wanted,
            namespace: arguments.namespace.clone(),
            all_namespaces: arguments.all_namespaces,
            selector: arguments.selector.clone(),
        })
    }

    /// The namespace in which objects of a kind are meant, where the context has this one; nothing for all of them.
    fn place<'a>(&'a self, resource: &ApiResource, own: &'a str) -> Option<&'a str> {
        match &self.namespace {
            _ if self.all_namespaces || !resource.namespaced => None,
            Some(namespace) => Some(namespace.as_str()),
            None => Some(own),
        }
    }

    /// The kind that one word stands for in a cluster, and where its objects are meant; else why it stands for nothing.
    pub(super) fn meant<'a>(
        &'a self,
        wanted: &Wanted,
        discovery: &Discovery,
        own: &'a str,
    ) -> Result<(ApiResource, Option<&'a str>), String> {
        let Wanted { kind, name } = wanted;
        let Some(resource) = discovery.resolve(kind) else {
            return Err(format!("the server has no kind called {kind}"));
        };
        match name {
            Some(name) if self.all_namespaces && resource.namespaced => {
                Err(format!("{kind} {name}: an object of a name is in one namespace: say which with -n"))
            }
            _ => {
                let place = self.place(&resource, own);
                Ok((resource, place))
            }
        }
    }
}

pub(super) fn run(arguments: &StatusArguments, judge: &Judge) -> Result<Exit, Complaint> {
    let asked = Asked::read(arguments)?;
    if !arguments.source.from.is_empty() {
        return of_dumps(arguments, judge, &asked);
    }

    let Members { members, complaints } = source::members(&arguments.source)?;
    let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
    let asked = Arc::new(asked);
    let found = source::each(members, arguments.source.timeout, move |live| {
        let asked = asked.clone();
        async move { of_cluster(&live, &asked).await }
    })?;
    source::print_requests(
        arguments.source.verbose,
        found.iter().filter_map(|(_, cluster)| cluster.as_ref()),
    );

    let mut printer = Printer::new(arguments, names.len() > 1);
    for complaint in complaints {
        printer.complain(complaint);
    }
    for (name, (found, _)) in names.iter().zip(found) {
        if !print(&mut printer, judge, name, found)? {
            break;
        }
    }
    printer.finish(arguments.exit_status)
}

/// Prints what was found in a cluster; false when nobody reads it any more.
fn print(printer: &mut Printer, judge: &Judge, cluster: &str, found: Found) -> Result<bool, Complaint> {
    for failure in found.failures {
        let complaint = Complaint::unreadable(format!("{cluster}: {}", failure.message));
        printer.complain(complaint.maybe_hint(reasons::hint(&failure.reason).map(str::to_owned)));
    }
    let judged = |document: &OwnedDocument| match Object::new(document.root()) {
        Ok(object) => Some(judge.object(cluster, object)),
        Err(_) => None,
    };
    let answers: Vec<Answers> = found.objects.iter().filter_map(judged).collect();
    let absent = found.absent.into_iter().map(|row| judge.absent(Row { cluster: cluster.to_owned(), ..row }));
    for answers in answers.into_iter().chain(absent) {
        if !printer.print(answers)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads `KIND/NAME …`, `KIND NAME …` or `KIND,…`.
fn wanted(words: &[String]) -> Result<Vec<Wanted>, Complaint> {
    let with_names = words.iter().filter(|word| word.contains('/')).count();
    if with_names == words.len() {
        return words
            .iter()
            .map(|word| match word.split_once('/') {
                Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => {
                    Ok(Wanted { kind: kind.to_owned(), name: Some(name.to_owned()) })
                }
                _ => Err(Complaint::usage(format!("'{word}' is not KIND/NAME"))),
            })
            .collect();
    }
    if with_names > 0 {
        let complaint = Complaint::usage("KIND/NAME and KIND NAME cannot be mixed");
        return Err(complaint.hint("write every object as KIND/NAME: deploy/web svc/web"));
    }
    let Some((kinds, names)) = words.split_first() else { return Ok(Vec::new()) };
    let kinds: Vec<&str> = kinds.split(',').filter(|kind| !kind.is_empty()).collect();
    let of_kind = |kind: &str| -> Vec<Wanted> {
        let kind = kind.to_owned();
        if names.is_empty() {
            return vec![Wanted { kind, name: None }];
        }
        names.iter().map(|name| Wanted { kind: kind.clone(), name: Some(name.clone()) }).collect()
    };
    Ok(kinds.into_iter().flat_map(of_kind).collect())
}

async fn of_cluster(live: &Live, asked: &Asked) -> (Found, Option<Cluster>) {
    let mut found = Found::default();
    let cluster = match live.connect().await {
        Ok(cluster) => cluster,
        Err(failure) => {
            found.failures.push(failure);
            return (found, None);
        }
    };
    let discovery = match cluster.discover().await {
        Ok(discovery) => discovery,
        Err(error) => {
            found.failures.push(of_read(&error));
            return (found, Some(cluster));
        }
    };
    let answers = join_all(asked.wanted.iter().map(|wanted| one(&cluster, &discovery, asked, wanted))).await;
    for answer in answers {
        match answer {
            Ok((objects, absent)) => {
                found.absent.extend(absent);
                for text in objects {
                    match OwnedDocument::parse(text) {
                        Ok(document) => found.objects.push(document),
                        Err(error) => found.failures.push(other(error.to_string())),
                    }
                }
            }
            Err(failure) => found.failures.push(failure),
        }
    }
    (found, Some(cluster))
}

/// The objects that one word asks for, or the row of the one that is not there.
async fn one(
    cluster: &Cluster,
    discovery: &Discovery,
    asked: &Asked,
    wanted: &Wanted,
) -> Result<(Vec<Box<[u8]>>, Option<Row>), Failure> {
    let (resource, namespace) = asked.meant(wanted, discovery, cluster.namespace()).map_err(other)?;
    let Some(name) = &wanted.name else {
        let request = ListRequest {
            namespace,
            label_selector: asked.selector.as_deref(),
            ..ListRequest::all(&resource)
        };
        let listing = cluster.list(&request).await.map_err(|error| of_read(&error))?;
        return Ok((listing.objects, None));
    };
    let object = cluster.get(&resource, namespace, name, Form::Body).await;
    match object.map_err(|error| of_read(&error))? {
        Some(object) => Ok((vec![object], None)),
        None => Ok((Vec::new(), Some(not_found(&resource, namespace, name)))),
    }
}

fn of_read(error: &ReadError) -> Failure {
    Failure { reason: error.reason().as_str().to_owned(), message: chain(error) }
}

/// A failure that says itself what to do.
fn other(message: String) -> Failure {
    Failure { reason: String::new(), message }
}

pub(super) fn not_found(resource: &ApiResource, namespace: Option<&str>, name: &str) -> Row {
    Row {
        cluster: String::new(),
        group: resource.group.clone(),
        version: resource.version.clone(),
        kind: resource.kind.clone(),
        namespace: namespace.unwrap_or_default().to_owned(),
        name: name.to_owned(),
        verdict: Verdict::new(Status::NotFound, "Resource not found", "reader"),
    }
}

/// The same on dumps, whose kinds are known by the objects in them.
fn of_dumps(arguments: &StatusArguments, judge: &Judge, asked: &Asked) -> Result<Exit, Complaint> {
    if asked.selector.is_some() {
        return Err(Complaint::usage("-l asks a server, and dumps have none"));
    }
    let fleet = source::dumps(&arguments.source)?;
    let mut printer = Printer::new(arguments, fleet.snapshots.len() > 1);
    for complaint in fleet.complaints {
        printer.complain(complaint);
    }
    for snapshot in &fleet.snapshots {
        let found = in_dump(snapshot, asked);
        if !print(&mut printer, judge, taffrail_apps::Objects::name(snapshot), found)? {
            break;
        }
    }
    printer.finish(arguments.exit_status)
}

fn in_dump(snapshot: &Snapshot, asked: &Asked) -> Found {
    use taffrail_apps::Objects;

    let mut found = Found::default();
    found.failures.extend(
        snapshot
            .errors()
            .iter()
            .map(|error| Failure { reason: error.reason.clone(), message: error.message.clone() }),
    );
    for wanted in &asked.wanted {
        let before = found.objects.len();
        let chosen = snapshot.all().filter(|observed| {
            is_called(observed, &wanted.kind)
                && wanted.name.as_ref().is_none_or(|name| *name == observed.key.name)
                && asked.namespace.as_ref().is_none_or(|namespace| {
                    observed.key.namespace.is_empty() || *namespace == observed.key.namespace
                })
        });
        for observed in chosen {
            let text = observed.object.root().text().unwrap_or_default();
            found.objects.extend(OwnedDocument::parse(text));
        }
        if found.objects.len() == before
            && let Some(name) = &wanted.name
        {
            found.failures.push(other(format!("{}/{name} is not in the dump", wanted.kind)));
        }
    }
    found
}

/// Whether an object is of the kind that people call so: its kind or plural, with its group or without.
fn is_called(observed: &Observed<'_>, word: &str) -> bool {
    /// What people write for the kinds they ask for most.
    const SHORT: [(&str, &str); 12] = [
        ("cm", "ConfigMap"),
        ("cj", "CronJob"),
        ("deploy", "Deployment"),
        ("ds", "DaemonSet"),
        ("hr", "HelmRelease"),
        ("ing", "Ingress"),
        ("ks", "Kustomization"),
        ("ns", "Namespace"),
        ("po", "Pod"),
        ("pvc", "PersistentVolumeClaim"),
        ("sts", "StatefulSet"),
        ("svc", "Service"),
    ];

    let (name, group) = word.split_once('.').map_or((word, None), |(name, group)| (name, Some(group)));
    if group.is_some_and(|group| group != observed.key.group) {
        return false;
    }
    let kind = observed.key.kind.to_lowercase();
    let name = name.to_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) if !kind.ends_with("ay") => format!("{stem}ies"),
        _ if kind.ends_with('s') => format!("{kind}es"),
        _ => format!("{kind}s"),
    };
    name == kind || name == plural || SHORT.contains(&(&*name, &*observed.key.kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_as_kubectl_names_them() {
        let read = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let show = |wanted: &Wanted| format!("{}:{}", wanted.kind, wanted.name.as_deref().unwrap_or("*"));
            wanted(&words)
                .map(|all| all.iter().map(show).collect::<Vec<_>>().join(" "))
                .map_err(|error| error.exit)
        };
        assert_eq!(read(&["deploy/web", "svc/web"]), Ok("deploy:web svc:web".to_owned()));
        assert_eq!(read(&["deploy", "web", "api"]), Ok("deploy:web deploy:api".to_owned()));
        assert_eq!(read(&["deploy,sts.apps"]), Ok("deploy:* sts.apps:*".to_owned()));
        assert_eq!(read(&["deploy", "svc/web"]), Err(Exit::Usage));
        assert_eq!(read(&["deploy/"]), Err(Exit::Usage));
        assert_eq!(read(&["a/b/c"]), Err(Exit::Usage));
    }
}
