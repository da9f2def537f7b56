# Outrigger in a container. The image holds the daemon, what its tools run (bash, git), and no key.
#
#   docker build -t outrigger .
#   docker run --rm -p 127.0.0.1:4517:4517 -e OUTRIGGER_TOKEN -v "$PWD:/project" outrigger
#
# How it is meant to be run, with SearXNG beside it, is in compose.yaml.

FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
# The caches outlive the build, the program does not live in them: it is copied out in the same step.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo build --release --locked && cp target/release/outrigger /usr/local/bin/outrigger

FROM debian:bookworm-slim
# bash and git are what the model's commands are run with; certificates are for the git and curl of
# such commands, the daemon brings its own. tini is process 1: it passes signals on and reaps what a
# command leaves behind where the sandbox has no supervisor of its own (mode `limits` or `none`).
RUN apt-get update \
    && apt-get install -y --no-install-recommends bash ca-certificates git tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 1000 --user-group --create-home outrigger \
    && install -d -o outrigger -g outrigger /project /data
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
    OUTRIGGER_PROJECT__CENTRAL=/data \
    OUTRIGGER_LOG__FORMAT=json
EXPOSE 4517

# Needs no token; asks the port of the configuration over loopback.
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 \
    CMD ["outrigger", "healthcheck"]

ENTRYPOINT ["/usr/bin/tini", "--", "outrigger"]
