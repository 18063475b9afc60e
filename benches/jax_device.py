"""The peers of `dpmc bench --engine gpu`: the same sums in JAX on the same card.

    pip install jax[cuda] numpyro
    python3 benches/jax_device.py [ROWS]

takes ROWS rows (default 1e7) of 50 features in f32, and 1, 8 and 64 chains. Prints the median and the fastest of fifteen calls, each with its answer on the host:
log ratios clipped row by row; gradients with rows clipped in closed form, the way of whoever
writes them by hand; and a trajectory of NumPyro's HMC with as many gradients as `dpmc bench`'s
(not private, nothing clipped).
"""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

N = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
D, CLIP, STEPS = 50, 0.1, 10


@jax.jit
def table(key):
    a, b = jax.random.split(key)
    x = jax.random.normal(a, (N, D)) / D**0.5
    y = jnp.where(jax.random.bernoulli(b, 0.5, (N,)), 1.0, -1.0)
    return x, y


X, Y = table(jax.random.key(0))
NORM = jnp.linalg.norm(X, axis=1)


@jax.jit
def ratios(x, y, theta, proposal):
    now, then = -y[:, None] * (x @ theta.T), -y[:, None] * (x @ proposal.T)
    return jnp.clip(jax.nn.softplus(now) - jax.nn.softplus(then), -CLIP, CLIP).sum(0)


@jax.jit
def gradients(x, y, norm, theta):
    score = y[:, None] * jax.nn.sigmoid(-y[:, None] * (x @ theta.T))
    size = jnp.abs(score) * norm[:, None]
    return (score * jnp.minimum(1, 10.0 / size)).T @ x


def timed(name, chains, call):
    call()
    times = []
    for _ in range(15):
        start = time.perf_counter()
        np.asarray(call())
        times.append(1e3 * (time.perf_counter() - start))
    median, best = np.median(times), min(times)
    print(f"{name:40} {N:>9} {D:>4} {chains:>3} {median:9.3f} {best:9.3f} ms", flush=True)


print(jax.__version__, jax.devices()[0].device_kind)
for precision in ("highest", "default"):
    with jax.default_matmul_precision(precision):
        for chains in (1, 8, 64):
            theta = jnp.sin(jnp.arange(chains)[:, None] + jnp.arange(D)[None, :])
            proposal = theta + 0.01 * jnp.cos(jnp.arange(D))
            timed(f"JAX, log ratios, {precision}", chains, lambda: ratios(X, Y, theta, proposal))
            timed(f"JAX, clipped gradients, {precision}", chains, lambda: gradients(X, Y, NORM, theta))

from numpyro.infer.hmc import hmc  # noqa: E402

with jax.default_matmul_precision("highest"):

    def potential(x, y):
        return lambda theta: jax.nn.softplus(-y * (x @ theta)).sum() + 0.005 * (theta**2).sum()

    start, step = hmc(potential_fn_gen=potential, algo="HMC")
    state = start(
        jnp.zeros(D),
        num_warmup=0,
        step_size=1e-3,
        trajectory_length=STEPS * 1e-3,
        adapt_step_size=False,
        adapt_mass_matrix=False,
        model_args=(X, Y),
        rng_key=jax.random.key(1),
    )
    step = jax.jit(step)

    def trajectory():
        global state
        state = step(state, (X, Y))
        return state.z

    timed(f"NumPyro, HMC, {STEPS} steps", 1, trajectory)
