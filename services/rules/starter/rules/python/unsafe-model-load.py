import numpy
import pandas
import torch


def read(path):
    # ruleid: palisade.python.unsafe-model-load
    numpy.load(path, allow_pickle=True)
    # ruleid: palisade.python.unsafe-model-load
    pandas.read_pickle(path)
    # ruleid: palisade.python.unsafe-model-load
    torch.load(path, weights_only=False)
    # ok: palisade.python.unsafe-model-load
    torch.load(path, weights_only=True)
    # ok: palisade.python.unsafe-model-load
    numpy.load(path)
    # ok: palisade.python.unsafe-model-load
    pandas.read_parquet(path)
