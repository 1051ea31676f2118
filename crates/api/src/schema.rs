//! The JSON Schema of each answer.

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};

use crate::hub::{AppHistory, PastApp, PastList};
use crate::{
    API_VERSION, ActionList, ActionRun, Answer, AppDetail, AppRow, AppTree, ClusterRow, DiffRow, EventRow,
    Explanation, FleetOverview, ImpactRow, List, ListItem, ObjectActionRow, ObjectRow, ResourceRow, RuleRow,
    RuleTrial, RulingRow, SetHistory, SettingList, StatusRow, TrustReport, WaitChange, WaitSummary,
};

/// Returns the JSON Schema of each answer of a command, each with the value of the answer's field `kind`.
pub fn schemas() -> Vec<(&'static str, Schema)> {
    fn of_list<T: ListItem + JsonSchema>() -> (&'static str, Schema) {
        (T::LIST, schema::<List<T>>(T::LIST))
    }

    vec![
        of_list::<AppRow>(),
        of_list::<ClusterRow>(),
        of_list::<ResourceRow>(),
        of_list::<AppDetail>(),
        of_list::<AppTree>(),
        of_list::<EventRow>(),
        of_list::<DiffRow>(),
        of_list::<ImpactRow>(),
        of_list::<Explanation>(),
        of_list::<AppHistory>(),
        ("PastAppList", schema::<PastList<PastApp>>("PastAppList")),
        of_list::<SetHistory>(),
        of_list::<StatusRow>(),
        of_list::<RuleRow>(),
        of_list::<RulingRow>(),
        of_list::<ObjectActionRow>(),
        of_list::<ObjectRow>(),
        ("Explanation", schema::<Answer>("Explanation")),
        ("Overview", schema::<FleetOverview>("Overview")),
        ("TrustReport", schema::<TrustReport>("TrustReport")),
        ("ActionList", schema::<ActionList>("ActionList")),
        ("ActionRun", schema::<ActionRun>("ActionRun")),
        ("RuleTest", schema::<RuleTrial>("RuleTest")),
        ("RuleLint", schema::<RuleTrial>("RuleLint")),
        ("SettingList", schema::<SettingList>("SettingList")),
        ("WaitChange", schema::<WaitChange>("WaitChange")),
        ("WaitSummary", schema::<WaitSummary>("WaitSummary")),
    ]
}

/// Returns the JSON Schema of the answer `T`, with `kind` as its title and as the only value of its field `kind`, and
/// [`API_VERSION`] as that of `apiVersion`. Fields that are always written are required, even if readers accept an
/// answer without them.
fn schema<T: JsonSchema>(kind: &str) -> Schema {
    let generator = SchemaGenerator::new(SchemaSettings::draft2020_12().for_serialize());
    let mut schema = generator.into_root_schema_for::<T>();
    schema.insert("title".to_owned(), kind.into());
    for (field, value) in [("apiVersion", API_VERSION), ("kind", kind)] {
        if let Some(field) = schema.pointer_mut(&format!("/properties/{field}")) {
            *field = serde_json::json!({ "const": value });
        }
    }
    schema
}
