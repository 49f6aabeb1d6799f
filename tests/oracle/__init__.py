from importlib.util import find_spec

if find_spec("transformers"):
    from tests.oracle import adapted as adapted
