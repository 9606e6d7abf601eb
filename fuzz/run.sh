#!/bin/sh
# Fuzzes every decoder with libFuzzer, SECONDS_EACH (default 300) each, or the named ones:
#
#   fuzz/run.sh [TARGET ...]
#
# Needs cargo-fuzz and a nightly toolchain; without them it says so and ends well, since the
# suite `cargo test -p chronolith-tests --test fuzz` attacks the same targets on stable.
# What it builds and finds lies in target/fuzz; a crash that was mended joins
# tests/fuzz-corpus as found-*.
set -eu
cd "$(dirname "$0")"
skip() {
    echo "skipped: $1"
    exit 0
}
cargo fuzz --version >/dev/null 2>&1 || skip "cargo-fuzz is not installed (cargo install cargo-fuzz)"
cargo +nightly --version >/dev/null 2>&1 || skip "no nightly toolchain (rustup toolchain install nightly)"
out=$PWD/../target/fuzz
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$out/build}"
for target in ${*:-$(cargo fuzz list)}; do
    corpus=$(sed -n "/name: \"$target\",/{n;s/.*corpus: \"\\(.*\\)\",/\\1/p;}" ../tests/src/fuzz/mod.rs)
    # Those of the command have their own name.
    corpus=${corpus:-$target}
    mkdir -p "$out/corpus/$target" "$out/found/$target"
    # One allocation of 64 MiB, or 1 GiB in all, or 25 s for one input, is a finding.
    cargo +nightly fuzz run "$target" "$out/corpus/$target" "../tests/fuzz-corpus/$corpus" -- \
        -artifact_prefix="$out/found/$target/" -max_total_time="${SECONDS_EACH:-300}" \
        -malloc_limit_mb=64 -rss_limit_mb=1024 -timeout=25 -max_len=65536 -print_final_stats=1
done
