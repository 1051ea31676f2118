//! The answer of `config view`: the settings with their values and origins.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{API_VERSION, ErrorRow};

/// All settings, with their values and origins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SettingList {
    /// Always [`API_VERSION`].
    pub api_version: Cow<'static, str>,
    /// Always `SettingList`.
    pub kind: Cow<'static, str>,
    /// The path of the settings file that was read; `null` if none was.
    pub file: Option<String>,
    /// The settings, those without a value too.
    pub items: Vec<SettingRow>,
    /// Always empty.
    #[serde(default)]
    pub errors: Vec<ErrorRow>,
}

impl SettingList {
    /// Makes the answer; `file` is the path of the settings file that was read, `None` if none was.
    pub fn new(file: Option<String>, items: Vec<SettingRow>) -> SettingList {
        SettingList {
            api_version: API_VERSION.into(),
            kind: "SettingList".into(),
            file,
            items,
            errors: Vec::new(),
        }
    }
}

/// A setting, with its value and its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SettingRow {
    /// The name of the setting in the file, such as `output.apps`.
    pub key: String,
    /// The meaning of the setting, for people.
    pub about: Cow<'static, str>,
    /// The values in effect: one, or the items of a list; empty if nothing sets it and it has no default.
    pub values: Vec<String>,
    /// The place where the value comes from.
    pub origin: SettingOrigin,
}

/// The place where the value of a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "from", rename_all = "camelCase")]
pub enum SettingOrigin {
    /// The value is the default: neither the file nor the environment sets it.
    Default,
    /// A line of the settings file sets it.
    File {
        /// The path of the file.
        file: String,
        /// The line, from 1.
        line: u64,
    },
    /// An environment variable sets it.
    Environment {
        /// The name of the variable.
        variable: String,
    },
}
