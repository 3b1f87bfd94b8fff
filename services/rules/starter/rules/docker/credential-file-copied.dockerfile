FROM debian:12.7
# ruleid: palisade.docker.credential-file-copied
COPY .env /srv/shop/
# ruleid: palisade.docker.credential-file-copied
COPY package.json .npmrc ./
# ruleid: palisade.docker.credential-file-copied
ADD deploy/id_rsa /root/.ssh/id_rsa
# ok: palisade.docker.credential-file-copied
COPY .env.example /srv/shop/
# ok: palisade.docker.credential-file-copied
COPY src ./src
# ok: palisade.docker.credential-file-copied
COPY keys/id_rsa.pub /root/.ssh/authorized_keys
