//! The folders in which parts of Taffrail that run for long keep their data.

use std::ffi::OsString;
use std::path::PathBuf;

/// Returns the usual folder of the part called `name`: `taffrail/NAME` in `$XDG_DATA_HOME`, else in `~/.local/share`;
/// `None` if this user has no home.
pub(crate) fn usual(name: &str) -> Option<PathBuf> {
    folder(name, std::env::var_os("XDG_DATA_HOME"), std::env::home_dir())
}

fn folder(name: &str, xdg: Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    let folder = xdg.map(PathBuf::from).filter(|folder| folder.is_absolute());
    Some(folder.or_else(|| Some(home?.join(".local/share")))?.join("taffrail").join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_folder_is_that_of_xdg_else_below_home() {
        let folder = |xdg: Option<&str>, home: Option<&str>| {
            folder("hub", xdg.map(OsString::from), home.map(PathBuf::from))
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(folder(Some("/data"), Some("/me")), path("/data/taffrail/hub"));
        assert_eq!(folder(Some("data"), Some("/me")), path("/me/.local/share/taffrail/hub"));
        assert_eq!(folder(None, None), None);
    }
}
