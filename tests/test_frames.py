"""`count_frame`: every row of a DataFrame has the count, or the error, of that config alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

import paramcount as pc
from paramcount.sweeping.columns import COUNTS
from paramcount.sweeping.frames import list_main_keys
from tests.refusing import error_of
from tests.structures import keep_every
from tests.test_sweeps import MODEL_TYPES, load_default

CHECKED = (*COUNTS, "qkv", "mlp", "experts", "norm", "lm_head")


def count_document(document: dict[str, Any]) -> dict[str, Any]:
    """The columns of one row, from the scalar function."""
    try:
        count = pc.count(document)
    except pc.ParamcountError as error:
        return dict.fromkeys(CHECKED, None) | {"reason": str(error)}
    values = {name: getattr(count, name) if name in COUNTS else count.components[name] for name in CHECKED}
    if max(values.values()) >= 2**63:
        name = next(name for name in CHECKED if values[name] >= 2**63)
        return dict.fromkeys(CHECKED, None) | {"reason": f"{name} = 2⁶³ or more does not fit the column"}
    return values | {"reason": None}


def check_frame(frame: pandas.DataFrame, architecture: str) -> pandas.DataFrame:
    """Compare every row with the scalar count."""
    result = pc.count_frame(frame, architecture, columns=CHECKED)
    pandas.testing.assert_frame_equal(result[list(frame.columns)], frame)
    assert {str(result[name].dtype) for name in CHECKED} == {"Int64"}
    for row, found in zip(frame.to_dict("records"), result.to_dict("records")):
        document = {"model_type": architecture} | {str(k): v for k, v in row.items() if v is not None and v == v}
        expected = count_document(document)
        assert {name: None if found[name] is pandas.NA else found[name] for name in expected} == expected, document
    return result


@pytest.mark.parametrize("name", keep_every(30, MODEL_TYPES))
@hypothesis.settings(max_examples=2, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_row_equals_the_scalar_count(name: str, data: st.DataObject) -> None:
    model = load_default(name)
    if model is None:
        return  # some of its sizes have no default
    sizes: dict[str, Any] = {key: getattr(model.sizes, field) for field, key in list_main_keys(name).items()}
    keys = {key: size for key, size in sizes.items() if type(size) in (int, bool)}
    if not keys:
        return  # all of its sizes are in sections
    chosen = data.draw(st.lists(st.sampled_from(sorted(keys)), min_size=1, max_size=4, unique=True))
    n = data.draw(st.integers(5, 9))
    columns: dict[str, Any] = {}
    for key in chosen:
        size = keys[key]
        values = [True, False] if type(size) is bool else [0, 1, 2, size, size, size + 1, 2 * size, max(1, size // 2)]
        columns[key] = data.draw(st.lists(st.sampled_from([*values, None]), min_size=n, max_size=n))
    check_frame(pandas.DataFrame(columns, dtype=object), name)


def test_keys_names_and_headings_are_the_same_columns() -> None:
    rows = [[16, 2048, 8, 4], [16, 1024, 8, 2], [8, 2048, 8, 8], [1, 64, 4, 3]]
    keys = ["num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads"]
    expected = check_frame(pandas.DataFrame(rows, columns=keys), "llama")["total"]
    assert expected.isna().tolist() == [False, False, False, True]
    for names in (["n_layers", "d_model", "n_heads", "n_kv_heads"], ["layers", "hidden_size", "heads", "KV heads"]):
        found = pc.count_frame(pandas.DataFrame(rows, columns=names), "llama")["total"]
        assert found.tolist() == expected.tolist()


def test_missing_values_are_missing_keys_and_whole_floats_are_integers() -> None:
    frame = pandas.DataFrame({"n_layers": [4, None, 4, 4, 5], "head_dim": [np.nan, 64, 128, 63, np.nan]})
    with pytest.warns(pc.ConfigWarning) as caught:
        result = pc.count_frame(frame, "llama")
    assert [str(warning.message).partition(";")[0] for warning in caught] == [
        "column 'n_layers' has no value in 1 row of 5 (position 1)",
        "column 'head_dim' has no value in 2 rows of 5 (position 0, 4)",
    ]
    assert [warning.filename for warning in caught] == [__file__] * 2
    plain = [{"num_hidden_layers": 4}, {"head_dim": 64}, {"num_hidden_layers": 4, "head_dim": 128}]
    assert result["total"].tolist()[:3] == [pc.count({"model_type": "llama", **row}).total for row in plain]
    assert result["reason"].tolist()[3].startswith("head_dim = 63 is odd")


def test_flags_strings_and_broken_values_split_the_rows() -> None:
    rows = [
        {"tie_word_embeddings": tied, "hidden_act": act, "hidden_size": d, "num_attention_heads": 4}
        for tied in (True, False, "yes")
        for act in ("silu", "gelu", "no such function")
        for d in (64, 128, 130, 2.5, "64")
    ]
    assert check_frame(pandas.DataFrame(rows, dtype=object), "llama")["total"].notna().sum() == 8


def test_a_count_that_does_not_fit_int64_is_missing_with_a_reason() -> None:
    frame = pandas.DataFrame({"num_hidden_layers": [1, 2**31, 2, 3], "intermediate_size": [64, 2**31, 64, 64]})
    result = check_frame(frame, "llama")
    assert result["total"].isna().tolist() == [False, True, False, False]
    assert result["reason"][1] == "total = 2⁶³ or more does not fit the column"


def test_multimodal_models_are_counted_row_by_row() -> None:
    check_frame(pandas.DataFrame({"text_config": [{"num_hidden_layers": n} for n in range(1, 6)]}), "llava")


def test_an_empty_frame_has_the_same_columns() -> None:
    frame = pandas.DataFrame({"n_layers": pandas.Series([], dtype="int64"), "id": pandas.Series([], dtype=object)})
    result = pc.count_frame(frame, "llama", keep=["id"])
    assert [(name, str(dtype)) for name, dtype in result.dtypes.items()] == [
        ("n_layers", "int64"),
        ("id", "object"),
        ("total", "Int64"),
        ("active", "Int64"),
        ("reason", "object"),
    ]


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (["n_layer"], {}, "column 'n_layer' is not a size of llama"),
        (["id"], {}, "column 'id' is not a size of llama"),
        (["n_layers", "num_hidden_layers"], {}, "column 'num_hidden_layers' is num_hidden_layers again"),
        (["n_layers"], {"architecture": "lama"}, "model_type = lama is not supported"),
        (["n_layers"], {"columns": ["totl"]}, "unknown column 'totl' (expected"),
        (["n_layers"], {"columns": "total"}, "columns = 'total' (expected a list of names)"),
    ],
)
def test_an_unknown_column_or_architecture_is_an_error(columns: list[str], options: Any, message: str) -> None:
    frame = pandas.DataFrame([[1] * len(columns)], columns=columns)
    assert error_of(lambda: pc.count_frame(frame, **{"architecture": "llama", **options})).startswith(message)


# ---- Dask and Spark


def make_many_rows() -> pandas.DataFrame:
    """Rows of two structures, some invalid."""
    layers = [i % 7 or -1 for i in range(400)]
    return pandas.DataFrame({"n_layers": layers, "hidden_size": [64 * (1 + i % 5) for i in range(400)], "n_heads": 4})


def test_dask_counts_partitions_with_several_workers() -> None:
    pytest.importorskip("dask.dataframe", reason="needs dask[dataframe,distributed]")
    distributed = pytest.importorskip("distributed", reason="needs dask[dataframe,distributed]")
    import dask.dataframe as dd

    frame = make_many_rows()
    expected = pc.count_frame(frame, architecture="llama")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
        with cluster, distributed.Client(cluster):
            parts = dd.from_pandas(frame, npartitions=4)
            found = parts.map_partitions(pc.count_frame, architecture="llama").compute()
    assert found["total"].tolist() == expected["total"].tolist()
    assert found["reason"].isna().tolist() == expected["reason"].isna().tolist()
    assert expected["total"].isna().sum() == 58


def test_spark_counts_batches_in_map_in_pandas(tmp_path: Path) -> None:
    sql = pytest.importorskip("pyspark.sql", reason="needs pyspark")
    if not shutil.which("java"):
        pytest.skip("needs Java")
    frame = make_many_rows()
    expected = pc.count_frame(frame, architecture="llama")

    def count(frames: Iterator[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
        return (pc.count_frame(part, architecture="llama") for part in frames)

    os.environ["PYSPARK_PYTHON"] = sys.executable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder = sql.SparkSession.builder.master("local[2]").config("spark.sql.warehouse.dir", str(tmp_path))
        spark = builder.config("spark.ui.enabled", "false").getOrCreate()
        try:
            schema = "n_layers long, hidden_size long, n_heads long, total long, active long, reason string"
            rows = spark.createDataFrame(frame).repartition(3).mapInPandas(count, schema).toPandas()
        finally:
            spark.stop()
    keys = ["n_layers", "hidden_size", "n_heads"]
    found, wanted = (table.sort_values(keys).reset_index(drop=True) for table in (rows, expected))
    assert found["total"].astype("Int64").tolist() == wanted["total"].tolist()
    assert found["reason"].fillna("").tolist() == wanted["reason"].fillna("").tolist()


def test_importing_the_package_needs_neither_dask_nor_spark() -> None:
    code = "import sys, pandas, paramcount as pc; pc.count_frame(pandas.DataFrame({'n_layers': [1]}), 'llama')\n"
    code += "assert not {'dask', 'pyspark'} & {name.partition('.')[0] for name in sys.modules}"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
