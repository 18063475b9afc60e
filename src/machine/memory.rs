//! How much memory a process can still have: of the machine, of its control groups, and of its
//! own limit. Linux says; elsewhere nothing is known.

use std::path::{Path, PathBuf};

/// Bytes of memory available, where the system says so: the least of what machine, control
/// groups (containers, batch jobs) and the limit on address space leave.
pub fn available_memory() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let status = read("/proc/self/status");
    [
        field(&read("/proc/meminfo"), "MemAvailable:").map(|kib| kib << 10),
        of_groups(Path::new("/sys/fs/cgroup"), &read("/proc/self/cgroup")),
        of_limit(&read("/proc/self/limits"), &status),
    ]
    .into_iter()
    .flatten()
    .min()
}

/// The number after `name` at the begin of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What `ulimit -v` leaves.
fn of_limit(limits: &str, status: &str) -> Option<u64> {
    let limit = field(limits, "Max address space")?;
    Some(limit.saturating_sub(field(status, "VmSize:")? << 10))
}

/// What the control groups that `membership` (of `/proc/self/cgroup`) names leave, each and all
/// above it, under version 2 or 1.
fn of_groups(root: &Path, membership: &str) -> Option<u64> {
    let lines = membership.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
        Some((controllers, group.trim_start_matches('/')))
    });
    let left = lines.flat_map(|(controllers, group)| {
        let (base, names) = match controllers {
            "" => (root.to_path_buf(), &V2),
            list if list.split(',').any(|c| c == "memory") => (root.join("memory"), &V1),
            _ => return Vec::new(),
        };
        // Inside a container the path may be the host's, which is not there; the root always is.
        let groups = Path::new(group).ancestors().map(|g| base.join(g));
        groups.filter_map(|g| left_of(&g, names)).collect()
    });
    left.min()
}

/// Files of a version, and what of use goes when memory is short.
struct Names {
    limit: &'static str,
    used: &'static str,
    cached: &'static str,
}

const V2: Names = Names {
    limit: "memory.max",
    used: "memory.current",
    cached: "inactive_file",
};
const V1: Names = Names {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cached: "total_inactive_file",
};

fn left_of(group: &Path, names: &Names) -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(PathBuf::from(group).join(name)).ok();
    // Version 2 says `max` where there is none, version 1 a number beyond any machine.
    let limit: u64 = read(names.limit)?.trim().parse().ok()?;
    let used: u64 = read(names.used)?.trim().parse().ok()?;
    let cached = read("memory.stat").and_then(|text| field(&text, &format!("{} ", names.cached)));
    Some(limit.saturating_sub(used.saturating_sub(cached.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, group: &str, files: &[(&str, &str)]) {
        let folder = root.join(group);
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            std::fs::write(folder.join(name), text).unwrap();
        }
    }

    #[test]
    fn the_tightest_group_counts() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(
            root,
            "a",
            &[("memory.max", "1000\n"), ("memory.current", "700\n")],
        );
        write(
            root,
            "a/b",
            &[("memory.max", "max\n"), ("memory.current", "1\n")],
        );
        let stat = [
            ("memory.max", "900\n"),
            ("memory.current", "700\n"),
            ("memory.stat", "anon 5\ninactive_file 60\n"),
        ];
        write(root, "c", &stat);
        let memory = [
            ("memory.limit_in_bytes", "50\n"),
            ("memory.usage_in_bytes", "20\n"),
        ];
        write(root, "memory/d", &memory);
        for (membership, left) in [
            ("0::/a/b\n", Some(300)),
            ("0::/c\n", Some(260)),
            ("0::/\n", None),
            // The host's path, which a container does not see.
            ("0::/not/here\n", None),
            ("3:cpu:/c\n2:memory:/d\n0::/c\n", Some(30)),
            ("", None),
            ("nonsense\n:\n", None),
        ] {
            assert_eq!(of_groups(root, membership), left, "{membership}");
        }
        write(
            root,
            "",
            &[("memory.max", "77\n"), ("memory.current", "7\n")],
        );
        assert_eq!(of_groups(root, "0::/not/here\n"), Some(70));
    }

    #[test]
    fn a_limit_on_address_space_counts() {
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax address space         4096000              unlimited            bytes\n";
        assert_eq!(
            of_limit(limits, "VmPeak: 9 kB\nVmSize:\t    1000 kB\n"),
            Some(3_072_000)
        );
        assert_eq!(of_limit(limits, "VmSize:\t    9000 kB\n"), Some(0));
        let none = "Max address space         unlimited            unlimited            bytes\n";
        assert_eq!(of_limit(none, "VmSize: 1 kB\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_has_some() {
        assert!(available_memory().is_some_and(|bytes| bytes > 0));
    }
}
