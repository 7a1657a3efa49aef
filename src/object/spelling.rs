//! Finds the known word that a mistyped one probably means.

/// No more characters of a word are compared: words come from files and may be of any length.
const LONGEST: usize = 80;

/// How many characters to insert, remove, replace or swap with the next one, case left aside.
#[must_use]
pub fn distance(a: &str, b: &str) -> usize {
    let start = |word: &str| word.chars().take(LONGEST).flat_map(char::to_lowercase).collect::<String>();
    strsim::osa_distance(&start(a), &start(b))
}

/// The known word that is nearest to a mistyped one, where it is near: one change for every three characters,
/// or the same beginning. A word of one or two characters has none but in another case: any other is as near.
///
/// ```
/// use opdev_object::spelling::nearest;
/// assert_eq!(nearest("replcas", ["image", "replicas"]), Some("replicas"));
/// assert_eq!(nearest("port", ["image", "replicas"]), None);
/// ```
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let length = word.chars().take(LONGEST).count();
    let most = if length < 3 { 0 } else { length / 3 };
    known
        .into_iter()
        .filter(|candidate| *candidate != word)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= most || begins_alike(word, candidate))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Returns true if four characters and three quarters of the word are the beginning of the other.
fn begins_alike(word: &str, candidate: &str) -> bool {
    let same = word.chars().zip(candidate.chars()).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
    same >= 4 && same * 4 >= word.chars().count() * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_meant() {
        let known = ["replicas", "image", "imagePullPolicy", "size"];
        for (word, meant) in [
            ("replcias", Some("replicas")),
            ("REPLICAS", Some("replicas")),
            ("imag", Some("image")),
            ("imagepullpolici", Some("imagePullPolicy")),
            ("images", Some("image")),
            ("imagePull", Some("imagePullPolicy")),
            ("s", None),
            ("siz", Some("size")),
            ("port", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(1 << 20), known), None);
    }
}
