//! Words as a shell reads them, for commands that are shown.

/// One word, in quotes where the shell would read it otherwise. Different lists of words never look the same.
pub fn word(text: &str) -> String {
    let flag = text.starts_with('-');
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-~:@,".contains(c) || c == '=' && flag;
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// All words of a command, in one line.
pub fn line(words: &[String]) -> String {
    words.iter().map(|text| word(text)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_split_or_change_them() {
        let shown = |words: &[&str]| line(&words.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        assert_eq!(shown(&["go", "build", "-tags=a,b", "./cmd"]), "go build -tags=a,b ./cmd");
        assert_eq!(shown(&["sh", "-c", "make all", ""]), "sh -c 'make all' ''");
        assert_eq!(shown(&["A=b", "it's $HOME"]), "'A=b' 'it'\\''s $HOME'");
        assert_ne!(shown(&["sh", "-c", "a", "b"]), shown(&["sh", "-c", "a b"]));
    }
}
