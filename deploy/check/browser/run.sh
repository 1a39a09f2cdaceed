#!/usr/bin/env bash
# Tests the pages in a real browser, on a live system whose chain is reorganised: every page in light and
# dark, wide and on a phone, with axe, and the paths through them, compared with the API; and, beside these, the pages of
# a vault of another preset. Screenshots are left in build/browser.
#
# CHROMIUM is the path of the browser, by default the installed one. LOOKS are the looks that every page is tested in,
# by default all: light, dark, phone-light and phone-dark.
set -euo pipefail
cd "$(dirname "$0")"
source ../up.sh
root=$(cd ../../.. && pwd)
work=$root/build/browser
export CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
[ -n "$CHROMIUM" ] || { echo "make browser needs Chromium: install it (Debian: apt-get install chromium), or say in CHROMIUM where it is"; exit 1; }
rm -rf "$work"
mkdir -p "$work"
if [ ! -e node_modules/.ready ] || [ package.json -nt node_modules/.ready ]; then
  npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
  touch node_modules/.ready
fi

# No limits: a page sends several requests at once, and the tests send their own. A busy machine takes long for them, and
# the tests take a 503 for a fault of the page. The explorer is never loaded, only linked to.
export NAVLOG_HTTP_EXPLORER_TX='https://explorer.example/tx/{tx}' NAVLOG_HTTP_EXPLORER_ADDRESS='https://explorer.example/address/{address}' \
  NAVLOG_HTTP_EXPLORER_BLOCK='https://explorer.example/block/{block}'
export NAVLOG_HTTP_PUBLIC_RATE_LIMIT=0 NAVLOG_HTTP_PUBLIC_ENGINE_TIME=0 NAVLOG_HTTP_CONCURRENCY=100 NAVLOG_HTTP_REQUEST_TIMEOUT=1m \
  NAVLOG_HTTP_WRITE_TIMEOUT=2m
# against TESTS OPTION... runs tests against a new system.
against() (
  tests=$1
  name=${tests%%.*} up=
  shift
  # An interrupted test may have suspended the system for a reorganisation; it must be resumed to exit.
  trap '{ kill -CONT "$up"; kill "$up"; wait "$up"; } 2>/dev/null || true; rm -rf "$work/$name"' EXIT
  mkdir "$work/$name"
  "$root/bin/navlog-dev" up --data "$work/$name/data" --listen 127.0.0.1:0 --interval 500ms --ready-file "$work/$name/ready.json" "$@" >"$work/$name.log" 2>&1 &
  up=$!
  ready "$up" "$work/$name/ready.json" "$work/$name.log"
  READY=$work/$name/ready.json UP=$up SHOTS=$work node --test --test-concurrency=1 --test-timeout=1200000 "$tests"
)
# Two at a time, because tests mostly wait. Programs in the background ignore Ctrl-C, so it is passed on.
trap 'trap - INT TERM; kill 0' INT TERM
(
  against product.test.mjs
  against preset.test.mjs --preset lagoon-v0.6
) >"$work/beside.log" 2>&1 &
beside=$!
against pages.test.mjs &
failed=0
wait $! || failed=1
wait "$beside" || failed=1
cat "$work/beside.log"
exit "$failed"
