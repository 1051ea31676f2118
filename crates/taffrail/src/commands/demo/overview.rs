//! The demo on a terminal: the clusters, the problems, the latest changes, and commands to try.

use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use taffrail_api::text;
use taffrail_status::Status;
use unicode_width::UnicodeWidthStr;

use super::changes::{Change, ClusterNews, Concern, Counts, Kind, News, Tally};
use crate::output::{fitting, printable, style};
use crate::program;

/// Minimum width, in columns, for listing names of several apps or clusters.
const WIDE: usize = 110;
/// Time for which a suggested command is shown, in seconds.
const TURN: i64 = 20;

/// Suggested commands that only read; the demo shows one after the other.
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
    begun: Timestamp,
}

impl Overview {
    pub(super) fn new(kubeconfig: &Path) -> Overview {
        Overview { exports: exports(kubeconfig), begun: Timestamp::now() }
    }

    /// Returns the lines shown while the simulated clusters start.
    pub(super) fn beginning(&self) -> Vec<String> {
        vec![format!("{}  starting twelve clusters, with the past of three days …", title("Taffrail demo"))]
    }

    /// Returns the lines for a screen of this size.
    pub(super) fn lines(&self, news: &News, now: Timestamp, columns: usize, rows: usize) -> Vec<String> {
        let mut lines = vec![summary(news, Some(columns)), String::new()];
        lines.extend(clusters(&news.clusters, columns));
        lines.push(String::new());

        let mut tries = vec![title("Try in another terminal")];
        tries.extend(self.exports.iter().flat_map(|export| broken(export, columns)));
        tries.extend(self.commands(news, now).iter().map(|command| format!("  {}", program::typed(command))));
        tries.push(dim("Ctrl-C ends the demo and removes its kubeconfig."));

        // The rest is for problems; recent changes get at least one line.
        let room = rows.saturating_sub(lines.len() + tries.len() + 1);
        let least = if room >= 6 { 3 } else { 0 };
        let concerns = concerns(&news.concerns, now, columns, room.saturating_sub(least));
        let left = room.saturating_sub(concerns.len());
        lines.extend(concerns);
        if left >= 3 {
            lines.push(String::new());
            lines.push(title("Changed lately"));
            if news.changes.is_empty() {
                lines.push(dim("  nothing yet"));
            }
            lines.extend(news.changes.iter().take(left - 2).map(|it| change(it, now, columns)));
        }
        // Suggested commands stand at the bottom.
        let blank = rows.saturating_sub(lines.len() + tries.len());
        lines.extend(std::iter::repeat_n(String::new(), blank));
        lines.extend(tries);
        lines
    }

    /// Returns three suggested commands: one about a problem, one that reads and one that writes.
    fn commands(&self, news: &News, now: Timestamp) -> [String; 3] {
        let turn =
            usize::try_from(now.as_second().saturating_sub(self.begun.as_second()) / TURN).unwrap_or(0);
        let of =
            |commands: &[&str]| commands.get(turn % commands.len()).copied().unwrap_or_default().to_owned();
        let concern = news.concerns.get(turn % news.concerns.len().max(1));
        let explain = match concern {
            None => "taffrail get apps --all-contexts".to_owned(),
            Some(Concern { kind: Kind::Lost, .. }) => "taffrail get clusters --all-contexts".to_owned(),
            Some(concern) => {
                let app = taffrail_apps::command::quoted(
                    concern.apps.first().map(String::as_str).unwrap_or_default(),
                );
                let cluster = taffrail_apps::command::quoted(
                    concern.clusters.first().map(String::as_str).unwrap_or_default(),
                );
                match (concern.kind, concern.is_remote) {
                    (_, true) => format!("taffrail explain {app} --all-contexts"),
                    (Kind::Unsynced, _) => format!("taffrail explain {app} --context {cluster}"),
                    _ => format!("taffrail explain {app} --context {cluster}"),
                }
            }
        };
        [explain, of(&LOOKS), of(&DEEDS)]
    }
}

/// Returns the shell commands that another terminal needs first.
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

/// Breaks a line at spaces into several of at most `columns`, instead of cutting it: commands are copied from it.
fn broken(line: &str, columns: usize) -> Vec<String> {
    let width = columns.max(20);
    let indented = format!("  {line}");
    let line = if indented.width() <= width { indented } else { line.to_owned() };
    let characters: Vec<char> = line.chars().collect();
    characters.chunks(width).map(|part| part.iter().collect()).collect()
}

fn title(text: &str) -> String {
    let bold = Style::new().bold();
    format!("{bold}{text}{bold:#}")
}

fn dim(text: &str) -> String {
    let dim = Style::new().dimmed();
    format!("{dim}{text}{dim:#}")
}

/// Returns a symbol that identifies a status without colour.
fn shape(status: Status) -> &'static str {
    match status {
        Status::Current => "✓",
        Status::Failed => "✗",
        Status::NotFound => "∅",
        Status::Unknown => "?",
        Status::Terminating => "↓",
        Status::InProgress => "…",
    }
}

/// Formats the numbers of apps by category, with or without the categories' names.
fn counted(counts: &Counts, words: bool) -> String {
    let one = |(tally, count): &(Tally, usize)| {
        let (colour, shape, word) = match tally {
            Tally::Of(status) => (style(*status), shape(*status), status.word()),
            Tally::Problem => (AnsiColor::Yellow.on_default(), "≠", "with a problem"),
        };
        let word = if words { format!(" {word}") } else { String::new() };
        format!("{colour}{shape} {count}{word}{colour:#}")
    };
    counts.iter().map(one).collect::<Vec<_>>().join("  ")
}

/// Summarises the fleet in the longest form that fits into `columns`.
pub(super) fn summary(news: &News, columns: Option<usize>) -> String {
    let bold = Style::new().bold();
    let apps: usize = news.counts.iter().map(|(_, count)| count).sum();
    let fleet = format!("{} clusters, {apps} apps:", news.clusters.len());
    let [with_words, without] = [true, false].map(|words| counted(&news.counts, words));
    let full = format!("{bold}Taffrail demo{bold:#}  {fleet}  {with_words}");
    let lines = [full, format!("{fleet}  {with_words}")];
    let fits = |line: &String| columns.is_none_or(|columns| width(line) <= columns);
    lines.into_iter().find(fits).unwrap_or_else(|| format!("{fleet}  {without}"))
}

/// Returns the display width of a text, without its colours.
fn width(text: &str) -> usize {
    anstream::adapter::strip_str(text).to_string().width()
}

/// Pads a text with spaces to `columns` columns.
fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Lays out the clusters side by side, by region.
fn clusters(all: &[ClusterNews], columns: usize) -> Vec<String> {
    let mut regions: Vec<(&str, Vec<&ClusterNews>)> = Vec::new();
    for cluster in all {
        match regions.iter_mut().find(|(region, _)| *region == cluster.region) {
            Some((_, members)) => members.push(cluster),
            None => regions.push((&cluster.region, vec![cluster])),
        }
    }
    let width = (columns / regions.len().max(1)).min(44);
    let name = all.iter().map(|cluster| cluster.name.width()).max().unwrap_or_default() + 2;
    let mut lines = vec![regions.iter().map(|(region, _)| padded(&title(region), width)).collect::<String>()];
    let rows = regions.iter().map(|(_, members)| members.len()).max().unwrap_or_default();
    for row in 0..rows {
        let cells = regions.iter().map(|(_, members)| {
            let cell = members.get(row).map(|it| cell(it, name, width)).unwrap_or_default();
            padded(&cell, width)
        });
        lines.push(cells.collect::<String>().trim_end().to_owned());
    }
    lines
}

fn cell(cluster: &ClusterNews, name: usize, width: usize) -> String {
    let head = padded(&printable(&cluster.name), name);
    if cluster.lost.is_some() {
        let colour = style(Status::Unknown);
        let apps: usize = cluster.counts.iter().map(|(_, count)| count).sum();
        return format!("{head}{colour}{} {apps}  no answer{colour:#}", shape(Status::Unknown));
    }
    let [with_words, without] = [true, false].map(|words| counted(&cluster.counts, words));
    let fits = self::width(&with_words) + name + 2 <= width;
    format!("{head}{}", if fits { with_words } else { without })
}

/// Joins the names; if they do not fit into `columns`, returns their number followed by `what`.
fn named(names: &[String], columns: usize, what: &str) -> String {
    let all = names.join(" ");
    if all.width() <= columns { all } else { format!("{} {what}", names.len()) }
}

/// Formats the problems in at most `room` lines; the last one counts those left out.
fn concerns(all: &[Concern], now: Timestamp, columns: usize, room: usize) -> Vec<String> {
    let mut lines = vec![title("Needs attention")];
    if all.is_empty() {
        lines.push(dim("  nothing: all is as it was declared"));
        return lines;
    }
    let places = room.saturating_sub(1);
    let shown = if all.len() > places { places.saturating_sub(1) } else { all.len() };
    let widest = |of: &dyn Fn(&Concern) -> usize, most: usize| {
        all.iter().take(shown).map(of).max().unwrap_or_default().min(most)
    };
    let state = widest(&|it| it.word().width(), 14);
    let (most_apps, most_clusters) = if columns >= WIDE { (24, 22) } else { (18, 16) };
    let apps = widest(&|it| named(&it.apps, most_apps, "apps").width(), most_apps);
    let clusters = widest(&|it| named(&it.clusters, most_clusters, "clusters").width(), most_clusters);
    let used = 2 + 2 + state + 2 + apps + 2 + clusters + 2 + 6 + 2;
    // Messages move below their line if they would be cut and there is room for all of them.
    let is_long = |it: &Concern| printable(&it.message).width() + used > columns;
    let below = all.len() * 2 < room && all.iter().any(is_long);
    for concern in all.iter().take(shown) {
        let colour = match concern.kind {
            Kind::Unsynced => AnsiColor::Yellow.on_default(),
            Kind::Unwell | Kind::Lost => style(concern.status),
        };
        let shape = if concern.kind == Kind::Unsynced { "≠" } else { shape(concern.status) };
        let since =
            concern.since.map(|since| text::span(now.as_second() - since.as_second())).unwrap_or_default();
        let line = format!(
            "  {colour}{shape} {}{colour:#}  {}  {}  {since:>6}",
            padded(concern.word(), state),
            padded(&printable(&named(&concern.apps, most_apps, "apps")), apps),
            padded(&printable(&named(&concern.clusters, most_clusters, "clusters")), clusters),
        );
        let message = printable(&concern.message);
        if below {
            lines.push(line.trim_end().to_owned());
            lines.push(format!("    {}", fitting(&message, Some(columns.saturating_sub(4)))));
        } else {
            lines.push(format!("{line}  {message}"));
        }
    }
    if shown < all.len() {
        lines.push(dim(&format!("  and {} more", all.len() - shown)));
    }
    lines
}

/// Formats a change in one line of at most `columns`: its age, apps, clusters, and the states before and after.
fn change(change: &Change, now: Timestamp, columns: usize) -> String {
    let colour = style(change.status);
    let ago = text::ago(change.at, now);
    let most = columns / 3;
    let clusters = named(&change.clusters, most, "clusters");
    let who = match change.apps.as_slice() {
        [] => clusters,
        apps => format!("{} in {clusters}", named(apps, most, "apps")),
    };
    let (before, after) = (&change.before, &change.after);
    format!("  {ago:>10}  {}: {before} → {colour}{after}{colour:#}", printable(&who))
}

#[cfg(test)]
mod tests {
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
                status: Status::Failed,
                state: "Failed".to_owned(),
                apps: vec![format!("app-{number}")],
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
            Overview { exports: vec![format!("export KUBECONFIG=/tmp/{}", "k".repeat(90))], begun: NOW };
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
