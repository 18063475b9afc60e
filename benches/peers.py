#!/usr/bin/env python3
"""The peers of `dpmc bench`, on the same device and in turn with it.

    cargo build --release
    pip install jax numpyro blackjax torch      # jax[cuda] on an NVIDIA card
    python3 benches/peers.py [--engine cpu|gpu] [--rows 1e7] [--rounds 5] [--json FILE]

A round is one run of `dpmc bench`, then one call and five more of each peer. Prints the median of
all calls, each with its answer on the host, and how often the median of `dpmc` goes into it:

* log ratios clipped row by row, and gradients whose rows are clipped in closed form, the way of
  whoever writes them by hand, for as many chains as `dpmc bench` has, in JAX and in PyTorch
  (compiled where it compiles); in JAX the gradient by `vmap` too, as published private samplers
  have it;
* a trajectory of ten steps by NumPyro's HMC and by BlackJAX's, on the same target. Both clip
  nothing and are not private.

Rows are floats of 32 bits, drawn at random. Matrix products have full precision, and TF32 besides
on a card. A package that is not installed is left out. --rows sets the rows on a card alone.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import time

import numpy as np

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
FEATURES, STEPS, STEP = 50, 10, 1e-3
RATIO_CLIP, GRADIENT_CLIP = 0.1, 0.5
CALLS = 5


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--engine", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--rows", type=lambda text: str(int(float(text))))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dpmc", default="target/release/dpmc")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    bench = [arguments.dpmc, "bench", "--json", "--engine", arguments.engine]
    if arguments.rows:
        bench += ["--rows", arguments.rows]

    ours, times, calls = {}, {}, None
    for _ in range(arguments.rounds):
        found = subprocess.run(bench, check=True, capture_output=True, text=True).stdout
        measured = next(b for b in json.loads(found) if b["engine"]["kind"] == arguments.engine)
        rows = add_up(ours, measured["measurements"])
        calls = calls or peers(arguments.engine, rows, sorted({chains for _, chains in ours}))
        for key, call in calls.items():
            times.setdefault(key, []).extend(timed(call))

    print(f"{rows} rows of {FEATURES} features, {arguments.engine}, medians in milliseconds")
    lines = []
    for (what, chains), mine in sorted(ours.items()):
        mine = float(np.median(mine))
        print(f"{what}, {chains} chain{'s' * (chains > 1)}: dpmc {mine:.2f}")
        for (name, its, of), peer in times.items():
            if (its, of) == (what, chains):
                peer = float(np.median(peer))
                print(f"    {name:36} {peer:9.2f} {peer / mine:6.2f} x")
                lines.append(dict(what=what, chains=chains, dpmc=mine, peer=name, ms=peer))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(lines, file, indent=1)


def add_up(ours, measurements):
    """Takes up what has a peer, and says of how many rows it is."""
    named = {
        "logistic ratio pass, rows in 16 bits": "ratio",
        "logistic gradient pass, rows in 16 bits": "gradient",
        f"dp-hmc trajectory, {STEPS + 1} gradients and 1 ratio": "trajectory",
    }
    rows = set()
    for one in measurements:
        if one["name"] in named and one["features"] == FEATURES:
            ours.setdefault((named[one["name"]], one["chains"]), []).append(one["median_ms"])
            rows.add(one["rows"])
    assert len(rows) == 1, f"one table was to be measured, not {rows}"
    return rows.pop()


def timed(call):
    call()
    for _ in range(CALLS):
        start = time.perf_counter()
        call()
        yield 1e3 * (time.perf_counter() - start)


def peers(engine, rows, chains):
    """Calls that leave their answer on the host, by (name, what, chains)."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, FEATURES), dtype=np.float32) / np.float32(FEATURES**0.5)
    y = np.where(rng.random(rows) < 0.5, np.float32(1), np.float32(-1))
    thetas = {c: np.sin(np.add.outer(np.arange(c), np.arange(FEATURES)), dtype=np.float32)
              for c in chains}
    move = (0.01 * np.cos(np.arange(FEATURES))).astype(np.float32)
    calls = {}
    for package, of in [("jax", jax_calls), ("torch", torch_calls)]:
        if importlib.util.find_spec(package):
            calls.update(of(engine, x, y, thetas, move))
        else:
            print(f"{package} is not installed and left out")
    return calls


def jax_calls(engine, x, y, thetas, move):
    import jax
    import jax.numpy as jnp

    device = jax.devices()[0]
    if (device.platform == "cpu") != (engine == "cpu"):
        print(f"JAX has the device {device.device_kind} only, and is left out")
        return {}
    print(f"JAX {jax.__version__} on {device.device_kind}")
    x, y = jnp.asarray(x), jnp.asarray(y)
    norm = jnp.linalg.norm(x, axis=1)

    def ratios(x, y, theta, proposal):
        now, then = -y[:, None] * (x @ theta.T), -y[:, None] * (x @ proposal.T)
        difference = jax.nn.softplus(now) - jax.nn.softplus(then)
        return jnp.clip(difference, -RATIO_CLIP, RATIO_CLIP).sum(0)

    def gradients(x, y, norm, theta):
        score = y[:, None] * jax.nn.sigmoid(-y[:, None] * (x @ theta.T))
        size = jnp.abs(score) * norm[:, None]
        return (score * jnp.minimum(1, GRADIENT_CLIP / size)).T @ x

    def log_likelihood(theta, x, y):
        return -jax.nn.softplus(-y * (x @ theta))

    def by_vmap(x, y, theta):
        rows = jax.vmap(jax.grad(log_likelihood), (None, 0, 0))(theta, x, y)
        size = jnp.linalg.norm(rows, axis=1)
        return (rows * jnp.minimum(1, GRADIENT_CLIP / size)[:, None]).sum(0)

    ratios, gradients, by_vmap = jax.jit(ratios), jax.jit(gradients), jax.jit(by_vmap)
    calls = {}
    for precision in ["highest"] + ["default"] * (engine == "gpu"):
        name = "JAX" if precision == "highest" else "JAX, TF32"

        def at(call, *values, precision=precision):
            def run():
                with jax.default_matmul_precision(precision):
                    return np.asarray(call(*values))

            return run

        for chains, theta in thetas.items():
            theta = jnp.asarray(theta)
            calls[name, "ratio", chains] = at(ratios, x, y, theta, theta + move)
            calls[name, "gradient", chains] = at(gradients, x, y, norm, theta)
        calls[f"{name}, vmap(grad)", "gradient", 1] = at(by_vmap, x, y, jnp.asarray(thetas[1][0]))

    def potential(theta):
        return jax.nn.softplus(-y * (x @ theta)).sum() + 0.005 * (theta**2).sum()

    if importlib.util.find_spec("numpyro"):
        calls["NumPyro, HMC", "trajectory", 1] = by_numpyro(jax, jnp, potential)
    if importlib.util.find_spec("blackjax"):
        calls["BlackJAX, HMC", "trajectory", 1] = by_blackjax(jax, jnp, potential)
    return calls


def by_numpyro(jax, jnp, potential):
    from numpyro.infer.hmc import hmc

    begin, step = hmc(potential_fn=potential, algo="HMC")
    state = begin(
        jnp.zeros(FEATURES),
        num_warmup=0,
        step_size=STEP,
        trajectory_length=STEPS * STEP,
        adapt_step_size=False,
        adapt_mass_matrix=False,
        rng_key=jax.random.key(1),
    )
    return chain(jax, jax.jit(step), state, lambda state: state.z)


def by_blackjax(jax, jnp, potential):
    import blackjax

    kernel = blackjax.hmc(lambda theta: -potential(theta), STEP, jnp.ones(FEATURES), STEPS)
    keys = iter(jax.random.split(jax.random.key(1), 10_000))

    def step(state):
        return jitted(next(keys), state)[0]

    jitted = jax.jit(kernel.step)
    return chain(jax, step, kernel.init(jnp.zeros(FEATURES)), lambda state: state.position)


def chain(jax, step, state, position):
    def trajectory():
        nonlocal state
        with jax.default_matmul_precision("highest"):
            state = step(state)
            return np.asarray(position(state))

    return trajectory


def torch_calls(engine, x, y, thetas, move):
    import torch

    if engine == "gpu" and not torch.cuda.is_available():
        print("PyTorch has no card, and is left out")
        return {}
    device = "cuda" if engine == "gpu" else "cpu"
    print(f"PyTorch {torch.__version__} on {device}")
    x, y = torch.from_numpy(x).to(device), torch.from_numpy(y).to(device)
    norm, move = x.norm(dim=1), torch.from_numpy(move).to(device)
    softplus = torch.nn.functional.softplus

    def ratios(x, y, theta, proposal):
        now, then = -y[:, None] * (x @ theta.T), -y[:, None] * (x @ proposal.T)
        return (softplus(now) - softplus(then)).clamp(-RATIO_CLIP, RATIO_CLIP).sum(0)

    def gradients(x, y, norm, theta):
        score = y[:, None] * torch.sigmoid(-y[:, None] * (x @ theta.T))
        size = score.abs() * norm[:, None]
        return (score * (GRADIENT_CLIP / size).clamp(max=1)).T @ x

    calls = {}
    for chains, theta in thetas.items():
        theta = torch.from_numpy(theta).to(device)
        values = {"ratio": (x, y, theta, theta + move), "gradient": (x, y, norm, theta)}
        for what, plain in [("ratio", ratios), ("gradient", gradients)]:
            name, call = compiled(torch, plain, values[what])

            def run(call=call, values=values[what]):
                with torch.inference_mode():
                    return call(*values).cpu().numpy()

            calls[name, what, chains] = run
    return calls


def compiled(torch, plain, values):
    """By torch.compile, which wants a compiler on the machine; else as it is."""
    try:
        call = torch.compile(plain, dynamic=False)
        with torch.inference_mode():
            call(*values)
        return "PyTorch", call
    except Exception:  # noqa: BLE001: what it raises depends on what the machine lacks
        return "PyTorch, not compiled", plain


if __name__ == "__main__":
    main()
