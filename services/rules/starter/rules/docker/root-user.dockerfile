FROM debian:12.7 AS build
# ok: palisade.docker.root-user
USER root
RUN make install
USER shop
FROM debian:12.7
# root may be needed between two steps
# ok: palisade.docker.root-user
USER root
RUN apt-get update
USER 10001:10001
FROM debian:12.7
# ruleid: palisade.docker.root-user
USER root
CMD ["/usr/bin/shop"]
