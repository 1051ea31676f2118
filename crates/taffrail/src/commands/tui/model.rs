//! The state of the terminal UI, and how events change it. It reads no clock and does no I/O: what it wants done are
//! effects.

use jiff::{SignedDuration, Timestamp};
use ratatui_crossterm::crossterm::event::{
    Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use taffrail_api::hub::{ClusterCounts, StreamCounts, StreamFrame};
use taffrail_apps::command::quoted;
use taffrail_apps::verbs::{Reconcile, Verb, takes_requests};

use super::actions::ActionForm;
use super::keys::{self, Action};
use super::log::Followed;
use super::operation::{Change, Operation, Pressed};
use super::paint::Colours;
use super::question::{Answer, AppPlace, Effect, Event, ObjectPart, ObjectPlace, Part, Request};
use super::rows::Row;
use super::view::{Info, Kind, View, filters_of};
use super::words::key_name;

/// The time within which keys that follow one another are pressed.
const PREFIX_FOR: SignedDuration = SignedDuration::from_millis(1500);
/// Maximum length of what is typed, in characters.
const MAX_TYPED: usize = 200;
/// Rows that one turn of the wheel moves.
const WHEEL: isize = 3;

/// The text that the user is typing at the bottom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Prompt {
    Search(String),
    Command(String),
    /// A parameter of an action.
    Parameter(Box<ActionForm>),
}

impl Prompt {
    fn text_mut(&mut self) -> &mut String {
        match self {
            Prompt::Search(text) | Prompt::Command(text) => text,
            Prompt::Parameter(form) => &mut form.text,
        }
    }
}

pub(super) struct Model {
    pub(super) colours: Colours,
    pub(super) size: (u16, u16),
    /// The views that were opened, each from the one before; never empty.
    pub(super) views: Vec<View>,
    /// The number of views that there were so far.
    opened: u64,
    pub(super) clusters: Option<ClusterCounts>,
    pub(super) counts: Option<StreamCounts>,
    version: u64,
    /// The present time by the clock of this machine.
    local: Timestamp,
    /// The time by which the hub's clock is ahead of this machine's.
    ahead: SignedDuration,
    /// The time, by the hub's clock, since which the hub does not answer, and the reason; `None` while it answers.
    pub(super) away: Option<(Timestamp, String)>,
    pub(super) prompt: Option<Prompt>,
    pub(super) is_help: bool,
    /// The message at the bottom until the next key.
    pub(super) told: Option<String>,
    /// The first of keys that follow one another.
    prefix: Option<(String, Timestamp)>,
    /// The flags with which commands read the same.
    origin: Vec<String>,
    /// The operation that is planned or runs, in place of the rows.
    pub(super) operation: Option<Operation>,
    /// The log that is followed, if the view shows one.
    followed: Option<Followed>,
}

impl Model {
    pub(super) fn new(size: (u16, u16), colours: Colours, origin: Vec<String>, local: Timestamp) -> Model {
        Model {
            colours,
            size,
            views: vec![View::new(1, Kind::Attention)],
            opened: 1,
            clusters: None,
            counts: None,
            version: 0,
            local,
            ahead: SignedDuration::ZERO,
            away: None,
            prompt: None,
            is_help: false,
            told: None,
            prefix: None,
            origin,
            operation: None,
            followed: None,
        }
    }

    /// Returns the present time by the clock of the hub.
    pub(super) fn now(&self) -> Timestamp {
        self.local.checked_add(self.ahead).unwrap_or(self.local)
    }

    pub(super) fn view(&self) -> &View {
        // The first view is never closed.
        &self.views[self.views.len() - 1]
    }

    pub(super) fn view_mut(&mut self) -> &mut View {
        let last = self.views.len() - 1;
        &mut self.views[last]
    }

    /// Takes an event, and returns what is to be done.
    pub(super) fn update(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Input(Input::Key(key)) if key.kind != KeyEventKind::Release => {
                self.press(key, &mut effects)
            }
            Event::Input(Input::Mouse(mouse)) => self.point(mouse),
            Event::Input(Input::Resize(columns, rows)) => self.size = (columns, rows),
            Event::Input(_) | Event::Stop | Event::Broken(_) => {}
            Event::Answer(answered) => {
                let (request, answer) = *answered;
                self.take(&request, answer);
            }
            Event::Frame(frame) => self.hear(*frame),
            Event::Away(why) => {
                let since = self.away.take().map_or(self.now(), |(since, _)| since);
                self.away = Some((since, why));
            }
            Event::Tick(local) => self.local = local,
            Event::Planned(number, answer) => {
                if let Some(operation) = self.operation.as_mut().filter(|it| it.number == number) {
                    operation.take_plan(answer.map(|answer| *answer));
                }
            }
            Event::Ran(number, event) => {
                if let Some(operation) = self.operation.as_mut().filter(|it| it.number == number) {
                    operation.take_event(*event);
                }
            }
            Event::Logged(number, piece) => self.take_log(number, &piece.text),
            Event::LogEnded(number, end) => self.end_log(number, end),
            Event::RunEnded(number, end) => {
                let next = self.next_number();
                if let Some(operation) = self.operation.as_mut().filter(|it| it.number == number) {
                    effects.extend(operation.take_end(end, next));
                }
            }
        }
        self.follow_log(&mut effects);
        let (version, now) = (self.version, self.local);
        let view = self.view_mut();
        if let Some(question) = view.due(version, now) {
            effects.push(Effect::Ask(Request { view: view.id, number: view.number, question }));
        }
        let (lines, colours) = (self.lines_of_rows(), self.colours);
        self.view_mut().settle(lines);
        if let Some(operation) = &mut self.operation {
            operation.top = operation.top.min(operation.lines(colours).len().saturating_sub(lines));
        }
        effects
    }

    /// Returns a number that no view, plan or run has.
    fn next_number(&mut self) -> u64 {
        self.opened += 1;
        self.opened
    }

    fn hear(&mut self, frame: StreamFrame) {
        self.ahead = frame.as_of.duration_since(self.local);
        if self.away.take().is_some() {
            // What changed meanwhile is not told.
            self.view_mut().ask_again();
            if matches!(self.view().log.end, Some(Err(_))) {
                self.restart_log();
            }
        }
        for page in frame.pages {
            if let Some(clusters) = page.clusters {
                self.clusters = Some(clusters);
            }
            if let Some(apps) = page.apps {
                self.counts = Some(apps);
            }
            if let Some(version) = page.version {
                self.version = version;
            }
        }
    }

    fn take(&mut self, request: &Request, answer: Result<Answer, String>) {
        let colours = self.colours;
        let Some(view) = self.views.iter_mut().find(|view| view.id == request.view) else { return };
        if view.number != request.number {
            return;
        }
        view.take(&request.question, answer, colours);
        if let Kind::Apps { opens_single: true, .. } = view.kind
            && let (1, Some(Row::App(app))) = (view.rows.len(), view.rows.first())
        {
            view.kind = Kind::App(Box::new(AppPlace::of(app)), Part::Why);
            (view.rows, view.shown) = (Vec::new(), Vec::new());
            view.restart();
        }
    }

    fn open(&mut self, kind: Kind) {
        let number = self.next_number();
        self.views.push(View::new(number, kind));
    }

    /// Shows one of the four main views in place of all others.
    fn show(&mut self, kind: Kind) {
        if self.views.len() == 1 && self.view().kind == kind {
            return;
        }
        self.views.clear();
        self.open(kind);
    }

    fn press(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) {
        self.told = None;
        if self.prompt.is_some() {
            self.type_in(key, effects);
            return;
        }
        if self.is_help {
            self.is_help = false;
            return;
        }
        if self.operation.is_some() {
            let next = self.next_number();
            match self.operation.as_mut().map(|operation| operation.press(key, next)) {
                Some(Pressed::Stays(more)) => effects.extend(more),
                Some(Pressed::Closes) => {
                    self.operation = None;
                    self.view_mut().ask_again();
                }
                None => {}
            }
            return;
        }
        let Some(name) = name_of(key) else { return };
        let prefix = self.prefix.take().filter(|(_, at)| self.local.duration_since(*at) < PREFIX_FOR);
        let pressed = prefix.map_or_else(|| name.clone(), |(first, _)| format!("{first} {name}"));
        let scope = self.view().scope();
        match keys::action(&pressed, scope).or_else(|| keys::action(&name, scope)) {
            Some(action) => self.act(action, effects),
            None if keys::is_prefix(&name) => self.prefix = Some((name, self.local)),
            None => {}
        }
    }

    fn act(&mut self, action: Action, effects: &mut Vec<Effect>) {
        let page = isize::try_from(self.lines_of_rows().saturating_sub(1).max(1)).unwrap_or(1);
        match action {
            Action::Attention => self.show(Kind::Attention),
            Action::Apps => self.show(Model::every_app()),
            Action::Clusters => self.show(Kind::Clusters),
            Action::Matrix => self.show(Kind::Matrix),
            Action::Down => self.view_mut().step(1),
            Action::Up => self.view_mut().step(-1),
            Action::PageDown => self.view_mut().step(page),
            Action::PageUp => self.view_mut().step(-page),
            Action::First => self.view_mut().go(0, true),
            Action::Last => self.view_mut().go_to_end(),
            Action::Left => self.view_mut().column = self.view().column.saturating_sub(1),
            Action::Right => self.move_right(),
            Action::Open if matches!(self.view().kind, Kind::Actions(_)) => self.choose_action(effects),
            Action::Open => self.open_selected(),
            Action::Back => self.back(),
            Action::Search => self.prompt = Some(Prompt::Search(self.view().search.clone())),
            Action::Command => self.prompt = Some(Prompt::Command(String::new())),
            Action::Problems => {
                let view = self.view_mut();
                view.is_unwell = !view.is_unwell;
                view.restart();
            }
            Action::Sort => {
                let view = self.view_mut();
                let sorts = view.sorts().len().max(1);
                view.sort = (view.sort + 1) % sorts;
                view.restart();
            }
            Action::Reorder => {
                self.view_mut().restart();
                self.restart_log();
            }
            Action::CopyCommand => {
                let command = self.command();
                self.told = Some(format!("copied: {command}"));
                effects.push(Effect::Copy(command));
            }
            Action::NextProblem => self.next_problem(),
            Action::Group => {
                let view = self.view_mut();
                let is_grouped = matches!(&view.info, Info::Board(board) if board.is_grouped);
                (view.is_grouped, view.column) = (Some(!is_grouped), 0);
                view.restart();
            }
            Action::Why => self.choose(Part::Why),
            Action::Objects => self.choose(Part::Objects),
            Action::Events => self.choose(Part::Events),
            Action::History => self.choose(Part::History),
            Action::InClusters => self.choose(Part::Clusters),
            Action::Logs => self.choose(Part::Logs),
            Action::PreviousLogs => self.choose(Part::PreviousLogs),
            Action::Trust => self.choose(Part::Trust),
            Action::Reconcile => self.operate(Verb::Reconcile(Reconcile::default()), effects),
            Action::Suspend => {
                let chosen = self.view().chosen();
                let is_suspended = match &self.view().info {
                    _ if !chosen.is_empty() => chosen.iter().all(|row| row.suspended),
                    Info::App(Some(row)) => row.suspended,
                    _ => false,
                };
                self.operate(if is_suspended { Verb::Resume } else { Verb::Suspend }, effects);
            }
            Action::Choose => self.view_mut().choose_row(),
            Action::NextTab => {
                if let Kind::App(_, part) = &self.view().kind {
                    let place = Part::TABS.iter().position(|tab| tab.title() == part.title()).unwrap_or(0);
                    self.choose(Part::TABS[(place + 1) % Part::TABS.len()]);
                }
            }
            Action::Yaml if self.choose_of_object(ObjectPart::Yaml) => {}
            Action::Yaml => self.open_of_object(|object| Kind::Object(object, ObjectPart::Yaml)),
            Action::Actions => self.open_of_object(Kind::Actions),
            Action::Help => self.is_help = true,
            Action::Quit => effects.push(Effect::Quit),
        }
    }

    fn choose(&mut self, part: Part) {
        let view = self.view_mut();
        match (&mut view.kind, part) {
            (Kind::App(_, shown), _) => *shown = part,
            (Kind::Object(_, shown), Part::Logs) => *shown = ObjectPart::Logs,
            (Kind::Object(_, shown), Part::PreviousLogs) => *shown = ObjectPart::PreviousLogs,
            _ => return,
        }
        view.begin_part();
        self.restart_log();
    }

    /// Shows another part of the object of the view; returns false if the view shows none.
    fn choose_of_object(&mut self, part: ObjectPart) -> bool {
        let view = self.view_mut();
        let Kind::Object(_, shown) = &mut view.kind else { return false };
        if *shown != part {
            *shown = part;
            view.begin_part();
        }
        true
    }

    /// Opens a view of the object under the cursor, or of the one that the view shows.
    fn open_of_object(&mut self, kind: fn(Box<ObjectPlace>) -> Kind) {
        let object = match (&self.view().kind, self.view().selected()) {
            (Kind::Object(object, _), _) | (_, Some(Row::Object(object, _))) => object.clone(),
            _ => {
                self.told = Some(self.no_object());
                return;
            }
        };
        if self.view().kind != kind(object.clone()) {
            self.open(kind(object));
        }
    }

    /// Begins to plan an action of the view, or asks for its parameters first.
    fn choose_action(&mut self, effects: &mut Vec<Effect>) {
        let (Kind::Actions(object), Some(Row::Action(action))) = (&self.view().kind, self.view().selected())
        else {
            return;
        };
        if action.disabled {
            self.told = Some(format!("{} does not apply to the object in its present state", action.name));
            return;
        }
        let form = ActionForm::new((**object).clone(), action);
        self.fill_in(form, effects);
    }

    /// Asks for the next parameter of an action; begins to plan it after the last one.
    fn fill_in(&mut self, form: ActionForm, effects: &mut Vec<Effect>) {
        if form.is_open() {
            self.prompt = Some(Prompt::Parameter(Box::new(form)));
            return;
        }
        let number = self.next_number();
        let (operation, effect) = Operation::begin(number, form.change());
        self.operation = Some(operation);
        effects.extend(effect);
    }

    /// Returns the message for a key that needs an object where none is under the cursor.
    fn no_object(&self) -> String {
        match self.view().kind {
            Kind::App(_, Part::Objects) => "this line is not an object".to_owned(),
            _ => "o lists the objects; go to one there".to_owned(),
        }
    }

    /// Begins an operation on the apps that are chosen, or on the app of the view.
    fn operate(&mut self, verb: Verb, effects: &mut Vec<Effect>) {
        let chosen: Vec<AppPlace> = self.view().chosen().into_iter().map(AppPlace::of).collect();
        let apps = match &self.view().kind {
            _ if !chosen.is_empty() => chosen,
            Kind::App(app, _) => vec![(**app).clone()],
            Kind::Apps { .. } => {
                self.told = Some(format!("Space chooses the apps to {}; Enter opens one", verb.as_str()));
                return;
            }
            _ => return,
        };
        if let Some(app) = apps.iter().find(|app| !takes_requests(app.delivery)) {
            self.told = Some(format!("{} takes no requests to {}", app.delivery, verb.as_str()));
            return;
        }
        let number = self.next_number();
        let change = Change::Verb { apps, verb, is_everywhere: false };
        let (operation, effect) = Operation::begin(number, change);
        self.operation = Some(operation);
        effects.extend(effect);
    }

    fn move_right(&mut self) {
        let view = self.view_mut();
        if let Info::Board(board) = &view.info {
            view.column = (view.column + 1).min(board.columns().saturating_sub(1));
        }
    }

    /// Moves to the next cell with a problem, row by row; after the last one to the first.
    fn next_problem(&mut self) {
        let view = self.view_mut();
        let Info::Board(board) = &view.info else { return };
        let (columns, rows) = (board.columns(), view.shown.len());
        let from = view.cursor * columns + view.column;
        let all = columns * rows;
        let is_bad = |place: &usize| match view.row(place / columns) {
            Some(Row::Cells(cells)) => board.has_problem(cells, place % columns),
            _ => false,
        };
        let found = (1..=all).map(|step| (from + step) % all).find(is_bad);
        if let Some(place) = found {
            view.column = place % columns;
            view.go(place / columns, true);
        }
    }

    fn back(&mut self) {
        if !self.view().chosen().is_empty() {
            self.view_mut().choose_none();
        } else if !self.view().search.is_empty() {
            let view = self.view_mut();
            view.search.clear();
            view.restart();
            view.filter();
        } else if self.views.len() > 1 {
            self.views.pop();
        }
    }

    fn open_selected(&mut self) {
        let view = self.view();
        let apps = |filters: Vec<(&str, String)>, opens_single| Kind::Apps {
            filters: filters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            opens_single,
        };
        let kind = match view.selected() {
            Some(Row::App(app)) => Kind::App(Box::new(AppPlace::of(app)), Part::Why),
            Some(Row::Cluster(cluster) | Row::Lost(cluster)) => {
                apps(vec![("cluster", cluster.name.clone())], false)
            }
            Some(Row::Cause(entry)) => {
                Kind::Apps { filters: filters_of(entry), opens_single: entry.count == 1 }
            }
            Some(Row::Change(change)) => {
                apps(vec![("cluster", change.cluster.clone()), ("text", change.key.clone())], true)
            }
            Some(Row::Cells(cells)) => {
                let Info::Board(board) = &view.info else { return };
                let mut filters = vec![("text", cells.key.clone())];
                filters
                    .extend(board.clusters_of(view.column).into_iter().map(|cluster| ("cluster", cluster)));
                apps(filters, true)
            }
            Some(Row::Object(object, _)) => Kind::Object(object.clone(), ObjectPart::Yaml),
            Some(Row::Heading(_) | Row::Text(_) | Row::Action(_)) | None => return,
        };
        self.open(kind);
    }

    fn point(&mut self, mouse: MouseEvent) {
        if let Some(operation) = &mut self.operation {
            let by = match mouse.kind {
                MouseEventKind::ScrollDown => WHEEL,
                MouseEventKind::ScrollUp => -WHEEL,
                _ => 0,
            };
            operation.top = operation.top.saturating_add_signed(by);
            return;
        }
        if self.is_help || self.prompt.is_some() {
            return;
        }
        match mouse.kind {
            MouseEventKind::ScrollDown => self.view_mut().step(WHEEL),
            MouseEventKind::ScrollUp => self.view_mut().step(-WHEEL),
            MouseEventKind::Down(MouseButton::Left) => {
                let first = self.first_line_of_rows();
                let Some(line) = usize::from(mouse.row).checked_sub(first) else { return };
                if line < self.lines_of_rows()
                    && let Some(place) = self.view().at_line(line)
                {
                    self.view_mut().go(place, true);
                }
            }
            _ => {}
        }
    }

    fn type_in(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) {
        let Some(prompt) = &mut self.prompt else { return };
        let is_value = matches!(prompt, Prompt::Parameter(_));
        let text = prompt.text_mut();
        match key.code {
            KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => text.clear(),
            KeyCode::Char(_) if key.modifiers.contains(KeyModifiers::CONTROL) => {}
            KeyCode::Char(character) if text.chars().count() < MAX_TYPED => text.push(character),
            KeyCode::Backspace if text.is_empty() && !is_value => self.prompt = None,
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Esc => {
                self.prompt = None;
                self.view_mut().filter();
                return;
            }
            KeyCode::Enter => {
                match self.prompt.take() {
                    Some(Prompt::Search(text)) => self.view_mut().search_for(text.trim()),
                    Some(Prompt::Command(text)) => self.command_typed(&text, effects),
                    Some(Prompt::Parameter(form)) => self.fill_in(form.next(), effects),
                    None => {}
                }
                return;
            }
            _ => {}
        }
        // What is typed is searched at once in the rows that are here; Enter searches all.
        if let Some(Prompt::Search(text)) = &self.prompt {
            let wanted = text.trim().to_lowercase();
            self.view_mut().filter_by(&wanted);
        }
    }

    /// Runs a command such as `apps cluster=eu-1 status=Failed`; words without `=` are searched.
    fn command_typed(&mut self, text: &str, effects: &mut Vec<Effect>) {
        let mut words = text.split_whitespace();
        let Some(command) = words.next() else { return };
        let mut filters = Vec::new();
        let mut search = Vec::new();
        for word in words {
            match word.split_once('=') {
                Some((name, value)) => filters.push((name.to_owned(), value.to_owned())),
                None => search.push(word),
            }
        }
        let kind = match command {
            "apps" | "app" | "a" => Kind::Apps { filters, opens_single: false },
            "clusters" | "cluster" | "contexts" | "context" | "ctx" => Kind::Clusters,
            "attention" | "pulse" | "pulses" => Kind::Attention,
            "matrix" | "m" => Kind::Matrix,
            "q" | "q!" | "quit" | "exit" => return effects.push(Effect::Quit),
            "?" | "help" | "h" => return self.is_help = true,
            other => {
                self.told =
                    Some(format!("there is no command {other}: apps, clusters, attention, matrix, q"));
                return;
            }
        };
        self.show(kind);
        let search = search.join(" ");
        if !search.is_empty() {
            let view = self.view_mut();
            view.search = search;
            view.restart();
        }
    }

    /// Returns the command that shows the same as the view.
    pub(super) fn command(&self) -> String {
        let mut words: Vec<String> = vec!["taffrail".to_owned()];
        let mut add = |word: &str| words.push(quoted(word));
        let view = self.view();
        match &view.kind {
            Kind::Attention | Kind::Matrix => add("overview"),
            Kind::Clusters => {
                ["get", "clusters"].into_iter().for_each(&mut add);
                if view.is_unwell {
                    ["--status", "!Ready"].into_iter().for_each(&mut add);
                }
            }
            Kind::Apps { filters, .. } => {
                ["get", "apps"].into_iter().for_each(&mut add);
                for (name, value) in filters {
                    match name.as_str() {
                        // A command searches by name.
                        "text" => add(key_name(value)),
                        name => add(&format!("--{name}={value}")),
                    }
                }
                if view.is_unwell {
                    add("--problems");
                }
            }
            Kind::App(app, part) => {
                part.command().iter().for_each(|word| add(word));
                add(&app.full_name());
            }
            Kind::Object(object, part) => {
                part.command().iter().for_each(|word| add(word));
                add(&object.full_name());
            }
            Kind::Actions(object) => {
                add("actions");
                add(&object.full_name());
            }
        }
        self.origin.iter().for_each(|word| add(word));
        words.join(" ")
    }
}

impl Model {
    /// Follows the log that the view shows, and no other.
    fn follow_log(&mut self, effects: &mut Vec<Effect>) {
        let view = self.view();
        let wanted = match &view.kind {
            Kind::App(app, Part::Logs) => Some((view.id, app.full_name())),
            Kind::Object(object, ObjectPart::Logs) => Some((view.id, object.full_name())),
            _ => None,
        };
        let Some((view, name)) = wanted else {
            if let Some(followed) = self.followed.take() {
                effects.push(Effect::Follow(followed.number, None));
            }
            return;
        };
        let is_same = |it: &Followed| it.view == view && it.name == name && !it.is_stale;
        if self.followed.as_ref().is_some_and(is_same) {
            return;
        }
        let number = self.next_number();
        self.view_mut().begin_log();
        self.followed = Some(Followed { number, view, name: name.clone(), is_stale: false });
        effects.push(Effect::Follow(number, Some(name)));
    }

    /// Follows the log again from its beginning, if the view shows one.
    fn restart_log(&mut self) {
        if let Some(followed) = &mut self.followed {
            followed.is_stale = true;
        }
    }

    /// Returns the view that shows the followed log with this number; `None` for one that is followed no longer.
    fn view_of_log(&mut self, number: u64) -> Option<&mut View> {
        let followed = self.followed.as_ref().filter(|followed| followed.number == number)?;
        let id = followed.view;
        self.views.iter_mut().find(|view| view.id == id)
    }

    /// Takes lines of the followed log with this number.
    fn take_log(&mut self, number: u64, text: &str) {
        let colours = self.colours;
        if let Some(view) = self.view_of_log(number) {
            view.add_lines(text, colours);
        }
    }

    /// Takes the end of the followed log with this number.
    fn end_log(&mut self, number: u64, end: Result<(), String>) {
        if let Some(view) = self.view_of_log(number) {
            view.log.end = Some(end);
        }
    }
}

/// Returns the name of a key, as the table of keys has it; `None` for one that does nothing.
fn name_of(key: KeyEvent) -> Option<String> {
    if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
        let named = match key.code {
            KeyCode::Char('d' | 'f') => "PgDn",
            KeyCode::Char('u' | 'b') => "PgUp",
            _ => return None,
        };
        return Some(named.to_owned());
    }
    let named = match key.code {
        KeyCode::Char(' ') => "Space",
        KeyCode::Char(character) => return Some(character.to_string()),
        KeyCode::Enter => "Enter",
        KeyCode::Esc | KeyCode::Backspace => "Escape",
        KeyCode::Down => "j",
        KeyCode::Up => "k",
        KeyCode::Left => "Left",
        KeyCode::Right => "Right",
        KeyCode::PageDown => "PgDn",
        KeyCode::PageUp => "PgUp",
        KeyCode::Home => return Some("g g".to_owned()),
        KeyCode::End => "G",
        KeyCode::Tab => "Tab",
        _ => return None,
    };
    Some(named.to_owned())
}
