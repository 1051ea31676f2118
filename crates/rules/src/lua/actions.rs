//! Converts the return values of action scripts.

use serde_json::{Map, Value as Tree};

use super::results::{Action, Change, Operation, Parameter};

/// Converts the table that a discovery script returned, of actions by name, to a list of actions; an empty list gives
/// none.
///
/// # Errors
/// If it is another list, or a field of an action has the wrong type: the reason, for people.
pub(super) fn discovered(tree: Tree) -> Result<Vec<Action>, String> {
    let map = match tree {
        Tree::Object(map) => map,
        Tree::Array(list) if list.is_empty() => return Ok(Vec::new()),
        _ => {
            return Err(
                "the discovery script should return a table of actions by name, not a list".to_owned()
            );
        }
    };
    map.into_iter().map(|(name, tree)| action(&name, &tree)).collect()
}

fn action(name: &str, tree: &Tree) -> Result<Action, String> {
    let mut action = Action { name: name.to_owned(), ..Action::default() };
    let fields = match tree {
        Tree::Object(fields) => fields,
        Tree::Array(_) | Tree::Null => return Ok(action),
        _ => return Err(format!("the discovery script should return a table for the action '{name}'")),
    };
    for (key, value) in fields {
        let should_be = |what: &str| {
            format!("the discovery script should return {what} as '{key}' of the action '{name}'")
        };
        let text = || text(value).ok_or_else(|| should_be("a text"));
        // Go ignores the case of keys.
        match key.to_ascii_lowercase().as_str() {
            "name" => action.name = text()?,
            "displayname" => action.display_name = text()?,
            "iconclass" => action.icon_class = text()?,
            "disabled" => match value {
                Tree::Bool(truth) => action.disabled = *truth,
                Tree::Null => {}
                _ => return Err(should_be("true or false")),
            },
            "params" => {
                action.params = parameters(value).map_err(|why| {
                    format!("the discovery script returned the action '{name}' with wrong parameters: {why}")
                })?
            }
            _ => {}
        }
    }
    Ok(action)
}

/// Returns a text, an empty one for null; `None` for other values.
fn text(value: &Tree) -> Option<String> {
    match value {
        Tree::String(text) => Some(text.clone()),
        Tree::Null => Some(String::new()),
        _ => None,
    }
}

fn parameters(tree: &Tree) -> Result<Vec<Parameter>, &'static str> {
    let list = match tree {
        Tree::Array(list) => list,
        Tree::Null => return Ok(Vec::new()),
        _ => return Err("'params' should be a list"),
    };
    let parameter = |tree: &Tree| {
        let mut parameter = Parameter::default();
        let fields = match tree {
            Tree::Object(fields) => fields,
            Tree::Array(list) if list.is_empty() => return Ok(parameter),
            _ => return Err("'params' should be a list of tables"),
        };
        for (key, value) in fields {
            let field = match key.to_ascii_lowercase().as_str() {
                "name" => &mut parameter.name,
                "value" => &mut parameter.value,
                "type" => &mut parameter.kind,
                "default" => &mut parameter.default,
                _ => continue,
            };
            // Argo CD reads the name only; the other fields are for display and may have any scalar type.
            *field = match value {
                Tree::Bool(_) | Tree::Number(_) => value.to_string(),
                value => text(value).ok_or("each field of a parameter should be a text")?,
            };
        }
        Ok(parameter)
    };
    list.iter().map(parameter).collect()
}

/// Converts the result of an action script: a list of objects to create or patch, or the whole changed object. `object`
/// is the object before the action.
///
/// # Errors
/// If an item of the list is not a change, or an object has no kind: the reason, for people.
pub(super) fn changes(tree: Tree, object: &Tree) -> Result<Vec<Change>, String> {
    let mut changes = match tree {
        Tree::Array(list) => list.into_iter().map(change).collect::<Result<Vec<_>, _>>()?,
        object => vec![Change { operation: Operation::Patch, object }],
    };
    for change in &mut changes {
        if change.operation == Operation::Patch {
            restore(&mut change.object, object);
        }
        let of_object = |key: &str| change.object.get(key).and_then(Tree::as_str).unwrap_or_default();
        if of_object("kind").is_empty() {
            return Err("the object that the action script returned has no kind".to_owned());
        }
    }
    Ok(changes)
}

fn change(tree: Tree) -> Result<Change, String> {
    let Tree::Object(mut fields) = tree else {
        return Err(
            "the action script should return a list of tables with 'operation' and 'resource'".to_owned()
        );
    };
    let mut take = |name: &str| {
        let key = fields.keys().find(|key| key.eq_ignore_ascii_case(name)).cloned();
        key.and_then(|key| fields.remove(&key)).unwrap_or_default()
    };
    let operation = match take("operation") {
        Tree::String(word) if word == "create" => Operation::Create,
        Tree::String(word) if word == "patch" => Operation::Patch,
        other => {
            return Err(format!("the action script returned the operation {other}, not 'create' or 'patch'"));
        }
    };
    match take("resource") {
        object @ Tree::Object(_) => Ok(Change { operation, object }),
        _ => Err("the 'resource' that the action script returns should be an object".to_owned()),
    }
}

/// Turns empty lists in `new` into empty objects where `old` has an object, except for items of lists: an empty Lua
/// table does not tell which it is.
fn restore(new: &mut Tree, old: &Tree) {
    match (new, old) {
        (Tree::Object(new), Tree::Object(old)) => {
            for (key, old) in old {
                if let Some(new) = new.get_mut(key) {
                    restore(new, old);
                }
            }
        }
        (new @ Tree::Array(_), Tree::Object(_)) if new.as_array().is_some_and(Vec::is_empty) => {
            *new = Tree::Object(Map::new());
        }
        (Tree::Array(new), Tree::Array(old)) => {
            for (new, old) in new.iter_mut().zip(old) {
                // An object that became an empty list inside a list stays one: another element may stand there now.
                if !(new.is_array() && old.is_object()) {
                    restore(new, old);
                }
            }
        }
        _ => {}
    }
}
