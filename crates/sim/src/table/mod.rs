//! Tables: objects as rows, as `kubectl get` shows them.

mod cells;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::behaviour::Behaviour;
use crate::kinds::Column;
use crate::state::Inner;
use crate::store::Object;
use crate::target::Target;

/// Appends a Table of one object to `out`; `include` is the query parameter `includeObject`, and without `with_columns`
/// the columns are `null`.
pub(crate) fn write_one(
    out: &mut Vec<u8>,
    inner: &Inner,
    target: &Target,
    object: &Object,
    include: &str,
    with_columns: bool,
) {
    let metadata = format!("{{\"resourceVersion\":\"{}\"}}", object.version());
    let head = format!("{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{metadata},");
    out.extend_from_slice(head.as_bytes());
    write_body(out, inner, target, [object].into_iter(), include, with_columns);
}

/// Appends to `out` the parts of a Table that follow its metadata: columns (`null` without `with_columns`), rows and
/// the closing brace. `include` is the query parameter `includeObject`.
pub(crate) fn write_body<'a>(
    out: &mut Vec<u8>,
    inner: &Inner,
    target: &Target,
    objects: impl Iterator<Item = &'a Object>,
    include: &str,
    with_columns: bool,
) {
    let no_columns = Vec::new();
    let columns = target.resource.version(&target.version).map_or(&no_columns, |version| &version.columns);
    let definitions = if with_columns { columns.iter().map(definition).collect() } else { Value::Null };
    out.extend_from_slice(format!("\"columnDefinitions\":{definitions},\"rows\":[").as_bytes());
    let now = inner.fleet.clock.now();
    let start = target.item_start();
    for (index, object) in objects.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let tree = object.tree(&target.api_version(), &target.resource.kind);
        let cells = cells_of(inner, target, columns, &tree, now);
        out.extend_from_slice(format!("{{\"cells\":{cells}").as_bytes());
        match include {
            "None" if inner.does.on(Behaviour::TableIncludesNone) => {}
            "Object" if inner.does.on(Behaviour::TableIncludesObject) => {
                out.extend_from_slice(b",\"object\":");
                object.write(&start, out);
            }
            _ => {
                out.extend_from_slice(b",\"object\":");
                object.write_partial(out);
            }
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"]}");
}

fn definition(column: &Column) -> Value {
    json!({
        "name": column.name, "type": column.kind, "format": column.format, "description": column.description,
        "priority": column.priority,
    })
}

fn cells_of(inner: &Inner, target: &Target, columns: &[Column], object: &Value, now: Timestamp) -> Value {
    if !target.resource.custom {
        let known =
            inner.does.on(Behaviour::TableCells).then(|| cells::of(&target.resource, object, now)).flatten();
        if let Some(cells) = known {
            return Value::Array(cells.into_iter().take(columns.len()).collect());
        }
    }
    let cell = |column: &Column| match (&column.json_path, column.name.as_str()) {
        (Some(path), _) => {
            let found = path.find(object).ok().and_then(|found| found.first().copied().cloned());
            match (column.kind.as_str(), found) {
                (_, None) => Value::Null,
                ("date", Some(value)) => json!(age_of(&value, now)),
                ("string", Some(value)) => {
                    json!(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
                }
                (_, Some(value)) => value,
            }
        }
        (None, "Name") => object["metadata"]["name"].clone(),
        (None, "Age" | "Created At") => json!(age_of(&object["metadata"]["creationTimestamp"], now)),
        _ => json!("<none>"),
    };
    columns.iter().map(cell).collect()
}

/// Returns the age of a time as kubectl shows it, such as `19d`; `<unknown>` if it is not a valid time.
fn age_of(time: &Value, now: Timestamp) -> String {
    match time.as_str().and_then(|text| text.parse::<Timestamp>().ok()) {
        Some(time) => age(now.duration_since(time).as_secs()),
        None => "<unknown>".to_owned(),
    }
}

/// Formats a duration as kubectl does: `duration.HumanDuration`.
fn age(seconds: i64) -> String {
    let pair = |large: i64, large_unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{large}{large_unit}"),
        small => format!("{large}{large_unit}{small}{small_unit}"),
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        _ if hours < 3 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => pair(days, "d", hours % 24, "h"),
        _ if days < 730 => format!("{days}d"),
        _ if days < 8 * 365 => pair(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn ages_are_formatted_as_in_kubectl() {
        let cases = [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (10_860, "3h1m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (-5, "<invalid>"),
        ];
        for (seconds, want) in cases {
            assert_eq!(super::age(seconds), want, "{seconds}");
        }
    }
}
