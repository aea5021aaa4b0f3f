"""Layers, their functions, and gradient descent."""

from __future__ import annotations

import numpy as np
import pytest

import pylayer.paddle as paddle
from pylayer.paddle import nn
from pylayer.paddle.nn import functional

X = np.arange(6.0).reshape(2, 3)
LABELS = np.array([0, 2])
LOG_PROBABILITIES = X - np.log(np.exp(X).sum(1, keepdims=True))
NLL = -LOG_PROBABILITIES[[0, 1], LABELS]
SMOOTH = np.float32(0.75) * np.eye(3, dtype="float32")[LABELS] + np.float32(0.25) / np.float32(3)


def tensor(values, needs_gradient=False):
    return paddle.to_tensor(np.asarray(values), stop_gradient=not needs_gradient)


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.rest = nn.LayerList([nn.Linear(4, 4), nn.Linear(4, 1)])
        self.scale = self.create_parameter([1], default_initializer=nn.initializer.Constant(2.0))
        self.register_buffer("count", paddle.zeros([1]))
        self.register_buffer("cache", paddle.zeros([1]), persistable=False)

    def forward(self, x):
        x = functional.relu(self.first(x))
        for layer in self.rest:
            x = layer(x)
        return x * self.scale


NAMES = ["scale", "first.weight", "first.bias", "rest.0.weight", "rest.0.bias", "rest.1.weight", "rest.1.bias"]


# --------------------------------------------------------------------------- functions
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (lambda x: functional.mse_loss(x, 2 * x), (X**2).mean()),
        (lambda x: functional.mse_loss(x, 2 * x, "sum"), (X**2).sum()),
        (lambda x: functional.mse_loss(x, 2 * x, "none"), X**2),
        (lambda x: functional.l1_loss(x, 3 * x), (2 * X).mean()),
        (
            lambda x: functional.smooth_l1_loss(x, 1.3 * x, "none"),
            np.where(0.3 * X < 1, (0.3 * X) ** 2 / 2, 0.3 * X - 0.5),
        ),
        (lambda x: functional.cross_entropy(x, tensor(LABELS)), NLL.mean()),
        (lambda x: functional.cross_entropy(x, tensor(LABELS), reduction="none"), NLL),
        (lambda x: functional.cross_entropy(x, tensor(LABELS[:, None]), reduction="none"), NLL[:, None]),
        (lambda x: functional.cross_entropy(x, tensor(LABELS), tensor([1.0, 2, 3])), (NLL * [1, 3]).sum() / 4),
        (lambda x: functional.cross_entropy(x, tensor([0, 2]), ignore_index=2), NLL[0]),
        (lambda x: functional.cross_entropy(x.t(), tensor([0, 2]), axis=0), NLL.mean()),
        (lambda x: functional.cross_entropy(functional.softmax(x), tensor(LABELS), use_softmax=False), NLL.mean()),
        (
            lambda x: functional.cross_entropy(
                x, functional.one_hot(tensor(LABELS), 3).astype("float64"), soft_label=True
            ),
            NLL.mean(),
        ),
        (
            lambda x: functional.cross_entropy(x, tensor(LABELS), label_smoothing=0.25),
            -(SMOOTH * LOG_PROBABILITIES).sum(1).mean(),
        ),
        (lambda x: functional.nll_loss(tensor(LOG_PROBABILITIES), tensor(LABELS)), NLL.mean()),
        (lambda x: functional.kl_div(tensor(LOG_PROBABILITIES), tensor(np.eye(3)[LABELS]), "batchmean"), NLL.mean()),
        (lambda x: functional.binary_cross_entropy(tensor([0.25]), tensor([1.0])), -np.log(0.25)),
        (lambda x: functional.binary_cross_entropy_with_logits(tensor([-800.0]), tensor([1.0])), 800),
        (
            lambda x: functional.linear(x, tensor(np.ones((3, 2))), tensor([1.0, 2.0])),
            X.sum(1, keepdims=True) + np.array([1, 2]),
        ),
        (lambda x: functional.layer_norm(x, 3, epsilon=0.0), np.array([[-1, 0, 1], [-1, 0, 1]]) * 1.5**0.5),
        (lambda x: functional.normalize(x, axis=1), X / np.sqrt((X**2).sum(1, keepdims=True))),
        (lambda x: functional.cosine_similarity(x, 2 * x), [1, 1]),
        (lambda x: functional.embedding(tensor([1, 0]), x), X[[1, 0]]),
        (lambda x: functional.embedding(tensor([1, 0]), x, padding_idx=1), [[0, 0, 0], X[0]]),
        (lambda x: functional.dropout(x, 0.4, training=False), X),
        (lambda x: functional.dropout(x, 0.4, training=False, mode="downscale_in_infer"), X * 0.6),
        (lambda x: functional.dropout(x, 1.0), 0 * X),
        (lambda x: functional.relu6(x * 2), np.minimum(X * 2, 6)),
        (lambda x: functional.softmax(x * 1000), [[0, 0, 1], [0, 0, 1]]),
        (lambda x: functional.log_sigmoid(tensor([-800.0, 0.0])), [-800, -np.log(2)]),
        (lambda x: functional.softplus(tensor([-800.0, 0.0, 800.0])), [0, np.log(2), 800]),
        (lambda x: functional.glu(tensor([2.0, 0.0])), [1]),
        (lambda x: functional.gelu(tensor([0.0, 30.0])), [0, 30]),
        (lambda x: functional.prelu(tensor([[-2.0, -2.0]]), tensor([0.5, 0.25])), [[-1, -0.5]]),
    ],
)
def test_values(value, expected):
    np.testing.assert_allclose(value(tensor(X)).numpy(), expected, rtol=1e-14, atol=1e-14)


def test_gradient_of_cross_entropy_is_softmax_minus_label():
    x = tensor(X, needs_gradient=True)
    functional.cross_entropy(x, tensor(LABELS), reduction="sum").backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(LOG_PROBABILITIES) - np.eye(3)[LABELS], atol=1e-15)


def test_layer_norm_is_unmoved_by_shifting_and_scaling_its_input():
    x = tensor([[0.3, -1.0, 2.0, 0.7]], needs_gradient=True)
    weight = tensor([1.0, 2.0, 3.0, 4.0], needs_gradient=True)
    functional.layer_norm(x, [4], weight, epsilon=0.0).square().sum().backward()
    gradient = x.grad.numpy()
    np.testing.assert_allclose([gradient.sum(), (gradient * x.numpy()).sum()], 0, atol=1e-13)
    assert np.abs(gradient).max() > 0.1


def test_dropout_keeps_the_mean_and_drops_whole_slices_along_the_other_axes():
    paddle.seed(0)
    x = paddle.ones([100, 100], "float64")
    dropped = functional.dropout(x, 0.25).numpy()
    assert set(np.unique(dropped)) == {0, 1 / 0.75}
    assert abs(dropped.mean() - 1) < 5 * (0.25 / 0.75) ** 0.5 / 100
    rows = functional.dropout(x, 0.25, axis=0).numpy()
    assert (rows == rows[:, :1]).all()


@pytest.mark.parametrize(
    ("wrong", "error", "phrase"),
    [
        (lambda x: functional.mse_loss(x, x, "average"), ValueError, "'sum', 'mean' or 'none', but received average"),
        (lambda x: functional.cross_entropy(x, tensor([0, 7])), IndexError, ">= 0 and < 3 .* but received 7"),
        (lambda x: functional.cross_entropy(x, tensor([0, 1, 2])), ValueError, r"label should have shape \[2, 1\]"),
        (lambda x: functional.layer_norm(x, [2]), ValueError, r"last axes should be \[2\]"),
        (lambda x: functional.dropout(x, 2.0), ValueError, "between 0 and 1, but got 2.0"),
        (lambda x: functional.dropout(x, mode="off"), ValueError, "downscale_in_infer"),
        (lambda x: functional.gelu(x, "sometimes"), ValueError, "is one of True, False, tanh, none"),
    ],
)
def test_function_errors(wrong, error, phrase):
    with pytest.raises(error, match=phrase):
        wrong(tensor(X))


# --------------------------------------------------------------------------- layers
def test_parameters_and_buffers_have_dotted_names():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == NAMES
    assert [name for name, _ in net.named_buffers()] == ["count", "cache"]
    assert list(net.state_dict()) == ["scale", "count", *NAMES[1:]]  # layer by layer, as the release has it
    assert [name for name, _ in net.named_sublayers()] == ["first", "rest", "rest.0", "rest.1"]
    assert len(net.sublayers(include_self=True)) == 5
    assert all(isinstance(p, nn.Parameter) and not p.stop_gradient for p in net.parameters())
    assert [p.shape for p in net.first.parameters()] == [[3, 4], [4]]


def test_a_shared_parameter_is_listed_once():
    net = Net()
    net.rest[0].weight = net.rest[1].weight
    assert len(net.parameters()) == len(NAMES) - 1


def test_gradients_reach_every_parameter_and_are_cleared():
    net = Net()
    net(paddle.ones([5, 3])).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.clear_gradients()
    assert all((p.grad.numpy() == 0).all() for p in net.parameters())


def test_attributes_replace_one_another():
    net = Net()
    net.scale = None
    assert net.scale is None
    net.first = paddle.create_parameter([1], "float32")
    assert "first.weight" not in dict(net.named_parameters())
    with pytest.raises(TypeError, match="assignment to parameter 'first' should be of type Parameter or None"):
        net.first = 3
    del net.first
    net.first = 3
    assert net.first == 3
    net.count = paddle.ones([1])
    assert net.state_dict()["count"].tolist() == [1]
    del net.rest
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'rest'"):
        _ = net.rest


def test_parameters_before_init_are_an_error():
    class Early(nn.Layer):
        def __init__(self):
            self.inner = nn.Linear(1, 1)

    with pytest.raises(RuntimeError, match=r"super\(\).__init__\(\) before setting self.inner"):
        Early()


def test_state_dict_carries_values_over():
    one, two = Net(), Net()
    missing, unexpected = two.set_state_dict({**one.state_dict(), "other": paddle.ones([1])})
    assert (missing, unexpected) == ([], ["other"])
    x = paddle.ones([2, 3])
    assert one(x).tolist() == two(x).tolist()
    one.first.weight.array[...] = 0
    assert two.first.weight.numpy().any()
    rest = {name: value for name, value in one.state_dict().items() if name != "first.bias"}
    with pytest.warns(UserWarning, match=r"first.bias receives a shape \[2\], but the expected shape is \[4\]"):
        assert two.set_state_dict({**rest, "first.bias": paddle.ones([2])}) == (["first.bias"], ["first.bias"])
    with pytest.raises(AssertionError, match="need tensor with dtype float32 but load tensor with dtype float64"):
        two.set_state_dict({**rest, "first.bias": paddle.ones([4], "float64")})


def test_training_and_evaluation_mode():
    net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    net.eval()
    assert not net[1].training
    x = paddle.ones([2, 3])
    assert net(x).tolist() == net[0](x).tolist()
    net.train()
    assert net[1].training


def test_forward_hooks_see_and_replace():
    layer = nn.Identity()
    seen = []
    before = layer.register_forward_pre_hook(lambda layer, inputs: (inputs[0] * 2,))
    after = layer.register_forward_post_hook(lambda layer, inputs, output: seen.append(output.tolist()))
    assert layer(paddle.ones([1])).tolist() == [2]
    assert seen == [[2]]
    before.remove()
    after.remove()
    assert layer(paddle.ones([1])).tolist() == [1]
    assert len(seen) == 1


def test_dtype_of_a_layer():
    net = Net().to(dtype="float64")
    assert {p.dtype for p in net.parameters()} == {paddle.float64}
    assert net(paddle.ones([1, 3], "float64")).dtype is paddle.float64


def test_bias_and_initial_values():
    layer = nn.Linear(2, 3, weight_attr=nn.initializer.Constant(0.5), bias_attr=False)
    assert layer.bias is None
    assert layer(paddle.ones([1, 2])).tolist() == [[1, 1, 1]]
    fixed = nn.Linear(2, 1, paddle.ParamAttr("w", nn.initializer.Assign([[1.0], [2.0]]), trainable=False))
    assert fixed.weight.name == "w"
    assert fixed.weight.stop_gradient
    assert fixed(paddle.ones([1, 2])).tolist() == [[3]]


@pytest.mark.parametrize("initializer", ["XavierUniform", "XavierNormal", "Normal", "Uniform"])
def test_random_first_values(initializer):
    paddle.seed(0)
    values = paddle.create_parameter(
        [100, 50], "float64", default_initializer=getattr(nn.initializer, initializer)()
    ).numpy()
    variance = {"XavierUniform": 2 / 150, "XavierNormal": 2 / 150, "Normal": 1, "Uniform": 1 / 3}[initializer]
    assert abs(values.mean()) < 5 * (variance / values.size) ** 0.5
    assert abs(values.var() / variance - 1) < 5 * (2 / values.size) ** 0.5


@pytest.mark.parametrize(
    ("layer", "function"),
    [
        (nn.ReLU(), functional.relu),
        (nn.Tanh(), paddle.tanh),
        (nn.Sigmoid(), functional.sigmoid),
        (nn.Silu(), functional.silu),
        (nn.GELU(True), lambda x: functional.gelu(x, approximate=True)),
        (nn.Swish(), functional.silu),
        (nn.Softmax(0), lambda x: functional.softmax(x, 0)),
    ],
)
def test_layers_over_functions(layer, function):
    x = tensor(X - 2)
    assert layer(x).tolist() == function(x).tolist()


def test_losses_as_layers():
    x = tensor(X)
    assert nn.MSELoss("sum")(x, 2 * x).item() == (X**2).sum()
    np.testing.assert_allclose(nn.CrossEntropyLoss()(x, tensor(LABELS)).item(), NLL.mean(), rtol=1e-15)
    with pytest.raises(TypeError, match=r"MSELoss.* got an unexpected keyword argument 'weight'"):
        nn.MSELoss(weight=1)


def test_layer_norm_and_embedding_layers():
    assert nn.LayerNorm(3)(paddle.ones([2, 3])).tolist() == np.zeros((2, 3)).tolist()
    assert nn.Embedding(4, 2)(paddle.to_tensor([1, 3])).shape == [2, 2]


def test_containers():
    layers = [nn.Identity(), nn.Linear(2, 2)]
    for container in (nn.Sequential(*layers), nn.LayerList(layers)):
        assert len(container) == 2
        assert list(container) == layers
        assert container[-1] is layers[1]
        assert len(container[:1]) == 1
    named = nn.Sequential(("a", layers[0]), ("b", layers[1]))
    assert named["b"] is layers[1]
    assert [name for name, _ in named.named_parameters()] == ["b.weight", "b.bias"]
    parameters = nn.ParameterList([layers[1].weight])
    assert [name for name, _ in parameters.named_parameters()] == ["0"]
    assert parameters[0] is layers[1].weight


def test_repr_shows_the_tree():
    assert repr(nn.Sequential(nn.Linear(2, 3), nn.Softmax())) == (
        "Sequential(\n  (0): Linear(in_features=2, out_features=3, dtype=float32)\n  (1): Softmax(axis=-1)\n)"
    )


@pytest.mark.parametrize(
    ("wrong", "error", "phrase"),
    [
        (lambda: nn.Layer()(1), NotImplementedError, r"Layer must override forward\(\)"),
        (lambda: nn.Layer().add_sublayer("a", 1), AssertionError, "should be a Layer, but received int"),
        (
            lambda: nn.Layer().add_parameter("a", paddle.ones([1])),
            TypeError,
            "should be a Parameter, but received Tensor",
        ),
        (lambda: nn.Layer().register_buffer("a", 1), TypeError, "buffer should be a Tensor, but received int"),
        (
            lambda: nn.Linear(1, 1, weight_attr=3),
            TypeError,
            "must be a ParamAttr, an Initializer or a name, but got int",
        ),
        (lambda: nn.Linear(1, 1).to(device="gpu"), ValueError, "the place is gpu"),
    ],
)
def test_layer_errors(wrong, error, phrase):
    with pytest.raises(error, match=phrase):
        wrong()


# --------------------------------------------------------------------------- gradient descent
def test_a_step_of_gradient_descent():
    x = paddle.create_parameter([2], "float64", default_initializer=nn.initializer.Assign([1.0, 2.0]))
    optimizer = paddle.optimizer.SGD(0.1, [x], weight_decay=0.5)
    (x * x).sum().backward()
    optimizer.step()
    np.testing.assert_allclose(x.numpy(), [1 - 0.1 * 2.5, 2 - 0.1 * 5])
    optimizer.clear_grad()
    assert x.grad.tolist() == [0, 0]


def test_parameters_without_gradient_stay():
    x = paddle.create_parameter([1], "float64", default_initializer=nn.initializer.Constant(1.0))
    paddle.optimizer.SGD(0.1, [x]).step()
    assert x.tolist() == [1]


def test_a_backward_after_a_step_that_needs_the_old_values_is_an_error():
    x = paddle.create_parameter([1], "float64", default_initializer=nn.initializer.Constant(3.0))
    y = x * x
    y.backward(retain_graph=True)
    paddle.optimizer.SGD(0.1, [x]).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_descent_finds_a_minimum():
    paddle.seed(0)
    net = nn.Linear(3, 1)
    net.to(dtype="float64")
    x = paddle.randn([50, 3], "float64")
    target = x @ tensor([[1.0], [-2.0], [0.5]]) + 3
    optimizer = paddle.optimizer.SGD(0.1, net.parameters())
    for _ in range(200):
        functional.mse_loss(net(x), target).backward()
        optimizer.step()
        optimizer.clear_grad()
    np.testing.assert_allclose(net.weight.numpy()[:, 0], [1, -2, 0.5], atol=1e-6)


def test_optimizer_errors():
    with pytest.raises(ValueError, match="parameters argument"):
        paddle.optimizer.SGD(0.1)
    with pytest.raises(TypeError, match="Put it into a list"):
        paddle.optimizer.SGD(0.1, paddle.ones([1]))
    with pytest.raises(TypeError, match="learning rate should be float or LRScheduler"):
        paddle.optimizer.SGD("fast", [])
