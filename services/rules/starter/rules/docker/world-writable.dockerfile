FROM debian:12.7
# ruleid: palisade.docker.world-writable
RUN chmod -R 777 /srv/shop
# ruleid: palisade.docker.world-writable
RUN chmod a+rwx /srv/shop
# ok: palisade.docker.world-writable
RUN chmod 1777 /srv/shop/tmp
# ok: palisade.docker.world-writable
RUN chmod 755 /usr/bin/shop
# ok: palisade.docker.world-writable
RUN chmod +x /usr/bin/shop
# ruleid: palisade.docker.world-writable
RUN chmod go+w /srv/shop
# ruleid: palisade.docker.world-writable
RUN mkdir /srv/shop && chmod --recursive a=rwx /srv/shop
# ruleid: palisade.docker.world-writable
RUN chmod u=rwx,o+w /srv/shop
# ruleid: palisade.docker.world-writable
RUN chmod 0666 /srv/shop/data
# ruleid: palisade.docker.world-writable
RUN chmod 2777 /srv/shop/data
# ruleid: palisade.docker.world-writable
COPY --chown=shop --chmod=777 shop /usr/bin/shop
# ok: palisade.docker.world-writable
RUN chmod a+rwxt /srv/shop/tmp
# ok: palisade.docker.world-writable
RUN chmod ug+w,o-w /srv/shop
# ok: palisade.docker.world-writable
RUN chmod a=rX /srv/shop
# ok: palisade.docker.world-writable
# RUN chmod 777 /srv/shop
COPY --chmod=755 shop /usr/bin/shop
