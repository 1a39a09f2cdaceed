#!/bin/sh
# Creates deploy/docker/secrets, a file for each secret of compose.yaml. Existing files are
# kept, because the databases were created with them, and values of an earlier .env are taken
# over; so the script can run again whenever there are new secrets.
#
# Only you can enter the folder. The files in it are readable for all users, because a program
# in a container runs as a different user; it only gets its own files.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
chmod 700 secrets

# secret FILE VARIABLE ARGUMENTS: its name, its earlier name in .env, and the arguments of `openssl rand`.
secret() {
  if [ -s "secrets/$1" ]; then
    return
  fi
  value=
  if [ -f .env ] && [ -n "$2" ]; then
    value=$(sed -n "s/^$2=//p" .env | tail -n 1)
  fi
  from="taken from .env"
  if [ -z "$value" ]; then
    value=$(openssl rand $3)
    from="new"
  fi
  printf '%s' "$value" >"secrets/$1.part"
  chmod 444 "secrets/$1.part"
  mv "secrets/$1.part" "secrets/$1"
  echo "secrets/$1: $from"
}

# The URLs of the nodes, separated by commas; only you know the providers' keys. ingest rejects the example.
if [ ! -s secrets/chain_rpc ]; then
  printf '%s' "https://node.example:8545" >secrets/chain_rpc
  chmod 644 secrets/chain_rpc
  echo "secrets/chain_rpc: write the URLs of your nodes into it, with commas between"
fi

# The partners' signing secrets are encrypted with it, and cannot be read without it.
secret secret_key NAVLOG_SECRET_KEY "-base64 32"
# Partners' statements are signed with it.
secret statement_key NAVLOG_HTTP_STATEMENT_KEY "-base64 32"
# Logins that own the databases, and one for each program.
secret postgres POSTGRES_PASSWORD "-hex 24"
secret postgres_migrate POSTGRES_MIGRATE_PASSWORD "-hex 24"
secret postgres_ingest POSTGRES_INGEST_PASSWORD "-hex 24"
secret postgres_project POSTGRES_PROJECT_PASSWORD "-hex 24"
secret postgres_serve POSTGRES_SERVE_PASSWORD "-hex 24"
secret postgres_dispatch POSTGRES_DISPATCH_PASSWORD "-hex 24"
secret postgres_operator POSTGRES_OPERATOR_PASSWORD "-hex 24"
secret clickhouse CLICKHOUSE_PASSWORD "-hex 24"
secret clickhouse_project "" "-hex 24"
secret clickhouse_query CLICKHOUSE_QUERY_PASSWORD "-hex 24"
# The broker itself, and each user of Kafka.
secret kafka_admin "" "-hex 24"
secret kafka_ingest "" "-hex 24"
secret kafka_project "" "-hex 24"
secret kafka_dispatch "" "-hex 24"
secret kafka_operator "" "-hex 24"
# The administrator of Grafana (compose.grafana.yaml).
secret grafana_admin "" "-hex 24"
echo "keep $PWD/secrets: without its secret_key the partners' signing secrets cannot be opened"
