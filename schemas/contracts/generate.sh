#!/bin/sh
# Rebuilds abi/ and deploy/devchain/reference from solidity/. Deterministic: a second run changes nothing, which
# `make verify` checks.
set -eu
cd "$(dirname "$0")"
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
node compile.mjs
go run ./gen
