FROM debian:12.7
# ruleid: palisade.docker.remote-add
ADD https://files.acme.test/tool.tar.gz /opt/
# ruleid: palisade.docker.remote-add
ADD --chown=shop https://files.acme.test/tool /usr/bin/
# ok: palisade.docker.remote-add
ADD --checksum=sha256:24454f830cdb571e2c4ad15481119c43b3cafd48dd869a9b2945d1036d1dc68d https://files.acme.test/tool /usr/bin/
# ok: palisade.docker.remote-add
ADD https://git.acme.test/tool.git#v1.2.3 /src/
# ok: palisade.docker.remote-add
ADD tool.tar.gz /opt/
# ok: palisade.docker.remote-add
COPY https.conf /etc/shop/
