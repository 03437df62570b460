# The harness. Built from a folder that holds the binary `mooring`.
ARG BASE=docker.io/library/debian:bookworm-slim
FROM ${BASE}
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ca-certificates \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log
USER 65532:65532
ENTRYPOINT ["/usr/bin/mooring"]
CMD ["serve"]
# Last, since it alone changes from one build to the next.
COPY mooring /usr/bin/mooring
