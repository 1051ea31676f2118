//! Random schemas and objects of them, from few names and values, so that managers meet at the same fields.

use fastrand::Rng;
use serde_json::{Map as JsonMap, Value, json};
use taffrail_merge::{Atom, ListType, MapField, MapType, Relationship, Scalar, Schema, TypeRef};

/// The name of the type of objects.
pub(crate) const ROOT: &str = "root";

/// The depth of types in each other.
const DEPTH: usize = 3;

const FIELDS: [&str; 4] = ["a", "b", "c", "d"];

fn scalar(random: &mut Rng) -> Atom {
    let kinds = [Scalar::String, Scalar::Numeric, Scalar::Boolean, Scalar::Untyped];
    Atom { scalar: random.choice(kinds), ..Atom::default() }
}

fn inlined(atom: Atom) -> TypeRef {
    TypeRef { inlined: Some(Box::new(atom)), ..TypeRef::default() }
}

fn map_of(map: MapType) -> Atom {
    Atom { map: Some(Box::new(map)), ..Atom::default() }
}

fn struct_of(random: &mut Rng, depth: usize) -> MapType {
    let fields = FIELDS.into_iter().filter(|_| random.u8(0..4) > 0).collect::<Vec<_>>();
    let field = |random: &mut Rng| MapField { of: type_of(random, depth), default: None };
    let fields = fields.into_iter().map(|name| (name.to_owned(), field(random))).collect();
    let element = if random.u8(0..4) == 0 { inlined(scalar(random)) } else { TypeRef::default() };
    let relationship =
        *random.choice(&[None, None, Some(Relationship::Separable), Some(Relationship::Atomic)]).unwrap();
    MapType { fields, element, relationship }
}

/// Makes the items of a list that is known by the key `k`, and often by another one with a default.
fn keyed(random: &mut Rng, depth: usize) -> ListType {
    let mut item = struct_of(random, depth);
    item.relationship = None;
    let key =
        MapField { of: inlined(Atom { scalar: Some(Scalar::String), ..Atom::default() }), default: None };
    item.fields.insert("k".to_owned(), key);
    let mut keys = vec!["k".to_owned()];
    if random.bool() {
        let default = random.bool().then(|| json!("TCP"));
        let of = inlined(Atom { scalar: Some(Scalar::Untyped), ..Atom::default() });
        item.fields.insert("p".to_owned(), MapField { of, default });
        keys.push("p".to_owned());
    }
    ListType { element: inlined(map_of(item)), relationship: Some(Relationship::Associative), keys }
}

/// Makes the type of a field.
fn type_of(random: &mut Rng, depth: usize) -> TypeRef {
    let kinds = if depth == 0 { 4 } else { 12 };
    let relationship = (random.u8(0..12) == 0).then_some(Relationship::Atomic);
    let list = |list| Atom { list: Some(Box::new(list)), ..Atom::default() };
    match random.u8(0..kinds) {
        0..3 => inlined(scalar(random)),
        3 => TypeRef::named(if random.bool() { Schema::DEDUCED } else { Schema::ATOMIC }),
        4 => {
            let element = type_of(random, depth - 1);
            inlined(list(ListType { element, relationship: Some(Relationship::Atomic), keys: Vec::new() }))
        }
        5 => {
            let element = inlined(scalar(random));
            inlined(list(ListType {
                element,
                relationship: Some(Relationship::Associative),
                keys: Vec::new(),
            }))
        }
        6 | 7 => TypeRef { relationship, ..inlined(list(keyed(random, depth - 1))) },
        8 => {
            let element = type_of(random, depth - 1);
            inlined(map_of(MapType { element, ..MapType::default() }))
        }
        _ => TypeRef { relationship, ..inlined(map_of(struct_of(random, depth - 1))) },
    }
}

/// Makes a schema whose type [`ROOT`] is that of objects.
pub(crate) fn schema(random: &mut Rng) -> Schema {
    let mut schema = Schema::deduced();
    let mut root = struct_of(random, DEPTH);
    root.relationship = None;
    schema.types.insert(ROOT.to_owned(), map_of(root));
    schema
}

/// Makes some lists and maps of a type atomic, or granular again.
pub(crate) fn change(random: &mut Rng, atom: &mut Atom) {
    let flip = |relationship: &mut Option<Relationship>, granular| {
        *relationship =
            if *relationship == Some(Relationship::Atomic) { granular } else { Some(Relationship::Atomic) };
    };
    if let Some(list) = &mut atom.list {
        if random.u8(0..4) == 0
            && !matches!(list.element.inlined.as_deref(), Some(Atom { list: Some(_), .. }))
        {
            flip(&mut list.relationship, Some(Relationship::Associative));
        }
        change_below(random, &mut list.element);
    }
    if let Some(map) = &mut atom.map {
        if random.u8(0..6) == 0 {
            flip(&mut map.relationship, None);
        }
        change_below(random, &mut map.element);
        let mut names: Vec<String> = map.fields.keys().cloned().collect();
        names.sort_unstable();
        for name in names {
            change_below(random, &mut map.fields.get_mut(&name).unwrap().of);
        }
    }
}

fn change_below(random: &mut Rng, at: &mut TypeRef) {
    if let Some(atom) = &mut at.inlined {
        change(random, atom);
    }
}

/// Makes a value of any form.
fn anything(random: &mut Rng, depth: usize) -> Value {
    match random.u8(0..if depth == 0 { 5 } else { 8 }) {
        0 => Value::Null,
        1 => json!(random.bool()),
        2 => json!(random.i64(0..3)),
        3 => json!(0.5),
        4 => json!(random.choice(["x", "y", "z"]).unwrap()),
        5 => Value::Array((0..random.usize(0..3)).map(|_| anything(random, depth - 1)).collect()),
        _ => {
            let fields = FIELDS.into_iter().filter(|_| random.bool()).collect::<Vec<_>>();
            Value::Object(
                fields.into_iter().map(|name| (name.to_owned(), anything(random, depth - 1))).collect(),
            )
        }
    }
}

/// Makes a value of a type; now and then another one.
pub(crate) fn value(random: &mut Rng, schema: &Schema, at: &TypeRef, depth: usize) -> Value {
    if random.u8(0..100) == 0 || depth > 6 {
        return anything(random, 1);
    }
    if random.u8(0..40) == 0 {
        return Value::Null;
    }
    let atom = match &at.named {
        Some(name) if name.starts_with("__") => return anything(random, 2),
        Some(name) => schema.types.get(name).unwrap(),
        None => at.inlined.as_deref().unwrap(),
    };
    if let Some(map) = &atom.map {
        let mut fields = JsonMap::new();
        let mut names: Vec<&String> = map.fields.keys().collect();
        names.sort_unstable();
        for name in names {
            let is_key = name == "k";
            if is_key || random.u8(0..3) > 0 {
                fields.insert(
                    name.clone(),
                    value(random, schema, &map.fields.get(name).unwrap().of, depth + 1),
                );
            }
        }
        if map.element != TypeRef::default() {
            for name in ["x", "y"].into_iter().filter(|_| random.bool()).collect::<Vec<_>>() {
                fields.insert(name.to_owned(), value(random, schema, &map.element, depth + 1));
            }
        }
        return Value::Object(fields);
    }
    if let Some(list) = &atom.list {
        let items = (0..random.usize(0..4)).map(|_| value(random, schema, &list.element, depth + 1));
        let mut items: Vec<Value> = items.collect();
        // Most lists of the world have each item once.
        if random.u8(0..8) > 0 {
            let mut seen: Vec<Value> = Vec::new();
            let key = |item: &Value| match item {
                Value::Object(fields) => json!([fields.get("k"), fields.get("p")]),
                other => other.clone(),
            };
            items.retain(|item| {
                let is_new = !seen.iter().any(|other| taffrail_merge::equal(other, &key(item)));
                seen.push(key(item));
                is_new
            });
        }
        return Value::Array(items);
    }
    match atom.scalar.unwrap() {
        Scalar::Numeric => json!(random.i64(0..3)),
        Scalar::String => json!(random.choice(["x", "y", "z"]).unwrap()),
        Scalar::Boolean => json!(random.bool()),
        Scalar::Untyped => random.choice([json!("TCP"), json!("UDP"), json!(1), json!(1.5)]).unwrap(),
    }
}
