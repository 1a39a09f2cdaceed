#!/usr/bin/env bash
# Two independent tools call a live system and validate every response against
# the OpenAPI document: Redocly (lint of the documents, then Respect, which calls
# every operation) and Schemathesis (examples, edge values, random and wrong
# values of every parameter, and sequences of calls). Any finding fails. Both
# wait for the end of a response, which a stream does not have, so curl reads it.
# Then the clients that are generated from the document are tested (clients/smoke.sh).
#
# EXAMPLES is the number of random requests for each operation, 10 by default.
set -euo pipefail
cd "$(dirname "$0")"
source ../up.sh
root=$(cd ../../.. && pwd)
work=$root/build/conformance
tools=$work/tools
rm -rf "$work/data" "$work/ready.json"
mkdir -p "$work"

if [ ! -e "$tools/.ready" ] || [ requirements.txt -nt "$tools/.ready" ]; then
  rm -rf "$tools"
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: -r requirements.txt
  touch "$tools/.ready"
fi
if [ ! -e node_modules/.ready ] || [ package.json -nt node_modules/.ready ]; then
  npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
  touch node_modules/.ready
fi
export REDOCLY_SUPPRESS_UPDATE_NOTICE=true REDOCLY_TELEMETRY=off
redocly=node_modules/.bin/redocly
document=$root/schemas/openapi/openapi.yaml

echo "== Redocly lint"
"$redocly" lint --config redocly.yaml --max-problems 50 "$document" navlog.arazzo.yaml

echo "== a live system"
# No limit on requests: the tools send more than a partner may.
NAVLOG_HTTP_PUBLIC_RATE_LIMIT=0 NAVLOG_HTTP_PUBLIC_ENGINE_TIME=0 NAVLOG_HTTP_PARTNER_RATE_LIMIT=1000000 \
  "$root/bin/navlog-dev" up --data "$work/data" --listen 127.0.0.1:0 --interval 500ms --ready-file "$work/ready.json" >"$work/up.log" 2>&1 &
up=$!
trap 'kill "$up" 2>/dev/null; wait "$up" 2>/dev/null || true' EXIT
ready "$up" "$work/ready.json" "$work/up.log"
field() { node -p "const r = require('$work/ready.json'); $1"; }
api=$(field r.api)
key=$(field 'r.partners[0].apiKey')
# The calls need data: a user, a delivery.
deadline=$((SECONDS + patience))
while
  deliveries=$(curl -sSf -H "x-api-key: $key" "$api/api/v1/partner/webhooks/deliveries" | node -p 'JSON.parse(require("fs").readFileSync(0)).meta.total') ||
    { echo "a partner's deliveries cannot be asked for"; exit 1; }
  ! [ "$deliveries" -gt 0 ]
do
  [ "$SECONDS" -lt "$deadline" ] || { echo "no partner has a delivery after $patience s:"; tail -20 "$work/up.log"; exit 1; }
  sleep 0.5
done

echo "== the commands of an operator, with the configuration that navlog-dev wrote"
"$root/bin/navlog" status --config "$work/data/navlog.yaml"
"$root/bin/navlog" doctor --config "$work/data/navlog.yaml"

echo "== Redocly Respect"
authority=$(openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout /dev/null -days 1 -subj /CN=arazzo 2>/dev/null)
# As JSON: name=value would end at the "=" of a certificate's base64.
input=$(KEY=$key AUTHORITY=$authority node -p 'JSON.stringify({apiKey: process.env.KEY, authority: process.env.AUTHORITY})')
"$redocly" respect navlog.arazzo.yaml --server "navlog=$api" --input "$input" >"$work/respect.log" 2>&1 ||
  { sed -n '/Failed tests info/,$p' "$work/respect.log"; exit 1; }
grep -E 'Steps:|Checks:' "$work/respect.log"

echo "== the stream"
# The stream never ends, so curl exits with 28 at its time limit; a complete unit must have arrived by then.
code=0
curl -sN --max-time 5 -D "$work/stream.headers" -o "$work/stream.txt" "$api/api/v1/stream?after=0" || code=$?
[ "$code" = 28 ] || { echo "the stream ended, or failed: curl says $code"; exit 1; }
grep -qi '^content-type: text/event-stream' "$work/stream.headers" || { echo "the stream is of another kind:"; cat "$work/stream.headers"; exit 1; }
# Not grep -q: it exits at the first match, and the broken pipe would make the command before it fail.
grep -A1 '^event: unit$' "$work/stream.txt" | grep '^data: {"seq":"[0-9]*",' >/dev/null || { echo "the stream told no unit:"; head -20 "$work/stream.txt"; exit 1; }
echo "$(grep -c '^event: unit$' "$work/stream.txt") units"

echo "== the clients"
clients/smoke.sh "$api" "$key" "$work/clients" "$tools"

# The second rotation of keys would revoke the key of this run.
echo "== Schemathesis"
here=$PWD
cd "$work" # where it writes its own files
"$tools/bin/st" --config-file "$here/schemathesis.toml" run "$document" --url "$api" --header "x-api-key: $key" --exclude-path /api/v1/stream \
  --exclude-path /api/v1/partner/keys/rotate \
  --seed 1 --max-examples "${EXAMPLES:-10}" --max-failures 50 --no-color --report-junit-path "$work/schemathesis.xml" >"$work/schemathesis.log" 2>&1 ||
  { sed -n '/FAILURES/,$p' "$work/schemathesis.log" | cut -c1-400 | head -200; exit 1; }
grep -A1 'Test cases:' "$work/schemathesis.log"
