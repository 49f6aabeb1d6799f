from importlib.util import find_spec

if find_spec("transformers"):
    from tests.oracle import adapted as adapted
    from tests.oracle import features as features
    from tests.oracle import pyramids as pyramids
