//! CPU lists as the kernel writes them: `0-3,8`. Masks: `ff,00000003`, 32 CPUs a group.

/// The CPUs that `text` names, ascending, each once; `None` if it is no list. Empty text names none.
#[must_use]
pub fn parse(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for piece in text.trim().split(',').filter(|piece| !piece.is_empty()) {
        let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last < first || last >= CPUS_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// No CPU has this number or a higher one: the most that Linux can be built for.
pub const CPUS_MAX: usize = 8_192;

/// The list of `cpus`, which are ascending, with runs as `first-last`.
#[must_use]
pub fn text(cpus: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let runs: Vec<String> = runs
        .iter()
        .map(|&(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    runs.join(",")
}

/// The CPUs of a hexadecimal mask, ascending; `None` if it is not a mask.
#[must_use]
pub fn parse_mask(text: &str) -> Option<Vec<usize>> {
    let digits: String = text.trim().chars().filter(|&digit| digit != ',').collect();
    let mut cpus = Vec::new();
    for (place, digit) in digits.chars().rev().enumerate() {
        let bits = digit.to_digit(16)?;
        cpus.extend((0..4).filter(|bit| bits & (1 << bit) != 0).map(|bit| place * 4 + bit));
    }
    Some(cpus)
}

/// The mask of `cpus`, 32 of them a group, as the kernel reads and writes it.
#[must_use]
pub fn mask(cpus: &[usize]) -> String {
    let groups = cpus.iter().max().map_or(1, |&cpu| cpu / 32 + 1);
    let mut words = vec![0_u32; groups];
    for &cpu in cpus {
        words[cpu / 32] |= 1 << (cpu % 32);
    }
    let words: Vec<String> = words.iter().rev().map(|word| format!("{word:08x}")).collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_reads_as_the_kernel_writes_it() {
        for (written, cpus) in
            [("", vec![]), ("0", vec![0]), ("0-1\n", vec![0, 1]), ("0-2,8,10-11", vec![0, 1, 2, 8, 10, 11])]
        {
            assert_eq!(parse(written), Some(cpus.clone()), "{written}");
            assert_eq!(text(&cpus), written.trim());
        }
        for wrong in ["x", "3-1", "(null)", "1-", "0-99999999"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_mask_has_groups_of_thirty_two_cpus() {
        for (cpus, written) in [(vec![0, 1], "00000003"), (vec![1, 32, 37], "00000021,00000002")] {
            assert_eq!(mask(&cpus), written);
            assert_eq!(parse_mask(written), Some(cpus));
        }
        assert_eq!((parse_mask("f"), parse_mask("no")), (Some(vec![0, 1, 2, 3]), None));
    }
}
