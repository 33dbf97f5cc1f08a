//! Names for new records.

/// Finds a name, given one that is wished for and a way to tell which are taken.
pub type Naming = fn(&str, &dyn Fn(&str) -> bool) -> String;

/// The name if it is free, else the first of `<name> (Copy)`, `<name> (Copy 2)`, … that is.
///
/// Blank names are left as they are: they name nothing, so nothing can take them.
pub fn free(name: &str, is_taken: &dyn Fn(&str) -> bool) -> String {
    if name.trim().is_empty() || !is_taken(name) { name.to_owned() } else { copy(name, is_taken) }
}

/// The first of `<name> (Copy)`, `<name> (Copy 2)`, … that is free.
pub fn copy(name: &str, is_taken: &dyn Fn(&str) -> bool) -> String {
    if name.trim().is_empty() {
        return name.to_owned();
    }
    let numbered = (2u64..).map(|n| format!("{name} (Copy {n})"));
    std::iter::once(format!("{name} (Copy)"))
        .chain(numbered)
        .find(|candidate| !is_taken(candidate))
        .expect("of so many names one is free")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o_i02_a_taken_name_gets_the_first_free_number() {
        let taken = ["Daily", "Daily (Copy)", "Daily (Copy 2)", "Other"];
        let is_taken = |name: &str| taken.contains(&name);
        assert_eq!(free("Weekly", &is_taken), "Weekly");
        assert_eq!(free("Daily", &is_taken), "Daily (Copy 3)");
        assert_eq!(free("Other", &is_taken), "Other (Copy)");
        assert_eq!(copy("Weekly", &is_taken), "Weekly (Copy)");
        assert_eq!(free(" ", &|_| true), " ");
        assert_eq!(copy("", &|_| true), "");
    }
}
