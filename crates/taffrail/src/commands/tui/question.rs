//! Questions of the views to the hub, and its answers.

use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use taffrail_api::hub::{AppChange, Attention, HubList, Matrix, StreamFrame};
use taffrail_api::operations::{OperationEvent, OperationQuestion, PlanAnswer};
use taffrail_api::{AppRow, ClusterRow, ObjectActionList};
use taffrail_object::ObjectKey;
use tokio::sync::OwnedSemaphorePermit;

/// The name of an app in a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AppPlace {
    pub(super) cluster: String,
    /// The cluster with the declaring object, if that is another one.
    pub(super) home: Option<String>,
    pub(super) delivery: taffrail_apps::Delivery,
    pub(super) namespace: String,
    pub(super) name: String,
    /// The key that the app has in all clusters.
    pub(super) key: String,
}

impl AppPlace {
    pub(super) fn of(row: &AppRow) -> AppPlace {
        AppPlace {
            cluster: row.cluster.clone(),
            home: Some(row.home.clone()).filter(|home| *home != row.cluster),
            delivery: row.delivery,
            namespace: row.namespace.clone(),
            name: row.name.clone(),
            key: row.key.clone(),
        }
    }

    fn namespace_or_dash(&self) -> &str {
        if self.namespace.is_empty() { "-" } else { &self.namespace }
    }

    /// Returns the full name, as commands take it.
    pub(super) fn full_name(&self) -> String {
        let AppPlace { cluster, home, delivery, name, .. } = self;
        let home = home.as_ref().map(|home| format!("@{home}")).unwrap_or_default();
        format!("{cluster}/{delivery}/{}/{name}{home}", self.namespace_or_dash())
    }

    /// Returns the path of the row of the app in the hub's API.
    pub(super) fn path(&self) -> String {
        let parts = [&self.cluster, &self.delivery.to_string(), self.namespace_or_dash(), &self.name];
        let path = parts.map(encoded).join("/");
        let home = self.home.as_ref().map(|home| format!("?home={}", encoded(home))).unwrap_or_default();
        format!("/api/v1/apps/{path}{home}")
    }
}

/// The name of an object in a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectPlace {
    pub(super) cluster: String,
    pub(super) key: ObjectKey,
}

impl ObjectPlace {
    /// Returns the full name, as commands take it.
    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.cluster, self.key)
    }

    /// Returns the kind and name of the object: `Deployment shop/web`.
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.key.kind, self.key.path())
    }
}

/// A part of the view of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectPart {
    Yaml,
    Logs,
    PreviousLogs,
}

impl ObjectPart {
    /// Returns the words of the command that shows the same.
    pub(super) fn command(self) -> &'static [&'static str] {
        match self {
            ObjectPart::Yaml => &["object"],
            ObjectPart::Logs => Part::Logs.command(),
            ObjectPart::PreviousLogs => Part::PreviousLogs.command(),
        }
    }
}

/// Encodes a value for a path or a query.
pub(super) fn encoded(value: &str) -> String {
    utf8_percent_encode(value, NON_ALPHANUMERIC).to_string()
}

/// A part of the view of an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Why,
    Objects,
    Events,
    History,
    Clusters,
    Logs,
    PreviousLogs,
    Trust,
}

impl Part {
    /// The parts that the view shows as tabs, in their order.
    pub(super) const TABS: [Part; 7] =
        [Part::Why, Part::Objects, Part::Events, Part::History, Part::Clusters, Part::Logs, Part::Trust];

    pub(super) fn title(self) -> &'static str {
        match self {
            Part::Why => "Why",
            Part::Objects => "Objects",
            Part::Events => "Events",
            Part::History => "History",
            Part::Clusters => "Clusters",
            Part::Logs | Part::PreviousLogs => "Logs",
            Part::Trust => "Trust",
        }
    }

    /// Returns the key that shows the part.
    pub(super) fn key(self) -> &'static str {
        match self {
            Part::Why => "d",
            Part::Objects => "o",
            Part::Events => "e",
            Part::History => "h",
            Part::Clusters => "i",
            Part::Logs => "l",
            Part::PreviousLogs => "p",
            Part::Trust => "u",
        }
    }

    /// Returns the words of the command that shows the same.
    pub(super) fn command(self) -> &'static [&'static str] {
        match self {
            Part::Why => &["explain"],
            Part::Objects => &["tree"],
            Part::Events => &["events"],
            Part::History => &["history"],
            Part::Clusters => &["app"],
            Part::Logs => &["logs", "--follow"],
            Part::PreviousLogs => &["logs", "--previous"],
            Part::Trust => &["trust"],
        }
    }
}

/// The end of a run, as far as the hub tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RunEnd {
    /// All results are known.
    Done,
    /// Nothing was sent, for this reason.
    Refused(String),
    /// The hub tells no more, for this reason.
    Lost(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Question {
    Attention,
    /// A page of the apps: the parameters of the request, and where the page begins.
    Apps(String, Option<String>),
    Clusters(String),
    Matrix(String),
    /// The row and a part of an app; of its objects only what is not well if the flag is true.
    App(Box<AppPlace>, Part, bool),
    /// A part of an object.
    Object(Box<ObjectPlace>, ObjectPart),
    /// The actions of an object.
    Actions(Box<ObjectPlace>),
}

#[derive(Debug, Clone)]
pub(super) enum Answer {
    Attention {
        attention: Attention,
        lost: Vec<ClusterRow>,
        changes: Vec<AppChange>,
    },
    Apps(HubList<AppRow>),
    Clusters(HubList<ClusterRow>),
    Matrix(Matrix),
    /// The row of an app, unless it is gone, and the part that was asked for.
    App(Option<Box<AppRow>>, PartAnswer),
    /// An object as YAML, and the messages of the command.
    Object(String, Vec<String>),
    /// The logs of an object, with their colours; messages stand at the end.
    ObjectLogs(String),
    /// Nothing: the lines of a followed log are events.
    Followed,
    /// The actions of an object, and the scripts that failed.
    Actions(ObjectActionList),
}

#[derive(Debug, Clone)]
pub(super) enum PartAnswer {
    /// The output of the command, with its colours; messages stand at the end.
    Text(String),
    /// The output of the command, and for each of its lines the object that it shows.
    Objects(String, Vec<Option<ObjectPlace>>),
    Rows(Vec<AppRow>),
    /// Nothing: the lines of a followed log are events.
    Followed,
}

/// Lines of a followed log.
#[derive(Debug)]
pub(super) struct LogPiece {
    /// The output of the command, with its colours.
    pub(super) text: String,
    /// A place among those that may wait, which is free when the lines were taken.
    pub(super) _place: Option<OwnedSemaphorePermit>,
}

/// A question of the view `view`; a later one of the same view has a greater number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) view: u64,
    pub(super) number: u64,
    pub(super) question: Question,
}

/// An event from outside: of the terminal, the hub or the system.
#[derive(Debug)]
pub(super) enum Event {
    Input(ratatui_crossterm::crossterm::event::Event),
    Answer(Box<(Request, Result<Answer, String>)>),
    Frame(Box<StreamFrame>),
    /// The hub does not answer, or refuses: the reason.
    Away(String),
    /// The plan of an operation, by its number, or the reason why there is none.
    Planned(u64, Result<Box<PlanAnswer>, String>),
    /// An event of the run with a number.
    Ran(u64, Box<OperationEvent>),
    /// The run with a number has ended.
    RunEnded(u64, RunEnd),
    /// Lines of the followed log with a number.
    Logged(u64, LogPiece),
    /// The followed log with a number has ended, or failed for a reason.
    LogEnded(u64, Result<(), String>),
    /// The process is to stop, as by Ctrl-Z.
    Stop,
    /// A part of the program failed: the reason.
    Broken(String),
    /// The time passed: the present time by the clock of this machine.
    Tick(Timestamp),
}

/// An action that the model asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Ask(Request),
    /// Plan an operation, under a number.
    Plan(u64, Box<OperationQuestion>),
    /// Run the plan of a question, under a number.
    Run(u64, Box<OperationQuestion>, Box<PlanAnswer>),
    /// Follow the log of an app or object with this full name, under a number, in place of the one that is followed;
    /// `None` to follow none.
    Follow(u64, Option<String>),
    /// Put a text into the clipboard of the terminal.
    Copy(String),
    Quit,
}
