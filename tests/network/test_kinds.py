"""Every kind of layer: rows times matrix are torch's own output, and torch's own gradients lie in the rows' span."""

import itertools

import numpy as np
import pytest
import torch
import transformers.pytorch_utils
from torch import nn
from torch.nn.utils.rnn import pack_sequence

from netpurify.network.adapter.layers import as_layers, refusal
from tests.network.made_networks import seeded
from tests.network.test_layers import SHAPES, by_rows

DOUBLE = {"dtype": torch.float64}
TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}


def draw(*shape, seed=1):
    return seeded(lambda: torch.randn(*shape, dtype=torch.float64), seed)


def seen(layer, *given, **named):
    """All rows of one call, group by group, biases included."""
    spans = layer.spans()
    layer.gather(spans, given, named)
    return [torch.from_numpy(span.matrix().T.copy()) for span in spans]


def assert_gradients_in_span(module, *given, **named):
    """Torch's gradient of every weight, bias included, must be a combination of the layer's rows."""
    output = module(*given, **named)
    output = output[0] if type(output) is tuple else output
    output = output.data if isinstance(output, nn.utils.rnn.PackedSequence) else output
    (output * draw(*output.shape, seed=9)).sum().backward()
    layers = as_layers("it", module)
    assert layers
    for layer in layers:
        gradients = {name: value.grad for name, value in layer.parameters.items()}
        gradient = layer.form.matrix(gradients)
        for group, rows in enumerate(seen(layer, *given, **named)):
            assert rows.shape[1] == layer.fan_in
            # Too many rows would span everything, and the test would say nothing.
            assert np.linalg.matrix_rank(rows) < layer.fan_in, (layer.name, rows.shape)
            basis = torch.linalg.svd(rows, full_matrices=False)
            kept = basis.Vh[1e-10 * basis.S[0] < basis.S]
            outside = gradient[group] - kept.T @ (kept @ gradient[group])
            if layer.free_bias:  # it is left out of the rows
                assert not rows[:, -layer.has_bias :].any() or not layer.has_bias
                outside[layer.fan_in - layer.has_bias :] = 0.0
            assert gradient[group].abs().max() > 1e-8 or "in_proj" in layer.name
            assert outside.abs().max() < 1e-9 * max(1.0, float(gradient[group].abs().max())), layer.name


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("padding", [0, 1, 2])
def test_transposed_convolutions(dimensions, padding):
    for stride, dilation, groups, bias in itertools.product((1, 2, 3), (1, 2), (1, 2, 4), (True, False)):
        kernel = (2, 3, 2)[:dimensions]
        for added in {0, stride - 1, dilation - 1}:
            if added >= max(stride, dilation):
                continue  # torch refuses it
            options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "bias": bias}
            options |= {"kernel_size": kernel, "output_padding": added} | DOUBLE
            module = seeded(lambda options=options: TRANSPOSED[dimensions](4, 8, **options))
            inputs = draw(2, 4, *(size - 2 for size in SHAPES[dimensions]))
            (layer,) = as_layers("it", module)
            expected = by_rows(module, module(inputs), dimensions)
            torch.testing.assert_close(layer.rows(inputs) @ layer.matrix(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("wanted", [(7, 8), (8, 9), (2, 3, 8, 8)])
def test_transposed_convolution_of_a_given_size(wanted):
    module = seeded(lambda: nn.ConvTranspose2d(3, 3, (3, 2), stride=(2, 2), padding=(1, 0), **DOUBLE))
    inputs = draw(2, 3, 4, 4)
    (layer,) = as_layers("it", module)
    output = module(inputs, output_size=wanted)
    rows = torch.cat([rows for (rows,) in layer.seen((inputs, wanted), {})])
    matrix = layer.matrix()[0]
    torch.testing.assert_close(rows @ matrix[:-1] + matrix[-1], by_rows(module, output, 2)[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize(("padding", "added"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_bias_is_free_where_no_input_reaches_a_position_of_the_output(stride, dilation, padding, added):
    if added >= max(stride, dilation):
        return  # torch refuses it
    options = {"stride": stride, "dilation": dilation, "padding": padding, "output_padding": added}
    module = seeded(lambda: nn.ConvTranspose1d(2, 3, 2, **options, **DOUBLE))
    (layer,) = as_layers("it", module)
    output = module(torch.ones(1, 2, 9, **DOUBLE))[0]
    assert layer.free_bias == bool((output == module.bias[:, None]).all(dim=0).any())


def test_one_image_without_a_batch():
    module = seeded(lambda: nn.ConvTranspose1d(2, 3, 3, stride=2, **DOUBLE))
    inputs = draw(2, 6)
    (layer,) = as_layers("it", module)
    expected = by_rows(module, module(inputs)[None], 1)
    torch.testing.assert_close(layer.rows(inputs) @ layer.matrix(), expected, rtol=1e-12, atol=1e-12)


def test_conv1d_of_transformers():
    module = seeded(lambda: transformers.pytorch_utils.Conv1D(5, 7)).double()
    inputs = draw(2, 3, 7)
    (layer,) = as_layers("it", module)
    assert (layer.units, layer.fan_in) == (5, 8)
    torch.testing.assert_close(layer.rows(inputs) @ layer.matrix(), module(inputs).reshape(1, -1, 5))
    assert_gradients_in_span(module, inputs[:1])


@pytest.mark.parametrize("bias", [True, False])
def test_bilinear(bias):
    module = seeded(lambda: nn.Bilinear(3, 4, 5, bias=bias, **DOUBLE))
    first, second = draw(2, 6, 3), draw(2, 6, 4, seed=2)
    (layer,) = as_layers("it", module)
    rows = layer.rows(torch.cat([first, second], dim=2))
    torch.testing.assert_close(rows @ layer.matrix(), module(first, second).reshape(1, -1, 5))
    assert_gradients_in_span(module, first[:, :2], input2=second[:, :2])


def masks(queries, keys, heads):
    padding = torch.zeros(2, keys, dtype=torch.bool)
    padding[0, -2:] = True
    causal = torch.triu(torch.ones(queries, keys, dtype=torch.bool), 1)
    additive = draw(2 * heads, queries, keys, seed=5)
    return {
        "none": {},
        "padding": {"key_padding_mask": padding},
        "causal": {"attn_mask": causal},
        "both": {"attn_mask": additive, "key_padding_mask": torch.zeros(2, keys).double().masked_fill(padding, -9.0)},
        "weights": {"need_weights": False},
    }


@pytest.mark.parametrize("options", [
    {}, {"bias": False}, {"batch_first": True}, {"add_bias_kv": True}, {"add_zero_attn": True},
    {"kdim": 12, "vdim": 10}, {"kdim": 12, "vdim": 10, "bias": False, "batch_first": True},
])  # fmt: skip
@pytest.mark.parametrize("mask", ["none", "padding", "causal", "both", "weights"])
def test_attention(options, mask):
    module = seeded(lambda: nn.MultiheadAttention(16, 4, **options, **DOUBLE)).eval()
    with torch.no_grad():
        for value in module.parameters():
            value.copy_(draw(*value.shape, seed=4) / 3.0)
    sizes = {"query": (3, 16), "key": (4, options.get("kdim", 16)), "value": (4, options.get("vdim", 16))}
    inputs = []
    for seed, (length, width) in enumerate(sizes.values()):
        values = draw(2, length, width, seed=seed)
        inputs.append(values if options.get("batch_first") else values.transpose(0, 1))
    named = masks(3, 4, 4)[mask]
    *projections, output = as_layers("it", module)
    matrix = output.matrix()[0]
    (rows,) = seen(output, *inputs, **named)
    torch.testing.assert_close(rows @ matrix, module(*inputs, **named)[0].detach().reshape(-1, 16))
    assert {layer.name for layer in projections} == (
        {"it.q_proj", "it.k_proj", "it.v_proj"} if "kdim" in options else {"it.in_proj"}
    )
    assert_gradients_in_span(module, *inputs, **named)
    assert not any(name.endswith("identity") for name, _ in module.named_modules())


def test_attention_by_names_and_without_a_batch():
    module = seeded(lambda: nn.MultiheadAttention(16, 4, **DOUBLE)).eval()
    inputs = {"query": draw(3, 16), "key": draw(5, 16, seed=2), "value": draw(5, 16, seed=3)}
    *_, output = as_layers("it", module)
    (rows,) = seen(output, **inputs)
    torch.testing.assert_close(rows @ output.matrix()[0], module(**inputs)[0].detach())
    assert_gradients_in_span(module, **inputs)


OPTIONS = [
    {}, {"bias": False}, {"batch_first": True}, {"num_layers": 3}, {"bidirectional": True},
    {"num_layers": 2, "bidirectional": True, "batch_first": True},
]  # fmt: skip
RECURRENT = [
    *itertools.product((nn.LSTM, nn.GRU, nn.RNN), OPTIONS),
    (nn.LSTM, {"proj_size": 7}),
    (nn.LSTM, {"proj_size": 7, "num_layers": 2, "bidirectional": True}),
    (nn.RNN, {"nonlinearity": "relu"}),
]


@pytest.mark.parametrize(("kind", "options"), RECURRENT)
def test_recurrent_networks(kind, options):
    module = seeded(lambda: kind(9, 12, **options, **DOUBLE))
    inputs = draw(2, 3, 9) if options.get("batch_first") else draw(3, 2, 9)
    assert_gradients_in_span(module, inputs)
    module.zero_grad()
    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    state = (draw(count, 2, options.get("proj_size", 12), seed=3), draw(count, 2, 12, seed=4))
    assert_gradients_in_span(module, inputs, state if kind is nn.LSTM else state[0])
    module.zero_grad()
    assert_gradients_in_span(module, inputs[:, 0] if not options.get("batch_first") else inputs[0])
    module.zero_grad()
    packed = pack_sequence([draw(length, 9, seed=length) for length in (2, 3, 1)], enforce_sorted=False)
    assert_gradients_in_span(module, packed)


def test_states_of_a_projected_lstm_times_the_projection_are_its_output():
    module = seeded(lambda: nn.LSTM(9, 12, proj_size=7, **DOUBLE))
    inputs = draw(3, 2, 9)
    layer = as_layers("it", module)[-1]
    assert layer.name == "it.weight_hr_l0"
    (rows,) = seen(layer, inputs)
    torch.testing.assert_close(rows @ layer.matrix()[0], module(inputs)[0].detach().reshape(-1, 7))


def test_rows_of_input_and_hidden_weights_make_the_gates_of_torch():
    module = seeded(lambda: nn.RNN(9, 12, **DOUBLE))
    inputs = draw(3, 2, 9)
    into, hidden = as_layers("it", module)
    gates = sum(seen(layer, inputs)[0] @ layer.matrix()[0] for layer in (into, hidden)) + module.bias_hh_l0.detach()
    torch.testing.assert_close(torch.tanh(gates), module(inputs)[0].detach().reshape(-1, 12))


def test_tokens_that_get_a_gradient_are_those_that_are_used():
    module = seeded(lambda: nn.Embedding(20, 6, padding_idx=3, **DOUBLE))
    tokens = torch.tensor([[1, 3, 5], [5, 19, 0]])
    (layer,) = as_layers("it", module)
    (span,) = layer.spans()
    layer.gather([span], (tokens,), {})
    (module(tokens) * draw(2, 3, 6)).sum().backward()
    assert span.used.tolist() == module.weight.grad.any(dim=1).tolist()
    assert span.used.nonzero()[0].tolist() == [0, 1, 5, 19]
    assert (layer.units, layer.fan_in) == (20, 6)


class OwnAttention(nn.MultiheadAttention):
    def forward(self, *given, **named):
        return super().forward(*given, **named)


@pytest.mark.parametrize("build", [lambda: OwnAttention(8, 2), lambda: nn.Embedding(3, 3, max_norm=1.0)])
def test_what_is_refused(build):
    assert refusal(build()) is not None


@pytest.mark.parametrize("build", [
    lambda: nn.ConvTranspose2d(4, 6, (2, 3), groups=2), lambda: transformers.pytorch_utils.Conv1D(6, 4),
    lambda: nn.MultiheadAttention(4, 2), lambda: nn.MultiheadAttention(4, 2, kdim=3, vdim=5),
    lambda: nn.LSTM(3, 4, num_layers=2, proj_size=2), lambda: nn.Bilinear(2, 3, 4), lambda: nn.Embedding(5, 3),
])  # fmt: skip
def test_every_entry_of_the_matrix_is_at_its_place_in_its_tensor_and_is_written_there(build):
    module = seeded(build)
    for layer in as_layers("it", module):
        tensors = layer.parameters
        for number, value in enumerate(tensors.values()):
            value.data = 1000.0 * number + torch.arange(value.numel(), dtype=torch.float32).reshape(value.shape)
        matrix = layer.matrix().clone()
        group, row, column = np.nonzero(np.ones(matrix.shape, np.bool_))
        tensor, index = layer.form.places(layer.weight.shape, group, row, column)
        np.testing.assert_array_equal(matrix[group, row, column].numpy(), 1000.0 * tensor + index)
        unit, place = layer.form.units_at(layer.weight.shape, tensor, index)
        np.testing.assert_array_equal(unit, group * matrix.shape[2] + column)
        np.testing.assert_array_equal(place, row)
        before = {name: value.clone() for name, value in module.state_dict().items()}
        layer.write(matrix + 0.5)
        torch.testing.assert_close(layer.matrix(), matrix + 0.5, rtol=0.0, atol=0.0)
        changed = sum(int((value != before[name]).sum()) for name, value in module.state_dict().items())
        assert changed == matrix.numel()
        layer.write(matrix)
