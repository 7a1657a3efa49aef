//! Frames on terminals that show ASCII alone.

use super::fixture::busy;
use super::frames::{screen, text};
use crate::view::ViewState;

#[test]
fn a_frame_of_ascii_says_the_same_at_the_same_places() {
    let state = busy();
    for size in [(40, 10), (80, 24), (120, 36), (200, 50)] {
        for keys in ["", "?", "a", "4", "j D"] {
            let full = text(&screen(&state, &mut ViewState::default(), keys, size));
            let mut view = ViewState::default();
            view.look.ascii = true;
            let plain = text(&screen(&state, &mut view, keys, size));
            assert!(plain.is_ascii(), "{keys} {size:?}\n{plain}");
            assert!(!plain.contains('?') || full.contains('?'), "a sign has no letter:\n{plain}");
            for (full, plain) in full.lines().zip(plain.lines()) {
                assert_eq!(full.chars().count(), plain.chars().count(), "{plain}");
            }
        }
    }
}
