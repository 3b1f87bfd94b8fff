import os


def files(path):
    # ruleid: palisade.python.world-writable
    os.chmod(path, 0o777)
    # ruleid: palisade.python.world-writable
    os.fchmod(path, 0o666)
    # ok: palisade.python.world-writable
    os.chmod(path, 0o640)
    # ok: palisade.python.world-writable
    os.chmod(path, 0o1777)
    # ok: palisade.python.world-writable
    os.makedirs(path, 0o777)
