#!/bin/sh
# Makes deploy/docker/secrets, a file for each secret of compose.yaml. What is there stays
# as it is, for the databases were made with it, and what an .env from before has is taken
# over; so it can run again whenever there is something new.
#
# Only you may look into the folder. The files in it everybody may read who gets there:
# in a container a program is another user, and gets no more than its own.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
chmod 700 secrets

# secret FILE VARIABLE COMMAND: its name, what it was called in .env, and what makes one.
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

# The URLs of the nodes, with commas between, of which only you know the providers' keys. ingest refuses the example.
if [ ! -s secrets/chain_rpc ]; then
  printf '%s' "https://node.example:8545" >secrets/chain_rpc
  chmod 644 secrets/chain_rpc
  echo "secrets/chain_rpc: write the URLs of your nodes into it, with commas between"
fi

# The partners' signing secrets are sealed with it, and cannot be opened without.
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
