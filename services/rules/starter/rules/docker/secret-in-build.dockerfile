FROM debian:12.7
# ruleid: palisade.docker.secret-in-build
ENV DB_PASSWORD=k9Lw-battery-72
# ruleid: palisade.docker.secret-in-build
ARG MAIL_API_KEY="9f8Qz1mWc0Rt"
# ok: palisade.docker.secret-in-build
ARG MAIL_API_KEY
# ok: palisade.docker.secret-in-build
ENV DB_PASSWORD=$DB_PASSWORD
# ok: palisade.docker.secret-in-build
ENV DB_PASSWORD=changeme
# ok: palisade.docker.secret-in-build
ENV DB_PASSWORD_FILE=/run/secrets/db
# ok: palisade.docker.secret-in-build
ENV DB_PASSWORD=""
# ruleid: palisade.docker.secret-in-build
ENV A=1 PASSWORD=hunter22
# ruleid: palisade.docker.secret-in-build
ENV NOTE="two words" \
    DB_PASSWORD=k9Lw-battery-72
# ruleid: palisade.docker.secret-in-build
ENV HOST=example.test DB_PASSWORD=k9Lw-battery-72 NOTE=example
# ok: palisade.docker.secret-in-build
ENV A=1 PASSWORD=changeme
# ok: palisade.docker.secret-in-build
ENV A=1 B=PASSWORD C=hunter22
