//! The size of the pages of memory that Linux gives.

/// Asks for small ones, for commands that stay. The allocator asks Linux for pages of 2 MB, and gets whole
/// ones where it needs a part: an idle `run --embedded` took 81 MB with them and takes 50 MB without, in the
/// same processor time. What is done within milliseconds is a fifth faster with large ones. Where Linux does
/// not allow to switch them off, they stay. Programs that opdev starts inherit this; it concerns only those
/// that ask for such pages themselves.
pub(super) fn use_small() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
