import ssl

import requests


def connect(url, context):
    # ruleid: palisade.python.tls-verification-off
    requests.get(url, verify=False)
    # ruleid: palisade.python.tls-verification-off
    ssl._create_unverified_context()
    # ruleid: palisade.python.tls-verification-off
    context.verify_mode = ssl.CERT_NONE
    # ok: palisade.python.tls-verification-off
    requests.get(url, verify="/etc/ssl/acme.pem")
    # ok: palisade.python.tls-verification-off
    requests.get(url)
    # ok: palisade.python.tls-verification-off
    context.verify_mode = ssl.CERT_REQUIRED
