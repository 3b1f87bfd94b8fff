import hashlib


def digests(raw):
    # ruleid: palisade.python.weak-hash
    hashlib.md5(raw)
    # ruleid: palisade.python.weak-hash
    hashlib.new("sha1", raw)
    # ok: palisade.python.weak-hash
    hashlib.md5(raw, usedforsecurity=False)
    # ok: palisade.python.weak-hash
    hashlib.sha256(raw)
