FROM debian:12.7
# ruleid: palisade.docker.tls-verification-off
RUN curl -k https://files.acme.test/tool -o /usr/bin/tool
# ruleid: palisade.docker.tls-verification-off
RUN curl -fsSLk https://files.acme.test/tool -o /usr/bin/tool
# ruleid: palisade.docker.tls-verification-off
RUN wget --no-check-certificate https://files.acme.test/tool
# ruleid: palisade.docker.tls-verification-off
ENV NODE_TLS_REJECT_UNAUTHORIZED=0
# ok: palisade.docker.tls-verification-off
RUN curl -fsSL https://files.acme.test/tool -o /usr/bin/tool
# ok: palisade.docker.tls-verification-off
RUN wget https://files.acme.test/tool && tar -k -xf tool
# ok: palisade.docker.tls-verification-off
RUN curl --cacert /etc/ssl/acme.pem https://files.acme.test/tool-k
# ruleid: palisade.docker.tls-verification-off
RUN curl "https://files.acme.test/tool?os=linux&arch=arm" --insecure -o /usr/bin/tool
# ruleid: palisade.docker.tls-verification-off
RUN curl -o /usr/bin/tool \
    -sSko tool https://files.acme.test/tool
# ruleid: palisade.docker.tls-verification-off
RUN bash -c "curl -k https://files.acme.test/tool -o tool"
# ok: palisade.docker.tls-verification-off
RUN curl -L https://files.acme.test/vm -kernel
# ok: palisade.docker.tls-verification-off
RUN curl -sSok https://files.acme.test/tool && ls -k
# ok: palisade.docker.tls-verification-off
# RUN curl -k https://files.acme.test/tool
RUN echo "curl -k and wget --no-check-certificate are not allowed"
# ok: palisade.docker.tls-verification-off
RUN wget -O list https://files.acme.test/wget--no-check-certificate
