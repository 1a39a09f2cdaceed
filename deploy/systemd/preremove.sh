#!/bin/sh
# Stops the programs when the package is removed ("remove" in Debian's, 0 in an RPM), but not when a newer one replaces it.
set -e
case "${1:-}" in
  remove | 0) ;;
  *) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
  systemctl --no-reload disable --now navlog-backup.timer navlog-dispatch.service navlog-serve.service navlog-project.service navlog-ingest.service || true
fi
