//! How is an event date written as words? `7 May 2023`: day, English month, year, in UTC.

const DAY_US: i64 = 86_400_000_000;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Day, month name and year of a time in microseconds since 1970 (UTC, proleptic Gregorian).
///
/// Source: Howard Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`.
pub fn date_words(event_time_us: i64) -> String {
    let shifted = event_time_us.div_euclid(DAY_US) + 719_468; // days since 0000-03-01
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12; // 0 is January
    let year = year_of_era + era * 400 + i64::from(month < 2);
    let name = MONTHS[usize::try_from(month).unwrap_or(0)];
    format!("{day} {name} {year}")
}

#[cfg(test)]
mod tests {
    use super::date_words;

    #[test]
    fn dates_are_day_month_year() {
        assert_eq!(date_words(0), "1 January 1970");
        assert_eq!(date_words(-1), "31 December 1969");
        assert_eq!(date_words(1_683_417_600_000_000), "7 May 2023");
        assert_eq!(date_words(951_782_400_000_000), "29 February 2000");
        assert_eq!(date_words(-62_135_596_800_000_000), "1 January 1");
        assert_eq!(date_words(i64::MAX), "10 January 294247");
        assert_eq!(date_words(i64::MIN), "21 December -290308");
    }
}
