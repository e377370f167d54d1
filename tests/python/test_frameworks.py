"""Each framework's own loop over what drawpoint watches or loads: the same weights as a plain loop over PyTorch's loader."""

import asyncio

import pytest

torch = pytest.importorskip("torch")

import drawpoint   # noqa: E402
from conftest import imported   # noqa: E402
from training import digest, loss_of, new_model, ours, torch_loader, train_plainly   # noqa: E402


@pytest.fixture(scope="module")
def expected():
    return train_plainly(torch_loader())


def train_with_lightning(loader, folder):
    imported("lightning.pytorch")
    from test_lightning import train
    return train(loader, folder=folder)


def train_with_accelerate(loader, folder, epochs=2):
    accelerate = imported("accelerate")
    accelerator = accelerate.Accelerator(cpu=True)
    model = new_model()
    model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=1e-3), loader)
    for _ in range(epochs):
        for batch in loader:
            optimizer.zero_grad()
            accelerator.backward(loss_of(model, batch))
            optimizer.step()
    return digest(model)


def train_with_transformers(loader, folder, epochs=2):
    transformers = imported("transformers")

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return loader

        def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
            return loss_of(model, inputs)

    model = new_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    arguments = transformers.TrainingArguments(str(folder), num_train_epochs=epochs, use_cpu=True, report_to="none",
                                               save_strategy="no", logging_strategy="no", disable_tqdm=True,
                                               max_grad_norm=0, lr_scheduler_type="constant")
    Trainer(model, arguments, optimizers=(optimizer, None)).train()
    return digest(model)


@pytest.mark.parametrize("loader", ["ours", "ours, recorded", "watched", "watched, two workers"])
@pytest.mark.parametrize("train", [lambda loader, folder: train_plainly(loader), train_with_lightning,
                                   train_with_accelerate, train_with_transformers],
                         ids=["plain", "Lightning", "accelerate", "transformers"])
def test_every_framework_trains_the_same(train, loader, tmp_path, expected):
    made = {"ours": lambda: ours(num_workers=2), "ours, recorded": lambda: ours(record=tmp_path / "ours.pftrace"),
            "watched": lambda: drawpoint.watch(torch_loader(), tmp_path / "watched.pftrace"),
            "watched, two workers": lambda: drawpoint.watch(torch_loader(2), tmp_path / "watched.pftrace")}[loader]()
    assert train(made, tmp_path) == expected


def test_async_for_trains_the_same(expected):
    async def run():
        model, loader = new_model(), ours(num_workers=2)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        for _ in range(2):
            async for batch in loader:
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                optimizer.step()
        return digest(model)

    assert asyncio.run(run()) == expected
