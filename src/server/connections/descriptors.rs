//! Room for sockets: the usual limit of 1,024 descriptors is far below `sizes.connections`.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::house::OPERATORS_MAX;

/// What the process opens besides clients' connections: listeners, segments, polls, files; and the operator's
/// connections.
pub(crate) const OTHERS: u64 = 512 + OPERATORS_MAX as u64;

/// The system allows fewer descriptors than the connections of the plan need.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Short {
    /// The connections that there is room for: more would take what the operator and the journal need.
    pub(crate) connections_max: u32,
    /// The message about it.
    pub(crate) said: String,
}

/// Raises the limit of open descriptors to what `connections` need, as far as the system allows;
/// says so if that is not enough.
pub(crate) fn make_room(connections: u32) -> Result<(), Short> {
    let needed = u64::from(connections) + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    let holds = |bound: Option<u64>| bound.is_none_or(|bound| needed <= bound);
    if holds(limit.current) {
        return Ok(());
    }
    let current = if holds(limit.maximum) { Some(needed) } else { limit.maximum };
    let raised = setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum });
    if raised.is_ok() && holds(current) {
        return Ok(());
    }
    let allowed = current.unwrap_or(u64::MAX);
    let room = u32::try_from(allowed.saturating_sub(OTHERS)).unwrap_or(u32::MAX);
    let connections_max = room.clamp(1, connections.max(1));
    let said = format!(
        "sizes.connections: {connections} need {needed} descriptors, {allowed} are allowed; {connections_max} \
         are let in at once; raise the limit (ulimit -n), or lower sizes.connections"
    );
    Err(Short { connections_max, said })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_connections_always_have_room_and_too_many_are_named() {
        assert_eq!(make_room(1), Ok(()));
        if getrlimit(Resource::Nofile).maximum.is_some_and(|maximum| maximum < u64::from(u32::MAX)) {
            let fault = make_room(u32::MAX).expect_err("nobody has so many");
            assert!(fault.said.starts_with("sizes.connections: 4294967295 need"), "{fault:?}");
            let allowed = getrlimit(Resource::Nofile).current.expect("a limit");
            assert!(u64::from(fault.connections_max) + OTHERS <= allowed.max(OTHERS + 1), "{fault:?}");
        }
    }
}
