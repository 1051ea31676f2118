//! Behaviours of the API server, each of which can be switched off.
//!
//! The conformance suite uses this to prove that every case can fail: a case that passes without the behaviour that it
//! checks checks nothing.

macro_rules! behaviours {
    ($($name:ident: $what:literal,)*) => {
        /// A behaviour that can be turned off.
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
    AbsentOwners: "Absent owners.",
    AccessReviews: "Access reviews.",
    AggregatedCore: "Aggregated core.",
    AggregatedGroups: "Aggregated groups.",
    Anonymous: "Anonymous.",
    Authorization: "Authorization.",
    Background: "Background.",
    BodyLimit: "Body limit.",
    Bookmarks: "Bookmarks.",
    BookmarksOnRequest: "Bookmarks on request.",
    Categories: "Categories.",
    Compression: "Compression.",
    ConsistentPages: "Consistent pages.",
    Continue: "Continue.",
    ContinueAlone: "Continue alone.",
    ContinueChecked: "Continue checked.",
    CreateDropsStatus: "Create drops status.",
    CreateRefusesTwice: "Create refuses twice.",
    CreateRefusesVersion: "Create refuses version.",
    CreateStamps: "Create stamps.",
    CreationTimeIsKept: "Creation time is kept.",
    CustomColumns: "Custom columns.",
    CustomDefaults: "Custom defaults.",
    CustomInDiscovery: "Custom in discovery.",
    CustomNeedsVersion: "Custom needs version.",
    CustomResources: "Custom resources.",
    CronJobs: "Cron jobs.",
    CustomVersions: "Custom versions.",
    DaemonSets: "Daemon sets.",
    DefinitionChecked: "Definition checked.",
    DefinitionRemovesKind: "Definition removes kind.",
    DeleteCollection: "Delete collection.",
    DeleteCollectionSelects: "Delete collection selects.",
    DeleteStatus: "Delete status.",
    DeletionUid: "Deletion uid.",
    DeletionVersion: "Deletion version.",
    DisruptionBudgets: "Disruption budgets.",
    DiscoveryTag: "Discovery tag.",
    DryRunChecked: "Dry run checked.",
    DryRunCreate: "Dry run create.",
    DryRunDelete: "Dry run delete.",
    DryRunUpdate: "Dry run update.",
    ExactVersion: "Exact version.",
    FieldSelectors: "Field selectors.",
    FieldsNotEqual: "Fields not equal.",
    Finalizers: "Finalizers.",
    Foreground: "Foreground.",
    GenerateName: "Generate name.",
    GenerationCounts: "Generation counts.",
    GenerationCountsAnnotations: "Generation counts annotations.",
    GenerationCountsStatus: "Generation counts status.",
    GenerationIgnoresLabels: "Generation ignores labels.",
    GenerationStarts: "Generation starts.",
    GroupOrder: "Group order.",
    Health: "Health.",
    Impersonation: "Impersonation.",
    InitialEventsEnd: "Initial events end.",
    ItemsWithoutKind: "Items without kind.",
    Jobs: "Jobs.",
    JsonPatchMove: "Json patch move.",
    JsonPatchTest: "Json patch test.",
    LabelSelectors: "Label selectors.",
    LabelsExist: "Labels exist.",
    LabelsInSet: "Labels in set.",
    LabelsMissing: "Labels missing.",
    LabelsNotEqual: "Labels not equal.",
    LastFinalizerRemoves: "Last finalizer removes.",
    Limit: "Limit.",
    ListKind: "List kind.",
    ListOptionsChecked: "List options checked.",
    ListOrder: "List order.",
    ListVersion: "List version.",
    ManagedFields: "Managed fields.",
    MergeNullRemoves: "Merge null removes.",
    MetadataChecked: "Metadata checked.",
    MetadataOnly: "Metadata only.",
    NameChecked: "Name checked.",
    NameConflicts: "Name conflicts.",
    NameMatches: "Name matches.",
    NameRequired: "Name required.",
    NamespaceEmpties: "Namespace empties.",
    NamespaceMatches: "Namespace matches.",
    NamespaceMustExist: "Namespace must exist.",
    NamespacedLists: "Namespaced lists.",
    NoNewFinalizers: "No new finalizers.",
    NoStrategicForCustom: "No strategic for custom.",
    NotAcceptable: "Not acceptable.",
    OpenApiDocuments: "Open api documents.",
    OpenApiFields: "Open api fields.",
    OpenApiIndex: "Open api index.",
    OpenApiV2: "Open api v2.",
    Orphan: "Orphan.",
    PatchTypeChecked: "Patch type checked.",
    PlainCore: "Plain core.",
    PlainGroup: "Plain group.",
    PlainGroups: "Plain groups.",
    PlainResources: "Plain resources.",
    PodLogs: "Pod logs.",
    PropagationChecked: "Propagation checked.",
    Protobuf: "Protobuf.",
    Pruning: "Pruning.",
    RefuseBadLabelSelector: "Refuse bad label selector.",
    RefuseBadToken: "Refuse bad token.",
    RefuseOtherKind: "Refuse other kind.",
    RefuseUnknownField: "Refuse unknown field.",
    RemainingItems: "Remaining items.",
    RootPaths: "Root paths.",
    SameStaysSame: "Same stays same.",
    ScaleSubresource: "Scale subresource.",
    ServerVersion: "Server version.",
    SeveralOwners: "Several owners.",
    ShortNames: "Short names.",
    StatefulSets: "Stateful sets.",
    StatusKeepsSpec: "Status keeps spec.",
    StatusSubresource: "Status subresource.",
    StrategicMergesLists: "Strategic merges lists.",
    StreamingLists: "Streaming lists.",
    StrictFields: "Strict fields.",
    SystemNamespacesStay: "System namespaces stay.",
    TableCells: "Table cells.",
    TableIncludesNone: "Table includes none.",
    TableIncludesObject: "Table includes object.",
    Tables: "Tables.",
    TerminatingRefuses: "Terminating refuses.",
    TooLargeVersion: "Too large version.",
    UidIsKept: "Uid is kept.",
    UpdateConflicts: "Update conflicts.",
    UpdateKeepsStatus: "Update keeps status.",
    UpdateUid: "Update uid.",
    Validation: "Validation.",
    VerboseHealth: "Verbose health.",
    VersionChecked: "Version checked.",
    WarnUnknownFields: "Warn unknown fields.",
    Warnings: "Warnings.",
    WatchAdded: "Watch added.",
    WatchColumnsOnce: "Watch columns once.",
    WatchDeleted: "Watch deleted.",
    WatchEntering: "Watch entering.",
    WatchFromNowTells: "Watch from now tells.",
    WatchLeaving: "Watch leaving.",
    WatchModified: "Watch modified.",
    WatchNamespaced: "Watch namespaced.",
    WatchTimeout: "Watch timeout.",
    WatchTooOld: "Watch too old.",
}

/// The set of active behaviours; all except those that were switched off.
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
