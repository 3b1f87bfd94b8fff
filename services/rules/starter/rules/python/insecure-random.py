import random
import secrets


def values():
    # ruleid: palisade.python.insecure-random
    reset_token = random.randint(0, 999999)
    # ruleid: palisade.python.insecure-random
    password = "".join(random.choice("abcdef") for _ in range(12))
    # ok: palisade.python.insecure-random
    session_token = secrets.token_urlsafe(32)
    # ok: palisade.python.insecure-random
    csrf_token = random.SystemRandom().choice("abcdef")
    # ok: palisade.python.insecure-random
    footprint = random.randint(1, 6)
    # ok: palisade.python.insecure-random
    token_count = random.randint(1, 6)
    return reset_token, password, session_token, csrf_token, footprint, token_count
