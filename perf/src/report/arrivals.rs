//! When requests were due, in words, and what that means for requests that wait in line.

use super::numbers::micros;
use crate::summary::Summary;

/// When requests were due, and what that means for requests that wait; none if not recorded.
pub(crate) fn words(arrivals: &str, burst: u32, per_s: f64) -> Option<String> {
    let apart = micros(1e6 * f64::from(burst) / per_s.max(1.0));
    let text = match (arrivals, burst) {
        ("fixed", 0 | 1) => format!(
            "They were due at equal distances, {apart} apart (`load.arrivals = \"fixed\"`), whatever the answers did: so an \
             order meets another only if that takes longer, and seldom a whole batch."
        ),
        ("fixed", _) => format!(
            "They were due in bursts of {burst} at one moment, {apart} apart (`load.burst`, `load.arrivals = \"fixed\"`), \
             whatever the answers did: so the last of a burst waits for all before it, and seldom for another burst."
        ),
        ("poisson", 0 | 1) => format!(
            "They were due at random distances from the seed, {apart} on average (`load.arrivals = \"poisson\"`), as \
             independent clients come, whatever the answers did: so some meet each other by chance, and a batch now and \
             then."
        ),
        ("poisson", _) => format!(
            "They were due in bursts of {burst} at one moment, at random distances from the seed, {apart} on average \
             (`load.burst`, `load.arrivals = \"poisson\"`), whatever the answers did: so bursts meet each other as well."
        ),
        _ => return None,
    };
    Some(text)
}

/// Whether requests came at random distances; assumed where it was not recorded.
pub(super) fn at_random(summary: &Summary) -> bool {
    summary.arrivals != "fixed"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_requests_came_is_told_with_what_follows() {
        for (arrivals, burst, told, follows) in [
            (
                "fixed",
                1,
                "at equal distances, 500 µs apart (`load.arrivals = \"fixed\"`)",
                "seldom a whole batch",
            ),
            (
                "fixed",
                32,
                "in bursts of 32 at one moment, 16.0 ms apart (`load.burst`",
                "waits for all before it",
            ),
            (
                "poisson",
                1,
                "at random distances from the seed, 500 µs on average",
                "some meet each other by chance",
            ),
            (
                "poisson",
                4,
                "in bursts of 4 at one moment, at random distances from the seed, 2.0 ms on average",
                "bursts meet each other as well",
            ),
        ] {
            let said = words(arrivals, burst, 2_000.0).expect("a word of a scenario");
            assert!(said.starts_with(&format!("They were due {told}")) && said.contains(follows), "{said}");
        }
        // A summary from before it was recorded.
        assert_eq!(words("", 0, 2_000.0), None);
    }
}
