"""Random honest specs of every kind, odd ones among them: what `plan` takes must pass its proof."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import yaml

KINDS = ("histograms", "items", "aggregates", "several")


def write_honest(kind: str, rng: Random, folder: Path) -> Path:
    """A spec with its public files beside it."""
    content = {"name": "honest", **(_several(rng, folder) if kind == "several" else _ENTRIES[kind](rng, folder))}
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
    return path


def _several(rng: Random, folder: Path) -> dict[str, Any]:
    """The same people, asked questions of two or three kinds."""
    entries = [_ENTRIES[kind](rng, folder) for kind in rng.sample(list(_ENTRIES), rng.choice((2, 2, 3)))]
    for entry in entries:
        entry["expected"].pop("users")
    return {"questions": entries, "expected": {"users": _users(rng)}}


def _users(rng: Random) -> int:
    return rng.choice((1, 2, 30, 2000, 2000, 50_000, 1_000_000))


def _some(rng: Random, share: float, **keys: Any) -> dict[str, Any]:
    """Each of these keys or none of them."""
    return keys if rng.random() < share else {}


def _budget(rng: Random) -> str:
    """From 0.001 to 50 and now and then beyond, with as many decimals or as odd a fraction as somebody may write."""
    return rng.choice(
        (f"{10 ** rng.uniform(-3, 1.7):.7g}", f"{rng.randint(1, 60)}/7", str(rng.choice((0.1, 1, 4, 20, 200))))
    )


def _shares(rng: Random, names: list[str]) -> dict[str, str]:
    """Parts of a whole; some may be nothing."""
    cuts = sorted(rng.randint(0, 1000) for _ in names[1:])
    return {name: f"{end - start}/1000" for name, start, end in zip(names, [0, *cuts], [*cuts, 1000], strict=True)}


def _choices(rng: Random) -> dict[str, str]:
    """One to five levels, in any order."""
    parts = rng.sample(range(1, 60), rng.randint(0, 4))
    pairs = [(f"level {i}".replace(" ", "-"), f"{part}/60") for i, part in enumerate(parts)] + [("weakest", "1")]
    return dict(rng.sample(pairs, len(pairs)))


def _expected(rng: Random, key: str, names: list[str]) -> dict[str, Any]:
    return {"expected": {"users": _users(rng), **_some(rng, 0.5, **{key: _shares(rng, names)})}}


def _intervals(rng: Random, *targets: str) -> dict[str, Any]:
    stated = {"confidence": rng.choice((0.51, 0.8, 0.95, 0.999)), "target": rng.choice(targets)}
    return _some(rng, 0.3, intervals=stated)


def _histograms(rng: Random, folder: Path) -> dict[str, Any]:
    choices = _choices(rng)
    hidden = len(choices) > 1 and rng.random() < 0.3
    levels: dict[str, Any] = {"choices": choices}
    if hidden:
        levels |= {"visibility": "hidden", "epsilon_p": rng.choice((0.5, 1, 2, 3)), "max_leak": 100}
    if len(choices) > 1:
        levels |= {"column": "level", "dependence": rng.choice((1, "unknown") if hidden else (1, 1.3, 2, "unknown"))}
    attributes = [_attribute(rng, f"asked-{i}", numbers=not hidden) for i in range(rng.randint(1, 3))]
    methods = () if hidden else ("guarded", "sum", "oc", "oc+", "em")
    return {
        "kind": "histograms",
        "source": {"path": "people.parquet", "user_id": "id"},
        "attributes": attributes,
        "budget": {"total": _budget(rng)},
        "levels": levels,
        **(_some(rng, 0.4, combination={"method": rng.choice(methods)}) if methods else {}),
        **_some(rng, 0.3, mechanism=rng.choice(("krr", "brr", "oue", *(() if hidden else ("olh", "subset"))))),
        **_intervals(rng, "users", "population"),
        **_expected(rng, "levels", list(choices)),
    }


def _attribute(rng: Random, name: str, *, numbers: bool) -> dict[str, Any]:
    quantiles = sorted(rng.sample((0.01, 0.25, 0.5, 0.9, 0.999), rng.randint(1, 3)))
    match rng.choice(("category", "binned", *(["number"] if numbers else []))):
        case "category":
            return {"name": name, "values": [f"v{i}" for i in range(rng.choice((1, 2, 3, 7, 17, 40, 64, 65, 300)))]}
        case "binned":
            edges = sorted(rng.sample(range(200), rng.randint(3, 9)))
            return {"name": name, "kind": "binned", "edges": edges, **_some(rng, 0.5, quantiles=quantiles)}
    number = {"name": name, "kind": "number", "bounds": [rng.uniform(-9, 0), rng.uniform(0.1, 1e6)]}
    mechanism = rng.choice(("pm", "duchi", "hm", "laplace"))
    asked = {"quantiles": quantiles, "bins": rng.choice((2, 16, 64))}
    return {**number, **_some(rng, 0.5, **asked), **_some(rng, 0.4, mechanism=mechanism)}


def _items(rng: Random, folder: Path) -> dict[str, Any]:
    names = [f"item {i}" for i in range(rng.choice((1, 2, 3, 5, 8, 17, 40, 63, 64, 65, 130, 1000)))]
    choices, total = _choices(rng), _budget(rng)
    several = len(choices) > 1
    one = len(names) > 1 and rng.random() < 0.25
    steps = rng.randint(2, 7)
    sensitivity: dict[str, Any] = {"of": steps, "levels": {name: rng.randrange(steps) for name in names}}
    protocol = rng.choice(("auto", "bounded", "aprr") if one else ("auto", "auto", "bounded", "sampling", "aprr"))
    told = protocol != "sampling" and (protocol == "aprr" or rng.random() < 0.35)
    if told and protocol != "aprr" and not one:
        sensitivity |= _some(rng, 0.4, split=rng.choice(("capped", "proportional")))
    weighed = protocol in ("auto", "bounded") and sensitivity.get("split") != "proportional"
    dependence = rng.choice((1, 1, 1.3, 2, "unknown")) if several else None
    pooling = rng.choice(({"level_weight_cap": rng.choice((1, 1.5, 3))}, "sum", *(["oc+"] if dependence == 1 else [])))
    return {
        "kind": "items",
        "source": {"path": "rows.parquet", **({"level": "level"} if several else {})},
        "items": names,
        **({"holds": "one"} if one else {}),
        "budget": {"total": total} | ({"bound": 1000} if protocol == "aprr" else {}),
        "protocol": protocol,
        **({"sensitivity": sensitivity} if told else {}),
        **(_some(rng, 0.2, weights={name: 10 ** rng.uniform(-2, 2) for name in names}) if weighed else {}),
        "levels": {"choices": choices, **({"dependence": dependence} if several else {})},
        "itemsets": {
            "minimum_support": rng.choice((1e-6, 0.001, 0.05, 0.1, 0.3, 1)),
            "length": 1 if one else rng.choice((1, 2, 3, 3, 5)),
            **_some(rng, 0.3, reach=rng.choice((0, 1, 10))),
            **_some(rng, 0.3, minimum_confidence=rng.choice((0.5, 1))),
        },
        **({} if one else _some(rng, 0.5, sampling=_sampling(rng))),
        **_some(rng, 0.3, combination=pooling),
        **_intervals(rng, "users", "population"),
        **_expected(rng, "levels", list(choices)),
    }


def _sampling(rng: Random) -> dict[str, Any]:
    lengths = rng.sample(range(40), rng.randint(1, 4))
    shares = dict.fromkeys(lengths, f"1/{len(lengths)}")
    return {
        **_some(rng, 0.5, lengths=shares),
        **_some(rng, 0.3, padding=rng.choice((1, 2, 7, 16, 100, 1000))),
        **_some(rng, 0.3, candidates=rng.choice((1, 2, 10, 64, 500))),
        **_some(rng, 0.3, sets_padding=rng.choice((1, 3, 20, 200))),
    }


def _aggregates(rng: Random, folder: Path) -> dict[str, Any]:
    attributes = [f"total-{i}" for i in range(rng.choice((1, 2, 3, 5, 8, 18, 40)))]
    profiles = [f"profile-{i}" for i in range(rng.choice((1, 1, 2, 3, 5, 20)))]
    grid = rng.choice((None, None, "0.01", "1/3", "2.5"))
    catalogue = {"path": "catalogue.csv"} | ({} if grid is None else {"weight": "weight", "grid": grid})
    _write_catalogue(rng, attributes, grid, folder / "catalogue.csv")
    weights = {"weights": {name: 10 ** rng.uniform(-2, 2) for name in attributes}, "power": rng.choice((0.5, 1, 3))}
    providers = {f"provider-{i}": {"epsilon": _budget(rng)} for i in range(rng.randint(1, 4))}
    return {
        "kind": "aggregates",
        "source": {"path": "rows.parquet", **({"profile": "profile"} if len(profiles) > 1 else {})},
        "catalogue": catalogue,
        "attributes": attributes,
        "providers": providers,
        "profiles": {
            profile: _budget(rng) if rng.random() < 0.5 else {name: _budget(rng) for name in attributes}
            for profile in profiles
        },
        "default": rng.choice(profiles),
        **_some(rng, 0.4, count={"cap": rng.choice((1, 3, 20))}),
        "objective": rng.choice(("mae", "mse", "mael", weights)),
        **_intervals(rng, "users"),
        **_expected(rng, "profiles", profiles),
    }


def _write_catalogue(rng: Random, attributes: list[str], grid: str | None, path: Path) -> None:
    """Every attribute has an item, and an item one attribute to all of them."""
    numerator, _, denominator = (grid or "1").partition("/")
    step, widest = float(numerator) / float(denominator or 1), rng.randint(1, len(attributes))
    rows = [[name] for name in attributes]
    rows += [rng.sample(attributes, rng.randint(1, widest)) for _ in range(rng.choice((0, 3, 30, 300)))]
    lines = [f"{i},{name},{rng.randint(1, 40) * step!r}" for i, row in enumerate(rows) for name in row]
    path.write_text("\n".join(["item,attribute,weight", *lines]))


_ENTRIES = {"histograms": _histograms, "items": _items, "aggregates": _aggregates}
