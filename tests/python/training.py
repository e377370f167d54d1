"""A small model and its data, which tests train in several ways: the same batches end in the same weights."""

import numpy
import torch

import drawpoint

SAMPLES, BATCH = 64, 8
DATA = numpy.arange(SAMPLES * 4, dtype=numpy.float32).reshape(SAMPLES, 4) / SAMPLES
TARGETS = numpy.arange(SAMPLES)


class Points(torch.utils.data.Dataset):
    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        return torch.from_numpy(DATA[index]), torch.tensor(TARGETS[index])


def torch_loader(workers=0):
    return torch.utils.data.DataLoader(Points(), BATCH, num_workers=workers)


def new_model():
    model = torch.nn.Linear(4, 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    return model


def loss_of(model, batch):
    x, y = batch
    return ((model(x).flatten() - y) ** 2).mean()


def digest(model):
    return torch.cat([one.detach().flatten() for one in model.parameters()]).numpy().tobytes()


def train_plainly(loader, epochs=2):
    model = new_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        for batch in loader:
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.step()
    return digest(model)


def ours(**options):
    return drawpoint.DataLoader(drawpoint.rows(DATA, TARGETS), batch_size=BATCH, **options)
