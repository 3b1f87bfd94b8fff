import yaml


def read(raw, path):
    # ruleid: palisade.python.unsafe-yaml-load
    yaml.load(raw)
    # ruleid: palisade.python.unsafe-yaml-load
    yaml.load(raw, Loader=yaml.Loader)
    # ok: palisade.python.unsafe-yaml-load
    yaml.load(raw, Loader=yaml.SafeLoader)
    # ok: palisade.python.unsafe-yaml-load
    yaml.safe_load(raw)


def read_with_ruamel(raw):
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe")
    # ok: palisade.python.unsafe-yaml-load
    return yaml.load(raw)
