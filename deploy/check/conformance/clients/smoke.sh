#!/usr/bin/env bash
# Tests clients of the API on a live system, made as a user makes them (docs/api.md): generated from the document that the
# system serves, except the Go client, which is committed. Three programs send the same requests as of one block, including
# all users page by page, and must print the same line: one that parses an amount as a float, or stops at a page too early,
# prints a different line.
#
#   smoke.sh API KEY WORK PYTHON    (run.sh calls it; WORK is emptied, PYTHON a folder with pinned tools)
set -euo pipefail
api=$1 key=$2 work=$3 python=$4/bin
here=$(cd "$(dirname "$0")" && pwd)
tools=$here/../node_modules
rm -rf "$work"
mkdir -p "$work"

(cd "$here" && CGO_ENABLED=0 go build -o "$work/go" .)

"$python/openapi-python-client" generate --url "$api/openapi.json" --meta none --output-path "$work/navlog_client" >"$work/python.log" 2>&1 ||
  { cat "$work/python.log"; exit 1; }
cp "$here/smoke.py" "$work/"

# Node looks for modules next to the program, or above it.
ln -s "$tools" "$work/node_modules"
echo '{"type":"module"}' >"$work/package.json"
"$tools/.bin/openapi-typescript" "$api/openapi.yaml" --output "$work/navlog.ts" >"$work/typescript.log" 2>&1 || { cat "$work/typescript.log"; exit 1; }
cp "$here/smoke.ts" "$work/"
(cd "$work" && "$tools/.bin/tsc" --strict --skipLibCheck --target es2022 --module nodenext --types node smoke.ts)

# A final block does not change meanwhile. A page has three users, and there must be more than one page.
for _ in $(seq 120); do
  block=$(curl -sf "$api/status" | node -p 'const s = JSON.parse(require("fs").readFileSync(0)).data; Math.min(s.finalBlock ?? Infinity, s.indexedBlock)')
  users=$(curl -sf "$api/api/v1/users?asOfBlock=$block" | node -p 'JSON.parse(require("fs").readFileSync(0)).meta.total')
  [ "$users" -gt 3 ] && break
  sleep 0.5
done
"$work/go" "$api" "$key" "$block" >"$work/go.line"
"$python/python" "$work/smoke.py" "$api" "$key" "$block" >"$work/python.line"
node "$work/smoke.js" "$api" "$key" "$block" >"$work/typescript.line"
for one in python typescript; do
  cmp -s "$work/go.line" "$work/$one.line" || { echo "Go and $one read differently:"; cat "$work/go.line" "$work/$one.line"; exit 1; }
done
# They agree; the line must also not be empty.
node -e '
  const l = JSON.parse(require("fs").readFileSync(process.argv[1]))
  const sound = l.refused === "UNAUTHORIZED" && l.users > 3 && BigInt(l.now[1]) > BigInt(l.then[1]) && l.vaults.length > 0 && !l.partner.endsWith(" 0")
  if (!sound) { console.error("too little is in it:", JSON.stringify(l)); process.exit(1) }' "$work/go.line"
cat "$work/go.line"
