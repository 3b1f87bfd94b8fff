FROM debian:12.7
# ruleid: palisade.docker.pipe-to-shell
RUN curl -fsSL https://get.acme.test/install.sh | sh
# ruleid: palisade.docker.pipe-to-shell
RUN apt-get update && wget -qO- https://get.acme.test/install.sh | sudo -E bash -
# ok: palisade.docker.pipe-to-shell
RUN curl -fsSL https://get.acme.test/tool.tar.gz | tar -xz
# ok: palisade.docker.pipe-to-shell
RUN curl -fsSLo install.sh https://get.acme.test/install.sh && sha256sum -c sums && sh install.sh
# ok: palisade.docker.pipe-to-shell
RUN curl -fsSL https://get.acme.test/key.asc | gpg --dearmor
# ruleid: palisade.docker.pipe-to-shell
RUN curl -fsSL https://get.acme.test/install.sh \
    | bash
# ruleid: palisade.docker.pipe-to-shell
RUN curl -fsSL "https://get.acme.test/install?os=linux&arch=arm" | bash
# ruleid: palisade.docker.pipe-to-shell
RUN ["sh", "-c", "curl -fsSL https://get.acme.test/install.sh | sh"]
# ruleid: palisade.docker.pipe-to-shell
RUN curl -fsSL https://get.acme.test/install.sh 2>&1 | CHANNEL=stable sh -s -- --yes
# ok: palisade.docker.pipe-to-shell
# Do not run curl https://get.acme.test/install.sh | sh here.
RUN true
# ok: palisade.docker.pipe-to-shell
RUN echo "never use curl https://get.acme.test/install.sh | sh"
# ok: palisade.docker.pipe-to-shell
RUN curl -fsSLo tool https://files.acme.test/tool || sh ./report.sh
