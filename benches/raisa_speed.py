"""Seconds an iteration of `dp-hmc`, four chains in lockstep, at the sizes and settings of Räisä 2021.

Makes rows and run files in a temporary folder and runs target/release/dpmc (cargo build --release;
needs numpy). Set-up is included in the time.
"""

import pathlib
import subprocess
import tempfile
import time

import numpy as np

DPMC = pathlib.Path(__file__).resolve().parent.parent / "target/release/dpmc"
ROWS = 100_000
RUN = """[data]
file = "{name}.npy"
[[data.features]]
columns = [{columns}]
clamp = [-400, 400]
[model]
{model}
[sampler]
algorithm = "dp-hmc"
{sampler}
[run]
iterations = {iterations}
chains = 4
engine = "cpu"
[privacy]
epsilon = 15
delta = 1e-6
"""
rng = np.random.default_rng(1)
banana = np.c_[rng.normal(0, 2000**0.5, ROWS), rng.normal(3, 2500**0.5, ROWS)]
unit = str(np.eye(10).tolist())
PROBLEMS = {
    "banana": (
        banana,
        'kind = "banana"\ncurvature = 20\nvariances = [2000, 2500]\nprior = { kind = "normal", sd = 31.6 }',
        "leapfrog_steps = 25\nstep = 0.006\ntau = 31.6\nclip = { rate = 0.1 }\ngradient = { clip = 0.05, tau = 174 }",
        80,
    ),
    "gaussian": (
        rng.normal(size=(ROWS, 10)),
        f'kind = "gaussian-mean"\ncovariance = {unit}\nprior = {{ kind = "normal", sd = 100 }}',
        "leapfrog_steps = 12\nstep = 0.00015\ntau = 31.6\nclip = { rate = 6 }\ngradient = { clip = 10, tau = 79 }",
        60,
    ),
}
for name, (rows, model, sampler, iterations) in PROBLEMS.items():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        np.save(folder / f"{name}.npy", rows.astype(np.float32))
        columns = ", ".join(f'"x{j}"' for j in range(rows.shape[1]))
        text = RUN.format(name=name, columns=columns, model=model, sampler=sampler, iterations=iterations)
        (folder / "run.toml").write_text(text)
        start = time.time()
        subprocess.run([DPMC, "sample", folder / "run.toml", "--out", folder / "out", "--quiet"], check=True)
        print(f"{name}: {1e3 * (time.time() - start) / iterations:.1f} ms an iteration")
