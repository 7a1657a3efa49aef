//! Patterns of `.Files.Glob`: `*` and `?` stop at `/`, `**` does not, `{a,b}`, `[a-z]`, `[!x]`, `\` takes the
//! next one.

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Glob {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    One(char),
    AnyOne,
    AnyInName,
    Any,
    Class { negated: bool, ranges: Vec<(char, char)> },
    Either(Vec<Vec<Part>>),
}

impl Glob {
    /// Compiles a pattern; `None` where it is malformed.
    pub(super) fn parse(pattern: &str) -> Option<Glob> {
        let characters: Vec<char> = pattern.chars().collect();
        let mut at = 0;
        let parts = sequence(&characters, &mut at, false)?;
        (at == characters.len()).then_some(Glob { parts })
    }

    /// Returns true if a path matches as a whole.
    pub(super) fn matches(&self, path: &str) -> bool {
        let path: Vec<char> = path.chars().collect();
        let parts: Vec<&Part> = self.parts.iter().collect();
        run(&parts, &path)
    }
}

fn sequence(pattern: &[char], at: &mut usize, inside: bool) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    while let Some(&c) = pattern.get(*at) {
        *at += 1;
        match c {
            '*' => {
                let mut any = false;
                while pattern.get(*at) == Some(&'*') {
                    *at += 1;
                    any = true;
                }
                parts.push(if any { Part::Any } else { Part::AnyInName });
            }
            '?' => parts.push(Part::AnyOne),
            '\\' => {
                parts.push(Part::One(*pattern.get(*at)?));
                *at += 1;
            }
            '[' => parts.push(class(pattern, at)?),
            '{' => {
                let mut choices = Vec::new();
                loop {
                    choices.push(sequence(pattern, at, true)?);
                    let ended = pattern.get(*at).copied()?;
                    *at += 1;
                    if ended == '}' {
                        break;
                    }
                }
                parts.push(Part::Either(choices));
            }
            ',' | '}' if inside => {
                *at -= 1;
                return Some(parts);
            }
            c => parts.push(Part::One(c)),
        }
    }
    (!inside).then_some(parts)
}

fn class(pattern: &[char], at: &mut usize) -> Option<Part> {
    let negated = pattern.get(*at) == Some(&'!');
    if negated {
        *at += 1;
    }
    let mut ranges = Vec::new();
    loop {
        let mut low = *pattern.get(*at)?;
        *at += 1;
        if low == ']' {
            return (!ranges.is_empty()).then_some(Part::Class { negated, ranges });
        }
        if low == '\\' {
            low = *pattern.get(*at)?;
            *at += 1;
        }
        if pattern.get(*at) == Some(&'-') && pattern.get(*at + 1).is_some_and(|c| *c != ']') {
            ranges.push((low, pattern[*at + 1]));
            *at += 2;
        } else {
            ranges.push((low, low));
        }
    }
}

fn run(parts: &[&Part], path: &[char]) -> bool {
    let Some((first, rest)) = parts.split_first() else { return path.is_empty() };
    let one =
        |good: &dyn Fn(char) -> bool| path.split_first().is_some_and(|(&c, tail)| good(c) && run(rest, tail));
    match first {
        Part::One(wanted) => one(&|c| c == *wanted),
        Part::AnyOne => one(&|c| c != '/'),
        Part::Class { negated, ranges } => {
            one(&|c| ranges.iter().any(|(low, high)| *low <= c && c <= *high) != *negated)
        }
        Part::Any => (0..=path.len()).any(|skip| run(rest, &path[skip..])),
        Part::AnyInName => {
            let name = path.iter().take_while(|c| **c != '/').count();
            (0..=name).any(|skip| run(rest, &path[skip..]))
        }
        Part::Either(choices) => choices.iter().any(|choice| {
            let all: Vec<&Part> = choice.iter().chain(rest.iter().copied()).collect();
            run(&all, path)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_gobwas() {
        let yes = [
            ("*.txt", "a.txt"),
            ("**.txt", "x/y/a.txt"),
            ("conf/**", "conf/a/b"),
            ("{a,b/*}.yaml", "b/c.yaml"),
            ("[!a]x", "bx"),
            ("[a-c]?", "bz"),
            ("dash/*.json", "dash/a.json"),
        ];
        for (pattern, path) in yes {
            assert!(Glob::parse(pattern).unwrap().matches(path), "{pattern} {path}");
        }
        for (pattern, path) in [("*.txt", "x/a.txt"), ("[!a]x", "ax"), ("?", "/"), ("a", "ab")] {
            assert!(!Glob::parse(pattern).unwrap().matches(path), "{pattern} {path}");
        }
        assert!(Glob::parse("[a").is_none() && Glob::parse("{a,b").is_none());
    }
}
