//! What does a person mean by a time? RFC 3339, a date, or µs since the epoch; always UTC.

use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, Timestamp};

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// RFC 3339 in UTC. Through civil time: the library's timestamps end a day before the year
/// 9999 does, ours with it.
pub(crate) fn show(us: i64) -> String {
    match EPOCH.checked_add(SignedDuration::from_micros(us)) {
        Ok(time) => format!("{time}Z"),
        Err(_) => format!("{us} us"),
    }
}

/// The date and minute, for narrow places.
pub(crate) fn show_minute(us: i64) -> String {
    let full = show(us);
    full.get(..16)
        .map_or_else(|| full.clone(), |minute| minute.replace('T', " "))
}

/// Reads an RFC 3339 instant.
pub(crate) fn parse_rfc3339(text: &str) -> Option<i64> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time.as_microsecond());
    }
    let civil = text.strip_suffix(['Z', 'z'])?;
    civil.contains(['T', 't', ' ']).then_some(())?;
    since_epoch(civil.parse::<DateTime>().ok()?)
}

/// Reads an argument: RFC 3339, a date (its first instant, UTC) or µs.
pub(crate) fn parse(text: &str) -> Result<i64, String> {
    if let Ok(us) = text.parse::<i64>() {
        return Ok(us);
    }
    parse_rfc3339(text)
        .or_else(|| since_epoch(text.parse::<Date>().ok()?.to_datetime(jiff::civil::Time::midnight())))
        .ok_or_else(|| {
            "is no time; give RFC 3339 (2025-03-01T09:00:00Z), a date (2025-03-01) or µs since the epoch"
                .to_owned()
        })
}

fn since_epoch(time: DateTime) -> Option<i64> {
    i64::try_from(time.duration_since(EPOCH).as_micros()).ok()
}

/// Reads a duration such as `30d`, `12h`, `90m`, `2w` or `45s`, in µs.
pub(crate) fn parse_duration(text: &str) -> Result<i64, String> {
    let wrong =
        || "is no duration; give a number and a unit, such as 30d, 12h, 90m, 2w or 45s".to_owned();
    let unit_s: i64 = match text.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 86_400,
        Some('w') => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let count: i64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    count
        .checked_mul(unit_s)
        .and_then(|s| s.checked_mul(1_000_000))
        .filter(|us| *us > 0)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_of_a_record_prints_and_reads_back() {
        for us in [
            0,
            -1,
            chronolith::TIME_MIN_US,
            chronolith::TIME_MAX_US - 1,
            1_700_000_000_123_456,
        ] {
            assert_eq!(parse_rfc3339(&show(us)), Some(us), "{}", show(us));
        }
        assert_eq!(show(0), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn dates_instants_and_numbers_are_times_and_nothing_else_is() {
        assert_eq!(parse("1970-01-02"), Ok(86_400_000_000));
        assert_eq!(parse("1970-01-01T01:00:00+01:00"), Ok(0));
        assert_eq!(parse("-5"), Ok(-5));
        for wrong in [
            "",
            "yesterday",
            "2023-02-29",
            "2023-02-29T00:00:00Z",
            "12:00",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_rfc3339("2023-02-29T00:00:00Z"), None);
    }

    #[test]
    fn durations_need_a_unit_and_must_be_positive() {
        assert_eq!(parse_duration("2h"), Ok(7_200_000_000));
        for wrong in ["", "d", "3", "-1d", "0s", "1y", "99999999999999999w"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
