"""PyTorch as a client of cuBLAS: single products, linear layers, and training steps, all in FP32 without TF32.

    python3 pytorch_client.py LABEL [STEP...]        one JSON line for each step; exit status 77 without a GPU
"""

import copy
import math
import sys

import torch
from torch import nn
from torch.nn import functional

from client_steps import run_steps

EPS = 5.97e-8


def random(*shape):
    return torch.randn(*shape).cuda()


def product_error(result, a, b, added=None, relu=False):
    """Largest error of result = a @ b + added, or of ReLU of it, in units of the bound that FP32 sums of this length keep
    to."""
    exact = a.double() @ b.double()
    magnitude = a.double().abs() @ b.double().abs()
    bound = EPS * (4 + 2 * math.sqrt(a.shape[-1])) * magnitude + 1e-36
    if added is not None:
        exact = exact + added.double()
        bound = bound + 4 * EPS * added.double().abs()
    if relu:
        exact = exact.clamp(min=0)
    scaled = ((result.double() - exact).abs() / bound).max().item()
    return scaled if math.isfinite(scaled) else math.inf, exact.sum().item()


def bounded(*errors):
    return {"kind": "bound", "error": max(error for error, _ in errors), "fingerprint": errors[0][1]}


def mm(m, n, k):
    def step():
        a, b = random(m, k), random(k, n)
        return lambda: a @ b, lambda: bounded(product_error(a @ b, a, b))

    return step


def transposed_mm():
    a, b = random(777, 1000), random(1537, 777)
    return lambda: a.T @ b.T, lambda: bounded(product_error(a.T @ b.T, a.T, b.T))


def addmm():
    a, b, c = random(1024, 4096), random(4096, 512), random(1024, 512)

    def run():
        return torch.addmm(c, a, b, beta=0.5)

    return run, lambda: bounded(product_error(run(), a, b, 0.5 * c))


def bmm():
    a, b = random(64, 256, 64), random(64, 64, 256)
    return lambda: torch.bmm(a, b), lambda: bounded(product_error(torch.bmm(a, b), a, b))


def captured_mm():
    """The process's first FP32 product is captured in a CUDA graph; what runs is the graph."""
    a, b = random(512, 512), random(512, 512)
    torch.mm(a.double(), b.double())  # makes PyTorch create its cuBLAS handle, which it does not do while capturing
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = a @ b

    def check():
        graph.replay()
        return bounded(product_error(c, a, b))

    return graph.replay, check


def linear():
    layer = nn.Linear(1024, 1024).cuda()
    x, gradient = random(4096, 1024).requires_grad_(), random(4096, 1024)

    def run():
        x.grad = layer.weight.grad = layer.bias.grad = None
        y = layer(x)
        y.backward(gradient)
        return y

    def check():
        y = run()
        weight = layer.weight.detach()
        return bounded(
            product_error(y.detach(), x.detach(), weight.T, layer.bias.detach()),
            product_error(x.grad, gradient, weight),
            product_error(layer.weight.grad, gradient.T, x.detach()),
        )

    return run, check


def linear_relu():
    """Bias and ReLU as an epilogue of the product, as PyTorch's compiler asks for it too."""
    x, weight, bias = random(4096, 1024), random(1024, 1024), random(1024)

    def run():
        return torch._addmm_activation(bias, x, weight.T)

    return run, lambda: bounded(product_error(run(), x, weight.T, bias, relu=True))


class Attention(nn.Module):
    """Written out in matrix products, without a fused kernel."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(width // self.heads), dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class TransformerLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.mlp(self.norm_2(x))


class ResidualBlock(nn.Module):
    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.conv_1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.conv_2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm_1, self.norm_2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x):
        y = functional.relu(self.norm_1(self.conv_1(x)))
        return functional.relu(self.norm_2(self.conv_2(y)) + self.shortcut(x))


def resnet18(classes=1000):
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    blocks, channels_in = [], 64
    for channels, stride in [(64, 1), (128, 2), (256, 2), (512, 2)]:
        blocks += [ResidualBlock(channels_in, channels, stride), ResidualBlock(channels, channels, 1)]
        channels_in = channels
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


def training(make_model, make_inputs, loss_of):
    """Forward, backward and an SGD step. The error is that of the loss and all gradients of the first step against the same
    step in FP64, relative, in the 2-norm: rounding spreads through all layers, so there is no bound for each element."""

    def gradients(model, inputs):
        loss = loss_of(model, *inputs)
        loss.backward()
        return torch.cat([loss.detach().view(1)] + [p.grad.flatten() for p in model.parameters()]).double()

    def step():
        model = make_model().cuda()
        inputs = make_inputs()
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

        def run():
            optimizer.zero_grad()
            loss_of(model, *inputs).backward()
            optimizer.step()

        def check():
            exact_model = copy.deepcopy(model).double()
            exact = gradients(exact_model, [x.double() if x.is_floating_point() else x for x in inputs])
            error = ((gradients(copy.deepcopy(model), inputs) - exact).norm() / exact.norm()).item()
            return {
                "kind": "relative",
                "error": error if math.isfinite(error) else math.inf,
                "fingerprint": exact.norm().item(),
            }

        return run, check

    return step


STEPS = {
    "mm 2048x2048x2048": mm(2048, 2048, 2048),
    "mm 4096x32x4096": mm(4096, 32, 4096),
    "mm 1000x1537x777 TT": transposed_mm,
    "addmm 1024x512x4096": addmm,
    "bmm 64 of 256x256x64": bmm,
    "captured mm 512x512x512": captured_mm,
    "linear 4096x1024x1024": linear,
    "linear, ReLU 4096x1024x1024": linear_relu,
    "transformer training": training(
        lambda: nn.Sequential(*[TransformerLayer(512, 8) for _ in range(2)]),
        lambda: (random(8, 256, 512), random(8, 256, 512)),
        lambda model, x, target: functional.mse_loss(model(x), target),
    ),
    "ResNet-18 training": training(
        resnet18,
        lambda: (random(32, 3, 64, 64), torch.randint(1000, (32,)).cuda()),
        lambda model, x, target: functional.cross_entropy(model(x), target),
    ),
}


def has_gpu():
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = True
    return torch.cuda.is_available()


if __name__ == "__main__":
    wanted = sys.argv[2:] or list(STEPS)
    run_steps(sys.argv[1], {name: STEPS[name] for name in wanted}, has_gpu, torch.cuda.synchronize)
