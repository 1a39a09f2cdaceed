#!/bin/sh
# Rebuilds abi/ from solidity/. Deterministic: a second run changes nothing, which `make verify` checks.
set -eu
cd "$(dirname "$0")"
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
node compile.mjs
