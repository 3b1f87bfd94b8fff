import json
import marshal
import pickle


def read(raw):
    # ruleid: palisade.python.unsafe-deserialization
    pickle.loads(raw)
    # ruleid: palisade.python.unsafe-deserialization
    marshal.loads(raw)
    # ok: palisade.python.unsafe-deserialization
    json.loads(raw)
    # ok: palisade.python.unsafe-deserialization
    pickle.dumps(raw)
    # ok: palisade.python.unsafe-deserialization
    pickle.loads(b"N.")
