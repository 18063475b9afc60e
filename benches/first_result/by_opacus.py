import torch
from opacus import PrivacyEngine
from table import adult
from torch.utils.data import DataLoader, TensorDataset

rows, labels = map(torch.from_numpy, adult())
model = torch.nn.Linear(rows.shape[1], 1, bias=False)
loader = DataLoader(TensorDataset(rows, labels), batch_size=1024)
engine = PrivacyEngine()
model, optimiser, loader = engine.make_private_with_epsilon(
    module=model,
    optimizer=torch.optim.SGD(model.parameters(), lr=2.0),
    data_loader=loader,
    epochs=10,
    target_epsilon=3,
    target_delta=1e-6,
    max_grad_norm=1.0,
)
loss = torch.nn.BCEWithLogitsLoss()
for _ in range(10):
    for x, y in loader:
        optimiser.zero_grad()
        loss(model(x).squeeze(-1), y).backward()
        optimiser.step()
print(list(model.parameters()), engine.get_epsilon(1e-6))
