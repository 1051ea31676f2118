//! Behaviours of kube-apiserver that tests can switch off in the simulated one.
//!
//! The conformance suite uses this to prove that every case can fail: a case that passes without the behaviour that it
//! checks checks nothing.

macro_rules! behaviours {
    ($($name:ident: $what:literal,)*) => {
        /// A behaviour of kube-apiserver that can be switched off in the simulated one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Behaviour {
            $(#[doc = $what] $name,)*
        }

        impl Behaviour {
            /// All behaviours.
            pub const ALL: &'static [Behaviour] = &[$(Behaviour::$name,)*];
        }
    };
}

behaviours! {
    AbsentOwners: "Objects whose owners do not exist are deleted.",
    AccessReviews: "Access reviews and self-reviews are answered.",
    AggregatedCore: "`/api` returns aggregated discovery on request.",
    AggregatedGroups: "`/apis` returns aggregated discovery on request.",
    ApplyConflicts: "An apply fails if it would change fields of other managers.",
    ApplyCreates: "An apply creates an object that does not exist.",
    ApplyForce: "A forced apply takes fields of other managers.",
    ApplyUpgrades: "An apply by kubectl takes what its client-side apply wrote.",
    Anonymous: "A request without a token has the user `system:anonymous`.",
    Authorization: "Roles and bindings limit the requests of users.",
    Background: "Dependents are deleted in the background after their owner.",
    BodyLimit: "Bodies over 3 MiB are refused; without it, those over 64 MiB.",
    Bookmarks: "Watches send bookmarks.",
    BookmarksOnRequest: "Watches send bookmarks only on request.",
    Categories: "Discovery contains the categories of resources.",
    Compression: "Long answers are compressed on request.",
    ConsistentPages: "All pages of a list show the same state.",
    Continue: "A limited list returns a token for the next page.",
    ContinueAlone: "A continue token excludes a resourceVersion.",
    ContinueChecked: "An invalid continue token is refused.",
    CreateDropsStatus: "A new object, except a Node, loses the status that its creator wrote.",
    CreateRefusesTwice: "Creating an existing object is refused.",
    CreateRefusesVersion: "Creating an object with a resourceVersion is refused.",
    CreateStamps: "A new object gets a uid and a creation time.",
    CreationTimeIsKept: "Updates cannot change the creation time.",
    CustomColumns: "Custom kinds have their own columns in Tables.",
    CustomDefaults: "Defaults of custom schemas are filled in.",
    CustomInDiscovery: "Discovery contains custom kinds.",
    CustomNeedsVersion: "An update of a custom object requires a resourceVersion.",
    CustomResources: "CustomResourceDefinitions define kinds.",
    CronJobs: "The controller of CronJobs runs.",
    CustomVersions: "A custom kind is served in all of its served versions.",
    DaemonSets: "The controller of DaemonSets runs.",
    DefinitionChecked: "Invalid CustomResourceDefinitions are refused.",
    DefinitionRemovesKind: "Deleting a CustomResourceDefinition removes the kind and its objects.",
    DeleteCollection: "Collections can be deleted.",
    DeleteCollectionSelects: "Selectors limit the deletion of a collection.",
    DeleteStatus: "A deletion that removes an object returns a `Status`, except for kinds such as Pods.",
    DeletionUid: "A deletion checks its uid precondition.",
    DeletionVersion: "A deletion checks its resourceVersion precondition.",
    DisruptionBudgets: "PodDisruptionBudgets are counted and limit evictions.",
    DiscoveryTag: "Aggregated discovery has an `ETag`.",
    DryRunChecked: "Unknown values of `dryRun` are refused.",
    DryRunCreate: "A dry run of a creation stores nothing.",
    DryRunDelete: "A dry run of a deletion deletes nothing.",
    DryRunUpdate: "A dry run of an update changes nothing.",
    EscalationRefused: "Users cannot grant permissions that they do not have.",
    ExactVersion: "Lists can show the state at an exact resourceVersion.",
    FieldSelectors: "Field selectors limit lists and watches.",
    FieldsNotEqual: "Field selectors support `!=`.",
    Finalizers: "Finalizers delay the removal of a deleted object.",
    Foreground: "A foreground deletion waits for the dependents.",
    GenerateName: "`generateName` generates a name.",
    GenerationCounts: "A change of the spec increases the generation.",
    GenerationCountsAnnotations: "A change of a Deployment's annotations increases its generation.",
    GenerationCountsStatus: "Without a status subresource, a change of the status increases the generation.",
    GenerationIgnoresLabels: "A change of labels keeps the generation.",
    GenerationStarts: "The generation of a new object is 1.",
    GroupOrder: "Discovery lists groups in the order of preference.",
    Health: "The health endpoints answer.",
    ImmutableFields: "Updates cannot change fields such as the selector of a Deployment.",
    Impersonation: "Impersonation headers change the user of a request.",
    InitialEventsEnd: "A bookmark with an annotation ends the initial events of a streaming list.",
    ItemsWithoutKind: "Items in lists of built-in kinds lack `kind` and `apiVersion`.",
    Jobs: "The controller of Jobs runs.",
    JsonPatchMove: "JSON patches support `move` and `copy`.",
    JsonPatchTest: "A failed `test` of a JSON patch fails the patch.",
    LabelSelectors: "Label selectors limit lists and watches.",
    LabelsExist: "Label selectors support the existence of a label.",
    LabelsInSet: "Label selectors support `in`.",
    LabelsMissing: "Label selectors support the absence of a label.",
    LabelsNotEqual: "Label selectors support `!=` and `notin`.",
    LastFinalizerRemoves: "Removing the last finalizer removes a deleted object.",
    Limit: "`limit` truncates a list.",
    ListKind: "A list has the kind of its items with `List` appended.",
    ListOptionsChecked: "Contradicting list options are refused.",
    ListOrder: "Lists are sorted by namespace and name.",
    ListVersion: "A list has a resourceVersion.",
    ManagedFields: "The managers of fields are recorded.",
    ManagerNameChecked: "Names of field managers that are too long are refused.",
    ManagersCapped: "The oldest updates are merged if there are more than ten managers.",
    ManagersReset: "An update with one empty entry removes the managers.",
    MergeNullRemoves: "A null in a merge patch removes the member.",
    MetadataChecked: "Invalid labels and finalizers are refused.",
    MetadataOnly: "Objects and lists are returned as metadata on request.",
    NameChecked: "Invalid names are refused.",
    NameConflicts: "A definition with the kind of another resource of its group is not established.",
    NameMatches: "The name in a body must be that in the URL.",
    NameRequired: "A new object must have a name.",
    NamespaceEmpties: "Deleting a namespace deletes its objects.",
    NamespaceMatches: "The namespace in a body must be that in the URL.",
    NamespaceMustExist: "An object cannot be created in a missing namespace.",
    NamespacedLists: "A list of a namespace contains only its objects.",
    NoNewFinalizers: "A deleted object refuses new finalizers.",
    NoStrategicForCustom: "Custom kinds refuse strategic merge patches.",
    NotAcceptable: "Requests that accept no supported form are refused.",
    OpenApiDocuments: "OpenAPI v3 has a document for each group and version.",
    OpenApiFields: "OpenAPI describes the fields of kinds.",
    OpenApiIndex: "OpenAPI v3 has an index.",
    OpenApiV2: "OpenAPI v2 is served.",
    Orphan: "A deletion can orphan the dependents.",
    PatchTypeChecked: "Patches of an unknown type are refused.",
    PlainCore: "`/api` lists the versions of the core group.",
    PlainGroup: "`/apis/GROUP` describes a group.",
    PlainGroups: "`/apis` lists the groups.",
    PlainResources: "`/apis/GROUP/VERSION` lists resources.",
    PodLogs: "Logs of Pods are served and in discovery.",
    PropagationChecked: "Unknown propagation policies are refused.",
    Protobuf: "Bodies in Protobuf are accepted.",
    Pruning: "Unknown fields of custom objects are removed.",
    RefuseBadLabelSelector: "Invalid label selectors are refused.",
    RefuseBadToken: "Requests with an unknown token are refused.",
    RefuseOtherKind: "Bodies of another kind or version than the URL are refused.",
    RefuseUnknownField: "Field selectors with unsupported fields are refused.",
    RemainingItems: "A truncated list without selectors has the number of remaining items.",
    ResetFields: "An apply does not own fields that it cannot write, such as the status.",
    RequiredFields: "Containers without a name or an image, and Services of an unknown type, are refused.",
    RootPaths: "`/` lists the paths.",
    SameStaysSame: "An update without changes keeps the resourceVersion.",
    ScaleSubresource: "The scale subresource is served.",
    SecretTexts: "The `stringData` of a Secret becomes its `data`.",
    ServerSideApply: "Objects can be applied.",
    ServerVersion: "`/version` is served.",
    SeveralOwners: "A dependent stays while one of its owners exists.",
    ShortNames: "Discovery contains short names.",
    StatefulSets: "The controller of StatefulSets runs.",
    StatusKeepsSpec: "Writing the status keeps the rest of the object, except labels and annotations of built-in ones.",
    StatusSubresource: "The status subresource is served.",
    StrategicMergesLists: "Strategic merge patches merge lists by keys.",
    StoreLimit: "Objects that are too large for the store are refused, or stored without managers.",
    StreamingLists: "Watches can begin with the objects of a list.",
    StrictFields: "Strict field validation refuses unknown fields.",
    SystemNamespacesStay: "System namespaces cannot be deleted.",
    TableCells: "Tables have kubectl's cells.",
    TableIncludesNone: "Rows of a Table can omit their objects.",
    TableIncludesObject: "Rows of a Table can include whole objects.",
    Tables: "Objects and lists are returned as Tables on request.",
    TerminatingRefuses: "A namespace that is being deleted refuses new objects.",
    TooLargeVersion: "A resourceVersion of the future is refused.",
    UidIsKept: "Updates and patches cannot change the uid.",
    UpdateConflicts: "An update with an outdated resourceVersion is refused.",
    UpdateKeepsStatus: "An update keeps the status.",
    UpdateUid: "An update whose body has another uid is refused as a conflict.",
    Validation: "Custom objects are validated against their schema.",
    VerboseHealth: "The health endpoints list their checks on request.",
    VersionChecked: "Invalid resourceVersions are refused.",
    WarnUnknownFields: "Unknown fields of custom objects cause a warning.",
    Warnings: "Deprecated versions, and unusual finalizers of custom objects, cause a warning.",
    WatchAdded: "Watches send new objects.",
    WatchColumnsOnce: "A watch of Tables sends the columns once.",
    WatchDeleted: "Watches send deleted objects.",
    WatchEntering: "Watches send objects that start to match as added.",
    WatchFromNowTells: "A watch without a resourceVersion sends the existing objects first.",
    WatchLeaving: "Watches send objects that stop matching as deleted.",
    WatchModified: "Watches send changed objects.",
    WatchNamespaced: "A watch of a namespace sends only its objects.",
    WatchTimeout: "Watches end after their timeout.",
    WatchTooOld: "A watch from a forgotten resourceVersion gets `410 Gone`.",
}

/// The set of behaviours that are switched on; all, except those that a test switched off.
#[derive(Debug, Clone, Default)]
pub(crate) struct Behaviours {
    off: [u64; 4],
}

impl Behaviours {
    pub(crate) fn on(&self, behaviour: Behaviour) -> bool {
        let at = behaviour as usize;
        self.off.get(at / 64).is_none_or(|word| word & (1 << (at % 64)) == 0)
    }

    pub(crate) fn turn_off(&mut self, behaviour: Behaviour) {
        let at = behaviour as usize;
        if let Some(word) = self.off.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }
}
