# Outrigger in a container. The image holds the daemon, what its tools run (bash, git), and no key.
#
#   docker build -t outrigger .
#   docker run --rm --tmpfs /tmp:exec,size=1g -p 127.0.0.1:4517:4517 -e OUTRIGGER_TOKEN -v "$PWD:/project" outrigger
#
# How it is meant to be run, with SearXNG beside it, is in compose.yaml. Docker's older builder takes this file as well
# as BuildKit: there is nothing in it that one of them lacks.

FROM rust:1.95-bookworm AS build
WORKDIR /source
# The dependencies first, with an empty root crate: this layer stays until they change, and it is most of the build.
COPY Cargo.toml Cargo.lock ./
COPY .cargo .cargo
COPY crates crates
COPY benches benches
RUN mkdir src && touch src/lib.rs \
    && echo 'fn main() {}' >src/main.rs \
    && cargo build --profile dist --locked --lib
COPY . .
# A file that is copied keeps its time, which is before that of what was built of the empty crate.
RUN touch build.rs src/lib.rs src/main.rs \
    && cargo build --profile dist --locked --bin outrigger \
    && cp target/dist/outrigger /usr/local/bin/outrigger

FROM debian:bookworm-slim
# bash and git are what the model's commands are run with; certificates are for the git and curl of such commands, the
# daemon brings its own. Another user than 1000 may be chosen at the start, so /data takes files of anybody: the daemon
# makes a folder of its own there, which nobody else can read.
RUN apt-get update \
    && apt-get install -y --no-install-recommends bash ca-certificates git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 1000 --user-group --create-home outrigger \
    && install -d -o outrigger -g outrigger /project \
    && install -d -m 1777 /data
COPY --from=build /usr/local/bin/outrigger /usr/local/bin/outrigger

# Root in a container is still root to the files that are mounted into it.
USER 1000:1000
WORKDIR /project
VOLUME /data

# HOME by name, so that it is there for a user of another number too.
# Every address of the container, or the published port leads nowhere. The daemon refuses to start so
# without a token that was given to it: OUTRIGGER_TOKEN, or OUTRIGGER_TOKEN_FILE with a Docker secret.
ENV HOME=/home/outrigger \
    OUTRIGGER_SERVER__HOST=0.0.0.0 \
    OUTRIGGER_SERVER__PORT=4517 \
    OUTRIGGER_PROJECT__ROOT=/project \
    OUTRIGGER_PROJECT__CENTRAL=/data/central \
    OUTRIGGER_STORE__PATH=/data/state/outrigger.db \
    OUTRIGGER_LOG__FORMAT=json
EXPOSE 4517

# Needs no token; asks the port of the configuration over loopback. OUTRIGGER_SERVER__PORT changes it for both; where the
# daemon alone is given --port, --health-cmd "outrigger healthcheck --port …" has to say the same. The first check is one
# interval after the start, and who waits for it (`depends_on`, `up --wait`) should not wait long; `--start-interval` would
# do, but engines before 25 and older builders refuse it.
HEALTHCHECK --interval=2s --timeout=5s --start-period=10s --retries=5 \
    CMD ["outrigger", "healthcheck"]

# The daemon is process 1 itself: an init before it would be a process of the same user whose environment, with the
# token and the keys, every command could read where Landlock is missing, and which would pass on a command's signals.
ENTRYPOINT ["outrigger"]
