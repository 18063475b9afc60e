"""DP-HMC as Räisä, Koskela & Honkela (2021) run it, for comparison with `dpmc-lab reproduce raisa-1`.

    pip install jax numpy
    python benches/raisa_dp_hmc.py banana 94 40      # problem, iterations a chain, repeats

An independent implementation in JAX of their algorithm at the settings of their published code:
real Gaussian noise, jitter U(0, 1) by a randomised van der Corput sequence, clips, starts and MMD as
there. Its iterations a chain at epsilon = 2, 4, 8, 15 are 27, 94, 315, 892 (banana) and 16, 56, 190,
538 (Gaussian). The banana's rows are theirs (the means that are printed say so); the Gaussian's
covariance has the eigenvalues of `lab/src/reproduce/raisa_targets.rs`. Prints the MMD over repeats.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
# The random bits of the JAX of 2021.
jax.config.update("jax_threefry_partitionable", False)

N = 100_000
CHAINS = 4


class Banana:
    """x ~ N((t1, t2 + 20 t1^2), diag(2000, 2500)); the prior is normal in (t1, t2 + 20 t1^2)."""

    truth = np.array([0.0, 3.0])
    tau, tau_g, step, leaps, ratio_clip, gradient_clip = 0.10, 0.55, 0.006, 25, 0.1, 0.05
    precision = (0.0005, 0.0004)
    prior_precision = 0.001

    def __init__(self):
        keys = jax.random.split(jax.random.PRNGKey(43247), 3)
        p1, p2 = self.precision
        self.x1 = jax.random.normal(keys[0], (N, 1))[:, 0] / np.sqrt(p1)
        self.x2 = jax.random.normal(keys[1], (N, 1))[:, 0] / np.sqrt(p2) + 3
        print("column means", float(self.x1.mean()), float(self.x2.mean()))
        columns = []
        for x, p, key in zip((self.x1, self.x2), self.precision, keys):
            total = N * p + self.prior_precision
            columns.append(N * p * x.mean() / total + jax.random.normal(key, (1000,)) / np.sqrt(total))
        self.exact = np.stack([columns[0], columns[1] - 20 * columns[0] ** 2], axis=1)

    def log_likelihoods(self, t):
        p1, p2 = self.precision
        bend = self.x2 - t[1] - 20 * t[0] ** 2
        return -0.5 * (p1 * (self.x1 - t[0]) ** 2 + p2 * bend**2)

    def gradients(self, t):
        p1, p2 = self.precision
        second = p2 * (self.x2 - t[1] - 20 * t[0] ** 2)
        return jnp.stack([p1 * (self.x1 - t[0]) + 40 * t[0] * second, second])

    def log_prior(self, t):
        return -0.5 * self.prior_precision * (t[0] ** 2 + (t[1] + 20 * t[0] ** 2) ** 2)


class Gaussian:
    """x ~ N(t, S) in ten dimensions, prior N(0, 100^2)."""

    truth = np.array([0.0, 3.0] + [0.0] * 8)
    tau, tau_g, step, leaps, ratio_clip, gradient_clip = 0.1, 0.25, 0.00015, 12, 6.0, 10.0
    eigenvalues = np.array([0.01685, 0.02025, 0.09719, 0.1465, 0.1758, 0.2169, 0.2427, 0.4499, 0.8701, 1.034])

    def __init__(self):
        rng = np.random.default_rng(41)
        axes, _ = np.linalg.qr(rng.standard_normal((10, 10)))
        self.precision = jnp.asarray(axes / self.eigenvalues @ axes.T)
        root = axes * np.sqrt(self.eigenvalues) @ axes.T
        self.rows = jnp.asarray(self.truth + rng.standard_normal((N, 10)) @ root)
        # The prior's pull, 1e-9 of the likelihood's, is left out.
        mean = np.asarray(self.rows.mean(0))
        self.exact = mean + rng.standard_normal((1000, 10)) @ root / np.sqrt(N)

    def log_likelihoods(self, t):
        gap = self.rows - t
        return -0.5 * ((gap @ self.precision) * gap).sum(1)

    def gradients(self, t):
        return ((self.rows - t) @ self.precision).T

    def log_prior(self, t):
        return -0.5 * (t**2).sum() / 100.0**2


def run(problem, iterations, chains, seed):
    """Draws [iteration, parameter, chain], the start first, and the share of accepted moves."""
    spread = problem.exact.std(0).mean()
    ratio_sd = 2 * problem.tau * np.sqrt(N) * problem.ratio_clip
    gradient_sd = 2 * problem.tau_g * np.sqrt(N) * problem.gradient_clip
    prior_gradient = jax.vmap(jax.grad(problem.log_prior))

    def clipped_gradient(t):
        rows = problem.gradients(t)
        lengths = jnp.sqrt((rows**2).sum(0))
        return rows @ (jnp.minimum(lengths, problem.gradient_clip) / lengths)

    def clipped_ratio(args):
        there, here, clip = args
        ratios = problem.log_likelihoods(there) - problem.log_likelihoods(here)
        return jnp.clip(ratios, -clip, clip).sum()

    def force(t, key):
        noise = gradient_sd * jax.random.normal(key, t.shape)
        return jax.lax.map(clipped_gradient, t) + noise + prior_gradient(t)

    def iterate(state, jitter):
        here, key = state
        key, momentum_key, force_key, noise_key, coin_key = jax.random.split(key, 5)
        eta = jitter * problem.step
        first = jax.random.normal(momentum_key, here.shape)
        keys = jax.random.split(force_key, problem.leaps + 1)

        def leap(carry, key):
            p, q, f = carry
            p = p + 0.5 * eta * f
            q = q + eta * p
            f = force(q, key)
            return (p + 0.5 * eta * f, q, f), None

        (last, there, _), _ = jax.lax.scan(leap, (first, here, force(here, keys[0])), keys[1:])
        length = jnp.sqrt(((there - here) ** 2).sum(1))
        gain = jax.lax.map(clipped_ratio, (there, here, length * problem.ratio_clip))
        gain = gain + ratio_sd * length * jax.random.normal(noise_key, length.shape)
        gain = gain + jax.vmap(problem.log_prior)(there) - jax.vmap(problem.log_prior)(here)
        gain = gain + 0.5 * ((first**2).sum(1) - (last**2).sum(1))
        coin = jnp.log(jax.random.uniform(coin_key, length.shape))
        accepted = coin < gain - 0.5 * (ratio_sd * length) ** 2
        now = jnp.where(accepted[:, None], there, here)
        return (now, key), (now, accepted)

    key, start_key, jitter_key = jax.random.split(jax.random.PRNGKey(seed), 3)
    start = problem.truth + spread * jax.random.normal(start_key, (chains, len(problem.truth)))
    corput = np.array([int(f"{i:032b}"[::-1], 2) for i in range(iterations)]) / 2.0**32
    jitters = (corput + float(jax.random.uniform(jitter_key))) % 1.0
    _, (draws, accepted) = jax.jit(lambda s: jax.lax.scan(iterate, (s, key), jnp.asarray(jitters)))(start)
    draws = np.concatenate([start[None], draws])
    return draws.transpose(0, 2, 1), float(accepted.mean())


def mmd(draws, exact, rng):
    """Unbiased, Gaussian kernel, bandwidth the median of 500 distances between the two."""
    a, b = (s[rng.choice(len(s), 500)] for s in (draws, exact))
    width = np.median(np.linalg.norm(a - b, axis=1))

    def kernel(x, y):
        squares = ((x[:, None] - y[None]) ** 2).sum(-1)
        return np.exp(-squares / (2 * width**2))

    n, m = len(draws), len(exact)
    within = (kernel(draws, draws).sum() - n) / (n * (n - 1)) + (kernel(exact, exact).sum() - m) / (m * (m - 1))
    return np.sqrt(abs(within - 2 * kernel(draws, exact).mean()))


def main():
    problem = {"banana": Banana, "gaussian": Gaussian}[sys.argv[1]]()
    iterations, repeats = int(sys.argv[2]), int(sys.argv[3])
    draws, accepted = run(problem, iterations, CHAINS * repeats, seed=1)
    kept = draws[int((iterations - 1) * 0.5) + 1 :]
    rng = np.random.default_rng(1)
    found = []
    for r in range(repeats):
        chains = [kept[:, :, CHAINS * r + c] for c in range(CHAINS)]
        found.append(mmd(np.concatenate(chains), problem.exact, rng))
    error = np.std(found, ddof=1) / np.sqrt(repeats) if repeats > 1 else float("nan")
    print(f"{sys.argv[1]}, {iterations} iterations, {repeats} repeats: MMD {np.mean(found):.3f} +- {error:.3f}", end=" ")
    print(f"({min(found):.3f} to {max(found):.3f}), accepted {accepted:.2f}")


main()
