//! Until when a loop has heard its clients. Their deadlines are judged by that: otherwise one whose request has come would
//! be taken for silent when the loop gets to it late, as after a pause of the process, in which many have come.
//!
//! Epoll reports some events at once, and the rest in turn when it is asked again (`epoll_wait(2)`). If there was no rest,
//! all that had come when it was asked is heard. If there always is one, all of that is heard once as many events were
//! reported as there is to be watched. So deadlines are judged under any load, and who sends very much is judged as well.

use super::socket::Reported;

/// Until when a loop has heard its clients, in milliseconds of its time.
#[derive(Debug, Default)]
pub(crate) struct HeardUntil {
    until_ms: u64,
    /// When epoll was first asked of the times that count for `left`.
    since_ms: u64,
    /// How many more events are to be reported until all that had come then is heard; 0 if there was no rest.
    left: usize,
}

impl HeardUntil {
    /// All that had come by then is heard.
    pub(crate) fn until_ms(&self) -> u64 {
        self.until_ms
    }

    /// Epoll was asked at `asked_ms` about so many `watched`.
    pub(crate) fn note(&mut self, asked_ms: u64, reported: Reported, watched: usize) {
        let Reported::Some(count) = reported else {
            (self.until_ms, self.left) = (asked_ms, 0);
            return;
        };
        if self.left == 0 {
            (self.since_ms, self.left) = (asked_ms, watched);
        }
        self.left = self.left.saturating_sub(count);
        if self.left == 0 {
            self.until_ms = self.since_ms;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_heard_that_had_come_when_epoll_had_no_more_or_has_told_of_as_many_as_are_watched() {
        const ALL: Reported = Reported::All;
        const SOME: Reported = Reported::Some(64);
        // When epoll was asked, what it reported, of how many, and until when all is heard then.
        let rows = [
            (10, ALL, 300, 10),
            // A pause, and many have come.
            (9_000, SOME, 300, 10),
            (9_001, SOME, 300, 10),
            (9_002, SOME, 300, 10),
            (9_003, SOME, 300, 10),
            (9_004, ALL, 300, 9_004),
            // It is never over.
            (9_010, SOME, 130, 9_004),
            (9_011, SOME, 130, 9_004),
            (9_012, SOME, 130, 9_010),
            (9_013, SOME, 130, 9_010),
            // Others come meanwhile, behind those that are there.
            (9_014, SOME, 400, 9_010),
            (9_015, SOME, 400, 9_013),
            // Few, and a signal: nothing was reported.
            (9_020, SOME, 64, 9_020),
            (9_021, Reported::Some(0), 64, 9_020),
            (9_022, SOME, 64, 9_021),
            (9_023, ALL, 64, 9_023),
        ];
        let mut heard = HeardUntil::default();
        for (asked_ms, reported, watched, until_ms) in rows {
            heard.note(asked_ms, reported, watched);
            assert_eq!(heard.until_ms(), until_ms, "asked at {asked_ms}");
        }
    }
}
