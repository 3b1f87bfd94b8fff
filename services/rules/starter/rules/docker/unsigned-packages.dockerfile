FROM debian:12.7
# ruleid: palisade.docker.unsigned-packages
RUN apt-get install -y --allow-unauthenticated tool
# ruleid: palisade.docker.unsigned-packages
RUN apk add --allow-untrusted tool.apk
# ruleid: palisade.docker.unsigned-packages
RUN dnf install -y --nogpgcheck tool
# ok: palisade.docker.unsigned-packages
RUN apt-get install -y --no-install-recommends tool
# ok: palisade.docker.unsigned-packages
RUN apk add --no-cache tool
# ok: palisade.docker.unsigned-packages
RUN apt-get purge -y --allow-remove-essential tool
