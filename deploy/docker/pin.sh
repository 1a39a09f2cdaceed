#!/bin/sh
# Pins the images of compose.yaml and its overlays by digest: pulls each as the file names it,
# and writes its digest into .env, which docker compose reads by itself. From then on these
# images run, even if the tags move. Run it again to get newer images of the same tags. A
# released image of navlog is pinned if .env names it (NAVLOG_IMAGE).
set -eu
cd "$(dirname "$0")"
umask 077
# The content of .env, including passwords, is left in no other file.
trap 'rm -f .env.images .env.part' EXIT
trap 'exit 1' HUP INT TERM
sed -n 's/.*\${\([A-Z_]*_IMAGE\):-\([^}]*\)}.*/\1 \2/p' compose*.yaml | grep -v '^NAVLOG_IMAGE ' | sort -u >.env.images
: >.env.part
if [ -f .env ]; then
  sed -n 's/^NAVLOG_IMAGE=\([^@]*\).*/NAVLOG_IMAGE \1/p' .env | tail -n 1 >>.env.images
  grep -v '^[A-Z_]*_IMAGE=' .env >.env.part || true
fi
while read -r variable image; do
  docker pull -q "$image" >/dev/null
  digest=$(docker image inspect --format '{{index .RepoDigests 0}}' "$image")
  case $digest in
    *@sha256:*) echo "$variable=$image@${digest#*@}" | tee -a .env.part ;;
    *) echo "$image has no digest: $digest" >&2 && exit 1 ;;
  esac
done <.env.images
mv .env.part .env
