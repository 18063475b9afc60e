"""Clipped row gradients a second of Table 1's network (Li 2019), of dpmc and of its peers.

    python benches/network_gradients.py --dpmc target/release/dpmc --install FOLDER

Each peer runs in a Python of its own: in an environment that --install makes under FOLDER, or finds
there (opacus takes 5 GB), or in the one that --opacus, --jax or --jax-privacy names. On made-up
images, two threads, batches of 512 of 6,000 rows, clip 1: whole steps of DP-SGD, their noise
among them. Rounds of all of them follow one another, so that a busy machine slows all alike; the
median over the rounds is printed, and each in units of dpmc's. `--batch` shows that memory is flat.
"""

import argparse
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROWS, STEPS, FEW = 6000, 60, 10

RUN = """
[data]
file = "images.idx3-ubyte"
label_file = "labels.idx1-ubyte"
[data.label]
classes = 10
[[data.features]]
pixels = 784
[model]
kind = "network"
input = [28, 28]
layers = [
    {{ conv = 16, kernel = 8, stride = 2, padding = 2 }}, "tanh", {{ max_pool = 2, stride = 1 }},
    {{ conv = 32, kernel = 4, stride = 2 }}, "tanh", {{ max_pool = 2, stride = 1 }},
    {{ dense = 32 }}, "tanh",
]
[sampler]
algorithm = "dp-sgd"
step = 1.0
gradient = {{ clip = 1.0, rate = {rate}, tau = 1.0 }}
[run]
warmup = 0
iterations = {steps}
chains = 1
engine = "cpu"
[privacy]
epsilon = 900.0
delta = 1e-5
"""

OPACUS = """
import sys, time, warnings
warnings.filterwarnings("ignore")
import torch
from torch import nn
from opacus import PrivacyEngine
batch, steps, few, rows = map(int, sys.argv[1:])
torch.set_num_threads(2)
net = nn.Sequential(
    nn.Conv2d(1, 16, 8, 2, padding=2), nn.Tanh(), nn.MaxPool2d(2, 1),
    nn.Conv2d(16, 32, 4, 2), nn.Tanh(), nn.MaxPool2d(2, 1),
    nn.Flatten(), nn.Linear(32 * 4 * 4, 32), nn.Tanh(), nn.Linear(32, 10))
data = torch.utils.data.TensorDataset(
    torch.rand(rows, 1, 28, 28), torch.randint(0, 10, (rows,)))
loader = torch.utils.data.DataLoader(data, batch_size=batch)
engine = PrivacyEngine()
net, optimiser, loader = engine.make_private(
    module=net, optimizer=torch.optim.SGD(net.parameters(), lr=1.0), data_loader=loader,
    noise_multiplier=2.0, max_grad_norm=1.0)
loss, made, count, start = nn.CrossEntropyLoss(), 0, 0, None
while made < steps:
    for x, y in loader:
        if made == few:
            start, count = time.perf_counter(), 0
        optimiser.zero_grad()
        loss(net(x), y).backward()
        optimiser.step()
        made, count = made + 1, count + len(x)
        if made == steps:
            break
print(count / (time.perf_counter() - start))
"""

JAX = """
import sys, time
import jax, jax.numpy as jnp, numpy as np
from jax import lax
batch, steps, few, rows = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
X = rng.random((rows, 28, 28, 1), dtype=np.float32)
Y = rng.integers(0, 10, rows)
def weights(*shape):
    return jnp.asarray(rng.normal(size=shape).astype(np.float32) / np.sqrt(np.prod(shape[:-1])))
P = [(weights(8, 8, 1, 16), jnp.zeros(16)), (weights(4, 4, 16, 32), jnp.zeros(32)),
     (weights(512, 32), jnp.zeros(32)), (weights(32, 10), jnp.zeros(10))]
DIMS = ("NHWC", "HWIO", "NHWC")
def conv(x, p, stride, pad):
    return lax.conv_general_dilated(x, p[0], (stride,) * 2, [(pad, pad)] * 2, dimension_numbers=DIMS) + p[1]
def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 1, 1, 1), "VALID")
def loss(params, x, y):
    x = pool(jnp.tanh(conv(x[None], params[0], 2, 2)))
    x = pool(jnp.tanh(conv(x, params[1], 2, 0))).reshape(-1)
    x = jnp.tanh(x @ params[2][0] + params[2][1])
    return -jax.nn.log_softmax(x @ params[3][0] + params[3][1])[y]
SUMS
@jax.jit
def step(params, key, x, y):
    sums, tree = jax.tree.flatten(clipped_sums(params, x, y))
    keys = jax.random.split(key, len(sums))
    sums = [g + 2.0 * jax.random.normal(k, g.shape) for g, k in zip(sums, keys)]
    moves = jax.tree.unflatten(tree, [g / len(x) for g in sums])
    return jax.tree.map(lambda p, g: p - g, params, moves)
key = jax.random.key(0)
start = None
for made in range(steps):
    if made == few:
        jax.block_until_ready(P)
        start = time.perf_counter()
    at = rng.integers(0, rows, batch)
    key, use = jax.random.split(key)
    P = step(P, use, X[at], Y[at])
jax.block_until_ready(P)
print(batch * (steps - few) / (time.perf_counter() - start))
"""

# By hand, and by JAX-Privacy.
JAX_SUMS = """
def clipped_sums(params, x, y):
    rows = jax.vmap(jax.grad(loss), (None, 0, 0))(params, x, y)
    leaves, tree = jax.tree.flatten(rows)
    norms = jnp.sqrt(sum(jnp.sum(g.reshape(len(g), -1) ** 2, 1) for g in leaves))
    scale = jnp.minimum(1.0, 1.0 / norms)
    return jax.tree.unflatten(tree, [jnp.tensordot(scale, g, 1) for g in leaves])
"""
JAX_PRIVACY_SUMS = """
import jax_privacy
clipped_sums = jax_privacy.clipped_grad(
    loss, l2_clip_norm=1.0, batch_argnums=(1, 2), keep_batch_dim=False)
"""
PEERS = {
    "opacus": OPACUS,
    "jax": JAX.replace("SUMS", JAX_SUMS),
    "jax-privacy": JAX.replace("SUMS", JAX_PRIVACY_SUMS),
}


def dpmc(binary, folder, batch):
    """Rows a second: what further steps take."""
    seconds = []
    for steps in (FEW, STEPS):
        with open(os.path.join(folder, "run.toml"), "w") as file:
            file.write(RUN.format(rate=batch / ROWS, steps=steps))
        start = time.perf_counter()
        subprocess.run(
            [os.path.abspath(binary), "sample", "run.toml", "--quiet", "--out", f"out{steps}{start}"],
            cwd=folder, check=True, stdout=subprocess.DEVNULL,
            env={**os.environ, "DPMC_RECORDS": "off"})
        seconds.append(time.perf_counter() - start)
    return batch * (STEPS - FEW) / (seconds[1] - seconds[0])


def peer(python, program, batch):
    flags = "--xla_cpu_multi_thread_eigen=true intra_op_parallelism_threads=2"
    said = subprocess.run(
        [python, "-c", program, str(batch), str(STEPS), str(FEW), str(ROWS)],
        check=True, capture_output=True, text=True, env={**os.environ, "XLA_FLAGS": flags})
    return float(said.stdout.split()[-1])


def installed(folder, package):
    """The Python of an environment with a package, made where there is none."""
    environment = os.path.abspath(os.path.join(folder, package))
    python = os.path.join(environment, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", package], check=True)
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dpmc", default="target/release/dpmc")
    parser.add_argument("--install")
    for name in PEERS:
        parser.add_argument(f"--{name}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=512)
    a = parser.parse_args()
    pythons = {name: getattr(a, name.replace("-", "_")) for name in PEERS}
    if a.install:
        pythons = {name: python or installed(a.install, name) for name, python in pythons.items()}
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "images.idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">4B3I", 0, 0, 8, 3, ROWS, 28, 28) + os.urandom(ROWS * 784))
        with open(os.path.join(folder, "labels.idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">4BI", 0, 0, 8, 1, ROWS))
            file.write(bytes(k % 10 for k in range(ROWS)))
        found = {"dpmc": []}
        for _ in range(a.rounds):
            found["dpmc"].append(dpmc(a.dpmc, folder, a.batch))
            for name, program in PEERS.items():
                python = pythons[name]
                if python:
                    found.setdefault(name, []).append(peer(python, program, a.batch))
    ours = statistics.median(found["dpmc"])
    for name, rates in found.items():
        rate = statistics.median(rates)
        print(f"{name:8} {rate:9.0f} rows a second, {rate / ours:.2f} of dpmc's")


if __name__ == "__main__":
    sys.exit(main())
