//! Declared sets: documents, scopes, options, and the texts of errors.

use snapbox::{assert_data_eq, str};
use taffrail_object::GroupKind;
use taffrail_plan::manifests::{
    self, ApplyMode, DeclaredObject, DeclaredSet, HookDeletePolicy, HookPhase, KindScope, MAX_FILE_BYTES,
    MAX_NESTING, MAX_OBJECT_BYTES, MAX_OBJECTS, ManifestErrorKind, ManifestErrors, ManifestFile, Removal,
    built_in_scope,
};

fn read_files(files: &[(&str, &[u8])]) -> Result<DeclaredSet, ManifestErrors> {
    let files: Vec<_> = files.iter().map(|(path, content)| ManifestFile { path, content }).collect();
    manifests::read(&files, "default", &built_in_scope)
}

fn read(text: &str) -> Result<DeclaredSet, ManifestErrors> {
    read_files(&[("web.yaml", text.as_bytes())])
}

fn objects(text: &str) -> Vec<DeclaredObject> {
    read(text).unwrap_or_else(|errors| panic!("{text}: {}", told(&errors))).objects
}

/// Returns the lines and keys of the objects in a text.
fn keys(text: &str) -> Vec<String> {
    objects(text).iter().map(|object| format!("{} {}", object.place.line, object.key)).collect()
}

/// Returns the errors with their hints, each in a line.
fn told(errors: &ManifestErrors) -> String {
    errors.errors.iter().map(|error| format!("{error}\n  {}\n", error.hint())).collect()
}

/// Returns the errors of each text.
fn refusals(texts: &[&str]) -> String {
    let told = texts.iter().map(|text| match read(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(errors) => told(&errors),
    });
    told.collect()
}

/// Returns a ConfigMap `name`, with more lines for its `metadata`.
fn config_map(name: &str, metadata: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n{metadata}")
}

/// Returns a ConfigMap `a` whose annotations are these lines, of which the first has the number 6.
fn annotated(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    config_map("a", &format!("  annotations:\n{lines}"))
}

fn options(lines: &str) -> manifests::SyncOptions {
    objects(&annotated(lines)).remove(0).options
}

#[test]
fn documents_are_separated_as_kubectl_does() {
    let (a, b) = (config_map("a", ""), config_map("b", ""));
    for text in [
        format!("{a}---\n{b}"),
        format!("# first\n---\n{a}---   # second\n\n{b}---\n"),
        format!("---\n---\n# nothing\n---\nnull\n---\n{a}--- \r\n{b}...\n"),
        format!("{a}---\u{a0}\n{b}"),
        format!("\u{feff}{a}---\r\n{b}").replace('\n', "\r\n"),
    ] {
        let names: Vec<_> = objects(&text).into_iter().map(|object| object.key.name).collect();
        assert_eq!(names, ["a", "b"], "{text}");
    }
    assert_eq!(
        keys(&format!("# one\n---\n{a}---\n\n{b}")),
        ["3 /ConfigMap/default/a", "9 /ConfigMap/default/b"]
    );
    // kubectl refuses the first, and silently ignores the second document of the others.
    assert_data_eq!(
        refusals(&[
            &format!("--- {{apiVersion: v1}}\n{a}"),
            &format!("{a}...\n{b}"),
            &format!("{a}\u{2028}---\n{b}")
        ]),
        str![[r#"
web.yaml:1: the separator --- has content in its line
  move the content to the next line
web.yaml:6: not YAML: a second document begins in a text of one document
  check indentation, quotes and brackets; documents are separated by lines of --- alone
web.yaml:5: not YAML: a second document begins in a text of one document
  check indentation, quotes and brackets; documents are separated by lines of --- alone

"#]]
    );
}

#[test]
fn json_objects_follow_one_another_and_yaml_may_follow_the_first() {
    let json = |name: &str| {
        format!(
            "{{\"apiVersion\": \"v1\",\n \"kind\": \"ConfigMap\",\n \"metadata\": {{\"name\": \"{name}\"}}}}"
        )
    };
    let text = format!("\n{}{} null\n\n{}\n", json("a"), json("b"), json("c"));
    assert_eq!(keys(&text), ["2 /ConfigMap/default/a", "4 /ConfigMap/default/b", "8 /ConfigMap/default/c"]);
    let text = format!("{}\n---\n{}", json("a"), config_map("b", ""));
    assert_eq!(keys(&text), ["1 /ConfigMap/default/a", "5 /ConfigMap/default/b"]);
    // An indented separator is none, to kubectl neither.
    let text = format!("{}\n ---\n{}", json("a"), config_map("b", ""));
    assert!(
        told(&read(&text).unwrap_err()).starts_with("web.yaml:4: "),
        "{}",
        told(&read(&text).unwrap_err())
    );
    let mixed = format!("{}{}\n---\n{}", json("a"), json("b"), config_map("c", ""));
    // YAML in braces, which is not JSON.
    assert_eq!(keys("{apiVersion: v1, kind: Node, # x\n metadata: {name: a}}"), ["1 /Node//a"]);
    assert_data_eq!(
        refusals(&[
            "{\"a\": 1,\n \"b\": }",
            "{{ .Values.all }}\n",
            "[{\"kind\": \"List\"}]",
            &mixed,
            "{\"a\": 1e999}",
        ]),
        str![[r#"
web.yaml:1: not an object, but a map without apiVersion and kind
  each document is a map with apiVersion, kind and metadata; leave other files out
web.yaml:1: not JSON: unexpected '{', expected a key in double quotes
  a text that begins with '{' is JSON; only its first or second document may be YAML instead
web.yaml:1: not an object, but a list
  each document is a map with apiVersion, kind and metadata; leave other files out
web.yaml:6: not JSON: unexpected '-', expected a digit
  a text that begins with '{' is JSON; only its first or second document may be YAML instead
web.yaml:1: not JSON: number too large for a 64-bit float
  a text that begins with '{' is JSON; only its first or second document may be YAML instead

"#]]
    );
}

#[test]
fn values_are_those_that_gos_library_reads() {
    let text = config_map(
        "a",
        "data:\n  8080: a\n  010: b\n  yes: c\n  1.50: d\n  0x1F: e\n  x: &x {a: 1, b: 2}\n",
    ) + "  merged: {a: 0, <<: *x, b: 3}\n  list: {<<: [{a: 1}, {a: 2, c: 3}]}\n  twice: 1\n  twice: 010\n  quoted: \"a\n  b\"\n";
    let value = objects(&text).remove(0).value;
    let expected = serde_json::json!({
        "8080": "a", "8": "b", "true": "c", "1.5": "d", "31": "e", "x": {"a": 1, "b": 2},
        "merged": {"a": 1, "b": 3}, "list": {"a": 1, "c": 3}, "twice": 8, "quoted": "a b",
    });
    assert_eq!(value["data"], expected);
    let text = config_map("a", "data:\n  .INF: a\n  -.Inf: b\n  .NaN: c\n  -0.0: d\n  '.INF': e\n")
        + "  text: !!str .inf\n  number: !!int '010'\n  part: !!float 1\n  bytes: !!binary aGk=\n";
    let expected = serde_json::json!({
        ".inf": "a", "-.inf": "b", ".nan": "c", "-0": "d", ".INF": "e",
        "text": ".inf", "number": 8, "part": 1, "bytes": "hi",
    });
    assert_eq!(objects(&text).remove(0).value["data"], expected);
    let text = config_map(
        "a",
        "data:\n  a: {!!merge '<<': {x: 1}}\n  b: {! \"<<\": {x: 1}}\n  c: {!!str <<: {x: 1}}\n",
    );
    let expected = serde_json::json!({"a": {"x": 1}, "b": {"x": 1}, "c": {"<<": {"x": 1}}});
    assert_eq!(objects(&text).remove(0).value["data"], expected);
    // A carriage return before a line break is no part of it, and one more is a break of its own.
    let text = config_map("a", "data: {text: 'a\r\r\n  b', more: 'c\r\n  d'}\n");
    let expected = serde_json::json!({"text": "a b", "more": "c d"});
    assert_eq!(objects(&text).remove(0).value["data"], expected);
    assert_data_eq!(
        refusals(&[
            &config_map("a", "data: {? {a: b} : c}\n"),
            &config_map("a", "data:\n  ~: c\n"),
            &config_map("a", "data:\n  1e9: c\n"),
            &config_map("a", "data:\n  a: .inf\n"),
            &config_map("a", "data:\n  <<: 1\n"),
            &config_map("a", "data:\n\ta: 1\n"),
            &config_map("a", "data: &a:b 1\n"),
            &config_map("a", "data: !!int x\n"),
            &config_map("a", "data: !!int 1.5\n"),
            &config_map("a", "data: !!binary '%'\n"),
            &config_map("a", "\u{feff}data: {}\n"),
            &config_map("a", "data: {list: [a:, b]}\n"),
            &config_map("a", "data: {a:}\n"),
            &config_map("a", "data: {a :[1]}\n"),
            &config_map("a", "data: {a: &b !!str,1}\n"),
        ]),
        str![[r#"
web.yaml:5: not YAML: a YAML key is not a string
  check indentation, quotes and brackets; documents are separated by lines of --- alone
web.yaml:6: not YAML: a YAML key is null; quote it
  check indentation, quotes and brackets; documents are separated by lines of --- alone
web.yaml:6: not YAML: a YAML key is a large or tiny number; quote it
  check indentation, quotes and brackets; documents are separated by lines of --- alone
web.yaml:6: not YAML: JSON has neither infinity nor NaN
  check indentation, quotes and brackets; documents are separated by lines of --- alone
web.yaml:6: not YAML: the YAML key << merges a map or a list of maps, and this is neither
  check indentation, quotes and brackets; documents are separated by lines of --- alone
web.yaml:6: not YAML: tabs disallowed within this context (block indentation)
  check indentation, quotes and brackets; documents are separated by lines of --- alone
web.yaml:5: not YAML: the name of an anchor has a character other than A-Z, a-z, 0-9, - and _
  check indentation, quotes and brackets; documents are separated by lines of --- alone
web.yaml:5: not YAML: a value does not have the type of its tag
  check indentation, quotes and brackets; documents are separated by lines of --- alone
web.yaml:5: not YAML: a value does not have the type of its tag
  check indentation, quotes and brackets; documents are separated by lines of --- alone
web.yaml:5: not YAML: a value does not have the type of its tag
  check indentation, quotes and brackets; documents are separated by lines of --- alone
web.yaml:5: not YAML: a line begins with a byte order mark
  check indentation, quotes and brackets; documents are separated by lines of --- alone
web.yaml:5: not YAML: a colon stands before a comma or bracket; write a space behind it for a key, or quotes around a text
  check indentation, quotes and brackets; documents are separated by lines of --- alone
web.yaml:5: not YAML: a colon stands before a comma or bracket; write a space behind it for a key, or quotes around a text
  check indentation, quotes and brackets; documents are separated by lines of --- alone
web.yaml:5: not YAML: ':' may not precede any of `[{` in flow mapping
  check indentation, quotes and brackets; documents are separated by lines of --- alone
web.yaml:5: not YAML: a tag in a flow list or map has no value
  check indentation, quotes and brackets; documents are separated by lines of --- alone

"#]]
    );
}

#[test]
fn lists_are_opened_and_items_have_the_kind_and_line_of_their_own() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: a}\n-\n  apiVersion: v1\n  kind: List\n  items:\n  - {apiVersion: v1, kind: Node, metadata: {name: b}}\n---\napiVersion: apps/v1\nkind: DeploymentList\nitems:\n- metadata: {name: c}\n- kind: Secret\n  apiVersion: v1\n  metadata:\n    name: d\n---\nkind: List\nitems:\n";
    assert_eq!(
        keys(text),
        ["4 /Node//a", "11 /Node//b", "16 apps/Deployment/default/c", "17 /Secret/default/d"]
    );
    assert_eq!(objects(text)[2].value["kind"], "Deployment");
    let json = "{\"kind\": \"List\", \"items\": [\n{\"apiVersion\": \"v1\", \"kind\": \"Node\",\n\"metadata\": {\"name\": \"a\",\n\"annotations\": {\n\"argocd.argoproj.io/sync-wave\": \"3\"}}}]}";
    let object = objects(json).remove(0);
    assert_eq!((object.place.line, object.options.wave.map(|wave| wave.line)), (2, Some(5)));
    assert_data_eq!(
        refusals(&[
            "kind: List\nitems:\n- x\n- null\n- metadata: {name: a}\n",
            "kind: List\n\nitems: {}\n",
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\n    annotations:\n      argocd.argoproj.io/sync-wave: one\n",
        ]),
        str![[r#"
web.yaml:3: not an object, but a string
  each document is a map with apiVersion, kind and metadata; leave other files out
web.yaml:4: not an object, but null
  each document is a map with apiVersion, kind and metadata; leave other files out
web.yaml:5: not an object, but a map without apiVersion and kind
  each document is a map with apiVersion, kind and metadata; leave other files out
web.yaml:3: items is a map, not a list
  write a list
web.yaml:9: Pod a: argocd.argoproj.io/sync-wave: 'one' is not a whole number
  write a whole number

"#]]
    );
}

#[test]
fn namespaces_follow_the_scope_of_the_kind() {
    let text = config_map("a", "---\n") + &config_map("b", "  namespace: shop\n---\n");
    let text = text + "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, namespace: stray}\n";
    assert_eq!(keys(&text), ["1 /ConfigMap/default/a", "6 /ConfigMap/shop/b", "12 /Namespace//shop"]);
    let found = objects(&text);
    let namespaces: Vec<_> = found.iter().map(|object| object.value["metadata"].get("namespace")).collect();
    assert_eq!(namespaces, [Some(&"default".into()), Some(&"shop".into()), None]);
}

#[test]
fn crds_of_the_set_give_the_scope_of_their_kinds() {
    let crd = |kind: &str, scope: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {}s.x.io}}\nspec:\n  group: x.io\n  scope: {scope}\n  names: {{kind: {kind}}}\n---\n",
            kind.to_lowercase()
        )
    };
    let custom = |kind: &str| format!("apiVersion: x.io/v1\nkind: {kind}\nmetadata: {{name: a}}\n---\n");
    // The CRD may stand behind its objects.
    let text = custom("Ship") + &crd("Ship", "Namespaced") + &crd("Sea", "Cluster") + &custom("Sea");
    let found = keys(&text);
    assert_eq!((&*found[0], &*found[3]), ("1 x.io/Ship/default/a", "21 x.io/Sea//a"));
    // A kind that the cluster serves with another scope: the CRD will change it.
    let served = |_: &GroupKind| Some(KindScope::Cluster);
    let file = ManifestFile { path: "a", content: text.as_bytes() };
    let set = manifests::read(&[file], "default", &served).unwrap();
    assert_eq!(set.objects[0].key.namespace, "default");
    assert_data_eq!(
        refusals(&[
            &(crd("Ship", "Namespaced") + &custom("Shp")),
            &(crd("Ship", "namespaced") + &custom("Ship")),
            &custom("Ship"),
            "apiVersion: apps/v1\nkind: Deploymnt\nmetadata: {name: web}\n",
            "apiVersion: v1\nkind: Deployment\nmetadata: {name: web}\n",
        ]),
        str![[r#"
web.yaml:9: Shp a: the server has no kind Shp in x.io, and its CRD is not in the set
  did you mean Ship of x.io?
web.yaml:6: CustomResourceDefinition ships.x.io: spec.scope is not the scope of a kind
  write Namespaced or Cluster
web.yaml:1: Ship a: the server has no kind Ship in x.io, and its CRD is not in the set
  add the CRD to the set, or install it first
web.yaml:1: Deploymnt web: the server has no kind Deploymnt in apps, and its CRD is not in the set
  did you mean Deployment of apps/v1?
web.yaml:1: Deployment web: the server has no kind Deployment in the core group, and its CRD is not in the set
  did you mean Deployment of apps/v1?

"#]]
    );
}

#[test]
fn an_object_declared_twice_is_an_error_with_both_places() {
    let old = "apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: web, namespace: default}\n";
    let new = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n";
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: a, namespace: x}\n";
    let files =
        [("one.yaml", format!("{old}---\n{node}")), ("two.yaml", format!("{node}---\n{new}---\n{new}"))];
    let files = files.each_ref().map(|(path, text)| (*path, text.as_bytes()));
    assert_data_eq!(
        told(&read_files(&files).unwrap_err()),
        str![[r#"
two.yaml:1: Node a: declared a second time; first at one.yaml:5
  remove one of them
two.yaml:5: Deployment default/web: declared a second time; first at one.yaml:1
  remove one of them
two.yaml:9: Deployment default/web: declared a second time; first at one.yaml:1
  remove one of them

"#]]
    );
}

#[test]
fn objects_without_name_or_kind_are_errors() {
    assert_data_eq!(
        refusals(&[
            "a: 1\n",
            "just text\n",
            "- a\n",
            "apiVersion: v1\nkind: Pod\n",
            "apiVersion: v1\nkind: Pod\nmetadata: a\n",
            "apiVersion: 1\nkind: [Pod]\nmetadata:\n  name: 5\n  namespace: true\n",
            "apiVersion: a/b/c\nkind: Pod\nmetadata: {name: a}\n",
            &config_map("Web_1", ""),
            &config_map("a", "  namespace: A\n"),
            "apiVersion: v1\nkind: Po d\nmetadata: {name: a}\n",
            "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n",
            "apiVersion: v1\nkind: Pod\nmetadata: {generateName: A_, annotations: {helm.sh/hook: pre-install}}\n",
            &config_map("a", "  annotations: []\n"),
        ]),
        str![[r#"
web.yaml:1: not an object, but a map without apiVersion and kind
  each document is a map with apiVersion, kind and metadata; leave other files out
web.yaml:1: not an object, but a string
  each document is a map with apiVersion, kind and metadata; leave other files out
web.yaml:1: not an object, but a list
  each document is a map with apiVersion, kind and metadata; leave other files out
web.yaml:1: Pod: metadata.name is missing
  add metadata.name
web.yaml:3: Pod: metadata is a string, not a map
  write a map
web.yaml:1: apiVersion is a number, not a string
  quote the value
web.yaml:2: kind is a list, not a string
  quote the value
web.yaml:4: metadata.name is a number, not a string
  quote the value
web.yaml:5: metadata.namespace is a boolean, not a string
  quote the value
web.yaml:1: Pod a: 'a/b/c' is not an apiVersion
  write a version, such as v1, or group/version, such as apps/v1
web.yaml:4: ConfigMap Web_1: the name 'Web_1' is not a DNS-1123 subdomain
  use lower-case letters, digits, '-' and '.' in names, and letters and digits in kinds
web.yaml:4: ConfigMap A/a: the namespace 'A' is not a DNS-1123 label
  use lower-case letters, digits, '-' and '.' in names, and letters and digits in kinds
web.yaml:3: Po d a: the kind 'Po d' is not the name of a kind
  use lower-case letters, digits, '-' and '.' in names, and letters and digits in kinds
web.yaml:3: Pod: metadata.name is missing, and metadata.generateName is for hooks only
  add metadata.name, or make the object a hook
web.yaml:3: Pod: the name 'A_x' is not a DNS-1123 subdomain
  use lower-case letters, digits, '-' and '.' in names, and letters and digits in kinds
web.yaml:5: ConfigMap a: metadata.annotations is a list, not a map
  write a map

"#]]
    );
}

#[test]
fn all_errors_of_all_files_are_told_at_once_in_their_order() {
    let bad = annotated("argocd.argoproj.io/sync-wave: x\nargocd.argoproj.io/hook: Presync");
    let files = [
        ("b.yaml", format!("{bad}---\nkind: [\n---\nkind: Foo\n")),
        ("a.yaml", format!("x\n---\n{}---\n{}", config_map("x", ""), config_map("x", ""))),
        ("c.bin", "\0\u{1}".to_owned()),
    ];
    let mut files = files.each_ref().map(|(path, text)| (*path, text.as_bytes())).to_vec();
    files.push(("d.yaml", b"a: 1\n---\nb: \xff\n"));
    let errors = read_files(&files).unwrap_err();
    assert_data_eq!(
        format!("{errors}\n{}", told(&errors)),
        str![[r#"
10 errors in the manifests
b.yaml:6: ConfigMap a: argocd.argoproj.io/sync-wave: 'x' is not a whole number
  write a whole number
b.yaml:7: ConfigMap a: argocd.argoproj.io/hook: 'Presync' is not one of PreSync, Sync, PostSync, SyncFail, PreDelete, PostDelete, Skip
  did you mean PreSync?
b.yaml:9: not YAML: unclosed bracket '['
  check indentation, quotes and brackets; documents are separated by lines of --- alone
b.yaml:11: Foo: apiVersion is missing
  add apiVersion
b.yaml:11: Foo: metadata.name is missing
  add metadata.name
a.yaml:1: not an object, but a string
  each document is a map with apiVersion, kind and metadata; leave other files out
a.yaml:8: ConfigMap default/x: declared a second time; first at a.yaml:3
  remove one of them
c.bin:1: not YAML: unexpected character: `/u{0}'
  check indentation, quotes and brackets; documents are separated by lines of --- alone
d.yaml:1: not an object, but a map without apiVersion and kind
  each document is a map with apiVersion, kind and metadata; leave other files out
d.yaml:3: the text is not UTF-8
  save the file as UTF-8

"#]]
    );
    let many = read(&"x\n---\n".repeat(1_500)).unwrap_err();
    assert_eq!(
        (many.errors.len(), many.more, &*many.to_string()),
        (1_000, 500, "1500 errors in the manifests")
    );
}

#[test]
fn options_of_each_tool_are_typed_and_know_their_line() {
    let argo = options(
        "argocd.argoproj.io/sync-options: Prune=false, Delete=confirm,PruneLast=true,,Validate=false,SkipDryRunOnMissingResource=true,Replace=true,Force=true,ServerSideApply=false\nargocd.argoproj.io/compare-options: IgnoreExtraneous,ServerSideDiff=true,IncludeMutationWebhook=true\nargocd.argoproj.io/sync-wave: \"-5\"\nargocd.argoproj.io/ignore-healthcheck: 'true'\nargocd.argoproj.io/tracking-id: any\nother.io/sync-wav: left alone\nhelm.sh/hook-weight: \"7\"",
    );
    let prune = argo.prune.clone().unwrap();
    assert_eq!(
        (prune.value, prune.stated_by, prune.line),
        (Removal::Never, "argocd.argoproj.io/sync-options", 6)
    );
    assert_eq!(argo.delete.as_ref().unwrap().value, Removal::Confirmed);
    let stated = [
        &argo.prune_last,
        &argo.validate,
        &argo.skip_dry_run_on_missing_resource,
        &argo.replace,
        &argo.force,
        &argo.server_side_apply,
        &argo.ignore_extraneous,
        &argo.server_side_diff,
        &argo.include_mutation_webhook,
        &argo.ignore_healthcheck,
    ];
    assert_eq!(
        stated.map(|it| it.as_ref().map(|it| it.value)),
        [true, false, true, true, true, false, true, true, true, true].map(Some)
    );
    assert_eq!((argo.wave(), argo.wave.as_ref().unwrap().line), (-5, 8));
    assert_eq!(options("helm.sh/hook-weight: \"7\"").wave(), 7);

    for (text, prune, delete) in [
        (
            "argocd.argoproj.io/sync-options: Prune=true\nhelm.sh/resource-policy: keep",
            Removal::Never,
            Removal::Never,
        ),
        ("kustomize.toolkit.fluxcd.io/prune: Disabled", Removal::Never, Removal::Never),
        ("kustomize.toolkit.fluxcd.io/ssa: ignore", Removal::Never, Removal::Never),
        ("client.lifecycle.config.k8s.io/deletion: detach", Removal::Never, Removal::Never),
        ("cli-utils.sigs.k8s.io/on-remove: keep", Removal::Never, Removal::Never),
    ] {
        let found = options(text);
        let values = [found.prune, found.delete].map(|it| it.map(|it| it.value));
        assert_eq!(values, [Some(prune), Some(delete)], "{text}");
    }
    for (text, mode) in [
        ("kustomize.toolkit.fluxcd.io/ssa: Override", ApplyMode::Override),
        (
            "kustomize.toolkit.fluxcd.io/ssa: Merge\nclient.lifecycle.config.k8s.io/mutation: ignore",
            ApplyMode::IfNotPresent,
        ),
        (
            "kustomize.toolkit.fluxcd.io/reconcile: disabled\nkustomize.toolkit.fluxcd.io/ssa: Merge",
            ApplyMode::Ignore,
        ),
    ] {
        assert_eq!(options(text).apply_mode.map(|it| it.value), Some(mode), "{text}");
    }
    assert_eq!(options("kustomize.toolkit.fluxcd.io/force: enabled").force.map(|it| it.value), Some(true));
    // Flux reads labels as well.
    let label = config_map("a", "  labels: {app: web, kustomize.toolkit.fluxcd.io/prune: disabled}\n");
    assert_eq!(
        objects(&label)[0].options.prune.as_ref().map(|it| (it.value, it.line)),
        Some((Removal::Never, 5))
    );
    let after =
        options("config.kubernetes.io/depends-on: apps/namespaces/shop/Deployment/db, /Namespace/shop");
    let keys: Vec<_> = after.depends_on.unwrap().value.iter().map(ToString::to_string).collect();
    assert_eq!(keys, ["apps/Deployment/shop/db", "/Namespace//shop"]);
}

#[test]
fn hooks_of_argo_cd_win_over_those_of_helm() {
    let phases = |text: &str| options(text).hook.map(|hook| hook.value);
    assert_eq!(phases("a: b"), None);
    assert_eq!(
        phases("argocd.argoproj.io/hook: PostSync,PreSync\nhelm.sh/hook: pre-delete"),
        Some(vec![HookPhase::PreSync, HookPhase::PostSync])
    );
    assert_eq!(phases("helm.sh/hook: pre-install,pre-upgrade"), Some(vec![HookPhase::PreSync]));
    assert_eq!(phases("helm.sh/hook: crd-install"), None);
    for skipped in ["argocd.argoproj.io/hook: Skip", "helm.sh/hook: test", "helm.sh/hook: post-rollback"] {
        let found = options(skipped);
        assert!(found.is_skipped() && !found.is_hook(), "{skipped}");
    }
    let policies = options(
        "argocd.argoproj.io/hook-delete-policy: HookSucceeded\nhelm.sh/hook-delete-policy: before-hook-creation,hook-succeeded",
    );
    assert_eq!(
        policies.hook_delete_policies.map(|it| it.value),
        Some(vec![HookDeletePolicy::BeforeHookCreation, HookDeletePolicy::HookSucceeded])
    );
    // The server gives each of them a name, so that two are no duplicates.
    let unnamed = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  generateName: migrate-\n  annotations: {argocd.argoproj.io/hook: PreSync}\n---\n";
    let found = objects(&unnamed.repeat(2));
    let names: Vec<_> = found.iter().map(|it| (&*it.key.name, it.generate_name.as_deref())).collect();
    assert_eq!(names, [("", Some("migrate-")); 2]);
}

#[test]
fn misspelt_options_are_errors_that_name_the_nearest() {
    let lines = [
        "argocd.argoproj.io/sync-optoins: Prune=false",
        "argocd.argoproj.io/Sync-Wave: '1'",
        "argocd.argoproj.io/sync-wave: 1",
        "argocd.argoproj.io/sync-wave: '1o'",
        "argocd.argoproj.io/sync-options: Prun=false,prune=false,Colour=red,Prune,Prune=flase",
        "argocd.argoproj.io/sync-options: Prune=false,Prune=confirm",
        "argocd.argoproj.io/hook: Presync,Sometime",
        "argocd.argoproj.io/hook: ''",
        "argocd.argoproj.io/hook-delete-policy: HookSuceeded",
        "argocd.argoproj.io/compare-options: IgnoreExtraneus,ServerSideDiff=yes",
        "argocd.argoproj.io/ignore-healthcheck: 'yes'",
        "helm.sh/hook: pre-instal",
        "helm.sh/resource-policy: kept",
        "helm.sh/hook-wieght: '1'",
        "kustomize.toolkit.fluxcd.io/prune: disable",
        "kustomize.toolkit.fluxcd.io/prun: disabled",
        "kustomize.toolkit.fluxcd.io/ssa: Overide",
        "client.lifecycle.config.k8s.io/deletion: detached",
        "config.kubernetes.io/depends-on: apps/Deployment/db/x,apps/Deployment/D_B",
        "argocd.argoproj.io/sync-options: Force=false\nkustomize.toolkit.fluxcd.io/force: enabled",
    ];
    let texts = lines.map(annotated);
    assert_data_eq!(
        refusals(&texts.each_ref().map(|text| &**text)),
        str![[r#"
web.yaml:6: ConfigMap a: the annotation argocd.argoproj.io/sync-optoins is unknown
  did you mean argocd.argoproj.io/sync-options?
web.yaml:6: ConfigMap a: the annotation argocd.argoproj.io/Sync-Wave is unknown
  did you mean argocd.argoproj.io/sync-wave?
web.yaml:6: ConfigMap a: argocd.argoproj.io/sync-wave is a number, not a string
  quote the value
web.yaml:6: ConfigMap a: argocd.argoproj.io/sync-wave: '1o' is not a whole number
  write a whole number
web.yaml:6: ConfigMap a: argocd.argoproj.io/sync-options: the option 'Prun' is unknown
  did you mean Prune?
web.yaml:6: ConfigMap a: argocd.argoproj.io/sync-options: the option 'prune' is unknown
  did you mean Prune?
web.yaml:6: ConfigMap a: argocd.argoproj.io/sync-options: the option 'Colour' is unknown
  the options are Prune, Delete, PruneLast, Validate, SkipDryRunOnMissingResource, Replace, Force, ServerSideApply
web.yaml:6: ConfigMap a: argocd.argoproj.io/sync-options: '' is not true or false or confirm for Prune
  write true or false or confirm for Prune
web.yaml:6: ConfigMap a: argocd.argoproj.io/sync-options: 'flase' is not true or false or confirm for Prune
  did you mean false?
web.yaml:6: ConfigMap a: argocd.argoproj.io/sync-options: Prune is set to two values
  state Prune once
web.yaml:6: ConfigMap a: argocd.argoproj.io/hook: 'Presync' is not one of PreSync, Sync, PostSync, SyncFail, PreDelete, PostDelete, Skip
  did you mean PreSync?
web.yaml:6: ConfigMap a: argocd.argoproj.io/hook: 'Sometime' is not one of PreSync, Sync, PostSync, SyncFail, PreDelete, PostDelete, Skip
  write one of PreSync, Sync, PostSync, SyncFail, PreDelete, PostDelete, Skip
web.yaml:6: ConfigMap a: argocd.argoproj.io/hook: '' is not one of PreSync, Sync, PostSync, SyncFail, PreDelete, PostDelete, Skip
  write one of PreSync, Sync, PostSync, SyncFail, PreDelete, PostDelete, Skip
web.yaml:6: ConfigMap a: argocd.argoproj.io/hook-delete-policy: 'HookSuceeded' is not one of BeforeHookCreation, HookSucceeded, HookFailed
  did you mean HookSucceeded?
web.yaml:6: ConfigMap a: argocd.argoproj.io/compare-options: the option 'IgnoreExtraneus' is unknown
  did you mean IgnoreExtraneous?
web.yaml:6: ConfigMap a: argocd.argoproj.io/compare-options: 'yes' is not true or false for ServerSideDiff
  write true or false for ServerSideDiff
web.yaml:6: ConfigMap a: argocd.argoproj.io/ignore-healthcheck: 'yes' is not true or false
  write true or false
web.yaml:6: ConfigMap a: helm.sh/hook: 'pre-instal' is not one of pre-install, pre-upgrade, post-install, post-upgrade, pre-delete, post-delete, crd-install, pre-rollback, post-rollback, test, test-success, test-failure
  did you mean pre-install?
web.yaml:6: ConfigMap a: helm.sh/resource-policy: 'kept' is not keep
  write keep
web.yaml:6: ConfigMap a: the annotation helm.sh/hook-wieght is unknown
  did you mean helm.sh/hook-weight?
web.yaml:6: ConfigMap a: kustomize.toolkit.fluxcd.io/prune: 'disable' is not disabled or enabled
  did you mean disabled?
web.yaml:6: ConfigMap a: the annotation kustomize.toolkit.fluxcd.io/prun is unknown
  did you mean kustomize.toolkit.fluxcd.io/prune?
web.yaml:6: ConfigMap a: kustomize.toolkit.fluxcd.io/ssa: 'Overide' is not Override or Merge or IfNotPresent or Ignore
  did you mean Override?
web.yaml:6: ConfigMap a: client.lifecycle.config.k8s.io/deletion: 'detached' is not detach
  did you mean detach?
web.yaml:6: ConfigMap a: config.kubernetes.io/depends-on: 'apps/Deployment/db/x' is not group/Kind/name or group/namespaces/namespace/Kind/name
  write group/Kind/name or group/namespaces/namespace/Kind/name
web.yaml:6: ConfigMap a: config.kubernetes.io/depends-on: 'apps/Deployment/D_B' is not group/Kind/name or group/namespaces/namespace/Kind/name
  write group/Kind/name or group/namespaces/namespace/Kind/name
web.yaml:7: ConfigMap a: kustomize.toolkit.fluxcd.io/force: Force is set to two values
  state Force once

"#]]
    );
}

#[test]
fn statements_without_effect_are_warnings() {
    let text = annotated(
        "argocd.argoproj.io/colour: red\nargocd.argoproj.io/sync-options: CreateNamespace=true\nhelm.sh/chart: a\nhelm.sh/other: b\nkustomize.toolkit.fluxcd.io/substitute: disabled",
    );
    let set = read(&format!("{text}kind: ConfigMap\n")).unwrap();
    let told: String = set.warnings.iter().map(|warning| format!("{warning}\n")).collect();
    assert_data_eq!(
        told,
        str![[r#"
web.yaml:11: the key kind stands twice, and its last value counts
web.yaml:6: ConfigMap a: Argo CD knows no annotation argocd.argoproj.io/colour
web.yaml:7: ConfigMap a: Argo CD reads CreateNamespace in an Application's syncOptions only, not on an object

"#]]
    );
}

#[test]
fn what_exceeds_a_limit_is_refused_by_name() {
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    // The object and its `data` are two levels.
    let deep = |levels: usize| format!("{}data:\n  a: {}\n", config_map("a", ""), nested(levels - 2));
    let json = |levels: usize| {
        let metadata = r#""apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}"#;
        format!("{{{metadata},\"data\":{}}}", nested(levels - 1))
    };
    let large = |bytes: usize| format!("{}data:\n  a: {}\n", config_map("a", ""), "x".repeat(bytes));
    assert_eq!(objects(&deep(MAX_NESTING)).len(), 1);
    assert_eq!(objects(&json(MAX_NESTING)).len(), 1);
    assert_eq!(objects(&large(MAX_OBJECT_BYTES - 200)).len(), 1);
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..9 {
        let below = format!("*a{}", level - 1);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", [below.as_str(); 9].join(",")));
    }
    let chain: String = (1..20)
        .map(|level| format!("  b{level}: &b{level} [[[[[[[[[[[*b{}]]]]]]]]]]]\n", level - 1))
        .collect();
    let chain = format!("{}data:\n  b0: &b0 x\n{chain}", config_map("a", ""));
    let maps = format!("{{\"a\": [{}1]}}\n", "{\"a\": 1},".repeat(4 << 20));
    let node = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}"#;
    let many = format!("{{\"kind\":\"List\",\"items\":[{}{node}]}}", format!("{node},").repeat(MAX_OBJECTS));
    let file = " ".repeat(MAX_FILE_BYTES + 1);
    let texts = [
        deep(MAX_NESTING + 1),
        json(MAX_NESTING + 1),
        json(20_000),
        large(MAX_OBJECT_BYTES),
        bomb,
        chain,
        maps,
        file,
    ];
    assert_data_eq!(
        refusals(&texts.each_ref().map(|text| &**text)),
        str![[r#"
web.yaml:6: lists and maps are nested deeper than 200 levels
  no API server stores such an object
web.yaml:1: lists and maps are nested deeper than 200 levels
  no API server stores such an object
web.yaml:1: lists and maps are nested deeper than 200 levels
  no API server stores such an object
web.yaml:1: ConfigMap a: the object is larger than 3 MiB
  no API server stores such an object
web.yaml:4: the YAML aliases expand to too much data
  write the values out instead of repeating them by aliases
web.yaml:25: lists and maps are nested deeper than 200 levels
  no API server stores such an object
web.yaml:1: the document has too many values
  split the file
web.yaml:1: the file is larger than 64 MiB
  split the file

"#]]
    );
    let errors = read(&many).unwrap_err();
    assert!(told(&errors).contains("the set has more than 100000 objects"), "{}", errors.errors[0]);
    // Many documents, each of which expands almost as far as it may.
    let expanded = |number: usize| {
        let (items, aliases) = ("x,".repeat(2_000), "*a,".repeat(300));
        let padding = "# \n".repeat(12_000);
        config_map(&format!("a{number}"), &format!("a: &a [{items}]\nb: [{aliases}]\n{padding}---\n"))
    };
    let errors = read(&(0..20).map(expanded).collect::<String>()).unwrap_err();
    assert!(
        errors.errors.iter().all(|error| error.kind == ManifestErrorKind::Aliases),
        "{}",
        errors.errors[0]
    );
    assert!(errors.errors.len() < 10);
}

#[test]
fn values_of_secrets_are_in_no_message() {
    let canary = "hunter2hunter2";
    let secret =
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData:\n  key: {canary}\n");
    assert!(!format!("{:?}", read(&secret).unwrap()).contains(canary));
    for broken in [
        secret.replace("key: ", "key: *"),
        secret.replace("key: ", "key: \"\\q"),
        secret.replace("key: ", "key: !!int "),
        secret.replace("  key: ", "\tkey: "),
        secret.replace("key: ", "key: {"),
        secret.replace("key: ", "key: a: "),
        secret.replace("key: ", "key: %"),
        secret.replace("key: ", "? ["),
        secret.replace("name: a", "name: A") + &secret,
        format!("{{\"kind\": \"Secret\", \"data\": {{\"key\": \"{canary}\\q\"}}}}"),
    ] {
        let told = match read(&broken) {
            Ok(set) => format!("{set:?}"),
            Err(errors) => format!("{errors:?} {}", told(&errors)),
        };
        assert!(!told.contains(canary), "{told}");
    }
}

/// Texts are changed at random places; the seed is printed, and `TAFFRAIL_MANIFEST_SEED` sets it.
#[test]
fn damaged_texts_are_read_or_refused_with_places_inside() {
    let seed = std::env::var("TAFFRAIL_MANIFEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let seeds = [
        annotated("argocd.argoproj.io/sync-options: Prune=false,Force=true\nargocd.argoproj.io/hook: PreSync"),
        "apiVersion: v1\nkind: List\nitems:\n- &a {apiVersion: v1, kind: Node, metadata: {name: a}}\n- *a\n- <<: *a\n  x: |\n    y\n".into(),
        "{\"kind\": \"PodList\", \"apiVersion\": \"v1\", \"items\": [{\"metadata\": {\"name\": \"a\"}}]}\n---\na: 'b'\n".into(),
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\nspec: {group: b, scope: Cluster, names: {kind: A}}\n--- # x\napiVersion: b/v1\nkind: A\nmetadata: {generateName: x-}\n".into(),
    ];
    let parts: [&[u8]; 18] = [
        b"---\n",
        b"&a ",
        b"*a ",
        b"<<: ",
        b"\xff",
        b"\"",
        b"'",
        b"{",
        b"[",
        b"\n",
        b": ",
        b"- ",
        b"\x00",
        b"|\n",
        b"!!int ",
        b"\xc2\x85",
        b"...\n",
        b"%YAML 1.1\n",
    ];
    for _ in 0..20_000 {
        let mut text = seeds[random.usize(..seeds.len())].clone().into_bytes();
        for _ in 0..random.usize(1..6) {
            let at = random.usize(..=text.len());
            let end = text.len().min(at + random.usize(..9));
            match random.u8(..4) {
                0 => drop(text.drain(at..end)),
                1 => drop(text.splice(at..at, parts[random.usize(..parts.len())].iter().copied())),
                2 => drop(text.splice(at..end, parts[random.usize(..parts.len())].iter().copied())),
                _ => {
                    let from = random.usize(..=at);
                    let copy = text[from..at].to_vec();
                    text.extend(copy);
                }
            }
        }
        let lines = 1 + text.iter().filter(|byte| **byte == b'\n').count() as u64;
        match read_files(&[("damaged", &text)]) {
            Ok(set) => assert!(set.objects.iter().all(|object| (1..=lines).contains(&object.place.line))),
            Err(errors) => {
                let is_inside = |line: u64| (1..=lines + 1).contains(&line);
                let outside = errors.errors.iter().find(|error| !is_inside(error.place.line));
                assert!(!errors.errors.is_empty() && outside.is_none(), "{outside:?} in {text:?}");
            }
        }
    }
}
