//! Room for sockets: the usual limit of 1,024 descriptors is far below `sizes.connections`.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the process opens besides connections: listeners, segments, executors' rings, files.
pub(crate) const OTHERS: u64 = 512;

/// Raises the limit of open descriptors to what `connections` need, as far as the system allows;
/// says so if that is not enough.
pub(crate) fn make_room(connections: u32) -> Result<(), String> {
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
    Err(format!(
        "sizes.connections: {connections} need {needed} descriptors, {allowed} are allowed; \
         raise the limit (ulimit -n), or lower sizes.connections"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_connections_always_have_room_and_too_many_are_named() {
        assert_eq!(make_room(1), Ok(()));
        if getrlimit(Resource::Nofile).maximum.is_some_and(|maximum| maximum < u64::from(u32::MAX)) {
            let fault = make_room(u32::MAX).expect_err("nobody has so many");
            assert!(fault.starts_with("sizes.connections: 4294967295 need"), "{fault}");
        }
    }
}
