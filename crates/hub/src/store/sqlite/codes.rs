//! The integers that stand for enum variants and times in the database. They never change, because files contain them.

use jiff::Timestamp;
use taffrail_apps::{Delivery, SyncState};
use taffrail_status::Status;

use crate::store::{StoreError, SyncResult};

/// The number of microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// Defines two functions that convert the variants of an enum to integer codes and back.
macro_rules! codes {
    ($to:ident, $from:ident, $type:ident { $($variant:ident = $code:literal),* $(,)? }) => {
        /// Returns the code of a variant.
        pub(super) fn $to(value: $type) -> i64 {
            match value {
                $($type::$variant => $code,)*
            }
        }

        /// Returns the variant of a code.
        pub(super) fn $from(code: i64) -> Result<$type, StoreError> {
            match code {
                $($code => Ok($type::$variant),)*
                _ => Err(StoreError::damaged(format!(
                    concat!("a row has {} in place of the code of a ", stringify!($type)), code
                ))),
            }
        }
    };
}

codes! { status_code, status, Status {
    Failed = 0, NotFound = 1, Unknown = 2, Terminating = 3, InProgress = 4, Current = 5,
} }

codes! { sync_code, sync_state, SyncState {
    Synced = 0, OutOfSync = 1, Syncing = 2, Failed = 3, Suspended = 4, Unknown = 5,
} }

codes! { result_code, sync_result, SyncResult { Running = 0, Succeeded = 1, Failed = 2 } }

codes! { delivery_code, delivery, Delivery {
    FluxKustomization = 0, FluxHelmRelease = 1, ArgoApplication = 2, ConfigSync = 3, Kpt = 4, Porch = 5, Helm = 6,
    Label = 7, Taffrail = 8,
} }

/// Returns the Unix time in microseconds, rounded down.
pub(super) fn micros(time: Timestamp) -> i64 {
    let whole = time.as_microsecond();
    // Before 1970 the fraction is negative.
    if time.subsec_nanosecond() % 1_000 < 0 { whole - 1 } else { whole }
}

/// Returns the time of a Unix time in microseconds; fails as damaged if it is out of range.
pub(super) fn time(micros: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(micros)
        .map_err(|error| StoreError::damaged(format!("{micros} is not a time in microseconds: {error}")))
}

/// Returns the day (UTC) of a Unix time in microseconds, counted from 1970-01-01.
pub(super) fn day(micros: i64) -> i64 {
    micros.div_euclid(DAY)
}

/// Returns the Unix time in microseconds at which a day (UTC) begins.
pub(super) fn day_start(day: i64) -> i64 {
    day.saturating_mul(DAY)
}

/// Formats rows of integers as JSON for `json_each`.
pub(super) fn json_rows<const N: usize>(rows: &[[Option<i64>; N]]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(2 + rows.len() * (2 + N * 8));
    text.push('[');
    for (at, row) in rows.iter().enumerate() {
        text.push_str(if at == 0 { "[" } else { ",[" });
        for (at, number) in row.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            // Writing to a String cannot fail.
            let _ = match number {
                Some(number) => write!(text, "{comma}{number}"),
                None => write!(text, "{comma}null"),
            };
        }
        text.push(']');
    }
    text.push(']');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_lead_back() {
        assert!(Status::ALL.into_iter().all(|it| status(status_code(it)).unwrap() == it));
        assert!(SyncState::ALL.into_iter().all(|it| sync_state(sync_code(it)).unwrap() == it));
        assert!(Delivery::ALL.into_iter().all(|it| delivery(delivery_code(it)).unwrap() == it));
        assert!(
            status(6).is_err() && sync_state(-1).is_err() && sync_result(3).is_err() && delivery(9).is_err()
        );
    }

    #[test]
    fn times_are_rounded_down() {
        let at = |nanos| micros(Timestamp::from_nanosecond(nanos).unwrap());
        assert_eq!([at(1_999), at(1), at(0), at(-1), at(-1_000), at(-1_001)], [1, 0, 0, -1, -1, -2]);
        assert_eq!([day(0), day(-1), day(DAY - 1), day(DAY)], [0, -1, 0, 1]);
    }

    #[test]
    fn rows_are_json() {
        assert_eq!(json_rows::<2>(&[]), "[]");
        assert_eq!(
            json_rows(&[[Some(1), None], [Some(-2), Some(i64::MIN)]]),
            format!("[[1,null],[-2,{}]]", i64::MIN)
        );
    }
}
