//! Fuzzy matching: the letters of each word in their order, anywhere; words at the start of a part of a name
//! and in one piece first. Case does not matter for ASCII. Fast enough for 100,000 candidates at every key.

/// The typed text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    words: Vec<Vec<u8>>,
    /// True if the letters of a word must lie close together.
    close: bool,
}

impl Query {
    /// Words between spaces.
    pub fn new(text: &str) -> Self {
        let words = text.split_whitespace().map(|word| word.to_ascii_lowercase().into_bytes()).collect();
        Query { words, close: false }
    }

    /// A pattern for sentences: in a long one any letters are found somewhere.
    pub fn close(text: &str) -> Self {
        Query { close: true, ..Query::new(text) }
    }

    fn span(&self, word: &[u8], text: &[u8]) -> Option<Span> {
        // Letters of a long path that lie far apart are not what anybody meant.
        let most = if self.close { 1 } else { 3 };
        let far = |span: &Span| matches!(span, Span::Pieces { len, gaps, .. } if *gaps > *len * most);
        span(word, text).filter(|span| !far(span))
    }

    /// Returns true if everything matches.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// How well a text in lower case matches, more is better; `None` where it does not.
    pub(crate) fn score(&self, text: &[u8]) -> Option<i32> {
        let mut total = 0;
        for word in &self.words {
            total += self.span(word, text)?.score(text);
        }
        Some(total)
    }

    /// How near what was typed is to a name, and to a text that begins with it: the lower the better, then by
    /// score. What lies in one piece comes before letters here and there, a name before what is said of it.
    /// In sentences letters here and there say nothing.
    pub fn rank(&self, name: &[u8], text: &[u8]) -> Option<(Nearness, i32)> {
        if let Some(score) = self.score(name) {
            let near = if self.is_whole_in(name) { Nearness::Name } else { Nearness::NameInPieces };
            return Some((near, -score));
        }
        if name.len() == text.len() {
            return None;
        }
        let score = self.score(text)?;
        match self.is_whole_in(text) {
            true => Some((Nearness::Text, -score)),
            false if self.close => None,
            false => Some((Nearness::TextInPieces, -score)),
        }
    }

    fn is_whole_in(&self, text: &[u8]) -> bool {
        self.words.iter().all(|word| matches!(span(word, text), Some(Span::Whole { .. })))
    }

    /// The bytes of a text in lower case that match.
    pub fn positions(&self, text: &[u8]) -> Vec<usize> {
        let mut out = Vec::new();
        for word in &self.words {
            if let Some(span) = self.span(word, text) {
                span.positions(word, text, &mut out);
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }
}

/// How near a text is to what was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nearness {
    Name,
    Text,
    NameInPieces,
    TextInPieces,
}

/// Where a word stands in a text.
enum Span {
    /// In one piece.
    Whole { start: usize, len: usize },
    /// In pieces, with this many letters between them.
    Pieces { start: usize, len: usize, gaps: usize },
}

fn boundary(text: &[u8], at: usize) -> bool {
    at == 0 || !text[at - 1].is_ascii_alphanumeric()
}

fn span(word: &[u8], text: &[u8]) -> Option<Span> {
    let (first, len) = (*word.first()?, word.len());
    let mut whole = None;
    let mut from = 0;
    while let Some(found) = text[from..].iter().position(|byte| *byte == first) {
        let start = from + found;
        if text[start..].starts_with(word) {
            if boundary(text, start) {
                return Some(Span::Whole { start, len });
            }
            whole = whole.or(Some(start));
        }
        from = start + 1;
    }
    if let Some(start) = whole {
        return Some(Span::Whole { start, len });
    }
    // The first place where it ends, then back from there to the latest start.
    let mut letters = word.iter();
    let mut wanted = letters.next()?;
    let mut end = None;
    for (at, byte) in text.iter().enumerate() {
        if byte == wanted {
            match letters.next() {
                Some(next) => wanted = next,
                None => {
                    end = Some(at);
                    break;
                }
            }
        }
    }
    let end = end?;
    let mut letters = word.iter().rev().peekable();
    let mut at = end + 1;
    while let Some(wanted) = letters.peek() {
        at = at.checked_sub(1)?;
        if text[at] == **wanted {
            letters.next();
        }
    }
    Some(Span::Pieces { start: at, len, gaps: end + 1 - at - len })
}

impl Span {
    fn score(&self, text: &[u8]) -> i32 {
        let small = |n: usize| i32::try_from(n.min(1_000)).unwrap_or(1_000);
        match self {
            Span::Whole { start, len } => {
                let end = *start + *len;
                let edge = if boundary(text, *start) { 30 } else { -small(*start) / 4 };
                let after = match text.get(end) {
                    None => 20,
                    Some(byte) if !byte.is_ascii_alphanumeric() => 15,
                    Some(_) => 0,
                };
                24 * small(*len) + edge + after + if *start == 0 { 10 } else { 0 }
            }
            Span::Pieces { start, len, gaps } => {
                let edge = if boundary(text, *start) { 10 } else { 0 };
                10 * small(*len) + edge - small(*gaps) - small(*start) / 4 - small(text.len()) / 8
            }
        }
    }

    fn positions(&self, word: &[u8], text: &[u8], out: &mut Vec<usize>) {
        match self {
            Span::Whole { start, len } => out.extend(*start..*start + *len),
            Span::Pieces { start, .. } => {
                let mut letters = word.iter().peekable();
                for (at, byte) in text.iter().enumerate().skip(*start) {
                    if letters.next_if_eq(&byte).is_some() {
                        out.push(at);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best<'a>(query: &str, texts: &[&'a str]) -> Vec<&'a str> {
        let query = Query::new(query);
        let mut found: Vec<(i32, &str)> = texts
            .iter()
            .filter_map(|text| Some((query.score(text.to_lowercase().as_bytes())?, *text)))
            .collect();
        found.sort_by_key(|(score, _)| -score);
        found.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn whole_words_come_before_pieces() {
        let texts =
            ["Pod default/web-abc", "Service default/web", "Secret default/wide-belt", "ConfigMap x/y"];
        assert_eq!(
            best("web", &texts),
            ["Service default/web", "Pod default/web-abc", "Secret default/wide-belt"]
        );
        assert_eq!(best("pod web", &texts), ["Pod default/web-abc"]);
        assert_eq!(best("WEB svc", &texts), ["Service default/web"]);
        assert_eq!(best("zzz", &texts), Vec::<&str>::new());
        assert_eq!(best("", &texts).len(), 4);
    }

    #[test]
    fn the_matching_letters_are_known() {
        let of = |query: &str, text: &str| Query::new(query).positions(text.as_bytes());
        assert_eq!(of("web", "pod a/web"), [6, 7, 8]);
        assert_eq!(of("pw", "pod a/web"), [0, 6]);
        assert_eq!(of("b a", "a/b"), [0, 2]);
        // The latest start: the pieces lie close together.
        assert_eq!(of("ac", "a-a-b-c"), [2, 6]);
    }

    #[test]
    fn what_matches_a_longer_query_matches_the_shorter_one() {
        let texts = ["memcached-sample", "Pod default/memcached", "mm", "", "日本 web"];
        for typed in ["mem s", "mms", "web", "日"] {
            for end in typed.char_indices().map(|(at, _)| at) {
                for text in texts {
                    let matches = |query: &str| Query::new(query).score(text.as_bytes()).is_some();
                    assert!(!matches(typed) || matches(&typed[..end]), "{typed} {end} {text}");
                }
            }
        }
    }
}
