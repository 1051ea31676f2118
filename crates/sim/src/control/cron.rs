//! The controller of CronJobs: schedules, and creation and cleanup of Jobs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use serde_json::{Value, json};

use super::events::tell;
use super::pods::is_ending;
use super::{change, controller, create, is_scripted, jobs, owned, soon, text};
use crate::behaviour::Behaviour;
use crate::clock::{later, stamp};
use crate::state::Inner;
use crate::task::Task;
use crate::write::{Deletion, Propagation};

const BY: &str = "cronjob-controller";

/// The number of days in which the next scheduled time is searched: enough for a date that exists only in leap
/// years.
const HORIZON_DAYS: i64 = 366 * 8;

/// A parsed cron schedule: the allowed minutes, hours, days of the month, months, and days of the week (0 is
/// Sunday).
#[derive(Debug, PartialEq, Eq)]
struct Schedule {
    parts: [BTreeSet<i8>; 5],
    /// True if both days of the month and days of the week are restricted; then a day matches if either does.
    either_day: bool,
}

impl Schedule {
    fn parse(text: &str) -> Option<Schedule> {
        let text = match text.trim() {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            text => text,
        };
        const MONTHS: [&str; 12] =
            ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
        const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
        let words: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = words.as_slice() else { return None };
        let mut week = part(weekday, 0, 7, &DAYS, 0)?;
        if week.remove(&7) {
            week.insert(0);
        }
        Some(Schedule {
            parts: [
                part(minute, 0, 59, &[], 0)?,
                part(hour, 0, 23, &[], 0)?,
                part(day, 1, 31, &[], 0)?,
                part(month, 1, 12, &MONTHS, 1)?,
                week,
            ],
            either_day: !day.starts_with(['*', '?']) && !weekday.starts_with(['*', '?']),
        })
    }

    fn has_day(&self, at: &Zoned) -> bool {
        let [_, _, days, months, week] = &self.parts;
        let of_month = days.contains(&at.day());
        let of_week = week.contains(&at.weekday().to_sunday_zero_offset());
        let fits = if self.either_day { of_month || of_week } else { of_month && of_week };
        months.contains(&at.month()) && fits
    }

    /// Returns the first scheduled time after `after`; `None` if there is none within [`HORIZON_DAYS`].
    fn next(&self, after: &Zoned) -> Option<Timestamp> {
        let [minutes, hours, ..] = &self.parts;
        let mut day = after.start_of_day().ok()?;
        for _ in 0..HORIZON_DAYS {
            if self.has_day(&day) {
                for (hour, minute) in
                    hours.iter().flat_map(|hour| minutes.iter().map(move |minute| (*hour, *minute)))
                {
                    let at =
                        day.with().hour(hour).minute(minute).second(0).subsec_nanosecond(0).build().ok()?;
                    if at > *after {
                        return Some(at.timestamp());
                    }
                }
            }
            day = day.tomorrow().ok()?.start_of_day().ok()?;
        }
        None
    }
}

impl Schedule {
    /// Returns the last scheduled time after `since` and up to `now`; `None` if there is none in the last 366 days.
    /// Earlier missed times are skipped.
    fn missed(&self, since: Timestamp, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        // The windows grow, so that a frequent schedule is found in a short one and a rare one is found at all.
        for minutes in [2, 2 * 60, 2 * 24 * 60, 62 * 24 * 60, 366 * 24 * 60] {
            let start = since.max(later(now, SignedDuration::from_mins(-minutes)));
            let due = |after: Timestamp| self.next(&after.to_zoned(zone.clone())).filter(|at| *at <= now);
            let found = std::iter::successors(due(start), |last| due(*last)).last();
            if found.is_some() || start == since {
                return found;
            }
        }
        None
    }
}

/// Parses one field of a schedule: `*`, `*/5`, `1-5`, `1-5/2`, `mon`, and lists of these; `None` if it is invalid.
/// `first` and `last` bound its values; `names` stand for those from `name_of_first` on.
fn part(text: &str, first: i8, last: i8, names: &[&str], name_of_first: i8) -> Option<BTreeSet<i8>> {
    let value = |text: &str| -> Option<i8> {
        let place = names.iter().position(|name| name.eq_ignore_ascii_case(text));
        match place {
            Some(place) => Some(i8::try_from(place).ok()? + name_of_first),
            None => text.parse().ok().filter(|value| (first..=last).contains(value)),
        }
    };
    let mut all = BTreeSet::new();
    for range in text.split(',') {
        let (range, step) = match range.split_once('/') {
            Some((range, step)) => (range, step.parse::<usize>().ok().filter(|step| *step > 0)?),
            None => (range, 1),
        };
        let (from, to) = match range {
            "*" | "?" => (first, last),
            range => match range.split_once('-') {
                Some((from, to)) => (value(from)?, value(to)?),
                None if step > 1 => (value(range)?, last),
                None => (value(range)?, value(range)?),
            },
        };
        all.extend((from..=to).step_by(step));
    }
    (!all.is_empty()).then_some(all)
}

/// Reconciles a CronJob, unless it is scripted or being deleted: starts the Job that is due, if its concurrency policy
/// allows it, deletes old Jobs, writes the status, and plans the next reconciliation for the next scheduled time.
pub(super) fn cron_job(inner: &Arc<Inner>, namespace: &str, name: &str) {
    let Some(target) = inner.target("batch", "cronjobs", namespace, name) else { return };
    let Some(cron) = inner.tree(&target) else { return };
    let on = inner.does.on(Behaviour::CronJobs);
    if is_ending(&cron) || is_scripted(&cron) || !cron["spec"]["jobTemplate"].is_object() || !on {
        return;
    }
    let spec = &cron["spec"];
    let made = owned(inner, "batch", "jobs", namespace, &text(&cron["metadata"]["uid"]));
    let (finished, active): (Vec<&Value>, Vec<&Value>) =
        made.iter().partition(|job| jobs::is(job, "Complete") || jobs::is(job, "Failed"));
    forget(inner, &cron, &finished);
    let now = inner.fleet.clock.now();
    let zone = spec["timeZone"].as_str().map_or(Some(TimeZone::UTC), |name| TimeZone::get(name).ok());
    let schedule = spec["schedule"].as_str().and_then(Schedule::parse);
    let mut due = None;
    if let (Some(schedule), Some(zone), false) = (&schedule, zone, spec["suspend"] == true) {
        let time = |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
        let last = time(&cron["status"]["lastScheduleTime"]);
        let created = time(&cron["metadata"]["creationTimestamp"]);
        let since = last.or(created).unwrap_or(now);
        let deadline = spec["startingDeadlineSeconds"].as_i64();
        due = schedule
            .missed(since, now, &zone)
            .filter(|due| deadline.is_none_or(|deadline| now.duration_since(*due).as_secs() <= deadline));
        let ahead = schedule.next(&now.to_zoned(zone));
        if let Some(wait) = ahead.and_then(|next| Duration::try_from(next.duration_since(now)).ok()) {
            let task = Task::CronJob(namespace.to_owned(), name.to_owned());
            soon(inner, task, wait + Duration::from_millis(1));
        }
    }
    let mut active: Vec<Value> = active.into_iter().cloned().collect();
    if let Some(due) = due {
        let policy = spec["concurrencyPolicy"].as_str().unwrap_or("Allow");
        let own = job_name(&cron, due);
        if active.iter().any(|job| job["metadata"]["name"] == *own) {
            // The Job was started already, and only the time of it was lost.
        } else if policy == "Forbid" && !active.is_empty() {
            let message =
                "Not starting job because prior execution is running and concurrency policy is Forbid";
            tell(inner, &cron, BY, "JobAlreadyActive", message);
        } else {
            if policy == "Replace" {
                for job in active.drain(..) {
                    delete(inner, &job);
                }
            }
            let job = start(inner, &cron, due);
            change(inner, &target, |cron| {
                if !cron["status"].is_object()
                    && let Some(members) = cron.as_object_mut()
                {
                    members.insert("status".to_owned(), json!({}));
                }
                cron["status"]["lastScheduleTime"] = json!(stamp(due));
            });
            active.extend(job);
        }
    }
    let success = finished
        .iter()
        .filter(|job| jobs::is(job, "Complete"))
        .filter_map(|job| job["status"]["completionTime"].as_str())
        .max();
    change(inner, &target, |cron| {
        let mut status = json!({});
        for key in ["lastScheduleTime", "lastSuccessfulTime"] {
            if let Some(value) = cron["status"].get(key) {
                status[key] = value.clone();
            }
        }
        if let Some(success) = success {
            status["lastSuccessfulTime"] = json!(success);
        }
        let active: Vec<Value> = active
            .iter()
            .map(|job| {
                let metadata = &job["metadata"];
                json!({
                    "apiVersion": "batch/v1", "kind": "Job", "namespace": metadata["namespace"], "name": metadata["name"],
                    "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"],
                })
            })
            .collect();
        // Its own list keeps the resourceVersions that it had, so that it changes only if a Job comes or goes.
        let same = cron["status"]["active"].as_array().is_some_and(|known| {
            known.len() == active.len()
                && known.iter().zip(&active).all(|(one, other)| one["uid"] == other["uid"])
        });
        if same {
            status["active"] = cron["status"]["active"].clone();
        } else if !active.is_empty() {
            status["active"] = json!(active);
        }
        if let Some(members) = cron.as_object_mut() {
            members.insert("status".to_owned(), status);
        }
    });
}

/// Returns the name of the Job for the scheduled time `due`, as Kubernetes builds it.
fn job_name(cron: &Value, due: Timestamp) -> String {
    format!("{}-{}", text(&cron["metadata"]["name"]), due.as_second() / 60)
}

fn start(inner: &Inner, cron: &Value, due: Timestamp) -> Option<Value> {
    let metadata = &cron["metadata"];
    let template = &cron["spec"]["jobTemplate"];
    let name = job_name(cron, due);
    let mut made = json!({
        "name": name, "namespace": metadata["namespace"], "annotations": {},
        "ownerReferences": controller("batch/v1", "CronJob", cron),
    });
    for key in ["labels", "annotations"] {
        if template["metadata"][key].is_object() {
            made[key] = template["metadata"][key].clone();
        }
    }
    made["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"] = json!(stamp(due));
    let spec = if template["spec"].is_object() { template["spec"].clone() } else { json!({}) };
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": made, "spec": spec});
    let target = inner.target_of(&job).ok()?;
    create(inner, job);
    let message = format!("Created job {name}");
    tell(inner, cron, BY, "SuccessfulCreate", &message);
    inner.tree(&target)
}

fn delete(inner: &Inner, job: &Value) {
    if let Ok(target) = inner.target_of(job) {
        let deletion = Deletion { propagation: Some(Propagation::Background), ..Deletion::default() };
        let _ = inner.delete(&target, &deletion);
    }
}

/// Deletes the oldest finished Jobs of a CronJob beyond its history limits, which are 1 if not set.
fn forget(inner: &Inner, cron: &Value, finished: &[&Value]) {
    for (condition, limit) in
        [("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")]
    {
        let mut ended: Vec<&&Value> = finished.iter().filter(|job| jobs::is(job, condition)).collect();
        ended.sort_by_key(|job| text(&job["status"]["startTime"]));
        let limit = cron["spec"][limit].as_u64().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(1);
        for job in ended.iter().take(ended.len().saturating_sub(limit)) {
            delete(inner, job);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(schedule: &str, after: &str) -> Option<String> {
        let after = after.parse::<Timestamp>().expect("a time").to_zoned(TimeZone::UTC);
        Schedule::parse(schedule)?.next(&after).map(stamp)
    }

    #[test]
    fn cron_schedules_give_the_next_time() {
        let now = "2026-11-21T19:37:12Z";
        for (schedule, due) in [
            ("* * * * *", "2026-11-21T19:38:00Z"),
            ("*/15 * * * *", "2026-11-21T19:45:00Z"),
            ("5/20 * * * *", "2026-11-21T19:45:00Z"),
            ("0 4 * * *", "2026-11-22T04:00:00Z"),
            ("30 9-17/4 * * mon-fri", "2026-11-23T09:30:00Z"),
            ("0 0 1 * 0", "2026-11-22T00:00:00Z"),
            ("0 0 29 feb ?", "2028-02-29T00:00:00Z"),
            ("0 12 * * 7", "2026-11-22T12:00:00Z"),
            ("@monthly", "2026-12-01T00:00:00Z"),
        ] {
            assert_eq!(next(schedule, now).as_deref(), Some(due), "{schedule}");
        }
        let zone = TimeZone::UTC;
        let missed = |schedule: &str, since: &str| {
            let time = |text: &str| text.parse::<Timestamp>().expect("a time");
            Schedule::parse(schedule)?.missed(time(since), time(now), &zone).map(stamp)
        };
        assert_eq!(missed("* * * * *", "2026-11-01T00:00:00Z").as_deref(), Some("2026-11-21T19:37:00Z"));
        assert_eq!(missed("0 4 * * *", "2026-11-01T00:00:00Z").as_deref(), Some("2026-11-21T04:00:00Z"));
        assert_eq!(missed("0 4 * * *", "2026-11-21T05:00:00Z"), None);
        for nonsense in ["", "* * * *", "60 * * * *", "*/0 * * * *", "5-1 * * * *", "a * * * *", "0 0 31 2 *"]
        {
            assert_eq!(next(nonsense, now), None, "{nonsense}");
        }
    }
}
