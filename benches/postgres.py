"""A server of PostgreSQL for a measurement: Debian's program with its own defaults, in a folder that goes with it."""
import glob, os, shutil, subprocess, tempfile, time


class Postgres:
    """A server on a socket in its folder, which ends with `stop`. Its counters are of the database of the daemon."""

    def __init__(self, *settings):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
        program = found[-1] if found else shutil.which("initdb")
        if not program:
            raise SystemExit("PostgreSQL is not installed: apt-get install postgresql")
        self.programs = os.path.dirname(program)
        self.folder = tempfile.TemporaryDirectory()
        self.at = self.folder.name
        if os.getuid() == 0:
            # It refuses to be run by root.
            subprocess.run(["chown", "postgres", self.at], check=True)
        self.run("initdb", "--encoding=UTF8", "--locale=C", "--auth=trust", "--username=tester", "-D", self.at + "/data")
        options = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={self.at}"]
        for setting in settings:
            options += ["-c", setting]
        self.server = subprocess.Popen(self.command("postgres", "-D", self.at + "/data", *options), cwd="/",
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while subprocess.run(self.command("pg_isready", "-q", "-h", self.at), cwd="/").returncode:
            if self.server.poll() is not None:
                raise SystemExit("PostgreSQL does not start")
            time.sleep(0.05)
        self.sql("CREATE ROLE plain LOGIN", "postgres")
        self.sql("CREATE DATABASE bench OWNER plain", "postgres")
        self.url = f"postgres://plain@{self.at.replace('/', '%2F')}/bench"

    def command(self, name, *arguments):
        user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
        return [*user, os.path.join(self.programs, name), *arguments]

    def run(self, name, *arguments):
        done = subprocess.run(self.command(name, *arguments), cwd="/", check=True, stdout=subprocess.PIPE, text=True)
        return done.stdout.strip()

    def sql(self, text, database="bench"):
        return self.run("psql", "-h", self.at, "-U", "tester", "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", text, database)

    def counted(self):
        """Returns transactions, rows written and bytes of the log of changes so far. Asking is no write."""
        # What a connection has done is known to others once it has been idle for ten seconds.
        time.sleep(11)
        row = self.sql("SELECT xact_commit, tup_inserted, tup_updated, tup_deleted, pg_current_wal_lsn() - '0/0'"
                       " FROM pg_stat_database WHERE datname = 'bench'")
        names = ("transactions", "inserted", "updated", "deleted", "wal")
        return dict(zip(names, map(int, row.split("|"))))

    def sizes(self):
        """Returns bytes by table, its indexes and what is stored apart included, those with most first."""
        self.sql("VACUUM ANALYZE")
        rows = self.sql("SELECT relname, pg_total_relation_size(oid), pg_relation_size(oid), pg_indexes_size(oid),"
                        " greatest(reltuples, 0)::bigint FROM pg_class"
                        " WHERE relkind = 'r' AND relnamespace = 'outrigger'::regnamespace ORDER BY 2 DESC")
        return [(name, *map(int, rest)) for name, *rest in (row.split("|") for row in rows.splitlines())]

    def stop(self):
        self.server.terminate()
        self.server.wait()
        self.folder.cleanup()
