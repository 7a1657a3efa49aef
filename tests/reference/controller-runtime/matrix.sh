#!/usr/bin/env bash
# Builds the operator of `fleet/` with each version of controller-runtime that is named, at each rung of what is added
# to it, and says which of them compile. For maintainers; needs Go and its module proxy. Every version that is new to the
# build cache costs up to four minutes of one core; with --types nothing is compiled, and types are checked from source in
# some seconds. With --run all is added, and the operator runs: the tests of `tests/it/traced.rs` judge every write, every cause
# and a pass by hand, on the embedded control plane and through the relay.
#
#   matrix.sh [--types|--run] [VERSION...]      such as v0.16.1; the newest of each minor version otherwise
set -u
types= run=
[ "${1:-}" = --types ] && { types=yes; shift; }
[ "${1:-}" = --run ] && { run=yes; shift; }
here=$(cd "$(dirname "$0")" && pwd)
instrument=$here/../../../src/program/trace/instrument
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- v0.16.1 v0.17.2 v0.18.5 v0.19.4 v0.20.4 v0.21.0 v0.22.5 v0.23.3 v0.24.1 v0.25.2
if [ -n "$types" ]; then (cd "$here/check" && go build -o "$work/check" .) || exit 2; fi
failed=0
for version; do
  minor=${version#v0.}; minor=${minor%%.*}
  project=$work/$version
  mkdir -p "$project" && cp "$here/fleet/main.go" "$project/"
  cd "$project" || exit 1
  if ! { go mod init fleet.test && go get "sigs.k8s.io/controller-runtime@$version" && go mod tidy; } > mod.log 2>&1; then
    echo "$version: its modules cannot be had"; tail -3 mod.log; failed=1; continue
  fi
  if [ -n "$run" ]; then
    if (cd "$here" && OPDEV_FLEET=$project CI=true cargo test --quiet --test it -- traced::every traced::on_a traced::a_pass) > run.log 2>&1
    then echo "$version: all writes attributed, all passes with a cause"; else echo "$version: FAILS"; tail -20 run.log; failed=1; fi
    continue
  fi
  for rung in full passes header none; do
    case $rung in
      none) files= ;;
      header) files="trace.go places.go" ;;
      passes)
        files="trace.go places.go passes.go"
        [ "$minor" -ge 25 ] && files="$files waits.go" ;;
      full)
        files="trace.go places.go passes.go recorders.go causes.go"
        case $minor in 23|24) files="$files recorders_new.go" ;; esac
        [ "$minor" -ge 25 ] && files="$files recorders_annotated.go waits.go"
        if [ "$minor" -le 18 ]; then files="$files queue_untyped.go"; else files="$files queue_typed.go"; fi
        [ "$minor" -ge 20 ] && files="$files queue_priority.go"
        [ "$minor" -ge 21 ] && files="$files informer_options.go" ;;
    esac
    { echo '{"Replace":{'; sep=
      for file in $files; do printf '%s"%s/aa_opdev_%s":"%s/%s"' "$sep" "$project" "$file" "$instrument" "$file"; sep=,; done
      echo '}}'; } > overlay.json
    if [ -n "$types" ]; then
      said="its types are right"
      "$work/check" -overlay overlay.json . > build.log 2>&1
    else
      said=builds
      go build -overlay overlay.json -o "${OUT:-$work}/fleet-$version-$rung" . > build.log 2>&1
    fi
    if [ $? -eq 0 ]; then
      echo "$version $rung: $said"
    else
      echo "$version $rung: FAILS"; head -20 build.log; failed=1
    fi
  done
done
exit $failed
