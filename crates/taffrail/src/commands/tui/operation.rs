//! An operation on an app or an object: its plan, the confirmation, and its results, in place of the rows.

use ratatui_core::style::{Modifier, Style};
use ratatui_crossterm::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use taffrail_api::operations::{
    ActionQuestion, MOST_UNCOUNTED, OperationEvent, OperationQuestion, OperationTarget, Outcome, PlanAnswer,
    PlannedChange, PlannedItem, VerbQuestion,
};
use taffrail_api::question::AppSelection;
use taffrail_apps::Delivery;
use taffrail_apps::verbs::{DiffLine, Reconcile, Verb};
use taffrail_status::Status;

use super::paint::{Colours, Line, glyph};
use super::question::{AppPlace, Effect, ObjectPlace, RunEnd};
use super::words::count;
use crate::commands::verbs::outcome;

/// The progress of an item of the plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ItemRun {
    /// The step that is done or waited for; empty before the item begins.
    doing: String,
    outcome: Option<Outcome>,
}

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    /// The hub plans the operation.
    Planning,
    /// The plan is shown.
    Planned(Box<PlanAnswer>),
    /// The plan runs.
    Running(Box<PlanAnswer>, Vec<ItemRun>),
    /// The run has ended, or the hub no longer tells of it: then with the reason.
    Ended(Box<PlanAnswer>, Vec<ItemRun>, Option<String>),
    /// There is no plan, for this reason.
    Failed(String),
}

/// The change that an operation makes, and its target.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// A verb for apps in their clusters, or for one app in every cluster.
    Verb { apps: Vec<AppPlace>, verb: Verb, is_everywhere: bool },
    /// An action on an object, with its parameters.
    Action { object: ObjectPlace, question: Box<ActionQuestion> },
}

impl Change {
    /// Returns the name of the operation.
    fn name(&self) -> &str {
        match self {
            Change::Verb { verb, .. } => verb.as_str(),
            Change::Action { question, .. } => &question.action,
        }
    }

    /// Returns the words for the key that confirms the operation.
    fn confirms(&self) -> String {
        match self {
            Change::Verb { verb, .. } => format!("{}s", verb.as_str()),
            Change::Action { question, .. } => format!("runs {}", question.action),
        }
    }

    /// Returns the name of the target, without its cluster.
    fn target(&self) -> String {
        match self {
            Change::Verb { apps, .. } => match apps.as_slice() {
                [app, ..] if self.has_one_key() => app.name.clone(),
                several => count(several.len(), "app"),
            },
            Change::Action { object, .. } => object.title(),
        }
    }

    /// Returns the names of the clusters, each once.
    fn clusters(&self) -> Vec<&str> {
        let mut clusters: Vec<&str> = match self {
            Change::Verb { apps, .. } => apps.iter().map(|app| &*app.cluster).collect(),
            Change::Action { object, .. } => vec![&object.cluster],
        };
        clusters.sort_unstable();
        clusters.dedup();
        clusters
    }

    /// Returns true if the change is a verb for one app, in one cluster or several.
    fn has_one_key(&self) -> bool {
        let Change::Verb { apps, .. } = self else { return false };
        apps.windows(2).all(|pair| pair[0].key == pair[1].key)
    }

    fn is_everywhere(&self) -> bool {
        matches!(self, Change::Verb { is_everywhere: true, .. })
    }

    /// Returns true if the tools of the apps take requests, and their sources can be fetched by one.
    fn has_source(&self) -> bool {
        let Change::Verb { apps, verb: Verb::Reconcile(_), .. } = self else { return false };
        let is_fetched =
            |app: &AppPlace| matches!(app.delivery, Delivery::FluxKustomization | Delivery::FluxHelmRelease);
        apps.iter().all(is_fetched)
    }

    fn question(&self) -> Option<OperationQuestion> {
        let (apps, verb, is_everywhere) = match self {
            Change::Verb { apps, verb, is_everywhere } => (apps, *verb, *is_everywhere),
            Change::Action { question, .. } => return Some(OperationQuestion::Action((**question).clone())),
        };
        let (names, clusters) = match apps.first().filter(|_| is_everywhere) {
            Some(app) => {
                let name = AppPlace { cluster: String::new(), home: None, ..app.clone() }.full_name();
                (vec![name.trim_start_matches('/').to_owned()], Vec::new())
            }
            None => {
                let clusters = self.clusters().into_iter().map(str::to_owned);
                (apps.iter().map(AppPlace::full_name).collect(), clusters.collect())
            }
        };
        Some(OperationQuestion::Verb(VerbQuestion {
            verb,
            // A name that cannot be parsed must not stand for all apps.
            names: names.iter().map(|name| name.parse().ok()).collect::<Option<_>>()?,
            selector: None,
            apps: AppSelection { clusters, ..AppSelection::default() },
        }))
    }
}

/// An operation that the user asked for.
#[derive(Debug)]
pub(super) struct Operation {
    /// The number by which answers are known to be for it, in its present form.
    pub(super) number: u64,
    change: Change,
    phase: Phase,
    /// The reason why the plan that was confirmed was not run, beside the new plan.
    refused: Option<String>,
    /// The number of apps, as far as it is typed.
    typed: String,
    /// The number of lines that are scrolled out at the top.
    pub(super) top: usize,
}

/// The effect of a key on an operation.
pub(super) enum Pressed {
    /// The operation goes on, with these effects.
    Stays(Vec<Effect>),
    /// The user closed it. A run goes on in the hub.
    Closes,
}

impl Operation {
    /// Begins to plan a change.
    pub(super) fn begin(number: u64, change: Change) -> (Operation, Option<Effect>) {
        let mut operation =
            Operation { number, change, phase: Phase::Planning, refused: None, typed: String::new(), top: 0 };
        let effect = operation.plan(number);
        (operation, effect)
    }

    fn plan(&mut self, number: u64) -> Option<Effect> {
        (self.number, self.phase, self.top) = (number, Phase::Planning, 0);
        self.typed.clear();
        let Some(question) = self.change.question() else {
            self.phase = Phase::Failed(format!("{} cannot be asked for by its name", self.change.target()));
            return None;
        };
        Some(Effect::Plan(number, Box::new(question)))
    }

    /// Takes the plan, or the reason why there is none.
    pub(super) fn take_plan(&mut self, answer: Result<PlanAnswer, String>) {
        self.phase = match answer {
            Ok(answer) => Phase::Planned(Box::new(answer)),
            Err(why) => Phase::Failed(why),
        };
    }

    /// Takes an event of the run.
    pub(super) fn take_event(&mut self, event: OperationEvent) {
        let Phase::Running(_, runs) = &mut self.phase else { return };
        let mut set = |item: usize, doing: &str| {
            if let Some(run) = runs.get_mut(item) {
                doing.clone_into(&mut run.doing);
            }
        };
        match event {
            OperationEvent::Writing { item, .. } => set(item, "writing"),
            OperationEvent::Written { item, .. } => set(item, "written"),
            OperationEvent::Waiting { items } => items.iter().for_each(|it| set(it.item, &it.why)),
            OperationEvent::Ended { item, outcome } => {
                if let Some(run) = runs.get_mut(item) {
                    run.outcome = Some(outcome);
                }
            }
            OperationEvent::Started { .. }
            | OperationEvent::Begins { .. }
            | OperationEvent::Refused { .. }
            | OperationEvent::Done
            | OperationEvent::Alive => {}
        }
    }

    /// Takes the end of the run. Returns the effect that plans it again, with `number`, if nothing was sent.
    pub(super) fn take_end(&mut self, end: RunEnd, number: u64) -> Option<Effect> {
        let Phase::Running(plan, runs) = std::mem::replace(&mut self.phase, Phase::Planning) else {
            return None;
        };
        match end {
            RunEnd::Refused(why) => {
                self.refused = Some(why);
                self.plan(number)
            }
            RunEnd::Done => {
                self.phase = Phase::Ended(plan, runs, None);
                None
            }
            RunEnd::Lost(why) => {
                self.phase = Phase::Ended(plan, runs, Some(why));
                None
            }
        }
    }

    /// Returns the number of apps that would be written to; `None` if nothing may be.
    fn writable(plan: &PlanAnswer) -> Option<usize> {
        let writes = plan.plan.items.iter().any(|item| !item.writes.is_empty() && item.forbidden.is_none());
        writes.then(|| plan.plan.targets())
    }

    /// Takes a key; `number` is that of a new plan or run.
    pub(super) fn press(&mut self, key: KeyEvent, number: u64) -> Pressed {
        let stays = |effects| Pressed::Stays(effects);
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return stays(Vec::new());
        }
        match key.code {
            KeyCode::Esc => return Pressed::Closes,
            KeyCode::Char('j') | KeyCode::Down => self.top = self.top.saturating_add(1),
            KeyCode::Char('k') | KeyCode::Up => self.top = self.top.saturating_sub(1),
            KeyCode::Char('q') | KeyCode::Enter
                if matches!(self.phase, Phase::Ended(..) | Phase::Failed(_)) =>
            {
                return Pressed::Closes;
            }
            KeyCode::Char('a')
                if matches!(self.phase, Phase::Planned(_) | Phase::Failed(_))
                    && self.change.has_one_key() =>
            {
                if let Change::Verb { is_everywhere, .. } = &mut self.change {
                    *is_everywhere = !*is_everywhere;
                    self.refused = None;
                    return stays(self.plan(number).into_iter().collect());
                }
            }
            KeyCode::Char('s') if self.change.has_source() && matches!(self.phase, Phase::Planned(_)) => {
                if let Change::Verb { verb: Verb::Reconcile(how), .. } = &mut self.change {
                    *how = Reconcile { with_source: !how.with_source, ..*how };
                }
                return stays(self.plan(number).into_iter().collect());
            }
            KeyCode::Char(digit @ '0'..='9') if self.typed.len() < 6 => self.typed.push(digit),
            KeyCode::Backspace => drop(self.typed.pop()),
            KeyCode::Char('y') | KeyCode::Enter => return stays(self.run(key.code, number)),
            _ => {}
        }
        stays(Vec::new())
    }

    /// Begins the run if the key confirms the plan: `y`, and over ten apps Enter after their number.
    fn run(&mut self, key: KeyCode, number: u64) -> Vec<Effect> {
        let (Phase::Planned(plan), Some(question)) = (&self.phase, self.change.question()) else {
            return Vec::new();
        };
        let Some(apps) = Operation::writable(plan) else { return Vec::new() };
        let is_confirmed = match apps > MOST_UNCOUNTED {
            true => key == KeyCode::Enter && self.typed == apps.to_string(),
            false => key == KeyCode::Char('y'),
        };
        if !is_confirmed {
            return Vec::new();
        }
        let plan = plan.clone();
        let runs = vec![ItemRun::default(); plan.plan.items.len()];
        (self.number, self.refused) = (number, None);
        self.phase = Phase::Running(plan.clone(), runs);
        vec![Effect::Run(number, Box::new(question), plan)]
    }

    /// Returns the lines of the operation, from the sentence on.
    pub(super) fn lines(&self, colours: Colours) -> Vec<Line> {
        let strong = Style::new().add_modifier(Modifier::BOLD);
        let bad = colours.status(Status::Failed);
        let mut lines = Vec::new();
        if let Some(why) = &self.refused {
            lines.push(Line::new().plain(" ").add(format!("Nothing was written: {why}"), bad));
        }
        let (plan, runs) = match &self.phase {
            Phase::Planning => {
                lines.push(Line::new().plain(" ").add("planning …", colours.muted()));
                return lines;
            }
            Phase::Failed(why) => {
                lines.push(Line::new().plain(" ").add(why, bad));
                return lines;
            }
            Phase::Planned(plan) => (plan, None),
            Phase::Running(plan, runs) => (plan, Some(runs)),
            Phase::Ended(plan, runs, why) => {
                lines.extend(why.as_ref().map(|why| Line::new().plain(" ").add(why, bad)));
                (plan, Some(runs))
            }
        };
        for (place, item) in plan.plan.items.iter().enumerate() {
            let mut head = Line::new().plain(" ").add(&item.cluster, strong);
            if let Some(run) = runs.and_then(|runs| runs.get(place)) {
                head = result(head, run, item, colours);
            }
            lines.push(head);
            if let OperationTarget::Object(target) = &item.target
                && let Some(of) = &target.script_of
            {
                let text = format!("{} is a script of the cluster: {of}", self.change.name());
                lines.push(Line::new().plain("   ").add(text, colours.status(Status::InProgress)));
            }
            if item.writes.is_empty() && runs.is_none() {
                lines.push(Line::new().plain("   ").add(&item.unchanged, colours.muted()));
            }
            // Of several, the results are read together.
            let is_brief = runs.is_some() && plan.plan.items.len() > 1;
            for write in item.writes.iter().filter(|_| !is_brief) {
                let note = if matches!(write.change, PlannedChange::Create { .. }) { ", new" } else { "" };
                let name = format!("   {} {}{note}", write.object.kind, write.called());
                lines.push(Line::new().add(name, colours.muted()));
                lines.extend(write.lines.iter().map(|line| diff_line(line, colours)));
            }
            let warnings = item.forbidden.iter().map(|why| (why, bad));
            let warnings =
                warnings.chain(item.warnings.iter().map(|why| (why, colours.status(Status::InProgress))));
            lines.extend(warnings.map(|(why, style)| Line::new().plain("   ").add(why, style)));
        }
        for refused in &plan.plan.refused {
            let cluster = match &refused.target {
                OperationTarget::App(app) => &app.home,
                OperationTarget::Object(object) => &object.cluster,
            };
            lines.push(Line::new().plain(" ").add(format!("{cluster}: {}", refused.error), bad));
        }
        for error in &plan.errors {
            let text = format!("{}: {}", error.cluster, error.error.message);
            lines.push(Line::new().plain(" ").add(text, bad));
        }
        lines
    }

    /// Returns the sentence that says what the operation is.
    pub(super) fn sentence(&self) -> String {
        let place = match &self.phase {
            Phase::Planned(plan) | Phase::Running(plan, _) | Phase::Ended(plan, ..) => {
                let written = plan.plan.items.iter().filter(|item| !item.writes.is_empty());
                let mut clusters: Vec<&str> = written.map(|item| item.cluster.as_str()).collect();
                clusters.sort_unstable();
                clusters.dedup();
                match &*clusters {
                    [] => "nothing would be written".to_owned(),
                    [one] => format!("in {one}"),
                    several => format!("in {}", count(several.len(), "cluster")),
                }
            }
            Phase::Planning | Phase::Failed(_) if self.change.is_everywhere() => {
                "in every cluster".to_owned()
            }
            Phase::Planning | Phase::Failed(_) => match *self.change.clusters() {
                [one] => format!("in {one}"),
                ref several => format!("in {}", count(several.len(), "cluster")),
            },
        };
        format!("{} {}: {place}", self.change.name(), self.change.target())
    }

    /// Returns the keys that act now.
    pub(super) fn keys(&self) -> String {
        let where_to = match &self.change {
            _ if !self.change.has_one_key() => "",
            Change::Verb { apps, is_everywhere: true, .. } if apps.len() > 1 => " · a only in those chosen",
            Change::Verb { is_everywhere: true, .. } => " · a only in its cluster",
            Change::Verb { .. } => " · a in every cluster",
            Change::Action { .. } => "",
        };
        match &self.phase {
            Phase::Planning => "Esc cancels".to_owned(),
            Phase::Failed(_) => format!("Esc closes{where_to}"),
            Phase::Running(..) => "Esc closes, and the hub goes on".to_owned(),
            Phase::Ended(..) => "Esc closes".to_owned(),
            Phase::Planned(plan) => {
                let mut keys = match Operation::writable(plan) {
                    None => "Esc closes".to_owned(),
                    Some(apps) if apps > MOST_UNCOUNTED => {
                        let name = self.change.name();
                        format!("type {apps} and Enter to {name}: {}_ · Esc cancels", self.typed)
                    }
                    Some(_) => format!("y {} · Esc cancels", self.change.confirms()),
                };
                keys.push_str(where_to);
                if let Change::Verb { verb: Verb::Reconcile(how), .. } = &self.change
                    && self.change.has_source()
                {
                    keys.push_str(if how.with_source { " · s without source" } else { " · s with source" });
                }
                keys
            }
        }
    }
}

/// Adds how far an item is to its line.
fn result(head: Line, run: &ItemRun, item: &PlannedItem<OperationTarget>, colours: Colours) -> Line {
    if item.writes.is_empty() {
        return head.plain("  ").add("nothing to do", colours.muted());
    }
    if run.outcome.is_none() {
        let doing = if run.doing.is_empty() { "waits for its turn" } else { &run.doing };
        return head.plain("  ").add(doing, colours.muted());
    }
    let (word, status, why) = outcome::words(run.outcome.as_ref());
    let style = colours.status(status);
    head.plain("  ")
        .add(glyph(status), style)
        .plain(" ")
        .add(word, style)
        .plain(" ")
        .add(why, colours.muted())
}

fn diff_line(line: &DiffLine, colours: Colours) -> Line {
    let (sign, text, style) = match line {
        DiffLine::Context(text) => (" ", text, Style::new()),
        DiffLine::Removed(text) => {
            ("-", text, colours.status(Status::Failed).remove_modifier(Modifier::BOLD))
        }
        DiffLine::Added(text) => ("+", text, colours.status(Status::Current)),
    };
    Line::new().plain("   ").add(format!("{sign} {text}"), style)
}
