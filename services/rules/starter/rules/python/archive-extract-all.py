import tarfile


def unpack(path, wanted):
    archive = tarfile.open(path)
    # ruleid: palisade.python.archive-extract-all
    archive.extractall("/srv/in")
    # ok: palisade.python.archive-extract-all
    archive.extractall("/srv/in", filter="data")
    # ok: palisade.python.archive-extract-all
    archive.extractall("/srv/in", members=wanted)
