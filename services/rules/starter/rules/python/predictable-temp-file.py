import tempfile


def dump():
    # ruleid: palisade.python.predictable-temp-file
    tempfile.mktemp(suffix=".json")
    # ok: palisade.python.predictable-temp-file
    tempfile.mkstemp(suffix=".json")
    # ok: palisade.python.predictable-temp-file
    tempfile.NamedTemporaryFile()
    # ok: palisade.python.predictable-temp-file
    tempfile.mkdtemp()
