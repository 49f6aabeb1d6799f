"""The figures of llama.cpp's and Ollama's logs, as paramcount has them."""

from __future__ import annotations

from paramcount.costs.caches import CacheGroup
from paramcount.costs.engines import ENGINES
from paramcount.costs.engines.llama_cpp.cells import count_cell_bytes, count_cells
from paramcount.costs.engines.llama_cpp.engine import LlamaCpp
from paramcount.costs.engines.records import Share
from paramcount.costs.memory import Memory
from tests.logged import LoggedFigure, measure

MIB = 2**20


def find_share_on(result: Memory, place: str) -> Share:
    assert result.fit is not None
    device = None if place == "cpu" else int(place.removeprefix("gpu"))
    return next(share for share in result.fit.shares if share.device == device)


def count_windows(result: Memory, *, windows: bool) -> tuple[int, int]:
    """(cells of each sequence that all layers share or each has, bytes of all layers) with windows, or without."""
    engine = ENGINES[result.engine]
    assert isinstance(engine, LlamaCpp)
    options = engine.choose_windows(result.caches, result.request)
    groups: list[CacheGroup] = [
        g for g in result.caches if not g.is_state and (g.longest is not None and not options.swa_full) == windows
    ]
    streams = 1 if options.kv_unified else result.request.batch
    cells = count_cells(groups[0], result.request, options)
    size = sum(g.layers * count_cells(g, result.request, options) * count_cell_bytes(g, result.request, options.mla)
               for g in groups)  # fmt: skip
    return cells // streams, size


def count_figure(engine: str, row: LoggedFigure) -> float:
    """What paramcount says for the figure: cells, layers, MiB or, if its name ends so, GiB."""
    if row.figure.endswith("_gib"):
        return count_figure(engine, row._replace(figure=row.figure.removesuffix("_gib"))) / 1024
    if row.figure.endswith("_whole"):  # the memory breakdown leaves the fraction out
        return count_figure(engine, row._replace(figure=row.figure.removesuffix("_whole"))) // 1
    result = measure(engine, row.model, row.arguments)
    if row.figure == "offloaded":  # the LM head counts as a layer
        assert result.fit is not None
        gpus = [share for share in result.fit.shares if share.device is not None]
        return sum(share.layers for share in gpus) + any("LM head" in share.extras for share in gpus)
    figure, _, place = row.figure.rpartition("_")
    if row.figure in ("cells", "window_cells"):
        return count_windows(result, windows=row.figure == "window_cells")[0]
    if row.figure in ("kv", "state", "context"):
        sizes = {"kv": result.kv_cache_bytes, "state": result.state_bytes}
        both = (result.kv_cache_bytes + result.state_bytes) // MIB  # without a fraction in the breakdown
        return sizes[row.figure] / MIB if row.figure in sizes else both
    if figure in ("kv_full", "kv_window") or row.figure in ("kv_full", "kv_window"):
        return count_windows(result, windows="window" in row.figure)[1] / MIB
    if row.figure == "output":
        return dict(find_share_on(result, "cpu").overhead.items)["output buffer"] / MIB
    share = find_share_on(result, place)
    if figure == "layers":  # Ollama's figure, without the token embedding
        embedding = sum(group.bytes for group in result.weights if group.component == "embedding")
        return (share.weights_bytes - embedding) / MIB
    if figure == "compute":
        return dict(share.overhead.items)["compute buffer"] / MIB
    if figure == "weights":  # the encoders are a model of their own
        return (share.weights_bytes - (result.mmproj_bytes if place == "gpu0" else 0)) / MIB
    return {"kv": share.kv_cache_bytes, "state": share.state_bytes}[figure] / MIB
