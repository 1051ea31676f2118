//! The screen of the demo on a terminal: the overview, and commands to try.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::super::overview::{News, Size, broken, command_for, dim, frame, title};
use crate::program;

/// The title of the demo.
pub(super) const NAME: &str = "Taffrail demo";

/// Time for which each suggested command is shown, in seconds.
const TURN: i64 = 20;

/// Number of rows from which a screen has room for explanations.
const ROOMY: usize = 30;

/// Suggested commands that only read, each shown for [`TURN`] seconds in turn.
const LOOKS: [&str; 4] = [
    "taffrail trust --all-contexts",
    "taffrail get apps --all-contexts --status '!Ready'",
    "taffrail tree shop --context eu-1",
    "taffrail get clusters --all-contexts",
];
const DEEDS: [&str; 5] = [
    "kubectl --context eu-1 -n shop scale deployment web --replicas 5",
    "kubectl --context eu-1 -n shop delete pod -l app=cart",
    "kubectl --context eu-1 -n shop rollout restart deployment web",
    "kubectl --context ap-3 annotate node node-1 taffrail.dev/simulate=lost",
    "kubectl --context ap-3 annotate node node-1 taffrail.dev/simulate-",
];

/// The screen of the demo on a terminal.
pub(super) struct Overview {
    exports: Vec<String>,
    looks: Vec<String>,
    /// The URL of the page; `None` without a hub.
    page: Option<String>,
    /// The names of the clusters that only the hub knows.
    further: Vec<String>,
    begun: Timestamp,
}

impl Overview {
    pub(super) fn new(kubeconfig: &Path) -> Overview {
        let looks = LOOKS.map(str::to_owned).into();
        Overview {
            exports: exports(kubeconfig),
            looks,
            page: None,
            further: Vec::new(),
            begun: Timestamp::now(),
        }
    }

    /// Adds the URL of the hub's page, which `--hub` takes, too, and the names of the clusters that only the hub knows.
    #[cfg(feature = "hub")]
    pub(super) fn name_hub(&mut self, page: String, further: Vec<String>) {
        (self.page, self.further) = (Some(page), further);
    }

    /// Returns the lines shown while the simulated clusters start.
    pub(super) fn beginning(&self) -> Vec<String> {
        vec![format!("{}  starting twelve clusters, with the past of three days …", title(NAME))]
    }

    /// Returns the lines of the demo at the time `now` for a screen of this size.
    pub(super) fn lines(&self, news: &News, now: Timestamp, columns: usize, rows: usize) -> Vec<String> {
        let mut tries = match &self.page {
            Some(page) => {
                let mut lines = vec![title("Open in a browser, and try in another terminal")];
                lines.extend(broken(page, columns));
                // Without room for it, what can be copied comes first.
                let known = only_by_hub(&self.further).filter(|_| rows >= ROOMY);
                lines.extend(known.iter().flat_map(|known| broken(known, columns)).map(|line| dim(&line)));
                lines
            }
            None => vec![title("Try in another terminal")],
        };
        tries.extend(self.exports.iter().flat_map(|export| broken(export, columns)));
        let commands = self.commands(news, now);
        tries.extend(commands.iter().map(|command| format!("  {}", program::named_as_called(command))));
        tries.push(dim(ending(columns)));
        frame(NAME, news, now, Size::screen((columns, rows)), tries)
    }

    /// Returns the three commands to suggest at `now`: one about a present problem (about all apps if there is none),
    /// one that reads and one that writes.
    fn commands(&self, news: &News, now: Timestamp) -> [String; 3] {
        let turn =
            usize::try_from(now.as_second().saturating_sub(self.begun.as_second()) / TURN).unwrap_or(0);
        let look = self.looks.get(turn % self.looks.len().max(1)).cloned().unwrap_or_default();
        let deed = DEEDS.get(turn % DEEDS.len()).copied().unwrap_or_default().to_owned();
        let concern = news.concerns.get(turn % news.concerns.len().max(1));
        [command_for(concern, " --all-contexts", true), look, deed]
    }
}

/// Returns how to leave the demo and, where there is room for it, the command that shows the same in a terminal.
fn ending(columns: usize) -> &'static str {
    const WITH_TUI: &str = "Ctrl-C ends the demo and removes its kubeconfig. A page for the terminal: taffrail tui --all-contexts";
    match cfg!(feature = "tui") && columns >= WITH_TUI.len() {
        true => WITH_TUI,
        false => "Ctrl-C ends the demo and removes its kubeconfig.",
    }
}

/// Returns a sentence about the clusters `names`, which only the hub knows; `None` if there are none.
pub(super) fn only_by_hub(names: &[String]) -> Option<String> {
    let (last, others) = names.split_last()?;
    let names = match others {
        [] => last.clone(),
        others => format!("{} and {last}", others.join(", ")),
    };
    Some(format!("The page and --hub also have {names}, which the kubeconfig does not reach."))
}

/// Returns the shell commands that another terminal needs before it can reach the simulated clusters: they set
/// `KUBECONFIG`, and `PATH` if `taffrail` is not on it.
pub(super) fn exports(kubeconfig: &Path) -> Vec<String> {
    let mut exports = vec![format!("export KUBECONFIG={}", quoted(kubeconfig))];
    let own: Option<PathBuf> = std::env::current_exe().ok().and_then(|own| own.parent().map(Path::to_owned));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_found = std::env::split_paths(&path).any(|folder| folder.join("taffrail").is_file());
    if let Some(own) = own.filter(|_| !is_found) {
        exports.push(format!("export PATH={}:$PATH", quoted(&own)));
    }
    exports
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    taffrail_apps::command::quoted(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use taffrail_apps::ProblemSeverity;
    use taffrail_status::Status;
    use unicode_width::UnicodeWidthStr;

    use super::super::super::overview::{ClusterNews, Concern, Kind, Tally};
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn news(concerns: usize) -> News {
        let mut news = News::new(&[]);
        let of = Tally::Of;
        let counts = vec![(of(Status::Current), 8), (of(Status::Failed), 1), (of(Status::InProgress), 1)];
        for (place, region) in ["Europe", "Americas", "Asia Pacific"].iter().cycle().take(12).enumerate() {
            news.clusters.push(ClusterNews {
                name: format!("cluster-{place}"),
                region: (*region).to_owned(),
                counts: counts.clone(),
                lost: (place == 4).then(|| ("no route".to_owned(), Some(NOW))),
            });
        }
        news.counts = vec![(of(Status::Current), 80), (of(Status::Failed), 10), (of(Status::Unknown), 9)];
        for number in 0..concerns {
            news.concerns.push(Concern {
                severity: ProblemSeverity::Error,
                status: Status::Failed,
                state: "Failed".to_owned(),
                apps: vec![format!("app-{number}")],
                full_name: format!("helm/shop/app-{number}"),
                clusters: vec!["eu-1".to_owned(), "us-1".to_owned()],
                since: Some(NOW),
                message: "a message that is longer than a line of a narrow screen, and goes on".to_owned(),
                kind: Kind::Unwell,
                is_remote: false,
            });
        }
        news
    }

    fn lines(news: &News, columns: usize, rows: usize) -> Vec<String> {
        let overview =
            Overview { looks: vec!["taffrail get clusters".to_owned()], ..Overview::new(Path::new("/")) };
        let exports = vec![format!("export KUBECONFIG=/tmp/{}", "k".repeat(90))];
        let overview = Overview { exports, begun: NOW, ..overview };
        let lines = overview.lines(news, NOW, columns, rows);
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn overview_fits_and_keeps_commands_whole() {
        for (columns, rows) in [(80, 24), (120, 40), (60, 24)] {
            for concerns in [0, 3, 30] {
                let lines = lines(&news(concerns), columns, rows);
                assert_eq!(lines.len(), rows, "{columns}x{rows}: {lines:#?}");
                assert!(lines[0].contains("12 clusters, 99 apps:"), "{}", lines[0]);
                assert!(lines[rows - 1].contains("Ctrl-C"), "{lines:#?}");
                let names_tui = cfg!(feature = "tui") && columns == 120;
                assert_eq!(lines[rows - 1].contains("taffrail tui"), names_tui, "{lines:#?}");
                // The command is broken where it does not fit, and never cut.
                let all = lines.concat();
                assert!(all.contains(&"k".repeat(90)), "{lines:#?}");
                let copied = lines.iter().filter(|line| line.contains("export") || line.contains("kkk"));
                assert!(copied.into_iter().all(|line| line.width() <= columns), "{lines:#?}");
                let has = |wanted: &str| lines.iter().any(|line| line.contains(wanted));
                assert!(has("no answer") && has("Changed lately"), "{lines:#?}");
                assert!(concerns == 0 || has("app-0"), "{lines:#?}");
                assert_eq!(concerns == 30, has(" more"), "{lines:#?}");
            }
        }
    }

    #[test]
    fn clusters_that_only_the_hub_knows_are_named_where_there_is_room() {
        let mut overview = Overview::new(Path::new("/"));
        let page = "http://127.0.0.1:1/#token".to_owned();
        overview.page = Some(page.clone());
        overview.further = vec!["edge-1".to_owned(), "edge-2".to_owned(), "vendor-1".to_owned()];
        for (columns, rows) in [(120, 40), (60, 40), (80, 24)] {
            let lines = overview.lines(&news(3), NOW, columns, rows);
            let lines: Vec<String> =
                lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
            assert_eq!(lines.len(), rows);
            assert!(lines.iter().any(|line| line.contains(&page)), "{lines:#?}");
            assert_eq!(lines.concat().contains("edge-1, edge-2 and vendor-1"), rows >= ROOMY, "{lines:#?}");
        }
        assert_eq!(only_by_hub(&[]), None);
    }

    #[test]
    fn messages_stand_below_where_there_is_room() {
        let wide = lines(&news(2), 120, 40);
        assert!(wide.iter().any(|line| line.contains("app-0") && line.contains("a message")), "{wide:#?}");
        let narrow = lines(&news(2), 80, 40);
        assert!(narrow.iter().any(|line| line.starts_with("    a message")), "{narrow:#?}");
    }

    #[test]
    fn paths_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(quoted(Path::new("/tmp/a-b/c")), "/tmp/a-b/c");
        assert_eq!(quoted(Path::new("/tmp/a b/it's")), r"'/tmp/a b/it'\''s'");
    }
}
