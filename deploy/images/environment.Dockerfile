# An environment for development and tests: the executor, the tools an agent works with, and Go. A team writes its own in the
# same way: of ours, an ExecutorClass's image needs `mooring-executor` alone.
#
# Built from a folder that holds the binary `mooring-executor`. Commands may read the system's folders and no others beside
# their workspace, so everything they use is below /usr.
ARG BASE=docker.io/library/debian:bookworm-slim
ARG GO=docker.io/library/golang:1.26-bookworm
FROM ${GO} AS go
FROM ${BASE}
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      bash ca-certificates coreutils curl diffutils file findutils git gzip less patch procps ripgrep tar xz-utils \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log
RUN groupadd --gid 65532 agent \
 && useradd --uid 65532 --gid 65532 --create-home --home-dir /home/agent --shell /bin/bash agent
COPY --from=go /usr/local/go /usr/lib/go
RUN ln -s ../lib/go/bin/go ../lib/go/bin/gofmt /usr/bin/
ENV PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 GOTOOLCHAIN=local
USER 65532:65532
WORKDIR /home/agent
ENTRYPOINT ["/usr/bin/mooring-executor"]
# Last, since it alone changes from one build to the next.
COPY mooring-executor /usr/bin/mooring-executor
