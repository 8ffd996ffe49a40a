"""Linear layers whose weights are laid out once for oneDNN, for inference on a CPU."""

import platform

import torch
from torch import nn

# Fewest numbers in a weight for packing (1 MiB): a call takes 10 µs more than MKL's.
WORTH_PACKING = 1 << 18


class PackedLinear(nn.Module):
    """`nn.Linear` by oneDNN, with a weight that is laid out once, for inference only.

    PyTorch multiplies float32 by MKL, which lays the weight out at every call and uses AVX-512 on
    Intel's processors alone.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), None)
        self.bias = linear.bias

    @property
    def weight(self) -> torch.Tensor:
        """The weight [out, in] in the usual layout, for models that read it."""
        return self.packed.to_dense()

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return torch.ops.mkldnn._linear_pointwise(states, self.packed, self.bias, "none", [], "")


def pack(model: nn.Module) -> nn.Module:
    """Replace large float32 linear layers of a model by packed ones, on an x86 CPU."""
    if platform.machine() in ("x86_64", "AMD64") and torch.backends.mkldnn.is_available():
        for parent in list(model.modules()):
            for name, layer in list(parent.named_children()):
                if type(layer) is nn.Linear and _worth_packing(layer.weight):
                    setattr(parent, name, PackedLinear(layer))
    return model


def _worth_packing(weight: torch.Tensor) -> bool:
    packable = weight.device.type == "cpu" and weight.dtype == torch.float32
    return packable and weight.numel() >= WORTH_PACKING
