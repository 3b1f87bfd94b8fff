# syntax=docker/dockerfile:1

# One program on a small base, without a shell: docker build -t palisade --build-arg VERSION="$(git describe --tags --always)" .
# cmd/palisade/deploy/compose.yaml runs it.

FROM golang:1.26-bookworm AS build
WORKDIR /src
# The modules first: they change less often than the code.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN make build VERSION="$VERSION" \
 && mkdir -p /out/var/lib/palisade \
 && cp bin/palisade /out/palisade

# SQLite is C, so the program needs glibc, which this base has, and certificates and time zones.
FROM gcr.io/distroless/base-debian12:nonroot
COPY --from=build /out/palisade /usr/local/bin/palisade
# The volume takes the owner of this directory; 65532 is nonroot.
COPY --from=build --chown=65532:65532 /out/var/lib/palisade /var/lib/palisade
# SQLite sorts in files beside the data: in a read-only root there is no other place, and a tmpfs would count as memory.
ENV PALISADE_DATA=/var/lib/palisade \
    SQLITE_TMPDIR=/var/lib/palisade \
    PALISADE_HTTP=0.0.0.0:8080 \
    PALISADE_GRPC=0.0.0.0:9090 \
    PALISADE_LOG_FORMAT=json
# Nothing else is written: the root file system may be read-only.
VOLUME /var/lib/palisade
EXPOSE 8080 9090
USER 65532:65532
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["/usr/local/bin/palisade", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/palisade"]
CMD ["serve"]
