#!/bin/sh
# Writes deploy/docker/.env, which docker compose reads by itself: the example with a
# password of its own for each login. What is there already stays as it is, for the
# databases have been made with it.
set -eu
cd "$(dirname "$0")"
if [ -e .env ]; then
  echo "$PWD/.env is there and stays; delete it to make another, with new databases" >&2
  exit 1
fi
umask 077
while IFS= read -r line; do
  case $line in
    NAVLOG_SECRET_KEY= | NAVLOG_HTTP_STATEMENT_KEY=) line=$line$(openssl rand -base64 32) ;;
    *_PASSWORD=) line=$line$(openssl rand -hex 24) ;;
  esac
  printf '%s\n' "$line"
done <.env.example >.env.new
mv .env.new .env
echo "wrote $PWD/.env: keep it, the signing secrets cannot be opened without its NAVLOG_SECRET_KEY"
