#!/bin/sh
# Run once by the image of PostgreSQL, as its administrator: the daemons' role, and a database that is theirs alone.
set -eu
password=$(cat /run/secrets/store-password)
psql --set ON_ERROR_STOP=1 --set password="$password" --username "${POSTGRES_USER:-postgres}" --dbname postgres <<'END'
CREATE ROLE outrigger LOGIN PASSWORD :'password';
CREATE DATABASE outrigger OWNER outrigger ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE outrigger FROM PUBLIC;
END
