//! `config view`: the settings and their origins.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{API_VERSION, ErrorRow};

/// The settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SettingList {
    /// Always [`API_VERSION`].
    pub api_version: Cow<'static, str>,
    /// Always `SettingList`.
    pub kind: Cow<'static, str>,
    /// The file that was read, if any.
    pub file: Option<String>,
    /// The settings, those without a value too.
    pub items: Vec<SettingRow>,
    /// Always empty.
    #[serde(default)]
    pub errors: Vec<ErrorRow>,
}

impl SettingList {
    /// Makes the list of settings; `file` is the one that was read.
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

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SettingRow {
    /// The name.
    pub key: String,
    /// The meaning, for people.
    pub about: Cow<'static, str>,
    /// The values; empty for a setting without one.
    pub values: Vec<String>,
    /// The place where it is set.
    pub origin: SettingOrigin,
}

/// The place where a setting is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "from", rename_all = "camelCase")]
pub enum SettingOrigin {
    /// Neither a file nor the environment sets it.
    Default,
    /// A line of a file.
    File {
        /// The path of the file.
        file: String,
        /// The line, from 1.
        line: u64,
    },
    /// The environment.
    Environment {
        /// The name of the variable.
        variable: String,
    },
}
