# What contributors run most. `just --list` shows it; each line also works when it is typed by hand.

# The demo operators of this repository, on the embedded control plane.
run *ARGS:
    cargo run -- run --embedded {{ARGS}}

# Fast feedback while you type.
check:
    cargo check --all-targets

# The unit tests of one package: `just unit helm`, or `just unit operator queue` for some of them.
unit PACKAGE *FILTER:
    cargo test -p opdev-{{PACKAGE}} {{FILTER}}

# Tests of the whole program: `just it operator::failure`. Without a filter all of them run.
it *FILTER:
    cargo test --test it {{FILTER}}

# What is held by no type: ranks, sizes, homes of crates, pages and words.
rules:
    cargo test --test it architecture pages words

# Writes goldens and generated pages as they are printed now. Look at the difference before you keep it.
golden PACKAGE:
    UPDATE_GOLDEN=1 cargo test -p opdev-{{PACKAGE}}

# Formatting and lints, as CI runs them.
lint:
    cargo fmt --all
    cargo clippy --all-targets -- -D warnings

# Words per sentence of the pages, and comments that begin badly or are too wide.
words:
    tests/reference/words/measure.py

# Everything that CI runs on Linux.
ci:
    .ci/run
