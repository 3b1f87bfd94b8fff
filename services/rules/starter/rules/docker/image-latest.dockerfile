# ruleid: palisade.docker.image-latest
FROM debian:latest
# ruleid: palisade.docker.image-latest
FROM --platform=linux/amd64 node:latest AS build
# ok: palisade.docker.image-latest
FROM debian:12.7
# ok: palisade.docker.image-latest
FROM debian:latest@sha256:0f4c6bd5d5a1d7c2f9b3a8e7d6c5b4a3928170605f4e3d2c1b0a99887766f5e4
# ok: palisade.docker.image-latest
FROM build
# ok: palisade.docker.image-latest
FROM scratch
