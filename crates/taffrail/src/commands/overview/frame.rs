//! The overview on a terminal: the clusters, the problems, and the latest changes.

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use taffrail_api::text;
use taffrail_apps::command::quoted;
use taffrail_status::Status;
use unicode_width::UnicodeWidthStr;

use super::news::{Change, ClusterNews, Concern, Counts, Kind, News, Tally};
use crate::output::{fitting, printable, style};

/// Width of the screen, in columns, from which on the columns for names of apps and clusters are wider.
const WIDE: usize = 110;
/// Width of the column of a cluster: without regions at least this, with regions at most.
const MAX_CLUSTER_WIDTH: usize = 44;

/// The size of the overview.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct Size {
    pub(in crate::commands) columns: usize,
    pub(in crate::commands) rows: usize,
    /// True if messages are cut to the width.
    pub(in crate::commands) is_cut: bool,
}

impl Size {
    /// Returns the size of a screen of these columns and rows, on which messages are cut.
    pub(in crate::commands) fn screen((columns, rows): (usize, usize)) -> Size {
        Size { columns, rows, is_cut: true }
    }
}

/// Returns the lines of the overview: the summary, the clusters, the problems and the latest changes, as far as the
/// screen has room, then blank lines down to `foot` at its bottom.
pub(in crate::commands) fn frame(
    name: &str,
    news: &News,
    now: Timestamp,
    Size { columns, rows, is_cut }: Size,
    foot: Vec<String>,
) -> Vec<String> {
    let mut lines = vec![summary(name, news, Some(columns)), String::new()];
    // Many clusters must leave room for the problems.
    let most = (rows.saturating_sub(foot.len()) / 3).max(4);
    lines.extend(clusters(&news.clusters, columns, most));
    lines.push(String::new());

    // The rest is for problems; recent changes get at least one line.
    let room = rows.saturating_sub(lines.len() + foot.len() + 1);
    let least = if room >= 6 { 3 } else { 0 };
    let mut concerns = concerns(&news.concerns, now, columns, room.saturating_sub(least), is_cut);
    if news.concerns.is_empty() {
        let has_apps = news.counts.iter().any(|(_, count)| *count > 0);
        let words =
            if has_apps { "nothing: no app has a problem" } else { "nothing is known: no apps were found" };
        concerns.push(dim(&format!("  {words}")));
    }
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
    let blank = rows.saturating_sub(lines.len() + foot.len());
    lines.extend(std::iter::repeat_n(String::new(), blank));
    lines.extend(foot);
    lines
}

/// Returns the command that shows more about a problem: `explain` for its first app, `get clusters` for a cluster that
/// does not answer, `get apps` for `None`. It ends with `all`, the options for all clusters; with `is_named`, `explain`
/// names the problem's first cluster instead, unless the app is declared in another one.
pub(in crate::commands) fn command_for(concern: Option<&Concern>, all: &str, is_named: bool) -> String {
    match concern {
        None => format!("taffrail get apps{all}"),
        Some(Concern { kind: Kind::Lost, .. }) => format!("taffrail get clusters{all}"),
        Some(concern) => {
            let app = quoted(&concern.full_name);
            match concern.clusters.first().filter(|_| is_named && !concern.is_remote) {
                Some(cluster) => format!("taffrail explain {app} --context {}", quoted(cluster)),
                None => format!("taffrail explain {app}{all}"),
            }
        }
    }
}

/// Breaks a line into several of at most `columns` (at least 20) characters, instead of cutting it: commands are copied
/// from it. Indents it by two if it then still fits into one line.
pub(in crate::commands) fn broken(line: &str, columns: usize) -> Vec<String> {
    let width = columns.max(20);
    let indented = format!("  {line}");
    let line = if indented.width() <= width { indented } else { line.to_owned() };
    let characters: Vec<char> = line.chars().collect();
    characters.chunks(width).map(|part| part.iter().collect()).collect()
}

pub(in crate::commands) fn title(text: &str) -> String {
    let bold = Style::new().bold();
    format!("{bold}{text}{bold:#}")
}

pub(in crate::commands) fn dim(text: &str) -> String {
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

/// Summarises the fleet in the longest form that fits into `columns`, or the shortest if none does.
pub(in crate::commands) fn summary(name: &str, news: &News, columns: Option<usize>) -> String {
    let bold = Style::new().bold();
    let apps: usize = news.counts.iter().map(|(_, count)| count).sum();
    let number = news.clusters.len();
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let fleet = format!("{number} cluster{}, {apps} app{}:", plural(number), plural(apps));
    let [with_words, without] = [true, false].map(|words| counted(&news.counts, words));
    let full = format!("{bold}{name}{bold:#}  {fleet}  {with_words}");
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

/// Lays out the clusters side by side, by region; those without regions in at most `most` lines, the worst first.
fn clusters(all: &[ClusterNews], columns: usize, most: usize) -> Vec<String> {
    if all.iter().all(|cluster| cluster.region.is_empty()) {
        return grid(all, columns, most);
    }
    let mut regions: Vec<(&str, Vec<&ClusterNews>)> = Vec::new();
    for cluster in all {
        match regions.iter_mut().find(|(region, _)| *region == cluster.region) {
            Some((_, members)) => members.push(cluster),
            None => regions.push((&cluster.region, vec![cluster])),
        }
    }
    let width = (columns / regions.len().max(1)).min(MAX_CLUSTER_WIDTH);
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

/// Lays out clusters without regions in columns and about `most` lines: the lost ones first, then those with problems;
/// the last line counts those left out.
fn grid(all: &[ClusterNews], columns: usize, most: usize) -> Vec<String> {
    let mut sorted: Vec<&ClusterNews> = all.iter().collect();
    let is_well = |cluster: &ClusterNews| {
        cluster.lost.is_none() && cluster.counts.iter().all(|(tally, _)| *tally == Tally::Of(Status::Current))
    };
    sorted.sort_by_key(|cluster| (cluster.lost.is_none(), is_well(cluster)));
    let name = all.iter().map(|cluster| cluster.name.width()).max().unwrap_or_default().min(30) + 2;
    let width = MAX_CLUSTER_WIDTH.max(name + 14);
    let across = (columns / width).max(1);
    let places = most.saturating_sub(2).max(1) * across;
    let shown = if sorted.len() > places { places } else { sorted.len() };
    let mut lines = vec![title("Clusters")];
    for row in sorted.iter().take(shown).collect::<Vec<_>>().chunks(across) {
        let cells = row.iter().map(|it| padded(&cell(it, name, width - 2), width));
        lines.push(format!("  {}", cells.collect::<String>().trim_end()));
    }
    let hidden = sorted.get(shown..).unwrap_or_default();
    if !hidden.is_empty() {
        let unwell = hidden.iter().filter(|cluster| !is_well(cluster)).count();
        let unwell = if unwell == 0 { "all well".to_owned() } else { format!("{unwell} with problems") };
        lines.push(dim(&format!("  and {} more, {unwell}", hidden.len())));
    }
    lines
}

fn cell(cluster: &ClusterNews, name: usize, width: usize) -> String {
    let head = padded(&fitting(&printable(&cluster.name), Some(name.saturating_sub(2))), name);
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

/// Formats the problems in at most `room` lines, a title first; the last one counts those left out.
fn concerns(all: &[Concern], now: Timestamp, columns: usize, room: usize, is_cut: bool) -> Vec<String> {
    let mut lines = vec![title("Needs attention")];
    if all.is_empty() {
        return lines;
    }
    let places = room.saturating_sub(1);
    let shown = if all.len() > places { places.saturating_sub(1) } else { all.len() };
    let widest = |of: &dyn Fn(&Concern) -> usize, most: usize| {
        all.iter().take(shown).map(of).max().unwrap_or_default().min(most)
    };
    let state = widest(&|it| it.word().width(), 19);
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
            lines.push(format!("    {}", fitting(&message, is_cut.then(|| columns.saturating_sub(4)))));
        } else {
            lines.push(format!("{line}  {message}"));
        }
    }
    if shown < all.len() {
        lines.push(dim(&format!("  and {} more", all.len() - shown)));
    }
    lines
}

/// Formats a change in one line: its age, apps, clusters, and the states before and after. Names of apps or of clusters
/// that take more than a third of `columns` are replaced by their number. The line is not cut.
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

    fn fleet(size: usize) -> News {
        let mut news = News::new(&[]);
        for place in 0..size {
            let failed = (Tally::Of(Status::Failed), usize::from(place % 10 == 3));
            let counts = [(Tally::Of(Status::Current), 8), failed];
            news.clusters.push(ClusterNews {
                name: format!("cluster-{place}"),
                region: String::new(),
                counts: counts.into_iter().filter(|(_, count)| *count > 0).collect(),
                lost: (place == 7).then(|| ("no route".to_owned(), None)),
            });
        }
        news
    }

    #[test]
    fn a_fleet_without_apps_is_not_called_well() {
        let shown = |news: &News| {
            let size = Size::screen((80, 24));
            let lines = frame("Taffrail", news, Timestamp::UNIX_EPOCH, size, Vec::new()).join("\n");
            anstream::adapter::strip_str(&lines).to_string()
        };
        let mut news = News::new(&[]);
        assert!(shown(&news).contains("nothing is known: no apps were found"), "{}", shown(&news));
        news.counts = vec![(Tally::Of(Status::Current), 1)];
        assert!(shown(&news).contains("nothing: no app has a problem"), "{}", shown(&news));
    }

    #[test]
    fn clusters_without_regions_show_the_worst_and_leave_room_for_problems() {
        for (columns, rows) in [(80, 24), (200, 50)] {
            let foot = vec!["foot".to_owned()];
            let lines =
                frame("Taffrail", &fleet(400), Timestamp::UNIX_EPOCH, Size::screen((columns, rows)), foot);
            let lines: Vec<_> =
                lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
            assert_eq!(lines.len(), rows);
            assert!(lines.iter().all(|line| line.width() <= columns), "{lines:#?}");
            assert!(lines[3].contains("cluster-7 ") && lines[3].contains("no answer"), "{lines:#?}");
            let more = if columns == 80 { "with problems" } else { "all well" };
            assert!(lines.iter().any(|line| line.contains("more, ") && line.contains(more)), "{lines:#?}");
            let attention = lines.iter().position(|line| line == "Needs attention").unwrap();
            assert!(attention < rows / 2 + 2, "{lines:#?}");
        }
        let few = frame("Taffrail", &fleet(2), Timestamp::UNIX_EPOCH, Size::screen((80, 24)), Vec::new());
        assert!(!few.iter().any(|line| line.contains("more")), "{few:#?}");
    }
}
