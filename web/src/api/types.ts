// Generated from docs/openapi.json by scripts/types.mjs. Do not edit.

/** A parameter of an action. */
export type ActionParameter = {
  /** The default for a user interface; empty if the script does not state it. */
  default?: string;
  /** The name of the parameter. */
  name: string;
  /** The type of the value; empty if the script does not state it. */
  type?: string;
  /** The current value; empty if the script does not state it. */
  value?: string;
};

/** The question of an action: its name, and the object on which it is run. */
export type ActionQuestion = {
  /** The name of the action, as the list of the object's actions has it. */
  action: string;
  /** True to run the action on all objects of the kind and name, in every namespace. */
  allNamespaces?: boolean;
  /** The kinds, as `Kind` or `Kind.group`, that a script of a cluster may create although they may run code or grant rights. */
  allowCreate?: string[];
  /** The namespace of an object named by kind and name; `null` for that of the context. */
  namespace?: string | null;
  /** The object, in each cluster that has it: `KIND/NAME` or `[CLUSTER/]group/Kind/namespace/name`. */
  object: string;
  /** The values of the action's parameters; those that are not given have their defaults. */
  parameters?: Record<string, string>;
};

/** The object to which an action is applied. */
export type ActionTarget = {
  /** The name of the cluster. */
  cluster: string;
  /** The object. */
  object: ObjectKey;
  /** The origin of the script: `user`, `cluster` or `taffrail`; left out if the action was refused. */
  origin?: string | null;
  /** The ConfigMap that contains the script, such as `ConfigMap argocd/argocd-cm`; left out unless it is a script of the cluster. */
  scriptOf?: string | null;
};

/** The state of an answer. */
export type AnswerState = "complete" | "stale" | "partial" | "loading";

/** The answer of `app`. */
export type AppAnswer = {
  /** Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded. */
  errors?: AppError[];
  /** The facts about the queried fleet as a whole. */
  fleet: FleetFacts;
  /** True if the app has no problem but notices in all of the clusters. */
  isWell: boolean;
  /** The app, once for each selected cluster that holds its objects. */
  items: AppOfView[];
};

/** A change of the state of an app in a cluster, as a row. */
export type AppChange = {
  /** The state after; left out if the app is gone. */
  after?: PairState | null;
  /** The time at which the hub learned of the change. */
  at: string;
  /** The state before; left out if the app is new. */
  before?: PairState | null;
  /** Name of the cluster that holds the app's objects. */
  cluster: string;
  /** The delivery of the app. */
  delivery: Delivery;
  /** Name of the cluster that holds the declaring object. */
  home: string;
  /** The key of the app. */
  key: string;
  /** The message of the app after the change; empty if it is gone. */
  message: string;
  /** Name of the declaring object. */
  name: string;
  /** Namespace of the declaring object. */
  namespace: string;
};

/** A page of a list, as a hub answers. */
export type AppChangeList = {
  apiVersion: "cli.taffrail.dev/v1alpha1";
  /** The time for which the answer was computed, by the clock of the hub. */
  asOf: string;
  /** Number of clusters that the answer is about, whether or not they are missing; names that the hub does not know do not count. */
  clusters: number;
  /** Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded. */
  errors: ErrorRow[];
  /** Number of errors that are left out, because there are too many; left out if there are none. */
  errorsOmitted?: number;
  /** The rows of the answer. */
  items: AppChange[];
  kind: "AppChangeList";
  /** The first 100 clusters that are missing in whole or in part, or of which only old observations are known; names that the request gives and the hub does not know are among them. */
  missing: MissingCluster[];
  /** Number of clusters that are missing or of which only old observations are known, beyond the 100 in `missing`; left out if there are none. */
  missingOmitted?: number;
  /** The value of `cursor` for the next page; left out on the last one. */
  next?: string | null;
  /** The state of the answer as a whole. */
  state: AnswerState;
  /** Number of rows on all pages. */
  total: number;
};

/** An app in one cluster. */
export type AppDetail = {
  /** The row of the app as in `get apps`, but in `counts` an object that declares another app counts with the health of that app. */
  app: AppRow;
  /** The source of the app (URL, revision to follow, path, content type), as its delivery tool declares it, and the URL of the source of the app that delivers its declaring object. */
  application: ApplicationDetails;
  /** The declared objects of the app, each with its dependents as children. */
  deployment: TreeNode[];
  /** The time of the last successful sync, and the objects by which a delivery tool delivers the app, such as a Kustomization and its source, with their readiness. */
  reconciliation: ReconciliationDetails;
  /** The apps to which this one is related, those upstream first: what it depends on, and what delivers its declaring object or its objects; then the apps of which it is that. */
  relations?: RelationRow[];
  /** Number of relations beyond those of `relations`; left out if there are none. */
  relationsLeftOut?: number;
  /** The objects that Argo CD reports as not synced; empty for other tools, which report no single objects. */
  unsynced?: ObjectSync[];
};

/** A failure, and the cluster that it concerns. */
export type AppError = {
  /** Name of the cluster. */
  cluster: string;
  /** The failure. */
  error: ScopeError;
};

/** The fields of an app that `fields` names. */
export type AppFields = {
  /** The results of the checks that the app names in its annotation `taffrail.dev/checks`, sorted by name; they never change `health`. Left out if it names none. */
  checks?: CheckResult[];
  /** Name of the cluster that holds the app's objects; the same as `home` if that cluster was not queried. */
  cluster?: string;
  /** Number of declared objects by the status that was last observed. */
  counts?: Counts;
  /** The delivery of the app, such as a Flux Kustomization. */
  delivery?: Delivery;
  /** The status now: `health` if the observation of the objects is live, else Unknown. */
  effective?: Status;
  /** The freshness of the observation of the app's objects: that of their cluster, or of the least fresh kind among them. */
  freshness?: Freshness;
  /** The worst status among the app's objects and its declaring object when they were last observed. */
  health?: Status;
  /** Name of the cluster that holds the declaring object. */
  home?: string;
  /** A text that identifies the app in all clusters: the name in its annotation `taffrail.dev/app`, its ApplicationSet or its package, or else its delivery, namespace and name. */
  key?: string;
  /** The message of `worst` or, if that is left out, of the delivery tool or (of a hub) that the objects were never reported; in one line. */
  message?: string;
  /** Name of the declaring object; of an app that no object declares, the value of the label or the name of the Helm release. */
  name?: string;
  /** Namespace of the declaring object; of an app that no object declares, the namespace of its objects or its Helm release. */
  namespace?: string;
  /** Number of declared objects. */
  objects?: number;
  /** The worst problem of the app on any axis, notices included; left out if it has none. */
  problem?: Problem | null;
  /** All problems of the app, the worst first, which is `problem`; left out if it has none. */
  problems?: Problem[];
  /** True if `health` is what a controller says of objects that Taffrail did not read, as Argo CD does in `status.health` of an Application; left out if it is not. */
  said?: boolean;
  /** The time at which `problem` began; left out if that is not known, or there is no problem. */
  since?: string | null;
  /** The Git repository, OCI artifact or chart that the app comes from; left out if it is not known. */
  source?: Source | null;
  /** True if the app is suspended in its delivery tool: by `spec.suspend` of Flux, or because Argo CD skips it or its policy for automated sync is switched off. */
  suspended?: boolean;
  /** The sync state and the revisions of the app. */
  sync?: SyncRow;
  /** Number of declared objects on which the claim of this app is unconfirmed: they exist outside of the author's own namespace and carry no mark of the app. */
  unconfirmed?: number;
  /** The parts of the row that its source cannot tell, such as metrics, or a hub that reads the cluster of the objects lightly; left out if there are none. */
  unobserved?: RowPart[];
  /** The apps upstream of this one: those that it depends on, the one that delivers its declaring object, and the one that delivers its objects in place of its own tool. Left out if there are none. */
  upstreams?: Upstream[];
  /** Number of apps that this one depends on beyond those of `upstreams`; left out if there are none. */
  upstreamsLeftOut?: number;
  /** The object whose status is `health`: a declared one, the declaring one, or the one that lists the declared ones; left out if `health` is Ready, or if a hub was never told of the objects. */
  worst?: ObjectKey | null;
  /** True if `worst` is an object on which the claim of this app is unconfirmed. */
  worstUnconfirmed?: boolean;
};

/** A page of a list, as a hub answers. */
export type AppFieldsList = {
  apiVersion: "cli.taffrail.dev/v1alpha1";
  /** The time for which the answer was computed, by the clock of the hub. */
  asOf: string;
  /** Number of clusters that the answer is about, whether or not they are missing; names that the hub does not know do not count. */
  clusters: number;
  /** Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded. */
  errors: ErrorRow[];
  /** Number of errors that are left out, because there are too many; left out if there are none. */
  errorsOmitted?: number;
  /** The rows of the answer. */
  items: AppFields[];
  kind: "AppList";
  /** The first 100 clusters that are missing in whole or in part, or of which only old observations are known; names that the request gives and the hub does not know are among them. */
  missing: MissingCluster[];
  /** Number of clusters that are missing or of which only old observations are known, beyond the 100 in `missing`; left out if there are none. */
  missingOmitted?: number;
  /** The value of `cursor` for the next page; left out on the last one. */
  next?: string | null;
  /** The state of the answer as a whole. */
  state: AnswerState;
  /** Number of rows on all pages. */
  total: number;
};

/** The apps that share a value, such as all apps of a namespace, as a row. */
export type AppGroup = {
  /** Number of rows: apps in clusters. */
  apps: number;
  /** Number of rows by present status. */
  counts: Counts;
  /** The value that the apps share; empty if they have none. */
  group: string;
  /** Number of rows with a lost observation of their objects. */
  lost: number;
  /** Number of rows with a problem that is more than a notice. */
  problems: number;
  /** Number of rows with a stale observation of their objects. */
  stale: number;
  /** The worst present status among rows whose objects are observed live; left out if none are. */
  worst?: Status | null;
};

/** A page of a list, as a hub answers. */
export type AppGroupList = {
  apiVersion: "cli.taffrail.dev/v1alpha1";
  /** The time for which the answer was computed, by the clock of the hub. */
  asOf: string;
  /** Number of clusters that the answer is about, whether or not they are missing; names that the hub does not know do not count. */
  clusters: number;
  /** Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded. */
  errors: ErrorRow[];
  /** Number of errors that are left out, because there are too many; left out if there are none. */
  errorsOmitted?: number;
  /** The rows of the answer. */
  items: AppGroup[];
  kind: "AppGroupList";
  /** The first 100 clusters that are missing in whole or in part, or of which only old observations are known; names that the request gives and the hub does not know are among them. */
  missing: MissingCluster[];
  /** Number of clusters that are missing or of which only old observations are known, beyond the 100 in `missing`; left out if there are none. */
  missingOmitted?: number;
  /** The value of `cursor` for the next page; left out on the last one. */
  next?: string | null;
  /** The state of the answer as a whole. */
  state: AnswerState;
  /** Number of rows on all pages. */
  total: number;
};

/** The history of one app in one cluster, as an answer. */
export type AppHistory = {
  apiVersion: "cli.taffrail.dev/v1alpha1";
  /** The time for which the answer was computed, by the clock of the hub. */
  asOf: string;
  /** Name of the cluster that holds the app's objects; its identity if the hub knows no name. */
  cluster: string;
  /** Number of clusters that the answer is about, whether or not they are missing; names that the hub does not know do not count. */
  clusters: number;
  /** The delivery of the app. */
  delivery: Delivery;
  /** The earliest time that the history reaches back to; left out if nothing is recorded yet. */
  historySince?: string | null;
  /** Name of the cluster that holds the declaring object; its identity if the hub knows no name. */
  home: string;
  /** The entries of this page, the latest first. */
  items: HistoryRow[];
  kind: "AppHistory";
  /** The first 100 clusters that are missing in whole or in part, or of which only old observations are known; names that the request gives and the hub does not know are among them. */
  missing: MissingCluster[];
  /** Number of clusters that are missing or of which only old observations are known, beyond the 100 in `missing`; left out if there are none. */
  missingOmitted?: number;
  /** Name of the declaring object. */
  name: string;
  /** Namespace of the declaring object. */
  namespace: string;
  /** The value of `cursor` for the next page; left out on the last one. */
  next?: string | null;
  /** The state of the answer as a whole. */
  state: AnswerState;
};

/** A page of a list, as a hub answers. */
export type AppList = {
  apiVersion: "cli.taffrail.dev/v1alpha1";
  /** The time for which the answer was computed, by the clock of the hub. */
  asOf: string;
  /** Number of clusters that the answer is about, whether or not they are missing; names that the hub does not know do not count. */
  clusters: number;
  /** Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded. */
  errors: ErrorRow[];
  /** Number of errors that are left out, because there are too many; left out if there are none. */
  errorsOmitted?: number;
  /** The rows of the answer. */
  items: AppRow[];
  kind: "AppList";
  /** The first 100 clusters that are missing in whole or in part, or of which only old observations are known; names that the request gives and the hub does not know are among them. */
  missing: MissingCluster[];
  /** Number of clusters that are missing or of which only old observations are known, beyond the 100 in `missing`; left out if there are none. */
  missingOmitted?: number;
  /** The value of `cursor` for the next page; left out on the last one. */
  next?: string | null;
  /** The state of the answer as a whole. */
  state: AnswerState;
  /** Number of rows on all pages. */
  total: number;
};

/** The name of an app, without its cluster. */
export type AppName = {
  /** The delivery of the app, such as a Flux Kustomization. */
  delivery: Delivery;
  /** Name of its declaring object; of an app without one, the value of the label or the name of the Helm release. */
  name: string;
  /** Namespace of its declaring object; of an app without one, the namespace of its objects or its Helm release. */
  namespace: string;
};

/** The name of an app, and the cluster that declares it. */
export type AppOfHome = {
  /** The delivery of the app, such as a Flux Kustomization. */
  delivery: Delivery;
  /** The cluster that declares the app; left out if it is the one that holds the app's objects. */
  home?: string | null;
  /** Name of its declaring object; of an app without one, the value of the label or the name of the Helm release. */
  name: string;
  /** Namespace of its declaring object; of an app without one, the namespace of its objects or its Helm release. */
  namespace: string;
};

/** One app in one cluster: its details, its problems, and a remark about its differences. */
export type AppOfView = {
  /** The details. */
  detail: AppDetail;
  /** A sentence why it is not known in which further fields unsynced objects differ (they are not recorded, too many, or in a cluster that was not read), with Argo CD's command that shows them; left out for other tools, and if no object that exists is OutOfSync. */
  differences?: string | null;
  /** The problems on all axes, the worst first. */
  problems?: Problem[];
};

/** The name of one app: its home and target clusters, its delivery, namespace and name. */
export type AppRef = {
  /** The way in which the app is delivered. */
  delivery: Delivery;
  /** Name of the cluster that holds the declaring object. */
  home: string;
  /** Name of the declaring object, for a package of Porch `REPOSITORY.PACKAGE`; without such an object, the name of the release or the value of the label. */
  name: string;
  /** Namespace of the declaring object; without one, that of the release or of the labelled objects. Empty for objects that were declared to Taffrail. */
  namespace: string;
  /** Name of the cluster that holds the app's objects; the same as `home` if that cluster was not queried. */
  target: string;
};

/** One app in one target cluster, as a row of `get apps`. */
export type AppRow = {
  /** The results of the checks that the app names in its annotation `taffrail.dev/checks`, sorted by name; they never change `health`. Left out if it names none. */
  checks?: CheckResult[];
  /** Name of the cluster that holds the app's objects; the same as `home` if that cluster was not queried. */
  cluster: string;
  /** Number of declared objects by the status that was last observed. */
  counts: Counts;
  /** The delivery of the app, such as a Flux Kustomization. */
  delivery: Delivery;
  /** The status now: `health` if the observation of the objects is live, else Unknown. */
  effective: Status;
  /** The freshness of the observation of the app's objects: that of their cluster, or of the least fresh kind among them. */
  freshness: Freshness;
  /** The worst status among the app's objects and its declaring object when they were last observed. */
  health: Status;
  /** Name of the cluster that holds the declaring object. */
  home: string;
  /** A text that identifies the app in all clusters: the name in its annotation `taffrail.dev/app`, its ApplicationSet or its package, or else its delivery, namespace and name. */
  key: string;
  /** The message of `worst` or, if that is left out, of the delivery tool or (of a hub) that the objects were never reported; in one line. */
  message: string;
  /** Name of the declaring object; of an app that no object declares, the value of the label or the name of the Helm release. */
  name: string;
  /** Namespace of the declaring object; of an app that no object declares, the namespace of its objects or its Helm release. */
  namespace: string;
  /** Number of declared objects. */
  objects: number;
  /** The worst problem of the app on any axis, notices included; left out if it has none. */
  problem?: Problem | null;
  /** All problems of the app, the worst first, which is `problem`; left out if it has none. */
  problems?: Problem[];
  /** True if `health` is what a controller says of objects that Taffrail did not read, as Argo CD does in `status.health` of an Application; left out if it is not. */
  said?: boolean;
  /** The time at which `problem` began; left out if that is not known, or there is no problem. */
  since?: string | null;
  /** The Git repository, OCI artifact or chart that the app comes from; left out if it is not known. */
  source?: Source | null;
  /** True if the app is suspended in its delivery tool: by `spec.suspend` of Flux, or because Argo CD skips it or its policy for automated sync is switched off. */
  suspended: boolean;
  /** The sync state and the revisions of the app. */
  sync: SyncRow;
  /** Number of declared objects on which the claim of this app is unconfirmed: they exist outside of the author's own namespace and carry no mark of the app. */
  unconfirmed?: number;
  /** The parts of the row that its source cannot tell, such as metrics, or a hub that reads the cluster of the objects lightly; left out if there are none. */
  unobserved?: RowPart[];
  /** The apps upstream of this one: those that it depends on, the one that delivers its declaring object, and the one that delivers its objects in place of its own tool. Left out if there are none. */
  upstreams?: Upstream[];
  /** Number of apps that this one depends on beyond those of `upstreams`; left out if there are none. */
  upstreamsLeftOut?: number;
  /** The object whose status is `health`: a declared one, the declaring one, or the one that lists the declared ones; left out if `health` is Ready, or if a hub was never told of the objects. */
  worst?: ObjectKey | null;
  /** True if `worst` is an object on which the claim of this app is unconfirmed. */
  worstUnconfirmed?: boolean;
};

/** A selection of apps by the namespace that declares them and the clusters of their objects. */
export type AppSelection = {
  /** The names of the clusters that hold the objects of the apps; empty for all. */
  clusters?: string[];
  /** The namespace in which the apps are declared; `null` for all. */
  namespace?: string | null;
};

/** The tree of an app in one cluster. */
export type AppTree = {
  /** Name of the cluster that holds the objects of the app. */
  cluster: string;
  /** Name of the cluster that holds the declaring object. */
  home: string;
  /** The number of nodes that `--status` leaves out; not written if it is 0. */
  leftOut?: number;
  /** The node of the app, with all others below it. */
  root: TreeNode;
};

/** The source of an app. Fields that its tool does not provide are left out. */
export type ApplicationDetails = {
  /** The branch, tag, version or range that the app follows; left out if it is not known. */
  branch?: string | null;
  /** The URL of the source of the app that delivers the declaring object; left out if no app does, or it is not known. */
  configUrl?: string | null;
  /** The type of the delivered content: `kustomize`, `helm`, `kpt`, …; left out if it is not known. */
  deploymentType?: string | null;
  /** The part of the source that is delivered, a folder or a chart; left out if it is not known. */
  path?: string | null;
  /** The type of the source: `git`, `oci`, `helm`, `bucket`, …; left out for an app without a source. */
  sourceType?: string | null;
  /** The URL of the source; left out if it is not known. */
  url?: string | null;
};

/** Apps that have objects in a namespace in which no app is declared. */
export type AppsElsewhere = {
  /** Number of rows of these apps: one for each app and cluster. */
  apps: number;
  /** True if there are more apps than `names` lists. */
  hasMore: boolean;
  /** Full names of the first three apps, sorted. */
  names: string[];
};

/** The worst problem of each app of a fleet, even a notice, grouped by cause, as an answer. */
export type Attention = {
  apiVersion: "cli.taffrail.dev/v1alpha1";
  /** Number of rows that match the filter of the request: apps in clusters. */
  apps: number;
  /** The time for which the answer was computed, by the clock of the hub. */
  asOf: string;
  /** Number of clusters that the answer is about, whether or not they are missing; names that the hub does not know do not count. */
  clusters: number;
  /** The first causes, at most as many as the request's `limit`: the worst severity first, and of one severity those first that concern most rows. */
  items: AttentionEntry[];
  kind: "Attention";
  /** The first 100 clusters that are missing in whole or in part, or of which only old observations are known; names that the request gives and the hub does not know are among them. */
  missing: MissingCluster[];
  /** Number of clusters that are missing or of which only old observations are known, beyond the 100 in `missing`; left out if there are none. */
  missingOmitted?: number;
  /** Number of these rows with a problem that is more than a notice. */
  problems: number;
  /** The state of the answer as a whole. */
  state: AnswerState;
  /** Number of causes, including those that `items` leaves out. */
  total: number;
};

/** A cause of problems, with the apps whose worst problem has it and their clusters. Two problems have the same cause if they have the same severity, axis and state, and texts that are equal apart from numbers, durations and the name of the cluster. */
export type AttentionEntry = {
  /** The axis on which the apps have these problems. */
  axis: Axis;
  /** Number of clusters. */
  clusterCount: number;
  /** The names of the first five of the clusters, in the order of the fleet. */
  clusters: string[];
  /** Number of rows: apps in clusters. */
  count: number;
  /** Number of apps; an app with rows in several clusters counts once. */
  keyCount: number;
  /** The keys of the first five apps, in the order of the fleet; an app with rows in several clusters counts once. */
  keys: string[];
  /** The message of the first of these problems; of clusters that are not live without their names. */
  message: string;
  /** The object that shows the problem, if it is the same in all clusters; else left out. */
  object?: ObjectKey | null;
  /** The severity of these problems. */
  severity: ProblemSeverity;
  /** The earliest time at which the problem began, where that is known. */
  since?: string | null;
  /** The state on that axis, such as `Failed`, `OutOfSync`, `Lost`. */
  state: string;
};

/** The axis of a problem: health, sync, source, freshness or check. */
export type Axis = "freshness" | "health" | "sync" | "source" | "check";

/** The last lines of the log of one container: of the one with the worst status in the Pods of the cause of an explanation. */
export type CauseLog = {
  /** The name of the container. */
  container: string;
  /** True if a line was shortened, or older ones left out, because all would exceed 4 KiB. */
  cut: boolean;
  /** The reason why the log could not be read; left out if it could be read. */
  error?: string | null;
  /** The last lines, the oldest first: at most ten, with 4 KiB of text. */
  lines: string[];
  /** The Pod of the container. */
  pod: ObjectKey;
  /** True if the lines are of the container's previous run, because that crashed. */
  previous: boolean;
};

/** A step of a cause chain: one object on the way from a symptom to its cause. */
export type CauseStep = {
  /** Further facts about the object: containers, events, missing objects, a budget. */
  facts?: string[];
  /** The object's own message. */
  message: string;
  /** The object. */
  object: ObjectKey;
  /** The reason of the status, one word in CamelCase; may be empty. */
  reason: string;
  /** The rule that decided the status. */
  rule?: string;
  /** The time since when the object is not well; `None` if unknown. */
  since?: string | null;
  /** The object's status; `Current` for an object that is well, but blocks another. */
  status: Status;
};

/** A change of an object. */
export type Change = {
  /** The field manager that made the change; `None` if managed fields do not tell it. */
  by?: string | null;
  /** The name of the container if an image changed. */
  container?: string | null;
  /** The names of the template fields that differ, or of the spec fields, labels and annotations that the field manager wrote, never their values: at most ten; empty for other kinds of changes. */
  fields?: string[];
  /** The value before the change; `None` if there was none or it is not shown. */
  from?: string | null;
  /** The object that changed. */
  object: ObjectKey;
  /** The value after the change; `None` if there is none or it is not shown. */
  to?: string | null;
  /** The kind of the change. */
  what: ChangeKind;
  /** The time of the change; `None` if managed fields do not tell it, as after `kubectl scale`. Never `None` for a change before a failure. */
  when?: string | null;
};

/** The kind of a change. */
export type ChangeKind = "image" | "template" | "created" | "spec" | "metadata" | "config" | "node" | "quota" | "revision";

/** The answer of a check. */
export type CheckAnswer = "false" | "nodata" | "true";

/** The result of a check of an app in a cluster. */
export type CheckResult = {
  /** The reason for `false` or `nodata`; left out of `true`. */
  message?: string;
  /** The name of the check; that of the annotation if this cannot be read. */
  name: string;
  /** The time of the value; left out if there is none. */
  observedAt?: string | null;
  /** The answer: `true`, `false`, or `nodata`. */
  result: CheckAnswer;
  /** The time since which the result is as it is; left out if that is not known. */
  since?: string | null;
  /** The value of the query; left out if there is none. */
  value?: MetricValue | null;
};

/** The numbers of objects of one cluster that a search for findings looked at. */
export type CheckedCluster = {
  /** Number of selected apps whose objects are in the cluster. */
  apps: number;
  /** The time at which the cluster is judged, by its own clock; for a dump without a date the newest time in its objects. */
  asOf: string;
  /** Name of the cluster. */
  cluster: string;
  /** Number of these apps that are green. */
  green: number;
  /** Number of Leases that were read, which nodes and controllers renew while they are alive. */
  leases: number;
  /** Number of objects that these apps declare. */
  objects: number;
  /** Number of Pods in the cluster that were read whole. */
  pods: number;
  /** The controllers of Kubernetes and of the delivery tools of the cluster's apps without a Lease, so that it is not known if they work; empty if not all Leases were read, or there are none. */
  withoutLease?: string[];
};

/** The numbers of clusters by freshness. */
export type ClusterCounts = {
  /** Number of live clusters. */
  live: number;
  /** Number of lost clusters. */
  lost: number;
  /** Number of stale clusters. */
  stale: number;
  /** The state of an answer about all clusters. */
  state: AnswerState;
};

/** A page of a list, as a hub answers. */
export type ClusterList = {
  apiVersion: "cli.taffrail.dev/v1alpha1";
  /** The time for which the answer was computed, by the clock of the hub. */
  asOf: string;
  /** Number of clusters that the answer is about, whether or not they are missing; names that the hub does not know do not count. */
  clusters: number;
  /** Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded. */
  errors: ErrorRow[];
  /** Number of errors that are left out, because there are too many; left out if there are none. */
  errorsOmitted?: number;
  /** The rows of the answer. */
  items: ClusterRow[];
  kind: "ClusterList";
  /** The first 100 clusters that are missing in whole or in part, or of which only old observations are known; names that the request gives and the hub does not know are among them. */
  missing: MissingCluster[];
  /** Number of clusters that are missing or of which only old observations are known, beyond the 100 in `missing`; left out if there are none. */
  missingOmitted?: number;
  /** The value of `cursor` for the next page; left out on the last one. */
  next?: string | null;
  /** The state of the answer as a whole. */
  state: AnswerState;
  /** Number of rows on all pages. */
  total: number;
};

/** One queried cluster, with the summary of its apps. */
export type ClusterRow = {
  /** Further names by which the user gave the cluster. */
  aliases?: string[];
  /** Number of apps whose objects are in the cluster. */
  apps: number;
  /** Number of apps by present status. */
  counts: Counts;
  /** The worst status of the cluster's apps now; Current without apps. Apps that may be missing because of a failed read count as `Unknown`, which is less bad than `Failed` and `NotFound`. `Unknown` for an empty dump, for a cluster that is not live, and for one without apps that is read lightly. */
  effective: Status;
  /** Number of scopes that could not be read, and other errors of the cluster. */
  errors: number;
  /** The freshness of the cluster as a whole; single kinds or apps may be less fresh. */
  freshness: Freshness;
  /** The worst status of the cluster's apps when they were last observed; equal to `effective` while the cluster is live. `Unknown` if the cluster was never observed, or is not live and has no apps, or is read lightly and has none. */
  health: Status;
  /** The UID of the `kube-system` Namespace, with `@` and the server's address (or the name, if no address is known) appended if an earlier cluster has the same UID and nothing proves that the two are one. Left out if it is not known. */
  id?: string | null;
  /** The labels of the cluster: those of its cluster Secret of Argo CD, of its `Cluster` of Cluster API, of its kubeconfig Secret of Flux, or of the extension `taffrail.dev/labels` of its context. Left out if there are none. */
  labels?: Record<string, string>;
  /** True if the cluster is read lightly: only what declares apps, so that the health of an app is what a controller says, or Unknown. Apps that no such object declares, as of Helm, are not listed. Left out if it is read in full. */
  light?: boolean;
  /** The objects of other clusters that stand for this one, such as a `Cluster` of Cluster API: at most 10, those that are proved first, and else by turns of their namespaces. Left out if none was read. What they tell changes nothing else of the row. */
  managedAs?: ManagedAs[];
  /** Number of further such objects; left out if there are none. */
  managedAsLeftOut?: number;
  /** The message of `worst`, the failure to read the cluster, or that it has no apps or objects; for a cluster that is not live, the time of its last observation, or why there is none; preceded by a warning about an unverified certificate or a twin. May be empty. */
  message: string;
  /** The name by which the user gave the cluster: a context or a file. */
  name: string;
  /** The nodes of the cluster when it was last observed; left out if they are not known. They change nothing else of the row. */
  nodes?: Nodes | null;
  /** The reason why the nodes are not known; left out if they are, or if the source does not tell of nodes. */
  nodesUnobserved?: string | null;
  /** The worst problem of `worst`; left out with it. */
  problem?: Problem | null;
  /** Number of apps with a problem that is more than a notice. */
  problems: number;
  /** Statistics of requests and watches; only for a live cluster that answered. */
  reading?: ReadingView | null;
  /** The source of reports by which a hub knows the cluster: `agent`, or `prometheus/` and the name of the metrics server. Left out if the cluster is read directly. */
  source?: string | null;
  /** Always equal to `effective`. */
  status: Status;
  /** The name of another cluster with the same identity, if nothing proves that the two are one; else left out. */
  twinOf?: string | null;
  /** False if the TLS certificate of the server was not verified; left out if it was. */
  verified?: boolean;
  /** The version of the API server; left out if it is not known. */
  version?: string | null;
  /** The app with the worst status and, of several such, the severest problem; left out if no app has a problem but notices, or if apps may be missing and none is Unknown or worse. */
  worst?: AppName | null;
  /** The cluster that declares `worst`; left out if it is this one. */
  worstHome?: string | null;
};

/** The statuses of the objects in one cluster. */
export type ClusterStatuses = {
  /** The name of the cluster. */
  cluster: string;
  /** Failures to read the cluster. */
  errors?: ScopeError[];
  /** True if the cluster was never observed. */
  isUnobserved: boolean;
  /** The results, in the order of the question's arguments; one for each object. */
  items?: StatusItem[];
};

/** The objects that share a line. */
export type Collapsed = {
  /** Number of objects. */
  count: number;
  /** The kind of the objects. */
  kind: string;
};

/** The number of objects with each status. */
export type Counts = {
  /** The number of objects whose actual state is the desired one. */
  Current: number;
  /** The number of objects with an error, or without progress within the deadline. */
  Failed: number;
  /** The number of objects whose actual state is approaching the desired one. */
  InProgress: number;
  /** The number of objects that do not exist. */
  NotFound: number;
  /** The number of objects that are being deleted. */
  Terminating: number;
  /** The number of objects whose status is not known. */
  Unknown: number;
};

/** The way in which an app gets into a cluster, which decides the kind of its declaring object. */
export type Delivery = "flux-kustomization" | "flux-helmrelease" | "argo-application" | "config-sync" | "kpt" | "porch" | "helm" | "label" | "taffrail";

/** One line of a patch as a YAML diff. */
export type DiffLine = {
  context: string;
} | {
  removed: string;
} | {
  added: string;
};

/** Fields in which an object differs from its declaration; their values are not shown. */
export type DifferingFields = {
  /** The field manager that wrote these fields after the last sync; absent for fields that differ from what was last applied. */
  by?: string | null;
  /** The paths of the first fields: `spec.replicas`. */
  fields: string[];
  /** The number of further fields. */
  more?: number;
};

/** The severity of a failure. */
export type ErrorLevel = "warning" | "unreadable" | "usage";

/** An error, with the smallest scope that it concerns. */
export type ErrorRow = {
  /** Name of the cluster that the error is about. */
  cluster: string;
  /** The message, for people. */
  message: string;
  /** The reason for the failure in one CamelCase word, such as `Forbidden` or `Malformed`. */
  reason: string;
  /** The scope that could not be read, or that is invalid: `cluster`, a dump, an API group, a kind, a namespace or an object. */
  scope: string;
};

/** An event of type Warning, or several equal ones, with the number of occurrences. */
export type EventRow = ({
  /** The name of the cluster. */
  cluster: string;
} | {
  /** The names of the clusters. The details of an explanation or finding are those of the first cluster; those of an event are of the newest warning. */
  clusters: string[];
}) & {
  /** The app that the object belongs to. */
  app: AppName;
  /** Number of times that the event occurred. */
  count: number;
  /** The time of the first occurrence; left out if it is not known. */
  firstSeen?: string | null;
  /** True if none of the objects that the row is about exists any more; their app is that of the workload after which they were named. */
  isGone?: boolean;
  /** The time of the last occurrence; left out if it is not known. */
  lastSeen?: string | null;
  /** Name of the workload after which the Pod, or the object that is gone, was named; left out for others, and if it is not known. */
  madeBy?: string | null;
  /** The message, for people; of several equal warnings that of the newest. */
  message: string;
  /** The object that the event is about. */
  object: ObjectKey;
  /** Number of objects that the row is about; left out for one. */
  objects?: number;
  /** Names of further objects that the row is about, without that of `object`: at most 20, those with the newest warnings first. */
  others?: string[];
  /** The reason in one CamelCase word. */
  reason: string;
};

/** The answer of `events`. */
export type EventsAnswer = {
  /** Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded. */
  errors?: AppError[];
  /** The facts about the queried fleet as a whole. */
  fleet: FleetFacts;
  /** The events, the newest last. */
  items: EventRow[];
};

/** The answer of `explain`: the explained subjects, and the names that have no explanation. */
export type ExplainAnswer = {
  /** Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded. */
  errors?: AppError[];
  /** The facts about the queried fleet as a whole. */
  fleet: FleetFacts;
  /** True if the fleet has any app, or anything is explained. */
  hasApps: boolean;
  /** True if no explained app or object has a problem but notices. */
  isWell: boolean;
  /** The explained apps and objects, in the order of the names; without names the apps with a problem that is more than a notice, the worst first. */
  items: ExplainedSubject[];
  /** True if the log of a container that is a cause exists but could not be read. */
  lacksLogs: boolean;
  /** Failures to find the containers that are causes, if the question asks for their logs. */
  logErrors?: AppError[];
  /** The reasons why names have no explanation. */
  missing?: QuestionError[];
  /** Number of apps whose green status was not checked for doubts, because a hundred of the same name in the same cluster were. */
  undoubted: number;
};

/** An app or object with its explanation. */
export type ExplainedSubject = {
  /** A sentence why it is not known in which further fields unsynced objects differ (they are not recorded, too many, or in a cluster that was not read), with Argo CD's command that shows them; left out for other tools, and if no object that exists is OutOfSync that no problem names. */
  differences?: string | null;
  /** The explanation of the app or object. */
  explanation: Explanation;
  /** The object, if it is explained in place of an app; else left out. */
  object?: ObjectKey | null;
  /** Number of declared objects that are not ready beside the one that the status names, those beyond `others` included. */
  otherCount: number;
  /** The declared objects that are not ready beside the one that the status names: the first five, the worst first. */
  others?: OtherObject[];
  /** The row of the app; for an object the row of an app that consists of the object alone. */
  row: AppRow;
  /** True if the explanation names the apps and controllers of the object. */
  tellsOwners: boolean;
};

/** The explanation of why an app or an object is in its state. */
export type Explanation = ({
  /** The name of the cluster. */
  cluster: string;
} | {
  /** The names of the clusters. The details of an explanation or finding are those of the first cluster; those of an event are of the newest warning. */
  clusters: string[];
}) & {
  /** The app that is explained; left out if the user named objects. */
  app?: AppName | null;
  /** For a named object: the apps that declare it with a confirmed claim; if there are none, those of the nearest of its controllers that has any. */
  belongsTo?: OwningApp[];
  /** The cause chain, from the object to the root cause; empty if `health` is Ready. */
  chain: CauseStep[];
  /** The last changes in the hour before the app or object became unhealthy, at most three, the latest first. */
  changed?: Change[];
  /** For a named object: the first app that it declares; left out if it declares none. */
  declares?: AppOfHome | null;
  /** For a named app that is green: the findings of `trust` of high severity, or about changes by hand, in which the tool and the objects disagree; without those that a problem of the app tells already. */
  doubts?: TrustFinding[];
  /** The status of the app or object now: Unknown unless the observation is live. */
  effective: Status;
  /** The declared objects that users suspended or paused, in part or whole. */
  flagged?: Flagged[];
  /** The status of the app or object when it was last observed. */
  health: Status;
  /** The cluster that declares the app; left out if it is the one that holds the app's objects. */
  home?: string | null;
  /** For a named object: the last change of it, or of its top controller, by each field manager, labels and annotations included, at most five: those without a time first, then the latest. */
  lastChanged?: Change[];
  /** For a named object: the apps that list it or the nearest of its controllers, but whose marks it does not carry. */
  listedBy?: AppOfHome[];
  /** With `--logs`, the last lines of the container with the worst status in the Pods of the cause, or the reason why they could not be read; left out if there are no Pods, or the Pods could not be read. */
  logs?: CauseLog | null;
  /** For a named object: the apps that its marks name but that do not declare it, each with the reason. */
  markedFor?: string[];
  /** The message of the object whose status is `health` or, if that is Ready, of the delivery tool. */
  message: string;
  /** Command lines to run next: they show more of the cause or the worst problem, or make the app's tool resume or sync it. */
  next: string[];
  /** The object whose status is `health`; if that is Ready, the declaring object or the one that the user named; left out if there is none. */
  object?: ObjectKey | null;
  /** For a named object: its controllers, the nearest first. */
  owners?: ObjectKey[];
  /** For a named object that neither belongs to a known app nor declares one: the clusters, and the kinds of apps in clusters, that could not be read and whose apps may declare it. */
  ownersUnread?: string[];
  /** The problems on all axes, the worst first; left out if there are none. */
  problems?: Problem[];
  /** The field manager that suspended the app, and the time; left out if it is not suspended, or if managed fields do not tell. */
  suspension?: Suspension | null;
  /** The sync state, if `health` is Ready and the sync is `Failed` or `Unknown`; left out otherwise, and for an `Unknown` that the delivery tool itself reports without a message. */
  sync?: SyncState | null;
  /** The objects that Argo CD reports as not synced; empty for other tools, which report no single objects. */
  unsynced?: ObjectSync[];
};

/** The change of one field: its path, and its values before and after. */
export type FieldChange = {
  /** The new value; left out to remove the field. */
  after?: unknown;
  /** The current value; left out if the field is missing. */
  before?: unknown;
  /** The keys from the root of the object to the field. */
  path: string[];
};

/** The conditions that a row must meet; the default matches everything. */
export type Filter = {
  /** The conditions on checks of which an app must meet one; empty for any. */
  checks?: string[];
  /** The selector for the labels of these clusters; `None` for any. */
  clusterLabels?: string | null;
  /** Names or aliases of the clusters whose rows are kept (of apps and objects the target cluster); empty for all. */
  clusters?: string[];
  /** The deliveries of which an app must have one; empty for any. */
  deliveries?: Delivery[];
  /** Parts of image names: an object must declare or run an image with one of them in its name; empty for any. */
  images?: string[];
  /** Names of the kinds of which objects are kept, as users write them (`Deployment`, `deploy`, `deployments.apps`), in any case of letters; empty for all. */
  kinds?: string[];
  /** The selector for labels of the declaring object, or, for an app known by labels, for the labels that all its objects share; `None` for any. */
  labels?: string | null;
  /** The namespaces of which objects are kept, and apps with objects there; empty for all. */
  namespaces?: string[];
  /** The axes of which an app must have a problem on one, notices included; an empty set stands for any axis. `None` keeps all apps. */
  problems?: Axis[] | null;
  /** The present statuses of which a row must have one, where a Ready row with a problem that is more than a notice does not count as Ready; `None` for any. */
  status?: string | null;
  /** True to keep only apps that are suspended in their delivery tool, as [`AppRow::suspended`](crate::AppRow::suspended) tells. */
  suspended?: boolean;
  /** The sync states of which an app must have one; `None` for any. */
  sync?: string | null;
};

/** The reason why a name does not select an app. */
export type FindError = {
  ambiguous: {
    /** Full names of the matching apps, sorted, each of which selects one. */
    candidates: string[];
    /** The name as given. */
    text: string;
  };
} | {
  notFound: {
    /** Full names of at most five apps with similar names, the nearest first. */
    nearest: string[];
    /** The name as given. */
    text: string;
  };
};

/** The kind of a reason to doubt a green status. */
export type FindingCategory = "disagreeing" | "silent" | "unread" | "skewed" | "suspended" | "fallback";

/** An object that a finding concerns. */
export type FindingObject = {
  /** API group; empty for the core group. */
  group: string;
  /** Kind. */
  kind: string;
  /** Name. */
  name: string;
  /** Namespace; empty for cluster-scoped objects. */
  namespace: string;
  /** The time since when the finding is true of this object, if known. */
  since?: string | null;
};

/** A switch by which a user stops an object, in part or whole. */
export type Flag = "suspended" | "paused";

/** An object that a user suspended or paused on purpose. */
export type Flagged = {
  /** The switches that the user set. */
  flags: Flag[];
  /** The object. */
  object: ObjectKey;
};

/** Facts about the queried fleet as a whole. */
export type FleetFacts = {
  /** Number of cluster names that were queried; a cluster with two names is counted twice. */
  clusters: number;
  /** The names of the clusters that are not live but were observed before, each with the time of the last observation. */
  lastObserved?: Record<string, string>;
  /** The time at which the objects were judged, and to which ages refer. */
  now: string;
  /** The name of the cluster, if there is only one; left out if there are several. */
  only?: string | null;
  /** Failures outside of any cluster, such as in a kubeconfig. */
  problems?: FleetProblem[];
  /** The names of the clusters that were never observed. */
  unobserved?: string[];
};

/** A failure outside of any cluster. */
export type FleetProblem = {
  /** The remedy; left out if there is nothing to say. */
  hint?: string | null;
  /** The severity of the failure. */
  level: ErrorLevel;
  /** The message, for people. */
  message: string;
};

/** The age class of an observation, and its time. */
export type Freshness = {
  /** The time of the observation; `None` if there never was one. */
  observedAt?: string | null;
  /** Live, stale or lost. */
  state: FreshnessState;
};

/** The age class of an observation. */
export type FreshnessState = "live" | "stale" | "lost";

/** A kind within its API group, without a version. */
export type GroupKind = {
  /** API group; empty for the core group. */
  group: string;
  /** Kind. */
  kind: string;
};

/** An entry of the history of an app in a cluster. */
export type HistoryRow = {
  /** The state after; left out if the app was gone. */
  after?: PairState | null;
  /** The time at which the hub learned of the change. */
  at: string;
  /** The state before; left out if the app is new, or the hub knew nothing of its cluster before. */
  before?: PairState | null;
  type: "transition";
} | {
  /** The time at which the sync began; if the tool does not record that, the time at which it ended. */
  at: string;
  /** The time at which the sync ended; left out while it runs, or if the tool does not record it. */
  ended?: string | null;
  /** The message of the delivery tool; empty if it does not keep it. */
  message: string;
  /** The outcome of the sync. */
  result: SyncResult;
  /** The revision that was to be applied; empty if the tool failed before it knew one. */
  revision: string;
  type: "sync";
} | {
  /** The operation, with the item of this app alone. */
  operation: OperationRecord;
  type: "operation";
};

/** An error of the HTTP API, as [RFC 9457](https://www.rfc-editor.org/rfc/rfc9457) describes it. */
export type HttpProblem = {
  /** The failure: what failed, on what, and why. */
  detail: string;
  /** The remedy: what the client can do; left out if there is none. */
  hint?: string | null;
  /** The reason why a question has no answer; left out for other errors. */
  question?: QuestionError | null;
  /** The HTTP status code. */
  status: number;
  /** The kind of error in a few words, the same for all errors of the kind. */
  title: string;
  /** The kind of error, as a URN: `urn:taffrail:problem:invalid-parameter`. */
  type: string;
};

/** A container image of an object. */
export type ImageUse = {
  /** The image as the containers name it: `ghcr.io/acme/web:1.5.0`. */
  image: string;
  /** True if the spec of the object names the image: in its Pod template, or as a Pod. A spec that somebody changed by hand names another image than Git declares. */
  inSpec: boolean;
  /** Number of Pods that have a container of this image and that the object controls or is, without Pods that ended; left out if none was seen and the Pods of the namespace were not all read. */
  pods?: number | null;
};

/** The answer of `get apps`, `get clusters` or `get resources`, with rows of type `T`. */
export type ListAnswer = {
  /** The apps that have objects in the namespace of the question. Left out unless no app is declared there and the question sets `elsewhere`, names no apps and does not follow changes; also left out if there are none. */
  elsewhere?: AppsElsewhere | null;
  /** Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded. */
  errors?: AppError[];
  /** The facts about the queried fleet as a whole. */
  fleet: FleetFacts;
  /** True if the question gives a namespace in which no app is declared, and does not ask for orphaned objects. */
  isNoneDeclared: boolean;
  /** True if no app that is listed, or whose objects are, has a problem other than a notice, on the axes of the filter's `problems` if that names some. For clusters, true if each is Ready and no app of it has such a problem. For objects selected by status, kind, image or namespace, and orphaned ones, true if all of these are Ready, whatever their apps are. */
  isWell: boolean;
  /** The rows that match, sorted as requested. */
  items: AppRow[];
  /** The rows that match, and those that only the conditions about status, problems and sync leave out; empty unless the question sets `follow` and has such a condition. */
  leftOut?: AppRow[];
  /** The requested namespaces of which neither the Namespace nor an object exists. Empty for a question that follows changes, and if an app that is declared in the requested namespace has an object. */
  missingNamespaces?: string[];
};

/** The answer of `get apps`, `get clusters` or `get resources`, with rows of type `T`. */
export type ListAnswer2 = {
  /** The apps that have objects in the namespace of the question. Left out unless no app is declared there and the question sets `elsewhere`, names no apps and does not follow changes; also left out if there are none. */
  elsewhere?: AppsElsewhere | null;
  /** Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded. */
  errors?: AppError[];
  /** The facts about the queried fleet as a whole. */
  fleet: FleetFacts;
  /** True if the question gives a namespace in which no app is declared, and does not ask for orphaned objects. */
  isNoneDeclared: boolean;
  /** True if no app that is listed, or whose objects are, has a problem other than a notice, on the axes of the filter's `problems` if that names some. For clusters, true if each is Ready and no app of it has such a problem. For objects selected by status, kind, image or namespace, and orphaned ones, true if all of these are Ready, whatever their apps are. */
  isWell: boolean;
  /** The rows that match, sorted as requested. */
  items: ClusterRow[];
  /** The rows that match, and those that only the conditions about status, problems and sync leave out; empty unless the question sets `follow` and has such a condition. */
  leftOut?: ClusterRow[];
  /** The requested namespaces of which neither the Namespace nor an object exists. Empty for a question that follows changes, and if an app that is declared in the requested namespace has an object. */
  missingNamespaces?: string[];
};

/** The answer of `get apps`, `get clusters` or `get resources`, with rows of type `T`. */
export type ListAnswer3 = {
  /** The apps that have objects in the namespace of the question. Left out unless no app is declared there and the question sets `elsewhere`, names no apps and does not follow changes; also left out if there are none. */
  elsewhere?: AppsElsewhere | null;
  /** Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded. */
  errors?: AppError[];
  /** The facts about the queried fleet as a whole. */
  fleet: FleetFacts;
  /** True if the question gives a namespace in which no app is declared, and does not ask for orphaned objects. */
  isNoneDeclared: boolean;
  /** True if no app that is listed, or whose objects are, has a problem other than a notice, on the axes of the filter's `problems` if that names some. For clusters, true if each is Ready and no app of it has such a problem. For objects selected by status, kind, image or namespace, and orphaned ones, true if all of these are Ready, whatever their apps are. */
  isWell: boolean;
  /** The rows that match, sorted as requested. */
  items: ResourceRow[];
  /** The rows that match, and those that only the conditions about status, problems and sync leave out; empty unless the question sets `follow` and has such a condition. */
  leftOut?: ResourceRow[];
  /** The requested namespaces of which neither the Namespace nor an object exists. Empty for a question that follows changes, and if an app that is declared in the requested namespace has an object. */
  missingNamespaces?: string[];
};

/** An event of the answer to a [`LogsQuestion`]. First come those about what was found, up to `chosen`; then those about the logs, of which `log` is the number, in the order of the `subjects`, from 0. The answer is whole if the last one is `done`. */
export type LogEvent = FleetProblem | {
  event: "note";
  /** The note, for people. */
  text: string;
} | {
  /** The failure. */
  error: AppError;
  event: "error";
  /** True if nothing was ever observed of its cluster. */
  isUnobserved: boolean;
} | {
  /** The name of the cluster. */
  cluster: string;
  event: "unread";
  /** The reason, for people. */
  message: string;
  /** The reason in one CamelCase word, such as `Forbidden`. */
  reason: string;
} | {
  event: "logs";
  /** Their containers. */
  subjects: LogSubject[];
} | {
  event: "chosen";
  /** Number of containers that are left out because there are too many. */
  leftOut: number;
  /** Number of Pods that are left out because their status is better than that of others. */
  well: number;
} | {
  /** Number of these containers. */
  containers: number;
  event: "unfollowed";
} | {
  event: "lines";
  /** Number of lines before these that are left out, because they were not sent in time. */
  leftOut: number;
  /** The lines. */
  lines: LogLine[];
  /** The number of the log. */
  log: number;
} | {
  event: "waits";
  /** The number of the log. */
  log: number;
} | {
  /** The limit, in bytes. */
  bytes: number;
  event: "cut";
  /** The number of the log. */
  log: number;
} | {
  event: "failed";
  /** The number of the log. */
  log: number;
  /** The reason, for people. */
  message: string;
  /** The reason in one CamelCase word, such as `Forbidden`. */
  reason: string;
} | {
  event: "ended";
  /** The number of the log. */
  log: number;
} | {
  event: "tooLate";
  /** The number of the log. */
  log: number;
  /** The time for the whole answer, in milliseconds. */
  millis: number;
} | {
  /** The greatest length of an answer, in bytes. */
  bytes: number;
  event: "full";
  /** The number of the log. */
  log: number;
} | {
  event: "alive";
} | {
  event: "refused";
  /** The reason, for people. */
  message: string;
} | {
  event: "done";
};

/** A line of a log, without its end. */
export type LogLine = {
  /** Number of bytes at its end that are left out, because the line is longer than 16 KiB; left out if there are none. */
  leftOut?: number;
  /** The text as the container wrote it, without a carriage return at its end; bytes that are not UTF-8 are replaced by U+FFFD. It may contain control characters. */
  text: string;
};

/** The container of a log, as an answer to [`LogsQuestion`] names it. */
export type LogSubject = {
  /** The name of the cluster. */
  cluster: string;
  /** The name of the container. */
  container: string;
  /** The namespace of the Pod. */
  namespace: string;
  /** The name of the Pod. */
  pod: string;
  /** The status of the container. */
  status: Status;
};

/** The question of `logs`: the app or object whose containers' logs are read, and how. */
export type LogsQuestion = {
  /** True to look for an object named by kind and name in all namespaces. */
  allNamespaces?: boolean;
  /** True to read logs of all Pods, also if some of them fail. */
  allPods?: boolean;
  /** The names of the clusters whose logs are read; empty for all. */
  clusters?: string[];
  /** The name of the containers; `null` to choose by status. */
  container?: string | null;
  /** True to follow the logs, until the client closes the connection. */
  follow?: boolean;
  /** The namespace of the object, or in which the app is declared; `null` for any, and for an object named by kind and name for that of the context. */
  namespace?: string | null;
  /** True to read the logs of the containers' previous runs. */
  previous?: boolean;
  /** The greatest age of a line in milliseconds; `null` for any. */
  sinceMillis?: number | null;
  /** The number of lines from the end of each log, `-1` for all; `null` for 10 of each of several logs without `sinceMillis`, and all of a single one. */
  tail?: number | null;
  /** True if each line begins with its time (RFC 3339). */
  timestamps?: boolean;
  /** The name of an app (`NAME`, `NAMESPACE/NAME` or `[CLUSTER/]DELIVERY/NAMESPACE/NAME`) or object (`KIND/NAME` or `[CLUSTER/]group/Kind/namespace/name`). */
  what?: string;
};

/** An object of a management cluster that stands for a cluster. */
export type ManagedAs = {
  /** Name of the management cluster, which holds it. */
  cluster: string;
  /** The message of the object; left out if it is Ready. */
  message?: string;
  /** The object. */
  object: ObjectKey;
  /** The status of the object now. */
  status: Status;
  /** True if the object only claims to stand for the cluster: by its name, or by an address in its spec, which its author chose. Left out if its status has the identity or address of the cluster, or that is read by the kubeconfig beside it. */
  unproven?: boolean;
};

/** The table of apps by clusters: a row for each key, and in it a character for each cluster. */
export type Matrix = {
  apiVersion: "cli.taffrail.dev/v1alpha1";
  /** The time for which the answer was computed, by the clock of the hub. */
  asOf: string;
  /** Number of clusters that the answer is about, whether or not they are missing; names that the hub does not know do not count. */
  clusters: number;
  /** The clusters that the filter admits, which are the columns; at a past time those that then had matching apps. */
  columns: MatrixColumn[];
  /** Number of clusters that the filter admits and `columns` leaves out, because there are too many; left out if there are none. */
  columnsOmitted?: number;
  /** The earliest time that the history reaches back to; left out unless the answer is about a past time. */
  historySince?: string | null;
  kind: "Matrix";
  /** The meaning of each character that the rows contain, except `.`. */
  legend: MatrixLegend[];
  /** The first 100 clusters that are missing in whole or in part, or of which only old observations are known; names that the request gives and the hub does not know are among them. */
  missing: MissingCluster[];
  /** Number of clusters that are missing or of which only old observations are known, beyond the 100 in `missing`; left out if there are none. */
  missingOmitted?: number;
  /** The value of `cursor` for the next page; left out on the last one. */
  next?: string | null;
  /** The apps of this page, sorted by key. */
  rows: MatrixRow[];
  /** The state of the answer as a whole. */
  state: AnswerState;
  /** Number of rows on all pages. */
  total: number;
};

/** A column of the matrix. */
export type MatrixColumn = {
  /** The name of the cluster. */
  cluster: string;
  /** The freshness of the cluster as a whole; at a past time the best one among its matching apps. */
  freshness: FreshnessState;
  /** The value that the cluster has now for the label of the request's `label`, empty without such a label; left out if the request names none. */
  group?: string | null;
};

/** The meaning of a character of the matrix. */
export type MatrixLegend = {
  /** The character. */
  code: string;
  /** The status now: Unknown unless the observation is live. */
  effective: Status;
  /** The freshness of the observation of the app's objects. */
  freshness: FreshnessState;
  /** The status of the app when it was last observed. */
  health: Status;
  /** True if the app has a problem that is more than a notice, on any axis; at a past time also if it has a notice. */
  problem: boolean;
};

/** A row of the matrix. */
export type MatrixRow = {
  /** One character for each column; see `legend`. `.` stands for a cluster without the app. Of several apps with one key in a cluster it is that of one with a problem before one without, and of these of the worst present status. */
  cells: string;
  /** The key that the app has in all clusters. */
  key: string;
};

/** The value of a metric, a finite number. Equal if all bits are. */
export type MetricValue = number;

/** A cluster that an answer does not cover whole and live. */
export type MissingCluster = {
  /** The name of the cluster; its identity as long as no name is known. */
  cluster: string;
  /** The reason, for people. */
  message: string;
  /** The reason in one CamelCase word: `NotRead`, `Unreachable`, `Silent`, `Unreadable`, `TooManyApps`, `UnknownCluster`; in answers about a past time `NotRecorded` or `Silent`. */
  reason: string;
  /** The time from which on the reason is true; for a silent cluster the time of the last observation. Left out if it is not known. */
  since?: string | null;
  /** The state of an answer to which this cluster belongs: `loading`, `partial` or `stale`. */
  state: AnswerState;
};

/** The numbers of a cluster's nodes. */
export type Nodes = {
  /** Number of nodes whose condition Ready is True. */
  ready: number;
  /** Number of all nodes. */
  total: number;
  /** The node that has not been ready for longest; left out if all are ready. */
  unready?: UnreadyNode | null;
};

/** A scope that is watched but not live. */
export type NotLiveRow = {
  /** The reason for the state, for people. */
  message?: string;
  /** The kind, in one namespace or in all, as text. */
  scope: string;
  /** The time at which the scope stopped being live. */
  since: string;
  /** The state of the scope: `CatchingUp`, `Forbidden`, `Broken` or `Absent`. */
  state: NotLiveState;
};

/** The state of a watched scope that is not live. */
export type NotLiveState = "CatchingUp" | "Forbidden" | "Broken" | "Absent";

/** The answer of a command that lists rows of one kind. */
export type ObjectActionList = {
  apiVersion: "cli.taffrail.dev/v1alpha1";
  /** Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded. */
  errors: ErrorRow[];
  /** The rows of the answer. */
  items: ObjectActionRow[];
  kind: "ObjectActionList";
};

/** An action that a script offers for an object in one cluster. */
export type ObjectActionRow = {
  /** Name of the cluster that has the object. */
  cluster: string;
  /** True if the script reports that the action does not apply to the object in its present state. */
  disabled: boolean;
  /** The name of the action for people; empty if the script gives none. */
  displayName?: string;
  /** The CSS class of the icon in Argo CD's pages; empty if the script gives none. */
  iconClass?: string;
  /** The name by which users call the action. */
  name: string;
  /** The object that the action would change. */
  object: ObjectKey;
  /** The origin of the action's script: `user`, `cluster` or `shipped`. */
  origin: string;
  /** The parameters of the action. */
  parameters: ActionParameter[];
};

/** The answer of `object`. */
export type ObjectAnswer = {
  /** Failures to read the clusters. */
  errors?: AppError[];
  /** The facts about the queried fleet as a whole. */
  fleet: FleetFacts;
  /** The object in each cluster that has it. */
  items: ObjectRow[];
};

/** An event about an object, of any type. */
export type ObjectEvent = {
  /** Number of times that the event occurred. */
  count: number;
  /** The time of the first occurrence; left out if it is not known. */
  firstSeen?: string | null;
  /** True for an event of type Warning. */
  isWarning?: boolean;
  /** The time of the last occurrence; left out if it is not known. */
  lastSeen?: string | null;
  /** The message, for people. */
  message: string;
  /** The reason in one CamelCase word. */
  reason: string;
};

/** The key of one object within a cluster: API group, kind, namespace and name. The API serves an object in several versions; it stays one object, so a key has no version. */
export type ObjectKey = {
  /** API group; empty for the core group. */
  group: string;
  /** Kind. */
  kind: string;
  /** Name. */
  name: string;
  /** Namespace; empty for cluster-scoped objects. */
  namespace: string;
};

/** An object in one cluster, whole. */
export type ObjectRow = {
  /** The object as the API server returned it. */
  body: unknown;
  /** Name of the cluster that holds the object. */
  cluster: string;
  /** The status now: `health` if the observation is live, else Unknown. */
  effective: Status;
  /** The events about the object that occurred last, at most 100; the newest last. */
  events?: ObjectEvent[];
  /** The freshness of the observation of the object. */
  freshness: Freshness;
  /** The status of the object when it was last observed. */
  health: Status;
  /** True if `body` has the metadata alone: that of a Secret, whose values are never shown, or of an object of which no more is known while its cluster does not answer. */
  isMetadata?: boolean;
  /** The message of the status, for people. */
  message?: string;
  /** The name of the object. */
  object: ObjectKey;
  /** Always equal to `effective`. */
  status: Status;
};

/** The sync state of one object, as its delivery tool reports it. */
export type ObjectSync = {
  /** The fields in which an OutOfSync object differs, as far as the object records them; searched only for the details and the explanation of an app. */
  differs?: DifferingFields[];
  /** True if Taffrail did not compare all fields of an OutOfSync object, because there are too many of them or of such objects. */
  incomplete?: boolean;
  /** The message of the tool's last operation about the object, if that could not sync it; may be empty. */
  message?: string;
  /** The key of the object. */
  object: ObjectKey;
  /** The state, as the tool reports it. */
  state: ObjectSyncState;
};

/** The state of an object that its delivery tool reports as not synced. */
export type ObjectSyncState = "OutOfSync" | "RequiresPruning" | "SyncFailed" | "HookFailed";

/** The reason why an operation cannot be planned or written for one target. */
export type OperationError = {
  /** The next step for the user; left out if there is nothing to suggest. */
  hint?: string | null;
  /** True if the cluster did not answer in time. The message says whether a write may have been made. */
  isLate: boolean;
  /** [`ErrorLevel::Usage`] if the operation does not exist for the target, does not fit its state or refuses it, or if a parameter is unknown; otherwise [`ErrorLevel::Unreadable`]. */
  level: ErrorLevel;
  /** The message: what failed, on which object, and why. */
  message: string;
};

/** Progress of a run. `item` is the index in [`OperationPlan::items`]. */
export type OperationEvent = {
  /** The digest of the plan that is run. */
  digest: PlanDigest;
  event: "started";
  /** The identifier of the run. */
  id: OperationId;
} | {
  event: "begins";
  /** The index of the item. */
  item: number;
} | {
  event: "writing";
  /** True for the alternative of a write whose field the server does not know. */
  isAlternative: boolean;
  /** The index of the item. */
  item: number;
  /** The write that is sent. */
  write: PlannedWrite;
} | {
  event: "written";
  /** True if the server stored it; false for a dry run. */
  isStored: boolean;
  /** The index of the item. */
  item: number;
  /** The name of the created object, which the server may have generated; `null` for a patch, or if it is not known. */
  name: string | null;
  /** The index of the write in the item. */
  write: number;
} | {
  event: "waiting";
  /** The items. */
  items: WaitingItem[];
} | {
  event: "ended";
  /** The index of the item. */
  item: number;
  /** The result of the item. */
  outcome: Outcome;
} | {
  event: "refused";
  /** The next step for the user; `null` if there is nothing to suggest. */
  hint: string | null;
  /** The reason, for people. */
  message: string;
} | {
  event: "done";
} | {
  event: "alive";
};

/** The identifier of a run, which the caller chooses. [`OperationEvent::Started`] reports it before the first request is sent, so that it can be stored by then. */
export type OperationId = string;

/** The answer of a command that lists rows of one kind. */
export type OperationList = {
  apiVersion: "cli.taffrail.dev/v1alpha1";
  /** Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded. */
  errors: ErrorRow[];
  /** The rows of the answer. */
  items: OperationRecord[];
  kind: "OperationList";
};

/** Everything that an operation would write, in all clusters. */
export type OperationPlan = {
  /** The targets that the operation can be applied to, also those with nothing to do. */
  items: PlannedItem[];
  /** The name of the operation: `reconcile`, `suspend`, `resume`, or that of an action. */
  operation: string;
  /** The targets that the operation cannot be applied to. */
  refused: RefusedItem[];
};

/** The question of an operation: a verb for apps, or an action on an object. */
export type OperationQuestion = VerbQuestion | ActionQuestion;

/** A run of an operation, as a hub records it: who asked for it, what was written, and the results. */
export type OperationRecord = {
  /** The time at which it began. */
  began: string;
  /** The name of the token with which it was asked for; left out for the token in the URL that a hub prints. */
  by?: string | null;
  /** The digest of its plan. */
  digest: PlanDigest;
  /** True if the servers only checked the writes. */
  dryRun: boolean;
  /** The time at which it ended; left out while it runs. */
  ended?: string | null;
  /** The identifier of the run. */
  id: OperationId;
  /** The apps or objects of its plan. */
  items: RecordedItem[];
  /** The name of the operation: `reconcile`, `suspend`, `resume`, or that of an action. */
  operation: string;
  /** The time at which it was planned, which its writes may contain. */
  plannedAt: string;
};

/** The app or object to which an operation is applied. */
export type OperationTarget = AppRef | ActionTarget;

/** A declared object that is not Ready. */
export type OtherObject = {
  /** The message of the status, in one line. */
  message: string;
  /** The object. */
  object: ObjectKey;
  /** The status of the object. */
  status: Status;
};

/** The result of an operation for one item of its plan. */
export type Outcome = {
  result: "unchanged";
} | {
  result: "refused";
} | {
  result: "accepted";
} | {
  result: "done";
} | {
  /** The time since the run began, in milliseconds. */
  afterMillis: number;
  /** True if the app is ready but OutOfSync. */
  isOutOfSync: boolean;
  /** The message of the app's delivery tool. */
  message: string;
  result: "ready";
} | {
  /** The time since the run began, in milliseconds. */
  afterMillis: number;
  result: "failed";
  /** The reason for the failure. */
  why: string;
} | {
  result: "unobservable";
  /** The message: the cluster of the objects, and how to include it. */
  why: string;
} | {
  /** The time since the run began, in milliseconds. */
  afterMillis: number;
  /** True if the states of the objects that declare the app, and of those that it has, were live at the deadline. */
  isObserved: boolean;
  result: "timedOut";
  /** The state that was waited for at the deadline, as people read it. */
  why: string;
} | {
  /** The reason. */
  error: OperationError;
  result: "error";
} | {
  result: "interrupted";
  /** The evidence of the writes in the objects. */
  trace: WriteTrace;
  /** The findings, for people. */
  why: string;
};

/** The answer of `overview`. */
export type OverviewAnswer = {
  /** The apps whose objects these clusters hold, declared in the namespace of the question if that is given. */
  apps: AppRow[];
  /** The clusters that the question names, or all, in the order in which they were given. */
  clusters: ClusterRow[];
  /** Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded. */
  errors?: AppError[];
  /** The facts about the queried fleet as a whole. */
  fleet: FleetFacts;
};

/** An app that declares an object, with the source of the app. */
export type OwningApp = {
  /** The revision that the app last applied successfully; left out if it is not known. */
  applied?: string | null;
  /** The delivery of the app, such as a Flux Kustomization. */
  delivery: Delivery;
  /** Name of the cluster that holds the app's declaring object. */
  home: string;
  /** Name of its declaring object; of an app without one, the value of the label or the name of the Helm release. */
  name: string;
  /** Namespace of its declaring object; of an app without one, the namespace of its objects or its Helm release. */
  namespace: string;
  /** The Git repository, OCI artifact or chart that the app comes from; left out if it is not known. */
  source?: Source | null;
};

/** The state of an app in a cluster at one moment. */
export type PairState = {
  /** The health that views showed: Unknown while the target was not live. */
  effective: Status;
  /** The health when the objects were last observed. */
  health: Status;
  /** The worst problem in a few words, such as `sync failed`; `lost`, `stale`, `home lost` or `home stale` while a cluster was not live; `not recorded` for a time without a record; `null` if the app had no problem. */
  problem: string | null;
  /** The sync state that views showed. */
  sync: SyncState;
};

/** An app in a cluster at a past time, as a row. Names of clusters and the key are the present ones, if the app still exists. */
export type PastApp = {
  /** Name of the cluster that held the app's objects; its identity if the hub no longer knows it. */
  cluster: string;
  /** The delivery of the app. */
  delivery: Delivery;
  /** The health that views showed: Unknown while the target was not live. */
  effective: Status;
  /** The health when the objects were last observed. */
  health: Status;
  /** Name of the cluster that held the declaring object; its identity if the hub no longer knows it. */
  home: string;
  /** The key of the app. */
  key: string;
  /** Name of the declaring object. */
  name: string;
  /** Namespace of the declaring object. */
  namespace: string;
  /** The worst problem in a few words, such as `sync failed`; `lost`, `stale`, `home lost` or `home stale` while a cluster was not live; `not recorded` for a time without a record; `null` if the app had no problem. */
  problem: string | null;
  /** The sync state that views showed. */
  sync: SyncState;
};

/** A page of a list about a past time. */
export type PastAppList = {
  apiVersion: "cli.taffrail.dev/v1alpha1";
  /** The time for which the answer was computed, by the clock of the hub. */
  asOf: string;
  /** Number of clusters that the answer is about, whether or not they are missing; names that the hub does not know do not count. */
  clusters: number;
  /** The earliest time that the history reaches back to; never null, as a hub without a history refuses the request. */
  historySince: string | null;
  /** The rows of the page. */
  items: PastApp[];
  kind: "PastAppList";
  /** The first 100 clusters that are missing in whole or in part, or of which only old observations are known; names that the request gives and the hub does not know are among them. */
  missing: MissingCluster[];
  /** Number of clusters that are missing or of which only old observations are known, beyond the 100 in `missing`; left out if there are none. */
  missingOmitted?: number;
  /** The value of `cursor` for the next page; left out on the last one. */
  next?: string | null;
  /** The state of the answer as a whole. */
  state: AnswerState;
  /** Number of rows on all pages. */
  total: number;
};

/** A cluster at a past time, as a row. */
export type PastCluster = {
  /** Number of apps that match the filters of the request. */
  apps: number;
  /** Name of the cluster; its identity if the hub no longer knows it. */
  cluster: string;
  /** Number of these apps by the status that views showed. */
  counts: Counts;
  /** Number of these apps with a problem, notices included. */
  problems: number;
};

/** A page of a list about a past time. */
export type PastClusterList = {
  apiVersion: "cli.taffrail.dev/v1alpha1";
  /** The time for which the answer was computed, by the clock of the hub. */
  asOf: string;
  /** Number of clusters that the answer is about, whether or not they are missing; names that the hub does not know do not count. */
  clusters: number;
  /** The earliest time that the history reaches back to; never null, as a hub without a history refuses the request. */
  historySince: string | null;
  /** The rows of the page. */
  items: PastCluster[];
  kind: "PastClusterList";
  /** The first 100 clusters that are missing in whole or in part, or of which only old observations are known; names that the request gives and the hub does not know are among them. */
  missing: MissingCluster[];
  /** Number of clusters that are missing or of which only old observations are known, beyond the 100 in `missing`; left out if there are none. */
  missingOmitted?: number;
  /** The value of `cursor` for the next page; left out on the last one. */
  next?: string | null;
  /** The state of the answer as a whole. */
  state: AnswerState;
  /** Number of rows on all pages. */
  total: number;
};

/** Field changes of one object, to be sent as a JSON merge patch. */
export type Patch = {
  /** The resource version that the object must still have when the patch is applied; left out for any. */
  basedOn?: string | null;
  /** The changed fields, sorted by their paths. */
  changes: FieldChange[];
};

/** The plan of an operation, as a hub answers with it. */
export type PlanAnswer = {
  /** The digest of the plan. */
  digest: PlanDigest;
  /** The errors that concern the apps of the plan, or the clusters in which its object was looked for. */
  errors: AppError[];
  /** Facts about the fleet from which the plan was made. */
  fleet: FleetFacts;
  /** The plan. */
  plan: OperationPlan;
  /** The time at which the plan was made, which its writes may contain. */
  plannedAt: string;
};

/** The SHA-256 digest of a plan, in hexadecimal digits. */
export type PlanDigest = string;

/** The change that a [`PlannedWrite`] sends. */
export type PlannedChange = {
  patch: {
    /** The patch to send if the server does not know a field of `patch`; left out if there is no other. */
    alternative?: Patch | null;
    /** The patch to send. */
    patch: Patch;
  };
} | {
  create: {
    /** The whole new object. */
    body: unknown;
  };
};

/** The writes that an operation makes for one target: an app, or an object. */
export type PlannedItem = {
  /** The cluster that is written to. */
  cluster: string;
  /** The reason why the API server would refuse a write, as it says if it is asked; left out if it would not, and if it was not asked or did not answer. */
  forbidden?: string | null;
  /** The app or object that the operation is applied to. */
  target: OperationTarget;
  /** The reason why there is nothing to do, if `writes` is empty. */
  unchanged: string;
  /** Warnings for the user, such as that another tool may revert the change; empty if there are none. */
  warnings: string[];
  /** The writes in order; none if there is nothing to do. */
  writes: PlannedWrite[];
};

/** One write of a plan: a patch or a creation. */
export type PlannedWrite = {
  /** The change that is sent. */
  change: PlannedChange;
  /** The difference that the write makes, as lines of YAML; all lines of a new object are added ones. */
  lines: DiffLine[];
  /** The key of the object that is written; its name is empty if the server generates it. */
  object: ObjectKey;
};

/** A reason why an app is not well. */
export type Problem = {
  /** The axis. */
  axis: Axis;
  /** The reason, for people. */
  message: string;
  /** The object that shows the problem; left out if there is none. */
  object?: ObjectKey | null;
  /** The severity of the problem. */
  severity: ProblemSeverity;
  /** The time at which it began, where that is known. */
  since?: string | null;
  /** The state on that axis, in CamelCase: `Failed`, `OutOfSync`, `FetchFailed`, `Lost`; on the axis check, the name of the check. */
  state: string;
  /** The problem of the app upstream that is the cause of this one; left out if no such app is known. */
  upstream?: UpstreamProblem | null;
};

/** The severity of a problem, the worst first. */
export type ProblemSeverity = "error" | "waiting" | "notice";

/** The reason why a question has no answer, such as an unknown cluster, app or kind. */
export type QuestionError = {
  unknownCluster: {
    /** The names and aliases of all clusters. */
    known: string[];
    /** The name as given. */
    name: string;
  };
} | {
  noSingleApp: {
    /** The error of the search. */
    error: FindError;
    /** The failure to read a part that may hold the app, if there is one. */
    hidden_by?: AppError | null;
  };
} | {
  notInClusters: {
    /** The clusters outside of the selected ones that have the app. */
    clusters: string[];
    /** The failure to read a part of the selected clusters that may hold the app, if there is one. */
    hidden_by?: AppError | null;
    /** The name of the app as the user gave it. */
    name: string;
  };
} | {
  unknownKind: {
    /** The kind as given. */
    kind: string;
    /** The kinds of the objects that the selected apps declare, sorted. */
    known: string[];
  };
} | {
  noObject: {
    /** The failure to read a part that may hold the object, if there is one. */
    hidden_by?: AppError | null;
    /** The kind as given. */
    kind: string;
    /** The name as given. */
    name: string;
    /** The namespaces in which an object of that kind has the name, sorted; empty if there are none. */
    namespaces: string[];
  };
} | {
  invalidName: {
    /** The text as given. */
    text: string;
  };
} | {
  noSuchObject: {
    /** True if all namespaces were searched. */
    has_searched_all: boolean;
    /** True if a server serves the kind. */
    is_served: boolean;
    /** The name in the form for messages: `deploy 'web'`. */
    object: string;
    /** The name as given. */
    text: string;
  };
} | {
  noContainer: {
    /** The name as given. */
    container: string;
    /** The names of the containers of these Pods, sorted. */
    known: string[];
  };
} | {
  unservedKind: {
    /** The kind as given. */
    kind: string;
    /** The kinds that the clusters serve, sorted; of more than a thousand the first. */
    known: string[];
  };
} | {
  notOnlyApp: {
    /** The failure to read the part. */
    hidden_by: AppError;
    /** The name as given. */
    name: string;
  };
} | "noneSelected" | "nothingFound";

/** Statistics of the requests and watches of one live cluster. */
export type ReadingView = {
  /** Number of bytes received, after decompression; left out if they were not counted. */
  bytes?: number | null;
  /** The way in which lists are read: `streams`, `gzip pages` or `pages`. */
  lists: string;
  /** The time since when all needed scopes, but those that are forbidden or absent, have been live without a gap; left out unless the cluster is watched and live. */
  liveSince?: string | null;
  /** The watched scopes that are not live. */
  notLive?: NotLiveRow[];
  /** The HTTP version, such as `HTTP/2`. */
  protocol: string;
  /** Number of requests so far; left out if it was not counted. */
  requests?: number | null;
  /** An upper bound of the network round trip to the server, in microseconds. */
  roundTripMicros: number;
  /** Number of scopes that are watched; left out if the cluster was read once. */
  scopes?: number | null;
};

/** Options of a reconciliation; options that the app's tool does not support are refused. */
export type Reconcile = {
  /** Flux HelmRelease: true to install or upgrade even if nothing changed. */
  force?: boolean;
  /** Argo CD: true to render the manifests again, without the cache. */
  hard?: boolean;
  /** Flux HelmRelease: true to reset the count of failures. */
  reset?: boolean;
  /** Argo CD: true to sync, even if automatic sync is off, in place of a refresh; with `hard` the app is refreshed as well. */
  sync?: boolean;
  /** Flux: true to fetch the app's sources first. */
  withSource?: boolean;
};

/** A source of an app, or an object by which a tool delivers it, with its readiness. */
export type ReconciledRow = {
  /** Kind of the object, of the source if no object describes it, or `Release`. */
  kind: string;
  /** The message that the object or its tool reports, or the reason why it is out of sync or its state is not known; may be empty. */
  message?: string;
  /** Name of the object, of the Helm release, or of the repository. */
  name: string;
  /** Namespace of the object or Helm release; empty for a cluster-scoped object, and for a source without an object. */
  namespace: string;
  /** The object; left out if none describes the source, or declares the Helm release. */
  object?: ObjectKey | null;
  /** The readiness: `True`, `False` or `Unknown`; left out if the tool does not report it, or suspends an app that is not of Flux. */
  ready?: string | null;
  /** The revision that the source has, or that the delivery has applied; left out if it is not known. */
  revision?: string | null;
  /** True if the object is suspended; left out if it cannot be suspended, or was not read. */
  suspended?: boolean | null;
  /** The suspension of the object; left out if it is not suspended, or if managed fields tell neither who suspended it nor when. */
  suspension?: Suspension | null;
};

/** The state of an app's delivery. */
export type ReconciliationDetails = {
  /** The objects by which the tool delivers the app, then those of the app that delivers in its place; empty if there are none. */
  delivery: ReconciledRow[];
  /** The time of the last successful sync; left out if it is not known. */
  lastSuccess?: string | null;
  /** The sources of the app, or of the app that delivers in its place; a source of a source comes first. */
  sources: ReconciledRow[];
};

/** The part of a recorded operation that concerns one app or object. */
export type RecordedItem = {
  /** The cluster that is written to. */
  cluster: string;
  /** The result; left out while it is not known. */
  outcome?: Outcome | null;
  /** The app or object. */
  target: OperationTarget;
  /** The writes, in order. */
  writes: RecordedWrite[];
};

/** A write of a recorded operation, and how far it came. */
export type RecordedWrite = {
  /** The last state of the write that was recorded. */
  state: WriteState;
  /** The write. */
  write: PlannedWrite;
};

/** A target to which an operation cannot be applied. */
export type RefusedItem = {
  /** The reason. */
  error: OperationError;
  /** The app or object. */
  target: OperationTarget;
};

/** The name of an app, and its clusters. */
export type RelatedApp = {
  /** Name of the cluster that holds the app's objects; the same as `home` if it is not known. */
  cluster: string;
  /** The delivery of the app, such as a Flux Kustomization. */
  delivery: Delivery;
  /** Name of the cluster that declares the app. */
  home: string;
  /** Name of its declaring object; of an app without one, the value of the label or the name of the Helm release. */
  name: string;
  /** Namespace of its declaring object; of an app without one, the namespace of its objects or its Helm release. */
  namespace: string;
};

/** The relation of a node to its parent. */
export type Relation = "app" | "declared" | "owned";

/** The direction of a relation, as seen by the app that lists it. */
export type RelationDirection = "upstream" | "downstream";

/** A relation of an app to another one. */
export type RelationRow = {
  /** The other app. */
  app: RelatedApp;
  /** The direction of the other app. */
  direction: RelationDirection;
  /** The message of the other app, or the reason why its status is not known; left out if it is Ready. */
  message?: string;
  /** The status of the other app now: NotFound if nothing declares it, Unknown if it was not read. */
  status: Status;
  /** The type of the relation, in the words of the app downstream. */
  type: RelationType;
};

/** The type of a relation between two apps, in the words of the app downstream. */
export type RelationType = "dependsOn" | "createdBy" | "deliveredBy" | "hostedBy";

/** A declared object of an app, or an object that no app declares. */
export type ResourceRow = {
  /** The app that declares it; absent if none does (`--orphaned`, `--image`). */
  app?: AppName | null;
  /** Name of the cluster that holds the object. */
  cluster: string;
  /** The status of the object now: `health` unless `freshness` is given, then Unknown. */
  effective: Status;
  /** The freshness of the objects of the app, of which the least fresh one counts for all; left out while it is live. */
  freshness?: Freshness | null;
  /** API group; empty for the core group. */
  group: string;
  /** The status of the object when it was last observed; for an object that declares an app, that of the app. */
  health: Status;
  /** The images for which the question asked (`--image`), at most 8: those that the object declares, and those that its Pods run. */
  images?: ImageUse[];
  /** Name of the kind: `Deployment`. */
  kind: string;
  /** The message of `health`, in one line; may be empty. */
  message: string;
  /** Name of the object. */
  name: string;
  /** Namespace of the object; empty for cluster-scoped objects. */
  namespace: string;
  /** The clusters, and the kinds of apps in clusters, that could not be read and whose apps may declare the object, if no known app does (`--image`). */
  ownersUnread?: string[];
  /** The worst problem of the app, if that is that a cluster or a part of one is not live and `effective` is Unknown because of it; else left out. */
  problem?: Problem | null;
  /** Name of the rule that decided the status. */
  rule?: string;
  /** The time since when the object is not well, if known. */
  since?: string | null;
  /** Always equal to `effective`. */
  status: Status;
  /** True if a user suspended the object: `spec.suspend` is set, or the rules of its kind find so. */
  suspended?: boolean;
  /** The state that the delivery tool reports for an object that is not synced: `OutOfSync`, `SyncFailed`, …; left out for a synced one. */
  sync?: ObjectSyncState | null;
  /** The message of the tool's last operation about the object, if that could not sync it; may be empty. */
  syncMessage?: string;
  /** True if the object exists outside of the author's own namespace and carries no mark of the app that claims it. */
  unconfirmed?: boolean;
};

/** A part of an app's row that its source did not observe, because it has no way to. */
export type RowPart = "health" | "objects" | "sync" | "revisions" | "applied" | "suspended" | "source" | "message";

/** A selection of the rows of a list, and their order. */
export type RowSelection = {
  /** Names of apps, as in `names`: only the apps directly downstream of one of them are listed. Empty for all apps. */
  downstreamOf?: string[];
  /** True to get, in `elsewhere` of the answer, the apps that have objects in `namespace`, if no app is declared there. Without effect if `names` are given or `follow` is set. */
  elsewhere?: boolean;
  /** Conditions that rows must meet. */
  filter?: Filter;
  /** True for a view that follows changes: the answer then also has the rows that only the conditions about status, problems and sync leave out, and does not report namespaces that do not exist. */
  follow?: boolean;
  /** Names of the apps that are listed, or whose objects are: `NAME`, `NAMESPACE/NAME` or `[CLUSTER/]DELIVERY/NAMESPACE/NAME`; empty for all apps. */
  names?: string[];
  /** The namespace in which the apps are declared; `null` for all. */
  namespace?: string | null;
  /** The field by which the rows are sorted; `null` for the order of the clusters, namespaces and names. */
  sort?: SortField | null;
  /** Names of apps, as in `names`: only the apps directly upstream of one of them are listed. Empty for all apps. */
  upstreamOf?: string[];
};

/** The request to run a plan that a hub answered with. */
export type RunRequest = {
  /** The number of different apps or objects with a write, which must be confirmed if there are more than ten; `null` if it is not. */
  confirmed?: number | null;
  /** The digest of the plan that was shown: if the plan is another by now, nothing is written. */
  digest: PlanDigest;
  /** True if the servers only check the writes, and store nothing. */
  dryRun?: boolean;
  /** The identifier of the run, which the client chooses: a second request with it runs nothing, but gets the events of the first. */
  id: OperationId;
  /** The time at which the plan was made, as its answer says. */
  plannedAt: string;
  /** The question of the plan. */
  question: OperationQuestion;
  /** The time for the whole run in milliseconds; at most an hour. */
  timeoutMillis: number;
  /** True to wait until the tools have handled the requests and the apps are ready or have failed. */
  waits?: boolean;
};

/** The smallest part of a cluster that a failure concerns. */
export type Scope = "cluster" | {
  group: string;
} | {
  kind: {
    /** The kind. */
    kind: GroupKind;
    /** The namespace; `None` for all. */
    namespace?: string | null;
  };
} | {
  namespace: string;
} | {
  object: ObjectKey;
} | {
  input: string;
};

/** A failure, with the smallest scope that it concerns. */
export type ScopeError = {
  /** The message, for people. */
  message: string;
  /** The reason in one CamelCase word: `Forbidden`, `Timeout`, `Malformed`, … */
  reason: string;
  /** The smallest scope that the failure affects: unreadable, malformed, claimed by several apps, over a limit, or not judged. */
  scope: Scope;
};

/** The weight of a finding: the risk that a green status is wrong. */
export type Severity = "high" | "medium" | "low";

/** The field by which a list is sorted. */
export type SortField = "name" | "status" | "cluster" | "since" | "delivery";

/** The source of an app: the place from which its tool gets the desired state. */
export type Source = {
  /** The kind of source: `GitRepository`, `OCIRepository`, `HelmRepository`, `git`, … */
  kind: string;
  /** Name of the object that describes the source; `None` without such an object. */
  name?: string | null;
  /** Namespace of the object that describes the source; `None` without such an object. */
  namespace?: string | null;
  /** The part of the source that is delivered, a folder or a chart; `None` if the app names none. */
  path?: string | null;
  /** The branch, tag, version or range that the app follows; `None` if it names none. */
  reference?: string | null;
  /** The URL of the source, without credentials; `None` if it is not known. */
  url?: string | null;
};

/** The six statuses of kstatus, ordered from worst (`Failed`, the least) to best (`Current`, the greatest). */
export type Status = "Failed" | "NotFound" | "Unknown" | "Terminating" | "InProgress" | "Current";

/** The answer of `status`: the statuses of the objects, for each cluster. */
export type StatusAnswer = {
  /** The clusters that were asked, with the statuses of the objects there. */
  clusters: ClusterStatuses[];
  /** The namespace of the question, if it exists in no cluster; else empty. */
  missingNamespaces?: string[];
  /** Failures outside of any cluster, such as in a kubeconfig. */
  problems?: FleetProblem[];
};

/** A condition that kstatus would add to an object. */
export type StatusCondition = {
  /** The message of the condition. */
  message: string;
  /** The reason of the condition in one CamelCase word. */
  reason: string;
  /** Always `True`. */
  status: string;
  /** `Reconciling` or `Stalled`. */
  type: string;
};

/** A result for an argument of the question in one cluster: an object's status, or the reason why there is none. */
export type StatusItem = {
  object: StatusRow;
} | {
  noKind: string;
} | {
  nothing: string;
};

/** The status of one object, or of an input that could not be judged. */
export type StatusRow = {
  /** The conditions that kstatus would add to the object: `Reconciling`, `Stalled`, or none. */
  conditions: StatusCondition[];
  /** The reason why the object or input could not be read or judged; left out if it was judged. */
  error?: string | null;
  /** API group; empty for the core group. */
  group: string;
  /** Name of the kind. */
  kind: string;
  /** The message of the status; may be empty. */
  message: string;
  /** Name of the object. */
  name: string;
  /** Namespace of the object; empty for cluster-scoped objects. */
  namespace: string;
  /** Name of the rule that decided the status. */
  rule?: string;
  /** The status of the object. */
  status: Status;
  /** True if a user suspended the object: `spec.suspend` is set, or the rules of its kind find so. */
  suspended?: boolean;
  /** API version, without the group. */
  version: string;
};

/** The numbers of the apps of a filter. */
export type StreamCounts = {
  /** Number of rows by status now. */
  counts: Counts;
  /** Number of rows with a problem that is more than a notice. */
  problems: number;
  /** Number of rows: apps in clusters. */
  total: number;
};

/** The data of an event of a stream: what changed on the pages to which a client subscribed. The event is called `reset` if the client must drop all that it holds of the pages: the first one of a stream, unless the stream resumes an earlier one. It is called `frame` if it must apply the changes. */
export type StreamFrame = {
  /** The time for which the pages were computed, by the clock of the hub. */
  asOf: string;
  /** The pages that changed. */
  pages: StreamPage[];
};

/** The changes since the last frame in one page of a stream, a list of rows that the client named and filtered when it opened the stream. Leaves out what did not change. */
export type StreamPage = {
  /** The numbers of all apps that match the filter of the page; left out if they did not change. */
  apps?: StreamCounts | null;
  /** The numbers of clusters; left out unless the page is one of clusters. */
  clusters?: ClusterCounts | null;
  /** The name that the client gave the page. */
  name: string;
  /** The identities of the rows of the page in their order; left out if it is as before. */
  order?: number[] | null;
  /** The rows that are new or changed. */
  rows?: StreamRow[];
  /** The number of the state of the fleet, which grows with each change; left out unless the page is one of changes. */
  version?: number | null;
};

/** A row of a page of a stream. */
export type StreamRow = {
  /** The identity of the row within its page and stream. */
  id: number;
  /** The contents of the row, as in `get apps`. */
  row: AppRow;
};

/** The act by which somebody suspended an app or a source. */
export type Suspension = {
  /** The time at which it last wrote any field of the object; left out if the API server recorded none. */
  at?: string | null;
  /** The field manager that wrote the field, such as `kubectl-patch`; left out if the API server recorded none. */
  by?: string | null;
};

/** The outcome of a sync. */
export type SyncResult = "Running" | "Succeeded" | "Failed";

/** The sync state of an app and its revisions. */
export type SyncRow = {
  /** The revision of the last sync that succeeded; left out if it is not known. */
  applied?: string | null;
  /** The revision of the last sync that was tried; left out if it is not known. */
  attempted?: string | null;
  /** The revision that the source holds, and that should be applied; left out if it is not known. */
  desired?: string | null;
  /** The sync state now: `state` if `freshness` is live, else `Unknown`. */
  effective: SyncState;
  /** The freshness of what was read in the home cluster: of the declaring object, and of the kinds from which the sync state comes. */
  freshness: Freshness;
  /** The time of the last successful sync; left out if it is not known. */
  lastSuccess?: string | null;
  /** The sync state when it was last observed. */
  state: SyncState;
};

/** The state of an app between its source and its cluster, as its delivery tool reports it. */
export type SyncState = "Synced" | "OutOfSync" | "Syncing" | "Failed" | "Suspended" | "Unknown";

/** The answer of `tree`. */
export type TreeAnswer = {
  /** Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded. */
  errors?: AppError[];
  /** The facts about the queried fleet as a whole. */
  fleet: FleetFacts;
  /** True if the app has no problem but notices in all of the clusters. */
  isWell: boolean;
  /** The trees of the app, one for each selected cluster that holds its objects. */
  items: AppTree[];
};

/** A node of the tree, which is one line of text: an app, an object, or several objects that are alike. */
export type TreeNode = {
  /** The app, if the node is one or its object declares one; else left out. */
  app?: AppName | null;
  /** The nodes below this one. */
  children: TreeNode[];
  /** The creation time of the object, if known. */
  created?: string | null;
  /** The status now: `health` if the objects of the app are observed live, else Unknown. */
  effective: Status;
  /** For a shared line, the kind and number of its objects; else left out. */
  folded?: Collapsed | null;
  /** The status of the app or object when it was last observed. */
  health: Status;
  /** The message of the app, or of the object's status, in one line; may be empty. */
  message?: string;
  /** A note for people, such as `suspended`, `unconfirmed`, why the node has no children, or what a shared line contains; left out if there is none. */
  note?: string | null;
  /** The object; for an app its declaring object. Left out for a shared line, and for apps without a declaring object. */
  object?: ObjectKey | null;
  /** The worst problem of the app, notices included; left out for an app without problems, and for objects. */
  problem?: Problem | null;
  /** The relation of the node to its parent. */
  relation: Relation;
  /** The time since when the object is not well, if known; left out for apps, whose `problem` tells it. */
  since?: string | null;
  /** Always equal to `effective`. */
  status: Status;
  /** The state that the delivery tool reports for an object that is not synced: `OutOfSync`, `SyncFailed`, …; left out for a synced one. */
  sync?: ObjectSyncState | null;
  /** The message of the tool's last operation about the object, if that could not sync it; may be empty. */
  syncMessage?: string;
};

/** The answer of `trust`. */
export type TrustAnswer = {
  /** The numbers of apps, objects, Pods and Leases that were checked, for each cluster. */
  checked: CheckedCluster[];
  /** Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded. */
  errors?: AppError[];
  /** The facts about the queried fleet as a whole. */
  fleet: FleetFacts;
  /** The findings, the worst first. */
  items: TrustFinding[];
};

/** A reason to doubt a green status. */
export type TrustFinding = ({
  /** The name of the cluster. */
  cluster: string;
} | {
  /** The names of the clusters. The details of an explanation or finding are those of the first cluster; those of an event are of the newest warning. */
  clusters: string[];
}) & {
  /** Number of apps that the finding concerns. */
  appCount: number;
  /** The apps that the finding concerns: at most ten, of each namespace in turn; of one cluster green ones before the others. Empty if it may concern all. */
  apps?: AppOfHome[];
  /** True if the finding is joined of several clusters, and concerns different apps there. */
  appsDiffer?: boolean;
  /** The category of the finding. */
  category: FindingCategory;
  /** Number of green apps that the finding concerns. */
  green: number;
  /** The message, for people. */
  message: string;
  /** Command lines that show more about the finding, or repair its cause. */
  next?: string[];
  /** True if the finding is joined of several clusters that have different `next`: its `next` is that of the first one. */
  nextOfFirst?: boolean;
  /** Number of objects that the finding is about. */
  objectCount: number;
  /** The objects that the finding is about: at most ten, of each namespace in turn, in order of their keys. */
  objects?: FindingObject[];
  /** The reason in one CamelCase word. */
  reason: string;
  /** The subject of the finding: `cluster`, a kind, the key of an object, a namespace, a delivery tool, … */
  scope: string;
  /** The severity: high if a sign says that the status is wrong, medium if nothing proves it right, low if it only covers little, or if the finding concerns apps but no green one. */
  severity: Severity;
  /** The time since when the finding is true, if known; of several objects the earliest. */
  since?: string | null;
};

/** A node that is not ready. */
export type UnreadyNode = {
  /** The message of that condition; left out if it has none. */
  message?: string;
  /** The name of the node. */
  name: string;
  /** The reason of its condition Ready, such as `NodeStatusUnknown`; left out if it has none. */
  reason?: string;
  /** The time since which it has not been ready; left out if the condition does not tell. */
  since?: string | null;
};

/** An app upstream of another one. */
export type Upstream = {
  /** The delivery of the app, such as a Flux Kustomization. */
  delivery: Delivery;
  /** Name of the cluster that declares the app upstream. */
  home: string;
  /** True if the cluster `home` was read and does not have the object that would declare the app; left out if it has. */
  missing?: boolean;
  /** Name of its declaring object; of an app without one, the value of the label or the name of the Helm release. */
  name: string;
  /** Namespace of its declaring object; of an app without one, the namespace of its objects or its Helm release. */
  namespace: string;
  /** The type of the relation. */
  type: RelationType;
};

/** The problem of an app upstream, because of which an app downstream is not well. */
export type UpstreamProblem = {
  /** The app upstream. */
  app: AppName;
  /** The axis of its problem. */
  axis: Axis;
  /** The message of its problem. */
  message: string;
  /** The object that shows its problem; left out if there is none. */
  object?: ObjectKey | null;
  /** The severity of its problem. */
  severity: ProblemSeverity;
  /** The state on that axis, as in the problem of the app upstream. */
  state: string;
};

/** An operation on an app: reconcile, suspend or resume. */
export type Verb = {
  reconcile: Reconcile;
} | "suspend" | "resume";

/** The question of `reconcile`, `suspend` and `resume`: the verb, and the apps to which it is applied. */
export type VerbQuestion = {
  /** The namespace and the clusters to which the apps are limited. */
  apps?: AppSelection;
  /** The names of the apps, each of which stands for the app in all selected clusters: `NAME`, `NAMESPACE/NAME` or `[CLUSTER/]DELIVERY/NAMESPACE/NAME`; empty for the Flux and Argo CD apps that `selector` admits. */
  names?: string[];
  /** The label selector that the declaring objects match; `null` for all. Without effect if `names` are given. */
  selector?: string | null;
  /** The verb. */
  verb: Verb;
};

/** The answer to a [`ViewQuestion`], as it goes over a wire: that of its view. */
export type ViewAnswer = ListAnswer | ListAnswer2 | ListAnswer3 | AppAnswer | TreeAnswer | EventsAnswer | TrustAnswer | ExplainAnswer | StatusAnswer | ObjectAnswer | OverviewAnswer;

/** A question of any view, in the form that goes over a wire. */
export type ViewQuestion = {
  /** The apps to list. */
  rows?: RowSelection;
  view: "apps";
} | {
  /** The clusters to list, and the conditions that their apps must meet to count. */
  rows?: RowSelection;
  view: "clusters";
} | {
  /** True to list instead the objects that no app declares and that have no owner, in the namespaces of `namespace` and of the filter; without any, in all but those of Kubernetes. */
  orphaned?: boolean;
  /** The apps whose objects are listed, and the conditions that the objects must meet. */
  rows?: RowSelection;
  view: "resources";
} | {
  /** The namespace and the clusters to which the search for the app is limited. */
  apps?: AppSelection;
  /** The name of the app: `NAME`, `NAMESPACE/NAME` or `[CLUSTER/]DELIVERY/NAMESPACE/NAME`. */
  name: string;
  view: "app";
} | {
  /** The namespace and the clusters to which the search for the app is limited. */
  apps?: AppSelection;
  /** True to show only the app and the apps that it delivers. */
  compact?: boolean;
  /** True to let siblings that are alike share a line, as [`AppTree::fold`] does. */
  fold?: boolean;
  /** The name of the app: `NAME`, `NAMESPACE/NAME` or `[CLUSTER/]DELIVERY/NAMESPACE/NAME`. */
  name: string;
  /** The present statuses of which an app or object must have one, unless it is above one that has; `None` for any. */
  status?: string | null;
  view: "tree";
} | {
  /** The namespace and the clusters to which the search for the app, or for all apps, is limited. */
  apps?: AppSelection;
  /** The name of the app: `NAME`, `NAMESPACE/NAME` or `[CLUSTER/]DELIVERY/NAMESPACE/NAME`; `null` for all. */
  name?: string | null;
  /** True for one row for each cluster, in place of one for all clusters with an equal event. */
  perCluster?: boolean;
  /** The age of the oldest event to show, counted from when it last occurred, in seconds; `null` for any. */
  since?: number | null;
  view: "events";
} | {
  /** The namespace and the clusters to which the search for the app, or for all apps, is limited. */
  apps?: AppSelection;
  /** The categories of the findings; empty for all. */
  categories?: FindingCategory[];
  /** True if suggested commands name the context of the cluster. */
  contexts?: boolean;
  /** The name of the app: `NAME`, `NAMESPACE/NAME` or `[CLUSTER/]DELIVERY/NAMESPACE/NAME`; `null` for all. */
  name?: string | null;
  /** True for one finding for each cluster, in place of one for all clusters with an equal finding. */
  perCluster?: boolean;
  view: "trust";
} | {
  /** The names of the clusters whose apps or objects are explained; empty for all. */
  clusters?: string[];
  /** True if suggested commands name the context of the cluster. */
  contexts?: boolean;
  /** True to get the last lines of the containers that are causes, of the first cluster of each explanation, from a hub; without effect where the clusters are read directly. */
  logs?: boolean;
  /** Names of apps (`NAME`, `NAMESPACE/NAME` or `[CLUSTER/]DELIVERY/NAMESPACE/NAME`) or objects (`KIND/NAME` or `[CLUSTER/]group/Kind/namespace/name`); empty for every app with a problem that is more than a notice. */
  names?: string[];
  /** The namespace of the objects, and in which the apps are declared; `null` for all. */
  namespace?: string | null;
  /** True for one explanation for each cluster, in place of one for all clusters with an equal one; without effect if `names` are given, as these are explained for each cluster. */
  perCluster?: boolean;
  view: "explain";
} | {
  /** True to look for objects in all namespaces. */
  allNamespaces?: boolean;
  /** The namespace in which objects are looked for; `null` for the namespace of each cluster's context. */
  namespace?: string | null;
  /** The arguments of the command that name objects: each `KIND/NAME` or `[CLUSTER/]group/Kind/namespace/name`; or a kind and then names; or kinds separated by commas, for all of their objects. */
  objects?: string[];
  /** The label selector that objects must match, such as `team=blue`; only for kinds without names. `null` for any labels. */
  selector?: string | null;
  view: "status";
} | {
  /** True to look for an object named by kind and name in all namespaces. */
  allNamespaces?: boolean;
  /** The names of the clusters in which the object is looked for; empty for all. */
  clusters?: string[];
  /** The name of the object: `KIND/NAME` or `[CLUSTER/]group/Kind/namespace/name`. */
  name: string;
  /** The namespace of an object named by kind and name; `null` for that of each cluster's context, and in dumps for any. */
  namespace?: string | null;
  view: "object";
} | {
  /** Names of the clusters to which the answer is limited, with the apps whose objects they hold; empty for all. */
  clusters?: string[];
  /** The namespace in which the apps are declared; `null` for all. */
  namespace?: string | null;
  view: "overview";
};

/** An item that waits for its tool, or for its app to become ready. */
export type WaitingItem = {
  /** The index of the item. */
  item: number;
  /** The state that is waited for, for people. */
  why: string;
};

/** The progress of a write. */
export type WriteState = "planned" | "sent" | "accepted" | "stored";

/** The evidence that an object has of a write whose answer is not known. */
export type WriteTrace = "made" | "notMade" | "unknown" | "unread";
