#!/bin/sh
# A new database cluster in the folder named. Nothing needs syncing yet: no row has been promised to anybody.
set -eu
/usr/lib/postgresql/15/bin/initdb --pgdata "$1" --username app --auth trust --encoding UTF8 --locale C \
  --no-sync --no-instructions >/dev/null
echo 'host all all all trust' >>"$1/pg_hba.conf"
