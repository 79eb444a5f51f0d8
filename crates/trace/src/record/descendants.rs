//! Which processes run below others.

/// Processes and all their descendants that run now, without this one and its own: nobody records the recorder. The ones asked for come
/// first.
pub fn descendants(pids: &[u32]) -> Vec<u32> {
    let own = std::process::id();
    let mut all = pids.to_vec();
    let mut parents: Vec<(u32, u32)> = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name in parentheses may hold anything.
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        parents.extend(parent.map(|parent| (pid, parent)).filter(|_| pid != own));
    }
    let mut from = 0;
    while let Some(&parent) = all.get(from) {
        let children: Vec<u32> =
            parents.iter().filter(|&&(pid, of)| of == parent && !all.contains(&pid)).map(|&(pid, _)| pid).collect();
        all.extend(children);
        from += 1;
    }
    all
}
